"""The Compare page: two plans on the same queries. Who wins where, on which queries they differ most, and the verdict.

Where the two lists differ needs no judgments: queries that were typed, or a set that nobody has judged, will do.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.errors import PlanError
from workbench.evaluate.evaluation import Evaluation, Lists, lists_of, queries_only, score_run
from workbench.evaluate.pool import Pool
from workbench.judgments.qrels import Judgments
from workbench.markup import plain
from workbench.plan.plan import Plan
from workbench.plan.presets import PRESETS
from workbench.ui import auth, jobs, resources
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, tables
from workbench.ui.components.live import MEASURES
from workbench.ui.views import tune

if TYPE_CHECKING:
    from workbench.corpus import Corpus

_KEY = controls.PREFIX + "compare."
_JOB = "wb.compare.job"
_ROWS = 30
_SPAN = re.compile(r"#\d+-\d+$")
"""Characters of a passage that nobody judged, after the path in its key: nothing to read."""


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Two plans on the same queries: lists always, evaluations where there are judgments."""

    lists: Lists
    first: Evaluation | None
    second: Evaluation | None
    measure: str


def _work(
    corpus: Corpus, name: str, queries: Sequence[str], files: bool, first: Plan, second: Plan, measure: str
) -> jobs.Work:
    """The work of a comparison: on queries that were typed, else on those of a set or of judgments. Without judgments the
    lists alone are compared.
    """

    def work(progress: Any, stop: Any) -> Compared:
        if queries:
            judged = queries_only(queries)
        elif name in {s.name for s in corpus.judging.overview() if not s.judgments}:
            known = corpus.judging.queries(name)
            judged = Judgments({q.query_id: q.topic for q in known}, {q.query_id: {} for q in known}, name)
        else:
            judged = jobs.read_judged(corpus, name, files)
        lists = lists_of(
            Pool(corpus.engine, judged, principal=corpus.principal), first, second, progress=progress, stop=stop
        )
        if not any(judged.qrels.values()):
            return Compared(lists, None, None, measure)
        one, two = (
            score_run(run, lists.judgments, [measure, "Judged@10"], name=text)
            for run, text in zip(lists.rankings, lists.names, strict=True)
        )
        return Compared(lists, one, two, measure)

    return work


def draw(corpus: Corpus) -> None:
    name = tune.judgments_box(corpus, "compare", judged=False)
    typed = st.text_area(
        "or queries, one per line",
        key=_KEY + "queries",
        height=80,
        placeholder="how do retries work",
        help="Needs no judgments: says on which queries the plans differ most. Goes before the set.",
    )
    queries = tuple(dict.fromkeys(line.strip() for line in typed.splitlines() if line.strip()))
    if not name and not queries:
        st.text("Type queries, choose a set of them, or make one from your own documents in a terminal:")
        st.code(f"workbench judge make --corpus {shlex.quote(plain(str(resources.corpus_path()), 300))}", language=None)
        return
    now = str(app_state.current().plan)
    offered = list(dict.fromkeys([now, *(p.name for p in PRESETS)]))
    left, right, third = st.columns([2, 2, 1], vertical_alignment="bottom")
    help = (
        "A preset, or a plan's text form such as `default fusion.alpha=0.7`. The first is the plan of the Search page."
    )
    options: dict[str, Any] = {"accept_new_options": True, "key": _KEY + "first", "help": help}
    first = left.selectbox("First plan", offered, index=0, **options)
    options |= {"key": _KEY + "second", "help": "The one that may be better."}
    second = right.selectbox("Second plan", offered, index=min(1, len(offered) - 1), **options)
    measure = third.selectbox("Measure", MEASURES, key=_KEY + "measure")
    if st.button("Compare them", type="primary", key=_KEY + "run", disabled=jobs.busy(_JOB)):
        try:
            plans = Plan.parse(first), Plan.parse(second)
            st.session_state[_JOB] = jobs.Job(_work(corpus, name, queries, auth.may_index(), *plans, measure))
        except PlanError as exc:
            app_state.notice(str(exc))
    made = jobs.watch(_JOB, _KEY)
    if isinstance(made, Compared):
        _found(made)


def _found(made: Compared) -> None:
    first, second = (Plan.parse(text) for text in made.lists.names)
    st.subheader("Result")
    agreement = f"Agreement of the two lists (RBO, 1 is the same list): {made.lists.agreement:.2f}"
    if made.first is None or made.second is None:
        st.text(f"{agreement}, over {len(made.lists.judgments)} queries without judgments.")
        st.text("Queries on which they differ most: judge these first")
        _most_different(made, (first, second))
        return
    st.text(made.first.compare(made.second, made.measure).verdict)
    judged = f"{made.first.coverage.judged:.0%} and {made.second.coverage.judged:.0%} of their first ten are judged"
    st.caption(
        f"{agreement}; {judged}."
        + (" Few judged: who finds what nobody judged looks worse." if made.second.coverage.judged < 0.5 else "")
    )
    frame = made.first.wins(made.second, made.measure)
    bars, apart = st.columns(2)
    with bars:
        tune.win_bars(frame, made.measure, ("the first", "the second"), (first, second), "compare")
    with apart:
        st.text("Queries on which they differ most (no judgments needed): judge these first")
        _most_different(made, (first, second))
    st.dataframe(
        frame,
        key=_KEY + "table",
        hide_index=True,
        column_config={"first": made.lists.names[0], "second": made.lists.names[1]},
    )


def _most_different(made: Compared, plans: tuple[Plan, Plan]) -> None:
    rows = []
    for row in made.lists.frame().head(_ROWS).iter_rows(named=True):
        query = row["query"] or row["query_id"]
        link = tables.link(jobs.search_link(query, *plans), query)
        rows.append((f"{row['rbo']:.2f}", row["shared"], link, tables.Html(found_only(row["only_second"], query))))
    st.html(tables.table(("RBO", "shared of 10", "query", "only the second has"), rows, (0, 1)))


def found_only(keys: Sequence[str], query: str) -> str:
    paths = list(dict.fromkeys(_SPAN.sub("", key) for key in keys))[:2]
    return " · ".join(tables.link(cards.document_address(path, asked={"q": query}), path, 60).html for path in paths)
