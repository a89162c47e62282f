"""Optuna's search for a plan, honest about folds.

One study (the tree-structured Parzen estimator, seeded) on all queries finds the plan to use. For the held-out figure the
search itself must not see a fold, so each fold has a study of its own that is told the mean over the other folds only. Plans
are measured on kept candidates, once each, whichever study asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NeedsSearch, PlanError, UsageError
from workbench.evaluate.cached import CachedPool
from workbench.evaluate.grid import Range, Space
from workbench.evaluate.ledger import Ledger
from workbench.evaluate.pool import Pool
from workbench.plan.plan import Plan
from workbench.records import Progress

_SAVE_EVERY = 25


@dataclass(frozen=True, slots=True, eq=False)
class Studied:
    """What the studies tried: plans (the baseline first), values float64 (plans, queries, measures), the plans that each
    fold's study saw, combinations that are no plan, the number of trials, and whether all of them ran.
    """

    plans: tuple[Plan, ...]
    values: NDArray[np.float64]
    allowed: tuple[tuple[int, ...], ...] | None
    skipped: dict[str, int]
    tried: int
    complete: bool


class _Figures:
    """Every plan's values, measured once."""

    def __init__(self, cache: CachedPool, ledger: Ledger, tell: Callable[[Progress], None] | None) -> None:
        self._cache, self._ledger, self._tell = cache, ledger, tell
        self.places: dict[Plan, int] = {}
        self.values: list[NDArray[np.float64]] = []

    def place(self, plan: Plan, stop: Callable[[], bool] | None) -> int:
        """Position of a plan, measured if it is new."""
        if plan not in self.places:
            known = self._ledger.known.get(str(plan))
            if known is None:
                self._cache.retrieve(plan, self._tell, stop)
                known = self._cache.values(plan)
            self.places[plan] = len(self.values)
            self.values.append(known)
            if len(self.values) % _SAVE_EVERY == 0:
                self.save()
        return self.places[plan]

    def save(self) -> None:
        if self.values:
            self._ledger.save(tuple(map(str, self.places)), np.stack(self.values))


def study(
    pool: Pool,
    space: Space,
    baseline: Plan,
    measures: Sequence[str],
    depth: int,
    trials: int,
    fold_of: NDArray[np.int64] | None,
    ledger: Ledger,
    *,
    seed: int,
    tell: Callable[[Progress], None] | None,
    stop: Callable[[], bool] | None,
) -> Studied:
    """Search `trials` plans for all queries, and as many for each fold.

    Args:
        pool: The judged queries and what the sources answered.
        space: The fields that vary, and their values.
        baseline: The plan that is tried first.
        measures: ir_measures names; the first is the one that is made greater.
        depth: Ranks beyond it do not matter to the measures.
        trials: Plans tried for each search.
        fold_of: int64 (queries,), the fold of each query from 0; None searches for all queries only.
        ledger: Where figures are kept, and taken from.
        seed: Of the first search; each fold's is one more.
        tell: Called with a Progress while sources answer, and after each plan.
        stop: Asked before each plan; True ends the search with what is done.

    Raises:
        UsageError: Optuna is not installed, or a measure needs whole lists.
    """
    try:
        import optuna
    except ImportError as exc:
        raise UsageError(
            "Optuna is not installed", "pip install 'hybrid-retrieval-workbench[tune]', or search at random"
        ) from exc
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    figures = _Figures(CachedPool(pool, measures, depth), ledger, tell)
    skipped: dict[str, int] = {}
    complete, tried = True, 0
    masks = [np.ones(len(pool), bool)]
    if fold_of is not None:
        masks += [fold_of != fold for fold in range(int(fold_of.max()) + 1)]
    seen: list[set[int]] = []
    try:
        first = figures.place(baseline, stop)
        for number, mask in enumerate(masks):
            one = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed + number))
            mine = {first}
            for _ in range(trials):
                if stop is not None and stop():
                    raise NeedsSearch("The search was stopped", "Start it again")
                trial = one.ask()
                tried += 1
                try:
                    plan = space.plan({name: _suggest(trial, name, space) for name in space.fields})
                except PlanError as exc:
                    skipped[exc.message] = skipped.get(exc.message, 0) + 1
                    one.tell(trial, state=optuna.trial.TrialState.FAIL)
                    continue
                place = figures.place(plan, stop)
                mine.add(place)
                one.tell(trial, float(figures.values[place][mask, 0].mean()))
                if tell is not None:
                    tell(Progress("search", tried, trials * len(masks), detail=str(plan)))
            seen.append(mine)
    except (KeyboardInterrupt, NeedsSearch):
        complete = False
        if not figures.values:
            raise
    finally:
        figures.save()
    folds = tuple(tuple(sorted(s)) for s in seen[1:])
    allowed = folds if fold_of is not None and len(folds) == len(masks) - 1 else None
    return Studied(tuple(figures.places), np.stack(figures.values), allowed, skipped, tried, complete)


def _suggest(trial: Any, name: str, space: Space) -> Any:
    values = space.grid[name]
    if not isinstance(values, Range):
        texts = [str(v) if isinstance(v, tuple) else v for v in values]  # optuna keeps plain values only
        return values[texts.index(trial.suggest_categorical(name, texts))]
    if values.step is not None:
        return trial.suggest_float(name, values.low, values.high, step=values.step)
    if values.whole:
        low, high = values.rounded(values.low), values.rounded(values.high)
        return trial.suggest_int(name, low, high, log=values.log)
    found = float(
        f"{trial.suggest_float(name, values.low, values.high, log=values.log):.4g}"
    )  # a plan that people can read
    return min(max(found, values.low), values.high)
