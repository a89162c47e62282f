"""A sweep's work as a whole, with ranx at the same grid: fuse, rank the judged documents, nDCG@10, for every plan.

Half of the grid is rrf over k, half is the weighted sum of min-max scores with missing ones 0: what both programs can do. ranx is
measured on a sample of the plans, spread over the grid, after its first call (which compiles), and scaled to all of them.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from typing import Any

import numpy as np

from bench.figures import Figure, Peer, Row
from bench.ground import Ground
from workbench.evaluate.measures import quick
from workbench.plan.fields import FusionPlan
from workbench.plan.plan import Plan
from workbench.ranking.batch import Batch, Judged
from workbench.ranking.candidates import Candidates
from workbench.records import Progress

DEPTH, PLANS, QUERIES = 1000, 1000, 300
_JUDGED, _CUTOFF, _PEER_PLANS = 10, 10, 10
_SOURCES = ("keyword", "vector")

Asked = tuple[Candidates, Any]


def sweep(ground: Ground) -> Row:
    """1,000 plans over 300 queries at depth 1,000, ours and ranx's."""
    asked = _asked(ground)
    grid = fusions()
    taken = []
    for _ in range(3):
        started = time.perf_counter()
        values = figures(asked, grid)
        taken.append(time.perf_counter() - started)
    tracemalloc.start()
    figures(asked[: QUERIES // 10], grid)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    means = values.mean(axis=0)
    peer, apart = _ranx(asked, grid, means)
    notes = [f"Peak memory of the work besides the candidates: {peak:.0f} MB", "Candidates were retrieved before"]
    if apart is not None:
        notes.append(
            f"Greatest difference of a plan's mean nDCG@10 to ranx's, which settles ties its own way: {apart:.1e}"
        )
    title = f"a sweep: {len(grid):,} plans over {len(asked)} queries, 2 x {DEPTH:,} candidates, nDCG@10"
    return Row("plans.sweep", title, "s", Figure.of(taken), (peer,), at_most=10.0, notes=tuple(notes))


def fusions() -> list[FusionPlan]:
    """The grid: half rrf over k, half min-max sums over the vector side's share."""
    half = PLANS // 2
    ranked = [FusionPlan("rrf", k=float(k)) for k in np.linspace(1, 200, half)]
    normalise = dict.fromkeys(_SOURCES, "minmax")
    mixed = [
        FusionPlan("weighted", weights={"keyword": 1.0 - a, "vector": a}, normalise=normalise, missing="zero")
        for a in np.linspace(0.0, 1.0, half).tolist()
    ]
    return [*ranked, *mixed]


def figures(asked: list[Asked], grid: list[FusionPlan]) -> Any:
    """nDCG@10 of every query under every plan, float64 (queries, plans)."""
    measure = quick(f"nDCG@{_CUTOFF}")
    if measure is None:  # pragma: no cover - nDCG is quick
        raise ValueError("nDCG is no quick measure")
    batch = Batch.of([Judged(c, rows, c.chunk_ids) for c, rows in asked])
    ranks = np.split(batch.ranks(grid, cutoff=_CUTOFF), np.cumsum(batch.sizes)[:-1], axis=1)
    values = np.zeros((len(asked), len(grid)))
    for n, own in enumerate(ranks):
        grades = 1 + np.arange(own.shape[1]) % 3
        values[n] = measure.of(own, grades, grades)
    return values


def _asked(ground: Ground) -> list[Asked]:
    """Candidates and ten judged rows of each query, drawn among the better ones of either source."""
    plan = Plan.of("rrf").replace({"vector.threshold": "off", **{f"depth.{s}": DEPTH for s in _SOURCES}})
    chosen = np.random.default_rng(7)
    asked: list[Asked] = []
    questions = ground.draw(QUERIES)
    for done, question in enumerate(questions, 1):
        candidates = ground.corpus.search(question.typed, plan=plan, bypass_cache=True).candidates
        ranks = np.stack([np.where(c.rank > 0, c.rank, DEPTH + 1) for c in candidates.columns]).min(axis=0)
        pool = np.argsort(ranks, kind="stable")[:50]
        asked.append((candidates, np.sort(chosen.choice(pool, min(_JUDGED, len(pool)), replace=False))))
        ground.tell(Progress("candidates", done, len(questions)))
    return asked


def _ranx(asked: list[Asked], grid: list[FusionPlan], means: Any) -> tuple[Peer, float | None]:
    """ranx on a sample of the grid, scaled, and the greatest difference of the means."""
    try:
        import ranx
    except ImportError:
        return Peer("ranx", None, note="not installed: pip install ranx"), None
    runs = []
    for source in _SOURCES:
        run: dict[str, dict[str, float]] = {}
        for n, (candidates, _) in enumerate(asked):
            column = candidates.column(source)
            rows = np.flatnonzero(column.retrieved)
            run[f"q{n}"] = {candidates.chunk_ids[r]: float(column.score[r]) for r in rows.tolist()} or {"none": 0.0}
        runs.append(ranx.Run(run, name=source))
    qrels = ranx.Qrels(
        {
            f"q{n}": {candidates.chunk_ids[r]: 1 + at % 3 for at, r in enumerate(rows.tolist())}
            for n, (candidates, rows) in enumerate(asked)
        }
    )

    def one(plan: FusionPlan) -> float:
        if plan.method == "rrf":
            fused = ranx.fuse(runs=runs, norm=None, method="rrf", params={"k": plan.k})
        else:
            weights = tuple(plan.weight(s) for s in _SOURCES)
            fused = ranx.fuse(runs=runs, norm="min-max", method="wsum", params={"weights": weights})
        return float(ranx.evaluate(qrels, fused, f"ndcg@{_CUTOFF}", make_comparable=True))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its compiler's remarks on its own code
        one(grid[0]), one(grid[len(grid) // 2])
    places = [int(p) for p in np.linspace(0, len(grid) - 1, _PEER_PLANS)]
    taken, apart = [], 0.0
    for place in places:
        started = time.perf_counter()
        mean = one(grid[place])
        taken.append(time.perf_counter() - started)
        apart = max(apart, abs(mean - float(means[place])))
    whole = float(np.mean(taken)) * len(grid)
    note = f"{len(places)} of its plans measured, {np.mean(taken):.2f} s each, scaled to {len(grid):,}"
    return Peer("ranx, fuse and evaluate", Figure.of([whole]), note=note), apart
