"""Searching a generation on Milvus: the same answers as from DuckDB and usearch, as far as they were retrieved.

*Words.* Milvus holds a sparse vector of each record: one dimension a stem, its value the record's share of BM25 with the
default k1 and b. Its inner product with the query's idf is nearly BM25: so Milvus finds candidates, `_OVERFETCH` times as many
as are wanted, and here their texts are counted and scored, with the search's own k1 and b, phrases, prefixes and exclusions,
over the statistics of what the principal may see (`frequencies` of the catalogue). Milvus's own BM25 function counts hidden
records in its statistics and splits words by other rules. Scores are those of DuckDB; ranks differ where a record is far lower
by the stored weights than by its score (another k1 or b), or behind the `MOST` candidates that Milvus gives, and df of a phrase
whose every word is in more than `_COUNTED` records, or of a prefix, is counted in the `_COUNTED` that most likely hold it.

*Vectors.* Milvus finds, the cosine is computed again here in float64 from the stored vectors.

*Lines.* Milvus finds the documents that hold what every match must hold (`LIKE`); their lines are searched here with RE2.
"""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from cachetools import LRUCache

from workbench.errors import SourceUnavailable
from workbench.records import EncoderIdentity
from workbench.store.arrays import Columns
from workbench.store.database import fetch
from workbench.store.grep.pattern import GrepPattern
from workbench.store.grep.text import LoadedText
from workbench.store.lexical.query import Matcher, ParsedQuery, occurrences_of
from workbench.store.lexical.search import LexicalIndex, Postings, PostingsReader, best, bm25, factor, matchers_of
from workbench.store.lexical.synonyms import read
from workbench.store.milvus.expressions import Expressions
from workbench.store.milvus.remote import MOST, Remote
from workbench.store.milvus.write import dimension, vector_field
from workbench.store.records import StoredRecords
from workbench.store.types import Floats, Floats32, Ints, Scope, Scored
from workbench.store.vectors import check_exact, checked_query

_OVERFETCH = 2
_COUNTED = 2_000
"""Records whose texts are read to count those with a phrase or a prefix, the likeliest first."""

_KEPT_HELD, _KEPT_COUNTS, _KEPT_VECTORS = 512, 8_192, 4_096
_KEPT_CHARACTERS = 8_000_000  # of texts of documents, and of records
_WITH_TEXTS = 4_096
"""Most rows that come with their texts: of more, most texts are known or are not asked for."""

_MOST_DOCUMENTS = 4_000
"""Documents whose lines are searched for one pattern."""

_MOST_COSINES = 50_000
_WIDEST = 32_768  # what Milvus takes for ef

T = TypeVar("T")


class _Kept(Generic[T]):
    """What was fetched lately, by number. Safe from several threads."""

    def __init__(
        self, fetch: Callable[[list[int]], dict[int, T]], most: int, size: Callable[[T], int] = lambda _: 1
    ) -> None:
        self._fetch, self._size, self._kept = fetch, size, LRUCache[int, T](most, getsizeof=size)
        self._lock = threading.Lock()

    def __call__(self, numbers: Iterable[int]) -> dict[int, T]:
        with self._lock:
            held = {n: self._kept.get(n) for n in numbers}
        new = self._fetch([n for n, value in held.items() if value is None])
        self.keep(new)
        return {n: value for n, value in (held | new).items() if value is not None}

    def keep(self, values: Mapping[int, T]) -> None:
        with self._lock:
            self._kept.update({n: value for n, value in values.items() if self._size(value) <= self._kept.maxsize})


class MilvusTexts:
    """Texts of records and documents, and searches that bring them along. Safe from several threads."""

    def __init__(self, remote: Remote, columns: Columns) -> None:
        self.remote, self._columns, self.expressions = remote, columns, Expressions(columns)
        self._documents = _Kept(remote.texts, _KEPT_CHARACTERS, len)
        self.records = _Kept(self._fetch_records, _KEPT_CHARACTERS, len)
        """Texts of records by number."""

    def __len__(self) -> int:
        return self._columns.documents_total

    def text(self, document: int) -> str:
        """A document's whole text."""
        return self._documents([document]).get(document, "")

    def search(
        self, field: str, vector: Any, scope: Scope, limit: int, fields: Sequence[str] = (), **params: Any
    ) -> dict[int, Mapping[str, Any]]:
        """Fields of the best allowed records by one vector field, by number, best first, at most `MOST`. What is done with them
        needs their texts, which come with few of them: one request instead of two.
        """
        fields = [*fields, "text"] if limit <= _WITH_TEXTS else list(fields)
        (found,) = self.remote.call(
            "search", self.remote.name, [vector], anns_field=field, filter=self.expressions.records(scope),
            limit=min(limit, MOST), output_fields=fields, search_params={"metric_type": "IP", "params": params},
        )  # fmt: skip
        rows = {int(hit["number"]): hit["entity"] for hit in found}
        self.records.keep({number: str(row["text"]) for number, row in rows.items() if row.get("text")})
        return rows

    def _fetch_records(self, numbers: list[int]) -> dict[int, str]:
        held = {number: str(row["text"]) for number, row in self.remote.records(numbers, "text").items()}
        columns = self._columns.records
        for number in (n for n, text in held.items() if not text):  # too long for a field of Milvus
            start, end = int(columns["start_char"][number]), int(columns["end_char"][number])
            held[number] = self.text(int(columns["document_number"][number]))[start:end] if end > start else ""
        return held

    def holding(self, patterns: Sequence[GrepPattern], documents: Ints | None) -> LoadedText:
        """The documents (None: of all) that may hold a match of some pattern.

        Raises SourceUnavailable where they are too many to read and nothing in the patterns tells which.
        """
        needs = list(dict.fromkeys(max(_SPECIAL.split(pattern.held), key=len) for pattern in patterns))
        allowed = np.arange(len(self)) if documents is None else documents
        complete = True
        if len(allowed) > _MOST_DOCUMENTS or (len(allowed) > 20 and all(needs)):
            if not all(needs):
                raise SourceUnavailable(
                    f"The pattern has no fixed text that Milvus could look for, and {len(allowed):,} documents are too many"
                    " to read",
                    "Add a word that every line must hold, or a filter",
                )
            mask = np.zeros(len(self), bool)
            mask[allowed] = True
            within = self.expressions.documents(Scope(allowed_documents=None if documents is None else mask))
            allowed, complete = self._holding(needs, within)
            if len(needs) > 1 and not (complete and len(allowed) <= _MOST_DOCUMENTS):
                # A passage with more of the patterns ranks higher, so documents that may hold fewer are cut first.
                found, all_of = zip(*(self._holding([need], within) for need in needs), strict=True)
                allowed, held = np.unique(np.concatenate(found), return_counts=True)
                allowed, complete = allowed[np.argsort(-held, kind="stable")], all(all_of)
        texts = self.remote.texts(allowed[:_MOST_DOCUMENTS].tolist())
        return LoadedText(texts, len(self), complete=complete and len(allowed) <= _MOST_DOCUMENTS)

    def _holding(self, needs: Sequence[str], within: str) -> tuple[Ints, bool]:
        """Documents of an expression that hold any of some texts, up; and whether these are all."""
        where = " or ".join(map(_holds, needs))
        found, complete = self.remote.holding(" and ".join(filter(None, (f"({where})", within))))
        return np.array(found, np.int64), complete

    def containing(self, part: str) -> Ints:
        """Numbers of the records whose text holds `part`, any case, up; of the first `_MOST_DOCUMENTS` documents that may."""
        run = max(_SPECIAL.split(re.sub(r"[^ -~]", "%", part)), key=len)
        found, _ = self.remote.holding(_holds(run)) if run else (list(range(len(self))), True)
        numbers = [self._columns.records_of(document) for document in found[:_MOST_DOCUMENTS]]
        held = self.records(np.concatenate([np.zeros(0, np.int64), *numbers]).tolist())
        return np.array(sorted(n for n, text in held.items() if part.lower() in text.lower()), np.int64)


_SPECIAL = re.compile(r"""[%_\\"']""")


def _holds(text: str) -> str:
    """The expression for lines that hold a text, in small letters as `write` makes them."""
    return f'lower like "%{text.encode().lower().decode()}%"'


class MilvusWords(LexicalIndex):
    """BM25 over records on Milvus. `records` gives the texts as the principal may read them."""

    def __init__(self, texts: MilvusTexts, records: StoredRecords) -> None:
        super().__init__(records.connection)
        self._texts, self._records, self._masked = texts, records, False
        self._held: LRUCache[tuple[Matcher, str], tuple[Ints, bool]] = LRUCache(_KEPT_HELD)
        self._dfs: LRUCache[tuple[str, str], int] = LRUCache(_KEPT_COUNTS)

    def shown_by(self, records: StoredRecords, made: Callable[[PostingsReader], PostingsReader]) -> LexicalIndex:
        _ = self.lengths
        other = copy.copy(self)
        other._records, other._masked, other._held = records, True, LRUCache(_KEPT_HELD)
        return other

    def search(self, query: str, scope: Scope, depth: int, *, k1: float, b: float, operator: str) -> Scored:
        """The best `depth` allowed records of the candidates; `found` is the number of candidates that match."""
        parsed = read(query, self.vocabulary)
        counts, rare = self._counted(matchers_of(parsed), scope)
        width = _width(depth)
        # Records with a rare phrase are known; its words alone would draw in others that lack it.
        spread = [(m, weight) for m, weight in parsed.scored if m not in rare]
        known = np.unique(np.concatenate([np.zeros(0, np.int64), *(rare[m] for m, _ in parsed.scored if m in rare)]))
        known = known if scope.allowed is None else known[scope.allowed[known]]
        numbers, scores = np.zeros(0, np.int64), np.zeros(0)
        while True:
            likeliest = self._candidates(spread, counts, scope, width)
            new = np.setdiff1d(np.union1d(likeliest, known), numbers, assume_unique=True)
            numbers = np.concatenate([numbers, new])
            scores = np.concatenate([scores, self._scored(parsed, counts, new, scope, k1, b, operator)])
            if np.count_nonzero(scores) >= depth or len(likeliest) < width or width == MOST:
                break
            width = min(MOST, 4 * width)
        kept = np.argsort(numbers)
        kept = kept[scores[kept] > 0.0]
        numbers, scores = numbers[kept], scores[kept]
        chosen = best(scores, depth)
        return Scored(numbers[chosen], scores[chosen], len(numbers), counted=len(likeliest) < width)

    def score(self, query: str, scope: Scope, numbers: Ints, *, k1: float, b: float, operator: str) -> Floats:
        parsed = read(query, self.vocabulary)
        counts = self.counts(matchers_of(parsed), scope)
        wanted, place = np.unique(np.asarray(numbers, np.int64), return_inverse=True)
        scores = self._scored(parsed, counts, wanted, scope, k1, b, operator)
        if scope.visible is not None:
            scores[~scope.visible[wanted]] = 0.0
        return scores[place]

    def sql(self, query: str, *, k1: float, b: float, depth: int) -> str:
        """The request that Milvus gets."""
        scored, name = read(query, self.vocabulary).scored, self._texts.remote.name
        weights = self._weights(scored, self.counts([m for m, _ in scored], Scope()), Scope())
        return (
            f"-- words are on Milvus: the inner product of its sparse field `words` with these weights finds candidates,\n"
            f"-- which are scored with k1 = {k1} and b = {b}\n"
            f"search({name!r}, anns_field='words', limit={_width(depth)}, data=[{weights}])"
        )

    def _candidates(
        self, scored: Sequence[tuple[Matcher, float]], counts: Mapping[Matcher, int], scope: Scope, width: int
    ) -> Ints:
        """Allowed records, ascending, that Milvus finds best by the stored weights."""
        weights = self._weights(scored, counts, scope)
        if not weights or width <= 0:
            return np.zeros(0, np.int64)
        found = self._texts.search("words", weights, scope, width)
        return np.sort(np.fromiter(found, np.int64, len(found)))

    def _weights(
        self, scored: Sequence[tuple[Matcher, float]], counts: Mapping[Matcher, int], scope: Scope
    ) -> dict[int, float]:
        """What each dimension counts: the idf of the terms, those of phrases and prefixes shared out."""
        view, weights = self._view(scope), dict[int, float]()
        for matcher, weight in scored:
            terms = self._terms(matcher)
            gain = factor(counts.get(matcher, 0), weight, view, 1.0) / max(1, len(terms))
            for term in terms if gain else ():
                weights[dimension(term)] = weights.get(dimension(term), 0.0) + gain
        return weights

    def _terms(self, matcher: Matcher) -> list[str]:
        if matcher.steps:
            return sorted({term for step in matcher.steps for path in step for term in path})
        sql = "SELECT DISTINCT term FROM vocabulary WHERE starts_with(word, ?) ORDER BY term LIMIT 1000"
        return [term for (term,) in fetch(self._database, sql, [matcher.prefix.encode("utf-8", "replace").decode()])]

    def _scored(
        self,
        parsed: ParsedQuery,
        counts: Mapping[Matcher, int],
        numbers: Ints,
        scope: Scope,
        k1: float,
        b: float,
        operator: str,
    ) -> Floats:
        """BM25 of some records, ascending, by their texts."""
        view = self._view(scope)
        factors = [factor(counts[m], weight, view, k1) for m, weight in parsed.scored]
        posted = self._posted(matchers_of(parsed), numbers)
        return bm25(parsed, posted, factors, self.lengths[numbers], view.mean_length, k1, b, operator)

    def _posted(self, matchers: Sequence[Matcher], numbers: Ints) -> dict[Matcher, Postings]:
        """In which of some records, by place among them, each matcher occurs, and how often."""
        texts = [f"{row.chunk.context}\n{row.chunk.text}" for row in self._records.rows(numbers.tolist())]
        wanted = list(dict.fromkeys(matchers))
        tfs = np.array([occurrences_of(wanted, text) for text in texts], np.int32).reshape(len(texts), len(wanted))
        found = {}
        for at, matcher in enumerate(wanted):
            held = np.flatnonzero(tfs[:, at]).astype(np.int32)
            found[matcher] = Postings(held, tfs[held, at])
        return found

    def counts(self, matchers: Collection[Matcher], scope: Scope) -> dict[Matcher, int]:
        """In how many visible records each occurs: of terms as they were counted, of phrases and prefixes by their texts."""
        return self._counted(matchers, scope)[0]

    def _counted(self, matchers: Collection[Matcher], scope: Scope) -> tuple[dict[Matcher, int], dict[Matcher, Ints]]:
        """The counts, and the visible records of those phrases of which all are known, ascending."""
        codes = self._codes(scope)
        seen = Scope(scope.visible, scope.visible, scope.visible_documents, scope.visible_documents, f"seen{codes}")
        known = self._known(matchers, codes)
        found, rare = dict[Matcher, int](), dict[Matcher, Ints]()
        for matcher in dict.fromkeys(matchers):
            # Where texts are masked, what was counted tells of masked words: then terms are counted in the texts too.
            if matcher.term is not None and not self._masked:
                found[matcher] = known.get(matcher.term, 0)
            else:
                with self._lock:
                    held = self._held.get((matcher, codes))
                if held is None:
                    numbers, complete = self._holders(matcher, known, seen, _COUNTED)
                    held = numbers[self._posted([matcher], numbers)[matcher].records], complete
                    with self._lock:
                        self._held[matcher, codes] = held
                numbers, complete = held
                found[matcher] = len(numbers)
                if complete:
                    rare[matcher] = numbers
        return found, rare

    def _known(self, matchers: Collection[Matcher], codes: str) -> dict[str, int]:
        """In how many visible records each term of some matchers is, as they were counted; none where texts are masked."""
        terms = {term for m in matchers for step in m.steps for path in step for term in path}
        if self._masked:
            return {}
        with self._lock:
            known = {term: self._dfs[term, codes] for term in terms if (term, codes) in self._dfs}
        if new := sorted(terms.difference(known)):
            sql = f"SELECT term, sum(df)::BIGINT FROM frequencies WHERE term IN (SELECT unnest(?)){codes} GROUP BY term"
            known |= dict.fromkeys(new, 0) | {term: int(df) for term, df in fetch(self._database, sql, [new])}
            with self._lock:
                self._dfs.update({(term, codes): known[term] for term in new})
        return known

    def _holders(self, matcher: Matcher, known: Mapping[str, int], scope: Scope, most: int) -> tuple[Ints, bool]:
        """Records, ascending, that may hold a matcher, and whether these are all: where some step's rarest terms are in no more
        than `most`; else the likeliest."""
        steps = [[min(path, key=lambda term: known.get(term, 0)) for path in step] for step in matcher.steps]
        rarest = min(steps, key=lambda terms: sum(known.get(term, 0) for term in terms), default=[])
        complete = bool(rarest) and not self._masked and sum(known.get(term, 0) for term in rarest) <= most
        if complete:
            matcher = Matcher((tuple((term,) for term in rarest),))
        return self._candidates([(matcher, 1.0)], {matcher: 1}, scope, most), complete

    def _codes(self, scope: Scope) -> str:
        """The condition on access codes that is the scope's visibility. Raises SourceUnavailable where no codes say it."""
        seen = scope.visible_documents
        if seen is None:
            return ""
        column = self._records.arrays.documents["access"]
        codes = np.unique(column[seen])
        if not np.array_equal(np.isin(column, codes), seen):
            raise SourceUnavailable(
                "The rules of corpus.yaml hide documents that they did not when the words were counted",
                "Run `workbench index` on the folders again",
            )
        return f" AND access IN ({', '.join(map(str, codes.tolist())) or 'NULL'})"

    def times(self, matchers: Collection[Matcher], number: int) -> dict[Matcher, int]:
        posted = self._posted(list(matchers), np.array([number]))
        return {matcher: int(found.tfs.sum()) for matcher, found in posted.items()}

    def where(self, matchers: Collection[Matcher], scope: Scope) -> dict[Matcher, Ints]:
        found, known = {}, self._known(matchers, "")  # at least as many as are visible
        for matcher in dict.fromkeys(matchers):
            numbers, _ = self._holders(matcher, known, scope, MOST)
            sure = matcher.term is not None and not self._masked
            found[matcher] = numbers if sure else numbers[self._posted([matcher], numbers)[matcher].records]
        return found


def _width(depth: int) -> int:
    """Candidates for so many results."""
    return min(MOST, _OVERFETCH * depth + 100)


class StoredRows:
    """The vectors of an encoder as rows by record number, float32; the last few thousand are kept. Safe from several threads."""

    def __init__(self, where: Mapping[str, str], key: str, identity: EncoderIdentity) -> None:
        self._remote, self.field, self.shape = Remote(**where), vector_field(key), (0, identity.dim)
        self._kept = _Kept(self._fetch, _KEPT_VECTORS)

    def __getitem__(self, rows: Ints) -> Floats32:
        held = self._kept(np.unique(rows).tolist())
        return np.array([held[n] for n in rows.tolist()], np.float32).reshape(len(rows), self.shape[1])

    def _fetch(self, numbers: list[int]) -> dict[int, Floats32]:
        return self.vectors(self._remote.records(numbers, self.field))

    def vectors(self, found: Mapping[int, Mapping[str, Any]]) -> dict[int, Floats32]:
        """Vectors of rows as Milvus gave them, by number; kept."""
        made = {number: np.array(row[self.field], np.float32) for number, row in found.items()}
        self._kept.keep(made)
        return made


class MilvusVectors:
    """The vectors of one encoder on Milvus."""

    without_graph = ""

    def __init__(self, texts: MilvusTexts, rows: StoredRows, identity: EncoderIdentity, total: int) -> None:
        self._texts, self._rows, self.identity, self._total = texts, rows, identity, total

    def __len__(self) -> int:
        return self._total

    def search(self, vector: Floats32, scope: Scope, depth: int, *, exact: str = "auto") -> Scored:
        """The `depth` nearest allowed records that Milvus finds, by cosine as float64, score down then number up; at most
        `MOST`. `exact` is `yes`: the widest search that its index allows; still approximate unless the index is FLAT.
        """
        check_exact(exact)
        query = checked_query(vector, self.identity)
        allowed = len(self) if scope.allowed is None else int(np.count_nonzero(scope.allowed))
        depth = min(depth, MOST, allowed)
        if depth <= 0:
            return Scored(np.empty(0, np.int64), np.empty(0), allowed)
        field, limit = self._rows.field, min(allowed, depth + 16)
        width = max(1200, 12 * limit, allowed if allowed <= MOST or exact == "yes" else 0)
        found = self._texts.search(
            field, query, scope, limit, [field], ef=min(width, _WIDEST), nprobe=max(32, width // 64)
        )
        numbers = np.fromiter(found, np.int64, len(found))
        scores = _cosines(np.array(list(self._rows.vectors(found).values())), query)
        order = np.lexsort((numbers, -scores))[:depth]
        return Scored(numbers[order], scores[order], allowed, approximate=width < allowed)

    def score(self, vector: Floats32, numbers: Ints) -> Floats:
        """Cosine of given records, float64 in the same order."""
        return _cosines(self.vectors(numbers), checked_query(vector, self.identity))

    def cosines(self, vector: Floats32, scope: Scope) -> Floats32:
        """Cosine of every allowed record, float32, in number order; of more than `_MOST_COSINES` an even sample."""
        numbers = np.arange(len(self)) if scope.allowed is None else np.flatnonzero(scope.allowed)
        step = -(-len(numbers) // _MOST_COSINES) or 1
        return self.score(vector, numbers[::step]).astype(np.float32)

    def vectors(self, numbers: Ints) -> Floats32:
        """Copies of stored vectors, float32 (m, dim), in the order asked."""
        return self._rows[np.asarray(numbers, np.int64)]

    def approximates(self, scope: Scope, depth: int, exact: str) -> bool:
        return (len(self) if scope.allowed is None else int(np.count_nonzero(scope.allowed))) > MOST


def _cosines(rows: Floats32, query: Floats32) -> Floats:
    if not len(rows):
        return np.empty(0)
    found: Floats = np.clip(np.einsum("ij,j->i", rows.astype(np.float64), query.astype(np.float64)), -1.0, 1.0)
    return found


class MilvusParts:
    """The large parts of one generation on Milvus, by what its manifest says of them."""

    def __init__(self, where: Mapping[str, str], columns: Columns) -> None:
        self._where, self._total = where, columns.records_total
        self.texts = MilvusTexts(Remote(**where), columns)

    def words(self, records: StoredRecords) -> MilvusWords:
        return MilvusWords(self.texts, records)

    def vectors(self, key: str, identity: EncoderIdentity) -> MilvusVectors:
        return MilvusVectors(self.texts, StoredRows(self._where, key, identity), identity, self._total)
