"""The usual measures from the ranks of judged documents alone, for many plans at once.

A sweep knows where each judged document stands under each plan and nothing of the others, which is all that these measures
read: nDCG (linear gain), RR, R, P, AP and Success, at any cutoff and from any grade on. They are those of `ir_measures`
and trec_eval, value for value; a test holds them equal. Any other measure is refused here and computed from whole lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from workbench.evaluate.measures import parse_measure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_KNOWN = frozenset({"nDCG", "RR", "R", "P", "AP", "Success"})


@dataclass(frozen=True, slots=True)
class Quick:
    """One measure: its name, cutoff (None: none) and least relevant grade."""

    name: str
    cutoff: int | None
    least: int

    def of(self, ranks: Ints, grades: Ints, every: Ints) -> Floats:
        """Values for p plans.

        Args:
            ranks: int64 (p, t), ranks of judged documents from 1; 0 where a plan does not return it.
            grades: int64 (t,).
            every: int64 (j,), grades of all judged documents, returned or not.

        Returns:
            float64 (p,).
        """
        within = ranks > 0
        if self.cutoff is not None:
            within &= ranks <= self.cutoff
        return _COMPUTED[self.name](self, np.where(within, ranks, 0), grades, every)


def quick(measure: str) -> Quick | None:
    """The measure if its values follow from ranks alone, else None. Raises UsageError for an unknown one."""
    return _quick(measure)


@cache
def _quick(measure: str) -> Quick | None:
    parsed = parse_measure(measure)
    parameters = dict(parsed.params)
    cutoff, least = parameters.pop("cutoff", None), parameters.pop("rel", 1)
    usual = {"dcg": "log2", "judged_only": False}
    changed = [n for n, v in parameters.items() if v is not None and v != usual.get(n)]
    if parsed.NAME not in _KNOWN or changed or least < 1:
        return None
    return Quick(parsed.NAME, cutoff, int(least))


def _ndcg(measure: Quick, ranks: Ints, grades: Ints, every: Ints) -> Floats:
    ideal = np.sort(np.maximum(every, 0))[::-1][: measure.cutoff]
    best = float((ideal / np.log2(np.arange(2, len(ideal) + 2))).sum())
    if best == 0.0:
        return np.zeros(len(ranks))
    gains = np.where(ranks > 0, np.maximum(grades, 0) / np.log2(np.maximum(ranks, 1) + 1.0), 0.0)
    return np.asarray(gains.sum(axis=1) / best)


def _relevant(measure: Quick, ranks: Ints, grades: Ints) -> Ints:
    """Ranks of the relevant ones, 0 elsewhere."""
    relevant: Ints = np.where(grades >= measure.least, ranks, 0)
    return relevant


def _found(measure: Quick, ranks: Ints, grades: Ints) -> Floats:
    return np.asarray(np.count_nonzero(_relevant(measure, ranks, grades), axis=1), np.float64)


def _reciprocal(measure: Quick, ranks: Ints, grades: Ints, every: Ints) -> Floats:
    relevant = _relevant(measure, ranks, grades).astype(np.float64)
    if not relevant.shape[1]:
        return np.zeros(len(ranks))
    first = np.where(relevant > 0, relevant, np.inf).min(axis=1)
    return np.asarray(1.0 / first)


def _recall(measure: Quick, ranks: Ints, grades: Ints, every: Ints) -> Floats:
    total = int(np.count_nonzero(every >= measure.least))
    return np.asarray(_found(measure, ranks, grades) / total) if total else np.zeros(len(ranks))


def _precision(measure: Quick, ranks: Ints, grades: Ints, every: Ints) -> Floats:
    return np.asarray(_found(measure, ranks, grades) / float(measure.cutoff or 1))


def _success(measure: Quick, ranks: Ints, grades: Ints, every: Ints) -> Floats:
    return (_found(measure, ranks, grades) > 0).astype(np.float64)


def _average(measure: Quick, ranks: Ints, grades: Ints, every: Ints) -> Floats:
    total = int(np.count_nonzero(every >= measure.least))
    if not total or not ranks.shape[1]:
        return np.zeros(len(ranks))
    relevant = _relevant(measure, ranks, grades).astype(np.float64)
    placed = np.sort(np.where(relevant > 0, relevant, np.inf), axis=1)
    return np.asarray((np.arange(1, placed.shape[1] + 1) / placed).sum(axis=1) / total)


_COMPUTED: Mapping[str, Callable[[Quick, Ints, Ints, Ints], Floats]] = {
    "nDCG": _ndcg,
    "RR": _reciprocal,
    "R": _recall,
    "P": _precision,
    "Success": _success,
    "AP": _average,
}


def values_of(measures: Sequence[Quick], ranks: Ints, grades: Ints, every: Ints) -> Floats:
    """Several measures at once, float64 (p, m)."""
    return np.stack([m.of(ranks, grades, every) for m in measures], axis=1)
