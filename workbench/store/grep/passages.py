"""From matching lines to passages: grouped, ordered, cut to a size people can read, matches marked.

Grouping and scoring are arithmetic on line numbers, over every matched line; text is read for the passages that are
returned and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.records import Passage, Span
from workbench.store.arrays import Columns
from workbench.store.grep.pattern import GrepPattern
from workbench.store.grep.text import LONG_LINE, MappedText
from workbench.store.overlaps import joined

LINE_CHARACTERS = LONG_LINE
"""A longer line is cut: a line of context at its end, a matched line around its first match."""

BEFORE_MATCH = 200
"""Characters kept before the first match of a line that is cut."""

PASSAGE_CHARACTERS = 8000
"""A passage whose text is longer ends after the line that crosses this, never before its first matched line."""

ELLIPSIS = "…"

# Later matches of a line that is cut are looked for this far beyond what is shown of it, so that a pattern that reads on
# to the end of the line costs no more for each of its matches.
_SLACK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Passages before their text is read, in (document, line) order.

    Attributes:
        lines: int64, every matched line (number in the file), ascending.
        first, after: int64 (g,), each passage's matched lines are `lines[first:after]`.
        documents: int64 (g,).
        scores: float64 (g,), distinct patterns + n/(n+1) with n matched lines.
    """

    lines: NDArray[np.int64]
    first: NDArray[np.int64]
    after: NDArray[np.int64]
    documents: NDArray[np.int64]
    scores: NDArray[np.float64]

    def best(self) -> NDArray[np.int64]:
        """The passages, best first: score down, then document number up, then line up."""
        return np.argsort(-self.scores, kind="stable")


def reached(counts: str, records: NDArray[np.int64], documents: NDArray[np.int64], depth: int) -> int:
    """How many passages, best first, take a depth that counts `passages`, `chunks` or `documents`; 0 if these are too few.

    Args:
        counts: What the depth counts.
        records: int64 (m,), the record that stands for each passage; -1, for none, counts as no chunk and no document.
        documents: int64 (m,), the document of each.
        depth: At least 1.
    """
    if counts == "passages":
        return depth if len(records) >= depth else 0
    known = np.flatnonzero(records >= 0)
    _, first = np.unique((records if counts == "chunks" else documents)[known], return_index=True)
    return int(np.sort(known[first])[depth - 1]) + 1 if len(first) >= depth else 0


def group(text: MappedText, matched: Sequence[NDArray[np.int64]], context: int) -> Groups:
    """Join matched lines of one document that lie within 2 x context lines of each other.

    Args:
        text: The text file.
        matched: Each pattern's matched lines, ascending.
        context: Lines shown before and after a match.
    """
    lines = matched[0] if len(matched) == 1 else np.unique(np.concatenate(matched))
    documents = np.searchsorted(text.first_lines, lines, side="right") - 1
    breaks = (np.diff(lines) > 2 * context) | (np.diff(documents) != 0)
    first = np.concatenate(([0], np.flatnonzero(breaks) + 1)) if len(lines) else np.zeros(0, np.int64)
    after = np.append(first[1:], len(lines)) if len(lines) else first
    n = after - first
    distinct = np.zeros(len(first), np.int64)
    if len(matched) == 1:
        distinct += 1
    else:
        for own in matched:
            places = np.searchsorted(lines, own)
            distinct[np.unique(np.searchsorted(first, places, side="right") - 1)] += 1
    scores = np.asarray(distinct + n / (n + 1), np.float64)
    return Groups(lines, first, after, documents[first], scores)


class PassageWriter:
    """Reads and marks the text of passages.

    Args:
        text: The text file.
        columns: Where records, ids, paths and pages are.
        patterns: What is searched for.
        context: Lines shown before and after a match.
        allowed: Records that may stand for a passage; bool (n,), or None for all.
    """

    def __init__(
        self,
        text: MappedText,
        columns: Columns,
        patterns: Sequence[GrepPattern],
        context: int,
        allowed: NDArray[np.bool_] | None,
    ) -> None:
        self._text = text
        self._columns = columns
        self._patterns = patterns
        self._context = context
        self._allowed = allowed

    def write(self, groups: Groups, chosen: NDArray[np.int64]) -> tuple[list[Passage], NDArray[np.int64]]:
        """Some groups as passages with their text, and the record that stands for each (int64, -1: none)."""
        text, arrays = self._text, self._columns
        documents = groups.documents[chosen]
        owners = documents.tolist()
        firsts_of, ends_of = text.first_lines[documents], text.first_lines[documents + 1]
        begins, afters = groups.first[chosen], groups.after[chosen]
        firsts = np.maximum(firsts_of, groups.lines[begins] - self._context)
        lasts = np.minimum(ends_of - 1, groups.lines[afters - 1] + self._context)
        cut = np.searchsorted(text.long_lines, firsts) != np.searchsorted(text.long_lines, lasts + 1)
        first_bytes, last_bytes = text.line_starts[firsts], text.line_starts[lasts + 1] - 1
        cut |= last_bytes - first_bytes > PASSAGE_CHARACTERS
        columns = (a.tolist() for a in (firsts_of, begins, afters, firsts, lasts, cut, first_bytes, last_bytes))
        scores = groups.scores[chosen].tolist()
        ids, paths = arrays.document_ids.take(documents), arrays.paths.take(documents)
        made: list[tuple[int, int, str, tuple[Span, ...], tuple[int, ...], int | None, str]] = []
        records: list[int] = []
        for owner, (base, begin, after, first, last, is_cut, first_byte, last_byte) in zip(
            owners, zip(*columns, strict=True), strict=True
        ):
            matched: list[int] = groups.lines[begin:after].tolist()
            if is_cut:
                shown, marks = self._cut_lines(first, last, matched)
            else:
                data = text.data[first_byte:last_byte]
                shown, marks = _decoded(data, self._matches(data, first_byte, last_byte))
            match, line = self._first_match(owner, matched[0])
            records.append(arrays.holder(owner, match, line, self._allowed))
            page, place = arrays.page(owner, match[0]), arrays.locator(owner, match[0], match[1])
            numbers = tuple([m - base + 1 for m in matched])
            made.append((first - base + 1, last - base + 1, shown, marks, numbers, page, place))
        held = np.array(records, np.int64)
        chunk_ids = arrays.chunk_ids.take(held)
        passages = [
            Passage(document_id, path, *fields[:5], score, chunk_id, *fields[5:])
            for document_id, path, fields, score, chunk_id in zip(ids, paths, made, scores, chunk_ids, strict=True)
        ]
        return passages, held

    def _first_match(self, document: int, line: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """The first match on a line, and the line, as characters of the document."""
        first, after = (int(byte) for byte in self._text.line_starts[line : line + 2])
        places = (*self._first_bytes(first, after - 1), first, after - 1)
        start, end, line_start, line_end = (self._text.character_offset(document, byte) for byte in places)
        return (start, end), (line_start, line_end)

    def _first_bytes(self, first: int, after: int) -> tuple[int, int]:
        """First and last byte of the first match in a line's bytes, of any pattern."""
        found = (pattern.spans(self._text.data, first, after) for pattern in self._patterns)
        return min((match for match in found if match[0] >= 0), default=(first, first))

    def _cut_lines(self, first: int, last: int, matched: list[int]) -> tuple[str, tuple[Span, ...]]:
        """A passage with long lines or too much text, cut, and the matches in it."""
        starts, long_lines = self._text.line_starts, self._text.long_lines
        place = int(np.searchsorted(long_lines, first))
        pieces: list[str] = []
        spans: list[Span] = []
        size, line, must, marked = 0, first, matched[0], set(matched)
        while line <= last:
            if line > must and size > PASSAGE_CHARACTERS:
                pieces.append(ELLIPSIS)
                break
            next_long = int(long_lines[place]) if place < len(long_lines) else last + 1
            if line == next_long:
                piece, inside = self._line(line, line in marked, size)
                place, line = place + 1, line + 1
            else:
                # A run of ordinary lines at once: up to the first match, then as far as the bytes allow.
                stop = min(next_long, last + 1)
                start = int(starts[line])
                if line <= must:
                    stop = min(stop, must + 1)
                else:
                    stop = min(stop, int(np.searchsorted(starts, start + PASSAGE_CHARACTERS - size, side="right")))
                data = self._text.data[start : int(starts[stop]) - 1]
                piece, inside = _decoded(data, self._matches(data, start, start + len(data)), size)
                line = stop
            spans.extend(inside)
            pieces.append(piece)
            size += len(piece) + 1
        return "\n".join(pieces), tuple(spans)

    def _line(self, line: int, marked: bool, shift: int) -> tuple[str, tuple[Span, ...]]:
        """One long line, cut if it has too many characters, and the matches in it, moved by `shift`."""
        data = self._text.data
        start, end = int(self._text.line_starts[line]), int(self._text.line_starts[line + 1]) - 1
        # A character is at most four bytes: decode no more of a huge line than can be shown.
        if end - start <= 4 * LINE_CHARACTERS and len(data[start:end].decode("utf-8")) <= LINE_CHARACTERS:
            shown_line = data[start:end]
            return _decoded(shown_line, self._matches(shown_line, start, end) if marked else [], shift)
        if not marked:
            return _clip(data[start : start + 4 * LINE_CHARACTERS], 0, LINE_CHARACTERS - 1)[0] + ELLIPSIS, ()
        at = self._first_bytes(start, end)[0]
        lead = data[max(start, at - 4 * BEFORE_MATCH) : at].decode("utf-8", "ignore")[-BEFORE_MATCH:]
        window_start = at - len(lead.encode("utf-8"))
        room = LINE_CHARACTERS - 1 - (window_start > start)
        shown, window_end = _clip(data[window_start : min(end, window_start + 4 * room)], window_start, room)
        cut_after = window_end < end
        if not cut_after:
            # The line ends inside the window: show as much of its end as there is room for.
            ending = data[max(start, end - 4 * LINE_CHARACTERS) : end]
            shown = ending.decode("utf-8", "ignore")[-(LINE_CHARACTERS - 1) :]
            window_start = end - len(shown.encode("utf-8"))
        window = shown.encode("utf-8")
        prefix = ELLIPSIS if window_start > start else ""
        matches = self._matches(window, window_start, min(end, window_end + _SLACK_BYTES))
        piece, spans = _decoded(window, matches, shift + len(prefix))
        return prefix + piece + (ELLIPSIS if cut_after else ""), spans

    def _matches(self, data: bytes, offset: int, look: int) -> list[tuple[int, int]]:
        """Matches that begin in some bytes, cut to them; joined where those of several patterns overlap.

        `data` stands at `offset` in the file, where matches are looked for up to `look`.
        """
        found: list[tuple[int, int]] = []
        for pattern in self._patterns:
            if pattern.literal and (not pattern.ignore or (pattern.literal.isascii() and data.isascii())):
                found.extend(_occurrences(data, pattern))
            else:
                found.extend(self._searched(pattern, offset, offset + len(data), look))
        return found if len(self._patterns) == 1 else joined(found)

    def _searched(self, pattern: GrepPattern, start: int, end: int, look: int) -> list[tuple[int, int]]:
        """Matches by RE2 that begin in bytes `start` to `end`, cut to them and relative to `start`; empty ones left out."""
        found: list[tuple[int, int]] = []
        at = start
        while at < end:
            first, last = pattern.spans(self._text.data, at, look)
            if first < 0 or first >= end:
                break
            if last > first:
                found.append((first - start, min(last, end) - start))
                at = last
            else:
                at = first + 1
        return found


def _occurrences(data: bytes, pattern: GrepPattern) -> list[tuple[int, int]]:
    """Occurrences of fixed text, exactly RE2's: the bytes are the same, or all of them ASCII."""
    wanted, size = pattern.literal, len(pattern.literal)
    if b"\n" in wanted:
        return []
    if pattern.ignore:
        data, wanted = data.lower(), wanted.lower()
    found: list[tuple[int, int]] = []
    at = data.find(wanted)
    while at >= 0:
        found.append((at, at + size))
        at = data.find(wanted, at + size)
    return found


def _decoded(data: bytes, matches: list[tuple[int, int]], shift: int = 0) -> tuple[str, tuple[Span, ...]]:
    """Bytes as text, byte spans as character spans moved by `shift`."""
    text = data.decode("utf-8")
    if matches and len(text) != len(data):
        leads = np.cumsum((np.frombuffer(data, np.uint8) & 0xC0) != 0x80)
        before = np.concatenate(([0], leads))
        matches = before[np.array(matches)].tolist()
    return text, tuple([Span(first + shift, last + shift) for first, last in matches])


def _clip(data: bytes, offset: int, room: int) -> tuple[str, int]:
    """At most `room` characters of bytes that begin at a character, and the byte offset where they end."""
    text = data[: 4 * room].decode("utf-8", "ignore")[:room]
    return text, offset + len(text.encode("utf-8"))
