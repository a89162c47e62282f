"""Pictures of evaluation and tuning: means, how a measure moves with a setting, two settings, queries won and lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from workbench.charts.layout import (
    BLUE,
    GREEN,
    GREY,
    LEGEND_ABOVE,
    MOST_POINTS,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    axis,
    dots,
    faint,
    figure,
    name_of,
    row_figure,
    upright,
)

if TYPE_CHECKING:
    import polars as pl

_MARKS = {"current": (ORANGE, "diamond", 12), "best": (GREEN, "star", 17), "default": (PURPLE, "circle", 22)}


def means_figure(means: Sequence[tuple[str, float, float | None, float | None]], *, height: int | None = None) -> Any:
    """A point a measure, with a bar from the low to the high end of its interval (None: it has none).

    The axis is from 0 to 1 where all of it is there, as measures are; differences have the axis that they need.
    """
    up = [0.0 if high is None else high - mean for _, mean, _, high in means]
    down = [0.0 if low is None else mean - low for _, mean, low, _ in means]
    trace = dots(
        [m[1] for m in means],
        [name_of(m[0]) for m in means],
        marker={"color": BLUE, "size": 10},
        error_x={"type": "data", "symmetric": False, "array": up, "arrayminus": down},
        customdata=[["no interval" if m[2] is None or m[3] is None else f"{m[2]:.3f} to {m[3]:.3f}"] for m in means],
        hovertemplate="%{y} %{x:.4f} (%{customdata[0]})<extra></extra>",
    )
    ends = [end for m in means for end in m[1:] if end is not None]
    along = {"range": [0, 1.02] if all(0 <= end <= 1 for end in ends) else None}
    return row_figure([trace], len(means), height, along, room=34)


def sensitivity_figure(
    frame: pl.DataFrame, field: str, measure: str, beside: pl.DataFrame | None = None, *, height: int = 320
) -> Any:
    """A measure over one setting (`Sweep.sensitivity`): a line with the band of its 95 % intervals, and marks at the current,
    best and default value; those that are not on the curve (`Sweep.beside`) at their own figure.
    """
    column = "value" if frame["number"].null_count() else "number"
    x = frame[column].to_list()
    low, high = (frame[end].fill_null(frame["mean"]).to_list() for end in ("low", "high"))
    shown = name_of(field) + " %{x}: %{y:.4f}<br>%{customdata[0]:.4f} to %{customdata[1]:.4f}<extra></extra>"
    band = {
        "mode": "lines",
        "fill": "toself",
        "fillcolor": faint(BLUE, 0.15),
        "line": {"width": 0},
        "hoverinfo": "skip",
    }
    line = {"mode": "lines+markers", "customdata": list(zip(low, high, strict=True)), "hovertemplate": shown}
    traces = [
        dots(x + x[::-1], high + low[::-1], name="95 % interval", showlegend=True, **band),
        dots(x, frame["mean"].to_list(), name=measure, line={"color": BLUE, "width": 2}, marker={"size": 6}, **line),
    ]
    marked = {w: [(r[column], r["mean"])] for r in frame.iter_rows(named=True) for w in r["marks"].split(",") if w}
    for row in () if beside is None else beside.iter_rows(named=True):
        marked[row["mark"]] = [(row[column], row["mean"])]
    for word, (colour, symbol, size) in _MARKS.items():
        xs, ys = ([point[i] for point in marked.get(word, ())] for i in (0, 1))
        marker = {"symbol": f"{symbol}-open", "size": size, "color": colour, "line": {"width": 3}}
        traces.append(dots(xs, ys, marker=marker, name=word, hoverinfo="skip", showlegend=True))
    across = axis(name_of(field))
    if column == "value":
        across["type"] = "category"
    elif len(x) > 2 and min(x) > 0 and max(x) / min(x) >= 30:
        across["type"] = "log"
    layout = {"showlegend": True, "legend": LEGEND_ABOVE, "margin": {"l": 8, "r": 8, "t": 30, "b": 8}}
    return figure(traces, height, xaxis=across, yaxis=axis(name_of(measure)), **layout)


def heat_figure(frame: pl.DataFrame, measure: str, *, height: int = 360) -> Any:
    """A measure over two settings (`Sweep.heat`): a map with the figures written in, darker is higher, the best cell framed."""
    first, second = frame.columns[:2]
    rows, columns = (list(dict.fromkeys(frame[c].to_list())) for c in (first, second))
    cells = {(a, b): mean for a, b, mean in frame.iter_rows()}
    z = [[cells.get((a, b)) for b in columns] for a in rows]
    trace: dict[str, Any] = {
        "type": "heatmap",
        "x": columns,
        "y": rows,
        "z": z,
        "colorscale": "Viridis",
        "reversescale": True,
        "colorbar": {"title": {"text": name_of(measure)}},
        "hovertemplate": f"{name_of(first)} %{{y}}, {name_of(second)} %{{x}}: %{{z:.4f}}<extra></extra>",
    }
    if len(rows) * len(columns) <= MOST_POINTS:
        trace["text"] = [["" if v is None else f"{v:.3f}" for v in line] for line in z]
        trace["texttemplate"] = "%{text}"
    shapes = []
    if cells:
        a, b = max(cells, key=lambda cell: cells[cell])
        r, c = rows.index(a), columns.index(b)
        line = {"color": VERMILION, "width": 3}
        shapes.append({"type": "rect", "x0": c - 0.5, "x1": c + 0.5, "y0": r - 0.5, "y1": r + 0.5, "line": line})
    across, up = (axis(name_of(name), type="category") for name in (second, first))
    return figure([trace], height, shapes=shapes, xaxis=across, yaxis=up)


def wins_figure(frame: pl.DataFrame, measure: str, names: tuple[str, str], *, height: int = 300) -> Any:
    """A bar a query (its id in `customdata`), the greatest gain first: above the line the second plan wins, below it the first.
    Ties are left out.
    """
    moved = [row for row in frame.iter_rows(named=True) if abs(row["difference"]) > 1e-12]
    won = sum(row["difference"] > 0 for row in moved)  # of all of them, before any bar is left out
    counts = f"queries: {won} better, {len(moved) - won} worse, {frame.height - len(moved)} equal"
    if len(moved) > MOST_POINTS:  # the ends say most
        moved = moved[: MOST_POINTS // 2] + moved[-MOST_POINTS // 2 :]
    trace = {
        "type": "bar",
        "x": list(range(1, len(moved) + 1)),
        "y": [row["difference"] for row in moved],
        "customdata": [
            [r["query_id"], name_of(r["query"] or r["query_id"], 70), r["first"], r["second"]] for r in moved
        ],
        "marker": {"color": [GREEN if row["difference"] > 0 else VERMILION for row in moved]},
        "hovertemplate": "%{customdata[1]}<br>%{customdata[2]:.3f} to %{customdata[3]:.3f}<extra></extra>",
    }
    side = f"{name_of(measure)}: {name_of(names[1], 24)}<br>minus {name_of(names[0], 24)}"  # upright: one line would be cut
    axes = {"xaxis": axis(counts, showticklabels=False), "yaxis": axis(side)}
    return figure([trace], height, bargap=0.05, clickmode="event+select", **axes)


def forest_figure(differences: Sequence[tuple[str, Any]], measure: str, baseline: str) -> Any:
    """Plans against a baseline (names and `Difference`s), the first on top: the mean difference with its 95 % interval, and the
    line of no difference. What is better is green, worse vermilion, not to be told grey.
    """
    hover = "%{customdata[3]}: %{customdata[1]:.4f}<br>%{x:+.4f} (%{customdata[0]}), p %{customdata[2]}<extra></extra>"
    traces = []
    for word, colour in (("better", GREEN), ("worse", VERMILION), ("no difference shown", GREY)):
        own = [(str(n), d) for n, (_, d) in enumerate(differences) if _word(d) == word]
        ends = [
            [0.0 if math.isnan(d.low) else abs(end - d.difference) for _, d in own for end in [getattr(d, side)]]
            for side in ("high", "low")
        ]
        bars = {"type": "data", "symmetric": False, "array": ends[0], "arrayminus": ends[1], "color": colour}
        shown = [
            [f"{d.low:+.3f} to {d.high:+.3f}", d.second_mean, f"{d.p:.3g}", name_of(differences[int(n)][0], 80)]
            for n, d in own
        ]
        traces.append(
            dots(
                [d.difference for _, d in own],
                [place for place, _ in own],
                name=word,
                marker={"color": colour, "size": 10},
                error_x=bars,
                customdata=shown,
                hovertemplate=hover,
            )
        )
    # Two lines each: on a phone one would leave the intervals no room.
    along = {"title": {"text": f"{name_of(measure)}<br>minus {name_of(baseline, 30)}"}, "zeroline": False}
    made = row_figure([t for t in traces if t["x"]], len(differences), 110 + 34 * len(differences), along)
    places = [str(n) for n in range(len(differences))]  # of two plans the labels may be cut to the same
    names = {"tickvals": places, "ticktext": ["<br>".join(wrap(name_of(name, 48), 25)) for name, _ in differences]}
    rows = {"categoryorder": "array", "categoryarray": places, **names}
    return made.update_layout(shapes=[upright(0.0, GREY)], yaxis=rows)


def _word(d: Any) -> str:
    return "no difference shown" if not d.significant else "better" if d.difference > 0 else "worse"


def history_figure(frame: pl.DataFrame, measure: str, *, height: int = 320) -> Any:
    """A measure over time (rows of `Corpus.measured` with that measure): a line a plan, and a dotted line where another
    generation answers from there on.
    """
    colours = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
    traces = []
    for n, (plan, filters) in enumerate(dict.fromkeys(zip(frame["plan"], frame["filters"], strict=True))):
        own = frame.filter(plan=plan, filters=filters).tail(MOST_POINTS)
        customdata = list(zip(own["generation"], own["kind"], own["low"], own["high"], own["queries"], strict=True))
        look: dict[str, Any] = {
            "mode": "lines+markers",
            "line": {"color": colours[n % len(colours)]},
            "showlegend": True,
        }
        hover = "%{y:.4f} (%{customdata[2]:.3f} to %{customdata[3]:.3f}) on %{customdata[4]} queries<br>%{x}, %{customdata[1]}, "
        look |= {"customdata": customdata, "hovertemplate": f"{hover}generation %{{customdata[0]}}<extra></extra>"}
        name = name_of(plan + (f" where {filters}" if filters else ""))
        traces.append(dots([at.isoformat() for at in own["at"]], own["mean"].to_list(), name=name, **look))
    pairs = zip(frame["at"], frame["generation"], frame["generation"].shift(1), strict=True)
    changes = [at.isoformat() for at, generation, before in pairs if before not in (None, generation)]
    shapes = [upright(at, GREY, "dot") for at in changes]
    layout = {"showlegend": True, "legend": LEGEND_ABOVE, "shapes": shapes, "margin": {"l": 8, "r": 8, "t": 30, "b": 8}}
    pad = max((frame["at"][-1] - frame["at"][0]) / 20, timedelta(minutes=30))  # one point alone has an axis of hours
    across = axis("", range=[(frame["at"][0] - pad).isoformat(), (frame["at"][-1] + pad).isoformat()])
    return figure(traces, height, xaxis=across, yaxis=axis(name_of(measure)), **layout)
