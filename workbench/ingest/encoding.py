"""From bytes to text: byte order mark, then strict UTF-8, then what the file declares, then a detector.

The detector (charset-normalizer) is asked about the code pages in wide use first, because on short texts it finds rare
ones just as likely; between the Western and the Central European code pages it cannot decide without a language (all of
them decode everything), so `_western_or_central` decides by the language found and by the bytes that only one of them uses.

Text is normalised once, here: line ends become `\\n`, NUL and lone surrogates become U+FFFD (they cannot be stored), and
nothing else changes, so that offsets and lines are those of the file.
"""

from __future__ import annotations

import codecs
import re
import unicodedata

from workbench.ingest.errors import ReadError, skip

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MAGIC = (
    (b"PK\x03\x04", "a zip archive or Office file"),
    (b"\xd0\xcf\x11\xe0", "an old Office file"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90", "a program"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"\x1f\x8b", "a compressed file"),
    (b"7z\xbc\xaf", "an archive"),
    (b"Rar!", "an archive"),
    (b"SQLite format 3\x00", "a database"),
    (b"PAR1", "a Parquet file"),
)
_COMMON = [
    "cp1252", "cp1250", "iso8859_2", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257",
    "cp874", "cp932", "euc_jp", "iso2022_jp", "gb18030", "big5", "cp949", "mac_roman", "cp850",
]  # fmt: skip
_CENTRAL = frozenset({"Czech", "Slovak", "Polish", "Hungarian", "Croatian", "Slovene", "Romanian"})
_CONTROLS = bytes(set(range(32)) - {7, 8, 9, 10, 12, 13, 26, 27})
_SAMPLE = 1 << 16
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_DECLARED = re.compile(
    rb"<meta[^>]+?charset[ \t]*=[ \t\"']*([-\w:.]+)|<\?xml[^>]+?encoding=[\"']([-\w.]+)", re.IGNORECASE
)
_COOKIE = re.compile(rb"(?:#|//|/\*|--).*?coding[:=][ \t]*([-\w.]+)")
BINARY_REMEDY = "Convert it to text, or leave it out by .gitignore"


def normalise(text: str) -> str:
    """Line ends as `\\n`, no byte order mark in front, and U+FFFD for NUL and lone surrogates."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return clean(text.removeprefix("\ufeff"))


def clean(text: str) -> str:
    """U+FFFD for what cannot be stored: NUL and lone surrogates. The length stays the same."""
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text


def declared_encoding(head: bytes) -> str:
    """The encoding that a file's first bytes state: HTML's meta, XML's declaration, or a script's comment; else ""."""
    match = _DECLARED.search(head) or _COOKIE.search(b"\n".join(head.split(b"\n", 2)[:2]))
    return match[match.lastindex or 0].decode("ascii", "replace") if match else ""


def decode(data: bytes, declared: str = "") -> tuple[str, str]:
    """Decode a whole file.

    Args:
        data: Its bytes.
        declared: Name of the encoding that the file itself states, or "".

    Returns:
        The normalised text, and the name of the encoding it was in.

    Raises:
        ReadError: With status skipped for a binary; failed where no encoding fits.
    """
    for mark, name in _BOMS:
        if data.startswith(mark):
            return normalise(data[len(mark) :].decode(name, "replace")), name
    head = data[:_SAMPLE]
    if b"\x00" in head:
        wide = _wide(head)
        if wide:
            return normalise(data.decode(wide, "replace")), wide
    refuse_binary(head)
    for name in ("utf-8", declared):
        text = _strict(data, name)
        if text is not None:
            return normalise(text), name
    return _detected(data)


def refuse_binary(head: bytes) -> None:
    """Raise ReadError (skipped) if the first bytes of a file are not text in any encoding."""
    for magic, what in _MAGIC:
        if head.startswith(magic):
            raise skip(f"It is {what}, not text", BINARY_REMEDY)
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls >= 2 and controls > 0.03 * len(head):
        raise skip("It is a binary file, not text", BINARY_REMEDY)


def _strict(data: bytes, name: str) -> str | None:
    if not name:
        return None
    try:
        return data.decode(name, "strict")
    except (UnicodeError, LookupError):
        return None


def _wide(head: bytes) -> str:
    """UTF-16 or UTF-32 without a mark: where the zero bytes stand tells which; "" if they stand anywhere."""
    for name, width in (("utf-32-le", 4), ("utf-32-be", 4), ("utf-16-le", 2), ("utf-16-be", 2)):
        sample = head[: len(head) // width * width]
        if len(sample) < 8 * width:
            continue
        text = _strict(sample, name)
        if text is None or "\x00" in text:
            continue
        plain = sum(c.isspace() or unicodedata.category(c)[0] in "LNPS" for c in text)
        letters = sum(c < "\x80" and c.isalnum() for c in text)
        if plain >= 0.97 * len(text) and letters > 0.3 * len(text):
            return name
    return ""


def _detected(data: bytes) -> tuple[str, str]:
    from charset_normalizer import from_bytes

    sample = data if len(data) <= _SAMPLE else data[: data.rfind(b"\n", 0, _SAMPLE) + 1 or _SAMPLE]
    matches = from_bytes(sample, cp_isolation=_COMMON)
    best = matches.best()
    if best is None:
        matches = from_bytes(sample, cp_isolation=_COMMON, threshold=0.4)
        best = matches.best()
    if best is None:
        raise ReadError("Its encoding cannot be told", "Save it as UTF-8")
    others = {m.encoding for m in matches if m.chaos <= best.chaos + 0.02 and m.coherence >= best.coherence - 0.05}
    name = _western_or_central(best.encoding, best.language, others, sample)
    return normalise(data.decode(name, "replace")), name


def _western_or_central(best: str, language: str, others: set[str], sample: bytes) -> str:
    """Decide between cp1252, cp1250 and ISO 8859-2, which decode the same bytes to other letters."""
    if best != "cp1252" and "cp1252" in others:
        accents = sum(byte > 127 for byte in sample)
        if language not in _CENTRAL or accents < 5:
            return "cp1252"
    if best == "cp1250" and language in _CENTRAL and not any(0x80 <= byte < 0xA0 for byte in sample):
        return "iso8859_2"
    return best
