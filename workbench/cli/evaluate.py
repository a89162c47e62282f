"""`workbench eval`: measure plans on judged queries."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from workbench.cli import judged, options, output
from workbench.plan.plan import Plan
from workbench.retrieve.request import MODES

if TYPE_CHECKING:
    from workbench.evaluate.evaluation import Evaluation


@click.command(name="eval", cls=options.Writing)
@click.argument("judgments", type=click.Path(path_type=Path))
@options.takes_plans
@click.option(
    "--mode", "-m", "modes", multiple=True, type=click.Choice(MODES), help="A mode of each plan; may be repeated."
)
@click.option(
    "--measure", "measures", multiple=True, help="An ir_measures name; may be repeated. Default: nDCG@10 R@100 RR."
)
@click.option(
    "--against",
    "others",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Another corpus of the same files, cut or embedded otherwise: each plan runs there too; may be repeated.",
)
@click.option(
    "--with-run",
    "runs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A TREC run that another program made: it is measured and compared, too; may be repeated.",
)
@click.option("--split", help="Which qrels of a folder with several: qrels.SPLIT.tsv.")
@click.option("--depth", type=click.IntRange(1, 100_000), help="Candidates from each source, whatever the plan says.")
@click.option("--judge", "judges", multiple=True, help="Whose grades of a query set count; may be repeated.")
@click.option("--per-query", is_flag=True, help="Show every query's figures.")
@click.option("--run", "run_file", type=options.OutputFile(), help="Write the first plan's run in TREC form.")
@click.option("--no-keywords", is_flag=True, help="Leave out the keywords that judgments have for grep.")
@click.option("--filter", "-f", "filters", help="A condition on documents.")
@options.drop_identical_option
@options.takes_asker
@options.json_option
def evaluate(
    judgments: Path,
    plans: options.ManyPlans,
    modes: tuple[str, ...],
    measures: tuple[str, ...],
    others: tuple[Path, ...],
    runs: tuple[Path, ...],
    split: str | None,
    depth: int | None,
    judges: tuple[str, ...],
    per_query: bool,
    run_file: Path | None,
    no_keywords: bool,
    filters: str | None,
    drop_identical_ids: bool | None,
    asker: options.Asker,
    as_json: bool,
) -> None:
    """Measure plans on JUDGMENTS: a BEIR folder, TREC qrels, CSV, JSONL, or a query set by its name.

    The first plan is the baseline that the others are compared with, by the first measure. Judgments are of documents and of
    places in them, so they measure corpora of the same files with other chunks or encoders too: --against compares those.
    A run names documents: with --with-run judged passages count as their documents for the plans, too.
    """
    from workbench.evaluate.run import load_run

    given_runs = [load_run(path) for path in runs]
    loaded = judged.read_judgments(judgments, split, asker, judges).dropping(drop_identical_ids)
    if no_keywords:
        loaded = loaded.without_keywords()
    if given_runs:
        loaded = loaded.by_document()
    chosen = measures or ("nDCG@10", "R@100", "RR")
    made: list[Evaluation] = []
    askers = (asker, *(replace(asker, corpus=other) for other in others))
    with output.progress_bar(enabled=not as_json) as progress:
        for one in askers:
            with one.open() as opened:
                for given in plans.read():
                    plan = _deepened(given, depth, modes)
                    for mode in modes or ("hybrid",):
                        done = opened.evaluate(loaded, plan, chosen, mode=mode, filters=filters, progress=progress)
                        made.append(done.named(f"{opened.path}: {done.name}") if others else done)
    if given_runs:
        with asker.open() as opened:
            made += [opened.evaluate_run(run, loaded, chosen) for run in given_runs]
    if run_file is not None:
        made[0].run.save_trec(run_file)
    if as_json:
        options.print_json([_as_dict(e, made[0], per_query) for e in made])
        return
    _print(made, per_query)


def _deepened(plan: Plan, depth: int | None, modes: tuple[str, ...]) -> Plan:
    if depth is None:
        return plan
    asked = {*plan.sources, *modes} - {"hybrid"}
    return plan.replace({f"depth.{source}": depth for source in sorted(asked)})


def _as_dict(evaluation: Evaluation, base: Evaluation, per_query: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "plan": evaluation.name,
        "queries": len(evaluation.query_ids),
        "measures": evaluation.frame().to_dicts(),
        "judged@10": _known(evaluation.coverage.judged),
        "unjudged@10": _known(evaluation.coverage.unjudged),
        "latency_ms": {"p50": _known(evaluation.latency.p50), "p95": _known(evaluation.latency.p95)},
        "warnings": list(evaluation.warnings),
    }
    if evaluation is not base:
        data["against"] = {"plan": base.name, "verdict": base.compare(evaluation).verdict}
    if per_query:
        data["per_query"] = evaluation.per_query().to_dicts()
    return data


def _known(value: float) -> float | None:
    """The figure, None where there is nothing to take it of: JSON knows no NaN."""
    return None if math.isnan(value) else value


def _print(made: list[Evaluation], per_query: bool) -> None:
    import polars as pl

    out = output.console()
    rows = []
    for evaluation in made:
        row: dict[str, Any] = {"plan": evaluation.name}
        for line in evaluation.frame().iter_rows(named=True):
            interval = "" if line["low"] is None else f" ({line['low']:.3f} to {line['high']:.3f})"
            row[line["measure"]] = f"{line['mean']:.4f}{interval}"
        row["judged@10"] = "-" if math.isnan(evaluation.coverage.judged) else f"{evaluation.coverage.judged:.0%}"
        row["p50 ms"] = f"{evaluation.latency.p50:.1f}" if evaluation.run.latencies_ms else "-"
        rows.append(row)
    title = f"{len(made[0].query_ids)} judged queries (mean and 95 % interval; nDCG with linear gain)"
    out.print(output.frame_table(pl.DataFrame(rows), title))
    for evaluation in made[1:]:
        out.print(Text(made[0].compare(evaluation).verdict))
    for warning in dict.fromkeys(w for e in made for w in e.warnings):
        out.print(Text("warning: " + output.plain(warning), style="yellow"), soft_wrap=True)
    if per_query:
        for evaluation in made:
            out.print(output.frame_table(evaluation.per_query(), evaluation.name, digits=3))
