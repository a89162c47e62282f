"""A document as rows to show: its lines, cut where a chunk begins and where a line is very long, a page of rows at a time.

A page holds a fixed number of rows, not of lines: a text of two megabytes in one line is then as quick to show as a short
one, and no character of it is left out. Chunk borders stand in the margin. No Streamlit.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.locators import Place, locate, pairs_of, spoken
from workbench.records import Chunk, Span, cite
from workbench.ui.text import attribute, marked, plain, visible

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
        """Find the lines and cut the rows."""
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
        """Number of lines."""
        return len(self.line_starts)

    @property
    def pages(self) -> int:
        """Number of pages of rows, at least 1."""
        return -(-len(self.row_starts) // ROWS_A_PAGE)

    def page_at(self, offset: int) -> int:
        """The page, from 1, that holds a character."""
        row = int(np.searchsorted(self.row_starts, offset, "right")) - 1
        return max(row, 0) // ROWS_A_PAGE + 1

    def line_at(self, offset: int) -> int:
        """The line, from 1, that holds a character."""
        return max(int(np.searchsorted(self.line_starts, offset, "right")), 1)

    def narrowed(self, target: Target, place: Span) -> Target:
        """The target where it lies inside a place, else the lines of the place: a document may have changed since."""
        first, last = self.line_at(place.start), self.line_at(max(place.start, place.end - 1))
        return target if first <= target.first <= target.last <= last else Target(first, last, target.quote)

    def cited(self, target: Target) -> str:
        """The citation of a target's lines; the path alone where there are none."""
        if not 1 <= target.first <= self.lines:
            return self.path
        start = int(self.line_starts[target.first - 1])
        end = int(self.line_starts[target.last]) if target.last < self.lines else len(self.text)
        held = start + len(self.text[start:end].rstrip())
        return cite(self.path, target.first, target.last, None, locate(self.places, start, max(held, start + 1)))

    def offset_of(self, target: Target) -> int:
        """Where a target begins: its quote, else its first line, else the start of the text."""
        quoted = self.quoted(target)
        if quoted is not None:
            return quoted.start
        return int(self.line_starts[min(max(target.first, 1), self.lines) - 1])

    def quoted(self, target: Target) -> Span | None:
        """Where the target's quote stands in its lines: the words, with any space between them."""
        words = target.quote.rstrip("…").split()
        if not words or not 1 <= target.first <= self.lines:
            return None
        start = int(self.line_starts[target.first - 1])
        end = int(self.line_starts[target.last]) if target.last < self.lines else len(self.text)
        found = re.compile(r"\s+".join(map(re.escape, words))).search(self.text, start, end)
        return None if found is None else Span(found.start(), found.end())

    def chunk_at(self, offset: int) -> int | None:
        """Position in `chunks` of the one that holds a character, or of the last one before it; None before the first."""
        at = bisect_right([c.start for c in self.chunks], offset) - 1
        return at if at >= 0 else None

    def html(
        self, page: int, target: Target, matches: Sequence[Span] = (), current: int | None = None, *, beyond: int = 0
    ) -> str:
        """One page of rows.

        Args:
            page: From 1.
            target: Lines to mark.
            matches: Character spans in the text, in order, not overlapping.
            current: Position in `matches` of the one that is shown.
            beyond: How many rows of the pages before and after are shown too, so that a passage at the border of two pages
                can be read whole, with its neighbours.
        """
        own = (page - 1) * ROWS_A_PAGE
        first, last = max(own - beyond, 0), min(own + ROWS_A_PAGE + beyond, len(self.row_starts))
        starts = self.row_starts[first : last + 1].tolist()
        if last == len(self.row_starts):
            starts.append(len(self.text) + 1)  # as if a newline ended the text
        turned_to = int(self.row_starts[own]) if page > 1 else -1
        quoted = self.quoted(target)
        at_start = {c.start: i for i, c in enumerate(self.chunks)}
        ends = [m.end for m in matches]
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
            low = bisect_left(ends, start + 1)
            body = self._marked(start, end, matches, low, current, quoted)
            margin = "" if chunk is None else self._border(chunk)
            name = f' id="line-{line}"' if begins else ""
            at = bisect_left(begun, start)
            here = at < len(begun) and begun[at] < max(stop, start + 1)
            lined = f'<span class="wb-no">{line if begins and numbered else ""}</span>'
            number = _place(self.places[at]) if here else lined
            kind = ("" if chunk is None else " wb-begins") + (" wb-target" if inside else "")
            kind += " wb-turned" if start == turned_to else ""
            rows.append(
                f'<div class="wb-row{kind}"{name}>'
                f'<div class="wb-margin">{margin}</div>'
                f"{number}"
                f'<span class="wb-src-line" dir="auto">{body}</span></div>'
            )
        placed = " wb-placed" if self.places else ""
        return f'<div class="wb-lines wb-doc{placed}" role="document">{"".join(rows)}</div>'

    def _marked(
        self, start: int, end: int, matches: Sequence[Span], low: int, current: int | None, quoted: Span | None
    ) -> str:
        """A row's text with its matches marked; the current one stands out and is where the page scrolls to."""
        own = []
        for at in range(low, len(matches)):
            if matches[at].start >= end:
                break
            own.append((at, Span(max(matches[at].start, start), min(matches[at].end, end))))
        now = next((s for at, s in own if at == current and s.end > s.start), None)
        spans = [Span(s.start - start, s.end - start) for at, s in own if s is not now]
        if quoted is not None and not own and quoted.start < end and quoted.end > start:
            spans = [Span(max(quoted.start, start) - start, min(quoted.end, end) - start)]
        text = self.text[start:end]
        if now is None:
            return marked(text, spans)
        low_, high = now.start - start, now.end - start
        before = [s for s in spans if s.end <= low_]
        after = [Span(s.start - high, s.end - high) for s in spans if s.start >= high]
        head, tail = marked(text[:low_], before), marked(text[high:], after)
        return f'{head}<mark class="wb-now">{visible(text[low_:high])}</mark>{tail}'

    def _border(self, at: int) -> str:
        """What the margin says of a chunk that begins here: its number, length and section, and its citation to copy."""
        chunk = self.chunks[at]
        section = chunk.section.rpartition(" > ")[2]
        whole = f"chunk {chunk.chunk_index + 1}, {chunk.tokens} tokens" + (
            f", {chunk.section}" if chunk.section else ""
        )
        named = f" · <bdi>{visible(plain(section, 60))}</bdi>" if section else ""
        return (
            f'<button type="button" class="wb-copy" data-wb-copy="{attribute(self.citation(chunk))}"'
            f' aria-label="Copy the citation of chunk {chunk.chunk_index + 1}" title="Copy the citation">'
            f"{chunk.chunk_index + 1}</button>"
            f'<span class="wb-border" title="{attribute(plain(whole, 300))}">{chunk.tokens} tokens'
            f"{named}</span>"
        )

    def citation(self, chunk: Chunk) -> str:
        """A chunk's citation."""
        return cite(self.path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator)


def heading(path: str, title: str, sheet: Sheet, target: Target, matches: int) -> str:
    """The document's title and path, where in it we are, and its citation to copy."""
    counted = [f"{sheet.lines:,} {'line' if sheet.lines == 1 else 'lines'}"]
    if sheet.chunks:
        counted.append(f"{len(sheet.chunks):,} {'chunk' if len(sheet.chunks) == 1 else 'chunks'}")
    if matches:
        counted.append(f"{matches:,} {'match' if matches == 1 else 'matches'}")
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
