"""Measure a plan: run the judged queries and take each result's whole fused list, not only the rows that it shows.

A plan's figures are at its own depth: rankings are cut before fusing as in any search, and `limit` only says how many
rows a person is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from workbench.evaluate.evaluation import Evaluation, evaluate
from workbench.evaluate.measures import needed_depth, parse_measures
from workbench.evaluate.run import Named, Run, make_run
from workbench.judgments.qrels import Judgments, Topic
from workbench.records import Progress
from workbench.retrieve.result import SearchResult


@dataclass(frozen=True, slots=True)
class _Answer:
    hits: tuple[Named, ...]
    timings_ms: Mapping[str, float]
    warnings: tuple[str, ...]
    cut: bool


def evaluate_plan(
    search: Callable[[Topic], SearchResult],
    judgments: Judgments,
    measures: str | Iterable[str],
    *,
    name: str,
    progress: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Ask every judged query by `search` and measure the fused lists.

    Raises:
        UsageError: A measure that is unknown.
        JudgmentError: A judged query without a text.
    """
    depth = needed_depth(parse_measures(measures))
    return evaluate(_asking(search), judgments, measures, name=name, depth=depth, progress=progress)


def run_plan(
    search: Callable[[Topic], SearchResult],
    judgments: Judgments,
    depth: int,
    *,
    name: str,
    progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Ask every query by `search` and keep the first `depth` of each fused list, as documents (or judged passages).

    Raises:
        JudgmentError: A query without a text.
    """
    return make_run(_asking(search), judgments, name=name, depth=depth, progress=progress)


def _asking(search: Callable[[Topic], SearchResult]) -> Callable[[Topic], _Answer]:
    def run(topic: Topic) -> _Answer:
        result = search(topic)
        hits = tuple(
            replace(made[0], alike=tuple(made[1:])) if len(made) > 1 else made[0]
            for made in ([Named(d, p, span=s) for d, p, s in group] for group in result.alike())
        )
        return _Answer(hits, result.timings_ms, result.warnings, result.cut_by_depth)

    return run
