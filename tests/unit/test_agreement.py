"""Kappa by hand, from the papers, and where it is not defined."""

from __future__ import annotations

import math

import pytest

from workbench.errors import UsageError
from workbench.judgments.agreement import agreement, cohen, fleiss


def test_cohen_by_hand() -> None:
    """Yes and no on 50: 20 both yes, 15 both no, 5 and 10 apart: (0.7 - 0.5) / (1 - 0.5) = 0.4."""
    first = [1] * 20 + [0] * 15 + [1] * 5 + [0] * 10
    second = [1] * 20 + [0] * 15 + [0] * 5 + [1] * 10
    assert cohen(first, second) == pytest.approx(0.4)
    assert cohen(second, first) == pytest.approx(0.4)
    assert cohen(first, second, "quadratic") == pytest.approx(0.4)  # two grades: weights change nothing


def test_weights_by_hand() -> None:
    # pairs (0,1) (0,3) (3,1) (3,3), each 1/4: linear (1+3+2+0)/4 = 1.5, observed 0.5; quadratic (1+9+4+0)/4 = 3.5
    assert cohen([0, 3], [1, 3], "linear") == pytest.approx(1 - 0.5 / 1.5)
    assert cohen([0, 3], [1, 3], "quadratic") == pytest.approx(1 - 0.5 / 3.5)
    # not weighted: observed 1 of 2 apart, expected 3 of 4 pairs apart
    assert cohen([0, 3], [1, 3]) == pytest.approx(1 - 0.5 / 0.75)


def test_fleiss_of_its_paper() -> None:
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


def test_words_for_kappa() -> None:
    assert "no" not in agreement([{"a": 0, "b": 1}, {"a": 1, "b": 0}]).words.split()
    assert "worse than chance" in agreement([{"a": 0, "b": 1}, {"a": 1, "b": 0}]).words
    assert "almost perfect" in agreement([{"a": 0, "b": 0}, {"a": 1, "b": 1}]).words
    assert "nothing in common" in agreement([{"a": 0}, {"b": 1}]).words
