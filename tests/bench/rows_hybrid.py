"""A whole search, fusing again, and many plans at once."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from bench.figures import Figure, Row
from bench.ground import Ground, Question
from bench.timing import in_turn
from workbench.plan.plan import Plan
from workbench.ranking.batch import Batch, Judged
from workbench.records import Progress
from workbench.retrieve.result import SearchResult

DEPTH = 1000
PLANS, QUERIES = 1000, 300
_JUDGED = 10
_SOURCES = ("keyword", "vector")


def search(ground: Ground) -> Row:
    """Keyword and vector at the plan's depth, fused, and the rows of the ten hits read and marked."""
    timings: dict[str, list[float]] = {}
    _ = ground.vectors

    def run(question: Question) -> object:
        result = ground.corpus.search(question.typed, bypass_cache=True)
        hits = result.hits
        for name, spent in result.timings_ms.items():
            timings.setdefault(name, []).append(spent)
        return hits

    figure = in_turn({"ours": run}, ground.questions, rounds=5)["ours"]
    parts = ", ".join(f"{name.removesuffix('_ms')} {np.median(spent):.1f}" for name, spent in timings.items())
    return Row(
        "hybrid.search",
        "hybrid search with its ten rows, query vectors kept",
        "ms",
        figure,
        at_most=12.0,
        notes=(f"Medians of its steps in ms, sources side by side: {parts}; the rest is reading the rows",),
    )


def refuse(ground: Ground) -> Row:
    """A slider: the same candidates under another share of the vector side, another weight of one source."""
    return _refused(ground, "hybrid.refuse", f"fuse 2 x {DEPTH:,} candidates again (with_plan)", False)


def refuse_shown(ground: Ground) -> Row:
    """The same, with the hits that are shown."""
    return _refused(ground, "hybrid.slider", "the same, and its ten hits made", True)


def _refused(ground: Ground, key: str, title: str, shown: bool) -> Row:
    plan = _deep()
    moved = [plan.replace({"fusion.alpha": a, "fusion.weights.vector": w}) for a in (0.3, 0.6, 0.9) for w in (0.5, 2.0)]
    results = [ground.corpus.search(q.typed, plan=plan, bypass_cache=True) for q in ground.questions[:20]]
    inputs = [(result, other) for result in results for other in moved]

    def run(pair: tuple[SearchResult, Plan]) -> object:
        result = pair[0].with_plan(pair[1])
        return result.hits if shown else result

    return Row(key, title, "ms", in_turn({"ours": run}, inputs, rounds=2)["ours"], at_most=5.0)


def _deep() -> Plan:
    return Plan.of("default").replace({f"depth.{source}": DEPTH for source in _SOURCES})


def many(ground: Ground) -> tuple[Row, ...]:
    """Every plan's rank of ten rows of every query: what a sweep needs of fusion."""
    plan = _deep()
    questions = ground.draw(QUERIES)
    chosen = np.random.default_rng(7)
    asked = []
    for done, question in enumerate(questions, 1):
        result = ground.corpus.search(question.typed, plan=plan, bypass_cache=True)
        candidates = result.candidates
        rows = np.sort(chosen.choice(len(candidates.chunk_ids), min(_JUDGED, len(candidates.chunk_ids)), replace=False))
        asked.append((candidates, rows))
        ground.tell(Progress("candidates", done, len(questions)))
    fusions = [p.fusion for p in _plans(plan)]
    batch = Batch.of([Judged(candidates, rows, candidates.chunk_ids) for candidates, rows in asked])
    rows_made = []
    for key, cutoff, said in (("plans.top", 10, "ranks to 10"), ("plans.all", None, "all ranks")):
        taken = []
        for _ in range(3):
            started = time.perf_counter()
            batch.ranks(fusions, cutoff=cutoff)
            taken.append(time.perf_counter() - started)
        title = f"{len(fusions):,} plans over {len(asked)} queries, 2 x {DEPTH:,} candidates, {said}"
        rows_made.append(Row(key, title, "s", Figure.of(taken), at_most=10.0))
    return tuple(rows_made)


def _plans(plan: Plan) -> Sequence[Plan]:
    """Half rrf over k and weight, half convex over alpha."""
    half = PLANS // 2
    ranked = [
        plan.replace({"fusion.method": "rrf", "fusion.k": float(k), "fusion.weights.vector": float(w)})
        for k in np.linspace(1, 120, 25)
        for w in np.linspace(0.1, 3.0, half // 25)
    ]
    return [*ranked, *(plan.replace({"fusion.alpha": float(a)}) for a in np.linspace(0, 1, half))]
