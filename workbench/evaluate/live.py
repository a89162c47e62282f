"""The figure of a plan while its sliders move: judged queries retrieved once, kept, and fused again at each move.

`prepare` retrieves (seconds, with progress); `figure` then takes milliseconds. What a slider cannot do without searching (BM25's
k1 and b, the collections) raises NeedsSearch, and the caller prepares again.

Judged candidates kept in memory, for plans that come one after another: a slider that moves.

The first plan that needs other candidates retrieves them; after that a plan is a fusion of all queries at once (`pool.Refusion`).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from workbench.errors import NeedsSearch, UsageError
from workbench.evaluate.measures import Quick, needed_depth, parse_measures, quick, values_of
from workbench.evaluate.pool import Need, Pool, Pooled, Refusion
from workbench.evaluate.statistics import bootstrap_interval
from workbench.judgments.qrels import Judgments
from workbench.plan.plan import Plan
from workbench.ranking.methods import check
from workbench.records import Principal, Progress
from workbench.retrieve.engine import Engine
from workbench.retrieve.retrieved import Answer

if TYPE_CHECKING:
    import polars as pl


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


_RESAMPLES = 1_000  # an interval beside a moving slider: rough is enough


@dataclass(frozen=True, slots=True, eq=False)
class LiveFigure:
    """One plan's figure.

    Attributes:
        low, high: 95 % bootstrap interval; NaN for one query.
        values: float64 (queries,), read-only.
        milliseconds: What it took.
    """

    measure: str
    mean: float
    low: float
    high: float
    difference: float
    better: int
    worse: int
    values: NDArray[np.float64]
    milliseconds: float

    @property
    def text(self) -> str:
        """The figure in a line."""
        n = len(self.values)
        moved = f"{self.difference:+.3f}; {self.better} better, {self.worse} worse of {n} queries"
        return f"{self.measure} {self.mean:.3f} ({moved})"


class LiveMeasure:
    """A query set's figure for any plan.

    Args:
        engine: The pinned generation; make another one of these when the corpus moves on.
        judgments: Queries and qrels.
        measure: nDCG, RR, R, P, AP or Success, at any cutoff.
        principal, mode, filters: As in `Corpus.search`.

    Raises:
        UsageError: A measure that needs whole lists.
        JudgmentError: A judged query without a text.
    """

    def __init__(
        self,
        engine: Engine,
        judgments: Judgments,
        measure: str = "nDCG@10",
        *,
        principal: Principal | None = None,
        mode: str = "hybrid",
        filters: str | None = None,
    ) -> None:
        (self.measure,) = parse_measures([measure])
        self.generation, self.judgments = engine.generation, judgments
        pool = Pool(engine, judgments, principal=principal, mode=mode, filters=filters)
        self._ids = tuple(topic.query_id for topic in pool.topics)
        self._cache = CachedPool(pool, [self.measure], needed_depth([self.measure]))
        self._start: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.judgments)

    def ready(self, plan: Plan) -> bool:
        """Whether `figure` can answer without retrieving."""
        return self._cache.has(plan)

    def prepare(
        self, plan: Plan, progress: Callable[[Progress], None] | None = None, stop: Callable[[], bool] | None = None
    ) -> None:
        """Retrieve what a plan needs; the first plan prepared is the one that `difference` is against.

        Raises:
            NeedsSearch: It was stopped.
        """
        self._cache.retrieve(plan, progress, stop)
        if self._start is None:
            self._start = self._cache.values(plan)[:, 0]

    def warm(self, plan: Plan) -> None:
        """Make what was prepared ready for every fusion method and threshold, so that the first move to one is no slower
        than the next: for a thread that has time. Raises NeedsSearch as `figure`.
        """
        self._cache.warm(plan)

    def compare_with(self, plan: Plan) -> None:
        """Make another plan the one that `difference` is against. Raises NeedsSearch as `figure`."""
        self._start = self._cache.values(plan)[:, 0]

    def figure(self, plan: Plan) -> LiveFigure:
        """The figure of a plan. Raises NeedsSearch: the plan needs candidates that were not retrieved: `prepare` it."""
        started = time.perf_counter()
        values = self._cache.values(plan)[:, 0]
        start = self._start
        if start is None:
            raise NeedsSearch("No plan was prepared", "Prepare one first")
        values.flags.writeable = False
        low, high = bootstrap_interval(values, resamples=_RESAMPLES)
        moved = values - start
        return LiveFigure(
            self.measure, math.fsum(values) / len(values), low, high, math.fsum(moved) / len(values),
            int((moved > 1e-12).sum()), int((moved < -1e-12).sum()), values, (time.perf_counter() - started) * 1000.0,
        )  # fmt: skip

    def wins(self, plan: Plan) -> pl.DataFrame:
        """One row a judged query, the greatest gain of a plan first: query_id, query, first (the plan that `difference` is
        against), second, difference; `charts.wins_figure` draws it. Raises NeedsSearch as `figure`.
        """
        from workbench.evaluate.evaluation import won

        if self._start is None:
            raise NeedsSearch("No plan was prepared", "Prepare one first")
        return won(self.judgments, self._ids, self._start, self._cache.values(plan)[:, 0])
