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
