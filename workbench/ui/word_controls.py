"""The corpus's own synonyms and stop words, to read and to change for everybody."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.store.lexical.synonyms import vocabulary_of
from workbench.ui import resources, undo
from workbench.ui import state as app_state
from workbench.ui.controls import PREFIX, lazy

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.store.lexical.synonyms import Vocabulary

_SYNONYMS, _STOP = PREFIX + "synonyms", PREFIX + "stop_words"


def popover(corpus: Corpus) -> None:
    """The box of the corpus's words."""
    with lazy("Words", "words", "Synonyms and stop words of this corpus.") as opened:
        if not opened.open:
            return
        vocabulary = corpus.vocabulary
        st.text_area(
            "Synonyms", value="\n".join(", ".join(group) for group in vocabulary.synonyms), key=_SYNONYMS, height=130,
            placeholder="k8s, kubernetes\nCI, continuous integration",
            help="One group a line: words or phrases that mean the same here. The keyword side searches all of a group.",
        )  # fmt: skip
        st.text_input(
            "Stop words", value=", ".join(vocabulary.stop_words), key=_STOP, placeholder="acme, inc",
            help="Words that say nothing in this corpus: they count only in quotes, or alone.",
        )  # fmt: skip
        if resources.may_change_words():
            st.button("Keep", key=PREFIX + "words.keep", type="primary", on_click=_keep, args=(corpus,),
                      help="For everybody, from the next search on; nothing is indexed again.")  # fmt: skip
        st.caption("They stand in `corpus.yaml` in the corpus folder, and can be edited there too.")


def _keep(corpus: Corpus) -> None:
    groups = [line.split(",") for line in str(st.session_state[_SYNONYMS] or "").splitlines()]
    stop = str(st.session_state[_STOP] or "").replace("\n", ",").split(",")
    before = corpus.vocabulary
    try:
        wanted = vocabulary_of(groups, stop)
        if wanted == before:
            return
        corpus.set_vocabulary(wanted)
    except WorkbenchError as exc:
        app_state.notice(str(exc))
        return
    undo.remember("the words of the corpus", functools.partial(_put_back, corpus, before))
    app_state.tell("The words are kept, and used from now on.")


def _put_back(corpus: Corpus, before: Vocabulary) -> None:
    corpus.set_vocabulary(before)
    for key in (_SYNONYMS, _STOP):
        st.session_state.pop(key, None)
