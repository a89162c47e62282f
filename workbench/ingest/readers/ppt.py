"""Old presentations (PPT, PowerPoint 97 to 2003): the text of each slide's shapes, then its notes ([MS-PPT]).

Such a file is a stream of records to which each save appends: which of several versions of a slide counts is said by a
directory of the last save, so the stream is entered there ([MS-PPT] 2.1.2) and not read from its start, which would bring
back what was deleted. The words of a title or body may stand in the document's outline, with the slide pointing at them.
A place is the slide, as in PPTX: `slide=3`, `slide=3&part=notes`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from workbench.ingest.errors import ReadError
from workbench.ingest.readers.base import Parsed
from workbench.ingest.writing import TextWriter
from workbench.locators import locator

_STREAM, _USER = "PowerPoint Document", "Current User"
_DOCUMENT, _SLIDE, _SLIDE_ATOM, _NOTES, _EDIT, _DIRECTORY = 0x03E8, 0x03EE, 0x03EF, 0x03F0, 0x0FF5, 0x1772
_LIST, _LISTED, _OUTLINE_TEXT, _KIND, _CHARS, _BYTES, _TEXTBOX = 0x0FF0, 0x03F3, 0x0F9E, 0x0F9F, 0x0FA0, 0x0FA8, 0xF00D
_SLIDES, _NOTE_PAGES = 0, 2
_TITLE_KINDS, _NOTES_KIND = frozenset({0, 6}), 2
_LOCKED_TOKEN = 0xF3D1C4DF
_FIELDS = "*"
"""Stands for a slide's number or a date."""
_DEEPEST = 32
_MOST_READ = 4
"""Times the stream's length: a sound file is read about twice, one whose objects share their bytes without end."""
_BROKEN = ("It is broken: it cannot be opened as a presentation", "Open it in its program, and save it as PPTX")


@dataclass(frozen=True, slots=True)
class _Record:
    """A record: its kind, its instance, where its contents start and end, and whether they are records."""

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


def read_slides(ole: Any) -> Parsed:
    """Read the presentation of an OLE file. Raises ReadError."""
    user = ole.openstream(_USER).read() if ole.exists(_USER) else b""
    if len(user) < 20:
        raise ReadError(*_BROKEN)
    token, edit = struct.unpack_from("<2I", user, 12)
    if token == _LOCKED_TOKEN or ole.exists("EncryptedSummary"):
        raise ReadError("It is locked with a password", "Save it without the password, and index that")
    try:
        return _Presentation(ole.openstream(_STREAM).read(), edit).parsed()
    except (struct.error, IndexError, KeyError) as exc:
        raise ReadError(*_BROKEN) from exc


class _Presentation:
    """The records of one file."""

    def __init__(self, data: bytes, edit: int) -> None:
        self._data = data
        self._left = _MOST_READ * len(data)
        self._objects: dict[int, int] = {}
        root, seen = 0, set[int]()
        while edit and edit not in seen:  # from the last save to the first: what a later one says counts
            seen.add(edit)
            record = self._record(edit, len(data))
            before, directory, document = struct.unpack_from("<3I", data, record.start + 8)
            if record.kind != _EDIT:
                raise KeyError(edit)
            root = root or document
            self._persisted(self._record(directory, len(data)))
            edit = before
        document = self._record(self._objects[root], len(data))
        if document.kind != _DOCUMENT:
            raise KeyError(root)
        lists = {r.instance: r for r in self._inside(document) if r.kind == _LIST}
        self._slides = list(self._listed(lists.get(_SLIDES)))
        self._notes = {item.identity: item for item in self._listed(lists.get(_NOTE_PAGES))}

    def parsed(self) -> Parsed:
        """All slides in their order."""
        writer = TextWriter()
        for number, listed in enumerate(self._slides, 1):
            at = locator(slide=number)
            slide = self._record(self._objects[listed.reference], len(self._data))
            texts = list(self._texts(slide, listed.texts)) if slide.kind == _SLIDE else listed.texts
            title = next((words for kind, words in texts if kind in _TITLE_KINDS and words.strip()), "")
            writer.apart()
            if title:
                writer.heading(_lines(title), 1, at)
            else:
                writer.unheaded()
            for _, words in texts:
                self._spend(len(words))
                if words is not title:
                    writer.paragraph(_lines(words), at)
            for words in self._notes_of(slide):
                self._spend(len(words))
                writer.paragraph(_lines(words), locator(slide=number, part="notes"))
        text, outline, places = writer.finish()
        return Parsed(text, "slides", outline, places=places)

    def _notes_of(self, slide: _Record) -> Iterator[str]:
        atom = next((r for r in self._inside(slide) if r.kind == _SLIDE_ATOM), None)
        identity = struct.unpack_from("<I", self._data, atom.start + 16)[0] if atom is not None else 0
        listed = self._notes.get(identity) if identity else None
        place = self._objects.get(listed.reference) if listed is not None else None
        if place is None or listed is None:
            return
        page = self._record(place, len(self._data))
        if page.kind == _NOTES:
            yield from (words for kind, words in self._texts(page, listed.texts) if kind == _NOTES_KIND)

    def _texts(self, page: _Record, outline: list[tuple[int, str]], depth: int = 0) -> Iterator[tuple[int, str]]:
        """Kind and words of each text box of a page, in the order in which they are drawn."""
        for record in self._inside(page):
            if record.kind == _TEXTBOX:
                yield from self._boxed(record, outline)
            elif record.holds and depth < _DEEPEST:
                yield from self._texts(record, outline, depth + 1)

    def _boxed(self, box: _Record, outline: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        kind = -1
        for record in self._inside(box):
            if record.kind == _KIND:
                kind = self._number(record)
            elif record.kind == _OUTLINE_TEXT:
                at = self._number(record)
                if at < len(outline):
                    yield outline[at]
            elif record.kind in (_CHARS, _BYTES):
                yield kind, self._words(record)

    def _listed(self, held: _Record | None) -> Iterator[_Listed]:
        found: _Listed | None = None
        kind = -1
        for record in self._inside(held) if held is not None else ():
            if record.kind == _LISTED:
                if found is not None:
                    yield found
                reference, _, _, identity = struct.unpack_from("<4I", self._data, record.start)
                found = _Listed(reference, identity)
            elif record.kind == _KIND:
                kind = self._number(record)
                if found is not None:
                    found.texts.append((kind, ""))  # a text of the outline may be empty, and counts all the same
            elif record.kind in (_CHARS, _BYTES) and found is not None and found.texts:
                found.texts[-1] = (kind, self._words(record))
        if found is not None:
            yield found

    def _persisted(self, directory: _Record) -> None:
        """Number of each object to its place, where no later save has said it ([MS-PPT] 2.3.4)."""
        if directory.kind != _DIRECTORY:
            raise KeyError(directory.kind)
        at = directory.start
        while at + 4 <= directory.end:
            packed = self._number(_Record(0, 0, at, at + 4, False))
            first, count = packed & 0xFFFFF, packed >> 20
            self._spend(4 + 4 * count)
            places = struct.unpack_from(f"<{count}I", self._data, at + 4)
            for number, place in enumerate(places, first):
                self._objects.setdefault(number, place)
            at += 4 + 4 * count

    def _spend(self, size: int) -> None:
        """Count what was read. Raises KeyError where it is more than the file can hold."""
        self._left -= size
        if self._left < 0:
            raise KeyError(size)

    def _record(self, at: int, end: int) -> _Record:
        self._spend(1)
        head, kind, size = struct.unpack_from("<2HI", self._data, at)
        return _Record(kind, head >> 4, at + 8, min(at + 8 + size, end), head & 15 == 15)

    def _inside(self, record: _Record) -> Iterator[_Record]:
        at = record.start
        while at + 8 <= record.end:
            inner = self._record(at, record.end)
            yield inner
            at = inner.end

    def _number(self, record: _Record) -> int:
        return int(struct.unpack_from("<I", self._data, record.start)[0])

    def _words(self, record: _Record) -> str:
        raw = self._data[record.start : record.end]
        return raw.decode("utf-16-le", "replace") if record.kind == _CHARS else raw.decode("latin-1")


def _lines(words: str) -> str:
    """A text as lines, without those that only stand for a field."""
    lines = words.replace("\r", "\n").replace("\x0b", "\n").split("\n")
    return "\n".join(line for line in lines if line.strip() != _FIELDS)
