"""The small histogram over the threshold slider as HTML. No Streamlit."""

from __future__ import annotations

from workbench.charts.distances import Histogram
from workbench.charts.palette import GREEN, GREY
from workbench.ui.text import attribute, visible


def histogram_html(histogram: Histogram, threshold: float | str, of: str = "") -> str:
    """Bars of how many records lie at which distance; grey at or beyond the threshold, which is a dashed line.

    A threshold beyond the distances seen stands at the border on its side.

    Args:
        histogram: The counts.
        threshold: A distance in the histogram's metric, or `off`.
        of: The source, to be named where there are several.
    """
    low, high = float(histogram.edges[0]), float(histogram.edges[-1])
    cut = None if threshold == "off" else float(threshold)
    tallest = max(int(histogram.counts.max()), 1)
    bars = []
    for count, start, end in zip(
        histogram.counts.tolist(), histogram.edges[:-1].tolist(), histogram.edges[1:].tolist(), strict=True
    ):
        # The square root keeps the few near records visible beside the many far ones.
        height = (count / tallest) ** 0.5 * 100
        colour = GREEN if cut is None or (start + end) / 2 < cut else GREY
        bars.append(
            f'<span style="height:{height:.0f}%;background:{colour}" title="{count:,} at {start:.2f} to {end:.2f}"></span>'
        )
    line = ""
    if cut is not None:
        at = min(max((cut - low) / (high - low), 0.0), 1.0) * 100
        line = f'<i style="left:{at:.1f}%"></i>'
    told = f"Histogram of the distances of {histogram.total:,} records to the query, {low:.2f} to {high:.2f}"
    axis = f"{of}: {histogram.metric} distance".removeprefix(": ")
    if of:
        told += f", by {of}"
    if cut is not None:
        told += f", cut at {cut:g}"
    return (
        f'<div class="wb-histogram" role="img" aria-label="{attribute(told)}">{"".join(bars)}{line}</div>'
        f'<p class="wb-axis"><span>{low:.2f}</span><span>{visible(axis)}</span><span>{high:.2f}</span></p>'
    )
