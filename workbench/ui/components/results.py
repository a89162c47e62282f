"""The columns of the Search page: find, then draw each as one piece of HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.markup import attribute, plain, visible
from workbench.plan.plan import Plan
from workbench.ranking.agreement import jaccard, overlap, rbo
from workbench.ui import resources
from workbench.ui.components import boxes, cards
from workbench.ui.finder import Asked, Found, ranks, sources_shown
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from workbench.corpus import Corpus

OVERLAP_HELP = (
    "Of each two columns: how many results both show, Jaccard (shared over all), and RBO, rank-biased overlap with p 0.9 "
    "(1 is the same order; the top counts most)"
)


FROM_CACHE = (
    "This search was asked a moment ago and its answer was kept, so no step took time. The field cache_seconds says how "
    "long answers are kept."
)


def from_cache(timings: Mapping[str, float]) -> bool:
    """Whether the timings of a result say that nothing was run for it."""
    return not any(ms for step, ms in timings.items() if step != "total_ms")


def overlap_html(found: tuple[Found, ...], plan: Plan) -> str:
    """One line, empty where there are not two columns with results; it carries the shared plan for the page's script."""
    lists = [(f.title, [h.chunk_id for h in f.hits if h.rank]) for f in found if f.hits]
    pairs = []
    for (one, first), (other, second) in combinations(lists, 2):
        most = min(len(first), len(second))
        pairs.append(
            f'<span class="wb-pair"><b>{visible(plain(one, 24))} · {visible(plain(other, 24))}</b> '
            f"{overlap(first, second)} of {most} <i>J</i> {jaccard(first, second):.2f} <i>RBO</i> {rbo(first, second):.2f}"
            "</span>"
        )
    held = f'data-wb-plan="{attribute(str(plan))}"'
    if not pairs:
        return f"<div {held}></div>"
    return f'<div class="wb-overlap" {held} title="{OVERLAP_HELP}" aria-label="Overlap of the columns">{"".join(pairs)}</div>'


def asked(state: AppState) -> Asked:
    return Asked(state.query, state.keywords, state.filters, state.context)


def slots(state: AppState) -> tuple[str, ...]:
    """What the finder keeps the columns' results under: the mode, or the place of a column with a plan of its own."""
    return tuple(c.mode if c.plan is None else f"own{n}" for n, c in enumerate(state.columns))


def find(corpus: Corpus, state: AppState) -> tuple[Found, ...]:
    """Search or fuse again: one answer a column, with its heading."""
    finder = resources.finder()
    titles = boxes.titles(state.columns, resources.plan_names())
    any_own = any(column.plan is not None for column in state.columns)
    found = []
    for n, (column, title, slot) in enumerate(zip(state.columns, titles, slots(state), strict=True), 1):
        one = finder.find(corpus, asked(state), column.mode, state.plan_of(column), slot)
        moved = state.moves == n if column.plan is not None else state.moves == 0
        found.append(replace(one, title=title, moved=moved and any_own))
    return tuple(found)


def draw(corpus: Corpus, state: AppState) -> tuple[Found, ...]:
    """Search or fuse again, and draw a column for each of the state's."""
    found = find(corpus, state)
    ranked, sources = ranks(found), sources_shown(found)
    shown = resources.marks_of(corpus, state, found)
    st.html(overlap_html(found, state.plan))
    common = _common_fault(found)
    if common is not None:
        st.html(cards.alert("", common.message, common.remedy))
        return found
    places = st.columns(len(found), gap="small")
    for place, one in zip(places, found, strict=True):
        place.html(_column(one, ranked, sources, shown))
    return found


def examples(corpus: Corpus, state: AppState) -> None:
    """Draw the worked examples that fit, in the place of the columns."""
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


def _common_fault(found: Sequence[Found]) -> WorkbenchError | None:
    """The one thing that is wrong with every column (a filter that cannot be read): said once, not in each of them."""
    faults = {(f.error.message, f.error.remedy): f.error for f in found if f.error is not None}
    answered = any(f.error is None for f in found)
    return next(iter(faults.values())) if len(faults) == 1 and len(found) > 1 and not answered else None


def _column(one: Found, ranked: dict[str, dict[str, int]], sources: Sequence[str], shown: cards.Marks) -> str:
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
        marks=replace(shown, plan="" if one.slot == one.mode else str(one.result.plan)),
    )
