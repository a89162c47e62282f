"""Builds grep's dictionary: every word of the text file, whatever its length, and the lines that hold it.

The dictionary is what makes grep fast: the words of a corpus are a twentieth of its text, so a pattern that can only
match inside words is run over them instead, and their lines are read off. Lines rather than documents, because then a
plain word is answered, counted and ranked without reading any text at all. Words keep their case: RE2 itself decides
whether case matters, and there is no second notion of it to disagree with.

Memory stays flat: the text is read a slice at a time, each run of slices is sorted and written beside the target, and
the runs are merged; only one run's words are held at once. The same text gives the same bytes.

Files in the folder: `words.bin` (a newline, then each word in byte order followed by a newline), `word_starts.npy`
(int64, byte where each word starts, and the file's size), `word_postings.npy` (int64, where each word's lines start, and
their number at the end), `word_lines.npy` (int32, or int64 beyond 2^31 lines: line numbers in the file, ascending for
each word, each once), `word_grams.npy` (int32, or int64: every byte offset of `words.bin`, by the three bytes that stand
there, ASCII letters as small ones, then by offset), `gram_keys.npy` and `gram_starts.npy` (int64: the distinct three
bytes as numbers, and where each one's offsets start).
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.records import Progress
from workbench.store.grep.text import MappedText
from workbench.store.lexical.characters import TOKENS

RUN_BYTES = 1 << 25
"""Bytes of text whose words are sorted at once."""

_SLICE = 1 << 20
_BATCH = 1 << 20
_LINE_BITS = 36


class _Ids(dict[str, int]):
    """Numbers words in the order in which they first occur; the newline is 0."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


@dataclass(frozen=True, slots=True)
class _Run:
    """One sorted run on disk: its words, how many lines each has, and the lines."""

    words: Path
    counts: Path
    lines: Path


def build_dictionary(
    folder: Path | str,
    text: MappedText,
    progress: Callable[[Progress], None] | None = None,
    *,
    run_bytes: int = RUN_BYTES,
) -> int:
    """Write the dictionary of a text file.

    Args:
        folder: Where to write; made if it is missing; the text file's own folder will do.
        text: The text file.
        progress: Called after each slice with the bytes read, and once when all is written.
        run_bytes: Bytes of text in a run: what memory is proportional to.

    Returns:
        The number of distinct words.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    dtype = np.dtype(np.int32 if text.lines_total < 2**31 else np.int64)
    with tempfile.TemporaryDirectory(prefix=".runs-", dir=folder) as scratch:
        runs: list[_Run] = []
        ids, pairs, size = _Ids({"\n": 0}), [], 0
        for first_line, start, end in _slices(text):
            tokens = TOKENS.findall(text.data[start:end].decode("utf-8"))
            numbers = np.fromiter(map(ids.__getitem__, tokens), np.int64, len(tokens))
            del tokens
            lines = np.cumsum(numbers == 0) + first_line
            words = numbers > 0
            pairs.append(numbers[words] << _LINE_BITS | lines[words])
            size += end - start
            if size >= run_bytes:
                runs.append(_write_run(Path(scratch), len(runs), ids, pairs, dtype))
                ids, pairs, size = _Ids({"\n": 0}), [], 0
            if progress is not None:
                progress(Progress("dictionary", end, text.bytes))
        if len(ids) > 1:
            runs.append(_write_run(Path(scratch), len(runs), ids, pairs, dtype))
        words_total = _merge(folder, runs, dtype)
    _write_grams(folder)
    if progress is not None:
        progress(Progress("dictionary", text.bytes, text.bytes))
    return words_total


def _slices(text: MappedText) -> Iterator[tuple[int, int, int]]:
    """Whole lines of about a megabyte: number of the first line, first and last byte."""
    starts, line = text.line_starts, 0
    while line < text.lines_total:
        start = int(starts[line])
        after = int(np.searchsorted(starts, start + _SLICE, side="right")) - 1
        after = max(after, line + 1)
        yield line, start, int(starts[after])
        line = after


def _write_run(scratch: Path, number: int, ids: _Ids, pairs: list[NDArray[np.int64]], dtype: np.dtype[Any]) -> _Run:
    """Sort a run by word and line, and write it."""
    del ids["\n"]
    encoded = [word.encode("utf-8") for word in ids]
    order = sorted(range(len(encoded)), key=encoded.__getitem__)
    rank = np.zeros(len(encoded) + 1, np.int64)
    rank[np.array(order, np.int64) + 1] = np.arange(len(encoded))
    keys = np.concatenate(pairs)
    keys = rank[keys >> _LINE_BITS] << _LINE_BITS | keys & ((1 << _LINE_BITS) - 1)
    keys.sort()
    keys = keys[np.concatenate((keys[:1] >= 0, keys[1:] != keys[:-1]))]  # a word counts once in a line
    counts = np.bincount(keys >> _LINE_BITS, minlength=len(encoded)).astype(np.int64)
    run = _Run(scratch / f"{number}.words", scratch / f"{number}.counts", scratch / f"{number}.lines")
    run.words.write_bytes(b"".join(encoded[i] + b"\n" for i in order))
    counts.tofile(run.counts)
    (keys & ((1 << _LINE_BITS) - 1)).astype(dtype).tofile(run.lines)
    return run


def _merge(folder: Path, runs: list[_Run], dtype: np.dtype[Any]) -> int:
    """Merge sorted runs. Runs follow each other in the text, so a word's lines are its runs' lines in a row."""
    finals: list[list[int]] = [[] for _ in runs]
    starts: list[int] = []
    size = 1
    with (folder / "words.bin").open("wb") as out:
        out.write(b"\n")
        last = None
        streams = [_words(run.words, number) for number, run in enumerate(runs)]
        for word, number in heapq.merge(*streams):
            if word != last:
                starts.append(size)
                size += out.write(word)
                last = word
            finals[number].append(len(starts) - 1)
    np.save(folder / "word_starts.npy", np.array([*starts, size], np.int64))
    totals = np.zeros(len(starts), np.int64)
    places = [np.array(final, np.int64) for final in finals]
    for run, place in zip(runs, places, strict=True):
        totals[place] += np.fromfile(run.counts, np.int64)
    postings = np.concatenate(([0], np.cumsum(totals)))
    np.save(folder / "word_postings.npy", postings)
    shape = (int(postings[-1]),)
    if not shape[0]:
        np.save(folder / "word_lines.npy", np.zeros(0, dtype))
        return len(starts)
    target = np.lib.format.open_memmap(folder / "word_lines.npy", mode="w+", dtype=dtype, shape=shape)
    free = postings[:-1].copy()
    for run, place in zip(runs, places, strict=True):
        counts = np.fromfile(run.counts, np.int64)
        _scatter(run.lines, counts, free[place], target, dtype)
        free[place] += counts
    target.flush()
    return len(starts)


def _words(path: Path, number: int) -> Iterator[tuple[bytes, int]]:
    """A run's words in order; the closing newline stays, and sorts before every character of a word."""
    with path.open("rb") as file:
        for word in file:
            yield word, number


def _scatter(
    path: Path, counts: NDArray[np.int64], to: NDArray[np.int64], target: NDArray[Any], dtype: np.dtype[Any]
) -> None:
    """Put a run's lines, which stand word by word, where each word's lines go."""
    ends = np.cumsum(counts)
    with path.open("rb") as file:
        first = done = 0
        while first < len(counts):
            last = max(first + 1, int(np.searchsorted(ends, done + _BATCH, side="right")))
            part = counts[first:last]
            lines = np.fromfile(file, dtype, int(part.sum()))
            before = np.cumsum(part) - part
            target[np.repeat(to[first:last] - before, part) + np.arange(len(lines))] = lines
            done = int(ends[last - 1])
            first = last


def lower_bytes(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Bytes with ASCII capitals made small."""
    return np.where((data >= 65) & (data <= 90), data | 32, data)


def _write_grams(folder: Path) -> None:
    """Sort the offsets of `words.bin` by what stands there, one first byte at a time to keep memory flat."""
    data = np.fromfile(folder / "words.bin", np.uint8)
    dtype = np.int32 if len(data) < 2**31 else np.int64
    small = np.append(lower_bytes(data), np.array([10, 10], np.uint8))
    target = np.lib.format.open_memmap(folder / "word_grams.npy", mode="w+", dtype=dtype, shape=(len(data),))
    keys, starts, done = [], [], 0
    for first in range(256):
        places = np.flatnonzero(small[:-2] == first)
        if not len(places):
            continue
        rest = small[places + 1].astype(np.uint16) << 8 | small[places + 2]
        order = np.argsort(rest, kind="stable")
        target[done : done + len(places)] = places[order]
        sorted_rest = rest[order]
        cuts = np.concatenate(([0], np.flatnonzero(np.diff(sorted_rest)) + 1))
        keys.append(sorted_rest[cuts].astype(np.int64) | first << 16)
        starts.append(cuts + done)
        done += len(places)
    target.flush()
    np.save(folder / "gram_keys.npy", np.concatenate(keys))
    np.save(folder / "gram_starts.npy", np.append(np.concatenate(starts), done))
