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

from workbench.errors import NeedsSearch, UsageError
from workbench.evaluate.evaluation import COVERAGE_DEPTH, wins
from workbench.evaluate.measures import Quick, needed_depth, parse_measures, quick
from workbench.evaluate.pool import Need, Pool, Pooled, Refusion
from workbench.evaluate.statistics import Difference, bootstrap_interval, paired_difference
from workbench.judgments.qrels import Judgments
from workbench.plan.plan import Plan
from workbench.ranking.candidates import Floats
from workbench.ranking.methods import check
from workbench.records import Principal, Progress
from workbench.retrieve.engine import Engine
from workbench.retrieve.retrieved import Answer

if TYPE_CHECKING:
    import polars as pl

_KEPT_NEEDS = 4
_RESAMPLES = 1_000  # an interval beside a moving slider: rough is enough
_Kept = tuple[Need, Sequence[Pooled | None], Refusion]


@dataclass(frozen=True, slots=True, eq=False)
class LiveFigure:
    """One plan's figure.

    Attributes:
        low, high: 95 % bootstrap interval; NaN for one query.
        values: float64 (queries,), read-only.
        judged: Share of the first ten places (of as many as the measure looks at) that hold something judged, mean over queries.
    """

    measure: str
    mean: float
    low: float
    high: float
    difference: float
    better: int
    worse: int
    values: Floats
    milliseconds: float
    judged: float

    @property
    def text(self) -> str:
        """The figure in a line."""
        n = len(self.values)
        moved = f"{self.difference:+.3f}; {self.better} better, {self.worse} worse of {n} queries"
        return f"{self.measure} {self.mean:.3f} ({moved})"


class LiveMeasure:
    """A query set's figure for any plan. Safe from several threads; one retrieves at a time, others measure meanwhile.

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
        found = quick(self.measure)
        if found is None:
            raise UsageError(f"{self.measure} needs whole lists", "Choose nDCG, RR, R, P, AP or Success")
        self._quick: Quick = found
        self._depth = needed_depth([self.measure])
        self.generation, self.judgments = engine.generation, judgments
        self._pool = Pool(engine, judgments, principal=principal, mode=mode, filters=filters)
        self._kept: LRUCache[tuple[object, ...], _Kept] = LRUCache(_KEPT_NEEDS)
        self._every = [np.array(list(judgments.qrels[t.query_id].values()), np.int64) for t in self._pool.topics]
        self._answers: list[dict[tuple[object, ...], Answer]] = [{} for _ in self._pool.topics]
        self._lock, self._retrieving = threading.Lock(), threading.Lock()
        self._start: Floats | None = None

    def __len__(self) -> int:
        return len(self.judgments)

    def ready(self, plan: Plan) -> bool:
        """Whether `figure` can answer without retrieving."""
        return self._find(plan)[2] is not None

    def prepare(
        self, plan: Plan, progress: Callable[[Progress], None] | None = None, stop: Callable[[], bool] | None = None
    ) -> None:
        """Retrieve what a plan needs, unless it is there; the first plan prepared is the one that `difference` is against.

        Raises:
            NeedsSearch: It was stopped.
        """
        with self._retrieving:
            key, need, kept = self._find(plan)
            if kept is None:
                found = [self._ask(n, need, progress, stop) for n in range(len(self._pool))]
                refusion = Refusion(self._pool.engine, found, self._depth)
                with self._lock:
                    self._kept[key] = need, found, refusion
        if self._start is None:
            self.compare_with(plan)

    def _ask(
        self, n: int, need: Need, progress: Callable[[Progress], None] | None, stop: Callable[[], bool] | None
    ) -> Pooled | None:
        if stop is not None and stop():
            raise NeedsSearch("Retrieving the judged queries was stopped", "Start it again")
        topic, answers = self._pool.topics[n], self._answers[n]
        found = self._pool.ask(topic, need, answers)
        # What k1 and b do not change is kept from plan to plan: the vector side.
        for name in [k for k in answers if str(k[0]).startswith(("keyword", "grep"))]:
            del answers[name]
        if progress is not None:
            progress(Progress("candidates", n + 1, len(self._pool), detail=topic.text))
        return found

    def warm(self, plan: Plan) -> None:
        """Make what was prepared ready for every fusion method and threshold, so that the first move to one is no slower
        than the next: for a thread that has time. Raises NeedsSearch as `figure`.
        """
        self._prepared(plan)[2].warm(plan)

    def compare_with(self, plan: Plan) -> None:
        """Make another plan the one that `difference` is against. Raises NeedsSearch as `figure`."""
        self._start = self.values(plan)

    def figure(self, plan: Plan) -> LiveFigure:
        """The figure of a plan. Raises NeedsSearch: the plan needs candidates that were not retrieved: `prepare` it."""
        started = time.perf_counter()
        values, judged = self._measured(plan)
        moved = values - self._compared
        values.flags.writeable = False
        low, high = bootstrap_interval(values, resamples=_RESAMPLES)
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
            judged=math.fsum(judged) / len(judged),
        )

    def cost(self, plan: Plan, now: Plan) -> Difference:
        """What moving from the plan `now` to `plan` does to the measure, with its interval over the judged queries; retrieves
        what is not there yet.
        """
        for needed in (now, plan):
            self.prepare(needed)
        return paired_difference(str(self.measure), (str(now), str(plan)), self.values(now), self.values(plan))

    def wins(self, plan: Plan) -> pl.DataFrame:
        """One row a judged query, the greatest gain of a plan first: query_id, query, first (the plan that `difference` is
        against), second, difference; `charts.wins_figure` draws it. Raises NeedsSearch as `figure`.
        """
        ids = tuple(topic.query_id for topic in self._pool.topics)
        values = self.values(plan)
        return wins(self.judgments, ids, self._compared, values)

    def values(self, plan: Plan) -> Floats:
        """The measure of every judged query under a plan, float64 (queries,). Raises NeedsSearch as `figure`."""
        return self._measured(plan)[0]

    def _measured(self, plan: Plan) -> tuple[Floats, Floats]:
        """The measure of every judged query under a plan, and the share of its first places that is judged."""
        _, queries, refusion = self._prepared(plan)
        check(plan.fusion, sorted({s for q in queries if q is not None for s in q.retrieved.answers}))
        result, judged, top = np.zeros(len(queries)), np.zeros(len(queries)), min(COVERAGE_DEPTH, self._depth)
        for n, _, ranks in refusion.ranks([plan]):
            if (pooled := queries[n]) is not None:
                result[n] = self._quick.of(ranks, pooled.grades, self._every[n])[0]
                judged[n] = np.count_nonzero((ranks > 0) & (ranks <= top)) / top
        return result, judged

    @property
    def _compared(self) -> Floats:
        if self._start is None:
            raise NeedsSearch("No plan was prepared", "Prepare one first")
        return self._start

    def _prepared(self, plan: Plan) -> _Kept:
        kept = self._find(plan)[2]
        if kept is None:
            raise NeedsSearch("The judged queries were not retrieved for this plan", "Retrieve them first")
        return kept

    def _find(self, plan: Plan) -> tuple[tuple[object, ...], Need, _Kept | None]:
        """What a plan needs, and its candidates where they are kept."""
        needs, (key,) = self._pool.needs([plan])
        need = needs[key]
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None:
            have = kept[0]
            # The depth of grep is in `depths` even where it only joins.
            asked = set(need.plan.sources) <= set(have.plan.sources)
            deep = all(have.depths.get(source, 0) >= depth for source, depth in need.depths.items())
            # Where depths count documents the answers go as deep as that takes.
            same = need.plan["fusion.unit"] != "document" or have.plan["fusion.unit"] == "document"
            if not (asked and deep and same):
                kept = None
        return key, need, kept
