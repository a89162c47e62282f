"""`workbench eval`, `check`, `threshold`, `tune` and `run export`: what plans are worth on judged queries."""

from __future__ import annotations

import math
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from workbench.cli import options, output
from workbench.cli.options import Given, OutputFile, Writing, argument, bounded, flag, option, several, takes
from workbench.errors import CorpusError, UsageError
from workbench.plan.fields import OFF
from workbench.plan.plan import Plan
from workbench.retrieve.request import MODES

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.evaluate.distribution import Distribution
    from workbench.evaluate.evaluation import Evaluation
    from workbench.evaluate.leaderboard import Leaderboard
    from workbench.evaluate.sweep import Sweep

_REPORT = option(
    "--html", "report", type=OutputFile(), help="Write a report that opens in any browser, with no server."
)
_JUDGED = (options.SPLIT, options.JUDGES, options.FILTER, options.DROP_IDENTICAL, *options.ASKER)


@click.command(name="eval", cls=Writing)
@takes(
    argument("judgments", type=options.ANY_PATH),
    *options.PLANS,
    several("--mode", "-m", "modes", type=click.Choice(MODES), help="A mode of each plan; may be repeated."),
    several("--measure", "measures", help="An ir_measures name; may be repeated. Default: nDCG@10 R@100 RR."),
    several(
        "--against",
        "others",
        type=options.ANY_PATH,
        help="Another corpus of the same files, chunked or embedded differently: each plan runs there too; may be repeated.",
    ),
    several(
        "--with-run",
        "runs",
        type=options.ANY_PATH,
        help="A TREC run that another program made: it is measured and compared, too; may be repeated.",
    ),
    option("--depth", type=click.IntRange(1, 100_000), help="Candidates from each source, whatever the plan says."),
    flag("--per-query", help="Show every query's figures."),
    option("--run", "run_file", type=OutputFile(), help="Write the first plan's run in TREC form."),
    _REPORT,
    flag(
        "--keep",
        help="Keep the figures as points of measures over time (`workbench check JUDGMENTS --history`, the Compare page).",
    ),
    options.NO_KEYWORDS,
    *_JUDGED,
)
def evaluate(o: Given) -> None:
    """Measure plans on JUDGMENTS: a BEIR folder, TREC qrels, CSV, JSONL, or a query set by its name.

    The first plan is the baseline that the others are compared with, by the first measure; p is corrected for their number
    (Holm). Judgments are of documents and of
    places in them, so they measure corpora of the same files with other chunks or encoders too: --against compares those.
    A run names documents: with --with-run judged passages count as their documents for the plans, too.
    """
    from workbench.evaluate.leaderboard import Leaderboard
    from workbench.evaluate.run import load_run

    if o.others and (o.report or o.keep):
        raise UsageError(
            "--html and --keep are of one corpus", "Leave out --against, or evaluate each corpus by itself"
        )
    runs = [load_run(path) for path in o.runs]
    loaded = o.judged(o.judgments, o.split, o.judges)
    loaded = loaded.by_document() if runs else loaded
    measures = o.measures or ("nDCG@10", "R@100", "RR")
    made: list[Evaluation] = []
    with output.progress_bar(enabled=not o.as_json) as progress:
        for corpus in (None, *o.others):
            with o.open(corpus) as opened:
                for given in o.plans("default"):
                    sources = {*given.sources, *o.modes} - {"hybrid"} if o.depth else ()
                    plan = given.replace({f"depth.{source}": o.depth for source in sorted(sources)})
                    for mode in o.modes or ("hybrid",):
                        done = opened.evaluate(loaded, plan, measures, mode=mode, filters=o.filters, progress=progress)
                        made.append(replace(done, name=f"{opened.path}: {done.name}") if o.others else done)
                if corpus is None:
                    ranked = [opened.evaluate_run(run, loaded, measures) for run in runs]
                if o.keep:
                    opened.keep_evaluations(made, filters=o.filters)
                if o.report:
                    _write_report(opened, [*made, *ranked], o.report)
    made += ranked
    if o.run_file is not None:
        made[0].run.save_trec(o.run_file)
    board = Leaderboard(tuple(made))
    if o.as_json:
        output.print_json([_evaluation_dict(board, n, o.per_query) for n in range(len(made))])
    else:
        _print_board(board, o.per_query)


def _write_report(opened: Corpus, items: Any, target: Path) -> None:
    """Write evaluations or a sweep as one page."""
    from workbench.snapshot import Snapshot

    target.write_text(Snapshot.of(items, corpus=opened).html(), encoding="utf-8", newline="\n")


def _evaluation_dict(board: Leaderboard, n: int, per_query: bool) -> dict[str, Any]:
    from workbench.evaluate.statistics import finite

    evaluation, difference = board.evaluations[n], board.differences()[n]
    data: dict[str, Any] = {
        "plan": evaluation.name,
        "queries": len(evaluation.query_ids),
        "measures": evaluation.frame().to_dicts(),
        "judged@10": finite(evaluation.coverage.judged),
        "unjudged@10": finite(evaluation.coverage.unjudged),
        "latency_ms": {"p50": finite(evaluation.latency.p50), "p95": finite(evaluation.latency.p95)},
        "warnings": list(evaluation.warnings),
    }
    if difference is not None:
        ends = {name: finite(getattr(difference, name)) for name in ("difference", "low", "high", "p")}
        data["against"] = {"plan": board.base.name, "verdict": difference.verdict, **ends}
    if per_query:
        data["per_query"] = evaluation.per_query().to_dicts()
    return data


def _print_board(board: Leaderboard, per_query: bool) -> None:
    rows = []
    for row in board.frame().iter_rows(named=True):
        shown = [row["plan"]]
        for measure in board.measures:
            low, high = (row[f"{measure} {end}"] for end in ("low", "high"))
            shown.append(f"{row[measure]:.4f}" + ("" if low is None else f" ({low:.3f} to {high:.3f})"))
        shown.append("-" if row["judged@10"] is None else f"{row['judged@10']:.0%}")
        rows.append([*shown, "-" if row["p50_ms"] is None else f"{row['p50_ms']:.1f}"])
    title = f"{len(board.base.query_ids)} judged queries (mean and 95 % interval; nDCG with linear gain), the best plan first"
    out = output.console()
    out.print(output.table(("plan", *board.measures, "judged@10", "p50 ms"), rows, title))
    others = [d for d in board.differences() if d is not None]
    for difference in others:
        out.print(Text(difference.verdict))
    if len(others) > 1:
        output.line(f"Each p is corrected for {len(others)} comparisons (Holm).", "dim")
    output.warn(dict.fromkeys(w for e in board.evaluations for w in e.warnings))
    for evaluation in board.evaluations if per_query else ():
        output.print_frame(evaluation.per_query(), evaluation.name, digits=3)


_SHOWN = 10


@click.command(cls=Writing)
@takes(
    argument("judgments"),
    *options.PLAN,
    option("--baseline", type=options.ANY_PATH, help="Figures saved by --save: a significant drop fails."),
    several("--min", "minimums", metavar="MEASURE=VALUE", help="Least mean, such as nDCG@10=0.4; may be repeated."),
    option(
        "--save",
        type=OutputFile(replaces="baseline"),
        help="Write the figures of now, for later checks; the baseline itself is replaced only where the check passes.",
    ),
    several("--measure", "measures", help="An ir_measures name; may be repeated. Default: nDCG@10 R@100."),
    flag("--history", help="Show the measures of the checks and kept evaluations of JUDGMENTS so far, too."),
    bounded("--tolerance", type=click.FloatRange(0, 1), default=0.0, help="A drop of at most this much passes."),
    options.MODE,
    *_JUDGED,
)
def check(o: Given) -> None:
    """Measure a plan on JUDGMENTS and exit with 1 when it is significantly worse than a baseline, or below a minimum.

    The figures are kept in the corpus, so that the Compare page and --history show them over time.
    """
    from workbench.evaluate.guarding import Guard, read_baseline, save_baseline
    from workbench.evaluate.guarding import check as compare
    from workbench.evaluate.statistics import finite

    plan, least = o.plan(), _minimums(o.minimums)
    loaded = o.judged(o.judgments, o.split, o.judges)
    before = None if o.baseline is None else read_baseline(o.baseline)
    if before is None and not least and o.save is None and not o.history:
        raise UsageError(
            "There is nothing to check against", "Give --baseline FILE, --min nDCG@10=0.4, --save FILE or --history"
        )
    measures = [*(before.measures if before else ()), *(o.measures or ("nDCG@10", "R@100")), *least]
    with o.open() as opened, output.progress_bar(enabled=not o.as_json) as progress:
        now = opened.evaluate(loaded, plan, measures, mode=o.mode, filters=o.filters, progress=progress)
        kept = []
        try:
            opened.keep_evaluations([now], "check", o.filters)
        except CorpusError as exc:
            kept = [f"The figures were not kept over time: {exc}"]
        past = opened.measured() if o.history else None
    found = compare(now, before, least, tolerance=o.tolerance) if before or least else Guard()
    warnings = [*now.warnings, *found.notes, *kept]
    if past is not None:
        past = past.filter(judgments=now.judgments.name)
        past = past.with_columns(past["at"].dt.to_string("%Y-%m-%d %H:%M"))
    save = o.save
    # A failed run must not become what later ones are measured against.
    if save and not found.passed and o.baseline and save.exists() and save.samefile(o.baseline):
        save = None
        warnings.append(f"{o.baseline} was not replaced, because the check failed")
    if save is not None:
        save_baseline(now, save)
    if o.as_json:
        output.print_json(
            {
                "plan": now.name,
                "passed": found.passed,
                "figures": {m: finite(now.mean(m)) for m in now.measures},
                "failures": list(found.failures),
                "verdicts": [d.verdict for d in found.differences],
                "fallen": [asdict(f) for f in found.fallen],
                "not_compared": list(found.left_out),
                "saved": None if save is None else str(save),
                "warnings": warnings,
                **({} if past is None else {"history": past.to_dicts()}),
            }
        )
        raise SystemExit(0 if found.passed else 1)
    output.console().print(", ".join(f"{m} {now.mean(m):.4f}" for m in now.measures))
    for difference in found.differences:
        output.line(f"{difference.measure}: {difference.brief}")
    for fell in found.fallen[:_SHOWN]:
        output.line(f"  fell {fell.before:.3f} to {fell.after:.3f}: {fell.query_id} {fell.query}", "dim")
    if len(found.fallen) > _SHOWN:
        output.line(f"  and {len(found.fallen) - _SHOWN} more", "dim")
    for failure in found.failures:
        output.line("failed: " + failure, "red")
    if (before or least) and found.passed:
        output.line("passed")
    if past is not None:
        shown = past.select("at", "generation", "plan", "measure", "mean", "low", "high", "kind")
        output.print_frame(shown, f"{now.judgments.name} over time (UTC)")
    output.warn(warnings)
    if save is not None:
        output.line(f"Saved to {save}; check against it with --baseline {save}")
    raise SystemExit(0 if found.passed else 1)


def _minimums(words: tuple[str, ...]) -> dict[str, float]:
    """Least means by measure, in its one spelling. Raises UsageError: for what is none, or two of one measure."""
    from workbench.evaluate.measures import parse_measures

    found: dict[str, float] = {}
    for word in words:
        name, _, text = word.rpartition("=")
        try:
            value = float(text) if name.strip() else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise UsageError(f"--min {word} is not MEASURE=VALUE", "Write for example --min nDCG@10=0.4")
        (measure,) = parse_measures([name])
        if measure in found:
            raise UsageError(f"--min names {measure} twice", "Give each measure one minimum")
        found[measure] = value
    return found


@click.command()
@takes(
    argument("judgments"),
    *options.PLAN,
    several(
        "--lose",
        "losses",
        type=click.FloatRange(0, 100, max_open=True),
        metavar="PERCENT",
        help="The most of the relevant that may be lost, in percent; may be repeated. Default: 0, 1, 5, 10.",
    ),
    several("--source", "sources", help="keyword, vector, vector:NAME or fused; may be repeated. Default: all."),
    options.SPLIT,
    options.FILTER,
    options.DROP_IDENTICAL,
    *options.ASKER,
)
def threshold(o: Given) -> None:
    """Find the threshold that loses at most so many of the relevant results in JUDGMENTS, and what it drops of the others.

    What was judged counts once a query, at its best candidate. A plan cuts a vector source at a distance (vector.threshold, or
    of one of several threshold.SOURCE), keyword below a BM25 score (threshold.keyword) and the fused list below a fused score
    (fusion.threshold). A source is measured without its threshold, the fused list with those of the sources. Grep has no
    threshold: its score is shown to compare.
    """
    from workbench.evaluate.distribution import distributions
    from workbench.evaluate.pool import Pool

    plan = o.plan()
    loaded = o.judged(o.judgments, o.split)
    with o.open() as opened, output.progress_bar(enabled=not o.as_json) as progress:
        pool = Pool(opened.engine, loaded, principal=o.principal, filters=o.filters)
        made = distributions(pool, plan, o.sources, progress=progress)
    losses = o.losses or (0.0, 1.0, 5.0, 10.0)
    rows = [_threshold_row(made[s], lose, plan) for s in made for lose in losses]
    if o.as_json:
        output.print_json(rows)
    else:
        _print_thresholds(rows, len(loaded.query_ids))
        output.warn((*pool.warnings, *pool.judgments.notes))


def _threshold_row(found: Distribution, percent: float, plan: Plan) -> dict[str, Any]:
    from workbench.evaluate.statistics import finite

    at = found.advised(percent / 100)
    lost, dropped = (finite(round(100 * share, 2)) for share in found.dropped(at))
    field = plan.threshold_to_set(found.source)
    return {
        "source": found.source,
        "of": found.axis,
        "relevant": len(found.relevant),
        "not_found": found.missed,
        "lose": percent,
        "threshold": finite(at),
        "loses": lost,
        "drops": dropped,
        "now": plan.threshold(found.source) if field else None,
        "field": field or None,
    }


def _print_thresholds(rows: list[dict[str, Any]], queries: int) -> None:
    heads = {
        "source": "source",
        "relevant": "relevant",
        "not_found": "not found",
        "lose": "max recall loss %",
        "threshold": "threshold",
        "loses": "recall loss %",
        "drops": "non-relevant removed %",
    }
    shown = [{**r, "threshold": "" if r["threshold"] is None else f"{r['threshold']:g}"} for r in rows]
    numbers = [head for name, head in heads.items() if name not in ("source", "threshold")]
    cells = [[row[name] for name in heads] for row in shown]
    title = f"Thresholds on {queries} judged queries"
    output.console().print(output.table(tuple(heads.values()), cells, title, right=numbers, digits=1))
    output.line("; ".join(dict.fromkeys(f"{r['source']}: {r['of']}" for r in rows)), "dim")
    fields = {r["source"]: (r["now"], r["field"]) for r in rows if r["field"] and r["threshold"] is not None}
    for source, (now, field) in fields.items():
        have = "is not cut: take one" if now == OFF else f"is cut at {now:g}: take another"
        output.line(f"{source} {have} with --set {field}=VALUE.")


@click.group(name="run")
def run() -> None:
    """Runs in the TREC form: the ranked answers of a plan to many queries."""


@run.command(name="export", cls=Writing)
@takes(
    argument("queries"),
    argument("target", type=OutputFile()),
    *options.PLAN,
    options.MODE,
    bounded("--depth", default=1000, type=click.IntRange(1, 100_000), help="Documents a query."),
    option("--name", help="The run's name; default: the plan's text."),
    options.SPLIT,
    options.FILTER,
    options.DROP_IDENTICAL,
    *options.ASKER,
)
def export(o: Given) -> None:
    """Ask QUERIES under a plan and write the documents found to TARGET, as a TREC run.

    QUERIES is a query set, or a file or folder of queries or judgments. Each source goes as deep as --depth. Documents have
    the names that `workbench judge export SET FILE --format trec` gives them.
    """
    from workbench.evaluate.run import as_indexed, make_run
    from workbench.judgments.judging import own_ids

    plan = o.plan()
    deep = plan.replace({f"depth.{source}": max(o.depth, plan.depth(source)) for source in plan.sources})
    name = o.name or (str(plan) if o.mode == "hybrid" else f"{o.mode}: {plan}")
    with o.open() as opened, output.progress_bar(enabled=not o.as_json) as progress:
        records = opened.engine.records
        asked = options.read_queries(opened, o.queries, o.split).dropping(o.drop_identical_ids)
        asked = as_indexed(asked, records, records.scope(o.principal, o.filters, ()))
        how = {**o.pick("mode", "filters"), "plan": deep, "bypass_cache": True}
        made = make_run(
            lambda topic: opened.search(topic.text, topic.keywords, **how),
            asked,
            name=name,
            depth=o.depth,
            progress=progress,
        )
        known = asked.document_keys
        names = own_ids(opened.judging, sorted({k for keys in made.rankings.values() for k in keys if k not in known}))
    rankings = {i: tuple(names.get(k, k) for k in keys) for i, keys in made.rankings.items()}
    replace(made, rankings=rankings).save_trec(o.target)
    output.warn((*made.warnings, *asked.notes), err=True)
    count = sum(map(len, rankings.values()))
    output.show(
        o.as_json,
        {"queries": len(rankings), "documents": count, "target": str(o.target), "name": made.name},
        f"{count:,} documents for {len(rankings):,} queries written to {o.target}",
    )


# --- tune ---


@click.command(cls=Writing)
@takes(
    argument("judgments"),
    several(
        "--grid",
        "-g",
        "grid",
        metavar="FIELD=VALUES",
        help="A plan field and its values: fusion.k=1,10,60 or fusion.alpha=0..1:0.1; may be repeated. "
        "Default: method, k, alpha.",
    ),
    *options.PLAN,
    option("--baseline", help="The plan to compare with, in its text form (default: the plan that is varied)."),
    bounded("--measure", default="nDCG@10", help="The measure that chooses."),
    several("--also", "also", help="Another measure to compute; may be repeated."),
    bounded("--folds", type=click.IntRange(0, 100), default=5, help="Folds of queries; 0: none."),
    bounded(
        "--search", type=click.Choice(("grid", "random")), default="grid", help="Every combination, or some at random."
    ),
    bounded("--trials", type=click.IntRange(1, 100_000), default=100, help="Plans that a random search tries."),
    option("--test", "test", help="Other judgments to report on, after tuning."),
    option("--test-split", help="Report on this split of the same folder."),
    options.MODE,
    options.NO_KEYWORDS,
    option("--out", "-o", "out", type=OutputFile(), help="Write the best plan here: .yaml, or Python as .py."),
    _REPORT,
    several("--curve", "curves", metavar="FIELD", help="Show the figure over this field; may be repeated."),
    bounded("--top", type=click.IntRange(1, 1000), default=10, help="How many plans to list."),
    bounded("--seed", type=click.IntRange(min=0), default=0, help="Seed of folds, draws, intervals and tests."),
    *_JUDGED,
)
def tune(o: Given) -> None:
    """Try plans on JUDGMENTS (a BEIR folder, TREC qrels, CSV, JSONL, or a query set by its name).

    The reported figure is held out: each fold of queries is measured with the plan that the other folds chose. Ctrl-C shows
    what is done.
    """
    from workbench.evaluate.grid import DEFAULT_GRID, read_space

    space = read_space(o.plan(), o.grid or DEFAULT_GRID)
    for field in o.curves:
        if field not in space.fields:
            raise UsageError(f"--curve {field}: it does not vary", "These do: " + ", ".join(space.fields))
    loaded = o.judged(o.judgments, o.split, o.judges)
    other = None
    if o.test or o.test_split:
        of_file = o.test is not None and Path(o.test).exists()
        other = o.judged(o.test or o.judgments, o.test_split, () if of_file else o.judges)
    with o.open() as opened, output.progress_bar(enabled=not o.as_json) as progress:
        try:
            how = o.pick("baseline", "search", "trials", "mode", "filters", "seed")
            made = opened.sweep(
                loaded, space, o.measure, o.folds, measures=o.also, test=other, progress=progress, **how
            )
        except KeyboardInterrupt:
            output.say("workbench: Stopped before two queries were done.", err=True)
            raise SystemExit(130) from None
        if o.report:
            _write_report(opened, made, o.report)
    if o.out is not None:
        o.out.write_text(made.to_python() if o.out.suffix == ".py" else made.to_yaml(), encoding="utf-8")
    if o.as_json:
        curves = {field: made.sensitivity(field).to_dicts() for field in o.curves}
        output.print_json({**made.to_dict(o.top), **({"curves": curves} if curves else {})})
    else:
        _print_sweep(made, o.top, o.curves, o.out)


def _print_sweep(made: Sweep, top: int, curves: tuple[str, ...], out: Path | None) -> None:
    shown = output.console()
    rows = []
    for row in made.frame(top).iter_rows(named=True):
        p = "baseline" if row["p_holm"] is None else f"{row['p_holm']:.4f}"
        counts = f"{row['wins']}/{row['losses']}/{row['ties']}"
        changes = row["changes"].replace(" ", "\n")  # a line for each field that a plan changes
        rows.append((changes, f"{row['mean']:.4f}", f"{row['difference']:+.4f}", counts, p))
    title = (
        f"{len(made.plans):,} plans of {made.combinations:,} combinations on {len(made.query_ids)} judged queries, "
        f"{made.seconds:.1f} s; {made.measure} on the queries that chose, best first"
    )
    figures = ("mean", "diff.", "w/l/t", "p (Holm)")
    shown.print(output.table(("changes", *figures), rows, title, right=figures))
    for field in curves:
        output.print_frame(made.sensitivity(field), f"{made.measure} over {field}, the rest as in the best plan")
    for reason, count in made.skipped.items():
        output.line(f"left out {count:,}: {reason}", "dim")
    for measure in made.measures[1:]:
        first, best = made.means(measure)[[0, made.best_index]]
        shown.print(f"{measure}: {best:.4f}, baseline {first:.4f}")
    shown.print(
        f"Best for each query by itself (oracle): {made.oracle:.3f}; best plan on the queries that chose it: "
        f"{made.means()[made.best_index]:.3f}"
    )
    if made.agreement:
        shown.print(f"{made.agreement}.")
    output.line(made.verdict, "bold")
    output.line(f"Best plan: {made.best}")
    if out is not None:
        use = "import it" if out.suffix == ".py" else f"workbench search QUERY --plan-file {shlex.quote(str(out))}"
        output.line(f"Written to {out}; {use}")
    output.warn(made.warnings)
