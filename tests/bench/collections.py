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

from bench import figures
from bench.__main__ import machine_lines
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
    beats_source: Mapping[str, Difference]
    tuned: Plan
    plans: int
    values: NDArray[np.float64]
    choice: Choice | None = None
    notes: tuple[str, ...] = ()

    def mean(self, name: str) -> float:
        return _mean(self.columns[name])


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
    if not (target / "current").exists():
        index([folder], corpus=target, one_chunk_per_document=True, progress=progress)
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
        {mix: compared(best, mix) for mix in MIXES}, plans[chosen], len(plans), values, choice, test.notes,
    )  # fmt: skip


def pooled(made: Sequence[Measured], second: str, first: str, seed: int = 0) -> dict[str, Any]:
    """The difference of two entries over all collections, each counting alike however many queries it has.

    The mean of the collections' means, with a stratified percentile bootstrap: within each collection its queries are
    drawn, or, where the plan was chosen on the same queries, its own samples of the mean (`choice_means`).
    """
    generator = np.random.default_rng(seed)
    total = np.zeros(RESAMPLES)
    means = []
    for m in made:
        own = m.columns[second] - m.columns[first]
        means.append(_mean(own))
        if second == "tuned" and m.choice is not None:
            drawn = choice_means(m.values, m.choice, m.columns[first], seed=seed)
            total += generator.choice(drawn, RESAMPLES)
            continue
        for part in np.array_split(np.arange(RESAMPLES), max(1, RESAMPLES * len(own) >> 20)):
            total[part] += own[generator.integers(0, len(own), (len(part), len(own)))].mean(axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(total / len(made), [tail, 1 - tail]).tolist()
    better, worse = sum(m > 1e-12 for m in means), sum(m < -1e-12 for m in means)
    return {"difference": math.fsum(means) / len(means), "low": low, "high": high, "better": better, "worse": worse}


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
    told = _plain(made, here, measure)
    if as_json:
        output.print_json(told)
    else:
        _print(made, told)


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
    together = {f"{second} minus {first}": pooled(made, second, first) for second, first in _POOLED}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"measure": measure, "machine": here, "date": today, "collections": rows, "pooled": together}


def _difference(d: Difference) -> dict[str, Any]:
    return {"to": d.first, "difference": d.difference, "low": d.low, "high": d.high, "p": d.p, "verdict": d.brief}


def _print(made: Sequence[Measured], told: dict[str, Any]) -> None:
    out = output.console()
    out.width = max(out.width, 110)
    rows = [(m.name, m.queries, *(m.mean(name) for name in COLUMNS)) for m in made]
    numbers = ("queries", *COLUMNS)
    title = f"{told['measure']}, one record a document"
    out.print(output.table(("collection", *numbers), rows, title, right=numbers, digits=3))
    for line in (_LEGEND, told["date"], *machine_lines(told["machine"])):
        output.line(line)
    for m in made:
        output.line(
            f"{m.name} (corpus {m.digest[:12]}): {m.queries} test queries; tuned on {m.tuned_on}, {m.plans:,} plans"
        )
        for name, d in (*m.against.items(), *m.beats_source.items()):
            alone = " alone" if name in m.beats_source and d is m.beats_source[name] else ""
            shown = "" if d.significant else f" ({d.brief})"
            output.line(f"  {name} against {d.first}{alone}: {_interval(d.difference, d.low, d.high)}{shown}")
        for line in (f"tuned: {m.tuned}", *(f"warning: {note}" for note in m.notes)):
            output.line(f"  {line}")
    for pair, p in told["pooled"].items():
        clear = "clear of 0" if p["low"] > 0 or p["high"] < 0 else "not clear of 0"
        counts = f"better on {p['better']} of {len(made)} collections, worse on {p['worse']}"
        output.line(f"All, {pair}: {_interval(p['difference'], p['low'], p['high'])}, {clear}; {counts}")
    for mix in MIXES:
        lost = [
            f"{m.name} ({d.first} {d.first_mean:.3f}, {mix} {d.second_mean:.3f}{'' if d.significant else ', not significant'})"
            for m in made
            if (d := m.beats_source[mix]).difference < 0
        ]
        output.line(f"{mix} is below one source alone on: {', '.join(lost) or 'no collection'}")


def _interval(difference: float, low: float, high: float) -> str:
    return f"{difference:+.4f}, 95 % interval {low:+.4f} to {high:+.4f}"


if __name__ == "__main__":
    table()
