"""`workbench run`: what plans answer, for other programs to measure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from workbench.cli import judged, options, output
from workbench.plan.plan import Plan
from workbench.retrieve.request import MODES


@click.group(name="run")
def run() -> None:
    """Runs in the TREC form: the ranked answers of a plan to many queries."""


@run.command(name="export", cls=options.Writing)
@click.argument("queries")
@click.argument("target", type=options.OutputFile())
@options.takes_plan
@click.option("--mode", "-m", default="hybrid", type=click.Choice(MODES), help="Narrows the plan's sources.")
@click.option("--depth", default=1000, show_default=True, type=click.IntRange(1, 100_000), help="Documents a query.")
@click.option("--name", help="The run's name; default: the plan's text.")
@click.option("--split", help="Which qrels of a folder with several.")
@click.option("--filter", "-f", "filters", help="A condition on documents.")
@options.drop_identical_option
@options.takes_asker
@options.json_option
def export(
    queries: str,
    target: Path,
    plan: options.OnePlan,
    mode: str,
    depth: int,
    name: str | None,
    split: str | None,
    filters: str | None,
    drop_identical_ids: bool | None,
    asker: options.Asker,
    as_json: bool,
) -> None:
    """Ask QUERIES under a plan and write the documents found to TARGET, as a TREC run.

    QUERIES is a query set, or a file or folder of queries or judgments. Each source goes as deep as --depth. Documents have
    the names that `workbench judge export SET FILE --format trec` gives them.
    """
    from workbench.evaluate.plans import run_plan
    from workbench.evaluate.run import as_indexed
    from workbench.judgments.judging import own_ids

    chosen = plan.read()
    deep = chosen.replace({f"depth.{source}": max(depth, chosen.depth(source)) for source in chosen.sources})
    with asker.open() as opened, output.progress_bar(enabled=not as_json) as progress:
        records = opened.engine.records
        asked = judged.read_queries(opened, queries, split).dropping(drop_identical_ids)
        asked = as_indexed(asked, records, records.scope(asker.principal, filters, ()))
        made = run_plan(
            lambda topic: opened.search(
                topic.text, topic.keywords, mode=mode, plan=deep, filters=filters, bypass_cache=True
            ),
            asked, depth, name=name or _name(chosen, mode), progress=progress,
        )  # fmt: skip
        known = asked.document_keys
        paths = sorted({k for keys in made.rankings.values() for k in keys if k not in known})
        names = own_ids(opened.judging, paths)
    rankings = {i: tuple(names.get(k, k) for k in keys) for i, keys in made.rankings.items()}
    replace(made, rankings=rankings).save_trec(target)
    for warning in (*made.warnings, *asked.notes):
        output.say(output.plain(f"warning: {warning}"), err=True)
    count = sum(map(len, rankings.values()))
    if as_json:
        options.print_json({"queries": len(rankings), "documents": count, "target": str(target), "name": made.name})
    else:
        output.say(output.plain(f"{count:,} documents for {len(rankings):,} queries written to {target}"))


def _name(plan: Plan, mode: str) -> str:
    return str(plan) if mode == "hybrid" else f"{mode}: {plan}"
