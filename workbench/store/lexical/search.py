"""BM25 over the postings in DuckDB, computed at query time, so that k1 and b are settings of a search and not of the index.

    score = sum over what the query counts of  weight x idf x tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length))
    idf   = ln(1 + (N - df + 0.5) / (df + 0.5))

(Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009; the idf is Lucene's, never negative.) A phrase or a
prefix counts as one word, with its own tf and df. N, df, mean length and the expansion of a prefix are taken over the records
that the principal may see and no others, so a hidden record changes no byte of an answer.

Scores are added up in one order, that of `ParsedQuery.scored`, in float64, so `score` gives the very bits that `search` gave, and
a corpus without the hidden records gives them too.

Whatever a principal may see, `PostingsReader` reads the postings over all records; the caller drops hidden ones. That is enough
for a hidden record to change nothing: how often a phrase or a word with some prefix occurs in one record depends on that record
alone.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from workbench.errors import QueryError
from workbench.records import Span
from workbench.store.database import Database, fetch_arrow, fetch_columns
from workbench.store.lexical import tokens
from workbench.store.lexical.build import expanded, made_alike
from workbench.store.lexical.query import Item, Matcher, ParsedQuery, Path, Step, highlight, needed, word_matcher
from workbench.store.lexical.synonyms import NONE, Vocabulary, read
from workbench.store.types import Floats, Ints, Occurring, QueryWords, Scope, Scored, WordScore

if TYPE_CHECKING:
    from workbench.store.records import StoredRecords

CACHE_BYTES = 64_000_000
"""Postings that are kept, of one generation."""

_SPAN_MASK = (1 << tokens.SPAN_BITS) - 1


class Postings(NamedTuple):
    """`records` int32, ascending; `tfs` int32, at least 1, in the same order."""

    records: NDArray[np.int32]
    tfs: NDArray[np.int32]


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
    """A column of lists as one array a row; empty ones for NULL. (Arrow's own `to_numpy` loads pandas where there is one.)"""
    made: list[NDArray[np.int32]] = []
    for chunk in column.chunks:
        data = chunk.values.buffers()[1]
        values = np.frombuffer(b"" if data is None else data, np.int32)[chunk.values.offset :]
        made += [values[start:end] for start, end in pairwise(chunk.offsets.to_pylist())]
    return made


def _merged(words: Sequence[_Word]) -> Postings:
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
    state: Ints | None = None
    for step in steps:
        state = union([_advance(path, words, candidates, state) for path in step])
        if not len(state):
            return _NONE
    assert state is not None
    tfs = np.bincount(state >> 32, minlength=len(candidates))
    found = np.flatnonzero(tfs)
    return Postings(candidates[found], tfs[found].astype(np.int32))


def _candidates(steps: Sequence[Step], words: dict[str, list[_Word]]) -> NDArray[np.int32]:
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


def _advance(path: Path, words: dict[str, list[_Word]], candidates: NDArray[np.int32], state: Ints | None) -> Ints:
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


def _places(word: _Word, candidates: NDArray[np.int32]) -> tuple[Ints, Ints]:
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


_SAMPLE = 8


class View(NamedTuple):
    """Statistics over what one principal may see."""

    visible: NDArray[np.bool_] | None
    records: int
    mean_length: float


class LexicalIndex:
    """BM25 over the words of one generation's records, in the tables that `lexical.build` made. Safe from several threads."""

    def __init__(self, database: Database | Any) -> None:
        self._database = database
        self._postings = PostingsReader(database)
        self._views: LRUCache[str, View] = LRUCache(8)
        self._lock = threading.Lock()
        self.vocabulary = NONE

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        found = fetch_columns(self._database, "SELECT number, length FROM lengths")
        made = np.zeros(len(found["number"]), np.int32)
        made[found["number"]] = found["length"]  # half the time of sorting them in the database
        return made

    @cached_property
    def older(self) -> bool:
        """Whether the texts were split into words by other rules than queries are now."""
        return not made_alike(self._database)

    def speaking(self, vocabulary: Vocabulary) -> LexicalIndex:
        """The same index, read with a corpus's own synonyms and stop words; caches are shared."""
        if vocabulary == self.vocabulary:
            return self
        _ = self.lengths  # read once for all copies
        other = copy.copy(self)
        other.vocabulary = vocabulary
        return other

    def shown_by(self, records: StoredRecords, made: Callable[[PostingsReader], PostingsReader]) -> LexicalIndex:
        """The same index over other postings: for a principal who sees some texts masked, as `records` shows them."""
        _ = self.lengths
        other = copy.copy(self)
        other._postings = made(self._postings)
        return other

    def search(self, query: str, scope: Scope, depth: int, *, k1: float, b: float, operator: str) -> Scored:
        """The best `depth` allowed records for a query in the query syntax. Raises QueryError."""
        total = self._scores(query, scope, k1, b, operator)
        numbers = np.flatnonzero(total > 0.0)
        mask = scope.allowed if scope.allowed is not None else scope.visible
        if mask is not None:
            numbers = numbers[mask[numbers]]
        scores = total[numbers]
        chosen = best(scores, depth)
        return Scored(numbers[chosen], scores[chosen], len(numbers))

    def score(self, query: str, scope: Scope, numbers: Ints, *, k1: float, b: float, operator: str) -> Floats:
        """BM25 of given records, float64 in the same order; 0 where no word occurs or the query excludes the record.

        For records that `search` returns it is bit-equal to the score there.
        """
        wanted = np.asarray(numbers, np.int64)
        scores = self._scores(query, scope, k1, b, operator)[wanted]
        if scope.visible is not None:
            scores[~scope.visible[wanted]] = 0.0
        return scores

    def word_scores(self, query: str, scope: Scope, number: int, *, k1: float, b: float) -> tuple[WordScore, ...]:
        """What each thing that the query counts adds to the BM25 of one visible record, in the order in which `search` adds it
        up; whether the query finds the record (operator, exclusions) is not asked. Raises QueryError.
        """
        parsed, view = read(query, self.vocabulary), self._view(scope)
        matchers = [matcher for matcher, _ in parsed.scored]
        counts, times = self.counts(matchers, scope), self.times(matchers, number)
        items = [item for items in parsed.required for item in items]
        typed = {matcher: item.text for item in reversed(items) for matcher, _ in (*item.beside, *item.scored)}
        length = self.lengths[[number]]
        norm = _norms(length, view.mean_length, k1, b)
        made = []
        for matcher, weight in parsed.scored:
            df, tf = counts[matcher], times[matcher]
            gained = float((tf * factor(df, weight, view, k1) / (tf + norm))[0]) if tf and df else 0.0
            numbers = (tf, df, view.records, _idf(df, view), weight)
            spread = (int(length[0]), view.mean_length, float(norm[0]))
            made.append(WordScore(typed.get(matcher, matcher.shown), matcher.shown, *numbers, *spread, gained, 0.0))
        total = reduce(add, (word.score for word in made), 0.0)
        return tuple(replace(word, share=word.score / total) if total else word for word in made)

    def upper_bound(self, query: str, scope: Scope, *, k1: float) -> float:
        """The most that BM25 could give: sum over the query's words of weight x idf x (k1 + 1).

        Words that no visible record holds can give nothing and are left out.
        """
        parsed, view = read(query, self.vocabulary), self._view(scope)
        counts = self.counts([matcher for matcher, _ in parsed.scored], scope)
        return sum((factor(counts[m], weight, view, k1) for m, weight in parsed.scored), 0.0)

    def occurring(self, query: str, scope: Scope) -> QueryWords:
        """Where each thing that a query asks for occurs among the allowed records. Raises QueryError."""
        parsed = read(query, self.vocabulary)
        held = self.where(matchers_of(parsed), scope)

        def found(matchers: Iterable[Matcher]) -> Ints:
            return union([held[matcher] for matcher in matchers])

        def one(item: Item, alone: bool, must: bool = True) -> Occurring:
            scored = item.scored if alone else item.scored + item.beside
            return Occurring(
                item.text,
                found([item.matcher]),
                found([item.matcher, *(matcher for matcher, _ in scored)]),
                tuple(found([matcher]) for matcher, _ in item.beside),
                must,
            )

        alternatives = tuple(
            tuple(one(i, len(items) == 1, i in needed(items)) for i in items) for items in parsed.required
        )
        return QueryWords(alternatives, tuple(one(item, True) for item in parsed.excluded))

    def frequencies(self, words: Sequence[str], scope: Scope) -> Ints:
        """Number of visible records that hold each word (as tokenised and stemmed), int64 in the same order.

        A text of several words is a phrase; one without any word has 0.
        """
        matchers = [word_matcher(word) for word in words]
        counts = self.counts([m for m in matchers if m is not None], scope)
        return np.array([counts[m] if m is not None else 0 for m in matchers], np.int64)

    def counts(self, matchers: Collection[Matcher], scope: Scope) -> dict[Matcher, int]:
        """In how many visible records each occurs."""
        posted, view = self._postings.read(matchers), self._view(scope)
        return {matcher: _frequency(found, view) for matcher, found in posted.items()}

    def times(self, matchers: Collection[Matcher], number: int) -> dict[Matcher, int]:
        """How often each occurs in a record."""
        posted = self._postings.read(matchers).items()
        return {matcher: int(found.tfs[found.records == number].sum()) for matcher, found in posted}

    def where(self, matchers: Collection[Matcher], scope: Scope) -> dict[Matcher, Ints]:
        """The allowed records in which each occurs, int64, ascending."""
        mask = scope.allowed if scope.allowed is not None else scope.visible
        found = {m: posted.records.astype(np.int64) for m, posted in self._postings.read(matchers).items()}
        return found if mask is None else {m: records[mask[records]] for m, records in found.items()}

    def highlight(self, query: str, text: str) -> tuple[Span, ...]:
        return highlight(read(query, self.vocabulary), text)

    def sql(self, query: str, *, k1: float, b: float, depth: int) -> str:
        """BM25 of the query's words over all records as one SQL statement, for people to read and run.

        Phrases, prefixes and what must or must not occur are computed from the rows and are named in a comment.
        """
        return _statement(read(query, self.vocabulary), k1, b, depth)

    def _scores(self, query: str, scope: Scope, k1: float, b: float, operator: str) -> Floats:
        """BM25 of every record, float64 (n,): 0 where the query does not find it; those of hidden records mean nothing."""
        parsed, view = read(query, self.vocabulary), self._view(scope)
        posted = self._postings.read(matchers_of(parsed))
        factors = [factor(_frequency(posted[m], view), weight, view, k1) for m, weight in parsed.scored]
        return bm25(parsed, posted, factors, self.lengths, view.mean_length, k1, b, operator)

    def _view(self, scope: Scope) -> View:
        visible = scope.visible
        key = scope.key if visible is not None else ""
        with self._lock:
            view = self._views.get(key)
        if view is None or view.visible is not visible:
            lengths = self.lengths if visible is None else self.lengths[visible]
            total = int(lengths.sum(dtype=np.int64))
            view = View(visible, len(lengths), total / len(lengths) if len(lengths) else 0.0)
            with self._lock:
                self._views[key] = view
        return view


def bm25(
    parsed: ParsedQuery,
    posted: Mapping[Matcher, Postings],
    factors: Sequence[float],
    lengths: NDArray[np.int32],
    mean_length: float,
    k1: float,
    b: float,
    operator: str,
) -> Floats:
    """BM25 of the records 0..n-1 whose `lengths` these are, float64 (n,): 0 where the query does not find it.

    Args:
        posted: Where among them, and how often, each of `matchers_of` occurs.
        factors: weight x idf x (k1 + 1) of each of `parsed.scored`.
    """
    if operator not in ("any", "all"):
        raise QueryError(f"There is no operator {operator!r}", "It is any or all")
    records, gained = [np.zeros(0, np.int32)], [np.zeros(0)]
    for (matcher, _), factor in zip(parsed.scored, factors, strict=True):
        found = posted[matcher]
        if factor:
            records.append(found.records)
            gained.append(found.tfs * factor / (found.tfs + _norms(lengths[found.records], mean_length, k1, b)))
    summed = np.bincount(np.concatenate(records), np.concatenate(gained), len(lengths))
    total = np.asarray(summed, np.float64)
    if operator == "all":
        kept = np.zeros(len(total), bool)
        for items in parsed.required:
            kept[_holding([posted[item.matcher].records for item in needed(items)])] = True
        total[~kept] = 0.0
    for item in parsed.excluded:
        total[posted[item.matcher].records] = 0.0
    return total


def matchers_of(parsed: ParsedQuery) -> list[Matcher]:
    """Everything of a query that has postings."""
    items = [item for items in (*parsed.required, parsed.excluded) for item in items]
    beside = [matcher for item in items for matcher, _ in (*item.scored, *item.beside)]
    return [*(matcher for matcher, _ in parsed.scored), *(item.matcher for item in items), *beside]


def _frequency(posted: Postings, view: View) -> int:
    return len(posted.records) if view.visible is None else int(np.count_nonzero(view.visible[posted.records]))


def _idf(df: int, view: View) -> float:
    """0 where no visible record has it."""
    return float(np.log(1.0 + (view.records - df + 0.5) / (df + 0.5))) if df else 0.0


def factor(df: int, weight: float, view: View, k1: float) -> float:
    """weight x idf x (k1 + 1)."""
    return weight * _idf(df, view) * (k1 + 1.0)


def _norms(lengths: NDArray[np.int32], mean_length: float, k1: float, b: float) -> Floats:
    return k1 * (1.0 - b + b * (lengths / (mean_length or 1.0)))


def _holding(posted: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    first, *rest = sorted(posted, key=len)
    for records in rest:
        first = first[contains(records, first)]
    return first


def best(scores: Floats, depth: int) -> Ints:
    """Indices of the `depth` highest scores, score down, then index up."""
    depth = max(depth, 0)
    chosen = np.arange(len(scores))
    # What is at that depth in a sample is a bound for all, and leaves few to partition (7 ms at 200,000 scores otherwise).
    for sample in (scores[::_SAMPLE], None):
        values = scores[chosen] if sample is None else sample
        if 0 < depth < len(values):
            least = np.partition(values, len(values) - depth)[len(values) - depth]
            chosen = chosen[scores[chosen] >= least]
    return chosen[np.argsort(-scores[chosen], kind="stable")][:depth]


def _statement(query: ParsedQuery, k1: float, b: float, depth: int) -> str:
    def quoted(text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    words = [(m.term, weight) for m, weight in query.scored if m.term is not None]
    rows = ", ".join(f"({quoted(term)}, {weight!r}::DOUBLE)" for term, weight in words)
    more = len(query.scored) - len(words)
    note = (
        f"-- without the query's {more} phrases, compounds and prefixes, which are found by positions\n" if more else ""
    )
    return (
        f"{note}WITH query(term, weight) AS ({f'VALUES {rows}' if rows else 'SELECT NULL, 0.0::DOUBLE WHERE false'}),\n"
        "found AS (SELECT term, unnest(records) AS number, unnest(tfs) AS tf FROM postings\n"
        "  WHERE term IN (SELECT term FROM query)),\n"
        "counted AS (SELECT term, number, sum(tf) AS tf FROM found GROUP BY ALL),\n"
        "frequency AS (SELECT term, count(*) AS df FROM counted GROUP BY term),\n"
        "corpus AS (SELECT count(*) AS n, avg(length) AS mean_length FROM lengths)\n"
        "SELECT number, sum(weight * ln(1.0 + (n - df + 0.5) / (df + 0.5))\n"
        f"  * tf * ({k1!r}::DOUBLE + 1) / (tf + {k1!r}::DOUBLE * (1 - {b!r}::DOUBLE + {b!r}::DOUBLE * length / mean_length))"
        " ORDER BY term) AS score\n"
        "FROM counted JOIN frequency USING (term) JOIN query USING (term) JOIN lengths USING (number) CROSS JOIN corpus\n"
        f"GROUP BY number ORDER BY score DESC, number LIMIT {depth}"
    )
