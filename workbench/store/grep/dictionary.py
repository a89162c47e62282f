"""Reads grep's dictionary: which words match, and on which lines they stand.

Nothing is loaded when it opens: words, their places and their lines are mapped arrays. A literal is found through its
rarest three bytes, without reading the words; anything else is run over the words by RE2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.store.generations import damaged
from workbench.store.grep import re2_syntax
from workbench.store.grep.build import lower_bytes
from workbench.store.grep.pattern import compile_re2, matcher
from workbench.store.grep.re2_syntax import Fragment, Needs
from workbench.store.grep.text import load_array, map_bytes

MOST_WORDS = 20_000
"""RE2 stops looking for words beyond this many: scanning the text is then no slower."""

MOST_POSTINGS = 3_000_000
"""Word occurrences beyond this are not gathered, for the same reason."""

ENOUGH = 500
"""With this few candidate lines left, further conditions cost more than they save."""

MOST_FRAGMENTS = 4
MOST_PARTS = 8

# The only characters beyond ASCII that are a case of an ASCII letter: the Kelvin sign and the long s.
_ODD_CASES = ("\u212a".encode(), "\u017f".encode())


class WordDictionary:
    """The dictionary of a generation, read-only; safe from several threads.

    Args:
        folder: Where `build_dictionary` wrote.
        lines_total: Number of lines of the text file.

    Raises:
        CorpusDamaged: A file is missing, or the files do not fit each other.
    """

    def __init__(self, folder: Path | str, lines_total: int) -> None:
        folder = Path(folder)
        self._data = map_bytes(folder / "words.bin")
        self._bytes = np.frombuffer(self._data, np.uint8)
        self._starts = load_array(folder / "word_starts.npy")
        self._postings = load_array(folder / "word_postings.npy")
        self._lines = load_array(folder / "word_lines.npy")
        self._grams = load_array(folder / "word_grams.npy")
        self._gram_keys = load_array(folder / "gram_keys.npy")
        self._gram_starts = load_array(folder / "gram_starts.npy")
        self._lines_total = lines_total
        fits = len(self._starts) == len(self._postings) and int(self._postings[-1]) == len(self._lines)
        if not fits or not int(self._starts[-1]) == len(self._data) == len(self._grams):
            raise damaged(folder / "words.bin", "does not fit its places")
        self._odd_words = self._numbers(np.concatenate([self._places(odd, False) for odd in _ODD_CASES]))

    def __len__(self) -> int:
        """Number of distinct words."""
        return len(self._starts) - 1

    def lines(self, needs: Needs, ignore: bool) -> NDArray[np.int64] | None:
        """Lines that hold what a pattern needs.

        Args:
            needs: What was read from the pattern.
            ignore: Whether case is ignored.

        Returns:
            int64 line numbers of the text file, ascending, each once: at least all those that match, and exactly those
            for a pattern that matches inside words. None: too many, or too costly to find out.
        """
        if isinstance(needs, Fragment):
            words = self.words(needs, ignore)
            return None if words is None else self._gather(words)
        if isinstance(needs, re2_syntax.Any):
            if len(needs.parts) > MOST_PARTS:
                return None
            parts = [self.lines(part, ignore) for part in needs.parts]
            known = [part for part in parts if part is not None]
            return unique(np.concatenate(known)) if len(known) == len(parts) else None
        found: NDArray[np.int64] | None = None
        for part in sorted(needs.parts, key=_promise)[:MOST_FRAGMENTS]:
            lines = self.lines(part, ignore)
            if lines is not None:
                found = lines if found is None else _common(found, lines)
            if found is not None and len(found) <= ENOUGH:
                break
        return found

    def words(self, fragment: Fragment, ignore: bool) -> NDArray[np.int64] | None:
        """Numbers of the words that a fragment matches, ascending; None where RE2 has to look and they are too many."""
        literal = fragment.literal.encode("utf-8")
        if not literal or (ignore and not literal.isascii()):
            return self._matching(fragment, ignore)
        places = self._places(b"\n" * fragment.start + literal + b"\n" * fragment.end, ignore)
        words = self._numbers(places + fragment.start)
        if not ignore or not len(self._odd_words):
            return words
        odd = self._matching(fragment, ignore, self._odd_words)
        return None if odd is None else unique(np.concatenate((words, odd)))

    def _matching(
        self, fragment: Fragment, ignore: bool, among: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64] | None:
        """Words that RE2 finds, of all or some; None beyond `MOST_WORDS`."""
        text = f"{'^' if fragment.start else ''}(?:{fragment.text}){'$' if fragment.end else ''}"
        search = matcher(compile_re2(text, ignore))
        if among is not None:
            if len(among) > MOST_WORDS:
                return None
            ends = zip(self._starts[among].tolist(), (self._starts[among + 1] - 1).tolist(), strict=True)
            return among[np.array([search(self._data, *word)[0] >= 0 for word in ends], np.bool_)]
        at, size, found = 1, len(self._data), []
        while at < size:
            start, _ = search(self._data, at, size)
            if start < 0 or start >= size:
                break
            found.append(start)
            if len(found) > MOST_WORDS:
                return None
            at = self._data.find(b"\n", start) + 1
        return self._numbers(np.array(found, np.int64))

    def _places(self, literal: bytes, ignore: bool) -> NDArray[np.int64]:
        """Offsets at which bytes stand in the words."""
        small = literal.lower()
        best, span = (0, 0), (0, len(self._grams) + 1)
        for at in range(max(1, len(small) - 2)):
            gram = small[at : at + 3]
            low = int.from_bytes(gram.ljust(3, b"\x00"), "big")
            high = low + 256 ** (3 - len(gram))
            first, after = np.searchsorted(self._gram_keys, [low, high])
            first, after = int(self._gram_starts[first]), int(self._gram_starts[after])
            if after - first < span[1] - span[0]:
                best, span = (at, len(gram)), (first, after)
        places = self._grams[span[0] : span[1]].astype(np.int64) - best[0]
        places = places[(places >= 0) & (places + len(literal) <= len(self._bytes))]
        wanted = small if ignore else literal
        for position in range(len(literal)):
            known = best[0] <= position < best[0] + best[1]
            if not len(places) or (known and (ignore or not chr(literal[position]).isalpha())):
                continue
            here = self._bytes[places + position]
            places = places[(lower_bytes(here) if ignore else here) == wanted[position]]
        return places

    def _numbers(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return unique(np.searchsorted(self._starts, places, side="right") - 1)

    def _gather(self, words: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Lines of any of these words."""
        firsts = self._postings[words]
        counts = self._postings[words + 1] - firsts
        total = int(counts.sum())
        if total > MOST_POSTINGS:
            return None
        if len(words) == 1:
            return self._lines[firsts[0] : firsts[0] + total].astype(np.int64)
        places = np.repeat(firsts - (np.cumsum(counts) - counts), counts) + np.arange(total)
        lines = self._lines[places]
        if total * 16 < self._lines_total:
            return unique(lines).astype(np.int64)
        seen = np.zeros(self._lines_total, np.bool_)
        seen[lines] = True
        return np.flatnonzero(seen)


def unique(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values, ascending (by sorting: faster here than numpy's own, which hashes)."""
    ordered = np.sort(values)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


def _common(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """What two ascending arrays share."""
    few, many = sorted((first, second), key=len)
    if not len(many):
        return few
    places = np.minimum(np.searchsorted(many, few), len(many) - 1)
    shared: NDArray[np.int64] = few[many[places] == few]
    return shared


def _promise(needs: Needs) -> tuple[int, int]:
    """Sorts what is likely rare first: long fragments, and those whose place in the word is known."""
    if isinstance(needs, Fragment):
        return (-(needs.length + 2 * (needs.start + needs.end)), 0)
    worst = max if isinstance(needs, re2_syntax.Any) else min
    return (worst(_promise(part)[0] for part in needs.parts), 1)
