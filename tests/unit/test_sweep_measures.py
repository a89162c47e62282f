"""Measures from ranks alone: worked by hand, and the same as ir_measures gives."""

from __future__ import annotations

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
    assert compute({"q": ["a"]}, {"q": {"a": -1}}, ["q"], ["nDCG@10", "AP"]).tolist() == [[0.0, 0.0]]
