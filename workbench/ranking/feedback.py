"""Feedback from the top: candidates that are like the best ones rise.

The best few of a fused list stand for what was asked (pseudo-relevance feedback: Rocchio: Relevance Feedback in Information
Retrieval, 1971; with dense vectors Yu et al.: ANCE-PRF, CIKM 2021, arXiv 2108.13454, here without learning). With m the mean of
their vectors, a candidate d adds

    weight x sd(scores) x (f(d) - mean f) / sd(f),    f(d) = d . m

to its fused score: on the scale of the scores, so that one weight does for every fusion method.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from workbench.ranking.adapt import rounded
from workbench.ranking.candidates import Floats, Ints


def feedback(scores: Floats, like: Callable[[Ints], Floats], top: int, weights: Floats) -> Floats:
    """What feedback adds to each item under p plans, float64 (p, m); nothing where there are no more items than stand for the
    query.

    Args:
        scores: float64 (p, m), fused; items are in the order that settles ties.
        like: Items (p, k) -> how like the mean of their vectors each item is, float64 (p, m).
        top: How many of the best stand for the query.
        weights: float64 (p,), from 0; 1 makes the spread of feedback that of the scores.
    """
    if scores.shape[1] <= top:
        return np.zeros_like(scores)
    found = rounded(like(np.argsort(-scores, axis=1, kind="stable")[:, :top]))
    spread = found.std(axis=1)
    scale = np.divide(weights * scores.std(axis=1), spread, out=np.zeros_like(spread), where=spread > 0)
    added: Floats = scale[:, None] * (found - found.mean(axis=1, keepdims=True))
    return added
