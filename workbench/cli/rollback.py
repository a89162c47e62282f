"""`workbench rollback`: keep states of the corpus under names, and go back to one."""

from __future__ import annotations

from pathlib import Path

import click

from workbench import settings
from workbench.cli import options


@click.command()
@click.argument("name", required=False)
@click.option("--keep", metavar="NAME", help="Keep the corpus as it is now under this name, until it is forgotten.")
@click.option("--forget", metavar="NAME", help="Keep this state no longer; its space is freed by the next run.")
@options.corpus_option
@options.json_option
@click.pass_context
def rollback(
    ctx: click.Context, name: str | None, keep: str | None, forget: str | None, corpus: Path | None, as_json: bool
) -> None:
    """Go back to the state NAME of the corpus; without a name, list the states that are kept.

    Judgments, snapshots and `corpus.yaml` stay as they are. The next `workbench index` compares with the files again.

    \b
    workbench rollback --keep before-june
    workbench rollback before-june
    """
    from workbench.indexing.repair import rollback as go_back
    from workbench.store import generations

    path = Path(settings.get("corpus")) if corpus is None else corpus
    generations.current(path)
    if sum(value is not None for value in (name, keep, forget)) > 1:
        raise click.UsageError("Name one of NAME, --keep and --forget")
    if forget is not None:
        generations.state(path, forget)
        (generations.Layout(path).states / forget).unlink(missing_ok=True)
        said = f"The state {forget} is forgotten"
    elif keep is not None:
        said = f"Generation {generations.keep_state(path, keep)} is kept as {keep}"
    elif name is not None:
        generation = generations.state(path, name)
        said = f"The corpus answers from the state {name} (generation {generation}) now, as generation {go_back(path, name)}"
    else:
        said = ""
    known = generations.states(path)
    if as_json:
        options.print_json({"generation": generations.current(path), "states": known})
    elif said:
        click.echo(said)
    else:
        for state, generation in known.items():
            click.echo(f"{state}\t{generation}")
        if not known:
            click.echo("No state is kept. Keep the corpus as it is now with: workbench rollback --keep NAME")
    ctx.exit(0 if known or said else 1)
