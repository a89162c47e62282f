"""The Search page: in what order its parts are drawn.

Where they stand is fixed by their containers; the order here is what an analyst sees first. A moved slider draws the
columns before anything else (measured: 40 widgets drawn first cost a third of the time to the first changed rank); a
new question, which may have to wait for a model to load, draws the controls first. Charts come last in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.ui import empty, panels, query_bar, resources, results, sidebar
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from workbench.service import Corpus


def draw(corpus: Corpus, state: AppState) -> None:
    """Draw the page."""
    query_bar.draw()
    asked = results.asked(state)
    if asked.blank:
        sidebar.draw(state, resources.collections(corpus))
        empty.no_query(corpus)
        return
    picture = st.container()
    if resources.finder().knows(corpus, asked, state.modes):
        found = results.draw(corpus, state)
        histogram, counts = sidebar.draw(state, resources.collections(corpus))
    else:
        histogram, counts = sidebar.draw(state, resources.collections(corpus))
        found = results.draw(corpus, state)
    panels.threshold(found, state, histogram, counts)
    with picture:
        panels.picture(found)
