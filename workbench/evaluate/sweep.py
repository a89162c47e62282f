"""Sweep: try many plans on judged queries and say which is better, by how much, on queries that did not choose it.

Candidates are retrieved once a query and fused again for every plan (`score`), so a thousand plans take seconds; figures,
ties included, are those that `Corpus.evaluate` gives for each plan alone. Some queries go at a time and their candidates are
let go, so memory does not grow with the queries, and a run that is stopped has all plans' figures on those that were done.

Two figures of the best plan are distinguished: the mean on the queries that chose it, and the held-out one. Only the second is
what to expect of new queries, so only it is called the result.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import PlanError, UsageError
from workbench.evaluate.evaluation import LOW_COVERAGE, Evaluation, score_run
from workbench.evaluate.grid import PRESET, Space, Values, effective, spelled
from workbench.evaluate.measures import compute, needed_depth, parse_measures, place_of, quick, values_of
from workbench.evaluate.pool import Pool, Pooled, Refusion, ranking_of, rankings_of
from workbench.evaluate.run import Run, query_frame
from workbench.evaluate.statistics import (
    Choice,
    Difference,
    best_of,
    bootstrap_interval,
    choice_difference,
    deal,
    finite,
    holm,
    known,
    nested,
    paired_difference,
    randomisation_tests,
)
from workbench.judgments.qrels import Judgments
from workbench.plan import fields as plan_fields
from workbench.plan.plan import Plan, without_effect
from workbench.ranking.candidates import Floats, Ints
from workbench.records import Principal, Progress
from workbench.retrieve.engine import Engine
from workbench.retrieve.retrieved import Answer

if TYPE_CHECKING:
    import polars as pl


_ROWS = 1 << 16  # of candidates that are fused together


def score(
    pool: Pool,
    plans: Sequence[Plan],
    measures: Sequence[str],
    depth: int,
    values: Floats,
    *,
    tell: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> bool:
    """Fill the figures of p plans; False where `stop` or Ctrl-C ended it before the last query.

    Args:
        measures: m names in their one spelling.
        depth: Documents of a ranking that are looked at.
        values: float64 (p, queries, m), NaN, changed in place.
    """
    needs, keys = pool.needs(plans)
    members = {key: np.array([n for n, own in enumerate(keys) if own == key], np.int64) for key in needs}
    begun = time.monotonic()
    block: list[tuple[int, dict[tuple[object, ...], Pooled | None]]] = []
    try:
        for n, topic in enumerate(pool.topics):
            if stop is not None and stop():
                raise KeyboardInterrupt
            answers: dict[tuple[object, ...], Answer] = {}
            block.append((n, {key: pool.ask(topic, need, answers) for key, need in needs.items()}))
            rows = sum(len(q.keys) for _, asked in block for q in asked.values() if q is not None)
            if rows > _ROWS or n + 1 == len(pool):
                _measure(pool, block, plans, members, measures, depth, values)
                block.clear()
            if tell is not None:
                tell(Progress.since(begun, "sweep", n + 1, len(pool), topic.text))
    except KeyboardInterrupt:
        _measure(pool, block, plans, members, measures, depth, values)
        return False
    return True


def _measure(
    pool: Pool,
    block: Sequence[tuple[int, dict[tuple[object, ...], Pooled | None]]],
    plans: Sequence[Plan],
    members: dict[tuple[object, ...], Ints],
    measures: Sequence[str],
    depth: int,
    values: Floats,
) -> None:
    """Every plan's figures on some queries."""
    fast = {m: q for m, name in enumerate(measures) if (q := quick(name)) is not None}
    slow = [m for m in range(len(measures)) if m not in fast]
    made = np.zeros((len(plans), len(block), len(measures)))  # written at once: Ctrl-C leaves no query half done
    for key, places in members.items():
        queries = [asked[key] for _, asked in block]
        group = [plans[n] for n in places.tolist()]
        for at, positions, ranks in Refusion(pool.engine, queries, depth).ranks(group) if fast else ():
            if (pooled := queries[at]) is not None:
                grades = np.array(list(pool.judgments.qrels[pooled.query_id].values()), np.int64)
                own = values_of(list(fast.values()), ranks, pooled.grades, grades)
                made[places[positions][:, None], at, list(fast)] = own
        for at, pooled in enumerate(queries if slow else ()):
            if pooled is not None:  # whole lists, measured as if each plan were a query
                lists = {str(n): ranking_of(pool.engine, pooled, p, depth) for n, p in enumerate(group)}
                qrels = dict.fromkeys(lists, pool.judgments.qrels[pooled.query_id])
                figures = compute(lists, qrels, list(lists), [measures[m] for m in slow])
                made[places[:, None], at, slow] = figures
    values[:, [n for n, _ in block]] = made


NOT_USED = "not used"
"""What a heat map calls the value of a setting that the plan does not read."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """Figures of p plans over q judged queries.

    Attributes:
        space: What was tried.
        plans: p plans, the baseline first.
        measures: Names; the first is the one that chose.
        query_ids: q judged queries (those that were done, where it was stopped).
        values: float64 (p, q, measures).
        choice: The nested choice; None where there are no folds.
        before, after: Evaluations of the baseline and of the best plan on the tuning queries, with coverage and runs.
        test_before, test_after: The same on other judgments, where some were given.
        search: grid or random.
        combinations: How many were asked for.
        skipped: Reason -> how many combinations are no plan.
        complete: False where it was stopped before the end.
        warnings: What a reader must know.
        seconds: Wall time.
        seed: Seed of folds, intervals and tests.
    """

    space: Space
    plans: tuple[Plan, ...]
    measures: tuple[str, ...]
    query_ids: tuple[str, ...]
    values: Floats
    choice: Choice | None
    before: Evaluation
    after: Evaluation
    test_before: Evaluation | None = None
    test_after: Evaluation | None = None
    search: str = "grid"
    combinations: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    complete: bool = True
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    seed: int = 0

    @property
    def measure(self) -> str:
        return self.measures[0]

    @property
    def baseline(self) -> Plan:
        """The plan that the others are compared with."""
        return self.plans[0]

    @cached_property
    def best_index(self) -> int:
        """Position of the plan with the best mean over all tuning queries."""
        return best_of(self.column(), np.ones(len(self.query_ids), bool))

    @property
    def best(self) -> Plan:
        """The plan with the best mean over all tuning queries: the one to use."""
        return self.plans[self.best_index]

    def column(self, measure: str | None = None) -> Floats:
        """One measure's values, float64 (p, q). Raises UsageError where it was not computed."""
        return self.values[:, :, 0 if measure is None else place_of(measure, self.measures)]

    def means(self, measure: str | None = None) -> Floats:
        """Mean of each plan over the tuning queries, float64 (p,)."""
        return np.asarray([math.fsum(row) for row in self.column(measure).tolist()]) / len(self.query_ids)

    @cached_property
    def difference(self) -> Difference:
        """The tuned plan against the baseline: on the test judgments where there are some, else held out over the folds,
        else (no folds) on the very queries that chose it. Held out, its interval has the choice of the plan in it.
        """
        names = (str(self.baseline), "tuned")
        if self.test_before is not None and self.test_after is not None:
            first, second = self.test_before.column(self.measure), self.test_after.column(self.measure)
        elif self.choice is not None:
            column = self.column()
            return choice_difference(self.measure, names, column[0], column, self.choice, seed=self.seed)
        else:
            first, second = self.column()[0], self.column()[self.best_index]
        return paired_difference(self.measure, names, first, second, seed=self.seed)

    @cached_property
    def oracle(self) -> float:
        """Mean of each query's best plan: what choosing a plan for each query could give at most."""
        return math.fsum(self.column().max(axis=0).tolist()) / len(self.query_ids)

    @property
    def how(self) -> str:
        """How the reported figure was had, in words."""
        if self.test_before is not None:
            return f"on {len(self.test_before.query_ids)} test queries that chose nothing"
        if self.choice is not None:
            return f"held out over {len(self.choice.chosen)} folds of {len(self.query_ids)} queries"
        return f"on the {len(self.query_ids)} queries that chose it, so flattering"

    @property
    def verdict(self) -> str:
        """What can be said, in words."""
        d = self.difference
        if self.best_index == 0 and self.choice is not None and set(self.choice.chosen) == {0}:
            return f"No plan of {len(self.plans):,} is better than {self.baseline} by {self.measure}; keep it."
        figures = f"{self.measure} {d.second_mean:.3f} against {d.first_mean:.3f} for {self.baseline}, {self.how}"
        text = f"Tuned: {figures}: {d.brief}."
        if not d.significant:
            text += f" Nothing speaks for leaving {self.baseline}."
        return text

    @property
    def agreement(self) -> str:
        """Whether the folds chose the same plan, in words; "" without folds."""
        if self.choice is None:
            return ""
        counts = Counter(self.choice.chosen)
        same = counts[self.best_index]
        return f"{same} of {len(self.choice.chosen)} folds chose the same plan as all queries together"

    def frame(self, most: int | None = 20) -> pl.DataFrame:
        """One row a plan, best mean first: rank, plan, changes (what differs from the baseline), mean, low, high
        (95 % interval of the mean), difference to the baseline, wins, losses, ties, p (paired randomisation test) and p_holm
        (corrected for the number of plans).

        These are figures on the tuning queries. `most` None is all plans.
        """
        import polars as pl

        means, column = self.means(), self.column()
        order = sorted(range(len(self.plans)), key=lambda n: (-means[n], n))[:most]
        ends = [known(*bootstrap_interval(column[n], seed=self.seed)) for n in order]
        differences = column - column[0]
        wins, losses = (np.count_nonzero(part > 1e-12, axis=1)[order] for part in (differences, -differences))
        p, adjusted = self._tests
        columns = {
            "rank": np.arange(1, len(order) + 1),
            "plan": [str(self.plans[n]) for n in order],
            "changes": [self.changes(n) for n in order],
            "mean": means[order],
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
            "difference": means[order] - means[0],
            "wins": wins,
            "losses": losses,
            "ties": len(self.query_ids) - wins - losses,
            "p": [float(p[n - 1]) if n else None for n in order],
            "p_holm": [float(adjusted[n - 1]) if n else None for n in order],
        }
        return pl.DataFrame(columns, schema_overrides=dict.fromkeys(("low", "high", "p", "p_holm"), pl.Float64))

    @cached_property
    def _tests(self) -> tuple[Floats, Floats]:
        """p of every plan but the baseline against it, and corrected by Holm over all of them."""
        column = self.column()
        p = randomisation_tests(column[1:] - column[0], seed=self.seed) if len(column) > 1 else np.zeros(0)
        return p, holm(p)

    def changes(self, n: int) -> str:
        """What differs between a plan and the baseline, as `field=value` words; `baseline` where nothing does."""
        names = dict.fromkeys([name for name, _ in (*self.plans[n], *self.baseline)])
        differing = [f for f in names if self.plans[n][f] != self.baseline[f]]
        return " ".join(f"{f}={plan_fields.show(self.plans[n][f])}" for f in differing) or "baseline"

    def per_query(self) -> pl.DataFrame:
        """One row a query: query_id, query, baseline, best, held_out (null without folds), difference (best minus baseline),
        oracle and oracle_plan.
        """
        import polars as pl

        column = self.column()
        most = column.argmax(axis=0).tolist()
        return query_frame(
            self.before.judgments,
            self.query_ids,
            baseline=column[0],
            best=column[self.best_index],
            held_out=[None] * len(self.query_ids) if self.choice is None else self.choice.held_out,
            difference=column[self.best_index] - column[0],
            oracle=column.max(axis=0),
            oracle_plan=pl.Series([str(self.plans[n]) for n in most], dtype=pl.String),
        )

    def sensitivity(self, field: str, at: Plan | str | None = None, measure: str | None = None) -> pl.DataFrame:
        """How the figure moves with one setting, the others as in a plan (by default the best one).

        Returns:
            value (text), number (null for what is not a number), mean, low and high (95 % interval), marks (current, best,
            default, separated by commas, at the row that is that very plan; `beside` has the others), in the order of the
            values.

        Raises:
            UsageError: The field did not vary, or there is no such neighbour of the plan.
        """
        import polars as pl

        rows, marked = [], self._marked(field)
        column, means = self.column(measure), self.means(measure)
        for value, n in self._along(field, self.best if at is None else Plan.of(at)):
            low, high = bootstrap_interval(column[n], seed=self.seed)
            marks = ",".join(word for word, (place, _) in marked.items() if place == n)
            rows.append((plan_fields.show(value), _number(value), float(means[n]), *known(low, high), marks))
        schema = dict.fromkeys(("value", "number", "mean", "low", "high", "marks"), pl.Float64)
        return pl.DataFrame(rows, schema={**schema, "value": pl.String, "marks": pl.String}, orient="row")

    def beside(self, field: str, at: Plan | str | None = None, measure: str | None = None) -> pl.DataFrame:
        """The current, best and default plan where they are not on the curve of `sensitivity`, since they have other settings
        too; a plan that was not tried, or does not read the field, is left out.

        Returns:
            mark, value (text), number (null for what is not a number), mean: the plan's own figure.
        """
        import polars as pl

        on_curve = {n for _, n in self._along(field, self.best if at is None else Plan.of(at))}
        rows = [
            (word, plan_fields.show(value), _number(value), float(self.means(measure)[n]))
            for word, (n, value) in self._marked(field).items()
            if n not in on_curve
        ]
        schema = {"mark": pl.String, "value": pl.String, "number": pl.Float64, "mean": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def heat(self, first: str, second: str, at: Plan | str | None = None, measure: str | None = None) -> pl.DataFrame:
        """The figure over two settings, the others as in a plan (by default the best one): `first`, `second` (text), mean.

        A plan that does not read a setting (the alpha of rrf) has one figure and not one for each value: it is in the row or
        column `not used`, which comes last.

        Raises:
            UsageError: A field did not vary.
        """
        import polars as pl

        base = self.best if at is None else Plan.of(at)
        means = self.means(measure)
        cells: dict[tuple[str, str], float] = {}
        for value, n in self._along(first, base):
            for other, m in self._along(second, self.plans[n]):
                a, b = self._shown(m, first, value), self._shown(m, second, other)
                cells[a, b] = float(means[m])
        rows = sorted(
            ((*cell, mean) for cell, mean in cells.items()), key=lambda r: (r[0] == NOT_USED, r[1] == NOT_USED)
        )
        return pl.DataFrame(rows, schema={first: pl.String, second: pl.String, "mean": pl.Float64}, orient="row")

    def _along(self, name: str, base: Plan) -> list[tuple[Any, int]]:
        """Values of a field and the positions of the plans that have them and are otherwise as `base`."""
        if name not in self.space.grid or name == PRESET:
            raise UsageError(
                f"{name} did not vary in this sweep",
                "It varied: " + ", ".join(f for f in self.space.fields if f != PRESET),
            )
        places = {plan: n for n, plan in reversed(list(enumerate(self.plans)))}
        fields = _fields(base, name)
        found: dict[Any, int] = {}
        listed = self.space.listed(name) if self.search == "grid" else ()
        drawn = sorted({p[fields[0]] for p in self.plans}, key=lambda v: (str(type(v)), v)) if not listed else ()
        for value in (*listed, *drawn, base[fields[0]]):
            moved = base.replace(dict.fromkeys(fields, value))
            # A field that does nothing here was not tried under every value: the line is level, and says so.
            place = places.get(moved, places.get(effective(moved, self.space.base)))
            if place is not None:
                found.setdefault(plan_fields.read(fields[0], value), place)
        numbers = all(_number(v) is not None for v in found)
        return sorted(found.items(), key=lambda item: float(item[0])) if numbers else list(found.items())

    def _marked(self, name: str) -> dict[str, tuple[int, Any]]:
        """Position and value of the current, the best and the default plan, of those that were tried and read the field."""
        field = _fields(self.best, name)[0]
        tried = {plan: n for n, plan in reversed(list(enumerate(self.plans)))}
        default = tried.get(effective(Plan.parse("default"), self.space.base))
        found = {"current": 0, "best": self.best_index, **({} if default is None else {"default": default})}
        return {w: (n, self.plans[n][field]) for w, n in found.items() if not without_effect(self.plans[n], field)}

    def _shown(self, n: int, name: str, value: Any) -> str:
        """A value as a heat map names it."""
        return NOT_USED if without_effect(self.plans[n], _fields(self.plans[n], name)[0]) else plan_fields.show(value)

    def to_yaml(self) -> str:
        """The best plan as a plan file, with what it was tuned on as comments."""
        lines = [
            self.verdict,
            f"Tuned on {self.before.judgments.name or 'judgments'} ({self.before.judgments.given_digest[:12]})",
        ]
        return "".join(f"# {line}\n" for line in lines) + self.best.to_yaml()

    def to_python(self) -> str:
        """The best plan as Python that makes it."""
        changes = {n: plan_fields.plain(v) for n, v in self.best.changes().items()}
        made = f"plan = wb.preset({self.best.preset!r})"
        if changes:
            inner = "".join(f"        {name!r}: {value!r},\n" for name, value in changes.items())
            made += ".replace(\n    {\n" + inner + "    }\n)"
        return f"import workbench as wb\n\n# {self.verdict}\n{made}\n"

    def to_dict(self, most: int = 20) -> dict[str, Any]:
        """JSON values: the verdict, the figures, the best plans."""
        d = self.difference
        return {
            "measure": self.measure, "queries": len(self.query_ids), "plans": len(self.plans),
            "combinations": self.combinations, "skipped": dict(self.skipped), "search": self.search,
            "complete": self.complete, "seconds": self.seconds, "baseline": str(self.baseline), "best": str(self.best),
            "fields": {n: plan_fields.plain(v) for n, v in self.best.changes().items()}, "how": self.how,
            "figure": d.second_mean, "baseline_figure": d.first_mean, "difference": d.difference,
            "interval": list(known(d.low, d.high)), "p": d.p, "wins": d.wins, "losses": d.losses, "ties": d.ties,
            "significant": d.significant, "in_sample": float(self.means()[self.best_index]), "oracle": self.oracle,
            "judged@10": finite(self.after.coverage.judged),
            "verdict": self.verdict, "agreement": self.agreement, "warnings": list(self.warnings),
            "top": self.frame(most).to_dicts(),
        }  # fmt: skip


def _fields(plan: Plan, name: str) -> tuple[str, ...]:
    """As `spelled`; where the plan asks no source that the family is for, one that does nothing under it."""
    return spelled(plan, name) or (f"{name}.vector",)


def _number(value: Any) -> float | None:
    return None if isinstance(value, (str, bool, tuple)) or value is None else float(value)


SEARCHES = ("grid", "random")
FEW_QUERIES = 10


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
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
    seed: int = 0,
) -> Sweep:
    """Try plans and choose one.

    Args:
        grid: Field -> values (or a `Range`), as `grid.Space` reads them.
        folds: Folds of queries for the held-out figure; 0 has none.
        plan: The plan whose fields are varied.
        baseline: The plan that the result is compared with; None is `plan`.
        measures: More measures to compute beside the one that chooses.
        search: grid (every combination) or random (`trials` of them).
        test: Other judgments: baseline and best plan are measured on them, and that is the reported difference.
        mode, filters, principal, drop_identical_ids: As in `Corpus.evaluate`.
        stop: Asked before each query; True ends the sweep with what is done.
        seed: Seed of folds, draws, intervals and tests.

    Returns:
        The sweep; where it was stopped (also by Ctrl-C) after some queries, of those, and it says so.
    """
    started = time.monotonic()
    if search not in SEARCHES:
        raise UsageError(f"There is no search called {search!r}", "The searches are " + ", ".join(SEARCHES))
    names = parse_measures([measure, *([measures] if isinstance(measures, str) and measures else measures)])
    depth = needed_depth(names)
    space = grid if isinstance(grid, Space) else Space(plan, grid)
    first = Plan.of(baseline) if baseline is not None else space.base
    fold_of = deal(len(judgments), folds, seed) if folds >= 2 else None

    def pool_of(judged: Judgments) -> Pool:
        return Pool(engine, judged, principal=principal, mode=mode, filters=filters)

    pool = pool_of(judgments.dropping(drop_identical_ids))
    combinations = list(space.combinations() if search == "grid" else space.drawn(trials, seed))
    plans, skipped = plans_of(space, first, combinations)
    values = np.full((len(plans), len(pool), len(names)), np.nan)
    complete = score(pool, plans, names, depth, values, tell=progress, stop=stop)
    done = np.flatnonzero(~np.isnan(values).any(axis=(0, 2)))
    warnings = [*pool.warnings, *space.idle()]
    if len(done) < len(pool):
        if len(done) < 2:
            raise KeyboardInterrupt
        warnings.append(f"Stopped: figures are over {len(done)} of {len(pool)} queries")
        pool = pool_of(pool.judgments.subset([pool.judgments.query_ids[n] for n in done.tolist()]))
        values, fold_of = values[:, done], None if fold_of is None else fold_of[done]
        if fold_of is not None and len(np.unique(fold_of)) < folds:
            fold_of = None
    choice = None if fold_of is None else nested(values[:, :, 0], fold_of)
    if choice is None and test is None:
        warnings.append("Nothing was held out: the figure is on the queries that chose the plan, and flatters it")
    if len(pool) < FEW_QUERIES:
        warnings.append(f"{len(pool)} queries are too few to tell plans apart")
    two = (plans[0], plans[best_of(values[:, :, 0], np.ones(len(pool), bool))])
    before, after = _evaluations(pool, two, names, depth, seed)
    test_before = test_after = None
    if test is not None:
        other = pool_of(test.dropping(drop_identical_ids))
        test_before, test_after = _evaluations(other, two, names, depth, seed)
        warnings += other.warnings
    if after.coverage.judged < LOW_COVERAGE:
        warnings.append(
            f"Only {after.coverage.judged:.0%} of the best plan's first ten are judged (baseline: "
            f"{before.coverage.judged:.0%}); a plan that finds what nobody judged looks worse than it is: judge more"
        )
    warnings += [w for w in pool.judgments.notes if w not in warnings]
    return Sweep(
        space=space,
        plans=plans,
        measures=names,
        query_ids=pool.judgments.query_ids,
        values=values,
        choice=choice,
        before=before,
        after=after,
        test_before=test_before,
        test_after=test_after,
        search=search,
        combinations=len(combinations),
        skipped=skipped,
        complete=complete,
        warnings=tuple(warnings),
        seconds=time.monotonic() - started,
        seed=seed,
    )


def plans_of(
    space: Space, first: Plan, combinations: Iterable[Mapping[str, Any]]
) -> tuple[tuple[Plan, ...], dict[str, int]]:
    """The baseline and every different plan, in order, and what is no plan, by reason."""
    made: dict[Plan, None] = {first: None}
    skipped: Counter[str] = Counter()
    for combination in combinations:
        try:
            made.setdefault(space.plan(combination))
        except PlanError as exc:
            skipped[exc.message] += 1
    if len(made) == 1 and skipped:
        raise PlanError(f"No combination is a plan: {next(iter(skipped))}", "Change the fields and values")
    return tuple(made), dict(skipped)


def _evaluations(
    pool: Pool, plans: tuple[Plan, Plan], names: tuple[str, ...], depth: int, seed: int
) -> tuple[Evaluation, Evaluation]:
    """Whole rankings of two plans, for coverage, exports and comparisons."""
    measures = tuple(dict.fromkeys((*names, "Judged@10")))
    first, second = (
        score_run(Run(run, str(plan)), pool.judgments, measures, seed=seed)
        for run, plan in zip(rankings_of(pool, plans, max(depth, 10)), plans, strict=True)
    )
    return first, second
