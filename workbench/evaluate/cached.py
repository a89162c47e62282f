"""Judged candidates kept in memory, for plans that come one after another: a slider that moves.

The first plan that needs other candidates retrieves them; after that a plan is a fusion of all queries at once (`refusion`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from workbench.errors import NeedsSearch, UsageError
from workbench.evaluate.pool import Need, Pool, Pooled
from workbench.evaluate.quick import Quick, quick, values_of
from workbench.evaluate.refusion import Refusion
from workbench.plan.plan import Plan
from workbench.ranking.methods import check
from workbench.records import Progress
from workbench.retrieve.retrieved import Answer

_KEPT_NEEDS = 4

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
        self._kept: LRUCache[tuple[object, ...], tuple[Need, Queries, Refusion]] = LRUCache(_KEPT_NEEDS)
        self._answers: list[dict[tuple[object, ...], Answer]] = [{} for _ in pool.topics]
        self._every = [np.array(list(pool.judgments.qrels[t.query_id].values()), np.int64) for t in pool.topics]
        self._lock, self._retrieving = threading.Lock(), threading.Lock()

    def has(self, plan: Plan) -> bool:
        """Whether a plan can be measured without retrieving anything."""
        needs, (key,) = self.pool.needs([plan])
        return self._find(key, needs[key]) is not None

    def retrieve(self, plan: Plan, tell: Tell | None = None, stop: Stop | None = None) -> None:
        """Retrieve what a plan needs, unless it is there. Raises NeedsSearch if it was stopped before the end."""
        needs, (key,) = self.pool.needs([plan])
        with self._retrieving:
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
                self._kept[key] = (needs[key], found, Refusion(self.pool.engine, found, self.cutoff))

    def warm(self, plan: Plan) -> None:
        """Make a plan's candidates ready for any method now, rather than at the first move of a slider.

        Raises:
            NeedsSearch: They were not retrieved.
        """
        self._queries(plan)[1].warm(plan)

    def values(self, plan: Plan) -> NDArray[np.float64]:
        """Every measure of every judged query under a plan, float64 (queries, measures).

        Raises:
            NeedsSearch: Its candidates were not retrieved.
            PlanError: A value outside its bounds.
        """
        queries, refusion = self._queries(plan)
        check(plan.fusion, sorted({s for q in queries if q is not None for s in q.retrieved.answers}))
        result = np.zeros((len(queries), len(self.measures)))
        for n, _, ranks in refusion.ranks([plan]):
            pooled = queries[n]
            if pooled is not None:
                result[n] = values_of(self.measures, ranks, pooled.grades, self._every[n])[0]
        return result

    def _queries(self, plan: Plan) -> tuple[Queries, Refusion]:
        """A plan's candidates. Raises NeedsSearch."""
        needs, (key,) = self.pool.needs([plan])
        kept = self._find(key, needs[key])
        if kept is None:
            raise NeedsSearch("The judged queries were not retrieved for this plan", "Retrieve them first")
        return kept

    def _find(self, key: tuple[object, ...], need: Need) -> tuple[Queries, Refusion] | None:
        with self._lock:
            kept = self._kept.get(key)
        if kept is None:
            return None
        have = kept[0].depths
        # The depth of grep is said even where it only joins.
        asked = set(need.plan.sources) <= set(kept[0].plan.sources)
        deep = asked and all(have.get(source, 0) >= depth for source, depth in need.depths.items())
        # Where depths count documents the answers go as deep as that takes.
        same = need.plan["fusion.unit"] != "document" or kept[0].plan["fusion.unit"] == "document"
        return kept[1:] if deep and same else None
