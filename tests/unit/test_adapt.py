"""Similarity adapted to the corpus, and feedback from the top: both against plain formulas."""

import math
from dataclasses import replace

import numpy as np
import pytest

from workbench.errors import PlanError
from workbench.plan.fields import FusionPlan
from workbench.ranking import adapt
from workbench.ranking.candidates import Candidates, Column
from workbench.ranking.fuse import fuse, passthrough
from workbench.records import Kind

RNG = np.random.default_rng(7)
STRETCHED = RNG.normal(size=(400, 24)) * np.linspace(6, 1, 24) + 2 * np.eye(24)[3]
VECTORS = (STRETCHED / np.linalg.norm(STRETCHED, axis=1)[:, None]).astype(np.float32)
NUMBERS = np.arange(0, 1200, 3)


@pytest.fixture(scope="module")
def fitted() -> adapt.Adaptation:
    found = adapt.fit(VECTORS, NUMBERS)
    assert found is not None
    return found


def test_the_first_directions_are_levelled_and_the_mean_is_taken_away(fitted: adapt.Adaptation) -> None:
    mean = VECTORS.astype(float).mean(axis=0)
    covariance = np.cov((VECTORS - mean).T.astype(float))
    variance, directions = np.linalg.eigh(covariance)
    level = variance[::-1][adapt.DIRECTIONS]
    expected = []
    for vector in VECTORS[:20].astype(float):
        moved = vector - mean
        for w, p in list(zip(variance, directions.T, strict=True))[::-1][: adapt.DIRECTIONS]:
            moved = moved - (1 - math.sqrt(level / w)) * (p @ (vector - mean)) * p
        expected.append(moved / np.linalg.norm(moved))
    assert fitted.adapted(VECTORS[:20]) == pytest.approx(np.array(expected), abs=1e-9)
    assert fitted.adapted(fitted.mean[None].astype(np.float32)) == pytest.approx(
        0, abs=1.1
    )  # finite, whatever its direction


def test_hubness_is_the_mean_of_the_nearest_references_and_none_is_its_own(fitted: adapt.Adaptation) -> None:
    references = [(int(n), fitted.references[i]) for i, n in enumerate(fitted.numbers)]

    def nearest(number: int, vector: np.ndarray) -> float:
        near = sorted((float(vector @ r) for n, r in references if n != number), reverse=True)
        return sum(near[: adapt.NEIGHBOURS]) / adapt.NEIGHBOURS

    middle = np.mean([nearest(n, r) for n, r in references])
    found = fitted.hubness(VECTORS[:30], NUMBERS[:30])
    expected = [nearest(int(n), v.astype(float)) - middle for n, v in zip(NUMBERS[:30], VECTORS[:30], strict=True)]
    assert found == pytest.approx(np.array(expected), abs=1e-8)


def test_an_answer_is_the_same_whichever_rows_stand_beside_it(fitted: adapt.Adaptation) -> None:
    query = fitted.adapted(VECTORS[:1])[0]
    alike, hubs = adapt.rounded(fitted.adapted(VECTORS) @ query), fitted.hubness(VECTORS, NUMBERS)
    for rows in (np.array([5]), RNG.permutation(400)[:77], np.arange(399, -1, -1)):
        assert (adapt.rounded(fitted.adapted(VECTORS[rows]) @ query) == alike[rows]).all()
        assert (fitted.hubness(VECTORS[rows], NUMBERS[rows]) == hubs[rows]).all()


def test_a_small_corpus_is_not_adapted_to_and_a_large_one_by_a_sample() -> None:
    assert adapt.fit(VECTORS[: adapt.LEAST - 1], NUMBERS[: adapt.LEAST - 1]) is None
    assert adapt.sample(7).tolist() == list(range(7))
    chosen = adapt.sample(3 * adapt.SAMPLE)
    assert len(set(chosen.tolist())) == adapt.SAMPLE
    assert (np.diff(chosen) > 0).all()
    assert chosen.max() < 3 * adapt.SAMPLE
    assert (chosen == adapt.sample(3 * adapt.SAMPLE)).all()
    same = np.repeat(VECTORS[:1], adapt.LEAST, axis=0)
    fitted = adapt.fit(same, np.arange(len(same)))
    assert fitted is not None
    assert np.isfinite(fitted.adapted(VECTORS)).all()


# --- in fusion -------------------------------------------------------------------------------------------------------------


def two_sources(adapted: list[float] | None = None, vectors: np.ndarray | None = None) -> Candidates:
    """Vector ranks a, b, c, d and cuts d; keyword ranks d, a."""
    nan = math.nan
    cosines = np.array([0.9, 0.8, 0.4, -0.2])
    vector = Column("vector", Kind.SEMANTIC, np.array([1, 2, 3, 4]), cosines, cosines, np.array([0, 0, 0, 1], bool))
    words = np.array([1.0, nan, nan, 4.0])
    keyword = Column("keyword", Kind.LEXICAL, np.array([2, 0, 0, 1]), words, np.nan_to_num(words), np.zeros(4, bool))
    if adapted is not None:
        vector = replace(vector, adapted=np.array(adapted))
    names = ("a", "b", "c", "d")
    return Candidates(
        names,
        names,
        names,
        np.ones(4, np.int64),
        np.zeros(4, bool),
        (keyword, vector),
        None if vectors is None else vectors.__getitem__,
    )


def test_adapted_similarity_orders_and_counts_and_the_cosine_cuts() -> None:
    candidates = two_sources([0.1, 0.6, 0.3, 0.95])
    fused = fuse(candidates, FusionPlan("rrf"))
    ranks = dict(zip(fused.chunk_ids, fused.ranks["vector"].tolist(), strict=True))
    assert ranks == {"b": 1, "c": 2, "a": 3, "d": 0}  # d was cut by its cosine, however near it is adapted
    assert candidates.column("vector").listed.tolist() == [1, 2, 0]
    alone = passthrough(candidates, "vector")
    assert alone.chunk_ids == ("b", "c", "a")
    assert alone.scores.tolist() == [0.6, 0.3, 0.1]
    mixed = fuse(candidates, FusionPlan("convex", alpha=1.0, normalise={"vector": "tmm", "keyword": "tmm"}))
    values = dict(zip(mixed.chunk_ids, mixed.normalised["vector"].tolist(), strict=True))
    assert values == pytest.approx({"b": 1.0, "c": 1.3 / 1.6, "a": 1.1 / 1.6, "d": math.nan}, nan_ok=True)


@pytest.mark.parametrize("method", ["rrf", "weighted", "convex", "max", "combmnz"])
def test_feedback_adds_the_likeness_to_the_top_on_the_scale_of_the_scores(method: str) -> None:
    vectors = np.array([[1.0, 0.0], [0.6, 0.8], [0.8, 0.6], [0.0, 1.0]])
    plain = fuse(two_sources(), FusionPlan(method))
    fed = fuse(two_sources(vectors=vectors), FusionPlan(method, feedback_top=2, feedback_weight=0.5))
    before = dict(zip(plain.chunk_ids, plain.scores.tolist(), strict=True))
    centre = np.mean([vectors["abcd".index(name)] for name in plain.chunk_ids[:2]], axis=0)
    like = {name: float(vectors["abcd".index(name)] @ centre) for name in before}
    spread, mean = np.std(list(like.values())), np.mean(list(like.values()))
    for position, name in enumerate(fed.chunk_ids):
        added = 0.5 * np.std(list(before.values())) / spread * (like[name] - mean)
        assert fed.contributions["feedback"][position] == pytest.approx(added, abs=1e-8)
        parts = [float(values[position]) for values in fed.contributions.values()]
        assert fed.scores[position] == math.fsum(parts)
        assert math.fsum(parts[:-1]) == pytest.approx(before[name], abs=1e-12)
    assert (np.diff(fed.scores) <= 0).all()


def test_feedback_needs_vectors_and_more_items_than_it_is_taken_from() -> None:
    plan = FusionPlan("rrf", feedback_top=4, feedback_weight=1.0)
    assert "feedback" not in fuse(two_sources(), plan).contributions
    assert not fuse(two_sources(vectors=np.eye(4)), plan).contributions["feedback"].any()
    with pytest.raises(PlanError, match="feedback"):
        fuse(two_sources(vectors=np.eye(4)), replace(plan, feedback_top=0))
