"""Intervals and tests: seeded, exact where that is possible, and put into words."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import UsageError
from workbench.evaluate.evaluation import score_run
from workbench.evaluate.grid import Space
from workbench.evaluate.measures import compute, quick, values_of
from workbench.evaluate.statistics import (
    Choice,
    bootstrap_interval,
    choice_difference,
    choice_means,
    deal,
    nested,
    paired_difference,
    randomisation_test,
)
from workbench.evaluate.sweep import Sweep
from workbench.judgments.agreement import agreement, cohen, fleiss
from workbench.judgments.qrels import Judgments, Topic


def test_the_test_is_exact_and_keeps_its_level() -> None:
    values = np.random.default_rng(2).normal(0.5, 0.2, 400)
    low, high = bootstrap_interval(values)
    error = values.std(ddof=1) / math.sqrt(400)
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)
    assert bootstrap_interval(np.full(7, 0.25)) == (0.25, 0.25)
    assert all(math.isnan(end) for end in bootstrap_interval(np.array([0.4])))
    differences = np.array([0.3, 0.1, -0.05, 0.2, 0.0, 0.15, 0.4, -0.1, 0.25])
    moving = [d for d in differences if d]
    observed = abs(sum(moving))
    patterns = list(itertools.product((1, -1), repeat=len(moving)))
    extreme = sum(abs(sum(s * d for s, d in zip(p, moving, strict=True))) >= observed - 1e-12 for p in patterns)
    assert randomisation_test(differences) == extreme / len(patterns)
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


# --- folds -----------------------------------------------------------------------------------------------------------


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


def test_the_verdict_of_a_sweep_has_the_choice_in_its_interval() -> None:
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


# --- sweep measures --------------------------------------------------------------------------------------------------


NAMES = "nDCG@3 nDCG@10 nDCG RR RR@3 R@5 P@3 AP AP@4 Success@2 P(rel=2)@5 R(rel=2)@10".split()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.permutations(range(12)), st.integers(0, 12), st.lists(st.integers(-1, 3), min_size=1, max_size=12))
def test_the_same_values_as_ir_measures(order: list[int], returned: int, grades: list[int]) -> None:
    """Any ranking, any grades, negative ones and documents that were not returned among them: equal to 1e-12."""
    ranking = [f"d{i}" for i in order[:returned]]
    qrels = {f"d{i}": grade for i, grade in enumerate(grades)}
    wanted = compute({"q": ranking}, {"q": qrels}, ["q"], NAMES)[0]
    ranks = np.array([[ranking.index(d) + 1 if d in ranking else 0 for d in qrels]])
    judged = np.array(grades)
    measures = [q for q in map(quick, NAMES) if q is not None]
    assert len(measures) == len(NAMES)
    assert values_of(measures, ranks, judged, judged)[0] == pytest.approx(wanted, abs=1e-12)


def test_a_query_with_negative_grades_only_counts_nothing() -> None:
    assert compute({"q": ["a"]}, {"q": {"a": -1}}, ["q"], ["nDCG@10", "AP"]).tolist() == [[0.0, 0.0]]


# --- agreement -------------------------------------------------------------------------------------------------------


def test_kappas_are_those_of_their_papers() -> None:
    first = [1] * 20 + [0] * 15 + [1] * 5 + [0] * 10
    second = [1] * 20 + [0] * 15 + [0] * 5 + [1] * 10
    assert cohen(first, second) == pytest.approx(0.4)
    assert cohen(second, first) == pytest.approx(0.4)
    assert cohen(first, second, "quadratic") == pytest.approx(0.4)  # two grades: weights change nothing
    table = [
        (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
    ]  # fmt: skip
    items = [[grade for grade, count in enumerate(row) for _ in range(count)] for row in table]
    assert fleiss(items) == pytest.approx(0.210, abs=0.0005)


@pytest.mark.parametrize(("first", "second"), [([], []), ([2, 2], [2, 2])])
def test_nothing_can_be_told_from_one_grade(first: list[int], second: list[int]) -> None:
    assert math.isnan(cohen(first, second))
    assert math.isnan(fleiss([list(pair) for pair in zip(first, second, strict=True)]))


def test_only_items_of_two_judges_count() -> None:
    items = [{"a": 1, "b": 1}, {"a": 0, "b": 2}, {"a": 3}, {"b": 3, "c": 3}, {"a": 1, "b": 1, "c": 1}]
    two = agreement(items, ["a", "b"])
    assert (two.method, two.items, two.observed) == ("Cohen", 3, pytest.approx(2 / 3))
    assert two.kappa == cohen([1, 0, 1], [1, 2, 1])
    three = agreement(items)
    assert (three.method, three.items, three.judges) == ("Fleiss", 4, ("a", "b", "c"))
    assert three.kappa == fleiss([[1, 1], [0, 2], [3, 3], [1, 1, 1]])
    assert "3 judges agree on 75% of 4 passages" in three.words
    with pytest.raises(UsageError, match="two judges"):
        agreement([{"a": 1}])
    with pytest.raises(UsageError, match="same items"):
        cohen([1], [1, 2])
    assert "no" not in agreement([{"a": 0, "b": 1}, {"a": 1, "b": 0}]).words.split()
    assert "worse than chance" in agreement([{"a": 0, "b": 1}, {"a": 1, "b": 0}]).words
    assert "almost perfect" in agreement([{"a": 0, "b": 0}, {"a": 1, "b": 1}]).words
    assert "nothing in common" in agreement([{"a": 0}, {"b": 1}]).words
