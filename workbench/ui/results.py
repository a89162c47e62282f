"""The columns of the Search page: find, then draw each as one piece of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.ui import cards, column_controls, marks, overlap, resources
from workbench.ui.searching import Asked, Found, sources_shown
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from workbench.corpus import Corpus


def asked(state: AppState) -> Asked:
    """What the state searches for."""
    return Asked(state.query, state.keywords, state.filters, state.context)


def slots(state: AppState) -> tuple[str, ...]:
    """What the finder keeps the columns' results under: the mode, or the place of a column with a plan of its own."""
    return tuple(c.mode if c.plan is None else f"own{n}" for n, c in enumerate(state.columns))


def find(corpus: Corpus, state: AppState) -> tuple[Found, ...]:
    """Search or fuse again: one answer a column, with its heading."""
    finder = resources.finder()
    titles = column_controls.titles(state.columns, resources.plan_names())
    any_own = any(column.plan is not None for column in state.columns)
    found = []
    for n, (column, title, slot) in enumerate(zip(state.columns, titles, slots(state), strict=True), 1):
        one = finder.find(corpus, asked(state), column.mode, state.plan_of(column), slot)
        moved = state.moves == n if column.plan is not None else state.moves == 0
        found.append(replace(one, title=title, moved=moved and any_own))
    return tuple(found)


def draw(corpus: Corpus, state: AppState) -> tuple[Found, ...]:
    """Search or fuse again, and draw a column for each of the state's."""
    finder = resources.finder()
    found = find(corpus, state)
    ranks, sources = finder.ranks(found), sources_shown(found)
    shown = marks.of(corpus, state, found)
    st.html(overlap.html(found, state.plan))
    common = _common_fault(found)
    if common is not None:
        st.html(cards.alert("", common.message, common.remedy))
        return found
    places = st.columns(len(found), gap="small")
    for place, one in zip(places, found, strict=True):
        place.html(_column(one, ranks, sources, shown))
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


def _column(one: Found, ranks: dict[str, dict[str, int]], sources: Sequence[str], shown: cards.Marks) -> str:
    badge = "moved by the sidebar" if one.moved else ""
    if one.result is None:
        return cards.failed_column(one.title, one.error, badge=badge) if one.error is not None else ""
    return cards.column(
        one.title,
        one.hits,
        ranks=ranks,
        sources=sources,
        messages=one.result.messages,
        warnings=one.result.warnings,
        unavailable=one.result.unavailable,
        numbered=one.mode == "grep",
        badge=badge,
        marks=replace(shown, plan="" if one.slot == one.mode else str(one.result.plan)),
    )
