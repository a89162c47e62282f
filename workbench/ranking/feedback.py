"""Feedback from the top: candidates that are like the best ones rise.

The best few of a fused list stand for what was asked (pseudo-relevance feedback: Rocchio: Relevance Feedback in Information
Retrieval, 1971; with dense vectors Yu et al.: ANCE-PRF, CIKM 2021, arXiv 2108.13454, here without learning). With m the mean of
their vectors, a candidate d adds

    weight x sd(scores) x (f(d) - mean f) / sd(f),    f(d) = d . m

to its fused score: on the scale of the scores, so that one weight does for every fusion method.
"""

from __future__ import annotations

import numpy as np

from workbench.ranking.adapt import rounded
from workbench.ranking.candidates import Floats, Ints
from workbench.ranking.methods import best_first

NAME = "feedback"
"""Beside the sources, where contributions are shown."""


def feedback(scores: Floats, coverage: Ints, vectors: Floats, top: int, weight: float) -> Floats:
    """What feedback adds to each item, float64 (m,); nothing where there are no more items than stand for the query.

    Args:
        scores: float64 (m,), fused.
        coverage: int64 (m,), the number of sources that retrieved each item: it settles ties.
        vectors: float64 (m, d), of length 1.
        top: How many of the best stand for the query.
        weight: From 0; 1 makes the spread of feedback that of the scores.
    """
    if len(scores) <= top:
        return np.zeros(len(scores))
    centre = vectors[best_first(scores, coverage)[:top]].mean(axis=0)
    like = rounded(vectors @ centre)
    spread = float(like.std())
    return weight * float(scores.std()) / spread * (like - like.mean()) if spread > 0 else np.zeros(len(scores))
