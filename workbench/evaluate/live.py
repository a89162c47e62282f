"""The figure of a plan while its sliders move: judged queries retrieved once, kept, and fused again at each move.

`prepare` retrieves (seconds, with progress); `figure` then takes milliseconds. What a slider cannot do without searching (BM25's
k1 and b, the collections) raises NeedsSearch, and the caller prepares again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NeedsSearch
from workbench.evaluate.cached import CachedPool
from workbench.evaluate.measures import needed_depth, parse_measures
from workbench.evaluate.pool import Pool
from workbench.evaluate.statistics import bootstrap_interval
from workbench.judgments.qrels import Judgments
from workbench.plan.plan import Plan
from workbench.records import Principal, Progress
from workbench.retrieve.engine import Engine

if TYPE_CHECKING:
    import polars as pl

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
        from workbench.evaluate.differing import won

        if self._start is None:
            raise NeedsSearch("No plan was prepared", "Prepare one first")
        return won(self.judgments, self._ids, self._start, self._cache.values(plan)[:, 0])
