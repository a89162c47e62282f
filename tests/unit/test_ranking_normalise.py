"""Normalisations, worked out by hand."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest

from workbench.ranking.normalise import NORMALISERS, Lists
from workbench.ranking.normalise import normalise as normalise_lists
from workbench.records import Kind


def normalise(name: str, scores: np.ndarray, ranks: np.ndarray, kind: Kind):
    own, put = normalise_lists(name, Lists(scores, ranks, np.zeros(len(scores), np.int64), 1, kind))
    return own, lambda s: put(s, np.zeros(len(s), np.int64))


# name, kind, the list's scores, its normalised scores, scores of rows that are not in the list, their normalised scores
CASES = [
    ("none", Kind.LEXICAL, [8, 4, 2], [8, 4, 2], [1], [1]),
    ("minmax", Kind.LEXICAL, [8, 4, 2], [1, F(1, 3), 0], [1, 10], [F(-1, 6), F(4, 3)]),
    ("minmax", Kind.LEXICAL, [3], [1], [2, 4], [0, 1]),
    ("minmax", Kind.SEMANTIC, [0.5, 0.5], [1, 1], [0.25], [0]),
    ("tmm", Kind.LEXICAL, [8, 4, 2], [1, F(1, 2), F(1, 4)], [1, 0], [F(1, 8), 0]),
    ("tmm", Kind.SEMANTIC, [0.5, 0, -0.25], [1, F(2, 3), F(1, 2)], [-1], [0]),
    ("tmm", Kind.LEXICAL, [0, 0], [0, 0], [0], [0]),
    ("tmm", Kind.SEMANTIC, [0.5, 0.5], [1, 1], [-0.25], [F(1, 2)]),
    ("zscore", Kind.LEXICAL, [3, 1], [1, -1], [0, 2], [-2, 0]),
    ("zscore", Kind.LEXICAL, [0.1, 0.1, 0.1], [0, 0, 0], [5], [0]),
    ("rank", Kind.LEXICAL, [8, 4, 4], [1, F(2, 3), F(1, 3)], [1, 4, 5, 9], [0, 0, F(2, 3), 1]),
    ("dbsf", Kind.LEXICAL, [3, 2, 1], [F(4, 6), F(3, 6), F(2, 6)], [-4, 9, 0], [0, 1, F(1, 6)]),
    ("dbsf", Kind.LEXICAL, [7], [F(1, 2)], [3], [F(1, 2)]),
    ("top", Kind.LEXICAL, [8, 4, -2], [1, F(1, 2), 0], [2, -1], [F(1, 4), 0]),
    ("top", Kind.SEMANTIC, [0, -0.5], [0, 0], [-0.75], [0]),
    ("clip", Kind.SEMANTIC, [0.5, -0.25], [0.5, 0], [0.25, -1], [0.25, 0]),
]


@pytest.mark.parametrize(("name", "kind", "listed", "expected", "others", "mapped"), CASES)
def test_each_formula_and_its_degenerate_lists(name, kind, listed, expected, others, mapped) -> None:
    scores = np.array(listed, float)
    own, put = normalise(name, scores, np.arange(1, len(listed) + 1), kind)
    assert own.tolist() == pytest.approx([float(e) for e in expected], abs=1e-15)
    assert put(np.array(others, float)).tolist() == pytest.approx([float(m) for m in mapped], abs=1e-15)


@pytest.mark.parametrize("name", NORMALISERS)
def test_maps_rise_and_do_not_depend_on_the_order_of_the_rows(name: str) -> None:
    rng = np.random.default_rng(7)
    scores = np.sort(rng.normal(1.0, 2.0, 200))[::-1].copy()
    ranks = np.arange(1, 201)
    own, put = normalise(name, scores, ranks, Kind.SEMANTIC)
    assert (np.diff(own) <= 0).all()
    grid = np.linspace(-9, 9, 500)
    assert (np.diff(put(grid)) >= 0).all()
    shuffled = rng.permutation(200)
    again, put_again = normalise(name, scores[shuffled], ranks[shuffled], Kind.SEMANTIC)
    assert again.tobytes() == own[shuffled].tobytes()
    assert put_again(grid).tobytes() == put(grid).tobytes()
