"""What every page has: the style sheet, the script, and what it says where there is nothing to show yet.

Colours are mixed from the text's own colour, so they fit the light and the dark theme and whatever theme somebody sets. The
script (`static/app.js`) answers the cards' buttons and the keys; it is a constant file, listens on the document once, and reads
only what a button carries. Without it the citation can still be selected whole.
"""

from __future__ import annotations

import functools
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import CorpusNotFound, WorkbenchError
from workbench.markup import plain
from workbench.ui import auth, resources
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls
from workbench.ui.components.cards import label_rules

if TYPE_CHECKING:
    from workbench.corpus import Corpus

_STATIC = Path(__file__).with_name("static")


_SCROLL = """
(() => {
  const named = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  const place = named || document.querySelector(".wb-target");
  if (!place) return;
  if (named) named.classList.add("wb-named");
  place.scrollIntoView({block: named ? "center" : "start"});
})();
"""


@functools.cache
def css() -> str:
    """The style sheet as an HTML element; the labels' colours are those of the pictures."""
    sheet = _STATIC.joinpath("app.css").read_text(encoding="utf-8")
    return f"<style>{sheet}{label_rules()}</style>"


@functools.cache
def script() -> str:
    """The pages' script as an HTML element; constant."""
    return f"<script>{_STATIC.joinpath('app.js').read_text(encoding='utf-8')}</script>"


def scroll_script() -> str:
    """A script that brings the named line of a page, or the target line of a document, into view; constant."""
    return f"<script>{_SCROLL}</script>"


_DOCUMENT_SCROLL = """
((turned) => {
  const place = turned ? document.querySelector(".wb-doc .wb-turned") || document.querySelector(".wb-doc .wb-row")
    : document.querySelector("mark.wb-now") || document.querySelector(".wb-doc .wb-target");
  if (place) place.scrollIntoView({block: place.tagName === "MARK" ? "center" : "start"});
})"""


def document_scroll(number: int, turned: int = 0) -> str:
    """A script that brings the current match, else the target lines, into view (the first row where somebody `turned` to a page
    of rows). `number` changes whenever it should run again: a browser runs the same element once.
    """
    return f"<script>/* {int(number)} */{_DOCUMENT_SCROLL}({int(turned)});</script>"


EXAMPLES = 6


def corpus_or_help() -> Corpus:
    """The open corpus; where there is none, the page says how to make one and ends."""
    try:
        return resources.corpus()
    except CorpusNotFound:
        _no_corpus()
    except WorkbenchError as exc:
        st.html(cards.alert("The corpus cannot be opened", exc.message, exc.remedy))
    st.stop()


def _no_corpus() -> None:
    path = resources.corpus_path()
    st.subheader("There is no corpus yet")
    st.text(
        f"A corpus is a folder that holds everything you have indexed; this app looks for one at {plain(str(path), 300)}."
    )
    if auth.may_index():
        label = "Name a folder of yours on the Corpus page"
        st.page_link(app_state.page_of("corpus"), label=label, icon=":material/database:")
    st.text("Or make one in a terminal:" if auth.may_index() else "Make one in a terminal:")
    command = f"workbench index PATH-TO-YOUR-FILES --corpus {shlex.quote(plain(str(path), 300))}"
    st.code(command, language=None, wrap_lines=True)
    st.text("Or try the sample that comes with the workbench:")
    st.code("workbench demo", language=None)
    st.button("Look again", key=controls.PREFIX + "look-again", help="Check again.")


def no_query(corpus: Corpus) -> None:
    try:
        info, titles = resources.info(corpus), resources.example_queries(corpus, EXAMPLES)
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
        return
    st.subheader("Ask something, and see what finds it")
    st.text(f"This corpus holds {info['documents']:,} documents in {info['records']:,} passages.")
    if titles:
        st.text("For example, a title from your documents:")
        with st.container(horizontal=True):
            for position, title in enumerate(titles):
                key = f"{controls.PREFIX}example-{position}"
                st.button(cards.in_markdown(title), key=key, on_click=controls.ask, args=(title,))
    st.caption(
        "Words, “phrases in quotes”, -not, prefix\\*. Grep takes the keywords box, or else the query's rarest words. "
        "[More in the guide](guide?page=search#query)"
    )
