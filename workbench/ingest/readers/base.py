"""What a reader is: a name, what it recognises, and one function from a source to what it holds.

To add a reader, write one small module with a `READER` and name it in the registry (`readers/__init__.py`). Everything
heavy is imported inside the function, so that the registry costs nothing.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import IO, Any, BinaryIO

from workbench import settings
from workbench.errors import system_words
from workbench.ingest.encoding import declared_encoding, decode, without_colours
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.outline import Outline, TextWriter
from workbench.ingest.walk import FoundFile, open_found, relative_path
from workbench.locators import Place

HEAD = 4096
"""How many bytes of a file are looked at to recognise it."""
LOCKED = ("It is locked with a password", "Save it without the password, and index that")
RESAVE = "Open it in its program, and save it again"


@dataclass(frozen=True, slots=True)
class Record:
    """What only records of a JSONL or BEIR file have.

    Attributes:
        id: The record's own id, unique in its file.
        path: A path of its own, or "".
        modified: Its own time, UTC, or None.
        collections: Its own collections; empty: those of the rules.
        size, sha256: Bytes and digest of its canonical JSON.
    """

    id: str
    path: str = ""
    modified: datetime | None = None
    collections: tuple[str, ...] = ()
    size: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """One document as a reader gives it: text and what it says about itself, before any rules.

    Attributes:
        text: Normalised text.
        type: Kind of document: `markdown`, `text`, `html`, `pdf`, `code`, `record`, `word`, `sheet`, `slides`, `mail`, ...
        outline: Shape of the text.
        title: Title where the format has one; else the first heading or the file's name is taken.
        language: Programming or natural language, or "".
        url: Where the original lives, or "".
        metadata: Front matter or record: JSON values, visibility claims included.
        page_starts: Offset of each page's first character.
        record: For records only.
        places: Where the text is in a file without lines or pages of its own, in order.
    """

    text: str
    type: str
    outline: Outline = field(default_factory=Outline)
    title: str = ""
    language: str = ""
    url: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    page_starts: tuple[int, ...] = ()
    record: Record | None = None
    places: tuple[Place, ...] = ()


def written(writer: TextWriter, type: str, title: str = "", **more: Any) -> Parsed:
    """What a writer has written, as a document; `more` as `Parsed` has it."""
    text, outline, places = writer.finish()
    return Parsed(text, type, outline, title, places=places, **more)


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside a file: a member of an archive, an attachment of a message. It is read as a file of its own.

    Attributes:
        name: Its path inside, `/`; it is cited as `outer.zip!/name`.
        data: Its bytes.
        modified: Its own time, UTC, or None for that of the file around it.
        read: How it is read where its bytes are no file by themselves, such as a message inside an Outlook message; None:
            as its bytes and its name say.
    """

    name: str
    data: bytes
    modified: datetime | None = None
    read: ReadFunction | None = None


class Unpacking:
    """What is left to take out of one file on disk, shared by everything inside it, however deep.

    A bomb of a few kilobytes must cost neither the memory nor the disk of a run: members together may not be more, larger or
    deeper (`deepest`) than the settings allow. All methods raise ReadError beyond them.
    """

    _BLOCK = 1 << 20
    _RATIO, _RATIO_FROM = 200, 8 << 20  # a part of some size that shrank more is a bomb; text shrinks 3 to 30 times

    def __init__(self) -> None:
        self.left_bytes = int(settings.get("max_unpacked_mb")) << 20
        self.left_members = int(settings.get("max_members"))
        self.deepest = int(settings.get("max_nesting"))

    def count(self) -> None:
        self.left_members -= 1
        if self.left_members < 0:
            self._refuse("holds more members than the {:,}", "max_members")

    def take(self, number: int) -> None:
        self.left_bytes -= number
        if self.left_bytes < 0:
            self._refuse("unpacks to more than the {:,} MB", "max_unpacked_mb")

    def _refuse(self, what: str, name: str) -> None:
        reason = f"It {what.format(settings.get(name))} of the setting {name}"
        raise ReadError(reason, f"Raise {name}, or unpack it and index what is in it")

    def drain(self, stream: IO[bytes], packed: int = 0) -> bytes:
        """Everything that a decompressing stream gives; `packed` is how many bytes it is made from, 0 if not known."""
        parts: list[bytes] = []
        size = 0
        while block := stream.read(self._BLOCK):
            size += len(block)
            self.take(len(block))
            if packed and size > self._RATIO_FROM and size > packed * self._RATIO:
                reason = f"It is packed {self._RATIO} times or more, as bombs are"
                raise ReadError(reason, "Unpack it, and index what is in it")
            parts.append(block)
        return b"".join(parts)

    def part(self, package: zipfile.ZipFile, which: str | zipfile.ZipInfo) -> bytes:
        """One part of a zip package. Raises KeyError (there is none of that name), zipfile.BadZipFile."""
        info = package.getinfo(which) if isinstance(which, str) else which
        if info.flag_bits & 1:
            raise ReadError(*LOCKED)
        with package.open(info) as stream:
            return self.drain(stream, info.compress_size)


@dataclass(slots=True)
class Source:
    """A file, or a member of one, as a reader sees it. The bytes are read once, when they are first needed.

    All methods raise ReadError for a file that the system does not let us read.

    Attributes:
        found: The file. For a member the path is `outer!/inner`, and `absolute` is that of the file on disk.
        ocr: Languages in which words of pictures are recognised, as tesseract names them; "": they are not.
        alive: Called by a reader that is busy for long, so that nobody takes it for one that loops.
        limits: What is left to unpack of the file on disk, shared by all members inside it.
        depth: 0 for a file on disk, 1 for a member of it, and so on.
        read: How a member says it is read; None: a reader is looked for.
        problems: What was found to be wrong with its parts while it was read, for its reader to report.
        held: Its bytes, once they are needed.
    """

    found: FoundFile
    ocr: str = ""
    alive: Callable[[], None] = lambda: None
    limits: Unpacking = field(default_factory=Unpacking)
    depth: int = 0
    read: ReadFunction | None = None
    problems: list[Problem] = field(default_factory=list)
    held: bytes | None = None
    _head: bytes | None = field(default=None, init=False)

    def inner(self, member: Member) -> Source:
        """A member of this file as a source of its own."""
        moment = self.found.modified_ns if member.modified is None else int(member.modified.timestamp() * 1e9)
        path = f"{self.found.path}!/{relative_path(' '.join(member.name.split()))}"
        found = replace(self.found, path=path, size=len(member.data), modified_ns=moment)
        return replace(self, found=found, depth=self.depth + 1, read=member.read, problems=[], held=member.data)

    @property
    def name(self) -> str:
        return self.found.path.rpartition("!/")[2].rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """In lower case with its dot, or ""; a name such as `.bashrc` has none."""
        return os.path.splitext(self.name)[1].lower()

    def head(self) -> bytes:
        """The first bytes, at most `HEAD`."""
        if self._head is None:
            self._head = self.held[:HEAD] if self.held is not None else _read(self.found, HEAD)
        return self._head

    def data(self) -> bytes:
        if self.held is None:
            self.held = _read(self.found)
        return self.held

    def stream(self) -> BinaryIO:
        try:
            return io.BytesIO(self.held) if self.held is not None else open_found(self.found)
        except OSError as exc:
            raise unreadable(exc) from exc

    def sha256(self) -> str:
        return hashlib.sha256(self.data()).hexdigest()

    def text(self) -> tuple[str, dict[str, Any]]:
        """The decoded, normalised text, and metadata that names its encoding unless it is UTF-8."""
        text, encoding = decode(self.data(), declared_encoding(self.head()))
        return without_colours(text), ({} if encoding == "utf-8" else {"encoding": encoding})


def _read(found: FoundFile, size: int = -1) -> bytes:
    try:
        with open_found(found) as stream:
            return stream.read(size)
    except OSError as exc:
        raise unreadable(exc) from exc


def unreadable(exc: OSError) -> ReadError:
    reason = f"The file cannot be read: {system_words(exc)}"
    return ReadError(reason, "Check that it is still there and that you may read it")


ReadFunction = Callable[[Source], Iterator[Parsed | Member | Problem]]


@dataclass(frozen=True, slots=True)
class Reader:
    """One family of files.

    Attributes:
        name: What reports call it.
        read: Yields what the file holds; raises ReadError.
        suffixes: In lower case, with the dot.
        names: Whole file names, in lower case.
        sniff: Recognises a file with an unknown suffix by its first bytes.
        certain: True if `sniff` overrules the suffix.
    """

    name: str
    read: ReadFunction
    suffixes: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    sniff: Callable[[bytes], bool] | None = None
    certain: bool = False
