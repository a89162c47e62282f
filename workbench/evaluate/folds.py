"""Choosing a plan and reporting it on queries that did not choose it.

The queries are dealt into folds. For each fold the plan that is best on the *other* folds is measured on this one, so every
query gets the figure of a plan that was chosen without it: the mean of these is what a tuned plan is worth on new queries.
The best mean over all queries, in contrast, flatters the plan that was lucky on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.errors import UsageError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A plan chosen in each fold.

    Attributes:
        fold_of: int64 (queries,), the fold of each query, from 0.
        chosen: The position of the plan chosen for each fold.
        held_out: float64 (queries,), each query's figure under the plan that was chosen without it.
    """

    fold_of: Ints
    chosen: tuple[int, ...]
    held_out: Floats


def deal(queries: int, folds: int, seed: int = 0) -> Ints:
    """A fold for each query, int64 (queries,): equal in size but for one, shuffled by the seed.

    Raises:
        UsageError: Fewer than two folds, or more folds than queries.
    """
    if folds < 2 or folds > queries:
        raise UsageError(
            f"{queries} queries cannot be dealt into {folds} folds",
            f"Use from 2 to {queries} folds" if queries >= 2 else "Judge at least two queries",
        )
    fold_of = np.empty(queries, np.int64)
    fold_of[np.random.default_rng(seed).permutation(queries)] = np.arange(queries) % folds
    return fold_of


def best_of(values: Floats, queries: NDArray[np.bool_], allowed: Sequence[int] | None = None) -> int:
    """The plan with the best mean on some queries; of equal ones the first, which is the baseline where it is as good.

    Args:
        values: float64 (plans, queries).
        queries: bool (queries,), the ones that count.
        allowed: Positions of plans to choose from; None is all.
    """
    places = np.arange(len(values)) if allowed is None else np.asarray(sorted(allowed), np.int64)
    means = values[places][:, queries].mean(axis=1)
    return int(places[np.flatnonzero(means >= means.max() - 1e-12)[0]])


def nested(values: Floats, fold_of: Ints, allowed: Sequence[Sequence[int]] | None = None) -> Choice:
    """Choose a plan for each fold from the other folds.

    Args:
        values: float64 (plans, queries).
        fold_of: int64 (queries,).
        allowed: For each fold the plans that a search saw without that fold; None is all plans for every fold.
    """
    held_out = np.empty(values.shape[1])
    chosen = []
    for fold in range(int(fold_of.max()) + 1):
        inside = fold_of == fold
        plan = best_of(values, ~inside, None if allowed is None else allowed[fold])
        chosen.append(plan)
        held_out[inside] = values[plan, inside]
    return Choice(fold_of, tuple(chosen), held_out)
