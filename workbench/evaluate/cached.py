"""Judged candidates kept in memory, for plans that come one after another: Optuna's trials, and a slider that moves.

The first plan that needs other candidates retrieves them; after that a plan is a re-fusion. Plans that differ only in k, rank
base, weights and alpha share even the normalised scores, so one takes a fraction of a millisecond a query.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NeedsSearch, UsageError
from workbench.evaluate.pool import Need, Pool, Pooled
from workbench.evaluate.quick import Quick, quick, values_of
from workbench.evaluate.refusing import cut_key, ranks_in_full, ready_under
from workbench.plan import Plan
from workbench.ranking.many import Ready
from workbench.ranking.methods import check
from workbench.records import Progress
from workbench.retrieve.retrieved import Answer

_KEPT_NEEDS = 4
_KEPT_READY = 6

Tell = Callable[[Progress], None]
Stop = Callable[[], bool]
Queries = Sequence[Pooled | None]


class CachedPool:
    """A pool that keeps what it retrieved. Safe from several threads, one at a time.

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
        self._ready: OrderedDict[tuple[object, ...], list[Ready | None]] = OrderedDict()
        self._answers: list[dict[tuple[object, ...], Answer]] = [{} for _ in pool.topics]
        self._every = [np.array(list(pool.judgments.qrels[t.query_id].values()), np.int64) for t in pool.topics]
        self._lock = threading.RLock()

    def has(self, plan: Plan) -> bool:
        """Whether a plan can be measured without retrieving anything."""
        needs, (key,) = self.pool.needs([plan])
        with self._lock:
            return self._find(key, needs[key]) is not None

    def retrieve(self, plan: Plan, tell: Tell | None = None, stop: Stop | None = None) -> None:
        """Retrieve what a plan needs, unless it is there. Raises NeedsSearch if it was stopped before the end."""
        needs, (key,) = self.pool.needs([plan])
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
            self._kept[key] = (needs[key], found)
            for ready in [r for r in self._ready if r[0] == key]:
                del self._ready[ready]
            while len(self._kept) > _KEPT_NEEDS:
                dropped, _ = self._kept.popitem(last=False)
                for ready in [r for r in self._ready if r[0] == dropped]:
                    del self._ready[ready]

    def values(self, plan: Plan) -> NDArray[np.float64]:
        """Every measure of every judged query under a plan, float64 (queries, measures).

        Raises:
            NeedsSearch: Its candidates were not retrieved.
            PlanError: A value outside its bounds.
        """
        needs, (key,) = self.pool.needs([plan])
        with self._lock:
            queries = self._find(key, needs[key])
            if queries is None:
                raise NeedsSearch("The judged queries were not retrieved for this plan", "Retrieve them first")
            fusion = plan.fusion
            check(fusion, sorted({s for q in queries if q is not None for s in q.retrieved.answers}))
            result = np.zeros((len(queries), len(self.measures)))
            ready = self._readied(key, queries, plan)
            for n, pooled in enumerate(queries):
                if pooled is None:
                    continue
                prepared = ready[n]
                ranks = (
                    ranks_in_full(self.pool.engine, pooled, plan, self.cutoff)
                    if prepared is None
                    else prepared.ranks(fusion)
                )
                result[n] = values_of(self.measures, ranks[None, :], pooled.grades, self._every[n])[0]
            return result

    def _find(self, key: tuple[object, ...], need: Need) -> Queries | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        have = kept[0].depths
        deep = all(have.get(source, 0) >= depth for source, depth in need.depths.items())
        # Where depths count documents the answers go as deep as that takes.
        same = need.plan["fusion.unit"] != "document" or kept[0].plan["fusion.unit"] == "document"
        if not (deep and same):
            return None
        self._kept.move_to_end(key)
        return kept[1]

    def _readied(self, key: tuple[object, ...], queries: Queries, plan: Plan) -> list[Ready | None]:
        fusion = plan.fusion
        scores = () if fusion.method == "rrf" else (fusion.missing, *sorted(fusion.normalise.items()))
        name = (key, cut_key(plan), fusion.method, scores)
        if name not in self._ready:
            self._ready[name] = [None if q is None else ready_under(q, plan, self.cutoff) for q in queries]
            while len(self._ready) > _KEPT_READY:
                self._ready.popitem(last=False)
        self._ready.move_to_end(name)
        return self._ready[name]
