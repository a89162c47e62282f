"""The figure of judged queries in the bar: which set and measure it is of, and what a moved setting does to it.

The judged queries are retrieved once, in a thread, when a page opens or a setting is moved; after that each move fuses them
again in milliseconds. What a move cannot answer from what is cached (BM25's k1, a deeper list) is retrieved the same way, and
the figure comes when it is there. The page draws its results first and this after them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.evaluate.evaluation import COVERAGE_DEPTH, LOW_COVERAGE
from workbench.evaluate.live import LiveFigure, LiveMeasure
from workbench.markup import plain, visible
from workbench.plan.plan import Plan
from workbench.records import Progress
from workbench.ui import auth, jobs, resources
from workbench.ui import state as app_state
from workbench.ui.components import controls

if TYPE_CHECKING:
    from workbench.corpus import Corpus

MEASURES = ("nDCG@10", "RR@10", "R@100", "P@10", "AP", "Success@5")
OFF = "none"
MOST_UNASKED, MOST_AT_ONCE = 100, 500
"""Sets of at most so many queries are retrieved when a page opens, and at the first move; greater ones when somebody asks."""
FEW = "Few of the first results are judged, and what nobody judged counts as not relevant: judge more before trusting this."

_SESSION, _TYPED, _OPENED = "wb.live", "wb.live.typed", "wb.live.opened"
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
    """Query sets with their numbers of queries and judgments, the one with the most judgments first."""
    key = (str(corpus.path), corpus.principal, resources.judged_at(corpus))

    def read() -> Mapping[str, tuple[int, int]]:
        found = sorted(corpus.judging.overview(), key=lambda s: -s.judgments)
        return {s.name: (s.queries, s.judgments) for s in found}

    return resources.once("judged-sets", key, read)


def chosen(corpus: Corpus) -> tuple[str, str]:
    """The active query set and measure: by default the set with the most judgments, "" where nothing is judged. Of the address
    only the name of a set is taken; a path counts where it was typed in this session.
    """
    state, known = app_state.current(), sets(corpus)
    named = state.judged in known or state.judged == OFF or state.judged in st.session_state.get(_TYPED, ())
    most = next((name for name, (_, judgments) in known.items() if judgments), "")
    return state.judged if named else most, state.measure if state.measure in MEASURES else MEASURES[0]


def choose(name: str, measure: str = "") -> None:
    """Make a query set, or the path of judgments that was typed, and if wanted a measure the active ones."""
    st.session_state.setdefault(_TYPED, set()).add(name)
    app_state.update("the query set", judged=name, measure=measure or app_state.current().measure)


def box(corpus: Corpus) -> None:
    """The choice of the active query set and of its measure."""
    known, (name, measure) = list(sets(corpus)), chosen(corpus)
    label = "No query set" if name in ("", OFF) else _short(name)
    with controls.lazy(label, "live", "The judged queries that the figure is of.", ":material/checklist:") as opened:
        if not opened.open:
            return
        if not known and not name:
            no_set("There are no judged queries yet. Judge some, or make some from your own documents.")
        else:
            offered = [OFF, *dict.fromkeys([*known, *([name] if name != OFF else [])])]
            values = controls.bound("live.set", name, choose)
            st.selectbox("Active query set", offered, index=offered.index(name), **values)
            values = controls.bound("live.measure", measure, lambda chosen: choose(name, chosen))
            help = "Of the hybrid column's plan over the set, without the filter of the page."
            st.selectbox("Active measure", MEASURES, index=MEASURES.index(measure), **values, help=help)
            with st.container(horizontal=True, gap="small"):
                help = "Retrieves the judged queries once; the first move of a setting does it too."
                st.button("Measure now", key=_KEY + "now", on_click=_begin, help=help, disabled=name == OFF)
                help = "Differences are then to the plan as it is now."
                st.button("Set as baseline", key=_KEY + "here", on_click=_compare_from_here, help=help)
        st.page_link(app_state.page_of("judge"), label="Judge passages", icon=":material/gavel:")


def no_set(sentence: str) -> None:
    """What to do where there are no queries to choose."""
    st.text(sentence)
    st.page_link(app_state.page_of("queries"), label="Make a query set", icon=":material/add:")


def _begin() -> None:
    st.session_state[_KEY + "asked"] = True


def _compare_from_here() -> None:
    session = st.session_state.get(_SESSION)
    if isinstance(session, _Session):
        session.start = app_state.current().moved


# --- the figure -----------------------------------------------------------------------------------------------------------


def figure(corpus: Corpus) -> None:
    """The figure of the plan that the sliders make; while queries are retrieved, how far that is."""
    plan = app_state.current().moved
    name, measure = chosen(corpus)
    if not name or name == OFF:
        return
    queries, judgments = sets(corpus).get(name, (0, 1))
    if not judgments:
        st.html(f'<p class="wb-live wb-dim">{_short(name)} has no judgments yet. <a href="judge">Judge some</a></p>')
        return
    session = _session(corpus, plan, name, measure)
    wanted = bool(st.session_state.pop(_KEY + "asked", False))
    if session.job is not None and not session.job.running and session.job.error is not None:
        session.failed, session.job = (plan, str(session.job.error)), None
    failed = session.failed is not None and session.failed[0] == plan
    small = (
        0 < queries <= MOST_UNASKED if plan == session.start else queries <= MOST_AT_ONCE
    )  # of a path it is not known
    movable = session.live is not None or small
    try:
        ready = session.ready(plan)
        if not (ready or session.busy) and (wanted or (movable and not failed)):
            session.retrieved, session.failed = False, None
            session.job = jobs.Job(_work(corpus, session, plan, auth.may_index()))
        if ready and session.live is not None:
            if session.compared != session.start:
                session.live.compare_with(session.start)
                session.compared = session.start
            _shown(corpus, session, session.live, plan)
            return
    except WorkbenchError as exc:
        session.failed = (plan, str(exc))
    if session.busy:
        jobs.follow("figure", functools.partial(_report, session))
    elif session.failed is not None and session.failed[0] == plan:
        st.html(f'<p class="wb-live">{visible(plain(session.failed[1], 300))}</p>')
    else:
        count = f" over {queries:,} judged queries" if queries else ""
        st.html(f'<p class="wb-live wb-dim">Move a setting to see {visible(measure)}{count}.</p>')


def measured(corpus: Corpus) -> LiveMeasure:
    """The judged queries of the active set as the bar has them; waits until they are retrieved. Raises WorkbenchError."""
    plan, (name, measure) = app_state.current().moved, chosen(corpus)
    session = _session(corpus, plan, name, measure)
    if session.job is not None and session.busy:
        session.job.wait()
    if session.live is None:
        session.live = _work(corpus, session, plan, auth.may_index())(lambda progress: None, lambda: False)
    return session.live


def _session(corpus: Corpus, plan: Plan, name: str, measure: str) -> _Session:
    seen = (str(corpus.path), resources.judged_at(corpus))
    key = (corpus.engine.key, name, measure, resources.once("judged-stamp", seen, lambda: corpus.judging.sets.stamp()))
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


def _report(session: _Session) -> jobs.Report:
    now = session.job.progress if session.job is not None else Progress("", 0, 0)
    count = f"{now.done:,} of {now.total:,} " if now.total else ""
    words = f"{session.measure}: retrieving {count}judged queries"
    return jobs.Report(words, jobs.share(now.done, now.total), session.busy)


def _shown(corpus: Corpus, session: _Session, live: LiveMeasure, plan: Plan) -> None:
    """The figure, and buttons that open the queries that the plan made worse and better, with both lists of each."""
    figure = live.figure(plan)
    st.html(_figure(figure), width="content")
    if plan == session.start:
        return
    for kind, count in (("worse", figure.worse), ("better", figure.better)):
        options: dict[str, Any] = {"type": "tertiary", "disabled": not count, "on_click": _open, "args": (kind,)}
        help = "Show these queries: both lists side by side, and why each result moved."
        st.button(f"{count:,} {kind}", key=_KEY + kind, help=help, **options)
    st.html(f'<span class="wb-dim wb-ci">of {len(figure.values):,} queries</span>', width="content")
    if opened := st.session_state.get(_OPENED):
        from workbench.ui.components import pair

        pair.queries_dialog(corpus, live, (session.start, plan), opened)


def _open(kind: str) -> None:
    st.session_state[_OPENED] = kind


def close() -> None:
    st.session_state.pop(_OPENED, None)


def _figure(figure: LiveFigure) -> str:
    moved = figure.difference
    sign, kind = "no change", "wb-dim"
    if abs(moved) > 5e-4:
        sign, kind = (f"▲ {moved:+.3f}", "wb-better") if moved > 0 else (f"▼ {moved:+.3f}", "wb-worse")
    interval = (
        "" if math.isnan(figure.low) else f'<span class="wb-wide">95 % </span>CI {figure.low:.3f}–{figure.high:.3f}'
    )
    judged = f"judged@{COVERAGE_DEPTH} {figure.judged:.0%}"
    few = f' class="wb-little" title="{FEW}"' if figure.judged < LOW_COVERAGE else ""
    return (
        f'<div class="wb-live" role="status" title="{figure.milliseconds:.0f} ms"><b>{visible(figure.measure)} '
        f'{figure.mean:.3f}</b> <span class="{kind}">{sign}</span> <span class="wb-dim wb-ci">{interval}</span> '
        f"<span{few}>{judged}</span></div>"
    )


def _short(name: str) -> str:
    return visible(plain(name.rstrip("/").rsplit("/", 1)[-1], 40))
