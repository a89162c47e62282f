"""What a learned ranking sees of each candidate of a search: numbers that were worked out anyway, no text.

A row is one item of the fused list, in fused order. Not a number (NaN) means that there is nothing to say, which is
something else than 0; trees learn where to send it.

For each source of the search, sources sorted by name:

* `SOURCE.reciprocal_rank`: 1 / rank; 0 where the source did not retrieve the item, or cut it;
* `SOURCE.score`: raw score of the record that counted; NaN where the rank is 0;
* `SOURCE.relative`: that score over the best one of the source's list (BM25 has another scale for every query); NaN where
  there is none, or the best is not above 0;
* `SOURCE.computed`: raw score of the row shown, retrieved or not; NaN where the source cannot compute it;
* `SOURCE.contribution`: what the source added to the fused score.

For the item: `fused.score`, `fused.reciprocal_rank`, `coverage` (number of sources that retrieved it), `log_length` and
`log_first_match` (natural logarithm of 1 + characters), and `collection=NAME`, 1 or 0, for each name asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.assist.protocol import Floats, Ints
from workbench.errors import UsageError
from workbench.ranking.candidates import Candidates, Column
from workbench.ranking.fuse import Fused

COLLECTION = "collection="


def features(
    candidates: Candidates,
    fused: Fused,
    lengths: Sequence[int] | Ints,
    *,
    first_matches: Sequence[int] | Ints | None = None,
    collections: Sequence[str] | None = None,
    known: Sequence[str] = (),
) -> tuple[tuple[str, ...], Floats]:
    """Features of a fused list.

    Args:
        candidates: What was fused: columns after depth and threshold.
        fused: The fused list of m items.
        lengths: Characters of each item's text, (m,).
        first_matches: Where the query's first match starts in each item's text, from 0; -1 where nothing matches, (m,).
            None where nobody looked: then the feature is NaN.
        collections: Name of each item's collection, (m,); None where there is none to tell.
        known: Collections that have a feature: those of the corpus when training, `LearnedRanker.collections` when
            applying. An item of another one has 0 in all of them.

    Returns:
        Names, (f,), and the matrix, float64 (m, f).

    Raises:
        UsageError: An argument is not as long as the fused list.
    """
    m = len(fused)
    for what, values in (("lengths", lengths), ("first matches", first_matches), ("collections", collections)):
        if values is not None and len(values) != m:
            raise UsageError(f"There are {len(values)} {what} for {m} fused items", "Give one for each item, in order")
    table: dict[str, Floats] = {}
    for column in sorted(candidates.columns, key=lambda c: c.source):
        _of_source(table, column, fused)
    table["fused.score"] = np.asarray(fused.scores, np.float64)
    table["fused.reciprocal_rank"] = 1.0 / np.arange(1, m + 1)
    table["coverage"] = fused.coverage.astype(np.float64)
    table["log_length"] = np.log1p(np.asarray(lengths, np.float64))
    at = np.full(m, -1) if first_matches is None else np.asarray(first_matches, np.int64)
    table["log_first_match"] = np.where(at >= 0, np.log1p(np.maximum(at, 0)), np.nan)
    for name in sorted(set(known)):
        own = [c == name for c in collections] if collections is not None else [False] * m
        table[COLLECTION + name] = np.array(own, np.float64)
    return tuple(table), np.column_stack(list(table.values())) if m else np.zeros((0, len(table)))


def _of_source(table: dict[str, Floats], column: Column, fused: Fused) -> None:
    source, nothing = column.source, np.zeros(len(fused))
    rank = fused.ranks.get(source, nothing.astype(np.int64))
    record = fused.records.get(source, np.full(len(fused), -1, np.int64))
    score = np.where(rank > 0, column.score[record] if len(column.score) else nothing, np.nan)
    best = float(np.max(column.score[column.retrieved])) if column.retrieved.any() else 0.0
    table[f"{source}.reciprocal_rank"] = np.where(rank > 0, 1.0 / np.maximum(rank, 1), 0.0)
    table[f"{source}.score"] = score
    table[f"{source}.relative"] = score / best if best > 0 else np.full(len(fused), np.nan)
    table[f"{source}.computed"] = column.computed[fused.rows]
    table[f"{source}.contribution"] = np.asarray(fused.contributions.get(source, nothing), np.float64)
