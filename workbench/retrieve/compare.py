"""Several plans side by side, on one query or on many: what they share and how differently they order it.

Over many queries plans are compared by documents: a plan that ranks passages, one that ranks documents and one that searches
another collection never name the same record, and may still answer alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from workbench.errors import UsageError
from workbench.ranking.agreement import jaccard, overlap, rbo
from workbench.retrieve.moved import moved
from workbench.retrieve.result import SearchResult

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Results of several searches of one query; `names` are the plans' text forms or the callers' own, in order."""

    query: str
    names: tuple[str, ...]
    results: tuple[SearchResult, ...]

    def overlap(self) -> polars.DataFrame:
        """One row a pair: a, b, shared (hits in both), jaccard (0 to 1), rbo (0 to 1, p 0.9; Webber et al. 2010)."""
        import polars as pl

        ids = [[hit.chunk_id for hit in result.hits] for result in self.results]
        pairs = combinations(zip(self.names, ids, strict=True), 2)
        rows = [(a, b, *_agreement(first, second)) for (a, first), (b, second) in pairs]
        return pl.DataFrame(rows, schema={"a": pl.String, "b": pl.String, **_measures()}, orient="row")

    def frame(self) -> polars.DataFrame:
        """One row a hit of any result: citation, path, and its rank in each (null where it is absent)."""
        import polars as pl

        rows: dict[str, dict[str, str | int]] = {}
        for name, result in zip(self.names, self.results, strict=True):
            for hit in result.hits:
                rows.setdefault(hit.chunk_id, {"citation": hit.citation, "path": hit.path})[name] = hit.rank
        schema = {"citation": pl.String, "path": pl.String, **dict.fromkeys(self.names, pl.Int64)}
        return pl.DataFrame(list(rows.values()), schema=schema)

    def moves(self) -> polars.DataFrame:
        """What moved from the first result to the second (`retrieve.moved`).

        Columns: kind (lost, fell, same, rose, came), first and second (ranks, 0 where it is no result), citation, step, reason.
        Raises UsageError where there is one result only.
        """
        import polars as pl

        if len(self.results) < 2:
            raise UsageError("Nothing moves with one plan", "Give two plans")
        moves = moved(*self.results[:2])
        rows = [(m.kind, m.first, m.second, m.hit.citation, m.step, m.reason) for m in moves]
        texts = dict.fromkeys(("citation", "step", "reason"), pl.String)
        schema = {"kind": pl.String, "first": pl.Int64, "second": pl.Int64, **texts}
        return pl.DataFrame(rows, schema=schema, orient="row")


def _agreement(first: Sequence[str], second: Sequence[str]) -> tuple[int, float, float]:
    return overlap(first, second), jaccard(first, second), rbo(first, second)


def _measures() -> dict[str, Any]:
    import polars as pl

    return {"shared": pl.Int64, "jaccard": pl.Float64, "rbo": pl.Float64}


@dataclass(frozen=True, slots=True, eq=False)
class ManyComparisons:
    """The same plans on many queries; the first plan is the one that the others are held against.

    Attributes:
        names: The plans, in order.
        comparisons: One a query, in order.
    """

    names: tuple[str, ...]
    comparisons: tuple[Comparison, ...]

    def frame(self) -> polars.DataFrame:
        """One row a query and plan.

        Columns: query, plan, hits (rows that a page organisation adds do not count), top (citation of the first hit, null
        without one), documents, and against the first plan, by documents: shared, jaccard (0 to 1), rbo (0 to 1, p 0.9),
        same_top.
        """
        import polars as pl

        rows = [row for comparison in self.comparisons for row in self._rows(comparison)]
        counts = {"query": pl.String, "plan": pl.String, "hits": pl.Int64, "top": pl.String, "documents": pl.Int64}
        return pl.DataFrame(rows, schema={**counts, **_measures(), "same_top": pl.Boolean}, orient="row")

    def _rows(self, comparison: Comparison) -> Iterator[tuple[object, ...]]:
        first = _documents(comparison.results[0])
        for name, result in zip(self.names, comparison.results, strict=True):
            own, hits = _documents(result), [h for h in result.hits if not h.added]
            best = min(hits, key=lambda h: h.rank, default=None)
            counts = comparison.query, name, len(hits), best.citation if best else None, len(own)
            yield (*counts, *_agreement(first, own), own[:1] == first[:1])

    def summary(self) -> polars.DataFrame:
        """One row a plan: plan, queries, empty (queries without a hit), hits (mean), and against the first plan same_top
        (queries with the same first document), shared, jaccard and rbo (means).
        """
        import polars as pl

        counts = [pl.len().cast(pl.Int64).alias("queries"), (pl.col("hits") == 0).sum().cast(pl.Int64).alias("empty")]
        same = pl.col("same_top").sum().cast(pl.Int64)
        means = pl.col("shared", "jaccard", "rbo").mean()
        return self.frame().group_by("plan", maintain_order=True).agg(*counts, pl.col("hits").mean(), same, means)


def compare_many(
    compare: Callable[..., Comparison],
    queries: Sequence[tuple[str, str | None]],
    plans: Sequence[object],
    **options: object,
) -> ManyComparisons:
    """Run many queries under the same plans.

    Args:
        compare: Compares one query, as `Corpus.compare` does.
        queries: Their texts, each with keywords for grep or None.
        plans: Plans or their text forms, the first one to hold the others against; each once.
        **options: What else `compare` takes, such as filters and limit.

    Raises UsageError: No queries, or a plan given twice.
    """
    made = [compare(text, plans, keywords=keywords, **options) for text, keywords in queries]
    if not made:
        raise UsageError("There are no queries", "Give at least one")
    names = made[0].names
    if len(set(names)) != len(names):
        raise UsageError("A plan is given twice", "Give each plan once")
    return ManyComparisons(names, tuple(made))


def _documents(result: SearchResult) -> list[str]:
    """Paths of a result's documents, best first, each once."""
    hits = sorted((h for h in result.hits if not h.added), key=lambda h: h.rank)
    return list(dict.fromkeys(h.path for h in hits))
