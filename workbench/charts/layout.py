"""What all figures share: colours, a small transparent layout that fits both themes, and names cut to fit.

The colours are those of Okabe and Ito, "Color Universal Design" (2008), which people with any colour vision can tell apart. A
colour never is alone: every place that uses one also writes the name. Sources of one family (`vector@notes`,
`vector:other`) share a hue and differ in lightness.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from workbench.records import FEEDBACK, Label

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE, GREY = "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#8A8A8A"
STYLE = (
    f":root{{--wb-orange:{ORANGE};--wb-sky:{SKY};--wb-green:{GREEN};--wb-yellow:{YELLOW};--wb-blue:{BLUE};"
    f"--wb-vermilion:{VERMILION};--wb-purple:{PURPLE}}}"
)
"""The palette as variables of a style sheet."""
SOURCES: Mapping[str, str] = {"grep": ORANGE, "keyword": SKY, "vector": GREEN, FEEDBACK: BLUE}
LABELS: Mapping[Label, str] = {Label.EXACT: ORANGE, Label.SEMANTIC: GREEN, Label.HYBRID: PURPLE, Label.STRONGEST: SKY}
CUT = VERMILION
FIRST, SECOND = SKY, PURPLE
"""Of two plans beside each other: A, what is compared with, and B. Dark text on them can be read."""

MOST_POINTS = 200
"""Points or bars that a figure draws at most."""
FIXED: Mapping[str, Any] = {"fixedrange": True, "zeroline": False}
LEGEND_ABOVE = {"orientation": "h", "y": 1.02, "yanchor": "bottom"}
LEGEND_BELOW = {"orientation": "h", "y": -0.02, "yanchor": "top"}


def source_colour(source: str) -> str:
    """Colour of a source, `#RRGGBB`: its family's; another encoder's or one collection's is a shade of it."""
    family, *rest = re.split("[@:]", source, maxsplit=1)
    base = SOURCES.get(family, GREY)
    if not rest:
        return base
    # A shade from the name itself, so that a source keeps its colour in every picture and in every process.
    share = 0.25 + 0.1 * (sum(rest[0].encode()) % 5)
    other = BLUE if family == "vector" else VERMILION
    pairs = zip(bytes.fromhex(base[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in pairs)


def faint(colour: str, share: float) -> str:
    """A colour (`#RRGGBB`) of which a share is opaque."""
    return f"rgba({','.join(map(str, bytes.fromhex(colour[1:])))},{share:g})"


def figure(traces: list[dict[str, Any]], height: int, **layout: Any) -> Any:
    """A plotly figure of plain traces; `layout` wins over the shared one."""
    import plotly.graph_objects as go

    clear = "rgba(0,0,0,0)"
    shared: dict[str, Any] = {"height": height, "paper_bgcolor": clear, "plot_bgcolor": clear, "showlegend": False}
    shared |= {"margin": {"l": 8, "r": 8, "t": 8, "b": 8}, "dragmode": False, "hoverlabel": {"namelength": -1}}
    return go.Figure({"data": traces, "layout": {**shared, **layout}})


def row_figure(
    traces: list[dict[str, Any]],
    rows: int,
    height: int | None,
    along: dict[str, Any],
    *,
    room: int = 24,
    mode: str = "relative",
) -> Any:
    """Named rows (the traces' `y`), the first on top, each with lying bars or points; traces that have a name are in the legend.
    Without a height each row has `room` pixels; `along` is more of the axis along the rows, `mode` plotly's `barmode`.
    """
    legend = any("name" in trace for trace in traces)
    names = {"autorange": "reversed", "fixedrange": True, "automargin": True, "type": "category"}
    height = height or (90 if legend else 70) + room * max(rows, 1)
    axes: dict[str, Any] = {"xaxis": {"fixedrange": True, "automargin": True, **along}, "yaxis": names}
    return figure(traces, height, barmode=mode, showlegend=legend, legend=LEGEND_ABOVE, **axes)


def lying(x: list[float], y: list[str], **more: Any) -> dict[str, Any]:
    return {"type": "bar", "orientation": "h", "x": x, "y": y, **more}


def dots(x: list[Any], y: list[Any], **more: Any) -> dict[str, Any]:
    return {"type": "scatter", "mode": "markers", "x": x, "y": y, **more}


def upright(at: float | str, colour: str = CUT, dash: str = "dash") -> dict[str, Any]:
    line = {"color": colour, "width": 2, "dash": dash}
    return {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": line}


def axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": title}, "fixedrange": True, **more}


def name_of(text: str, most: int = 40, *, start: bool = False) -> str:
    """A text as a label of at most so many characters: the end of a path says most, so the start is cut; of a title (`start`) the
    end.

    plotly reads a little HTML and `$` in texts, so both are taken out of their meaning.
    """
    part = text[: most * 4] if start else text[-most * 4 :]
    kept = "".join(" " if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} else c for c in part)
    flat = " ".join(kept.split())
    short = flat if len(flat) <= most else flat[: most - 1] + "…" if start else "…" + flat[-(most - 1) :]
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("$", "&#36;")
