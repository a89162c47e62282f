"""Choosing a threshold on the Tune page: where relevant and other results lie in a source's scores, and what a cut costs.

The judged queries are retrieved once, in a thread; then the share that may be lost is a slider. The threshold of a source or
of the fused score can be taken over, and those of several vector sources at once; grep, which has none, shows how well its
score tells relevant results.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.charts import distribution_figure
from workbench.evaluate.distribution import Distribution, distributions
from workbench.evaluate.pool import Pool
from workbench.markup import plain, visible
from workbench.plan.controls import cut_words
from workbench.plan.fields import OFF, base_of
from workbench.plan.plan import Plan
from workbench.ui import auth, jobs
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, tables

if TYPE_CHECKING:
    from workbench.corpus import Corpus


JOB = "wb.tune.scores"
_KEY = controls.PREFIX + "tune.scores."


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What was found: the plan it was found with, and each source's distribution."""

    plan: Plan
    found: Mapping[str, Distribution]
    warnings: tuple[str, ...]


def draw(corpus: Corpus, name: str) -> None:
    st.subheader("Choose a threshold")
    st.caption(
        "Where relevant and other results lie in each source's scores, and the threshold that loses at most so many of the "
        "relevant. The judged queries are searched with the plan of the Search page: each source without its threshold, the "
        "fused score under those of the sources."
    )
    if st.button("Draw the scores", key=_KEY + "run", disabled=jobs.busy(JOB)):
        st.session_state[JOB] = jobs.Job(_work(corpus, name, app_state.current().plan, auth.may_index()))
        st.rerun()
    made = jobs.watch(JOB, _KEY)
    if isinstance(made, Scores):
        _found(made)


def _work(corpus: Corpus, name: str, plan: Plan, files: bool) -> jobs.Work:
    def work(tell: Any, stop: Any) -> Scores:
        pool = Pool(corpus.engine, jobs.read_judged(corpus, name, files), principal=corpus.principal)
        found = distributions(pool, plan, progress=tell, stop=stop)
        return Scores(plan, found, pool.warnings)

    return work


@st.fragment
def _found(made: Scores) -> None:
    names = sorted(made.found, key=lambda n: not made.found[n].distances)
    left, right = st.columns(2)
    name = left.selectbox("Scores of", names, key=_KEY + "source", help="The plan's sources, and the fused score.")
    help = "Each relevant document (or judged passage) of a query counts once, at its best candidate."
    percent = right.slider("May lose, % of the relevant", 0.0, 30.0, 5.0, 0.5, key=_KEY + "lose", help=help)
    found = made.found[str(name)]
    for warning in made.warnings:
        st.html(cards.note(warning))
    if not len(found.relevant):
        st.caption(f"No relevant result is among the candidates of {visible(plain(found.source, 60))}.")
        return
    at, now = found.advised(percent / 100), made.plan.threshold(found.source)
    shown = None if now == OFF else float(now)
    st.plotly_chart(
        distribution_figure(found.frame(), found.axis, at, shown),
        key=_KEY + "chart",
        config=cards.PLOT,
        alt=f"Distribution of the {found.axis} of relevant and other results.",
    )
    st.text(_cost(found, at))
    if found.missed:
        st.caption(f"{found.missed:,} relevant ones are not among the candidates: no threshold brings them back.")
    if not made.plan.threshold_field(found.source):
        st.caption(
            "No threshold cuts this score: it is drawn to compare how well the sources tell relevant from other results."
        )
        return
    if shown is not None:
        st.caption("Now: " + _cost(found, shown))
    every = {n: d.advised(percent / 100) for n, d in made.found.items() if d.distances and len(d.relevant)}
    of = f" of {visible(plain(found.source, 60))}" if len(every) > 1 or not found.distances else ""
    if st.button(f"Use {at:g} as the threshold{of}", key=_KEY + "use", type="primary"):
        _use(made.plan, {found.source: at})
    if found.distances and len(every) > 1:
        st.html(_table(made, every))
        if st.button(f"Use these {len(every)}", key=_KEY + "use_all", help="Each source's own threshold, at once."):
            _use(made.plan, every)


def _use(asked: Plan, thresholds: Mapping[str, float]) -> None:
    """Put thresholds of sources into the shared plan, each into the field that moves that source alone."""
    plan = app_state.current().plan
    changes = {plan.threshold_to_set(source): at for source, at in thresholds.items()}
    controls.renew(changes)
    by = {base_of(source) for source in thresholds}
    metric = {"vector.metric": asked["vector.metric"]} if "vector" in by else {}
    app_state.update("the threshold", plan=plan.replace({**changes, **metric}))
    said = " and ".join(f"{at:g} ({field})" for field, at in changes.items())
    where = f"at {asked['vector.metric']} distance" if metric else cut_words(by.pop()).replace(" a ", " the ")
    app_state.tell(f"The shared plan cuts {where} {said} now; Undo on the Search page takes it back.")
    st.rerun()


def _table(made: Scores, every: Mapping[str, float]) -> str:
    """What each vector source's threshold is now, the one that may take its place, and what that costs, as HTML."""
    rows = []
    for source, at in every.items():
        lost, dropped = made.found[source].dropped(at)
        now = made.plan.threshold(source)
        others = "" if math.isnan(dropped) else f"{dropped:.0%}"
        rows.append((source, str(now) if now == OFF else f"{now:g}", f"{at:g}", f"{lost:.1%}", others))
    return tables.table(("source", "now", "proposed", "loses of the relevant", "drops of others"), rows)


def _cost(found: Distribution, at: float) -> str:
    lost, dropped = found.dropped(at)
    rest = len(found.judged) + len(found.others)
    side = "at or beyond" if found.distances else "below"
    said = f"{found.axis} {at:.4g}: what lies {side} it is {round(lost * len(found.relevant)):,} of {len(found.relevant):,} "
    said += f"relevant ({lost:.1%})"
    return said + (f" and {dropped:.0%} of {rest:,} others." if rest else ".")
