"""Measure a plan: run the judged queries and take each result's whole fused list, not only the rows that it shows.

A plan's figures are at its own depth: rankings are cut before fusing as in any search, and `limit` only says how many
rows a person is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from workbench.evaluate.evaluation import Evaluation, evaluate
from workbench.evaluate.judgments import Judgments, Topic
from workbench.evaluate.measures import needed_depth, parse_measures
from workbench.evaluate.run import Named, Run, make_run
from workbench.records import Progress
from workbench.retrieve.result import SearchResult

_EVERY = 1 << 60


@dataclass(frozen=True, slots=True)
class _Answer:
    hits: tuple[Named, ...]
    timings_ms: Mapping[str, float]
    warnings: tuple[str, ...]


def evaluate_plan(
    search: Callable[[Topic], SearchResult],
    judgments: Judgments,
    measures: str | Iterable[str],
    *,
    name: str,
    progress: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Ask every judged query by `search` and measure the fused lists.

    Args:
        search: Runs one topic under the plan that is measured.
        judgments: Queries and qrels.
        measures: Names such as `nDCG@10`.
        name: What is measured: the plan's text.
        progress: Called after each query.

    Raises:
        UsageError: A measure that is unknown.
        JudgmentError: A judged query without a text.
    """
    depth = needed_depth(parse_measures(measures))
    return evaluate(_asking(search, depth), judgments, measures, name=name, progress=progress)


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
    return make_run(_asking(search, depth), judgments, name=name, progress=progress)


def _asking(search: Callable[[Topic], SearchResult], depth: int) -> Callable[[Topic], _Answer]:
    def run(topic: Topic) -> _Answer:
        result = search(topic)
        return _Answer(tuple(_documents(result, depth)), result.timings_ms, result.warnings)

    def _documents(result: SearchResult, most: int) -> Iterator[Named]:
        """Rows up to the last one of the `most`-th document: chunks of one document must not use up the depth."""
        seen: set[str] = set()
        for document, path, span in result.passages(_EVERY):
            seen.add(document)
            if len(seen) > most:
                return
            yield Named(document, path, span=span)

    return run
