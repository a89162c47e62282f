"""The Explain page: why each result has its rank, and where any other document went.

The settings that move the pictures are in the sidebar; one of them moved fuses again and searches nothing. The answer is one
fragment, drawn in the order of what a person looks at: what the search says, where the asked document is, then the pictures,
each group in a fragment of its own, so that choosing how many places are drawn redraws the pictures alone.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import add
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from workbench.charts import Candidate, bump_figure, contribution_figure, funnel_figure, places, plane_figure
from workbench.charts.layout import source_colour
from workbench.charts.search import ADDITIVE, PLANE_POINTS, most_places
from workbench.errors import WorkbenchError
from workbench.markup import attribute, plain, visible
from workbench.plan.fields import OFF, base_of, encoder_of
from workbench.plan.plan import Plan
from workbench.records import FEEDBACK, Label, Step, by_chunk
from workbench.retrieve.explain import Explanation
from workbench.retrieve.remedies import Way
from workbench.retrieve.standing import SourceStanding
from workbench.store.types import WordScore
from workbench.ui import marks, resources
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, live, sidebar, tables, thresholds, welcome
from workbench.ui.components.cards import number
from workbench.ui.components.tables import Html, table
from workbench.ui.finder import request_of
from workbench.ui.state import AppState
from workbench.ui.views import search

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.evaluate.statistics import Difference
    from workbench.retrieve.result import SearchResult

TOPS = (5, 10, 20, 50)
TARGET, MODE = "target", "hybrid"
_MOST_PATHS = 1_000
_FIRST_PATHS = 50
_KEY = controls.PREFIX + "explain."


def draw(corpus: Corpus) -> None:
    state = app_state.current()
    search.query_line(corpus, "The query to explain; the Search page has the same one.")
    _settings(state, corpus)
    if request_of(state).blank:
        st.caption("There is no search to explain yet: type a query, or come here from the Search page.")
        welcome.no_query(corpus)
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
    if app_state.asked_again():
        st.rerun()
    state = app_state.current()
    result = resources.finder().result(corpus, request_of(state), MODE, state.moved)
    st.html(cards.messages_html(result.messages, result.warnings, result.unavailable))
    with controls.place():
        found = _where(corpus, result)
    _pictures(corpus, result, found)
    _how(result)


# --- where is this document? ------------------------------------------------------------------------------------------


def _where(corpus: Corpus, result: SearchResult) -> Explanation | None:
    """The box, and what the search says of the document in it; None where there is none."""
    target = app_state.page_value(TARGET).strip()
    _box(corpus, result, target)
    if not target:
        return None
    try:
        found = corpus.explain(result, target)
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
        return None
    st.html(standing(found, app_state.current()))
    if not found.found:
        _refused(corpus, target)
        _offer(found.similar)
    elif found.ways:
        _ways(corpus, result, target, found)
    return found


def _box(corpus: Corpus, result: SearchResult, target: str) -> None:
    st.selectbox(
        "Find a document",
        _paths(corpus, result, target),
        accept_new_options=True,
        placeholder="A path or a part of one, path:line, or chunk id",
        index=None,
        **controls.bound(f"explain.{TARGET}", target or None, aim),
        help="Shows its rank in every source, which step dropped it, and what would bring it in. "
        "Type any path as citations show it, or letters that one path alone has; the list has the nearest candidates first.",
    )


def _ways(corpus: Corpus, result: SearchResult, target: str, found: Explanation) -> None:
    """The first way in as a button; the others, and what each costs, where somebody opens them."""
    first = found.ways[0]
    if first.of_plan:
        st.button(
            "Try it here",
            key=_KEY + "apply",
            on_click=_apply,
            args=(dict(first.changes or {}),),
            help="Sets this on this page, so that the pictures show the document come in.",
        )
    with st.expander("Every way in, and what each costs", key=_KEY + "ways", on_change="rerun") as opened:
        if opened.open:
            _every_way(corpus, result, target)


@st.fragment
def _every_way(corpus: Corpus, result: SearchResult, target: str) -> None:
    ways, now = corpus.explain(result, target, every=True).ways, result.plan
    name, measure = live.chosen(corpus)
    costs: Sequence[Difference | None] = [None] * len(ways)
    help = "Fuses the judged queries again with each change; the first time they are retrieved, which takes seconds."
    if name in ("", live.OFF):
        st.caption("With a judged query set it says here what each costs on other queries: make one on the Judge page.")
    elif st.toggle(f"{measure} on {name}", key=_KEY + "costs", help=help):
        try:
            with st.spinner(f"Measuring on {plain(name, 60)}"):
                judged = live.measured(corpus)
                costs = [judged.cost(now.replace(w.changes or {}), now) if w.of_plan else None for w in ways]
        except WorkbenchError as exc:
            st.html(cards.alert("", exc.message, exc.remedy))
    st.html(ways_table(ways, costs, app_state.current()))


def _apply(changes: dict[str, Any]) -> None:
    """The button is in a part of the page, and what it sets moves the whole: the sliders too."""
    app_state.set_plan(changes)
    app_state.ask_again()


def aim(target: str | None) -> None:
    app_state.set_page_values(**{TARGET: (target or "").strip()})


def _paths(corpus: Corpus, result: SearchResult, target: str) -> list[str]:
    """What the box offers: the candidates' paths, nearest first, then the corpus's own, as many as a list can show."""
    candidates = [path for _, path in result.documents(_FIRST_PATHS)]
    others = _first_paths(corpus)
    return list(dict.fromkeys([*([target] if target else []), *candidates, *others]))


@resources.kept()
def _first_paths(corpus: Corpus) -> list[str]:
    """Visible paths to choose from: a slider must not list a large corpus again."""
    return resources.catalogue(corpus).paths(resources.scope(corpus), _MOST_PATHS)


def _refused(corpus: Corpus, target: str) -> None:
    for file in resources.catalogue(corpus).refused_named(target, corpus.principal):
        st.html(cards.alert(f"{file.path} was not indexed ({file.status.value})", file.reason, file.remedy))


def _offer(paths: Sequence[str]) -> None:
    if paths:
        st.caption("Did you mean:")
        with st.container(horizontal=True):
            for position, path in enumerate(paths):
                st.button(cards.in_markdown(path), key=f"{_KEY}similar-{position}", on_click=aim, args=(path,))


# --- pictures ---------------------------------------------------------------------------------------------------------


@st.fragment
def _pictures(corpus: Corpus, result: SearchResult, found: Explanation | None) -> None:
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
    shown = places(result.fused, result.order, top, result.outcome.rerank, found.chunk_id if found else "")
    target = next((p for p in shown if p.target), None) or (_target(found) if found and found.found else None)
    if target is not None and target not in shown:
        shown = (*shown, target)
    if not shown:
        st.caption("No candidate is left to draw: the funnel says where they went.")
    else:
        left, right = st.columns(2, gap="medium")
        with left:
            _bump(result, shown, top, sources)
        with right:
            alt, title = "Stacked contributions of each source, with the score.", "What adds up to each score"
            controls.chart(contribution_figure(shown, sources), _KEY + "contributions", alt, title)
            if result.fused.unit == "document":
                st.caption("The plan ranks documents: each is shown by its best passage.")
    left, right = st.columns(2, gap="medium")
    with left:
        _plane(corpus, result, target)
    with right:
        title = "How many were left after each step"
        dropped = None if target is None or found is None else (target.name, dropping(found, result.steps))
        controls.chart(funnel_figure(result.steps, target=dropped), _KEY + "funnel", "Candidates by step.", title)
        timings, title = search.timings_of({"search": result}), "What took the time"
        controls.chart(timings, _KEY + "timings", "Milliseconds by step.", title)
    if shown:
        words = {"q": result.query, "keywords": result.keywords}
        st.html(candidates_table(shown, sources, {name: text for name, text in words.items() if text}))


def _target(found: Explanation) -> Candidate:
    """A document that is no candidate, as the pictures draw it: where each source has it in its whole ranking."""
    ranks = {s.source: s.rank for s in found.standings if s.rank is not None}
    scores = {s.source: s.score for s in found.standings if s.score is not None}
    added = {s.source: s.contribution for s in found.standings}
    line = found.citation.removeprefix(found.path).partition("-")[0]
    names = (found.path + line, found.chunk_id, found.path)
    label = Label.HYBRID if len(ranks) > 1 else Label.SEMANTIC
    return Candidate(0, found.fused_rank, *names, label, ranks, scores, added, found.score or 0.0, target=True)


def dropping(found: Explanation, steps: Sequence[Step]) -> int:
    """Number of the step, from 0, that dropped a document; -1 for a result. Of a step of each source the last that dropped it."""
    at = [n for n, step in enumerate(steps) if step.step == (_FUNNEL.get(found.dropped_by) or found.dropped_by)]
    return at[-1] if at and not found.rank else -1


_FUNNEL = {"filters": "filter", "strongest": "limit"}


def _bump(result: SearchResult, shown: Sequence[Candidate], top: int, sources: tuple[str, ...]) -> None:
    reranked = bool(result.outcome.rerank)
    fits = most_places(len(sources), reranked)
    figure = bump_figure(shown, sources, reranked=reranked, height=300 + 13 * min(len(shown), fits))
    alt = "Rank in each source and in the fused list, one line a candidate."
    controls.chart(figure, _KEY + "bump", alt, "How ranks moved")
    if top > fits:
        st.caption(f"The first {fits} of {top}: more lines than that cannot be distinguished. The table has them all.")


def _plane(corpus: Corpus, result: SearchResult, target: Candidate | None) -> None:
    st.html('<h3 class="wb-chart">Keyword score against similarity</h3>')
    columns = result.candidates.columns
    keyword = next((c for c in columns if base_of(c.source) == "keyword"), None)
    vector = next((c for c in columns if base_of(c.source) == "vector"), None)
    if keyword is None or vector is None:
        st.caption("This picture needs a keyword and a vector source; the plan or the machine has only one of them.")
        return
    drawn = places(result.fused, np.arange(len(result.fused), dtype=np.int64), PLANE_POINTS)
    grades = marks.grades_of(corpus, app_state.current(), drawn)
    method = result.plan["fusion.method"]
    fed = FEEDBACK in result.fused.contributions
    additive = method in ADDITIVE and result.score_kind == "fused" and not fed
    last, alt = max(1, len(result.hits)), "Candidates by keyword score and similarity, with the line of equal score."
    figure = plane_figure(result.fused, (keyword, vector), last=last, additive=additive, grades=grades, target=target)
    controls.chart(figure, _KEY + "plane", alt)
    if additive:
        judged = " Large shapes are judged." if grades else ""
        st.caption(f"Points above the dashed line outscore the last result. Filled points are results.{judged}")
    elif fed:
        st.caption(
            "Feedback adds to each score what neither axis shows, so there is no line of equal score. Filled points are results."
        )
    else:
        st.caption(f"With {method} and these sources there is no line of equal score. Filled points are results.")


# --- how it was done ------------------------------------------------------------------------------------------------------


def _how(result: SearchResult) -> None:
    with st.expander("The plan, and what was run", key=_KEY + "how", on_change="rerun") as how:
        if how.open:
            st.caption("The plan:")
            st.code(str(result.plan), language=None, wrap_lines=True)
            for title, text, language in statements(result):
                st.caption(title)
                st.code(text, language=language, wrap_lines=True)
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


def search_link(state: AppState, found: Explanation | Way) -> str:
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
    added = f'<p class="wb-note">Fused score: {visible(found.sum)}</p>' if found.sum else ""
    parts = [
        f'<div class="wb-standing" role="status" data-step="{attribute(found.dropped_by)}">',
        f'<h3>{visible(head)} <span class="wb-dim"><bdi>{name}</bdi></span></h3>',
        f'<p class="wb-note">{visible(plain(why, 600))}</p>' if why else "",
        _sources(found.standings) + added if found.standings else "",
        *(words_table(s.source, s.words) for s in found.standings if s.words),
    ]
    if not found.rank and found.remedy:
        tried = f" Verified: it is then result {found.ways[0].rank}." if found.verified else ""
        parts.append(f'<p class="wb-note"><b>{_coded(found.remedy)}.</b>{tried}</p>')
        if found.verified or found.without_filter:
            link = attribute(search_link(state, found))
            label = "Bring it in on the Search page" if found.verified else "Search without the filter"
            parts.append(f'<p><a class="wb-button" href="{link}" target="_self" data-wb-way-in>{label}</a></p>')
    return "".join(parts) + "</div>"


def _coded(sentence: str) -> str:
    return _CODE.sub(r"<code>\1</code>", visible(plain(sentence, 400)))


def words_table(source: str, words: Sequence[WordScore]) -> str:
    """What each word of the query adds to a BM25 score."""
    total, first = functools.reduce(add, (w.score for w in words), 0.0), words[0]
    length = f"{first.length:,} words long, {first.mean_length:.0f} on average, so norm is {number(first.norm)}"
    rows = []
    for w in words:
        filled = f'<span style="width:{w.share:.0%};background:{source_colour(source)}"></span>'
        bar = Html(f'<div class="wb-bar" title="{w.share:.1%}">{filled}</div>')
        term, rarity = Html(f"<code>{visible(w.term)}</code>"), f"{w.df:,} of {w.records:,}"
        rows.append((w.text, term, w.tf, rarity, *map(_value, (w.idf, w.weight, w.score)), bar))
    head = ("Typed", "Indexed", "tf", "Chunks with it", "idf", "Weight", "Adds", "Share")
    return (
        f"<details open><summary>BM25 of {visible(source)}, word by word: {number(total)}</summary>"
        f"{table(head, rows, {2, 3, 4, 5, 6})}"
        f'<p class="wb-note wb-dim">weight × idf × tf (k1 + 1) / (tf + norm); the passage is {length}.</p></details>'
    )


def ways_table(ways: Sequence[Way], costs: Sequence[Difference | None], state: AppState) -> str:
    rows = []
    for way, cost in zip(ways, costs, strict=True):
        link = f'<a href="{attribute(search_link(state, way))}" target="_self">Open on Search</a>'
        moved = "–" if cost is None else f"{cost.first_mean:.3f} → {cost.second_mean:.3f}"
        rows.append((Html(_coded(way.remedy)), way.rank, moved, "–" if cost is None else cost.brief, Html(link)))
    measure = next((cost.measure for cost in costs if cost is not None), "Measure")
    return table(("Change", "Rank then", measure, "On the judged queries", ""), rows, {1})


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
    return table(("Source", "", "Rank", "BM25 or similarity", "Distance", "Added to the score"), rows, range(2, 6))


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
    fed = any(FEEDBACK in p.contributions for p in shown)
    heads += [f"{FEEDBACK} added"] if fed else []
    rows = []
    for p in shown:
        line = int(p.name.rpartition(":")[2])
        link = tables.link(cards.document_address(p.path, lines=(line, line), asked=asked), p.name, 200)
        label = Html(visible(str(p.label)), ' class="wb-short"')
        cells: list[Any] = [p.rank or "–", link, label, _value(p.score), *([_value(p.rerank)] if reranked else [])]
        for source in sources:
            rank = f"{p.ranks[source]:,}" if source in p.ranks else "absent"
            other = source in p.counted
            cells.append(Html(rank + "*", f' title="{by_chunk(p.counted[source])}"') if other else Html(rank))
            cells += [_value(p.scores.get(source)), _value(p.contributions.get(source))]
        cells += [_value(p.contributions.get(FEEDBACK))] if fed else []
        rows.append(cells)
    marks = [f' data-chunk="{attribute(p.chunk_id)}"' + ' class="wb-named"' * p.target for p in shown]
    numbers = {0, *range(3, len(heads))}
    return f'<div class="wb-places">{table(heads, rows, numbers, row_attributes=marks)}</div>'


def statements(result: SearchResult) -> list[tuple[str, str, str]]:
    """What was run: title, text and its language."""
    plan, made = result.plan, []
    engine, retrieved = result.engine, result.retrieved
    for source in retrieved.sources_for(plan):
        base, depth, bound = base_of(source), plan.depth(source), plan.threshold(source)
        if base == "keyword":
            text = engine.lexical.sql(result.query, k1=plan["keyword.k1"], b=plan["keyword.b"], depth=depth)
            cut = "" if bound == OFF else f"; scores below {bound:g} are then dropped"
            made.append((f"{source}: BM25 of the words as SQL, over every record of the generation{cut}", text, "sql"))
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
            made.append((f"{source}: no SQL, an array of vectors", text, "text"))
        else:
            text = "\n".join(retrieved.patterns) or "(no pattern)"
            what = "regular expressions" if plan["grep.regex"] else "fixed texts"
            made.append((f"{source}: no SQL, lines that hold any of these {what}", text, "text"))
    if result.filters:
        made.append(("filter: which documents take part", filter_statement(result), "sql"))
    return made


def filter_statement(result: SearchResult) -> str:
    from workbench.store.access import filters

    engine = result.engine
    node = filters.parse(result.filters)
    # Every condition's field was known when the search ran, so the fields that it names are taken as known here.
    keys = sorted({c.field.removeprefix("metadata.") for c in filters.conditions(node)})
    names = sorted(engine.records.info(engine.visible)["collections"]) if filters.uses_collection(node) else ()
    sql, given = filters.select(node, names, keys)
    values = "\n".join(f"-- ${i}: {v!r}" for i, v in enumerate(given, 1))
    return f"{sql}\n{values}".rstrip()
