"""The columns of the Search page: find, then draw each as one piece of HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.ui import cards, resources
from workbench.ui.searching import Asked, Found, sources_shown
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from workbench.service import Corpus


def asked(state: AppState) -> Asked:
    """What the state searches for."""
    return Asked(state.query, state.keywords, state.filters)


def draw(corpus: Corpus, state: AppState) -> tuple[Found, ...]:
    """Search or fuse again, and draw a column for each mode of the state."""
    finder = resources.finder()
    if {"vector", "hybrid"} & set(state.modes):
        resources.wait_for_encoder()
    found = tuple(finder.find(corpus, asked(state), mode, state.plan) for mode in state.modes)
    ranks, sources = finder.ranks(found), sources_shown(found)
    places = st.columns(len(found), gap="small")
    for place, one in zip(places, found, strict=True):
        title = one.mode.capitalize()
        if one.result is None:
            body = cards.failed_column(title, one.error) if one.error is not None else ""
        else:
            body = cards.column(
                title,
                one.hits,
                ranks=ranks,
                sources=sources,
                messages=one.result.messages,
                warnings=one.result.warnings,
                unavailable=one.result.unavailable,
                numbered=one.mode == "grep",
            )
        place.html(body)
    return found
