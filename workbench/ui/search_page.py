"""The Search page: what is drawn once, and what is drawn again when a slider moves.

The query line and the sidebar are drawn by the router's run. Everything that answers (columns, histogram, counts, plan
text, picture) is one fragment: a slider's callback reruns that alone, so that forty widgets are not drawn again for one
moved rank. Controls that change which controls there are (method, preset, columns, ...) rerun the whole page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.ui import cards, controls, empty, panels, query_bar, resources, results, sidebar
from workbench.ui import state as app_state

if TYPE_CHECKING:
    from workbench.service import Corpus


def draw(corpus: Corpus) -> None:
    """Draw the page."""
    state = app_state.current()
    query_bar.draw()
    places = sidebar.draw(state, resources.collections(corpus))
    if results.asked(state).blank:
        places.plan_text(state.plan)
        empty.no_query(corpus)
        return
    _answers(corpus, places)


@st.fragment(key=controls.ANSWERS)
def _answers(corpus: Corpus, places: sidebar.Places) -> None:
    """The part that a slider draws again: columns first, then the charts."""
    app_state.written_in_fragment()
    state = app_state.current()
    picture = st.container()
    try:
        found = results.draw(corpus, state)
        places.plan_text(state.plan)
        panels.threshold(found, state, places)
        with picture:
            panels.picture(found)
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
