"""`workbench table`: judged collections measured in one table, fixed plans beside what users get and the tuned one."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from workbench.cli import options, output
from workbench.errors import UsageError

if TYPE_CHECKING:
    from workbench.cli.machine import Machine
    from workbench.cli.measured_collections import Measured
    from workbench.evaluate.statistics import Difference

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
@options.drop_identical_option
@options.json_option
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
    from workbench.cli import machine
    from workbench.cli.measured_collections import measure_collection
    from workbench.evaluate.collections import missing_parts

    for folder in folders:
        if missing := missing_parts(folder):
            raise UsageError(
                f"{folder} is no judged collection: it lacks {', '.join(missing)}", "Give folders in the BEIR form"
            )
    here = machine.describe()
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
        options.print_json(_plain(made, here, measure))
        return
    _print(made, here, measure)


def _plain(made: Sequence[Measured], here: Machine, measure: str) -> dict[str, Any]:
    from workbench.cli.measured_collections import COLUMNS, pooled

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
    return {"measure": measure, "machine": here.to_dict(), "date": _today(), "collections": rows, "pooled": together}


def _difference(d: Difference) -> dict[str, Any]:
    return {"to": d.first, "difference": d.difference, "low": d.low, "high": d.high, "p": d.p, "verdict": d.brief}


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _print(made: Sequence[Measured], here: Machine, measure: str) -> None:
    import polars as pl

    from workbench.cli.measured_collections import COLUMNS

    out = output.console()
    out.width = max(out.width, 110)
    frame = pl.DataFrame(
        [{"collection": m.name, "queries": m.queries, **{n: f"{m.mean(n):.3f}" for n in COLUMNS}} for m in made]
    )
    out.print(output.frame_table(frame, f"{measure}, one record a document"))
    commit = f", commit {here.commit}" if here.commit else ""
    lines = [
        _LEGEND,
        f"{here.processor}, {here.cores} cores; workbench {here.versions['workbench']}{commit}, {_today()}",
    ]
    for m in made:
        lines += _lines(m)
    lines += _together(made)
    for line in lines:
        out.print(Text(output.plain(line)), soft_wrap=True)


def _lines(m: Measured) -> list[str]:
    """One collection: where its plan comes from, and its intervals."""
    said = [f"{m.name} (corpus {m.digest[:12]}): {m.queries} test queries; tuned on {m.tuned_on}, {m.plans:,} plans"]
    said += [f"  {name} against {d.first}: {_interval(d)}" for name, d in m.against.items()]
    said += [f"  {name} against {m.best_source} alone: {_interval(d)}" for name, d in m.beats_source.items()]
    return [*said, f"  tuned: {m.tuned}", *(f"  warning: {note}" for note in m.notes)]


def _interval(d: Difference) -> str:
    shown = "" if d.significant else f" ({d.brief})"
    return f"{d.difference:+.3f}, 95 % interval {d.low:+.3f} to {d.high:+.3f}{shown}"


def _together(made: Sequence[Measured]) -> list[str]:
    """All collections: pooled differences, and where a mix loses."""
    from workbench.cli.measured_collections import MIXES, pooled

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
