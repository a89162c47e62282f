"""The Tune page: try plans on judged queries, see how the figure moves, and take the best plan to the Search page.

Above, what is tried and the run itself, in a thread; then what it found; below, where relevant and other results lie in a
source's scores, and what a threshold costs.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.charts import distribution_figure
from workbench.charts.tuning import heat_figure, sensitivity_figure, wins_figure
from workbench.evaluate.distribution import Distribution, distributions
from workbench.evaluate.grid import read_space
from workbench.evaluate.pool import Pool
from workbench.evaluate.sweep import Sweep
from workbench.markup import plain, visible
from workbench.plan.controls import cut_words
from workbench.plan.fields import OFF, base_of
from workbench.plan.plan import Plan, without_effect
from workbench.ui import auth, jobs, resources
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, live, sidebar, tables
from workbench.ui.components.live import MEASURES

if TYPE_CHECKING:
    from workbench.corpus import Corpus

OFFERED = {
    "fusion.method": "rrf,convex",
    "fusion.k": "1,5,10,20,60",
    "fusion.alpha": "0..1:0.1",
    "fusion.weights.vector": "0.5,1,2",
    "fusion.weights.keyword": "0.5,1,2",
    "fusion.normalise": "minmax,tmm,zscore",
    "fusion.missing": "computed,zero,floor",
    "fusion.unit": "chunk,document",
    "vector.threshold": "off,0.5,0.45,0.4",
    "keyword.k1": "0.6,0.9,1.2,1.6",
    "keyword.b": "0.25,0.4,0.6,0.75",
    "keyword.operator": "any,all",
    "depth.keyword": "50,100,1000",
    "depth.vector": "50,100,1000",
    "sources": "keyword|vector|keyword,vector",
    "grep.when": "auto,never",
    "preset": "default,rrf",
}
FIRST = ("fusion.method", "fusion.k", "fusion.alpha", "fusion.normalise")
_KEY = controls.PREFIX + "tune."
JOB, SCORES = "wb.tune.job", "wb.tune.scores"
_SCORES_KEY = _KEY + "scores."
_ROWS = 40


def draw(corpus: Corpus) -> None:
    name = judgments_box(corpus, "tune")
    if not name:
        return
    _form(corpus, name)
    _sliders(corpus)
    made = jobs.watch(JOB, _KEY)
    if isinstance(made, Sweep):
        _found(made)
    _thresholds(corpus, name)


def judgments_box(corpus: Corpus, page: str, judged: bool = True) -> str:
    """The choice of judgments: a query set, or a path; "" where there is nothing to choose yet. `page` is part of the widgets'
    keys; with `judged`, sets without judgments are left out, and where there are none the page says how to get some.
    """
    sets = [name for name, (queries, judgments) in live.sets(corpus).items() if judgments or (queries and not judged)]
    files = auth.may_index()
    if not sets and not files and judged:
        st.text("There are no judged query sets yet. Judge some results on the Judge page first.")
        return ""
    chosen, typed = st.columns([1, 2], vertical_alignment="bottom")
    name, measure = live.chosen(corpus)
    at = sets.index(name) if name in sets else None
    values = controls.bound(f"{page}.set", name if name in sets else None, lambda name: live.choose(name, measure))
    help = "Queries judged on the Judge page, or made by `workbench judge make`."
    chosen.selectbox("Query set", sets, index=at, placeholder="none yet", help=help, **values)
    path = "" if name in live.sets(corpus) or name == live.OFF else name
    if files:
        values = controls.bound(f"{page}.path", path, lambda path: live.choose(path.strip(), measure))
        help, example = "Judgments on this machine.", "a BEIR folder, TREC qrels, CSV or JSONL"
        typed.text_input("or a path", path, placeholder=example, help=help, **values)
    name = name if name in sets else path
    if not name and judged:
        st.text("Type the path of judgments, or make a query set from your own documents in a terminal:")
        st.code(f"workbench judge make --corpus {shlex.quote(plain(str(resources.corpus_path()), 300))}", language=None)
    return name


def _form(corpus: Corpus, name: str) -> None:
    first, second, third, fourth = st.columns([2, 1, 1, 1], vertical_alignment="bottom")
    plan = app_state.current().plan
    measure = live.chosen(corpus)[1]
    values = controls.bound("tune.measure", measure, lambda measure: live.choose(name, measure))
    first.selectbox("Measure", MEASURES, MEASURES.index(measure), help="What chooses the best plan.", **values)
    folds_help = "The reported figure of each fold is of a plan that the others chose."
    folds = second.number_input("Folds", 0, 20, 5, key=_KEY + "folds", help=folds_help)
    search = third.selectbox("Search", ("grid", "random"), key=_KEY + "search", help="Every combination, or some.")
    trials = fourth.number_input("Trials", 1, 5_000, 100, key=_KEY + "trials", disabled=search == "grid")
    fields = st.multiselect(
        "Settings to try",
        list(OFFERED),
        default=list(FIRST),
        accept_new_options=True,
        key=_KEY + "fields",
        help="Any setting of the plan by its dotted name. What a method does not read is not tried twice.",
    )
    words = []
    for position, field in enumerate(fields):
        if position % 4 == 0:
            places = st.columns(4)
        offered = OFFERED.get("vector.threshold" if field.startswith("threshold.vector") else field, "")
        key, help = f"{_KEY}values.{field}", "1,2,3 or 0..1:0.1 or 1..100~"
        words.append(f"{field}={places[position % 4].text_input(field, offered, key=key, help=help)}")
    if st.button("Run the sweep", type="primary", key=_KEY + "run", disabled=jobs.busy(JOB) or not fields):
        files = auth.may_index()

        def work(progress: Any, stop: Any) -> Sweep:
            judged, space = jobs.read_judged(corpus, name, files), read_space(plan, words)
            most = min(int(folds), len(judged))
            how: dict[str, Any] = {"search": search, "trials": int(trials), "progress": progress, "stop": stop}
            return corpus.sweep(judged, space, measure, most if most > 1 else 0, **how)

        st.session_state[JOB] = jobs.Job(work)
    _plan_text()


@controls.part("plan")
def _plan_text() -> None:
    plan = app_state.current().plan
    st.caption(f"Everything else is as in the plan of the Search page: {visible(plain(str(plan), 300))}")


# --- what was found -----------------------------------------------------------------------------------------------------


def _found(made: Sweep) -> None:
    st.subheader("Result")
    st.text(made.verdict)
    facts = [
        f"{len(made.plans):,} plans on {len(made.query_ids)} queries in {made.seconds:.1f} s",
        f"the best plan for each query by itself (oracle) would give {made.oracle:.3f}",
        made.agreement,
    ]
    st.caption("; ".join(visible(f) for f in facts if f) + ".")
    for warning in made.warnings:
        st.html(cards.note(warning))
    st.text(f"Best plan: {made.best}")
    use, yaml, python, link = st.columns([5, 3, 3, 4], vertical_alignment="center")
    if use.button("Use it on the Search page", type="primary", key=_KEY + "use"):
        app_state.update("the tuned plan", plan=made.best)
        app_state.message("The tuned plan is the shared plan now; Undo takes it back.")
        st.switch_page(app_state.page_of(""))
    yaml.download_button("As YAML", made.to_yaml(), "plan.yaml", key=_KEY + "yaml", on_click="ignore")
    python.download_button("As Python", made.to_python(), "plan.py", key=_KEY + "python", on_click="ignore")
    link.html(
        f'<a class="wb-button" href="{escape(jobs.search_link("", made.best))}" target="_self">Search with it (link)</a>'
    )
    curve, bars = st.columns(2)
    with curve:
        _curves(made)
    with bars:
        _bars(made)
    columns = ("mean", "difference", "wins", "losses", "ties", "p_holm", "changes")
    st.dataframe(made.frame(50).select(columns), key=_KEY + "table", hide_index=True)
    st.caption("Means on the training queries, best first; p_holm is corrected for the number of plans.")


@st.fragment
def _curves(made: Sweep) -> None:
    fields = [f for f in made.space.fields if f != "preset"]
    lines = {f: made.sensitivity(f) for f in fields}
    moving = [f for f in fields if lines[f].height > 1 and not without_effect(made.best, f)]
    moving.sort(key=lambda f: lines[f]["number"].null_count() > 0)  # a curve over numbers says most
    if not moving:
        st.caption("Nothing that the best plan reads took more than one value.")
        return
    field = st.selectbox("x axis", moving, key=_KEY + "curve", help="The other settings stay as in the best plan.")
    drawn = sensitivity_figure(lines[field], field, made.measure, made.beside(field))
    controls.chart(drawn, _KEY + "curve.chart")
    st.caption(
        "The curve has the other settings of the best plan; the current and the default plan are at their own figures."
    )
    others = [f for f in moving if f != field]
    if others:
        other = st.selectbox("y axis", others, key=_KEY + "heat")
        controls.chart(heat_figure(made.heat(field, other), made.measure), _KEY + "heat.chart")


def _bars(made: Sweep) -> None:
    if made.best_index == 0:
        st.caption("The plan that you have is the best one tried.")
        return
    frame = made.before.wins(made.after, made.measure)
    win_bars(frame, made.measure, ("the plan now", "the best plan"), (made.baseline, made.best), "tune")


def win_bars(frame: Any, measure: str, names: tuple[str, str], plans: tuple[Plan, Plan], page: str) -> None:
    """Sorted bars of queries won and lost, and the queries as links to the Search page under both plans; a bar that is
    clicked shows its query alone.
    """
    key = f"{controls.PREFIX}{page}.wins"
    event = st.plotly_chart(wins_figure(frame, measure, names), key=key, config=controls.PLOT, on_select="rerun")
    chosen = [p["customdata"][0] for p in getattr(event, "selection", {}).get("points", []) if p.get("customdata")]
    moved = [r for r in frame.iter_rows(named=True) if abs(r["difference"]) > 1e-12]
    first = [r for r in moved if r["query_id"] in chosen]
    for row in first[:1]:
        query = row["query"] or row["query_id"]
        link = escape(jobs.search_link(query, *plans))
        st.html(f'<a class="wb-button" href="{link}">Open under both plans: {visible(plain(query, 90))}</a>')
    if not first and moved:
        st.caption("Click a bar to open its query under both plans.")
    shown = first or (moved[: _ROWS // 2] + moved[max(_ROWS // 2, len(moved) - _ROWS // 2) :])
    rows = []
    for row in shown:
        query = row["query"] or row["query_id"]
        numbers = (f"{row['difference']:+.3f}", f"{row['first']:.3f}", f"{row['second']:.3f}")
        rows.append((*numbers, tables.link(jobs.search_link(query, *plans), query)))
    st.html(tables.table(("difference", *names, "query"), rows, range(3)))


# --- the sliders ----------------------------------------------------------------------------------------------------------


def _sliders(corpus: Corpus) -> None:
    state = app_state.current()
    with st.sidebar:
        sidebar.tuned(state.moved, state, corpus)


# --- where to cut -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    plan: Plan
    found: Mapping[str, Distribution]
    warnings: tuple[str, ...]


def _thresholds(corpus: Corpus, name: str) -> None:
    st.subheader("Choose a threshold")
    st.caption(
        "Where relevant and other results lie in each source's scores, and the threshold that loses at most so many of the "
        "relevant. The judged queries are searched with the plan of the Search page: each source without its threshold, the "
        "fused score under those of the sources."
    )
    if st.button("Draw the scores", key=_SCORES_KEY + "run", disabled=jobs.busy(SCORES)):
        st.session_state[SCORES] = jobs.Job(_scores(corpus, name, app_state.current().plan, auth.may_index()))
        st.rerun()
    made = jobs.watch(SCORES, _SCORES_KEY)
    if isinstance(made, Scores):
        _distributions(made)


def _scores(corpus: Corpus, name: str, plan: Plan, files: bool) -> jobs.Work:
    def work(tell: Any, stop: Any) -> Scores:
        pool = Pool(corpus.engine, jobs.read_judged(corpus, name, files), principal=corpus.principal)
        found = distributions(pool, plan, progress=tell, stop=stop)
        return Scores(plan, found, pool.warnings)

    return work


@st.fragment
def _distributions(made: Scores) -> None:
    names = sorted(made.found, key=lambda n: not made.found[n].distances)
    left, right = st.columns(2)
    name = left.selectbox(
        "Scores of", names, key=_SCORES_KEY + "source", help="The plan's sources, and the fused score."
    )
    help = "Each relevant document (or judged passage) of a query counts once, at its best candidate."
    percent = right.slider(
        "Relevant passages you can afford to lose (%)", 0.0, 30.0, 5.0, 0.5, key=_SCORES_KEY + "lose", help=help
    )
    found = made.found[str(name)]
    for warning in made.warnings:
        st.html(cards.note(warning))
    if not len(found.relevant):
        st.caption(f"No relevant result is among the candidates of {visible(plain(found.source, 60))}.")
        return
    at, now = found.advised(percent / 100), made.plan.threshold(found.source)
    shown = None if now == OFF else float(now)
    alt = f"Distribution of the {found.axis} of relevant and other results."
    controls.chart(distribution_figure(found.frame(), found.axis, at, shown), _SCORES_KEY + "chart", alt)
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
    if st.button(f"Use {at:g} as the threshold{of}", key=_SCORES_KEY + "use", type="primary"):
        _use(made.plan, {found.source: at})
    if found.distances and len(every) > 1:
        st.html(_threshold_table(made, every))
        if st.button(
            f"Use these {len(every)}", key=_SCORES_KEY + "use_all", help="Each source's own threshold, at once."
        ):
            _use(made.plan, every)


def _use(asked: Plan, thresholds: Mapping[str, float]) -> None:
    """Put thresholds of sources into the shared plan, each into the field that moves that source alone."""
    plan = app_state.current().plan
    changes = {plan.threshold_to_set(source): at for source, at in thresholds.items()}
    controls.renew(changes)
    by = {base_of(source) for source in thresholds}
    metric = {"vector.metric": asked["vector.metric"]} if "vector" in by else {}
    app_state.update("the threshold", plan=plan.replace({**changes, **metric}))
    words = " and ".join(f"{at:g} ({field})" for field, at in changes.items())
    where = f"at {asked['vector.metric']} distance" if metric else cut_words(by.pop()).replace(" a ", " the ")
    app_state.message(f"The shared plan cuts {where} {words} now; Undo on the Search page takes it back.")
    st.rerun()


def _threshold_table(made: Scores, every: Mapping[str, float]) -> str:
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
    words = f"A threshold of {at:.4g} ({found.axis}) drops {round(lost * len(found.relevant)):,} of {len(found.relevant):,} "
    words += f"relevant passages ({lost:.1%})"
    return words + (f" and {dropped:.0%} of {rest:,} others." if rest else ".")
