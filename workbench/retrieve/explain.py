"""Where any document stands: its rank and score in every source, the step that dropped it, and what would bring it in.

A remedy is not guessed: the changed plan is searched with, and `verified` says whether the document is then a result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.errors import UsageError
from workbench.plan import Plan
from workbench.plan_fields import OFF
from workbench.plan_values import base_of, encoder_of
from workbench.ranking.distance import to_distance
from workbench.records import Hit, cite
from workbench.retrieve.cited import find_place, split_citation
from workbench.retrieve.copies import as_asked
from workbench.retrieve.engine import Engine
from workbench.retrieve.result import SearchResult
from workbench.retrieve.retrieved import Answer, Retrieved
from workbench.retrieve.sources import scope_of
from workbench.store.protocols import Scope


@dataclass(frozen=True, slots=True)
class SourceStanding:
    """Where a record stands in one source.

    Attributes:
        source: The source.
        state: `retrieved`, `beyond depth`, `cut by threshold`, `no match`, or `not asked` (a filter leaves it out, or the source
            asks another collection).
        rank: From 1 among all records of the source; None where it does not match.
        score: Raw score, None where there is none.
        distance: In the plan's metric, vector sources only.
        contribution: What it added to the fused score; 0 where it was not retrieved and nothing is computed.
    """

    source: str
    state: str
    rank: int | None
    score: float | None
    distance: float | None
    contribution: float


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
        dropped_by: The step that dropped it: `corpus`, `filters`, `match`, `depth`, `threshold`, `dedupe`, `limit`; "" for
            a result.
        reason: That step in a sentence.
        changes: Plan fields that would bring it in; of one that a filter leaves out, without that filter.
        remedy: In a sentence.
        verified: The changed plan was searched with, and the document was a result.
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
    remedy: str = ""
    verified: bool = False


def explain(
    engine: Engine, result: SearchResult, target: str | Hit, search: Callable[[Plan, str | None], SearchResult]
) -> Explanation:
    """Explain where `target` stands in `result`.

    Args:
        engine: The result's generation.
        result: A result.
        target: A hit, a chunk id, a document id or path, or a citation: `path:line`, `path:first-last`, `path#slide=3`.
        search: Runs the result's request again with another plan and filter.
    """
    retrieved: Retrieved = result._retrieved
    request = retrieved.request
    everything = engine.records.scope(request.principal, None, ())
    name = target.chunk_id if isinstance(target, Hit) else str(target).strip()
    numbers = _resolve(engine, name, everything)
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
        return _filtered(engine, retrieved, name, numbers, search)
    standings = {int(n): _standings(engine, result, int(n)) for n in inside}
    fused_rank = _fused_ranks(result)
    best = min(standings, key=lambda n: _merit(n, standings[n], fused_rank))
    return _explain_record(engine, result, name, best, standings[best], fused_rank, search)


def _resolve(engine: Engine, name: str, scope: Scope) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Visible records that a name stands for; a line range leaves those that touch it, if any does."""
    number = engine.records.find_record(name, scope)
    if number is not None:
        return np.array([number], np.int64)
    read = ((engine.records.find_document(path, scope), place) for path, place in split_citation(name))
    document, place = next(((number, place) for number, place in read if number is not None), (None, ""))
    if document is None:
        return np.zeros(0, np.int64)
    first, last = _lines_at(engine, document, place) if place else (0, 0)
    numbers = engine.records.records_of(document)
    if scope.visible is not None:
        numbers = numbers[scope.visible[numbers]]
    if first:
        columns = engine.records.columns(numbers)
        touching = (columns.start_lines <= last) & (columns.end_lines >= first)
        # Lines that no record touches (an old citation, blank lines between chunks) leave the document as a whole.
        numbers = numbers[touching] if touching.any() else numbers
    return numbers


def _lines_at(engine: Engine, document: int, place: str) -> tuple[int, int]:
    """First and last line of a place in a document; zeros where it is not there, as in an old citation."""
    text, (header,) = engine.grep.text(document), engine.records.headers([document])
    try:
        span = find_place(place, text, engine.records.places(document), header.page_starts)
    except UsageError:
        return 0, 0
    first = text.count("\n", 0, span.start) + 1
    return first, first + text.count("\n", span.start, max(span.end - 1, span.start))


def _standings(engine: Engine, result: SearchResult, number: int) -> tuple[SourceStanding, ...]:
    retrieved, plan = result._retrieved, result.plan
    rows = retrieved.columns.numbers
    at = int(np.searchsorted(rows, number))
    row = at if at < len(rows) and rows[at] == number else -1
    positions = np.flatnonzero(result.fused.rows == row) if row >= 0 else np.zeros(0, np.int64)
    made = []
    for source in retrieved.sources_for(plan):
        answer = retrieved.answers[source]
        asks = scope_of(engine, retrieved.request, source, retrieved.scope).allowed
        if asks is not None and not asks[number]:
            made.append(SourceStanding(source, "not asked", None, None, None, 0.0))
            continue
        rank, score = _rank_in(engine, retrieved, source, answer, number)
        distance = None
        state = "no match" if rank is None else ("beyond depth" if rank > plan.depth(source) else "retrieved")
        if base_of(source) == "vector" and score is not None:
            distance = float(to_distance(np.array(score), plan["vector.metric"]))
            threshold = plan.threshold(source)
            if threshold != OFF and distance >= float(threshold):
                state = "cut by threshold"
        values = result.fused.contributions.get(source)
        contribution = float(values[positions[0]]) if values is not None and len(positions) else 0.0
        made.append(SourceStanding(source, state, rank, score, distance, contribution))
    return tuple(made)


def _rank_in(
    engine: Engine, retrieved: Retrieved, source: str, answer: Answer, number: int
) -> tuple[int | None, float | None]:
    """Rank and score of a record in a source, searched for beyond the retrieved depth where need be."""
    scope = scope_of(engine, retrieved.request, source, retrieved.scope)
    at = np.flatnonzero(answer.scored.numbers == number)
    if len(at):
        return int(at[0]) + 1, float(answer.scored.scores[at[0]])
    if answer.compute is None or (base_of(source) == "keyword" and answer.exhausted):
        return None, None
    score = float(answer.compute(np.array([number], np.int64))[0])
    if base_of(source) == "keyword":
        if score <= 0:
            return None, None
        plan = retrieved.request.plan
        every = engine.lexical.search(
            retrieved.request.query,
            scope,
            max(answer.entered, 1),
            k1=plan["keyword.k1"],
            b=plan["keyword.b"],
            operator=plan["keyword.operator"],
        )
        at = np.flatnonzero(every.numbers == number)
        return (int(at[0]) + 1, score) if len(at) else (None, None)
    encoder = encoder_of(source)
    every = engine.vectors(encoder).search(retrieved.vectors[encoder], scope, max(answer.entered, 1), exact="yes")
    at = np.flatnonzero(every.numbers == number)
    return (int(at[0]) + 1, score) if len(at) else (None, score)


def _fused_ranks(result: SearchResult) -> dict[int, int]:
    """Record number -> rank in the fused list."""
    numbers = result._retrieved.columns.numbers[result.fused.rows]
    return {int(n): rank for rank, n in enumerate(numbers.tolist(), 1)}


def _merit(number: int, standings: tuple[SourceStanding, ...], fused: Mapping[int, int]) -> tuple[float, float, int]:
    ranks = [s.rank for s in standings if s.rank is not None]
    return (fused.get(number, float("inf")), min(ranks, default=float("inf")), number)


def _explain_record(
    engine: Engine,
    result: SearchResult,
    name: str,
    number: int,
    standings: tuple[SourceStanding, ...],
    fused_ranks: Mapping[int, int],
    search: Callable[[Plan, str | None], SearchResult],
) -> Explanation:
    (stored,) = engine.records.rows([number])
    chunk = stored.chunk
    path = _shown_path(engine, result._retrieved, number)
    base: dict[str, Any] = {
        "target": name,
        "found": True,
        "path": path,
        "chunk_id": chunk.chunk_id,
        "standings": standings,
        "citation": cite(path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator),
    }
    fused_rank = fused_ranks.get(number)
    shown = {h.chunk_id: h.rank for h in result.hits}
    if chunk.chunk_id in shown:
        return Explanation(**base, rank=shown[chunk.chunk_id], fused_rank=fused_rank, reason="It is a result")
    step, reason = _dropped(result, standings, fused_rank)
    changes: dict[str, Any] = {}
    verified, beyond = _bring_in(result, chunk.chunk_id, standings, changes, search)
    remedy = "Set " + ", ".join(f"{k}={v}" for k, v in changes.items()) if changes else _hopeless(standings)
    if beyond:
        then, most = f"{remedy}, and it is then" if changes else "It is", int(result.plan["limit.max"])
        remedy = f"{then} number {beyond:,} of the list, beyond limit.max {most:,}: ask with its own words"
    return Explanation(
        **base,
        fused_rank=fused_rank,
        dropped_by=step,
        reason=reason,
        changes=changes or None,
        remedy=remedy,
        verified=verified,
    )


def _dropped(result: SearchResult, standings: tuple[SourceStanding, ...], fused_rank: int | None) -> tuple[str, str]:
    if fused_rank is not None:
        position = fused_rank - 1
        better = result._outcome.duplicate_of.get(position)
        if better is not None:
            row = int(result.fused.rows[better])
            return "dedupe", f"Its text is that of a better result, {result._retrieved.columns.paths[row]}"
        # The order of the list is that of `kept`: without what dedupe drops, and as a reranking model puts it.
        if position in result._outcome.kept[: len(result._outcome.shown)]:
            row = int(result.fused.rows[result._outcome.strongest])
            put = result._retrieved.columns.paths[row]
            return "strongest", f"{put}, the strongest keyword hit, was put in its place by keyword.keep_strongest"
        return "limit", f"It is number {fused_rank} of {len(result.fused.rows)}, and limit is {result.plan['limit']}"
    for state, step in (("cut by threshold", "threshold"), ("beyond depth", "depth")):
        for s in standings:
            if s.state == state:
                if step == "depth":
                    return step, f"{s.source} has it at rank {s.rank}, and the depth is {result.plan.depth(s.source)}"
                field, bound = result.plan.threshold_field(s.source), result.plan.threshold(s.source)
                return step, f"{s.source} has it at distance {s.distance:.4f}, and {field} is {bound}"
    if any(s.state == "not asked" for s in standings):
        return "match", "No source that asks its collection matches it"
    return "match", "No source matches it: none of the query's words is in it, and no vector source ran"


def _bring_in(
    result: SearchResult,
    chunk_id: str,
    standings: tuple[SourceStanding, ...],
    changes: dict[str, Any],
    search: Callable[[Plan, str | None], SearchResult],
) -> tuple[bool, int]:
    """Fill `changes` step by step and try each plan, until the record is a result or nothing is left to change.

    Returns:
        Whether it is then a result; and, where only the greatest limit keeps it out, its number in the list, else 0.
    """
    missing = not any(s.state == "retrieved" for s in standings)
    if missing:
        reachable = [s for s in standings if s.rank is not None]
        if not reachable:
            return False, 0
        nearest = min(reachable, key=lambda s: (s.rank or 0, s.source))
        if nearest.state == "cut by threshold":
            field = result.plan.threshold_to_set(nearest.source)
            changes[field] = _just_above(nearest.distance or 0.0, result.plan["vector.metric"])
        if (nearest.rank or 0) > result.plan.depth(nearest.source):
            changes[f"depth.{nearest.source}"] = nearest.rank
    for _ in range(3):
        again = search(result.plan.replace(changes), result.filters or None)
        if any(h.chunk_id == chunk_id for h in again.hits):
            return True, 0
        numbers = again._retrieved.columns.chunk_ids
        rank = next((i for i, row in enumerate(again.fused.rows.tolist()) if numbers[row] == chunk_id), None)
        if rank is None:
            return False, 0
        if rank in again._outcome.duplicate_of:
            changes["dedupe"] = "no"
            continue
        position = int(np.searchsorted(again._outcome.kept, rank)) + 1
        if position > again.plan["limit.max"]:
            return False, position
        changes["limit"] = position
        # A greater limit would deepen every source and move the fused order: hold the depths where they are.
        for source in again._retrieved.sources_for(again.plan):
            changes.setdefault(f"depth.{source}", again.plan.depth(source))
    return False, 0


def _just_above(distance: float, metric: str) -> Any:
    """The next threshold, in steps of 0.01, that keeps a distance; off when there is none in the metric's range."""
    top = {"angular": 1.0, "cosine": 2.0, "l2": 2.0, "l2sq": 4.0}[metric]
    step = (int(distance * 100) + 1) / 100
    return step if step <= top else "off"


def _shown_path(engine: Engine, retrieved: Retrieved, number: int) -> str:
    """The path of a record's document as the search shows it: where its filter asks for a copy's, that one."""
    return as_asked(engine.records.columns(np.array([number], np.int64)), retrieved.scope).paths[0]


def _hopeless(standings: tuple[SourceStanding, ...]) -> str:
    sources = ", ".join(s.source for s in standings) or "no source"
    return f"No setting of {sources} brings it in: use a word that is in it, or add a vector source"


def _filtered(
    engine: Engine,
    retrieved: Retrieved,
    name: str,
    numbers: np.ndarray[Any, np.dtype[np.int64]],
    search: Callable[[Plan, str | None], SearchResult],
) -> Explanation:
    number = int(numbers[0])
    (stored,) = engine.records.rows([number])
    chunk = stored.chunk
    path = _shown_path(engine, retrieved, number)
    request = retrieved.request
    asked_for = engine.records.scope(request.principal, None, request.plan["collections"]).allowed
    changes: dict[str, Any] = {} if asked_for is None or asked_for[numbers].any() else {"collections": "all"}
    again = search(request.plan.replace(changes), None)
    verified, hopeless = any(h.document_id == chunk.document_id for h in again.hits), ""
    if not verified:
        # Once the filter is gone something else may keep it out, most often the limit.
        then = explain(engine, again, name, lambda changed, _: search(changed, None))
        verified, changes = then.verified, {**changes, **(then.changes or {})}
        hopeless = "" if then.changes else f"; then: {then.remedy}"
    outside = ", ".join(request.plan["collections"]) if "collections" in changes else ""
    asked = " and ".join(p for p in (request.filters, outside) if p)
    to_set = ", ".join(f"{field}={value}" for field, value in changes.items())
    if request.filters:
        remedy = "Loosen the filter" + (f", and set {to_set}" if to_set else "") + hopeless
    else:
        remedy = f"Set {to_set}{hopeless}"
    return Explanation(
        name,
        True,
        path=path,
        citation=cite(path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator),
        chunk_id=chunk.chunk_id,
        standings=tuple(
            SourceStanding(s, "not asked", None, None, None, 0.0) for s in retrieved.sources_for(request.plan)
        ),
        dropped_by="filters",
        reason=f"It does not pass {asked}",
        changes=changes or None,
        remedy=remedy,
        verified=verified,
    )
