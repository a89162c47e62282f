"""The app's router: page set-up, style, navigation, and the errors that a page did not catch itself.

What `workbench app` runs, and what tests start from. A page is the function `draw` of its module in `views`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.markup import plain
from workbench.ui import auth, resources, state
from workbench.ui.components import cards

NAME = "Retrieval workbench"
# Path of a page in the address (the first has none) -> its title and icon; the path is the name of its view. No bare text
# here: this file is the main script, and Streamlit would write it on every page.
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
WITHOUT_CORPUS = ("corpus", "guide")
_STATIC = Path(__file__).with_name("static")


def tab_title(page: str, about: str) -> str:
    """What the browser's tab and history call a page: what it is about first, so that ten tabs can be told apart."""
    return " · ".join(part for part in (plain(about, 60), page, NAME) if part)


@functools.cache
def css() -> str:
    sheet = _STATIC.joinpath("app.css").read_text(encoding="utf-8")
    return f"<style>{sheet}{cards.label_rules()}</style>"


@functools.cache
def script() -> str:
    return f"<script>{_STATIC.joinpath('app.js').read_text(encoding='utf-8')}</script>"


def _drawing(name: str) -> Callable[[], None]:
    def draw() -> None:
        view = importlib.import_module(f"workbench.ui.views.{name}")
        if name in WITHOUT_CORPUS:
            view.draw()
        else:
            view.draw(resources.corpus_or_help())

    return draw


def run() -> None:
    """Run the router once: keep the address and the state equal, run the page, show errors as a sentence."""
    st.set_page_config(page_title=NAME, page_icon="🔎", layout="wide", initial_sidebar_state="auto")
    pages = {
        path: st.Page(
            _drawing(path or "search"), title=title, icon=f":material/{icon}:", url_path=path, default=not path
        )
        for path, (title, icon) in PAGES.items()
    }
    page = st.navigation(list(pages.values()), position="top" if auth.entered() else "hidden")
    st.html(css())
    st.html(script(), unsafe_allow_javascript=True)
    if not auth.door():
        return
    shown = state.enter(page.url_path, pages)
    path = state.page_value("path")
    about = path.rpartition("/")[2] or shown.query or shown.keywords
    st.set_page_config(page_title=tab_title(PAGES[page.url_path][0], about))
    try:
        page.run()
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))


if __name__ == "__main__":
    run()
