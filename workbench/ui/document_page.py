"""The Document page: one document's whole text with the query's matches and the chunks' borders, its pages and neighbours.

The address names the document (`id`, `path`) and one place in it: `at` (`sheet=Sales&row=12`, or as people write it,
`Sales!A12`), which `lines` (with `quote`) may narrow; or `match` n, or `chunk` n. A path may be a whole citation. Moving from
match to match redraws the sheet alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import UsageError, WorkbenchError
from workbench.locators import Place, whole_number
from workbench.records import Chunk, Document, Span
from workbench.retrieve.cited import find_place
from workbench.retrieve.readfile import find_cited
from workbench.ui import cards, controls, document_parts, page_style
from workbench.ui import state as app_state
from workbench.ui.document import Sheet, Target, heading, join_spans, read_target
from workbench.ui.state import address_value

if TYPE_CHECKING:
    from workbench.corpus import Corpus

_KEY = controls.PREFIX + "document."
_ERROR = "[ERROR: "
_BEYOND = 40
_PLACES = ("at", "lines", "quote", "match", "chunk")


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What the page is about.

    Attributes:
        path: The document's path.
        text: Its text.
        document: None for a file that was never indexed.
        chunks: Its visible chunks.
        places: Where its text stands in its original.
        place: The characters at the place that was asked for, None where none was.
        trouble: Why a place that was asked for is not shown.
    """

    path: str
    text: str
    document: Document | None = None
    chunks: tuple[Chunk, ...] = ()
    places: tuple[Place, ...] = ()
    place: Span | None = None
    trouble: UsageError | None = None


def draw(corpus: Corpus) -> None:
    """Draw the page."""
    st.html(page_style.css())
    name, path = address_value("id"), address_value("path")
    if not (name or path):
        controls.path_box()
        st.text("Open a result's citation on the Search page, or type a path as citations show it.")
        document_parts.some_paths(corpus)
        return
    shown = find(corpus, name, path, address_value("at"))
    if isinstance(shown, str):
        controls.path_box(path)
        st.html(cards.alert("", shown, "Search again: the document may have been removed or renamed since"))
        return
    text, side = st.columns([7, 3], gap="medium") if shown.document is not None else (st.container(), None)
    with text:
        _text(corpus, shown)
    if side is not None and shown.document is not None:
        with side:
            document_parts.side(corpus, shown.document, shown.chunks, shown.place)


def find(corpus: Corpus, name: str, path: str, at: str = "") -> Shown | str:
    """The visible document with an id, path or citation, at a place in it; the reason where there is none."""
    engine, principal = corpus.engine, corpus.principal
    scope = engine.records.scope(principal, None, ())
    for asked in (name, path):
        number = engine.records.find_document(asked, scope) if asked else None
        if number is not None:
            return _placed(_stored(corpus, number), at)
    read = find_cited(engine, principal, path or name, stored=True)
    if not read.found:
        return read.text.removeprefix(_ERROR).partition("] ")[2]
    shown = Shown(read.path, read.text) if read.number is None else _stored(corpus, read.number)
    return _placed(replace(shown, place=read.place), at)


def _stored(corpus: Corpus, number: int) -> Shown:
    records = corpus.engine.records
    (document,) = records.documents([number])
    rows = records.rows(records.records_of(number).tolist())
    chunks = tuple(r.chunk for r in rows if r.chunk.granularity == "chunk")
    return Shown(document.path, document.text, document, chunks, records.places(number))


def _placed(shown: Shown, at: str) -> Shown:
    """With the place that the address names, or why it is not there."""
    if not at:
        return shown
    pages = shown.document.page_starts if shown.document is not None else ()
    try:
        return replace(shown, place=find_place(at, shown.text, shown.places, pages))
    except UsageError as exc:
        return replace(shown, trouble=exc)


@st.fragment
def _text(corpus: Corpus, shown: Shown) -> None:
    """The sheet: matches, chunk borders, and the way from one to the next."""
    collections = sorted({c.collection for c in shown.chunks})
    chunks = shown.chunks
    if len(collections) > 1:
        chosen = st.segmented_control(
            "Chunks of", collections, default=collections[0], required=True, key=_KEY + "collection",
            help="The document is in several collections; each may cut it in another way.",
        )  # fmt: skip
        chunks = tuple(c for c in chunks if c.collection == chosen)
    sheet = Sheet.of(shown.text, shown.path, chunks, shown.places)
    matches = _matches(corpus, shown)
    target = read_target(address_value("lines"), address_value("quote"))
    if shown.place is not None:
        target = sheet.narrowed(target, shown.place)
    current = _numbered("match", len(matches))
    focus = _focus(sheet, target, matches, current)
    title = shown.document.title if shown.document else ""
    st.html(heading(shown.path, title, sheet, target, len(matches)))
    if shown.trouble is not None:
        st.html(cards.alert("", shown.trouble.message, shown.trouble.remedy))
    _moves(sheet, matches, current, focus)
    rows, own = st.container(), sheet.page_at(focus)
    page = own
    if sheet.pages > 1:  # under the rows: whoever has read a page to its end turns it there
        page = st.pagination(sheet.pages, default=own, key=f"{_KEY}rows-{focus}-{shown.path}")
    rows.html(sheet.html(page, target, matches, current, beyond=_BEYOND))
    st.html(page_style.scroll_script(focus, page if page != own else 0), unsafe_allow_javascript=True)


def _matches(corpus: Corpus, shown: Shown) -> tuple[Span, ...]:
    """Where the query and the keywords match in the whole text; kept, because a long text takes a second to go through."""
    state = app_state.current()
    if not (state.query or state.keywords):
        return ()
    try:
        grep = tuple((n, v) for n, v in state.moved if n.startswith("grep."))
        return _spans(shown.text, state.query, state.keywords, str(grep), corpus)
    except WorkbenchError as exc:
        st.html(cards.alert("The matches cannot be shown", exc.message, exc.remedy))
        return ()


@st.cache_data(show_spinner="Looking for the matches", max_entries=64)
def _spans(text: str, query: str, keywords: str, grep: str, _corpus: Corpus) -> tuple[Span, ...]:
    from workbench.retrieve.keywords import parse_keywords
    from workbench.retrieve.matching import pattern_spans

    plan = app_state.current().moved
    words = _corpus.engine.lexical.highlight(query, text) if query else ()
    patterns = parse_keywords(keywords) if keywords else ()
    return join_spans(words, pattern_spans(patterns, text, plan))


def _numbered(name: str, most: int) -> int | None:
    """Position, from 0, of the match or chunk that the address numbers from 1; None where it names none that is there."""
    value = address_value(name)
    number = whole_number(value, 0)
    return number - 1 if 1 <= number <= most else None


def _focus(sheet: Sheet, target: Target, matches: tuple[Span, ...], current: int | None) -> int:
    """The character that the page is opened at."""
    if current is not None:
        return matches[current].start
    chunk = _numbered("chunk", len(sheet.chunks))
    return sheet.chunks[chunk].start if chunk is not None else sheet.offset_of(target)


def _moves(sheet: Sheet, matches: tuple[Span, ...], current: int | None, focus: int) -> None:
    """The buttons to the match and the chunk before and after."""
    with st.container(horizontal=True, vertical_alignment="center", key=_KEY + "moves"):
        if matches:
            here = sum(m.start < focus for m in matches) if current is None else current
            _move("Previous match", "match", here - 1, len(matches), "p")
            said = f"Match {current + 1:,} of {len(matches):,}" if current is not None else f"{len(matches):,} matches"
            st.text(said, width="content")
            _move("Next match", "match", here if current is None else here + 1, len(matches), "n")
        if len(sheet.chunks) > 1:
            at = sheet.chunk_at(focus)
            _move("Previous chunk", "chunk", -1 if at is None else at - 1, len(sheet.chunks), "Shift+p")
            _move("Next chunk", "chunk", 0 if at is None else at + 1, len(sheet.chunks), "Shift+n")


def _move(label: str, name: str, to: int, most: int, shortcut: str) -> None:
    st.button(
        label, key=f"{_KEY}{label.lower().replace(' ', '-')}", on_click=go, args=(name, to + 1),
        disabled=not 0 <= to < most, shortcut=shortcut,
    )  # fmt: skip


def go(name: str, number: int) -> None:
    """Make the address name a match or a chunk in place of lines (a callback)."""
    for other in _PLACES:
        if other in st.query_params:
            del st.query_params[other]
    st.query_params[name] = str(number)
