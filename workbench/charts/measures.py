"""Means of measures with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.charts.layout import name_of, row_figure
from workbench.charts.palette import BLUE


def means_figure(means: Sequence[tuple[str, float, float | None, float | None]], *, height: int | None = None) -> Any:
    """A point a measure, with a bar from the low to the high end of its interval where it has one.

    The axis is from 0 to 1 where all of it lies there, as measures do; differences have the axis that they need.

    Args:
        means: Measure, mean, low and high end (None: no interval), in order.
        height: Pixels; by default what the number of measures needs.
    """
    names = [name_of(m[0]) for m in means]
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [m[1] for m in means],
        "y": names,
        "marker": {"color": BLUE, "size": 10},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [0.0 if m[3] is None else m[3] - m[1] for m in means],
            "arrayminus": [0.0 if m[2] is None else m[1] - m[2] for m in means],
        },
        "customdata": [["no interval" if m[2] is None or m[3] is None else f"{m[2]:.3f} to {m[3]:.3f}"] for m in means],
        "hovertemplate": "%{y} %{x:.4f} (%{customdata[0]})<extra></extra>",
    }
    ends = [end for m in means for end in m[1:] if end is not None]
    along = {"range": [0, 1.02] if all(0 <= end <= 1 for end in ends) else None}
    return row_figure([trace], len(means), along=along, height=height, room=34, legend=False)
