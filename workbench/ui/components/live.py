"""The figure of judged queries beside the sliders: what a moved setting does to the measure, on the Search and Tune pages.

The judged queries are retrieved once, in a thread, when a setting is moved for the first time; after that each move fuses them
again in milliseconds. What a move cannot answer from what is kept (BM25's k1, a deeper list) is retrieved the same way, and
the figure comes when it is there. The page draws its results first and this after them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.evaluate.live import LiveFigure, LiveMeasure
from workbench.markup import plain, visible
from workbench.plan.plan import Plan
from workbench.ui import auth, jobs, resources
from workbench.ui import state as app_state
from workbench.ui.components import controls

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from workbench.corpus import Corpus

MEASURES = ("nDCG@10", "RR@10", "R@100", "P@10", "AP", "Success@5")
OFF = "none"
MOST_AT_ONCE = 500
"""Sets of more queries are retrieved when somebody asks for it, not at the first move."""

_KEPT, _CHOICE = "wb.live", "wb.live.choice"
_KEY = controls.PREFIX + "live."


@dataclass(slots=True, eq=False)
class _Beside:
    """What a session keeps: the judged candidates, the work that gets them, and the plan that figures are compared with.

    The plan, `start`, may be chosen while the work is on; `compared` is the one that `live` is compared with so far. Whoever
    changes either of them holds `lock`.
    """

    key: tuple[object, ...]
    name: str
    measure: str
    start: Plan
    live: LiveMeasure | None = None
    job: jobs.Job | None = None
    failed: tuple[Plan, str] | None = None
    done: bool = False  # with retrieving; making ready for other methods may go on
    compared: Plan | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


# --- what is measured -----------------------------------------------------------------------------------------------------


def sets(corpus: Corpus) -> Mapping[str, tuple[int, int]]:
    """Judged query sets with their numbers of queries and judgments, the one with the most judgments first."""
    key = (str(corpus.path), corpus.principal, resources.judged_at(corpus))

    def read() -> Mapping[str, tuple[int, int]]:
        found = sorted(corpus.judging.overview(), key=lambda s: -s.judgments)
        return {s.name: (s.queries, s.judgments) for s in found if s.judgments}

    return resources.once("judged-sets", key, read)


def choose(name: str, measure: str) -> None:
    """Make a query set (or a path of judgments) and a measure those of the figure."""
    st.session_state[_CHOICE] = (name, measure)


def chosen(corpus: Corpus) -> tuple[str, str]:
    """The query set and measure of the figure; by default the set with the most judgments, "" where there is none."""
    name, measure = st.session_state.get(_CHOICE, ("", MEASURES[0]))
    return name or next(iter(sets(corpus)), ""), measure


def section(corpus: Corpus) -> None:
    """The part of the sidebar that says what is measured; closed, it draws no widgets."""
    with controls.section("Figure of judged queries", "live") as opened:
        if not opened.open:
            return
        known = list(sets(corpus))
        name, measure = chosen(corpus)
        if not known and not name:
            st.caption(
                "There are no judged queries yet. Judge some on the [Judge](judge) page, or make some from your own "
                "documents: `workbench judge make`."
            )
            return
        offered = [OFF, *dict.fromkeys([*known, *([name] if name != OFF else [])])]
        st.selectbox("Query set", offered, index=offered.index(name), key=_KEY + "set", on_change=_choose)
        at, help = MEASURES.index(measure), "Of the hybrid column's plan over the set, without the filter of this page."
        st.selectbox("Measure", MEASURES, index=at, key=_KEY + "measure", on_change=_choose, help=help)
        if name != OFF:
            buttons()


def buttons() -> None:
    """To measure before anything was moved, and to make the plan of now the one that others are compared with."""
    with st.container(horizontal=True, gap="small", key="wb-live-buttons"):
        help = "Retrieves the judged queries once; the first move of a setting does it too."
        st.button("Measure now", key=_KEY + "now", on_click=_begin, help=help)
        help = "Differences are then to the plan as it is now."
        st.button("Compare from here", key=_KEY + "here", on_click=_compare_from_here, help=help)


def _choose() -> None:
    choose(str(st.session_state[_KEY + "set"]), str(st.session_state[_KEY + "measure"]))


def _begin() -> None:
    st.session_state[_KEY + "asked"] = True


def _compare_from_here() -> None:
    kept = st.session_state.get(_KEPT)
    if isinstance(kept, _Beside):
        try:
            _start_from(kept, app_state.current().moved)
        except WorkbenchError as exc:
            app_state.notice(str(exc))


def _start_from(kept: _Beside, plan: Plan) -> None:
    """Compare with a plan from now on; while queries are retrieved, that work does it at its end. Raises NeedsSearch."""
    with kept.lock:
        if kept.live is not None and (kept.live.ready(plan) or not _busy(kept)):
            kept.live.compare_with(plan)
            kept.compared = plan
        kept.start = plan


# --- the figure -----------------------------------------------------------------------------------------------------------


def place() -> DeltaGenerator:
    """Where the figure is drawn, when the results are there. To be drawn on top of the sidebar."""
    return st.container(key="wb-live")


@controls.part("figure")
def figure(corpus: Corpus) -> None:
    """The figure of the plan that the sliders make; while queries are retrieved, how far that is."""
    plan = app_state.current().moved
    name, measure = chosen(corpus)
    if not name or name == OFF:
        return
    kept = _begun(corpus, plan, name, measure)
    if _busy(kept):
        _watching()
    elif kept.failed is not None and kept.failed[0] == plan:
        st.caption(plain(kept.failed[1], 300))
    elif kept.live is not None and kept.live.ready(plan):
        st.html(_figure(kept.live.figure(plan), name))
    else:
        queries = sets(corpus).get(name, (0, 0))[0]
        count = f" over {queries:,} judged queries" if queries else ""
        st.html(f'<p class="wb-live wb-dim">Move a setting to see {visible(measure)}{count} ({_short(name)}).</p>')


def _begun(corpus: Corpus, plan: Plan, name: str, measure: str) -> _Beside:
    """What the session keeps; a retrieval is begun where one is wanted and none is on."""
    kept = _kept(corpus, plan, name, measure)
    asked = bool(st.session_state.pop(_KEY + "asked", False))
    if kept.job is not None and not kept.job.running and kept.job.error is not None:
        kept.failed, kept.job = (plan, str(kept.job.error)), None
    try:
        ready = kept.live is not None and kept.live.ready(plan)
    except WorkbenchError as exc:
        kept.failed = (plan, str(exc))
        return kept
    failed = kept.failed is not None and kept.failed[0] == plan and not asked
    if not ready and not failed and not _busy(kept) and (asked or _wanted(corpus, kept, plan)):
        kept.done, kept.failed = False, None
        kept.job = jobs.Job(_work(corpus, kept, plan, auth.may_index()))
    return kept


def _busy(kept: _Beside) -> bool:
    return kept.job is not None and kept.job.running and not kept.done


def _kept(corpus: Corpus, plan: Plan, name: str, measure: str) -> _Beside:
    key = (corpus.engine.key, name, measure, sets(corpus).get(name))
    kept = st.session_state.get(_KEPT)
    if not isinstance(kept, _Beside) or kept.key != key:
        if isinstance(kept, _Beside) and kept.job is not None:
            kept.job.stop()
        start = kept.start if isinstance(kept, _Beside) else plan
        kept = st.session_state[_KEPT] = _Beside(key, name, measure, start)
    return kept


def _wanted(corpus: Corpus, kept: _Beside, plan: Plan) -> bool:
    if kept.live is not None:
        return True
    return plan != kept.start and sets(corpus).get(kept.name, (0, 0))[0] <= MOST_AT_ONCE


def _work(corpus: Corpus, kept: _Beside, plan: Plan, files: bool) -> jobs.Work:
    """Retrieve for the plan that figures are compared with and for this one, then make ready for other methods."""

    def work(tell: Any, stop: Any) -> LiveMeasure:
        live = kept.live
        if live is None:
            judgments = jobs.read_judged(corpus, kept.name, files)
            live = LiveMeasure(corpus.engine, judgments, kept.measure, principal=corpus.principal)
        while not kept.done:
            start = kept.start
            if start != kept.compared:
                live.prepare(start, tell, stop)
                with kept.lock:
                    live.compare_with(start)
                    kept.compared = start
            live.prepare(plan, tell, stop)
            with kept.lock:
                if kept.start == kept.compared:
                    kept.live, kept.done = live, True
        live.warm(plan)
        return live

    return work


@st.fragment(run_every=0.5)
def _watching() -> None:
    """Say how far the retrieval is, again and again while the figure waits for it; at its end the page is drawn once more."""
    kept = st.session_state.get(_KEPT)
    if not isinstance(kept, _Beside) or kept.job is None or not _busy(kept):
        st.rerun()
    report = kept.job.progress
    share = min(1.0, report.done / report.total) if report.total else 0.0
    count = f" {report.done:,} of {report.total:,}" if report.total else ""
    st.progress(share, f"{kept.measure}: retrieving{count} judged queries")


def _figure(figure: LiveFigure, name: str) -> str:
    moved = figure.difference
    sign, kind = "the same", "wb-dim"
    if abs(moved) > 5e-4:
        sign, kind = (f"▲ {moved:+.3f}", "wb-better") if moved > 0 else (f"▼ {moved:+.3f}", "wb-worse")
    total = len(figure.values)
    interval = "" if figure.low != figure.low else f"95 % {figure.low:.3f} to {figure.high:.3f}, "
    return (
        f'<div class="wb-live" role="status" title="{figure.milliseconds:.0f} ms"><b>{visible(figure.measure)} '
        f'{figure.mean:.3f}</b> <span class="{kind}">{sign}</span>'
        f"<p>{figure.better} better, {figure.worse} worse of {total:,} queries than at the start; {interval}{_short(name)}</p>"
        "</div>"
    )


def _short(name: str) -> str:
    return visible(plain(name.rstrip("/").rsplit("/", 1)[-1], 40))
