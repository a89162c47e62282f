"""Two presets as their users meet them: the query is embedded each time, on a corpus of the kind each is made for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench import corpora
from bench.figures import Figure, Row
from bench.ground import Ground, Question, draw
from bench.timing import milliseconds
from workbench import demo as tour
from workbench.corpus import Corpus, open_corpus
from workbench.retrieve.result import SearchResult

WARM, ASKED = 20, 150
"""Questions before the clock starts, and measured ones: each once, and new, so that every search embeds its query."""

COLLECTIONS = (
    "collections collections=artifact_chunks,artifacts,memory "
    "sources=vector@artifact_chunks,vector@artifacts,vector@memory"
)
_NAMES = {"embed_ms": "embedding", "fusion_ms": "fusing"}


def collections(ground: Ground) -> Row:
    """`collections` over three collections of all chunks, with its rows read."""
    source = corpora.in_collections(ground.built.source)
    built = corpora.prepare(source, ground.built.folder.parents[1], ground.tell)
    with open_corpus(built.folder) as corpus:
        figure, results = _searched(corpus, COLLECTIONS, ground.draw(WARM + ASKED))
        counts = ", ".join(f"{count:,} in {name}" for name, count in sorted(corpus.info()["collections"].items()))
    return Row(
        "presets.collections",
        "preset collections over three collections, embedding and its rows included",
        "ms",
        figure,
        p95_at_most=500.0,
        notes=(f"Records: {counts}. {_steps(results)}",),
    )


def pages(ground: Ground) -> tuple[Row, ...]:
    """`pages` on the demo's corpus: the whole search, and what of it is fusing and organising."""
    made = tour.build(ground.built.folder.parents[1] / "demo", encoder=ground.model, progress=ground.tell)
    with open_corpus(made.corpus) as corpus:
        figure, results = _searched(corpus, "pages", draw(corpus.engine.records, WARM + ASKED))
        # The rows of the hits are read by now: what is left is to fuse, order, and put the pages together.
        again = [milliseconds(lambda r: r.with_plan("pages").hits, result) for result in results]
        records = corpus.info()["records"]
    title = f"preset pages on the demo's {records:,} chunks, embedding and its rows included"
    return (
        Row("presets.pages", title, "ms", figure, at_most=100.0, notes=(_steps(results),)),
        Row("presets.organise", "fusing and organising of the same searches", "ms", Figure.of(again), at_most=10.0),
    )


def _searched(corpus: Corpus, plan: str, questions: Sequence[Question]) -> tuple[Figure, list[SearchResult]]:
    """Every question once, after some to warm up."""
    results: list[SearchResult] = []

    def run(question: Question) -> Any:
        result = corpus.search(question.typed, plan=plan, bypass_cache=True)
        results.append(result)
        return result.hits

    for question in questions[:WARM]:
        run(question)
    results.clear()
    return Figure.of([milliseconds(run, question) for question in questions[WARM:]]), results


def _steps(results: Sequence[SearchResult]) -> str:
    """Medians of the steps, in words."""
    spent: dict[str, list[float]] = {}
    for result in results:
        for name, value in result.timings_ms.items():
            spent.setdefault(name, []).append(value)
    parts = ", ".join(f"{_NAMES.get(n, n.removesuffix('_ms'))} {np.median(v):.1f}" for n, v in spent.items())
    return f"Medians of the steps in ms, sources side by side: {parts}; the rest is reading the rows"
