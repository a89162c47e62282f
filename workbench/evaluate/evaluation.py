"""Evaluation: a run and judgments to figures with intervals, coverage and a warning where they say little.

A plan's figures (`Corpus.evaluate`) are at its own depth, and `limit` only says how many rows a person is shown. Every figure
can be had again from the exported run and qrels with any program that reads them.

Two plans on the same queries: `Evaluation.compare` says who wins, and the queries sorted by their difference whether a mean
moves by many small steps or a few large ones. Several plans are a `leaderboard`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import UsageError
from workbench.evaluate.measures import compute, needed_depth, parse_measures, place_of
from workbench.evaluate.run import Run, query_frame
from workbench.evaluate.statistics import Difference, bootstrap_interval, known, paired_difference
from workbench.judgments.qrels import Judgments
from workbench.ranking.candidates import Floats

if TYPE_CHECKING:
    import polars as pl

COVERAGE_DEPTH = 10
LOW_COVERAGE = 0.5


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the first ten documents somebody judged. `judged`: Mean share judged over the queries that returned
    something, as the measure `Judged@10`; NaN if none did.
    """

    judged: float
    unjudged_documents: int
    empty: int

    @property
    def unjudged(self) -> float:
        """Mean share not judged."""
        return 1 - self.judged


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds a query: median and 95th percentile; NaN where nothing was measured."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The figures of one run. `values`: float64 (queries, measures)."""

    name: str
    measures: tuple[str, ...]
    query_ids: tuple[str, ...]
    values: Floats
    run: Run
    judgments: Judgments
    coverage: Coverage
    warnings: tuple[str, ...]
    seed: int = 0

    def named(self, name: str) -> Evaluation:
        """The same figures under another name, for titles and verdicts."""
        return replace(self, name=name)

    def column(self, measure: str) -> Floats:
        """One measure's values, float64 (queries,). Raises UsageError where it was not computed."""
        return self.values[:, place_of(measure, self.measures)]

    def mean(self, measure: str) -> float:
        """Mean of one measure over all judged queries. Raises UsageError where it was not computed."""
        return math.fsum(self.column(measure)) / len(self.query_ids)

    def frame(self) -> pl.DataFrame:
        """One row a measure: measure, mean, low and high (95 % bootstrap interval; null for one query), queries."""
        import polars as pl

        rows = []
        for measure in self.measures:
            ends = known(*bootstrap_interval(self.column(measure), seed=self.seed))
            rows.append((measure, self.mean(measure), *ends, len(self.query_ids)))
        schema = {"measure": pl.String, "mean": pl.Float64, "low": pl.Float64, "high": pl.Float64, "queries": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def per_query(self) -> pl.DataFrame:
        """One row a judged query: query_id, query, a column a measure, relevant, retrieved, latency_ms, failure."""
        import polars as pl

        run, ids = self.run, self.query_ids
        relevant = [sum(g > 0 for g in self.judgments.qrels[i].values()) for i in ids]
        return query_frame(
            self.judgments,
            ids,
            **{m: self.values[:, n] for n, m in enumerate(self.measures)},
            relevant=pl.Series(relevant, dtype=pl.Int64),
            retrieved=pl.Series([len(run.rankings.get(i, ())) for i in ids], dtype=pl.Int64),
            latency_ms=[run.latencies_ms.get(i) for i in ids],
            failure=pl.Series([run.failures.get(i) for i in ids], dtype=pl.String),
        )

    @property
    def latency(self) -> Latency:
        """Milliseconds a query, over the queries that ran."""
        times = np.array([self.run.latencies_ms[i] for i in self.query_ids if i in self.run.latencies_ms])
        if not len(times):
            return Latency(math.nan, math.nan)
        return Latency(*np.quantile(times, [0.5, 0.95]).tolist())

    def compare(self, other: Evaluation, measure: str | None = None) -> Difference:
        """Is `other` better than this? On one measure, by default the first that both have."""
        if self.query_ids != other.query_ids or self.judgments.given_digest != other.judgments.given_digest:
            raise UsageError(
                f"{self.name} and {other.name} were judged by different judgments",
                "Evaluate both on the same judgments",
            )
        if measure is None:
            shared = [m for m in self.measures if m in other.measures]
            if not shared:
                raise UsageError(
                    "The two evaluations have no measure in common", "Evaluate both with the same measures"
                )
            measure = shared[0]
        chosen = parse_measures([measure])[0]
        return paired_difference(
            chosen, (self.name, other.name), self.column(chosen), other.column(chosen), seed=self.seed
        )

    def wins(self, other: Evaluation, measure: str | None = None) -> pl.DataFrame:
        """One row a query, the greatest gain of `other` over this first: query_id, query, first, second, difference."""
        if self.query_ids != other.query_ids:
            raise UsageError("The two evaluations are over different queries", "Evaluate both on the same judgments")
        measure = self.measures[0] if measure is None else measure
        return wins(self.judgments, self.query_ids, self.column(measure), other.column(measure))


def wins(judgments: Judgments, query_ids: Sequence[str], first: Floats, second: Floats) -> pl.DataFrame:
    """The rows of `Evaluation.wins` from two plans' values, float64 in the order of the query ids."""
    made = query_frame(judgments, query_ids, first=first, second=second, difference=second - first)
    return made.sort("difference", descending=True, maintain_order=True)


def score_run(run: Run, judgments: Judgments, measures: str | Iterable[str], *, seed: int = 0) -> Evaluation:
    """Measure a run; a judged query that it lacks counts 0."""
    names = parse_measures(measures)
    values = compute(run.rankings, judgments.qrels, judgments.query_ids, names)
    coverage = _coverage(run, judgments)
    warnings = (*run.warnings, *_warnings(run, judgments, names, coverage))
    return Evaluation(run.name, names, judgments.query_ids, values, run, judgments, coverage, warnings, seed)


def _coverage(run: Run, judgments: Judgments) -> Coverage:
    shares, unjudged, empty = [], 0, 0
    for query_id in judgments.query_ids:
        top = run.rankings.get(query_id, ())[:COVERAGE_DEPTH]
        if not top:
            empty += 1
            continue
        judged = sum(key in judgments.qrels[query_id] for key in top)
        shares.append(judged / len(top))
        unjudged += len(top) - judged
    return Coverage(math.fsum(shares) / len(shares) if shares else math.nan, unjudged, empty)


def _warnings(run: Run, judgments: Judgments, measures: tuple[str, ...], coverage: Coverage) -> list[str]:
    lines = []
    total = len(judgments)
    if coverage.empty:
        lines.append(f"{coverage.empty} of {total} judged queries returned nothing and count 0")
    if coverage.judged < LOW_COVERAGE:
        lines.append(
            f"Only {coverage.judged:.0%} of the first {COVERAGE_DEPTH} documents are judged; the others count as not "
            "relevant, so figures may be too low: compare plans by them, and judge more before trusting a close call"
        )
    if judgments.without_relevant:
        lines.append(
            f"{len(judgments.without_relevant)} of {total} judged queries have no relevant document and count 0"
        )
    skipped = [i for i in judgments.topics if i not in judgments.qrels]
    if skipped:
        lines.append(f"{len(skipped)} queries have no judgments and were left out")
    retrieved = {key for keys in run.rankings.values() for key in keys}
    if retrieved and not retrieved & judgments.document_keys:
        lines.append("No retrieved document is named in the judgments: do they belong to this corpus?")
    short = [m for m in measures if "@" in m and run.cut_at is not None and run.depth < needed_depth([m])]
    if short:
        lines.append(
            f"Answers end at {run.cut_at} hits, which hold at most {run.depth} documents: "
            f"{', '.join(short)} cannot see more; raise the limit or the plan's depth to change that"
        )
    lines.extend(judgments.notes)
    return lines
