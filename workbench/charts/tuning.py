"""Pictures of tuning: how a figure moves with a setting, two settings, queries won and lost, scores by relevance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.charts.layout import figure, name_of
from workbench.charts.palette import BLUE, CUT, GREEN, GREY, ORANGE, PURPLE, VERMILION

if TYPE_CHECKING:
    import polars as pl

MOST_BARS = 200
_MARKS = {"current": (ORANGE, "diamond", 12), "best": (GREEN, "star", 17), "default": (PURPLE, "circle", 22)}


def sensitivity_figure(
    frame: pl.DataFrame, field: str, measure: str, beside: pl.DataFrame | None = None, *, height: int = 320
) -> Any:
    """A measure over one setting: a line with the band of its 95 % intervals, and marks at the current, best and default value.

    Args:
        frame: `Sweep.sensitivity`: value, number, mean, low, high, marks.
        field: The setting's name, for the axis.
        measure: The measure's name, for the axis.
        beside: `Sweep.beside`: the plans that are not on the curve, each marked at its own figure.
        height: Pixels.
    """
    column = "value" if frame["number"].null_count() else "number"
    numeric = column == "number"
    x = frame[column].to_list()
    low, high = frame["low"].fill_null(frame["mean"]).to_list(), frame["high"].fill_null(frame["mean"]).to_list()
    band = {
        "type": "scatter", "mode": "lines", "x": x + x[::-1], "y": high + low[::-1], "fill": "toself",
        "fillcolor": "rgba(0,114,178,0.15)", "line": {"width": 0}, "hoverinfo": "skip", "name": "95 % interval",
        "showlegend": True,
    }  # fmt: skip
    line = {
        "type": "scatter", "mode": "lines+markers", "x": x, "y": frame["mean"].to_list(), "name": measure,
        "customdata": list(zip(low, high, strict=True)), "line": {"color": BLUE, "width": 2}, "marker": {"size": 6},
        "hovertemplate": name_of(field) + " %{x}: %{y:.4f}<br>%{customdata[0]:.4f} to %{customdata[1]:.4f}<extra></extra>",
    }  # fmt: skip
    traces: list[dict[str, Any]] = [band, line]
    marked = {w: [(r[column], r["mean"])] for r in frame.iter_rows(named=True) for w in r["marks"].split(",") if w}
    for row in () if beside is None else beside.iter_rows(named=True):
        marked[row["mark"]] = [(row[column], row["mean"])]
    for word, (colour, symbol, size) in _MARKS.items():
        traces.append(
            {
                "type": "scatter", "mode": "markers", "x": [at for at, _ in marked.get(word, ())],
                "y": [mean for _, mean in marked.get(word, ())],
                "marker": {"symbol": f"{symbol}-open", "size": size, "color": colour, "line": {"width": 3}}, "name": word,
                "hoverinfo": "skip", "showlegend": True,
            }
        )  # fmt: skip
    axis: dict[str, Any] = {"title": {"text": name_of(field)}, "fixedrange": True}
    if numeric and len(x) > 2 and min(x) > 0 and max(x) / min(x) >= 30:
        axis["type"] = "log"
    elif not numeric:
        axis["type"] = "category"
    return figure(
        traces, height=height, showlegend=True, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"}, xaxis=axis,
        yaxis={"title": {"text": name_of(measure)}, "fixedrange": True}, margin={"l": 8, "r": 8, "t": 30, "b": 8},
    )  # fmt: skip


def heat_figure(frame: pl.DataFrame, measure: str, *, height: int = 360) -> Any:
    """A measure over two settings: a map with the figures written in, darker is higher, the best cell framed.

    Args:
        frame: `Sweep.heat`: two settings (text) and mean.
        measure: The measure's name.
        height: Pixels.
    """
    first, second = frame.columns[:2]
    rows, columns = (list(dict.fromkeys(frame[c].to_list())) for c in (first, second))
    cells = {(a, b): mean for a, b, mean in frame.iter_rows()}
    z = [[cells.get((a, b)) for b in columns] for a in rows]
    few = len(rows) * len(columns) <= MOST_BARS
    trace = {
        "type": "heatmap", "x": columns, "y": rows, "z": z, "colorscale": "Viridis", "reversescale": True,
        "colorbar": {"title": {"text": name_of(measure)}},
        "hovertemplate": f"{name_of(first)} %{{y}}, {name_of(second)} %{{x}}: %{{z:.4f}}<extra></extra>",
        **({"text": [["" if v is None else f"{v:.3f}" for v in line] for line in z], "texttemplate": "%{text}"} if few else {}),
    }  # fmt: skip
    shapes = []
    if cells:
        a, b = max(cells, key=lambda cell: cells[cell])
        r, c = rows.index(a), columns.index(b)
        line = {"color": VERMILION, "width": 3}
        shapes.append({"type": "rect", "x0": c - 0.5, "x1": c + 0.5, "y0": r - 0.5, "y1": r + 0.5, "line": line})
    return figure(
        [trace], height=height, shapes=shapes,
        xaxis={"type": "category", "title": {"text": name_of(second)}, "fixedrange": True},
        yaxis={"type": "category", "title": {"text": name_of(first)}, "fixedrange": True},
    )  # fmt: skip


def wins_figure(frame: pl.DataFrame, measure: str, names: tuple[str, str], *, height: int = 300) -> Any:
    """A bar a query, the greatest gain first: above the line the second plan wins, below it the first. Ties are left out.

    Args:
        frame: `differing.wins`: query_id, query, first, second, difference; the bars' ids are in `customdata`.
        measure: The measure's name.
        names: The two plans.
        height: Pixels.
    """
    moved = [row for row in frame.iter_rows(named=True) if abs(row["difference"]) > 1e-12]
    ties = frame.height - len(moved)
    won = sum(row["difference"] > 0 for row in moved)  # of all of them, before any bar is left out
    lost = len(moved) - won
    if len(moved) > MOST_BARS:  # the ends say most
        moved = moved[: MOST_BARS // 2] + moved[-MOST_BARS // 2 :]
    trace = {
        "type": "bar",
        "x": list(range(1, len(moved) + 1)),
        "y": [row["difference"] for row in moved],
        "customdata": [
            [row["query_id"], name_of(row["query"] or row["query_id"], 70), row["first"], row["second"]]
            for row in moved
        ],
        "marker": {"color": [GREEN if row["difference"] > 0 else VERMILION for row in moved]},
        "hovertemplate": "%{customdata[1]}<br>%{customdata[2]:.3f} to %{customdata[3]:.3f}<extra></extra>",
    }
    side = f"{name_of(measure)}: {name_of(names[1], 24)}<br>minus {name_of(names[0], 24)}"  # upright: one line would be cut
    said = f"queries: {won} better, {lost} worse, {ties} equal"
    return figure(
        [trace], height=height, bargap=0.05, clickmode="event+select",
        xaxis={"title": {"text": said}, "showticklabels": False, "fixedrange": True},
        yaxis={"title": {"text": side}, "fixedrange": True},
    )  # fmt: skip


def distribution_figure(
    frame: pl.DataFrame, axis: str, threshold: float | None = None, now: float | None = None, *, height: int = 260
) -> Any:
    """Relevant candidates against the others, each as a share of its own kind, with thresholds drawn in.

    Args:
        frame: `Distribution.frame`: low, high, relevant, not_relevant, unjudged.
        axis: What the values are.
        threshold: Where to draw the cut, dashed; None draws none.
        now: Where the plan cuts now, dotted and grey; None draws none.
        height: Pixels.
    """
    middles = ((frame["low"] + frame["high"]) / 2).round(4).to_list()
    rest = frame["not_relevant"] + frame["unjudged"]
    traces = []
    for name, counts, colour in (("relevant", frame["relevant"], GREEN), ("all others", rest, GREY)):
        total = max(int(counts.sum()), 1)
        traces.append(
            {
                "type": "bar", "x": middles, "y": (counts / total).to_list(), "name": f"{name} ({int(counts.sum()):,})",
                "marker": {"color": colour}, "opacity": 0.65, "customdata": counts.to_list(),
                "hovertemplate": f"%{{customdata}} {name} near %{{x:.3f}}<extra></extra>",
            }
        )  # fmt: skip
    shapes, said = [], []
    for at, name, line in (
        (now, "now", {"color": GREY, "width": 2, "dash": "dot"}),
        (threshold, "proposed", {"color": CUT, "width": 2, "dash": "dash"}),
    ):
        if at is None:
            continue
        shapes.append({"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": line})
        right = name == "proposed" if now is None or threshold is None else (at >= max(now, threshold))
        said.append(
            {
                "x": at, "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False, "text": f"{name} {at:.4g}",
                "xanchor": "left" if right else "right", "xshift": 4 if right else -4, "font": {"color": line["color"]},
            }
        )  # fmt: skip
    return figure(
        traces, height=height, barmode="overlay", bargap=0, showlegend=True, shapes=shapes, annotations=said,
        legend={"orientation": "h", "y": 1.1, "yanchor": "bottom"}, margin={"l": 8, "r": 8, "t": 48, "b": 8},
        xaxis={"title": {"text": axis}, "fixedrange": True}, yaxis={"title": {"text": "share of its kind"}, "fixedrange": True},
    )  # fmt: skip
