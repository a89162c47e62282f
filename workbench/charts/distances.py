"""The histogram of distances to the query, or of scores, with the threshold drawn in."""

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
    """Counts of distances, or of scores, in equal bins.

    Attributes:
        axis: What is counted: `angular distance`, `BM25 score`.
        edges: float64 (bins + 1,), from the least value seen to the greatest, or 0 to 1 where there is none.
        counts: int64 (bins,).
        distances: float64 (n,), the values counted, in any order.
    """

    axis: str
    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    distances: NDArray[np.float64]

    @property
    def total(self) -> int:
        """How many distances were counted."""
        return int(self.counts.sum())

    def keeps(self, values: NDArray[np.float64], threshold: float | str) -> NDArray[np.bool_]:
        """Which values a threshold keeps: distances strictly below it, scores at or above it, or all where it is `off`."""
        if threshold == "off":
            return np.ones(len(values), bool)
        cut = float(threshold)
        return values < cut if self.axis.endswith("distance") else values >= cut

    def kept(self, threshold: float | str) -> int:
        """How many of the values counted a threshold keeps."""
        return int(self.keeps(self.distances, threshold).sum())


def score_histogram(scores: NDArray[np.float64], axis: str, bins: int = BINS) -> Histogram:
    """Count scores, of which a threshold keeps the high ones.

    Args:
        scores: float64 (n,), any order; NaN is left out.
        axis: What they are: `BM25 score`, `fused score`.
        bins: Number of bins, at most 200.
    """
    return _counted(scores, axis, 1.0, 1e-9, bins)


def histogram(distances: NDArray[np.float64], metric: str, bins: int = BINS) -> Histogram:
    """Count distances.

    Args:
        distances: float64 (n,), any order; NaN is left out.
        metric: `angular`, `cosine`, `l2` or `l2sq`.
        bins: Number of bins, at most 200.

    Raises:
        PlanError: An unknown metric.
    """
    return _counted(distances, f"{metric} distance", metric_of(metric).largest, 1e-6, bins)


def _counted(values: NDArray[np.float64], axis: str, largest: float, least: float, bins: int) -> Histogram:
    """Values counted from the least to the greatest, or to `largest` where there are none; `least` is the narrowest range."""
    known = values[~np.isnan(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, largest)
    if high - low < least:
        low, high = min(low, max(0.0, low - 0.01)), low + 0.01
    counts, edges = np.histogram(known, bins=min(bins, 200), range=(low, high))
    return Histogram(axis, edges.astype(np.float64), counts.astype(np.int64), known)


def distance_figure(histogram: Histogram, threshold: float | str, *, height: int = 110, of: str = "") -> Any:
    """Bars of how many records lie at which distance or score; those that the threshold drops are grey, the cut is a line.

    Args:
        histogram: The counts.
        threshold: A distance in the histogram's metric, a score, or `off`.
        height: Pixels.
        of: The source, to be named where there are several.

    Returns:
        A plotly figure.
    """
    middles = (histogram.edges[:-1] + histogram.edges[1:]) / 2
    cut = None if threshold == "off" else float(threshold)
    colours = [GREEN if kept else GREY for kept in histogram.keeps(middles, threshold).tolist()]
    bars = {
        "type": "bar",
        "x": middles.round(4).tolist(),
        "y": histogram.counts.tolist(),
        "width": float(histogram.edges[1] - histogram.edges[0]) * 0.9,
        "marker": {"color": colours},
        "hovertemplate": "%{y} at " + histogram.axis.rpartition(" ")[2] + " %{x:.4g}<extra></extra>",
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
            "title": {"text": f"{of}: {histogram.axis}".removeprefix(": ")},
            "fixedrange": True,
        },
        yaxis={"visible": False, "fixedrange": True},
    )
