"""`workbench check`: fail when a plan is worse on judged queries than it was, or than it must be."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import click
from rich.text import Text

from workbench.cli import judged, options, output
from workbench.errors import UsageError
from workbench.retrieve.request import MODES

_SHOWN = 10


@click.command(cls=options.Writing)
@click.argument("judgments")
@options.takes_plan
@click.option("--baseline", type=click.Path(path_type=Path), help="Figures saved by --save: a significant drop fails.")
@click.option(
    "--min",
    "minimums",
    multiple=True,
    metavar="MEASURE=VALUE",
    help="Least mean, such as nDCG@10=0.4; may be repeated.",
)
@click.option(
    "--save",
    type=options.OutputFile(replaces="baseline"),
    help="Write the figures of now, for later checks; the baseline itself is replaced only where the check passes.",
)
@click.option(
    "--measure", "measures", multiple=True, help="An ir_measures name; may be repeated. Default: nDCG@10 R@100."
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="A drop of at most this much passes.",
)
@click.option("--split", help="Which qrels of a folder with several: qrels.SPLIT.tsv.")
@click.option("--judge", "judges", multiple=True, help="Whose grades of a query set count; may be repeated.")
@click.option(
    "--mode", "-m", type=click.Choice(MODES), default="hybrid", show_default=True, help="What to search with."
)
@click.option("--filter", "-f", "filters", help="A condition on documents.")
@options.drop_identical_option
@options.takes_asker
@options.json_option
@click.pass_context
def check(
    ctx: click.Context,
    judgments: str,
    plan: options.OnePlan,
    baseline: Path | None,
    minimums: tuple[str, ...],
    save: Path | None,
    measures: tuple[str, ...],
    tolerance: float,
    split: str | None,
    judges: tuple[str, ...],
    mode: str,
    filters: str | None,
    drop_identical_ids: bool | None,
    asker: options.Asker,
    as_json: bool,
) -> None:
    """Measure a plan on JUDGMENTS and exit with 1 when it is significantly worse than a baseline, or below a minimum."""
    from workbench.evaluate.guarding import check as compare
    from workbench.evaluate.guarding import read_baseline, save_baseline

    wanted = plan.read()
    least = _minimums(minimums)
    loaded = judged.read_judgments(judgments, split, asker, judges).dropping(drop_identical_ids)
    chosen = [*(measures or ("nDCG@10", "R@100")), *least]
    before = None if baseline is None else read_baseline(baseline)
    if before is not None:
        chosen = [*before.measures, *chosen]
    elif not least and save is None:
        raise UsageError("There is nothing to check against", "Give --baseline FILE, --min nDCG@10=0.4, or --save FILE")
    with asker.open() as opened, output.progress_bar(enabled=not as_json) as progress:
        now = opened.evaluate(loaded, wanted, chosen, mode=mode, filters=filters, progress=progress)
    found = compare(now, before, least, tolerance=tolerance) if before is not None or least else None
    passed = found is None or found.passed
    kept: tuple[str, ...] = ()
    # A failed run must not become what later ones are measured against.
    if save is not None and not passed and baseline is not None and save.exists() and save.samefile(baseline):
        save, kept = None, (f"{baseline} was not replaced, because the check failed",)
    if save is not None:
        save_baseline(now, save)
    warnings = [*now.warnings, *(() if found is None else found.notes), *kept]
    if as_json:
        options.print_json(
            {
                "plan": now.name,
                "passed": passed,
                "figures": {m: None if math.isnan(now.mean(m)) else now.mean(m) for m in now.measures},
                "failures": [] if found is None else list(found.failures),
                "verdicts": [] if found is None else [d.verdict for d in found.differences],
                "fallen": [] if found is None else [dataclasses.asdict(f) for f in found.fallen],
                "not_compared": [] if found is None else list(found.left_out),
                "saved": None if save is None else str(save),
                "warnings": warnings,
            }
        )
        ctx.exit(0 if passed else 1)
    out = output.console()
    out.print(", ".join(f"{m} {now.mean(m):.4f}" for m in now.measures))
    if found is not None:
        for difference in found.differences:
            out.print(Text(output.plain(f"{difference.measure}: {difference.brief}")), soft_wrap=True)
        for fell in found.fallen[:_SHOWN]:
            line = f"  fell {fell.before:.3f} to {fell.after:.3f}: {fell.query_id} {fell.query}"
            out.print(Text(output.plain(line), style="dim"), soft_wrap=True)
        if len(found.fallen) > _SHOWN:
            out.print(Text(f"  and {len(found.fallen) - _SHOWN} more", style="dim"))
        for failure in found.failures:
            out.print(Text(output.plain("failed: " + failure), style="red"), soft_wrap=True)
        if found.passed:
            out.print("passed")
    for warning in warnings:
        out.print(Text("warning: " + output.plain(warning), style="yellow"), soft_wrap=True)
    if save is not None:
        out.print(Text(output.plain(f"Saved to {save}; check against it with --baseline {save}")), soft_wrap=True)
    ctx.exit(0 if passed else 1)


def _minimums(words: tuple[str, ...]) -> dict[str, float]:
    """Least means by measure, in its one spelling. Raises UsageError: for what is none, or two of one measure."""
    from workbench.evaluate.measures import parse_measures

    found: dict[str, float] = {}
    for word in words:
        name, _, text = word.rpartition("=")
        try:
            value = float(text)
            if not name.strip() or not math.isfinite(value):
                raise ValueError
        except ValueError as exc:
            raise UsageError(f"--min {word} is not MEASURE=VALUE", "Write for example --min nDCG@10=0.4") from exc
        (measure,) = parse_measures([name])
        if measure in found:
            raise UsageError(f"--min names {measure} twice", "Give each measure one minimum")
        found[measure] = value
    return found
