"""Ranks under many plans at once, plans side by side in memory.

A comparison of one row of scores with one number costs numpy more for the row than for its numbers; comparing a row of plans
with a row of marks does not, and adding up what came out takes no packing of bits. Counting is almost twice as fast so, as long
as there are many plans. Scores are those of `methods`, to the bit: each element is made by the same operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from workbench.ranking.candidates import Floats, Ints
from workbench.ranking.evidence import Evidence
from workbench.ranking.methods import Number, Parameters, contributions
from workbench.ranking.summation import exact_sum

MANY_PLANS = 160
"""From so many plans of a group on it is quicker."""

_BLOCK = 1 << 16  # scores of one block: half a megabyte
_MOST = 255  # items of one block: their number fits a byte


def ranks_of_many(evidence: Sequence[Evidence], method: str, parameters: Parameters, targets: Ints) -> Ints:
    """Ranks of items under p plans.

    Args:
        evidence: One a source, on m items in the order that settles ties.
        method: Of the plans.
        parameters: Of the plans, shape (p, 1).
        targets: int64 (t,), items.

    Returns:
        int64 (p, t), from 1.
    """
    side_by_side = Parameters(
        _row(parameters.k), _row(parameters.rank_base), _row(parameters.alpha), tuple(map(_row, parameters.weights))
    )

    def scores(items: Ints | slice) -> Floats:
        upright = [
            replace(e, rank=e.rank[items, None], value=e.value[items, None], scored=e.scored[items, None])
            for e in evidence
        ]
        return exact_sum(contributions(upright, method, side_by_side))

    marks = scores(targets)  # (t, p)
    ranks = np.ones(marks.shape, np.int64)
    items, size = len(evidence[0].rank), max(1, min(_MOST, _BLOCK // marks.shape[1]))
    for start in range(0, items, size):
        block = scores(slice(start, start + size))
        ahead = np.empty(block.shape, bool)
        for n, place in enumerate(np.clip(targets - start, 0, len(block)).tolist()):
            np.greater_equal(block[:place], marks[n], out=ahead[:place])
            np.greater(block[place:], marks[n], out=ahead[place:])
            ranks[n] += np.add.reduce(ahead.view(np.uint8), axis=0, dtype=np.uint8)
    return ranks.T


def _row(values: Number) -> Floats:
    return np.ascontiguousarray(np.asarray(values, np.float64).reshape(1, -1))
