"""What would bring a document into a result: settings, words or another mode, each searched with before it is named.

A remedy first makes some source retrieve the document. Where it is in the list and the limit cuts it off, settings follow that
lift it into as many results as were asked for (unit, operator, shares, k, threshold, duplicates); more results come last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.errors import NeedsSearch, WorkbenchError
from workbench.plan.fields import FUSED, OFF, base_of
from workbench.plan.plan import Plan
from workbench.ranking.cutting import below, metric, to_distance
from workbench.retrieve.messages import NoMatch, listed
from workbench.retrieve.request import MODES
from workbench.retrieve.result import SearchResult
from workbench.retrieve.standing import Case
from workbench.store.lexical.query import unquoted, without

_FACTORS = (2.0, 0.5, 5.0, 0.2)
_KS = (1, 5, 10, 20, 40, 60, 100, 200, 500)
_LIMIT_TRIES = 4


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

    def way(self, rank: int = 0) -> Way:
        query, mode = (self.request.get(name, "") for name in ("query", "mode"))
        return Way(self.sentence, rank, dict(self.changes) or None, query, mode, self.request.get("filters") == "")


@dataclass(frozen=True, slots=True)
class Way:
    """One change of a search after which a document is a result.

    Attributes:
        remedy: The change in a sentence.
        rank: Its rank then, as a search with the change gave it.
        changes: Plan fields; None where none changes.
        query, mode: What must be asked instead, "" where it stays.
        without_filter: Whether the filter must go.
    """

    remedy: str
    rank: int
    changes: Mapping[str, Any] | None = None
    query: str = ""
    mode: str = ""
    without_filter: bool = False

    @property
    def of_plan(self) -> bool:
        """Whether it changes the plan alone, and so can be measured on other queries."""
        return self.changes is not None and not (self.query or self.mode or self.without_filter)


class Remedies:
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

    def ways(self, case: Case, start: Remedy) -> Iterator[Way]:
        """Changes that bring it in, the least first: what makes a source retrieve it; of each kind of setting the smallest change
        that lifts it into the results asked for; last a greater limit.
        """
        in_list: list[tuple[Remedy, SearchResult]] = []
        lifted = False
        for remedy, again in self._reached(case, start, 2):
            if rank := self.rank(again):
                lifted = True
                yield remedy.way(rank)
            elif "mode" not in remedy.request:  # another mode and then more of it is no advice
                in_list.append((remedy, again))
        if lifted:
            return
        for remedy, again in in_list:
            done: set[str] = set()
            for changes in self._lifts(again):
                kind, lift = next(iter(changes)), remedy.more(changes)
                found = None if kind in done else self._run(lift, again)
                if found is not None and (rank := self.rank(found)):
                    done.add(kind)
                    yield lift.way(rank)
        for remedy, again in in_list:
            if (limited := self._limited(remedy, again)) is not None:
                yield limited
                return

    def none(self, case: Case, start: Remedy) -> str:
        """What to say where there is no way in."""
        plan, places = self.base.plan, [self._place(again) for _, again in self._reached(case, start, 2)]
        past = next((place for place in places if place > plan["limit.max"]), 0)
        if past:
            return f"It is number {past:,} of the list, beyond limit.max {plan['limit.max']:,}: use words that it has"
        other = "" if self.base.mode in ("hybrid", "vector") else ", or the mode vector"
        return f"No setting that was tried brings it in: use words that it has{other}"

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

    def _reached(self, case: Case, remedy: Remedy, rounds: int) -> Iterator[tuple[Remedy, SearchResult]]:
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
                yield from self._reached(Case(found, case.numbers), step, left)

    def _lifts(self, again: SearchResult) -> Iterator[dict[str, Any]]:
        """Settings that may lift it into the results that were asked for, of each kind the smallest change first."""
        plan, sources = again.plan, again.retrieved.sources_for(again.plan)
        if again.outcome.strongest >= 0:
            yield {"keyword.keep_strongest": "no"}
        if plan["fusion.unit"] == "chunk":
            yield {"fusion.unit": "document"}
        if not plan["dedupe"]:
            yield {"dedupe": "yes"}
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

    def _limited(self, remedy: Remedy, again: SearchResult) -> Way | None:
        """As many results as it takes, or None. A greater limit may deepen the sources and move the list, so that it is tried
        again, in the end with the depths as they are.
        """
        for attempt in range(_LIMIT_TRIES):
            place = self._place(again)
            # The last place may be the strongest keyword hit's.
            limit = max(place, int(again.plan["limit"]) + 1)
            if not place or limit > again.plan["limit.max"]:
                return None
            sources = again.retrieved.sources_for(again.plan) if attempt == _LIMIT_TRIES - 1 else ()
            changed = remedy.more({"limit": limit, **{f"depth.{s}": again.plan.depth(s) for s in sources}})
            found = self._run(changed)
            if found is None:
                break
            if rank := self.rank(found):
                return changed.way(rank)
            again = found
        return None


def _retrieving(case: Case, start: Remedy) -> Iterator[Remedy]:
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
    if plan["fusion.method"] == "rrf":
        k = int(plan["fusion.k"])
        yield from (
            {"fusion.k": other} for other in sorted(_KS, key=lambda n: abs(math.log((n + 1) / (k + 1)))) if other != k
        )
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
