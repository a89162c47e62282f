"""What is drawn second, after the columns: the histogram with its counts, and one picture of the search.

The small histogram over the slider is plain HTML (a chart in the sidebar would be redrawn at every move); the same counts
are there as a chart among the pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.charts import (
    distance_figure,
    funnel_figure,
    rank_figure,
    score_figure,
    share_figure,
    timing_figure,
)
from workbench.plan_values import base_of
from workbench.retrieve.request import sources_of
from workbench.ui import controls, resources
from workbench.ui.histogram import histogram_html
from workbench.ui.searching import Found, dropped_by_threshold, main_column
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
_CONFIG = {"displayModeBar": False, "responsive": True}


def threshold(found: tuple[Found, ...], state: AppState, places: Places) -> None:
    """The histogram of distances with the cut drawn in, and how many candidates it drops."""
    histogram = resources.finder().distances(found)
    if histogram is None or not histogram.total:
        places.histogram.empty()
        places.counts.caption("No vector source ran, so there are no distances.")
        return
    places.histogram.html(histogram_html(histogram, state.moved["vector.threshold"]))
    dropped = dropped_by_threshold(found)
    if dropped is not None:
        entered, left = dropped
        places.counts.caption(f"Drops {entered - left:,} of {entered:,} candidates, {left:,} kept.")


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
    st.plotly_chart(drawn, key=f"wb.chart.{name}", config=_CONFIG, alt=f"{TITLES[name]}, of the column {main.title}.")


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
    histogram = resources.finder().distances(found)
    if histogram is None or not histogram.total:
        return "No vector source ran, so there are no distances."
    return distance_figure(histogram, result.plan["vector.threshold"], height=300)


def _funnel(main: Found, result: SearchResult, found: tuple[Found, ...]) -> Any:
    return funnel_figure(result.steps)


def _timings(main: Found, result: SearchResult, found: tuple[Found, ...]) -> Any:
    return timing_figure({f.title.lower(): f.result.timings_ms for f in found if f.result is not None})


_DRAW: dict[str, Callable[[Found, SearchResult, tuple[Found, ...]], Any]] = {
    "ranks": _ranks,
    "shares": _shares,
    "scores": _scores,
    "distances": _distances,
    "funnel": _funnel,
    "timings": _timings,
}
