"""How results moved between several searches of one query: snapshots, generations, plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.charts.layout import LEGEND_BELOW, figure, name_of
from workbench.charts.palette import BLUE, GREY, ORANGE
from workbench.charts.results import MOST_POINTS, RANK_TICKS, depth_of

_UP, _DOWN, _SAME = "goes up", "goes down", "stays"
_LINES = {_UP: (BLUE, "solid"), _DOWN: (ORANGE, "dash"), _SAME: (GREY, "solid")}


def change_figure(rows: Sequence[tuple[str, Sequence[int | None]]], names: Sequence[str], *, height: int = 420) -> Any:
    """Each result's rank in every list, joined by lines; rank 1 is on top.

    A result that a list lacks has no point there. A lone point is a result that moved in or out. Up is blue, down is orange
    and dashed, the same is grey.

    Args:
        rows: Name of a result, and its rank from 1 in each list (None: absent); as many as keep the picture under 200 points.
        names: The lists, in order.
        height: Pixels.
    """
    shown = list(rows)[: max(1, MOST_POINTS // (3 * len(names) - 2))]
    deepest = max((r for _, ranks in shown for r in ranks if r), default=5)
    even = max(10, min(deepest, 20))
    lines: dict[str, tuple[list[Any], list[Any]]] = {kind: ([], []) for kind in _LINES}
    points: tuple[list[str], list[float], list[list[str]]] = ([], [], [])
    beside = []
    for name, ranks in shown:
        label = name_of(name, 34)
        for at, rank in enumerate(ranks):
            if rank is None:
                continue
            points[0].append(names[at])
            points[1].append(depth_of(rank, even))
            points[2].append([label, str(rank)])
            after = ranks[at + 1] if at + 1 < len(ranks) else None
            if after is not None:
                kind = _UP if after < rank else _DOWN if after > rank else _SAME
                lines[kind][0].extend([names[at], names[at + 1], None])
                lines[kind][1].extend([depth_of(rank, even), depth_of(after, even), None])
        last = max((at for at, rank in enumerate(ranks) if rank is not None), default=None)
        if last is not None:
            beside.append(
                {
                    "x": names[last], "y": depth_of(ranks[last] or 1, even), "text": label, "showarrow": False,
                    "xanchor": "left", "xshift": 10,
                }
            )  # fmt: skip
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "lines", "x": xs, "y": ys, "name": kind, "hoverinfo": "skip",
            "line": {"color": _LINES[kind][0], "dash": _LINES[kind][1], "width": 2},
        }
        for kind, (xs, ys) in lines.items()
        if xs
    ]  # fmt: skip
    traces.append(
        {
            "type": "scatter", "mode": "markers", "x": points[0], "y": points[1], "customdata": points[2],
            "marker": {"size": 9, "color": GREY}, "showlegend": False,
            "hovertemplate": "%{customdata[0]}<br>rank %{customdata[1]} in %{x}<extra></extra>",
        }
    )  # fmt: skip
    ticks = [t for t in RANK_TICKS if t <= max(deepest, even)]
    return figure(
        traces,
        height=height,
        hovermode="closest",
        showlegend=True,
        legend=LEGEND_BELOW,
        xaxis={"type": "category", "categoryarray": list(names), "side": "top", "fixedrange": True, "showgrid": False},
        yaxis={
            "autorange": "reversed", "fixedrange": True, "zeroline": False, "title": {"text": "rank"},
            "tickvals": [depth_of(t, even) for t in ticks], "ticktext": [str(t) for t in ticks],
        },
        annotations=beside,
        margin={"l": 8, "r": 220, "t": 8, "b": 8},
    )  # fmt: skip
