"""The histogram of distances to the query, with the threshold drawn in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.charts.layout import figure
from workbench.charts.palette import CUT, GREEN, GREY
from workbench.ranking.distance import metric as metric_of

BINS = 50


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Counts of distances in equal bins.

    Attributes:
        metric: The metric of the distances.
        edges: float64 (bins + 1,), from the least distance seen to the greatest, or 0 to 1 where there is none.
        counts: int64 (bins,).
        distances: float64 (n,), the distances counted, in any order.
    """

    metric: str
    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    distances: NDArray[np.float64]

    @property
    def total(self) -> int:
        """How many distances were counted."""
        return int(self.counts.sum())

    def below(self, threshold: float | str) -> int:
        """How many distances a threshold keeps: those strictly below it, or all where it is `off`."""
        return self.total if threshold == "off" else int((self.distances < float(threshold)).sum())


def histogram(distances: NDArray[np.float64], metric: str, bins: int = BINS) -> Histogram:
    """Count distances.

    Args:
        distances: float64 (n,), any order; NaN is left out.
        metric: `angular`, `cosine`, `l2` or `l2sq`.
        bins: Number of bins, at most 200.

    Raises:
        PlanError: An unknown metric.
    """
    largest = metric_of(metric).largest
    known = distances[~np.isnan(distances)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, largest)
    if high - low < 1e-6:
        low, high = max(0.0, low - 0.01), low + 0.01
    counts, edges = np.histogram(known, bins=min(bins, 200), range=(low, high))
    return Histogram(metric, edges.astype(np.float64), counts.astype(np.int64), known)


def distance_figure(histogram: Histogram, threshold: float | str, *, height: int = 110, of: str = "") -> Any:
    """Bars of how many records lie at which distance; those at or beyond the threshold are grey, the cut is a line.

    Args:
        histogram: The counts.
        threshold: A distance in the histogram's metric, or `off`.
        height: Pixels.
        of: The source, to be named where there are several.

    Returns:
        A plotly figure.
    """
    middles = (histogram.edges[:-1] + histogram.edges[1:]) / 2
    cut = None if threshold == "off" else float(threshold)
    colours = [GREEN if cut is None or m < cut else GREY for m in middles.tolist()]
    bars = {
        "type": "bar",
        "x": middles.round(4).tolist(),
        "y": histogram.counts.tolist(),
        "width": float(histogram.edges[1] - histogram.edges[0]) * 0.9,
        "marker": {"color": colours},
        "hovertemplate": "%{y} at distance %{x:.2f}<extra></extra>",
    }
    low, high = float(histogram.edges[0]), float(histogram.edges[-1])
    shapes: list[dict[str, Any]] = []
    if cut is not None:
        low, high = min(low, cut), max(high, cut)
        line = {"color": CUT, "width": 2, "dash": "dash"}
        shapes.append({"type": "line", "x0": cut, "x1": cut, "y0": 0, "y1": 1, "yref": "paper", "line": line})
    pad = (high - low) * 0.03
    return figure(
        [bars],
        height=height,
        shapes=shapes,
        bargap=0,
        xaxis={
            "range": [low - pad, high + pad],
            "title": {"text": f"{of}: {histogram.metric} distance".removeprefix(": ")},
            "fixedrange": True,
        },
        yaxis={"visible": False, "fixedrange": True},
    )
