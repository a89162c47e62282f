"""What a person does on a card: grades, notes, more like this. From the browser to here, without drawing the page again.

Cards are plain HTML (a widget for each would make the page slow), so one small component carries their events: the page's
script hands it what was pressed, and Streamlit reruns only the fragment it is in. A grade is written and nothing else
happens, because the script has already shown it; a note opens a dialog; what changes the search runs the whole page.

The component's state is the list of events that this side has not done yet, numbered: a state that changes while a run is on
is read by the next one, so none is lost and none is done twice.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from workbench.errors import UsageError, WorkbenchError
from workbench.markup import plain
from workbench.ranking.cutting import to_distance
from workbench.records import Hit
from workbench.ui import marks, resources
from workbench.ui import state as app_state
from workbench.ui.components import cards, tables
from workbench.ui.components.controls import PREFIX

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.ui.state import AppState

MOST_ALIKE = 10


def nearest(corpus: Corpus, state: AppState, hit: Hit) -> str:
    """The passages nearest to a hit's by its stored vector, under the page's filter and the plan's collections, as HTML with how
    they were found. Raises UsageError, WorkbenchError.
    """
    engine, plan = corpus.engine, state.moved
    records, own = engine.records, _record_of(corpus, hit)
    index, metric = engine.vectors(""), str(plan["vector.metric"])
    scope = records.scope(corpus.principal, state.filters or None, plan["collections"])
    (vector,) = index.vectors(np.array([own], np.int64))
    found = index.search(vector, scope, MOST_ALIKE + 1, exact=plan["vector.exact"])
    near = [(n, s) for n, s in zip(found.numbers.tolist(), found.scores.tolist(), strict=True) if n != own][:MOST_ALIKE]
    rows = tuple(records.rows([n for n, _ in near]))
    documents = records.headers([row.document_number for row in rows])
    passages = [(document.path, row.chunk) for document, row in zip(documents, rows, strict=True)]
    distances = [f"{metric} distance {float(to_distance(score, metric)):.3f}" for _, score in near]
    none = '<p class="wb-msg">There is no other passage that the filter lets through.</p>'
    how = "by the approximate index" if found.approximate else "exactly"
    words = (
        f"The passages nearest to {plain(hit.citation, 120)} by their stored vectors ({plain(index.identity.name, 60)}), found "
        f"{how}; nothing was embedded. The page's filter and the plan's collections hold here too."
    )
    return cards.note(words) + (tables.chunks_html(passages, {}, distances, "Passages like this") if passages else none)


def _record_of(corpus: Corpus, hit: Hit) -> int:
    """Number of a hit's record. Raises UsageError where the chunk is gone."""
    number = corpus.engine.records.find_record(hit.chunk_id, resources.scope(corpus))
    if number is None:
        raise UsageError("The passage was re-indexed meanwhile", "Search again")
    return number


KEY = "wb.events"
_NOTE, _LIKE, _DONE, _GRADED = "wb.events.note", "wb.events.like", "wb.events.done", "wb.events.graded"
MOST = 100
LONGEST_LIKE = 600
_SIGNS = re.compile(r'["“”„‟＂*|]|(?<!\S)-+|\bOR\b')
_SENDER = """
export default function (component) {
  const waiting = (window.__workbenchEvents = window.__workbenchEvents || []);
  while (waiting.length && waiting[0].number <= component.data.done) waiting.shift();
  window.__workbenchSend = () => component.setStateValue("events", waiting.slice(0, 100));
  if (waiting.length) setTimeout(window.__workbenchSend, 0);
}
"""


@functools.cache
def _component() -> Callable[..., Any]:
    from streamlit.components import v2

    return v2.component("workbench_events", html="<span hidden></span>", js=_SENDER, isolate_styles=False)


@st.fragment(key=KEY)
def draw(corpus: Corpus) -> None:
    with st.container(key="wb-events"):
        _component()(key=KEY, data={"done": _done()}, on_events_change=functools.partial(_happened, corpus))
    if app_state.asked_again():
        st.rerun()
    if _NOTE in st.session_state:
        _note_dialog(corpus, st.session_state[_NOTE])
    elif _LIKE in st.session_state:
        _like_dialog(*st.session_state[_LIKE])


def _done() -> float:
    return float(st.session_state.get(_DONE, 0))


def _happened(corpus: Corpus) -> None:
    events = st.session_state[KEY].get("events")
    for event in events[:MOST] if isinstance(events, list) else ():
        number = event.get("number") if isinstance(event, Mapping) else None
        if isinstance(number, int | float) and number > _done():
            st.session_state[_DONE] = number
            handle(corpus, event)
    if st.session_state.pop(_GRADED, False) and "answers" in app_state.whole_parts():
        st.rerun((KEY, "answers"))  # the figures at the columns' heads


def handle(corpus: Corpus, event: Mapping[str, Any]) -> None:
    """Do what a card requested (`do`: grade, note or more; `chunk`; `value`: a grade); a fault becomes a sentence on the
    page. The event comes from the browser: anything may be in it.
    """
    try:
        _handle(corpus, str(event.get("do")), str(event.get("chunk", "")), event.get("value"))
    except WorkbenchError as exc:
        app_state.notice(str(exc))
        app_state.ask_again()


def _handle(corpus: Corpus, do: str, chunk_id: str, value: Any) -> None:
    hit = resources.finder().hit(chunk_id)
    if hit is None:
        raise UsageError("The result is not on the page any more", "Try it on a result that is shown now")
    if do == "grade":
        _grade(corpus, hit, value)
    elif do == "note":
        st.session_state[_NOTE] = hit
    elif do == "more":
        try:
            st.session_state[_LIKE] = (hit, nearest(corpus, app_state.current(), hit))
        except WorkbenchError as exc:
            app_state.message(f"Searched with the passage's text. Its neighbours by vector are not to be had: {exc}")
            _ask_like(hit)


# --- more like this -----------------------------------------------------------------------------------------------------


def _ask_like(hit: Hit) -> None:
    state = app_state.current()
    app_state.update("the query", query=like(hit), keywords="")
    if state != app_state.current():
        app_state.ask_again()


def _close_like() -> None:
    st.session_state.pop(_LIKE, None)


@st.dialog("More like this", width="large", on_dismiss=_close_like)
def _like_dialog(hit: Hit, found: str) -> None:
    st.html(found)
    if st.button(
        "Search with its text instead",
        key=PREFIX + "like.text",
        help="Puts the passage's words into the query, for the keyword side too; Undo goes back.",
    ):
        _close_like()
        _ask_like(hit)
        st.rerun()


def like(hit: Hit) -> str:
    """A query that looks for what is like a hit: the beginning of its text, without signs that the query syntax reads."""
    words = _SIGNS.sub(" ", hit.text.replace("[CHUNK BOUNDARY]", " ")).split()
    return plain(" ".join(words), LONGEST_LIKE).rstrip("…")


# --- grades -----------------------------------------------------------------------------------------------------------


def _grade(corpus: Corpus, hit: Hit, value: Any) -> None:
    if isinstance(value, bool) or value not in (0, 1, 2, 3):
        raise UsageError(f"The grade is {value!r}", "Grades are 0, 1, 2 and 3")
    text, keywords = marks.judged_query(app_state.current())
    asked = marks.asked_of(corpus, text, keywords)
    written = corpus.judging.grade(hit, int(value), asked.query or text, keywords=keywords, set=asked.set)

    def back() -> None:
        corpus.judging.log.undo(asked.set, written.judge, written.number)
        marks.marks_written()

    app_state.remember(f"the grade {int(value)} of {hit.citation} in the set {asked.set}", back)
    marks.marks_written()
    st.session_state[_GRADED] = True


# --- notes -------------------------------------------------------------------------------------------------------------


def _close_note() -> None:
    st.session_state.pop(_NOTE, None)


@st.dialog("Note", on_dismiss=_close_note)
def _note_dialog(corpus: Corpus, hit: Hit) -> None:
    anchor = spot(corpus, hit)
    held = [
        n
        for n in resources.searches().notes([hit.path])
        if (n.start, n.end, n.quote) == anchor and n.document in ("", hit.document_id)
    ]
    st.text(plain(f"{hit.citation}: {hit.text}", 200))
    text = st.text_area(
        "Your note",
        value=held[0].text if held else "",
        key=f"{PREFIX}note.{hit.chunk_id}",
        height=130,
        help="The note is attached to this text and survives re-indexing. Only you see it.",
    )
    if st.button("Save", key=PREFIX + "note.keep", type="primary", help="An empty note is deleted."):
        try:
            write_note(hit.path, anchor, text, hit.document_id)
        except WorkbenchError as exc:
            app_state.notice(str(exc))
        _close_note()
        st.rerun()


def spot(corpus: Corpus, hit: Hit) -> tuple[int, int, str]:
    """First character of a hit's chunk, the one after the last, and its text. Raises UsageError where the chunk is gone."""
    (row,) = corpus.engine.records.rows([_record_of(corpus, hit)])
    return row.chunk.start, row.chunk.end, row.chunk.text


def write_note(path: str, anchor: tuple[int, int, str], text: str, document: str = "") -> None:
    """Keep a note on a passage of a document (its id); undo brings back the one before. Raises CorpusError, UsageError."""
    before = resources.searches().write_note(path, *anchor, text, document)

    def back() -> None:
        resources.searches().write_note(path, *anchor, before, document)
        marks.marks_written()

    if before != text.strip():
        app_state.remember(f"the note on {path}", back)
    marks.marks_written()
