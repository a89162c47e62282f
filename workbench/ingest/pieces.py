"""From a stretch of text to the pieces that a chunk may be made of, and what a cut before each of them costs.

A piece is a line. A line that is too long for a chunk falls into sentences, those into short runs of words, and only a run
without a space into characters, never between a letter and its combining marks.

The price of a cut says how much it hurts a reader: nothing at a heading, little at a blank line (more if what follows is
indented or was announced by a colon), more at a list item, at a line in mid-paragraph, and most inside a code block or
table, or between a heading and its text.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from workbench.ingest.outline import Lines
from workbench.ingest.pack import Piece, coarsen
from workbench.ingest.tokens import TokenCounter
from workbench.records import Span

AT_HEADING = 0.0
AT_BLANK = 1.5
AT_ITEM = 3.0
AFTER_SENTENCE = 4.5
IN_PARAGRAPH = 9.0
AT_SENTENCE = 10.0
AT_BLANK_IN_BLOCK = 5.0
IN_BLOCK = 12.0
AT_WORD = 16.0
AT_BLOCK_EDGE = 20.0
IN_WORD = 24.0
AFTER_HEADING = 1000.0
_ANNOUNCED = 3.0

_ITEM = re.compile(r"[ \t]*(?:[-*+•‣–]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|#\.)[ \t]+\S|[ \t]*:[\w -]+:[ \t]")
_SENTENCE_END = re.compile(r"[.!?…。！？]['\"”’)\]*_`]*\s*$")
_SENTENCE = re.compile(r"(?<=[.!?…])['\"”’)\]]*\s+|(?<=[。！？；])|(?<=[;:,])\s+(?=\S{0,40}\s)")
_WORDS = re.compile(r"\S{1,40}\s*|\s+")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f\u20e3")


def cut_points(lines: Lines, start: int, end: int) -> list[int]:
    """Where the lines of a stretch begin; its own start is the first of them."""
    low = bisect_right(lines.starts, start)
    high = bisect_right(lines.starts, end - 1)
    return [start, *lines.starts[low:high]]


def line_pieces(
    text: str, points: Sequence[int], end: int, tokens: Sequence[int], headings: Sequence[Span], blocks: Sequence[Span]
) -> list[Piece]:
    """One piece for each line that is not blank, with its price; blank lines go with the line before them.

    Args:
        text: The document's text.
        points: Offsets where lines begin, the first included.
        end: Where the last line ends.
        tokens: Length of each line.
        headings: Spans of headings (start of the heading, start of its text), in order.
        blocks: Code blocks and tables, in order.
    """
    found: list[Piece] = []
    heading_starts = [h.start for h in headings]
    block_starts = [b.start for b in blocks]
    blank = True
    before = ""
    before_start = points[0]
    measured, solid = Span(-1, -1), -1
    for index, point in enumerate(points):
        stop = points[index + 1] if index + 1 < len(points) else end
        line = text[point:stop]
        stripped = line.rstrip()
        if not stripped:
            if found:
                last = found[-1]
                found[-1] = Piece(last.start, stop, last.tokens, last.cost)
            blank = True
            continue
        cost = _line_cost(stripped, before, blank)
        block = _holding(blocks, block_starts, point)
        if block is not None and point > block.start:
            if block is not measured:  # once a block: a table may have a hundred thousand lines
                measured, solid = block, block.start + len(text[block.start : block.end].rstrip())
            edge = before_start <= block.start or stop >= solid
            deeper = max(0, _indent(line) - _indent(text[block.start : block.start + 40].partition("\n")[0]))
            inside = AT_BLANK_IN_BLOCK + min(deeper, 16) / 4 if blank else IN_BLOCK
            cost = AT_BLOCK_EDGE if edge else inside
        heading = _holding(headings, heading_starts, point)
        last_heading = _holding(headings, heading_starts, before_start)
        if heading is not None and point == heading.start:
            cost = AFTER_HEADING if last_heading is not None and before else AT_HEADING
        elif heading is not None or last_heading is not None:
            cost = AFTER_HEADING
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
        return AT_BLANK + depth + (_ANNOUNCED if before.endswith(":") else 0.0)
    if _ITEM.match(line):
        return AT_ITEM + depth
    return AFTER_SENTENCE if _SENTENCE_END.search(before) else IN_PARAGRAPH


def refine(text: str, pieces: Sequence[Piece], limit: int, counter: TokenCounter) -> list[Piece]:
    """Break pieces that are longer than `limit` tokens into sentences, words and characters, and join crumbs.

    A single character (with its combining marks) may still be longer than the limit; it stays whole.
    """
    current = list(pieces)
    for cutter, price in ((_by_sentence, AT_SENTENCE), (_by_words, AT_WORD), (_by_characters, IN_WORD)):
        while True:
            parts: list[tuple[int, int, float]] = []
            places: list[int] = []
            for index, piece in enumerate(current):
                if piece.tokens <= limit:
                    continue
                bounds = cutter(text, piece.start, piece.end, piece.tokens // limit)
                if len(bounds) < 2:
                    continue
                places.append(index)
                parts.extend((a, b, piece.cost if n == 0 else price) for n, (a, b) in enumerate(bounds))
            if not parts:
                break
            lengths = counter.parts([text[a:b].strip() for a, b, _ in parts])
            fresh = [Piece(a, b, n, cost) for (a, b, cost), n in zip(parts, lengths, strict=True)]
            current = _replace(current, places, fresh)
            if cutter is not _by_characters:
                break
    return coarsen(current, max(1, limit // 16), AT_ITEM + 1.0)


def _replace(pieces: Sequence[Piece], places: Sequence[int], fresh: Sequence[Piece]) -> list[Piece]:
    """The pieces, those at `places` replaced by the fresh ones that lie within them."""
    result: list[Piece] = []
    position = 0
    replaced = set(places)
    for index, piece in enumerate(pieces):
        if index not in replaced:
            result.append(piece)
            continue
        while position < len(fresh) and fresh[position].end <= piece.end:
            result.append(fresh[position])
            position += 1
    return result


def _by_sentence(text: str, start: int, end: int, _times: int) -> list[tuple[int, int]]:
    return _at(start, end, (m.end() for m in _SENTENCE.finditer(text, start, end)))


def _by_words(text: str, start: int, end: int, _times: int) -> list[tuple[int, int]]:
    """Runs of words of some 24 to 64 characters."""
    cuts: list[int] = []
    last = start
    for match in _WORDS.finditer(text, start, end):
        if match.end() - last >= 24 and text[match.end() - 1].isspace():
            cuts.append(match.end())
            last = match.end()
    return _at(start, end, cuts)


def _by_characters(text: str, start: int, end: int, times: int) -> list[tuple[int, int]]:
    """Equal parts, twice as many as it is times too long, cut where no combining mark or joiner follows."""
    step = max(1, (end - start) // (2 * max(1, times)))
    cuts: list[int] = []
    last = start
    while last < end:
        cut = last + step
        while cut < end and _joined(text, cut):
            cut += 1
        cuts.append(cut)
        last = cut
    return _at(start, end, cuts)


def _joined(text: str, cut: int) -> bool:
    after = text[cut]
    return text[cut - 1] == "\u200d" or after in _JOINERS or unicodedata.category(after)[0] == "M"


def _at(start: int, end: int, cuts: Iterable[int]) -> list[tuple[int, int]]:
    points = [start, *(cut for cut in cuts if start < cut < end), end]
    return list(pairwise(points))
