"""Distance, order, exact sums, cutting and agreement."""

import math
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest

from workbench.ranking import agreement
from workbench.ranking.candidates import Candidates, Column
from workbench.ranking.cutting import below, to_cosine, to_distance, to_threshold
from workbench.ranking.normalise import NORMALISERS, Lists
from workbench.ranking.normalise import normalise as normalise_lists
from workbench.records import Kind


def three() -> Candidates:
    """Vector ranks a 0.9, b 0.5, c 0.1 of documents x, x, y; keyword ranks c and can compute a."""
    rank = np.array([1, 2, 3])
    score = np.array([0.9, 0.5, 0.1])
    vector = Column("vector", Kind.SEMANTIC, rank, score, score, np.zeros(3, bool))
    nan = math.nan
    keyword = Column(
        "keyword",
        Kind.LEXICAL,
        np.array([0, 0, 1]),
        np.array([nan, nan, 2.0]),
        np.array([1.0, nan, 2.0]),
        np.zeros(3, bool),
    )
    documents = ("x", "x", "y")
    return Candidates(("a", "b", "c"), documents, documents, np.ones(3, np.int64), np.zeros(3, bool), (keyword, vector))


@pytest.mark.parametrize(
    ("metric", "at_half", "distances"),
    [
        ("angular", 0.0, [0.0, 0.5, 1.0]),
        ("cosine", 0.5, [0.0, 1.0, 2.0]),
        ("l2sq", 0.75, [0.0, 2.0, 4.0]),
        ("l2", 0.875, [0.0, math.sqrt(2), 2.0]),
    ],
)
def test_distances_of_cosines_1_0_and_minus_1(metric, at_half, distances):
    """The four transforms, what threshold 0.5 means in each, and that a float beyond 1 is taken as 1."""
    assert to_distance([1.0, 0.0, -1.0], metric).tolist() == distances
    assert to_distance([1.0000002, -1.0000002], metric).tolist() == [distances[0], distances[2]]
    assert float(to_cosine(0.5, metric)) == pytest.approx(at_half, abs=1e-15)
    grid = np.linspace(-1, 1, 201)
    assert to_cosine(to_distance(grid, metric), metric) == pytest.approx(grid, abs=1e-12)
    assert np.isnan(to_distance([math.nan], metric)).all()


def test_what_a_threshold_keeps():
    cut = to_threshold(three(), "vector", 0.5, "cosine")
    assert cut.column("vector").cut.tolist() == [False, True, True]
    assert cut.column("vector").rank.tolist() == [1, 2, 3]
    assert not cut.column("keyword").cut.any()
    for off in (None, "off"):
        assert not to_threshold(cut, "vector", off, "cosine").column("vector").cut.any()
    assert to_threshold(three(), "vector", 0.0, "cosine").column("vector").cut.all()
    column = three().column("keyword")
    score = column.score[column.rank > 0].min()
    for at, cut in ((score, False), (np.nextafter(score, np.inf), True)):
        found = to_threshold(three(), "keyword", float(at), "cosine").column("keyword")
        assert bool(found.cut[np.flatnonzero(column.score == score)[0]]) is cut
        assert found.rank.tolist() == column.rank.tolist()
    unknown = Column(
        "keyword", Kind.LEXICAL, *(np.array(v) for v in ([0, 0], [np.nan] * 2, [0.2, np.nan], [False] * 2))
    )
    made = replace(three(), columns=(unknown,))
    assert to_threshold(made, "keyword", 0.5, "cosine").column("keyword").cut.tolist() == [True, False]


@pytest.mark.parametrize("score", [0.0, 1.0, 0.0164, 1 / 61, 3.14159, 1234.56, -0.27, 1e-7, 0.1 + 0.2])
def test_a_threshold_of_four_figures_keeps_the_score_that_it_is_for(score):
    found = below(score)
    assert found <= score
    assert score - found <= abs(score) / 999
    assert len(f"{found:.12g}".lstrip("-0.").replace(".", "").split("e")[0].rstrip("0")) <= 4


def test_overlap_and_jaccard_count_ids_whatever_their_order():
    assert agreement.overlap("abc", "cad") == 2
    assert agreement.jaccard("abc", "cad") == 0.5
    assert agreement.jaccard("", "") == 1.0
    assert agreement.jaccard("a", "") == 0.0


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("ab", "ab", 1.0),
        ("ab", "cd", 0.0),
        ("ab", "ba", 0.5),  # 0 at depth 1; 2/2 at depth 2: 1/4 + 1/4 beyond
        ("a", "ba", 0.25),  # 1/2 x 1/4, and 1/2 x 1/4 beyond
        ("a", "ab", 1.0),  # a prefix agrees with every ranking that it begins
        ("", "", 1.0),
        ("", "a", 0.0),
    ],
)
def test_rank_biased_overlap_by_hand_with_p_a_half(first, second, expected):
    assert agreement.rbo(first, second, p=0.5) == pytest.approx(expected, abs=1e-15)
    assert agreement.rbo(second, first, p=0.5) == pytest.approx(expected, abs=1e-15)


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
def test_each_formula_and_its_degenerate_lists(name, kind, listed, expected, others, mapped):
    scores = np.array(listed, float)
    own, put = normalise(name, scores, np.arange(1, len(listed) + 1), kind)
    assert own.tolist() == pytest.approx([float(e) for e in expected], abs=1e-15)
    assert put(np.array(others, float)).tolist() == pytest.approx([float(m) for m in mapped], abs=1e-15)


@pytest.mark.parametrize("name", NORMALISERS)
def test_maps_rise_and_do_not_depend_on_the_order_of_the_rows(name):
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
