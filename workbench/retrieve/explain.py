"""Why a document is in a result or not: what each source says of it, the step that dropped it, and what would bring it in."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workbench.errors import UsageError
from workbench.plan.fields import FUSED, base_of
from workbench.ranking.candidates import Ints
from workbench.records import Chunk, Hit, cite
from workbench.retrieve.engine import Engine
from workbench.retrieve.messages import listed
from workbench.retrieve.readfile import find_place, lines_of, split_citation
from workbench.retrieve.remedies import Remedies, Remedy, Search, Way
from workbench.retrieve.result import SearchResult
from workbench.retrieve.standing import Case, SourceStanding
from workbench.store.catalogue import Catalogue
from workbench.store.types import Scope


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one document is in a result, or not.

    Attributes:
        target: As asked.
        found: False when no document that the principal may see has that name.
        path, citation, chunk_id: The record that represents it: its best one.
        rank: Its rank in the result, None when it is not in it.
        fused_rank, score: Its rank in the fused list before dedupe and limit, and its score there, the sum of the standings'
            contributions; None when no source retrieved it.
        standings: One a source.
        beside: What was added to the score by no source: feedback from the top.
        dropped_by: The step that dropped it: `corpus`, `filters`, `match`, `depth`, `threshold`, `dedupe`, `strongest`, `limit`;
            "" for a result.
        reason: That step in a sentence.
        changes: Plan fields that would bring it in, of what was tried; None where none did.
        query: The query that would bring it in, where it must change; else "".
        mode: The mode that would bring it in, where it must change; else "".
        without_filter: Whether the filter must go.
        remedy: All of that in a sentence.
        verified: It was searched with, and the document was a result.
        ways: The ways in that were found, the first of them as told above; a greater limit is the last.
        similar: Where nothing was found: visible paths with these letters. One alone is taken.
    """

    target: str
    found: bool
    path: str = ""
    citation: str = ""
    chunk_id: str = ""
    rank: int | None = None
    fused_rank: int | None = None
    score: float | None = None
    standings: tuple[SourceStanding, ...] = ()
    dropped_by: str = ""
    reason: str = ""
    changes: Mapping[str, Any] | None = None
    query: str = ""
    mode: str = ""
    without_filter: bool = False
    remedy: str = ""
    verified: bool = False
    ways: tuple[Way, ...] = ()
    similar: tuple[str, ...] = ()
    beside: Mapping[str, float] = field(default_factory=dict)

    @property
    def sum(self) -> str:
        """The fused score as the sum that it is: `0.3162 (vector, similarity 0.412) + 0.08 (keyword, BM25 3.1) = 0.3962`."""
        added = [s for s in self.standings if s.contribution] if self.score is not None else []
        kinds = {"vector": "similarity", "keyword": "BM25"}
        parts = [
            f"{s.contribution:.4g} ({s.source}"
            + ("" if s.score is None else f", {kinds.get(base_of(s.source), 'score')} {s.score:.4g}")
            + ")"
            for s in added
        ]
        parts += [f"{value:.4g} ({name})" for name, value in self.beside.items() if value and added]
        return f"{' + '.join(parts)} = {self.score:.4g}" if parts else ""


_SIMILAR = 8


def explain(
    result: SearchResult, target: str | Hit, search: Search, start: Remedy | None = None, *, every: bool = False
) -> Explanation:
    """Explain why `target` is in `result`, or not.

    Args:
        result: A result.
        target: A hit, a chunk id, a document id or path, or a citation: `path:line`, `path:first-last`, `path#slide=3`. A part
            of one path alone is as good as the whole.
        search: Runs the result's request again with another plan, query, mode or filter.
        start: Changes that the result was searched with already.
        every: Look for every kind of way in, not the first alone.
    """
    name = target.chunk_id if isinstance(target, Hit) else str(target).strip()
    engine, retrieved = result.engine, result.retrieved
    scope = engine.visible
    numbers, whole = _resolve(engine, name, scope)
    similar = () if len(numbers) else _similar(engine, name, scope)
    if len(similar) == 1:
        numbers, whole = _resolve(engine, similar[0], scope)
    if not len(numbers):
        reason = "No document that you may see has this path or id"
        remedy = "Check the spelling, or index it with `workbench index PATH`"
        return Explanation(name, False, dropped_by="corpus", reason=reason, remedy=remedy, similar=similar)
    allowed = retrieved.scope.allowed
    inside = numbers if allowed is None else numbers[allowed[numbers]]
    if not len(inside):
        return _filtered(result, name, numbers, search, every)
    shown = _shown_as(result, inside).tolist()
    return _explain_records(result, name, shown, whole, search, start or Remedy(), every)


def dropped(result: SearchResult, chunk_id: str) -> tuple[str, str]:
    """The step that keeps a record out of a result, and why, as `explain` has them, without any search for a remedy; "" and why
    not where it is a result, or its document is where the plan ranks documents.
    """
    number = result.engine.records.find_record(chunk_id, result.engine.visible)
    allowed = result.retrieved.scope.allowed
    if number is None or (allowed is not None and not allowed[number]):
        return "filters", "The filter or the plan's collections leave it out"
    case = Case(result, _shown_as(result, np.array([number], np.int64)).tolist())
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


def _similar(engine: Engine, name: str, scope: Scope) -> tuple[str, ...]:
    """Visible paths that hold a name, or the path of a citation with its place put behind each."""
    catalogue = Catalogue(engine.opened)
    for part, _ in split_citation(name):
        if part and (found := catalogue.paths(scope, _SIMILAR, part)):
            return tuple(path + name[len(part) :] for path in found)
    return ()


def _shown(engine: Engine, number: int, chunk: Chunk) -> dict[str, Any]:
    path = engine.records.columns(np.array([number], np.int64)).paths[0]
    citation = cite(path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator)
    return {"found": True, "path": path, "chunk_id": chunk.chunk_id, "citation": citation}


def _explain_records(
    result: SearchResult, name: str, numbers: Sequence[int], whole: bool, search: Search, start: Remedy, every: bool
) -> Explanation:
    engine = result.engine
    case = Case(result, numbers, "its best passage" if whole and len(numbers) > 1 else "it")
    chunk = engine.records.rows([case.number])[0].chunk
    parts = not whole and result.plan["fusion.unit"] != "document"
    names = engine.records.columns(np.array(numbers, np.int64)).chunk_ids if parts else ()
    remedies = Remedies(result, chunk.document_id, frozenset(names), search)
    base: dict[str, Any] = {
        "target": name,
        **_shown(engine, case.number, chunk),
        "standings": case.standings,
        "fused_rank": case.position + 1 if case.position >= 0 else None,
        "score": float(result.fused.scores[case.position]) if case.position >= 0 else None,
        "beside": {
            name: float(values[case.position])
            for name, values in result.fused.contributions.items()
            if name not in case.sources and case.position >= 0
        },
    }
    if rank := remedies.rank(result):
        shown = next(h for h in result.hits if h.rank == rank)
        reason = "It is a result" if shown.chunk_id == chunk.chunk_id else f"It is a result, shown by {shown.citation}"
        return Explanation(**base, rank=rank, reason=reason)
    step, reason = _dropped(case)
    if any(h.added and h.chunk_id == chunk.chunk_id for h in result.hits):
        reason += "; it is shown beside the results of its page, without a rank"
    ways = tuple(itertools.islice(remedies.ways(case, start), None if every else 1))
    first = ways[0] if ways else Way(remedies.none(case, start), 0)
    return Explanation(**base, dropped_by=step, reason=reason, ways=ways, **_told(first))


def _told(way: Way) -> dict[str, Any]:
    """The parts of an explanation that tell its first way in, or why there is none."""
    names = ("changes", "query", "mode", "without_filter", "remedy")
    return {**{name: getattr(way, name) for name in names}, "verified": way.rank > 0}


_STEPS = {
    "cut by threshold": "threshold",
    "beyond depth": "depth",
    "missed": "match",
    "no match": "match",
    "not asked": "match",
}
"""State of a source -> the step that dropped the record; of several states the first counts."""


def _dropped(case: Case) -> tuple[str, str]:
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


def _filtered(result: SearchResult, name: str, numbers: Ints, search: Search, every: bool) -> Explanation:
    engine, request = result.engine, result.retrieved.request
    records = engine.records
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
    opened = search(result.plan.replace(start.changes), **start.request)
    then = explain(opened, name, search, start, every=every)
    ways = (start.way(then.rank),) if then.rank else then.ways
    first = ways[0] if ways else replace(start.way(), remedy=f"{start.sentence}; then: {then.reason}. {then.remedy}")
    reason = "it is left out before the sources are searched"
    sources = result.retrieved.sources_for(request.plan)
    return Explanation(
        target=name,
        **_shown(engine, int(numbers[0]), stored[0].chunk),
        standings=tuple(SourceStanding(source, "not asked", reason=reason) for source in sources),
        dropped_by="filters",
        reason="; ".join(reasons),
        ways=ways,
        **_told(first),
    )
