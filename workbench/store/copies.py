"""What an open generation knows of copies: the other paths of documents that are indexed once.

A copy is as visible as its primary (that is a condition of being one), so that whoever may see the document may know its paths.
A generation without copies, or made before there were any, is asked nothing. The list of them is read once, when it is first
needed: every search asks which paths its results have, and one more statement would cost it a millisecond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from workbench.store.database import Database, fetch


@dataclass(frozen=True, slots=True)
class Copy:
    """A path under which a document is there once more.

    Attributes:
        number: The document's number.
        path, root: The copy's, relative to the indexed folder `root`.
        primary: The document's own path.
    """

    number: int
    path: str
    root: str
    primary: str


class StoredCopies:
    """Copies of one generation. Safe from several threads.

    Args:
        connection: Its database, read-only.
        counts: Its manifest's counts.
    """

    def __init__(self, connection: Database, counts: Mapping[str, int]) -> None:
        self._connection = connection
        self.known = "copies" in counts
        self.total = counts.get("copies", 0)

    @cached_property
    def all(self) -> tuple[Copy, ...]:
        """Every copy, by document and path."""
        if not self.total:
            return ()
        sql = (
            "SELECT c.document_number, c.path, c.root, d.path FROM copies c JOIN documents d ON d.number = c.document_number"
            " ORDER BY c.document_number, c.path, c.root"
        )
        return tuple(Copy(*row) for row in fetch(self._connection, sql))

    @cached_property
    def _paths(self) -> dict[int, tuple[str, ...]]:
        found: dict[int, dict[str, None]] = {}
        for copy in self.all:
            found.setdefault(copy.number, {copy.primary: None})[copy.path] = None
        return {number: tuple(paths) for number, paths in found.items()}

    def paths(self, numbers: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Document number -> every path of a document that has copies, its own first; documents without are left out."""
        return {int(n): self._paths[int(n)] for n in numbers if int(n) in self._paths}

    def named(self, name: str) -> list[int]:
        """Numbers of the documents that have a copy with that path, document id or absolute path, up."""
        if not self.total:
            return []
        sql = (
            "SELECT DISTINCT document_number FROM copies WHERE path = $1 OR document_id = $1"
            " OR (location = $1 AND $1 <> '') ORDER BY 1"
        )
        return [row[0] for row in fetch(self._connection, sql, [name])]

    def seen(self, documents: NDArray[np.bool_] | None) -> list[Copy]:
        """Copies of the visible documents (bool (d,), None: all are), by document and path."""
        return [copy for copy in self.all if documents is None or documents[copy.number]]

    def unshared(self, documents: NDArray[np.bool_] | None) -> list[Copy]:
        """As `seen`, those whose path no visible document has as its own; of two with one path the first."""
        named: dict[str, Copy] = {}
        for copy in self.seen(documents):
            owners = self._owners.get(copy.path, ())
            if not any(documents is None or documents[owner] for owner in owners):
                named.setdefault(copy.path, copy)
        return list(named.values())

    @cached_property
    def _owners(self) -> dict[str, list[int]]:
        """Paths of copies to the documents that have them as their own; hidden ones decide nothing, so all are known."""
        if not self.total:
            return {}
        sql = "SELECT path, number FROM documents WHERE path IN (SELECT path FROM copies) ORDER BY number"
        owners: dict[str, list[int]] = {}
        for path, number in fetch(self._connection, sql):
            owners.setdefault(path, []).append(number)
        return owners
