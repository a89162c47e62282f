"""Normalisations: one source's raw scores made comparable with another's.

Each one is fitted on the retrieved list of that source alone (after depth and threshold) and gives a rising map from raw
to normalised scores. The same map is then applied to the computed scores of rows that the source did not retrieve, so a
row just below the list's end gets a value just below the last hit's, not a cliff. Maps that are affine stay affine there:
values below 0 are possible for `minmax` and `zscore`, and honest.

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

import numpy as np

from workbench.errors import PlanError
from workbench.ranking.candidates import Floats, Ints
from workbench.records import Kind

Map = Callable[[Floats], Floats]
Fit = Callable[[Floats, Kind], Map]


def none(listed: Floats, kind: Kind) -> Map:
    """Raw scores as they are."""
    return lambda s: s


def minmax(listed: Floats, kind: Kind) -> Map:
    """The list's last hit 0 and its first 1; a list of equal scores 1 (and 0 for anything below it)."""
    low, high = listed.min(), listed.max()
    if high == low:
        return lambda s: np.where(s >= high, 1.0, 0.0)
    return lambda s: (s - low) / (high - low)


def tmm(listed: Floats, kind: Kind) -> Map:
    """The least score that the source could give 0 and the list's first hit 1; all 0 where the first hit has that least."""
    low, high = (0.0 if kind is Kind.LEXICAL else -1.0), listed.max()
    if high <= low:
        return np.zeros_like
    return lambda s: (s - low) / (high - low)


def zscore(listed: Floats, kind: Kind) -> Map:
    """Standard deviations above the list's mean; 0 for a list of equal scores."""
    mean, squares = _moments(listed)
    sd = math.sqrt(squares / len(listed))
    if sd == 0.0:
        return np.zeros_like
    return lambda s: (s - mean) / sd


def rank(listed: Floats, kind: Kind) -> Map:
    """The place that a score would take in the list, after any equal ones: 1 first, 0 after the last hit.

    For rows of the list itself `normalise` uses their ranks, which also settle ties.
    """
    rising = np.sort(listed)
    return lambda s: np.searchsorted(rising, s, side="left") / len(rising)


def dbsf(listed: Floats, kind: Kind) -> Map:
    """Three standard deviations below the list's mean 0, three above 1; 1/2 for a list of equal scores."""
    mean, squares = _moments(listed)
    sd = math.sqrt(squares / (len(listed) - 1)) if len(listed) > 1 else 0.0
    low, high = mean - 3.0 * sd, mean + 3.0 * sd
    if high <= low:
        return lambda s: np.full_like(s, 0.5)
    return lambda s: np.clip((s - low) / (high - low), 0.0, 1.0)


def top(listed: Floats, kind: Kind) -> Map:
    """Share of the list's first score; negative scores count as 0."""
    high = listed.max()
    if high <= 0.0:
        return np.zeros_like
    return lambda s: np.maximum(s, 0.0) / high


def clip(listed: Floats, kind: Kind) -> Map:
    """Raw scores, negative ones as 0."""
    return lambda s: np.maximum(s, 0.0)


NORMALISERS: Mapping[str, Fit] = {
    "none": none,
    "minmax": minmax,
    "tmm": tmm,
    "zscore": zscore,
    "rank": rank,
    "dbsf": dbsf,
    "top": top,
    "clip": clip,
}


def normalise(name: str, listed: Floats, ranks: Ints, kind: Kind) -> tuple[Floats, Map]:
    """Fit a normalisation on a source's list.

    Args:
        name: A key of `NORMALISERS`.
        listed: float64 (n,), n >= 1, raw scores of the retrieved rows, in any order.
        ranks: int64 (n,), their ranks, from 1.
        kind: Lexical or semantic: decides the least possible score.

    Returns:
        The list's normalised scores, float64 (n,), and the map for scores of rows that are not in the list.

    Raises:
        PlanError: An unknown normalisation.
    """
    fit = NORMALISERS.get(name)
    if fit is None:
        raise PlanError(f"There is no normalisation called {name!r}", "The names are " + ", ".join(NORMALISERS))
    mapped = fit(listed, kind)
    if name == "rank":
        return 1.0 - (ranks - 1) / ranks.max(), mapped
    return mapped(listed), mapped


def _moments(listed: Floats) -> tuple[float, float]:
    """Mean and sum of squared deviations, correctly rounded sums: the rows' order changes no bit."""
    if listed.min() == listed.max():
        return float(listed[0]), 0.0
    mean = math.fsum(listed.tolist()) / len(listed)
    return mean, math.fsum(((listed - mean) ** 2).tolist())
