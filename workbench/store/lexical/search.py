"""BM25 over mapped postings, computed at query time, so that k1 and b are settings of a search and not of the index.

    score = sum over what the query counts of  weight x idf x tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length))
    idf   = ln(1 + (N - df + 0.5) / (df + 0.5))

(Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009; the idf is Lucene's, never negative.) A phrase or a
prefix counts as one word, with its own tf and df. N, df, mean length and the expansion of a prefix are taken over the records
that the principal may see and no others, so a hidden record changes no byte of an answer.

Scores are added up in one order, that of `ParsedQuery.scored`, in float64, by numpy operations that work on each element by
itself. So `score` gives the very bits that `search` gave, and a corpus without the hidden records gives them too.
"""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.errors import QueryError
from workbench.records import Span
from workbench.store.lexical import sql as lexical_sql
from workbench.store.lexical.arrays import Arrays
from workbench.store.lexical.carried import made_alike
from workbench.store.lexical.highlight import highlight
from workbench.store.lexical.postings import PostingsReader, ReadsPostings, contains, union
from workbench.store.lexical.query import Item, Matcher, ParsedQuery, needed, word_matcher
from workbench.store.lexical.synonyms import NONE, Vocabulary, read
from workbench.store.types import Occurring, QueryWords, Scope, Scored

_KEPT = 8
_KEPT_DF = 4096
_LOOKUPS = 8
_SAMPLE = 8

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


_NOBODY = np.zeros(0, np.int64)


class _Counted(NamedTuple):
    """One summand: where it occurs and `factor`, weight x idf x (k1 + 1)."""

    records: NDArray[np.int32]
    tfs: NDArray[Any]
    factor: float


class _Scratch(threading.local):
    """Arrays over all records that a thread uses again and again; all zero between searches."""

    def __init__(self) -> None:
        self.total: Floats = np.zeros(0)
        self.seen: NDArray[np.bool_] = np.zeros(0, bool)

    def of(self, size: int) -> tuple[Floats, NDArray[np.bool_]]:
        if len(self.total) != size:
            self.total, self.seen = np.zeros(size), np.zeros(size, bool)
        return self.total, self.seen


class _View:
    """Statistics over what one principal may see; document frequencies are kept as they are asked for."""

    def __init__(self, visible: NDArray[np.bool_] | None, lengths: NDArray[np.int32]) -> None:
        self.visible = visible
        self.records = len(lengths) if visible is None else int(np.count_nonzero(visible))
        total = int(lengths.sum(dtype=np.int64) if visible is None else lengths[visible].sum(dtype=np.int64))
        self.mean_length = total / self.records if self.records else 0.0
        self.df: dict[Matcher, int] = {}


class MappedLexical:
    """The word index of one generation, memory-mapped: `LexicalIndex` of `store.types`. Safe from several threads.

    Args:
        folder: Where `lexical_build` wrote the arrays.

    Attributes:
        older: Whether the texts were split into words by other rules than queries are now.

    Raises:
        CorpusDamaged: A file is missing or does not fit the others.
    """

    def __init__(self, folder: Path | str) -> None:
        self.arrays = Arrays(Path(folder))
        self._postings: ReadsPostings = PostingsReader(self.arrays)
        self._everything = _View(None, self.arrays.lengths)
        self._views: OrderedDict[str, _View] = OrderedDict()
        self._norms: OrderedDict[tuple[float, float, float], Floats] = OrderedDict()
        self._scratch = _Scratch()
        self._lock = threading.Lock()
        self.vocabulary = NONE
        self.older = not made_alike(Path(folder))

    def speaking(self, vocabulary: Vocabulary) -> MappedLexical:
        """The same index, read with a corpus's own synonyms and stop words; arrays and caches are shared."""
        if vocabulary == self.vocabulary:
            return self
        other = copy.copy(self)
        other.vocabulary = vocabulary
        return other

    def shown_by(self, made: Callable[[ReadsPostings], ReadsPostings]) -> MappedLexical:
        """The same index over other postings, with statistics of its own: for a principal who sees some texts masked."""
        other = copy.copy(self)
        other._postings = made(self._postings)
        other._everything, other._views = _View(None, self.arrays.lengths), OrderedDict()
        return other

    # --- the protocol ---------------------------------------------------------------------------------------------------

    def search(self, query: str, scope: Scope, depth: int, *, k1: float, b: float, operator: str) -> Scored:
        """The best `depth` allowed records for a query in the query syntax. Raises QueryError."""
        parsed, view = read(query, self.vocabulary), self._view(scope)
        every = _needs_every(operator)
        counted, norms = self._counted(parsed, view, k1), self._norm(view, k1, b)
        mask = scope.allowed if scope.allowed is not None else scope.visible
        excluded = [self._postings.read(item.matcher).records for item in parsed.excluded]
        if not every and len(counted) > 1:
            return self._search_any(counted, norms, mask, excluded, depth)
        numbers: NDArray[Any] = self._satisfying(parsed) if every else counted[0].records if counted else _NOBODY
        numbers = numbers.astype(np.int64, copy=False)
        if mask is not None:
            numbers = numbers[mask[numbers]]
        for records in excluded:
            numbers = numbers[~contains(records, numbers)]
        scores = _scores_at(counted, numbers, norms)
        chosen = best(scores, depth)
        return Scored(numbers[chosen], scores[chosen], len(numbers))

    def score(self, query: str, scope: Scope, numbers: Ints, *, k1: float, b: float, operator: str) -> Floats:
        """BM25 of given records, float64 in the same order; 0 where no word occurs or the query excludes the record.

        For records that `search` returns it is bit-equal to the score there.
        """
        parsed, view = read(query, self.vocabulary), self._view(scope)
        every = _needs_every(operator)
        wanted = np.asarray(numbers, np.int64)
        scores = _scores_at(self._counted(parsed, view, k1), wanted, self._norm(view, k1, b))
        if every:
            scores[~contains(self._satisfying(parsed), wanted)] = 0.0
        if view.visible is not None:
            scores[~view.visible[wanted]] = 0.0
        for item in parsed.excluded:
            scores[contains(self._postings.read(item.matcher).records, wanted)] = 0.0
        return scores

    def upper_bound(self, query: str, scope: Scope, *, k1: float) -> float:
        """The most that BM25 could give: sum over the query's words of weight x idf x (k1 + 1).

        Words that no visible record holds can give nothing and are left out.
        """
        return sum(
            (counted.factor for counted in self._counted(read(query, self.vocabulary), self._view(scope), k1)), 0.0
        )

    def occurring(self, query: str, scope: Scope) -> QueryWords:
        """Where each thing that a query asks for occurs among the allowed records. Raises QueryError."""
        parsed = read(query, self.vocabulary)
        mask = scope.allowed if scope.allowed is not None else scope.visible

        def found(matchers: Iterable[Matcher]) -> Ints:
            records = union([self._postings.read(matcher).records for matcher in matchers]).astype(np.int64)
            return records if mask is None else records[mask[records]]

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
        view = self._view(scope)
        matchers = [word_matcher(word) for word in words]
        return np.array([self._df(m, view) if m is not None else 0 for m in matchers], np.int64)

    def highlight(self, query: str, text: str) -> tuple[Span, ...]:
        """Character spans of `text` that the query's words and phrases match, in order, not overlapping."""
        return highlight(read(query, self.vocabulary), text)

    def sql(self, query: str, *, k1: float, b: float, operator: str, depth: int) -> str:
        """The same search, over all records, as one SQL statement over the tables, for people to read and run."""
        return lexical_sql.statement(
            read(query, self.vocabulary), k1=k1, b=b, every=_needs_every(operator), depth=depth
        )

    # --- parts ------------------------------------------------------------------------------------------------------------

    def _search_any(
        self,
        counted: Sequence[_Counted],
        norms: Floats,
        mask: NDArray[np.bool_] | None,
        excluded: Sequence[NDArray[np.int32]],
        depth: int,
    ) -> Scored:
        """One pass over the postings of each term, then the best of what they touched."""
        scratch = self._scratch
        total, seen = scratch.of(len(norms))
        try:
            for records, tfs, factor in counted:
                at = records.astype(np.intp)  # indexing with int32 costs three times as much
                gained = _contributions(tfs, norms.take(at), factor)
                gained += total.take(at)
                total[at] = gained
                seen[at] = True
            for records in excluded:
                total[records] = 0.0
                seen[records] = False
            found = int(np.count_nonzero(seen if mask is None else seen & mask))
            least = _least(counted, total, mask, depth)
            # A scan for values from a positive bound on, rather than for all that is not zero, leaves few to sort.
            numbers = np.flatnonzero(total >= least) if least > 0.0 else np.flatnonzero(seen)
            if mask is not None:
                numbers = numbers[mask[numbers]]
            scores = total[numbers]
        finally:
            total.fill(0.0)
            seen.fill(False)
        chosen = best(scores, depth)
        return Scored(numbers[chosen], scores[chosen], found)

    def _view(self, scope: Scope) -> _View:
        visible = scope.visible
        if visible is None:
            return self._everything
        with self._lock:
            view = self._views.get(scope.key)
            if view is not None and view.visible is visible:
                self._views.move_to_end(scope.key)
                return view
        view = _View(visible, self.arrays.lengths)
        with self._lock:
            self._views[scope.key] = view
            while len(self._views) > _KEPT:
                self._views.popitem(last=False)
        return view

    def _norm(self, view: _View, k1: float, b: float) -> Floats:
        """k1 (1 - b + b length / mean length) of every record."""
        key = (k1, b, view.mean_length)
        with self._lock:
            if key in self._norms:
                self._norms.move_to_end(key)
                return self._norms[key]
        relative = self.arrays.lengths / (view.mean_length or 1.0)
        norms: Floats = k1 * (1.0 - b + b * relative)
        with self._lock:
            self._norms[key] = norms
            while len(self._norms) > _KEPT:
                self._norms.popitem(last=False)
        return norms

    def _df(self, matcher: Matcher, view: _View) -> int:
        if matcher not in view.df:
            records = self._postings.read(matcher).records
            df = len(records) if view.visible is None else int(np.count_nonzero(view.visible[records]))
            if len(view.df) > _KEPT_DF:
                view.df = {}
            view.df[matcher] = df
            return df
        return view.df[matcher]

    def _counted(self, parsed: ParsedQuery, view: _View, k1: float) -> list[_Counted]:
        counted = []
        for matcher, weight in parsed.scored:
            df = self._df(matcher, view)
            if df:
                records, tfs = self._postings.read(matcher)
                idf = float(np.log(1.0 + (view.records - df + 0.5) / (df + 0.5)))
                counted.append(_Counted(records, tfs, weight * idf * (k1 + 1.0)))
        return counted

    def _satisfying(self, parsed: ParsedQuery) -> Ints:
        """Records that hold every needed item of some alternative, ascending."""
        found = [self._holding(needed(items)) for items in parsed.required]
        return union(found).astype(np.int64) if found else _NOBODY

    def _holding(self, items: Sequence[Item]) -> NDArray[np.int32]:
        posted = sorted((self._postings.read(item.matcher).records for item in items), key=len)
        numbers = posted[0]
        for records in posted[1:]:
            numbers = numbers[contains(records, numbers)]
        return numbers


def _needs_every(operator: str) -> bool:
    if operator not in ("any", "all"):
        raise QueryError(f"There is no operator {operator!r}", "It is any or all")
    return operator == "all"


def _least(counted: Sequence[_Counted], total: Floats, mask: NDArray[np.bool_] | None, depth: int) -> float:
    """A lower bound of the score at that depth: what is at that depth among the records of the strongest long enough term.

    0 where no term has as many allowed records.
    """
    for records, _, _ in sorted(counted, key=lambda c: -c.factor):
        if len(records) < max(depth, 1):
            continue
        at = records.astype(np.intp)
        scores = total.take(at if mask is None else at[mask.take(at)])
        if len(scores) >= depth:
            return float(np.partition(scores, len(scores) - depth)[len(scores) - depth]) if depth > 0 else 0.0
    return 0.0


def _scores_at(counted: Sequence[_Counted], numbers: NDArray[Any], norms: Floats) -> Floats:
    """Scores of given records."""
    total = np.zeros(len(numbers))
    for records, tfs, factor in counted:
        tf = _tfs_at(records, tfs, numbers, len(norms))
        held = np.flatnonzero(tf)
        total[held] += _contributions(tf[held], norms.take(numbers[held]), factor)
    return total


def _tfs_at(records: NDArray[np.int32], tfs: NDArray[Any], numbers: NDArray[Any], size: int) -> NDArray[Any]:
    """How often a term occurs in given records: looked up one by one for few, in a table over all records for many."""
    if len(numbers) * _LOOKUPS > size:
        table = np.zeros(size, tfs.dtype)
        table[records.astype(np.intp)] = tfs
        return table.take(numbers)
    at = np.searchsorted(records, numbers)
    at[at == len(records)] = 0
    return np.where(records[at] == numbers, tfs[at], 0)


def _contributions(tfs: NDArray[Any], norms: Floats, factor: float) -> Floats:
    """factor x tf / (tf + norm)."""
    tf = tfs.astype(np.float64)
    norms += tf
    tf *= factor
    tf /= norms
    return tf


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
