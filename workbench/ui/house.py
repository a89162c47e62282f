"""The app's house: page set-up, style, navigation, and the errors that a page did not catch itself."""

from __future__ import annotations

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.ui import cards, sign_in, state, style
from workbench.ui.text import plain

NAME = "Retrieval workbench"


def tab_title(page: str, about: str) -> str:
    """What the browser's tab and history call a page: what it is about first, so that ten tabs can be told apart."""
    return " · ".join(part for part in (plain(about, 60), page, NAME) if part)


_HOME = "search"
PAGES = {
    "": ("Search", "search"),
    "explain": ("Explain", "query_stats"),
    "judge": ("Judge", "gavel"),
    "tune": ("Tune", "tune"),
    "compare": ("Compare", "compare_arrows"),
    "snapshots": ("Snapshots", "photo_camera"),
    "document": ("Document", "description"),
    "corpus": ("Corpus", "database"),
    "guide": ("Guide", "menu_book"),
}
"""Path of a page in the address (the first has none) -> its title and icon; the path is the name of its view."""


def run() -> None:
    """Run the router once: set up, keep the address and the state equal, run the page, say errors in a sentence."""
    st.set_page_config(page_title=NAME, page_icon="🔎", layout="wide", initial_sidebar_state="auto")
    page = st.navigation(
        [
            st.Page(
                f"views/{path or _HOME}.py", title=title, icon=f":material/{icon}:", url_path=path, default=not path
            )
            for path, (title, icon) in PAGES.items()
        ],
        position="top" if sign_in.entered() else "hidden",
    )
    st.html(style.css())
    st.html(style.script(), unsafe_allow_javascript=True)
    if not sign_in.door():
        return
    asked = state.enter(page.url_path)
    path = state.address_value("path") if page.url_path == "document" else ""
    st.set_page_config(
        page_title=tab_title(PAGES[page.url_path][0], path.rpartition("/")[2] or asked.query or asked.keywords)
    )
    for sentence in state.take_notices():
        st.html(cards.alert("", sentence, ""))
    for sentence in state.take_told():
        st.html(cards.note(sentence))
    try:
        page.run()
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
