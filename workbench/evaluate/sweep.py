"""Sweep: try many plans on judged queries and say which is better, by how much, on queries that did not choose it.

Candidates are retrieved once a query and fused again for every plan (`scoring`, `refusing`), so a thousand plans take seconds;
figures, ties included, are those that `Corpus.evaluate` gives for each plan alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.errors import PlanError, UsageError
from workbench.evaluate.evaluation import LOW_COVERAGE, Evaluation, score_run
from workbench.evaluate.folds import Choice, deal, nested
from workbench.evaluate.grid import Space, Values
from workbench.evaluate.measures import needed_depth, parse_measures
from workbench.evaluate.pool import Pool
from workbench.evaluate.refusion import ranking_of
from workbench.evaluate.run import Run
from workbench.evaluate.scoring import Stopped, score
from workbench.evaluate.swept import Sweep
from workbench.judgments.qrels import Judgments
from workbench.plan.plan import Plan
from workbench.records import Principal, Progress
from workbench.retrieve.engine import Engine

SEARCHES = ("grid", "random")
FEW_QUERIES = 10

Tell = Callable[[Progress], None]


def sweep(
    engine: Engine,
    judgments: Judgments,
    grid: Mapping[str, Values] | Space,
    measure: str = "nDCG@10",
    folds: int = 5,
    *,
    plan: Plan | str = "default",
    baseline: Plan | str | None = None,
    measures: str | Iterable[str] = (),
    search: str = "grid",
    trials: int = 100,
    test: Judgments | None = None,
    mode: str = "hybrid",
    filters: str | None = None,
    principal: Principal | None = None,
    drop_identical_ids: bool | None = None,
    progress: Tell | None = None,
    stop: Callable[[], bool] | None = None,
    seed: int = 0,
) -> Sweep:
    """Try plans and choose one.

    Args:
        engine: The pinned generation.
        judgments: Queries and graded documents to tune on.
        grid: Field -> values (or a `Range`), as `grid.Space` reads them.
        measure: The measure that chooses.
        folds: Folds of queries for the held-out figure; 0 has none.
        plan: The plan whose fields are varied.
        baseline: The plan that the result is compared with; None is `plan`.
        measures: More measures to compute beside it.
        search: grid (every combination) or random (`trials` of them).
        trials: How many plans a random search tries.
        test: Other judgments: baseline and best plan are measured on them, and that is the reported difference.
        mode, filters, principal: As in `Corpus.search`.
        drop_identical_ids: As in `Corpus.evaluate`.
        progress: Called now and then.
        stop: Asked before each query; True ends the sweep with what is done.
        seed: Seed of folds, draws, intervals and tests.

    Returns:
        The sweep; where it was stopped (also by Ctrl-C) after some queries, of those, and it says so.

    Raises:
        UsageError, PlanError, JudgmentError: What was asked cannot be.
        KeyboardInterrupt: Ctrl-C came before enough was done to say anything.
    """
    started = time.monotonic()
    if search not in SEARCHES:
        raise UsageError(f"There is no search called {search!r}", "The searches are " + ", ".join(SEARCHES))
    names = parse_measures([measure, *([measures] if isinstance(measures, str) and measures else measures)])
    space = grid if isinstance(grid, Space) else Space(plan, grid)
    first = Plan.of(baseline) if baseline is not None else space.base
    count = len(judgments)
    folds = 0 if folds < 2 else folds
    fold_of = deal(count, folds, seed) if folds else None
    judgments, test = judgments.dropping(drop_identical_ids), test and test.dropping(drop_identical_ids)
    pool = Pool(engine, judgments, principal=principal, mode=mode, filters=filters)
    depth = needed_depth(names)
    plans, skipped, combinations = _plans(space, first, search, trials, seed)
    values = np.full((len(plans), count, len(names)), np.nan)
    complete = True
    try:
        score(pool, plans, names, depth, values, tell=progress, stop=stop)
    except Stopped:
        complete = False
    return _sweep(
        pool, space, plans, names, values, fold_of, skipped, combinations, complete,
        test=test, search=search, seed=seed, depth=depth, started=started,
    )  # fmt: skip


def _plans(
    space: Space, first: Plan, search: str, trials: int, seed: int
) -> tuple[tuple[Plan, ...], dict[str, int], int]:
    """The baseline and every different plan, in order; what is no plan, by reason; and the number of combinations."""
    made: dict[Plan, None] = {first: None}
    skipped: dict[str, int] = {}
    combinations = 0
    for combination in space.combinations() if search == "grid" else space.drawn(trials, seed):
        combinations += 1
        try:
            made.setdefault(space.plan(combination))
        except PlanError as exc:
            skipped[exc.message] = skipped.get(exc.message, 0) + 1
    if len(made) == 1 and skipped:
        raise PlanError(f"No combination is a plan: {next(iter(skipped))}", "Change the fields and values")
    return tuple(made), skipped, combinations


def _sweep(
    pool: Pool,
    space: Space,
    plans: tuple[Plan, ...],
    names: tuple[str, ...],
    values: Any,
    fold_of: Any,
    skipped: Mapping[str, int],
    combinations: int,
    complete: bool,
    *,
    test: Judgments | None,
    search: str,
    seed: int,
    depth: int,
    started: float,
) -> Sweep:
    judgments = pool.judgments
    done = np.flatnonzero(~np.isnan(values).any(axis=(0, 2)))
    warnings = [*pool.warnings, *space.idle()]
    if len(done) < len(pool):
        if len(done) < 2:
            raise KeyboardInterrupt
        warnings.append(f"Stopped: figures are over {len(done)} of {len(pool)} queries")
        judgments = judgments.subset([judgments.query_ids[n] for n in done.tolist()])
        values = values[:, done]
        fold_of = None if fold_of is None else fold_of[done]
        if fold_of is not None and len(np.unique(fold_of)) < int(fold_of.max()) + 1:
            fold_of = None
        pool = Pool(pool.engine, judgments, principal=pool.principal, mode=pool.mode, filters=pool.filters)
    choice: Choice | None = None if fold_of is None else nested(values[:, :, 0], fold_of)
    if choice is None and test is None:
        warnings.append("Nothing was held out: the figure is on the queries that chose the plan, and flatters it")
    if len(judgments) < FEW_QUERIES:
        warnings.append(f"{len(judgments)} queries are too few to tell plans apart")
    made = Sweep(
        space, plans, names, judgments.query_ids, values, choice, _NOTHING, _NOTHING, search=search,
        combinations=combinations, skipped=skipped, complete=complete, seed=seed,
    )  # fmt: skip
    before, after = _evaluations(pool, [made.baseline, made.best], names, depth, seed)
    if test is not None:
        other = Pool(pool.engine, test, principal=pool.principal, mode=pool.mode, filters=pool.filters)
        test_before, test_after = _evaluations(other, [made.baseline, made.best], names, depth, seed)
        made = replace(made, test_before=test_before, test_after=test_after)
        warnings += other.warnings
    if after.coverage.judged < LOW_COVERAGE:
        warnings.append(
            f"Only {after.coverage.judged:.0%} of the best plan's first ten are judged (baseline: "
            f"{before.coverage.judged:.0%}); a plan that finds what nobody judged looks worse than it is: judge more"
        )
    warnings += [w for w in judgments.notes if w not in warnings]
    return replace(made, before=before, after=after, warnings=tuple(warnings), seconds=time.monotonic() - started)


def _evaluations(
    pool: Pool, plans: list[Plan], names: tuple[str, ...], depth: int, seed: int
) -> tuple[Evaluation, Evaluation]:
    """Whole rankings of two plans, for coverage, exports and comparisons."""
    needs, keys = pool.needs(plans)
    rankings: list[dict[str, tuple[str, ...]]] = [{}, {}]
    for topic in pool.topics:
        asked = {key: pool.ask(topic, need, {}) for key, need in needs.items()}
        for run, plan, key in zip(rankings, plans, keys, strict=True):
            pooled = asked[key]
            run[topic.query_id] = () if pooled is None else ranking_of(pool.engine, pooled, plan, max(depth, 10))
    first, second = (
        score_run(
            Run(run, str(plan)), pool.judgments, (*names, *(m for m in ("Judged@10",) if m not in names)), seed=seed
        )
        for run, plan in zip(rankings, plans, strict=True)
    )
    return first, second


_NOTHING: Any = None
