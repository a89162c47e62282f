"""The Tune page: try plans on judged queries, see how the figure moves, and take the best plan to the Search page.

Above, what is tried and the run itself, in a thread; in the middle what it found; and beside the sliders of the sidebar the
figure of the plan that they make, from kept candidates, at each move.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.charts.tuning import heat_figure, sensitivity_figure, wins_figure
from workbench.errors import NeedsSearch, WorkbenchError
from workbench.evaluate.differing import wins
from workbench.evaluate.live import LiveMeasure
from workbench.records import Progress
from workbench.ui import cards, controls, resources, sign_in, tuning
from workbench.ui import state as app_state
from workbench.ui.text import plain, visible

if TYPE_CHECKING:
    from workbench.evaluate.swept import Sweep
    from workbench.service import Corpus

MEASURES = ("nDCG@10", "RR@10", "R@100", "P@10", "AP", "Success@5")
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
    "preset": "default,tmm",
}
FIRST = ("fusion.method", "fusion.k", "fusion.alpha", "fusion.normalise")
_KEY = controls.PREFIX + "tune."
_JOB, _LIVE = "wb.tune.job", "wb.tune.live"
_CONFIG = {"displayModeBar": False, "responsive": True}
_ROWS = 40
NUMBER = '<td style="white-space:nowrap">{}</td>'


def draw(corpus: Corpus) -> None:
    """Draw the page."""
    name = judgments_box(corpus, "tune")
    if not name:
        return
    measure = _form(corpus, name)
    _live_sliders()
    _live(corpus, name, measure)
    running()
    job = st.session_state.get(_JOB)
    if isinstance(job, tuning.Job) and not job.running and job.error is None and job.result is not None:
        _found(job.result)


def files_allowed() -> bool:
    """Whether the person at the page is the one at this machine, whose files may be read."""
    return sign_in.may_index()


def judgments_box(corpus: Corpus, page: str) -> str:
    """The choice of judgments: a query set, or a path; "" where there is nothing to choose yet."""
    sets = [s.name for s in corpus.judging.overview() if s.judgments]
    files = files_allowed()
    if not sets and not files:
        st.text("There are no judged query sets yet. Judge some results on the Judge page first.")
        return ""
    chosen, typed = st.columns([1, 2], vertical_alignment="bottom")
    prefix = f"{controls.PREFIX}{page}."
    with chosen:
        name = st.selectbox(
            "Query set", sets, index=0 if sets else None, key=prefix + "set", placeholder="none yet",
            help="Queries judged on the Judge page, or made by `workbench judge make`.",
        )  # fmt: skip
    with typed:
        if files:
            path = st.text_input(
                "or a path", key=prefix + "path", placeholder="a BEIR folder, TREC qrels, CSV or JSONL",
                help="Judgments on this machine; a path goes before the query set.",
            )  # fmt: skip
            name = path.strip() or name
    if not name:
        st.text("Type the path of judgments, or make a query set from your own documents in a terminal:")
        st.code(f"workbench judge make --corpus {plain(str(resources.corpus_path()), 300)}", language=None)
    return str(name or "").strip()


def _form(corpus: Corpus, name: str) -> str:
    """What is tried, and the button that starts it; the measure."""
    first, second, third, fourth = st.columns([2, 1, 1, 1], vertical_alignment="bottom")
    with first:
        measure = st.selectbox("Measure", MEASURES, key=_KEY + "measure", help="What chooses the best plan.")
    with second:
        folds = st.number_input(
            "Folds",
            0,
            20,
            5,
            key=_KEY + "folds",
            help="The reported figure of each fold is of a plan that the others chose.",
        )
    with third:
        search = st.selectbox(
            "Search", ("grid", "random", "optuna"), key=_KEY + "search", help="Every combination, or some."
        )
    with fourth:
        trials = st.number_input("Trials", 1, 5_000, 100, key=_KEY + "trials", disabled=search == "grid")
    fields = st.multiselect(
        "Settings to try", list(OFFERED), default=list(FIRST), accept_new_options=True, key=_KEY + "fields",
        help="Any setting of the plan by its dotted name. What a method does not read is not tried twice.",
    )  # fmt: skip
    words = []
    for position, field in enumerate(fields):
        if position % 4 == 0:
            places = st.columns(4)
        with places[position % 4]:
            values = st.text_input(
                field, OFFERED.get(field, ""), key=f"{_KEY}values.{field}", help="1,2,3 or 0..1:0.1 or 1..100~"
            )
            words.append(f"{field}={values}")
    job = st.session_state.get(_JOB)
    busy = isinstance(job, tuning.Job) and job.running
    if st.button("Try them", type="primary", key=_KEY + "run", disabled=busy or not fields):
        plan = app_state.current().plan
        st.session_state[_JOB] = tuning.Job(
            tuning.sweep_work(corpus, name, files_allowed(), words, plan, measure, int(folds), search, int(trials))
        )
    st.caption(
        f"Everything else is as in the plan of the Search page: {visible(plain(str(app_state.current().plan), 300))}"
    )
    return str(measure)


@st.fragment(run_every=0.6)
def running() -> None:
    """Progress and a stop while a run is on; draws the page once more when it ends."""
    job = st.session_state.get(_JOB)
    if not isinstance(job, tuning.Job):
        return
    if job.running:
        report = job.progress
        share = report.done / report.total if report.total else 0.0
        left = "" if report.seconds_left is None else f", {report.seconds_left:.0f} s left"
        st.progress(min(1.0, share), f"{report.step}: {report.done:,} of {report.total:,}{left}")
        st.button("Stop", key=_KEY + "stop", on_click=job.stop, help="Ends with what is done.")
        st.session_state[_KEY + "watched"] = True
    elif st.session_state.pop(_KEY + "watched", False):
        st.rerun()
    elif job.error is not None:
        st.html(cards.alert("", job.error.message, job.error.remedy))


# --- what was found -----------------------------------------------------------------------------------------------------


def _found(made: Sweep) -> None:
    st.subheader("What was found")
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
    use, yaml, python, link = st.columns(4)
    with use:
        if st.button("Use it on the Search page", type="primary", key=_KEY + "use"):
            app_state.update("the tuned plan", plan=made.best)
            st.switch_page("views/search.py")
    yaml.download_button("As YAML", made.to_yaml(), "plan.yaml", key=_KEY + "yaml", on_click="ignore")
    python.download_button("As Python", made.to_python(), "plan.py", key=_KEY + "python", on_click="ignore")
    link.html(f'<a href="{escape(tuning.search_link("", made.best))}" target="_self">Search with it (link)</a>')
    curve, bars = st.columns(2)
    with curve:
        _curves(made)
    with bars:
        _bars(made)
    st.dataframe(made.frame(50).drop("plan", "p"), key=_KEY + "table", hide_index=True)
    st.caption("Means on the queries that chose, best first; p_holm is corrected for the number of plans.")


@st.fragment
def _curves(made: Sweep) -> None:
    fields = [f for f in made.space.fields if f != "preset"]
    lines = {f: made.sensitivity(f) for f in fields}
    moving = [f for f in fields if lines[f].height > 1]
    if not moving:
        st.caption("Nothing that the best plan reads took more than one value.")
        return
    field = st.selectbox("Over", moving, key=_KEY + "curve", help="The other settings stay as in the best plan.")
    st.plotly_chart(sensitivity_figure(lines[field], field, made.measure), key=_KEY + "curve.chart", config=_CONFIG)
    others = [f for f in moving if f != field]
    if others:
        other = st.selectbox("and over", others, key=_KEY + "heat")
        st.plotly_chart(
            heat_figure(made.heat(field, other), made.measure), key=_KEY + "heat.chart", config=_CONFIG
        )  # fmt: skip


def _bars(made: Sweep) -> None:
    if made.best_index == 0:
        st.caption("The plan that you have is the best one tried.")
        return
    frame = wins(made.before, made.after, made.measure)
    win_bars(frame, made.measure, ("the plan now", "the best plan"), "tune")


def win_bars(frame: Any, measure: str, names: tuple[str, str], page: str) -> None:
    """Sorted bars of queries won and lost, and the queries as links to the Search page."""
    key = f"{controls.PREFIX}{page}.wins"
    event = st.plotly_chart(wins_figure(frame, measure, names), key=key, config=_CONFIG, on_select="rerun")
    chosen = [p["customdata"][0] for p in getattr(event, "selection", {}).get("points", []) if p.get("customdata")]
    moved = [r for r in frame.iter_rows(named=True) if abs(r["difference"]) > 1e-12]
    first = [r for r in moved if r["query_id"] in chosen]
    shown = first or (moved[: _ROWS // 2] + moved[max(_ROWS // 2, len(moved) - _ROWS // 2) :])
    rows = "".join(_row(r) for r in shown)
    head = f"<tr><th>difference</th><th>{visible(names[0])}</th><th>{visible(names[1])}</th><th>query</th></tr>"
    st.html(f'<div class="wb-scroll"><table class="wb-table">{head}{rows}</table></div>')


def _row(row: dict[str, Any]) -> str:
    query = row["query"] or row["query_id"]
    link = f'<a href="{escape(tuning.search_link(query))}" target="_blank">{visible(plain(query, 120))}</a>'
    numbers = (f"{row['difference']:+.3f}", f"{row['first']:.3f}", f"{row['second']:.3f}")
    return "<tr>" + "".join(NUMBER.format(n) for n in numbers) + f"<td>{link}</td></tr>"


# --- the figure beside the sliders --------------------------------------------------------------------------------------


def _live_sliders() -> None:
    plan = app_state.current().moved
    with st.sidebar:
        st.caption("Move a setting and read the figure: nothing is searched again.")
        controls.choice(plan, "fusion.method", "Method")
        if plan["fusion.method"] == "convex":
            controls.slider(plan, "fusion.alpha", "alpha: vector's share", 0.0, 1.0, 0.01)
        else:
            for source in plan.sources:
                controls.slider(plan, f"fusion.weights.{source}", f"Weight of {source}", 0.0, 2.0, 0.05)
        if plan["fusion.method"] == "rrf":
            controls.slider(plan, "fusion.k", "k", 1.0, 200.0, 1.0)
        controls.threshold(plan)
        controls.reset()


@st.fragment(key=controls.ANSWERS)
def _live(corpus: Corpus, name: str, measure: str) -> None:
    """The figure of the plan that the sliders make; drawn again at each move."""
    app_state.written_in_fragment()
    plan = app_state.current().moved
    live = st.session_state.get(_LIVE)
    key = (corpus.engine.generation, name, measure)
    kept = live[1] if live is not None and live[0] == key else None
    try:
        if isinstance(kept, LiveMeasure) and kept.ready(plan):
            figure = kept.figure(plan)
            st.metric(figure.measure, f"{figure.mean:.3f}", f"{figure.difference:+.3f}" if figure.difference else None)
            st.caption(
                f"{figure.low:.3f} to {figure.high:.3f}; {figure.better} queries better, {figure.worse} worse than at the start; "
                f"{figure.milliseconds:.0f} ms"
            )
            return
    except NeedsSearch as exc:
        st.caption(exc.message)
    if st.button(
        "Show the figure beside the sliders", key=_KEY + "prepare",
        help="Retrieves the judged queries once; after that each move takes milliseconds.",
    ):  # fmt: skip
        _prepare(corpus, name, measure, key, kept)
        st.rerun()


def _show(bar: Any, report: Progress) -> None:
    bar.progress(
        report.done / max(report.total, 1), f"Retrieving the judged queries: {report.done:,} of {report.total:,}"
    )


def _prepare(corpus: Corpus, name: str, measure: str, key: tuple[str, str, str], kept: Any) -> None:
    bar = st.progress(0.0, "Retrieving the judged queries")
    try:
        live = kept
        if not isinstance(live, LiveMeasure):
            judged = tuning.read_judged(corpus, name, files_allowed())
            live = LiveMeasure(corpus.engine, judged, measure, principal=corpus.principal)
        live.prepare(app_state.current().moved, lambda report: _show(bar, report))
        st.session_state[_LIVE] = (key, live)
    except WorkbenchError as exc:
        app_state.notice(str(exc))
    bar.empty()
