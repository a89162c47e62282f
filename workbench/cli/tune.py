"""`workbench tune`: try many plans on judged queries and take the best one away, with what can be said for it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich import box
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from workbench.cli import options, output
from workbench.errors import UsageError

if TYPE_CHECKING:
    from workbench.evaluate.sweep import Sweep
    from workbench.plan.plan import Plan


@click.command(cls=options.Writing)
@click.argument("judgments")
@click.option(
    "--grid", "-g", "grid", multiple=True, metavar="FIELD=VALUES",
    help="A plan field and its values: fusion.k=1,10,60 or fusion.alpha=0..1:0.1; may be repeated. Default: method, k, alpha.",
)  # fmt: skip
@options.takes_plan
@click.option("--baseline", help="The plan to compare with, in its text form (default: the plan that is varied).")
@click.option("--measure", default="nDCG@10", show_default=True, help="The measure that chooses.")
@click.option("--also", "also", multiple=True, help="Another measure to compute; may be repeated.")
@click.option("--folds", type=click.IntRange(0, 100), default=5, show_default=True, help="Folds of queries; 0: none.")
@click.option(
    "--search", type=click.Choice(("grid", "random")), default="grid", show_default=True,
    help="Every combination, or some at random.",
)  # fmt: skip
@click.option(
    "--trials",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="Plans that a random search tries.",
)
@options.SPLIT
@options.JUDGES
@click.option("--test", "test", help="Other judgments to report on, after tuning.")
@click.option("--test-split", help="Report on this split of the same folder.")
@options.MODE
@options.FILTER
@options.NO_KEYWORDS
@click.option(
    "--out", "-o", "out", type=options.OutputFile(), help="Write the best plan here: .yaml, or Python as .py."
)
@click.option(
    "--curve", "curves", multiple=True, metavar="FIELD", help="Show the figure over this field; may be repeated."
)
@click.option("--top", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many plans to list.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of folds, draws, intervals and tests.",
)
@options.DROP_IDENTICAL
@options.takes_asker
@options.JSON
@click.pass_context
def tune(
    ctx: click.Context,
    judgments: str,
    grid: tuple[str, ...],
    plan: options.OnePlan,
    baseline: str | None,
    measure: str,
    also: tuple[str, ...],
    folds: int,
    search: str,
    trials: int,
    split: str | None,
    judges: tuple[str, ...],
    test: str | None,
    test_split: str | None,
    mode: str,
    filters: str | None,
    drop_identical_ids: bool | None,
    no_keywords: bool,
    out: Path | None,
    curves: tuple[str, ...],
    top: int,
    seed: int,
    asker: options.Asker,
    as_json: bool,
) -> None:
    """Try plans on JUDGMENTS (a BEIR folder, TREC qrels, CSV, JSONL, or a query set by its name).

    The reported figure is held out: each fold of queries is measured with the plan that the other folds chose. Ctrl-C shows
    what is done.
    """
    from workbench.evaluate.grid import DEFAULT_GRID, read_space

    space = read_space(plan.read(), grid or DEFAULT_GRID)
    for field in curves:
        if field not in space.fields:
            raise UsageError(f"--curve {field}: it does not vary", "These do: " + ", ".join(space.fields))
    loaded = options.read_judgments(judgments, split, asker, judges)
    other = None
    if test or test_split:
        of_file = test is not None and Path(test).exists()
        other = options.read_judgments(test or judgments, test_split, asker, () if of_file else judges)
    if no_keywords:
        loaded, other = loaded.without_keywords(), other and other.without_keywords()
    with asker.open() as opened, output.progress_bar(enabled=not as_json) as progress:
        try:
            made = opened.sweep(
                loaded, space, measure, folds, baseline=baseline, measures=also, search=search, trials=trials, test=other,
                mode=mode, filters=filters, drop_identical_ids=drop_identical_ids, progress=progress, seed=seed,
            )  # fmt: skip
        except KeyboardInterrupt:
            output.say("workbench: Stopped before two queries were done.", err=True)
            ctx.exit(130)
    if out is not None:
        out.write_text(made.to_python() if out.suffix == ".py" else made.to_yaml(), encoding="utf-8")
    if as_json:
        data = made.to_dict(top)
        if curves:
            data["curves"] = {field: made.sensitivity(field).to_dicts() for field in curves}
        output.print_json(data)
        return
    _print(made, top, curves, out)


def _print(made: Sweep, top: int, curves: tuple[str, ...], out: Path | None) -> None:
    shown = output.console()
    table = _table(made, top)
    if Measurement.get(shown, shown.options.update(width=1_000), table).maximum > shown.width:  # no word is cut off
        table = _table(made, top, apart=False)
    shown.print(table)
    for field in curves:
        shown.print(
            output.frame_table(made.sensitivity(field), f"{made.measure} over {field}, the rest as in the best plan")
        )
    for reason, count in made.skipped.items():
        shown.print(Text(f"left out {count:,}: {reason}", style="dim"), soft_wrap=True)
    for measure in made.measures[1:]:
        first, best = made.means(measure)[[0, made.best_index]]
        shown.print(f"{measure}: {best:.4f}, baseline {first:.4f}")
    shown.print(
        f"Best for each query by itself (oracle): {made.oracle:.3f}; best plan on the queries that chose it: "
        f"{made.means()[made.best_index]:.3f}"
    )
    if made.agreement:
        shown.print(f"{made.agreement}.")
    shown.print(Text(made.verdict, style="bold"), soft_wrap=True)
    shown.print(Text(f"Best plan: {made.best}"), soft_wrap=True)
    if out is not None:
        use = "import it" if out.suffix == ".py" else f"workbench search QUERY --plan-file {shlex.quote(str(out))}"
        shown.print(Text(f"Written to {out}; {use}"), soft_wrap=True)
    output.warn(made.warnings)


def _table(made: Sweep, top: int, apart: bool = True) -> Table:
    """The plans, best first, and how each does against the baseline; `apart`: a column for each field that varied, else one
    with a line for each field that a plan changes.
    """
    title = (
        f"{len(made.plans):,} plans of {made.combinations:,} combinations on {len(made.query_ids)} judged queries, "
        f"{made.seconds:.1f} s; {made.measure} on the queries that chose, best first"
    )
    table = Table(
        title=title,
        title_justify="left",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    fields = [field for field in made.space.fields if apart and len(made.space.listed(field)) > 1]
    for name in _short(fields) or ["changes"]:
        table.add_column(name, no_wrap=True)
    for name in ("mean", "diff.", "w/l/t", "p (Holm)"):
        table.add_column(name, justify="right", no_wrap=True)
    plans = {str(plan): (n, plan) for n, plan in enumerate(made.plans)}
    for row in made.frame(top).iter_rows(named=True):
        n, plan = plans[row["plan"]]
        named = [_value(plan, field) for field in fields] or [made.changes(n).replace(" ", "\n")]
        p = "baseline" if row["p_holm"] is None else f"{row['p_holm']:.4f}"
        counts = f"{row['wins']}/{row['losses']}/{row['ties']}"
        figures = (f"{row['mean']:.4f}", f"{row['difference']:+.4f}", counts, p)
        table.add_row(*(output.plain(cell) for cell in (*named, *figures)))
    return table


def _short(fields: list[str]) -> list[str]:
    """Names for the heads of columns: without the group where that is still clear, else one part below the other."""
    ends = [field.partition(".")[2] or field for field in fields]
    return [
        (end if ends.count(end) == 1 else field).replace(".", ".\n") for end, field in zip(ends, fields, strict=True)
    ]


def _value(plan: Plan, field: str) -> str:
    """A plan's value of a field that was varied; a dash where it does nothing under the plan."""
    from workbench.evaluate.grid import PRESET, spelled
    from workbench.plan import fields as plan_fields
    from workbench.plan.plan import without_effect

    if field == PRESET:
        return plan.preset
    values = {plan_fields.show(plan[name]) for name in spelled(plan, field) if not without_effect(plan, name)}
    return "/".join(sorted(values)) or "-"
