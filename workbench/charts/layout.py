"""What all figures share: a small transparent layout that fits both themes, and names cut to fit."""

from __future__ import annotations

import unicodedata
from typing import Any


def figure(data: list[dict[str, Any]], *, height: int, **layout: Any) -> Any:
    """A plotly figure of plain traces with the shared layout.

    Args:
        data: Traces as dictionaries.
        height: Pixels.
        layout: More of plotly's layout; it wins over the shared one.
    """
    import plotly.graph_objects as go

    shared: dict[str, Any] = {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "showlegend": False,
        "dragmode": False,
        "hoverlabel": {"namelength": -1},
    }
    return go.Figure({"data": data, "layout": {**shared, **layout}})


LEGEND_ABOVE = {"orientation": "h", "y": 1.02, "yanchor": "bottom"}
LEGEND_BELOW = {"orientation": "h", "y": -0.02, "yanchor": "top"}
FIRST_ON_TOP = {"autorange": "reversed", "fixedrange": True, "automargin": True, "type": "category"}
"""An upright axis of names: in their order, none cut off."""


def row_figure(
    traces: list[dict[str, Any]],
    rows: int,
    *,
    along: dict[str, Any],
    height: int | None = None,
    room: int = 24,
    mode: str = "relative",
    legend: bool = True,
) -> Any:
    """Named rows, the first on top, each with lying bars or points.

    Args:
        traces: Traces as dictionaries; their `y` are the rows' names.
        rows: How many rows.
        along: More of the axis along the rows, such as its title.
        height: Pixels; by default what the rows need.
        room: Pixels for a row.
        mode: How several traces share a row: plotly's `barmode`.
        legend: Whether traces are named above the rows.
    """
    return figure(
        traces,
        height=height or (90 if legend else 70) + room * max(rows, 1),
        barmode=mode,
        showlegend=legend,
        legend=LEGEND_ABOVE,
        xaxis={"fixedrange": True, **along},
        yaxis=FIRST_ON_TOP,
    )


def name_of(text: str, most: int = 40) -> str:
    """A text as a label: plotly reads a little HTML and `$` in texts, so both are taken out of their meaning.

    Args:
        text: Any text.
        most: Most characters; the end of a path says most, so the start is cut.
    """
    kept = "".join(" " if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} else c for c in text[-most * 4 :])
    flat = " ".join(kept.split())
    short = flat if len(flat) <= most else "…" + flat[-(most - 1) :]
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("$", "&#36;")
