"""`make bench`: figures of this machine, each with its peers, its goal, and all that is needed to believe it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli import options, output
from workbench.errors import UsageError

if TYPE_CHECKING:
    from bench.corpora import BenchCorpus
    from bench.figures import Figure, Goal, Row, Unmeasured

LEGEND = (
    "p50 and p95 of all samples, warm, ours and the peers' in turn; best is the median of each question's best round;"
    " ratio is our p50 over the peer's, below 1 is faster."
)
HEAD = ("row", "what", "p50", "p95", "best", "ratio", "goal")
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


@click.command()
@click.option(
    "--data", type=FOLDER, help="Folder with large.parquet and large_vectors.npz (default: the setting measure_data)."
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
@click.option("--on", type=FOLDER, metavar="CORPUS", help="With --ui: a corpus of yours to measure on.")
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
    from bench import corpora, figures, ground, pages
    from bench import rows as table

    if ui and only:
        raise UsageError("--ui measures its own rows", "Leave --only out")
    if on is not None and not ui:
        raise UsageError("--on is for the pages", "Add --ui, or leave --on out")
    keys = pages.KEYS if ui else table.choose(only)
    machine = figures.describe()
    done: list[Row | Unmeasured] = []
    corpus: BenchCorpus | None = None
    stopped = False
    try:
        with output.progress_bar() as tell:
            corpus = pages.given(on) if on else corpora.prepare(corpora.find_source(data, rows), keep, tell)
            with ground.Ground(corpus, encoder, tell) as opened:
                for row in pages.pages(opened) if ui else table.run(opened, keys, tell):
                    done.append(row)  # noqa: PERF402 - kept one by one, so that Ctrl-C loses none
    except KeyboardInterrupt:
        stopped = True
    if as_json:
        said = None if corpus is None else corpus.to_dict()
        shown = [row.to_dict() for row in done]
        output.print_json({"machine": machine, "corpus": said, "stopped": stopped, "rows": shown})
    else:
        _print(machine, corpus, done)
    if stopped:
        click.echo(f"workbench: stopped after {len(done)} of {len(keys)} rows", err=True)
        ctx.exit(1)


def _print(machine: dict[str, Any], corpus: BenchCorpus | None, done: list[Row | Unmeasured]) -> None:
    if corpus is not None:
        source = corpus.source
        for line in (*machine_lines(machine), f"corpus   {source.name}, digest {source.digest[:16]}", *source.notes):
            output.line(line)
    if done:
        out = output.console()
        out.width = max(out.width, 110)  # a table with a word a line tells nobody anything
        out.print(output.table(HEAD, [cells for row in done for cells in _rows(row)], right=HEAD[2:6]))
        notes: dict[str, list[str]] = {}
        for row in done:
            for note in getattr(row, "every_note", ()):
                notes.setdefault(note, []).append(row.key)
        for note, keys in notes.items():
            output.line(f"{', '.join(keys)}: {note}", "dim")
        output.line(LEGEND, "dim")


def machine_lines(machine: dict[str, Any]) -> list[str]:
    commit = f", commit {machine['commit']}" if machine["commit"] else ""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    lines = [
        f"machine  {machine['processor']}, {machine['cores']} cores, {machine['memory_gb']:g} GB, {machine['system']}; "
        f"{machine['threads']} threads",
        f"program  Python {machine['python']}, {versions}{commit}",
    ]
    if machine["busy"]:
        lines.append(f"note     the machine was busy when this began (load {machine['load']:.1f}): compare ratios")
    return lines


def _rows(row: Row | Unmeasured) -> list[tuple[str, ...]]:
    from bench.figures import Unmeasured

    if isinstance(row, Unmeasured):
        return [(row.key, row.reason, "", "", "", "", "not measured")]
    made = [(row.key, row.title, *_cells(row.figure, row.unit), "", "; ".join(map(_goal, row.own_goals)))]
    for peer in row.peers:
        ratio, goal = row.ratio(peer), row.against(peer)
        name = f"  {peer.name}" if peer.figure is not None else f"  {peer.name}: {peer.note}"
        shown = "" if ratio is None else f"{ratio:.2f}"
        made.append(("", name, *_cells(peer.figure, row.unit), shown, "" if goal is None else _goal(goal)))
    return made


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
