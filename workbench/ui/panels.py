"""What is drawn second, after the columns: the histogram with its counts, and one picture of the search.

The small histogram over the slider is plain HTML (a chart in the sidebar would be redrawn at every move); the same counts
are there as a chart among the pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.charts import distance_figure, funnel_figure, rank_figure, score_figure, share_figure, timing_figure
from workbench.charts.distributions import Histogram
from workbench.plan.fields import OFF, base_of
from workbench.retrieve.request import sources_of
from workbench.ui import controls, explaining, resources
from workbench.ui.histogram import histogram_html
from workbench.ui.searching import Found, dropped_by_threshold, main_column, score_histograms
from workbench.ui.sidebar import Places
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from workbench.retrieve.result import SearchResult

TITLES = {
    "none": "Results only",
    "ranks": "How ranks moved",
    "shares": "Who contributed",
    "scores": "Score against score",
    "distances": "Distances",
    "funnel": "Funnel",
    "timings": "Timings",
}
NOTHING = "There is no result to draw."
NOT_CUT = "There are no {} scores to cut: no source found anything, or one alone did and its own scores are shown."
NO_VECTOR = "No vector source ran, so there are no distances."
_CONFIG = {"displayModeBar": False, "responsive": True}


def threshold(found: tuple[Found, ...], state: AppState, places: Places) -> None:
    """For each vector source, and for scores that are cut, the histogram with the cut drawn in, and how many candidates it
    drops.
    """
    distances, dropped = resources.finder().distances(found), dropped_by_threshold(found)
    histograms = {**distances, **score_histograms(found)}
    for source, place in places.thresholds.items():
        vector, at = base_of(source) == "vector", state.moved.threshold(source)
        histogram = histograms.get(source)
        if at == OFF and not vector:
            place.histogram.empty()
            place.counts.empty()
            continue
        if histogram is None or not histogram.total:
            place.histogram.empty()
            others = any(h.total for h in distances.values())
            none = f"{source} gave no distances." if others else NO_VECTOR
            place.counts.caption(none if vector else NOT_CUT.format(source))
            continue
        named = sum(base_of(s) == base_of(source) for s in places.thresholds) > 1
        place.histogram.html(histogram_html(histogram, at, source if named else ""))
        place.counts.caption(counted(histogram, at, *dropped[source]) if source in dropped else "")


def counted(histogram: Histogram, at: float | str, entered: int, left: int) -> str:
    """What a threshold drops of the candidates, which the depth bounds, and of all records, which the histogram shows."""
    said = f"Drops {entered - left:,} of {entered:,} candidates, {left:,} kept."
    if at == OFF or histogram.total == entered:
        return said
    return f"{said} Drawn are all {histogram.total:,} records, {histogram.kept(at):,} of them below it."


@st.fragment
def picture(found: tuple[Found, ...]) -> None:
    """One picture of the search, chosen by the person; choosing another reruns only this."""
    name = controls.picture(TITLES)
    if name == "none":
        return
    main = main_column(found)
    if main is None or main.result is None:
        st.caption(NOTHING)
        return
    drawn = _DRAW[name](main, main.result, found)
    if isinstance(drawn, str):
        st.caption(drawn)
        return
    for n, one in enumerate(drawn if isinstance(drawn, tuple) else (drawn,)):
        st.plotly_chart(
            one, key=f"wb.chart.{name}" + (f".{n}" if n else ""), config=_CONFIG,
            alt=f"{TITLES[name]}, of the column {main.title}.",
        )  # fmt: skip


def _asked(main: Found, result: SearchResult) -> tuple[str, ...]:
    return sources_of(result.plan, main.mode, result.query, result.keywords)


def _ranks(main: Found, result: SearchResult, found: tuple[Found, ...]) -> Any:
    return rank_figure(main.hits, _asked(main, result)) if main.hits else NOTHING


def _shares(main: Found, result: SearchResult, found: tuple[Found, ...]) -> Any:
    return share_figure(main.hits, _asked(main, result)) if main.hits else NOTHING


def _scores(main: Found, result: SearchResult, found: tuple[Found, ...]) -> Any:
    sources = sorted(result.rankings, key=lambda s: (base_of(s) == "grep", base_of(s) != "vector", s))
    if len(sources) < 2:
        return "Two sources are needed to set score against score: show the hybrid column, with two sources."
    return score_figure(result.fused, sources[1], sources[0])


def _distances(main: Found, result: SearchResult, found: tuple[Found, ...]) -> Any:
    histograms = {s: h for s, h in resources.finder().distances(found).items() if h.total}
    if not histograms:
        return NO_VECTOR
    several, plan = len(histograms) > 1, result.plan
    return tuple(
        distance_figure(h, plan.threshold(s), height=220 if several else 300, of=s if several else "")
        for s, h in histograms.items()
    )


def _funnel(main: Found, result: SearchResult, found: tuple[Found, ...]) -> Any:
    return funnel_figure(result.steps)


def _timings(main: Found, result: SearchResult, found: tuple[Found, ...]) -> Any:
    timings = {f.title.lower(): f.result.timings_ms for f in found if f.result is not None}
    return explaining.FROM_CACHE if all(map(explaining.from_cache, timings.values())) else timing_figure(timings)


_DRAW: dict[str, Callable[[Found, SearchResult, tuple[Found, ...]], Any]] = {
    "ranks": _ranks,
    "shares": _shares,
    "scores": _scores,
    "distances": _distances,
    "funnel": _funnel,
    "timings": _timings,
}
