"""A whole search, fusing again, and many plans at once."""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench import corpora
from bench.figures import Figure, Peer, Row, in_turn, milliseconds
from bench.ground import Ground, Question, draw
from workbench import demo as tour
from workbench.corpus import Corpus, open_corpus
from workbench.evaluate.measures import quick
from workbench.plan.fields import FusionPlan
from workbench.plan.plan import Plan
from workbench.ranking.batch import Batch, Judged
from workbench.ranking.candidates import Candidates
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
    half = PLANS // 2
    ranked = [
        plan.replace({"fusion.method": "rrf", "fusion.k": float(k), "fusion.weights.vector": float(w)})
        for k in np.linspace(1, 120, 25)
        for w in np.linspace(0.1, 3.0, half // 25)
    ]
    return [*ranked, *(plan.replace({"fusion.alpha": float(a)}) for a in np.linspace(0, 1, half))]


# --- rows presets ----------------------------------------------------------------------------------------------------


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
    spent: dict[str, list[float]] = {}
    for result in results:
        for name, value in result.timings_ms.items():
            spent.setdefault(name, []).append(value)
    parts = ", ".join(f"{_NAMES.get(n, n.removesuffix('_ms'))} {np.median(v):.1f}" for n, v in spent.items())
    return f"Medians of the steps in ms, sources side by side: {parts}; the rest is reading the rows"


# --- rows sweep ------------------------------------------------------------------------------------------------------


DEPTH, PLANS, QUERIES = 1000, 1000, 300
_JUDGED, _CUTOFF, _PEER_PLANS = 10, 10, 10

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
