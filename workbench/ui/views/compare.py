"""The Compare page: any number of plans on the same queries. Measures and latency with intervals, verdicts against one of the
plans, the queries of two of them, and the measures over time.

Where lists differ needs no judgments: queries that were typed, or a set that nobody has judged, will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.charts import history_figure
from workbench.errors import counted
from workbench.evaluate.leaderboard import Leaderboard, queries_only
from workbench.evaluate.sweep import FEW_QUERIES
from workbench.judgments.qrels import Judgments
from workbench.markup import csv_of, plain, visible
from workbench.plan.plan import Plan
from workbench.plan.presets import PRESETS
from workbench.snapshot import Snapshot
from workbench.snapshot.snapshot import Library
from workbench.ui import auth, jobs, resources
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, live, standings, tables
from workbench.ui.routes import PATH
from workbench.ui.views import tune

if TYPE_CHECKING:
    from workbench.corpus import Corpus

_KEY = controls.PREFIX + "compare."
_JOB = "wb.compare.job"
_PLANS, _MEASURES, _BASE, _WITH = "plans", "measures", "base", "with"
_FIRST_MEASURES = ("nDCG@10", "R@100", "RR@10")


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A leaderboard, the generation that it is of, the query set, if it is of one, and the measures that were asked for."""

    board: Leaderboard
    generation: str
    name: str
    measures: Sequence[str]


def draw(corpus: Corpus) -> None:
    job = st.session_state.get(_JOB)
    if isinstance(job, jobs.Job) and isinstance(job.result, Measured) and not app_state.page_value(_PLANS):
        _to_address(job.result.board.names, job.result.measures)  # somebody came back to the page
    name = tune.judgments_box(corpus, "compare", judged=False)
    with controls.section("Queries without a set", "compare.typed") as opened:
        typed = (
            st.text_area(
                "Queries, one per line",
                key=_KEY + "queries",
                height=100,
                placeholder="how do retries work",
                help="Need no judgments: latencies, and where the plans' lists differ most. They go before the set.",
            )
            if opened.open
            else ""
        )
    queries = tuple(dict.fromkeys(line.strip() for line in typed.splitlines() if line.strip()))
    with controls.place():
        if name or queries:
            _form(corpus, name, queries)
        else:
            live.no_set("Type queries, choose a set of them, or make one.")
        made = jobs.watch(_JOB, _KEY)
    if isinstance(made, Measured):
        _found(corpus, made)
    _history(corpus, made.name if isinstance(made, Measured) else name)


def _to_address(plans: Sequence[str], measures: Sequence[str]) -> None:
    app_state.set_page_values(**{_PLANS: "\n".join(plans), _MEASURES: ",".join(measures), _BASE: "", _WITH: ""})


def _labels(texts: Sequence[str]) -> list[str]:
    """What plans are called: the name that one is saved under, `current`, or its text."""
    names = {str(app_state.current().plan): "current plan", **resources.plan_names()}
    names |= {p.name: p.name for p in PRESETS}
    return [names.get(text, text) for text in texts]


def _form(corpus: Corpus, name: str, queries: tuple[str, ...]) -> None:
    now = str(app_state.current().plan)
    offered = list(dict.fromkeys([now, *resources.saved_plans().values(), *(p.name for p in PRESETS)]))
    asked = [text for text in app_state.page_value(_PLANS).split("\n") if text]
    first = asked or list(dict.fromkeys([now, "default", "rrf"]))
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    plans = left.multiselect(
        "Plans",
        list(dict.fromkeys([*offered, *first])),
        default=first,
        format_func=lambda text: _labels([text])[0],
        accept_new_options=True,
        key=_KEY + "plans",
        help="Presets, saved plans, or a plan's text form, typed or pasted: `default fusion.alpha=0.7`.",
    )
    measured = [m for m in app_state.page_value(_MEASURES).split(",") if m] or list(_FIRST_MEASURES)
    measures = right.multiselect(
        "Measures",
        list(dict.fromkeys([*live.MEASURES, *measured])),
        default=measured,
        accept_new_options=True,
        key=_KEY + "measures",
        help="Any ir_measures name, such as `P@5`. The first one decides the order and the verdicts.",
    )
    what = f"{len(queries):,} queries" if queries else plain(name.rstrip("/").rsplit("/", 1)[-1], 40)
    label = f"Measure {counted(len(plans), 'plan')} on {what}"
    pressed = st.button(label, type="primary", key=_KEY + "run", disabled=jobs.busy(_JOB) or not plans or not measures)
    if pressed or (asked and st.session_state.get(_JOB) is None):
        with controls.faults():
            texts = list(dict.fromkeys(str(Plan.parse(text)) for text in plans))
            if pressed:
                _to_address(texts, measures)
            st.session_state[_JOB] = jobs.Job(_work(corpus, name, queries, auth.may_index(), texts, measures))


def _work(
    corpus: Corpus, name: str, queries: Sequence[str], files: bool, plans: Sequence[str], measures: Sequence[str]
) -> jobs.Work:
    """The work of a leaderboard: on queries that were typed, else on those of a set or of judgments."""

    def work(progress: Any, stop: Any) -> Measured:
        if queries:
            judged = queries_only(queries)
        elif name in {s.name for s in corpus.judging.overview() if not s.judgments}:
            known = corpus.judging.queries(name)
            judged = Judgments({q.query_id: q.topic for q in known}, {q.query_id: {} for q in known}, name)
        else:
            judged = jobs.read_judged(corpus, name, files)
        board = corpus.leaderboard(judged, plans, measures, progress=progress, stop=stop)
        return Measured(board, corpus.generation, "" if queries else judged.name, measures)

    return work


# --- what was found -----------------------------------------------------------------------------------------------------


def _choice(label: str, value: str, options: Sequence[int], labels: Sequence[str], first: int, place: Any) -> int:
    """The choice of a plan, bound to a value of the page in the address."""
    asked = app_state.page_value(value)
    at = options.index(int(asked)) if asked.isdigit() and int(asked) in options else options.index(first)
    chosen = place.selectbox(
        label, options, index=at, format_func=labels.__getitem__, key=f"{_KEY}{value}.{len(labels)}.{options}"
    )
    if str(chosen) != asked and chosen != first:
        app_state.set_page_values(**{value: str(chosen)})
    return int(chosen)


def _found(corpus: Corpus, made: Measured) -> None:
    board, labels = made.board, _labels(made.board.names)
    st.subheader("Leaderboard", anchor=False)
    count = len(board.evaluations)
    places = st.columns([2, 2, 1], vertical_alignment="bottom")
    base = _choice("Baseline (A)", _BASE, list(range(count)), labels, board.baseline, places[0])
    board = resources.once("board", (made, base), lambda: made.board.against(base))
    others = [n for n in board.order if n != base]
    second = _choice("Compared with (B)", _WITH, others, labels, others[0], places[1]) if others else base
    rows = resources.once("rows", (made, base), board.frame)
    measure = ""
    if board.measures:
        measure = str(places[2].selectbox("Measure", board.measures, key=_KEY + "measure"))
        if (d := board.differences(measure)[second]) is not None:
            text = f"p is corrected for {len(others)} comparisons (Holm)." if len(others) > 1 else ""
            if d.queries < FEW_QUERIES:
                text += f" {counted(d.queries, 'query|queries')} are too few to tell plans apart."
            st.html(standings.verdict(d, (labels[base], labels[second]), text))
    st.html(standings.board_html(board, rows, labels, second))
    for warning in board.warnings:
        st.html(cards.note(warning))
    if measure and others:
        controls.chart(standings.forest(board, labels, measure), _KEY + "forest", "Differences to the baseline.")
    _share(corpus, made, board, rows)
    if others:
        st.subheader("Queries", anchor=False)
        standings.queries(corpus, board, second, measure, (labels[base], labels[second]), _KEY)


def _share(corpus: Corpus, made: Measured, board: Leaderboard, rows: Any) -> None:
    if made.generation != corpus.generation:
        st.caption("The corpus has changed since this was measured: measure again to save or share it.")
        return
    evaluations = [board.base, *(board.evaluations[n] for n in board.order if n != board.baseline)]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        controls.download("Download CSV", csv_of(rows), "leaderboard.csv", _KEY + "csv.board")
        if not board.judged:
            return
        note = st.text_input("Note", key=_KEY + "note", placeholder="what this is", label_visibility="collapsed")

        title, by = note.strip() or f"Leaderboard: {made.name}", resources.person()

        def snapshot() -> Snapshot:
            return Snapshot.of(evaluations, note=title, corpus=corpus, by=by)

        controls.download("Download report (HTML)", lambda: snapshot().html(), "leaderboard.html", _KEY + "html")
        help = "As a snapshot with a link, and as a point of the measures over time."
        if st.button("Save", key=_KEY + "save", help=help):
            kept = snapshot()
            Library(corpus.path).keep(kept)
            corpus.keep_evaluations(evaluations)
            link = f'<a href="{PATH}{kept.id}" target="_blank" rel="noopener">{visible(plain(kept.title, 80))}</a>'
            st.html(f'<p class="wb-status">Saved: {link}</p>')


def _history(corpus: Corpus, name: str) -> None:
    with controls.section("Measures over time", "compare.history") as opened:
        if not opened.open:
            return
        every = corpus.measured()
        own = every.filter(judgments=name) if name in every["judgments"] else every
        if not len(own):
            st.caption(
                "Nothing is kept yet: save a leaderboard above, or run `workbench check` or `workbench eval JUDGMENTS --keep`."
            )
            return
        sets = list(dict.fromkeys(own["judgments"]))
        left, right = st.columns(2)
        chosen = left.selectbox("Judgments", sets, key=f"{_KEY}over.{len(sets)}")
        own = own.filter(judgments=chosen)
        measure = right.selectbox("Measure", list(dict.fromkeys(own["measure"])), key=f"{_KEY}over.measure.{chosen}")
        shown = own.filter(measure=measure)
        controls.chart(history_figure(shown, str(measure)), _KEY + "history", f"{measure} of each plan over time.")
        st.caption("A dotted line: another generation of the corpus answers from there on.")
        key, heads = _KEY + "history.table", {"at": "At (UTC)", "changed": "Other judgments"}
        table = tables.headed(shown.drop("measure", "judgments").reverse(), **heads)
        columns = {
            "At (UTC)": st.column_config.DatetimeColumn(format="D MMM YYYY, HH:mm"),
            "Other judgments": st.column_config.CheckboxColumn(help="Than at the point before."),
        }
        st.dataframe(table, hide_index=True, key=key, column_config=columns)
