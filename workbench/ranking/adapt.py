"""Vectors adapted to the corpus: what all of its texts have in common tells them apart no better, so it counts for less.

Sentence vectors share a mean and a few directions in which they all differ most; both follow what a corpus is about, not what a
text says (Mu and Viswanath: All-but-the-Top, ICLR 2018, arXiv 1702.01417; Su et al.: Whitening Sentence Representations,
arXiv 2103.15316). And some records, the hubs, are near to nearly every query (Radovanovic et al.: Hubs in Space, JMLR 11, 2010).
For a record or a query y of length 1, with the corpus's mean m and its first directions p_j of variance w_j,

    T(y) = unit(x - sum_j (1 - sqrt(w_last / w_j)) (p_j . x) p_j),    x = y - m

shrinks each direction to the level of the one after the last. The adapted similarity of a query q and a record d is

    c = (1 - s) cos(q, d) + s T(q) . T(d) - hubness (h(d) - mean h)

where h(d) is the mean of d's three highest cosines to some records of the corpus. Nothing is learned from queries or judgments.
They are measured on a sample of the records that the principal may see, drawn by place in their order: the same visible records
give the same bits, whatever else the corpus holds.

*Feedback from the top*: the best few of a fused list stand for what was asked (pseudo-relevance feedback: Rocchio: Relevance
Feedback in Information Retrieval, 1971; with dense vectors Yu et al.: ANCE-PRF, CIKM 2021, arXiv 2108.13454, here without
learning). With m the mean of their adapted vectors, a candidate d adds

    weight x sd(scores) x (f(d) - mean f) / sd(f),    f(d) = d . m

to its fused score: on the scale of the scores, so that one weight does for every fusion method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from workbench.ranking.candidates import Floats, Ints

DIRECTIONS = 10
NEIGHBOURS = 3
SHARE = 0.5
"""s: the adapted part of the similarity."""

LEAST = 100
"""A corpus with fewer records is not adapted to: its directions would be those of single texts."""

SAMPLE = 5_000
"""Mean and directions are taken over at most so many records."""

REFERENCES = 500
"""Hubness is measured against at most so many of them."""

_DIGITS = 9


@dataclass(frozen=True, eq=False)
class Adaptation:
    """What the vectors of a corpus have in common, of d dimensions. Made by `fit`.

    Attributes:
        mean: float64 (d,).
        directions: float64 (d, k), of length 1, at right angles; k is `DIRECTIONS`, or d where that is less.
        shrink: float64 (k,), the share of each that is taken away, from 0 to 1.
        references: float64 (r, d), the records that hubness is measured against.
        numbers: int64 (r,), which records these are.
    """

    mean: Floats
    directions: Floats
    shrink: Floats
    references: Floats
    numbers: Ints

    def adapted(self, vectors: NDArray[np.float32]) -> Floats:
        """T of vectors, float (n, d) to float64 (n, d) of length 1; 0 for a vector that is the mean."""
        moved = vectors.astype(np.float64) - self.mean
        moved -= (moved @ self.directions * self.shrink) @ self.directions.T
        length = np.sqrt(np.einsum("nd,nd->n", moved, moved))[:, None]
        made: Floats = np.divide(moved, length, out=np.zeros_like(moved), where=length > 0)
        return made

    def hubness(self, vectors: NDArray[np.float32], numbers: Ints) -> Floats:
        """h of records less the mean of the references', float64 (n,): above 0 for a record that is near to many.

        Args:
            vectors: float32 (n, d), of length 1.
            numbers: int64 (n,), which records they are: none is its own neighbour.
        """
        near = vectors.astype(np.float64) @ self.references.T
        near[numbers[:, None] == self.numbers] = -np.inf
        return rounded(_nearest(near) - self._mean_hubness)

    @cached_property
    def _mean_hubness(self) -> float:
        near = self.references @ self.references.T
        np.fill_diagonal(near, -np.inf)
        return float(_nearest(near).mean())


def sample(count: int) -> Ints:
    """Which of some records to measure, int64, rising: places in their order, the same ones for the same number of records."""
    if count <= SAMPLE:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, SAMPLE, replace=False))


def fit(vectors: NDArray[np.float32], numbers: Ints) -> Adaptation | None:
    """What the vectors of a corpus have in common; None for fewer than `LEAST` records.

    Args:
        vectors: float32 (n, d), of the records of a `sample`; rows of length 1 or 0.
        numbers: int64 (n,), which records they are.
    """
    if len(numbers) < LEAST:
        return None
    measured = vectors.astype(np.float64)
    mean = measured.mean(axis=0)
    variance, directions = np.linalg.eigh(np.cov((measured - mean).T))
    variance, directions = np.maximum(variance[::-1], 0.0), directions[:, ::-1]
    first = variance[:DIRECTIONS]
    last = variance[min(DIRECTIONS, len(variance) - 1)]
    shrink = 1.0 - np.sqrt(np.divide(last, first, out=np.ones_like(first), where=first > 0))
    chosen = np.random.default_rng(1).permutation(len(numbers))[:REFERENCES]
    return Adaptation(mean, directions[:, :DIRECTIONS], shrink, measured[chosen], numbers[chosen])


def rounded(values: Floats) -> Floats:
    """Values without what the order of a sum decides: matrix products differ in their last bits by machine and by which rows
    are together, and an answer must not.
    """
    return np.round(values, _DIGITS)


def _nearest(cosines: Floats) -> Floats:
    """The mean of each row's `NEIGHBOURS` highest."""
    made: Floats = np.sort(np.partition(cosines, -NEIGHBOURS, axis=1)[:, -NEIGHBOURS:], axis=1).mean(axis=1)
    return made


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
