"""Why a document is in a result or not: its rank and score in every source, the step that dropped it, and what would bring it in.

Everything that is said was looked up: ranks beyond the depth are those of the whole ranking, missing words are those of the
postings, and a remedy was searched with.

A remedy first makes some source retrieve the document; then, where it is in the list and the limit cuts it off, comes a setting
that lifts it into as many results as were asked for (unit, operator, alpha, weight, threshold); more results only where none
does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from workbench.errors import NeedsSearch, UsageError, WorkbenchError
from workbench.plan.fields import FUSED, OFF, base_of, encoder_of
from workbench.plan.plan import Plan
from workbench.ranking.candidates import Ints
from workbench.ranking.cutting import below, metric, to_distance
from workbench.records import Chunk, Hit, cite
from workbench.retrieve.engine import Engine
from workbench.retrieve.messages import NoMatch, listed, why_not
from workbench.retrieve.readfile import find_place, lines_of, split_citation
from workbench.retrieve.request import MODES
from workbench.retrieve.result import SearchResult
from workbench.retrieve.retrieved import counts_documents
from workbench.retrieve.sources import retrieve, scope_of
from workbench.store.lexical.query import unquoted, without
from workbench.store.types import QueryWords, Scope, Scored

_FACTORS = (2.0, 0.5, 5.0, 0.2)
_LIMIT_TRIES = 4


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
    """

    source: str
    state: str
    rank: int | None = None
    score: float | None = None
    distance: float | None = None
    contribution: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one document is in a result, or not.

    Attributes:
        target: As asked.
        found: False when no document that the principal may see has that name.
        path, citation, chunk_id: The record that represents it: its best one.
        rank: Its rank in the result, None when it is not in it.
        fused_rank: Its rank in the fused list before dedupe and limit, None when no source retrieved it.
        standings: One a source.
        dropped_by: The step that dropped it: `corpus`, `filters`, `match`, `depth`, `threshold`, `dedupe`, `strongest`, `limit`;
            "" for a result.
        reason: That step in a sentence.
        changes: Plan fields that would bring it in, of what was tried; None where none did.
        query: The query that would bring it in, where it must change; else "".
        mode: The mode that would bring it in, where it must change; else "".
        without_filter: Whether the filter must go.
        remedy: All of that in a sentence.
        verified: It was searched with, and the document was a result.
    """

    target: str
    found: bool
    path: str = ""
    citation: str = ""
    chunk_id: str = ""
    rank: int | None = None
    fused_rank: int | None = None
    standings: tuple[SourceStanding, ...] = ()
    dropped_by: str = ""
    reason: str = ""
    changes: Mapping[str, Any] | None = None
    query: str = ""
    mode: str = ""
    without_filter: bool = False
    remedy: str = ""
    verified: bool = False


Search = Callable[..., SearchResult]
"""Runs the request of a result again with another plan, and another `query`, `mode` or `filters` where they are given."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Changes to a search: plan fields, and `query`, `mode` or `filters` of the request, with how to change these in words."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    request: Mapping[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        fields = ", ".join(f"{name}={value}" for name, value in self.changes.items())
        text = ", and ".join((*self.words, *([f"set {fields}"] if fields else [])))
        return text[:1].upper() + text[1:]

    def more(self, changes: Mapping[str, Any] | None = None, words: str = "", **request: str) -> Remedy:
        """This, and more plan fields, or another query, mode or filter."""
        own = (*self.words, words) if words else self.words
        return Remedy({**self.changes, **(changes or {})}, {**self.request, **request}, own)

    def fields(self, sentence: str = "") -> dict[str, Any]:
        """The part of an explanation; verified unless another sentence says why not."""
        return {
            "changes": dict(self.changes) or None,
            "query": self.request.get("query", ""),
            "mode": self.request.get("mode", ""),
            "without_filter": self.request.get("filters") == "",
            "remedy": sentence or self.sentence,
            "verified": not sentence,
        }


def explain(
    engine: Engine, result: SearchResult, target: str | Hit, search: Search, start: Remedy | None = None
) -> Explanation:
    """Explain why `target` is in `result`, or not.

    Args:
        engine: The result's generation.
        result: A result.
        target: A hit, a chunk id, a document id or path, or a citation: `path:line`, `path:first-last`, `path#slide=3`.
        search: Runs the result's request again with another plan, query, mode or filter.
        start: Changes that the result was searched with already.
    """
    name = target.chunk_id if isinstance(target, Hit) else str(target).strip()
    retrieved = result.retrieved
    numbers, whole = _resolve(engine, name, engine.records.scope(retrieved.request.principal, None, ()))
    if not len(numbers):
        reason = "No document that you may see has this path or id"
        remedy = "Check the spelling, or index it with `workbench index PATH`"
        return Explanation(name, False, dropped_by="corpus", reason=reason, remedy=remedy)
    allowed = retrieved.scope.allowed
    inside = numbers if allowed is None else numbers[allowed[numbers]]
    if not len(inside):
        return _filtered(engine, result, name, numbers, search)
    inside = _shown_as(result, inside)
    return _explain_records(engine, result, name, inside.tolist(), whole, search, start or Remedy())


def dropped(engine: Engine, result: SearchResult, chunk_id: str) -> tuple[str, str]:
    """The step that keeps a record out of a result, and why, as `explain` has them, without any search for a remedy; "" and why
    not where it is a result, or its document is where the plan ranks documents.
    """
    number = engine.records.find_record(chunk_id, engine.records.scope(result.retrieved.request.principal, None, ()))
    allowed = result.retrieved.scope.allowed
    if number is None or (allowed is not None and not allowed[number]):
        return "filters", "The filter or the plan's collections leave it out"
    case = _Case(engine, result, _shown_as(result, np.array([number], np.int64)).tolist())
    found = np.flatnonzero(result.outcome.shown == case.position)
    return ("", f"It is result {int(found[0]) + 1}") if len(found) else _dropped(case)


def _shown_as(result: SearchResult, numbers: Ints) -> Ints:
    """Of records that a grep passage of the result shows, the one that represents the passage; each once."""
    if result.plan["grep.show"] != "passage":
        return numbers
    known = result.retrieved.columns.numbers
    holders = dict(
        zip(known.tolist(), known[result.retrieved.holders(result.outcome.candidates)].tolist(), strict=True)
    )
    return np.unique(np.array([holders.get(n, n) for n in numbers.tolist()], np.int64))


def _resolve(engine: Engine, name: str, scope: Scope) -> tuple[Ints, bool]:
    """Visible records that a name means, and whether it is a whole document's; a line range leaves those that touch it, if
    any does.
    """
    records = engine.records
    number = records.find_record(name, scope)
    if number is not None:
        return np.array([number], np.int64), False
    read = ((records.find_document(path, scope), place) for path, place in split_citation(name))
    document, place = next(((number, place) for number, place in read if number is not None), (None, ""))
    if document is None:
        return np.zeros(0, np.int64), True
    numbers = records.records_of(document)
    if scope.visible is not None:
        numbers = numbers[scope.visible[numbers]]
    if place:
        text, (header,) = engine.grep.text(document), records.headers([document])
        try:
            first, last = lines_of(text, find_place(place, text, records.places(document), header.page_starts))
        except UsageError:
            return numbers, True  # it is not there, as in an old citation
        columns = records.columns(numbers)
        touching = (columns.start_lines <= last) & (columns.end_lines >= first)
        # Lines that no record touches (blank lines between chunks) leave the document as a whole.
        if touching.any():
            return numbers[touching], False
    return numbers, True


def _shown(engine: Engine, number: int, chunk: Chunk) -> dict[str, Any]:
    path = engine.records.columns(np.array([number], np.int64)).paths[0]
    citation = cite(path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator)
    return {"found": True, "path": path, "chunk_id": chunk.chunk_id, "citation": citation}


class _Case:
    """What a result and its sources say of records; a source is asked beyond the retrieved depth only where need be, once."""

    def __init__(self, engine: Engine, result: SearchResult, numbers: Sequence[int], subject: str = "it") -> None:
        self.engine, self.result, self.retrieved, self.plan = engine, result, result.retrieved, result.plan
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
        return scope_of(self.engine, self.retrieved.request, source, self.retrieved.scope)

    def no_match(self, source: str, number: int) -> NoMatch:
        if source not in self._words:
            self._words[source] = self.engine.lexical.occurring(self.retrieved.request.query, self._scope(source))
        return why_not(self._words[source], number, self.plan["keyword.operator"], self._subject)

    def _all(self, source: str) -> Scored:
        """Everything that a source finds."""
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
            return SourceStanding(source, "retrieved", rank, float(column.counting[row]), at, added)
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
        return SourceStanding(source, state, place, score, distance, added, f"{source}{reason}")

    def _why(
        self, source: str, number: int, rank: int | None, score: float | None, distance: float | None
    ) -> tuple[str, str]:
        """State and reason (after the source's name) of a record that a source did not retrieve."""
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
        """The first passages of a record's document that grep finds, as citations."""
        scope, records = self._scope(source), self.engine.records
        (document,) = records.columns(np.array([number], np.int64)).document_numbers.tolist()
        only = np.zeros(records.documents_total, bool)
        only[document] = True
        own = replace(scope, allowed_documents=only, key=f"{scope.key}\ndocument {document}")
        how = {name: self.plan[f"grep.{name}"] for name in ("regex", "case", "word")}
        answer = self.engine.grep.search(self.retrieved.patterns, own, 3, context=0, **how)
        return tuple(passage.citation for passage in answer.passages)


def _explain_records(
    engine: Engine, result: SearchResult, name: str, numbers: Sequence[int], whole: bool, search: Search, start: Remedy
) -> Explanation:
    """Explain records that the filter and the collections leave: a document's, or those that a place touches."""
    case = _Case(engine, result, numbers, "its best passage" if whole and len(numbers) > 1 else "it")
    chunk = engine.records.rows([case.number])[0].chunk
    parts = not whole and result.plan["fusion.unit"] != "document"
    names = engine.records.columns(np.array(numbers, np.int64)).chunk_ids if parts else ()
    remedies = _Remedies(result, chunk.document_id, frozenset(names), search)
    base: dict[str, Any] = {
        "target": name,
        **_shown(engine, case.number, chunk),
        "standings": case.standings,
        "fused_rank": case.position + 1 if case.position >= 0 else None,
    }
    if rank := remedies.rank(result):
        shown = next(h for h in result.hits if h.rank == rank)
        reason = "It is a result" if shown.chunk_id == chunk.chunk_id else f"It is a result, shown by {shown.citation}"
        return Explanation(**base, rank=rank, reason=reason)
    step, reason = _dropped(case)
    if any(h.added and h.chunk_id == chunk.chunk_id for h in result.hits):
        reason += "; it is shown beside the results of its page, without a rank"
    return Explanation(**base, dropped_by=step, reason=reason, **remedies.find(case, start))


_STEPS = {
    "cut by threshold": "threshold",
    "beyond depth": "depth",
    "missed": "match",
    "no match": "match",
    "not asked": "match",
}
"""State of a source -> the step that dropped the record; of several states the first counts."""


def _dropped(case: _Case) -> tuple[str, str]:
    """The step that dropped it, and why."""
    result, position = case.result, case.position
    if position < 0:
        reasons = [(step, s.reason) for state, step in _STEPS.items() for s in case.standings if s.state == state]
        reasons += [("match", f"{u.source} could not run ({u.reason})") for u in result.unavailable]
        reasons = reasons or [("match", "No source was searched")]
        return reasons[0][0], "; ".join(reason for _, reason in reasons)
    outcome, paths, rows = result.outcome, result.retrieved.columns.paths, result.fused.rows
    if (better := outcome.duplicate_of.get(position)) is not None:
        place = case.place(better)
        where = f"result {place}" if better in outcome.shown else f"number {place} of the list"
        return "dedupe", f"Its text is that of {paths[rows[better]]}, which is {where}"
    if position >= outcome.above:
        score, least = float(result.fused.scores[position]), result.plan.threshold(FUSED)
        return "threshold", f"Its fused score is {score:.4g}, and fusion.threshold is {least:g}"
    place = case.place(position)
    number = f"It is number {place:,} of {len(outcome.kept):,}, and"
    if place > len(outcome.shown):
        return "limit", f"{number} limit is {result.plan['limit']}"
    strongest = f"the strongest keyword hit, {paths[rows[outcome.strongest]]}, was put in its place"
    return "strongest", f"{number} {strongest}: keyword.keep_strongest is yes"


def _filtered(engine: Engine, result: SearchResult, name: str, numbers: Ints, search: Search) -> Explanation:
    """Explain a document that the filter or the plan's collections leave out."""
    records, request = engine.records, result.retrieved.request
    collections = request.plan["collections"]

    def left_out(filters: str | None, collections: tuple[str, ...]) -> bool:
        allowed = records.scope(request.principal, filters, collections).allowed
        return allowed is not None and not allowed[numbers].any()

    by_filter, by_collection = left_out(request.filters or None, ()), left_out(None, collections)
    if not by_filter and not by_collection:
        by_filter = by_collection = True  # some of its passages pass the one, others the other
    reasons, start, stored = [], Remedy(), records.rows(numbers.tolist())
    if by_filter:
        reasons.append(f"It does not pass the filter {request.filters}")
        start = start.more(words="take the filter away", filters="")
    if by_collection:
        own = listed(sorted({row.chunk.collection for row in stored}))
        reasons.append(f"It is in {own}, and the plan's collections are {listed(collections)}")
        start = start.more({"collections": "all"})
    # Once that is gone something else may keep it out.
    then = explain(engine, search(result.plan.replace(start.changes), **start.request), name, search, start)
    remedy = start.fields("" if then.rank else f"{start.sentence}; then: {then.reason}. {then.remedy}")
    if then.verified:
        remedy = {name: getattr(then, name) for name in remedy}
    reason = "it is left out before the sources are searched"
    sources = result.retrieved.sources_for(request.plan)
    return Explanation(
        target=name,
        **_shown(engine, int(numbers[0]), stored[0].chunk),
        standings=tuple(SourceStanding(source, "not asked", reason=reason) for source in sources),
        dropped_by="filters",
        reason="; ".join(reasons),
        **remedy,
    )


# --- remedies ----------------------------------------------------------------------------------------------------------------


class _Remedies:
    """What would bring a document into a result, or some of its chunks where `chunk_ids` names them."""

    def __init__(self, base: SearchResult, document_id: str, chunk_ids: frozenset[str], search: Search) -> None:
        self.base, self.document_id, self.chunk_ids, self.search = base, document_id, chunk_ids, search

    def _positions(self, result: SearchResult) -> list[int]:
        names = result.fused.chunk_ids if self.chunk_ids else result.fused.document_ids
        return [n for n, name in enumerate(names) if name in (self.chunk_ids or {self.document_id})]

    def rank(self, result: SearchResult) -> int:
        """Its rank among the results; 0 where it is none."""
        found = np.flatnonzero(np.isin(result.outcome.shown, self._positions(result)))
        return int(found[0]) + 1 if len(found) else 0

    def _place(self, result: SearchResult) -> int:
        """Its number in the list before the limit; 0 where it is not in it."""
        found = np.flatnonzero(np.isin(result.order, self._positions(result)))
        return int(found[0]) + 1 if len(found) else 0

    def find(self, case: _Case, start: Remedy) -> dict[str, Any]:
        """The least change that brings it in, or a sentence where none does, as the fields of an explanation."""
        in_list: list[tuple[Remedy, SearchResult]] = []
        for remedy, again in self._reached(case, start, 2):
            if self.rank(again):
                return remedy.fields()
            if "mode" not in remedy.request:  # another mode and then more of it is no advice
                in_list.append((remedy, again))
        for remedy, again in in_list:
            for changes in self._lifts(again):
                lifted = remedy.more(changes)
                if (found := self._run(lifted, again)) is not None and self.rank(found):
                    return lifted.fields()
        past = 0
        for remedy, again in in_list:
            limited = self._limited(remedy, again)
            if isinstance(limited, Remedy):
                return limited.fields()
            past = past or limited
        result = self.base
        if past:
            most = int(result.plan["limit.max"])
            text = f"It is number {past:,} of the list, beyond limit.max {most:,}: use words that it has"
            return Remedy().fields(text)
        other = "" if result.mode in ("hybrid", "vector") else ", or the mode vector"
        return Remedy().fields(f"No setting that was tried brings it in: use words that it has{other}")

    def _run(self, remedy: Remedy, near: SearchResult | None = None) -> SearchResult | None:
        """What a search with the remedy gives; None where its settings cannot be. One that differs from the search of `near` in
        fusion alone is fused again, which gives the same.
        """
        try:
            plan = self.base.plan.replace(remedy.changes)
            if near is not None:
                try:
                    return near.with_plan(plan)
                except NeedsSearch:
                    pass
            return self.search(plan, **remedy.request)
        except WorkbenchError:
            return None

    def _reached(self, case: _Case, remedy: Remedy, rounds: int) -> Iterator[tuple[Remedy, SearchResult]]:
        """Searches that have it in the list that the limit cuts, the least change first. What one change brings to light (a
        depth, once the operator is another one) is changed in a second round.
        """
        again, own = case.result, self._positions(case.result)
        if self._place(again):
            yield remedy, again
            return
        if any(position in again.outcome.duplicate_of for position in own):
            steps: Iterator[Remedy] = iter([remedy.more({"dedupe": "no"})])
        elif own:
            least = below(float(again.fused.scores[own[0]]))
            steps = iter([remedy.more({again.plan.threshold_to_set(FUSED): least})])
        elif rounds:
            rounds -= 1
            steps = _retrieving(case, remedy)
        else:
            return
        for step in steps:
            if (found := self._run(step)) is not None:
                left = 0 if "mode" in step.request else rounds
                yield from self._reached(_Case(case.engine, found, case.numbers), step, left)

    def _lifts(self, again: SearchResult) -> Iterator[dict[str, Any]]:
        """Settings that may lift it into the results that were asked for."""
        plan, sources = again.plan, again.retrieved.sources_for(again.plan)
        if plan["fusion.unit"] == "chunk":
            yield {"fusion.unit": "document"}
        if any(base_of(s) == "keyword" for s in sources):
            yield {"keyword.operator": "all" if plan["keyword.operator"] == "any" else "any"}
        if len(sources) > 1:
            yield from _shares(plan, sources)
        row, name = int(again.fused.rows[again.order[self._place(again) - 1]]), plan["vector.metric"]
        for source in (s for s in sources if base_of(s) == "vector"):
            # A threshold just above it, which cuts what is farther off, or none.
            column = again.candidates.column(source)
            score = column.score[row] if column.rank[row] > 0 else column.computed[row]
            values = [] if np.isnan(score) else [_just_above(float(to_distance(score, name)), name)]
            yield from ({plan.threshold_to_set(source): v} for v in (*values, OFF) if v != plan.threshold(source))

    def _limited(self, remedy: Remedy, again: SearchResult) -> Remedy | int:
        """As many results as it takes; its number where that is beyond the largest limit, or 0. A greater limit may deepen the
        sources and move the list, so that it is tried again, in the end with the depths as they are.
        """
        for attempt in range(_LIMIT_TRIES):
            place = self._place(again)
            # The last place may be the strongest keyword hit's.
            limit = max(place, int(again.plan["limit"]) + 1)
            if not place or limit > again.plan["limit.max"]:
                return place
            sources = again.retrieved.sources_for(again.plan) if attempt == _LIMIT_TRIES - 1 else ()
            changed = remedy.more({"limit": limit, **{f"depth.{s}": again.plan.depth(s) for s in sources}})
            found = self._run(changed)
            if found is None:
                break
            if self.rank(found):
                return changed
            again = found
        return 0


def _retrieving(case: _Case, start: Remedy) -> Iterator[Remedy]:
    """What may make some source retrieve it, the least change first; then sources that were not asked, or another mode."""
    plan, query = case.plan, start.request.get("query", case.result.query)
    for standing in case.standings:
        if base_of(standing.source) == "keyword" and standing.state == "no match":
            yield from _worded(case.no_match(standing.source, case.number), query, start)
    for standing in sorted(case.standings, key=lambda s: (s.rank is None, s.rank or 0, s.source)):
        source, changes = standing.source, dict[str, Any]()
        if standing.state == "cut by threshold" and standing.score is not None:
            far = standing.distance
            kept = below(standing.score) if far is None else _just_above(far, plan["vector.metric"])
            changes[plan.threshold_to_set(source)] = kept
        if standing.state == "missed":
            changes["vector.exact"] = "yes"
        if standing.rank is not None and standing.rank > plan.depth(source):
            changes[f"depth.{source}"] = standing.rank
        if changes:
            yield start.more(changes)
    mode, kinds = case.result.mode, {base_of(s.source) for s in case.standings if s.state != "not asked"}
    if mode == "hybrid":
        for kind in ("vector", "keyword"):
            if kind not in kinds:
                yield start.more({"sources": ",".join(sorted({*plan.sources, kind}))})
    else:
        for other in MODES:
            if other not in (mode, "grep"):
                yield start.more(words=f"use the mode {other}", mode=other)


def _worded(words: NoMatch, query: str, start: Remedy) -> Iterator[Remedy]:
    """What makes the keyword source match: the operator, and the query without what is in the way."""
    if words.excluded:
        query = without(query, words.excluded)
        taken = f"take {listed('-' + text for text in words.excluded)} out of the query"
        start = start.more(words=taken, query=query)
        yield start
    if words.any_helps:
        yield start.more({"keyword.operator": "any"})
    if words.unquoting_helps:
        yield start.more(words="take the quotes out of the query", query=unquoted(query))


def _shares(plan: Plan, sources: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Other shares of the sources, the smallest change first."""
    if plan["fusion.method"] == "convex":
        now = float(plan["fusion.alpha"])
        for alpha in sorted((n / 10 for n in range(11)), key=lambda a: (abs(a - now), a)):
            if abs(alpha - now) > 1e-9:
                yield {"fusion.alpha": alpha}
    for factor in _FACTORS:
        for source in sources:
            if weight := float(plan[f"fusion.weights.{source}"]) * factor:
                yield {f"fusion.weights.{source}": float(f"{weight:.4g}")}


def _just_above(distance: float, name: str) -> float | str:
    """The next threshold, in steps of 0.01, that keeps a distance; off where the metric's range has none."""
    step = (int(distance * 100) + 1) / 100
    return step if step <= metric(name).largest else OFF
