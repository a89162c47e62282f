"""Cut a document into chunks: by its headings and pages, within a budget of tokens, with exact spans.

`document.text[chunk.start:chunk.end] == chunk.text` for every chunk. The chunks of a document in one collection do not
overlap and together hold every character that is not blank, but for the front matter, which is metadata. A chunk begins
with a line and ends with one wherever lines are short enough. What is cut where is decided in three steps: `regions`
(headings and pages), `pieces` (lines and the price of a cut before each), `pack` (the cheapest cut).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench.ingest.context import LONGEST, context_of, shorten
from workbench.ingest.ids import chunk_id
from workbench.ingest.outline import Lines, Outline, Table
from workbench.ingest.pack import cheapest_cut
from workbench.ingest.pieces import cut_points, line_pieces, refine
from workbench.ingest.regions import grouped, regions
from workbench.ingest.tokens import CountTokens, TokenCounter
from workbench.locators import locate
from workbench.records import Chunk, ChunkKind, Document, Granularity, Span

SECTION_SEPARATOR = " > "
_LONGEST_HEADER = 64
"""Most tokens of a table's header in a chunk's context."""


def chunk_document(
    document: Document,
    outline: Outline,
    collection: str,
    granularity: Granularity,
    budget_tokens: int,
    count_tokens: CountTokens,
    *,
    one_chunk: bool = False,
) -> tuple[Chunk, ...]:
    """Cut one document for one collection.

    Args:
        document: The document.
        outline: The shape of its text.
        collection: The collection the chunks belong to.
        granularity: `DOCUMENT` gives one record that spans the whole content.
        budget_tokens: Most tokens of a chunk, context included. Only a single character that is longer exceeds it.
        count_tokens: The encoder's tokenizer; called a handful of times a document, with many texts. A `TokenCounter`
            is used as it is and remembers short lines from one document to the next.
        one_chunk: One chunk that spans the whole content, without context: how collections with judgments are measured.

    Returns:
        The chunks in the order of the text; none for a blank text.
    """
    if not document.text.strip():
        return ()
    counter = count_tokens if isinstance(count_tokens, TokenCounter) else TokenCounter(count_tokens)
    if one_chunk or granularity is Granularity.DOCUMENT:
        start = outline.content(document.text)
        context = "" if one_chunk else context_of(document.title, (), document.text[start:], False)
        context = shorten([context], LONGEST, counter)[context][0]
        cut = _Cut(Span(start, len(document.text)), (), ChunkKind.BODY, context)
        cuts = [replace(cut, tokens=counter([cut.indexed(document.text)])[0])]
    else:
        cuts = _Chunker(document, outline, budget_tokens, counter).cuts()
    lines = Lines(document.text)
    return tuple(_chunk(document, collection, granularity, index, cut, lines) for index, cut in enumerate(cuts))


def _body_of(table: Table) -> int:
    return table.body


@dataclass(frozen=True, slots=True)
class _Cut:
    """A chunk before it has its id: span, section, context, and length in tokens (-1: not counted yet)."""

    span: Span
    path: tuple[str, ...]
    kind: ChunkKind
    context: str
    tokens: int = -1

    def indexed(self, text: str) -> str:
        own = text[self.span.start : self.span.end]
        return f"{self.context}\n{own}" if self.context else own


def _chunk(document: Document, collection: str, granularity: Granularity, index: int, cut: _Cut, lines: Lines) -> Chunk:
    start, end = cut.span.start, cut.span.end
    return Chunk(
        chunk_id=chunk_id(document.document_id, collection, start, end),
        document_id=document.document_id,
        collection=collection,
        chunk_index=index,
        start=start,
        end=end,
        start_line=lines.number(start),
        end_line=lines.number(end - 1),
        text=document.text[start:end],
        section=SECTION_SEPARATOR.join(cut.path),
        page=max(1, bisect_right(document.page_starts, start)) if document.page_starts else None,
        kind=cut.kind,
        granularity=granularity,
        context=cut.context,
        tokens=cut.tokens,
        locator=locate(document.places, start, end),
    )


class _Chunker:
    """The cutting of one document."""

    def __init__(self, document: Document, outline: Outline, budget: int, counter: TokenCounter) -> None:
        self.text = document.text
        self.title = document.title
        self.blocks = outline.blocks
        self.counter = counter
        self.lines = Lines(self.text)
        self.regions = regions(self.text, outline, document.page_starts or (outline.breaks and (0, *outline.breaks)))
        self.budget = max(1, budget)
        self.most_context = min(LONGEST, self.budget // 4)
        self.starts = [r.start for r in self.regions]
        full = [context_of(self.title, r.path, "", False) for r in self.regions]
        first = [
            context_of(self.title, r.path, self.text[r.start : r.end], r.heading is not None) for r in self.regions
        ]
        self.contexts = shorten([*full, *first], self.most_context, counter)
        self.full, self.first = full, first
        self.tables = outline.tables
        self.headers = shorten([t.header for t in self.tables], min(_LONGEST_HEADER, self.budget // 4), counter)

    def cuts(self) -> list[_Cut]:
        """The chunks' spans, in order."""
        points = [cut_points(self.lines, r.start, r.end) for r in self.regions]
        lengths = self._lengths(points)
        tokens = [sum(numbers) for numbers in lengths]

        def fits(first: int, end: int) -> bool:
            header = self._header(self.regions[first].start)[1]
            return sum(tokens[first:end]) + self._context(self.first[first])[1] + header <= self._room

        found: list[_Cut] = []
        for first, end in grouped(self.text, self.regions, tokens, self._room // 4, fits):
            if fits(first, end):
                span = Span(self.regions[first].start, self.regions[end - 1].end)
                found.append(self._cut(span, sum(tokens[first:end])))
            else:
                inside = [p for part in points[first:end] for p in part]
                found += self._split(first, end, inside, [n for part in lengths[first:end] for n in part])
        return self._checked(found)

    @property
    def _room(self) -> int:
        """Tokens for context and text, without the marks around every text."""
        return max(1, self.budget - self.counter.around)

    def _context(self, context: str) -> tuple[str, int]:
        return self.contexts[context]

    def _header(self, offset: int) -> tuple[str, int]:
        """The header, and its length in tokens, of the table among whose rows a chunk begins; ("", 0) elsewhere."""
        index = bisect_right(self.tables, offset, key=_body_of) - 1
        return self.headers[self.tables[index].header] if index >= 0 and offset < self.tables[index].end else ("", 0)

    def _longest_header(self, start: int, end: int) -> int:
        return max((self.headers[t.header][1] for t in self.tables if t.start < end and t.end > start), default=0)

    def _lengths(self, points: Sequence[Sequence[int]]) -> list[list[int]]:
        """Tokens of each line of each region, counted in one call."""
        texts: list[str] = []
        for region, starts in zip(self.regions, points, strict=True):
            ends = [*starts[1:], region.end]
            texts.extend(self.text[a:b].strip() for a, b in zip(starts, ends, strict=True))
        flat = iter(self.counter.parts(texts))
        return [[next(flat) for _ in starts] for starts in points]

    def _split(self, first: int, end: int, points: Sequence[int], tokens: Sequence[int]) -> list[_Cut]:
        """Cut a group of regions that does not fit into one chunk."""
        group = self.regions[first:end]
        around = self._longest_header(group[0].start, group[-1].end) if self.tables else 0
        limit = max(1, self._room - max(self._context(c)[1] for c in self.full[first:end]) - around)
        headings = [r.heading for r in group if r.heading is not None]
        return self._packed(points, group[-1].end, tokens, headings, limit)

    def _packed(
        self, points: Sequence[int], end: int, tokens: Sequence[int], headings: Sequence[Span], limit: int
    ) -> list[_Cut]:
        whole_lines = max(tokens) <= limit
        pieces = line_pieces(self.text, points, end, tokens, headings, self.blocks)
        pieces = refine(self.text, pieces, limit, self.counter)
        found: list[_Cut] = []
        for first, last in cheapest_cut(pieces, limit):
            length = sum(piece.tokens for piece in pieces[first:last]) if whole_lines else -1
            found.append(self._cut(Span(pieces[first].start, pieces[last - 1].end), length))
        return found

    def _cut(self, span: Span, tokens: int) -> _Cut:
        """A span without the blank around it, with its section and context; `tokens` of its text, -1 if not known."""
        text = self.text[span.start : span.end]
        end = span.start + len(text.rstrip())
        skipped = len(text) - len(text.lstrip())
        # The indentation of the first line belongs to it.
        line = self.text.rfind("\n", span.start, span.start + skipped) + 1
        inside = span.start and self.text[span.start - 1] != "\n"
        start = line or (span.start + skipped if inside else span.start)
        index = max(0, bisect_right(self.starts, span.start + skipped) - 1)
        region = self.regions[index]
        headed = region.heading is not None and start <= region.heading.start
        context = context_of(self.title, region.path, self.text[start:end], headed)
        # Headings without text of their own lead to the section that the chunk is about.
        while region.only_heading(self.text) and index + 1 < len(self.regions) and self.starts[index + 1] < end:
            index += 1
            region = self.regions[index]
        if context not in self.contexts:
            self.contexts |= shorten([context], self.most_context, self.counter)
        shown, length = self._context(context)
        header, more = self._header(start)
        shown, length = "\n".join(part for part in (shown, header) if part), length + more
        known = self.counter.additive and tokens >= 0
        total = self.counter.around + length + tokens if known else -1
        return _Cut(Span(start, end), region.path, region.kind, shown, total)

    def _checked(self, cuts: list[_Cut]) -> list[_Cut]:
        """Count what is not counted, and cut again what is longer as a whole than in its parts, until it fits."""
        unknown = [cut for cut in cuts if cut.tokens < 0]
        lengths = iter(self.counter([cut.indexed(self.text) for cut in unknown]))
        done: list[_Cut] = []
        for cut in cuts:
            counted = cut if cut.tokens >= 0 else replace(cut, tokens=next(lengths))
            done += [counted] if counted.tokens <= self.budget else self._again(counted)
        return done

    def _again(self, cut: _Cut) -> list[_Cut]:
        points = cut_points(self.lines, cut.span.start, cut.span.end)
        ends = [*points[1:], cut.span.end]
        lengths = self.counter.parts([self.text[a:b].strip() for a, b in zip(points, ends, strict=True)])
        estimate = sum(lengths)
        # The parts add up to less than the whole: allow so much less than the room that the wholes fit.
        room = min(estimate * self.budget // (cut.tokens + 1), estimate - 1)
        limit = max(1, room - self.counter.parts([cut.context])[0])
        again = self._packed(points, cut.span.end, lengths, (), limit)
        return [cut] if len(again) < 2 else self._checked(again)
