"""What would bring a document into a result. Nothing is guessed: whatever is recommended was searched with.

First comes what makes some source retrieve it; then, where it is in the list and the limit cuts it off, a setting that lifts it
into as many results as were asked for (unit, operator, alpha, weight, threshold); more results only where none does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from workbench.errors import NeedsSearch, WorkbenchError
from workbench.plan.fields import FUSED, OFF, base_of
from workbench.plan.plan import Plan
from workbench.ranking.cutting import below
from workbench.ranking.distance import to_distance
from workbench.retrieve.messages import NoMatch, listed
from workbench.retrieve.request import MODES
from workbench.retrieve.result import SearchResult
from workbench.store.lexical.query import unquoted, without

_FACTORS = (2.0, 0.5, 5.0, 0.2)
_LIMIT_TRIES = 6
_TOP = {"angular": 1.0, "cosine": 2.0, "l2": 2.0, "l2sq": 4.0}


class Search(Protocol):
    """Runs the request of a result again with another plan, and where they are given another query, mode or filter."""

    def __call__(self, plan: Plan, query: str = ..., mode: str = ..., filters: str = ...) -> SearchResult:
        """The result. Raises WorkbenchError as a search does."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What is to be a result: a document, or some of its chunks where `chunk_ids` names them."""

    document_id: str
    chunk_ids: frozenset[str] = frozenset()

    def _is(self, result: SearchResult, position: int) -> bool:
        fused = result.fused
        if self.chunk_ids:
            return fused.chunk_ids[position] in self.chunk_ids
        return fused.document_ids[position] == self.document_id

    def rank(self, result: SearchResult) -> int:
        """Its rank among the results; 0 where it is none."""
        return next((n for n, p in enumerate(result.outcome.shown.tolist(), 1) if self._is(result, p)), 0)

    def place(self, result: SearchResult) -> int:
        """Its number in the list before the limit; 0 where it is not in it."""
        return next((n for n, p in enumerate(result.order.tolist(), 1) if self._is(result, p)), 0)

    def cut(self, result: SearchResult) -> float | None:
        """Its best fused score, where `fusion.threshold` dropped it."""
        outcome = result.outcome
        cut = (p for p in range(outcome.above, len(result.fused)) if self._is(result, p))
        position = next(cut, None)
        return (
            None
            if position is None or self.place(result) or self.repeated(result)
            else float(result.fused.scores[position])
        )

    def repeated(self, result: SearchResult) -> bool:
        """Whether dedupe dropped it."""
        return any(self._is(result, position) for position in result.outcome.duplicate_of)


@dataclass(frozen=True, slots=True)
class Remedy:
    """Changes to a search, and what came of them.

    Attributes:
        changes: Plan fields.
        request: `query`, `mode` or `filters` of the search, where they change.
        said: How to make the changes of the request, in words.
        verified: It was searched with, and the document was a result.
        beyond: Its number in the list where only limit.max keeps it out, else 0.
    """

    changes: Mapping[str, Any] = field(default_factory=dict)
    request: Mapping[str, str] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    verified: bool = False
    beyond: int = 0

    @property
    def sentence(self) -> str:
        """What to do."""
        said = list(self.said)
        if self.changes:
            said.append("set " + ", ".join(f"{name}={value}" for name, value in self.changes.items()))
        text = ", and ".join(said)
        return text[:1].upper() + text[1:]

    def more(self, changes: Mapping[str, Any]) -> Remedy:
        """This and more plan fields."""
        return replace(self, changes={**self.changes, **changes})


@dataclass(frozen=True, slots=True)
class Cause:
    """Why one source did not retrieve it.

    Attributes:
        source, state: As a standing has them.
        rank: In the unit that the plan's depth counts, None where it does not match.
        score: Raw score, None where there is none.
        distance: In the plan's metric, vector sources only.
        words: Of a keyword source.
    """

    source: str
    state: str
    rank: int | None
    score: float | None
    distance: float | None
    words: NoMatch | None = None


Causes = Callable[[SearchResult], Sequence[Cause]]


def find(base: SearchResult, aim: Aim, causes_in: Causes, search: Search, start: Remedy) -> Remedy:
    """The least change that brings a document in.

    Args:
        base: The result that it is not in.
        aim: What is to come in.
        causes_in: Why the sources of a result did not retrieve it; none where it is in the list.
        search: Runs the request again.
        start: Changes that are made already, as of a filter that is taken away.

    Returns:
        A verified remedy; or one without changes, with `beyond` where it is in the list but past the largest limit.
    """
    reached: list[tuple[Remedy, SearchResult]] = []
    for remedy, again in _reached(base, aim, causes_in, search, start, 2):
        if aim.rank(again):
            return replace(remedy, verified=True)
        if "mode" not in remedy.request:  # another mode and then more of it is no advice
            reached.append((remedy, again))
    for n, (remedy, again) in enumerate(reached):
        if (score := aim.cut(again)) is not None:
            changed = remedy.more({again.plan.threshold_to_set(FUSED): below(score)})
            reached[n] = remedy, again = changed, _run(base, changed, search) or again
            if aim.rank(again):
                return replace(remedy, verified=True)
        if not aim.place(again) and aim.repeated(again):
            reached[n] = remedy, again = _unrepeated(base, remedy, again, search)
            if aim.rank(again):
                return replace(remedy, verified=True)
    in_list = [(remedy, again) for remedy, again in reached if aim.place(again)]
    for remedy, again in in_list:
        lifted = _lifted(base, aim, remedy, again, search)
        if lifted is not None:
            return lifted
    past = Remedy()
    for remedy, again in in_list:
        limited = _limited(base, aim, remedy, again, search)
        if limited.verified:
            return limited
        past = past if past.beyond else limited
    return past


def _reached(
    base: SearchResult, aim: Aim, causes_in: Causes, search: Search, start: Remedy, rounds: int
) -> Iterator[tuple[Remedy, SearchResult]]:
    """Searches that have it in their lists. What one change brings to light (a depth, once the operator is another one) is
    changed in a second round.
    """
    causes = causes_in(base)
    for remedy in (*_starts(base, causes, start), *(_elsewhere(base, causes, start) if causes else ())):
        again = _run(base, remedy, search)
        if again is None:
            continue
        if aim.place(again) or aim.repeated(again) or aim.cut(again) is not None:
            yield remedy, again
        elif rounds > 1 and "mode" not in remedy.request:
            yield from _reached(again, aim, causes_in, search, remedy, rounds - 1)


def _run(base: SearchResult, remedy: Remedy, search: Search) -> SearchResult | None:
    try:
        return search(base.plan.replace(remedy.changes), **remedy.request)
    except WorkbenchError:
        return None  # a setting that cannot be is no remedy


def _unrepeated(base: SearchResult, remedy: Remedy, again: SearchResult, search: Search) -> tuple[Remedy, SearchResult]:
    changed = remedy.more({"dedupe": "no"})
    return changed, _run(base, changed, search) or again


def _starts(base: SearchResult, causes: Sequence[Cause], start: Remedy) -> Iterator[Remedy]:
    """What may make some source retrieve it, the least change first; nothing more where it is in the list."""
    if not causes:
        yield start
        return
    plan = base.plan
    query = start.request.get("query", base.query)
    for cause in causes:
        if cause.words is not None:
            yield from _worded(cause.words, query, start)
    for cause in sorted(causes, key=lambda c: (c.rank is None, c.rank or 0, c.source)):
        changes: dict[str, Any] = {}
        if cause.state == "cut by threshold" and cause.score is not None:
            kept = below(cause.score) if cause.distance is None else _just_above(cause.distance, plan["vector.metric"])
            changes[plan.threshold_to_set(cause.source)] = kept
        if cause.state == "missed":
            changes["vector.exact"] = "yes"
        if cause.rank is not None and cause.rank > plan.depth(cause.source):
            changes[f"depth.{cause.source}"] = cause.rank
        if changes:
            yield start.more(changes)


def _elsewhere(base: SearchResult, causes: Sequence[Cause], start: Remedy) -> Iterator[Remedy]:
    """Sources that were not asked, or another mode."""
    plan, kinds = base.plan, {base_of(cause.source) for cause in causes if cause.state != "not asked"}
    if base.mode == "hybrid":
        for kind in ("vector", "keyword"):
            if kind not in kinds:
                yield start.more({"sources": ",".join(sorted({*plan.sources, kind}))})
    else:
        for mode in MODES:
            if mode != base.mode and mode != "grep":
                yield replace(
                    start, request={**start.request, "mode": mode}, said=(*start.said, f"use the mode {mode}")
                )


def _worded(words: NoMatch, query: str, start: Remedy) -> Iterator[Remedy]:
    """What makes the keyword source match: the operator, and the query without what is in the way."""
    operator = {"keyword.operator": "any"} if words.any_helps else {}
    if operator and not words.excluded:
        yield start.more(operator)
    if words.excluded:
        left = without(query, words.excluded)
        said = (*start.said, f"take {listed('-' + text for text in words.excluded)} out of the query")
        yield replace(start, request={**start.request, "query": left}, said=said)
        query = left
        if operator:
            yield replace(start, request={**start.request, "query": left}, said=said).more(operator)
        start = replace(start, said=said)
    if words.unquoting_helps:
        said = (*start.said, "take the quotes out of the query")
        yield replace(start, request={**start.request, "query": unquoted(query)}, said=said)


def _lifted(base: SearchResult, aim: Aim, remedy: Remedy, again: SearchResult, search: Search) -> Remedy | None:
    """A setting that lifts it into the results that were asked for; None where none does."""
    for changes in _lifts(again, aim):
        changed = remedy.more(changes)
        try:
            # Fusing again shows in a millisecond what is worth a search.
            if not aim.rank(again.with_plan(base.plan.replace(changed.changes))):
                continue
        except NeedsSearch:
            pass
        except WorkbenchError:
            continue
        found = _run(base, changed, search)
        if found is not None and aim.rank(found):
            return replace(changed, verified=True)
    return None


def _lifts(again: SearchResult, aim: Aim) -> Iterator[dict[str, Any]]:
    plan, sources = again.plan, again.retrieved.sources_for(again.plan)
    if plan["fusion.unit"] == "chunk":
        yield {"fusion.unit": "document"}
    if any(base_of(s) == "keyword" for s in sources):
        yield {"keyword.operator": "all" if plan["keyword.operator"] == "any" else "any"}
    if len(sources) > 1:
        yield from _shares(plan, sources)
    for source in sources:
        if base_of(source) == "vector":
            yield from _thresholds(again, aim, source)


def _shares(plan: Plan, sources: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Other shares of the sources, the smallest change first."""
    if plan["fusion.method"] == "convex":
        now = float(plan["fusion.alpha"])
        for alpha in sorted((n / 10 for n in range(11)), key=lambda a: (abs(a - now), a)):
            if abs(alpha - now) > 1e-9:
                yield {"fusion.alpha": alpha}
    for factor in _FACTORS:
        for source in sources:
            name = f"fusion.weights.{source}"
            weight = float(plan[name]) * factor
            if weight:
                yield {name: float(f"{weight:.4g}")}


def _thresholds(again: SearchResult, aim: Aim, source: str) -> Iterator[dict[str, Any]]:
    """A threshold just above it, which cuts what is farther off, or none."""
    field_name = again.plan.threshold_to_set(source)
    column, metric = again.candidates.column(source), again.plan["vector.metric"]
    place = aim.place(again)
    row = int(again.fused.rows[again.order[place - 1]])
    score = column.score[row] if column.rank[row] > 0 else column.computed[row]
    if not np.isnan(score):
        value = _just_above(float(to_distance(np.array(score), metric)), metric)
        if value != again.plan.threshold(source):
            yield {field_name: value}
    if again.plan.threshold(source) != OFF:
        yield {field_name: OFF}


def _limited(base: SearchResult, aim: Aim, remedy: Remedy, again: SearchResult, search: Search) -> Remedy:
    """As many results as it takes. A greater limit may deepen the sources and move the list, so that it is tried again."""
    held: dict[str, Any] = {}
    limit = 0
    for attempt in range(_LIMIT_TRIES):
        place = aim.place(again)
        if not place:
            break
        # The last place may be the strongest keyword hit's.
        limit = max(place, int(again.plan["limit"]) + 1)
        if limit > again.plan["limit.max"]:
            return Remedy(beyond=place)
        if attempt == _LIMIT_TRIES // 2:
            held = {f"depth.{s}": again.plan.depth(s) for s in again.retrieved.sources_for(again.plan)}
        changed = remedy.more({"limit": limit, **held})
        found = _run(base, changed, search)
        if found is None:
            break
        if aim.rank(found):
            return replace(changed, verified=True)
        again = found
    return Remedy()


def _just_above(distance: float, metric: str) -> float | str:
    """The next threshold, in steps of 0.01, that keeps a distance; off where the metric's range has none."""
    step = (int(distance * 100) + 1) / 100
    return step if step <= _TOP[metric] else OFF
