"""`workbench threshold`: where to cut, seen against judgments, and what each cut costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from workbench.cli import judged, options, output
from workbench.plan.fields import FUSED, OFF

if TYPE_CHECKING:
    from workbench.evaluate.distribution import Distribution
    from workbench.plan.plan import Plan


@click.command()
@click.argument("judgments")
@options.takes_plan
@click.option(
    "--lose", "losses", multiple=True, type=click.FloatRange(0, 100, max_open=True), metavar="PERCENT",
    help="The most of the relevant that may be lost, in percent; may be repeated. Default: 0, 1, 5, 10.",
)  # fmt: skip
@click.option(
    "--source", "sources", multiple=True, help="keyword, vector, vector:NAME or fused; may be repeated. Default: all."
)
@click.option("--split", help="Which qrels of a folder with several.")
@click.option("--filter", "-f", "filters", help="A condition on documents.")
@options.drop_identical_option
@options.takes_asker
@options.json_option
def threshold(
    judgments: str,
    plan: options.OnePlan,
    losses: tuple[float, ...],
    sources: tuple[str, ...],
    split: str | None,
    filters: str | None,
    drop_identical_ids: bool | None,
    asker: options.Asker,
    as_json: bool,
) -> None:
    """Find the threshold that loses at most so many of the relevant results in JUDGMENTS, and what it drops of the others.

    What was judged counts once a query, at its best candidate. A plan cuts a vector source at a distance (vector.threshold, or
    of one of several threshold.SOURCE), keyword below a BM25 score (threshold.keyword) and the fused list below a fused score
    (fusion.threshold). A source is measured without its threshold, the fused list with those of the sources. Grep has no
    threshold: its score is shown to compare.
    """
    from workbench.errors import UsageError
    from workbench.evaluate.distribution import distributions
    from workbench.evaluate.pool import Pool

    asked = plan.read()
    unknown = [s for s in sources if s not in (*asked.sources, FUSED)]
    if unknown:
        raise UsageError(f"The plan does not ask {unknown[0]}", "Its sources are " + ", ".join((*asked.sources, FUSED)))
    loaded = judged.read_judgments(judgments, split, asker).dropping(drop_identical_ids)
    with asker.open() as opened, output.progress_bar(enabled=not as_json) as progress:
        pool = Pool(opened.engine, loaded, principal=asker.principal, filters=filters)
        made = distributions(pool, asked, progress=progress)
    rows = [
        _row(made[name], percent, asked)
        for name in made if not sources or name in sources
        for percent in losses or (0.0, 1.0, 5.0, 10.0)
    ]  # fmt: skip
    if as_json:
        options.print_json(rows)
        return
    _print(rows, len(loaded.query_ids))
    for warning in (*pool.warnings, *pool.judgments.notes):
        output.console().print(Text("warning: " + output.plain(warning), style="yellow"), soft_wrap=True)


def _row(found: Distribution, percent: float, plan: Plan) -> dict[str, Any]:
    at = found.advised(percent / 100)
    lost, dropped = found.dropped(at)
    field = plan.threshold_to_set(found.source)
    return {
        "source": found.source, "of": found.axis, "relevant": len(found.relevant), "not_found": found.missed,
        "lose": percent, "threshold": None if at != at else at,
        "loses": None if lost != lost else round(100 * lost, 2), "drops": None if dropped != dropped else round(100 * dropped, 2),
        "now": plan.threshold(found.source) if field else None, "field": field or None,
    }  # fmt: skip


def _print(rows: list[dict[str, Any]], queries: int) -> None:
    import polars as pl

    shown = output.console()
    frame = pl.DataFrame(
        [{**{n: v for n, v in r.items() if n not in {"of", "now", "field"}},
          "threshold": f"{r['threshold']:g}" if r["threshold"] is not None else ""} for r in rows]
    ).rename({"lose": "may lose %", "loses": "loses %", "drops": "drops of others %", "not_found": "not found"})  # fmt: skip
    shown.print(output.frame_table(frame, f"Thresholds on {queries} judged queries", digits=1))
    axes = dict.fromkeys(f"{r['source']}: {r['of']}" for r in rows)
    shown.print(Text(output.plain("; ".join(axes)), style="dim"), soft_wrap=True)
    fields = {r["source"]: (r["now"], r["field"]) for r in rows if r["field"] and r["threshold"] is not None}
    for source, (now, field) in fields.items():
        have = (
            f"is not cut: take one with --set {field}=VALUE"
            if now == OFF
            else f"is cut at {now:g}: take another with --set {field}=VALUE"
        )
        shown.print(Text(output.plain(f"{source} {have}.")), soft_wrap=True)
