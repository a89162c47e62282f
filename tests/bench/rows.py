"""The rows in the order of the table, as data, and how each kind of them is measured."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import corpora, peers, processes
from bench.figures import Figure, Peer, Row, Unmeasured, in_turn, milliseconds, version
from bench.ground import Ground, Question, draw
from bench.peers import DEPTH, K1, B
from workbench import demo, settings
from workbench.corpus import Corpus, open_corpus
from workbench.errors import UsageError, WorkbenchError
from workbench.evaluate.measures import quick
from workbench.plan.fields import FusionPlan
from workbench.plan.plan import Plan
from workbench.ranking.batch import Batch, Judged
from workbench.ranking.candidates import Candidates
from workbench.records import Progress
from workbench.retrieve.result import SearchResult
from workbench.store.types import Scope
from workbench.store.vectors import GRAPH, MATRIX

EVERYTHING = Scope()


# --- one engine beside its peers -------------------------------------------------------------------------------------


def keyword(ground: Ground, key: str, title: str, queries: Sequence[str]) -> Row:
    lexical = ground.engine.lexical
    contestants: dict[str, Callable[[str], object]] = {
        "ours": lambda query: lexical.search(query, EVERYTHING, DEPTH, k1=K1, b=B, operator="any")
    }
    missing: dict[str, str] = {}
    for name, (opened, _, install) in peers.PEERS.items():
        try:
            contestants[name] = opened(ground)
        except (ImportError, sqlite3.OperationalError) as exc:
            missing[name] = f"not installed ({exc}): {install}"
    figures = in_turn(contestants, queries)
    beside = [Peer(name, figures.get(name), most, missing.get(name, "")) for name, (_, most, _) in peers.PEERS.items()]
    note = "DuckDB's fts extension is no peer here: there is no build of it for DuckDB 2 on the package index"
    return Row(key, title, "ms", figures["ours"], tuple(beside), notes=(note,))


def exact(ground: Ground) -> Row:
    from usearch.index import MetricKind, search

    index = ground.engine.vectors("")
    matrix = np.asarray(np.load(ground.vectors_folder / MATRIX, mmap_mode="r"))
    threads = int(settings.get("threads"))
    figures = in_turn(
        {
            "ours": lambda vector: index.search(vector, EVERYTHING, DEPTH, exact="yes"),
            "usearch": lambda vector: search(matrix, vector, DEPTH, MetricKind.IP, exact=True, threads=threads),
        },
        ground.vectors,
    )
    title = f"exact nearest {DEPTH} of {len(matrix):,} x {matrix.shape[1]} float32"
    peer = Peer(f"usearch {version('usearch')} exact, {threads} threads", figures["usearch"], 1.0)
    return Row("vector.exact", title, "ms", figures["ours"], (peer,))


RECALL = 0.98
WIDTHS = (100, 128, 160, 200, 256, 320, 400, 500, 640, 800, 1000, 1280, 1600, 2048, 3000, 4096)


def graph(ground: Ground) -> Row:
    """The approximate nearest 100: recall is that of these questions, against the exact answer."""
    from usearch.index import Index

    index = ground.engine.vectors("")
    if index.without_graph:
        raise UsageError(index.without_graph, "Take more chunks")
    truth = [index.search(vector, EVERYTHING, DEPTH, exact="yes").numbers for vector in ground.vectors]

    def ours(vector: NDArray[np.float32]) -> NDArray[np.int64]:
        return index.search(vector, EVERYTHING, DEPTH, exact="no").numbers

    own = Index(ndim=index.identity.dim, metric="ip", dtype="bf16", enable_key_lookups=False)
    own.view(str(ground.vectors_folder / GRAPH))

    def theirs(vector: NDArray[np.float32]) -> NDArray[np.int64]:
        return np.asarray(own.search(vector, DEPTH, threads=1).keys, np.int64)

    def recall(search: Callable[[NDArray[np.float32]], NDArray[np.int64]]) -> float:
        found = map(search, ground.vectors)
        return float(np.mean([len(np.intersect1d(f, t)) / max(1, len(t)) for f, t in zip(found, truth, strict=True)]))

    their_recall = 0.0
    for width in WIDTHS:
        own.expansion_search = width
        their_recall = recall(theirs)
        if their_recall >= RECALL:
            break
    our_recall = recall(ours)
    figures = in_turn({"ours": ours, "usearch": theirs}, ground.vectors)
    name = f"usearch {version('usearch')} Index.search, ef {own.expansion_search}"
    note = f"the smallest width that reaches recall {RECALL}; it has {their_recall:.3f}"
    title = f"approximate nearest {DEPTH} (HNSW), recall@{DEPTH} {our_recall:.3f}"
    below = () if our_recall >= RECALL else (f"Recall is below the goal of {RECALL}",)
    return Row("vector.graph", title, "ms", figures["ours"], (Peer(name, figures["usearch"], 1.5, note),), notes=below)


def grep(
    ground: Ground, key: str, title: str, patterns: Sequence[str], at_most: float, regex: bool = False, rounds: int = 2
) -> Row:
    search = ground.engine.grep.search
    contestants: dict[str, Callable[[str], object]] = {
        "ours": lambda p: search([p], EVERYTHING, DEPTH, regex=regex, case="smart", word=False, context=10)
    }
    program = shutil.which("rg")
    name, note = "ripgrep", "not installed: apt-get install ripgrep, or cargo install ripgrep"
    if program is not None:
        folder = str(peers.files(ground))
        command = [program, "--no-config", "-c", "-S", *([] if regex else ["-F"]), "-e"]
        contestants["ripgrep"] = lambda p: subprocess.run([*command, p, folder], capture_output=True, check=False)
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
        name, note = " ".join(said.split()[:2]) or name, ""
    figures = in_turn(contestants, patterns, rounds, warm=3)
    peer = Peer(name, figures.get("ripgrep"), at_most, note)
    return Row(key, f"{title} ({len(patterns)} of them)", "ms", figures["ours"], (peer,))


NO_LITERALS = (
    r"[A-Z]{3}-[0-9]{6}", r"[0-9a-f]{32}", r"\d+\.\d+\.\d+\.\d+", r"^.{300}$", r"[^\x00-\x7f]{5}", r"\s{20}\S",
    r'"[^"]{80}"', r"\w+_\w+_\w+_\w+_\w+[a-c]", r"[a-z]+@[a-z]+\.[a-z]{2,4}", r"\b[A-Z]{2,}[0-9]{2,}\b",
)  # fmt: skip
WITH_LITERALS = (r"{}\w+", r"\b{}[a-z]*\W", r"{}.{{0,30}}[0-9]", r"[A-Za-z_]+{}")


def regexes(ground: Ground) -> list[str]:
    words = ground.words(10, max(20, ground.records // 1000), 30)
    return [WITH_LITERALS[n % len(WITH_LITERALS)].format(re.escape(word)) for n, word in enumerate(words)]


# --- a whole search ---------------------------------------------------------------------------------------------------


def steps(results: Sequence[SearchResult]) -> str:
    spent: dict[str, list[float]] = {}
    for result in results:
        for name, value in result.timings_ms.items():
            spent.setdefault(name.removesuffix("_ms"), []).append(value)
    parts = ", ".join(f"{name} {np.median(values):.1f}" for name, values in spent.items())
    return f"Medians of the steps in ms, sources side by side: {parts}; the rest is reading the rows"


def hybrid(ground: Ground) -> Row:
    """Keyword and vector at the plan's depth, fused, and the rows of the ten hits read and marked."""
    results: list[SearchResult] = []
    _ = ground.vectors

    def run(question: Question) -> object:
        results.append(ground.corpus.search(question.typed, bypass_cache=True))
        return results[-1].hits

    figure = in_turn({"ours": run}, ground.questions, rounds=5)["ours"]
    title = "hybrid search with its ten rows, query vectors kept"
    return Row("hybrid.search", title, "ms", figure, at_most=12.0, notes=(steps(results),))


DEEP = 1000
SOURCES = ("keyword", "vector")
DEPTHS = {f"depth.{source}": DEEP for source in SOURCES}


def refuse(ground: Ground, key: str, title: str, shown: bool) -> Row:
    """A slider: the same candidates under another share of the vector side, another weight of one source."""
    plan = Plan.of("default").replace(DEPTHS)
    moved = [plan.replace({"fusion.alpha": a, "fusion.weights.vector": w}) for a in (0.3, 0.6, 0.9) for w in (0.5, 2.0)]
    results = [ground.corpus.search(q.typed, plan=plan, bypass_cache=True) for q in ground.questions[:20]]

    def run(pair: tuple[SearchResult, Plan]) -> object:
        result = pair[0].with_plan(pair[1])
        return result.hits if shown else result

    inputs = [(result, other) for result in results for other in moved]
    return Row(key, title, "ms", in_turn({"ours": run}, inputs, rounds=2)["ours"], at_most=5.0)


WARM, ASKED = 20, 150
"""Questions before the clock starts, and measured ones: each once, and new, so that every search embeds its query."""

COLLECTIONS = (
    "collections collections=artifact_chunks,artifacts,memory "
    "sources=vector@artifact_chunks,vector@artifacts,vector@memory"
)


def searched(corpus: Corpus, plan: str, questions: Sequence[Question]) -> tuple[Figure, list[SearchResult]]:
    results: list[SearchResult] = []

    def run(question: Question) -> Any:
        results.append(corpus.search(question.typed, plan=plan, bypass_cache=True))
        return results[-1].hits

    taken = [milliseconds(run, question) for question in questions]
    return Figure.of(taken[WARM:]), results[WARM:]


def collections(ground: Ground) -> Row:
    """`collections` over three collections of all chunks, with its rows read."""
    source = corpora.in_collections(ground.built.source)
    built = corpora.prepare(source, ground.built.folder.parents[1], ground.tell)
    with open_corpus(built.folder) as corpus:
        figure, results = searched(corpus, COLLECTIONS, ground.draw(WARM + ASKED))
        counts = ", ".join(f"{count:,} in {name}" for name, count in sorted(corpus.info()["collections"].items()))
    title = "preset collections over three collections, embedding and its rows included"
    notes = (f"Records: {counts}. {steps(results)}",)
    return Row("presets.collections", title, "ms", figure, p95_at_most=500.0, notes=notes)


def pages(ground: Ground) -> tuple[Row, ...]:
    """`pages` on the demo's corpus: the whole search, and what of it is fusing and organising."""
    made = demo.build(ground.built.folder.parents[1] / "demo", encoder=ground.model, progress=ground.tell)
    with open_corpus(made.corpus) as corpus:
        figure, results = searched(corpus, "pages", draw(corpus.engine.records, WARM + ASKED))
        # The rows of the hits are read by now: what is left is to fuse, order, and put the pages together.
        again = [milliseconds(lambda r: r.with_plan("pages").hits, result) for result in results]
        records = corpus.info()["records"]
    title = f"preset pages on the demo's {records:,} chunks, embedding and its rows included"
    return (
        Row("presets.pages", title, "ms", figure, at_most=100.0, notes=(steps(results),)),
        Row("presets.organise", "fusing and organising of the same searches", "ms", Figure.of(again), at_most=10.0),
    )


# --- many plans at once -----------------------------------------------------------------------------------------------

PLANS, QUERIES, JUDGED, CUTOFF, PEER_PLANS = 1000, 300, 10, 10, 10
Asked = tuple[Candidates, Any]


def asked_of(ground: Ground, plan: Plan, pool: int | None) -> list[Asked]:
    """Candidates of every query with ten rows that count as judged, drawn from the best `pool` of any source, or all."""
    chosen = np.random.default_rng(7)
    asked: list[Asked] = []
    for question in ground.draw(QUERIES):
        candidates = ground.corpus.search(question.typed, plan=plan, bypass_cache=True).candidates
        ranks = np.stack([np.where(c.rank > 0, c.rank, DEEP + 1) for c in candidates.columns]).min(axis=0)
        best = np.argsort(ranks, kind="stable")[:pool]
        asked.append((candidates, np.sort(chosen.choice(best, min(JUDGED, len(best)), replace=False))))
        ground.tell(Progress("candidates", len(asked), QUERIES))
    return asked


def batch_of(asked: Sequence[Asked]) -> Batch:
    return Batch.of([Judged(candidates, rows, candidates.chunk_ids) for candidates, rows in asked])


def seconds(run: Callable[[], object], times: int = 3) -> Figure:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        taken.append(time.perf_counter() - started)
    return Figure.of(taken)


def many(ground: Ground) -> tuple[Row, ...]:
    """Every plan's rank of ten rows of every query: what a sweep needs of fusion, without feedback."""
    plan = Plan.of("tmm").replace(DEPTHS)
    asked = asked_of(ground, plan, None)
    grid = [
        plan.replace({"fusion.method": "rrf", "fusion.k": float(k), "fusion.weights.vector": float(w)}).fusion
        for k in np.linspace(1, 120, 25)
        for w in np.linspace(0.1, 3.0, PLANS // 50)
    ]
    grid += [plan.replace({"fusion.alpha": float(a)}).fusion for a in np.linspace(0, 1, PLANS // 2)]
    batch, title = batch_of(asked), f"{len(grid):,} plans over {len(asked)} queries, 2 x {DEEP:,} candidates"
    return tuple(
        Row(key, f"{title}, {said}", "s", seconds(lambda cutoff=cutoff: batch.ranks(grid, cutoff=cutoff)), at_most=10.0)  # type: ignore[misc]
        for key, cutoff, said in (("plans.top", CUTOFF, "ranks to 10"), ("plans.all", None, "all ranks"))
    )


def sweep(ground: Ground) -> Row:
    """The same number of plans with nDCG@10 of each, ours and ranx's."""
    asked = asked_of(ground, Plan.of("rrf").replace({"vector.threshold": "off", **DEPTHS}), 50)
    normalise = dict.fromkeys(SOURCES, "minmax")
    grid = [FusionPlan("rrf", k=float(k)) for k in np.linspace(1, 200, PLANS // 2)]
    for alpha in np.linspace(0.0, 1.0, PLANS // 2).tolist():
        weights = {"keyword": 1.0 - alpha, "vector": alpha}
        grid.append(FusionPlan("weighted", weights=weights, normalise=normalise, missing="zero"))
    measured: list[Any] = []
    figure = seconds(lambda: measured.append(values_of(asked, grid)))
    tracemalloc.start()
    values_of(asked[: QUERIES // 10], grid)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    peer, apart = ranx(asked, grid, measured[0].mean(axis=0))
    notes = [
        f"Peak memory of the work besides the candidates: {peak:.0f} MB",
        "Candidates were retrieved before",
        apart,
    ]
    title = f"a sweep: {len(grid):,} plans over {len(asked)} queries, 2 x {DEEP:,} candidates, nDCG@10"
    return Row("plans.sweep", title, "s", figure, (peer,), at_most=10.0, notes=tuple(filter(None, notes)))


def values_of(asked: Sequence[Asked], grid: Sequence[FusionPlan]) -> NDArray[np.float64]:
    """nDCG@10 of every query under every plan, (queries, plans)."""
    measure = quick(f"nDCG@{CUTOFF}")
    assert measure is not None
    batch = batch_of(asked)
    ranks = np.split(batch.ranks(grid, cutoff=CUTOFF), np.cumsum(batch.sizes)[:-1], axis=1)
    grades = [1 + np.arange(own.shape[1]) % 3 for own in ranks]
    return np.stack([measure.of(own, g, g) for own, g in zip(ranks, grades, strict=True)])


def ranx(asked: Sequence[Asked], grid: Sequence[FusionPlan], means: Any) -> tuple[Peer, str]:
    """Ranx at a sample of the grid, scaled, and how far its means are from ours."""
    try:
        import ranx as library
    except ImportError:
        return Peer("ranx", None, note="not installed: pip install ranx"), ""
    runs = []
    for source in SOURCES:
        run: dict[str, dict[str, float]] = {}
        for n, (candidates, _) in enumerate(asked):
            column = candidates.column(source)
            rows = np.flatnonzero(column.retrieved)
            run[f"q{n}"] = {candidates.chunk_ids[r]: float(column.score[r]) for r in rows.tolist()} or {"none": 0.0}
        runs.append(library.Run(run, name=source))
    judged = {
        f"q{n}": {c.chunk_ids[r]: 1 + at % 3 for at, r in enumerate(rows.tolist())} for n, (c, rows) in enumerate(asked)
    }
    qrels = library.Qrels(judged)

    def one(plan: FusionPlan) -> float:
        if plan.method == "rrf":
            fused = library.fuse(runs=runs, norm=None, method="rrf", params={"k": plan.k})
        else:
            weights = tuple(plan.weight(s) for s in SOURCES)
            fused = library.fuse(runs=runs, norm="min-max", method="wsum", params={"weights": weights})
        return float(library.evaluate(qrels, fused, f"ndcg@{CUTOFF}", make_comparable=True))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its compiler's remarks on its own code
        one(grid[0]), one(grid[len(grid) // 2])
    taken, apart = [], 0.0
    for place in np.linspace(0, len(grid) - 1, PEER_PLANS).astype(int).tolist():
        started = time.perf_counter()
        mean = one(grid[place])
        taken.append(time.perf_counter() - started)
        apart = max(apart, abs(mean - float(means[place])))
    each = float(np.mean(taken))
    note = f"{PEER_PLANS} of its plans measured, {each:.2f} s each, scaled to {len(grid):,}"
    peer = Peer("ranx, fuse and evaluate", Figure.of([each * len(grid)]), note=note)
    return peer, f"Greatest difference of a plan's mean to ranx's, which settles ties its own way: {apart:.1e}"


# --- the table --------------------------------------------------------------------------------------------------------

Measure = Callable[[Ground], Row | tuple[Row, ...]]

MEASURES: dict[tuple[str, ...], Measure] = {
    ("keyword.typed",): lambda g: keyword(
        g, "keyword.typed", "BM25, best 100, questions with stop words", [q.typed for q in g.questions]
    ),
    ("keyword.content",): lambda g: keyword(
        g, "keyword.content", "BM25, best 100, the same without stop words", [q.content for q in g.questions]
    ),
    ("vector.exact",): exact,
    ("vector.graph",): graph,
    ("grep.rare",): lambda g: grep(g, "grep.rare", "a literal in 2 to 20 chunks", g.words(2, 20, 30), 0.25),
    ("grep.frequent",): lambda g: grep(
        g, "grep.frequent", "a literal in 1 % of the chunks or more", g.words(g.records // 100, g.records, 30), 0.25
    ),
    ("grep.regex",): lambda g: grep(g, "grep.regex", "a regular expression with a literal", regexes(g), 1.0, True),
    ("grep.scan",): lambda g: grep(
        g, "grep.scan", "a regular expression without literals", NO_LITERALS, 1.0, True, rounds=5
    ),
    ("hybrid.search",): hybrid,
    ("hybrid.refuse",): lambda g: refuse(g, "hybrid.refuse", f"fuse 2 x {DEEP:,} candidates again (with_plan)", False),
    ("hybrid.slider",): lambda g: refuse(g, "hybrid.slider", "the same, and its ten hits made", True),
    ("presets.collections",): collections,
    ("presets.pages", "presets.organise"): pages,
    ("plans.top", "plans.all"): many,
    ("plans.sweep",): sweep,
    ("open.one",): lambda g: processes.opening(g, "open.one", "open a corpus with every part", 1),
    ("open.eight",): lambda g: processes.opening(g, "open.eight", "the same by eight processes at once", 8),
    ("start.import", "start.help"): processes.start,
    ("index.share", "index.memory"): processes.model,
    ("index.again", "index.unchanged"): processes.again,
    ("build.seconds", "build.memory"): processes.built,
}
"""The keys of the rows that are measured together, and how."""

KEYS: tuple[str, ...] = tuple(key for keys in MEASURES for key in keys)


def choose(only: Sequence[str]) -> tuple[str, ...]:
    for name in only:
        if not any(name in (key, key.partition(".")[0]) for key in KEYS):
            raise UsageError(f"The bench has no row {name!r}", "The rows are " + ", ".join(KEYS))
    return tuple(key for key in KEYS if not only or key in only or key.partition(".")[0] in only)


def run(ground: Ground, keys: Sequence[str], tell: Callable[[Progress], None]) -> Iterator[Row | Unmeasured]:
    """Measure rows, each given as soon as it is there, so that a stopped bench has those that are done."""
    done = 0
    for together, measure in MEASURES.items():
        wanted = [key for key in together if key in keys]
        if not wanted:
            continue
        tell(Progress("measure", done, len(keys), detail=wanted[0]))
        try:
            made = measure(ground)
        except WorkbenchError as exc:
            # A row that cannot be had here (no model, say) leaves the others as they are.
            yield from (Unmeasured(key, str(exc)) for key in wanted)
            continue
        yield from (row for row in (made if isinstance(made, tuple) else (made,)) if row.key in wanted)
        done += len(wanted)
        tell(Progress("measure", done, len(keys), detail=wanted[-1]))
