"""Old Office files and Outlook messages: whatever is an OLE compound file, by what is in it and not by its name.

Word 97 to 2003 is read from its piece table ([MS-DOC] 2.4.1), which gives the words in order without their looks; workbooks by
xlrd; presentations by `ppt`; messages by their properties. A new Office file with a password is an OLE file too, and is named
as locked.
"""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from workbench.ingest.encoding import normalise
from workbench.ingest.errors import Problem, ReadError, skip
from workbench.ingest.readers import ppt, sheets
from workbench.ingest.readers.base import Member, Parsed, Reader, Source
from workbench.ingest.readers.outlook import read_message
from workbench.ingest.titles import said_title
from workbench.ingest.writing import TextWriter
from workbench.locators import locator

_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LOCKED = ("It is locked with a password", "Save it without the password, and index that")
_BROKEN = (
    "It is broken: it cannot be opened as an Office file",
    "Get it again, or open it in its program and save it anew",
)
_FIELD_CODE = re.compile("\x13[^\x13\x14\x15]*(?:\x14([^\x13\x14\x15]*))?\x15")
_ANCHORS = re.compile("[\x01\x02\x03\x04\x05\x08\x0b\x0e\x1e\x1f\xa0]")
_PACKED = ("\x01Ole10Native", "Package", "CONTENTS")
_SHOWN = {"\x0b": "\n", "\x0e": "\n", "\x1e": "-", "\xa0": " "}


def _read(source: Source) -> Iterator[Parsed | Member | Problem]:
    import olefile

    with source.stream() as stream:
        try:
            ole = olefile.OleFileIO(stream)
        except (OSError, ValueError, IndexError, struct.error) as exc:
            raise ReadError(*_BROKEN) from exc
        with ole:
            try:
                yield from _parts(ole, source)
            except (OSError, struct.error, IndexError) as exc:
                raise ReadError(*_BROKEN) from exc


def _parts(ole: Any, source: Source) -> Iterator[Parsed | Member | Problem]:
    if ole.exists("EncryptedPackage"):
        raise ReadError(*_LOCKED)
    if ole.exists("__properties_version1.0"):
        yield from read_message(ole, source.limits)
    elif ole.exists("WordDocument"):
        yield _word(ole)
    elif ole.exists("Workbook") or ole.exists("Book"):
        yield from sheets.read_xls(source)
    elif ole.exists("PowerPoint Document"):
        parsed = ppt.read_slides(ole)
        title, metadata = _summary(ole)
        yield replace(parsed, title=title, metadata=metadata)
    elif not any(entry[-1] in _PACKED for entry in ole.listdir()):
        raise skip("It is an OLE file of a kind that is not read", "Save it as PDF or text")
    if not ole.exists("__properties_version1.0"):
        yield from _packed_files(ole)


def _packed_files(ole: Any) -> Iterator[Member]:
    """Files that were put into a document as they are."""
    for entry in ole.listdir():
        data = ole.openstream(entry).read() if entry[-1] in _PACKED else b""
        name = f"{entry[-2] if len(entry) > 1 else 'object'}.bin"
        if entry[-1] == "\x01Ole10Native":
            name, data = _native(data, name)
        if data:
            yield Member(name.strip("\x00\x01\x03_") or "object.bin", data)


def _native(data: bytes, name: str) -> tuple[str, bytes]:
    """Name and bytes of a packaged file ([MS-OLEDS] 2.3.6): size, flags, label, path, then the path again and the bytes."""
    try:
        label, _, rest = data[6:].partition(b"\x00")
        rest = rest.partition(b"\x00")[2]
        (size,) = struct.unpack_from("<I", rest, 4)
        (count,) = struct.unpack_from("<I", rest, 8 + size)
    except struct.error:
        return name, b""
    shown = label.decode("cp1252", "replace").replace("\\", "/").rpartition("/")[2]
    return shown or name, rest[12 + size : 12 + size + count]


READER = Reader(
    "ole", _read, frozenset({".doc", ".dot", ".xls", ".xlt", ".ppt", ".pps", ".msg"}),
    sniff=lambda head: head.startswith(_MAGIC), certain=True,
)  # fmt: skip


def _word(ole: Any) -> Parsed:
    """A Word 97 to 2003 document. Raises ReadError."""
    stream = ole.openstream("WordDocument").read()
    if len(stream) < 0x1AA or struct.unpack_from("<H", stream, 0)[0] != 0xA5EC:
        raise ReadError("It is a document of Word 95 or older, which is not read", "Save it as DOCX or PDF")
    flags = struct.unpack_from("<H", stream, 0x0A)[0]
    if flags & 0x0100:
        raise ReadError(*_LOCKED)
    table = "1Table" if flags & 0x0200 else "0Table"
    if not ole.exists(table):
        raise ReadError(*_BROKEN)
    counts = struct.unpack_from("<11i", stream, 0x4C)  # ccpText, ccpFtn, ccpHdd, ccpMcr, ccpAtn, ccpEdn, ccpTxbx, ...
    start, size = struct.unpack_from("<2I", stream, 0x1A2)  # fcClx, lcbClx
    text = _pieces(stream, ole.openstream(table).read()[start : start + size])
    writer = TextWriter()
    position = 0
    for name, count in zip(("", "footnote", "header", "", "comment", "endnote", "box"), counts, strict=False):
        part, position = text[position : position + max(count, 0)], position + max(count, 0)
        if name:
            writer.apart()
        _write_part(writer, part, name)
    written, outline, places = writer.finish()
    title, metadata = _summary(ole)
    return Parsed(written, "word", outline, title, metadata=metadata, places=places)


def _pieces(stream: bytes, clx: bytes) -> str:
    """The characters of all parts of a document, in order, from its piece table."""
    position = 0
    while position < len(clx) and clx[position] == 1:  # formatting that pieces refer to
        position += 3 + struct.unpack_from("<H", clx, position + 1)[0]
    if position >= len(clx) or clx[position] != 2:
        raise ReadError(*_BROKEN)
    (size,) = struct.unpack_from("<I", clx, position + 1)
    count = (size - 4) // 12
    base = position + 5
    ends = struct.unpack_from(f"<{count + 1}I", clx, base)
    found = []
    for index in range(count):
        (place,) = struct.unpack_from("<I", clx, base + 4 * (count + 1) + 8 * index + 2)
        length = ends[index + 1] - ends[index]
        if place & 0x40000000:
            begin = (place & 0x3FFFFFFF) // 2
            found.append(stream[begin : begin + length].decode("cp1252", "replace"))
        else:
            # Counts are of UTF-16 units: a character of two is put together only after the parts are cut.
            units = struct.unpack_from(f"<{min(length, (len(stream) - place) // 2)}H", stream, place)
            found.append("".join(map(chr, units)))
    return "".join(found)


def _write_part(writer: TextWriter, part: str, name: str) -> None:
    """Paragraphs end in `\\r`, cells of a table in `\\x07`, a row in an empty cell."""
    part = part.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    for _ in range(20):  # fields lie in one another: what is shown of the inner ones stays
        fewer = _FIELD_CODE.sub(lambda m: m[1] or "", part)
        if fewer == part:
            break
        part = fewer
    part = _ANCHORS.sub(lambda m: _SHOWN.get(m[0], ""), part).replace("\x0c", "\r")
    number = 0
    cells: list[str] = []
    rows: list[tuple[list[str], str]] = []
    held = ""
    for words, end in re.findall("([^\r\x07]*)([\r\x07]|$)", part):
        if end == "\x07":
            number += 1
            if words or held or not cells:
                cells.append(f"{held} {words}".strip())
            elif cells:
                rows.append((cells, locator(**{name or "paragraph": number})))
                cells = []
            held = ""
        elif cells:
            number += 1
            held = f"{held} {words}".strip()  # a paragraph inside a cell that ends later
        elif words or end:
            number += 1
            if rows and words.strip():
                writer.table(rows)
                rows = []
            writer.paragraph(words, locator(**{name or "paragraph": number}))
    if cells:
        rows.append((cells, locator(**{name or "paragraph": number})))
    writer.table(rows)


_PROPERTIES = {2: "title", 3: "subject", 4: "author", 5: "keywords"}


def _summary(ole: Any) -> tuple[str, dict[str, Any]]:
    """Title and metadata ([MS-OLEPS] 2.21); what cannot be read of them is not there.

    Read here and not by olefile, which follows any count that a damaged file states, for hours.
    """
    name = "\x05SummaryInformation"
    found: dict[str, str] = {}
    with contextlib.suppress(OSError, struct.error, LookupError):
        data = ole.openstream(name).read() if ole.exists(name) else b""
        (start,) = struct.unpack_from("<I", data, 44)
        (count,) = struct.unpack_from("<I", data, start + 4)
        places = dict(struct.unpack_from("<2I", data, start + 8 + 8 * n) for n in range(min(count, 64)))
        codepage = struct.unpack_from("<H", data, start + places[1] + 4)[0] if 1 in places else 1252
        encoding = {1200: "utf-16-le", 65001: "utf-8"}.get(codepage, f"cp{codepage}")
        for key, place in sorted(places.items()):
            if key in _PROPERTIES:
                kind, size = struct.unpack_from("<2I", data, start + place)
                raw = data[start + place + 8 :][: size * 2 if kind == 0x1F else size]
                words = raw.decode("utf-16-le" if kind == 0x1F else encoding, "replace") if kind in (0x1E, 0x1F) else ""
                plain = "".join(c if c.isprintable() else " " for c in normalise(words.partition("\x00")[0]))
                found[_PROPERTIES[key]] = " ".join(plain.replace("\ufffd", " ").split())
    return said_title(found.pop("title", "")), {key: words for key, words in found.items() if words}
