"""The figure of a plan while its sliders move: judged queries retrieved once, kept, and fused again at each move.

`prepare` retrieves (seconds, with progress); `figure` then takes milliseconds. What a slider cannot do without searching (BM25's
k1 and b, the collections) raises NeedsSearch, and the caller prepares again.
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
from workbench.evaluate.evaluation import wins
from workbench.evaluate.measures import Quick, needed_depth, parse_measures, quick, values_of
from workbench.evaluate.pool import Need, Pool, Pooled, Refusion
from workbench.evaluate.statistics import bootstrap_interval
from workbench.judgments.qrels import Judgments
from workbench.plan.plan import Plan
from workbench.ranking.methods import check
from workbench.records import Principal, Progress
from workbench.retrieve.engine import Engine
from workbench.retrieve.sources import Answer

if TYPE_CHECKING:
    import polars as pl

_KEPT_NEEDS = 4
_RESAMPLES = 1_000  # an interval beside a moving slider: rough is enough
Floats = NDArray[np.float64]
Queries = Sequence[Pooled | None]


class CachedPool:
    """A pool that keeps what it retrieved. Safe from several threads; one retrieves at a time, others measure meanwhile.

    Args:
        measures: Names of measures that follow from ranks.
        cutoff: Ranks beyond it do not matter.
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
        return self._find(plan)[2] is not None

    def retrieve(
        self, plan: Plan, tell: Callable[[Progress], None] | None = None, stop: Callable[[], bool] | None = None
    ) -> None:
        """Retrieve what a plan needs, unless it is there. Raises NeedsSearch if it was stopped before the end."""
        with self._retrieving:
            key, need, kept = self._find(plan)
            if kept is not None:
                return
            found: list[Pooled | None] = []
            for n, (topic, answers) in enumerate(zip(self.pool.topics, self._answers, strict=True), 1):
                if stop is not None and stop():
                    raise NeedsSearch("Retrieving the judged queries was stopped", "Start it again")
                found.append(self.pool.ask(topic, need, answers))
                # What k1 and b do not change is kept from plan to plan: the vector side.
                for name in [k for k in answers if str(k[0]).startswith(("keyword", "grep"))]:
                    del answers[name]
                if tell is not None:
                    tell(Progress("candidates", n, len(self.pool.topics), detail=topic.text))
            with self._lock:
                self._kept[key] = (need, found, Refusion(self.pool.engine, found, self.cutoff))

    def warm(self, plan: Plan) -> None:
        """Make a plan's candidates ready for any method now, rather than at the first move. Raises NeedsSearch as `values`."""
        self._queries(plan)[1].warm(plan)

    def values(self, plan: Plan) -> Floats:
        """Every measure of every judged query under a plan, float64 (queries, measures)."""
        queries, refusion = self._queries(plan)
        check(plan.fusion, sorted({s for q in queries if q is not None for s in q.retrieved.answers}))
        result = np.zeros((len(queries), len(self.measures)))
        for n, _, ranks in refusion.ranks([plan]):
            pooled = queries[n]
            if pooled is not None:
                result[n] = values_of(self.measures, ranks, pooled.grades, self._every[n])[0]
        return result

    def _queries(self, plan: Plan) -> tuple[Queries, Refusion]:
        kept = self._find(plan)[2]
        if kept is None:
            raise NeedsSearch("The judged queries were not retrieved for this plan", "Retrieve them first")
        return kept

    def _find(self, plan: Plan) -> tuple[tuple[object, ...], Need, tuple[Queries, Refusion] | None]:
        """What a plan needs, and its candidates where they are kept."""
        needs, (key,) = self.pool.needs([plan])
        need = needs[key]
        with self._lock:
            kept = self._kept.get(key)
        if kept is None:
            return key, need, None
        have, queries, refusion = kept
        # The depth of grep is in `depths` even where it only joins.
        asked = set(need.plan.sources) <= set(have.plan.sources)
        deep = all(have.depths.get(source, 0) >= depth for source, depth in need.depths.items())
        # Where depths count documents the answers go as deep as that takes.
        same = need.plan["fusion.unit"] != "document" or have.plan["fusion.unit"] == "document"
        return key, need, (queries, refusion) if asked and deep and same else None


@dataclass(frozen=True, slots=True, eq=False)
class LiveFigure:
    """One plan's figure.

    Attributes:
        low, high: 95 % bootstrap interval; NaN for one query.
        values: float64 (queries,), read-only.
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
            self.compare_with(plan)

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
        start, values = self._values(plan)
        values.flags.writeable = False
        low, high = bootstrap_interval(values, resamples=_RESAMPLES)
        moved = values - start
        return LiveFigure(
            measure=self.measure,
            mean=math.fsum(values) / len(values),
            low=low,
            high=high,
            difference=math.fsum(moved) / len(values),
            better=int((moved > 1e-12).sum()),
            worse=int((moved < -1e-12).sum()),
            values=values,
            milliseconds=(time.perf_counter() - started) * 1000.0,
        )

    def wins(self, plan: Plan) -> pl.DataFrame:
        """One row a judged query, the greatest gain of a plan first: query_id, query, first (the plan that `difference` is
        against), second, difference; `charts.wins_figure` draws it. Raises NeedsSearch as `figure`.
        """
        return wins(self.judgments, self._ids, *self._values(plan))

    def _values(self, plan: Plan) -> tuple[Floats, Floats]:
        """Each query's value under the plan to compare with, and under this one."""
        values = self._cache.values(plan)[:, 0]
        if self._start is None:
            raise NeedsSearch("No plan was prepared", "Prepare one first")
        return self._start, values
