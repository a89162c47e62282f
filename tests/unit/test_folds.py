"""What folds report is true of queries that chose nothing, and so is how sure it is, held by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.evaluate.grid import Space
from workbench.evaluate.statistics import (
    Choice,
    bootstrap_interval,
    choice_difference,
    choice_means,
    deal,
    nested,
    paired_difference,
    pooled_difference,
)
from workbench.evaluate.sweep import Sweep


def chosen(values: np.ndarray, seed: int = 0) -> Choice:
    return nested(values, deal(values.shape[1], 5, seed))


def test_where_nothing_can_be_gained_folds_say_so_as_often_as_they_promise() -> None:
    """Forty plans whose figures are random: the held-out mean gains nothing, the interval has 0 in it at least 19 times in
    20, and almost no verdict says better. With the chosen plans taken as given, both fail.
    """
    random = np.random.default_rng(5)
    gains, covered, short, better, naive = [], 0, 0, 0, 0
    rounds = 150
    for seed in range(rounds):
        values = random.random((40, 50))
        values[0] = 0.5
        choice = chosen(values, seed)
        gains.append(choice.held_out.mean() - 0.5)
        low, high = np.quantile(choice_means(values, choice, values[0], resamples=250), [0.025, 0.975])
        covered += low <= 0 <= high
        ends = bootstrap_interval(choice.held_out - 0.5, resamples=250)
        short += not ends[0] <= 0 <= ends[1]
        better += low > 0
        naive += ends[0] > 0
    assert abs(np.mean(gains)) < 4 * np.std(gains) / rounds**0.5
    assert covered >= 0.95 * rounds
    assert short > 0.05 * rounds
    assert better <= 0.025 * rounds
    assert better < naive


def test_a_plan_that_every_fold_chooses_is_as_sure_as_one_that_nobody_chose() -> None:
    """Where one plan is clearly best there is no luck in the choice: the interval is that of its own figures."""
    random = np.random.default_rng(6)
    values = random.random((20, 200)) * 0.2
    values[7] += 0.5
    choice = chosen(values)
    assert set(choice.chosen) == {7}
    made = choice_difference("RR", ("first", "tuned"), values[0], values, choice)
    plain = paired_difference("RR", ("first", "tuned"), values[0], values[7])
    assert (made.low, made.high) == pytest.approx((plain.low, plain.high), abs=0.003)
    assert (made.difference, made.p, made.wins) == (plain.difference, plain.p, plain.wins)
    assert made.brief.startswith("0.5")


def test_a_pool_takes_the_samples_of_a_set_that_chose_its_plan() -> None:
    differences = [np.full(30, 0.1), np.full(30, 0.3)]
    plain = pooled_difference(differences)
    wide = pooled_difference(differences, drawn={1: np.array([-0.5, 1.1])})
    assert plain.low == pytest.approx(plain.high)
    assert (wide.low, wide.high) == pytest.approx(((0.1 - 0.5) / 2, (0.1 + 1.1) / 2))
    assert wide.difference == pytest.approx(plain.difference)


def test_the_verdict_of_a_sweep_has_the_choice_in_its_interval() -> None:
    """What is said of a tuned plan is `choice_difference`; without folds there is no choice to draw again."""
    random = np.random.default_rng(8)
    space = Space("default", {"fusion.alpha": [n / 10 for n in range(10)]})
    plans = tuple(space.plan(c) for c in space.combinations())
    values = random.random((10, 60))
    choice = chosen(values)
    ids = tuple(f"q{n}" for n in range(60))
    made = Sweep(space, plans, ("RR",), ids, values[:, :, None], choice, None, None)  # type: ignore[arg-type]
    expected = choice_difference("RR", (str(plans[0]), "tuned"), values[0], values, choice)
    assert made.difference == expected
    alone = Sweep(space, plans, ("RR",), ids, values[:, :, None], None, None, None)  # type: ignore[arg-type]
    assert alone.difference.low == paired_difference("RR", ("a", "b"), values[0], values[made.best_index]).low
