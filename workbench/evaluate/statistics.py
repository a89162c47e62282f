"""How sure a difference is: bootstrap intervals and a paired randomisation test, seeded.

A mean over queries says little without its spread. The interval is the percentile bootstrap over queries (Efron and
Tibshirani 1993); the test flips the sign of each query's difference, which is what would be possible if the two systems
were exchangeable (Fisher's test as recommended by Smucker, Allan and Carterette, CIKM 2007). Same input and seed, same
figures, on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.errors import UsageError

RESAMPLES = 10_000
CONFIDENCE = 0.95
SIGNIFICANT = 0.05
FEW_QUERIES = 10
_EXACT_UP_TO = 13  # 2 ** 13 sign patterns are fewer than RESAMPLES
_BLOCK = 1 << 20
_SAME = 1e-12


def bootstrap_interval(
    values: NDArray[np.float64], *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean.

    Args:
        values: float64 (n,), one value a query.

    Returns:
        Lower and upper end; both NaN for fewer than two values, of which no spread can be told.
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
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def randomisation_test(differences: NDArray[np.float64], *, resamples: int = RESAMPLES, seed: int = 0) -> float:
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
    generator = np.random.default_rng(seed)
    extreme = 0
    step = max(1, _BLOCK // n)
    for start in range(0, resamples, step):
        signs = generator.integers(0, 2, (min(step, resamples - start), n), dtype=np.int8)
        extreme += int((np.abs((1.0 - 2.0 * signs) @ moving) >= threshold).sum())
    return (1 + extreme) / (1 + resamples)


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure of two evaluations over the same queries.

    Attributes:
        low, high: Bootstrap interval of the difference at 95 %; NaN for fewer than two queries.
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
        return self.p < SIGNIFICANT and (self.low > 0 or self.high < 0)

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
        counts = (
            f"{self.queries} queries: {self.wins} better, {self.losses} worse, {self.ties} equal, {_p_words(self.p)}"
        )
        if self.wins == self.losses == 0:
            return f"{self.measure} is the same for {self.second} and {self.first} on all {self.queries} queries."
        interval = f"95 % interval {self.low:+.3f} to {self.high:+.3f}" if not math.isnan(self.low) else "no interval"
        if self.significant:
            word = "better" if self.difference > 0 else "worse"
            said = f"{self.second} is {word} than {self.first}: {self.measure} {self.difference:+.3f} ({interval}; {counts})."
        else:
            said = (
                f"No difference shown between {self.second} and {self.first}: {self.measure} {self.difference:+.3f} "
                f"({interval}; {counts})."
            )
        if self.queries < FEW_QUERIES:
            said += f" {self.queries} queries are too few to tell much."
        return said


def paired_difference(
    measure: str, names: tuple[str, str], first: NDArray[np.float64], second: NDArray[np.float64], *, seed: int = 0
) -> Difference:
    """Compare two columns of per-query values, the same query in the same row: second minus first.

    Args:
        first, second: float64 (n,), n at least 1.

    Raises:
        UsageError: The columns differ in length, or are empty.
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


@dataclass(frozen=True, slots=True)
class Pooled:
    """A difference over several sets of queries, each set counting alike however many queries it has."""

    difference: float
    low: float
    high: float
    better: int
    worse: int
    sets: int
    queries: int

    @property
    def brief(self) -> str:
        """In a line, without names."""
        clear = "clear of 0" if self.low > 0 or self.high < 0 else "not clear of 0"
        return (
            f"{self.difference:+.4f}, 95 % interval {self.low:+.4f} to {self.high:+.4f}, {clear}; better on {self.better} "
            f"of {self.sets} collections, worse on {self.worse} ({self.queries:,} queries)"
        )


def pooled_difference(
    differences: Sequence[NDArray[np.float64]],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    drawn: Mapping[int, NDArray[np.float64]] | None = None,
) -> Pooled:
    """Pool the per-query differences of several sets: the mean of the sets' means, by a stratified percentile bootstrap.

    Args:
        differences: One float64 (n,) a set, n >= 1.
        drawn: Position of a set -> bootstrap samples of its mean difference, where its own differences do not say how sure
            it is: a plan was chosen on the same queries (`folds.choice_means`).

    Raises:
        UsageError: There is no set, or an empty one.
    """
    if not differences or not all(len(d) for d in differences):
        raise UsageError("There is nothing to pool", "Give at least one set with at least one query")
    generator = np.random.default_rng(seed)
    total = np.zeros(resamples)
    for number, own in enumerate(differences):
        if drawn is not None and number in drawn:
            total += generator.choice(drawn[number], resamples)
            continue
        step = max(1, _BLOCK // len(own))
        for start in range(0, resamples, step):
            stop = min(resamples, start + step)
            total[start:stop] += own[generator.integers(0, len(own), (stop - start, len(own)))].mean(axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(total / len(differences), [tail, 1 - tail])
    means = [math.fsum(d) / len(d) for d in differences]
    return Pooled(
        math.fsum(means) / len(means), float(low), float(high), sum(m > _SAME for m in means), sum(m < -_SAME for m in means),
        len(means), sum(map(len, differences)),
    )  # fmt: skip


def _p_words(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
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


def randomisation_tests(
    differences: NDArray[np.float64], *, resamples: int | None = None, seed: int = 0
) -> NDArray[np.float64]:
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
