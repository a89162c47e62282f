"""Judged collections: each source alone, the usual fusions, the tuned plan held out, and the oracle, in one table.

One record a document and 1,000 candidates a source, so that figures stand beside published ones. The tuned plan is chosen
on the train split where the collection has one, else by nested folds, so its figure is of queries that chose nothing; the
others are fixed plans and need no such care. The oracle takes each query's best plan of all that were tried, in hindsight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.evaluate.folds import best_of, deal, nested
from workbench.evaluate.grid import read_space
from workbench.evaluate.judgments import Judgments, load_judgments
from workbench.evaluate.measures import needed_depth, parse_measures
from workbench.evaluate.pool import Pool
from workbench.evaluate.scoring import score
from workbench.evaluate.statistics import Difference, paired_difference
from workbench.maintain import index
from workbench.plan import Plan
from workbench.records import Progress
from workbench.service import Corpus, open_corpus

DEPTH = 1000
BASE = Plan.parse("default").replace({"depth.keyword": DEPTH, "depth.vector": DEPTH})
TMM = Plan.parse("tmm").replace({"depth.keyword": DEPTH, "depth.vector": DEPTH})
FIXED: dict[str, Plan] = {
    "rrf60": BASE,
    "keyword": BASE.replace({"sources": "keyword"}),
    "vector": BASE.replace({"sources": "vector"}),
    "rrf5": BASE.replace({"fusion.k": 5}),
    "tmm.8": TMM,
}
GRID = (
    "fusion.method=rrf,convex",
    "fusion.k=5,20,60",
    "fusion.weights.vector=0.5,1,2",
    "fusion.alpha=0..1:0.05",
    "fusion.normalise=tmm,minmax,zscore",
    "keyword.k1=0.6,0.9,1.4",
    "keyword.b=0.25,0.4,0.75",
)
TRAIN = "train"

Tell = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """One plan on one collection: its mean, and its difference to rrf60 (None for rrf60 itself and the oracle)."""

    name: str
    mean: float
    against: Difference | None


@dataclass(frozen=True, slots=True)
class Measured:
    """One collection's row.

    Attributes:
        name: The collection.
        queries: Judged queries.
        how: How the tuned figure was held out.
        entries: Fixed plans, tuned, oracle.
        tuned: The plan to use: best on the train split, or on all queries.
        plans: How many were tried.
        beats_sources: Tuned against the better of keyword and vector alone.
    """

    name: str
    queries: int
    how: str
    entries: tuple[Entry, ...]
    tuned: Plan
    plans: int
    beats_sources: Difference

    def mean(self, name: str) -> float:
        """The mean of one entry."""
        return next(e.mean for e in self.entries if e.name == name)


def build(folder: Path, target: Path, progress: Tell | None) -> None:
    """Index a collection one chunk a document, unless it is there."""
    if not (target / "current").exists():
        index([folder], corpus=target, one_chunk_per_document=True, progress=progress)


def measure_collection(
    folder: Path, target: Path, measure: str = "nDCG@10", folds: int = 5, progress: Tell | None = None, seed: int = 0
) -> Measured:
    """Measure one collection in the BEIR form on the corpus at `target` (made where it is not there)."""
    build(folder, target, progress)
    (name,) = parse_measures([measure])
    plans = _plans()
    test = load_judgments(folder)
    with open_corpus(target) as corpus:
        values = _values(corpus, test, plans, name, progress)
        if (folder / f"qrels.{TRAIN}.tsv").exists():
            train = load_judgments(folder, split=TRAIN)
            chosen = best_of(_values(corpus, train, plans, name, progress), np.ones(len(train), bool))
            tuned, how = values[chosen], f"chosen on {len(train)} train queries"
        else:
            choice = nested(values, deal(len(test), folds, seed))
            chosen = best_of(values, np.ones(len(test), bool))
            tuned, how = choice.held_out, f"held out over {folds} folds"
    first = values[0]

    def entry(label: str, column: NDArray[np.float64], compared: bool = True) -> Entry:
        against = paired_difference(name, ("rrf60", label), first, column, seed=seed) if compared else None
        return Entry(label, math.fsum(column.tolist()) / len(column), against)

    entries = [entry(label, values[n], n > 0) for n, label in enumerate(FIXED)]
    entries += [entry("tuned", tuned), entry("oracle", values.max(axis=0), False)]
    alone = max(("keyword", "vector"), key=lambda label: values[list(FIXED).index(label)].mean())
    beats = paired_difference(name, (alone, "tuned"), values[list(FIXED).index(alone)], tuned, seed=seed)
    return Measured(folder.name, len(test), how, tuple(entries), plans[chosen], len(plans), beats)


def _plans() -> list[Plan]:
    space = read_space(BASE, GRID)
    return list(dict.fromkeys([*FIXED.values(), *(space.plan(c) for c in space.combinations())]))


def _values(
    corpus: Corpus, judgments: Judgments, plans: list[Plan], measure: str, progress: Tell | None
) -> NDArray[np.float64]:
    values = np.full((len(plans), len(judgments), 1), np.nan)
    pool = Pool(corpus.engine, judgments, principal=corpus.principal)
    score(pool, plans, [measure], needed_depth([measure]), values, tell=progress)
    return values[:, :, 0]
