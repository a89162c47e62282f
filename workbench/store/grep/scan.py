"""Finds matching lines by running RE2 over the text.

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
from concurrent.futures import Executor, Future

import numpy as np
from numpy.typing import NDArray

from workbench.errors import QueryError
from workbench.store.grep.pattern import GrepPattern
from workbench.store.grep.text import MappedText

MOST_SECONDS = 30.0
"""Longest time that one pattern may take."""

_BLOCK_BYTES = 1 << 21
_SMALL_PROGRAM = 1000
_AHEAD = 4
_AT_ONCE = 256
_DENSE = 512
"""Bytes a match: with more matches than this, threads only wait for each other."""


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
