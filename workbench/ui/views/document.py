"""The Document page: one document's whole text with the query's matches and the chunks' borders, its pages and neighbours.

The address names the document (`id`, `path`) and one place in it: `at` (`sheet=Sales&row=12`, or as people write it,
`Sales!A12`), which `lines` (with `quote`) may narrow; or `match` n, or `chunk` n. A path may be a whole citation. Moving from
match to match redraws the sheet alone.
"""

from __future__ import annotations

import itertools
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from workbench.errors import UsageError, WorkbenchError
from workbench.locators import Place, locate, pairs_of, spoken, whole_number
from workbench.markup import attribute, marked, plain, visible
from workbench.records import Chunk, Document, Span, cite
from workbench.retrieve.readfile import find_cited, find_place, original
from workbench.store.catalogue import Catalogue, Listed
from workbench.ui import layout
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, links
from workbench.ui.state import address_value

if TYPE_CHECKING:
    from workbench.corpus import Corpus

ROWS_A_PAGE = 400
LONGEST_ROW = 2_000
_LONG_PLACES = frozenset({"page", "part"})
_SIGNS = {"paragraph": "¶"}


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
        line_starts = np.concatenate(([0], np.flatnonzero(codes == 10) + 1)).astype(np.int64)
        ordered = tuple(sorted(chunks, key=lambda c: (c.start, c.end, c.chunk_index)))
        inside = [c.start for c in ordered if 0 <= c.start < len(text)]
        cuts = np.unique(np.concatenate((line_starts, np.array(inside, np.int64))))
        lengths = np.diff(np.append(cuts, len(text)))
        long = np.flatnonzero(lengths > LONGEST_ROW)
        more = [np.arange(cuts[i] + LONGEST_ROW, cuts[i] + lengths[i], LONGEST_ROW) for i in long.tolist()]
        rows = np.unique(np.concatenate((cuts, *more))) if more else cuts
        return cls(text, line_starts, rows.astype(np.int64), path, ordered, tuple(places))

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
        """The citation of a target's lines; the path alone where there are none."""
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

    def chunk_at(self, offset: int) -> int | None:
        """Position in `chunks` of the one that holds a character, or of the last one before it; None before the first."""
        at = bisect_right([c.start for c in self.chunks], offset) - 1
        return at if at >= 0 else None

    def html(
        self, page: int, target: Target, matches: Sequence[Span] = (), current: int | None = None, *, beyond: int = 0
    ) -> str:
        """One page (from 1) of rows, the target's lines and the matches (in order, not overlapping; `current` is the position of
        the shown one) marked. `beyond`: how many rows of the pages before and after are shown too, so that a passage at the
        border of two pages can be read whole.
        """
        own = (page - 1) * ROWS_A_PAGE
        first, last = max(own - beyond, 0), min(own + ROWS_A_PAGE + beyond, len(self.row_starts))
        starts = self.row_starts[first : last + 1].tolist()
        if last == len(self.row_starts):
            starts.append(len(self.text) + 1)  # as if a newline ended the text
        turned_to = int(self.row_starts[own]) if page > 1 else -1
        quoted = self.quoted(target)
        at_start = {c.start: i for i, c in enumerate(self.chunks)}
        begins_at, ends = [m.start for m in matches], [m.end for m in matches]
        begun = [p.start for p in self.places]
        # Rows of a sheet, slides and cells have numbers of their own, beside which those of lines say nothing.
        numbered = not self.places or pairs_of(self.places[-1].locator)[0][0] in _LONG_PLACES
        rows = []
        for start, stop in itertools.pairwise(starts):
            line = self.line_at(start)
            begins = int(self.line_starts[line - 1]) == start
            end = stop - 1 if stop - 1 >= len(self.text) or self.text[stop - 1] == "\n" else stop
            inside = (
                target.first <= line <= target.last if quoted is None else start < quoted.end and end > quoted.start
            )
            chunk = at_start.get(start)
            own_matches = (bisect_left(ends, start + 1), bisect_left(begins_at, end))
            body = self._marked(start, end, matches, own_matches, current, quoted)
            margin = "" if chunk is None else self._border(chunk)
            name = f' id="line-{line}"' if begins else ""
            at = bisect_left(begun, start)
            here = at < len(begun) and begun[at] < max(stop, start + 1)
            lined = f'<span class="wb-no">{line if begins and numbered else ""}</span>'
            number = _place(self.places[at]) if here else lined
            kinds = (("wb-begins", chunk is not None), ("wb-target", inside), ("wb-turned", start == turned_to))
            kind = "".join(f" {name}" for name, so in kinds if so)
            rows.append(
                f'<div class="wb-row{kind}"{name}><div class="wb-margin">{margin}</div>{number}'
                f'<span class="wb-src-line" dir="auto">{body}</span></div>'
            )
        placed = " wb-placed" if self.places else ""
        return f'<div class="wb-lines wb-doc{placed}" role="document">{"".join(rows)}</div>'

    def _marked(
        self,
        start: int,
        end: int,
        matches: Sequence[Span],
        own: tuple[int, int],
        current: int | None,
        quoted: Span | None,
    ) -> str:
        """A row's text with its matches (those from and before the positions `own`) marked; the current one is shown otherwise,
        and is where the page scrolls to.
        """
        clipped = {n: Span(max(matches[n].start, start), min(matches[n].end, end)) for n in range(*own)}
        now = clipped.pop(current, None) if current is not None else None
        if quoted is not None and not clipped and now is None and quoted.start < end and quoted.end > start:
            clipped = {0: Span(max(quoted.start, start), min(quoted.end, end))}

        def piece(low: int, high: int) -> str:
            return marked(
                self.text[low:high],
                [Span(s.start - low, s.end - low) for s in clipped.values() if low <= s.start < high],
            )

        if now is None or now.end <= now.start:
            return piece(start, end)
        shown = f'<mark class="wb-now">{visible(self.text[now.start : now.end])}</mark>'
        return piece(start, now.start) + shown + piece(now.end, end)

    def _border(self, at: int) -> str:
        """What the margin says of a chunk that begins here: its number, length and section, and its citation to copy."""
        chunk = self.chunks[at]
        section = chunk.section.rpartition(" > ")[2]
        number, citation = (
            chunk.chunk_index + 1,
            cite(self.path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator),
        )
        whole = ", ".join(filter(None, (f"chunk {number}", f"{chunk.tokens} tokens", chunk.section)))
        named = f" · <bdi>{visible(plain(section, 60))}</bdi>" if section else ""
        return (
            f'<button type="button" class="wb-copy" data-wb-copy="{attribute(citation)}"'
            f' aria-label="Copy the citation of chunk {number}" title="Copy the citation">{number}</button>'
            f'<span class="wb-border" title="{attribute(plain(whole, 300))}">{chunk.tokens} tokens{named}</span>'
        )


def heading(path: str, title: str, sheet: Sheet, target: Target, matches: int) -> str:
    """The document's title and path, where in it we are, and its citation to copy."""
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
        f'<button type="button" class="wb-copy" data-wb-copy="{attribute(citation)}"'
        f' aria-label="Copy the citation">Copy</button> {visible(plain(", ".join(counted), 300))}</p>'
    )


def _place(place: Place) -> str:
    """What the margin says where a place begins: its innermost key, and all of it for who asks."""
    key, value = pairs_of(place.locator)[-1]
    short = value.rpartition("/")[2] or value
    if value.isdigit():
        short = f"{_SIGNS.get(key, key)} {value}"
    return f'<span class="wb-no wb-at" title="{attribute(plain(spoken(place.locator), 200))}">{visible(plain(short, 14))}</span>'


def join_spans(*lists: Sequence[Span]) -> tuple[Span, ...]:
    """Several lists of spans as one: in order, overlapping ones joined."""
    joined: list[Span] = []
    for span in sorted(s for spans in lists for s in spans if s.end > s.start):
        if joined and span.start < joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return tuple(joined)


MOST_LISTED = 30
NEIGHBOURS = 14
MOST_COPIES = 20
_KEY = controls.PREFIX + "document."


def draw_side(corpus: Corpus, document: Document, chunks: Sequence[Chunk], place: Span | None) -> None:
    """Draw all of it; `place` is what of the document was asked for."""
    if document.type == "pdf" and document.page_starts:
        _page_image(corpus, document, place)
    engine = corpus.engine
    scope = engine.records.scope(corpus.principal, None, ())
    listed = Catalogue(engine.opened).folder(document.path, document.root, scope)
    st.html(neighbours_html(listed, document.path))
    number = engine.records.find_document(document.document_id, scope)
    paths = {} if number is None else engine.records.paths_of([number], scope)
    st.html(facts_html(document, chunks, [path for found in paths.values() for path in found if path != document.path]))


# --- pages ------------------------------------------------------------------------------------------------------------


@st.fragment
def _page_image(corpus: Corpus, document: Document, place: Span | None) -> None:
    """The page that the address stands on, as it is printed; only on request, because it reads the whole file."""
    wanted = st.toggle(
        "Show the page", key=_KEY + "image", help="Draws the page of the original file, if it is there and unchanged."
    )
    if not wanted:
        return
    most = len(document.page_starts)
    own = _page_of(document, place)
    page = st.pagination(most, default=own, key=f"{_KEY}page-{document.path}-{own}")
    try:
        found = original(corpus.engine, corpus.principal, corpus.policy, document)
        if not found.data:
            st.html(cards.alert("There is no picture of the page", found.reason, found.remedy))
            return
        st.image(_png(document.sha256, page, found.data), caption=f"Page {page} of {most}", width="stretch")
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))


@st.cache_data(show_spinner="Drawing the page", max_entries=32)
def _png(sha256: str, page: int, _data: bytes) -> bytes:
    from workbench.ingest.readers.pdf import page_png

    return page_png(_data, page)


def _page_of(document: Document, place: Span | None) -> int:
    """The page of the place or of the lines in the address, or the first."""
    target = read_target(app_state.address_value("lines"))
    if place is None and not target.first:
        return 1
    offset = Sheet.of(document.text).offset_of(target) if place is None else place.start
    return max(sum(start <= offset for start in document.page_starts), 1)


# --- neighbours -------------------------------------------------------------------------------------------------------


def neighbours_html(listed: Sequence[Listed], path: str) -> str:
    """The documents of the same folder, this one among its neighbours; links keep the query."""
    names = list(dict.fromkeys(item.path for item in listed))
    if len(names) < 2 or path not in names:
        return '<p class="wb-msg">There is no other document in its folder.</p>'
    at = names.index(path)
    first = max(0, min(at - NEIGHBOURS // 2, len(names) - NEIGHBOURS))
    shown = names[first : first + NEIGHBOURS]
    rows = "".join(_neighbour(n, i - at) for i, n in enumerate(shown, first))
    more = len(names) - len(shown)
    tail = f'<p class="wb-msg">and {more:,} more in this folder</p>' if more else ""
    return f'<h4 class="wb-chart">In the same folder</h4><ul class="wb-links">{rows}</ul>{tail}'


def _neighbour(path: str, away: int) -> str:
    name = f"<bdi>{visible(plain(path[path.rfind('/') + 1 :], 80))}</bdi>"
    if not away:
        return f'<li class="wb-here" aria-current="page">{name}</li>'
    relation = {-1: ' rel="prev"', 1: ' rel="next"'}.get(away, "")
    return f'<li><a href="{attribute(document_link(path))}" target="_self"{relation}>{name}</a></li>'


def document_link(path: str) -> str:
    """Address of another document with the state's query, relative to this page."""
    return links.document(path, asked=app_state.current().to_params())


def some_paths(corpus: Corpus) -> None:
    engine = corpus.engine
    paths = Catalogue(engine.opened).paths(engine.records.scope(corpus.principal, None, ()), MOST_LISTED + 1)
    rows = "".join(
        f'<li><a href="{attribute(document_link(p))}" target="_self"><bdi>{visible(plain(p, 200))}</bdi></a></li>'
        for p in paths[:MOST_LISTED]
    )
    st.html(f'<ul class="wb-links">{rows}</ul>')
    if len(paths) > MOST_LISTED:
        st.caption(
            f"These are the first {MOST_LISTED}; *Chunks* on the [Corpus](corpus?part=chunks) page finds the others."
        )


# --- facts ------------------------------------------------------------------------------------------------------------


def facts_html(document: Document, chunks: Sequence[Chunk], copies: Sequence[str] = ()) -> str:
    """What is known of the document, and the other paths of files with the same bytes, as a table."""
    more = len(copies) - MOST_COPIES
    facts: list[tuple[str, str]] = [
        ("type", document.type),
        ("language", document.language),
        ("collections", ", ".join(sorted({c.collection for c in chunks}))),
        ("tenant", document.tenant or ""),
        ("roles", ", ".join(document.roles)),
        ("sensitivity", document.sensitivity),
        ("modified", document.modified.strftime("%Y-%m-%d %H:%M UTC") if document.modified else ""),
        ("size", f"{document.size:,} bytes"),
        ("characters", f"{len(document.text):,}"),
        ("pages", f"{len(document.page_starts):,}" if document.page_starts else ""),
        ("url", document.url),
        ("folder", document.root),
        ("the same file", ", ".join(copies[:MOST_COPIES]) + (f" and {more:,} more" if more > 0 else "")),
        ("document id", document.document_id),
        ("sha256", document.sha256),
    ]
    for name, value in sorted(document.metadata.items()):
        facts.append(
            (str(name), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
        )
    rows = "".join(
        f"<tr><td>{visible(plain(n, 60))}</td><td><bdi>{visible(plain(v, 400))}</bdi></td></tr>" for n, v in facts if v
    )
    return f'<h4 class="wb-chart">Facts</h4><table class="wb-table wb-facts-table">{rows}</table>'


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
    name, path = address_value("id"), address_value("path")
    if not (name or path):
        controls.path_box()
        st.text("Open a result's citation on the Search page, or type a path as citations show it.")
        some_paths(corpus)
        return
    shown = find(corpus, name, path, address_value("at"))
    if isinstance(shown, str):
        controls.path_box(path)
        st.html(cards.alert("", shown, "Search again: the document may have been removed or renamed since"))
        return
    if shown.document is None:
        _text(corpus, shown)
        return
    text, side = st.columns([7, 3], gap="medium")
    with text:
        _text(corpus, shown)
    with side:
        draw_side(corpus, shown.document, shown.chunks, shown.place)


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
    st.html(layout.document_scroll(focus, page if page != own else 0), unsafe_allow_javascript=True)


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
    from workbench.retrieve.keywords import parse_keywords, pattern_spans

    plan = app_state.current().moved
    words = _corpus.engine.lexical.highlight(query, text) if query else ()
    patterns = parse_keywords(keywords) if keywords else ()
    return join_spans(words, pattern_spans(patterns, text, plan))


def _numbered(name: str, most: int) -> int | None:
    """Position, from 0, of the match or chunk that the address numbers from 1; None where it names none that is there."""
    number = whole_number(address_value(name), 0)
    return number - 1 if 1 <= number <= most else None


def _focus(sheet: Sheet, target: Target, matches: tuple[Span, ...], current: int | None) -> int:
    if current is not None:
        return matches[current].start
    chunk = _numbered("chunk", len(sheet.chunks))
    return sheet.chunks[chunk].start if chunk is not None else sheet.offset_of(target)


def _moves(sheet: Sheet, matches: tuple[Span, ...], current: int | None, focus: int) -> None:
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
    key, there = f"{_KEY}{label.lower().replace(' ', '-')}", 0 <= to < most
    st.button(label, key=key, on_click=go, args=(name, to + 1), disabled=not there, shortcut=shortcut)


def go(name: str, number: int) -> None:
    """Make the address name a match or a chunk in place of lines (a callback)."""
    for other in _PLACES:
        st.query_params.pop(other, None)
    st.query_params[name] = str(number)
