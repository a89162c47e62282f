"""Cut a document into chunks: by its headings and pages, within a budget of tokens, with exact spans.

`document.text[chunk.start:chunk.end] == chunk.text` for every chunk. The chunks of a document in one collection do not
overlap and together hold every character that is not blank, but for the front matter, which is metadata. A chunk begins
with a line and ends with one wherever lines are short enough. What is cut where is decided in three steps: regions
(stretches of one section on one page, small ones joined), pieces (lines, each with the cost of a cut before it), and the
cheapest cut of the pieces. The context of a chunk is its title and sections, where its own text does not begin with them.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate, pairwise

from workbench.ingest.outline import Lines, Outline
from workbench.locators import locate
from workbench.records import Chunk, ChunkKind, Document, Granularity, Span

INGEST_VERSION = "14"
"""Changes whenever the same bytes would give other documents or chunks; part of the "unchanged?" digest of a file."""
SEPARATOR = " > "
"""Between the sections of a path."""
CountTokens = Callable[[Sequence[str]], list[int]]
"""Lengths of texts in the encoder's tokens: one call, one number a text, in the same order."""

_LONGEST_CONTEXT, _LONGEST_HEADER = 40, 64  # tokens

# What a cut before a piece costs. The rest of a budget that a chunk leaves unused costs up to _SHORT, each chunk _EACH.
_AT_HEADING, _AT_BLANK, _AT_ITEM, _AFTER_SENTENCE, _IN_PARAGRAPH = 0.0, 1.5, 3.0, 4.5, 9.0
_AT_BLANK_IN_BLOCK, _IN_BLOCK, _AT_BLOCK_EDGE, _AFTER_HEADING = 5.0, 12.0, 20.0, 1000.0
_AT_SENTENCE, _AT_WORD, _IN_WORD = 10.0, 16.0, 24.0
_ANNOUNCED = 3.0  # by a colon before the blank line
_EACH, _SHORT = 3.0, 6.0

_KINDS = (
    (re.compile(r"(?:\d+(?:\.\d+)*[.)]?\s+)?(?:summary|overview)\s*:?", re.IGNORECASE), ChunkKind.SUMMARY),
    (re.compile(r"(?:\d+(?:\.\d+)*[.)]?\s+)?examples?\s*:?", re.IGNORECASE), ChunkKind.EXAMPLES),
)
_ITEM = re.compile(r"[ \t]*(?:[-*+•‣–]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|#\.)[ \t]+\S|[ \t]*:[\w -]+:[ \t]")
_SENTENCE_END = re.compile(r"[.!?…。！？]['\"”’)\]*_`]*\s*$")
_SENTENCE = re.compile(r"(?<=[.!?…])['\"”’)\]]*\s+|(?<=[。！？；])|(?<=[;:,])\s+(?=\S{0,40}\s)")
_WORDS = re.compile(r"\S{1,40}\s*|\s+")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f\u20e3")
_NOT_LETTERS = re.compile(r"[\W_]+")


def document_id(tenant: str | None, path: str, salt: str = "") -> str:
    """Id of a document, 16 hex digits, from what it is and never from a counter: the same between runs and after a move.

    Args:
        tenant: Its tenant; None and "" are not the same tenant.
        path: Path relative to the root, NFC, `/`; for a record `path#id` with the file's path and the record's id, which many
            files use at once (in the metadata it is `record_id`, what relevance judgments name).
        salt: Tells two roots with the same relative path apart.
    """
    return _digest("document", "none" if tenant is None else f"tenant {tenant}", path, salt)


def chunk_id(document_id: str, collection: str, start: int, end: int) -> str:
    """Id of a chunk, 16 hex digits, from its document's id (tenant and path), its collection and its span."""
    return _digest("chunk", document_id, collection, str(start), str(end))


def _digest(*parts: str) -> str:
    """16 hex digits over the parts; each part's length is hashed with it, so that no two lists of parts look alike."""
    state = blake2b(digest_size=8)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()


class TokenCounter:
    """Counts tokens through another callable, in batches, with a cache for short lines that come again.

    Args:
        count: The encoder's tokenizer, not cut at its window. If it counts marks that it puts around each text (such as
            [CLS] and [SEP]), they count once for a chunk, not once for each of its lines.
        additive: Promise that a text is as long as its words are together, as with tokenizers that split at white space
            first (BERT's). Then a chunk's length is the sum of its lines' and the text is counted once, not twice.
    """

    _LONGEST_KEPT, _MOST_KEPT = 160, 1 << 17
    _SLICE = 4096  # characters: tokenizers slow down out of proportion on very long strings

    def __init__(self, count: CountTokens, *, additive: bool = False) -> None:
        self.additive = additive
        self._count = count
        self._cache: dict[str, int] = {}

    @cached_property
    def around(self) -> int:
        return int(self._count([""])[0])

    def __call__(self, texts: Sequence[str]) -> list[int]:
        """Lengths of whole texts, marks around them included; of texts over 4,096 characters the sum of their slices."""
        around = self.around
        return [length + around for length in self._lengths(texts)]

    def parts(self, texts: Sequence[str]) -> list[int]:
        cache = self._cache
        missing = list(dict.fromkeys(text for text in texts if text not in cache))
        fresh = dict(zip(missing, self._lengths(missing), strict=True))
        result = [fresh[text] if text in fresh else cache[text] for text in texts]
        if len(cache) + len(fresh) > self._MOST_KEPT:
            cache.clear()
        cache |= {text: length for text, length in fresh.items() if len(text) <= self._LONGEST_KEPT}
        return result

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        slices = [self._slices(text) for text in texts]
        around = self.around
        flat = iter(self._count([part for parts in slices for part in parts]) if slices else ())
        return [sum(max(0, int(next(flat)) - around) for _ in parts) for parts in slices]

    def _slices(self, text: str) -> list[str]:
        """A text in slices, cut at a space where there is one."""
        starts = [0]
        while len(text) - starts[-1] > self._SLICE:
            last = starts[-1] + self._SLICE
            starts.append(max(text.rfind(" ", starts[-1] + 1, last), 0) or last)
        return [text[a:b] for a, b in pairwise([*starts, len(text)])]


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
        count_tokens: The encoder's tokenizer; a `TokenCounter` keeps its cache from one document to the next.
        one_chunk: One chunk that spans the whole content, without context: how collections with judgments are measured.

    Returns:
        The chunks in the order of the text; none for a blank text.
    """
    if not document.text.strip():
        return ()
    counter = count_tokens if isinstance(count_tokens, TokenCounter) else TokenCounter(count_tokens)
    if one_chunk or granularity is Granularity.DOCUMENT:
        start = outline.content(document.text)
        context = "" if one_chunk else _context_of(document.title, (), document.text[start:], False)
        context = _shortened([context], _LONGEST_CONTEXT, counter)[context][0]
        cut = _Cut(Span(start, len(document.text)), (), ChunkKind.BODY, context)
        cuts = [replace(cut, tokens=counter([cut.indexed(document.text)])[0])]
    else:
        cuts = _Chunker(document, outline, budget_tokens, counter).cuts()
    lines = Lines(document.text)
    return tuple(_chunk(document, collection, granularity, index, cut, lines) for index, cut in enumerate(cuts))


def section_kind(title: str) -> ChunkKind:
    """Summary for a section called Summary or Overview, examples for Example or Examples, else body."""
    return next((kind for pattern, kind in _KINDS if pattern.fullmatch(title.strip())), ChunkKind.BODY)


@dataclass(frozen=True, slots=True)
class _Cut:
    """A chunk before it has its id; -1 tokens: not counted yet."""

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
        section=SEPARATOR.join(cut.path),
        page=max(1, bisect_right(document.page_starts, start)) if document.page_starts else None,
        kind=cut.kind,
        granularity=granularity,
        context=cut.context,
        tokens=cut.tokens,
        locator=locate(document.places, start, end),
    )


class _Chunker:
    def __init__(self, document: Document, outline: Outline, budget: int, counter: TokenCounter) -> None:
        self.text = text = document.text
        self.title = document.title
        self.blocks, self.tables = outline.blocks, outline.tables
        self.counter = counter
        self.lines = Lines(text)
        self.regions = _regions(text, outline, document.page_starts or (outline.breaks and (0, *outline.breaks)))
        self.starts = [r.start for r in self.regions]
        self.budget = max(1, budget)
        self.room = max(1, self.budget - counter.around)  # for context and text, without the marks around every text
        self.most_context = min(_LONGEST_CONTEXT, self.budget // 4)
        self.full = [_context_of(self.title, r.path, "", False) for r in self.regions]
        self.first = [_context_of(self.title, r.path, text[r.start : r.end], bool(r.heading)) for r in self.regions]
        self.contexts = _shortened([*self.full, *self.first], self.most_context, counter)
        self.headers = _shortened([t.header for t in self.tables], min(_LONGEST_HEADER, self.budget // 4), counter)

    def cuts(self) -> list[_Cut]:
        points = [_line_starts(self.lines, r.start, r.end) for r in self.regions]
        ends = [[*starts, region.end] for starts, region in zip(points, self.regions, strict=True)]
        flat = iter(self.counter.parts([self.text[a:b].strip() for own in ends for a, b in pairwise(own)]))
        lengths = [[next(flat) for _ in starts] for starts in points]
        tokens = [sum(numbers) for numbers in lengths]

        def fits(first: int, end: int) -> bool:
            header = self._header(self.regions[first].start)[1]
            return sum(tokens[first:end]) + self.contexts[self.first[first]][1] + header <= self.room

        found: list[_Cut] = []
        for first, end in _grouped(self.text, self.regions, tokens, self.room // 4, fits):
            if fits(first, end):
                span = Span(self.regions[first].start, self.regions[end - 1].end)
                found.append(self._cut(span, sum(tokens[first:end])))
            else:
                inside = [p for part in points[first:end] for p in part]
                found += self._split(first, end, inside, [n for part in lengths[first:end] for n in part])
        return self._checked(found)

    def _header(self, offset: int) -> tuple[str, int]:
        """The header, and its length in tokens, of the table among whose rows a chunk begins; ("", 0) elsewhere."""
        index = bisect_right(self.tables, offset, key=lambda table: table.body) - 1
        return self.headers[self.tables[index].header] if index >= 0 and offset < self.tables[index].end else ("", 0)

    def _split(self, first: int, end: int, points: Sequence[int], tokens: Sequence[int]) -> list[_Cut]:
        group = self.regions[first:end]
        low, high = group[0].start, group[-1].end
        header = max((self.headers[t.header][1] for t in self.tables if t.start < high and t.end > low), default=0)
        limit = self.room - max(self.contexts[c][1] for c in self.full[first:end]) - header
        return self._packed(points, high, tokens, [r.heading for r in group if r.heading is not None], max(1, limit))

    def _packed(
        self, points: Sequence[int], end: int, tokens: Sequence[int], headings: Sequence[Span], limit: int
    ) -> list[_Cut]:
        whole_lines = max(tokens) <= limit
        pieces = _line_pieces(self.text, points, end, tokens, headings, self.blocks)
        pieces = _refined(self.text, pieces, limit, self.counter)
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
        context = _context_of(self.title, region.path, self.text[start:end], headed)
        # Headings without text of their own lead to the section that the chunk is about.
        while region.only_heading(self.text) and index + 1 < len(self.regions) and self.starts[index + 1] < end:
            index += 1
            region = self.regions[index]
        if context not in self.contexts:
            self.contexts |= _shortened([context], self.most_context, self.counter)
        shown, length = self.contexts[context]
        header, more = self._header(start)
        shown, length = "\n".join(part for part in (shown, header) if part), length + more
        known = self.counter.additive and tokens >= 0
        total = self.counter.around + length + tokens if known else -1
        return _Cut(Span(start, end), region.path, region.kind, shown, total)

    def _checked(self, cuts: list[_Cut]) -> list[_Cut]:
        """Count what is not counted, and cut again what is longer as a whole than in its parts, until it fits."""
        lengths = iter(self.counter([cut.indexed(self.text) for cut in cuts if cut.tokens < 0]))
        done: list[_Cut] = []
        for cut in cuts:
            counted = cut if cut.tokens >= 0 else replace(cut, tokens=next(lengths))
            done += [counted] if counted.tokens <= self.budget else self._again(counted)
        return done

    def _again(self, cut: _Cut) -> list[_Cut]:
        points = _line_starts(self.lines, cut.span.start, cut.span.end)
        lengths = self.counter.parts([self.text[a:b].strip() for a, b in pairwise([*points, cut.span.end])])
        estimate = sum(lengths)
        # The parts add up to less than the whole: allow so much less than the room that the wholes fit.
        room = min(estimate * self.budget // (cut.tokens + 1), estimate - 1)
        limit = max(1, room - self.counter.parts([cut.context])[0])
        again = self._packed(points, cut.span.end, lengths, (), limit)
        return [cut] if len(again) < 2 else self._checked(again)


@dataclass(frozen=True, slots=True)
class _Region:
    """A stretch of one section (`path`, outermost first) on one page (from 0). `heading` spans the one it begins with."""

    start: int
    end: int
    path: tuple[str, ...]
    heading: Span | None
    page: int
    kind: ChunkKind

    @property
    def parents(self) -> tuple[str, ...]:
        """The sections that a neighbour must lie in to be joined."""
        return self.path[:-1] if self.heading is not None and self.path else self.path

    def only_heading(self, text: str) -> bool:
        return self.heading is not None and not text[self.heading.end : self.end].strip()

    def lies_in(self, path: tuple[str, ...], page: int) -> bool:
        return self.page == page and self.path[: len(path)] == path


def _regions(text: str, outline: Outline, page_starts: Sequence[int]) -> list[_Region]:
    """The regions of a text's content that are not blank, in order; together they hold all of it that is not blank."""
    content = outline.content(text)
    sections = {s.start: s for s in outline.sections}
    title = _title_heading(outline)
    points = sorted(p for p in {0, content, *page_starts, *sections} if p < len(text))
    found: list[_Region] = []
    stack: list[tuple[int, str, ChunkKind]] = []
    pages = set(page_starts)
    page = -1 if page_starts else 0
    own: ChunkKind | None = None
    for start, end in pairwise([*points, len(text)]):
        page += start in pages
        section = sections.get(start)
        heading = None
        if section is not None:
            while stack and stack[-1][0] >= section.level:
                stack.pop()
            own = None
            if section.title:
                kind = section_kind(section.title) if outline.prose else ChunkKind.BODY
                inherited = kind if kind is not ChunkKind.BODY else stack[-1][2] if stack else ChunkKind.BODY
                if start == title and kind is not ChunkKind.BODY:
                    # A page called "Overview" is not a summary as a whole; only what follows right under its title is.
                    own, inherited = kind, ChunkKind.BODY
                stack.append((section.level, section.title, inherited))
                heading = Span(start, max(start, min(section.body, end)))
        if start >= content and text[start:end].strip():
            kind = own or (stack[-1][2] if stack else ChunkKind.BODY)
            region = _Region(start, end, tuple(name for _, name, _ in stack), heading, max(page, 0), kind)
            found.append(replace(region, kind=ChunkKind.BODY) if own and region.only_heading(text) else region)
    return found


def _title_heading(outline: Outline) -> int:
    """Offset of the heading that is the document's title: the first one, if no other is as far out; else -1."""
    titled = [s for s in outline.sections if s.title]
    return -1 if not titled or any(s.level <= titled[0].level for s in titled[1:]) else titled[0].start


def _grouped(
    text: str, regions: Sequence[_Region], tokens: Sequence[int], tiny: int, fits: Callable[[int, int], bool]
) -> list[tuple[int, int]]:
    """(first, end) of groups of regions, so that no chunk is a lone heading or a crumb.

    A heading without text always goes with the first section below it. What is then below `tiny` tokens takes the next
    one in, if it is of the same kind, lies under the same parent and both fit.
    """
    units: list[tuple[int, int]] = []
    for index, region in enumerate(regions):
        before = regions[index - 1]
        below = region.lies_in(before.path, before.page) and region.path != before.path
        if units and below and before.only_heading(text):
            units[-1] = (units[-1][0], index + 1)
        else:
            units.append((index, index + 1))
    groups: list[tuple[int, int]] = []
    for first, end in units:
        start, before_end = groups[-1] if groups else (0, 0)
        if groups and sum(tokens[start:before_end]) < tiny:
            last = regions[before_end - 1]
            # What headings without text lead to decides of what kind a unit is.
            alike = last.kind is regions[end - 1].kind
            if alike and regions[first].lies_in(regions[start].parents, last.page) and fits(start, end):
                groups[-1] = (start, end)
                continue
        groups.append((first, end))
    return groups


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of characters that is not cut any further, its length in tokens, and the cost of a cut before it."""

    start: int
    end: int
    tokens: int
    cost: float


def _line_starts(lines: Lines, start: int, end: int) -> list[int]:
    """Where the lines of a stretch begin; its own start is the first of them."""
    return [start, *lines.starts[bisect_right(lines.starts, start) : bisect_right(lines.starts, end - 1)]]


def _line_pieces(
    text: str, points: Sequence[int], end: int, tokens: Sequence[int], headings: Sequence[Span], blocks: Sequence[Span]
) -> list[Piece]:
    """One piece for each line that is not blank, with its cost; blank lines go with the line before them.

    `points` are where lines begin, `tokens` their lengths; headings (to the start of their text) and blocks are in order.
    """
    found: list[Piece] = []
    heading_starts = [h.start for h in headings]
    block_starts = [b.start for b in blocks]
    blank, before, before_start = True, "", points[0]
    measured, solid = Span(-1, -1), -1
    for index, (point, stop) in enumerate(pairwise([*points, end])):
        line = text[point:stop]
        stripped = line.rstrip()
        if not stripped:
            if found:
                found[-1] = replace(found[-1], end=stop)
            blank = True
            continue
        cost = _line_cost(stripped, before, blank)
        block = _holding(blocks, block_starts, point)
        if block is not None and point > block.start:
            if block is not measured:  # once a block: a table may have a hundred thousand lines
                measured, solid = block, block.start + len(text[block.start : block.end].rstrip())
            edge = before_start <= block.start or stop >= solid
            deeper = max(0, _indent(line) - _indent(text[block.start : block.start + 40].partition("\n")[0]))
            inside = _AT_BLANK_IN_BLOCK + min(deeper, 16) / 4 if blank else _IN_BLOCK
            cost = _AT_BLOCK_EDGE if edge else inside
        heading = _holding(headings, heading_starts, point)
        last_heading = _holding(headings, heading_starts, before_start)
        if heading is not None and point == heading.start:
            cost = _AFTER_HEADING if last_heading is not None and before else _AT_HEADING
        elif heading is not None or last_heading is not None:
            cost = _AFTER_HEADING
        # The first piece takes the blank lines before it too, so that pieces cover the stretch.
        found.append(Piece(point if found else points[0], stop, tokens[index], cost))
        before, before_start, blank = stripped, point, False
    return found


def _holding(spans: Sequence[Span], starts: Sequence[int], offset: int) -> Span | None:
    index = bisect_right(starts, offset) - 1
    return spans[index] if index >= 0 and offset < spans[index].end else None


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _line_cost(line: str, before: str, blank: bool) -> float:
    depth = min(_indent(line), 16) / 4
    if blank:
        return _AT_BLANK + depth + (_ANNOUNCED if before.endswith(":") else 0.0)
    if _ITEM.match(line):
        return _AT_ITEM + depth
    return _AFTER_SENTENCE if _SENTENCE_END.search(before) else _IN_PARAGRAPH


def _refined(text: str, pieces: Sequence[Piece], limit: int, counter: TokenCounter) -> list[Piece]:
    """Break pieces that are longer than `limit` tokens into sentences, words and characters, and join crumbs.

    A single character (with its combining marks) may still be longer than the limit; it stays whole.
    """
    current = list(pieces)
    cutters = [(_by_sentence, _AT_SENTENCE), (_by_words, _AT_WORD)]
    while any(p.tokens > limit for p in current):
        cutter, cost = cutters.pop(0) if cutters else (_by_characters, _IN_WORD)
        bounds = [
            list(pairwise(cutter(text, p.start, p.end, p.tokens // limit))) if p.tokens > limit else [] for p in current
        ]
        parts = [part for inside in bounds if len(inside) > 1 for part in inside]
        if not parts and cutter is _by_characters:
            break
        lengths = iter(counter.parts([text[a:b].strip() for a, b in parts]))
        broken: list[Piece] = []
        for piece, inside in zip(current, bounds, strict=True):
            cut = inside if len(inside) > 1 else ()
            broken += [Piece(a, b, next(lengths), cost if n else piece.cost) for n, (a, b) in enumerate(cut)] or [piece]
        current = broken
    joined: list[Piece] = []
    for piece in current:
        last = joined[-1] if joined else None
        small = last is not None and last.tokens + piece.tokens <= max(1, limit // 16)
        if last is not None and small and piece.cost > _AT_ITEM + 1.0:  # fewer pieces to weigh
            joined[-1] = Piece(last.start, piece.end, last.tokens + piece.tokens, last.cost)
        else:
            joined.append(piece)
    return joined


def _by_sentence(text: str, start: int, end: int, _times: int) -> list[int]:
    return _between(start, end, (m.end() for m in _SENTENCE.finditer(text, start, end)))


def _by_words(text: str, start: int, end: int, _times: int) -> list[int]:
    """Runs of words of some 24 to 64 characters."""
    cuts = [start]
    for match in _WORDS.finditer(text, start, end):
        if match.end() - cuts[-1] >= 24 and text[match.end() - 1].isspace():
            cuts.append(match.end())
    return _between(start, end, cuts)


def _by_characters(text: str, start: int, end: int, times: int) -> list[int]:
    """Equal parts, twice as many as it is times too long, cut where no combining mark or joiner follows."""
    step = max(1, (end - start) // (2 * max(1, times)))
    cuts = [start]
    while cuts[-1] < end:
        cut = cuts[-1] + step
        while cut < end and _is_joined(text, cut):
            cut += 1
        cuts.append(cut)
    return _between(start, end, cuts)


def _is_joined(text: str, cut: int) -> bool:
    return text[cut - 1] == "\u200d" or text[cut] in _JOINERS or unicodedata.category(text[cut])[0] == "M"


def _between(start: int, end: int, cuts: Iterable[int]) -> list[int]:
    return [start, *(cut for cut in cuts if start < cut < end), end]


def cheapest_cut(pieces: Sequence[Piece], limit: int) -> list[tuple[int, int]]:
    """Cut pieces into runs of at most `limit` tokens; a piece longer than that is a run of its own.

    Cutting greedily fills the first chunks and leaves a crumb at the end. Here each cut has a cost and each run a cost for
    being short, and dynamic programming finds the lowest sum: the method by which Knuth and Plass break paragraphs into
    lines (Software: Practice and Experience 11, 1981). Equal sums are settled in favour of the longer last run.
    """
    count = len(pieces)
    costs = [piece.cost for piece in pieces]
    sums = [0, *accumulate(piece.tokens for piece in pieces)]
    best = [0.0] * (count + 1)
    came = [0] * (count + 1)
    for end in range(1, count + 1):
        total = sums[end]
        lowest, chosen = float("inf"), end - 1
        for first in range(end - 1, -1, -1):
            length = total - sums[first]
            if length > limit and first < end - 1:
                break
            missing = 1.0 - length / limit if length < limit else 0.0
            cost = best[first] + (costs[first] if first else 0.0) + _EACH + _SHORT * missing * missing
            if cost <= lowest:
                lowest, chosen = cost, first
        best[end], came[end] = lowest, chosen
    runs: list[tuple[int, int]] = []
    end = count
    while end:
        runs.append((came[end], end))
        end = came[end]
    return runs[::-1]


def _context_of(title: str, path: Sequence[str], text: str, has_heading: bool) -> str:
    """Title and section path of a chunk, without the parts that its text begins with; `has_heading`: with its last section's."""
    parts = list(path[:-1] if has_heading else path)
    if _plain(title) and not _repeats(title, path) and not _plain(text).startswith(_plain(title)):
        parts.insert(0, " ".join(title.split()))
    return SEPARATOR.join(part for n, part in enumerate(parts) if part and part not in parts[:n])


def _repeats(title: str, path: Sequence[str]) -> bool:
    """Whether a heading repeats the title: `12. Attributes` and `What's New` repeat `Attributes` and `What’s new`."""
    words = _NOT_LETTERS.sub("", title.casefold())
    return any(words in _NOT_LETTERS.sub("", heading.casefold()) for heading in path[:1]) or title in path


def _plain(text: str) -> str:
    """Words for comparison: heading marks, case and spacing do not count. Only the beginning matters."""
    return " ".join(text[:2000].lstrip(" \t\n#=*-~_`").casefold().split())


def _shortened(contexts: Sequence[str], most: int, counter: TokenCounter) -> dict[str, tuple[str, int]]:
    """For each context what is left of it within `most` tokens, and its length: middle parts go first, then last words."""
    distinct = list(dict.fromkeys(contexts))
    lengths = dict(zip(distinct, counter.parts(distinct), strict=True))
    return {c: (c, lengths[c]) if lengths[c] <= most else _cut_context(c, most, counter) for c in distinct}


def _cut_context(context: str, most: int, counter: TokenCounter) -> tuple[str, int]:
    parts = context.split(SEPARATOR)
    tries = [SEPARATOR.join([parts[0], *parts[-keep:]]) for keep in range(len(parts) - 2, 0, -1)]
    words = (parts[0] if len(parts) == 1 else SEPARATOR.join([parts[0], parts[-1]])).split(" ")
    tries += [" ".join(words[:keep]) for keep in range(min(len(words), most), 0, -1)]
    tries += [words[0][:keep] for keep in (64, 32, 16, 8) if keep < len(words[0])]
    lengths = counter.parts(tries)
    return next(((t, n) for t, n in zip(tries, lengths, strict=True) if n <= most), ("", 0))
