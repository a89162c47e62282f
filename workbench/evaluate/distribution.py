"""Where relevant and other results lie in one source's scores, to choose a threshold with open eyes.

A threshold on the distance drops every candidate at or beyond it. What it costs is seen only against judgments: the share of
relevant candidates that it would drop, and of the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.errors import UsageError
from workbench.evaluate.pool import Pool
from workbench.plan import Plan
from workbench.ranking.distance import to_distance
from workbench.records import Progress
from workbench.retrieve.request import base_of

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Distances (vector sources) or scores (others) of candidates, apart by judgment.

    Attributes:
        source: The source.
        axis: `angular distance` and the like, or `score`.
        relevant: float64, of relevant candidates, rising.
        judged: float64, of those judged not relevant.
        others: float64, of those that nobody judged.
    """

    source: str
    axis: str
    relevant: Floats
    judged: Floats
    others: Floats

    @property
    def distances(self) -> bool:
        """Whether lower is better."""
        return self.axis.endswith("distance")

    def threshold(self, lose: float = 0.05) -> float:
        """The strictest threshold that drops at most this share of the relevant candidates, NaN where there are none.

        On distances a candidate below the threshold is kept (so it lies just above the last one that must stay); on scores one
        at or above it.

        Raises:
            UsageError: The share is not from 0 to 1.
        """
        if not 0.0 <= lose < 1.0:
            raise UsageError(f"The share to lose is {lose!r}", "It must be at least 0 and below 1")
        if not len(self.relevant):
            return math.nan
        may_go = math.floor(lose * len(self.relevant) + 1e-9)
        if self.distances:
            return float(np.nextafter(self.relevant[len(self.relevant) - 1 - may_go], np.inf))
        return float(self.relevant[may_go])

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
        return pl.DataFrame(
            {
                "low": edges[:-1],
                "high": edges[1:],
                "relevant": counts[0],
                "not_relevant": counts[1],
                "unjudged": counts[2],
            }
        )


def distribution(
    pool: Pool, plan: Plan, source: str = "vector", *, progress: Callable[[Progress], None] | None = None
) -> Distribution:
    """Candidates of one source at the plan's depth, without a threshold, for every judged query.

    Raises:
        UsageError: The plan does not ask that source.
    """
    open_plan = plan.replace({"vector.threshold": "off"})
    if source not in plan.sources:
        raise UsageError(f"The plan does not ask {source}", "Its sources are " + ", ".join(plan.sources))
    needs, (key,) = pool.needs([open_plan])
    parts: tuple[list[Floats], list[Floats], list[Floats]] = ([], [], [])
    for n, topic in enumerate(pool.topics, 1):
        pooled = pool.ask(topic, needs[key], {})
        if pooled is not None and source in pooled.retrieved.answers:
            column = pooled.retrieved.candidates_for(open_plan, computed=False).column(source)
            rows = np.flatnonzero(column.rank > 0)
            grades = pool.judgments.qrels[topic.query_id]
            known = [max((grades[k] for k in pooled.keys[r] if k in grades), default=None) for r in rows.tolist()]
            values = column.score[rows]
            for part, kept in zip(
                parts,
                (
                    [g is not None and g > 0 for g in known],
                    [g is not None and g <= 0 for g in known],
                    [g is None for g in known],
                ),
                strict=True,
            ):
                part.append(values[np.array(kept, bool)])
        if progress is not None:
            progress(Progress("distribution", n, len(pool), detail=topic.text))
    metric = str(plan["vector.metric"])
    joined = [np.concatenate(p) if p else np.zeros(0) for p in parts]
    vector = base_of(source) == "vector"
    made = [np.sort(to_distance(v, metric)) if vector else np.sort(v) for v in joined]
    return Distribution(source, f"{metric} distance" if vector else "score", made[0], made[1], made[2])
