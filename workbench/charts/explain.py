"""Pictures that explain one search: how ranks moved, what adds up to each score, and where the line of equal score lies.

They read `Place` records, one a fused candidate in the final order, so the table under the pictures shows the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.charts.layout import LEGEND_ABOVE, LEGEND_BELOW, figure, name_of, row_figure
from workbench.charts.palette import BLUE, CUT, GREY, LABELS, ORANGE, PURPLE, source_colour
from workbench.charts.place import Place
from workbench.charts.results import MOST_POINTS, RANK_TICKS, depth_of
from workbench.ranking.candidates import Column
from workbench.ranking.fuse import Fused
from workbench.records import Label

LINE_POINTS = 40
PLANE_POINTS = MOST_POINTS - LINE_POINTS
"""Candidates that `plane_figure` draws."""
ADDITIVE = ("rrf", "weighted", "convex")
"""Fusion methods whose score is a sum of what each source says alone: for these there is a line of equal score."""

FUSED, RERANKED, ABSENT = "fused", "reranked", "absent"
_UP, _DOWN, _SAME = "up", "down", "same"
_LINES: Mapping[str, dict[str, Any]] = {
    _UP: {"color": BLUE, "width": 2, "dash": "solid"},
    _DOWN: {"color": ORANGE, "width": 2, "dash": "dash"},
    _SAME: {"color": GREY, "width": 2, "dash": "solid"},
    ABSENT: {"color": GREY, "width": 1, "dash": "dot"},
}
_GRADES = {0: "x", 1: "triangle-up", 2: "square", 3: "star"}


def most_places(sources: int, reranked: bool = False) -> int:
    """How many places a bump chart of so many sources can draw with `MOST_POINTS` points."""
    columns = sources + 1 + reranked
    return max(1, MOST_POINTS // (columns + 2 * (columns - 1)))


def bump_figure(shown: Sequence[Place], sources: Sequence[str], *, reranked: bool = False, height: int = 380) -> Any:
    """Each place's rank in every source, in the fused list and after reranking, joined by lines; rank 1 is on top.

    A line that goes up to the right is blue, one that goes down is orange and dashed, one that stays is grey. A source that
    did not retrieve a place has its cross in the row `absent`, and a thin dotted line leads from there.

    Args:
        shown: Places in the final order; as many as keep the picture under 200 points.
        sources: The sources, in order.
        reranked: Draw the order after reranking too.
        height: Pixels.
    """
    columns = [*sources, FUSED, *([RERANKED] if reranked else [])]
    shown = list(shown)[: most_places(len(sources), reranked)]
    rows = [[*(p.ranks.get(s) for s in sources), p.fused_rank, *([p.rank] if reranked else [])] for p in shown]
    known = [r for row in rows for r in row if r is not None]
    even, deepest = max(len(shown), 5), max(known, default=1)
    floor = depth_of(max(deepest, even), even) + max(1.5, even * 0.08)
    height_of = [[floor if r is None else depth_of(r, even) for r in row] for row in rows]
    traces = [*_moves(columns, rows, height_of), *_stops(shown, columns, rows, height_of)]
    ticks = [t for t in RANK_TICKS if t <= max(deepest, even)]
    absent = any(r is None for row in rows for r in row)
    return figure(
        traces,
        height=height,
        hovermode="closest",
        showlegend=True,
        legend=LEGEND_BELOW,
        xaxis={"type": "category", "categoryarray": columns, "side": "top", "fixedrange": True, "showgrid": False,
               "autorange": False, "range": [-0.12, len(columns) - 0.88]},
        yaxis={
            "fixedrange": True, "zeroline": False, "autorange": False, "range": [floor + 0.7, 0.4],
            "title": {"text": "rank"},
            "tickvals": [depth_of(t, even) for t in ticks] + ([floor] if absent else []),
            "ticktext": [str(t) for t in ticks] + ([ABSENT] if absent else []),
        },
        annotations=[_beside(p, columns[-1], heights[-1]) for p, heights in zip(shown, height_of, strict=True)]
        if len(shown) <= 24
        else [],
        margin={"l": 8, "r": 170, "t": 8, "b": 8},
    )  # fmt: skip


def _moves(
    columns: Sequence[str], rows: Sequence[Sequence[int | None]], height_of: Sequence[Sequence[float]]
) -> list[dict[str, Any]]:
    """A trace for each way to move that occurs: the lines from column to column; none between two crosses."""
    lines: dict[str, tuple[list[Any], list[Any]]] = {kind: ([], []) for kind in _LINES}
    for row, heights in zip(rows, height_of, strict=True):
        for at in range(len(columns) - 1):
            if row[at] is None and row[at + 1] is None:
                continue
            xs, ys = lines[_direction(row[at], row[at + 1])]
            xs += [columns[at], columns[at + 1], None]
            ys += [heights[at], heights[at + 1], None]
    return [
        {"type": "scatter", "mode": "lines", "x": xs, "y": ys, "line": _LINES[kind], "name": _SAID[kind], "hoverinfo": "skip"}
        for kind, (xs, ys) in lines.items()
        if xs
    ]  # fmt: skip


def _stops(
    shown: Sequence[Place],
    columns: Sequence[str],
    rows: Sequence[Sequence[int | None]],
    height_of: Sequence[Sequence[float]],
) -> list[dict[str, Any]]:
    """A trace for each label that occurs: a point where a place has a rank, a cross where it is absent."""
    traces = []
    for label in Label:
        points = [(c, i) for i, p in enumerate(shown) if p.label is label for c in range(len(columns))]
        if not points:
            continue
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [columns[c] for c, _ in points],
                "y": [height_of[i][c] for c, i in points],
                "customdata": [
                    [ABSENT if rows[i][c] is None else f"rank {rows[i][c]:,}", name_of(shown[i].name)]
                    for c, i in points
                ],
                "marker": {
                    "color": [GREY if rows[i][c] is None else LABELS[label] for c, i in points],
                    "symbol": ["x-thin-open" if rows[i][c] is None else "circle" for c, i in points],
                    "size": 8,
                },
                "name": str(label),
                "showlegend": False,
                "hovertemplate": "%{customdata[1]}<br>%{customdata[0]} in %{x}<extra></extra>",
            }
        )
    return traces


_SAID = {_UP: "goes up", _DOWN: "goes down", _SAME: "stays", ABSENT: "was absent"}


def _direction(one: int | None, other: int | None) -> str:
    if one is None or other is None:
        return ABSENT
    return _UP if other < one else _DOWN if other > one else _SAME


def _beside(place: Place, column: str, height: float) -> dict[str, Any]:
    return {
        "x": column, "y": height, "text": name_of(place.name, 25), "showarrow": False, "xanchor": "left", "xshift": 10,
    }  # fmt: skip


def contribution_figure(shown: Sequence[Place], sources: Sequence[str], *, height: int | None = None) -> Any:
    """What each source added to each score, stacked, and a diamond at the score: the stack ends there.

    Where a contribution is negative (z-scores) its bar goes left from 0, and the diamond stands at the sum.

    Args:
        shown: Places, best first; as many as keep the picture under 200 points.
        sources: The sources, in order.
        height: Pixels; by default what the number of bars needs.
    """
    shown = list(shown)[: max(1, MOST_POINTS // (len(sources) + 1))]
    names = [f"{p.rank}. {name_of(p.name, 28)}" for p in shown]
    traces: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "x": [p.contributions.get(source, 0.0) for p in shown],
            "y": names,
            "customdata": [repr(p.contributions.get(source, 0.0)) for p in shown],
            "name": source,
            "marker": {"color": source_colour(source)},
            "hovertemplate": f"{name_of(source)} added %{{customdata}}<extra></extra>",
        }
        for source in sources
    ]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": [p.score for p in shown],
            "y": names,
            "customdata": [repr(p.score) for p in shown],
            "name": "score",
            "marker": {"symbol": "diamond-open", "size": 9, "color": PURPLE, "line": {"width": 2}},
            "hovertemplate": "score %{customdata}<extra></extra>",
        }
    )
    return row_figure(traces, len(shown), along={"title": {"text": "contribution to the score"}}, height=height)


def iso_line(
    fused: Fused, scores: tuple[Column, Column], score: float, across: tuple[float, float]
) -> tuple[list[float], list[float]]:
    """Where a candidate of two sources would have a given fused score: points from left to right.

    What a source adds is taken as a function of its raw score, read off the candidates (exact for linear normalisations,
    the slopes of a staircase for ranks), so the line turns with alpha and the weights whatever the normalisation is.

    Args:
        fused: A list fused by one of `ADDITIVE`.
        scores: Two of its sources' columns, with computed scores where there are some.
        score: The fused score; what other sources add is taken as 0.
        across: The raw scores of x between which the line is drawn.

    Returns:
        Raw scores of x, and of y; empty where a source has fewer than two different scores, or adds nothing.
    """
    gains = [_gain(fused, column) for column in scores]
    if any(len(known) < 2 for known, _ in gains):
        return [], []
    (x_scores, x_gains), (y_scores, y_gains) = gains
    if y_gains[-1] - y_gains[0] <= 0:
        # The other source decides nothing: the line is upright, where x alone gives the score.
        if x_gains[-1] - x_gains[0] <= 0 or not x_gains[0] <= score <= x_gains[-1]:
            return [], []
        at = float(np.interp(score, x_gains, x_scores))
        return [at, at], [float(y_scores[0]), float(y_scores[-1])]
    grid = np.linspace(*across, LINE_POINTS)
    wanted = score - np.interp(grid, x_scores, x_gains)
    inside = (wanted >= y_gains[0]) & (wanted <= y_gains[-1])
    return grid[inside].tolist(), np.interp(wanted[inside], y_gains, y_scores).tolist()


def _gain(fused: Fused, column: Column) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Raw scores of a source, rising, each once, with what they added (made never to fall).

    Rows that the source did not retrieve count with their computed score: what that adds is 0, or filled in.
    """
    record = fused.records[column.source]
    raw = _raw(column)[np.where(record >= 0, record, fused.rows)]
    known = ~np.isnan(raw)
    values, inverse = np.unique(raw[known], return_inverse=True)
    most = np.full(len(values), -np.inf)
    np.maximum.at(most, inverse, fused.contributions[column.source][known])
    return values, np.maximum.accumulate(most)


def _raw(column: Column) -> NDArray[np.float64]:
    """Raw score of every row: what the source said, else what it computes; NaN where it cannot."""
    return np.where(np.isnan(column.score), column.computed, column.score)


def plane_figure(
    fused: Fused,
    scores: tuple[Column, Column],
    *,
    last: int,
    additive: bool = True,
    grades: Mapping[str, int] | None = None,
    height: int = 400,
) -> Any:
    """Candidates by their raw scores in two sources, judged ones marked, and the line of equal fused score.

    The line goes through the score of the last result: what lies beyond it is in the result, as far as these two sources
    decide.

    Args:
        fused: A fused ranking; its first candidates are drawn, with the line at most 200 points.
        scores: The two sources' columns with computed scores, aligned with the ranking's rows.
        last: Number of results, from 1; the line goes through the score of that one.
        additive: Whether the fusion method has such a line.
        grades: Chunk id -> grade of judged candidates.
        height: Pixels.
    """
    rows, judged = fused.rows[:PLANE_POINTS], grades or {}
    x, y = (_raw(c)[rows] for c in scores)
    known = ~(np.isnan(x) | np.isnan(y))
    traces: list[dict[str, Any]] = []
    for label in Label:
        at = [i for i in np.flatnonzero(known).tolist() if fused.labels[i] is label]
        if at:
            traces.append(_points(fused, rows, x, y, at, label, judged, last))
    names = (scores[0].source, scores[1].source)
    if additive and len(fused) and known.any() and all(n in fused.ranks for n in names):
        target = float(fused.scores[min(last, len(fused)) - 1])
        across = (float(x[known].min()), float(x[known].max()))
        xs, ys = iso_line(fused, scores, target, across)
        if xs:
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": xs,
                    "y": ys,
                    "name": f"score of result {min(last, len(fused))}",
                    "line": {"color": CUT, "width": 2, "dash": "dash"},
                    "hovertemplate": f"fused score {target:.4g}<extra></extra>",
                }
            )
    return figure(
        traces,
        height=height,
        hovermode="closest",
        showlegend=True,
        legend=LEGEND_ABOVE,
        xaxis={"fixedrange": True, "zeroline": False, "title": {"text": f"{name_of(names[0])} score (BM25)"}},
        yaxis={"fixedrange": True, "zeroline": False, "title": {"text": f"{name_of(names[1])} similarity (cosine)"}},
    )


def _points(
    fused: Fused,
    rows: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    at: Sequence[int],
    label: Label,
    judged: Mapping[str, int],
    last: int,
) -> dict[str, Any]:
    """One label's candidates: results filled and large, others open; a judged one has its grade's shape and a black rim."""
    grades = [judged.get(fused.chunk_ids[i]) for i in at]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x[at].tolist(),
        "y": y[at].tolist(),
        "customdata": [
            [i + 1, name_of(fused.candidates.paths[int(rows[i])]), "" if g is None else f", grade {g}"]
            for i, g in zip(at, grades, strict=True)
        ],
        "name": str(label),
        "marker": {
            "symbol": [
                (_GRADES.get(g, "star") if g is not None else "circle") + ("" if i < last else "-open")
                for i, g in zip(at, grades, strict=True)
            ],
            "color": LABELS[label],
            "size": [15 if g is not None else 11 if i < last else 7 for i, g in zip(at, grades, strict=True)],
            "line": {"width": [2 if g is not None else 1 for g in grades], "color": GREY},
        },
        "hovertemplate": "rank %{customdata[0]}: %{customdata[1]}%{customdata[2]}<extra></extra>",
    }
