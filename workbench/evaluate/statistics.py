"""How sure a difference is: bootstrap intervals and a paired randomisation test, seeded.

A mean over queries says little without its spread. The interval is the percentile bootstrap over queries (Efron and
Tibshirani 1993); the test flips the sign of each query's difference, which is what would be possible if the two systems
were exchangeable (Fisher's test as recommended by Smucker, Allan and Carterette, CIKM 2007). Same input and seed, same
figures, on every machine.

Choosing a plan and reporting it on queries that did not choose it.

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
from workbench.ranking.candidates import Floats, Ints

RESAMPLES = 10_000
CONFIDENCE = 0.95
_ENDS = ((1 - CONFIDENCE) / 2, 1 - (1 - CONFIDENCE) / 2)
SIGNIFICANT = 0.05
FEW_QUERIES = 10
_EXACT_UP_TO = 13  # 2 ** 13 sign patterns are fewer than RESAMPLES
_BLOCK = 1 << 20
_SAME = 1e-12


def bootstrap_interval(values: Floats, *, resamples: int = RESAMPLES, seed: int = 0) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean, of 95 %.

    Args:
        values: float64 (n,), one value a query.

    Returns:
        Lower and upper end; both NaN for fewer than two values, of which no spread can be estimated.
    """
    n = len(values)
    if n < 2:
        return math.nan, math.nan
    generator = np.random.default_rng(seed)
    means = np.empty(resamples)
    step = max(1, _BLOCK // n)
    for start in range(0, resamples, step):
        stop = min(resamples, start + step)
        means[start:stop] = values[generator.integers(0, n, (stop - start, n))].mean(axis=1)
    low, high = np.quantile(means, _ENDS)
    return float(low), float(high)


def known(low: float, high: float) -> tuple[float | None, float | None]:
    """The ends of an interval for a table; None where no spread can be estimated."""
    return finite(low), finite(high)


def finite(value: float | None) -> float | None:
    """A figure for JSON and tables; None where there is nothing to take it of."""
    return None if value is None or not math.isfinite(value) else float(value)


def significant(p: float, low: float | None, high: float | None) -> bool:
    """Whether p is below 0.05 and the interval (None or NaN: no spread can be estimated) leaves out 0."""
    return p < SIGNIFICANT and low is not None and high is not None and (low > 0 or high < 0)


def randomisation_test(differences: Floats, *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Two-sided p of a mean difference under random signs: exact for few differing queries, else sampled.

    Args:
        differences: float64 (n,), one difference a query; zeros change nothing under either sign.

    Returns:
        p above 0 and at most 1; sampled, it is (1 + as extreme) / (1 + resamples).
    """
    moving = differences[np.abs(differences) > _SAME]
    n = len(moving)
    if n == 0:
        return 1.0
    threshold = abs(math.fsum(moving)) - _SAME * n
    if n <= _EXACT_UP_TO:
        patterns = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
        return float((np.abs((1.0 - 2.0 * patterns) @ moving) >= threshold).mean())
    return float(randomisation_tests(moving[None, :], resamples=resamples, seed=seed)[0])


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure of two evaluations over the same queries. `low`, `high`: Bootstrap interval of the difference at 95 %; NaN
    for fewer than two queries.
    """

    measure: str
    first: str
    second: str
    first_mean: float
    second_mean: float
    difference: float
    low: float
    high: float
    p: float
    wins: int
    losses: int
    ties: int
    queries: int

    @property
    def significant(self) -> bool:
        """True when p is below 0.05 and the interval leaves out 0."""
        return significant(self.p, self.low, self.high)

    @property
    def brief(self) -> str:
        """The verdict in a line, from the second's side, without names."""
        n = self.queries
        if not self.significant:
            return f"no difference that {n} quer{'y' if n == 1 else 'ies'} can show"
        word = "better" if self.difference > 0 else "worse"
        low, high = sorted((abs(self.low), abs(self.high)))
        digits = 3 if low >= 0.0005 else 4 if low >= 0.00005 else 6  # a difference that is shown is never written as 0
        return (
            f"{abs(self.difference):.{digits}f} {word}, 95 % interval {low:.{digits}f} to {high:.{digits}f}; "
            f"wins {self.wins}, loses {self.losses}, ties {self.ties}"
        )

    @property
    def verdict(self) -> str:
        """What can be said, in one or two sentences."""
        p = "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"
        counts = f"{self.queries} queries: {self.wins} better, {self.losses} worse, {self.ties} equal, {p}"
        if self.wins == self.losses == 0:
            return f"{self.measure} is the same for {self.second} and {self.first} on all {self.queries} queries."
        interval = f"95 % interval {self.low:+.3f} to {self.high:+.3f}" if not math.isnan(self.low) else "no interval"
        if self.significant:
            word = "better" if self.difference > 0 else "worse"
            text = f"{self.second} is {word} than {self.first}: {self.measure} {self.difference:+.3f} ({interval}; {counts})."
        else:
            text = (
                f"No difference shown between {self.second} and {self.first}: {self.measure} {self.difference:+.3f} "
                f"({interval}; {counts})."
            )
        if self.queries < FEW_QUERIES:
            text += f" {self.queries} queries are too few to tell much."
        return text


def paired_difference(
    measure: str, names: tuple[str, str], first: Floats, second: Floats, *, seed: int = 0
) -> Difference:
    """Compare two columns of per-query values, the same query in the same row: second minus first. `first`, `second`: float64
    (n,), n at least 1.
    """
    if len(first) != len(second) or not len(first):
        raise UsageError(
            "Only evaluations over the same queries can be compared", "Evaluate both on the same judgments"
        )
    differences = second - first
    low, high = bootstrap_interval(differences, seed=seed)
    wins, losses = int((differences > _SAME).sum()), int((differences < -_SAME).sum())
    n = len(differences)
    return Difference(
        measure, *names, math.fsum(first) / n, math.fsum(second) / n, math.fsum(differences) / n, low, high,
        randomisation_test(differences, seed=seed), wins, losses, n - wins - losses, n,
    )  # fmt: skip


def holm(p: Floats) -> Floats:
    """p values corrected for the number of comparisons: Holm's step-down method.

    Holm: A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6(2), 1979.

    Args:
        p: float64 (m,), each above 0 and at most 1.

    Returns:
        float64 (m,) in the same order, at most 1: below 0.05 means that the whole family keeps that level.
    """
    m = len(p)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * (m - np.arange(m))))
    return adjusted


def randomisation_tests(differences: Floats, *, resamples: int | None = None, seed: int = 0) -> Floats:
    """Two-sided p of many mean differences over the same queries, all under the same random signs.

    Args:
        differences: float64 (m, n): m comparisons over n queries.
        resamples: Sign patterns; None is enough for a p that survives m comparisons, from 10,000 to 100,000.

    Returns:
        float64 (m,), (1 + as extreme) / (1 + resamples) each.
    """
    m, n = differences.shape
    count = min(100_000, max(RESAMPLES, 100 * m)) if resamples is None else resamples
    observed = np.abs(differences.sum(axis=1)) - _SAME * n
    generator = np.random.default_rng(seed)
    columns = np.ascontiguousarray(differences.T)
    extreme = np.zeros(m, np.int64)
    step = max(1, (1 << 22) // max(m, n))
    for start in range(0, count, step):
        signs = generator.integers(0, 2, (min(step, count - start), n), dtype=np.int8).astype(np.float64) * 2.0 - 1.0
        extreme += np.count_nonzero(np.abs(signs @ columns) >= observed, axis=0)
    return np.asarray((1 + extreme) / (1 + count))


_LEAST = 500  # samples, however many plans there are
_WORK = 6e8  # multiplications: part of a second


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
    """A fold for each query, int64 (queries,): equal in size but for one, shuffled by the seed."""
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
    `values`: float64 (plans, queries).
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
    """Bootstrap samples of the held-out mean less that of some fixed figures, with the choice made again in every sample.

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
    low, high = np.quantile(choice_means(values, choice, against, seed=seed), _ENDS)
    return replace(made, low=float(low), high=float(high))
