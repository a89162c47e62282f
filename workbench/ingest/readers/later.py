"""Kinds of files that are known and not read yet, each with what to do meanwhile.

Some of them (CSV, mail, RTF, notebooks) could be read as text, and would fill the index with markup.
"""

from __future__ import annotations

from collections.abc import Mapping

_PDF_OR_TEXT = "Save it as PDF or text"
_UNPACK = "Unpack it, and index what is in it"
_NO_TEXT = "Leave it out by .gitignore; it holds no text"

REMEDIES: Mapping[str, str] = {
    **dict.fromkeys((".docx", ".doc", ".docm", ".odt", ".rtf", ".pages", ".wpd"), _PDF_OR_TEXT),
    **dict.fromkeys((".pptx", ".ppt", ".pptm", ".odp", ".key"), _PDF_OR_TEXT),
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods", ".csv", ".tsv", ".parquet"), "Turn its rows into JSONL records"),
    **dict.fromkeys((".epub", ".mobi", ".azw3"), "Convert it to HTML or text"),
    **dict.fromkeys((".eml", ".mbox", ".msg"), "Save the messages as text"),
    **dict.fromkeys((".ipynb",), "Save the notebook as Markdown or as a script"),
    **dict.fromkeys((".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".jar", ".whl"), _UNPACK),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".webp", ".tif", ".tiff", ".bmp", ".ico", ".heic"), _NO_TEXT),
    **dict.fromkeys((".mp3", ".wav", ".flac", ".ogg", ".mp4", ".mkv", ".mov", ".avi", ".webm"), _NO_TEXT),
}
"""Suffix -> remedy."""
