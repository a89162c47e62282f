"""`workbench eval`, `check`, `threshold` and `run export`: what plans are worth on judged queries.

`workbench tune`: try many plans on judged queries and take the best one away, with what can be said for it.
"""

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


import dataclasses
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.plan.fields import FUSED, OFF
from workbench.plan.plan import Plan
from workbench.retrieve.request import MODES

if TYPE_CHECKING:
    from workbench.evaluate.distribution import Distribution
    from workbench.evaluate.evaluation import Evaluation
    from workbench.plan.plan import Plan


@click.command(name="eval", cls=options.Writing)
@click.argument("judgments", type=click.Path(path_type=Path))
@options.takes_plans
@click.option(
    "--mode", "-m", "modes", multiple=True, type=click.Choice(MODES), help="A mode of each plan; may be repeated."
)
@click.option(
    "--measure", "measures", multiple=True, help="An ir_measures name; may be repeated. Default: nDCG@10 R@100 RR."
)
@click.option(
    "--against",
    "others",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Another corpus of the same files, chunked or embedded differently: each plan runs there too; may be repeated.",
)
@click.option(
    "--with-run",
    "runs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A TREC run that another program made: it is measured and compared, too; may be repeated.",
)
@options.SPLIT
@click.option("--depth", type=click.IntRange(1, 100_000), help="Candidates from each source, whatever the plan says.")
@options.JUDGES
@click.option("--per-query", is_flag=True, help="Show every query's figures.")
@click.option("--run", "run_file", type=options.OutputFile(), help="Write the first plan's run in TREC form.")
@options.NO_KEYWORDS
@options.FILTER
@options.DROP_IDENTICAL
@options.takes_asker
@options.JSON
def evaluate(
    judgments: Path,
    plans: options.ManyPlans,
    modes: tuple[str, ...],
    measures: tuple[str, ...],
    others: tuple[Path, ...],
    runs: tuple[Path, ...],
    split: str | None,
    depth: int | None,
    judges: tuple[str, ...],
    per_query: bool,
    run_file: Path | None,
    no_keywords: bool,
    filters: str | None,
    drop_identical_ids: bool | None,
    asker: options.Asker,
    as_json: bool,
) -> None:
    """Measure plans on JUDGMENTS: a BEIR folder, TREC qrels, CSV, JSONL, or a query set by its name.

    The first plan is the baseline that the others are compared with, by the first measure. Judgments are of documents and of
    places in them, so they measure corpora of the same files with other chunks or encoders too: --against compares those.
    A run names documents: with --with-run judged passages count as their documents for the plans, too.
    """
    from workbench.evaluate.run import load_run

    given_runs = [load_run(path) for path in runs]
    loaded = options.read_judgments(judgments, split, asker, judges).dropping(drop_identical_ids)
    if no_keywords:
        loaded = loaded.without_keywords()
    if given_runs:
        loaded = loaded.by_document()
    chosen = measures or ("nDCG@10", "R@100", "RR")
    made: list[Evaluation] = []
    askers = (asker, *(replace(asker, corpus=other) for other in others))
    with output.progress_bar(enabled=not as_json) as progress:
        for one in askers:
            with one.open() as opened:
                for given in plans.read():
                    plan = _deepened(given, depth, modes)
                    for mode in modes or ("hybrid",):
                        done = opened.evaluate(loaded, plan, chosen, mode=mode, filters=filters, progress=progress)
                        made.append(done.named(f"{opened.path}: {done.name}") if others else done)
    if given_runs:
        with asker.open() as opened:
            made += [opened.evaluate_run(run, loaded, chosen) for run in given_runs]
    if run_file is not None:
        made[0].run.save_trec(run_file)
    if as_json:
        output.print_json([_evaluation_dict(e, made[0], per_query) for e in made])
        return
    _print_evaluations(made, per_query)


def _deepened(plan: Plan, depth: int | None, modes: tuple[str, ...]) -> Plan:
    if depth is None:
        return plan
    asked = {*plan.sources, *modes} - {"hybrid"}
    return plan.replace({f"depth.{source}": depth for source in sorted(asked)})


def _evaluation_dict(evaluation: Evaluation, base: Evaluation, per_query: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "plan": evaluation.name,
        "queries": len(evaluation.query_ids),
        "measures": evaluation.frame().to_dicts(),
        "judged@10": _known(evaluation.coverage.judged),
        "unjudged@10": _known(evaluation.coverage.unjudged),
        "latency_ms": {"p50": _known(evaluation.latency.p50), "p95": _known(evaluation.latency.p95)},
        "warnings": list(evaluation.warnings),
    }
    if evaluation is not base:
        data["against"] = {"plan": base.name, "verdict": base.compare(evaluation).verdict}
    if per_query:
        data["per_query"] = evaluation.per_query().to_dicts()
    return data


def _known(value: float) -> float | None:
    """The figure, None where there is nothing to take it of: JSON knows no NaN."""
    return None if math.isnan(value) else value


def _print_evaluations(made: list[Evaluation], per_query: bool) -> None:
    import polars as pl

    out = output.console()
    rows = []
    for evaluation in made:
        row: dict[str, Any] = {"plan": evaluation.name}
        for line in evaluation.frame().iter_rows(named=True):
            interval = "" if line["low"] is None else f" ({line['low']:.3f} to {line['high']:.3f})"
            row[line["measure"]] = f"{line['mean']:.4f}{interval}"
        row["judged@10"] = "-" if math.isnan(evaluation.coverage.judged) else f"{evaluation.coverage.judged:.0%}"
        row["p50 ms"] = f"{evaluation.latency.p50:.1f}" if evaluation.run.latencies_ms else "-"
        rows.append(row)
    title = f"{len(made[0].query_ids)} judged queries (mean and 95 % interval; nDCG with linear gain)"
    out.print(output.frame_table(pl.DataFrame(rows), title))
    for evaluation in made[1:]:
        out.print(Text(made[0].compare(evaluation).verdict))
    output.warn(dict.fromkeys(w for e in made for w in e.warnings))
    if per_query:
        for evaluation in made:
            out.print(output.frame_table(evaluation.per_query(), evaluation.name, digits=3))


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
@options.SPLIT
@options.JUDGES
@options.MODE
@options.FILTER
@options.DROP_IDENTICAL
@options.takes_asker
@options.JSON
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
    loaded = options.read_judgments(judgments, split, asker, judges).dropping(drop_identical_ids)
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
        output.print_json(
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
            out.print(Text(f"{difference.measure}: {difference.brief}"), soft_wrap=True)
        for fell in found.fallen[:_SHOWN]:
            line = f"  fell {fell.before:.3f} to {fell.after:.3f}: {fell.query_id} {fell.query}"
            out.print(Text(line, style="dim"), soft_wrap=True)
        if len(found.fallen) > _SHOWN:
            out.print(Text(f"  and {len(found.fallen) - _SHOWN} more", style="dim"))
        for failure in found.failures:
            out.print(Text("failed: " + failure, style="red"), soft_wrap=True)
        if found.passed:
            out.print("passed")
    output.warn(warnings)
    if save is not None:
        out.print(Text(f"Saved to {save}; check against it with --baseline {save}"), soft_wrap=True)
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
@options.SPLIT
@options.FILTER
@options.DROP_IDENTICAL
@options.takes_asker
@options.JSON
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
    loaded = options.read_judgments(judgments, split, asker).dropping(drop_identical_ids)
    with asker.open() as opened, output.progress_bar(enabled=not as_json) as progress:
        pool = Pool(opened.engine, loaded, principal=asker.principal, filters=filters)
        made = distributions(pool, asked, progress=progress)
    rows = [
        _threshold_row(made[name], percent, asked)
        for name in made if not sources or name in sources
        for percent in losses or (0.0, 1.0, 5.0, 10.0)
    ]  # fmt: skip
    if as_json:
        output.print_json(rows)
        return
    _print_thresholds(rows, len(loaded.query_ids))
    output.warn((*pool.warnings, *pool.judgments.notes))


def _threshold_row(found: Distribution, percent: float, plan: Plan) -> dict[str, Any]:
    at = found.advised(percent / 100)
    lost, dropped = found.dropped(at)
    field = plan.threshold_to_set(found.source)
    return {
        "source": found.source, "of": found.axis, "relevant": len(found.relevant), "not_found": found.missed,
        "lose": percent, "threshold": None if at != at else at,
        "loses": None if lost != lost else round(100 * lost, 2), "drops": None if dropped != dropped else round(100 * dropped, 2),
        "now": plan.threshold(found.source) if field else None, "field": field or None,
    }  # fmt: skip


def _print_thresholds(rows: list[dict[str, Any]], queries: int) -> None:
    import polars as pl

    shown = output.console()
    frame = pl.DataFrame(
        [{**{n: v for n, v in r.items() if n not in {"of", "now", "field"}},
          "threshold": f"{r['threshold']:g}" if r["threshold"] is not None else ""} for r in rows]
    ).rename(
        {"lose": "max recall loss %", "loses": "recall loss %", "drops": "non-relevant removed %", "not_found": "not found"}
    )  # fmt: skip
    shown.print(output.frame_table(frame, f"Thresholds on {queries} judged queries", digits=1))
    axes = dict.fromkeys(f"{r['source']}: {r['of']}" for r in rows)
    shown.print(Text("; ".join(axes), style="dim"), soft_wrap=True)
    fields = {r["source"]: (r["now"], r["field"]) for r in rows if r["field"] and r["threshold"] is not None}
    for source, (now, field) in fields.items():
        have = (
            f"is not cut: take one with --set {field}=VALUE"
            if now == OFF
            else f"is cut at {now:g}: take another with --set {field}=VALUE"
        )
        shown.print(Text(f"{source} {have}."), soft_wrap=True)


@click.group(name="run")
def run() -> None:
    """Runs in the TREC form: the ranked answers of a plan to many queries."""


@run.command(name="export", cls=options.Writing)
@click.argument("queries")
@click.argument("target", type=options.OutputFile())
@options.takes_plan
@options.MODE
@click.option("--depth", default=1000, show_default=True, type=click.IntRange(1, 100_000), help="Documents a query.")
@click.option("--name", help="The run's name; default: the plan's text.")
@options.SPLIT
@options.FILTER
@options.DROP_IDENTICAL
@options.takes_asker
@options.JSON
def export(
    queries: str,
    target: Path,
    plan: options.OnePlan,
    mode: str,
    depth: int,
    name: str | None,
    split: str | None,
    filters: str | None,
    drop_identical_ids: bool | None,
    asker: options.Asker,
    as_json: bool,
) -> None:
    """Ask QUERIES under a plan and write the documents found to TARGET, as a TREC run.

    QUERIES is a query set, or a file or folder of queries or judgments. Each source goes as deep as --depth. Documents have
    the names that `workbench judge export SET FILE --format trec` gives them.
    """
    from workbench.evaluate.evaluation import run_plan
    from workbench.evaluate.run import as_indexed
    from workbench.judgments.judging import own_ids

    chosen = plan.read()
    deep = chosen.replace({f"depth.{source}": max(depth, chosen.depth(source)) for source in chosen.sources})
    with asker.open() as opened, output.progress_bar(enabled=not as_json) as progress:
        records = opened.engine.records
        asked = options.read_queries(opened, queries, split).dropping(drop_identical_ids)
        asked = as_indexed(asked, records, records.scope(asker.principal, filters, ()))
        made = run_plan(
            lambda topic: opened.search(
                topic.text, topic.keywords, mode=mode, plan=deep, filters=filters, bypass_cache=True
            ),
            asked, depth, name=name or _run_name(chosen, mode), progress=progress,
        )  # fmt: skip
        known = asked.document_keys
        paths = sorted({k for keys in made.rankings.values() for k in keys if k not in known})
        names = own_ids(opened.judging, paths)
    rankings = {i: tuple(names.get(k, k) for k in keys) for i, keys in made.rankings.items()}
    replace(made, rankings=rankings).save_trec(target)
    output.warn((*made.warnings, *asked.notes), err=True)
    count = sum(map(len, rankings.values()))
    output.show(
        as_json,
        {"queries": len(rankings), "documents": count, "target": str(target), "name": made.name},
        f"{count:,} documents for {len(rankings):,} queries written to {target}",
    )


def _run_name(plan: Plan, mode: str) -> str:
    return str(plan) if mode == "hybrid" else f"{mode}: {plan}"


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
