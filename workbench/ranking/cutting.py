"""Depth and thresholds: what a slider cuts, on candidates that were retrieved once and deeper, and on the fused list.

Depth and a source's threshold return new candidates over the same rows, so that row numbers keep their meaning; nothing is
searched again. Cutting ranks at a depth gives what a search at that depth would have retrieved.

One cosine, four distances: the only place where a score becomes a distance and back.

Scores are higher-is-better everywhere; a distance appears only where a threshold is set or shown. All four metrics are
falling functions of the same cosine, so changing the metric never changes an order, only what a threshold means: with
`angular` 0.5 is cosine 0, with `cosine` it is 0.5, with `l2sq` it is 0.75, with `l2` it is 0.875.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import PlanError
from workbench.plan import fields as plan_fields
from workbench.ranking.candidates import Bools, Candidates, Column, Floats, Ints
from workbench.records import Kind


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its largest distance, and both directions (float64 in, float64 out)."""

    largest: float
    distance: Callable[[Floats], Floats]
    cosine: Callable[[Floats], Floats]


METRICS: Mapping[str, Metric] = {
    "angular": Metric(1.0, lambda c: np.arccos(c) / np.pi, lambda d: np.cos(d * np.pi)),
    "cosine": Metric(2.0, lambda c: 1.0 - c, lambda d: 1.0 - d),
    "l2": Metric(2.0, lambda c: np.sqrt(2.0 - 2.0 * c), lambda d: 1.0 - d * d / 2.0),
    "l2sq": Metric(4.0, lambda c: 2.0 - 2.0 * c, lambda d: 1.0 - d / 2.0),
}


def metric(name: str) -> Metric:
    """The metric of that name. Raises PlanError with the known names."""
    found = METRICS.get(name)
    if found is None:
        raise PlanError(f"There is no metric called {name!r}", "The metrics are " + ", ".join(METRICS))
    return found


def to_distance(cosine: ArrayLike, name: str) -> Floats:
    """Distances of cosines.

    Args:
        cosine: Any shape; clipped to [-1, 1] first, since float32 products stray a little outside; NaN stays NaN.
        name: `angular`, `cosine`, `l2` or `l2sq`.

    Returns:
        float64 of the same shape, from 0 to the metric's largest distance.

    Raises PlanError: An unknown metric.
    """
    return metric(name).distance(np.clip(np.asarray(cosine, np.float64), -1.0, 1.0))


def to_cosine(distance: ArrayLike, name: str) -> Floats:
    """Cosines of distances: the inverse of `to_distance`, clipped to [-1, 1]; distances are clipped to the metric's range.

    Raises PlanError: An unknown metric.
    """
    found = metric(name)
    clipped = np.clip(np.asarray(distance, np.float64), 0.0, found.largest)
    return np.clip(found.cosine(clipped), -1.0, 1.0)


def to_depth(candidates: Candidates, depths: Mapping[str, int], *, documents: bool = False) -> Candidates:
    """Cut each source's ranking at its depth.

    Args:
        candidates: As retrieved.
        depths: Source -> depth, at least 1. A source that it lacks keeps its ranking; a name without a column (a source
            that could not run) is no error.
        documents: Count depth in documents: the list ends before the first record of the document after the last one.

    Returns:
        Candidates over the same rows; a row ranked beyond the depth counts as not retrieved: rank 0, score NaN, its
        computed score kept.
    """
    codes = document_codes(candidates.document_ids) if documents else None
    return _with_columns(candidates, lambda c: cut_to_depth(c, depths[c.source], codes) if c.source in depths else c)


def cut_to_depth(
    column: Column, depth: int, documents: Ints | None = None, query: Ints | None = None, queries: int = 1
) -> Column:
    """One source's ranking cut at a depth, counted in documents where the rows' documents are given; the rows may be those of
    several queries (`query` int64 (n,), rising), each of which is cut.
    """
    last: int | Ints = depth if documents is None else _last_ranks(column.rank, depth, documents, query, queries)
    past = column.rank > last
    if not past.any():
        return column
    return replace(column, rank=np.where(past, 0, column.rank), score=np.where(past, np.nan, column.score))


def to_threshold(candidates: Candidates, source: str, threshold: float | str | None, metric: str) -> Candidates:
    """Mark as cut every row, retrieved or not, whose distance in a vector source is at or beyond the threshold, or whose score
    in a lexical one is below it.

    Distance and score come from the row's score, or from its computed score where it was not retrieved; a row that has neither
    is not cut. Ranks and scores stay, for those who show what was cut.

    Args:
        candidates: Cut to their depth already.
        source: A source; a name without a column (it could not run) changes nothing.
        threshold: Distance in the metric, strictly below is kept; or score, at or above is kept. None or `off` keeps all.
        metric: `angular`, `cosine`, `l2` or `l2sq`; read of a semantic source only.

    Raises PlanError: An unknown metric.
    """
    return _with_columns(candidates, lambda c: cut_to_threshold(c, threshold, metric) if c.source == source else c)


def cut_to_threshold(column: Column, threshold: float | str | None, metric: str) -> Column:
    """One source's rows beyond a threshold marked as cut."""
    if threshold is None or threshold == plan_fields.OFF:
        return replace(column, cut=np.zeros(len(column.cut), bool))
    score = np.where(column.rank > 0, column.score, column.computed)
    return replace(column, cut=beyond(score, column.kind, float(threshold), metric))


def beyond(scores: Floats, kind: Kind, threshold: float, metric: str) -> Bools:
    """Which raw scores a threshold cuts: cosines at its distance or farther, scores of a lexical source below it; never NaN."""
    return to_distance(scores, metric) >= threshold if kind is Kind.SEMANTIC else scores < threshold


def at_least(scores: Floats, threshold: float | str | None) -> int:
    """How many of a fused list's scores, which fall, are at or above a threshold; all where it is None or `off`."""
    if threshold is None or threshold == plan_fields.OFF:
        return len(scores)
    return int(np.searchsorted(-scores, -float(threshold), side="right"))


def below(score: float) -> float:
    """The greatest number of four figures that is not above a score: as a threshold it keeps the score."""
    if score == 0.0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(score))) - 3)
    found = float(f"{math.floor(score / step) * step:.12g}")
    return found if found <= score else float(f"{found - step:.12g}")


def as_holders(column: Column, holder: Ints) -> Column:
    """A source's list where some rows are shown as part of another: a row's best place becomes that of its holder.

    Args:
        column: Cut to its depth and threshold.
        holder: int64 (n,), the row that each row is shown as: its own, or another that is its own.

    Returns:
        The column; rows that are shown as another are not retrieved. Ranks stay as the source gave them.
    """
    rows = np.flatnonzero(column.rank > 0)
    # Of what counts before what was cut, the best rank first.
    rows = rows[np.lexsort((column.rank[rows], column.cut[rows]))]
    best = first_of_each(holder, rows)
    rank, score = np.zeros_like(column.rank), np.full(len(column.rank), np.nan)
    computed, cut = column.computed.copy(), column.cut.copy()
    at = holder[best]
    rank[at], score[at], cut[at] = column.rank[best], column.score[best], column.cut[best]
    computed[at] = column.score[best]
    made = replace(column, rank=rank, score=score, computed=computed, cut=cut)
    if column.adapted is None:
        return made
    adapted = column.adapted.copy()
    adapted[at] = column.adapted[best]
    return replace(made, adapted=adapted)


def document_codes(document_ids: tuple[str, ...]) -> Ints:
    """Number of each row's document, int64 (n,): documents are numbered from 0 in the order of their first rows."""
    seen: dict[str, int] = {}
    codes = [seen.setdefault(d, len(seen)) for d in document_ids]
    return np.asarray(codes, dtype=np.int64)


def renumbered(codes: Ints) -> Ints:
    """Codes numbered from 0 in the order in which each is there first."""
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[place]


def first_of_each(codes: Ints, order: Ints) -> Ints:
    """Of positions in a preferred order, the first of each code, in that order; int64."""
    _, first = np.unique(codes[order], return_index=True)
    return order[np.sort(first)]


def _last_ranks(rank: Ints, depth: int, documents: Ints, query: Ints | None, queries: int) -> Ints:
    """For each row the last rank that belongs to the first `depth` documents' part of its query's list."""
    owner = np.zeros(len(rank), np.int64) if query is None else query
    rows = np.flatnonzero(rank > 0)
    firsts = first_of_each(documents, rows[np.lexsort((rank[rows], owner[rows]))])
    beyond_it = firsts[counted(owner[firsts]) == depth + 1]
    last = np.full(queries, np.iinfo(np.int64).max)
    last[owner[beyond_it]] = rank[beyond_it] - 1
    return last[owner]


def counted(query: Ints) -> Ints:
    """Number of each entry within its query, from 1; entries of a query are side by side."""
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    return np.arange(1, len(query) + 1) - np.repeat(starts, np.diff(np.append(starts, len(query))))


def _with_columns(candidates: Candidates, change: Callable[[Column], Column]) -> Candidates:
    return replace(candidates, columns=tuple(change(c) for c in candidates.columns))
