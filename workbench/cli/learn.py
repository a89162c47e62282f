"""`workbench learn`: train a reranking model on judged queries, and say what it is worth on queries it did not see."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from workbench.cli import options, output

if TYPE_CHECKING:
    from workbench.evaluate.learning import Learning

_MOST_FEATURES = 8


@click.command(cls=options.Writing)
@click.argument("judgments", type=click.Path(path_type=Path))
@click.option("--output", "-o", "target", type=options.OutputFile(), help="Write the model to this file.")
@options.takes_plan
@click.option(
    "--measure", "measures", multiple=True, help="An ir_measures name; may be repeated. Default: nDCG@10 R@100 RR."
)
@click.option("--split", help="Which qrels of a folder with several: qrels.SPLIT.tsv.")
@click.option("--depth", type=click.IntRange(1, 100_000), help="Candidates from each source, whatever the plan says.")
@click.option("--folds", type=click.IntRange(2, 20), default=5, show_default=True, help="Folds of queries.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Decides the folds.")
@click.option("--filter", "-f", "filters", help="A condition on documents.")
@options.takes_asker
@options.json_option
def learn(
    judgments: Path,
    target: Path | None,
    plan: options.OnePlan,
    measures: tuple[str, ...],
    split: str | None,
    depth: int | None,
    folds: int,
    seed: int,
    filters: str | None,
    asker: options.Asker,
    as_json: bool,
) -> None:
    """Learn a ranking (LambdaMART) from JUDGMENTS: a BEIR folder, TREC qrels, CSV or JSONL.

    It reorders what a plan found (tmm, unless another is given). The table compares both on queries held out by folds; the
    model itself is trained on all queries. Use it as rerank.model=learned:FILE, with the same plan.
    """
    from workbench.evaluate.learning import learn as learn_ranking
    from workbench.judgments.qrels import load_judgments

    loaded = load_judgments(judgments, split=split)
    chosen = plan.read(otherwise="tmm")
    if depth is not None:
        chosen = chosen.replace({f"depth.{source}": depth for source in chosen.sources})
    with asker.open() as opened, output.progress_bar(enabled=not as_json) as progress:
        info = opened.info()
        made = learn_ranking(
            opened.search,
            loaded,
            chosen,
            measures or ("nDCG@10", "R@100", "RR"),
            collections=tuple(sorted(info["collections"])),
            folds=folds,
            seed=seed,
            filters=filters,
            origin={"corpus_digest": info["digest"], "generation": info["generation"], "filters": filters or ""},
            progress=progress,
        )
    if target is not None:
        made.training.ranker.save(target)
    if as_json:
        options.print_json(_as_dict(made, target))
    else:
        _print(made, target)


def _as_dict(made: Learning, target: Path | None) -> dict[str, Any]:
    difference, ranker = made.compare(), made.training.ranker
    return {
        "plan": str(made.plan),
        "queries": difference.queries,
        "trees": made.training.rounds,
        "base": made.base.frame().to_dicts(),
        "learned": made.learned.frame().to_dicts(),
        "difference": {
            "mean": difference.difference,
            "low": difference.low,
            "high": difference.high,
            "p": difference.p,
        },
        "wins": difference.wins,
        "losses": difference.losses,
        "ties": difference.ties,
        "better": difference.significant and difference.difference > 0,
        "verdict": difference.verdict,
        "features": [{"feature": name, "gain": share} for name, share in ranker.importance()],
        "digest": ranker.digest,
        "file": None if target is None else str(target),
        "warnings": list(made.base.warnings),
    }


def _print(made: Learning, target: Path | None) -> None:
    import polars as pl

    out, ranker, difference = output.console(), made.training.ranker, made.compare()
    rows = []
    for name, evaluation in ((str(made.plan), made.base), ("learned, on queries held out", made.learned)):
        row = {"order": name}
        for line in evaluation.frame().iter_rows(named=True):
            interval = "" if line["low"] is None else f" ({line['low']:.3f} to {line['high']:.3f})"
            row[line["measure"]] = f"{line['mean']:.4f}{interval}"
        rows.append(row)
    out.print(output.frame_table(pl.DataFrame(rows), f"{difference.queries} judged queries (mean and 95 % interval)"))
    out.print(Text(output.plain(difference.verdict)))
    out.print(Text(_advice(made)))
    if made.training.rounds:
        shares = [(name, share) for name, share in ranker.importance() if share > 0][:_MOST_FEATURES]
        schema = {"feature": pl.String, "share of gain": pl.Float64}
        out.print(output.frame_table(pl.DataFrame(shares, schema=schema, orient="row"), "What the trees look at", 3))
    if target is not None:
        out.print(Text(output.plain(f"Written to {target}, digest {ranker.digest[:16]}")), soft_wrap=True)
    for warning in made.base.warnings:
        out.print(Text("warning: " + output.plain(warning), style="yellow"), soft_wrap=True)


def _advice(made: Learning) -> str:
    difference, trees = made.compare(), made.training.rounds
    if not trees:
        return "No tree helped inside the training queries, so the model keeps the fused order: leave rerank.model off."
    told = f"{trees} trees. "
    if difference.significant and difference.difference > 0:
        return told + "It helps on queries it did not see: use it as rerank.model=learned:FILE with this plan."
    return told + "It does not help on queries it did not see: leave rerank.model off, or judge more queries."
