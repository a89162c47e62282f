"""`workbench search`, `explain`, `compare`, `grep`, `read` and `examples`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from workbench.cli import options, output
from workbench.cli.options import Given, argument, bounded, flag, option, takes
from workbench.errors import SourceUnavailable, UsageError, counted, some_of
from workbench.records import found_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workbench.evaluate.statistics import Difference
    from workbench.retrieve.compare import ManyComparisons
    from workbench.retrieve.explain import Explanation
    from workbench.retrieve.result import SearchResult


@click.command()
@takes(
    argument("query"),
    options.KEYWORDS,
    options.CONTEXT,
    options.ANY_MODE,
    options.FILTER,
    option("--limit", "-n", type=int, help="How many results (default: the plan's)."),
    flag("--include-memory", help="Search the collection memory too, where the plan leaves it out."),
    flag("--expand-neighbors", help="Show each chunk between its neighbours."),
    option("--sensitivity", help="Only documents of this sensitivity."),
    *options.PLAN,
    *options.ASKER,
    bounded(
        "--format",
        "form",
        type=click.Choice(["cards", "text"]),
        default="cards",
        help="text: the fixed text form that tools read.",
    ),
    flag("--timings", help="Show milliseconds by step."),
    flag("--funnel", help="Show how many candidates each step dropped."),
    flag("--full", help="Show whole passages."),
)
def search(o: Given) -> None:
    """Search a corpus for QUERY: words, "phrases", -not, OR, prefix*."""
    from workbench.retrieve.messages import format_text

    plan, context = o.plan(), o.context_text
    with o.open() as opened:
        try:
            how = o.pick("keywords", "mode", "filters", "limit", "include_memory", "expand_neighbors", "sensitivity")
            result = opened.search(o.query, context=context, plan=plan, **how)
        except SourceUnavailable as exc:
            if o.as_json or o.form != "text":
                raise
            output.say(f"Search failed: {exc.message}")
            raise SystemExit(2) from None
        if o.as_json:
            output.print_json(result.to_dict(timings=o.timings))
        elif o.form == "text":
            output.say(format_text(result))
            output.warn(result.warnings, err=True)
        else:
            print_result(result, timings=o.timings, funnel=o.funnel, most=None if o.full else 480)
        raise SystemExit(0 if result.hits else 1)


def print_result(result: SearchResult, *, timings: bool, funnel: bool, most: int | None) -> None:
    """Results, messages and warnings on the terminal; `most` characters of each text."""
    for hit in result.hits:
        # A section path that begins with the title says both.
        both = hit.section.startswith(hit.title)
        title = hit.section if both else " › ".join(p for p in (hit.title, hit.section) if p)
        _print_hit(hit.rank, hit.citation, f"{hit.label}  {hit.score:.4f}", "  ".join(found_by(hit)), title)
        if hit.copies:
            output.line("     " + output.one_line("the same text: " + some_of(hit.copies, 5)), "dim")
        output.line(output.highlighted(hit.text, hit.matches, most))
        output.line("")
    for message in result.messages:
        output.console().print(Text(message, style="dim"))
    output.warn(result.warnings, err=True)
    if funnel:
        output.print_frame(result.funnel(), "Funnel")
    if timings:
        output.console().print("  ".join(f"{name} {value:.1f}" for name, value in result.timings_ms.items()))


def _print_hit(rank: int, citation: str, figures: str, parts: str, title: str) -> None:
    head = Text(f"{rank:>3}. ", style="bold") + Text(output.one_line(citation), style="bold cyan")
    output.console().print(head + Text(f"  {figures}  ") + Text(parts, style="dim"))
    if title:
        output.console().print(Text("     " + title, style="italic"))


@click.command()
@takes(
    argument("query"),
    argument("target"),
    options.KEYWORDS,
    options.ANY_MODE,
    options.FILTER,
    option(
        "--judged",
        "judged_by",
        help="Judgments or a query set: what each way in costs there (of changed settings alone).",
    ),
    bounded("--measure", default="nDCG@10", help="The measure of the cost: nDCG, RR, R, P, AP or Success."),
    options.SPLIT,
    options.DROP_IDENTICAL,
    *options.PLAN,
    *options.ASKER,
)
def explain(o: Given) -> None:
    """Explain where TARGET (a path, path:line or chunk id) ranks in the search for QUERY, and what would bring it in."""
    plan = o.plan()
    loaded = None if o.judged_by is None else o.judged(o.judged_by, o.split)
    with o.open() as opened:
        result = opened.search(o.query, plan=plan, **o.pick("keywords", "mode", "filters"))
        found = opened.explain(result, o.target, every=True)
        costs: list[Difference | None] = [None] * len(found.ways)
        if loaded is not None and any(way.of_plan for way in found.ways):
            live = opened.live(loaded, o.measure, plan, mode=o.mode)
            costs = [live.cost(plan.replace(way.changes or {}), plan) if way.of_plan else None for way in found.ways]
    if o.as_json:
        from workbench.evaluate.statistics import finite

        data = asdict(found)
        for way, cost in zip(data["ways"], costs, strict=True):
            way["cost"] = cost and {**asdict(cost), "low": finite(cost.low), "high": finite(cost.high)}
        output.print_json(data)
    else:
        _print_explanation(found, costs)
    raise SystemExit(0 if found.found else 1)


def _print_explanation(found: Explanation, costs: Sequence[Difference | None]) -> None:
    out = output.console()
    out.print(Text(output.one_line(found.citation or found.target), style="bold cyan"))
    out.print(f"Rank {found.rank}" if found.rank else f"Not a result: dropped by {found.dropped_by}")
    out.print(Text(found.reason + "."))
    for path in found.similar:
        output.line(f"Did you mean {output.one_line(path)}?", "dim")
    if found.standings:
        numbers = ("rank", "score", "distance", "contribution")
        head = ("source", "state", *numbers, "reason")
        out.print(output.table(head, [[getattr(s, n) for n in head] for s in found.standings], right=numbers))
    if found.sum:
        out.print(Text(f"Fused score: {found.sum}"))
    for standing in (s for s in found.standings if s.words):
        title = f"BM25 of {standing.source}, word by word"
        names = ("text", "term", "tf", "df", "idf", "weight", "norm", "score")
        rows = [[*(getattr(w, n) for n in names), f"{w.share:.0%}"] for w in standing.words]
        out.print(output.table((*names, "share"), rows, title, right=(*names[2:], "share")))
    for way, cost in zip(found.ways, costs, strict=True):
        text = "" if cost is None else f" {cost.measure} {cost.first_mean:.3f} to {cost.second_mean:.3f}: {cost.brief}."
        out.print(Text(f"{way.remedy} (verified: it is then result {way.rank}).{text}"))
    if found.remedy and not found.ways:
        out.print(Text(f"{found.remedy}."))


@click.command()
@takes(
    argument("pattern", nargs=-1, required=True),
    flag("--regex", "-E", help="Read patterns as regular expressions (RE2)."),
    bounded("--context", "-C", type=click.IntRange(0, 1000), default=10, help="Lines around a match."),
    bounded("--case", type=click.Choice(["smart", "sensitive", "ignore"]), default="smart"),
    flag("--word", "-w", help="Match whole words only."),
    bounded("--limit", "-n", type=click.IntRange(1, 10_000), default=100, help="Most passages."),
    options.FILTER,
    *options.ASKER,
)
def grep(o: Given) -> None:
    """Print passages with lines that hold any PATTERN (fixed text unless --regex)."""
    with o.open() as opened:
        passages = opened.grep(o.pattern, **o.pick("context", "regex", "case", "word", "filters", "limit"))
    if o.as_json:
        output.print_json([{**asdict(p), "citation": p.citation} for p in passages])
    else:
        output.print_passages(passages)
        files = counted(len({p.path for p in passages}), "file")
        output.line(f"{counted(len(passages), 'passage')} in {files}", "dim", err=True)
    raise SystemExit(0 if passages else 1)


@click.command()
@takes(
    argument("path"),
    option("--at", default="", help="A place in it: lines 12-18, 'page 3', 'Sales!A12', 'slide 3', or a locator."),
    *options.ASKER,
)
def read(o: Given) -> None:
    """Print the document at PATH, or the place that PATH cites: notes.md:12-18, report.pdf#page=3, sales.xlsx#sheet=May."""
    from workbench.retrieve.readfile import find_cited

    with o.open() as opened:
        found = find_cited(opened.engine, o.path, o.at)
    code = 0 if found.found else 2 if found.text.startswith("[ERROR: ACCESS_DENIED]") else 1
    text, error = (found.asked, None) if found.found else ("", found.text)
    if o.as_json:
        data = {"path": found.path or o.path, "lines": found.lines, "text": text, "error": error}
        output.print_json({**data, "note": found.note or None})
    else:
        output.say(found.asked, err=bool(code), raw=not code)
    raise SystemExit(code)


@click.command()
@takes(
    argument("query", required=False),
    option(
        "--queries", type=options.FILE, help="Many queries: one a line, or CSV or JSON lines with text and keywords."
    ),
    *options.PLANS,
    options.KEYWORDS,
    options.FILTER,
    option("--limit", "-n", type=int, help="How many results (default: each plan's)."),
    flag("--why", help="Say why results moved from the first plan to the second."),
    *options.ASKER,
)
def compare(o: Given) -> None:
    """Run QUERY under several plans and show each result's rank in each.

    With --queries the plans are run on every query of a file: for each the first result and what it shares with the first
    plan, by documents, and the means of it all.
    """
    if (o.query is None) == (o.queries is None):
        raise UsageError(
            "Give either a query or --queries FILE",
            "Write for example: workbench compare 'how do retries work' --plan default --plan rrf",
        )
    if o.queries is not None and o.keywords:
        raise UsageError(
            "--keywords belongs to one query", "Put keywords into the file: JSON lines with text and keywords"
        )
    plans = o.plans()
    if not plans:
        raise UsageError("There is no plan to compare", "Give at least one, such as --plan default --plan rrf")
    with o.open() as opened:
        if o.queries is not None:
            from workbench.judgments.exchange import read_queries
            from workbench.retrieve.compare import compare_many

            asked = [(q.text, q.keywords) for q in read_queries(o.queries)]
            made = compare_many(opened.compare, asked, plans, filters=o.filters, limit=o.limit)
            if o.as_json:
                output.print_json({"summary": made.summary().to_dicts(), "queries": made.frame().to_dicts()})
                return
            output.console().print(_table(made))
            output.line(
                f"Means over {len(made.comparisons)} queries; shared, jaccard and rbo are against {made.names[0]}, "
                "by documents"
            )
            output.print_frame(made.summary(), digits=2)
            return
        compared = opened.compare(o.query, plans, keywords=o.keywords, filters=o.filters, limit=o.limit)
        frame, shared = compared.frame(), compared.overlap()
        moves = compared.moves() if o.why else None
    if o.as_json:
        why = {} if moves is None else {"moves": moves.to_dicts()}
        output.print_json({"query": o.query, "ranks": frame.to_dicts(), "overlap": shared.to_dicts(), **why})
    elif moves is not None:
        for row in moves.iter_rows(named=True):
            output.say(
                f"{row['kind']} {row['first'] or '–'} → {row['second'] or '–'}  {row['citation']}  {row['reason']}".rstrip()
            )
    else:
        output.print_frame(frame.drop("path"), "Ranks")
        output.print_frame(shared, "Overlap")


def _table(made: ManyComparisons) -> Table:
    """A row a query and plan; a query is named once."""
    rows, query = [], None
    for row in made.frame().iter_rows(named=True):
        figures = (str(row["hits"]), str(row["shared"]), f"{row['rbo']:.2f}")
        rows.append((row["query"] if row["query"] != query else "", row["plan"], row["top"] or "(nothing)", *figures))
        query = row["query"]
    numbers = ("hits", "shared", "rbo")
    return output.table(("query", "plan", "first result", *numbers), rows, right=numbers)


@click.command()
@takes(
    argument("query"),
    options.CONTEXT,
    bounded("--limit", "-n", type=click.IntRange(1, 1000), default=5, help="How many examples."),
    *options.ASKER,
)
def examples(o: Given) -> None:
    """Print the worked examples that fit QUERY: code with a line on what it is."""
    context = o.context_text
    with o.open() as opened:
        found = opened.search_examples(o.query, context, o.limit)
    output.warn(found.warnings, err=True)
    if o.as_json:
        output.print_json([{**asdict(example), "citation": example.citation} for example in found])
    else:
        for number, example in enumerate(found, 1):
            added = "  ".join(f"{name} +{value:.4f}" for name, value in sorted(example.contributions.items()))
            about = " › ".join(part for part in (example.title, example.description, ", ".join(example.tags)) if part)
            _print_hit(number, example.citation, f"{example.score:.4f}", added, about)
            output.line(example.code)
            output.line("")
        if not found:
            output.line("No example fits, or the corpus holds none", "dim", err=True)
    raise SystemExit(0 if found else 1)
