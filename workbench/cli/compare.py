"""`workbench compare`: the same queries under several plans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from workbench.cli import options, output
from workbench.errors import UsageError

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.plan.plan import Plan
    from workbench.retrieve.compare import ManyComparisons


@click.command()
@click.argument("query", required=False)
@click.option(
    "--queries",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Many queries: one a line, or JSON lines with text and keywords.",
)
@options.takes_plans
@click.option("--keywords", "-k", help="Exact words for grep; quoted ones are phrases.")
@click.option("--filter", "-f", "filters", help="A condition on documents.")
@click.option("--limit", "-n", type=int, help="How many results (default: each plan's).")
@options.takes_asker
@options.json_option
def compare(
    query: str | None,
    queries: Path | None,
    plans: options.ManyPlans,
    keywords: str | None,
    filters: str | None,
    limit: int | None,
    asker: options.Asker,
    as_json: bool,
) -> None:
    """Run QUERY under several plans and show each result's rank in each.

    With --queries the plans are run on every query of a file: for each the first result and what it shares with the first
    plan, by documents, and the means of it all.
    """
    if (query is None) == (queries is None):
        raise UsageError(
            "Give either a query or --queries FILE",
            "Write for example: workbench compare 'how do retries work' --plan default --plan rrf",
        )
    if queries is not None and keywords:
        raise UsageError(
            "--keywords belongs to one query", "Put keywords into the file: JSON lines with text and keywords"
        )
    if not plans.given:
        raise UsageError("There is no plan to compare", "Give at least one, such as --plan default --plan rrf")
    values = plans.read()
    with asker.open() as opened:
        if queries is not None:
            _many(opened, queries, values, filters, limit, as_json)
        else:
            _one(opened, query or "", values, keywords, filters, limit, as_json)


def _one(
    corpus: Corpus, query: str, plans: tuple[Plan, ...], keywords: str | None, filters: str | None, limit: int | None,
    as_json: bool,
) -> None:  # fmt: skip
    compared = corpus.compare(query, plans, keywords=keywords, filters=filters, limit=limit)
    frame, shared = compared.frame(), compared.overlap()
    if as_json:
        options.print_json({"query": query, "ranks": frame.to_dicts(), "overlap": shared.to_dicts()})
        return
    out = output.console()
    out.print(output.frame_table(frame.drop("path"), "Ranks"))
    out.print(output.frame_table(shared, "Overlap"))


def _many(
    corpus: Corpus, queries: Path, plans: tuple[Plan, ...], filters: str | None, limit: int | None, as_json: bool
) -> None:
    from workbench.retrieve.compare import compare_many, read_queries

    made = compare_many(corpus.compare, read_queries(queries), plans, filters=filters, limit=limit)
    if as_json:
        options.print_json({"summary": made.summary().to_dicts(), "queries": made.frame().to_dicts()})
        return
    out = output.console()
    out.print(_table(made))
    title = (
        f"Means over {len(made.comparisons)} queries; shared, jaccard and rbo are against {made.names[0]}, by documents"
    )
    out.print(Text(title), soft_wrap=True)
    out.print(output.frame_table(made.summary(), digits=2))


def _table(made: ManyComparisons) -> Table:
    """A row a query and plan; a query is named once."""
    table = Table(header_style="bold")
    for name in ("query", "plan", "first result"):
        table.add_column(name, overflow="fold")
    for name in ("hits", "shared", "rbo"):
        table.add_column(name, justify="right", no_wrap=True)
    told = None
    for row in made.frame().iter_rows(named=True):
        if row["query"] != told and told is not None:
            table.add_section()
        cells = (row["plan"], row["top"] or "(nothing)", str(row["hits"]), str(row["shared"]), f"{row['rbo']:.2f}")
        table.add_row(*(output.plain(cell) for cell in (row["query"] if row["query"] != told else "", *cells)))
        told = row["query"]
    return table
