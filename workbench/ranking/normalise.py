"""Normalisations: one source's raw scores made comparable with another's.

Each one is fitted on the retrieved list of that source alone (after depth and threshold) and gives a rising map from raw
to normalised scores. The same map is then applied to the computed scores of rows that the source did not retrieve, so a
row just below the list's end gets a value just below the last hit's, not a cliff. Maps that are affine stay affine there:
values below 0 are possible for `minmax` and `zscore`, and honest. Lists of many queries are fitted at once (`Lists`).

| name | formula over the list's scores s | list of one, or all equal |
|---|---|---|
| none | s | s |
| minmax | (s - min) / (max - min) | 1 |
| tmm | (s - t) / (max - t), t the least possible score: 0 for BM25 and grep, -1 for a cosine | 1; 0 where max is t |
| zscore | (s - mean) / sd, sd of the population | 0 |
| rank | 1 - (rank - 1) / (rank of the last hit) | 1 |
| dbsf | (s - mean + 3 sd) / (6 sd), sd of the sample, clipped to [0, 1] | 1/2 |
| top | max(s, 0) / max, 0 where max is not above 0 | 1 |
| clip | max(s, 0) | s |

With `minmax` the list's last hit gets 0, the same as a row that was not retrieved under `fusion.missing` `zero`.

Sources: minmax and its use for fusion, Lee: Analyses of Multiple Evidence Combination, SIGIR 1997; zscore (ZMUV), Montague
and Aslam: Relevance Score Normalization for Metasearch, CIKM 2001; rank, Renda and Straccia: Web Metasearch: Rank vs.
Score Based Rank Aggregation Methods, SAC 2003; tmm, Bruch, Gai, Ingber: An Analysis of Fusion Functions for Hybrid
Retrieval, ACM TOIS 2023, arXiv 2210.11934; dbsf, Mazzeschi: Distribution-Based Score Fusion, 2023, as built into Qdrant
(which does not clip).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from workbench.errors import PlanError
from workbench.ranking.candidates import Floats, Ints
from workbench.records import Kind

Map = Callable[[Floats, Ints], Floats]
"""Raw scores, and the query (position of its list) that each belongs to, to normalised scores."""


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """One source's retrieved lists for q queries, end to end; a query whose list is empty has no entry.

    Attributes:
        scores: float64 (n,), raw scores.
        ranks: int64 (n,), from 1 in each list.
        query: int64 (n,), rising, the query of each entry, 0 to q - 1.
        queries: q.
        kind: Decides the least possible score.
    """

    scores: Floats
    ranks: Ints
    query: Ints
    queries: int
    kind: Kind

    @property
    def starts(self) -> Ints:
        """Where each list that is not empty begins."""
        return np.flatnonzero(np.diff(self.query, prepend=-1))

    def each(self, ufunc: np.ufunc, values: Floats | Ints) -> Floats:
        """A ufunc's reduction of each list's values, float64 (q,); NaN where the list is empty."""
        result = np.full(self.queries, np.nan)
        starts = self.starts
        if len(starts):
            result[self.query[starts]] = ufunc.reduceat(values, starts)
        return result

    @property
    def low(self) -> Floats:
        return self.each(np.minimum, self.scores)

    @property
    def high(self) -> Floats:
        return self.each(np.maximum, self.scores)

    def moments(self) -> tuple[Floats, Floats, Floats]:
        """Count, mean and sum of squared deviations of each list, float64 (q,): correctly rounded sums, so that the rows' order
        changes no bit.
        """
        count, mean, squares = np.zeros(self.queries), np.zeros(self.queries), np.zeros(self.queries)
        for listed, start in zip(np.split(self.scores, self.starts[1:]), self.starts.tolist(), strict=False):
            at = self.query[start]
            count[at], mean[at] = len(listed), listed[0]
            if listed.min() != listed.max():
                mean[at] = math.fsum(listed.tolist()) / len(listed)
                squares[at] = math.fsum(((listed - mean[at]) ** 2).tolist())
        return count, mean, squares


def none(lists: Lists) -> Map:
    return lambda s, q: s


def minmax(lists: Lists) -> Map:
    """The list's last hit 0 and its first 1; a list of equal scores 1 (and 0 for anything below it)."""
    low, high = lists.low, lists.high
    flat, span = high == low, _divisor(high - low)
    return lambda s, q: np.where(flat[q], np.where(s >= high[q], 1.0, 0.0), (s - low[q]) / span[q])


def tmm(lists: Lists) -> Map:
    """The least score that the source could give 0 and the list's first hit 1; all 0 where the first hit has that least."""
    low, high = (0.0 if lists.kind is Kind.LEXICAL else -1.0), lists.high
    flat, span = high <= low, _divisor(high - low)
    return lambda s, q: np.where(flat[q], 0.0, (s - low) / span[q])


def zscore(lists: Lists) -> Map:
    """Standard deviations above the list's mean; 0 for a list of equal scores."""
    count, mean, squares = lists.moments()
    sd = np.sqrt(squares / np.maximum(count, 1))
    return lambda s, q: np.where(sd[q] == 0.0, 0.0, (s - mean[q]) / _divisor(sd)[q])


def rank(lists: Lists) -> Map:
    """The place that a score would take in the list, after any equal ones: 1 first, 0 after the last hit.

    For rows of the list itself `normalise` uses their ranks, which also settle ties.
    """
    starts = lists.starts
    rising = {
        int(lists.query[start]): np.sort(listed)
        for listed, start in zip(np.split(lists.scores, starts[1:]), starts.tolist(), strict=False)
    }

    def mapped(s: Floats, q: Ints) -> Floats:
        places = np.zeros(len(s))
        for at in np.unique(q).tolist():
            own, listed = q == at, rising.get(at, _EMPTY)
            places[own] = np.searchsorted(listed, s[own], side="left") / max(len(listed), 1)
        return places

    return mapped


def dbsf(lists: Lists) -> Map:
    """Three standard deviations below the list's mean 0, three above 1; 1/2 for a list of equal scores."""
    count, mean, squares = lists.moments()
    sd = np.sqrt(squares / np.maximum(count - 1, 1))
    low, high = mean - 3.0 * sd, mean + 3.0 * sd
    flat, span = high <= low, _divisor(high - low)
    return lambda s, q: np.where(flat[q], 0.5, np.clip((s - low[q]) / span[q], 0.0, 1.0))


def top(lists: Lists) -> Map:
    """Share of the list's first score; negative scores count as 0."""
    high = lists.high
    return lambda s, q: np.where(high[q] <= 0.0, 0.0, np.maximum(s, 0.0) / _divisor(np.maximum(high, 0.0))[q])


def clip(lists: Lists) -> Map:
    return lambda s, q: np.maximum(s, 0.0)


NORMALISERS: Mapping[str, Callable[[Lists], Map]] = {
    "none": none,
    "minmax": minmax,
    "tmm": tmm,
    "zscore": zscore,
    "rank": rank,
    "dbsf": dbsf,
    "top": top,
    "clip": clip,
}


def normalise(name: str, lists: Lists) -> tuple[Floats, Map]:
    """Fit a normalisation on a source's lists.

    Args:
        name: A key of `NORMALISERS`.
        lists: The retrieved rows of each query.

    Returns:
        The lists' normalised scores, float64 (n,), and the map for scores of rows that are not in them.

    Raises PlanError: An unknown normalisation.
    """
    fit = NORMALISERS.get(name)
    if fit is None:
        raise PlanError(f"There is no normalisation called {name!r}", "The names are " + ", ".join(NORMALISERS))
    mapped = fit(lists)
    if name == "rank":
        return 1.0 - (lists.ranks - 1) / lists.each(np.maximum, lists.ranks)[lists.query], mapped
    return mapped(lists.scores, lists.query), mapped


def _divisor(values: Floats) -> Floats:
    """Values to divide by: 1 in the place of those whose result is not used."""
    return np.where(values > 0.0, values, 1.0)


_EMPTY = np.zeros(0)
