"""One query's result under a set's judgments: the grade of each hit, nDCG@10, P@10, and how many of the ten are judged.

The figures are those of an evaluation of the same query (`evaluation.evaluate`), so that a page that shows a result and a page
that shows the set never differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from workbench.evaluate.evaluation import COVERAGE_DEPTH as TOP
from workbench.evaluate.evaluation import LOW_COVERAGE
from workbench.evaluate.measures import Quick
from workbench.evaluate.run import judged_keys, named
from workbench.judgments.qrels import Judgments
from workbench.retrieve.result import SearchResult

_READ = 4 * TOP
"""Candidates that are read at first: a chunk whose passages all counted before takes no place."""
_NDCG, _P = Quick("nDCG", TOP, 1), Quick("P", TOP, 1)


@dataclass(frozen=True, slots=True)
class Judged:
    """What judgments say of one result.

    Attributes:
        grades: Chunk id -> grade of each hit that has one.
        ndcg: nDCG@10; NaN where nothing relevant is judged for the query.
        precision: P@10; NaN the same.
        judged, top: How many of the first ten documents (or judged passages) are judged, of how many there are.
    """

    grades: Mapping[str, int] = field(default_factory=dict)
    ndcg: float = math.nan
    precision: float = math.nan
    judged: int = 0
    top: int = 0

    @property
    def words(self) -> str:
        """The figures in a line: `nDCG@10 0.613 · P@10 0.40 · 8 of 10 judged`."""
        share = f"{self.judged} of {self.top} judged"
        return share if math.isnan(self.ndcg) else f"nDCG@10 {self.ndcg:.3f} · P@10 {self.precision:.2f} · {share}"

    @property
    def few(self) -> bool:
        """Whether so few are judged that the figures may be far too low."""
        return self.judged < LOW_COVERAGE * self.top


def judge(result: SearchResult, judgments: Judgments, query_id: str) -> Judged:
    """What judgments say of a result of one of their queries; nothing is read but what names the candidates."""
    qrels, order = judgments.qrels.get(query_id, {}), result.order
    if not qrels:
        return Judged(top=min(TOP, len(order)))
    keys = judged_keys(named(result, order[:_READ]), judgments, query_id)
    if len(keys) < TOP and len(order) > _READ:
        keys = judged_keys(named(result), judgments, query_id)
    keys = keys[:TOP]
    ranks = {key: rank for rank, key in enumerate(keys, 1) if key in qrels}
    at = np.array([list(ranks.values())], np.int64), np.array([qrels[key] for key in ranks], np.int64)
    every = np.array(list(qrels.values()), np.int64)
    ndcg = precision = math.nan
    if (every > 0).any():
        ndcg, precision = float(_NDCG.of(*at, every)[0]), float(_P.of(*at, every)[0])
    grades = {}
    hits = [hit for hit in result.hits if not hit.added]
    for hit, name in zip(hits, named(result, result.outcome.shown), strict=True):
        own = [qrels[key] for key in judged_keys([name], judgments, query_id) if key in qrels]
        if own:
            grades[hit.chunk_id] = max(own)
    return Judged(grades, ndcg, precision, len(ranks), len(keys))
