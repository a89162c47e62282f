"""Kinds of files that are known and not read, each with what to do instead.

Some of them could be read as text, and would fill the index with noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workbench.ingest.errors import skip
from workbench.ingest.readers.base import Parsed, Reader, Source

_PDF_OR_TEXT = "Save it as PDF or text"
_UNPACK = "Unpack it, and index what is in it"
_NO_TEXT = "Leave it out by .gitignore; it holds no text"

REMEDIES: Mapping[str, str] = {
    **dict.fromkeys((".wpd", ".wps"), _PDF_OR_TEXT),
    **dict.fromkeys((".parquet", ".feather", ".avro", ".orc"), "Turn its rows into CSV or JSONL"),
    **dict.fromkeys((".sqlite", ".db", ".mdb", ".accdb"), "Export its tables as CSV"),
    **dict.fromkeys((".mobi", ".azw3", ".djvu"), "Convert it to EPUB or PDF"),
    **dict.fromkeys((".pst", ".ost"), "Export the mailbox as MBOX"),
    **dict.fromkeys(
        (".7z", ".rar", ".zst", ".lzma", ".lz", ".lz4", ".br", ".z", ".cab", ".iso", ".dmg", ".deb", ".rpm", ".cpio"),
        _UNPACK,
    ),
    **dict.fromkeys((".heic", ".psd", ".ai"), _NO_TEXT),
    **dict.fromkeys((".mp3", ".wav", ".flac", ".ogg", ".mp4", ".mkv", ".mov", ".avi", ".webm"), _NO_TEXT),
}
"""Suffix -> remedy."""


def _tnef(source: Source) -> Iterator[Parsed]:
    raise skip(
        "It is what Outlook packs messages and attachments into for other Outlooks (TNEF, winmail.dat), which is not read",
        "Have it sent as plain text or HTML, or open it in Outlook and save what it holds",
    )


TNEF = Reader("tnef", _tnef, sniff=lambda head: head.startswith(b"\x78\x9f\x3e\x22"), certain=True)
