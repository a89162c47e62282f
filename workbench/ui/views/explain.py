"""The Explain page: why each result has its rank, and where any other document went.

The settings that move the pictures are in the sidebar; one of them moved fuses again and searches nothing. The answer is one
fragment, drawn in the order of what a person looks at: what the search says, where the asked document is, then the pictures,
each group in a fragment of its own, so that choosing how many places are drawn redraws the pictures alone.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from workbench.charts import (
    Candidate,
    bump_figure,
    contribution_figure,
    funnel_figure,
    places,
    plane_figure,
    timing_figure,
)
from workbench.charts.layout import source_colour
from workbench.charts.search import ADDITIVE, PLANE_POINTS, most_places
from workbench.errors import WorkbenchError
from workbench.markup import attribute, plain, visible
from workbench.plan.fields import OFF, base_of, encoder_of
from workbench.plan.plan import Plan
from workbench.records import by_chunk
from workbench.retrieve.explain import Explanation, SourceStanding
from workbench.store.catalogue import Catalogue
from workbench.ui import marks, resources
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, sidebar, tables, thresholds
from workbench.ui.components.cards import number
from workbench.ui.components.tables import Html, table
from workbench.ui.state import AppState
from workbench.ui.views import search

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.retrieve.result import SearchResult

TOPS = (5, 10, 20, 50)
TARGET, MODE = "target", "hybrid"
_MOST_PATHS = 1_000
_FIRST_PATHS = 50
_SIMILAR = 8
_KEY = controls.PREFIX + "explain."


def draw(corpus: Corpus) -> None:
    state = app_state.current()
    search.query_line("The query to explain; the Search page has the same one.")
    _settings(state, corpus)
    if search.request_of(state).blank:
        st.caption("There is no search to explain yet: type a query, or come here from the Search page.")
        resources.no_query(corpus)
        return
    _answer(corpus)


def _settings(state: AppState, corpus: Corpus) -> None:
    plan = state.moved
    with st.sidebar:
        sidebar.some(("fusion.method", "fusion.alpha", "fusion.weights", "fusion.k"), plan, state, corpus)
        thresholds.draw(plan)
        sidebar.some(("limit",), plan, state, corpus)
        controls.reset()
        st.caption("Every other setting is on the Search page, and counts here too.")


@controls.part("answers")
def _answer(corpus: Corpus) -> None:
    state = app_state.current()
    result = resources.finder().result(corpus, search.request_of(state), MODE, state.moved)
    st.html(cards.messages_html(result.messages, result.warnings, result.unavailable))
    where = st.container()
    _pictures(corpus, result)
    with where:
        _where(corpus, result)
    _how(result)


# --- where is this document? ------------------------------------------------------------------------------------------


@st.fragment
def _where(corpus: Corpus, result: SearchResult) -> None:
    if app_state.asked_again():
        st.rerun()
    target = app_state.page_value(TARGET).strip()
    st.selectbox(
        "Find a document",
        _paths(corpus, result, target),
        accept_new_options=True,
        placeholder="A path, path:line, or chunk id",
        index=None,
        **controls.bound(f"explain.{TARGET}", target or None, aim),
        help="Shows its rank in every source, which step dropped it, and what would bring it in. "
        "Type any path as citations show it; the list has the nearest candidates first.",
    )
    if not target:
        return
    try:
        found = corpus.explain(result, target)
        similar = [] if found.found else _list_paths(corpus, _SIMILAR, target)
        if not found.found and len(similar) == 1:  # a part of one path is as good as the whole
            found, similar = corpus.explain(result, similar[0]), []
        state = app_state.current()
        st.html(standing(found, state))
        if found.changes and found.verified and not (found.query or found.without_filter):
            st.button(
                "Try it here",
                key=_KEY + "apply",
                on_click=_apply,
                args=(dict(found.changes),),
                help="Sets this on this page, so that the pictures show the document come in.",
            )
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
        return
    if not found.found:
        _refused(corpus, target)
        _offer(similar)


def _apply(changes: dict[str, Any]) -> None:
    """The button is in a fragment of its own, and what it sets moves the whole page: the sliders and the pictures."""
    before = app_state.current()
    app_state.set_plan(changes)
    if app_state.current() != before:
        app_state.ask_again()


def aim(target: str | None) -> None:
    app_state.set_page_values(**{TARGET: (target or "").strip()})


def _paths(corpus: Corpus, result: SearchResult, target: str) -> list[str]:
    """What the box offers: the candidates' paths, nearest first, then the corpus's own, as many as a list can show."""
    candidates = [path for _, path in result.documents(_FIRST_PATHS)]
    others = _first_paths(corpus.engine.key, corpus)
    return list(dict.fromkeys([*([target] if target else []), *candidates, *others]))


@st.cache_data(show_spinner=False, max_entries=16)
def _first_paths(key: str, _corpus: Corpus) -> list[str]:
    """Visible paths to choose from, kept for a generation: a slider must not list a large corpus again."""
    return _list_paths(_corpus, _MOST_PATHS)


def _list_paths(corpus: Corpus, most: int, part: str = "") -> list[str]:
    engine = corpus.engine
    return Catalogue(engine.opened).paths(engine.records.scope(corpus.principal, None, ()), most, part)


def _refused(corpus: Corpus, target: str) -> None:
    for file in Catalogue(corpus.engine.opened).refused_named(target, corpus.principal):
        st.html(cards.alert(f"{file.path} was not indexed ({file.status.value})", file.reason, file.remedy))


def _offer(paths: list[str]) -> None:
    if paths:
        st.caption("Did you mean:")
        with st.container(horizontal=True):
            for position, path in enumerate(paths):
                st.button(cards.in_markdown(path), key=f"{_KEY}similar-{position}", on_click=aim, args=(path,))


# --- pictures ---------------------------------------------------------------------------------------------------------


@st.fragment
def _pictures(corpus: Corpus, result: SearchResult) -> None:
    top = int(
        st.segmented_control(
            "Results to draw",
            TOPS,
            default=TOPS[1],
            required=True,
            key=_KEY + "top",
            help="How many of the fused list the first two pictures and the table show.",
        )
    )
    sources = tuple(c.source for c in result.fused.candidates.columns)
    shown = places(result.fused, result.order, top, result.outcome.rerank)
    if not shown:
        st.caption("No candidate is left to draw: the funnel says where they went.")
    else:
        left, right = st.columns(2, gap="medium")
        with left:
            _bump(result, top, sources)
        with right:
            alt, title = "Stacked contributions of each source, with the score.", "What adds up to each score"
            controls.chart(contribution_figure(shown, sources), _KEY + "contributions", alt, title)
            if result.fused.unit == "document":
                st.caption("The plan ranks documents: each is shown by its best passage.")
    left, right = st.columns(2, gap="medium")
    with left:
        _plane(corpus, result)
    with right:
        title = "How many were left after each step"
        controls.chart(funnel_figure(result.steps), _KEY + "funnel", "Candidates by step.", title)
        _timings(result)
    if shown:
        words = {"q": result.query, "keywords": result.keywords}
        st.html(candidates_table(shown, sources, {name: text for name, text in words.items() if text}))


def _timings(result: SearchResult) -> None:
    st.html('<h4 class="wb-chart">What took the time</h4>')
    if search.from_cache(result.timings_ms):
        st.caption(search.FROM_CACHE)
        return
    controls.chart(timing_figure({"search": result.timings_ms}), _KEY + "timings", "Milliseconds by step.")


def _bump(result: SearchResult, top: int, sources: tuple[str, ...]) -> None:
    reranked = bool(result.outcome.rerank)
    fits = most_places(len(sources), reranked)
    shown = places(result.fused, result.order, min(top, fits), result.outcome.rerank)
    figure = bump_figure(shown, sources, reranked=reranked, height=260 + 9 * len(shown))
    alt = "Rank in each source and in the fused list, one line a candidate."
    controls.chart(figure, _KEY + "bump", alt, "How ranks moved")
    if top > fits:
        st.caption(f"The first {fits} of {top}: more lines than that cannot be told apart. The table has them all.")


def _plane(corpus: Corpus, result: SearchResult) -> None:
    st.html('<h4 class="wb-chart">Keyword score against similarity</h4>')
    columns = result.candidates.columns
    keyword = next((c for c in columns if base_of(c.source) == "keyword"), None)
    vector = next((c for c in columns if base_of(c.source) == "vector"), None)
    if keyword is None or vector is None:
        st.caption("This picture needs a keyword and a vector source; the plan or the machine has only one of them.")
        return
    drawn = places(result.fused, np.arange(len(result.fused), dtype=np.int64), PLANE_POINTS)
    grades = marks.grades_of(corpus, app_state.current(), drawn)
    method = result.plan["fusion.method"]
    additive = method in ADDITIVE and result.score_kind == "fused"
    last, alt = max(1, len(result.hits)), "Candidates by keyword score and similarity, with the line of equal score."
    figure = plane_figure(result.fused, (keyword, vector), last=last, additive=additive, grades=grades)
    controls.chart(figure, _KEY + "plane", alt)
    if additive:
        judged = " Large shapes are judged." if grades else ""
        st.caption(f"Points above the dashed line outscore the last result. Filled points are results.{judged}")
    else:
        st.caption(f"With {method} and these sources there is no line of equal score. Filled points are results.")


# --- how it was done ------------------------------------------------------------------------------------------------------


def _how(result: SearchResult) -> None:
    with st.expander("The plan, and what was run", key=_KEY + "how", on_change="rerun") as how:
        if how.open:
            st.caption("The plan:")
            st.code(str(result.plan), language=None, wrap_lines=True)
            for statement in statements(result):
                st.caption(statement.title)
                st.code(statement.text, language=statement.language, wrap_lines=True)
    with st.container(horizontal=True):
        for kind, mime, help in search.EXPORTS:
            data, label = functools.partial(search.exported, resources.finder(), MODE, kind), f"Download {kind.upper()}"
            st.download_button(label, data, f"explain.{kind}", mime, key=_KEY + kind, on_click="ignore", help=help)


# --- as HTML and text -------------------------------------------------------------------------------------------------


STEPS: Mapping[str, str] = {
    "corpus": "It is not in the corpus",
    "filters": "Dropped by the filter",
    "match": "No source found it",
    "depth": "Dropped by the depth",
    "threshold": "Dropped by the threshold",
    "dedupe": "Dropped as a repeated text",
    "strongest": "Replaced by the strongest keyword hit",
    "limit": "Dropped by the limit",
    "policy": "Hidden by the policy",
}

_CODE = re.compile(r"`([^`]*)`")


def search_link(state: AppState, found: Explanation) -> str:
    """Address of the Search page with what an explanation changes, relative to the app's other pages."""
    plan: Plan = state.moved.replace(found.changes) if found.changes else state.moved
    changed = replace(
        state.with_moved(plan), query=found.query or state.query, filters="" if found.without_filter else state.filters
    )
    return "./?" + urlencode(changed.to_params(), errors="replace")


def standing(found: Explanation, state: AppState) -> str:
    name = visible(plain(found.citation or found.target, 300))
    if found.rank:
        head = f"Rank {found.rank}"
        why = "" if found.fused_rank in (None, found.rank) else f"Number {found.fused_rank} of the fused list."
        why = why if found.reason == "It is a result" else f"{found.reason}. {why}".rstrip()
    else:
        head = STEPS.get(found.dropped_by, f"Dropped by {found.dropped_by}")
        why = found.reason + "."
    parts = [
        f'<div class="wb-standing" role="status" data-step="{attribute(found.dropped_by)}">',
        f'<h4>{visible(head)} <span class="wb-dim"><bdi>{name}</bdi></span></h4>',
        f'<p class="wb-note">{visible(plain(why, 600))}</p>' if why else "",
        _sources(found.standings) if found.standings else "",
    ]
    if not found.rank and found.remedy:
        tried = " Verified: the document is then a result." if found.verified else ""
        remedy = _CODE.sub(r"<code>\1</code>", visible(plain(found.remedy, 400)))
        parts.append(f'<p class="wb-note"><b>{remedy}.</b>{tried}</p>')
        if found.verified or found.without_filter:
            link = attribute(search_link(state, found))
            label = "Bring it in on the Search page" if found.verified else "Search without the filter"
            parts.append(f'<p><a class="wb-button" href="{link}" target="_self" data-wb-way-in>{label}</a></p>')
    return "".join(parts) + "</div>"


def _sources(standings: Sequence[SourceStanding]) -> str:
    rows = [
        (
            Html(
                f'<i class="wb-dot" style="background:{source_colour(s.source)}"></i>{visible(s.source)}',
                ' class="wb-short"',
            ),
            Html(visible(s.state), f' title="{attribute(plain(s.reason, 400))}"'),
            "–" if s.rank is None else s.rank,
            *map(_value, (s.score, s.distance, s.contribution)),
        )
        for s in standings
    ]
    return table(("Source", "", "Rank", "Score", "Distance", "Contribution"), rows, range(2, 6))


def _value(value: float | None) -> Html:
    """A number in four digits, all of it on hover: the same one as in the table file and JSON."""
    return Html("–") if value is None else Html(number(value), f' title="{value!r}"')


def candidates_table(shown: Sequence[Candidate], sources: Sequence[str], asked: Mapping[str, str] | None = None) -> str:
    """The numbers under the pictures: rank, candidate, score, and of each source its rank, score and contribution.

    `asked` has the address parameters of the search, for the links to the documents.
    """
    reranked = any(p.rerank is not None for p in shown)
    heads = ["#", "Candidate", "Label", "Score", *(["Rerank"] if reranked else [])]
    for source in sources:
        heads += [f"{source} rank", "score", "added"]
    rows = []
    for p in shown:
        line = int(p.name.rpartition(":")[2])
        link = tables.link(cards.document_address(p.path, lines=(line, line), asked=asked), p.name, 200)
        label = Html(visible(str(p.label)), ' class="wb-short"')
        cells: list[Any] = [p.rank, link, label, _value(p.score), *([_value(p.rerank)] if reranked else [])]
        for source in sources:
            rank = f"{p.ranks[source]:,}" if source in p.ranks else "absent"
            other = source in p.counted
            cells.append(Html(rank + "*", f' title="{by_chunk(p.counted[source])}"') if other else Html(rank))
            cells += [_value(p.scores.get(source)), _value(p.contributions.get(source))]
        rows.append(cells)
    marks = [f' data-chunk="{attribute(p.chunk_id)}"' for p in shown]
    numbers = {0, *range(3, len(heads))}
    return f'<div class="wb-places">{table(heads, rows, numbers, row_attributes=marks)}</div>'


@dataclass(frozen=True, slots=True)
class Statement:
    title: str
    text: str
    language: str = "sql"


def statements(result: SearchResult) -> list[Statement]:
    plan, made = result.plan, []
    engine, retrieved = result.engine, result.retrieved
    for source in retrieved.sources_for(plan):
        base, depth, bound = base_of(source), plan.depth(source), plan.threshold(source)
        if base == "keyword":
            text = engine.lexical.sql(result.query, k1=plan["keyword.k1"], b=plan["keyword.b"], depth=depth)
            cut = "" if bound == OFF else f"; scores below {bound:g} are then dropped"
            made.append(
                Statement(f"{source}: BM25 of the words as SQL, over every record of the generation{cut}", text)
            )
        elif base == "vector":
            answer = retrieved.answers[source]
            index = engine.vectors(encoder_of(source))
            how = "approximate: usearch HNSW" if answer.scored.approximate else "exact: every vector is compared"
            kept = "at any distance" if bound == OFF else f"{plan['vector.metric']} distance below {bound:g}"
            text = (
                f"cosine(query, X), X float32 of {answer.entered:,} x {index.identity.dim}; {how}\n"
                f"encoder {index.identity.name}, {index.identity.runtime}\n"
                f"the best {depth:,}, {kept}"
            )
            made.append(Statement(f"{source}: no SQL, an array of vectors", text, "text"))
        else:
            text = "\n".join(retrieved.patterns) or "(no pattern)"
            what = "regular expressions" if plan["grep.regex"] else "fixed texts"
            made.append(Statement(f"{source}: no SQL, lines that hold any of these {what}", text, "text"))
    if result.filters:
        made.append(Statement("filter: which documents take part", filter_statement(result)))
    return made


def filter_statement(result: SearchResult) -> str:
    from workbench.store.access import filters

    records, request = result.engine.records, result.retrieved.request
    node = filters.parse(result.filters)
    # Every condition's field was known when the search ran, so the fields that it names are taken as known here.
    keys = sorted({c.field.removeprefix("metadata.") for c in filters.conditions(node)})
    scope = records.scope(request.principal, None, ())
    names = sorted(records.info(scope)["collections"]) if filters.uses_collection(node) else ()
    made = filters.select(node, names, keys)
    values = "\n".join(f"-- ${i}: {v!r}" for i, v in enumerate(made.values, 1))
    return f"{made.sql}\n{values}".rstrip()
