"""Where relevant and other results lie in one source's scores, to choose a threshold with open eyes.

A threshold on the distance drops every candidate at or beyond it, one on a score every candidate below it. What it costs is
seen only against judgments: the share of the relevant that it would drop, and of the others. What was judged counts once a
query, at its best candidate (a document is not lost while one of its chunks stays), and so does each document that nobody
judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import UsageError
from workbench.evaluate.pool import Pool, Pooled
from workbench.plan.fields import FUSED, OFF, base_of
from workbench.plan.plan import Plan
from workbench.ranking.candidates import Floats, Ints
from workbench.ranking.cutting import below, to_distance
from workbench.records import Progress
from workbench.retrieve.fusing import fuse_plan

if TYPE_CHECKING:
    import polars as pl


_AXES = {"keyword": "BM25 score", FUSED: "fused score"}


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Distances (vector sources) or scores (others) of candidates, apart by judgment.

    Attributes:
        relevant: float64, of relevant candidates, rising.
        judged: float64, of those judged not relevant.
        others: float64, of those that nobody judged.
    """

    source: str
    axis: str
    relevant: Floats
    judged: Floats
    others: Floats
    missed: int = 0

    @property
    def distances(self) -> bool:
        """Whether lower is better."""
        return self.axis.endswith("distance")

    def threshold(self, lose: float = 0.05) -> float:
        """The strictest threshold that drops at most this share of the relevant candidates, NaN where there are none.

        On distances a candidate below the threshold is kept (so it lies just above the last one that must stay); on scores one
        at or above it.
        """
        if not 0.0 <= lose < 1.0:
            raise UsageError(f"The share to lose is {lose!r}", "It must be at least 0 and below 1")
        if not len(self.relevant):
            return math.nan
        may_go = math.floor(lose * len(self.relevant) + 1e-9)
        if self.distances:
            return float(np.nextafter(self.relevant[len(self.relevant) - 1 - may_go], np.inf))
        return float(self.relevant[may_go])

    def advised(self, lose: float = 0.05) -> float:
        """`threshold` as a person writes it: three digits (four figures for scores), rounded to the side that keeps more."""
        exact = self.threshold(lose)
        if math.isnan(exact) or exact == 0.0:
            return exact
        if self.distances:
            return math.ceil(exact * 1_000) / 1_000
        return below(exact)

    def dropped(self, threshold: float) -> tuple[float, float]:
        """Share of the relevant candidates, and of all others, that a threshold drops; NaN where there are none."""
        rest = np.concatenate((self.judged, self.others))
        shares = []
        for values in (self.relevant, rest):
            gone = values >= threshold if self.distances else values < threshold
            shares.append(float(gone.mean()) if len(values) else math.nan)
        return shares[0], shares[1]

    def frame(self, bins: int = 40) -> pl.DataFrame:
        """Counts by bin: low, high, relevant, not_relevant, unjudged."""
        import polars as pl

        every = np.concatenate((self.relevant, self.judged, self.others))
        low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
        edges = np.linspace(low, high if high > low else low + 1e-6, bins + 1)
        counts = [np.histogram(v, edges)[0] for v in (self.relevant, self.judged, self.others)]
        names = ("relevant", "not_relevant", "unjudged")
        return pl.DataFrame({"low": edges[:-1], "high": edges[1:], **dict(zip(names, counts, strict=True))})


def distributions(
    pool: Pool,
    plan: Plan,
    sources: Sequence[str] = (),
    *,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> dict[str, Distribution]:
    """Candidates of every source of a plan at its depth, without a threshold, and of the plan's fusion without a threshold of
    its own, for every judged query.

    The fused score is left out for queries that one source alone answers: such a list keeps its source's own score. Returns
    source -> distribution, `fused` last; of some `sources` alone where they are named. Raises UsageError: one of them is not
    the plan's.
    """
    names = (*plan.sources, FUSED)
    for source in sources:
        if source not in names:
            raise UsageError(f"The plan does not ask {source}", "Its sources are " + ", ".join(names))
    open_plan = plan.with_threshold(OFF).replace(
        {f"threshold.{s}": OFF for s in plan.cuttable if base_of(s) == "keyword"}
    )
    whole_plan = plan.replace({plan.threshold_to_set(FUSED): OFF})
    needs, (key,) = pool.needs([open_plan])
    parts: dict[str, tuple[list[float], ...]] = {name: ([], [], []) for name in names}
    missed = dict.fromkeys(names, 0)
    for n, topic in enumerate(pool.topics, 1):
        if stop is not None and stop():
            break
        grades = pool.judgments.qrels[topic.query_id]
        relevant = {k for k, grade in grades.items() if grade > 0}
        pooled = pool.ask(topic, needs[key], {})
        lists = {} if pooled is None else dict(_lists(pooled, open_plan, whole_plan))
        for name in names:
            best: dict[str, float] = {}  # each key at its best candidate
            for score, keys in lists.get(name, ()):
                for known in keys:
                    best.setdefault(known, score)
            for known, score in best.items():
                grade = grades.get(known)
                parts[name][2 if grade is None else 0 if grade > 0 else 1].append(score)
            if name in lists or name != FUSED:
                missed[name] += len(relevant - best.keys())
        if progress is not None:
            progress(Progress("distribution", n, len(pool), detail=topic.text))
    made = {}
    for name in (n for n in names if n in (sources or names)):
        vector = base_of(name) == "vector"
        metric = str(plan["vector.metric"])
        arrays = (np.array(part, np.float64) for part in parts[name])
        values = [np.sort(to_distance(v, metric)) if vector else np.sort(v) for v in arrays]
        axis = f"{metric} distance" if vector else _AXES.get(base_of(name), "score")
        made[name] = Distribution(name, axis, values[0], values[1], values[2], missed[name])
    return made


def _lists(pooled: Pooled, plan: Plan, fusing: Plan) -> Iterator[tuple[str, list[tuple[float, tuple[str, ...]]]]]:
    """Each source's list under one plan, and the fused one under another: score and keys of each candidate, best first."""
    candidates = pooled.retrieved.candidates_for(plan, computed=False)
    for column in candidates.columns:
        rows = np.flatnonzero(column.rank > 0)
        rows = rows[np.argsort(column.rank[rows], kind="stable")]
        yield column.source, _keyed(column.score[rows], rows, pooled)
    outcome = fuse_plan(pooled.retrieved, fusing)
    if outcome.score_kind == FUSED:
        yield FUSED, _keyed(outcome.fused.scores, outcome.fused.rows, pooled)


def _keyed(scores: Floats, rows: Ints, pooled: Pooled) -> list[tuple[float, tuple[str, ...]]]:
    return [(score, pooled.keys[row]) for score, row in zip(scores.tolist(), rows.tolist(), strict=True)]
