"""The line on top of the Search page: the query, the keywords, the columns."""

from __future__ import annotations

import streamlit as st

from workbench.ui import controls

QUERY_HELP = (
    'What you are looking for: words, "phrases", -not, prefix\\*. The keyword side reads it as words, the vector side as '
    "meaning. Press / to come here. [Guide](guide#query)"
)
KEYWORDS_HELP = (
    "Exact words for grep, a quoted phrase counts as one; without them grep takes the rarest words of the query. "
    "Keywords bring grep into the hybrid column too. [Guide](guide#field-grep-when)"
)


def draw() -> None:
    """Draw the line; on a narrow screen its parts stand one below the other."""
    query, keywords, columns = st.columns([5, 3, 4], gap="small", vertical_alignment="bottom")
    with query:
        controls.text_box("query", "Query", QUERY_HELP, "What finds the right passage?", kind="search")
    with keywords:
        controls.text_box("keywords", "Keywords", KEYWORDS_HELP, "exact words, for grep")
    with columns:
        controls.columns()
