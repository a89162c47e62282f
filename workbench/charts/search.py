"""Pictures of one search: how ranks moved, what each source added, score against score, the funnel, what took the time.

The bump charts of results, of candidates and of several snapshots are one picture with one coding: a line that goes up to the
right is blue, one that goes down is orange and dashed, one that stays is grey, and a thin dotted one leads from `absent`; points
have the colour of their source. A document that somebody looks for is drawn and named in vermilion in every picture.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.charts.layout import (
    BLUE,
    CUT,
    GREY,
    LABELS,
    LEGEND_ABOVE,
    LEGEND_BELOW,
    MOST_POINTS,
    ORANGE,
    PURPLE,
    axis,
    dots,
    faint,
    figure,
    lying,
    name_of,
    row_figure,
    source_colour,
)
from workbench.ranking.candidates import Column, Floats, Ints
from workbench.ranking.fuse import Fused
from workbench.records import FEEDBACK, Hit, Label, Step

LINE_POINTS = 40
PLANE_POINTS = MOST_POINTS - LINE_POINTS
"""Candidates that `plane_figure` draws."""
ADDITIVE = ("rrf", "weighted", "convex")
"""Fusion methods whose score is a sum of what each source says alone: for these there is a line of equal score."""
FUSED, RERANKED, ABSENT, RESULT = "fused", "reranked", "absent", "result"
_TICKS = (1, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000)
_LINES: Mapping[str, dict[str, Any]] = {
    "goes up": {"color": BLUE, "width": 2, "dash": "solid"},
    "goes down": {"color": ORANGE, "width": 2, "dash": "dash"},
    "stays": {"color": GREY, "width": 2, "dash": "solid"},
    "was absent": {"color": GREY, "width": 1, "dash": "dot"},
}
_SYMBOLS = {Label.EXACT: "square", Label.SEMANTIC: "circle", Label.HYBRID: "diamond", Label.STRONGEST: "star"}
_GRADES = {0: "x", 1: "triangle-up", 2: "square", 3: "star"}
EMBED = "embed_ms"
_PATTERNS = {EMBED: "/", "filter_ms": ".", "fusion_ms": "x", "rerank_ms": "\\", "rewrite_ms": "+"}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One fused candidate as the pictures of a search read it.

    Attributes:
        rank: In the final order, from 1; 0 where it is not in it.
        fused_rank: In the fused order before dedupe and reranking, from 1; None where no source retrieved it.
        name: Path and first line.
        chunk_id, path: The chunk.
        label: Which kinds of source retrieved it.
        ranks: Source -> the rank that counted, from 1, only sources that retrieved it.
        scores: Source -> raw score at that rank.
        contributions: Source -> what it added, every source.
        score: The `math.fsum` of the contributions.
        rerank: A reranking model's score, or None.
        counted: Source -> first line of the chunk whose rank counted, only where it is not the shown chunk.
        target: Whether it is the one that somebody looks for.
    """

    rank: int
    fused_rank: int | None
    name: str
    chunk_id: str
    path: str
    label: Label
    ranks: Mapping[str, int]
    scores: Mapping[str, float]
    contributions: Mapping[str, float]
    score: float
    rerank: float | None = None
    counted: Mapping[str, int] = field(default_factory=dict)
    target: bool = False


def places(
    fused: Fused, order: Ints, most: int, rerank: Mapping[int, float] | None = None, target: str = ""
) -> tuple[Candidate, ...]:
    """The first `most` of the final order (int64 positions in the fused list), and the chunk `target` where it comes after them;
    `rerank` has scores by position.
    """
    made, candidates = [], fused.candidates
    for rank, position in enumerate(order.tolist(), 1):
        if rank > most and fused.chunk_ids[position] != target:
            continue
        row, evidence = int(fused.rows[position]), fused.evidence(position)
        made.append(
            Candidate(
                rank,
                position + 1,
                f"{candidates.paths[row]}:{int(candidates.start_lines[row])}",
                fused.chunk_ids[position],
                candidates.paths[row],
                fused.labels[position],
                {source: there for source, (there, _) in evidence.items()},
                {s: float(candidates.column(s).counting[at]) for s, (_, at) in evidence.items()},
                {s: float(c[position]) for s, c in fused.contributions.items()},
                float(fused.scores[position]),
                (rerank or {}).get(position),
                {s: int(candidates.start_lines[at]) for s, (_, at) in evidence.items() if at != row},
                fused.chunk_ids[position] == target,
            )
        )
    return tuple(made)


TARGET_MARK = "▸ "


def _named(p: Candidate, most: int = 40) -> str:
    return (TARGET_MARK if p.target else "") + name_of(p.name, most)


# --- bump charts ----------------------------------------------------------------------------------------------------------


def most_places(sources: int, reranked: bool = False) -> int:
    """How many places a bump chart of so many sources can draw with `MOST_POINTS` points."""
    columns = sources + 1 + reranked
    return max(1, MOST_POINTS // (columns + 2 * (columns - 1)))


def bump_figure(
    shown: Sequence[Candidate], sources: Sequence[str], *, reranked: bool = False, height: int = 380
) -> Any:
    """Each candidate's rank in every source, in the fused list and after reranking, joined by lines; rank 1 is on top. As many
    candidates as keep the picture under 200 points.
    """
    columns = [*sources, FUSED, *([RERANKED] if reranked else [])]
    shown = [p for n, p in enumerate(shown) if n < most_places(len(sources), reranked) or p.target]
    rows = [[*(p.ranks.get(s) for s in sources), p.fused_rank, *([p.rank or None] if reranked else [])] for p in shown]
    scores = [[*(p.scores.get(s) for s in sources), p.score, p.rerank] for p in shown]
    names, beside = ([_named(p, most) for p in shown] for most in (40, 36))
    targets = [n for n, p in enumerate(shown) if p.target]
    return _bumps(columns, rows, names, beside, height, [p.label for p in shown], scores, targets=targets)


def rank_figure(hits: Sequence[Hit], sources: Sequence[str], *, height: int | None = None) -> Any:
    """The bump chart of results, best first: their ranks in every source and in the result."""
    shown = [h for h in hits if h.rank][: most_places(len(sources))]
    rows = [[*(h.ranks.get(s) for s in sources), h.rank] for h in shown]
    scores = [[*(h.scores.get(s) for s in sources), h.score] for h in shown]
    names, beside = (labels_of(shown, most) for most in (40, 36))
    where = [name_of(h.citation, 80) for h in shown]
    return _bumps([*sources, RESULT], rows, names, beside, height, [h.label for h in shown], scores, where)


def change_figure(rows: Sequence[tuple[str, Sequence[int | None]]], names: Sequence[str], *, height: int = 420) -> Any:
    """The bump chart of results in several lists, such as snapshots: name of a result, and its rank in each (None: absent)."""
    shown = list(rows)[: max(1, MOST_POINTS // (3 * len(names) - 2))]
    labels = [name_of(name, 36) for name, _ in shown]
    return _bumps(list(names), [ranks for _, ranks in shown], labels, labels, height, [None] * len(shown))


def _bumps(
    columns: list[str],
    rows: Sequence[Sequence[int | None]],
    names: Sequence[str],
    beside: Sequence[str],
    height: int | None,
    labels: Sequence[Label | None],
    scores: Sequence[Sequence[float | None]] = (),
    where: Sequence[str] = (),
    targets: Sequence[int] = (),
) -> Any:
    """Ranks from column to column.

    Ranks as deep as the rows are many have even distances; beyond them each doubling takes the same room, so that rank 400 is
    still in the picture. A place that a column lacks has its cross in the row `absent` at the bottom.

    Args:
        rows: Ranks by row and column.
        names, scores, where: Of each row, for who points at it; scores by column.
        beside: Short names, which are written beside the lines.
        labels: Each row's label, which is the shape of its points; None: a circle.
        targets: Rows that somebody looks for.
    """

    def hover(row: int, column: int) -> list[str]:
        rank, score = rows[row][column], scores[row][column] if scores else None
        about = [ABSENT if rank is None else f"rank {rank:,}", names[row]]
        return [*about, "" if score is None else f", score {score:.4g}", f"<br>{where[row]}" if where else ""]

    known = [rank for row in rows for rank in row if rank is not None]
    even, deepest = max(len(rows), 5), max(known, default=1)
    floor = depth_of(max(deepest, even), even) + max(1.5, even * 0.08)
    height = height or min(480, max(260, round(90 + 15 * floor)))  # names of neighbours do not touch
    depths = [[floor if r is None else depth_of(r, even) for r in row] for row in rows]
    lines: dict[str, tuple[list[Any], list[Any]]] = {kind: ([], []) for kind in _LINES}
    for row, heights in zip(rows, depths, strict=True):
        for at, (one, other) in enumerate(pairwise(row)):
            if one is not None or other is not None:
                xs, ys = lines[_direction(one, other)]
                xs += [columns[at], columns[at + 1], None]
                ys += [heights[at], heights[at + 1], None]
    traces = [
        dots(xs, ys, mode="lines", line=_LINES[kind], name=kind, hoverinfo="skip")
        for kind, (xs, ys) in lines.items()
        if xs
    ]
    for i in targets:
        line = {"color": CUT, "width": 4}
        traces.append(dots(columns, depths[i], mode="lines", line=line, name=names[i], hoverinfo="skip"))
    colours = [PURPLE if column in (FUSED, RERANKED, RESULT) else source_colour(column) for column in columns]
    for label in dict.fromkeys(labels):
        points = [(c, i) for i, own in enumerate(labels) if own is label for c in range(len(columns))]
        ranks = [rows[i][c] for c, i in points]
        marker = {
            "color": [GREY if rows[i][c] is None else colours[c] for c, i in points],
            "symbol": ["x-thin-open" if rank is None else _SYMBOLS.get(label, "circle") for rank in ranks],  # type: ignore[arg-type]
            "size": 8,
        }
        traces.append(
            dots(
                [columns[c] for c, _ in points],
                [depths[i][c] for c, i in points],
                customdata=[hover(i, c) for c, i in points],
                marker=marker,
                name=str(label or RESULT),
                showlegend=False,
                hovertemplate="%{customdata[1]}<br>%{customdata[0]} in %{x}%{customdata[2]}%{customdata[3]}<extra></extra>",
            )
        )
    ticks = [t for t in _TICKS if t <= max(deepest, even)]
    absent = [floor] if len(known) < sum(map(len, rows)) else []
    across = {"type": "category", "categoryarray": columns, "side": "top", "fixedrange": True, "showgrid": False}
    across |= {"autorange": False, "range": [-0.12, len(columns) - 0.88]}
    down = axis("rank", zeroline=False, autorange=False, range=[floor + 0.7, 0.4])
    down["tickvals"] = [depth_of(t, even) for t in ticks] + absent
    down["ticktext"] = [*map(str, ticks), *([ABSENT] if absent else [])]
    place: dict[str, Any] = {"showarrow": False, "xanchor": "left", "xshift": 10, "x": columns[-1]}
    named, sought = range(len(rows)) if len(rows) <= 24 else targets, {"font": {"color": CUT}}
    texts = [{**place, "y": depths[i][-1], "text": beside[i], **(sought if i in targets else {})} for i in named]
    layout: dict[str, Any] = {"showlegend": True, "legend": LEGEND_BELOW, "hovermode": "closest"}
    # Room for the names as they are, which are cut to 36 characters of some 6 pixels.
    layout["margin"] = {"l": 8, "r": 18 + 6.2 * max((len(beside[i]) for i in named), default=0), "t": 8, "b": 8}
    return figure(traces, height, xaxis=across, yaxis=down, annotations=texts, **layout)


def _direction(one: int | None, other: int | None) -> str:
    if one is None or other is None:
        return "was absent"
    return "goes up" if other < one else "goes down" if other > one else "stays"


def depth_of(rank: int, even: int) -> float:
    """Where a rank is drawn: evenly down to `even`, then a third of that room for each doubling."""
    return float(rank) if rank <= even else even * (1 + math.log2(rank / even) / 3)


def labels_of(hits: Sequence[Hit], most: int = 40) -> list[str]:
    """A label of about `most` characters for each hit: its title; where others have the same, with its section; where that
    is the same too, with its place. Results that even that leaves alike, as equal texts in two files are, go by the end of their
    citation.
    """
    titles = [h.title or h.path for h in hits]
    sections = [(title, h.section) for title, h in zip(titles, hits, strict=True)]
    once, apart = Counter(titles), Counter(sections)
    made = []
    for hit, title, section in zip(hits, titles, sections, strict=True):
        if once[title] == 1:
            made.append(name_of(title, most, start=bool(hit.title)))
            continue
        own = bool(hit.section) and hit.section != title and apart[section] == 1
        tail = name_of(hit.section if own else hit.citation[len(hit.path) :].lstrip("#:"), most * 3 // 5)
        made.append(f"{name_of(title, max(8, most - 3 - len(tail)), start=bool(hit.title))} · {tail}")
    alike = Counter(made)
    ends = [h.citation if len(h.citation) <= most else "…" + h.citation[1 - most :] for h in hits]
    return [label if alike[label] == 1 else name_of(end, most) for label, end in zip(made, ends, strict=True)]


# --- contributions --------------------------------------------------------------------------------------------------------


def share_figure(hits: Sequence[Hit], sources: Sequence[str], *, height: int | None = None) -> Any:
    """What each source added to each result's score, stacked; a bar's length is the score."""
    shown = [h for h in hits if h.rank][: max(1, MOST_POINTS // max(len(sources), 1))]
    names = [f"{h.rank}. {name}" for h, name in zip(shown, labels_of(shown, 30), strict=True)]
    return row_figure(_stacks([h.contributions for h in shown], names, sources), len(shown), height, _ADDED)


def contribution_figure(shown: Sequence[Candidate], sources: Sequence[str], *, height: int | None = None) -> Any:
    """What each source added to each score, stacked, and a diamond at the score: the stack ends there.

    Where a contribution is negative (z-scores) its bar goes left from 0, and the diamond is at the sum.
    """
    most = max(1, MOST_POINTS // (len(sources) + 1))
    shown = [p for n, p in enumerate(shown) if n < most or p.target]
    names = [f"{p.rank or '–'}. {_named(p, 28)}" for p in shown]
    traces = _stacks([p.contributions for p in shown], names, sources)
    colours = [CUT if p.target else PURPLE for p in shown]
    diamond = {"symbol": "diamond-open", "size": 9, "color": colours, "line": {"width": 2}}
    more = {"customdata": [repr(p.score) for p in shown], "hovertemplate": "score %{customdata}<extra></extra>"}
    traces.append(dots([p.score for p in shown], names, name="score", marker=diamond, **more))
    return row_figure(traces, len(shown), height, _ADDED)


_ADDED = {"title": {"text": "contribution to the score"}}


def _stacks(rows: Sequence[Mapping[str, float]], names: list[str], sources: Sequence[str]) -> list[dict[str, Any]]:
    traces = []
    for source in (*sources, *([FEEDBACK] if any(FEEDBACK in row for row in rows) else [])):
        values = [row.get(source, 0.0) for row in rows]
        more = {"name": source, "marker": {"color": source_colour(source)}, "customdata": list(map(repr, values))}
        hover = f"{name_of(source)} added %{{customdata}}<extra></extra>"
        traces.append(lying(values, names, hovertemplate=hover, **more))
    return traces


# --- score against score --------------------------------------------------------------------------------------------------


def score_figure(fused: Fused, x: str, y: str, *, height: int = 340) -> Any:
    """The first 200 fused candidates by their scores in two sources; those that only one retrieved are on the border of the
    other. Raises KeyError for a source that is not in the ranking.
    """
    rows = fused.rows[:MOST_POINTS]
    values, borders = [], []
    for source in (x, y):
        counted = fused.records.get(source, np.full(len(fused), -1))[:MOST_POINTS]
        score = np.where(counted >= 0, fused.candidates.column(source).score[counted], np.nan)
        known = score[~np.isnan(score)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        borders.append(low - 0.08 * ((high - low) or abs(low) or 1.0))
        values.append(np.where(np.isnan(score), borders[-1], score))
    traces = []
    for label, at in _by_label(fused, np.ones(len(rows), bool)):
        sizes = [13 if i < 3 else 10 if i < 10 else 6 for i in at]
        marker = {"symbol": _SYMBOLS[label], "size": sizes, "line": {"width": 0.5, "color": GREY}}
        points = [[i + 1, name_of(fused.candidates.paths[int(rows[i])])] for i in at]
        traces.append(_scatter(label, values[0][at], values[1][at], marker, points))
    line = {"type": "line", "line": {"color": GREY, "width": 1, "dash": "dot"}}
    shapes = [
        {"x0": borders[0], "x1": borders[0], "y0": 0, "y1": 1, "yref": "paper", **line},
        {"x0": 0, "x1": 1, "xref": "paper", "y0": borders[1], "y1": borders[1], **line},
    ]
    across = axis(f"{name_of(x)} score (on a dotted line: not retrieved there)", zeroline=False)
    up = axis(f"{name_of(y)} score", zeroline=False)
    return figure(traces, height, showlegend=True, legend=LEGEND_ABOVE, xaxis=across, yaxis=up, shapes=shapes)


def _by_label(fused: Fused, drawn: NDArray[np.bool_]) -> Iterator[tuple[Label, list[int]]]:
    for label in Label:
        at = [i for i in np.flatnonzero(drawn).tolist() if fused.labels[i] is label]
        if at:
            yield label, at


def _scatter(
    label: Label, x: Floats, y: Floats, marker: dict[str, Any], points: list[list[Any]], more: str = ""
) -> dict[str, Any]:
    """Points of one label; `points` has rank, path (and what `more` names) of each."""
    hover = "rank %{customdata[0]}: %{customdata[1]}" + more + "<extra></extra>"
    marker = {"color": LABELS[label], **marker}
    return dots(x.tolist(), y.tolist(), marker=marker, customdata=points, name=str(label), hovertemplate=hover)


def iso_line(
    fused: Fused, scores: tuple[Column, Column], score: float, across: tuple[float, float]
) -> tuple[list[float], list[float]]:
    """Where a candidate of two sources would have a given fused score: raw scores of x (between the ends of `across`) and of y;
    empty where a source has fewer than two different scores, or adds nothing. What other sources add is taken as 0.

    What a source adds is taken as a function of its raw score, read off the candidates (exact for linear normalisations,
    the slopes of a staircase for ranks), so the line turns with alpha and the weights whatever the normalisation is.
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


def _gain(fused: Fused, column: Column) -> tuple[Floats, Floats]:
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


def _raw(column: Column) -> Floats:
    """The source's score of every row: what it gave, else what it computes; NaN where it cannot."""
    if column.adapted is not None:
        return column.adapted
    return np.where(np.isnan(column.score), column.computed, column.score)


def plane_figure(
    fused: Fused,
    scores: tuple[Column, Column],
    *,
    last: int,
    additive: bool = True,
    grades: Mapping[str, int] | None = None,
    target: Candidate | None = None,
    height: int = 400,
) -> Any:
    """Candidates by their raw scores in two sources, and the line of equal fused score through the last result (number `last`);
    only the methods of `ADDITIVE` have one. `target` is marked where both sources have a score of it.

    What is beyond the line is in the result, as far as these two sources decide. Results are filled and large, others open; a
    judged one (`grades`: chunk id -> grade) has its grade's shape and a rim. An adapted similarity is in the cosine's place.
    """
    rows, judged = fused.rows[:PLANE_POINTS], grades or {}
    x, y = (_raw(c)[rows] for c in scores)
    known = ~(np.isnan(x) | np.isnan(y))
    traces: list[dict[str, Any]] = []
    for label, at in _by_label(fused, known):
        given = [(i, judged.get(fused.chunk_ids[i])) for i in at]
        shapes = [
            (_GRADES.get(g, "star") if g is not None else "circle") + ("" if i < last else "-open") for i, g in given
        ]
        sizes = [15 if g is not None else 11 if i < last else 7 for i, g in given]
        rim = {"width": [2 if g is not None else 1 for _, g in given], "color": GREY}
        points = [
            [i + 1, name_of(fused.candidates.paths[int(rows[i])]), "" if g is None else f", grade {g}"]
            for i, g in given
        ]
        marker = {"symbol": shapes, "size": sizes, "line": rim}
        traces.append(_scatter(label, x[at], y[at], marker, points, "%{customdata[2]}"))
    names = (scores[0].source, scores[1].source)
    if additive and len(fused) and known.any() and all(n in fused.ranks for n in names):
        last = min(last, len(fused))
        level = float(fused.scores[last - 1])
        xs, ys = iso_line(fused, scores, level, (float(x[known].min()), float(x[known].max())))
        if xs:
            line = {"color": CUT, "width": 2, "dash": "dash"}
            hover = f"fused score {level:.4g}<extra></extra>"
            traces.append(dots(xs, ys, mode="lines", name=f"score of result {last}", line=line, hovertemplate=hover))
    adapted = scores[1].adapted is not None
    # Of what is no candidate the cosine alone is known.
    if target is not None and all(n in target.scores for n in names) and (target.rank or not adapted):
        x_at, y_at = ([target.scores[name]] for name in names)
        ring = {"symbol": "circle-open", "size": 18, "color": CUT, "line": {"width": 3}}
        hover = f"{_named(target)}<extra></extra>"
        traces.append(dots(x_at, y_at, mode="markers+text", name=_named(target, 28), marker=ring, hovertemplate=hover))
    across = axis(f"{name_of(names[0])} score (BM25)", zeroline=False)
    up = axis(f"{name_of(names[1])} {'adapted similarity' if adapted else 'similarity (cosine)'}", zeroline=False)
    layout = {"hovermode": "closest", "showlegend": True, "legend": LEGEND_ABOVE}
    return figure(traces, height, xaxis=across, yaxis=up, **layout)


# --- steps ----------------------------------------------------------------------------------------------------------------


def funnel_figure(steps: Sequence[Step], *, target: tuple[str, int] | None = None, height: int | None = None) -> Any:
    """How many candidates entered and left each step, on a logarithmic axis (a corpus and ten results fit in one picture).
    `target`: the name of what somebody looks for, and the number of the step, from 0, that dropped it (-1: none).
    """
    names = [name_of(f"{s.step} · {s.source}" if s.source else s.step) for s in steps]
    shared: dict[str, Any] = {
        "customdata": [[s.entered, s.left, s.entered - s.left, name_of(s.reason, 90)] for s in steps],
        "marker": {"color": [source_colour(s.source) if s.source else GREY for s in steps]},
        "hovertemplate": "%{customdata[0]:,} entered, %{customdata[1]:,} left, %{customdata[2]:,} dropped<br>"
        "%{customdata[3]}<extra></extra>",
    }
    text = {"text": [f"{s.left:,}" for s in steps], "textposition": "auto", "textangle": 0}
    entered = lying([s.entered + 1 for s in steps], names, opacity=0.28, **shared)
    left = lying([s.left + 1 for s in steps], names, **text, **shared)
    along = {"type": "log", "dtick": 1, "title": {"text": "candidates (pale: entered, full: left)"}}
    drawn = row_figure([entered, left], len(steps), height, along, mode="overlay")
    if target is not None and steps:
        name, dropped = target
        message = f"{TARGET_MARK}{name_of(name, 30)} " + ("is dropped here" if dropped >= 0 else "passes all steps")
        place: dict[str, Any] = {"x": 1, "xref": "paper", "xanchor": "right", "showarrow": False, "y": names[dropped]}
        if dropped < 0:
            place |= {"y": 1, "yref": "paper", "yanchor": "bottom"}
            drawn.update_layout(margin_t=28)
        drawn.add_annotation(text=message, font={"color": CUT}, **place)
    return drawn


def timing_figure(timings: Mapping[str, Mapping[str, float]], *, height: int | None = None) -> Any:
    """Milliseconds by step, one bar a column of results: column -> step -> milliseconds; totals are left out.

    The query is embedded once, by the column that happened to come first: that is a row of its own, so that columns compare.
    """
    rows = {name: {k: v for k, v in row.items() if k not in ("total_ms", EMBED)} for name, row in timings.items()}
    if embedded := max((row.get(EMBED, 0.0) for row in timings.values()), default=0.0):
        rows["embedding, once for all" if len(timings) > 1 else "embedding"] = {EMBED: embedded}
    traces = []
    for step in sorted({step for row in rows.values() for step in row}):
        name = step.removesuffix("_ms")
        marker = {"color": source_colour(name), "pattern": {"shape": _PATTERNS.get(step, "")}}
        more = {"name": name, "marker": marker, "hovertemplate": f"{name} %{{x:.1f}} ms<extra></extra>"}
        traces.append(lying([row.get(step, 0.0) for row in rows.values()], list(rows), **more))
    along = {"title": {"text": "milliseconds (sources run side by side)", "standoff": 12}, "automargin": "height"}
    # A legend of several lines, as on a phone, has room over the bars.
    return row_figure(traces, len(rows), height or 130 + 30 * len(rows), along, mode="stack")


# --- how columns overlap --------------------------------------------------------------------------------------------------


def upset_figure(lists: Mapping[str, Sequence[str]], *, most: int = 15, height: int | None = None) -> Any:
    """How many results exactly these columns share: a bar for each set of columns that occurs, the largest first, and under it
    a dot for each column of the set. `lists`: column -> ids of its results.

    Lex et al.: UpSet: Visualization of Intersecting Sets, IEEE TVCG 20(12), 2014.
    """
    held: dict[str, tuple[str, ...]] = {}
    for name, ids in lists.items():
        for one in ids:
            held[one] = (*held.get(one, ()), name)
    groups = Counter(held.values()).most_common(most)
    at, names = list(range(len(groups))), list(lists)
    counts = [n for _, n in groups]
    hover = [f"{n} in {' and '.join(map(name_of, group))}" + " alone" * (len(group) == 1) for group, n in groups]
    bars: dict[str, Any] = {"type": "bar", "x": at, "y": counts, "text": list(map(str, counts)), "yaxis": "y2"}
    bars |= {"marker": {"color": BLUE}, "customdata": hover, "hovertemplate": "%{customdata}<extra></extra>"}
    traces = [bars]
    for name in reversed(names):
        colours = [source_colour(name.lower()) if name in group else faint(GREY, 0.25) for group, _ in groups]
        look = {
            "customdata": hover,
            "hovertemplate": "%{customdata}<extra></extra>",
            "marker": {"size": 11, "color": colours},
        }
        traces.append(dots(at, [name_of(name, 20)] * len(groups), **look))
    below = 22 * len(names) + 20
    tall = height or below + 130
    across = {"visible": False, "fixedrange": True, "range": [-0.6, max(len(groups), 4) - 0.4]}
    rows = {"type": "category", "fixedrange": True, "automargin": True, "showgrid": False, "domain": [0, below / tall]}
    up = axis("results", domain=[below / tall + 0.04, 1], showgrid=False, rangemode="tozero")
    return figure(traces, tall, xaxis=across, yaxis=rows, yaxis2=up, bargap=0.5)
