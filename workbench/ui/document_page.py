"""The Document page: find the document that the address names, and show its lines page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.ui import cards, controls, style
from workbench.ui.document import Opened, heading, read_target
from workbench.ui.state import address_value

if TYPE_CHECKING:
    from workbench.service import Corpus

_ERROR = "[ERROR: "


def draw(corpus: Corpus) -> None:
    """Draw the page."""
    name, path = address_value("id"), address_value("path")
    if not (name or path):
        controls.path_box()
        st.text("Open a result's citation on the Search page, or type a path as citations show it.")
        return
    text = corpus.read_file(name or path)
    if text.startswith(_ERROR) and name and path:
        text = corpus.read_file(path)
    if text.startswith(_ERROR):
        controls.path_box(path)
        reason = text.removeprefix(_ERROR).partition("] ")[2]
        st.html(cards.alert("", reason, "Search again: the document may have been removed or renamed since"))
        return
    target = read_target(address_value("lines"), address_value("quote"))
    opened = Opened.of(text)
    st.html(heading(path or name, target, opened.lines))
    page = opened.page_of(target)
    if opened.pages > 1:
        page = controls.line_pages(opened.pages, page, (name or path, target.first))
    st.html(opened.html(page, target))
    st.html(style.scroll_script(), unsafe_allow_javascript=True)
