"""The small histogram over the threshold slider as HTML. No Streamlit."""

from __future__ import annotations

from workbench.charts.distributions import Histogram
from workbench.charts.layout import GREEN, GREY
from workbench.ui.text import attribute, visible


def histogram_html(histogram: Histogram, threshold: float | str, of: str = "") -> str:
    """Bars of how many records lie at which distance or score; grey where the threshold drops them, which is a dashed line.

    A threshold beyond the values seen stands at the border on its side.

    Args:
        histogram: The counts.
        threshold: A distance in the histogram's metric, a score, or `off`.
        of: The source, to be named where there are several.
    """
    low, high = float(histogram.edges[0]), float(histogram.edges[-1])
    cut = None if threshold == "off" else float(threshold)
    tallest = max(int(histogram.counts.max()), 1)
    bars = []
    starts, ends = histogram.edges[:-1], histogram.edges[1:]
    kept = histogram.keeps((starts + ends) / 2, threshold)
    for count, start, end, stays in zip(
        histogram.counts.tolist(), starts.tolist(), ends.tolist(), kept.tolist(), strict=True
    ):
        # The square root keeps the few near records visible beside the many far ones.
        height = (count / tallest) ** 0.5 * 100
        colour = GREEN if stays else GREY
        title = f"{count:,} at {_figure(start)} to {_figure(end)}"
        bars.append(f'<span style="height:{height:.0f}%;background:{colour}" title="{title}"></span>')
    line = ""
    if cut is not None:
        at = min(max((cut - low) / (high - low), 0.0), 1.0) * 100
        line = f'<i style="left:{at:.1f}%"></i>'
    what = f"{histogram.axis.rpartition(' ')[2]}s of {histogram.total:,} records"
    told = f"Histogram of the {what}, {_figure(low)} to {_figure(high)}"
    axis = f"{of}: {histogram.axis}".removeprefix(": ")
    if of:
        told += f", by {of}"
    if cut is not None:
        told += f", cut at {cut:g}"
    return (
        f'<div class="wb-histogram" role="img" aria-label="{attribute(told)}">{"".join(bars)}{line}</div>'
        f'<p class="wb-axis"><span>{_figure(low)}</span><span>{visible(axis)}</span><span>{_figure(high)}</span></p>'
    )


def _figure(value: float) -> str:
    """A border: two decimals, or more where the value is small, as fused scores are."""
    return f"{value:.2f}" if value == 0 or abs(value) >= 0.1 else f"{value:.2g}"
