"""Measures from ranks alone: worked by hand, and the same as ir_measures gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.evaluate.measures import compute, quick, values_of

NAMES = [
    "nDCG@3",
    "nDCG@10",
    "nDCG",
    "RR",
    "RR@3",
    "R@5",
    "P@3",
    "AP",
    "AP@4",
    "Success@2",
    "P(rel=2)@5",
    "R(rel=2)@10",
]


def test_figures_worked_by_hand() -> None:
    """Grades 2, 1 and 0 at ranks 1, 3 and 2, and one relevant document that was not found."""
    ranks, grades, every = np.array([[1, 3, 2]]), np.array([2, 1, 0]), np.array([2, 1, 0, 1])
    wanted = {
        "nDCG@10": (2 + 1 / 2) / (2 + 1 / math.log2(3) + 1 / 2),
        "RR": 1.0,
        "R@10": 2 / 3,
        "P@10": 2 / 10,
        "AP": (1 / 1 + 2 / 3) / 3,
        "Success@1": 1.0,
        "RR(rel=1)@1": 1.0,
        "P(rel=2)@1": 1.0,
    }
    for name, value in wanted.items():
        measure = quick(name)
        assert measure is not None
        assert measure.of(ranks, grades, every)[0] == pytest.approx(value, abs=1e-12), name


def test_a_measure_that_needs_the_whole_list_is_not_quick() -> None:
    """Judged, other gains and bpref are computed elsewhere."""
    assert quick("Judged@10") is None
    assert quick("nDCG(gains={1: 1, 2: 3})@10") is None
    assert quick("Bpref") is None


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
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
    """trec_eval itself never comes back from such a query."""
    assert compute({"q": ["a"]}, {"q": {"a": -1}}, ["q"], ["nDCG@10", "AP"]).tolist() == [[0.0, 0.0]]
