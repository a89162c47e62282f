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


def run() -> None:
    """Run the router once: set up, keep the address and the state equal, run the page, say errors in a sentence."""
    st.set_page_config(page_title=NAME, page_icon="🔎", layout="wide", initial_sidebar_state="auto")
    page = st.navigation(
        [
            st.Page("views/search.py", title="Search", icon=":material/search:", default=True),
            st.Page("views/explain.py", title="Explain", icon=":material/query_stats:", url_path="explain"),
            st.Page("views/judge.py", title="Judge", icon=":material/gavel:", url_path="judge"),
            st.Page("views/tune.py", title="Tune", icon=":material/tune:", url_path="tune"),
            st.Page("views/compare.py", title="Compare", icon=":material/compare_arrows:", url_path="compare"),
            st.Page("views/snapshots.py", title="Snapshots", icon=":material/photo_camera:", url_path="snapshots"),
            st.Page("views/document.py", title="Document", icon=":material/description:", url_path="document"),
            st.Page("views/corpus.py", title="Corpus", icon=":material/database:", url_path="corpus"),
            st.Page("views/guide.py", title="Guide", icon=":material/menu_book:", url_path="guide"),
        ],
        position="top" if sign_in.entered() else "hidden",
    )
    st.html(style.css())
    st.html(style.script(), unsafe_allow_javascript=True)
    if not sign_in.door():
        return
    asked = state.enter(page.url_path)
    path = state.address_value("path") if page.url_path == "document" else ""
    st.set_page_config(page_title=tab_title(page.title, path.rpartition("/")[2] or asked.query or asked.keywords))
    for sentence in state.take_notices():
        st.html(cards.alert("", sentence, ""))
    for sentence in state.take_told():
        st.html(cards.note(sentence))
    try:
        page.run()
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
