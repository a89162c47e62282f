"""`workbench examples`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from rich.text import Text

from workbench.cli import options, output


@click.command()
@click.argument("query")
@click.option(
    "--context-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A file that you have open: names in it help the vector side.",
)
@click.option("--limit", "-n", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many examples.")
@options.takes_asker
@options.json_option
@click.pass_context
def examples(
    ctx: click.Context, query: str, context_file: Path | None, limit: int, asker: options.Asker, as_json: bool
) -> None:
    """Print the worked examples that fit QUERY: code with a line on what it is."""
    context = context_file.read_text(encoding="utf-8", errors="replace") if context_file else None
    with asker.open() as opened:
        found = opened.search_examples(query, context, limit)
    for warning in found.warnings:
        output.console(stderr=True).print(Text("warning: " + output.plain(warning), style="yellow"), soft_wrap=True)
    if as_json:
        options.print_json([{**asdict(example), "citation": example.citation} for example in found])
    else:
        out = output.console()
        for number, example in enumerate(found, 1):
            added = "  ".join(f"{name} +{value:.4f}" for name, value in sorted(example.contributions.items()))
            head = Text(f"{number:>3}. ", style="bold") + Text(output.one_line(example.citation), style="bold cyan")
            out.print(head + Text(f"  {example.score:.4f}  ") + Text(added, style="dim"))
            said = " › ".join(part for part in (example.title, example.description, ", ".join(example.tags)) if part)
            out.print(Text("     " + output.plain(said), style="italic"), soft_wrap=True)
            out.print(Text(output.plain(example.code)), soft_wrap=True)
            out.print()
        if not found:
            output.console(stderr=True).print("No example fits, or the corpus holds none", style="dim")
    ctx.exit(0 if found else 1)
