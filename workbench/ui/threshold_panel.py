"""Choosing a threshold on the Tune page: where relevant and other results lie in a source's scores, and what a cut costs.

The judged queries are retrieved once, in a thread; then the share that may be lost is a slider. A plan cuts at a distance, so
the threshold of a vector source can be taken over; the other sources show how well their scores tell relevant results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.charts.tuning import distribution_figure
from workbench.evaluate.distribution import Distribution, distributions
from workbench.evaluate.pool import Pool
from workbench.plan import Plan
from workbench.plan_fields import OFF
from workbench.ui import cards, controls, sign_in, tuning
from workbench.ui import state as app_state
from workbench.ui.text import plain, visible

if TYPE_CHECKING:
    from workbench.service import Corpus

JOB = "wb.tune.scores"
_KEY = controls.PREFIX + "tune.scores."
_CONFIG = {"displayModeBar": False, "responsive": True}


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What was found: the plan and judgments it was found with, and each source's distribution."""

    plan: Plan
    name: str
    found: Mapping[str, Distribution]
    queries: int
    warnings: tuple[str, ...]


def draw(corpus: Corpus, name: str) -> None:
    """Draw the section."""
    st.subheader("Choose a threshold")
    st.caption(
        "Where relevant and other results lie in each source's scores, and the threshold that loses at most so many of the "
        "relevant. The judged queries are searched with the plan of the Search page, without its threshold."
    )
    job = st.session_state.get(JOB)
    busy = isinstance(job, tuning.Job) and job.running
    if st.button("Draw the scores", key=_KEY + "run", disabled=busy):
        plan = app_state.current().plan
        st.session_state[JOB] = tuning.Job(_work(corpus, name, plan, sign_in.may_index()))
        st.rerun()
    tuning.watch(JOB, _KEY)
    job = st.session_state.get(JOB)
    if isinstance(job, tuning.Job) and not job.running and isinstance(job.result, Scores):
        _found(job.result)


def _work(corpus: Corpus, name: str, plan: Plan, files: bool) -> tuning.Work:
    def work(tell: Any, stop: Any) -> Scores:
        pool = Pool(corpus.engine, tuning.read_judged(corpus, name, files), principal=corpus.principal)
        found = distributions(pool, plan, progress=tell, stop=stop)
        return Scores(plan, name, found, len(pool), pool.warnings)

    return work


@st.fragment
def _found(made: Scores) -> None:
    names = sorted(made.found, key=lambda n: not made.found[n].distances)
    left, right = st.columns(2)
    with left:
        name = st.selectbox("Scores of", names, key=_KEY + "source", help="The plan's sources, and the fused score.")
    with right:
        percent = st.slider(
            "May lose, % of the relevant", 0.0, 30.0, 5.0, 0.5, key=_KEY + "lose",
            help="Each relevant document (or judged passage) of a query counts once, at its best candidate.",
        )  # fmt: skip
    found = made.found[str(name)]
    for warning in made.warnings:
        st.html(cards.note(warning))
    if not len(found.relevant):
        st.caption(f"No relevant result is among the candidates of {visible(plain(found.source, 60))}.")
        return
    at, now = found.advised(percent / 100), made.plan["vector.threshold"]
    shown = None if not found.distances or now == OFF else float(now)
    st.plotly_chart(
        distribution_figure(found.frame(), found.axis, at, shown), key=_KEY + "chart", config=_CONFIG,
        alt=f"Distribution of the {found.axis} of relevant and other results.",
    )  # fmt: skip
    st.text(_told(found, at))
    if found.missed:
        st.caption(f"{found.missed:,} relevant ones are not among the candidates: no threshold brings them back.")
    if not found.distances:
        st.caption(
            "A plan cuts at a distance (vector.threshold), not at this score: it is drawn to compare how well the sources "
            "tell relevant from other results."
        )
        return
    if shown is not None:
        st.caption("Now: " + _told(found, shown))
    if st.button(f"Use {at:g} as the threshold", key=_KEY + "use", type="primary"):
        changes = {"vector.threshold": at, "vector.metric": made.plan["vector.metric"]}
        app_state.update("the threshold", plan=app_state.current().plan.replace(changes))
        app_state.tell(f"The shared plan cuts at {found.axis} {at:g} now; Undo on the Search page takes it back.")
        st.rerun()


def _told(found: Distribution, at: float) -> str:
    """What a threshold costs, in words."""
    lost, dropped = found.dropped(at)
    rest = len(found.judged) + len(found.others)
    side = "at or beyond" if found.distances else "below"
    said = f"{found.axis} {at:.4g}: what lies {side} it is {round(lost * len(found.relevant)):,} of {len(found.relevant):,} "
    said += f"relevant ({lost:.1%})"
    return said + (f" and {dropped:.0%} of {rest:,} others." if rest else ".")
