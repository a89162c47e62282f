"""The Tune page: try plans on judged queries, see how the figure moves, and take the best plan to the Search page.

Above, what is tried and the run itself, in a thread; then what it found; below, where relevant and other results lie in a
source's scores, and what a threshold costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.charts import distribution_figure
from workbench.charts.tuning import heat_figure, sensitivity_figure, wins_figure
from workbench.errors import WorkbenchError
from workbench.evaluate.distribution import Distribution, distributions
from workbench.evaluate.grid import read_space
from workbench.evaluate.leaderboard import Leaderboard
from workbench.evaluate.outlook import outlook
from workbench.evaluate.pool import Pool
from workbench.evaluate.sweep import Sweep
from workbench.markup import plain, visible
from workbench.plan.controls import cut_words, title_of
from workbench.plan.fields import OFF, base_of
from workbench.plan.plan import Plan, without_effect
from workbench.snapshot import Snapshot
from workbench.ui import auth, jobs, resources
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, live, sidebar, standings, tables
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
_MOST_COUNTED = 5_000


def draw(corpus: Corpus) -> None:
    name = judgments_box(corpus, "tune")
    if not name:
        return
    look_ahead = _form(corpus, name)
    with st.sidebar:
        sidebar.tuned(app_state.current().moved, app_state.current(), corpus)
    with controls.place():
        made = jobs.watch(JOB, _KEY)
    with controls.place():
        if isinstance(made, Sweep):
            _found(corpus, made)
    _thresholds(corpus, name)
    look_ahead()  # last: it asks a query


def judgments_box(corpus: Corpus, page: str, judged: bool = True) -> str:
    """The choice of judgments: a query set, or a path; "" where there is nothing to choose yet. `page` is part of the widgets'
    keys; with `judged`, sets without judgments are left out, and where there are none the page says how to get some.
    """
    sets = [name for name, (queries, judgments) in live.sets(corpus).items() if judgments or (queries and not judged)]
    files = auth.may_index()
    if not sets and not files and judged:
        live.no_set("There are no judged query sets yet. Make one from your documents, or judge some results first.")
        return ""
    chosen, typed = st.columns([1, 2], vertical_alignment="bottom")
    name = live.chosen(corpus)[0]
    at = sets.index(name) if name in sets else None
    values = controls.bound(f"{page}.set", name if name in sets else None, live.choose)
    help = "Queries judged on the Judge page, or made by `workbench judge make`."
    chosen.selectbox("Query set", sets, index=at, placeholder="none yet", help=help, **values)
    path = "" if name in live.sets(corpus) or name == live.OFF else name
    if files:
        values = controls.bound(f"{page}.path", path, lambda path: live.choose(path.strip()))
        help, example = "Judgments on this machine.", "a BEIR folder, TREC qrels, CSV or JSONL"
        typed.text_input("or a path", path, placeholder=example, help=help, **values)
    name = name if name in sets else path
    if not name and judged:
        live.no_set("Choose judged queries. There are none yet? Type the path of judgments, or make a query set.")
    return name


def _form(corpus: Corpus, name: str) -> Callable[[], object]:
    """What to try, and the run. Returns what says how much that is."""
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
        format_func=title_of,
        key=_KEY + "fields",
        help="Any setting of the plan; others by their dotted name (`fusion.k`). What a method does not read is not tried twice. "
        "All others are as in the shared plan, which the bar shows.",
    )
    words = []
    for position, field in enumerate(fields):
        if position % 4 == 0:
            places = st.columns(4)
        offered = OFFERED.get("vector.threshold" if field.startswith("threshold.vector") else field, "")
        key, help = f"{_KEY}values.{field}", f"`{field}`: 1,2,3 or 0..1:0.1 or 1..100~"
        words.append(f"{field}={places[position % 4].text_input(title_of(field), offered, key=key, help=help)}")
    files = auth.may_index()
    run, before = st.columns([1, 4], vertical_alignment="center")
    place = before.empty()
    if run.button("Run the sweep", type="primary", key=_KEY + "run", disabled=jobs.busy(JOB) or not fields):

        def work(progress: Any, stop: Any) -> Sweep:
            judged, space = jobs.read_judged(corpus, name, files), read_space(plan, words)
            most = min(int(folds), len(judged))
            how: dict[str, Any] = {"search": search, "trials": int(trials), "progress": progress, "stop": stop}
            return corpus.sweep(judged, space, measure, most if most > 1 else 0, **how)

        st.session_state[JOB] = jobs.Job(work)
    return lambda: place.caption(_outlook(corpus, name, plan, words, str(search), int(trials)))


def _outlook(corpus: Corpus, name: str, plan: Plan, words: Sequence[str], search: str, trials: int) -> str:
    """How many plans the sweep will try, and about how long that takes; what is wrong with the values."""
    files = auth.may_index()

    def found() -> str:
        try:
            space = read_space(plan, words)
            if search == "grid" and space.size > _MOST_COUNTED:
                return f"Up to {space.size:,} plans."
            pool = Pool(corpus.engine, jobs.read_judged(corpus, name, files), principal=corpus.principal)
            return outlook(pool, space, search, trials).words + "."
        except WorkbenchError as exc:
            return str(exc)

    key = (corpus.engine.key, name, resources.judged_at(corpus), str(plan), tuple(words), search, trials)
    return cards.in_markdown(resources.once("outlook", key, found), 300)


# --- what was found -----------------------------------------------------------------------------------------------------


def _found(corpus: Corpus, made: Sweep) -> None:
    st.subheader("Result")
    better = made.difference.significant and made.difference.difference > 0
    says = made.how[:1].upper() + made.how[1:] + "."
    if not better:
        says += f" No reason to change from {made.baseline}."
    st.html(standings.verdict(made.difference, (str(made.baseline), "the tuned plan"), says))
    facts = [
        f"{len(made.plans):,} plans on {len(made.query_ids)} queries in {made.seconds:.1f} s",
        f"the best plan for each query by itself (oracle) would give {made.oracle:.3f}",
        made.agreement,
    ]
    st.caption("; ".join(visible(f) for f in facts if f) + ".")
    for warning in made.warnings:
        st.html(cards.note(warning))
    st.text(f"Best plan on all queries: {made.best}")
    _take(corpus, made, better)
    curve, bars = st.columns(2)
    with curve:
        _curves(made)
    with bars:
        board = Leaderboard((made.before, made.after))
        if made.best_index == 0:
            st.caption("The plan that you have is the best one tried.")
        else:
            frame = made.before.wins(made.after, made.measure)
            drawn = wins_figure(frame, made.measure, ("the plan now", "the best plan"))
            controls.chart(drawn, _KEY + "wins", "Queries won and lost by the best plan.")
    if made.best_index:
        standings.queries(corpus, board, 1, made.measure, ("the plan now", "the best plan"), _KEY)
    columns = ("mean", "difference", "wins", "losses", "ties", "p_holm", "changes")
    frame = made.frame(50).select(columns)
    frame = frame.with_columns(frame["changes"].map_elements(_named, return_dtype=frame["changes"].dtype))
    shown = tables.headed(frame, wins="Better", losses="Worse", ties="Equal", p_holm="p", changes="Settings")
    st.dataframe(shown, key=_KEY + "table", hide_index=True)
    st.caption("Means on the training queries, best first; p is corrected for the number of plans (Holm).")


def _take(corpus: Corpus, made: Sweep, better: bool) -> None:
    """What to do with the best plan: use it where the verdict says that it is better, else look at it beside the current one."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if better:
            if st.button("Use it on the Search page", type="primary", key=_KEY + "use"):
                app_state.update("the tuned plan", plan=made.best)
                app_state.message("The tuned plan is the shared plan now; Undo takes it back.")
                st.switch_page(app_state.page_of(""))
        elif made.best_index and st.button("Look at both on the Search page", key=_KEY + "both"):
            standings.show_both(made.baseline, made.best)
        controls.download("Download as YAML", made.to_yaml(), "plan.yaml", _KEY + "yaml")
        controls.download("Download as Python", made.to_python(), "plan.py", _KEY + "python")

        by = resources.person()

        def report() -> str:
            return Snapshot.of(made, note=f"Tuning on {made.before.judgments.name}", corpus=corpus, by=by).html()

        controls.download("Download report (HTML)", report, "tuning.html", _KEY + "html")


def _named(changes: str) -> str:
    """What differs from the baseline, with the settings' names as the sidebar has them."""
    pairs = (word.partition("=") for word in changes.split(" "))
    return "; ".join(f"{title_of(name)} {value}".strip() for name, _, value in pairs)


@st.fragment
def _curves(made: Sweep) -> None:
    fields = [f for f in made.space.fields if f != "preset"]
    lines = {f: made.sensitivity(f) for f in fields}
    moving = [f for f in fields if lines[f].height > 1 and not without_effect(made.best, f)]
    moving.sort(key=lambda f: lines[f]["number"].null_count() > 0)  # a curve over numbers says most
    if not moving:
        st.caption("Nothing that the best plan reads took more than one value.")
        return
    help = "The other settings stay as in the best plan."
    field = st.selectbox("x axis", moving, format_func=title_of, key=_KEY + "curve", help=help)
    drawn = sensitivity_figure(lines[field], title_of(field), made.measure, made.beside(field))
    controls.chart(drawn, _KEY + "curve.chart")
    st.caption(
        "The curve has the other settings of the best plan; the current and the default plan are at their own figures."
    )
    others = [f for f in moving if f != field]
    if others:
        other = st.selectbox("y axis", others, format_func=title_of, key=_KEY + "heat")
        heat = made.heat(field, other).rename({name: title_of(name) for name in (field, other)})
        controls.chart(heat_figure(heat, made.measure), _KEY + "heat.chart")


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
    with controls.place():
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
        help = "Each source's own threshold, at once."
        if st.button(f"Use these {len(every)}", key=_SCORES_KEY + "use_all", help=help):
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
