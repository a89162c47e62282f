"""What fusion takes: every candidate of one search, with each source's rank and score, as columns.

A row is one record (a chunk, or a whole-document record). Rows are in the tie-break order of the whole workbench:
normalised path up (code points), then start line up, then chunk id up; so "ties by row number" is the total order, and no
string is compared while fusing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.errors import UsageError
from workbench.records import Kind

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """What one source says of each of the n candidates.

    Attributes:
        source: `grep`, `keyword`, `vector`, `vector:NAME`, each perhaps with `@COLLECTION`.
        kind: Lexical or semantic.
        rank: int64 (n,), from 1 in the source's own order before the threshold; 0 where it did not retrieve the row.
        score: float64 (n,), raw score, higher is better; NaN where rank is 0.
        computed: float64 (n,), the raw score of every row, retrieved or not, where the source can compute it; NaN where
            it cannot (a store that cannot score given rows, grep).
        cut: bool (n,), True where this source's threshold cuts the row, by its distance or its score: it counts as not
            retrieved and contributes 0, whatever `fusion.missing` says.
        adapted: float64 (n,), a vector source's similarity adapted to the corpus (`ranking.adapt`), of every row: it orders
            the list, and counts in place of `score` and `computed`; depth and threshold read these. None: they count.
    """

    source: str
    kind: Kind
    rank: Ints
    score: Floats
    computed: Floats
    cut: Bools
    adapted: Floats | None = None

    def take(self, rows: Ints | slice) -> Column:
        """The column of some rows."""
        adapted = None if self.adapted is None else self.adapted[rows]
        return Column(
            self.source, self.kind, self.rank[rows], self.score[rows], self.computed[rows], self.cut[rows], adapted
        )

    @property
    def counting(self) -> Floats:
        """float64 (n,): the score of each retrieved row that orders the list and counts."""
        return self.score if self.adapted is None else self.adapted

    @property
    def listed(self) -> Ints:
        """int64 (m,): the rows of this source's list, best first."""
        rows = np.flatnonzero(self.retrieved)
        return rows[np.argsort(self.rank[rows] if self.adapted is None else -self.adapted[rows], kind="stable")]

    @property
    def places(self) -> Ints:
        """int64 (n,): each row's rank in this source's list, from 1; 0 for rows that are not in it."""
        if self.adapted is None:
            return np.where(self.retrieved, self.rank, 0)
        places = np.zeros(len(self.rank), np.int64)
        places[self.listed] = np.arange(1, len(self.listed) + 1)
        return places

    @property
    def retrieved(self) -> Bools:
        """bool (n,): the rows that count as this source's list: ranked, and not cut by the threshold."""
        return (self.rank > 0) & ~self.cut


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Every candidate of one search: n rows, one column a source (columns sorted by source name).

    `vectors` gives some rows' vectors, float64 (m, d) of length 1, which feedback compares; None where it is not asked for.
    """

    chunk_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    paths: tuple[str, ...]
    start_lines: Ints
    whole: Bools
    columns: tuple[Column, ...]
    vectors: Callable[[Ints], Floats] | None = None

    def __len__(self) -> int:
        return len(self.chunk_ids)

    def column(self, source: str) -> Column:
        """The column of a source. Raises KeyError."""
        for column in self.columns:
            if column.source == source:
                return column
        raise KeyError(source)

    @classmethod
    def from_rankings(cls, rankings: Mapping[str, Sequence[tuple[str, float]]]) -> Candidates:
        """Candidates from plain rankings, for notebooks and tests: source -> (id, score) pairs, best first.

        An id stands for chunk, document and path at once. A source whose name starts with `vector` is semantic.
        Nothing is computed for rows that a source did not retrieve.

        Raises UsageError: A source ranks an id twice.
        """
        ids = sorted({i for ranking in rankings.values() for i, _ in ranking})
        row = {i: n for n, i in enumerate(ids)}
        columns = []
        for source in sorted(rankings):
            rank = np.zeros(len(ids), np.int64)
            score = np.full(len(ids), np.nan)
            for position, (i, value) in enumerate(rankings[source], 1):
                if rank[row[i]]:
                    raise UsageError(f"{source} ranks {i!r} twice", "Give each id once in a ranking, at its best rank")
                rank[row[i]], score[row[i]] = position, value
            kind = Kind.SEMANTIC if source.startswith("vector") else Kind.LEXICAL
            columns.append(Column(source, kind, rank, score, score.copy(), np.zeros(len(ids), bool)))
        return cls(
            tuple(ids), tuple(ids), tuple(ids), np.ones(len(ids), np.int64), np.zeros(len(ids), bool), tuple(columns)
        )
