"""How values are spread: distances to the query, scores, tokens of chunks, scores by relevance; with thresholds drawn in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.charts.layout import BLUE, CUT, GREEN, GREY, axis, figure, upright
from workbench.ranking.candidates import Floats, Ints
from workbench.ranking.cutting import metric as metric_of

if TYPE_CHECKING:
    import polars as pl

BINS, _MOST_BINS = 50, 200


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
    edges: Floats
    counts: Ints
    distances: Floats

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def keeps(self, values: Floats, threshold: float | str) -> NDArray[np.bool_]:
        """Which values a threshold keeps: distances strictly below it, scores at or above it, or all where it is `off`."""
        if threshold == "off":
            return np.ones(len(values), bool)
        cut = float(threshold)
        return values < cut if self.axis.endswith("distance") else values >= cut

    def bars(self, threshold: float | str) -> list[bool]:
        return list(self.keeps((self.edges[:-1] + self.edges[1:]) / 2, threshold))

    def kept(self, threshold: float | str) -> int:
        return int(self.keeps(self.distances, threshold).sum())


def score_histogram(scores: Floats, axis: str, bins: int = BINS) -> Histogram:
    """Count scores (float64, any order; NaN is left out), of which a threshold keeps the high ones."""
    return _counted(scores, axis, 1.0, 1e-9, bins)


def histogram(distances: Floats, metric: str, bins: int = BINS) -> Histogram:
    """Count distances (float64, any order; NaN is left out). Raises PlanError for an unknown metric."""
    return _counted(distances, f"{metric} distance", metric_of(metric).largest, 1e-6, bins)


def _counted(values: Floats, axis: str, largest: float, least: float, bins: int) -> Histogram:
    """Values counted from the least to the greatest, or to `largest` where there are none; `least` is the narrowest range."""
    known = values[~np.isnan(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, largest)
    if high - low < least:
        low, high = min(low, max(0.0, low - 0.01)), low + 0.01
    counts, edges = np.histogram(known, bins=min(bins, _MOST_BINS), range=(low, high))
    return Histogram(axis, edges.astype(np.float64), counts.astype(np.int64), known)


def distance_figure(histogram: Histogram, threshold: float | str, *, height: int = 110, of: str = "") -> Any:
    """Bars of how many records are at which distance or score; those that the threshold drops are grey, the cut is a line. `of`
    names the source where there are several.
    """
    edges = histogram.edges
    bars = {
        "type": "bar",
        "x": ((edges[:-1] + edges[1:]) / 2).round(4).tolist(),
        "y": histogram.counts.tolist(),
        "width": float(edges[1] - edges[0]) * 0.9,
        "marker": {"color": [GREEN if kept else GREY for kept in histogram.bars(threshold)]},
        "hovertemplate": "%{y} at " + histogram.axis.rpartition(" ")[2] + " %{x:.4g}<extra></extra>",
    }
    cut = [] if threshold == "off" else [float(threshold)]
    low, high = min(float(edges[0]), *cut, float(edges[-1])), max(float(edges[-1]), *cut, float(edges[0]))
    pad = (high - low) * 0.03
    across = axis(f"{of}: {histogram.axis}".removeprefix(": "), range=[low - pad, high + pad])
    up = {"visible": False, "fixedrange": True}
    return figure([bars], height, shapes=[upright(at) for at in cut], bargap=0, xaxis=across, yaxis=up)


def token_figure(tokens: Ints, budget: int | None = None, *, height: int = 240) -> Any:
    """How many chunks have how many tokens (int64), with the budget that chunks are cut to drawn in."""
    most = int(tokens.max()) if len(tokens) else 1
    width = max(1, -(-(most + 1) // 60))
    edges = np.arange(0, most + width + 1, width)
    bars = {
        "type": "bar",
        "x": (edges[:-1] + width / 2).tolist(),
        "y": np.histogram(tokens, bins=edges)[0].tolist(),
        "width": width * 0.92,
        "customdata": [f"{a:,} to {a + width - 1:,}" if width > 1 else f"{a:,}" for a in edges[:-1].tolist()],
        "marker": {"color": BLUE},
        "hovertemplate": "%{y:,} chunks of %{customdata} tokens<extra></extra>",
    }
    shapes = [] if budget is None else [upright(budget)]
    return figure([bars], height, shapes=shapes, xaxis=axis("tokens of a chunk"), yaxis=axis("chunks"))


def distribution_figure(
    frame: pl.DataFrame, title: str, threshold: float | None = None, now: float | None = None, *, height: int = 260
) -> Any:
    """Relevant candidates against the others (`Distribution.frame`), each as a share of its own kind, with the proposed
    threshold dashed and the one that the plan has now dotted.
    """
    middles = ((frame["low"] + frame["high"]) / 2).round(4).to_list()
    rest = frame["not_relevant"] + frame["unjudged"]
    traces = []
    for name, counts, colour in (("relevant", frame["relevant"], GREEN), ("all others", rest, GREY)):
        total = int(counts.sum())
        bars: dict[str, Any] = {"type": "bar", "x": middles, "y": (counts / max(total, 1)).to_list(), "opacity": 0.65}
        hover = f"%{{customdata}} {name} near %{{x:.3f}}<extra></extra>"
        bars |= {"customdata": counts.to_list(), "hovertemplate": hover, "marker": {"color": colour}}
        bars["name"] = f"{name} ({total:,})"
        traces.append(bars)
    shapes, notes = [], []
    for at, name, colour, dash in ((now, "now", GREY, "dot"), (threshold, "proposed", CUT, "dash")):
        if at is None:
            continue
        shapes.append(upright(at, colour, dash))
        right = name == "proposed" if now is None or threshold is None else at >= max(now, threshold)
        side = {"xanchor": "left", "xshift": 4} if right else {"xanchor": "right", "xshift": -4}
        place = {"x": at, "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False, **side}
        notes.append({"text": f"{name} {at:.4g}", "font": {"color": colour}, **place})
    legend, margin = {"orientation": "h", "y": 1.1, "yanchor": "bottom"}, {"l": 8, "r": 8, "t": 48, "b": 8}
    axes = {"xaxis": axis(title), "yaxis": axis("share of its kind")}
    layout: dict[str, Any] = {"barmode": "overlay", "bargap": 0, "showlegend": True, "legend": legend, "margin": margin}
    return figure(traces, height, shapes=shapes, annotations=notes, **layout, **axes)
