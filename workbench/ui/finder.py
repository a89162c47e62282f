"""One session's results: search once, deep enough for every slider, then fuse again.

A `Finder` keeps the last result of each column. When only the plan moved it calls `SearchResult.with_plan`; when the plan
asks for what was not retrieved (another k1, another pattern, another query) it searches again. It knows nothing of pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.charts.distributions import Histogram, histogram, score_histogram
from workbench.errors import NeedsSearch, WorkbenchError
from workbench.plan.fields import FUSED, base_of
from workbench.plan.plan import Plan
from workbench.ranking.agreement import reached
from workbench.records import Hit
from workbench.retrieve.request import sources_of

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.retrieve.result import SearchResult
    from workbench.ui.state import AppState

DEEPEST = 1_000


@dataclass(frozen=True, slots=True)
class Request:
    query: str
    keywords: str = ""
    filters: str = ""
    context: str = ""

    @property
    def blank(self) -> bool:
        return not (self.query.strip() or self.keywords.strip())


def request_of(state: AppState) -> Request:
    return Request(state.query, state.keywords, state.filters, state.context)


@dataclass(frozen=True, slots=True)
class Found:
    """One column's answer: a result, or the error that takes its place.

    Attributes:
        mode: The mode that was searched.
        result, error: One of the two.
        hits: The result's hits.
        title: The column's heading.
        slot: What the finder keeps its result under.
        moved: Whether the sidebar moves its plan, where that is worth saying.
    """

    mode: str
    result: SearchResult | None
    error: WorkbenchError | None = None
    hits: tuple[Hit, ...] = ()
    title: str = ""
    slot: str = ""
    moved: bool = False


class Finder:
    """Results of one session, the last one of each mode of the shared plan and of each column with its own.

    Attributes:
        searched: How many searches were run (for tests, and to see that a slider runs none).
        fused_again: How many plans were fused again without a search.
    """

    def __init__(self) -> None:
        self._results: dict[str, tuple[tuple[object, ...], SearchResult]] = {}
        self._histograms: dict[str, tuple[tuple[object, ...], Histogram]] = {}
        self.searched = 0
        self.fused_again = 0

    def find(self, corpus: Corpus, request: Request, mode: str, plan: Plan, slot: str = "") -> Found:
        """The column of one mode; `slot` is what its result is kept under ("": the mode). A WorkbenchError becomes the column."""
        slot = slot or mode
        try:
            result = self.result(corpus, request, mode, plan, slot)
            return Found(mode, result, hits=result.hits, slot=slot)
        except WorkbenchError as exc:
            self._results.pop(slot, None)
            return Found(mode, None, exc, slot=slot)

    def kept(self, slot: str) -> SearchResult | None:
        return self._results.get(slot, ((), None))[1]

    def result(self, corpus: Corpus, request: Request, mode: str, plan: Plan, slot: str = "") -> SearchResult:
        """A result for a mode and plan: kept, fused again, or searched. Raises as `Corpus.search` does."""
        slot = slot or mode
        engine = corpus.engine  # looks for a new generation and new words: once is enough
        key = (engine.key, engine.vocabulary, request)
        before, last = self._results.get(slot, ((), None))
        if last is not None and before == key and last.mode == mode:
            if last.plan == plan:
                return last
            try:
                result = last.with_plan(plan)
                self.fused_again += 1
            except NeedsSearch:
                result = self._search(corpus, request, mode, plan)
        else:
            result = self._search(corpus, request, mode, plan)
        self._results[slot] = (key, result)
        return result

    def _search(self, corpus: Corpus, request: Request, mode: str, plan: Plan) -> SearchResult:
        self.searched += 1
        depths = dict.fromkeys(sources_of(plan, mode, request.query, request.keywords), DEEPEST)
        return corpus.search(
            request.query,
            keywords=request.keywords or None,
            context=request.context or None,
            mode=mode,
            plan=plan,
            filters=request.filters or None,
            depths=depths,
        )

    def hit(self, chunk_id: str) -> Hit | None:
        shown = (hit for _, result in self._results.values() for hit in result.hits)
        return next((hit for hit in shown if hit.chunk_id == chunk_id), None)

    def distances(self, found: tuple[Found, ...]) -> Mapping[str, Histogram]:
        """The histogram of distances of the whole corpus to the query, by vector source; empty where none ran."""
        answered = _by_meaning(found)
        if answered is None:
            return {}
        f, result = answered
        metric, shown = result.plan["vector.metric"], {}
        for source in result.rankings:
            if base_of(source) == "vector":
                request = self._results.get(f.slot or f.mode, ((), None))[0]
                key = (request, result.plan["collections"], metric, result.plan["rewrite.model"])
                kept = self._histograms.get(source)
                if kept is None or kept[0] != key:
                    kept = self._histograms[source] = (key, histogram(result.distances(source), metric))
                shown[source] = kept[1]
        return shown


def ranks(found: tuple[Found, ...]) -> dict[str, dict[str, int]]:
    """Chunk id -> source -> rank, of every shown hit in every source that any column searched: for sources that a hit's own
    column did not search; of the others the hit has its rank itself.
    """
    shown: dict[str, dict[str, int]] = {h.chunk_id: {} for f in found for h in f.hits}
    for f in found:
        if f.result is None:
            continue
        candidates = f.result.outcome.candidates
        rows = [(n, chunk_id) for n, chunk_id in enumerate(candidates.chunk_ids) if chunk_id in shown]
        for column in candidates.columns:
            retrieved = column.retrieved
            in_order = np.sort(column.rank[retrieved])
            for row, chunk_id in rows:
                if retrieved[row]:
                    rank = int(np.searchsorted(in_order, column.rank[row])) + 1
                    shown[chunk_id].setdefault(column.source, rank)
    return shown


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Sources as the pages show them: grep, the keyword ones, the vector ones."""
    return tuple(sorted(names, key=lambda s: (("grep", "keyword", "vector").index(base_of(s)), s)))


def sources_shown(found: tuple[Found, ...]) -> tuple[str, ...]:
    names = {s for f in found if f.result for s in sources_of(f.result.plan, f.mode, f.result.query, f.result.keywords)}
    return in_order(names)


def dropped_by_threshold(found: tuple[Found, ...]) -> Mapping[str, tuple[int, int]]:
    """Candidates of each source, and of the fused list, before a threshold and after it, of the same columns as the
    histograms.
    """
    answered, main = _by_meaning(found), main_column(found)
    shown = [f.result for f in (main, answered and answered[0]) if f is not None and f.result is not None]
    # Of a vector source the column with the distances has the last word.
    return {
        s.source: (s.entered, s.left)
        for result in shown
        for s in result.steps
        if s.step == "threshold" and (result is shown[0] or base_of(s.source) == "vector")
    }


def score_histograms(found: tuple[Found, ...]) -> Mapping[str, Histogram]:
    """The histogram of BM25 scores of each keyword source's candidates, and of the fused scores, of the column that pictures
    are about.
    """
    main = main_column(found)
    if main is None or main.result is None:
        return {}
    result, made = main.result, {}
    for column in result.candidates.columns:
        if base_of(column.source) == "keyword":
            made[column.source] = score_histogram(column.score[column.rank > 0], "BM25 score")
    if result.score_kind == FUSED:
        made[FUSED] = score_histogram(result.fused.scores, "fused score")
    return made


def exactness(corpus: Corpus, state: AppState) -> str:
    """How much of the exact answer the approximate index finds for the state's query, in a sentence.

    Raises:
        WorkbenchError: As `Corpus.search` does.
    """
    depth = 100
    results: dict[str, SearchResult] = {}
    request: dict[str, Any] = {"context": state.context or None, "filters": state.filters or None}
    for exact in ("no", "yes"):
        changes = {"vector.exact": exact, "depth.vector": depth, "rerank.model": "off"}
        plan = state.moved.with_threshold("off").replace(changes)
        results[exact] = corpus.search(state.query, mode="vector", plan=plan, bypass_cache=True, **request)
    approximate, exact_one = (
        [[e.score for e in ranking.entries] for ranking in results[how].rankings.values()] for how in ("no", "yes")
    )
    if not any(ranking.approximate for ranking in results["no"].rankings.values()):
        return (
            "Every vector search of this query is exact: the corpus is small, or the filter leaves too little for an "
            "approximate index."
        )
    shares = []
    for top in (10, depth):
        hit = sum(reached(a[:top], e[:top]) for a, e in zip(approximate, exact_one, strict=True))
        shares.append(f"recall@{top} {hit / max(1, sum(len(e[:top]) for e in exact_one)):.3f}")
    times = [results[how].timings_ms.get("vector_ms", 0.0) for how in ("no", "yes")]
    return (
        f"Of the exact answer to this query the approximate index finds {' and '.join(shares)}, "
        f"in {times[0]:.1f} ms against {times[1]:.1f} ms."
    )


def _by_meaning(found: tuple[Found, ...]) -> tuple[Found, SearchResult] | None:
    """The column whose distances are shown, with its result: one that the sidebar moves first, among them the vector column."""
    for f in sorted(found, key=lambda f: (not f.moved, f.mode != "vector")):
        if f.result is not None and any(base_of(source) == "vector" for source in f.result.rankings):
            return f, f.result
    return None


def main_column(found: tuple[Found, ...]) -> Found | None:
    """The column that pictures are about: hybrid, the moved one first, else the last one with a result."""
    answered = [f for f in found if f.result is not None]
    hybrid = sorted((f for f in answered if f.mode == "hybrid"), key=lambda f: not f.moved)
    return hybrid[0] if hybrid else answered[-1] if answered else None
