"""What an open generation knows of copies: the other paths of documents that are indexed once.

A copy is as visible as its primary (that is a condition of being one), so that whoever may see the document may know its paths.
A generation without copies, or made before there were any, is asked nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.store.duck import fetch

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class Copy:
    """A path under which a document is there once more, from an indexed folder `root`. `number` is the document's."""

    number: int
    path: str
    root: str


class StoredCopies:
    """Copies of one generation. Safe from several threads.

    Args:
        connection: Its database, read-only.
        counts: Its manifest's counts.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, counts: Mapping[str, int]) -> None:
        self._connection = connection
        self.known = "copies" in counts
        self.total = counts.get("copies", 0)

    def paths(self, numbers: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Document number -> every path of a document that has copies, its own first; documents without are left out."""
        if not self.total or not len(numbers):
            return {}
        sql = (
            "WITH asked AS (SELECT DISTINCT document_number AS number FROM copies WHERE document_number IN (SELECT unnest(?)))"
            " SELECT number, path, 0 AS place FROM documents JOIN asked USING (number) UNION ALL"
            " SELECT document_number, path, 1 FROM copies WHERE document_number IN (SELECT number FROM asked)"
            " ORDER BY number, place, path"
        )
        found: dict[int, dict[str, None]] = {}
        for number, path, _ in fetch(self._connection, sql, [[int(n) for n in numbers]]):
            found.setdefault(number, {})[path] = None
        return {number: tuple(paths) for number, paths in found.items()}

    def named(self, name: str) -> list[int]:
        """Numbers of the documents that have a copy with that path, document id or absolute path, up."""
        if not self.total:
            return []
        sql = (
            "SELECT DISTINCT document_number FROM copies WHERE path = $1 OR document_id = $1"
            " OR (location = $1 AND $1 <> '') ORDER BY 1"
        )
        return [row[0] for row in fetch(self._connection, sql, [name])]

    def primaries(self) -> list[tuple[str, int, str]]:
        """Path of each copy that is no document's own, the number of the document and its path."""
        if not self.total:
            return []
        sql = (
            "SELECT c.path, d.number, d.path FROM copies c JOIN documents d ON d.number = c.document_number"
            " WHERE c.path NOT IN (SELECT path FROM documents) ORDER BY c.path, d.number DESC"
        )
        return [(copy, number, path) for copy, number, path in fetch(self._connection, sql)]

    def all(self) -> list[Copy]:
        """Every copy, by path."""
        if not self.total:
            return []
        sql = "SELECT document_number, path, root FROM copies ORDER BY path, root, document_number"
        return [Copy(*row) for row in fetch(self._connection, sql)]
