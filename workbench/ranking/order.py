"""The one total order, used by every list that leaves a function, and the exact sums that it orders.

Score down, then number of sources (coverage) down, then row number up. Rows stand in the order normalised path, start
line, chunk id, so the last step settles every tie without comparing a string, the same in every run and process.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from workbench.ranking.candidates import Floats, Ints


def best_first(scores: Floats, coverage: Ints) -> Ints:
    """Positions in the total order, int64 (n,), of scores (float64 (n,), no NaN) and the number of sources of each row."""
    first = np.argsort(-coverage, kind="stable")
    return first[np.argsort(-scores[first], kind="stable")]


def exact_sum(terms: Sequence[Floats]) -> Floats:
    """Elementwise sum of float64 arrays of one shape, at least one, each element bit-equal to `math.fsum` of its terms.

    A plain `a + b + c` depends on the order of its terms; a fused score must not. Two terms need no care (IEEE addition is
    correctly rounded and commutes). For more, the rounding error of each step is itself a float (Knuth's two-sum; Ogita,
    Rump, Oishi: Accurate Sum and Dot Product, SIAM J. Sci. Comput. 26, 2005); where the errors add up without a rounding of
    their own, sum plus errors is the exact sum, and one last addition rounds it once. The few elements where they do not are
    summed by `math.fsum` itself.
    """
    if len(terms) < 3:
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]
    total, error = terms[0], np.zeros_like(terms[0])
    inexact = np.zeros(total.shape, bool)
    for term in terms[1:]:
        total, lost = _two_sum(total, term)
        error, lost = _two_sum(error, lost)
        inexact |= lost != 0.0
    result: Floats = total + error
    for place in zip(*np.nonzero(inexact), strict=True):
        result[place] = math.fsum(term[place] for term in terms)
    return result


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The rounded sum and what rounding lost: `a + b == sum + lost` exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
