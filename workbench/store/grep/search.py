"""grep over a generation: passages of lines around matches, in whole documents, with RE2's semantics.

A search goes three steps. *Which lines match*, for each pattern: RE2 scans the allowed documents (`scan`). *Which passages*:
arithmetic on line numbers (`group`). *What they show*: text is read for the best `depth` of them only (`PassageWriter`). One
rule bounds an answer: of each pattern, the first `MOST_LINES` matched lines are taken, in document number order (path order)
and line order within the allowed documents; passages, scores and counts are over those, and `complete` is False if there were
more. Documents that the scope hides are left out before a line is counted, so they change nothing.

The allowed documents are scanned in two threads (RE2 lets go of the interpreter while it searches). Where every match holds some
text, that is looked for, and only the lines that hold it are searched with the pattern; where case is ignored, in the copy of
the text in small letters, because RE2 looks for fixed bytes several times as fast. Either way gives the same lines, in order; so
does any number of threads, because blocks are taken in order whichever is ready first.

RE2 is linear in the text but, for patterns that defeat its automaton, by a factor as large as the pattern. A search that
takes too long ends with an error that says so; it never ends with part of an answer.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.errors import QueryError, UsageError
from workbench.records import Passage, Span
from workbench.store.arrays import Columns
from workbench.store.grep.pattern import GrepPattern, prepare
from workbench.store.grep.text import LONG_LINE, MappedText
from workbench.store.types import GrepAnswer, Scope, joined

MOST_SECONDS = 30.0
"""Longest time that one pattern may take."""

_BLOCK_BYTES = 1 << 21
_SMALL_PROGRAM = 1000
_AHEAD = 4
_AT_ONCE = 256
_DENSE = 512
"""Bytes a match: with more matches than this, threads only wait for each other."""


MOST_LINES = 50_000
"""Matched lines of one pattern that are ranked: the first ones in (path, line) order."""

MOST_PATTERNS = 100

_THREADS = 2

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


def verify(text: MappedText, lines: NDArray[np.int64], pattern: GrepPattern) -> NDArray[np.int64]:
    """Those of the given lines (numbers in the file, ascending) that match. Raises QueryError if it takes too long."""
    data, search = text.data, pattern.search
    firsts, afters = text.line_starts[lines].tolist(), (text.line_starts[lines + 1] - 1).tolist()
    deadline = time.monotonic() + MOST_SECONDS
    hits: list[bool] = []
    for at in range(0, len(firsts), _AT_ONCE):
        pairs = zip(firsts[at : at + _AT_ONCE], afters[at : at + _AT_ONCE], strict=True)
        hits += [search(data, first, after)[0] >= 0 for first, after in pairs]
        _check(deadline, pattern)
    return lines[np.array(hits, np.bool_)]


def _check(deadline: float, pattern: GrepPattern) -> None:
    if time.monotonic() > deadline:
        raise QueryError(
            f"The pattern {pattern.source[:60]!r} takes longer than {MOST_SECONDS:g} seconds on this corpus",
            "Use smaller repetitions, or a word that the lines must hold",
        )


def scan(
    text: MappedText, documents: NDArray[np.int64] | None, pattern: GrepPattern, most: int, pool: Executor
) -> NDArray[np.int64]:
    """The first matching lines of some documents.

    Args:
        text: The text file.
        documents: Document numbers, ascending; None for all.
        pattern: What to look for.
        most: How many lines are wanted.
        pool: Runs blocks at the same time.

    Returns:
        int64 line numbers in the file, ascending: all of them, or the first `most`.

    Raises:
        QueryError: It takes too long.
    """
    blocks = _blocks(text, documents, max(1 << 14, _BLOCK_BYTES // max(1, pattern.program // _SMALL_PROGRAM)))
    deadline = time.monotonic() + MOST_SECONDS
    found: list[NDArray[np.int64]] = []
    total = 0

    def keep(starts: NDArray[np.int64]) -> bool:
        nonlocal total
        found.append(starts)
        total += len(starts)
        _check(deadline, pattern)
        return total >= most

    first = next(blocks, None)
    if first is None:
        return np.zeros(0, np.int64)
    starts = _scan_block(text, first, pattern, most)
    done = keep(starts)
    if len(starts) * _DENSE > sum(end - start for start, end in first):
        for block in blocks:
            if done:
                break
            done = keep(_scan_block(text, block, pattern, most - total))
    else:
        waiting: deque[Future[NDArray[np.int64]]] = deque()
        try:
            while not done:
                while len(waiting) < _AHEAD and (ahead := next(blocks, None)) is not None:
                    waiting.append(pool.submit(_scan_block, text, ahead, pattern, most - total))
                if not waiting:
                    break
                done = keep(waiting.popleft().result())
        finally:
            for future in waiting:
                future.cancel()
    lines: NDArray[np.int64] = np.searchsorted(text.line_starts, np.concatenate(found), side="right") - 1
    if pattern.needs is not None and pattern.odd and len(text.odd_lines):
        odd = text.odd_lines
        if documents is not None:
            odd = odd[np.isin(np.searchsorted(text.first_lines, odd, side="right") - 1, documents)]
        lines = np.union1d(lines, verify(text, odd, pattern))
    return lines[:most]


def _scan_block(
    text: MappedText, block: Sequence[tuple[int, int]], pattern: GrepPattern, most: int
) -> NDArray[np.int64]:
    """Where matches are, one a line, in runs of bytes that are whole lines; at most `most`."""
    search, needs, data = pattern.search, pattern.needs, text.data
    held = text.lowered if pattern.ignore else data
    size = sum(end - first for first, end in block)
    tried = 0
    found: list[int] = []
    for first, end in block:
        at = first
        while at < end:
            if needs is None:
                start, stop = search(data, at, end)
            else:
                start, stop = needs(held, at, end)
            # An empty match behind the last newline is on no line.
            if start < 0 or start >= end:
                break
            at = data.find(b"\n", max(start, stop)) + 1
            if needs is not None and not pattern.exact:
                line = data.rfind(b"\n", first, start) + 1 or first
                start = line if search(data, line, at - 1)[0] >= 0 else -1
                tried += 1
                if tried * _DENSE > size:
                    needs = None  # so many lines hold it that the pattern itself is the quicker one to look for
            if start >= 0:
                found.append(start)
                if len(found) >= most:
                    return np.array(found, np.int64)
    return np.array(found, np.int64)


def _blocks(text: MappedText, documents: NDArray[np.int64] | None, block_bytes: int) -> Iterator[list[tuple[int, int]]]:
    """Runs of neighbouring documents, cut at lines and put together to blocks of about that size, in order."""
    numbers = np.arange(len(text)) if documents is None else documents
    if not len(numbers):
        return
    breaks = np.flatnonzero(np.diff(numbers) != 1)
    firsts = text.first_lines[numbers[np.concatenate(([0], breaks + 1))]]
    afters = text.first_lines[numbers[np.concatenate((breaks, [len(numbers) - 1]))] + 1]
    starts = text.line_starts
    block: list[tuple[int, int]] = []
    size = 0
    for first, after in zip(firsts.tolist(), afters.tolist(), strict=True):
        while first < after:
            start = int(starts[first])
            upto = int(np.searchsorted(starts, start + block_bytes - size, side="right")) - 1
            upto = min(max(upto, first + 1), after)
            end = int(starts[upto])
            block.append((start, end))
            size += end - start
            first = upto
            if size >= block_bytes * 3 // 4:
                yield block
                block, size = [], 0
    if block:
        yield block


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


@dataclass(frozen=True, slots=True, eq=False)
class PassageWriter:
    """Reads and marks the text of passages.

    Attributes:
        text: The text file.
        columns: Where records, ids, paths and pages are.
        patterns: What is searched for.
        context: Lines shown before and after a match.
        allowed: Records that may stand for a passage; bool (n,), or None for all.
    """

    text: MappedText
    columns: Columns
    patterns: Sequence[GrepPattern]
    context: int
    allowed: NDArray[np.bool_] | None

    def write(self, groups: Groups, chosen: NDArray[np.int64]) -> tuple[list[Passage], NDArray[np.int64]]:
        """Some groups as passages with their text, and the record that stands for each (int64, -1: none)."""
        text, arrays = self.text, self.columns
        documents = groups.documents[chosen]
        owners = documents.tolist()
        firsts_of, ends_of = text.first_lines[documents], text.first_lines[documents + 1]
        begins, afters = groups.first[chosen], groups.after[chosen]
        firsts = np.maximum(firsts_of, groups.lines[begins] - self.context)
        lasts = np.minimum(ends_of - 1, groups.lines[afters - 1] + self.context)
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
            records.append(arrays.holder(owner, match, line, self.allowed))
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
        first, after = (int(byte) for byte in self.text.line_starts[line : line + 2])
        places = (*self._first_bytes(first, after - 1), first, after - 1)
        start, end, line_start, line_end = (self.text.character_offset(document, byte) for byte in places)
        return (start, end), (line_start, line_end)

    def _first_bytes(self, first: int, after: int) -> tuple[int, int]:
        """First and last byte of the first match in a line's bytes, of any pattern."""
        found = (pattern.spans(self.text.data, first, after) for pattern in self.patterns)
        return min((match for match in found if match[0] >= 0), default=(first, first))

    def _cut_lines(self, first: int, last: int, matched: list[int]) -> tuple[str, tuple[Span, ...]]:
        """A passage with long lines or too much text, cut, and the matches in it."""
        starts, long_lines = self.text.line_starts, self.text.long_lines
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
                data = self.text.data[start : int(starts[stop]) - 1]
                piece, inside = _decoded(data, self._matches(data, start, start + len(data)), size)
                line = stop
            spans.extend(inside)
            pieces.append(piece)
            size += len(piece) + 1
        return "\n".join(pieces), tuple(spans)

    def _line(self, line: int, marked: bool, shift: int) -> tuple[str, tuple[Span, ...]]:
        """One long line, cut if it has too many characters, and the matches in it, moved by `shift`."""
        data = self.text.data
        start, end = int(self.text.line_starts[line]), int(self.text.line_starts[line + 1]) - 1
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
        for pattern in self.patterns:
            found.extend(self._searched(pattern, offset, offset + len(data), look))
        return found if len(self.patterns) == 1 else joined(found)

    def _searched(self, pattern: GrepPattern, start: int, end: int, look: int) -> list[tuple[int, int]]:
        """Matches by RE2 that begin in bytes `start` to `end`, cut to them and relative to `start`; empty ones left out."""
        found: list[tuple[int, int]] = []
        at = start
        while at < end:
            first, last = pattern.spans(self.text.data, at, look)
            if first < 0 or first >= end:
                break
            if last > first:
                found.append((first - start, min(last, end) - start))
                at = last
            else:
                at = first + 1
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


class MappedGrep:
    """grep over a generation's mapped files; read-only, safe from several threads.

    Args:
        text: The text file, or the folder that `build_text` wrote.
        columns: The arrays of records and documents.
        most_lines: Matched lines of one pattern that are ranked.

    Raises:
        CorpusDamaged: A file is missing, or its arrays do not fit each other.
        UsageError: The two are not of one generation.
    """

    def __init__(self, text: MappedText | Path | str, columns: Columns, *, most_lines: int = MOST_LINES) -> None:
        self._text = text if isinstance(text, MappedText) else MappedText(text)
        self._columns = columns
        self._most_lines = most_lines
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="grep")
        if columns.documents_total != len(self._text):
            raise UsageError(
                f"The arrays hold {columns.documents_total} documents and the text file {len(self._text)}",
                "Name folders of one generation",
            )

    def close(self) -> None:
        """Let the threads go."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def text(self, document_number: int) -> str:
        """A document's whole text, from the mapped file."""
        return self._text.text(document_number)

    def search(
        self,
        patterns: Sequence[str],
        scope: Scope,
        depth: int,
        *,
        regex: bool,
        case: str,
        word: bool,
        context: int,
        counts: str = "passages",
    ) -> GrepAnswer:
        """Passages where any pattern matches, in the documents that the scope allows.

        Args:
            patterns: Text that stands for itself, or regular expressions; any of them may match. Repeated ones count once.
            scope: What may be returned; only its `allowed` masks are used.
            depth: Most passages returned, or chunks or documents that they stand for.
            regex: Whether the patterns are regular expressions in RE2's syntax.
            case: `smart` (each pattern: sensitive only if it has a capital), `sensitive` or `ignore`.
            word: Match whole words only.
            context: Lines shown before and after a matched line.
            counts: What the depth counts: `passages`, `chunks` or `documents`. A search at a smaller depth gives the
                beginning of a deeper one.

        Returns:
            The best passages, score down, then document number up, then line up; files and lines are those found before
            the depth was applied.

        Raises:
            QueryError: There is no pattern, one is empty, there are too many, RE2 refuses one, or one takes too long.
        """
        distinct = list(dict.fromkeys(patterns))
        if not distinct:
            raise QueryError("There is no pattern to look for", "Give at least one word or pattern")
        if len(distinct) > MOST_PATTERNS:
            raise QueryError(f"There are {len(distinct)} patterns", f"Give at most {MOST_PATTERNS}")
        prepared = [prepare(pattern, regex=regex, case=case, word=word) for pattern in distinct]
        matched, complete = [], True
        for pattern in prepared:
            lines = self._matched(pattern, scope.allowed_documents)
            complete &= len(lines) <= self._most_lines
            matched.append(lines[: self._most_lines])
        groups = group(self._text, matched, context)
        writer = PassageWriter(self._text, self._columns, prepared, context, scope.allowed)
        best = groups.best()
        passages: list[Passage] = []
        numbers, taken, enough = np.zeros(0, np.int64), 0, 0
        while taken < len(best) and not enough:
            # Several passages may stand for one chunk or document: texts are read until there are enough of those.
            more, records = writer.write(groups, best[taken : max(depth, taken + taken // 4 + 16)])
            passages, numbers = passages + more, np.concatenate((numbers, records))
            taken = len(passages)
            enough = reached(counts, numbers, groups.documents[best[:taken]], depth)
        taken = enough or taken
        documents = groups.documents[best[:taken]]
        files = int(np.count_nonzero(np.diff(groups.documents))) + 1 if len(groups.documents) else 0
        return GrepAnswer(
            tuple(passages[:taken]), numbers[:taken], documents, files, len(groups.lines), complete, taken == len(best)
        )

    def _matched(self, pattern: GrepPattern, allowed: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """A pattern's matched lines in allowed documents, ascending: all, or the first `most_lines` + 1."""
        documents = None if allowed is None else np.flatnonzero(allowed)
        return scan(self._text, documents, pattern, self._most_lines + 1, self._pool)
