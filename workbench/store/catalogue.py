"""What a generation holds, to look through rather than to search: paths, folders, sizes, levels, failures, chunks.

Pages read it, each list for a scope or a principal: a file that failed has no document, and is as visible as one with the access
that rules and flags gave to it. Texts and titles are not read here but by number through the record store, which masks what a
policy masks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.records import FileStatus, Principal
from workbench.store.database import fetch, fetch_columns
from workbench.store.reader import Generation
from workbench.store.records import StoredRecords
from workbench.store.types import Scope


@dataclass(frozen=True, slots=True)
class Listed:
    """One document of a list: its number and path."""

    number: int
    path: str


@dataclass(frozen=True, slots=True)
class Refused:
    """One file that the last run over its folder did not index."""

    root: str
    path: str
    status: FileStatus
    reason: str
    remedy: str


class Catalogue:
    """Lists and counts of one generation. Safe from several threads.

    Args:
        generation: An open generation.
    """

    def __init__(self, generation: Generation) -> None:
        self._records = generation.records
        self._arrays = generation.records.arrays
        self._connection = generation.records.connection

    def paths(self, scope: Scope, most: int, part: str = "") -> list[str]:
        """Paths of visible documents in path order, each once; only those that hold `part`, any case."""
        sql = "SELECT number, path FROM documents WHERE contains(lower(path), lower(?)) ORDER BY path, number"
        seen = scope.visible_documents
        if seen is None:
            # A path may be there twice (from two folders), so twice as many rows give enough of them nearly always.
            sql += f" LIMIT {2 * int(most)}"
        rows = fetch(self._connection, sql, [part])
        return list(dict.fromkeys(path for number, path in rows if seen is None or seen[number]))[:most]

    def folder(self, path: str, root: str, scope: Scope) -> list[Listed]:
        """Visible documents in the same folder as a path of a root, in path order."""
        head = path[: path.rfind("/") + 1]
        sql = (
            "SELECT number, path FROM documents WHERE root = $1 AND starts_with(path, $2)"
            " AND NOT contains(path[$3:], '/') ORDER BY path, number"
        )
        seen = scope.visible_documents
        return [
            Listed(*row)
            for row in fetch(self._connection, sql, [root, head, len(head) + 1])
            if seen is None or seen[row[0]]
        ]

    def tokens(self, scope: Scope) -> NDArray[np.int64]:
        """Tokens of every allowed chunk (whole-document records left out), int64, in number order."""
        sql = "SELECT number, tokens FROM records WHERE granularity = 'chunk' ORDER BY number"
        columns = fetch_columns(self._connection, sql)
        tokens = np.asarray(columns["tokens"], np.int64)
        return tokens if scope.allowed is None else tokens[scope.allowed[np.asarray(columns["number"], np.int64)]]

    def levels(self, scope: Scope) -> dict[str, int]:
        """Sensitivity -> number of visible documents, by name."""
        codes = self._records.access_codes
        codes = codes if scope.visible_documents is None else codes[scope.visible_documents]
        counted: Counter[str] = Counter()
        for code, number in zip(*np.unique(codes, return_counts=True), strict=True):
            counted[self._records.access[code].sensitivity] += int(number)
        return dict(sorted(counted.items()))

    def refused(
        self, principal: Principal | None = None, most: int = 1_000
    ) -> tuple[dict[tuple[str, str], int], list[Refused]]:
        """Files that were not indexed and that a principal may know of: how many by (status, reason), and the first of them,
        failed ones first.
        """
        found = self._refused(principal, "ORDER BY status, root, path")
        counts = Counter((str(file.status), file.reason) for file in found)
        return dict(sorted(counts.items(), key=lambda c: (c[0][0], -c[1], c[0][1]))), found[:most]

    def refused_named(self, name: str, principal: Principal | None, most: int = 5) -> list[Refused]:
        """Those of them with this path (or absolute path), in order; none of a blank name."""
        sql = "AND $1 <> '' AND (path = $1 OR root || '/' || path = $1) ORDER BY root, path"
        return self._refused(principal, sql, [name])[:most]

    def _refused(self, principal: Principal | None, where: str, values: Sequence[Any] = ()) -> list[Refused]:
        rows = fetch(
            self._connection,
            f"SELECT access, root, path, status, reason, remedy FROM files WHERE status IN ('failed', 'skipped') {where}",
            values,
        )
        may_know = self._records.may_know
        return [Refused(r[1], r[2], FileStatus(r[3]), r[4], r[5]) for r in rows if may_know(r[0], r[2], principal)]

    def holding(self, scope: Scope, part: str, shown: StoredRecords) -> NDArray[np.int64]:
        """Numbers of allowed records whose text, section or path holds `part` (any case; blank: all), up, int64.

        `shown` is the record store of who looks: letters behind a mask are not found.
        """
        sql = (
            "WITH named AS (SELECT DISTINCT number FROM documents WHERE contains(lower(path), lower($1)))"
            " SELECT r.number, r.document_number IN (FROM named) AS by_path FROM records r WHERE by_path"
            " OR contains(lower(r.text), lower($1)) OR contains(lower(r.section), lower($1)) ORDER BY r.number"
        )
        if part:
            columns = fetch_columns(self._connection, sql, [part])
            numbers, by_path = np.asarray(columns["number"], np.int64), np.array(columns["by_path"], bool)
        else:
            numbers = np.arange(self._arrays.records_total, dtype=np.int64)
            by_path = np.ones(len(numbers), bool)
        allowed = slice(None) if scope.allowed is None else scope.allowed[numbers]
        numbers, held = numbers[allowed], by_path[allowed]
        if shown.masks:
            for at in np.array_split(np.flatnonzero(~held), 1 + len(held) // 256):
                chunks = [row.chunk for row in shown.rows(numbers[at].tolist())]
                held[at] = [part.lower() in c.text.lower() or part.lower() in c.section.lower() for c in chunks]
            numbers = numbers[held]
        return numbers
