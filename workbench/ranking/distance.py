"""One cosine, four distances: the only place where a score becomes a distance and back.

Scores are higher-is-better everywhere; a distance appears only where a threshold is set or shown. All four metrics are
falling functions of the same cosine, so changing the metric never changes an order, only what a threshold means: with
`angular` 0.5 is cosine 0, with `cosine` it is 0.5, with `l2sq` it is 0.75, with `l2` it is 0.875.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import PlanError
from workbench.ranking.candidates import Floats


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its largest distance, and both directions (float64 in, float64 out)."""

    name: str
    largest: float
    distance: Callable[[Floats], Floats]
    cosine: Callable[[Floats], Floats]


METRICS: Mapping[str, Metric] = {
    m.name: m
    for m in (
        Metric("angular", 1.0, lambda c: np.arccos(c) / np.pi, lambda d: np.cos(d * np.pi)),
        Metric("cosine", 2.0, lambda c: 1.0 - c, lambda d: 1.0 - d),
        Metric("l2", 2.0, lambda c: np.sqrt(2.0 - 2.0 * c), lambda d: 1.0 - d * d / 2.0),
        Metric("l2sq", 4.0, lambda c: 2.0 - 2.0 * c, lambda d: 1.0 - d / 2.0),
    )
}


def metric(name: str) -> Metric:
    """The metric of that name. Raises PlanError with the known names."""
    found = METRICS.get(name)
    if found is None:
        raise PlanError(f"There is no metric called {name!r}", "The metrics are " + ", ".join(METRICS))
    return found


def to_distance(cosine: ArrayLike, name: str) -> Floats:
    """Distances of cosines.

    Args:
        cosine: Any shape; clipped to [-1, 1] first, since float32 products stray a little outside; NaN stays NaN.
        name: `angular`, `cosine`, `l2` or `l2sq`.

    Returns:
        float64 of the same shape, from 0 to the metric's largest distance.

    Raises PlanError: An unknown metric.
    """
    return metric(name).distance(np.clip(np.asarray(cosine, np.float64), -1.0, 1.0))


def to_cosine(distance: ArrayLike, name: str) -> Floats:
    """Cosines of distances: the inverse of `to_distance`, clipped to [-1, 1]; distances are clipped to the metric's range.

    Raises PlanError: An unknown metric.
    """
    found = metric(name)
    clipped = np.clip(np.asarray(distance, np.float64), 0.0, found.largest)
    return np.clip(found.cosine(clipped), -1.0, 1.0)
