"""Several plans on one query, side by side: what they share and how differently they order it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.ranking.agreement import jaccard, overlap, rbo
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

        rows = []
        for i, first in enumerate(self.names):
            for j in range(i + 1, len(self.names)):
                a, b = (_ids(self.results[k]) for k in (i, j))
                rows.append((first, self.names[j], overlap(a, b), jaccard(a, b), rbo(a, b)))
        schema = {"a": pl.String, "b": pl.String, "shared": pl.Int64, "jaccard": pl.Float64, "rbo": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def frame(self) -> polars.DataFrame:
        """One row a hit of any result: citation, path, and its rank in each (null where it is absent)."""
        import polars as pl

        ranks: dict[str, dict[str, int]] = {}
        cited: dict[str, tuple[str, str]] = {}
        for name, result in zip(self.names, self.results, strict=True):
            for hit in result.hits:
                cited.setdefault(hit.chunk_id, (hit.citation, hit.path))
                ranks.setdefault(hit.chunk_id, {})[name] = hit.rank
        data = {
            "citation": [c for c, _ in cited.values()],
            "path": [p for _, p in cited.values()],
            **{name: [ranks[i].get(name) for i in cited] for name in self.names},
        }
        return pl.DataFrame(
            data, schema={"citation": pl.String, "path": pl.String, **dict.fromkeys(self.names, pl.Int64)}
        )


def _ids(result: SearchResult) -> Sequence[str]:
    return [h.chunk_id for h in result.hits]
