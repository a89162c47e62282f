"""Choosing a plan and reporting it on queries that did not choose it.

The queries are dealt into folds. For each fold the plan that is best on the *other* folds is measured on this one, so every
query gets the figure of a plan that was chosen without it: the mean of these is what a tuned plan is worth on new queries.
The best mean over all queries, in contrast, flatters the plan that was lucky on them.

How sure that figure is depends on the choice too: other queries would have chosen another plan. An interval over the held-out
figures alone takes the chosen plans as given and is too short (where nothing can be gained it left out the truth for about one
set of queries in seven instead of one in twenty). So `choice_means` chooses again in every bootstrap sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from workbench.errors import UsageError
from workbench.evaluate.statistics import CONFIDENCE, RESAMPLES, Difference, paired_difference

_LEAST = 500  # samples, however many plans there are
_WORK = 6e8  # multiplications: part of a second
_BLOCK = 1 << 20
_SAME = 1e-12

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A plan chosen in each fold.

    Attributes:
        fold_of: int64 (queries,), the fold of each query, from 0.
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


def best_of(values: Floats, queries: NDArray[np.bool_]) -> int:
    """The plan with the best mean on some queries; of equal ones the first, which is the baseline where it is as good.

    Args:
        values: float64 (plans, queries).
    """
    means = values[:, queries].mean(axis=1)
    return int(np.flatnonzero(means >= means.max() - _SAME)[0])


def nested(values: Floats, fold_of: Ints) -> Choice:
    """Choose a plan for each fold from the other folds.

    Args:
        values: float64 (plans, queries).
        fold_of: int64 (queries,).
    """
    held_out = np.empty(values.shape[1])
    chosen = []
    for fold in range(int(fold_of.max()) + 1):
        inside = fold_of == fold
        plan = best_of(values, ~inside)
        chosen.append(plan)
        held_out[inside] = values[plan, inside]
    return Choice(fold_of, tuple(chosen), held_out)


def choice_means(
    values: Floats, choice: Choice, against: Floats, *, resamples: int | None = None, seed: int = 0
) -> Floats:
    """Bootstrap samples of the held-out mean less that of some fixed figures, with the choice made anew in every sample.

    Queries are drawn from all of them and stay in their folds (a query on both sides of a fold would be no longer held out).
    Drawn fold by fold they would vary too little: in folds of one query not at all. The plans are chosen as `nested` chooses,
    and the samples are moved so that their mean is at the figure itself: in the samples the plans differ by what was luck in
    these queries, and the choice finds that luck.

    Args:
        values: float64 (plans, queries).
        against: float64 (queries,), what is taken away: the figures of another plan.
        resamples: Number of bootstrap samples; None is 10,000, and fewer (at least 500) for many plans.

    Returns:
        float64 (samples,).
    """
    differences = values - against
    plans, queries = values.shape
    folds = [np.flatnonzero(choice.fold_of == fold) for fold in range(len(choice.chosen))]
    count = resamples or int(min(RESAMPLES, max(_LEAST, _WORK / (plans * queries))))
    generator = np.random.default_rng(seed)
    means = np.empty(count)
    step = max(1, _BLOCK // max(plans * len(folds), queries))
    for start in range(0, count, step):
        size = min(count, start + step) - start
        drawn = generator.multinomial(queries, np.full(queries, 1 / queries), size=size).astype(np.float64)
        sums = np.empty((len(folds), size, plans))
        for fold, own in enumerate(folds):
            np.matmul(drawn[:, own], differences[:, own].T, out=sums[fold])
        whole, held = sums.sum(axis=0), np.zeros(size)
        for fold, own in enumerate(folds):
            others = whole - sums[fold]
            best = others.max(axis=1, keepdims=True) - _SAME * (queries - len(own))
            held += np.take_along_axis(sums[fold], (others >= best).argmax(axis=1)[:, None], axis=1)[:, 0]
        means[start : start + size] = held / queries
    return np.asarray(means - means.mean() + math.fsum(choice.held_out - against) / queries)


def choice_difference(
    measure: str, names: tuple[str, str], against: Floats, values: Floats, choice: Choice, *, seed: int = 0
) -> Difference:
    """Held-out figures of chosen plans (second) against fixed ones (first): as `paired_difference`, but the interval has the
    choice of the plans in it (`choice_means`). So does what is significant, since 0 must be outside the interval; p alone is
    of the held-out figures as they are.
    """
    made = paired_difference(measure, names, against, choice.held_out, seed=seed)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(choice_means(values, choice, against, seed=seed), [tail, 1 - tail])
    return replace(made, low=float(low), high=float(high))
