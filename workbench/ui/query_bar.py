"""The lines on top of the Search page: what is asked, and the boxes that open over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.ui import column_controls, controls, resources, saved_controls, take_away, word_controls
from workbench.ui import state as app_state
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from workbench.corpus import Corpus

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
KEYWORDS_EXAMPLE, FILTER_EXAMPLE = "exact words, for grep", "type = 'markdown'"
CONTEXT_HELP = (
    "Code or text that you have open: the names in it are added to what the vector side embeds, and to nothing else."
)


def draw(corpus: Corpus, state: AppState) -> None:
    """Draw the lines; on a narrow screen their parts stand one below the other."""
    query, keywords, filters = st.columns([5, 3, 3], gap="small", vertical_alignment="bottom")
    with query:
        controls.text_box("query", "Query", QUERY_HELP, "What finds the right passage?", kind="search")
    with keywords:
        controls.text_box("keywords", "Keywords", KEYWORDS_HELP, KEYWORDS_EXAMPLE)
    with filters:
        controls.text_box("filters", "Filter", FILTER_HELP, FILTER_EXAMPLE)
    plans = resources.saved_plans()
    with st.container(horizontal=True, gap="small", key="wb-boxes"):
        column_controls.popover(state, plans)
        context = "Context: on" if state.context else "Context"
        with controls.lazy(context, "context", "What you have open in an editor, to search with.") as opened:
            if opened.open:
                controls.context_box(CONTEXT_HELP)
        controls.examples_switch(state.examples)
        saved_controls.popover(state)
        word_controls.popover(corpus)
        take_away.popover(state)
        st.button(
            "Undo", key=controls.PREFIX + "undo", icon=":material/undo:", on_click=app_state.take_back,
            help="Takes back the last change: of a setting, the query, a deletion, a grade. Key: u",
        )  # fmt: skip
