"""What every source of a search says of one record: whether it retrieved it, at which rank and score, and else why not.

Everything is looked up: ranks beyond the depth are those of the whole ranking, missing words are those of the postings, and what
the words add up to is the score itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from workbench.plan.fields import OFF, base_of, encoder_of
from workbench.ranking.cutting import to_distance
from workbench.retrieve.messages import NoMatch, listed, why_not
from workbench.retrieve.result import SearchResult
from workbench.retrieve.retrieved import counts_documents
from workbench.retrieve.sources import retrieve
from workbench.store.types import QueryWords, Scope, Scored, WordScore


@dataclass(frozen=True, slots=True)
class SourceStanding:
    """What one source says of a record.

    Attributes:
        state: `retrieved`, `beyond depth`, `cut by threshold`, `missed` (by the approximate index), `no match`, or `not asked` (a
            filter leaves it out, or the source asks another collection).
        rank: The rank that counted where it was retrieved; else from 1 among all that the source could find, in documents where
            the plan's depth counts them; None where it does not match.
        score: Raw score, None where there is none.
        distance: In the plan's metric, vector sources only.
        contribution: What it added to the fused score; 0 where it was not retrieved and nothing is computed.
        reason: Why it was not retrieved, in a clause; "" where it was.
        words: Keyword sources only: what each word of the query adds to the BM25 of the record whose score counts. In this order
            they add up to `score`, where the source finds the record.
    """

    source: str
    state: str
    rank: int | None = None
    score: float | None = None
    distance: float | None = None
    contribution: float = 0.0
    reason: str = ""
    words: tuple[WordScore, ...] = ()


class Case:
    """What a result and its sources say of records; a source is asked beyond the retrieved depth only where need be, once."""

    def __init__(self, result: SearchResult, numbers: Sequence[int], subject: str = "it") -> None:
        self.engine, self.result, self.retrieved, self.plan = result.engine, result, result.retrieved, result.plan
        self.sources = self.retrieved.sources_for(result.plan)
        self.numbers, self._subject = numbers, subject
        self._complete: dict[str, Scored] = {}
        self._words: dict[str, QueryWords] = {}

    @cached_property
    def number(self) -> int:
        """Of the records the one that represents them: the best in the fused list, else in any source, else the one that lacks
        least of the query.
        """
        found = {n: p for n in self.numbers if (p := self._item(n)) >= 0}
        if found:
            rows = self.retrieved.columns.numbers[self.result.fused.rows]
            # A position that dedupe dropped comes after all that it kept; the record shown for a document before its others.
            order = {n: self.place(p) or len(self.result.fused) + p + 1 for n, p in found.items()}
            return min(order, key=lambda n: (order[n], int(rows[found[n]]) != n, n))
        ranks: dict[int, int] = {}
        for source in self.sources:
            every = self._all(source).numbers
            for rank in np.flatnonzero(np.isin(every, self.numbers)).tolist():
                ranks[int(every[rank])] = min(ranks.get(int(every[rank]), rank), rank)
        if ranks:
            return min(ranks, key=lambda n: (ranks[n], n))
        keyword = [s for s in self.sources if base_of(s) == "keyword"]
        return min(self.numbers, key=lambda n: (min((self.no_match(s, n).missing for s in keyword), default=0), n))

    @cached_property
    def position(self) -> int:
        """Where it is in the fused list; -1 where it is not."""
        return self._item(self.number)

    def _item(self, number: int) -> int:
        """Position in the fused list of a record, of its document where the plan ranks documents; -1 where it has none."""
        known, fused = self.retrieved.columns.numbers, self.result.fused
        if fused.unit == "document":
            (document,) = self.engine.records.columns(np.array([number], np.int64)).document_ids
            return fused.document_ids.index(document) if document in fused.document_ids else -1
        found = np.flatnonzero(known[fused.rows] == number)
        return int(found[0]) if len(found) else -1

    def place(self, position: int) -> int:
        """Number in the list that the limit cuts: after dedupe, as a reranking model ordered it; 0 where it is not in it."""
        found = np.flatnonzero(self.result.order == position)
        return int(found[0]) + 1 if len(found) else 0

    def _scope(self, source: str) -> Scope:
        return self.retrieved.answers[source].scope

    def no_match(self, source: str, number: int) -> NoMatch:
        if source not in self._words:
            self._words[source] = self.engine.lexical.occurring(self.retrieved.request.query, self._scope(source))
        return why_not(self._words[source], number, self.plan["keyword.operator"], self._subject)

    def _all(self, source: str) -> Scored:
        if source not in self._complete:
            retrieved, answer = self.retrieved, self.retrieved.answers[source]
            most, scored = max(answer.entered, 1), answer.scored
            if not answer.exhausted and base_of(source) == "vector":
                index, vector = self.engine.vectors(encoder_of(source)), retrieved.vectors[encoder_of(source)]
                scored = index.search(vector, self._scope(source), most, exact="yes")
            elif not answer.exhausted:
                others = {s: a for s, a in retrieved.answers.items() if s != source}
                deeper = retrieve(self.engine, retrieved.request, {source: max(most, 100_000)}, others)
                scored = deeper.answers[source].scored
            self._complete[source] = scored
        return self._complete[source]

    def _rank(self, source: str, number: int) -> int | None:
        """Rank of a record among all of a source, in the unit that the plan's depth counts; None where it does not match."""
        every = self._all(source).numbers
        at = np.flatnonzero(every == number)
        if not len(at) or not counts_documents(self.plan):
            return int(at[0]) + 1 if len(at) else None
        return len(np.unique(self.engine.records.columns(every[: at[0] + 1]).document_numbers))

    @cached_property
    def standings(self) -> tuple[SourceStanding, ...]:
        """What every source of the plan says of the record."""
        return tuple(self._standing(source, self.number, self.position) for source in self.sources)

    def _standing(self, source: str, number: int, position: int) -> SourceStanding:
        fused, name, kind = self.result.fused, self.plan["vector.metric"], base_of(source)
        added = float(fused.contributions[source][position]) if position >= 0 and source in fused.contributions else 0.0
        if position >= 0 and source in fused.evidence(position):
            rank, row = fused.evidence(position)[source]
            column = fused.candidates.column(source)
            at = float(to_distance(column.score[row], name)) if kind == "vector" else None
            words = self._word_scores(source, self._scored(source, row, float(column.score[row])))
            return SourceStanding(source, "retrieved", rank, float(column.counting[row]), at, added, words=words)
        allowed = self._scope(source).allowed
        if allowed is not None and not allowed[number]:
            return SourceStanding(source, "not asked", reason=f"{source} asks another collection")
        place, compute = self._rank(source, number), self.retrieved.answers[source].compute
        score = distance = None
        if kind == "grep" and place is not None:
            every = self._all(source)
            score = float(every.scores[every.numbers == number][0])
        elif compute is not None and (kind == "vector" or place is not None):
            score = float(compute(np.array([number], np.int64))[0])
            distance = float(to_distance(score, name)) if kind == "vector" else None
        state, reason = self._why(source, number, place, score, distance)
        words = self._word_scores(source, number)
        return SourceStanding(source, state, place, score, distance, added, f"{source}{reason}", words)

    def _scored(self, source: str, row: int, score: float) -> int:
        """Number of the record whose score a row has: its own, or of one that counts as the passage that shows it."""
        scored, number = self.retrieved.answers[source].scored, int(self.retrieved.columns.numbers[row])
        alike = scored.numbers[scored.scores == score].tolist()
        return number if number in alike or not alike else int(alike[0])

    def _word_scores(self, source: str, number: int) -> tuple[WordScore, ...]:
        if base_of(source) != "keyword":
            return ()
        query, how = self.retrieved.request.query, {name: self.plan[f"keyword.{name}"] for name in ("k1", "b")}
        return self.engine.lexical.word_scores(query, self._scope(source), number, **how)

    def _why(
        self, source: str, number: int, rank: int | None, score: float | None, distance: float | None
    ) -> tuple[str, str]:
        plan, kind, depth, patterns = self.plan, base_of(source), self.plan.depth(source), self.retrieved.patterns
        field, bound = plan.threshold_field(source), plan.threshold(source)
        if bound != OFF and distance is not None and distance >= float(bound):
            return "cut by threshold", f" has it at distance {distance:.4f}, and {field} is {bound}"
        if bound != OFF and distance is None and score is not None and score < float(bound):
            return "cut by threshold", f" gives it the BM25 score {score:.4f}, and {field} is {bound}"
        if rank is not None and rank > depth:
            unit = " among the documents" if counts_documents(plan) else ""
            return "beyond depth", f" has it at rank {rank:,}{unit}, and the depth is {depth:,}"
        if rank is not None and self.retrieved.answers[source].scored.approximate:
            return "missed", f" was answered by the approximate index, which missed its rank {rank:,}"
        if rank is not None:
            return "beyond depth", f" stopped at its depth, {depth:,}, before it came to it"
        if kind == "vector":
            return "no match", " had nothing to compare: the query is empty"
        if kind == "keyword":
            return "no match", f": {self.no_match(source, number).reason}"
        if not patterns:
            return "no match", " had nothing to look for"
        wanted = listed((f'"{pattern}"' for pattern in patterns), "or")
        elsewhere = self._passages(source, number)
        where = f": its document's lines with {wanted} are in {listed(elsewhere)}" if elsewhere else ""
        return "no match", where or f": no line of it has {wanted}"

    def _passages(self, source: str, number: int) -> tuple[str, ...]:
        scope, records = self._scope(source), self.engine.records
        (document,) = records.columns(np.array([number], np.int64)).document_numbers.tolist()
        only = np.zeros(records.documents_total, bool)
        only[document] = True
        own = replace(scope, allowed_documents=only, key=f"{scope.key}\ndocument {document}")
        how = {name: self.plan[f"grep.{name}"] for name in ("regex", "case", "word")}
        answer = self.engine.grep.search(self.retrieved.patterns, own, 3, context=0, **how)
        return tuple(passage.citation for passage in answer.passages)
