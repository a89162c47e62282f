"""Where any document stands: its rank and score in every source, the step that dropped it, and what would bring it in.

Nothing is said that was not looked up: ranks beyond the depth are those of the whole ranking, missing words are those of the
postings, and a remedy was searched with (`remedies`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import UsageError
from workbench.plan.fields import FUSED, OFF, base_of, encoder_of
from workbench.ranking.distance import to_distance
from workbench.records import Hit, cite
from workbench.retrieve.engine import Engine
from workbench.retrieve.messages import listed, why_not
from workbench.retrieve.readfile import find_place, split_citation
from workbench.retrieve.remedies import Aim, Cause, Remedy, Search, find
from workbench.retrieve.result import SearchResult
from workbench.retrieve.retrieved import Retrieved, counts_documents
from workbench.retrieve.sources import retrieve, scope_of
from workbench.store.types import QueryWords, Scope, Scored


@dataclass(frozen=True, slots=True)
class SourceStanding:
    """Where a record stands in one source.

    Attributes:
        source: The source.
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
    rank: int | None
    score: float | None
    distance: float | None
    contribution: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where one document stands in a result.

    Attributes:
        target: As asked.
        found: False when no document that the principal may see has that name.
        path, citation, chunk_id: The record that stands for it: its best one.
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


def explain(engine: Engine, result: SearchResult, target: str | Hit, search: Search) -> Explanation:
    """Explain where `target` stands in `result`.

    Args:
        engine: The result's generation.
        result: A result.
        target: A hit, a chunk id, a document id or path, or a citation: `path:line`, `path:first-last`, `path#slide=3`.
        search: Runs the result's request again with another plan, query, mode or filter.
    """
    name = target.chunk_id if isinstance(target, Hit) else str(target).strip()
    return _explain(engine, result, name, search, Remedy())


def _explain(engine: Engine, result: SearchResult, name: str, search: Search, start: Remedy) -> Explanation:
    """Explain a result that was searched with the changes of `start`."""
    retrieved: Retrieved = result.retrieved
    request = retrieved.request
    everything = engine.records.scope(request.principal, None, ())
    numbers, whole = _resolve(engine, name, everything)
    if not len(numbers):
        return Explanation(
            name,
            False,
            dropped_by="corpus",
            reason="No document that you may see has this path or id",
            remedy="Check the spelling, or index it with `workbench index PATH`",
        )
    allowed = retrieved.scope.allowed
    inside = numbers if allowed is None else numbers[allowed[numbers]]
    if not len(inside):
        return _filtered(engine, result, name, numbers, search)
    if result.plan["grep.show"] == "passage":
        inside = _shown_as(result, inside)
    return _explain_records(engine, result, name, inside.tolist(), whole, search, start)


def _shown_as(result: SearchResult, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Records, those that a passage of the result shows by the one that stands for it."""
    retrieved = result.retrieved
    known = retrieved.columns.numbers
    holders = known[retrieved.holders(result.outcome.candidates)]
    rows = np.searchsorted(known, numbers).clip(max=max(len(known) - 1, 0))
    found = np.array([holders[r] if len(known) and known[r] == n else n for r, n in zip(rows, numbers, strict=True)])
    return np.unique(found.astype(np.int64))


def _resolve(engine: Engine, name: str, scope: Scope) -> tuple[np.ndarray[Any, np.dtype[np.int64]], bool]:
    """Visible records that a name stands for, and whether it is a whole document's; a line range leaves those that touch it, if
    any does.
    """
    number = engine.records.find_record(name, scope)
    if number is not None:
        return np.array([number], np.int64), False
    read = ((engine.records.find_document(path, scope), place) for path, place in split_citation(name))
    document, place = next(((number, place) for number, place in read if number is not None), (None, ""))
    if document is None:
        return np.zeros(0, np.int64), True
    first, last = _lines_at(engine, document, place) if place else (0, 0)
    numbers = engine.records.records_of(document)
    if scope.visible is not None:
        numbers = numbers[scope.visible[numbers]]
    if first:
        columns = engine.records.columns(numbers)
        touching = (columns.start_lines <= last) & (columns.end_lines >= first)
        # Lines that no record touches (an old citation, blank lines between chunks) leave the document as a whole.
        if touching.any():
            return numbers[touching], False
    return numbers, True


def _lines_at(engine: Engine, document: int, place: str) -> tuple[int, int]:
    """First and last line of a place in a document; zeros where it is not there, as in an old citation."""
    text, (header,) = engine.grep.text(document), engine.records.headers([document])
    try:
        span = find_place(place, text, engine.records.places(document), header.page_starts)
    except UsageError:
        return 0, 0
    first = text.count("\n", 0, span.start) + 1
    return first, first + text.count("\n", span.start, max(span.end - 1, span.start))


class _Places:
    """Where records are in each source of a result; a source is asked beyond the retrieved depth only where need be, once."""

    def __init__(self, engine: Engine, result: SearchResult, subject: str = "it") -> None:
        self.subject = subject
        self.engine, self.result, self.retrieved, self.plan = engine, result, result.retrieved, result.plan
        self.sources = self.retrieved.sources_for(result.plan)
        self._complete: dict[str, Scored] = {}
        self._words: dict[str, QueryWords] = {}

    def item(self, number: int) -> int:
        """Position in the fused list of a record, of its document where the plan ranks documents; -1 where it has none."""
        fused, rows = self.result.fused, self.retrieved.columns.numbers
        if fused.unit == "document":
            (document_id,) = self.engine.records.columns(np.array([number], np.int64)).document_ids
            return fused.document_ids.index(document_id) if document_id in fused.document_ids else -1
        at = int(np.searchsorted(rows, number))
        if at >= len(rows) or rows[at] != number:
            return -1
        found = np.flatnonzero(fused.rows == at)
        return int(found[0]) if len(found) else -1

    def place(self, position: int) -> int:
        """Number in the list that the limit cuts: after dedupe, as a reranking model ordered it; 0 where it is not in it."""
        found = np.flatnonzero(self.result.order == position)
        return int(found[0]) + 1 if len(found) else 0

    def scope(self, source: str) -> Scope:
        """What a source searches."""
        return scope_of(self.engine, self.retrieved.request, source, self.retrieved.scope)

    def words(self, source: str) -> QueryWords:
        """What of the query occurs where, of a keyword source."""
        if source not in self._words:
            self._words[source] = self.engine.lexical.occurring(self.retrieved.request.query, self.scope(source))
        return self._words[source]

    def complete(self, source: str) -> Scored:
        """A source's whole ranking."""
        if source not in self._complete:
            self._complete[source] = self._ask(source)
        return self._complete[source]

    def _ask(self, source: str) -> Scored:
        retrieved, answer = self.retrieved, self.retrieved.answers[source]
        request, base, most = retrieved.request, base_of(source), max(answer.entered, 1)
        if answer.exhausted:
            return answer.scored
        if base == "vector":
            encoder = encoder_of(source)
            index = self.engine.vectors(encoder)
            return index.search(retrieved.vectors[encoder], self.scope(source), most, exact="yes")
        others = {s: a for s, a in retrieved.answers.items() if s != source}
        again = retrieve(self.engine, request, {source: max(most, 100_000)}, others)
        return again.answers[source].scored

    def rank(self, source: str, number: int) -> int | None:
        """Rank of a record among all of a source, in the unit that the plan's depth counts; None where it does not match."""
        every = self.complete(source).numbers
        at = np.flatnonzero(every == number)
        if not len(at):
            return None
        if not counts_documents(self.plan):
            return int(at[0]) + 1
        owners = self.engine.records.columns(every[: at[0] + 1]).document_numbers
        return len(np.unique(owners))

    def of(self, number: int) -> tuple[SourceStanding, ...]:
        """Where a record is in every source of the plan."""
        position = self.item(number)
        return tuple(self._of(source, number, position) for source in self.sources)

    def _of(self, source: str, number: int, position: int) -> SourceStanding:
        fused, metric, kind = self.result.fused, self.plan["vector.metric"], base_of(source)
        values = fused.contributions.get(source)
        added = float(values[position]) if values is not None and position >= 0 else 0.0
        counted = fused.ranks.get(source)
        if counted is not None and position >= 0 and counted[position] > 0:
            best = float(fused.candidates.column(source).score[fused.records[source][position]])
            at = float(to_distance(np.array(best), metric)) if kind == "vector" else None
            return SourceStanding(source, "retrieved", int(counted[position]), best, at, added)
        allowed = self.scope(source).allowed
        if allowed is not None and not allowed[number]:
            return SourceStanding(source, "not asked", None, None, None, 0.0, f"{source} asks another collection")
        rank, compute = self.rank(source, number), self.retrieved.answers[source].compute
        score = None
        if kind == "grep":
            every = self.complete(source)
            score = None if rank is None else float(every.scores[every.numbers == number][0])
        elif compute is not None and (kind == "vector" or rank is not None):
            score = float(compute(np.array([number], np.int64))[0])
        distance = float(to_distance(np.array(score), metric)) if kind == "vector" and score is not None else None
        state, reason = self._why(source, number, rank, score, distance)
        return SourceStanding(source, state, rank, score, distance, added, reason)

    def _why(
        self, source: str, number: int, rank: int | None, score: float | None, distance: float | None
    ) -> tuple[str, str]:
        """State and reason of a record that a source did not retrieve."""
        plan, kind = self.plan, base_of(source)
        field, bound = plan.threshold_field(source), plan.threshold(source)
        if bound != OFF and distance is not None and distance >= float(bound):
            return "cut by threshold", f"{source} has it at distance {distance:.4f}, and {field} is {bound}"
        if bound != OFF and distance is None and score is not None and score < float(bound):
            return "cut by threshold", f"{source} gives it the BM25 score {score:.4f}, and {field} is {bound}"
        if rank is not None and rank > plan.depth(source):
            unit = " among the documents" if counts_documents(plan) else ""
            return "beyond depth", f"{source} has it at rank {rank:,}{unit}, and the depth is {plan.depth(source):,}"
        if rank is not None:
            if self.retrieved.answers[source].scored.approximate:
                return "missed", f"{source} was answered by the approximate index, which missed its rank {rank:,}"
            return "beyond depth", f"{source} stopped at its depth, {plan.depth(source):,}, before it came to it"
        if kind == "vector":
            return "no match", f"{source} had nothing to compare: the query is empty"
        if kind == "keyword":
            reason = why_not(self.words(source), number, plan["keyword.operator"], self.subject).reason
            return "no match", f"{source}: {reason}"
        if not self.retrieved.patterns:
            return "no match", f"{source} had nothing to look for"
        wanted = listed((f'"{pattern}"' for pattern in self.retrieved.patterns), "or")
        elsewhere = self._passages(source, number)
        if not elsewhere:
            return "no match", f"{source}: no line of it has {wanted}"
        return "no match", f"{source}: its document's lines with {wanted} are in {listed(elsewhere)}"

    def _passages(self, source: str, number: int) -> tuple[str, ...]:
        """The first passages of a record's document that grep finds, as citations."""
        scope, records, plan = self.scope(source), self.engine.records, self.plan
        (document,) = records.columns(np.array([number], np.int64)).document_numbers.tolist()
        only = np.zeros(records.documents_total, bool)
        only[document] = True
        own = replace(scope, allowed_documents=only, key=f"{scope.key}\ndocument {document}")
        answer = self.engine.grep.search(
            self.retrieved.patterns,
            own,
            3,
            regex=plan["grep.regex"],
            case=plan["grep.case"],
            word=plan["grep.word"],
            context=0,
        )
        return tuple(passage.citation for passage in answer.passages)


def _merit(places: _Places, numbers: Sequence[int]) -> int:
    """Of a document's records the one that stands for it: the best in the fused list, else in any source, else the one that
    lacks least of the query.
    """
    found = {number: places.item(number) for number in numbers}
    if any(position >= 0 for position in found.values()):
        rows = places.retrieved.columns.numbers[places.result.fused.rows]
        # A position that dedupe dropped comes after all that it kept; the record shown for a document before its others.
        order = {n: places.place(p) or len(places.result.fused) + p + 1 for n, p in found.items() if p >= 0}
        return min(order, key=lambda n: (order[n], int(rows[found[n]]) != n, n))
    ranks: dict[int, int] = {}
    for source in places.sources:
        every = places.complete(source).numbers
        for rank in np.flatnonzero(np.isin(every, numbers)).tolist():
            number = int(every[rank])
            ranks[number] = min(ranks.get(number, rank), rank)
    if ranks:
        return min(ranks, key=lambda n: (ranks[n], n))
    words = [places.words(s) for s in places.sources if base_of(s) == "keyword"]
    operator = places.plan["keyword.operator"]
    return min(numbers, key=lambda n: (min((why_not(w, n, operator).missing for w in words), default=0), n))


def _explain_records(
    engine: Engine, result: SearchResult, name: str, numbers: Sequence[int], whole: bool, search: Search, start: Remedy
) -> Explanation:
    """Explain records that the filter and the collections leave: a document's, or those that a place touches."""
    places = _Places(engine, result, "its best passage" if whole and len(numbers) > 1 else "it")
    number = _merit(places, numbers)
    (stored,) = engine.records.rows([number])
    chunk, path = stored.chunk, _shown_path(engine, result.retrieved, number)
    if not whole and result.plan["fusion.unit"] != "document":
        aim = Aim(chunk.document_id, frozenset(engine.records.columns(np.array(numbers, np.int64)).chunk_ids))
    else:
        aim = Aim(chunk.document_id)
    standings, position = places.of(number), places.item(number)
    base: dict[str, Any] = {
        "target": name,
        "found": True,
        "path": path,
        "chunk_id": chunk.chunk_id,
        "standings": standings,
        "citation": cite(path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator),
        "fused_rank": position + 1 if position >= 0 else None,
    }
    rank = aim.rank(result)
    if rank:
        shown = next(h for h in result.hits if h.rank == rank)
        reason = "It is a result" if shown.chunk_id == chunk.chunk_id else f"It is a result, shown by {shown.citation}"
        return Explanation(**base, rank=rank, reason=reason)
    step, reason = _dropped(places, standings, position)
    if any(h.added and h.chunk_id == chunk.chunk_id for h in result.hits):
        reason += "; it is shown beside the results of its page, without a rank"

    def causes(again: SearchResult) -> list[Cause]:
        there = places if again is result else _Places(engine, again)
        best = number if again is result else _merit(there, numbers)
        return [] if there.item(best) >= 0 else [_cause(there, s, best) for s in there.of(best)]

    return Explanation(
        **base, dropped_by=step, reason=reason, **_told(result, find(result, aim, causes, search, start))
    )


def _cause(places: _Places, standing: SourceStanding, number: int) -> Cause:
    words = None
    if base_of(standing.source) == "keyword" and standing.state == "no match":
        words = why_not(places.words(standing.source), number, places.plan["keyword.operator"])
    return Cause(standing.source, standing.state, standing.rank, standing.score, standing.distance, words)


def _told(result: SearchResult, remedy: Remedy) -> dict[str, Any]:
    """A remedy as an explanation has it."""
    sentence = remedy.sentence
    if not remedy.verified:
        most = int(result.plan["limit.max"])
        other = "" if result.mode in ("hybrid", "vector") else ", or the mode vector"
        sentence = f"No setting that was tried brings it in: use words that it has{other}"
        if remedy.beyond:
            sentence = f"It is number {remedy.beyond:,} of the list, beyond limit.max {most:,}: use words that it has"
    return {
        "changes": dict(remedy.changes) or None,
        "query": remedy.request.get("query", ""),
        "mode": remedy.request.get("mode", ""),
        "without_filter": remedy.request.get("filters") == "",
        "remedy": sentence,
        "verified": remedy.verified,
    }


def _dropped(places: _Places, standings: tuple[SourceStanding, ...], position: int) -> tuple[str, str]:
    result = places.result
    if position >= 0:
        outcome, paths, rows = result.outcome, result.retrieved.columns.paths, result.fused.rows
        better = outcome.duplicate_of.get(position)
        if better is not None:
            place = places.place(better)
            where = f"result {place}" if better in outcome.shown else f"number {place} of the list"
            return "dedupe", f"Its text is that of {paths[rows[better]]}, which is {where}"
        if position >= outcome.above:
            score = float(result.fused.scores[position])
            return (
                "threshold",
                f"Its fused score is {score:.4g}, and fusion.threshold is {result.plan.threshold(FUSED):g}",
            )
        place = places.place(position)
        if place <= len(outcome.shown):
            return "strongest", (
                f"It is number {place} of {len(outcome.kept):,}, and the strongest keyword hit, "
                f"{paths[rows[outcome.strongest]]}, was put in its place: keyword.keep_strongest is yes"
            )
        return "limit", f"It is number {place:,} of {len(outcome.kept):,}, and limit is {result.plan['limit']}"
    reasons = [(step, s.reason) for state, step in _STEPS for s in standings if s.state == state]
    reasons += [("match", f"{u.source} could not run ({u.reason})") for u in result.unavailable]
    if not reasons:
        return "match", "No source was searched"
    return reasons[0][0], "; ".join(reason for _, reason in reasons)


_STEPS = (
    ("cut by threshold", "threshold"),
    ("beyond depth", "depth"),
    ("missed", "match"),
    ("no match", "match"),
    ("not asked", "match"),
)


def _shown_path(engine: Engine, retrieved: Retrieved, number: int) -> str:
    """The path of a record's document."""
    return engine.records.columns(np.array([number], np.int64)).paths[0]


def _filtered(
    engine: Engine, result: SearchResult, name: str, numbers: np.ndarray[Any, np.dtype[np.int64]], search: Search
) -> Explanation:
    """Explain a document that the filter or the plan's collections leave out."""
    records, request = engine.records, result.retrieved.request
    (stored,) = records.rows([int(numbers[0])])
    chunk, path = stored.chunk, _shown_path(engine, result.retrieved, int(numbers[0]))
    collections = request.plan["collections"]

    def passes(scope: Scope) -> bool:
        return scope.allowed is None or bool(scope.allowed[numbers].any())

    by_filter = not passes(records.scope(request.principal, request.filters or None, ()))
    by_collection = not passes(records.scope(request.principal, None, collections))
    if not by_filter and not by_collection:
        by_filter = by_collection = True  # some of its passages pass the one, others the other
    reasons, start = [], Remedy()
    if by_filter:
        reasons.append(f"It does not pass the filter {request.filters}")
        start = Remedy(request={"filters": ""}, said=("take the filter away",))
    if by_collection:
        own = sorted({row.chunk.collection for row in records.rows(numbers.tolist())})
        reasons.append(f"It is in {listed(own)}, and the plan's collections are {listed(collections)}")
        start = start.more({"collections": "all"})
    # Once that is gone something else may keep it out.
    then = _explain(engine, search(result.plan.replace(start.changes), **start.request), name, search, start)
    told = _told(result, replace(start, verified=bool(then.rank)))
    if then.verified:
        told = {name: getattr(then, name) for name in told}
    elif not then.rank:
        told |= {
            "changes": dict(start.changes) or None,
            "remedy": f"{start.sentence}; then: {then.reason}. {then.remedy}",
        }
    return Explanation(
        name,
        True,
        path=path,
        citation=cite(path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator),
        chunk_id=chunk.chunk_id,
        standings=tuple(
            SourceStanding(s, "not asked", None, None, None, 0.0, "it is left out before the sources are searched")
            for s in result.retrieved.sources_for(request.plan)
        ),
        dropped_by="filters",
        reason="; ".join(reasons),
        **told,
    )
