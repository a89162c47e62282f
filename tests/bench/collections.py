"""`make table`: judged collections measured in one table, fixed plans beside what users get and the tuned one.

One record a document. The reference plans take 1,000 candidates a source, have no threshold and no grep, so that their
figures can be compared with published ones; `default` and `rrf` are the presets as a user gets them, with their own depth and
threshold. The tuned plan is chosen on queries that it is not reported on: the train split where the collection has one, the
dev split where it has that, else nested folds. The oracle takes each query's best plan of all that were tried, in hindsight.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from bench import figures
from workbench.cli import options, output
from workbench.corpus import Corpus, index, open_corpus
from workbench.errors import UsageError
from workbench.evaluate.grid import read_space
from workbench.evaluate.measures import needed_depth, parse_measures
from workbench.evaluate.pool import Pool
from workbench.evaluate.run import as_indexed
from workbench.evaluate.statistics import (
    CONFIDENCE,
    RESAMPLES,
    Choice,
    Difference,
    best_of,
    choice_difference,
    choice_means,
    deal,
    nested,
    paired_difference,
)
from workbench.evaluate.sweep import score
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
GRID = tuple(
    (
        "fusion.method=rrf,convex fusion.k=5,20,60 fusion.weights.vector=0.5,1,2 fusion.alpha=0..1:0.05 "
        "fusion.normalise=tmm,minmax,zscore keyword.k1=0.6,0.9,1.4 keyword.b=0.25,0.4,0.75"
    ).split()
)
SPLITS = ("train", "dev")
"""Splits to tune on, the first that is there."""

Tell = Callable[[Progress], None]
Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One collection's row."""

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
    """Measure one collection in the BEIR form on the corpus at `target` (made where it is not there)."""
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


@dataclass(frozen=True, slots=True)
class Pooled:
    """A difference over several sets of queries, each set counting alike however many queries it has."""

    difference: float
    low: float
    high: float
    better: int
    worse: int
    sets: int
    queries: int

    @property
    def brief(self) -> str:
        """In a line, without names."""
        clear = "clear of 0" if self.low > 0 or self.high < 0 else "not clear of 0"
        return (
            f"{self.difference:+.4f}, 95 % interval {self.low:+.4f} to {self.high:+.4f}, {clear}; better on {self.better} "
            f"of {self.sets} collections, worse on {self.worse} ({self.queries:,} queries)"
        )


def pooled_difference(
    differences: Sequence[NDArray[np.float64]],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    drawn: Mapping[int, NDArray[np.float64]] | None = None,
) -> Pooled:
    """Pool the per-query differences of several sets: the mean of the sets' means, by a stratified percentile bootstrap.

    Args:
        differences: One float64 (n,) a set, n >= 1.
        drawn: Position of a set -> bootstrap samples of its mean difference, where its own differences do not say how sure
            it is: a plan was chosen on the same queries (`choice_means`).

    Raises:
        UsageError: There is no set, or an empty one.
    """
    if not differences or not all(len(d) for d in differences):
        raise UsageError("There is nothing to pool", "Give at least one set with at least one query")
    generator = np.random.default_rng(seed)
    total = np.zeros(resamples)
    for number, own in enumerate(differences):
        if drawn is not None and number in drawn:
            total += generator.choice(drawn[number], resamples)
            continue
        step = max(1, (1 << 20) // len(own))
        for start in range(0, resamples, step):
            stop = min(resamples, start + step)
            total[start:stop] += own[generator.integers(0, len(own), (stop - start, len(own)))].mean(axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(total / len(differences), [tail, 1 - tail])
    means = [math.fsum(d) / len(d) for d in differences]
    return Pooled(
        math.fsum(means) / len(means), float(low), float(high), sum(m > 1e-12 for m in means), sum(m < -1e-12 for m in means),
        len(means), sum(map(len, differences)),
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


_POOLED = (
    ("default", "rrf"), ("tmm.8", "rrf60"), ("tuned", "rrf60"), ("tuned", "default"), ("default", "keyword"),
    ("default", "vector"),
)  # fmt: skip
_LEGEND = (
    "keyword to tmm.8: 1,000 candidates a source, no threshold, no grep; rrf and default: the presets as they are. "
    "nDCG has linear gain."
)


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--keep", type=click.Path(path_type=Path), required=True,
    help="Folder of the collections' corpora, NAME.one each; made where they are not there.",
)  # fmt: skip
@click.option("--measure", default="nDCG@10", show_default=True, help="An ir_measures name.")
@click.option(
    "--folds",
    type=click.IntRange(2, 100),
    default=5,
    show_default=True,
    help="Folds where there is no split to tune on.",
)
@click.option(
    "--most", type=click.IntRange(min=10), metavar="N",
    help="Tune on at most N queries of the train or dev split, drawn at random (default: all).",
)  # fmt: skip
@options.DROP_IDENTICAL
@options.JSON
def table(
    folders: tuple[Path, ...],
    keep: Path,
    measure: str,
    folds: int,
    most: int | None,
    drop_identical_ids: bool | None,
    as_json: bool,
) -> None:
    """Measure keyword, vector, fusions, `default`, the tuned plan and the oracle on FOLDERS, collections in the BEIR form.

    The tuned plan is chosen on the train split (else dev, else by folds) and judged on the test queries. Below the table:
    each collection's paired intervals, the differences pooled over all of them, and where a mix loses to one source alone.
    """
    from workbench.judgments.formats import missing_parts

    for folder in folders:
        if missing := missing_parts(folder):
            raise UsageError(
                f"{folder} is not a judged collection: it lacks {', '.join(missing)}", "Give folders in the BEIR form"
            )
    here = figures.describe()
    made: list[Measured] = []
    with output.progress_bar(enabled=not as_json) as progress:
        for folder in folders:
            target = keep / f"{folder.name}.one"
            made.append(
                measure_collection(
                    folder, target, measure, folds, progress, most=most, drop_identical_ids=drop_identical_ids
                )
            )
    if as_json:
        output.print_json(_plain(made, here, measure))
        return
    _print(made, here, measure)


def _plain(made: Sequence[Measured], here: dict[str, Any], measure: str) -> dict[str, Any]:
    rows = [
        {
            "collection": m.name, "digest": m.digest, "queries": m.queries, "plans": m.plans, "tuned_on": m.tuned_on,
            "tuned": str(m.tuned), "warnings": list(m.notes), "figures": {name: m.mean(name) for name in COLUMNS},
            "against": {name: _difference(d) for name, d in m.against.items()},
            "against_best_source": {name: _difference(d) for name, d in m.beats_source.items()},
            "per_query": {name: m.columns[name].tolist() for name in COLUMNS},
        }
        for m in made
    ]  # fmt: skip
    together = {}
    for second, first in _POOLED:
        p = pooled(made, second, first)
        together[f"{second} minus {first}"] = {
            "difference": p.difference, "low": p.low, "high": p.high, "better": p.better, "worse": p.worse,
        }  # fmt: skip
    return {"measure": measure, "machine": here, "date": _today(), "collections": rows, "pooled": together}


def _difference(d: Difference) -> dict[str, Any]:
    return {"to": d.first, "difference": d.difference, "low": d.low, "high": d.high, "p": d.p, "verdict": d.brief}


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _print(made: Sequence[Measured], here: dict[str, Any], measure: str) -> None:
    import polars as pl

    out = output.console()
    out.width = max(out.width, 110)
    frame = pl.DataFrame(
        [{"collection": m.name, "queries": m.queries, **{n: f"{m.mean(n):.3f}" for n in COLUMNS}} for m in made]
    )
    output.print_frame(frame, f"{measure}, one record a document")
    commit = f", commit {here['commit']}" if here["commit"] else ""
    lines = [
        _LEGEND,
        f"{here['processor']}, {here['cores']} cores; workbench {here['versions']['workbench']}{commit}, {_today()}",
    ]
    for m in made:
        lines += _lines(m)
    lines += _together(made)
    for line in lines:
        out.print(Text(line), soft_wrap=True)


def _lines(m: Measured) -> list[str]:
    said = [f"{m.name} (corpus {m.digest[:12]}): {m.queries} test queries; tuned on {m.tuned_on}, {m.plans:,} plans"]
    said += [f"  {name} against {d.first}: {_interval(d)}" for name, d in m.against.items()]
    said += [f"  {name} against {m.best_source} alone: {_interval(d)}" for name, d in m.beats_source.items()]
    return [*said, f"  tuned: {m.tuned}", *(f"  warning: {note}" for note in m.notes)]


def _interval(d: Difference) -> str:
    shown = "" if d.significant else f" ({d.brief})"
    return f"{d.difference:+.3f}, 95 % interval {d.low:+.3f} to {d.high:+.3f}{shown}"


def _together(made: Sequence[Measured]) -> list[str]:
    said = [f"All, {second} minus {first}: {pooled(made, second, first).brief}" for second, first in _POOLED]
    for mix in MIXES:
        lost = [f"{m.name} ({_lost(m, mix)})" for m in made if m.beats_source[mix].difference < 0]
        said.append(f"{mix} is below one source alone on: {', '.join(lost) or 'no collection'}")
    return said


def _lost(m: Measured, mix: str) -> str:
    d = m.beats_source[mix]
    return (
        f"{m.best_source} {d.first_mean:.3f}, {mix} {d.second_mean:.3f}{'' if d.significant else ', not significant'}"
    )


if __name__ == "__main__":
    table()
