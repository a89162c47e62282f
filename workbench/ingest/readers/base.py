"""What a reader is: a name, what it recognises, and one function from a source to what it holds.

To add a reader, write one small module with a `READER` and name the module in the registry (`readers/__init__.py`).
Everything heavy is imported inside the function, so that the registry costs nothing.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, BinaryIO

from workbench.ingest.encoding import declared_encoding, decode
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.outline import Outline
from workbench.ingest.unpacking import Unpacking
from workbench.ingest.walk import FoundFile, open_found, relative_path
from workbench.locators import Place

HEAD = 4096
"""How many bytes of a file are looked at to recognise it."""


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
        places: Where the text stands in a file without lines or pages of its own, in order.
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
    read: Callable[[Source], Iterator[Parsed | Member | Problem]] | None = None


class Source:
    """A file, or a member of one, as a reader sees it. The bytes are read once, when they are first asked for.

    Attributes:
        found: The file. For a member the path is `outer!/inner`, and `absolute` is that of the file on disk.
        depth: 0 for a file on disk, 1 for a member of it, and so on.
        limits: What is left to unpack of the file on disk, shared by all members inside it.
        read: How a member says it is read; None: a reader is looked for.
        told: What was found to be wrong with its parts while it was read, for its reader to tell.
    """

    __slots__ = ("_bytes", "_head", "depth", "found", "limits", "read", "told")

    def __init__(self, found: FoundFile, *, limits: Unpacking | None = None) -> None:
        self.found = found
        self.depth = 0
        self.read: ReadFunction | None = None
        self.limits = limits or Unpacking()
        self.told: list[Problem] = []
        self._bytes: bytes | None = None
        self._head: bytes | None = None

    def inner(self, member: Member) -> Source:
        """A member of this file as a source of its own."""
        moment = self.found.modified_ns if member.modified is None else int(member.modified.timestamp() * 1e9)
        path = f"{self.found.path}!/{relative_path(' '.join(member.name.split()))}"
        source = Source(replace(self.found, path=path, size=len(member.data), modified_ns=moment), limits=self.limits)
        source.depth = self.depth + 1
        source._bytes = member.data
        source.read = member.read
        return source

    @property
    def name(self) -> str:
        """File name."""
        return self.found.path.rpartition("!/")[2].rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """Suffix in lower case with its dot, or ""; a name such as `.bashrc` has none."""
        return os.path.splitext(self.name)[1].lower()

    def head(self) -> bytes:
        """The first bytes, at most `HEAD`. Raises ReadError."""
        if self._head is None:
            if self._bytes is not None:
                self._head = self._bytes[:HEAD]
            else:
                try:
                    with open_found(self.found) as stream:
                        self._head = stream.read(HEAD)
                except OSError as exc:
                    raise unreadable(exc) from exc
        return self._head

    def bytes(self) -> bytes:
        """The whole file. Raises ReadError."""
        if self._bytes is None:
            try:
                with open_found(self.found) as stream:
                    self._bytes = stream.read()
            except OSError as exc:
                raise unreadable(exc) from exc
        return self._bytes

    def stream(self) -> BinaryIO:
        """The file, open from its start. Raises ReadError."""
        if self._bytes is not None:
            return io.BytesIO(self._bytes)
        try:
            return open_found(self.found)
        except OSError as exc:
            raise unreadable(exc) from exc

    def sha256(self) -> str:
        """Hex digest of the whole file. Raises ReadError."""
        return hashlib.sha256(self.bytes()).hexdigest()

    def text(self) -> tuple[str, dict[str, Any]]:
        """The decoded, normalised text, and metadata that names its encoding unless it is UTF-8. Raises ReadError."""
        text, encoding = decode(self.bytes(), declared_encoding(self.head()))
        return text, ({} if encoding == "utf-8" else {"encoding": encoding})


def unreadable(exc: OSError) -> ReadError:
    """The error for a file that the system does not let us read."""
    words = (exc.strerror or type(exc).__name__).lower()
    return ReadError(f"The file cannot be read: {words}", "Check that it is still there and that you may read it")


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
