"""What a sweep will cost: how many plans it tries, and about how many seconds, before it runs.

One query is asked, twice so that the second time finds everything loaded, and the rest follows from the counts: each query is
asked once for each way to retrieve that the plans have, and fused once a plan, all together but for plans that only the search's
own code can rank (a reranker, feedback).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from workbench.evaluate.grid import Space
from workbench.evaluate.pool import Pool, one_by_one, ranking_of
from workbench.evaluate.sweep import plans_of

_ONCE, _FUSED = 0.5, 1.6e-5
"""Seconds of a sweep however small, and of one plan on one query (1,000 plans on 300 queries: some five)."""
SLOW = "such as for a reranker, or feedback over documents or more than 400 candidates: lower depths are faster"


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a sweep will try. `alone`: Plans that are fused one query at a time."""

    plans: int
    queries: int
    seconds: float
    alone: int = 0

    @property
    def words(self) -> str:
        """`48 plans on 225 queries, about 4 s`."""
        left = f"{self.seconds:.0f} s" if self.seconds < 90 else f"{self.seconds / 60:.0f} min"
        slow = f"; {self.alone:,} of them one query at a time ({SLOW}), which is slow" if self.alone else ""
        return f"{self.plans:,} plans on {self.queries:,} queries, about {left}{slow}"


def outlook(pool: Pool, space: Space, search: str = "grid", trials: int = 100, seed: int = 0) -> Outlook:
    """How many plans of a space a sweep tries over a pool's queries, and about how long. Raises PlanError, UsageError."""
    combinations = list(space.combinations() if search == "grid" else space.drawn(trials, seed))
    plans, _ = plans_of(space, space.base, combinations)
    needs, _ = pool.needs(plans)
    first = next(iter(needs.values()))
    for _ in range(2):
        begun = time.perf_counter()
        pooled = pool.ask(pool.topics[0], first, {})
        asked = time.perf_counter() - begun
    slow = [plan for plan in plans if pooled is not None and one_by_one(pooled, plan)]
    begun = time.perf_counter()
    if slow and pooled is not None:
        ranking_of(pool.engine, pooled, slow[0], 10)
    alone = time.perf_counter() - begun
    seconds = _ONCE + len(pool) * (len(needs) * asked + len(plans) * _FUSED + len(slow) * alone)
    return Outlook(len(plans), len(pool), seconds, len(slow))
