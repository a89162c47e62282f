"""Several plans side by side, on one query or on many: what they share, how differently they order it, and what moved and why.

Over many queries plans are compared by documents: a plan that ranks passages, one that ranks documents and one that searches
another collection never name the same record, and may still answer alike.

Everything that is said of a move was looked up: the step that dropped a result is `explain`'s, what overtook it are the results
that are above it now and were not before, and how the sources value it are its own ranks and shares in both lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from workbench.errors import UsageError, counted
from workbench.ranking.agreement import jaccard, overlap, rbo
from workbench.records import Hit
from workbench.retrieve.explain import dropped
from workbench.retrieve.messages import listed
from workbench.retrieve.result import SearchResult

if TYPE_CHECKING:
    import polars


# --- two lists of one query --------------------------------------------------------------------------------------------

KINDS = ("lost", "fell", "same", "rose", "came")


@dataclass(frozen=True, slots=True)
class Move:
    """One result of either list.

    Attributes:
        hit: As the second list shows it; as the first does where the second lacks it.
        first, second: Its rank in each list, 0 where it is no result.
        kind: lost, fell, same, rose or came.
        step: The step that keeps it out of the list that lacks it, as `Explanation.dropped_by` names it; else "".
        by: Ranks, in the second list, of the results that are before it now and were not.
        reason: Why, in a sentence or two; "" where it stayed.
    """

    hit: Hit
    first: int
    second: int
    kind: str
    step: str = ""
    by: tuple[int, ...] = ()
    reason: str = ""


def moved(first: SearchResult, second: SearchResult) -> tuple[Move, ...]:
    """Every result of two lists of one query: those of the first in its order, then those that came.

    Where either plan ranks documents, a document's first result in each list is one and the same.
    """
    whole = "document" in (first.plan["fusion.unit"], second.plan["fusion.unit"])
    before, after = _by_key(first.hits, whole), _by_key(second.hits, whole)
    moves = [_move(before[key], after.get(key), key, before, after, second) for key in before]
    for key, hit in after.items():
        if key not in before:
            step, reason = dropped(first, hit.chunk_id)
            moves.append(
                Move(hit, 0, hit.rank, "came", step, reason=f"Not in the first list: {reason[:1].lower()}{reason[1:]}.")
            )
    return tuple(moves)


def _by_key(hits: Sequence[Hit], whole: bool) -> dict[str, Hit]:
    found: dict[str, Hit] = {}
    for hit in hits:
        if not hit.added:
            key = hit.document_id if whole and hit.document_id not in found else hit.chunk_id
            found[key] = hit
    return found


def _move(
    old: Hit, new: Hit | None, key: str, before: dict[str, Hit], after: dict[str, Hit], second: SearchResult
) -> Move:
    last = new.rank if new is not None else len(after) + 1
    over = tuple(h.rank for k, h in after.items() if h.rank < last and (k not in before or before[k].rank > old.rank))
    if new is None:
        step, reason = dropped(second, old.chunk_id)
        pushed = step in ("limit", "strongest")
        words = f"{reason}." + (f" {_overtaken(over, after)}" if pushed and over else "")
        return Move(old, old.rank, 0, "lost", step, over if pushed else (), words)
    if new.rank == old.rank:
        return Move(new, old.rank, new.rank, "same")
    kind, why = ("rose" if new.rank < old.rank else "fell"), _valued(old, new)
    gone = [h.rank for k, h in before.items() if h.rank < old.rank and (k not in after or after[k].rank > new.rank)]
    if kind == "fell":
        return Move(new, old.rank, new.rank, kind, by=over, reason=f"{_overtaken(over, after)}{why}")
    left = f"Now before {_ranks(gone)} of the first list." if gone else ""
    return Move(new, old.rank, new.rank, kind, reason=f"{left}{why}".strip())


def _overtaken(over: Sequence[int], after: dict[str, Hit]) -> str:
    by_rank = {h.rank: h for h in after.values()}
    names = list(dict.fromkeys(by_rank[r].path.rpartition("/")[2] for r in over[:3]))
    more = f" and {len(over) - 3} more" if len(over) > 3 else ""
    return f"Pushed down by {counted(len(over), 'result')}: {_ranks(over[:3])}{more} ({', '.join(names)})."


def _ranks(ranks: Sequence[int]) -> str:
    return f"number {ranks[0]}" if len(ranks) == 1 else "numbers " + listed(map(str, ranks))


def _valued(old: Hit, new: Hit) -> str:
    """How the sources value a result in both lists, where that differs."""
    parts = []
    sizes = [sum(abs(v) for v in h.contributions.values()) for h in (old, new)]
    for source in sorted({*old.contributions, *new.contributions}):
        was, now = old.ranks.get(source, 0), new.ranks.get(source, 0)
        shares = [
            round(100 * abs(h.contributions.get(source, 0.0)) / size) if size else 0
            for h, size in zip((old, new), sizes, strict=True)
        ]
        if was != now:
            parts.append(f"{source} has it at {f'rank {now}' if now else 'no rank'}, was {was or 'none'}")
        elif shares[0] != shares[1] and len({*old.contributions, *new.contributions}) > 1:
            parts.append(f"{source} gives {shares[1]} % of its score, was {shares[0]} %")
    text = "; ".join(parts)
    return f" {text[:1].upper()}{text[1:]}." if parts else ""


# --- tables ------------------------------------------------------------------------------------------------------------


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
        """What moved from the first result to the second (`moved`).

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
    hits = sorted((h for h in result.hits if not h.added), key=lambda h: h.rank)
    return list(dict.fromkeys(h.path for h in hits))
