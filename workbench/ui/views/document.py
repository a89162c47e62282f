"""The Document page: one document's whole text with the query's matches and the chunks' borders, ranks and scores, an overview of
both along the document, the printed page of a PDF, and its neighbours.

The address names the document (`id`, `path`) and one place in it: `at` (`sheet=Sales&row=12`, or as people write it,
`Sales!A12`), which `lines` (with `quote`) may narrow; or `match` n, or `chunk` n. A path may be a whole citation. Moving from
match to match redraws the sheet and the printed page alone.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import CorpusError, UsageError, WorkbenchError, some_of
from workbench.locators import Place, whole_number
from workbench.markup import attribute, plain, visible
from workbench.records import Chunk, Document, Span
from workbench.retrieve.readfile import find_cited, find_place, original
from workbench.ui import resources
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, tables
from workbench.ui.components.sheet import BEYOND, Ranks, Sheet, heading, join_spans, read_target
from workbench.ui.finder import request_of
from workbench.ui.state import page_value, set_page_values

if TYPE_CHECKING:
    from workbench.corpus import Corpus

MOST_LISTED = 30
NEIGHBOURS = 14
MOST_COPIES = 20
_ERROR = "[ERROR: "
_PLACES = ("at", "lines", "quote", "match", "chunk")
_KEY = controls.PREFIX + "document."
_FOCUS = "wb.document.focus"
_SCROLL = """
((turned) => {
  const place = turned ? document.querySelector(".wb-doc .wb-turned") || document.querySelector(".wb-doc .wb-row")
    : document.querySelector("mark.wb-now") || document.querySelector(".wb-doc .wb-target");
  if (place) place.scrollIntoView({block: place.tagName === "MARK" ? "center" : "start"});
})"""
"""Brings the current match, else the target, into view; the first row where somebody turned to a page of rows. The number of
what is shown comes before it: a browser runs the same element once."""


# --- the page ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What the page is about.

    Attributes:
        path: The document's path.
        text: Its text.
        document: None for a file that was never indexed.
        chunks: Its visible chunks.
        places: Where its text is in its original.
        place: The characters at the place that the address names, None where it names none.
        problem: Why that place is not shown.
    """

    path: str
    text: str
    document: Document | None = None
    chunks: tuple[Chunk, ...] = ()
    places: tuple[Place, ...] = ()
    place: Span | None = None
    problem: UsageError | None = None


def draw(corpus: Corpus) -> None:
    name, path = page_value("id"), page_value("path")
    if not (name or path):
        _path_box("Path")
        st.text("Open a result's citation on the Search page, or type a path as citations show it.")
        _some_paths(corpus)
        return
    shown = find(corpus, name, path, page_value("at"))
    if isinstance(shown, str):
        like = _like(corpus, path)
        if len(like) != 1:
            _path_box("Path", path)
            st.html(cards.alert("", shown, "Search again: the document may have been removed or renamed since"))
            if like:
                st.text("Paths that hold these letters:")
                st.html(_links(like))
            return
        shown = find(corpus, "", like[0])
        assert not isinstance(shown, str)
    if shown.document is None:
        _text(corpus, shown)
        return
    text, side = st.columns([7, 3], gap="medium")
    with text:
        _text(corpus, shown)
    with side.container(key=_KEY + "side"):
        _path_box("Open another document")
        if shown.document.type == "pdf" and shown.document.page_starts:
            _page_image(corpus, shown.document)
        _beside(corpus, shown.document, shown.chunks)


def _like(corpus: Corpus, path: str) -> list[str]:
    """Visible paths that hold the letters of one that is not there, or else its name."""
    catalogue, scope = resources.catalogue(corpus), resources.scope(corpus)
    parts = (path.strip(), path.strip().rpartition("/")[2])
    return next((found for part in parts if part and (found := catalogue.paths(scope, MOST_LISTED, part))), [])


def _path_box(label: str, value: str = "") -> None:
    def show(path: str | None) -> None:
        set_page_values(**dict.fromkeys(("id", *_PLACES), ""), path=(path or "").strip())

    st.text_input(
        label,
        value,
        placeholder="reference/about.md",
        help="A path as citations show it, a part of one, or a whole citation: book.xlsx#sheet=Sales&row=12.",
        **controls.bound("path", value, show),
    )


def find(corpus: Corpus, name: str, path: str, at: str = "") -> Shown | str:
    records, place, scope = corpus.engine.records, None, resources.scope(corpus)
    number = next((n for key in (name, path) if key and (n := records.find_document(key, scope)) is not None), None)
    if number is None:
        read = find_cited(corpus.engine, path or name, stored=True)
        if not read.found:
            return read.text.removeprefix(_ERROR).partition("] ")[2]
        number, place, shown = read.number, read.place, Shown(read.path, read.text, place=read.place)
    if number is not None:
        (document,) = records.documents([number])
        rows = records.rows(records.records_of(number).tolist())
        chunks = tuple(r.chunk for r in rows if r.chunk.granularity == "chunk")
        shown = Shown(document.path, document.text, document, chunks, records.places(number), place)
    if not at:
        return shown
    pages = shown.document.page_starts if shown.document is not None else ()
    try:
        return replace(shown, place=find_place(at, shown.text, shown.places, pages))
    except UsageError as exc:
        return replace(shown, problem=exc)


@controls.part("sheet")
def _text(corpus: Corpus, shown: Shown) -> None:
    """The sheet: matches, chunk borders, and the way from one to the next."""
    collections = sorted({c.collection for c in shown.chunks})
    chunks = shown.chunks
    if len(collections) > 1:
        chosen = st.segmented_control(
            "Chunks of",
            collections,
            default=collections[0],
            required=True,
            key=_KEY + "collection",
            help="The document is in several collections; each may cut it in another way.",
        )
        chunks = tuple(c for c in chunks if c.collection == chosen)
    sheet = Sheet.of(shown.text, shown.path, chunks, shown.places)
    matches = _matches(corpus, shown)
    target = read_target(page_value("lines"), page_value("quote"))
    if shown.place is not None:
        target = sheet.narrowed(target, shown.place)
    match, chunk = _numbered("match", len(matches)), _numbered("chunk", len(sheet.chunks))
    focus = sheet.offset_of(target) if chunk is None else sheet.chunks[chunk].start
    focus = focus if match is None else matches[match].start
    st.session_state[_FOCUS] = focus
    asked, bar = app_state.current().to_params(), st.container(key=_KEY + "bar", gap="xxsmall")
    if shown.problem is not None:
        st.html(cards.alert("", shown.problem.message, shown.problem.remedy))
    rows, own = st.empty(), sheet.page_at(focus)
    page = own
    if sheet.pages > 1:  # under the rows: whoever has read a page to its end turns it there
        page = st.pagination(sheet.pages, default=own, key=f"{_KEY}rows-{focus}-{shown.path}")
    if resources.finder().kept("hybrid") is None:  # the first search may wait for the encoder; the text need not
        rows.html(sheet.html(page, target, matches, match, beyond=BEYOND))
    ranks, best = _ranks(corpus, shown)
    with bar:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if asked.get("q") or asked.get("keywords"):
                icon, help = ":material/arrow_back:", "Back to the results on the Search page."
                st.page_link(app_state.page_of(""), label="Results", icon=icon, query_params=asked, help=help)
            st.html(heading(shown.path, shown.document.title if shown.document else "", sheet, target, len(matches)))
        _buttons(sheet, matches, match, focus)
        if ranks or matches:
            st.html(sheet.strip(page, matches, ranks, best, focus, asked))
    rows.html(sheet.html(page, target, matches, match, beyond=BEYOND, ranks=ranks))
    st.html(f"<script>/* {focus} */{_SCROLL}({page if page != own else 0});</script>", unsafe_allow_javascript=True)


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


def _ranks(corpus: Corpus, shown: Shown) -> tuple[Ranks, int]:
    """Rank and score of the document's chunks for the query under the plan that the sidebar moves, and how many results it shows.

    It is the search of the Search page's hybrid column, which the session keeps; a search that fails has no ranks.
    """
    state = app_state.current()
    if shown.document is None or not (state.query or state.keywords):
        return {}, 0
    found = resources.finder().find(corpus, request_of(state), "hybrid", state.moved)
    if found.result is None:
        return {}, 0
    return found.result.ranked_chunks(shown.document.document_id), int(state.moved["limit"])


@st.cache_data(show_spinner="Looking for the matches", max_entries=64)
def _spans(text: str, query: str, keywords: str, grep: str, _corpus: Corpus) -> tuple[Span, ...]:
    from workbench.retrieve.keywords import parse_keywords, pattern_spans

    plan = app_state.current().moved
    words = _corpus.engine.lexical.highlight(query, text) if query else ()
    patterns = parse_keywords(keywords) if keywords else ()
    return join_spans(words, pattern_spans(patterns, text, plan))


def _numbered(name: str, most: int) -> int | None:
    """Position, from 0, of the match or chunk that the address numbers from 1; None where it names none that is there."""
    number = whole_number(page_value(name), 0)
    return number - 1 if 1 <= number <= most else None


def _buttons(sheet: Sheet, matches: Sequence[Span], match: int | None, focus: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=_KEY + "moves"):
        if matches:
            before = sum(m.start < focus for m in matches) if match is None else match
            after = before if match is None else match + 1
            _button("Previous match", "match", before, len(matches), "p")
            shown = f"{len(matches):,} matches" if match is None else f"Match {match + 1:,} of {len(matches):,}"
            st.text(shown, width="content")
            _button("Next match", "match", after + 1, len(matches), "n")
        if len(sheet.chunks) > 1:
            at = bisect_right([c.start for c in sheet.chunks], focus)
            _button("Previous chunk", "chunk", at - 1, len(sheet.chunks), "Shift+p")
            _button("Next chunk", "chunk", at + 1, len(sheet.chunks), "Shift+n")


def _button(label: str, name: str, number: int, most: int, shortcut: str) -> None:
    key, step = f"{_KEY}{label.lower().replace(' ', '-')}", 1 if label.startswith("Next") else -1
    off = not 1 <= number <= most
    st.button(label, key=key, on_click=_go, args=(name, number, step, most), disabled=off, shortcut=shortcut)


def _go(name: str, number: int, step: int, most: int) -> None:
    """Show another match or chunk (a callback): the one after that in the address, which may be further than what was drawn."""
    now = whole_number(page_value(name), 0)
    set_page_values(**{**dict.fromkeys(_PLACES, ""), name: str(min(max(now + step, 1), most) if now else number)})
    st.rerun(tuple(part for part in app_state.whole_parts() if part != "bar") or "app")


# --- beside the text --------------------------------------------------------------------------------------------------


@controls.part("printed page")
def _page_image(corpus: Corpus, document: Document) -> None:
    """The page of what the sheet shows, as it is printed."""
    help = "Draws the page of the original file, if it is there and unchanged."
    if not st.toggle("Show the page", value=True, key=_KEY + "image", help=help):
        return
    most = len(document.page_starts)
    own = max(bisect_right(document.page_starts, st.session_state[_FOCUS]), 1)
    page = st.pagination(most, default=own, key=f"{_KEY}page-{document.path}-{own}")
    try:
        data = original(corpus.engine, document)
    except CorpusError as exc:
        st.caption(f"There is no picture of the page: {exc.message}. {exc.remedy}")
        return
    st.image(_png(document.sha256, page, data), caption=f"Page {page} of {most}", width="stretch")


@st.cache_data(show_spinner="Drawing the page", max_entries=32)
def _png(sha256: str, page: int, _data: bytes) -> bytes:
    from workbench.ingest.readers.pdf import page_png

    return page_png(_data, page)


def _beside(corpus: Corpus, document: Document, chunks: Sequence[Chunk]) -> None:
    records, scope = corpus.engine.records, resources.scope(corpus)
    beside = resources.catalogue(corpus).folder(document.path, document.root, scope)
    st.html(neighbours_html(beside, document.path))
    number = records.find_document(document.document_id, scope)
    paths = {} if number is None else records.paths_of([number], scope)
    st.html(facts_html(document, chunks, [path for found in paths.values() for path in found if path != document.path]))


def neighbours_html(paths: Sequence[str], path: str) -> str:
    names = list(dict.fromkeys(paths))
    if len(names) < 2 or path not in names:
        return '<p class="wb-msg">There is no other document in its folder.</p>'
    at = names.index(path)
    first = max(0, min(at - NEIGHBOURS // 2, len(names) - NEIGHBOURS))
    shown = names[first : first + NEIGHBOURS]
    rows = []
    for n, other in enumerate(shown, first):
        name = other.rpartition("/")[2]
        if n == at:
            rows.append(f'<li class="wb-here" aria-current="page"><bdi>{visible(plain(name, 80))}</bdi></li>')
        else:
            rows.append(_item(other, name, {at - 1: ' rel="prev"', at + 1: ' rel="next"'}.get(n, "")))
    more = len(names) - len(shown)
    tail = f'<p class="wb-msg">and {more:,} more in this folder</p>' if more else ""
    return f'<h3 class="wb-chart">In the same folder</h3><ul class="wb-links">{"".join(rows)}</ul>{tail}'


def _item(path: str, name: str, relation: str = "") -> str:
    link = attribute(cards.document_address(path, asked=app_state.current().to_params()))
    return f'<li><a href="{link}" target="_self"{relation}><bdi>{visible(plain(name, 200))}</bdi></a></li>'


def _some_paths(corpus: Corpus) -> None:
    paths = resources.catalogue(corpus).paths(resources.scope(corpus), MOST_LISTED + 1)
    st.html(_links(paths[:MOST_LISTED]))
    if len(paths) > MOST_LISTED:
        st.caption(f"These are the first {MOST_LISTED}; the table on the [Corpus](corpus) page has the others.")


def _links(paths: Sequence[str]) -> str:
    return f'<ul class="wb-links">{"".join(_item(path, path) for path in paths)}</ul>'


def facts_html(document: Document, chunks: Sequence[Chunk], copies: Sequence[str] = ()) -> str:
    facts = {
        "type": document.type,
        "language": document.language,
        "collections": ", ".join(sorted({c.collection for c in chunks})),
        "tenant": document.tenant or "",
        "roles": ", ".join(document.roles),
        "sensitivity": document.sensitivity,
        "modified": document.modified.strftime("%Y-%m-%d %H:%M UTC") if document.modified else "",
        "size": f"{document.size:,} bytes",
        "characters": f"{len(document.text):,}",
        "pages": f"{len(document.page_starts):,}" if document.page_starts else "",
        "url": document.url,
        "folder": document.root,
        "the same file": some_of(copies, MOST_COPIES),
        "document id": document.document_id,
        "sha256": document.sha256,
    }
    extra = [
        (str(name), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
        for name, value in sorted(document.metadata.items())
    ]
    rows = [(name, value) for name, value in (*facts.items(), *extra) if value]
    return f'<h3 class="wb-chart">Facts</h3>{tables.table(("", ""), rows, name="Facts")}'
