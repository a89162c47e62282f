"""`make bench`: figures of this machine, each with its peers, its goal, and all that is needed to believe it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.table import Table

from workbench.cli import options, output
from workbench.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from bench.corpora import BenchCorpus
    from bench.figures import Figure, Goal, Row, Unmeasured


_NARROWEST = 110
_LEGEND = (
    "p50 and p95 of all samples, warm, ours and the peers' in turn; best is the median of each question's best round;"
    " ratio is our p50 over the peer's, below 1 is faster."
)


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with large.parquet and large_vectors.npz (default: the setting measure_data).",
)
@click.option(
    "--only", multiple=True, metavar="ROW", help="A row or a group of rows, such as keyword; may be repeated."
)
@click.option("--rows", type=click.IntRange(min=100), metavar="N", help="Take at most so many chunks of the corpus.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    help="Where the corpus and the peers' indexes are kept (default: the cache).",
)
@click.option("--encoder", help="Encoder of the indexing row (default: the setting encoder).")
@click.option("--ui", is_flag=True, help="Measure the app's pages in a browser instead: first page, slider.")
@click.option(
    "--on",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="CORPUS",
    help="With --ui: a corpus of yours to measure on.",
)
@options.JSON
@click.pass_context
def bench(
    ctx: click.Context,
    data: Path | None,
    only: tuple[str, ...],
    rows: int | None,
    keep: Path | None,
    encoder: str | None,
    ui: bool,
    on: Path | None,
    as_json: bool,
) -> None:
    """Measure speed on this machine, with the peers beside it in the same run.

    The first run builds the corpus and the peers' indexes, which are kept. Ctrl-C prints what is done; exit code 1 then.
    """
    from bench import corpora, figures, ground, rows_pages, run

    if ui and only:
        raise UsageError("--ui measures its own rows", "Leave --only out")
    if on is not None and not ui:
        raise UsageError("--on is for the pages", "Add --ui, or leave --on out")
    keys = rows_pages.KEYS if ui else run.choose(only)
    here = figures.describe()
    done: list[Row | Unmeasured] = []
    corpus: BenchCorpus | None = None
    stopped = False
    try:
        with output.progress_bar() as tell:
            corpus = rows_pages.standing(on) if on else corpora.prepare(corpora.find_source(data, rows), keep, tell)
            opened = ground.Ground(corpus, encoder, tell)
            try:
                for row in rows_pages.pages(opened) if ui else run.run(opened, keys, tell):
                    done.append(row)  # noqa: PERF402 - kept one by one, so that Ctrl-C loses none
            finally:
                opened.close()
    except KeyboardInterrupt:
        stopped = True
    if as_json:
        output.print_json(_plain(here, corpus, done, stopped))
    else:
        out = output.console()
        out.width = max(out.width, _NARROWEST)  # a table with a word a line tells nobody anything
        if corpus is not None:
            _print_address(out, here, corpus)
        if done:
            _print_rows(out, done)
    if stopped:
        click.echo(f"workbench: stopped after {len(done)} of {len(keys)} rows", err=True)
        ctx.exit(1)


def _plain(
    here: dict[str, Any], corpus: BenchCorpus | None, rows: list[Row | Unmeasured], stopped: bool
) -> dict[str, Any]:
    said: dict[str, Any] = {"machine": here, "corpus": None}
    if corpus is not None:
        source = corpus.source
        said["corpus"] = {
            "name": source.name,
            "digest": source.digest,
            "chunks": source.rows,
            "folder": str(corpus.folder),
            "notes": list(source.notes),
        }
    return {**said, "stopped": stopped, "rows": [row.to_dict() for row in rows]}


def _print_address(out: Console, here: dict[str, Any], corpus: BenchCorpus) -> None:
    source = corpus.source
    commit = f", commit {here['commit']}" if here["commit"] else ""
    versions = ", ".join(f"{name} {version}" for name, version in here["versions"].items())
    lines = [
        f"machine  {here['processor']}, {here['cores']} cores, {here['memory_gb']:g} GB, {here['system']}; "
        f"{here['threads']} threads",
        f"program  Python {here['python']}, {versions}{commit}",
        f"corpus   {source.name}, digest {source.digest[:16]}",
        *(f"         {note}" for note in source.notes),
    ]
    if here["busy"]:
        lines.append(
            f"note     the machine was busy when this began (load {here['load']:.1f}): compare ratios, not times"
        )
    for line in lines:
        out.print(output.plain(line), soft_wrap=True, markup=False)
    out.print()


def _print_rows(out: Console, rows: list[Row | Unmeasured]) -> None:
    from bench.figures import Goal, Unmeasured

    table = Table(header_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("row", no_wrap=True)
    table.add_column("what", overflow="fold", ratio=3)
    for name in ("p50", "p95", "best"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("goal", overflow="fold", ratio=2)
    notes: list[tuple[str, str]] = []
    for row in rows:
        if isinstance(row, Unmeasured):
            table.add_row(row.key, output.plain(row.reason), "", "", "", "", "not measured")
            continue
        goals = list(row.goals)
        own = goals[: len(goals) - sum(p.at_most is not None for p in row.peers)]
        table.add_row(row.key, row.title, *_cells(row.figure, row.unit), "", "; ".join(map(_goal, own)), style="bold")
        for peer in row.peers:
            ratio, goal = row.ratio(peer), row.against(peer)
            shown = peer.name if peer.figure is not None else f"{peer.name}: {peer.note}"
            table.add_row(
                "",
                f"  {shown}",
                *_cells(peer.figure, row.unit),
                "" if ratio is None else f"{ratio:.2f}",
                "" if goal is None else _goal(Goal(f"at most {peer.at_most:g}x", goal.met)),
            )
            if peer.note and peer.figure is not None:
                notes.append((row.key, f"{peer.name}: {peer.note}"))
        notes += [(row.key, note) for note in row.notes]
    out.print(table)
    for text in dict.fromkeys(text for _, text in notes):
        keys = ", ".join(key for key, said in notes if said == text)
        out.print(f"{keys}: {text}", style="dim", markup=False, soft_wrap=True)
    out.print(_LEGEND, style="dim", soft_wrap=True)


def _cells(figure: Figure | None, unit: str) -> tuple[str, str, str]:
    if figure is None:
        return "", "", ""
    return f"{_number(figure.p50)} {unit}", _number(figure.p95), _number(figure.best)


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _goal(goal: Goal) -> str:
    return f"{goal.text}: {'not measured' if goal.met is None else 'yes' if goal.met else 'no'}"


if __name__ == "__main__":
    bench()
