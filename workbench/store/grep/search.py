"""grep over a generation: passages of lines around matches, in whole documents, with RE2's semantics.

A search goes three steps. *Which lines match*, for each pattern: RE2 scans the allowed documents (`scan`). *Which passages*:
arithmetic on line numbers (`group`). *What they show*: text is read for the best `depth` of them only. One rule bounds an answer:
of each pattern, the first `MOST_LINES` matched lines are taken, in document number order (path order) and line order within the
allowed documents; passages, scores and counts are over those, and `complete` is False if there were more. Documents that the
scope hides are left out before a line is counted, so they change nothing.

The allowed documents are scanned in two threads (RE2 lets go of the interpreter while it searches). Where every match holds some
text, that is looked for, and only the lines that hold it are searched with the pattern; where case is ignored, in the copy of
the text in small letters, because RE2 looks for fixed bytes several times as fast. Either way gives the same lines, in order.

RE2 is linear in the text but, for patterns that defeat its automaton, by a factor as large as the pattern. A search that
takes too long ends with an error that says so; it never ends with part of an answer.
"""

from __future__ import annotations

import copy
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, islice, pairwise
from pathlib import Path

import numpy as np

from workbench.errors import QueryError, UsageError
from workbench.records import Passage, Span, joined
from workbench.store.arrays import Columns
from workbench.store.grep.pattern import GrepPattern, matches, prepare
from workbench.store.grep.text import MappedText
from workbench.store.types import Floats, GrepAnswer, Ints, Scope, Texts

MOST_SECONDS = 30.0
"""Longest time that one pattern may take."""

MOST_LINES = 50_000
"""Matched lines of one pattern that are ranked: the first ones in (path, line) order."""

MOST_PATTERNS = 100

LINE_CHARACTERS = 1000
"""A longer line is cut: a line of context at its end, a matched line around its first match."""

BEFORE_MATCH = 200
"""Characters kept before the first match of a line that is cut."""

PASSAGE_CHARACTERS = 8000
"""A passage whose text is longer ends after the line that crosses this, never before its first matched line."""

ELLIPSIS = "…"

_THREADS = 2
_AT_ONCE = 8
_BLOCK_BYTES = 1 << 21
_SMALL_PROGRAM = 1000
_TWO_CASES = frozenset(b"ks")  # with the Kelvin sign and the long s, which are two bytes and three
_SAMPLE = 1 << 17
_DENSE = 1 << 15
"""Bytes a match: with more matches than this, threads wait for each other longer than they search."""

# Later matches of a line that is cut are looked for this far beyond what is shown of it, so that a pattern that reads on
# to the end of the line costs no more for each of its matches.
_SLACK_BYTES = 1 << 16


def scan(text: MappedText, documents: Ints | None, pattern: GrepPattern, most: int, pool: Executor) -> Ints:
    """The first `most` matching lines of some documents (ascending; None: all): int64 line numbers in the file, ascending.
    Blocks are searched in `pool`. Raises QueryError where it takes too long.
    """
    blocks = _blocks(text, documents, max(1 << 14, _BLOCK_BYTES // max(1, pattern.program // _SMALL_PROGRAM)))
    deadline = time.monotonic() + MOST_SECONDS
    lines = np.zeros(0, np.int64)
    first = list(islice(blocks, 1))
    some, dense, pair = first, True, -1
    while some and len(lines) < most:
        search = partial(_scan_block, text, pattern, most - len(lines))
        if pair >= 0:
            search = partial(_scan_fixed, text, pattern, pair)
        found = map(search, some) if dense and pair < 0 else pool.map(search, some)
        lines = np.concatenate([lines, *found])
        if time.monotonic() > deadline:
            raise QueryError(
                f"The pattern {pattern.source[:60]!r} takes longer than {MOST_SECONDS:g} seconds on this corpus",
                "Use smaller repetitions, or a word that the lines must hold",
            )
        if some is first:
            dense = len(lines) * _DENSE > sum(end - start for start, end in first[0])
            pair = _rarest_pair(text, pattern, first[0][0]) if dense else -1
        some = list(islice(blocks, 1 if dense and pair < 0 else _AT_ONCE))
    return lines[:most]


def _rarest_pair(text: MappedText, pattern: GrepPattern, run: tuple[int, int]) -> int:
    """Where in fixed text the two neighbouring bytes are that a run of bytes holds least often, neither k nor s where case is
    ignored; -1 where there are none."""
    fixed, sample = (
        pattern.fixed,
        (text.lowered if pattern.ignore else text.data)[run[0] : min(run[1], run[0] + _SAMPLE)],
    )
    pairs = [n for n in range(len(fixed) - 1) if not (pattern.ignore and set(fixed[n : n + 2]) & _TWO_CASES)]
    return min(pairs, key=lambda n: sample.count(fixed[n : n + 2]), default=-1)


def _scan_fixed(text: MappedText, pattern: GrepPattern, pair: int, block: Sequence[tuple[int, int]]) -> Ints:
    """The matching lines of a block for fixed text that many lines hold: no step of it is taken line by line."""
    fixed, held = pattern.fixed, np.frombuffer(text.lowered if pattern.ignore else text.data, np.uint8)
    odd: list[Ints] = []
    found = []
    for first, end in block:
        data = held[first:end]
        at = np.flatnonzero((data[:-1] == fixed[pair]) & (data[1:] == fixed[pair + 1])) + first
        at = at[(at - pair >= first) & (at - pair + len(fixed) <= end)]
        # Byte by byte to both sides of the pair.
        for place in (*range(pair + 2, len(fixed)), *range(pair - 1, -1, -1)):
            seen = held[at + (place - pair)]
            if pattern.ignore and fixed[place] in _TWO_CASES:
                odd.append(at[seen >= 0x80])
            at = at[seen == fixed[place]]
        found.append(at)
    lines = np.unique(text.line_of(np.concatenate(found)))
    # A character of several bytes may be a k or an s: the pattern itself tells.
    for line in np.setdiff1d(text.line_of(np.concatenate([*odd, lines[:0]])), lines).tolist():
        start, after = text.line_starts[line : line + 2].tolist()
        if pattern.search(text.data, start, after - 1)[0] >= 0:
            lines = np.append(lines, line)
    return np.sort(lines)


def _scan_block(text: MappedText, pattern: GrepPattern, most: int, block: Sequence[tuple[int, int]]) -> Ints:
    """The matching lines in runs of bytes that are whole lines; at most `most`."""
    search, needs, data = pattern.search, pattern.needs, text.data
    held = text.lowered if pattern.ignore else data
    size = sum(end - first for first, end in block)
    tried = 0
    found: list[int] = []
    for first, end in block:
        at = first
        while at < end and len(found) < most:
            start, stop = search(data, at, end) if needs is None else needs(held, at, end)
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
    return text.line_of(np.array(found, np.int64))


def _blocks(text: MappedText, documents: Ints | None, block_bytes: int) -> Iterator[list[tuple[int, int]]]:
    """Runs of neighbouring documents, cut at lines and put together to blocks of about that size, in order."""
    numbers = np.arange(len(text)) if documents is None else documents
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1) if len(numbers) else []
    starts = text.line_starts
    block: list[tuple[int, int]] = []
    room = block_bytes
    for run in runs:
        line, after = int(text.first_lines[run[0]]), int(text.first_lines[run[-1] + 1])
        while line < after:
            start = int(starts[line])
            line = min(max(int(np.searchsorted(starts, start + room, side="right")) - 1, line + 1), after)
            block.append((start, int(starts[line])))
            room -= block[-1][1] - start
            if room <= block_bytes // 4:
                yield block
                block, room = [], block_bytes
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

    lines: Ints
    first: Ints
    after: Ints
    documents: Ints
    scores: Floats


def group(text: MappedText, matched: Sequence[Ints], context: int) -> Groups:
    """Join matched lines of one document that lie within 2 x context lines of each other; `matched` are each pattern's lines."""
    lines = np.unique(np.concatenate(matched))
    documents = text.document_of(lines)
    breaks = (np.diff(lines) > 2 * context) | (np.diff(documents) != 0)
    first = np.flatnonzero(np.r_[True, breaks]) if len(lines) else np.zeros(0, np.int64)
    after = np.append(first[1:], len(lines))[: len(first)]
    distinct = np.zeros(len(first), np.int64)
    for own in matched:
        distinct[np.unique(np.searchsorted(first, np.searchsorted(lines, own), side="right") - 1)] += 1
    n = after - first
    return Groups(lines, first, after, documents[first], np.asarray(distinct + n / (n + 1), np.float64))


def reached(counts: str, records: Ints, documents: Ints, depth: int) -> int:
    """How many passages, best first, take a depth (at least 1) that counts `passages`, `chunks` or `documents`; 0 if these
    are too few. `records`, int64 (m,), is the record that stands for each passage: -1, for none, counts as no chunk and no
    document.
    """
    if counts == "passages":
        return depth if len(records) >= depth else 0
    known = np.flatnonzero(records >= 0)
    _, first = np.unique((records if counts == "chunks" else documents)[known], return_index=True)
    return int(np.sort(known[first])[depth - 1]) + 1 if len(first) >= depth else 0


class MappedGrep:
    """grep over a generation's texts (those in the folder that `build_text` wrote, or of another store) and the arrays of its
    records; read-only, safe from several threads. `most_lines` matched lines of one pattern are ranked. Raises CorpusDamaged
    where a file is missing or its arrays do not fit each other, UsageError where the two are not of one generation.
    """

    _text: MappedText
    """What one search reads: it is set on a copy."""

    def __init__(self, texts: Path | Texts, columns: Columns, *, most_lines: int = MOST_LINES) -> None:
        self._texts: Texts = MappedText(texts) if isinstance(texts, Path) else texts
        self._columns = columns
        self._most_lines = most_lines
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="grep")
        if columns.documents_total != len(self._texts):
            raise UsageError(
                f"The arrays hold {columns.documents_total} documents and the text file {len(self._texts)}",
                "Name folders of one generation",
            )

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def text(self, document_number: int) -> str:
        return self._texts.text(document_number)

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
        """Passages where any pattern matches, in the documents that the scope allows: the best, score down, then document
        number up, then line up; files and lines are those found before the depth was applied.

        Args:
            patterns: Text that stands for itself, or regular expressions in RE2's syntax (`regex`). Repeated ones count once.
            scope: What may be returned; only its `allowed` masks are used.
            depth: Most passages returned, or chunks or documents that they stand for, as `counts` says. A search at a smaller
                depth gives the beginning of a deeper one.
            case: `smart` (each pattern: sensitive only if it has a capital), `sensitive` or `ignore`.
            word: Match whole words only.
            context: Lines shown before and after a matched line.

        Raises QueryError where there is no pattern, one is empty, there are too many, RE2 refuses one, or one takes too long.
        """
        distinct = list(dict.fromkeys(patterns))
        if not distinct:
            raise QueryError("There is no pattern to look for", "Give at least one word or pattern")
        if len(distinct) > MOST_PATTERNS:
            raise QueryError(f"There are {len(distinct)} patterns", f"Give at most {MOST_PATTERNS}")
        prepared = [prepare(pattern, regex=regex, case=case, word=word) for pattern in distinct]
        allowed = None if scope.allowed_documents is None else np.flatnonzero(scope.allowed_documents)
        here = copy.copy(self)
        here._text = text = self._texts.holding(prepared, allowed)
        # One line more than is ranked tells whether there are more.
        lines = [scan(text, allowed, pattern, self._most_lines + 1, self._pool) for pattern in prepared]
        shown = [here._shown(pattern, own[: self._most_lines]) for pattern, own in zip(prepared, lines, strict=True)]
        groups = group(text, shown, context)
        best = np.argsort(-groups.scores, kind="stable")
        documents = groups.documents[best]
        passages: list[Passage] = []
        records, taken = np.zeros(0, np.int64), 0
        while len(passages) < len(best) and not taken:
            # Several passages may stand for one chunk or document: texts are read until there are enough of those.
            more = best[len(passages) : max(depth, len(passages) * 5 // 4 + 16)]
            made = [here._passage(groups, int(one), prepared, context, scope) for one in more]
            passages += [passage for passage, _ in made]
            records = np.append(records, np.array([record for _, record in made], np.int64))
            taken = reached(counts, records, documents[: len(passages)], depth)
        taken = taken or len(passages)
        return GrepAnswer(
            tuple(passages[:taken]),
            records[:taken],
            documents[:taken],
            files=len(np.unique(documents)),
            lines=len(groups.lines),
            complete=text.complete and all(len(own) <= self._most_lines for own in lines),
            exhausted=taken == len(best),
        )

    def _shown(self, pattern: GrepPattern, lines: Ints) -> Ints:
        """Those of a pattern's matched lines that may be known: all, where nothing is masked."""
        return lines

    def _line_texts(self, document: int, first: int, last: int) -> Iterator[bytes]:
        """The bytes of lines `first` to `last` (numbers in the file) of a document, without their newlines."""
        starts = self._text.line_starts[first : last + 2].tolist()
        return (self._text.data[start : end - 1] for start, end in pairwise(starts))

    def _passage(
        self, groups: Groups, number: int, patterns: Sequence[GrepPattern], context: int, scope: Scope
    ) -> tuple[Passage, int]:
        """A group as a passage with its text, and the record that stands for it (-1: none)."""
        text, columns = self._text, self._columns
        document = int(groups.documents[number])
        base, end = text.first_lines[document : document + 2].tolist()
        matched: list[int] = groups.lines[groups.first[number] : groups.after[number]].tolist()
        first, last = max(base, matched[0] - context), min(end - 1, matched[-1] + context)
        lines: list[str] = []
        spans: list[Span] = []
        match = whole = (0, 0)
        size, marked = 0, set(matched)
        held: list[bytes] = []
        places: list[int] = []
        for line, data in enumerate(self._line_texts(document, first, last), first):
            if line > matched[0] and size > PASSAGE_CHARACTERS:
                lines.append(ELLIPSIS)
                break
            if line == matched[0]:
                whole = text.line_span(document, line)
                first_byte, last_byte = _first_match(data, patterns)
                match = (whole[0] + len(data[:first_byte].decode()), whole[0] + len(data[:last_byte].decode()))
            if len(data) <= LINE_CHARACTERS:
                shown = data.decode()
                if line in marked:
                    held.append(data)
                    places.append(size)
            else:
                shown, found = _shown_line(data, patterns if line in marked else ())
                spans += [Span(size + low, size + high) for low, high in found]
            lines.append(shown)
            size += len(shown) + 1
        record = columns.holder(document, match, whole, scope.allowed)
        one = np.array([document])
        passage = Passage(
            document_id=columns.document_ids.take(one)[0],
            path=columns.paths.take(one)[0],
            start_line=first - base + 1,
            end_line=last - base + 1,
            text="\n".join(lines),
            matches=tuple(sorted(spans + _spans(held, places, patterns), key=lambda span: span.start)),
            matched_lines=tuple([line - base + 1 for line in matched]),
            score=float(groups.scores[number]),
            chunk_id=columns.chunk_ids.take(np.array([record]))[0],
            page=columns.page(document, match[0]),
            locator=columns.locator(document, *match),
        )
        return passage, record


def _first_match(data: bytes, patterns: Sequence[GrepPattern]) -> tuple[int, int]:
    found = (pattern.spans(data, 0, len(data)) for pattern in patterns)
    return min((match for match in found if match[0] >= 0), default=(0, 0))


def _spans(lines: Sequence[bytes], places: Sequence[int], patterns: Sequence[GrepPattern]) -> list[Span]:
    """The matches in some lines, which are searched end to end, as characters of a text that has the lines at `places`."""
    if not lines:
        return []
    whole = b"\n".join(lines)
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    found = [match for pattern in patterns for match in matches(whole, pattern.spans) if match[1] > match[0]]
    made = []
    for first, last in joined(found) if len(patterns) > 1 else found:
        n = bisect_right(starts, first) - 1
        before, match = whole[starts[n] : first], whole[first:last]
        low = places[n] + len(before.decode())
        made.append(Span(low, low + len(match.decode())))
    return made


def _shown_line(data: bytes, patterns: Sequence[GrepPattern]) -> tuple[str, list[tuple[int, int]]]:
    """A line as it is shown, cut if it has too many characters, and the matches in it, as characters of what is shown.

    Matches are joined where those of several patterns overlap; without patterns nothing is marked.
    """
    # A character is at most four bytes: no more of a huge line is decoded than can be shown.
    if len(data) <= 4 * LINE_CHARACTERS and len(text := data.decode()) <= LINE_CHARACTERS:
        return text, _marked(data, text, 0, patterns)
    if not patterns:
        return _decoded(data[: 4 * LINE_CHARACTERS])[: LINE_CHARACTERS - 1] + ELLIPSIS, []
    at = _first_match(data, patterns)[0]
    begin = at - len(_decoded(data[max(0, at - 4 * BEFORE_MATCH) : at])[-BEFORE_MATCH:].encode())
    room = LINE_CHARACTERS - 1 - (begin > 0)
    text, ending = _decoded(data[begin : begin + 4 * room])[:room], ELLIPSIS
    if begin + len(text.encode()) == len(data):
        # The line ends inside the window: as much of its end is shown as there is room for.
        text, ending = _decoded(data[-4 * LINE_CHARACTERS :])[-(LINE_CHARACTERS - 1) :], ""
        begin = len(data) - len(text.encode())
    before = ELLIPSIS if begin else ""
    spans = _marked(data, text, begin, patterns)
    return before + text + ending, [(low + len(before), high + len(before)) for low, high in spans]


def _decoded(data: bytes) -> str:
    """Bytes as text, without the characters that are cut at either end."""
    return data.decode("utf-8", "ignore")


def _marked(data: bytes, text: str, begin: int, patterns: Sequence[GrepPattern]) -> list[tuple[int, int]]:
    """Matches that begin in the part `text` of a line, which is at byte `begin`, cut to it; as characters of it."""
    shown = text.encode()
    end, found = begin + len(shown), []
    for pattern in patterns:
        for first, last in matches(data, pattern.spans, begin, min(len(data), end + _SLACK_BYTES)):
            if first >= end:
                break
            if last > first:
                found.append((first - begin, min(last, end) - begin))
    if len(patterns) > 1:
        found = joined(found)
    if len(shown) == len(text):
        return found
    return [(len(_decoded(shown[:first])), len(_decoded(shown[:last]))) for first, last in found]
