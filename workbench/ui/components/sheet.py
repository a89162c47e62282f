"""A document's text as rows of HTML: its matches, its chunks' borders with ranks and scores, and the strip that overviews them.

No Streamlit. A page is `ROWS_A_PAGE` rows; every line and every chunk begins a row, and a long line goes over several.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray

from workbench.locators import Place, locate, pairs_of, spoken
from workbench.markup import attribute, marked, plain, visible
from workbench.records import Chunk, Span, cite
from workbench.ui.components import cards

ROWS_A_PAGE = 400
LONGEST_ROW = 2_000
MOST_TICKS = 300
BEYOND = 40
"""Rows of the pages before and after that are shown too, so that a passage at the border of two pages can be read whole."""
_LONG_PLACES = frozenset({"page", "part"})
_SIGNS = {"paragraph": "¶"}
Ranks = Mapping[str, tuple[int, float]]
"""Chunk id -> its rank for the present query and its fused score."""


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
        places: Where the text is in its original, in order; empty for a file that is cited by its lines.
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
        the matches as ticks, and where the page is.
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
            text = f"Rank {rank:,}, score {score:.3f}: chunk {number}"
            kind = "wb-result" if rank <= best else 'wb-candidate" tabindex="-1'
            marks.append(
                f'<a class="{kind}" href="{attribute(href)}" title="{text}" aria-label="{text}" {at(chunk.start, chunk.end)}></a>'
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
