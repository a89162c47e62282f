"""Pages that have nothing to show yet, and say what to do about it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import CorpusNotFound, WorkbenchError
from workbench.ui import cards, controls, resources, sign_in
from workbench.ui.text import plain

if TYPE_CHECKING:
    from workbench.corpus import Corpus

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
    if sign_in.may_index():
        st.page_link("views/corpus.py", label="Name a folder of yours on the Corpus page", icon=":material/database:")
        st.text("Or make one in a terminal:")
    else:
        st.text("Make one in a terminal:")
    st.code(
        f"workbench index PATH-TO-YOUR-FILES --corpus {shlex.quote(plain(str(path), 300))}",
        language=None,
        wrap_lines=True,
    )
    st.text("Or try the sample that comes with the workbench:")
    st.code("workbench demo", language=None)
    st.button("Look again", key=controls.PREFIX + "look-again", help="Looks for the corpus once more.")


def no_query(corpus: Corpus) -> None:
    """What the corpus holds, and queries to start with."""
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
                st.button(
                    _label(title), key=f"{controls.PREFIX}example-{position}", on_click=controls.ask, args=(title,)
                )  # fmt: skip
    st.caption(
        "Words, “phrases in quotes”, -not, prefix\\*. Grep takes the keywords box, or else the query's rarest words. "
        "[More in the guide](guide?page=search#query)"
    )


def _label(title: str) -> str:
    """A button's label is Markdown: the title with every sign of Markdown taken literally."""
    return "".join("\\" + c if c in "\\`*_{}[]()#+-.!|~$:<>" else c for c in plain(title, 60))
