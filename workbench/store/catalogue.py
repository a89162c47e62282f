"""What a generation holds, to look through rather than to search: paths, folders, sizes, levels, failures, chunks.

Pages read it, each list for a scope or a principal: a file that failed has no document, and is as visible as one with the access
that rules and flags gave to it. Texts and titles are not read here but by number through the record store, which masks what a
policy masks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.records import FileStatus, Principal
from workbench.store.access import filters
from workbench.store.database import fetch, fetch_columns
from workbench.store.reader import Generation
from workbench.store.records import StoredRecords
from workbench.store.types import Scope

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True)
class Row:
    """One document of the table of documents: `place` is the absolute path of the file that holds it."""

    number: int
    path: str
    title: str
    type: str
    collections: tuple[str, ...]
    chunks: int
    characters: int
    modified: datetime | None
    place: str


def rows_frame(rows: Sequence[Row]) -> polars.DataFrame:
    """One row a document: path, title, type, collections, chunks, characters, modified (UTC), place."""
    import polars as pl

    texts = dict.fromkeys(("path", "title", "type"), pl.String)
    schema: dict[str, Any] = {**texts, "collections": pl.List(pl.String), "chunks": pl.Int64, "characters": pl.Int64}
    schema |= {"modified": pl.Datetime("us", "UTC"), "place": pl.String}
    return pl.DataFrame([[getattr(row, name) for name in schema] for row in rows], schema=schema, orient="row")


SORTS = {
    "path": "d.path",
    "title": "lower(d.title)",
    "type": "d.type",
    "collection": "r.collections",
    "chunks": "r.chunks",
    "characters": "d.characters",
    "date": "d.modified",
}
"""What documents can be sorted by -> its SQL."""
FACETS = {
    "type": "d.type",
    "collection": "r.collections",
    "path": "if(contains(d.path[$1:], '/'), d.path[:$1 - 1] || split_part(d.path[$1:], '/', 1) || '/', '')",
    "year": "d.year",
    "language": "d.language",
    "sensitivity": "d.sensitivity",
}
"""Fields of the filter language that few values divide a corpus by -> their SQL; of paths the folders."""
_WITH_RECORDS = """documents d LEFT JOIN (SELECT document_number AS number, count(*) AS chunks,
    list_sort(list(DISTINCT collection)) AS collections FROM records GROUP BY document_number) r USING (number)"""


@dataclass(frozen=True, slots=True)
class Refused:
    """One file that the last run over its folder did not index."""

    root: str
    path: str
    status: FileStatus
    reason: str
    remedy: str


def _typed(text: str) -> str:
    """What somebody typed as a value of a statement: half of a character is a question mark."""
    return text.encode("utf-8", "replace").decode()


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
        rows = fetch(self._connection, sql, [_typed(part)])
        return list(dict.fromkeys(path for number, path in rows if seen is None or seen[number]))[:most]

    def documents(
        self, scope: Scope, shown: StoredRecords, part: str = "", sort: str = "path", *, down: bool = False
    ) -> NDArray[np.int64]:
        """Numbers of allowed documents whose path or title holds `part` (any case), sorted by one of `SORTS`, int64.

        `shown` is the record store of who looks: letters behind a mask are not found, and decide no order.
        """
        sql = (
            f"SELECT number, contains(lower(d.path), lower($1)) AS held FROM {_WITH_RECORDS} WHERE held"
            f" OR contains(lower(d.title), lower($1)) ORDER BY {SORTS[sort]} {'DESC' if down else 'ASC'} NULLS LAST, number"
        )
        columns = fetch_columns(self._connection, sql, [_typed(part)])
        numbers, held = np.asarray(columns["number"], np.int64), np.array(columns["held"], bool)
        if scope.allowed_documents is not None:
            allowed = scope.allowed_documents[numbers]
            numbers, held = numbers[allowed], held[allowed]
        if shown.masks and (sort == "title" or not held.all()):
            titles = [document.title for document in shown.headers(numbers.tolist())]
            kept = [at for at, title in enumerate(titles) if held[at] or part.lower() in title.lower()]
            if sort == "title":
                kept.sort(key=lambda at: titles[at].lower(), reverse=down)
            numbers = numbers[kept]
        return numbers

    def rows(self, numbers: Sequence[int], shown: StoredRecords) -> list[Row]:
        """Documents by number, in the order asked, as who looks may see them."""
        sql = (
            "SELECT d.number, r.collections, coalesce(r.chunks, 0), d.characters, f.root || '/' || f.path"
            f" FROM {_WITH_RECORDS} JOIN files f ON f.number = d.file_number WHERE d.number IN (SELECT unnest(?))"
        )
        known = {row[0]: row[1:] for row in fetch(self._connection, sql, [list(numbers)])}
        made = []
        for number, d in zip(numbers, shown.headers(numbers), strict=True):
            collections, chunks, characters, place = known[number]
            made.append(
                Row(number, d.path, d.title, d.type, tuple(collections or ()), chunks, characters, d.modified, place)
            )
        return made

    def counts(self, scope: Scope, field: str, below: str = "") -> dict[str, int]:
        """Value of one of `FACETS` -> number of allowed documents with it, the most frequent first; of paths the folders that lie
        in the folder `below` ("docs/"; "": the uppermost ones).
        """
        values = [len(below) + 1, below] if field == "path" else []
        where = "WHERE starts_with(d.path, $2)" if field == "path" else ""
        rows = fetch(self._connection, f"SELECT d.number, {FACETS[field]} FROM {_WITH_RECORDS} {where}", values)
        allowed, counted = scope.allowed_documents, Counter[str]()
        for number, value in rows:
            if allowed is None or allowed[number]:
                counted.update(value if isinstance(value, list) else [str(value)] if value not in (None, "") else [])
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

    def values(self, scope: Scope, field: str, shown: StoredRecords) -> dict[str, int]:
        """Value of a field of the filter language -> number of allowed documents with it, the most frequent first: of a facet, or
        of a key of front matter; none of other columns, nor of keys where a policy masks texts for who looks (`shown`).
        """
        if field in FACETS:
            return self.counts(scope, field)
        key = field.removeprefix("metadata.")
        if shown.masks or (field == key and field in filters.COLUMNS):
            return {}
        sql = "SELECT DISTINCT document_number, text FROM fields WHERE nfc_normalize(key) = nfc_normalize(?) AND text <> ''"
        allowed = scope.allowed_documents
        rows = fetch(self._connection, sql, [key])
        counted = Counter(text for number, text in rows if allowed is None or allowed[number])
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

    def folder(self, path: str, root: str, scope: Scope) -> list[str]:
        """Paths of the visible documents in the same folder as a path of a root, in order."""
        head = path[: path.rfind("/") + 1]
        sql = (
            "SELECT number, path FROM documents WHERE root = $1 AND starts_with(path, $2)"
            " AND NOT contains(path[$3:], '/') ORDER BY path, number"
        )
        rows, seen = fetch(self._connection, sql, [root, head, len(head) + 1]), scope.visible_documents
        return [path for number, path in rows if seen is None or seen[number]]

    def tokens(self, scope: Scope) -> NDArray[np.int64]:
        """Tokens of every allowed chunk (whole-document records left out), int64, in number order."""
        sql = "SELECT number, tokens FROM records WHERE granularity = 'chunk' ORDER BY number"
        columns = fetch_columns(self._connection, sql)
        tokens = np.asarray(columns["tokens"], np.int64)
        return tokens if scope.allowed is None else tokens[scope.allowed[np.asarray(columns["number"], np.int64)]]

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
            columns = fetch_columns(self._connection, sql, [_typed(part)])
            numbers, by_path = np.asarray(columns["number"], np.int64), np.array(columns["by_path"], bool)
            if self._records.texts is not None:
                more = np.setdiff1d(self._records.texts.containing(part), numbers)
                numbers, by_path = np.r_[numbers, more], np.r_[by_path, np.zeros(len(more), bool)]
                order = np.argsort(numbers)
                numbers, by_path = numbers[order], by_path[order]
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
