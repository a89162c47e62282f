"""Ranks under reciprocal rank fusion without scoring every item.

Lists of two retrievers overlap little: of 2 x 1,000 candidates some 1,900 were found by one source alone. The score of such an
item is its source's share, which falls as its rank grows, whatever k and the weights are. So how many of them stand above a
judged row is found by halving, ten steps in the place of a thousand scores; only items that several sources retrieved are
scored one by one. Each score that is looked at is the one that `methods.rrf` gives, to the bit.

Where two or more items of one source have exactly the mark's score (a weight of 0 makes all of them equal), the column that
settles the tie is not in the order of ranks: such plans are left to be counted in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.ranking.candidates import Bools, Floats, Ints
from workbench.ranking.counting import ahead_of
from workbench.ranking.evidence import Evidence
from workbench.ranking.methods import Number, Parameters, contributions
from workbench.ranking.summation import exact_sum

_WORTH = 400  # so many items of one source alone, for each source, before halving is quicker than scoring them


@dataclass(frozen=True, slots=True, eq=False)
class Lone:
    """Items told apart by how many sources retrieved them.

    Attributes:
        evidence: One a source, on all items, in the order that settles ties.
        shared: int64, rising: items of several sources.
        columns: For each source the items that it alone retrieved, int64, by its rank.
    """

    evidence: tuple[Evidence, ...]
    shared: Ints
    columns: tuple[Ints, ...]

    def ranks(self, parameters: Parameters, targets: Ints) -> tuple[Ints, Bools]:
        """Ranks of targets under p plans of method rrf.

        Args:
            parameters: Of the plans, shape (p, 1).
            targets: int64 (t,), items.

        Returns:
            int64 (p, t), from 1, and bool (p,): the plans whose ranks are right; the others hold ties to be counted in full.
        """
        marks = _scores(self.evidence, targets, parameters)
        shared = _scores(self.evidence, self.shared, parameters)
        ranks = 1 + ahead_of(shared, marks, np.searchsorted(self.shared, targets))
        right = np.ones(len(marks), bool)
        for evidence, columns, weight in zip(self.evidence, self.columns, parameters.weights, strict=True):
            if not len(columns):
                continue
            own = _Falling(evidence, columns, replace(parameters, weights=(weight,)))
            first = own.better(marks)
            tied = own.equal(first, marks)
            right &= ~(tied & own.equal(first + 1, marks)).any(axis=1)
            before = columns[np.minimum(first, len(columns) - 1)] < targets
            ranks += first + (tied & before)
        return ranks, right


@dataclass(frozen=True, slots=True, eq=False)
class _Falling:
    """The scores of one source's own items, which fall from item to item under every plan."""

    evidence: Evidence
    columns: Ints
    parameters: Parameters

    def better(self, marks: Floats) -> Ints:
        """How many score more than each mark, int64 (p, t)."""
        low, high = np.zeros(marks.shape, np.int64), np.full(marks.shape, len(self.columns))
        for _ in range(len(self.columns).bit_length()):
            middle = (low + high) >> 1
            more = (self._at(middle) > marks) & (low < high)
            low, high = np.where(more, middle + 1, low), np.where(more, high, middle)
        return low

    def equal(self, places: Ints, marks: Floats) -> Bools:
        """Whether the item at each place scores the mark; False past the end."""
        same: Bools = (self._at(places) == marks) & (places < len(self.columns))
        return same

    def _at(self, places: Ints) -> Floats:
        rank = self.evidence.rank[self.columns[np.minimum(places, len(self.columns) - 1)]]
        return contributions([replace(self.evidence, rank=rank)], "rrf", self.parameters)[0]


def told_apart(evidence: Sequence[Evidence]) -> Lone | None:
    """The items told apart, or None where too few were retrieved by one source alone for it to be worth the while."""
    if not evidence:
        return None
    found = np.stack([e.rank > 0 for e in evidence])
    alone = np.count_nonzero(found, axis=0) == 1
    if np.count_nonzero(alone) < _WORTH * len(evidence):
        return None
    columns = []
    for e, there in zip(evidence, found, strict=True):
        own = np.flatnonzero(there & alone)
        columns.append(own[np.argsort(e.rank[own], kind="stable")])
    return Lone(tuple(evidence), np.flatnonzero(~alone), tuple(columns))


def _scores(evidence: Sequence[Evidence], items: Ints, parameters: Parameters) -> Floats:
    chosen = [replace(e, rank=e.rank[items]) for e in evidence]
    return exact_sum(contributions(chosen, "rrf", parameters))


def without_weight(weights: Sequence[Number]) -> Bools:
    """Which plans give some source no weight, bool (p,): all items that it alone retrieved are then equal."""
    none: Bools = np.any([np.asarray(w)[:, 0] == 0 for w in weights], axis=0)
    return none
