"""Intervals and tests: seeded, exact where that is possible, and put into words."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from workbench.errors import UsageError
from workbench.evaluate.evaluation import score_run
from workbench.evaluate.statistics import bootstrap_interval, paired_difference, pooled_difference, randomisation_test
from workbench.judgments.qrels import Judgments, Topic


def test_the_interval_agrees_with_theory_for_many_values() -> None:
    values = np.random.default_rng(2).normal(0.5, 0.2, 400)
    low, high = bootstrap_interval(values)
    error = values.std(ddof=1) / math.sqrt(400)
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)


def test_equal_values_have_an_interval_without_width_and_one_value_has_none() -> None:
    assert bootstrap_interval(np.full(7, 0.25)) == (0.25, 0.25)
    assert all(math.isnan(end) for end in bootstrap_interval(np.array([0.4])))


def test_the_exact_test_equals_counting_every_sign_pattern() -> None:
    differences = np.array([0.3, 0.1, -0.05, 0.2, 0.0, 0.15, 0.4, -0.1, 0.25])
    moving = [d for d in differences if d]
    observed = abs(sum(moving))
    patterns = list(itertools.product((1, -1), repeat=len(moving)))
    extreme = sum(abs(sum(s * d for s, d in zip(p, moving, strict=True))) >= observed - 1e-12 for p in patterns)
    assert randomisation_test(differences) == extreme / len(patterns)


def test_the_sampled_test_keeps_its_level_when_there_is_no_difference() -> None:
    generator = np.random.default_rng(5)
    found = sum(randomisation_test(generator.normal(0, 1, 30), resamples=500) < 0.05 for _ in range(200))
    assert 2 <= found <= 22


def test_the_verdict_says_better_only_with_evidence() -> None:
    first = np.linspace(0.2, 0.6, 40)
    clear = paired_difference("nDCG@10", ("a", "b"), first, first + 0.1)
    assert clear.significant
    assert clear.verdict.startswith("b is better than a: nDCG@10 +0.100")
    assert (clear.wins, clear.losses, clear.ties) == (40, 0, 0)
    worse = paired_difference("RR", ("a", "b"), first, first - 0.1)
    assert worse.verdict.startswith("b is worse than a")
    noise = paired_difference("RR", ("a", "b"), first, first + np.array([0.1, -0.1] * 20))
    assert noise.verdict.startswith("No difference shown between b and a")
    assert "20 better, 20 worse, 0 equal" in noise.verdict
    same = paired_difference("RR", ("a", "b"), first, first.copy())
    assert same.verdict == "RR is the same for b and a on all 40 queries."
    few = paired_difference("RR", ("a", "b"), first[:3], first[:3] + np.array([0.1, 0.2, -0.1]))
    assert few.verdict.endswith("3 queries are too few to tell much.")


def test_only_evaluations_on_the_same_judgments_are_compared() -> None:
    topics = {"a": Topic("a", "t"), "b": Topic("b", "u")}
    one = Judgments(topics, {"a": {"x": 1}, "b": {"y": 1}})
    other = Judgments(topics, {"a": {"x": 2}, "b": {"y": 1}})
    good = score_run({"a": ["x"], "b": ["y"]}, one, ["RR"], name="good")
    bad = score_run({"a": ["z", "x"]}, one, ["RR"], name="bad")
    assert bad.compare(good).wins == 2
    assert bad.named("worse one").compare(good).first == "worse one"
    with pytest.raises(UsageError, match="judged by different judgments"):
        good.compare(score_run({}, other, ["RR"]))
    with pytest.raises(UsageError, match="no measure in common"):
        good.compare(score_run({}, one, ["AP"]))
    with pytest.raises(UsageError, match=r"AP was not computed\. Computed are: RR"):
        good.mean("AP")


def test_a_pooled_difference_is_the_mean_of_the_sets_means() -> None:
    """A set of four queries counts as much as one of two hundred; its interval is about what the sets' own say together."""
    random = np.random.default_rng(3)
    sets = [random.normal(0.05, 0.1, 200), np.array([0.1, 0.1, 0.1, 0.1])]
    made = pooled_difference(sets)
    assert made.difference == pytest.approx((sets[0].mean() + 0.1) / 2)
    wide = bootstrap_interval(sets[0])
    assert (made.low, made.high) == pytest.approx(((wide[0] + 0.1) / 2, (wide[1] + 0.1) / 2), abs=0.001)
    assert (made.better, made.worse, made.sets, made.queries) == (2, 0, 2, 204)
    assert "clear of 0; better on 2 of 2 collections" in made.brief
    level = pooled_difference([np.array([0.1, -0.1]), np.array([-0.2, 0.1])])
    assert "not clear of 0; better on 0 of 2 collections, worse on 1" in level.brief
    with pytest.raises(UsageError, match="nothing to pool"):
        pooled_difference([])
