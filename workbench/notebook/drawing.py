"""A figure that stays on the page while what it shows changes.

A new figure at each move of a slider flickers and scrolls the notebook; here the traces of the one that is there take the
values of the next, in one message to the browser.
"""

from __future__ import annotations

from typing import Any

_CONFIG = {"displayModeBar": False, "responsive": True}


class Canvas:
    """A plotly FigureWidget that can be drawn again.

    Args:
        figure: What it shows first, as a function of `workbench.charts` makes it.
    """

    def __init__(self, figure: Any) -> None:
        import plotly.graph_objects as go

        self.widget = go.FigureWidget(figure)
        self.widget._config = dict(_CONFIG)

    def draw(self, figure: Any) -> None:
        """Show another figure in the same place: traces and layout take its values, and lose what it does not have."""
        new = figure.to_plotly_json()
        traces, widget = new["data"], self.widget
        kept = 0
        for old, trace in zip(widget.data, traces, strict=False):
            if old.type != trace["type"]:
                break
            kept += 1
        if kept < len(widget.data):
            widget.data = widget.data[:kept]
        with widget.batch_update():
            for old, trace in zip(widget.data, traces, strict=False):
                _become(old, trace, ("type", "uid"))
            _become(widget.layout, new["layout"], ("template",))
        if kept < len(traces):
            widget.add_traces(traces[kept:])


def _become(old: Any, new: dict[str, Any], left: tuple[str, ...]) -> None:
    """Give an object of plotly the properties of a dictionary, and take away those that it does not name."""
    had = old.to_plotly_json()
    for name in (*had, *(n for n in new if n not in had)):
        if name not in left and had.get(name) != new.get(name):
            old[name] = new.get(name)
