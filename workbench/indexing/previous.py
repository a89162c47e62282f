"""What the corpus held before this run: its files, roots and collections, read once, with the generation pinned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.indexing.roots import Root
from workbench.records import EncoderIdentity, Granularity
from workbench.reports import FileStatus
from workbench.store import generations
from workbench.store.database import fetch, open_reading
from workbench.store.generations import DATABASE, Pin
from workbench.store.lexical.build import made_alike

if TYPE_CHECKING:
    import duckdb

FileKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as the generation before recorded it; see `FileReport` for the last four."""

    size: int
    modified_ns: int
    sha256: str
    recipe: str
    collections: tuple[str, ...]
    status: FileStatus
    reason: str
    remedy: str
    documents: int
    chunks: int
    copies: int = 0
    same_as: str = ""


@dataclass(frozen=True)
class Previous:
    """The state that a run starts from; empty where there is no corpus yet."""

    pin: Pin | None = None
    files: Mapping[FileKey, StoredFile] = field(default_factory=dict)
    roots: Mapping[str, Root] = field(default_factory=dict)
    granularities: Mapping[str, Granularity] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    words_alike: bool = True

    @cached_property
    def sound(self) -> bool:
        """Whether every part of the generation is as it was written; one that is not is built again, whatever changed."""
        return self.pin is None or self.pin.sound()

    @property
    def older(self) -> bool:
        """Whether an earlier version of the workbench wrote the generation."""
        return self.pin is not None and self.pin.manifest.format != generations.FORMAT

    @property
    def encoders(self) -> Mapping[str, EncoderIdentity]:
        """Key of each vector folder to the encoder that made it."""
        return self.pin.manifest.encoders if self.pin is not None else {}

    @property
    def database(self) -> Path | None:
        """The database of the generation, or None."""
        return self.pin.folder / DATABASE if self.pin is not None else None

    @property
    def copies(self) -> bool:
        """Whether any of its documents is indexed as another one; one made before there were copies has none."""
        return self.pin is not None and self.pin.manifest.counts.get("copies", 0) > 0

    def close(self) -> None:
        """Let the generation go."""
        if self.pin is not None:
            self.pin.close()


def load_previous(corpus: Path) -> Previous:
    """Pin the current generation and read what it says of files. Raises CorpusDamaged where its database is."""
    if not generations.exists(corpus):
        return Previous()
    pin = generations.pin(corpus, whole=False)
    try:
        pin.check(DATABASE)
        connection = open_reading(pin.folder / DATABASE)
        try:
            files = stored_files(connection, pin.manifest.counts.get("copies", 0) > 0)
            roots = fetch(connection, "SELECT root, whole, salt, options FROM roots")
            named = fetch(connection, "SELECT name, granularity, chunking FROM collections")
            alike = pin.manifest.format == generations.FORMAT and made_alike(connection)
        finally:
            connection.close()
    except BaseException:
        pin.close()
        raise
    return Previous(
        pin,
        files,
        {row[0]: Root(*row) for row in roots},
        {name: Granularity(granularity) for name, granularity, _ in named},
        frozenset(name for name, _, chunking in named if chunking == "whole"),
        alike,
    )


def stored_files(connection: duckdb.DuckDBPyConnection, copies: bool) -> dict[FileKey, StoredFile]:
    """Every file that a generation knows.

    Args:
        connection: Its database.
        copies: Whether it has any.
    """
    rows = fetch(
        connection,
        "SELECT number, root, path, size, modified_ns, sha256, recipe, collections, status, reason, remedy, documents,"
        " chunks FROM files",
    )
    same: dict[int, tuple[int, str]] = {}
    if copies:
        found = fetch(
            connection,
            "SELECT c.file_number, count(*), min_by(d.path, (c.path, d.path)) FROM copies c"
            " JOIN documents d ON d.number = c.document_number GROUP BY c.file_number",
        )
        same = {number: (count, path) for number, count, path in found}
    files = {}
    for number, root, path, size, modified, sha256, recipe, names, status, reason, remedy, documents, chunks in rows:
        files[root, path] = StoredFile(
            size, modified, sha256, recipe, tuple(names), FileStatus(status), reason, remedy, documents, chunks,
            *same.get(number, (0, "")),
        )  # fmt: skip
    return files
