"""The registry of readers: which one reads a file.

By content where that is certain (a PDF is a PDF whatever its name), then by name, then by suffix, then by a look at the
first bytes; what nobody claims is read as text, and refused there if it is binary.
"""

from __future__ import annotations

from workbench.ingest.errors import skip
from workbench.ingest.readers import code, html, later, markdown, pdf, records, text
from workbench.ingest.readers.base import Parsed, Reader, Record, Source

__all__ = ["READERS", "Parsed", "Reader", "Record", "Source", "reader_for"]

READERS: tuple[Reader, ...] = (
    markdown.READER,
    text.READER,
    html.READER,
    pdf.READER,
    records.READER,
    code.READER,
)
"""In the order in which they are asked."""


def reader_for(source: Source) -> Reader:
    """The reader of a file.

    Raises:
        ReadError: Nobody reads this kind of file yet (skipped), or the file cannot be opened.
    """
    head = source.head()
    for reader in READERS:
        if reader.certain and reader.sniff is not None and reader.sniff(head):
            return reader
    name, suffix = source.name.lower(), source.suffix
    for reader in READERS:
        if name in reader.names:
            return reader
    for reader in READERS:
        if suffix in reader.suffixes:
            return reader
    if suffix in later.REMEDIES:
        raise skip(f"There is no reader for {suffix} yet", later.REMEDIES[suffix])
    for reader in READERS:
        if reader.sniff is not None and reader.sniff(head):
            return reader
    return text.READER
