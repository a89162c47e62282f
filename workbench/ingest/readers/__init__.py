"""The registry of readers: which one reads a file.

By content where that is certain (a PDF is a PDF whatever its name, and a text that is called .docx is a text), then by name,
then by suffix, then by a look at the first bytes; what nobody claims is read as text, and refused there if it is binary.
"""

from __future__ import annotations

from workbench.ingest.encoding import refuse_binary
from workbench.ingest.errors import Problem, ReadError, skip
from workbench.ingest.readers import (
    archives,
    code,
    data,
    delimited,
    html,
    images,
    later,
    mail,
    markdown,
    markup,
    notebook,
    ole,
    pdf,
    records,
    rtf,
    subtitles,
    text,
    zipped,
)
from workbench.ingest.readers.base import Member, Parsed, Reader, Record, Source

__all__ = ["READERS", "Member", "Parsed", "Reader", "Record", "Source", "misnamed", "reader_for"]

READERS: tuple[Reader, ...] = (
    markdown.READER,
    text.READER,
    html.READER,
    pdf.READER,
    records.READER,
    zipped.READER,
    ole.READER,
    rtf.READER,
    archives.PACKED,
    archives.TAR,
    later.TNEF,
    images.READER,
    notebook.READER,
    delimited.READER,
    data.JSON,
    data.XML,
    mail.MESSAGE,
    mail.MAILBOX,
    subtitles.READER,
    markup.LATEX,
    markup.ORG,
    markup.ASCIIDOC,
    code.READER,
)
"""In the order in which they are asked."""


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
    if suffix in later.REMEDIES:
        raise skip(f"There is no reader for {suffix} yet", later.REMEDIES[suffix])
    for reader in READERS:
        if reader.sniff is not None and reader.sniff(head):
            return reader
    return text.READER


def misnamed(source: Source, reader: Reader) -> Problem | None:
    """What to tell where a file has the name of a PDF, an Office file or an image and was read as some kind of text."""
    if reader.certain or not any(other.certain and source.suffix in other.suffixes for other in READERS):
        return None
    said = f"It is called {source.suffix} and is none: it was read as {reader.name}"
    return Problem(said, "Name it for what it is", loses=False)


def _is_text(head: bytes) -> bool:
    """Whether a file that is called a PDF, an Office file or an image may be text all the same."""
    try:
        refuse_binary(head)
    except ReadError:
        return False
    return b"\x00" not in head
