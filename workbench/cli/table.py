"""`workbench table`: judged collections measured in one table, fixed plans beside the tuned one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.text import Text

from workbench.cli import options, output
from workbench.errors import UsageError


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--keep", type=click.Path(path_type=Path), required=True,
    help="Folder of the collections' corpora, NAME.one each; made where they are not there.",
)  # fmt: skip
@click.option("--measure", default="nDCG@10", show_default=True, help="An ir_measures name.")
@click.option(
    "--folds", type=click.IntRange(2, 100), default=5, show_default=True, help="Folds where there is no train split."
)
@options.json_option
def table(folders: tuple[Path, ...], keep: Path, measure: str, folds: int, as_json: bool) -> None:
    """Measure keyword, vector, fusions, the tuned plan and the oracle on FOLDERS, collections in the BEIR form."""
    from workbench.bench.collections import Measured, measure_collection

    made: list[Measured] = []
    with output.progress_bar(enabled=not as_json) as progress:
        for folder in folders:
            if not (folder / "queries.jsonl").exists():
                raise UsageError(
                    f"{folder} is no collection in the BEIR form", "It needs corpus.jsonl, queries.jsonl, qrels.tsv"
                )
            made.append(measure_collection(folder, keep / f"{folder.name}.one", measure, folds, progress))
    if as_json:
        options.print_json([_as_dict(m) for m in made])
        return
    _print(made, measure)


def _as_dict(made: Any) -> dict[str, Any]:
    return {
        "collection": made.name, "queries": made.queries, "plans": made.plans, "how": made.how, "tuned": str(made.tuned),
        "figures": {e.name: e.mean for e in made.entries},
        "against_rrf60": {
            e.name: {"difference": e.against.difference, "low": e.against.low, "high": e.against.high, "p": e.against.p}
            for e in made.entries
            if e.against is not None
        },
        "against_best_source": {"source": made.beats_sources.first, "verdict": made.beats_sources.brief},
    }  # fmt: skip


def _print(made: list[Any], measure: str) -> None:
    import polars as pl

    out = output.console()
    frame = pl.DataFrame(
        [{"collection": m.name, "queries": m.queries, **{e.name: f"{e.mean:.3f}" for e in m.entries}} for m in made]
    )
    out.print(output.frame_table(frame, f"{measure}, one record a document, 1,000 candidates a source"))
    for m in made:
        tuned = next(e for e in m.entries if e.name == "tuned")
        lines = (
            f"{m.name}: tuned ({m.plans:,} plans, {m.how}) against rrf60: {tuned.against.brief}",
            f"  against {m.beats_sources.first} alone: {m.beats_sources.brief}",
            f"  {m.tuned}",
        )
        for line in lines:
            out.print(Text(output.plain(line)), soft_wrap=True)
