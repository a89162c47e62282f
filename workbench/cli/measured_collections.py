"""Judged collections: each source alone, the usual fusions, what users get, the tuned plan and the oracle, in one table.

One record a document. The reference plans take 1,000 candidates a source, have no threshold and no grep, so that their
figures stand beside published ones; `default` and `rrf` are the presets as a user gets them, with their own depth and
threshold. The tuned plan is chosen on queries that it is not reported on: the train split where the collection has one, the
dev split where it has that, else nested folds. The oracle takes each query's best plan of all that were tried, in hindsight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.corpus import Corpus, index, open_corpus
from workbench.evaluate.folds import Choice, best_of, choice_difference, choice_means, deal, nested
from workbench.evaluate.grid import read_space
from workbench.evaluate.measures import needed_depth, parse_measures
from workbench.evaluate.pool import Pool
from workbench.evaluate.run import as_indexed
from workbench.evaluate.scoring import score
from workbench.evaluate.statistics import Difference, Pooled, paired_difference, pooled_difference
from workbench.judgments.qrels import Judgments, load_judgments
from workbench.plan.plan import Plan
from workbench.records import Progress

DEPTH = 1000
_REFERENCE = {"depth.keyword": DEPTH, "depth.vector": DEPTH, "vector.threshold": "off", "grep.when": "never"}
BASE = Plan.parse("rrf").replace(_REFERENCE)
FIXED: Mapping[str, Plan] = {
    "rrf60": BASE,
    "keyword": BASE.replace({"sources": "keyword"}),
    "vector": BASE.replace({"sources": "vector"}),
    "rrf5": BASE.replace({"fusion.k": 5}),
    "tmm.8": Plan.parse("tmm").replace(_REFERENCE),
    "rrf": Plan.parse("rrf"),
    "default": Plan.parse("default"),
}
COLUMNS = ("keyword", "vector", "rrf60", "rrf5", "tmm.8", "rrf", "default", "tuned", "oracle")
"""The table's order."""
COMPARED = {"rrf5": "rrf60", "tmm.8": "rrf60", "tuned": "rrf60", "default": "rrf"}
"""Plan -> the plan that it is compared with, query by query."""
ALONE = ("keyword", "vector")
MIXES = ("rrf", "default", "tuned")
"""Plans that are compared with the better source alone."""
GRID = (
    "fusion.method=rrf,convex",
    "fusion.k=5,20,60",
    "fusion.weights.vector=0.5,1,2",
    "fusion.alpha=0..1:0.05",
    "fusion.normalise=tmm,minmax,zscore",
    "keyword.k1=0.6,0.9,1.4",
    "keyword.b=0.25,0.4,0.75",
)
SPLITS = ("train", "dev")
"""Splits to tune on, the first that is there."""

Tell = Callable[[Progress], None]
Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One collection's row.

    Attributes:
        name: The collection.
        digest: Of its corpus.
        queries: Judged queries that the figures are of.
        tuned_on: The queries that chose the tuned plan, in words.
        columns: Entry -> its values by query, float64 (queries,): fixed plans, tuned, oracle.
        against: Entry -> its difference to the plan that it is compared with.
        best_source: The better of keyword and vector alone.
        beats_source: Mix -> its difference to the better source alone.
        tuned: The plan to use: best on the split, or on all queries.
        plans: How many were tried.
        values: float64 (plans, queries), every plan's figures.
        choice: What the folds chose; None where a split chose.
        notes: What a reader of the figures should know of the test judgments.
    """

    name: str
    digest: str
    queries: int
    tuned_on: str
    columns: Mapping[str, Column]
    against: Mapping[str, Difference]
    best_source: str
    beats_source: Mapping[str, Difference]
    tuned: Plan
    plans: int
    values: NDArray[np.float64]
    choice: Choice | None = None
    notes: tuple[str, ...] = ()

    def mean(self, name: str) -> float:
        """The mean of one entry."""
        return _mean(self.columns[name])


def build(folder: Path, target: Path, progress: Tell | None) -> None:
    """Index a collection one chunk a document, unless it is there."""
    if not (target / "current").exists():
        index([folder], corpus=target, one_chunk_per_document=True, progress=progress)


def measure_collection(
    folder: Path,
    target: Path,
    measure: str = "nDCG@10",
    folds: int = 5,
    progress: Tell | None = None,
    seed: int = 0,
    most: int | None = None,
    drop_identical_ids: bool | None = None,
) -> Measured:
    """Measure one collection in the BEIR form on the corpus at `target` (made where it is not there).

    Args:
        folder: The collection.
        target: Its corpus.
        measure: An ir_measures name.
        folds: Folds where there is no split to tune on.
        progress: Called now and then.
        seed: Of folds, intervals and of the sample.
        most: Tune on at most so many queries of the split, drawn at random; None is all.
        drop_identical_ids: As in `Corpus.evaluate`.

    Raises:
        WorkbenchError: The collection, its judgments or its corpus cannot be read.
    """
    build(folder, target, progress)
    (name,) = parse_measures([measure])
    plans = _plans()
    test = load_judgments(folder).dropping(drop_identical_ids)
    with open_corpus(target) as corpus:
        digest = str(corpus.info()["digest"])
        records = corpus.engine.records
        test = as_indexed(test, records, records.scope(corpus.principal, None, ()))
        values = _values(corpus, test, plans, name, progress)
        choice: Choice | None = None
        split = next((s for s in SPLITS if (folder / f"qrels.{s}.tsv").exists()), None)
        if split is not None:
            whole = load_judgments(folder, split=split).dropping(drop_identical_ids)
            drawn = _drawn(whole, most, seed)
            chosen = best_of(_values(corpus, drawn, plans, name, progress), np.ones(len(drawn), bool))
            tuned, said = values[chosen], f"the {len(drawn):,} {split} queries"
            if len(drawn) < len(whole):
                said = f"{len(drawn):,} of the {len(whole):,} {split} queries, drawn at random (seed {seed})"
        else:
            choice = nested(values, deal(len(test), folds, seed))
            tuned = choice.held_out
            chosen = best_of(values, np.ones(len(test), bool))
            said = f"{folds - 1} of {folds} folds at a time (it has no train or dev split)"
    columns = {label: values[n] for n, label in enumerate(FIXED)} | {"tuned": tuned, "oracle": values.max(axis=0)}

    def compared(first: str, second: str) -> Difference:
        if second == "tuned" and choice is not None:
            return choice_difference(name, (first, second), columns[first], values, choice, seed=seed)
        return paired_difference(name, (first, second), columns[first], columns[second], seed=seed)

    best = max(ALONE, key=lambda label: _mean(columns[label]))
    return Measured(
        folder.name, digest, len(test), said, columns,
        {second: compared(first, second) for second, first in COMPARED.items()},
        best, {mix: compared(best, mix) for mix in MIXES}, plans[chosen], len(plans), values, choice, test.notes,
    )  # fmt: skip


def pooled(made: Sequence[Measured], second: str, first: str, seed: int = 0) -> Pooled:
    """The difference of two entries over all collections, each counting alike."""
    drawn = {
        n: choice_means(m.values, m.choice, m.columns[first], seed=seed)
        for n, m in enumerate(made)
        if second == "tuned" and m.choice is not None
    }
    return pooled_difference([m.columns[second] - m.columns[first] for m in made], seed=seed, drawn=drawn)


def _mean(column: Column) -> float:
    return math.fsum(column.tolist()) / len(column)


def _drawn(judgments: Judgments, most: int | None, seed: int) -> Judgments:
    """At most so many queries, drawn at random."""
    if most is None or len(judgments) <= most:
        return judgments
    chosen = np.random.default_rng(seed).permutation(len(judgments))[:most]
    return judgments.subset([judgments.query_ids[n] for n in chosen.tolist()])


def _plans() -> list[Plan]:
    space = read_space(BASE, GRID)
    return list(dict.fromkeys([*FIXED.values(), *(space.plan(c) for c in space.combinations())]))


def _values(corpus: Corpus, judgments: Judgments, plans: list[Plan], measure: str, progress: Tell | None) -> Column:
    values = np.full((len(plans), len(judgments), 1), np.nan)
    pool = Pool(corpus.engine, judgments, principal=corpus.principal)
    score(pool, plans, [measure], needed_depth([measure]), values, tell=progress)
    return values[:, :, 0]
