"""Several plans on the same queries: measures with intervals, latency, and verdicts against one of them, the baseline.

A leaderboard is made of evaluations, so plans, modes, corpora with other chunks and runs of other programs are in one table.
Each plan's queries are paired with the baseline's (`statistics`), and p is corrected for the number of plans (Holm), so that
the best of twenty is not called better because it was lucky. Queries without judgments compare lists alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import UsageError
from workbench.evaluate.evaluation import Evaluation, score_run
from workbench.evaluate.measures import needed_depth, parse_measures
from workbench.evaluate.pool import Pool, rankings_of
from workbench.evaluate.run import Run, query_frame
from workbench.evaluate.statistics import Difference, finite, holm, known
from workbench.judgments.qrels import Judgments, Topic
from workbench.plan.plan import Plan
from workbench.ranking.agreement import rbo
from workbench.records import Progress

if TYPE_CHECKING:
    import polars as pl

TOP, TIMED = 10, 20
"""Results of each list that are compared with those of another; queries whose searches are timed."""


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Evaluations of several plans over the same queries.

    Attributes:
        evaluations: One a plan.
        baseline: Position of the one that the others are compared with.
        warnings: What a reader must know, each once.
    """

    evaluations: tuple[Evaluation, ...]
    baseline: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def base(self) -> Evaluation:
        """The evaluation that the others are compared with."""
        return self.evaluations[self.baseline]

    @property
    def names(self) -> tuple[str, ...]:
        """What each plan is called: its text form."""
        return tuple(e.name for e in self.evaluations)

    @property
    def judged(self) -> bool:
        """Whether the queries have judgments."""
        return any(self.base.judgments.qrels.values())

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that all of them have, in the baseline's order; none where nothing is judged."""
        return tuple(m for m in self.base.measures if all(m in e.measures for e in self.evaluations) and self.judged)

    def against(self, baseline: int) -> Leaderboard:
        """The same with another baseline."""
        return replace(self, baseline=baseline)

    def differences(self, measure: str | None = None) -> tuple[Difference | None, ...]:
        """Each plan against the baseline by one measure (the first), p corrected for the number of plans; None for the baseline
        itself. Worked out once. Raises UsageError where the plans were not measured on the same judgments.
        """
        measure = measure or next(iter(self.measures), None)
        if measure not in self._differences:
            self._differences[measure] = self._compared(measure)
        return self._differences[measure]

    @cached_property
    def _differences(self) -> dict[str | None, tuple[Difference | None, ...]]:
        return {}

    def _compared(self, measure: str | None) -> tuple[Difference | None, ...]:
        others = [n for n in range(len(self.evaluations)) if n != self.baseline]
        made = {n: self.base.compare(self.evaluations[n], measure) for n in others} if self.measures else {}
        corrected = holm(np.array([d.p for d in made.values()])) if made else ()
        fair = {n: replace(d, p=float(p)) for (n, d), p in zip(made.items(), corrected, strict=True)}
        return tuple(fair.get(n) for n in range(len(self.evaluations)))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Positions of the plans, the best by the first measure first; as given where nothing is judged."""
        first = self.measures[:1]
        means = [-self.evaluations[n].mean(first[0]) if first else 0.0 for n in range(len(self.evaluations))]
        return tuple(sorted(range(len(means)), key=lambda n: (means[n], n)))

    def frame(self) -> pl.DataFrame:
        """One row a plan, the best first: plan, of each measure its mean, low and high (95 % interval), p50_ms and p95_ms,
        judged@10, and by the first measure what it is against the baseline: difference, difference_low, difference_high, p
        (corrected), wins, losses, ties, verdict.
        """
        import polars as pl

        differences = self.differences()
        rows: list[dict[str, Any]] = []
        for n in self.order:
            evaluation, d = self.evaluations[n], differences[n]
            row: dict[str, Any] = {"plan": evaluation.name}
            for figure in evaluation.frame().filter(pl.col("measure").is_in(self.measures)).iter_rows(named=True):
                ends = {f"{figure['measure']} {end}": figure[end] for end in ("low", "high")}
                row |= {figure["measure"]: figure["mean"], **ends}
            latency = evaluation.latency
            row |= {"p50_ms": finite(latency.p50), "p95_ms": finite(latency.p95)}
            if self.judged:
                row["judged@10"] = finite(evaluation.coverage.judged)
                low, high = (None, None) if d is None else known(d.low, d.high)
                row |= {
                    "difference": d and d.difference,
                    "difference_low": low,
                    "difference_high": high,
                    "p": d and d.p,
                }
                row |= {name: d and getattr(d, name) for name in ("wins", "losses", "ties", "verdict")}
            rows.append(row)
        texts = dict.fromkeys(("plan", "verdict"), pl.String) | dict.fromkeys(("wins", "losses", "ties"), pl.Int64)
        return pl.DataFrame(rows, schema={name: texts.get(name, pl.Float64) for name in rows[0]}, orient="row")

    def per_query(self, second: int, measure: str | None = None) -> pl.DataFrame:
        """One row a query, the most different first: the baseline (A) against another plan (B).

        Returns:
            query_id, query, A, B, difference (B minus A; these three only where there are judgments), rbo (of the first ten:
            1 is the same list), lost and won (documents of A's first ten that B's lack, and the other way round; the relevant
            ones where the query is judged).
        """
        import polars as pl

        one, two = self.base, self.evaluations[second]
        if one.query_ids != two.query_ids:
            raise UsageError("The two evaluations are over different queries", "Evaluate both on the same judgments")
        ids = one.query_ids
        tops = [[e.run.rankings.get(i, ())[:TOP] for i in ids] for e in (one, two)]
        lists = list(zip(ids, *tops, strict=True))
        columns: dict[str, Any] = {"rbo": [rbo(first, last) for _, first, last in lists]}
        columns |= {
            "lost": pl.Series([self._only(i, first, last) for i, first, last in lists], dtype=pl.List(pl.String)),
            "won": pl.Series([self._only(i, last, first) for i, first, last in lists], dtype=pl.List(pl.String)),
        }
        if not self.measures:
            return query_frame(one.judgments, ids, **columns).sort("rbo", maintain_order=True)
        a, b = (e.column(measure or self.measures[0]) for e in (one, two))
        frame = query_frame(one.judgments, ids, A=a, B=b, difference=b - a, **columns)
        return frame.sort(pl.col("difference").abs(), -pl.col("rbo"), descending=True, maintain_order=True)

    def _only(self, query_id: str, here: Sequence[str], there: Sequence[str]) -> list[str]:
        grades = self.base.judgments.qrels[query_id]
        return [key for key in here if key not in there and (not grades or grades.get(key, 0) > 0)]


def leaderboard(
    pool: Pool,
    plans: Sequence[Plan],
    measures: str | Iterable[str],
    search: Callable[[Topic, Plan], float],
    baseline: int = 0,
    *,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Leaderboard:
    """Measure plans on a pool's queries: each query is retrieved once for all of them, and ranked by each as a search ranks it.

    Args:
        search: Runs a whole search and gives its milliseconds: asked for `TIMED` of the queries at most, under every plan.
        stop: Asked after each query; True ends with the queries that are done.

    Raises:
        UsageError: There are no plans, or no such baseline, or a measure cannot be read.
        KeyboardInterrupt: It was stopped before two queries were done.
    """
    names = parse_measures(measures)
    if not 0 <= baseline < len(plans):
        raise UsageError("There is no plan to compare with", "Give at least one plan, and a baseline among them")
    texts = [str(p) if pool.mode == "hybrid" else f"{pool.mode}: {p}" for p in plans]
    times: list[dict[str, float]] = [{} for _ in plans]
    done: list[str] = []
    begun, every = time.monotonic(), max(1, len(pool) // TIMED)

    def after(topic: Topic) -> bool:
        if len(done) % every == 0 and topic.query_id not in pool.failures:
            search(topic, plans[0])  # the plan that is timed first finds everything loaded, as the others do
            for plan, own in zip(plans, times, strict=True):
                own[topic.query_id] = search(topic, plan)
        done.append(topic.query_id)
        if progress is not None:
            progress(Progress.since(begun, "evaluate", len(done), len(pool), topic.text))
        return stop is None or not stop()

    found = rankings_of(pool, plans, max(needed_depth(names), TOP), after)
    judgments, warnings = pool.judgments, pool.warnings
    if len(done) < len(pool):
        if len(done) < 2:
            raise KeyboardInterrupt
        judgments = replace(judgments.subset(done), drop_identical_ids=judgments.drop_identical_ids)
        warnings = (*warnings, f"Stopped: figures are over {len(done)} of {len(pool)} queries")
    made = Leaderboard(
        tuple(
            score_run(Run(run, text, own, pool.failures), judgments, names)
            for run, text, own in zip(found, texts, times, strict=True)
        ),
        baseline,
    )
    every_plan = {re.sub(r"\d+", "", w): w for e in made.evaluations for w in e.warnings}  # once, whatever the numbers
    return replace(made, warnings=tuple(dict.fromkeys((*warnings, *every_plan.values()))) if made.judged else warnings)


def queries_only(queries: Sequence[str], name: str = "queries") -> Judgments:
    """Queries without judgments, for comparing lists alone. Raises UsageError where there are none."""
    texts = list(dict.fromkeys(q.strip() for q in queries if q.strip()))
    if not texts:
        raise UsageError("There are no queries to compare on", "Give at least one")
    topics = {str(n): Topic(str(n), text) for n, text in enumerate(texts, 1)}
    return Judgments(topics, {i: {} for i in topics}, name)
