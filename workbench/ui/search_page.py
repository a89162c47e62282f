"""The Search page: what is drawn once, and what is drawn again when a slider moves.

The query line and the sidebar are drawn by the router's run. Everything that answers (columns, histogram, counts, plan
text, picture) is one part, the figure of judged queries another: a slider's callback reruns these alone, so that a hundred
widgets are not drawn again for one moved rank. Controls that change which controls there are (method, preset, columns, ...)
rerun the whole page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.ui import (
    column_controls,
    controls,
    empty,
    events,
    live_panel,
    panels,
    query_bar,
    results,
    saved_controls,
    sidebar,
)
from workbench.ui import state as app_state

if TYPE_CHECKING:
    from workbench.corpus import Corpus


def draw(corpus: Corpus) -> None:
    """Draw the page."""
    state = app_state.current()
    query_bar.draw(corpus, state)
    places = sidebar.draw(state, sidebar.known(corpus), corpus)
    events.draw(corpus)
    if results.asked(state).blank:
        places.plan_text(state.moved)
        empty.no_query(corpus)
        return
    saved_controls.asked(state)
    column_controls.exactness_answer(corpus)
    _answers(corpus, places)
    with places.figure:
        live_panel.figure(corpus)


@controls.part("answers")
def _answers(corpus: Corpus, places: sidebar.Places) -> None:
    """The part that a slider draws again: columns first, then the charts."""
    state = app_state.current()
    if state.examples:
        results.examples(corpus, state)
        places.plan_text(state.moved)
        return
    picture = st.container()
    found = results.draw(corpus, state)
    places.plan_text(state.moved)
    panels.threshold(found, state, places)
    with picture:
        panels.picture(found)
