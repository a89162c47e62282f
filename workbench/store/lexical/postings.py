"""Where things occur: the records, and how often in each, for terms, phrases and prefixes, read from DuckDB when asked.

Whatever a principal may see, these are the postings over all records; the caller drops hidden ones. That is enough for a
hidden record to change nothing: how often a phrase or a word with some prefix occurs in one record depends on that record alone.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from workbench.store.database import Database, fetch_arrow
from workbench.store.lexical import tokens
from workbench.store.lexical.build import expanded
from workbench.store.lexical.query import Matcher, Path, Step

CACHE_BYTES = 64_000_000
"""Postings that are kept, of one generation."""

_SPAN_MASK = (1 << tokens.SPAN_BITS) - 1

Int64s = NDArray[np.int64]


class Postings(NamedTuple):
    """`records` int32, ascending; `tfs` int32, at least 1, in the same order."""

    records: NDArray[np.int32]
    tfs: NDArray[np.int32]


class ReadsPostings(Protocol):
    """What BM25 reads: `PostingsReader`, or what masks some texts before it (`access.redaction`)."""

    def read(self, matchers: Collection[Matcher]) -> dict[Matcher, Postings]:
        """Records that each matcher occurs in, and how often: for a phrase, at how many places it ends."""


class _Word(NamedTuple):
    """One row: the postings of a word, and where they have been read the places of all its occurrences."""

    records: NDArray[np.int32]
    tfs: NDArray[np.int32]
    places: NDArray[np.int32]


_NONE = Postings(np.zeros(0, np.int32), np.zeros(0, np.int32))


class PostingsReader:
    """Postings of matchers, each term fetched once while it is kept. Safe from several threads."""

    def __init__(self, database: Database | Any) -> None:
        self._database = database
        self._kept: LRUCache[object, Any] = LRUCache(CACHE_BYTES, getsizeof=_bytes)
        self._lock = threading.Lock()

    def read(self, matchers: Collection[Matcher]) -> dict[Matcher, Postings]:
        """Records that each matcher occurs in, and how often: for a phrase, at how many places it ends."""
        with self._lock:
            found = {m: self._kept[m] for m in matchers if m in self._kept}
        missing = [m for m in dict.fromkeys(matchers) if m not in found]
        terms = {m.term for m in missing if m.term is not None}
        longer = {term for m in missing if m.term is None for step in m.steps for path in step for term in path}
        places = self._fetch(longer, "positions") if longer else {}
        words = self._fetch(terms - longer, "NULL::INTEGER[]") if terms - longer else {}
        for m in missing:
            if m.term is not None:
                found[m] = _merged((words | places).get(m.term, ()))
            elif m.steps:
                found[m] = _phrase(m.steps, places)
            else:
                found[m] = self._prefix(m.prefix)
        with self._lock:
            for m in missing:
                if _bytes(found[m]) <= CACHE_BYTES:
                    self._kept[m] = found[m]
        return found

    def _fetch(self, terms: Collection[str], places: str) -> dict[str, list[_Word]]:
        """The words of each term."""
        marks = ", ".join("?" * len(terms))
        table = fetch_arrow(
            self._database,
            f"SELECT term, records, tfs, {places} AS positions FROM postings WHERE term IN ({marks})",
            sorted(terms),
        )
        found: dict[str, list[_Word]] = {}
        columns = zip(*(_lists(table[name]) for name in ("records", "tfs", "positions")), strict=True)
        for term, word in zip(table["term"].to_pylist(), columns, strict=True):
            found.setdefault(term, []).append(_Word(*word))
        return found

    def _prefix(self, prefix: str) -> Postings:
        table = fetch_arrow(
            self._database,
            "SELECT records, tfs FROM postings WHERE starts_with(word, ?)",
            [prefix.encode("utf-8", "replace").decode()],
        )
        empty = np.zeros(0, np.int32)
        columns = zip(*(_lists(table[name]) for name in ("records", "tfs")), strict=True)
        return _merged([_Word(records, tfs, empty) for records, tfs in columns])


def _bytes(value: Postings) -> int:
    return 200 + value.records.nbytes + value.tfs.nbytes


def _lists(column: Any) -> list[NDArray[np.int32]]:
    """A column of lists as one array a row; empty ones for NULL."""
    return [row.values.to_numpy() if row.is_valid else np.zeros(0, np.int32) for row in column]


def _merged(words: Sequence[_Word]) -> Postings:
    """The postings of several words as one."""
    if len(words) < 2:
        return Postings(words[0].records, words[0].tfs) if words else _NONE
    records = np.concatenate([word.records for word in words])
    order = np.argsort(records, kind="stable")
    records = records[order]
    first = np.flatnonzero(np.r_[True, records[1:] != records[:-1]])
    tfs = np.concatenate([word.tfs for word in words])[order]
    return Postings(records[first], np.add.reduceat(tfs, first))


# --- phrases ----------------------------------------------------------------------------------------------------------


def _phrase(steps: Sequence[Step], words: dict[str, list[_Word]]) -> Postings:
    candidates = _candidates(steps, words)
    state: Int64s | None = None
    for step in steps:
        state = union([_advance(path, words, candidates, state) for path in step])
        if not len(state):
            return _NONE
    assert state is not None
    tfs = np.bincount(state >> 32, minlength=len(candidates))
    found = np.flatnonzero(tfs)
    return Postings(candidates[found], tfs[found].astype(np.int32))


def _candidates(steps: Sequence[Step], words: dict[str, list[_Word]]) -> NDArray[np.int32]:
    """Records that hold the terms of some path of every step."""
    records = {term: _merged(rows).records for term, rows in words.items()}
    posted = [[[records.get(term, _NONE.records) for term in path] for path in step] for step in steps]
    posted.sort(key=lambda step: sum(min(map(len, path)) for path in step))
    candidates: NDArray[np.int32] = union([min(path, key=len) for path in posted[0]])
    for step in posted:
        holds = np.zeros(len(candidates), bool)
        for path in step:
            every = np.ones(len(candidates), bool)
            for found in path:
                every &= contains(found, candidates)
            holds |= every
        candidates = candidates[holds]
    return candidates


def _advance(path: Path, words: dict[str, list[_Word]], candidates: NDArray[np.int32], state: Int64s | None) -> Int64s:
    """From the places where the next word must start to those after the path; None: it may start anywhere."""
    for term in path:
        found = [_places(word, candidates) for word in words.get(term, ())]
        if not found:
            return np.zeros(0, np.int64)
        starts, spans = (np.concatenate(column) for column in zip(*found, strict=True))
        if state is not None:
            here = contains(state, starts)
            starts, spans = starts[here], spans[here]
        state = union([np.sort(starts + spans)])
    return state if state is not None else np.zeros(0, np.int64)


def _places(word: _Word, candidates: NDArray[np.int32]) -> tuple[Int64s, Int64s]:
    """Where a word starts in the candidates (index of the candidate << 32 | position), and its spans."""
    held = np.flatnonzero(contains(word.records, candidates))
    at = np.searchsorted(word.records, candidates[held])
    first = np.cumsum(word.tfs, dtype=np.int64) - word.tfs
    owner, entries = expanded(first[at], word.tfs[at])
    places = word.places[entries].astype(np.int64)
    return held[owner] << 32 | (places >> tokens.SPAN_BITS), (places & _SPAN_MASK) + 1


def contains(sorted_values: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.bool_]:
    """For each wanted value, whether it is among the sorted ones."""
    if not len(sorted_values):
        return np.zeros(len(wanted), bool)
    at = np.searchsorted(sorted_values, wanted)
    at[at == len(sorted_values)] = 0
    found: NDArray[np.bool_] = sorted_values[at] == wanted
    return found


def union(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The distinct values of one or more ascending arrays, ascending."""
    # Sorting beats np.unique's hash table several times on what is nearly sorted.
    values = np.sort(np.concatenate(parts), kind="stable") if len(parts) > 1 else parts[0]
    return values[np.r_[True, values[1:] != values[:-1]]] if len(values) else values
