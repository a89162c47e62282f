"""The figure of judged queries beside the sliders: what a moved setting does to the measure, on the Search and Tune pages.

The judged queries are retrieved once, in a thread, when a setting is moved for the first time; after that each move fuses them
again in milliseconds. What a move cannot answer from what is cached (BM25's k1, a deeper list) is retrieved the same way, and
the figure comes when it is there. The page draws its results first and this after them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.evaluate.evaluation import LOW_COVERAGE
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

_SESSION, _CHOICE, _OPENED = "wb.live", "wb.live.choice", "wb.live.opened"
_KEY = controls.PREFIX + "live."


@dataclass(slots=True, eq=False)
class _Session:
    """What a session holds: the judged candidates, the work that gets them, and the plan that figures are compared with."""

    key: tuple[object, ...]
    name: str
    measure: str
    start: Plan
    live: LiveMeasure | None = None
    job: jobs.Job | None = None
    retrieved: bool = False
    """Whether the work has what it was begun for; making ready for other methods may go on."""
    failed: tuple[Plan, str] | None = None
    compared: Plan | None = None

    @property
    def busy(self) -> bool:
        return self.job is not None and self.job.running and not self.retrieved

    def ready(self, plan: Plan) -> bool:
        return self.live is not None and self.live.ready(plan) and self.live.ready(self.start)


# --- what is measured -----------------------------------------------------------------------------------------------------


def sets(corpus: Corpus) -> Mapping[str, tuple[int, int]]:
    """Judged query sets with their numbers of queries and judgments, the one with the most judgments first."""
    key = (str(corpus.path), corpus.principal, resources.judged_at(corpus))

    def read() -> Mapping[str, tuple[int, int]]:
        found = sorted(corpus.judging.overview(), key=lambda s: -s.judgments)
        return {s.name: (s.queries, s.judgments) for s in found if s.judgments}

    return resources.once("judged-sets", key, read)


def choose(name: str, measure: str) -> None:
    st.session_state[_CHOICE] = (name, measure)


def chosen(corpus: Corpus) -> tuple[str, str]:
    """The query set and measure of the figure; by default the set with the most judgments, "" where there is none."""
    name, measure = st.session_state.get(_CHOICE, ("", MEASURES[0]))
    return name or next(iter(sets(corpus)), ""), measure


def section(corpus: Corpus) -> None:
    with controls.section("Metric on judged queries", "live") as opened:
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
    with st.container(horizontal=True, gap="small", key="wb-live-buttons"):
        help = "Retrieves the judged queries once; the first move of a setting does it too."
        st.button("Measure now", key=_KEY + "now", on_click=_begin, help=help)
        help = "Differences are then to the plan as it is now."
        st.button("Set as baseline", key=_KEY + "here", on_click=_compare_from_here, help=help)


def _choose() -> None:
    choose(str(st.session_state[_KEY + "set"]), str(st.session_state[_KEY + "measure"]))


def _begin() -> None:
    st.session_state[_KEY + "asked"] = True


def _compare_from_here() -> None:
    session = st.session_state.get(_SESSION)
    if isinstance(session, _Session):
        session.start = app_state.current().moved


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
    session = _session(corpus, plan, name, measure)
    queries = sets(corpus).get(name, (0, 0))[0]
    wanted = bool(st.session_state.pop(_KEY + "asked", False))
    if session.job is not None and not session.job.running and session.job.error is not None:
        session.failed, session.job = (plan, str(session.job.error)), None
    failed = session.failed is not None and session.failed[0] == plan
    movable = session.live is not None or (plan != session.start and queries <= MOST_AT_ONCE)
    try:
        ready = session.ready(plan)
        if not (ready or session.busy) and (wanted or (movable and not failed)):
            session.retrieved, session.failed = False, None
            session.job = jobs.Job(_work(corpus, session, plan, auth.may_index()))
        if ready and session.live is not None:
            if session.compared != session.start:
                session.live.compare_with(session.start)
                session.compared = session.start
            shown = session.live.figure(plan)
            st.html(_figure(shown, name))
            _moved(corpus, session, plan, shown)
            return
    except WorkbenchError as exc:
        session.failed = (plan, str(exc))
    if session.busy:
        _watching()
    elif session.failed is not None and session.failed[0] == plan:
        st.caption(plain(session.failed[1], 300))
    else:
        count = f" over {queries:,} judged queries" if queries else ""
        st.html(f'<p class="wb-live wb-dim">Move a setting to see {visible(measure)}{count} ({_short(name)}).</p>')


def _session(corpus: Corpus, plan: Plan, name: str, measure: str) -> _Session:
    key = (corpus.engine.key, name, measure, sets(corpus).get(name))
    session = st.session_state.get(_SESSION)
    if not isinstance(session, _Session) or session.key != key:
        if isinstance(session, _Session) and session.job is not None:
            session.job.stop()
        start = session.start if isinstance(session, _Session) else plan
        session = st.session_state[_SESSION] = _Session(key, name, measure, start)
    return session


def _work(corpus: Corpus, session: _Session, plan: Plan, files: bool) -> jobs.Work:
    """Retrieve for the plan that figures are compared with and for this one, then make ready for other methods."""
    start = session.start

    def work(progress: Any, stop: Any) -> LiveMeasure:
        live = session.live
        if live is None:
            judgments = jobs.read_judged(corpus, session.name, files)
            live = LiveMeasure(corpus.engine, judgments, session.measure, principal=corpus.principal)
        for needed in (start, plan):
            live.prepare(needed, progress, stop)
        session.live, session.retrieved = live, True
        live.warm(plan)
        return live

    return work


@st.fragment(run_every=0.5)
def _watching() -> None:
    """Say how far the retrieval is, again and again while the figure waits for it; at its end the page is drawn once more."""
    session = st.session_state.get(_SESSION)
    if not isinstance(session, _Session) or session.job is None or not session.busy:
        st.rerun()
    report = session.job.progress
    share = min(1.0, report.done / report.total) if report.total else 0.0
    count = f" {report.done:,} of {report.total:,}" if report.total else ""
    st.progress(share, f"{session.measure}: retrieving{count} judged queries")


def _figure(figure: LiveFigure, name: str) -> str:
    moved = figure.difference
    sign, kind = "the same", "wb-dim"
    if abs(moved) > 5e-4:
        sign, kind = (f"▲ {moved:+.3f}", "wb-better") if moved > 0 else (f"▼ {moved:+.3f}", "wb-worse")
    total = len(figure.values)
    interval = "" if figure.low != figure.low else f"95 % {figure.low:.3f} to {figure.high:.3f}, "
    few = figure.judged < LOW_COVERAGE
    judged = f'<span class="{"wb-little" if few else ""}">{figure.judged:.0%} of the first ten judged</span>'
    return (
        f'<div class="wb-live" role="status" title="{figure.milliseconds:.0f} ms"><b>{visible(figure.measure)} '
        f'{figure.mean:.3f}</b> <span class="{kind}">{sign}</span>'
        f"<p>{figure.better} better, {figure.worse} worse of {total:,} queries than at the start; {interval}{judged}, "
        f"{_short(name)}</p>"
        "</div>"
    )


def _moved(corpus: Corpus, session: _Session, plan: Plan, figure: LiveFigure) -> None:
    """Buttons that open the queries that the plan made worse and better, with both lists of each."""
    with st.container(horizontal=True, gap="small", key="wb-live-moved"):
        for kind, count in (("worse", figure.worse), ("better", figure.better)):
            help = "Show these queries: both lists side by side, and why each result moved."
            st.button(
                f"{count} {kind}",
                key=_KEY + kind,
                type="tertiary",
                disabled=not count,
                on_click=_open,
                args=(kind,),
                help=help,
            )
    opened = st.session_state.get(_OPENED)
    if opened and session.live is not None:
        from workbench.ui.components import pair

        pair.queries_dialog(corpus, session.live, (session.start, plan), opened)


def _open(kind: str) -> None:
    st.session_state[_OPENED] = kind


def close() -> None:
    st.session_state.pop(_OPENED, None)


def _short(name: str) -> str:
    return visible(plain(name.rstrip("/").rsplit("/", 1)[-1], 40))
