"""What a sweep found: figures of every plan on every query, the choice, and how sure it is.

Two figures of the best plan are told apart: the mean on the queries that chose it, and the held-out one. Only the second is
what to expect of new queries, so only it is called the result.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import UsageError
from workbench.evaluate.evaluation import Evaluation
from workbench.evaluate.folds import Choice, best_of, choice_difference
from workbench.evaluate.grid import PRESET, Space, effective, spelled
from workbench.evaluate.measures import parse_measures
from workbench.evaluate.statistics import Difference, bootstrap_interval, holm, paired_difference, randomisation_tests
from workbench.plan import fields as plan_fields
from workbench.plan.effects import without_effect
from workbench.plan.plan import Plan

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


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

    # --- the choice -------------------------------------------------------------------------------------------------

    @property
    def measure(self) -> str:
        """The measure that chose."""
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
        name = self.measure if measure is None else parse_measures([measure])[0]
        if name not in self.measures:
            raise UsageError(f"{name} was not computed", "Computed are: " + ", ".join(self.measures))
        return self.values[:, :, self.measures.index(name)]

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
    def in_sample(self) -> Difference:
        """The best plan against the baseline on the queries that chose it: flattering, for comparison only."""
        return paired_difference(
            self.measure,
            (str(self.baseline), str(self.best)),
            self.column()[0],
            self.column()[self.best_index],
            seed=self.seed,
        )

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
        said = f"Tuned: {figures}: {d.brief}."
        if not d.significant:
            said += f" Nothing speaks for leaving {self.baseline}."
        return said

    @property
    def agreement(self) -> str:
        """Whether the folds chose the same plan, in words; "" without folds."""
        if self.choice is None:
            return ""
        counts = Counter(self.choice.chosen)
        same = counts[self.best_index]
        return f"{same} of {len(self.choice.chosen)} folds chose the same plan as all queries together"

    # --- frames -----------------------------------------------------------------------------------------------------

    def frame(self, most: int | None = 20) -> pl.DataFrame:
        """One row a plan, best mean first: rank, plan, changes (what differs from the baseline), mean, low, high
        (95 % interval of the mean), difference to the baseline, wins, losses, ties, p (paired randomisation test) and p_holm
        (corrected for the number of plans).

        These are figures on the tuning queries. `most` None is all plans.
        """
        import polars as pl

        means, column = self.means(), self.column()
        differences = column - column[0]
        p, adjusted = self._tests
        order = sorted(range(len(self.plans)), key=lambda n: (-means[n], n))
        rows = []
        for rank, n in enumerate(order[:most], 1):
            low, high = bootstrap_interval(column[n], seed=self.seed)
            wins, losses = int((differences[n] > 1e-12).sum()), int((differences[n] < -1e-12).sum())
            rows.append(
                (rank, str(self.plans[n]), self.changes(n), float(means[n]), *_ends(low, high), float(means[n] - means[0]),
                 wins, losses,
                 len(self.query_ids) - wins - losses, None if n == 0 else float(p[n]), None if n == 0 else float(adjusted[n]))
            )  # fmt: skip
        schema = {
            "rank": pl.Int64, "plan": pl.String, "changes": pl.String, "mean": pl.Float64, "low": pl.Float64, "high": pl.Float64,
            "difference": pl.Float64, "wins": pl.Int64, "losses": pl.Int64, "ties": pl.Int64, "p": pl.Float64,
            "p_holm": pl.Float64,
        }  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")

    def changes(self, n: int) -> str:
        """What differs between a plan and the baseline, as `field=value` words; `baseline` where nothing does."""
        names = dict.fromkeys([name for name, _ in (*self.plans[n], *self.baseline)])
        differing = [f for f in names if self.plans[n][f] != self.baseline[f]]
        return " ".join(f"{f}={plan_fields.show(self.plans[n][f])}" for f in differing) or "baseline"

    @cached_property
    def _tests(self) -> tuple[Floats, Floats]:
        """p of every plan against the baseline, and corrected by Holm over all of them; 1 for the baseline itself."""
        p, adjusted = np.ones(len(self.plans)), np.ones(len(self.plans))
        if len(self.plans) > 1:
            p[1:] = randomisation_tests(self.column()[1:] - self.column()[0], seed=self.seed)
            adjusted[1:] = holm(p[1:])
        return p, adjusted

    def per_query(self) -> pl.DataFrame:
        """One row a query: query_id, query, baseline, best, held_out (null without folds), difference (best minus baseline),
        oracle and oracle_plan.
        """
        import polars as pl

        column, topics = self.column(), self.before.judgments.topics
        held = [None] * len(self.query_ids) if self.choice is None else self.choice.held_out.tolist()
        most = column.argmax(axis=0)
        return pl.DataFrame(
            {
                "query_id": pl.Series(self.query_ids, dtype=pl.String),
                "query": pl.Series([topics[i].text if i in topics else None for i in self.query_ids], dtype=pl.String),
                "baseline": pl.Series(column[0], dtype=pl.Float64),
                "best": pl.Series(column[self.best_index], dtype=pl.Float64),
                "held_out": pl.Series(held, dtype=pl.Float64),
                "difference": pl.Series(column[self.best_index] - column[0], dtype=pl.Float64),
                "oracle": pl.Series(column.max(axis=0), dtype=pl.Float64),
                "oracle_plan": pl.Series([str(self.plans[n]) for n in most.tolist()], dtype=pl.String),
            }
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
        for value, n in self._along(field, self.best if at is None else Plan.of(at)):
            low, high = bootstrap_interval(self.column(measure)[n], seed=self.seed)
            marks = ",".join(word for word, (place, _) in marked.items() if place == n)
            rows.append(
                (plan_fields.show(value), _number(value), float(self.means(measure)[n]), *_ends(low, high), marks)
            )
        schema = {
            "value": pl.String, "number": pl.Float64, "mean": pl.Float64, "low": pl.Float64, "high": pl.Float64,
            "marks": pl.String,
        }  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")

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

    # --- to take away -----------------------------------------------------------------------------------------------

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
            "interval": list(_ends(d.low, d.high)), "p": d.p, "wins": d.wins, "losses": d.losses, "ties": d.ties,
            "significant": d.significant, "in_sample": float(self.means()[self.best_index]), "oracle": self.oracle,
            "judged@10": None if math.isnan(self.after.coverage.judged) else self.after.coverage.judged,
            "verdict": self.verdict, "agreement": self.agreement, "warnings": list(self.warnings),
            "top": self.frame(most).to_dicts(),
        }  # fmt: skip


def _ends(low: float, high: float) -> tuple[float | None, float | None]:
    return (None, None) if math.isnan(low) else (low, high)


def _fields(plan: Plan, name: str) -> tuple[str, ...]:
    """As `spelled`; where the plan asks no source that the family is for, one that does nothing under it."""
    return spelled(plan, name) or (f"{name}.vector",)


def _number(value: Any) -> float | None:
    return None if isinstance(value, (str, bool, tuple)) or value is None else float(value)
