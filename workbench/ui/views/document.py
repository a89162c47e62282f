"""The Document page: one document's whole text with the query's matches and the chunks' borders, ranks and scores, an overview of
both along the document, the printed page of a PDF, and its neighbours.

The address names the document (`id`, `path`) and one place in it: `at` (`sheet=Sales&row=12`, or as people write it,
`Sales!A12`), which `lines` (with `quote`) may narrow; or `match` n, or `chunk` n. A path may be a whole citation. Moving from
match to match redraws the sheet alone.
"""

from __future__ import annotations

import itertools
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from workbench.errors import UsageError, WorkbenchError
from workbench.locators import Place, locate, pairs_of, spoken, whole_number
from workbench.markup import attribute, marked, plain, visible
from workbench.records import Chunk, Document, Span, cite
from workbench.retrieve.readfile import find_cited, find_place, original
from workbench.store.catalogue import Catalogue
from workbench.ui import resources
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls
from workbench.ui.finder import request_of
from workbench.ui.state import page_value, set_page_values

if TYPE_CHECKING:
    from workbench.corpus import Corpus

ROWS_A_PAGE = 400
LONGEST_ROW = 2_000
MOST_LISTED = 30
NEIGHBOURS = 14
MOST_COPIES = 20
_BEYOND = 40
"""Rows of the pages before and after that are shown too, so that a passage at the border of two pages can be read whole."""
_LONG_PLACES = frozenset({"page", "part"})
_SIGNS = {"paragraph": "¶"}
_ERROR = "[ERROR: "
_PLACES = ("at", "lines", "quote", "match", "chunk")
_KEY = controls.PREFIX + "document."
Ranks = Mapping[str, tuple[int, float]]
"""Chunk id -> its rank for the present query and its fused score."""
MOST_TICKS = 300
_SCROLL = """
((turned) => {
  const place = turned ? document.querySelector(".wb-doc .wb-turned") || document.querySelector(".wb-doc .wb-row")
    : document.querySelector("mark.wb-now") || document.querySelector(".wb-doc .wb-target");
  if (place) place.scrollIntoView({block: place.tagName === "MARK" ? "center" : "start"});
})"""
"""Brings the current match, else the target, into view; the first row where somebody turned to a page of rows. The number of
what is shown comes before it: a browser runs the same element once."""


@dataclass(frozen=True, slots=True)
class Target:
    """What to show: lines from 1, both included (0 and 0: none), and the first words of a passage in a long line."""

    first: int = 0
    last: int = 0
    quote: str = ""


def read_target(lines: str, quote: str = "") -> Target:
    """A target from `12-18` or `12`; anything else is none."""
    found = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", lines)
    if found is None:
        return Target(quote=quote)
    first = int(found[1])
    return Target(first, max(first, int(found[2] or first)), quote)


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """A document ready to be shown.

    Attributes:
        text: Its text.
        line_starts: int64, offset of each line's first character.
        row_starts: int64, offset of each row's first character; every line and every chunk begins a row.
        path: What citations call it.
        chunks: The chunks of one collection in the order of the text.
        places: Where the text stands in its original, in order; empty for a file that is cited by its lines.
    """

    text: str
    line_starts: NDArray[np.int64]
    row_starts: NDArray[np.int64]
    path: str = ""
    chunks: tuple[Chunk, ...] = ()
    places: tuple[Place, ...] = ()

    @classmethod
    def of(cls, text: str, path: str = "", chunks: Sequence[Chunk] = (), places: Sequence[Place] = ()) -> Sheet:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        line_starts = np.append(0, np.flatnonzero(codes == 10) + 1)
        ordered = tuple(sorted(chunks, key=lambda c: (c.start, c.end, c.chunk_index)))
        cuts = sorted({*line_starts.tolist(), *(c.start for c in ordered if 0 <= c.start < len(text))})
        rows = [n for start, stop in itertools.pairwise([*cuts, len(text)]) for n in range(start, stop, LONGEST_ROW)]
        if not text or text.endswith("\n"):
            rows.append(len(text))
        return cls(text, line_starts, np.array(rows, np.int64), path, ordered, tuple(places))

    @property
    def lines(self) -> int:
        return len(self.line_starts)

    @property
    def pages(self) -> int:
        return -(-len(self.row_starts) // ROWS_A_PAGE)

    def page_at(self, offset: int) -> int:
        row = int(np.searchsorted(self.row_starts, offset, "right")) - 1
        return max(row, 0) // ROWS_A_PAGE + 1

    def line_at(self, offset: int) -> int:
        return max(int(np.searchsorted(self.line_starts, offset, "right")), 1)

    def narrowed(self, target: Target, place: Span) -> Target:
        """The target where it lies inside a place, else the lines of the place: a document may have changed since."""
        first, last = self.line_at(place.start), self.line_at(max(place.start, place.end - 1))
        return target if first <= target.first <= target.last <= last else Target(first, last, target.quote)

    def span_of(self, target: Target) -> Span | None:
        """The characters of a target's lines; None where it has none."""
        if not 1 <= target.first <= self.lines:
            return None
        end = int(self.line_starts[target.last]) if target.last < self.lines else len(self.text)
        return Span(int(self.line_starts[target.first - 1]), end)

    def cited(self, target: Target) -> str:
        lines = self.span_of(target)
        if lines is None:
            return self.path
        end = lines.start + max(len(self.text[lines.start : lines.end].rstrip()), 1)
        return cite(self.path, target.first, target.last, None, locate(self.places, lines.start, end))

    def offset_of(self, target: Target) -> int:
        """Where a target begins: its quote, else its first line, else the start of the text."""
        quoted = self.quoted(target)
        if quoted is not None:
            return quoted.start
        return int(self.line_starts[min(max(target.first, 1), self.lines) - 1])

    def quoted(self, target: Target) -> Span | None:
        """Where the target's quote is in its lines: the words, with any space between them."""
        words, lines = target.quote.rstrip("…").split(), self.span_of(target)
        if not words or lines is None:
            return None
        found = re.compile(r"\s+".join(map(re.escape, words))).search(self.text, lines.start, lines.end)
        return None if found is None else Span(found.start(), found.end())

    def html(
        self,
        page: int,
        target: Target,
        matches: Sequence[Span] = (),
        current: int | None = None,
        *,
        beyond: int = 0,
        ranks: Ranks | None = None,
    ) -> str:
        """One page (from 1) of rows, and `beyond` rows of the pages before and after; the target's lines and the matches (in
        order, not overlapping; `current` is the position of the one that is shown) are marked. `ranks` are of its chunks.
        """
        own = (page - 1) * ROWS_A_PAGE
        last = min(own + ROWS_A_PAGE + beyond, len(self.row_starts))
        starts = self.row_starts[max(own - beyond, 0) : last + 1].tolist()
        if last == len(self.row_starts):
            starts.append(len(self.text) + 1)  # as if a newline ended the text
        quoted, now = self.quoted(target), None if current is None else matches[current]
        if quoted is not None and not any(m.start < quoted.end and m.end > quoted.start for m in matches):
            matches = sorted([*matches, quoted])
        begins, ends = [m.start for m in matches], [m.end for m in matches]
        chunk_at, place_at = {c.start: c for c in self.chunks}, [p.start for p in self.places]
        # Rows of a sheet, slides and cells have numbers of their own, beside which those of lines say nothing.
        numbered = not self.places or pairs_of(self.places[-1].locator)[0][0] in _LONG_PLACES
        rows = []
        for start, stop in itertools.pairwise(starts):
            line = self.line_at(start)
            is_first = int(self.line_starts[line - 1]) == start
            end = stop - 1 if stop > len(self.text) or self.text[stop - 1] == "\n" else stop
            shown = matches[bisect_right(ends, start) : bisect_left(begins, end)]
            body = marked(self.text[start:end], [_moved(m, start) for m in shown], now and _moved(now, start))
            inside = (
                target.first <= line <= target.last if quoted is None else start < quoted.end and end > quoted.start
            )
            at = bisect_left(place_at, start)
            if at < len(place_at) and place_at[at] < max(stop, start + 1):
                number = _place(self.places[at])
            else:
                number = f'<span class="wb-no">{line if is_first and numbered else ""}</span>'
            chunk = chunk_at.get(start)
            turned = page > 1 and start == int(self.row_starts[own])
            kinds = (("wb-begins", chunk is not None), ("wb-target", inside), ("wb-turned", turned))
            name = f' id="line-{line}"' if is_first else ""
            rows.append(
                f'<div class="wb-row{"".join(f" {kind}" for kind, so in kinds if so)}"'
                f'{name}><div class="wb-margin">{self._border(chunk, ranks or {})}</div>{number}'
                f'<span class="wb-src-line" dir="auto">{body}</span></div>'
            )
        placed = " wb-placed" if self.places else ""
        return f'<div class="wb-lines wb-doc{placed}" role="document">{"".join(rows)}</div>'

    def strip(
        self, page: int, matches: Sequence[Span], ranks: Ranks, best: int, focus: int, asked: Mapping[str, str]
    ) -> str:
        """The document from left to right: its chunks among the candidates (the first `best` are results) as links to them,
        the matches as ticks, and where the page stands.
        """
        whole = max(len(self.text), 1)

        def at(start: int, end: int = 0) -> str:
            width = f";width:{max(100 * (end - start) / whole, 0.3):.2f}%" if end else ""
            return f'style="left:{100 * start / whole:.2f}%{width}"'

        marks = []
        for number, chunk in enumerate(self.chunks, 1):
            if chunk.chunk_id not in ranks:
                continue
            rank, score = ranks[chunk.chunk_id]
            line = self.line_at(chunk.start)
            here = self.page_at(chunk.start) == page and int(self.line_starts[line - 1]) == chunk.start
            href = (
                f"#line-{line}" if here else f"document?{urlencode({**asked, 'path': self.path, 'chunk': str(number)})}"
            )
            said = f"Rank {rank:,}, score {score:.3f}: chunk {number}"
            kind = "wb-result" if rank <= best else 'wb-candidate" tabindex="-1'
            marks.append(
                f'<a class="{kind}" href="{attribute(href)}" title="{said}" aria-label="{said}" {at(chunk.start, chunk.end)}></a>'
            )
        step = -(-len(matches) // MOST_TICKS) or 1
        ticks = "".join(f"<i {at(match.start)}></i>" for match in matches[::step])
        named = f"{len(marks):,} of {len(self.chunks):,} chunks are candidates; {len(matches):,} matches"
        return f'<nav class="wb-strip" aria-label="{named}">{"".join(marks)}{ticks}<b {at(focus)}></b></nav>'

    def _border(self, chunk: Chunk | None, ranks: Ranks) -> str:
        if chunk is None:
            return ""
        section, number = chunk.section.rpartition(" > ")[2], chunk.chunk_index + 1
        citation = cite(self.path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator)
        whole = ", ".join(filter(None, (f"chunk {number}", f"{chunk.tokens} tokens", chunk.section)))
        named = f" · <bdi>{visible(plain(section, 60))}</bdi>" if section else ""
        rank = ""
        if ranked := ranks.get(chunk.chunk_id):
            whole = f"rank {ranked[0]:,} for this query, score {ranked[1]:.4f}; {whole}"
            rank = f"<b>#{ranked[0]:,}</b> {ranked[1]:.3f} · "
        return (
            f"{cards.copy_button(citation, f'Copy the citation of chunk {number}', str(number))}"
            f'<span class="wb-border" title="{attribute(plain(whole, 300))}">{rank}{chunk.tokens} tokens{named}</span>'
        )


def _moved(span: Span, start: int) -> Span:
    return Span(span.start - start, span.end - start)


def _place(place: Place) -> str:
    """What the margin says where a place begins: its innermost key, and all of it on hover."""
    key, value = pairs_of(place.locator)[-1]
    short = f"{_SIGNS.get(key, key)} {value}" if value.isdigit() else value.rpartition("/")[2] or value
    return f'<span class="wb-no wb-at" title="{attribute(plain(spoken(place.locator), 200))}">{visible(plain(short, 14))}</span>'


def heading(path: str, title: str, sheet: Sheet, target: Target, matches: int) -> str:
    kinds = ((sheet.lines, "line", "lines"), (len(sheet.chunks), "chunk", "chunks"), (matches, "match", "matches"))
    counted = [f"{n:,} {one if n == 1 else several}" for n, one, several in kinds if n]
    citation = sheet.cited(target)
    if target.first:
        named = citation.removeprefix(f"{path}#") if sheet.places else ""
        counted.append(spoken(named) if named else f"lines {target.first}–{target.last}")
    name = plain(title, 200) if title and title != path else ""
    return (
        f'<h3 class="wb-heading"><bdi>{visible(name or plain(path, 300))}</bdi></h3>'
        f'<p class="wb-msg"><bdi>{visible(plain(path, 300))}</bdi> '
        f"{cards.copy_button(citation, 'Copy the citation')} {visible(plain(', '.join(counted), 300))}</p>"
    )


def join_spans(*lists: Sequence[Span]) -> tuple[Span, ...]:
    """Several lists of spans as one: in order, overlapping ones joined."""
    joined: list[Span] = []
    for span in sorted(s for spans in lists for s in spans if s.end > s.start):
        if joined and span.start < joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return tuple(joined)


# --- the page ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What the page is about.

    Attributes:
        path: The document's path.
        text: Its text.
        document: None for a file that was never indexed.
        chunks: Its visible chunks.
        places: Where its text stands in its original.
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
            _page_image(corpus, shown.document, shown.place)
        _beside(corpus, shown.document, shown.chunks)


def _like(corpus: Corpus, path: str) -> list[str]:
    """Visible paths that hold the letters of one that is not there, or else its name."""
    engine = corpus.engine
    catalogue, scope = Catalogue(engine.opened), engine.records.scope(corpus.principal, None, ())
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
    engine, principal = corpus.engine, corpus.principal
    records, place = engine.records, None
    scope = records.scope(principal, None, ())
    number = next((n for key in (name, path) if key and (n := records.find_document(key, scope)) is not None), None)
    if number is None:
        read = find_cited(engine, principal, path or name, stored=True)
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


@st.fragment
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
    asked, bar = app_state.current().to_params(), st.container(key=_KEY + "bar", gap="xxsmall")
    if shown.problem is not None:
        st.html(cards.alert("", shown.problem.message, shown.problem.remedy))
    rows, own = st.empty(), sheet.page_at(focus)
    page = own
    if sheet.pages > 1:  # under the rows: whoever has read a page to its end turns it there
        page = st.pagination(sheet.pages, default=own, key=f"{_KEY}rows-{focus}-{shown.path}")
    if resources.finder().kept("hybrid") is None:  # the first search may wait for the encoder; the text need not
        rows.html(sheet.html(page, target, matches, match, beyond=_BEYOND))
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
    rows.html(sheet.html(page, target, matches, match, beyond=_BEYOND, ranks=ranks))
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


# --- beside the text --------------------------------------------------------------------------------------------------


@st.fragment
def _page_image(corpus: Corpus, document: Document, place: Span | None) -> None:
    """The page that the address stands on, as it is printed."""
    help = "Draws the page of the original file, if it is there and unchanged."
    if not st.toggle("Show the page", value=True, key=_KEY + "image", help=help):
        return
    most, line = len(document.page_starts), read_target(page_value("lines")).first
    start = place.start if place is not None else sum(len(t) + 1 for t in document.text.split("\n")[: max(line - 1, 0)])
    own = max(bisect_right(document.page_starts, start), 1)
    page = st.pagination(most, default=own, key=f"{_KEY}page-{document.path}-{own}")
    try:
        found = original(corpus.engine, corpus.principal, corpus.policy, document)
        if not found.data:
            st.caption(f"There is no picture of the page: {found.reason}. {found.remedy}")
            return
        st.image(_png(document.sha256, page, found.data), caption=f"Page {page} of {most}", width="stretch")
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))


@st.cache_data(show_spinner="Drawing the page", max_entries=32)
def _png(sha256: str, page: int, _data: bytes) -> bytes:
    from workbench.ingest.readers.pdf import page_png

    return page_png(_data, page)


def _beside(corpus: Corpus, document: Document, chunks: Sequence[Chunk]) -> None:
    engine = corpus.engine
    scope = engine.records.scope(corpus.principal, None, ())
    listed = Catalogue(engine.opened).folder(document.path, document.root, scope)
    st.html(neighbours_html([item.path for item in listed], document.path))
    number = engine.records.find_document(document.document_id, scope)
    paths = {} if number is None else engine.records.paths_of([number], scope)
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
    engine = corpus.engine
    paths = Catalogue(engine.opened).paths(engine.records.scope(corpus.principal, None, ()), MOST_LISTED + 1)
    st.html(_links(paths[:MOST_LISTED]))
    if len(paths) > MOST_LISTED:
        st.caption(f"These are the first {MOST_LISTED}; the table on the [Corpus](corpus) page has the others.")


def _links(paths: Sequence[str]) -> str:
    return f'<ul class="wb-links">{"".join(_item(path, path) for path in paths)}</ul>'


def facts_html(document: Document, chunks: Sequence[Chunk], copies: Sequence[str] = ()) -> str:
    more = len(copies) - MOST_COPIES
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
        "the same file": ", ".join(copies[:MOST_COPIES]) + (f" and {more:,} more" if more > 0 else ""),
        "document id": document.document_id,
        "sha256": document.sha256,
    }
    extra = [
        (str(name), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
        for name, value in sorted(document.metadata.items())
    ]
    rows = "".join(
        f"<tr><td>{visible(plain(n, 60))}</td><td><bdi>{visible(plain(v, 400))}</bdi></td></tr>"
        for n, v in (*facts.items(), *extra)
        if v
    )
    return f'<h3 class="wb-chart">Facts</h3><table class="wb-table wb-facts-table">{rows}</table>'
