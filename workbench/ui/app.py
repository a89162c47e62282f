"""The app's router: page set-up, style, navigation, and the errors that a page did not catch itself.

What `workbench app` runs, and what tests start from. A page is the function `draw` of its module in `views`.
"""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from workbench.charts.layout import STYLE
from workbench.errors import WorkbenchError
from workbench.markup import plain
from workbench.ui import auth, resources, state
from workbench.ui.components import bar, cards

NAME = "Retrieval workbench"
# Path of a page in the address (the first has none) -> its title, icon and what it is for; the path is the name of its view. No
# bare text here: this file is the main script, and Streamlit would write it on every page.
PAGES = {
    "": ("Search", "search", "See side by side what finds the right passage."),
    "explain": ("Explain", "query_stats", "Why this order, and where is that document?"),
    "judge": ("Judge", "gavel", "Say how well passages answer queries, so that plans can be measured."),
    "queries": ("Query sets", "list_alt", "Questions that people ask, and how far each is judged."),
    "tune": ("Tune", "tune", "Find better settings, and learn whether they are better."),
    "compare": ("Compare", "compare_arrows", "Who wins where, when plans answer the same queries?"),
    "snapshots": ("Snapshots", "photo_camera", "Keep what was seen, and pass it on."),
    "document": ("Document", "description", "The cited place in its whole."),
    "corpus": ("Corpus", "database", "What is indexed, and index more."),
    "guide": ("Guide", "menu_book", "How everything works."),
}
ABOUT = f"**{NAME}**: grep, BM25, embeddings and their fusion, side by side. Press ? for the keys."
WITHOUT_CORPUS = ("corpus", "guide")
_STATIC = Path(__file__).with_name("static")


def tab_title(page: str, about: str) -> str:
    """What the browser's tab and history call a page: what it is about first, so that ten tabs can be distinguished."""
    return " · ".join(part for part in (plain(about, 60), page, NAME) if part)


@functools.cache
def css() -> str:
    sheet = _STATIC.joinpath("app.css").read_text(encoding="utf-8")
    return f"<style>{STYLE}{sheet}{cards.label_rules()}</style>"


@functools.cache
def script() -> str:
    known = json.dumps({"pages": list(PAGES), "params": state.PARAMS, "kept": state.KEPT})
    code = _STATIC.joinpath("app.js").read_text(encoding="utf-8")
    return f"<script>window.__workbench = {known};\n{code}</script>"


def _drawing(name: str) -> Callable[[], None]:
    def draw() -> None:
        view = importlib.import_module(f"workbench.ui.views.{name}")
        if name in WITHOUT_CORPUS:
            view.draw()
        elif (corpus := resources.corpus_or_help()) is not None:
            view.draw(corpus)

    return draw


def run() -> None:
    """Run the router once: keep the address and the state equal, run the page, show errors as a sentence."""
    # With an About Streamlit shows its menu, which has the switch between light and dark.
    look: dict[str, Any] = {"layout": "wide", "initial_sidebar_state": "auto", "menu_items": {"about": ABOUT}}
    st.set_page_config(page_title=NAME, page_icon="🔎", **look)
    pages = {
        path: st.Page(
            _drawing(path or "search"), title=title, icon=f":material/{icon}:", url_path=path, default=not path
        )
        for path, (title, icon, _) in PAGES.items()
    }
    page = st.navigation(list(pages.values()), position="top" if auth.entered() else "hidden")
    st.html(css())
    st.html(script(), unsafe_allow_javascript=True)
    if not auth.door():
        return
    shown = state.enter(page.url_path, pages)
    corpus = resources.corpus_if_any()
    place = bar.draw(corpus)
    path = state.page_value("path")
    about = path.rpartition("/")[2] or shown.query or shown.keywords
    title, _, purpose = PAGES[page.url_path]
    st.set_page_config(page_title=tab_title(title, about))
    heard = "" if page.url_path else ' class="wb-heard"'  # the first page has its query there
    st.html(f'<h1 class="wb-heard">{NAME}</h1><h2{heard}>{title} <span class="wb-dim">{purpose}</span></h2>')
    try:
        page.run()
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
    if corpus is not None:
        with place:
            bar.follow(corpus)


if __name__ == "__main__":
    run()
