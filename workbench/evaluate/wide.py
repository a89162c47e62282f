"""All judged queries' candidates side by side in one set of arrays, so that a moved slider is one pass over all of them.

Query by query, what a plan costs is mostly the calls: 300 queries of 150 candidates are 300 times some forty small numpy calls.
Laid end to end they are forty calls in all. Scores and ties are those of `ranking.fuse`, to the bit: the methods themselves
are elementwise, a list's least and greatest score need no sum, and what would need one (zscore, dbsf) or looks at a list
as a whole (rank, documents as the unit, a reranking model) is left to the way query by query.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.evaluate.pool import Pooled
from workbench.plan.fields import FUSED, OFF
from workbench.plan.fusion import FusionPlan
from workbench.plan.plan import Plan
from workbench.ranking.cutting import beyond, document_codes
from workbench.ranking.evidence import RANK_METHODS, Evidence
from workbench.ranking.methods import Parameters, contributions
from workbench.ranking.summation import exact_sum
from workbench.records import Kind
from workbench.retrieve.retrieved import Retrieved

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ROWWISE = frozenset({"none", "minmax", "tmm", "top", "clip"})
"""Normalisations that need no more of a list than its least and its greatest score."""


def can(plan: Plan) -> bool:
    """Whether a plan's fusion is one that `Wide` does."""
    if plan["rerank.model"] != OFF or plan["fusion.unit"] != "chunk" or plan["grep.show"] == "passage":
        return False
    return plan["fusion.method"] in RANK_METHODS or all(
        plan[f"fusion.normalise.{source}"] in ROWWISE for source in plan.sources
    )


@dataclass(slots=True, eq=False)
class _Side:
    """One source over all rows: rank from 1 (0: not retrieved), score (NaN there), and every row's score once asked for."""

    source: str
    kind: Kind
    rank: Ints
    score: Floats
    every: Floats | None = None


class Wide:
    """Queries that a plan's sources all answered, laid end to end.

    Args:
        queries: Every judged query's candidates; None where it could not be run.
        plan: Its sources, and when grep joins them, decide which queries can be among these.

    Attributes:
        members: int64, positions of these queries, rising; the others must be ranked one by one.
        rows: Candidates in all.
    """

    def __init__(self, queries: Sequence[Pooled | None], plan: Plan) -> None:
        taken = [
            (n, q) for n, q in enumerate(queries)
            if q is not None and q.single is not None and not q.shared and len(q.targets)
            and q.retrieved.sources_for(plan) == plan.sources
        ]  # fmt: skip
        self.members = np.array([n for n, _ in taken], np.int64)
        self._pooled = [q for _, q in taken]
        sizes = [len(q.retrieved.columns.numbers) for q in self._pooled]
        self.rows = sum(sizes)
        self._query = np.repeat(np.arange(len(taken)), sizes)
        documents = [document_codes(q.single or ()) for q in self._pooled]
        self._documents, self._many = _joined(documents)
        self._texts = None
        if any(q.twice for q in self._pooled):
            self._texts, _ = _joined(
                [np.unique(q.retrieved.columns.text_keys, return_inverse=True)[1] for q in self._pooled]
            )
        starts = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0, np.int64)
        self._targets = np.concatenate([q.targets + s for q, s in zip(self._pooled, starts, strict=True)] or [_NONE])
        self._own = np.repeat([int(q.own) for q in self._pooled], [len(q.targets) for q in self._pooled])
        self._ends = np.cumsum([len(q.targets) for q in self._pooled])[:-1]
        self._sides = tuple(self._side(n, source) for n, source in enumerate(plan.sources))
        self._lock = threading.Lock()

    def _side(self, n: int, source: str) -> _Side:
        columns = [q.retrieved.raw((source,), computed=False).columns[0] for q in self._pooled]
        rank = np.concatenate([c.rank for c in columns] or [_NONE])
        score = np.concatenate([c.score for c in columns] or [np.zeros(0)])
        return _Side(source, columns[0].kind if columns else Kind.LEXICAL, rank, score)

    def compute(self) -> None:
        """Work out the scores that methods other than rrf read, now rather than at the first move to one of them."""
        for side in self._sides:
            self._every(side)

    def _every(self, side: _Side) -> Floats:
        with self._lock:
            if side.every is None:
                parts = [q.retrieved.computed(side.source) for q in self._pooled]
                side.every = np.where(side.rank > 0, side.score, np.concatenate(parts or [np.zeros(0)]))
            return side.every

    def ranks(self, plan: Plan, cutoff: int | None) -> list[Ints]:
        """Ranks of each member's judged documents under a plan that `can` says yes to.

        Returns:
            For each member int64 (t,) as `Ready.ranks` gives them: from 1, 0 where not returned or beyond the cutoff.
        """
        fusion = plan.fusion
        cuts = [self._cut(side, plan) for side in self._sides]
        hits = [(rank > 0) & ~cut for rank, cut in cuts]
        alive = np.flatnonzero(np.logical_or.reduce(hits))
        query = self._query[alive]
        evidence = tuple(
            self._evidence(side, rank[alive], cut[alive], hit[alive], alive, query, fusion)
            for side, (rank, cut), hit in zip(self._sides, cuts, hits, strict=True)
        )
        weights = tuple(fusion.weight(e.source) for e in evidence)
        numbers = Parameters(float(fusion.k), float(fusion.rank_base), float(fusion.alpha), weights)
        scores = exact_sum(contributions(evidence, fusion.method, numbers))
        threshold = plan.threshold(FUSED)
        kept = np.ones(len(alive), bool) if threshold == OFF else scores >= float(threshold)
        if fusion.single_source == "passthrough" and (alone := self._alone(evidence, query)).any():
            # The one list of a query that only one source answered: its own order, and no fused score to cut.
            scores = np.where(alone, -np.sum([e.rank for e in evidence], axis=0), scores)
            kept |= alone
        coverage = np.sum([e.rank > 0 for e in evidence], axis=0)
        order = np.lexsort((-coverage, -scores, query))  # stable: rows stand in the order that settles ties
        places = alive[order[kept[order]]]
        if self._texts is not None and plan["dedupe"]:
            places = places[_firsts(self._texts[places])]
        places = places[_firsts(self._documents[places])]
        own = self._query[places]
        begins = np.searchsorted(own, np.arange(len(self._pooled)))
        standing = np.zeros(self._many, np.int64)
        standing[self._documents[places]] = np.arange(1, len(places) + 1) - begins[own]
        found = standing[self._documents[self._targets]]
        if cutoff is not None:
            found[found > cutoff + self._own] = 0
        if not len(self._pooled):
            return []
        split = np.split(found, self._ends)
        return [q.closed_up(own, cutoff) for q, own in zip(self._pooled, split, strict=True)]

    def _cut(self, side: _Side, plan: Plan) -> tuple[Ints, Bools]:
        """A source's ranks within its depth, and which rows the threshold cuts."""
        rank = np.where(side.rank > plan.depth(side.source), 0, side.rank)
        threshold = plan.threshold(side.source)
        if threshold == OFF:
            return rank, np.zeros(len(rank), bool)
        score = self._every(side) if Retrieved.uses_computed(plan) else side.score
        return rank, beyond(score, side.kind, float(threshold), str(plan["vector.metric"]))

    def _evidence(
        self, side: _Side, rank: Ints, cut: Bools, hit: Bools, alive: Ints, query: Ints, fusion: FusionPlan
    ) -> Evidence:
        counted = np.where(hit, rank, 0)
        value, scored = np.zeros(len(alive)), hit
        if fusion.method not in RANK_METHODS and hit.any():
            computed = fusion.missing == "computed"
            score = (self._every(side) if computed else side.score)[alive]
            low, high = self._ends_of(score, hit, query)
            filled = ~hit & ~cut & ~np.isnan(low)[query]  # a source with an empty list says nothing
            applies = hit | (filled & ~np.isnan(score)) if computed else hit
            own = query[applies]
            value[applies] = _MAPS[fusion.normalisation(side.source)](score[applies], low[own], high[own], side.kind)
            scored = applies
            if fusion.missing == "floor":
                least, _ = self._ends_of(value, hit, query)
                value[filled] = least[query[filled]]
                scored = applies | filled
        return Evidence(side.source, side.kind, counted, np.where(hit, alive, -1), value, scored)

    def _ends_of(self, values: Floats, hit: Bools, query: Ints) -> tuple[Floats, Floats]:
        """Least and greatest value of each query's list, NaN where it is empty."""
        rows = np.flatnonzero(hit)
        owners, begins = np.unique(query[rows], return_index=True)
        low, high = np.full((2, len(self._pooled)), np.nan)
        low[owners] = np.minimum.reduceat(values[rows], begins)
        high[owners] = np.maximum.reduceat(values[rows], begins)
        return low, high

    def _alone(self, evidence: Sequence[Evidence], query: Ints) -> Bools:
        """Whether a row's query was answered by one source only."""
        lists = np.zeros(len(self._pooled), np.int64)
        for e in evidence:
            lists += np.bincount(query[e.rank > 0], minlength=len(lists)) > 0
        return np.asarray((lists == 1)[query])


def _minmax(s: Floats, low: Floats, high: Floats, kind: Kind) -> Floats:
    flat = high == low
    return np.where(flat, np.where(s >= high, 1.0, 0.0), (s - low) / np.where(flat, 1.0, high - low))


def _tmm(s: Floats, low: Floats, high: Floats, kind: Kind) -> Floats:
    least = 0.0 if kind is Kind.LEXICAL else -1.0
    flat = high <= least
    return np.where(flat, 0.0, (s - least) / np.where(flat, 1.0, high - least))


def _top(s: Floats, low: Floats, high: Floats, kind: Kind) -> Floats:
    flat = high <= 0.0
    return np.where(flat, 0.0, np.maximum(s, 0.0) / np.where(flat, 1.0, high))


_MAPS: Mapping[str, Callable[[Floats, Floats, Floats, Kind], Floats]] = {
    "none": lambda s, low, high, kind: s,
    "minmax": _minmax,
    "tmm": _tmm,
    "top": _top,
    "clip": lambda s, low, high, kind: np.maximum(s, 0.0),
}
_NONE = np.zeros(0, np.int64)


def _joined(codes: Sequence[Ints]) -> tuple[Ints, int]:
    """Codes of each query, numbered on from query to query, and how many there are."""
    made, total = [_NONE], 0
    for own in codes:
        made.append(own + total)
        total += int(own.max()) + 1 if len(own) else 0
    return np.concatenate(made), total


def _firsts(codes: Ints) -> Ints:
    """Positions at which a code stands for the first time, rising."""
    first = np.zeros(int(codes.max()) + 1 if len(codes) else 0, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # of repeated places numpy keeps the last one written
    return np.flatnonzero(first[codes] == np.arange(len(codes)))
