"""The one total order, used by every list that leaves a function.

Score down, then number of sources (coverage) down, then row number up. Rows stand in the order normalised path, start
line, chunk id, so the last step settles every tie without comparing a string, the same in every run and process.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workbench.ranking.candidates import Floats, Ints


def best_first(scores: Floats, coverage: NDArray[np.integer] | None = None, top: int | None = None) -> Ints:
    """Positions in the total order.

    Args:
        scores: float64 (n,), higher is better, no NaN. A long array with few non-zero scores is best reduced to those
            (`numpy.flatnonzero`) by the caller.
        coverage: integers (n,), number of sources that retrieved each row; None where there is one source.
        top: Return only the first `top` positions; None for all. Much cheaper than all where `top` is small.

    Returns:
        int64 (min(n, top),), best first: score down, coverage down, position up.
    """
    if top is None or top >= len(scores):
        return _sorted(scores, coverage)
    if top <= 0:
        return np.zeros(0, np.int64)
    worst = np.partition(scores, len(scores) - top)[len(scores) - top]
    within = np.flatnonzero(scores >= worst)  # at least `top` rows: those that tie with the last one come along
    order = _sorted(scores[within], None if coverage is None else coverage[within])
    return within[order[:top]].astype(np.int64, copy=False)


def tie_order(coverage: NDArray[np.integer]) -> Ints:
    """Positions in the order that settles ties: coverage down, position up; int64 (n,)."""
    return np.argsort(-coverage, kind="stable").astype(np.int64, copy=False)


def _sorted(scores: Floats, coverage: NDArray[np.integer] | None) -> Ints:
    if coverage is None:
        return np.argsort(-scores, kind="stable").astype(np.int64, copy=False)
    first = tie_order(coverage)
    return first[np.argsort(-scores[first], kind="stable")]
