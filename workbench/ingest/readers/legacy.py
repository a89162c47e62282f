"""Old Office files and Outlook messages: whatever is an OLE compound file, by what is in it and not by its name.

Word 97 to 2003 is read from its piece table ([MS-DOC] 2.4.1), which gives the words in order without their looks; workbooks by
xlrd; messages by their properties. A new Office file with a password is an OLE file too, and is reported as locked.

A presentation (PowerPoint 97 to 2003, [MS-PPT]) is a stream of records to which each save appends: which of several versions of
a slide counts is said by a directory of the last save, so the stream is entered there (2.1.2) and not read from its start,
which would bring back what was deleted. The words of a title or body may be in the document's outline, with the slide pointing
at them. A place is the slide, as in PPTX: `slide=3`, `slide=3&part=notes`.
"""

from __future__ import annotations

import contextlib
import re
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.ingest.encoding import normalise, symbols
from workbench.ingest.errors import Problem, ReadError, skip
from workbench.ingest.outline import TextWriter, left_out, raised, useful_title
from workbench.ingest.readers import odf, sheets
from workbench.ingest.readers.base import LOCKED, Member, Parsed, Reader, Source, written
from workbench.ingest.readers.mail import read_outlook
from workbench.locators import locator

_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BROKEN = (
    "It is broken: it cannot be opened as an Office file",
    "Get it again, or open it in its program and save it again",
)
_FIELD_CODE = re.compile("\x13[^\x13\x14\x15]*(?:\x14([^\x13\x14\x15]*))?\x15")
_ANCHORS = re.compile("[\x01\x02\x03\x04\x05\x08\x0b\x0e\x1e\x1f\xa0]")
_SHOWN = {"\x0b": "\n", "\x0e": "\n", "\x1e": "-", "\xa0": " "}
_ROW = "\x1d"
_CHARACTER, _PARAGRAPH = 0, 1
_DELETED, _VANISH, _SYMBOL, _RAISED, _ROW_ENDS = 0x0800, 0x083C, 0x6A09, 0x2A48, 0x2417
_PACKED = ("\x01Ole10Native", "Package", "CONTENTS")
_OBJECTS = {
    "WordDocument": "A document of Word",
    "PowerPoint Document": "A presentation",
    "Equation Native": "A formula",
    "VisioDocument": "A drawing of Visio",
}
_PROPERTIES = {2: "title", 3: "subject", 4: "author", 5: "keywords"}
_DOCUMENT, _SLIDE, _SLIDE_ATOM, _NOTES, _EDIT, _DIRECTORY = 0x03E8, 0x03EE, 0x03EF, 0x03F0, 0x0FF5, 0x1772
_SHOW, _OBJECT_LIST, _OBJECT_ATOM, _OBJECT_AT, _OBJECT = 0x03F9, 0x0409, 0x0FC3, 0x0BC1, 0x1011
_LIST, _LISTED, _OUTLINE_TEXT, _KIND, _CHARS, _BYTES, _TEXTBOX = 0x0FF0, 0x03F3, 0x0F9E, 0x0F9F, 0x0FA0, 0x0FA8, 0xF00D
_SLIDES, _NOTE_PAGES, _NOTES_KIND = 0, 2, 2
_TITLE_KINDS = frozenset({0, 6})
_LOCKED_TOKEN = 0xF3D1C4DF
_DRAWN = -2
_PACKAGES = ("package_stream", "Package", "EmbeddedOdf")
_DEEPEST = 32
_MOST_READ = 4
"""Times the stream's length: a sound file is read about twice, one whose objects share their bytes without end."""


def _read(source: Source) -> Iterator[Parsed | Member | Problem]:
    import olefile

    if not source.head().startswith(_MAGIC):
        raise ReadError(
            "It is not a file of Office 97 to 2003, despite its name: perhaps WordPerfect, or an older Word",
            "Open it in the program that made it, and save it as PDF or text",
        )
    try:
        with source.stream() as stream, olefile.OleFileIO(stream) as ole:
            yield from _parts(ole, source)
    except (OSError, ValueError, IndexError, KeyError, struct.error) as exc:
        raise ReadError(*_BROKEN) from exc


READER = Reader(
    "ole",
    _read,
    frozenset({".doc", ".dot", ".xls", ".xlt", ".ppt", ".pps", ".msg"}),
    sniff=lambda head: head.startswith(_MAGIC),
    certain=True,
)


def _parts(ole: Any, source: Source) -> Iterator[Parsed | Member | Problem]:
    if ole.exists("EncryptedPackage"):
        raise ReadError(*LOCKED)
    if ole.exists("__properties_version1.0"):
        yield from read_outlook(ole, source.limits)
        return
    if ole.exists("WordDocument"):
        yield _word(ole)
    elif ole.exists("Workbook") or ole.exists("Book"):
        yield from sheets.read_xls(source)
    elif ole.exists("PowerPoint Document"):
        title, metadata = _summary(ole)
        made = _slides(ole)
        yield replace(made, title=title, metadata={**metadata, **made.metadata})
    elif not any(entry[-1] in _PACKED for entry in ole.listdir()):
        raise skip("It is an OLE file of a kind that is not read", "Save it as PDF or text")
    for entry in ole.listdir():  # files that were put into a document as they are
        if len(entry) > 1 and entry[-1] in ("Workbook", "Book"):
            yield Member(f"{entry[-2]}.xls", ole.openstream(entry).read(), read=sheets.read_xls)
        elif len(entry) > 1 and entry[-1] in _OBJECTS:
            reason = f"{_OBJECTS[entry[-1]]} that was put into it is not read"
            yield Problem(reason, "Save it as a file of its own")
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
    return useful_title(found.pop("title", "")), {key: words for key, words in found.items() if words}


def _word(ole: Any) -> Parsed:
    stream = ole.openstream("WordDocument").read()
    if len(stream) < 0x1AA or struct.unpack_from("<H", stream, 0)[0] != 0xA5EC:
        raise ReadError("It is a document of Word 95 or older, which is not read", "Save it as DOCX or PDF")
    flags = struct.unpack_from("<H", stream, 0x0A)[0]
    if flags & 0x0100:
        raise ReadError(*LOCKED)
    table = "1Table" if flags & 0x0200 else "0Table"
    counts = struct.unpack_from("<11i", stream, 0x4C)  # ccpText, ccpFtn, ccpHdd, ccpMcr, ccpAtn, ccpEdn, ccpTxbx, ...
    tables = ole.openstream(table).read()
    text, hidden = _Text(stream, tables).shown()
    writer = TextWriter()
    position = 0
    counts = (*counts[:6], counts[6] + counts[7])  # the text boxes of headers are behind those of the text
    for name, count in zip(("", "footnote", "header", "", "comment", "endnote", "box"), counts, strict=True):
        part, position = text[position : position + max(count, 0)], position + max(count, 0)
        if name:
            writer.apart()
        _write_part(writer, "".join(part), name or "paragraph")
    title, metadata = _summary(ole)
    return written(writer, "word", title, metadata=metadata | left_out(hidden))


class _Text:
    """The characters of all parts of a document, from its piece table, and what is set for runs of them ([MS-DOC] 2.4, 2.6)."""

    def __init__(self, stream: bytes, tables: bytes) -> None:
        self._stream, self._tables = stream, tables
        self.signs: list[str] = []
        self._pieces: list[tuple[int, int, int]] = []  # where in the stream it begins, its first sign, bytes a sign
        clx = self._table(0x1A2)
        position = 0
        while position < len(clx) and clx[position] == 1:  # formatting that pieces refer to
            position += 3 + struct.unpack_from("<H", clx, position + 1)[0]
        if position >= len(clx) or clx[position] != 2:
            raise ReadError(*_BROKEN)
        count = (struct.unpack_from("<I", clx, position + 1)[0] - 4) // 12
        base = position + 5
        ends = struct.unpack_from(f"<{count + 1}I", clx, base)
        for index in range(count):
            (place,) = struct.unpack_from("<I", clx, base + 4 * (count + 1) + 8 * index + 2)
            length = ends[index + 1] - ends[index]
            if place & 0x40000000:
                begin, width = (place & 0x3FFFFFFF) // 2, 1
                self._pieces.append((begin, len(self.signs), width))
                self.signs += stream[begin : begin + length].decode("cp1252", "replace")
            else:
                # Counts are of UTF-16 units: a character of two is put together only after the parts are cut.
                self._pieces.append((place, len(self.signs), 2))
                units = struct.unpack_from(f"<{min(length, (len(stream) - place) // 2)}H", stream, place)
                self.signs += map(chr, units)
        self._pieces.sort()

    def shown(self) -> tuple[list[str], int]:
        """The signs as the program shows them, and how many runs are hidden. The mark that ends a row of a table is `_ROW`."""
        signs, hidden = self.signs, 0
        with contextlib.suppress(struct.error, IndexError):  # what is damaged here costs looks and no words
            fonts = self._fonts()
            for start, end, look in self._runs(0xFA, _CHARACTER):
                at = self._span(start, end)
                if look.get(_DELETED, b"\0") != b"\0" or look.get(_VANISH, b"\0") != b"\0":
                    hidden += _DELETED not in look and bool("".join(signs[at.start : at.stop]).strip())
                    signs[at.start : at.stop] = [""] * len(at)
                elif _SYMBOL in look and len(at) == 1:
                    font, code = struct.unpack("<2H", look[_SYMBOL])
                    signs[at.start] = symbols(chr(code), fonts[font] if font < len(fonts) else "")
                elif look.get(_RAISED, b"\0") != b"\0" and len(at):
                    before = "".join(signs[max(0, at.start - 8) : at.start])
                    signs[at.start] = raised(before, signs[at.start], look[_RAISED] == b"\2")
            for start, end, look in self._runs(0x102, _PARAGRAPH):
                at = self._span(start, end)
                if _ROW_ENDS in look and len(at) and signs[at.stop - 1] == "\x07":
                    signs[at.stop - 1] = _ROW
        return signs, hidden

    def _table(self, entry: int) -> bytes:
        start, size = struct.unpack_from("<2I", self._stream, entry)
        return self._tables[start : start + size]

    def _fonts(self) -> list[str]:
        """Names of the fonts: each entry has its length first, and its name after 39 bytes more."""
        data, at, found = self._table(0x112), 4, list[str]()
        while at < len(data):
            found.append(data[at + 40 : at + 1 + data[at]].decode("utf-16-le", "replace").partition("\0")[0])
            at += 1 + data[at]
        return found

    def _span(self, start: int, end: int) -> range:
        index = bisect_right(self._pieces, (start, len(self.signs), 9)) - 1
        if index < 0:
            return range(0)
        begin, first, width = self._pieces[index]
        low, high = first + (start - begin) // width, first + (end - begin) // width
        return range(min(low, len(self.signs)), min(high, len(self.signs)))

    def _runs(self, entry: int, kind: int) -> Iterator[tuple[int, int, dict[int, bytes]]]:
        """Stretches of the stream and what is set for them, from pages of 512 bytes."""
        table = self._table(entry)
        count = (len(table) - 4) // 8
        for page in struct.unpack_from(f"<{count}I", table, 4 * (count + 1)):
            data = self._stream[512 * (page & 0x3FFFFF) :][:512]
            runs = data[511]
            starts = struct.unpack_from(f"<{runs + 1}I", data, 0)
            for n in range(runs):
                at = 2 * data[4 * (runs + 1) + n * (1 if kind == _CHARACTER else 13)]
                if at and kind == _CHARACTER:
                    yield starts[n], starts[n + 1], _settings(data[at + 1 : at + 1 + data[at]])
                elif at:
                    begin, size = (at + 1, 2 * data[at] - 1) if data[at] else (at + 2, 2 * data[at + 1])
                    yield starts[n], starts[n + 1], _settings(data[begin + 2 : begin + size])


def _settings(data: bytes) -> dict[int, bytes]:
    """Codes and operands of a list of properties."""
    found: dict[int, bytes] = {}
    at = 0
    while at + 2 < len(data):
        (code,) = struct.unpack_from("<H", data, at)
        size = (1, 1, 2, 4, 2, 2, data[at + 2] + 1, 3)[code >> 13]
        if code == 0xD608:  # the table's own list has a length of two bytes
            size = struct.unpack_from("<H", data, at + 2)[0] + 1
        found[code] = data[at + 2 : at + 2 + size]
        at += 2 + size
    return found


def _write_part(writer: TextWriter, part: str, name: str) -> None:
    """Paragraphs end in `\\r`, cells of a table in `\\x07`, a row in `_ROW`."""
    part = part.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    for _ in range(20):  # fields lie in one another: what is shown of the inner ones stays
        fewer = _FIELD_CODE.sub(lambda m: m[1] or "", part)
        if fewer == part:
            break
        part = fewer
    part = _ANCHORS.sub(lambda m: _SHOWN.get(m[0], ""), part).replace("\x0c", "\r")
    marked = _ROW in part  # else a row ends in an empty cell
    number = 0
    cells: list[str] = []
    rows: list[tuple[list[str], str]] = []
    held = ""  # paragraphs inside a cell that ends later
    for words, end in re.findall(f"([^\r\x07{_ROW}]*)([\r\x07{_ROW}]|$)", part):
        number += bool(words or end)
        at = locator(**{name: number})
        if end == _ROW or (end == "\x07" and not marked and cells and not (words or held)):
            rows.append((cells, at))
            cells, held = [], ""
        elif end == "\x07":
            cells.append(f"{held} {words}".strip())
            held = ""
        elif any(cells) or (marked and cells):
            held = f"{held} {words}".strip()
        elif words or end:
            cells = []  # an empty cell alone was the end of a row whose last cell was empty
            if rows and words.strip():
                writer.table(rows)
                rows = []
            writer.paragraph(words, at)
    if cells:
        rows.append(([*cells, held] if held else cells, locator(**{name: number})))
    writer.table(rows)


@dataclass(frozen=True, slots=True)
class _Record:
    """A record of a presentation: its kind, its instance, where its contents start and end, and whether they are records."""

    kind: int
    instance: int
    start: int
    end: int
    holds: bool


@dataclass(slots=True)
class _Listed:
    """An entry of a list of slides or notes: which object it is, its id, and the texts of its outline with their kinds."""

    reference: int
    identity: int
    texts: list[tuple[int, str]] = field(default_factory=list)


def _slides(ole: Any) -> Parsed:
    user = ole.openstream("Current User").read()
    token, edit = struct.unpack_from("<2I", user, 12)
    if token == _LOCKED_TOKEN or ole.exists("EncryptedSummary"):
        raise ReadError(*LOCKED)
    return _Presentation(ole.openstream("PowerPoint Document").read(), edit).parsed()


class _Presentation:
    """The records of one file. Raises KeyError, IndexError or struct.error where they are broken."""

    def __init__(self, data: bytes, edit: int) -> None:
        self._data = data
        self._left = _MOST_READ * len(data)
        self._objects: dict[int, int] = {}
        root, seen = 0, set[int]()
        while edit and edit not in seen:  # from the last save to the first: what a later one says counts
            seen.add(edit)
            record = self._record(edit, len(data), _EDIT)
            before, directory, document = struct.unpack_from("<3I", data, record.start + 8)
            root = root or document
            self._persisted(self._record(directory, len(data), _DIRECTORY))
            edit = before
        records = list(self._inside(self._object(root, _DOCUMENT)))
        lists = {r.instance: r for r in records if r.kind == _LIST}
        self._embedded: dict[int, int] = {}  # number of an object that is put on slides -> which record holds it
        for record in (r for held in records if held.kind == _OBJECT_LIST for r in self._inside(held) if r.holds):
            for atom in (r for r in self._inside(record) if r.kind == _OBJECT_ATOM and r.end - r.start >= 24):
                _, _, number, _, at, _ = struct.unpack_from("<6I", data, atom.start)
                self._embedded[number] = at
        self._slides = list(self._listed(lists.get(_SLIDES)))
        self._notes = {item.identity: item for item in self._listed(lists.get(_NOTE_PAGES))}

    def parsed(self) -> Parsed:
        writer = TextWriter()
        hidden: list[str] = []
        for number, listed in enumerate(self._slides, 1):
            at = locator(slide=number)
            slide = self._object(listed.reference)
            texts = list(self._texts(slide, listed.texts)) if slide.kind == _SLIDE else listed.texts
            title = next((words for kind, words in texts if kind in _TITLE_KINDS and words.strip()), "")
            show = next((r for r in self._inside(slide) if r.kind == _SHOW), None)
            secret = show is not None and show.end - show.start > 10 and bool(self._data[show.start + 10] & 4)
            hidden += [str(number)] * secret
            writer.slide(_lines(title) + " (hidden slide)" * secret, at)
            for _, words in texts:
                self._spend(len(words))
                if words is not title:
                    writer.paragraph(_lines(words), at)
            for words in self._notes_of(slide):
                self._spend(len(words))
                writer.paragraph(_lines(words), locator(slide=number, part="notes"))
        return written(writer, "slides", metadata=left_out(0, f"slides {', '.join(hidden)}" if hidden else ""))

    def _notes_of(self, slide: _Record) -> Iterator[str]:
        atom = next((r for r in self._inside(slide) if r.kind == _SLIDE_ATOM), None)
        identity = struct.unpack_from("<I", self._data, atom.start + 16)[0] if atom is not None else 0
        listed = self._notes.get(identity) if identity else None
        if listed is not None and listed.reference in self._objects:
            page = self._object(listed.reference)
            if page.kind == _NOTES:
                yield from (words for kind, words in self._texts(page, listed.texts) if kind == _NOTES_KIND)

    def _texts(self, page: _Record, outline: list[tuple[int, str]], depth: int = 0) -> Iterator[tuple[int, str]]:
        """Kind and words of each text box of a page, in the order in which they are drawn."""
        for record in self._inside(page):
            if record.kind == _TEXTBOX:
                yield from self._boxed(record, outline)
            elif record.kind == _OBJECT_AT:
                held = self._objects.get(self._embedded.get(self._number(record.start), -1), -1)
                if held >= 0:
                    yield _DRAWN, self._drawn(held)
            elif record.holds and depth < _DEEPEST:
                yield from self._texts(record, outline, depth + 1)

    def _boxed(self, box: _Record, outline: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        kind = -1
        for record in self._inside(box):
            if record.kind == _KIND:
                kind = self._number(record.start)
            elif record.kind == _OUTLINE_TEXT:
                at = self._number(record.start)
                if at < len(outline):
                    yield outline[at]
            elif record.kind in (_CHARS, _BYTES):
                yield kind, self._words(record)

    def _drawn(self, at: int) -> str:
        """The words of a chart or workbook on a slide: an OLE file of its own, mostly packed; "" where it is damaged."""
        import olefile

        with contextlib.suppress(zlib.error, OSError, LookupError, ValueError, RuntimeError, struct.error):
            record = self._record(at, len(self._data), _OBJECT)
            data = self._data[record.start : record.end]
            data = zlib.decompressobj().decompress(data[4:], _MOST_READ << 22) if record.instance else data
            self._spend(len(data) // 100)
            with olefile.OleFileIO(data) as ole:
                streams = {entry[-1]: entry for entry in ole.listdir()}
                book = streams.get("Workbook") or streams.get("Book")
                package = next((streams[name] for name in _PACKAGES if name in streams), None)
                if book is not None:
                    return sheets.drawn_words(ole.openstream(book).read())
                if package is not None:
                    return odf.chart_words(ole.openstream(package).read())
        return ""

    def _listed(self, held: _Record | None) -> Iterator[_Listed]:
        found: list[_Listed] = []
        kind = -1
        for record in self._inside(held) if held is not None else ():
            if record.kind == _LISTED:
                reference, _, _, identity = struct.unpack_from("<4I", self._data, record.start)
                found.append(_Listed(reference, identity))
            elif record.kind == _KIND:
                kind = self._number(record.start)
                if found:
                    found[-1].texts.append((kind, ""))  # a text of the outline may be empty, and counts all the same
            elif record.kind in (_CHARS, _BYTES) and found and found[-1].texts:
                found[-1].texts[-1] = (kind, self._words(record))
        yield from found

    def _persisted(self, directory: _Record) -> None:
        """Number of each object to its place, where no later save has set it ([MS-PPT] 2.3.4)."""
        at = directory.start
        while at + 4 <= directory.end:
            packed = self._number(at)
            first, count = packed & 0xFFFFF, packed >> 20
            self._spend(4 + 4 * count)
            for number, place in enumerate(struct.unpack_from(f"<{count}I", self._data, at + 4), first):
                self._objects.setdefault(number, place)
            at += 4 + 4 * count

    def _spend(self, size: int) -> None:
        """Count what was read. Raises KeyError where it is more than the file can hold."""
        self._left -= size
        if self._left < 0:
            raise KeyError(size)

    def _object(self, number: int, kind: int = -1) -> _Record:
        return self._record(self._objects[number], len(self._data), kind)

    def _record(self, at: int, end: int, wanted: int = -1) -> _Record:
        """The record at a place, of the wanted kind if there is one; KeyError for another."""
        self._spend(1)
        head, kind, size = struct.unpack_from("<2HI", self._data, at)
        if wanted not in (-1, kind):
            raise KeyError(at)
        return _Record(kind, head >> 4, at + 8, min(at + 8 + size, end), head & 15 == 15)

    def _inside(self, record: _Record) -> Iterator[_Record]:
        at = record.start
        while at + 8 <= record.end:
            inner = self._record(at, record.end)
            yield inner
            at = inner.end

    def _number(self, at: int) -> int:
        return int(struct.unpack_from("<I", self._data, at)[0])

    def _words(self, record: _Record) -> str:
        raw = self._data[record.start : record.end]
        return raw.decode("utf-16-le", "replace") if record.kind == _CHARS else raw.decode("latin-1")


def _lines(words: str) -> str:
    """A text as lines, without those that only hold the place of a field, such as the slide's number."""
    lines = words.replace("\r", "\n").replace("\x0b", "\n").split("\n")
    return "\n".join(line for line in lines if line.strip() != "*")
