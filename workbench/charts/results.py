"""Pictures of one search: how ranks moved, what each source gave, where candidates were dropped, what took the time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.charts.layout import LEGEND_ABOVE, figure, name_of, row_figure
from workbench.charts.palette import GREY, LABELS, source_colour
from workbench.ranking.fuse import Fused
from workbench.records import Hit, Label, Step

MOST_POINTS = 200
RANK_TICKS = (1, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000)
_AXIS: Mapping[str, Any] = {"fixedrange": True, "zeroline": False}
_BORDER: Mapping[str, Any] = {"type": "line", "line": {"color": GREY, "width": 1, "dash": "dot"}}
_SYMBOLS = {Label.EXACT: "square", Label.SEMANTIC: "circle", Label.HYBRID: "diamond", Label.STRONGEST: "star"}


def rank_figure(hits: Sequence[Hit], sources: Sequence[str], *, height: int = 340) -> Any:
    """How each result's rank moved from every source to the fused list: one line a result, rank 1 on top.

    A source that did not retrieve a result has no point there; the line skips it. Ranks as deep as the results stand at even
    distances; beyond them each doubling takes the same room, so that rank 400 is still in the picture.

    Args:
        hits: Results, best first; as many as keep the picture under 200 points.
        sources: The sources to draw, in order.
        height: Pixels.
    """
    shown = [h for h in hits if h.rank][: max(1, MOST_POINTS // (len(sources) + 1))]
    even = max(len(shown), 5)
    deepest = max((r for h in shown for r in h.ranks.values()), default=1)
    ticks = [t for t in RANK_TICKS if t <= max(deepest, even)]
    traces = []
    named = dict(zip([h.rank for h in shown], labels_of(shown), strict=True))
    beside = labels_of(shown, 28)
    for hit in shown:
        ranks = [hit.ranks.get(s) for s in sources] + [hit.rank]
        label = named[hit.rank]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": [*sources, "result"],
                "y": [None if r is None else depth_of(r, even) for r in ranks],
                "customdata": [[r, label] for r in ranks],
                "connectgaps": True,
                "line": {"color": LABELS[hit.label], "width": 2.5 if hit.rank <= 3 else 1.2},
                "marker": {"symbol": _SYMBOLS[hit.label], "size": 8, "color": LABELS[hit.label]},
                "opacity": 1 if hit.rank <= 3 else 0.75,
                "name": f"{hit.rank}. {label}",
                "hovertemplate": "%{customdata[1]}<br>rank %{customdata[0]} in %{x}<extra></extra>",
            }
        )
    return figure(
        traces,
        height=height,
        hovermode="closest",
        xaxis={"type": "category", "side": "top", "fixedrange": True, "showgrid": False},
        yaxis={
            **_AXIS,
            "autorange": False,
            "range": [depth_of(max(deepest, even), even) + 0.6, 0.4],
            "title": {"text": "rank"},
            "tickvals": [depth_of(t, even) for t in ticks],
            "ticktext": [str(t) for t in ticks],
        },
        annotations=[_beside(h, name) for h, name in zip(shown, beside, strict=True)] if len(shown) <= 24 else [],
        margin={"l": 8, "r": 190, "t": 8, "b": 8},
    )


def depth_of(rank: int, even: int) -> float:
    """Where a rank is drawn: evenly down to `even`, then a third of that room for each doubling."""
    return float(rank) if rank <= even else even * (1 + math.log2(rank / even) / 3)


def labels_of(hits: Sequence[Hit], most: int = 40) -> list[str]:
    """A label for each hit: its title; where others have the same, with its section; where that is the same too, its place.

    Args:
        hits: In any order.
        most: Most characters of a label, about.
    """
    titles = [h.title or h.path for h in hits]
    sections = [(title, h.section) for title, h in zip(titles, hits, strict=True)]
    once, apart = Counter(titles), Counter(sections)
    made = []
    for hit, title, section in zip(hits, titles, sections, strict=True):
        if once[title] == 1:
            made.append(name_of(title, most))
            continue
        own = bool(hit.section) and hit.section != title and apart[section] == 1
        tail = name_of(hit.section if own else hit.citation[len(hit.path) :].lstrip("#:"), most * 3 // 5)
        made.append(f"{name_of(title, max(8, most - 3 - len(tail)))} · {tail}")
    return made


def _beside(hit: Hit, name: str) -> dict[str, Any]:
    return {"x": "result", "y": hit.rank, "text": name, "showarrow": False, "xanchor": "left", "xshift": 10}


def share_figure(hits: Sequence[Hit], sources: Sequence[str], *, height: int | None = None) -> Any:
    """What each source added to each result's score, stacked; a bar's length is the score.

    Args:
        hits: Results, best first; as many as keep the picture under 200 bars.
        sources: The sources, in order.
        height: Pixels; by default what the number of bars needs.
    """
    shown = [h for h in hits if h.rank][: max(1, MOST_POINTS // max(len(sources), 1))]
    names = [f"{h.rank}. {name}" for h, name in zip(shown, labels_of(shown, 30), strict=True)]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "x": [h.contributions.get(source, 0.0) for h in shown],
            "y": names,
            "name": source,
            "marker": {"color": source_colour(source)},
            "hovertemplate": f"{name_of(source)} %{{x:.4g}}<extra></extra>",
        }
        for source in sources
    ]
    return row_figure(traces, len(shown), along={"title": {"text": "contribution to the score"}}, height=height)


def score_figure(fused: Fused, x: str, y: str, *, height: int = 340) -> Any:
    """Every fused candidate by its score in two sources; those that only one retrieved lie on the border of the other.

    Args:
        fused: A fused ranking, at most its first 200 are drawn.
        x, y: Two of its sources.
        height: Pixels.

    Raises:
        KeyError: A source that is not in the ranking.
    """
    rows = fused.rows[:MOST_POINTS]
    values, borders = [], []
    for source in (x, y):
        counted = fused.records.get(source, np.full(len(fused), -1))[:MOST_POINTS]
        score = np.where(counted >= 0, fused.candidates.column(source).score[counted], np.nan)
        known = score[~np.isnan(score)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        border = low - 0.08 * ((high - low) or abs(low) or 1.0)
        values.append(np.where(np.isnan(score), border, score))
        borders.append(border)
    traces = []
    for label in Label:
        at = [i for i in range(len(rows)) if fused.labels[i] is label]
        if not at:
            continue
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": values[0][at].tolist(),
                "y": values[1][at].tolist(),
                "customdata": [[i + 1, name_of(fused.candidates.paths[int(rows[i])])] for i in at],
                "name": str(label),
                "marker": {
                    "symbol": _SYMBOLS[label],
                    "color": LABELS[label],
                    "size": [13 if i < 3 else 10 if i < 10 else 6 for i in at],
                    "line": {"width": 0.5, "color": GREY},
                },
                "hovertemplate": "rank %{customdata[0]}: %{customdata[1]}<extra></extra>",
            }
        )
    return figure(
        traces,
        height=height,
        showlegend=True,
        legend=LEGEND_ABOVE,
        xaxis={**_AXIS, "title": {"text": f"{name_of(x)} score (on a dotted line: not retrieved there)"}},
        yaxis={**_AXIS, "title": {"text": f"{name_of(y)} score"}},
        shapes=[
            {"x0": borders[0], "x1": borders[0], "y0": 0, "y1": 1, "yref": "paper", **_BORDER},
            {"x0": 0, "x1": 1, "xref": "paper", "y0": borders[1], "y1": borders[1], **_BORDER},
        ],
    )


def funnel_figure(steps: Sequence[Step], *, height: int | None = None) -> Any:
    """How many candidates entered and left each step, on a logarithmic axis (a corpus and ten results fit in one picture).

    Args:
        steps: The funnel, in the pipeline's order.
        height: Pixels; by default what the number of steps needs.
    """
    names = [name_of(f"{s.step} · {s.source}" if s.source else s.step) for s in steps]
    told = [[s.entered, s.left, s.entered - s.left, name_of(s.reason, 90)] for s in steps]
    colours = [source_colour(s.source) if s.source else GREY for s in steps]
    hover = "%{customdata[0]:,} entered, %{customdata[1]:,} left, %{customdata[2]:,} dropped<br>%{customdata[3]}<extra></extra>"

    def bar(values: list[int], opacity: float, text: bool) -> dict[str, Any]:
        shown: dict[str, Any] = (
            {"text": [f"{s.left:,}" for s in steps], "textposition": "auto", "textangle": 0} if text else {}
        )
        return {
            "type": "bar", "orientation": "h", "y": names, "x": [v + 1 for v in values], "customdata": told,
            "marker": {"color": colours}, "opacity": opacity, "hovertemplate": hover, **shown,
        }  # fmt: skip

    return row_figure(
        [bar([s.entered for s in steps], 0.28, text=False), bar([s.left for s in steps], 1.0, text=True)],
        len(steps),
        along={"type": "log", "dtick": 1, "title": {"text": "candidates (pale: entered, full: left)"}},
        height=height,
        mode="overlay",
        legend=False,
    )


def timing_figure(timings: Mapping[str, Mapping[str, float]], *, height: int | None = None) -> Any:
    """Milliseconds by step, one bar a column of results.

    Args:
        timings: Column -> step -> milliseconds, as `SearchResult.timings_ms` has them; totals are left out.
        height: Pixels; by default what the number of columns needs.
    """
    steps = sorted({step for row in timings.values() for step in row if step != "total_ms"})
    columns = list(timings)
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "y": columns,
            "x": [timings[c].get(step, 0.0) for c in columns],
            "name": step.removesuffix("_ms"),
            "marker": {"color": source_colour(step.removesuffix("_ms")), "pattern": {"shape": _PATTERNS.get(step, "")}},
            "hovertemplate": f"{step.removesuffix('_ms')} %{{x:.1f}} ms<extra></extra>",
        }
        for step in steps
    ]
    along = {"title": {"text": "milliseconds (sources run side by side)"}}
    return row_figure(traces, len(columns), along=along, height=height, room=30, mode="stack")


_PATTERNS = {"embed_ms": "/", "filter_ms": ".", "fusion_ms": "x", "rerank_ms": "\\", "rewrite_ms": "+"}
