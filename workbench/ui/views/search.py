"""The Search page: what is drawn once, and what is drawn again when a slider moves.

The query line and the sidebar are drawn by the router's run. Everything that answers (columns, histogram, counts, plan
text, picture) is one part, the figure of judged queries another: a slider's callback reruns these alone, so that a hundred
widgets are not drawn again for one moved rank. Controls that change which controls there are (method, preset, columns, ...)
rerun the whole page.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.charts import (
    distance_figure,
    funnel_figure,
    rank_figure,
    score_figure,
    share_figure,
    timing_figure,
    upset_figure,
)
from workbench.charts.distributions import Histogram
from workbench.errors import UsageError, WorkbenchError
from workbench.markup import attribute, csv_of, plain, visible
from workbench.plan.fields import OFF, base_of
from workbench.ranking.agreement import jaccard, overlap, rbo
from workbench.retrieve.request import sources_of
from workbench.ui import events, marks, resources
from workbench.ui import state as app_state
from workbench.ui.components import boxes, cards, conditions, controls, facets, sidebar, welcome
from workbench.ui.components.cards import histogram_html
from workbench.ui.components.controls import PREFIX, lazy
from workbench.ui.components.thresholds import Place
from workbench.ui.finder import (
    Finder,
    Found,
    dropped_by_threshold,
    main_column,
    ranks,
    request_of,
    score_histograms,
    sources_shown,
)
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.retrieve.result import SearchResult

QUERY_HELP = (
    'What you are looking for: words, "phrases", -not, prefix\\*. The keyword side reads it as words, the vector side as '
    "meaning. Press / to come here. [Guide](guide?page=search#query)"
)
KEYWORDS_HELP = (
    "Exact words for grep, a quoted phrase counts as one; without them grep takes the rarest words of the query. "
    "Keywords bring grep into the hybrid column too. [Guide](guide?page=reference#field-grep-when)"
)
FILTER_HELP = (
    "A condition on documents: `type = 'markdown'`, `path glob 'reference/**' and not language = 'fr'`, "
    "`modified >= 2024-01-01`. [Guide](guide?page=search#filters)"
)
COMPACT_HELP = "Results as lines: rank, title, grade and what added to the score. A click or Enter opens one."
EXAMPLES_HELP = (
    "Worked examples instead of the columns: code with a line on what it is. The preset pages is made for them."
)
CONTEXT_HELP = (
    "Code or text that you have open: the names in it are added to what the vector side embeds, and to nothing else."
)


def query_line(corpus: Corpus, help: str, example: str = "") -> None:
    query, keywords, filters = st.columns([5, 3, 3], gap="small", vertical_alignment="bottom")
    with query:
        controls.text_box("query", "Query", help, example, search=True)
    with keywords:
        controls.text_box("keywords", "Keywords", KEYWORDS_HELP, "exact words, for grep")
    with filters:
        controls.text_box("filters", "Filter", FILTER_HELP, facets.example(corpus))


def draw_bar(corpus: Corpus, state: AppState) -> None:
    query_line(corpus, QUERY_HELP, "What finds the right passage?")
    plans = resources.saved_plans()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="wb-boxes"):
        boxes.columns_box(state, plans)
        context = "Context: on" if state.context else "Context"
        with controls.lazy(context, "context", "What you have open in an editor, to search with.") as opened:
            if opened.open:
                controls.text_box("context", "Context", CONTEXT_HELP, "the code or text that you have open", lines=True)
        conditions.box(corpus, state)
        controls.switch("compact", "One line each", state.compact, COMPACT_HELP)
        controls.switch("examples", "Code examples", state.examples, EXAMPLES_HELP)
        boxes.saved_box(state)
        boxes.synonyms_box(corpus)
        export_box(state)


LINK = (
    '<div class="wb-planline"><span class="wb-msg">This page has a link: it restores query, columns, plan and filter.</span>'
    '<button type="button" class="wb-copy" data-wb-link="1" aria-label="Copy the link">Copy the link</button></div>'
)
EXPORTS = (
    ("csv", "text/csv", "Every fused candidate with its ranks, scores and contributions."),
    ("json", "application/json", "The results with everything that says why."),
)


def export_box(state: AppState) -> None:
    with lazy("Export", "export", "Download the results, copy the link.") as opened:
        if not opened.open:
            return
        st.html(LINK)
        titles = boxes.titles(state.columns, resources.plan_names())
        for n, (title, slot) in enumerate(zip(titles, slots(state), strict=True), 1):
            what, *places = st.columns([4, 2, 2], gap="small", vertical_alignment="center", width=420)
            what.text(title)
            for place, (kind, mime, help) in zip(places, EXPORTS, strict=True):
                data, key = functools.partial(exported, resources.finder(), slot, kind), f"{PREFIX}away.{n}.{kind}"
                name = f"results-{n}.{kind}"
                place.download_button(kind.upper(), data, name, mime, key=key, on_click="ignore", help=help)


def exported(finder: Finder, slot: str, kind: str) -> bytes:
    """A column's result as `csv` or `json`; `slot` is what the finder keeps it under."""
    result = finder.kept(slot)
    if result is None:
        raise UsageError("This column has no result", "Search first")
    if kind == "csv":
        return csv_of(result.frame()).encode()
    return json.dumps(result.to_dict(timings=True), ensure_ascii=False, indent=1).encode()


TITLES = {
    "none": "Results only",
    "ranks": "How ranks moved",
    "agreement": "Agreement",
    "shares": "Who contributed",
    "scores": "Score against score",
    "distances": "Distances",
    "funnel": "Funnel",
    "timings": "Timings",
}
NOTHING = "There is no result to draw."
NOT_CUT = "There are no {} scores to cut: no source found anything, or one alone did and its own scores are shown."
NO_VECTOR = "No vector source ran, so there are no distances."


def threshold(found: tuple[Found, ...], state: AppState, places: Mapping[str, Place]) -> None:
    """For each vector source, and for scores that are cut, the histogram with the cut drawn in, and how many candidates it
    drops.
    """
    distances, dropped = resources.finder().distances(found), dropped_by_threshold(found)
    histograms = {**distances, **score_histograms(found)}
    for source, place in places.items():
        vector, at = base_of(source) == "vector", state.moved.threshold(source)
        histogram = histograms.get(source)
        if histogram is not None and histogram.total and (at != OFF or vector):
            named = sum(base_of(s) == base_of(source) for s in places) > 1
            words = counted(histogram, at, *dropped[source]) if source in dropped else ""
            place.fill(histogram_html(histogram, at, source if named else ""), words)
        elif vector:
            place.fill("", f"{source} gave no distances." if any(h.total for h in distances.values()) else NO_VECTOR)
        else:
            place.fill("", "" if at == OFF else NOT_CUT.format(source))


def counted(histogram: Histogram, at: float | str, entered: int, left: int) -> str:
    """What a threshold drops of the candidates, which the depth bounds, and of all records, which the histogram shows."""
    dropped = entered - left
    words = (
        f"Drops {dropped:,} of {entered:,} candidates, {left:,} kept."
        if dropped
        else f"Keeps all {entered:,} candidates."
    )
    if at == OFF or histogram.total == entered:
        return words
    return f"{words} Histogram of all {histogram.total:,} chunks; {histogram.kept(at):,} pass the threshold."


@st.fragment
def draw_picture(found: tuple[Found, ...]) -> None:
    name = controls.picture(TITLES)
    if name == "none":
        return
    main = main_column(found)
    if main is None or main.result is None:
        st.caption(NOTHING)
        return
    if name == "agreement":
        _agreement(found)
        return
    drawn = _figures(name, main, main.result, found)
    if isinstance(drawn, str):
        st.caption(drawn)
        return
    alt = f"{TITLES[name]}, of the column {main.title}."
    for n, figure in enumerate(drawn):
        controls.chart(figure, f"wb.chart.{name}" + (f".{n}" if n else ""), alt)


def _figures(name: str, main: Found, result: SearchResult, found: tuple[Found, ...]) -> list[Any] | str:
    if name in ("ranks", "shares"):
        made = rank_figure if name == "ranks" else share_figure
        searched = sources_of(result.plan, main.mode, result.query, result.keywords)
        return [made(main.hits, searched)] if main.hits else NOTHING
    if name == "scores":
        sources = sorted(result.rankings, key=lambda s: (base_of(s) == "grep", base_of(s) != "vector", s))
        if len(sources) < 2:
            return "Two sources are needed to set score against score: show the hybrid column, with two sources."
        return [score_figure(result.fused, sources[1], sources[0])]
    if name == "distances":
        shown = {s: h for s, h in resources.finder().distances(found).items() if h.total}
        several, cut = len(shown) > 1, result.plan.threshold
        height = 220 if several else 300
        return [
            distance_figure(h, cut(s), height=height, of=s if several else "") for s, h in shown.items()
        ] or NO_VECTOR
    if name == "funnel":
        return [funnel_figure(result.steps)]
    return [timings_of({f.title.lower(): f.result for f in found if f.result is not None})]


def timings_of(results: Mapping[str, SearchResult]) -> Any:
    """What the steps took where each result was searched for; one that came from the cache is marked."""
    shown = {name + " (from cache)" * r.cached: r.first_timings_ms for name, r in results.items()}
    return timing_figure(shown)


# --- the columns ---------------------------------------------------------------------------------------------------------


def _agreement(found: tuple[Found, ...]) -> None:
    """How much the columns agree: a matrix of each two, and how many results exactly which columns share."""
    lists = {f.title: [h.chunk_id for h in f.hits if h.rank] for f in found if f.hits}
    if len(lists) < 2:
        st.caption("Two columns with results are needed to compare them.")
        return
    left, right = st.columns(2, gap="medium")
    left.html(agreement_html(lists))
    with right:
        controls.chart(upset_figure(lists), "wb.chart.agreement", "How many results exactly these columns share.")


def agreement_html(lists: Mapping[str, Sequence[str]]) -> str:
    """Each two columns: how many results both show, and rank-biased overlap, which is also the cell's shade."""
    names = list(lists)
    rows = []
    for one in names:
        cells = []
        for other in names:
            if one == other:
                cells.append("<td></td>")
                continue
            first, second = lists[one], lists[other]
            both, most, order = overlap(first, second), min(len(first), len(second)), rbo(first, second)
            words = f"{one} and {other}: {both} of {most} shared, Jaccard {jaccard(first, second):.2f}, RBO {order:.2f}"
            shade = f"background:color-mix(in srgb,var(--wb-blue) {order:.0%},transparent)"
            cells.append(
                f'<td style="{shade};color:{"#fff" if order > 0.6 else "inherit"}" title="{attribute(plain(words, 200))}">'
                f"<b>{both}</b>/{most} <span>{order:.2f}</span></td>"
            )
        rows.append(f'<tr><th scope="row">{visible(plain(one, 24))}</th>{"".join(cells)}</tr>')
    head = "".join(f'<th scope="col">{visible(plain(name, 24))}</th>' for name in names)
    return (
        f'<table class="wb-agreement" aria-label="Agreement of the columns"><tr><td></td>{head}</tr>{"".join(rows)}</table>'
        '<p class="wb-msg">Results that both show, of those they could, and RBO, rank-biased overlap with p 0.9: 1 is the same '
        "order, and the top counts most.</p>"
    )


def slots(state: AppState) -> tuple[str, ...]:
    """What the finder keeps the columns' results under: the mode, or the place of a column with a plan of its own."""
    return tuple(c.mode if c.plan is None else f"own{n}" for n, c in enumerate(state.columns))


def find(corpus: Corpus, state: AppState) -> tuple[Found, ...]:
    finder = resources.finder()
    titles = boxes.titles(state.columns, resources.plan_names())
    any_own = any(column.plan is not None for column in state.columns)
    found = []
    for n, (column, title, slot) in enumerate(zip(state.columns, titles, slots(state), strict=True), 1):
        one = finder.find(corpus, request_of(state), column.mode, state.plan_of(column), slot)
        moved = state.moves == n if column.plan is not None else state.moves == 0
        found.append(replace(one, title=title, moved=moved and any_own))
    return tuple(found)


def _columns(corpus: Corpus, state: AppState) -> tuple[Found, ...]:
    found = find(corpus, state)
    ranked, sources = ranks(found), sources_shown(found)
    shown, asked = marks.marks_of(corpus, state, found)
    if asked is not None and (line := marks.line_html(asked)):
        st.html(line)
    common = _common_fault(found)
    if common:
        st.html(common)
        return found
    places = st.columns(len(found), gap="small")
    for place, one in zip(places, found, strict=True):
        own = shown if one.result is None or asked is None else marks.figured(shown, asked, one.result)
        place.html(_column(one, ranked, sources, own, state.compact))
    return found


def _examples(corpus: Corpus, state: AppState) -> None:
    try:
        found = corpus.search_examples(state.query, state.context, int(state.plan["limit"]), state.plan)
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
        return
    for warning in found.warnings:
        st.html(cards.alert("", warning, ""))
    if not found:
        st.html(
            cards.note("No example fits, or the corpus holds none: see Examples in the guide for what counts as one.")
        )
    for number, example in enumerate(found, 1):
        st.html(cards.example_head(number, example))
        st.code(example.code, language=None, wrap_lines=True)


def _common_fault(found: Sequence[Found]) -> str:
    """The one thing that is wrong with every column (a filter that cannot be read, or lets nothing through), as HTML: shown once,
    not in each of them.
    """
    if len(found) < 2:
        return ""
    faults = {(f.error.message, f.error.remedy) for f in found if f.error is not None}
    if len(faults) == 1 and all(f.error is not None for f in found):
        return cards.alert("", *faults.pop())
    results = [f.result for f in found if f.result is not None]
    if len(results) < len(found) or any(r.retrieved.allowed or not r.retrieved.visible for r in results):
        return ""
    lines = [m for m in results[0].messages if all(m in r.messages for r in results)]
    return cards.alert(lines[0], ". ".join(lines[1:]), "") if lines else ""


def _column(
    one: Found, ranked: dict[str, dict[str, int]], sources: Sequence[str], shown: cards.Marks, compact: bool
) -> str:
    badge = "moved by the sidebar" if one.moved else ""
    if one.result is None:
        return cards.failed_column(one.title, one.error, badge=badge) if one.error is not None else ""
    return cards.column(
        one.title,
        one.hits,
        ranks=ranked,
        sources=sources,
        messages=cards.messages_html(one.result.messages, one.result.warnings, one.result.unavailable),
        numbered=one.mode == "grep",
        badge=badge,
        marks=replace(shown, plan="" if one.slot == one.mode else str(one.result.plan), compact=compact),
    )


# --- the page ------------------------------------------------------------------------------------------------------------


def draw(corpus: Corpus) -> None:
    state = app_state.current()
    draw_bar(corpus, state)
    places = sidebar.draw(state, corpus)
    events.draw(corpus)
    if request_of(state).blank:
        welcome.no_query(corpus)
        return
    boxes.add_to_history(state)
    with controls.place():
        boxes.exactness_answer(corpus)
    _answers(corpus, places)


@controls.part("answers")
def _answers(corpus: Corpus, places: Mapping[str, Place]) -> None:
    """The part that a slider draws again: columns first, then the charts."""
    state = app_state.current()
    if state.examples:
        _examples(corpus, state)
        return
    picture = st.container(key=f"wb-picture-{state.picture}")
    found = _columns(corpus, state)
    threshold(found, state, places)
    with picture:
        draw_picture(found)
