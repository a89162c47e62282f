"""One session's results: search once, deep enough for every slider, then fuse again.

A `Finder` keeps the last result of each column. When only the plan moved it calls `SearchResult.with_plan`; when the plan
asks for what was not retrieved (another k1, another pattern, another query) it searches again. It knows nothing of pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.charts.distances import Histogram, histogram
from workbench.errors import NeedsSearch, WorkbenchError
from workbench.plan import Plan
from workbench.records import Hit
from workbench.retrieve.request import base_of, sources_of

if TYPE_CHECKING:
    from workbench.retrieve.result import SearchResult
    from workbench.service import Corpus

DEEPEST = 1_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What a search is for, without its settings."""

    query: str
    keywords: str = ""
    filters: str = ""

    @property
    def blank(self) -> bool:
        """True when there is nothing to look for."""
        return not (self.query.strip() or self.keywords.strip())


@dataclass(frozen=True, slots=True)
class Found:
    """One column's answer: a result, or the error that stands in its place."""

    mode: str
    result: SearchResult | None
    error: WorkbenchError | None = None
    hits: tuple[Hit, ...] = ()


class Finder:
    """Results of one session, the last one of each mode.

    Attributes:
        searched: How many searches were run (for tests, and to see that a slider runs none).
        fused_again: How many plans were fused again without a search.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[str, Asked], SearchResult]] = {}
        self._ranks: dict[tuple[str, str], tuple[tuple[object, ...], Mapping[str, int]]] = {}
        self._histogram: tuple[tuple[object, ...], Histogram] | None = None
        self.searched = 0
        self.fused_again = 0

    def find(self, corpus: Corpus, asked: Asked, mode: str, plan: Plan) -> Found:
        """The column of one mode. Errors that the workbench raises on purpose become the column."""
        try:
            result = self.result(corpus, asked, mode, plan)
            return Found(mode, result, hits=result.hits)
        except WorkbenchError as exc:
            return Found(mode, None, exc)

    def result(self, corpus: Corpus, asked: Asked, mode: str, plan: Plan) -> SearchResult:
        """A result for a mode and plan: kept, fused again, or searched. Raises as `Corpus.search` does."""
        key = (corpus.engine.generation, asked)
        kept = self._kept.get(mode)
        if kept is not None and kept[0] == key:
            if kept[1].plan == plan:
                return kept[1]
            try:
                result = kept[1].with_plan(plan)
                self.fused_again += 1
            except NeedsSearch:
                result = self._search(corpus, asked, mode, plan)
        else:
            result = self._search(corpus, asked, mode, plan)
        self._kept[mode] = (key, result)
        return result

    def _search(self, corpus: Corpus, asked: Asked, mode: str, plan: Plan) -> SearchResult:
        self.searched += 1
        depths = dict.fromkeys(sources_of(plan, mode, asked.query, asked.keywords), DEEPEST)
        return corpus.search(
            asked.query,
            keywords=asked.keywords or None,
            mode=mode,
            plan=plan,
            filters=asked.filters or None,
            depths=depths,
        )

    def ranks(self, found: tuple[Found, ...]) -> dict[str, dict[str, int]]:
        """Chunk id -> source -> rank, of every shown hit in every source that any column asked.

        A hit's own ranks count; a source that its column did not ask is taken from a column that did.
        """
        shown: dict[str, dict[str, int]] = {h.chunk_id: {} for f in found for h in f.hits}
        for source, ranks in self._by_source(found):
            for chunk_id, row in shown.items():
                if chunk_id in ranks:
                    row.setdefault(source, ranks[chunk_id])
        return shown

    def _by_source(self, found: tuple[Found, ...]) -> Iterator[tuple[str, Mapping[str, int]]]:
        for f in found:
            if f.result is None:
                continue
            plan = f.result.plan
            sources = sources_of(plan, f.mode, f.result.query, f.result.keywords)
            for source in sources:
                decided = (
                    f.result.generation, f.result.query, f.result.keywords, f.result.filters, plan["collections"],
                    plan.depth(source), plan["vector.threshold"], plan["vector.metric"],
                    *(v for n, v in plan if n.startswith(f"{base_of(source)}.")),
                )  # fmt: skip
                kept = self._ranks.get((f.mode, source))
                if kept is None or kept[0] != decided:
                    ranking = f.result.rankings.get(source)
                    ranks = {} if ranking is None else {e.chunk_id: e.rank for e in ranking.entries}
                    kept = (decided, ranks)
                    self._ranks[(f.mode, source)] = kept
                yield source, kept[1]

    def distances(self, found: tuple[Found, ...]) -> Histogram | None:
        """The histogram of distances of the whole corpus to the query; None where no vector source ran."""
        for f in sorted(found, key=lambda f: f.mode != "vector"):
            if f.result is None:
                continue
            for source in f.result.rankings if base_of(f.mode) in ("vector", "hybrid") else ():
                if base_of(source) != "vector":
                    continue
                r = f.result
                key = (r.generation, r.query, r.filters, r.plan["collections"], r.plan["vector.metric"], source)
                if self._histogram is None or self._histogram[0] != key:
                    self._histogram = (key, histogram(r.distances(source), r.plan["vector.metric"]))
                return self._histogram[1]
        return None


def sources_shown(found: tuple[Found, ...]) -> tuple[str, ...]:
    """Every source that a column asked, grep first, then keyword, then vector."""
    order = {"grep": 0, "keyword": 1, "vector": 2}
    names = {s for f in found if f.result for s in sources_of(f.result.plan, f.mode, f.result.query, f.result.keywords)}
    return tuple(sorted(names, key=lambda s: (order[base_of(s)], s)))


def dropped_by_threshold(found: tuple[Found, ...]) -> tuple[int, int] | None:
    """Candidates before the threshold and after it, by the vector column or else the hybrid one; None without a vector."""
    for f in sorted(found, key=lambda f: f.mode != "vector"):
        if f.result is None:
            continue
        for step in f.result.steps:
            if step.step == "threshold":
                return step.entered, step.left
    return None
