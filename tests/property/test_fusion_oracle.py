"""Fusion against two others: one in exact fractions, written from the definitions, and ranx."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking_cases import SOURCES, candidate_sets, fusion_plans

from workbench.plan.fields import FusionPlan
from workbench.ranking.candidates import Candidates, Column
from workbench.ranking.fuse import fuse
from workbench.records import Kind


def exact_value(column: Column, row: int, name: str, missing: str) -> Fraction:
    """Normalised score of a row, in fractions: the definitions of none, minmax and tmm, and of missing scores."""
    listed = [Fraction(s) for s, hit in zip(column.score.tolist(), column.retrieved, strict=True) if hit]
    if column.cut[row] or not listed:
        return Fraction(0)

    def put(score: Fraction) -> Fraction:
        low, high = min(listed), max(listed)
        if name == "none":
            return score
        if name == "minmax":
            return (score - low) / (high - low) if high > low else Fraction(int(score >= high))
        least = Fraction(0 if column.kind is Kind.LEXICAL else -1)
        return (score - least) / (high - least) if high > least else Fraction(0)

    if column.retrieved[row]:
        return put(Fraction(column.score[row]))
    return {"zero": Fraction(0), "floor": min(map(put, listed)), "computed": put(Fraction(column.computed[row]))}[
        missing
    ]


def exact_contribution(column: Column, row: int, plan: FusionPlan) -> Fraction:
    weight = Fraction(plan.weights[column.source])
    if plan.method == "rrf":
        hit = bool(column.retrieved[row])
        return weight / (Fraction(plan.k) + int(column.rank[row]) - 1 + plan.rank_base) if hit else Fraction(0)
    if plan.method == "convex":
        weight *= Fraction(plan.alpha) if column.source.startswith("vector") else 1 - Fraction(plan.alpha)
    return weight * exact_value(column, row, plan.normalisation(column.source), plan.missing)


@st.composite
def exact_cases(draw: st.DrawFn) -> tuple[Candidates, FusionPlan]:
    plan = draw(fusion_plans(("rrf", "weighted", "convex")))
    names = st.sampled_from(["none", "minmax", "tmm"])
    plan = replace(plan, unit="chunk", normalise={s: draw(names) for s in sorted(SOURCES)})
    return draw(candidate_sets()), plan


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(exact_cases())
def test_scores_and_order_agree_with_exact_fractions(case: tuple[Candidates, FusionPlan]) -> None:
    """Every contribution is within a few roundings of the exact one, and items whose exact scores differ are in order."""
    candidates, plan = case
    fused = fuse(candidates, plan)
    exact = []
    for position, row in enumerate(fused.rows.tolist()):
        parts = {c.source: exact_contribution(c, row, plan) for c in candidates.columns}
        for source, part in parts.items():
            assert fused.contributions[source][position] == pytest.approx(float(part), rel=1e-15, abs=1e-15)
        exact.append(sum(parts.values()))
    for first, second in pairwise(exact):
        assert first > second - Fraction(1, 10**12)


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(8)), st.permutations(range(8)), st.permutations(range(8)), st.integers(1, 100))
def test_rrf_scores_are_the_correctly_rounded_sums_of_the_rounded_shares(a, b, c, k: int) -> None:
    """Three sources: each score is the exact sum of the three floats 1 / (k + rank), rounded once."""
    rankings = {
        name: [(f"i{n}", -float(p)) for p, n in enumerate(order)] for name, order in zip("abc", (a, b, c), strict=True)
    }  # fmt: skip
    fused = fuse(rankings, FusionPlan(k=float(k)))
    for item, score in zip(fused.chunk_ids, fused.scores.tolist(), strict=True):
        shares = [1 / (k + order.index(int(item[1:])) + 1) for order in (a, b, c)]
        assert score == float(sum(map(Fraction, shares))) == math.fsum(shares)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(2))
def test_scores_agree_with_ranx(seed: int) -> None:
    """rrf, and the weighted sum of min-max scores with missing ones 0, give every item the score that ranx gives it."""
    ranx = pytest.importorskip("ranx")
    rng = np.random.default_rng(seed)
    rankings = {}
    for source in ("keyword", "vector"):
        scores = np.sort(rng.random(60))[::-1]  # no two equal: ranx settles ties in its own way
        rankings[source] = [(f"d{i:03}", float(s)) for i, s in zip(rng.permutation(80)[:60], scores, strict=True)]
    runs = [ranx.Run({"q": dict(ranking)}) for ranking in rankings.values()]

    def theirs(**settings) -> dict[str, float]:
        return dict(ranx.fuse(runs=runs, **settings).run["q"])

    rrf = fuse(rankings, FusionPlan(k=60.0))
    assert dict(zip(rrf.chunk_ids, rrf.scores.tolist(), strict=True)) == pytest.approx(
        theirs(norm=None, method="rrf", params={"k": 60})
    )
    weights = {"keyword": 0.3, "vector": 0.7}
    wsum = fuse(rankings, FusionPlan("weighted", weights=weights, missing="zero"))
    assert dict(zip(wsum.chunk_ids, wsum.scores.tolist(), strict=True)) == pytest.approx(
        theirs(norm="min-max", method="wsum", params={"weights": (0.3, 0.7)})
    )
    combmnz = fuse(rankings, FusionPlan("combmnz", missing="zero"))
    assert dict(zip(combmnz.chunk_ids, combmnz.scores.tolist(), strict=True)) == pytest.approx(
        theirs(norm="min-max", method="mnz")
    )
