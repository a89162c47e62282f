"""Two plans on the same queries: where they differ, who wins, and how much they agree.

Agreement needs no judgments: the queries on which two plans return the most different lists are the ones worth judging. Where
there are judgments, the queries sorted by their difference show whether a mean moves by many small steps or a few large ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import UsageError
from workbench.evaluate.evaluation import Evaluation
from workbench.evaluate.pool import Pool, ranking_of
from workbench.judgments.qrels import Judgments
from workbench.plan.plan import Plan
from workbench.ranking.agreement import overlap, rbo
from workbench.records import Progress

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]

DEPTH = 100


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """The document lists of two plans.

    Attributes:
        names: The plans' texts.
        judgments: The queries (with qrels where there are any).
        rankings: For each plan, query id -> document keys, best first.
    """

    names: tuple[str, str]
    judgments: Judgments
    rankings: tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]

    def frame(self, top: int = 10) -> pl.DataFrame:
        """One row a query, the most different first: query_id, query, rbo (0 to 1, p 0.9; Webber et al. 2010), shared (of the
        first `top`), only_first and only_second (the documents of the first `top` that the other lacks there).
        """
        import polars as pl

        rows = []
        for query_id in self.judgments.query_ids:
            first, second = (r.get(query_id, ()) for r in self.rankings)
            topic = self.judgments.topics.get(query_id)
            rows.append(
                (
                    query_id,
                    topic.text if topic else None,
                    rbo(first, second),
                    overlap(first, second, top),
                    [d for d in first[:top] if d not in second[:top]],
                    [d for d in second[:top] if d not in first[:top]],
                )
            )
        rows.sort(key=lambda row: row[2])
        schema: dict[str, Any] = {
            "query_id": pl.String, "query": pl.String, "rbo": pl.Float64, "shared": pl.Int64,
            "only_first": pl.List(pl.String), "only_second": pl.List(pl.String),
        }  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")

    @property
    def agreement(self) -> float:
        """Mean RBO over the queries."""
        ids = self.judgments.query_ids
        return float(np.mean([rbo(self.rankings[0].get(i, ()), self.rankings[1].get(i, ())) for i in ids]))


def lists_of(
    pool: Pool,
    first: Plan,
    second: Plan,
    depth: int = DEPTH,
    *,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Lists:
    """The lists of two plans for every query of a pool, `depth` documents each; those asked before `stop` said so."""
    needs, keys = pool.needs([first, second])
    rankings: tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]] = ({}, {})
    for n, topic in enumerate(pool.topics, 1):
        if stop is not None and stop():
            break
        kept: dict[tuple[object, ...], object] = {}
        asked = {key: pool.ask(topic, need, kept) for key, need in needs.items()}  # type: ignore[arg-type]
        for run, plan, key in zip(rankings, (first, second), keys, strict=True):
            pooled = asked[key]
            run[topic.query_id] = () if pooled is None else ranking_of(pool.engine, pooled, plan, depth)
        if progress is not None:
            progress(Progress("compare", n, len(pool), detail=topic.text))
    done = pool.judgments if len(rankings[0]) == len(pool) else pool.judgments.subset(rankings[0])
    return Lists((str(first), str(second)), done, rankings)


def wins(first: Evaluation, second: Evaluation, measure: str) -> pl.DataFrame:
    """One row a query, the greatest gain of the second first: query_id, query, first, second, difference.

    Raises:
        UsageError: The two were judged by different judgments.
    """
    if first.query_ids != second.query_ids:
        raise UsageError("The two evaluations are over different queries", "Evaluate both on the same judgments")
    return won(first.judgments, first.query_ids, first.column(measure), second.column(measure))


def won(judgments: Judgments, query_ids: Sequence[str], first: Floats, second: Floats) -> pl.DataFrame:
    """The rows of `wins` from two plans' values, float64 in the order of the query ids."""
    import polars as pl

    topics = judgments.topics
    made = pl.DataFrame(
        {
            "query_id": pl.Series(query_ids, dtype=pl.String),
            "query": pl.Series([topics[i].text if i in topics else None for i in query_ids], dtype=pl.String),
            "first": pl.Series(first, dtype=pl.Float64),
            "second": pl.Series(second, dtype=pl.Float64),
            "difference": pl.Series(second - first, dtype=pl.Float64),
        }
    )
    return made.sort("difference", descending=True, maintain_order=True)


def queries_only(queries: Sequence[str], name: str = "queries") -> Judgments:
    """Queries without judgments, for comparing plans by agreement alone. Raises UsageError where there are none."""
    from workbench.judgments.qrels import Topic

    texts = list(dict.fromkeys(q.strip() for q in queries if q.strip()))
    if not texts:
        raise UsageError("There are no queries to compare on", "Give at least one")
    topics = {str(n): Topic(str(n), text) for n, text in enumerate(texts, 1)}
    return Judgments(topics, {i: {} for i in topics}, name)
