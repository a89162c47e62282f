"""Sums that are the correctly rounded value of the exact sum, as `math.fsum` gives it, over whole arrays.

A plain `a + b + c` depends on the order of its terms; a fused score must not. Two terms need no care (IEEE addition is
correctly rounded and commutes). For more, the rounding error of each step is itself a float (Knuth's two-sum; Ogita,
Rump, Oishi: Accurate Sum and Dot Product, SIAM J. Sci. Comput. 26, 2005); where the errors add up without a rounding of
their own, sum plus errors is the exact sum, and one last addition rounds it once. The few elements where they do not are
summed by `math.fsum` itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from workbench.ranking.candidates import Floats


def exact_sum(terms: Sequence[Floats]) -> Floats:
    """Elementwise sum of arrays of one shape, each element bit-equal to `math.fsum` of its terms.

    Args:
        terms: At least one float64 array, finite, all of the same shape.

    Returns:
        float64 of that shape.
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
