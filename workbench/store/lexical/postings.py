"""Where a matcher occurs: the records, and how often in each, for terms, phrases and prefixes.

Whatever a principal may see, these are the postings over all records; the caller drops hidden ones. That is enough for a
hidden record to change nothing: how often a phrase or a word with some prefix occurs in one record depends on that record alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from workbench.store.lexical import tokens
from workbench.store.lexical.arrays import Arrays
from workbench.store.lexical.query import Matcher, Path, Step

_KEPT = 64
_KEPT_TERMS = 4096
_SPAN_MASK = (1 << tokens.SPAN_BITS) - 1

Int64s = NDArray[np.int64]


class Postings(NamedTuple):
    """`records` int32, ascending; `tfs` of any integer type, at least 1, in the same order."""

    records: NDArray[np.int32]
    tfs: NDArray[Any]


class ReadsPostings(Protocol):
    """What BM25 reads: `PostingsReader`, or what stands before it for a principal who sees masked texts."""

    def read(self, matcher: Matcher) -> Postings:
        """Records that a matcher occurs in, and how often."""


_NONE = Postings(np.zeros(0, np.int32), np.zeros(0, np.int32))


class PostingsReader:
    """Postings of matchers over mapped arrays. Safe from several threads; keeps the last phrases and prefixes."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self._kept: OrderedDict[Matcher, Postings] = OrderedDict()
        self._terms: dict[str, Postings] = {}
        self._lock = threading.Lock()

    def read(self, matcher: Matcher) -> Postings:
        """Records that a matcher occurs in, and how often: for a phrase, at how many places it ends."""
        term = matcher.term
        if term is not None:
            return self._term(term)
        with self._lock:
            if matcher in self._kept:
                self._kept.move_to_end(matcher)
                return self._kept[matcher]
        found = self._phrase(matcher.steps) if matcher.steps else self._prefix(matcher.prefix)
        with self._lock:
            self._kept[matcher] = found
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found

    def _term(self, term: str) -> Postings:
        found = self._terms.get(term)
        if found is None:
            number = self.arrays.terms.find(term)
            found = self._numbered(number) if number >= 0 else _NONE
            if len(self._terms) >= _KEPT_TERMS:
                self._terms = {}
            self._terms[term] = found
        return found

    def _numbered(self, number: int) -> Postings:
        a = self.arrays
        start, end = a.term_starts[number : number + 2].tolist()
        return Postings(a.records[start:end], a.tfs[start:end])

    # --- prefixes -----------------------------------------------------------------------------------------------------

    def _prefix(self, prefix: str) -> Postings:
        a = self.arrays
        low, high = a.words.starting_with(prefix)
        if low == high:
            return _NONE
        terms = a.word_terms[low:high]
        own = a.word_starts[low + 1 : high + 1] - a.word_starts[low:high]
        alone = own == 0
        shared = _ranges(a.word_starts[low:high][~alone], own[~alone])
        lone = _ranges(a.term_starts[terms[alone]], a.term_starts[terms[alone] + 1] - a.term_starts[terms[alone]])
        records = np.concatenate((a.word_records[shared], a.records[lone]))
        tfs = np.concatenate((a.word_tfs[shared], a.tfs[lone]))
        total = np.bincount(records, weights=tfs, minlength=0)
        numbers = np.flatnonzero(total)
        return Postings(numbers.astype(np.int32), total[numbers].astype(np.int32))

    # --- phrases ------------------------------------------------------------------------------------------------------

    def _phrase(self, steps: Sequence[Step]) -> Postings:
        candidates = self._candidates(steps)
        if not len(candidates):
            return _NONE
        state: Int64s | None = None
        for step in steps:
            state = union([self._advance(path, candidates, state) for path in step])
            if not len(state):
                return _NONE
        tfs = np.bincount(state >> 32, minlength=len(candidates))  # type: ignore[operator]  # there is at least one step
        found = np.flatnonzero(tfs)
        return Postings(candidates[found], tfs[found].astype(np.int32))

    def _candidates(self, steps: Sequence[Step]) -> NDArray[np.int32]:
        """Records that hold the terms of some path of every step."""
        posted = [[[self._term(term).records for term in path] for path in step] for step in steps]
        rarest = min(posted, key=lambda step: sum(min(map(len, path)) for path in step))
        shortest = [min(path, key=len) for path in rarest]
        candidates = union(shortest)
        for step in sorted(posted, key=lambda step: sum(min(map(len, path)) for path in step)):
            holds = np.zeros(len(candidates), bool)
            for path in step:
                every = np.ones(len(candidates), bool)
                for records in path:
                    every &= contains(records, candidates)
                holds |= every
            candidates = candidates[holds]
        return candidates

    def _advance(self, path: Path, candidates: NDArray[np.int32], state: Int64s | None) -> Int64s:
        """From the places where the next word must start to those after the path; None: it may start anywhere."""
        for term in path:
            starts, spans = self._places(term, candidates)
            if state is not None:
                here = contains(state, starts)
                starts, spans = starts[here], spans[here]
            state = _distinct(starts + spans)
        return state if state is not None else np.zeros(0, np.int64)

    def _places(self, term: str, candidates: NDArray[np.int32]) -> tuple[Int64s, Int64s]:
        """Where a term starts in the candidates (index of the candidate << 32 | position), and its spans."""
        a = self.arrays
        number = a.terms.find(term)
        if number < 0:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        records, tfs = self._numbered(number)
        at = np.searchsorted(records, candidates)
        held = np.flatnonzero(contains(records, candidates))
        at = at[held]
        counts = tfs.astype(np.int64)
        first = a.place_starts[number] + np.cumsum(counts) - counts
        places = a.places[_ranges(first[at], counts[at])].astype(np.int64)
        key = np.repeat(held << 32, counts[at]) | (places >> tokens.SPAN_BITS)
        return key, (places & _SPAN_MASK) + 1


def contains(sorted_values: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.bool_]:
    """For each wanted value, whether it is among the sorted ones."""
    if not len(sorted_values):
        return np.zeros(len(wanted), bool)
    at = np.searchsorted(sorted_values, wanted)
    at[at == len(sorted_values)] = 0
    found: NDArray[np.bool_] = sorted_values[at] == wanted
    return found


def _ranges(starts: NDArray[Any], counts: NDArray[Any]) -> Int64s:
    """The numbers start, start + 1, ... of every range, one range after the other."""
    counts = counts.astype(np.int64)
    before = np.cumsum(counts) - counts
    return np.repeat(starts.astype(np.int64) - before, counts) + np.arange(int(counts.sum()))


def union(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The distinct values of one or more ascending arrays, ascending."""
    return parts[0] if len(parts) == 1 else _distinct(np.concatenate(parts))


def _distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Distinct values, ascending. Sorting beats np.unique's hash table several times on what is nearly sorted."""
    values = np.sort(values, kind="stable")
    first = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values[first]
