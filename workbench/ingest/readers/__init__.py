"""The registry of readers: which one reads a file.

By content where that is certain (a PDF is a PDF whatever its name, and a text that is called .docx is a text), then by name,
then by suffix, then by a look at the first bytes; what nobody claims is read as text, and refused there if it is binary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workbench.ingest.encoding import refuse_binary
from workbench.ingest.errors import Problem, ReadError, skip
from workbench.ingest.readers import archives, code, data, html, images, legacy, mail, pdf, records, rtf, text
from workbench.ingest.readers.base import Parsed, Reader, Source


def _tnef(source: Source) -> Iterator[Parsed]:
    raise skip(
        "It is what Outlook packs messages and attachments into for other Outlooks (TNEF, winmail.dat), which is not read",
        "Have it sent as plain text or HTML, or open it in Outlook and save what it holds",
    )


_TNEF = Reader("tnef", _tnef, sniff=lambda head: head.startswith(b"\x78\x9f\x3e\x22"), certain=True)
_REMEDIES: Mapping[str, str] = {
    suffix: remedy
    for suffixes, remedy in (
        (".wpd .wps", "Save it as PDF or text"),
        (".parquet .feather .avro .orc", "Turn its rows into CSV or JSONL"),
        (".sqlite .db .mdb .accdb", "Export its tables as CSV"),
        (".mobi .azw3 .djvu", "Convert it to EPUB or PDF"),
        (".pst .ost", "Export the mailbox as MBOX"),
        (".7z .rar .zst .lzma .lz .lz4 .br .z .cab .iso .dmg .deb .rpm .cpio", "Unpack it, and index what is in it"),
        (
            ".heic .psd .ai .mp3 .wav .flac .ogg .mp4 .mkv .mov .avi .webm",
            "Leave it out by .gitignore; it holds no text",
        ),
    )
    for suffix in suffixes.split()
}
"""Kinds of files that are known and not read; some of them could be read as text, and would fill the index with noise."""
READERS: tuple[Reader, ...] = (
    text.MARKDOWN,
    text.TEXT,
    html.READER,
    pdf.READER,
    records.READER,
    archives.ZIP,
    legacy.READER,
    rtf.READER,
    archives.PACKED,
    archives.TAR,
    _TNEF,
    images.READER,
    data.NOTEBOOK,
    text.TABLE,
    data.JSON,
    data.XML,
    mail.MESSAGE,
    mail.MAILBOX,
    text.SUBTITLES,
    text.CALENDAR,
    text.LATEX,
    text.ORG,
    text.ASCIIDOC,
    code.READER,
)
"""In the order in which they are tried."""


def reader_for(source: Source) -> Reader:
    """The reader of a file.

    Raises:
        ReadError: Nobody reads this kind of file yet (skipped), or the file cannot be opened.
    """
    if source.read is not None:
        return Reader("member", source.read, certain=True)
    head = source.head()
    for reader in READERS:
        if reader.certain and reader.sniff is not None and reader.sniff(head):
            return reader
    name, suffix = source.name.lower(), source.suffix
    for reader in READERS:
        if name in reader.names:
            return reader
    for reader in READERS:
        if suffix in reader.suffixes and not (reader.certain and _is_text(head)):
            return reader
    if suffix in _REMEDIES:
        raise skip(f"There is no reader for {suffix} yet", _REMEDIES[suffix])
    for reader in READERS:
        if reader.sniff is not None and reader.sniff(head):
            return reader
    return text.TEXT


def misnamed(source: Source, reader: Reader) -> Problem | None:
    """What to report where a file has the name of a PDF, an Office file or an image and was read as some kind of text."""
    if reader.certain or not any(other.certain and source.suffix in other.suffixes for other in READERS):
        return None
    reason = f"It is not {source.suffix}, despite its name: it was read as {reader.name}"
    return Problem(reason, "Name it for what it is", loses=False)


def _is_text(head: bytes) -> bool:
    """Whether a file that is called a PDF, an Office file or an image may be text all the same."""
    try:
        refuse_binary(head)
    except ReadError:
        return False
    return b"\x00" not in head
