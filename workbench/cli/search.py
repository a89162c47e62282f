"""`workbench search`, `explain`, `compare`, `grep`, `read` and `examples`."""

from __future__ import annotations

import dataclasses
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from workbench.cli import options, output
from workbench.errors import SourceUnavailable, UsageError
from workbench.records import found_by

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.plan.plan import Plan
    from workbench.retrieve.compare import ManyComparisons
    from workbench.retrieve.explain import Explanation
    from workbench.retrieve.result import SearchResult


@click.command()
@click.argument("query")
@options.KEYWORDS
@options.CONTEXT
@options.ANY_MODE
@options.FILTER
@click.option("--limit", "-n", type=int, help="How many results (default: the plan's).")
@click.option("--include-memory", is_flag=True, help="Search the collection memory too, where the plan leaves it out.")
@click.option("--expand-neighbors", is_flag=True, help="Show each chunk between its neighbours.")
@click.option("--sensitivity", help="Only documents of this sensitivity.")
@options.takes_plan
@options.takes_asker
@options.JSON
@click.option(
    "--format",
    "form",
    type=click.Choice(["cards", "text"]),
    default="cards",
    show_default=True,
    help="text: the fixed text form that tools read.",
)
@click.option("--timings", is_flag=True, help="Show milliseconds by step.")
@click.option("--funnel", is_flag=True, help="Show how many candidates each step dropped.")
@click.option("--full", is_flag=True, help="Show whole passages.")
@click.pass_context
def search(
    ctx: click.Context,
    query: str,
    keywords: str | None,
    context_file: Path | None,
    mode: str,
    filters: str | None,
    limit: int | None,
    include_memory: bool,
    expand_neighbors: bool,
    sensitivity: str | None,
    plan: options.OnePlan,
    asker: options.Asker,
    as_json: bool,
    form: str,
    timings: bool,
    funnel: bool,
    full: bool,
) -> None:
    """Search a corpus for QUERY: words, "phrases", -not, OR, prefix*."""
    from workbench.retrieve.messages import format_text

    chosen = plan.read()
    context = context_file.read_text(encoding="utf-8", errors="replace") if context_file else None
    with asker.open() as opened:
        try:
            result = opened.search(
                query, keywords=keywords, context=context, mode=mode, plan=chosen, filters=filters, limit=limit,
                include_memory=include_memory, expand_neighbors=expand_neighbors, sensitivity=sensitivity,
            )  # fmt: skip
        except SourceUnavailable as exc:
            if as_json or form != "text":
                raise
            output.say(f"Search failed: {exc.message}")
            ctx.exit(2)
        if as_json:
            output.print_json(result.to_dict(timings=timings))
        elif form == "text":
            output.say(format_text(result))
            _print_warnings(result)
        else:
            print_result(result, timings=timings, funnel=funnel, most=None if full else 480)
        ctx.exit(0 if result.hits else 1)


def _print_warnings(result: SearchResult) -> None:
    output.warn(result.warnings, err=True)


def print_result(result: SearchResult, *, timings: bool, funnel: bool, most: int | None) -> None:
    """Results, messages and warnings on the terminal; `most` characters of each text."""
    out = output.console()
    for hit in result.hits:
        ranks = "  ".join(found_by(hit))
        head = Text(f"{hit.rank:>3}. ", style="bold") + Text(output.one_line(hit.citation), style="bold cyan")
        out.print(head + Text(f"  {hit.label}  {hit.score:.4f}  ") + Text(ranks, style="dim"))
        # A section path that begins with the title says both.
        title = (
            hit.section if hit.section.startswith(hit.title) else " › ".join(p for p in (hit.title, hit.section) if p)
        )
        title = title or hit.title
        if title:
            out.print(Text("     " + title, style="italic"))
        if hit.copies:
            out.print(Text("     " + output.one_line(output.also(hit.copies)), style="dim"), soft_wrap=True)
        out.print(output.highlighted(hit.text, hit.matches, most), soft_wrap=True)
        out.print()
    for message in result.messages:
        out.print(Text(message, style="dim"))
    _print_warnings(result)
    if funnel:
        out.print(output.frame_table(result.funnel(), "Funnel"))
    if timings:
        out.print("  ".join(f"{name} {value:.1f}" for name, value in result.timings_ms.items()))


@click.command()
@click.argument("query")
@click.argument("target")
@options.KEYWORDS
@options.ANY_MODE
@options.FILTER
@options.takes_plan
@options.takes_asker
@options.JSON
@click.pass_context
def explain(
    ctx: click.Context,
    query: str,
    target: str,
    keywords: str | None,
    mode: str,
    filters: str | None,
    plan: options.OnePlan,
    asker: options.Asker,
    as_json: bool,
) -> None:
    """Explain where TARGET (a path, path:line or chunk id) ranks in the search for QUERY, and what would bring it in."""
    chosen = plan.read()
    with asker.open() as opened:
        result = opened.search(query, keywords=keywords, mode=mode, plan=chosen, filters=filters)
        found = opened.explain(result, target)
    if as_json:
        output.print_json(dataclasses.asdict(found))
    else:
        _print_explanation(found)
    ctx.exit(0 if found.found else 1)


def _print_explanation(found: Explanation) -> None:
    import polars as pl

    out = output.console()
    out.print(Text(output.one_line(found.citation or found.target), style="bold cyan"))
    out.print(f"Rank {found.rank}" if found.rank else f"Not a result: dropped by {found.dropped_by}")
    out.print(Text(found.reason + "."))
    if found.standings:
        rows = [dataclasses.asdict(s) for s in found.standings]
        schema = {
            "source": pl.String,
            "state": pl.String,
            "rank": pl.Int64,
            "score": pl.Float64,
            "distance": pl.Float64,
            "contribution": pl.Float64,
            "reason": pl.String,
        }
        out.print(output.frame_table(pl.DataFrame(rows, schema=schema)))
    if found.remedy:
        out.print(Text(found.remedy + (" (verified: it is then a result)." if found.verified else ".")))


@click.command()
@click.argument("pattern", nargs=-1, required=True)
@click.option("--regex", "-E", is_flag=True, help="Read patterns as regular expressions (RE2).")
@click.option(
    "--context", "-C", type=click.IntRange(0, 1000), default=10, show_default=True, help="Lines around a match."
)
@click.option("--case", type=click.Choice(["smart", "sensitive", "ignore"]), default="smart", show_default=True)
@click.option("--word", "-w", is_flag=True, help="Match whole words only.")
@click.option("--limit", "-n", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Most passages.")
@options.FILTER
@options.takes_asker
@options.JSON
@click.pass_context
def grep(
    ctx: click.Context,
    pattern: tuple[str, ...],
    regex: bool,
    context: int,
    case: str,
    word: bool,
    limit: int,
    filters: str | None,
    asker: options.Asker,
    as_json: bool,
) -> None:
    """Print passages with lines that hold any PATTERN (fixed text unless --regex)."""
    with asker.open() as opened:
        passages = opened.grep(
            pattern, context=context, regex=regex, case=case, word=word, filters=filters, limit=limit
        )
    if as_json:
        output.print_json([{**dataclasses.asdict(p), "citation": p.citation} for p in passages])
    else:
        output.print_passages(passages)
        files = len({p.path for p in passages})
        said = f"{output.counted(len(passages), 'passage')} in {output.counted(files, 'file')}"
        output.console(stderr=True).print(said, style="dim")
    ctx.exit(0 if passages else 1)


@click.command()
@click.argument("path")
@click.option("--at", default="", help="A place in it: lines 12-18, 'page 3', 'Sales!A12', 'slide 3', or a locator.")
@options.takes_asker
@options.JSON
@click.pass_context
def read(ctx: click.Context, path: str, at: str, asker: options.Asker, as_json: bool) -> None:
    """Print the document at PATH, or the place that PATH cites: notes.md:12-18, report.pdf#page=3, sales.xlsx#sheet=May."""
    from workbench.retrieve.readfile import find_cited

    with asker.open() as opened:
        found = find_cited(opened.engine, opened.principal, path, at)
    code = 0 if found.found else 2 if found.text.startswith("[ERROR: ACCESS_DENIED]") else 1
    text, error = (found.asked, None) if found.found else ("", found.text)
    if as_json:
        data = {"path": found.path or path, "lines": found.lines, "text": text, "error": error}
        output.print_json({**data, "note": found.note or None})
    else:
        output.say(found.asked, err=bool(code), raw=not code)
    ctx.exit(code)


@click.command()
@click.argument("query", required=False)
@click.option(
    "--queries",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Many queries: one a line, or JSON lines with text and keywords.",
)
@options.takes_plans
@options.KEYWORDS
@options.FILTER
@click.option("--limit", "-n", type=int, help="How many results (default: each plan's).")
@options.takes_asker
@options.JSON
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
        output.print_json({"query": query, "ranks": frame.to_dicts(), "overlap": shared.to_dicts()})
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
        output.print_json({"summary": made.summary().to_dicts(), "queries": made.frame().to_dicts()})
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


@click.command()
@click.argument("query")
@options.CONTEXT
@click.option("--limit", "-n", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many examples.")
@options.takes_asker
@options.JSON
@click.pass_context
def examples(
    ctx: click.Context, query: str, context_file: Path | None, limit: int, asker: options.Asker, as_json: bool
) -> None:
    """Print the worked examples that fit QUERY: code with a line on what it is."""
    context = context_file.read_text(encoding="utf-8", errors="replace") if context_file else None
    with asker.open() as opened:
        found = opened.search_examples(query, context, limit)
    output.warn(found.warnings, err=True)
    if as_json:
        output.print_json([{**asdict(example), "citation": example.citation} for example in found])
    else:
        out = output.console()
        for number, example in enumerate(found, 1):
            added = "  ".join(f"{name} +{value:.4f}" for name, value in sorted(example.contributions.items()))
            head = Text(f"{number:>3}. ", style="bold") + Text(output.one_line(example.citation), style="bold cyan")
            out.print(head + Text(f"  {example.score:.4f}  ") + Text(added, style="dim"))
            said = " › ".join(part for part in (example.title, example.description, ", ".join(example.tags)) if part)
            out.print(Text("     " + said, style="italic"), soft_wrap=True)
            out.print(Text(example.code), soft_wrap=True)
            out.print()
        if not found:
            output.console(stderr=True).print("No example fits, or the corpus holds none", style="dim")
    ctx.exit(0 if found else 1)
