"""Judged candidates kept in memory, for plans that come one after another: Optuna's trials, and a slider that moves.

The first plan that needs other candidates retrieves them; after that a plan is a re-fusion of all queries in one pass (`wide`).
What that cannot do goes query by query, and plans that differ only in k, rank base, weights and alpha then share even the
normalised scores.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NeedsSearch, UsageError
from workbench.evaluate.pool import Need, Pool, Pooled
from workbench.evaluate.quick import Quick, quick, values_of
from workbench.evaluate.refusing import cut_key, ranks_in_full, ready_under
from workbench.evaluate.wide import Wide, can
from workbench.plan.plan import Plan
from workbench.ranking.many import Ready
from workbench.ranking.methods import check
from workbench.records import Progress
from workbench.retrieve.retrieved import Answer

_KEPT_NEEDS = 4
_KEPT_READY = 6
MANY = 150_000
"""Beyond so many candidates in all, a plan that cuts and scores as the one before it is fused query by query, where those that
can never be among the first ranks are left out: slower once, and quicker from then on.
"""

Tell = Callable[[Progress], None]
Stop = Callable[[], bool]
Queries = Sequence[Pooled | None]


class CachedPool:
    """A pool that keeps what it retrieved. Safe from several threads; one retrieves at a time, others measure meanwhile.

    Args:
        pool: The judged queries.
        measures: Names of measures that follow from ranks.
        cutoff: Ranks beyond it do not matter.

    Raises:
        UsageError: A measure that needs whole lists.
    """

    def __init__(self, pool: Pool, measures: Sequence[str], cutoff: int | None) -> None:
        self.pool, self.cutoff = pool, cutoff
        self.measures: list[Quick] = []
        for name in measures:
            measure = quick(name)
            if measure is None:
                raise UsageError(f"{name} needs whole lists", "Choose nDCG, RR, R, P, AP or Success")
            self.measures.append(measure)
        self._kept: OrderedDict[tuple[object, ...], tuple[Need, Queries]] = OrderedDict()
        self._ready: OrderedDict[tuple[object, ...], Mapping[int, Ready | None]] = OrderedDict()
        self._wide: OrderedDict[tuple[object, ...], Wide] = OrderedDict()
        self._answers: list[dict[tuple[object, ...], Answer]] = [{} for _ in pool.topics]
        self._every = [np.array(list(pool.judgments.qrels[t.query_id].values()), np.int64) for t in pool.topics]
        self._last: tuple[object, ...] | None = None
        self._lock, self._retrieving = threading.RLock(), threading.Lock()

    def has(self, plan: Plan) -> bool:
        """Whether a plan can be measured without retrieving anything."""
        needs, (key,) = self.pool.needs([plan])
        with self._lock:
            return self._find(key, needs[key]) is not None

    def retrieve(self, plan: Plan, tell: Tell | None = None, stop: Stop | None = None) -> None:
        """Retrieve what a plan needs, unless it is there. Raises NeedsSearch if it was stopped before the end."""
        needs, (key,) = self.pool.needs([plan])
        with self._retrieving:
            with self._lock:
                if self._find(key, needs[key]) is not None:
                    return
            found: list[Pooled | None] = []
            for n, topic in enumerate(self.pool.topics):
                if stop is not None and stop():
                    raise NeedsSearch("Retrieving the judged queries was stopped", "Start it again")
                # What k1 and b do not change is kept from plan to plan: the vector side.
                answers = self._answers[n]
                found.append(self.pool.ask(topic, needs[key], answers))
                for name in [k for k in answers if str(k[0]).startswith(("keyword", "grep"))]:
                    del answers[name]
                if tell is not None:
                    tell(Progress("candidates", n + 1, len(self.pool.topics), detail=topic.text))
            with self._lock:
                self._forget(key)
                self._kept[key] = (needs[key], found)
                while len(self._kept) > _KEPT_NEEDS:
                    self._forget(self._kept.popitem(last=False)[0])

    def _forget(self, key: tuple[object, ...]) -> None:
        """Drop what was made from candidates that are no longer kept."""
        kinds: tuple[OrderedDict[tuple[object, ...], Any], ...] = (self._ready, self._wide)
        for made in kinds:
            for name in [n for n in made if n[0] == key]:
                del made[name]

    def warm(self, plan: Plan) -> None:
        """Make a plan's candidates ready for any method now, rather than at the first move of a slider.

        Raises:
            NeedsSearch: They were not retrieved.
        """
        key, queries = self._queries(plan)
        wide = self._laid_out(plan, key, queries)
        wide.compute()
        if wide.rows > MANY:
            known = [n for n, pooled in enumerate(queries) if pooled is not None]
            self._readied(self._ready_name(key, plan), key, queries, plan, known)

    def values(self, plan: Plan) -> NDArray[np.float64]:
        """Every measure of every judged query under a plan, float64 (queries, measures).

        Raises:
            NeedsSearch: Its candidates were not retrieved.
            PlanError: A value outside its bounds.
        """
        key, queries = self._queries(plan)
        fusion = plan.fusion
        check(fusion, sorted({s for q in queries if q is not None for s in q.retrieved.answers}))
        result = np.zeros((len(queries), len(self.measures)))
        left = {n: pooled for n, pooled in enumerate(queries) if pooled is not None}
        ranks: dict[int, NDArray[np.int64]] = {}
        name = self._ready_name(key, plan)
        with self._lock:
            again = self._last == name or len(self._ready.get(name, ())) == len(left)
            self._last = name
        wide = self._laid_out(plan, key, queries) if can(plan) else None
        if wide is not None and not (again and wide.rows > MANY):
            ranks = dict(zip(wide.members.tolist(), wide.ranks(plan, self.cutoff), strict=True))
        slow = [n for n in left if n not in ranks]
        ready = self._readied(name, key, queries, plan, slow) if slow else {}
        for n in slow:
            prepared = ready[n]
            ranks[n] = (
                ranks_in_full(self.pool.engine, left[n], plan, self.cutoff)
                if prepared is None
                else left[n].closed_up(prepared.ranks(fusion), self.cutoff)
            )
        for n, own in ranks.items():
            result[n] = values_of(self.measures, own[None, :], left[n].grades, self._every[n])[0]
        return result

    def _queries(self, plan: Plan) -> tuple[tuple[object, ...], Queries]:
        """A plan's key and its candidates. Raises NeedsSearch."""
        needs, (key,) = self.pool.needs([plan])
        with self._lock:
            queries = self._find(key, needs[key])
        if queries is None:
            raise NeedsSearch("The judged queries were not retrieved for this plan", "Retrieve them first")
        return key, queries

    def _laid_out(self, plan: Plan, key: tuple[object, ...], queries: Queries) -> Wide:
        name = (key, plan.sources, plan["grep.when"])  # what says whether grep joins
        with self._lock:
            made = self._wide.get(name)
        if made is None:
            made = Wide(queries, plan)  # outside the lock: at worst two threads make the same one
        with self._lock:
            if self._kept.get(key, (None, None))[1] is queries:
                _keep(self._wide, name, made)
        return made

    def _find(self, key: tuple[object, ...], need: Need) -> Queries | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        have = kept[0].depths
        # The depth of grep is said even where it only joins.
        asked = set(need.plan.sources) <= set(kept[0].plan.sources)
        deep = asked and all(have.get(source, 0) >= depth for source, depth in need.depths.items())
        # Where depths count documents the answers go as deep as that takes.
        same = need.plan["fusion.unit"] != "document" or kept[0].plan["fusion.unit"] == "document"
        if not (deep and same):
            return None
        self._kept.move_to_end(key)
        return kept[1]

    def _ready_name(self, key: tuple[object, ...], plan: Plan) -> tuple[object, ...]:
        """Equal for plans that differ in k, rank base, weights and alpha only."""
        fusion = plan.fusion
        scores = () if fusion.method == "rrf" else (fusion.missing, *sorted(fusion.normalise.items()))
        return key, cut_key(plan), fusion.method, scores

    def _readied(
        self, name: tuple[object, ...], key: tuple[object, ...], queries: Queries, plan: Plan, wanted: Sequence[int]
    ) -> Mapping[int, Ready | None]:
        with self._lock:
            made = dict(self._ready.get(name, {}))
        for n in wanted:
            pooled = queries[n]
            if n not in made and pooled is not None:
                made[n] = ready_under(pooled, plan, self.cutoff)
        with self._lock:
            if self._kept.get(key, (None, None))[1] is queries:
                _keep(self._ready, name, made)
        return made


def _keep(made: OrderedDict[tuple[object, ...], Any], name: tuple[object, ...], value: Any) -> None:
    """Keep what was used last, and let go of what was not used for long."""
    made[name] = value
    made.move_to_end(name)
    while len(made) > _KEPT_READY:
        made.popitem(last=False)
