"""The laws of fusion, over every method, normalisation, missing score and unit."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from ranking_cases import SOURCES, candidate_sets, cases, column, fusion_plans, retrieved_rows, with_columns
from trials import trials

from workbench.plan.fields import METHODS, FusionPlan
from workbench.ranking.candidates import Candidates, Column
from workbench.ranking.cutting import to_depth
from workbench.ranking.fuse import Fused, fuse
from workbench.records import Kind

few = trials(10)
# Drawn, methods come in clumps, and a law may never meet one.
every_method = pytest.mark.parametrize("method", METHODS)


def bits(fused: Fused) -> tuple[object, ...]:
    per_source = [
        (source, fused.contributions[source].tobytes(), fused.ranks[source].tobytes(), fused.normalised[source].tobytes(),
         tuple(fused.candidates.chunk_ids[r] if r >= 0 else "" for r in fused.records[source]))
        for source in fused.contributions
    ]  # fmt: skip
    return (
        fused.chunk_ids, fused.document_ids, fused.scores.tobytes(), fused.coverage.tobytes(), fused.labels, per_source
    )  # fmt: skip


@every_method
@few
@given(case=cases())
def test_scores_are_exact_sums_in_a_total_order_of_the_union_without_gaps(method, case):
    candidates, plan = case[0], replace(case[1], method=method)
    fused = fuse(candidates, plan)
    for position, score in enumerate(fused.scores.tolist()):
        parts = [values[position] for values in fused.contributions.values()]
        assert score == math.fsum(parts)
        assert all(math.isfinite(p) and math.copysign(1.0, p) * p >= 0.0 for p in parts)
        assert not any(p == 0.0 and math.copysign(1.0, p) < 0 for p in parts)
    rows = retrieved_rows(candidates).tolist()
    if plan.unit == "chunk":
        assert sorted(fused.rows.tolist()) == rows
    else:
        assert sorted(fused.document_ids) == sorted({candidates.document_ids[r] for r in rows})
        assert set(fused.rows.tolist()) <= set(rows)
    assert fused.chunk_ids == tuple(candidates.chunk_ids[r] for r in fused.rows)
    first: dict[str, int] = {}
    for row in rows:
        first.setdefault(candidates.document_ids[row], row)
    places = fused.rows.tolist() if plan.unit == "chunk" else [first[d] for d in fused.document_ids]
    keys = list(zip((-fused.scores).tolist(), (-fused.coverage).tolist(), places, strict=True))
    assert keys == sorted(keys)
    assert len(set(places)) == len(places)
    for source, ranks in fused.ranks.items():
        counted = sorted(r for r in ranks.tolist() if r)
        if plan.unit == "chunk" or plan.renumber:
            assert counted == list(range(1, len(counted) + 1))
        else:
            raw = candidates.column(source).places
            assert counted == sorted(raw[r] for r in fused.records[source] if r >= 0)


@every_method
@few
@given(case=cases(), random=st.randoms(use_true_random=False))
def test_the_order_of_the_sources_changes_no_bit(method, case, random):
    """Columns in another order, weights and normalisations in another order: the same bytes."""
    candidates, plan = case[0], replace(case[1], method=method)
    columns = list(candidates.columns)
    random.shuffle(columns)
    turned = replace(
        plan, weights=dict(reversed(plan.weights.items())), normalise=dict(reversed(plan.normalise.items()))
    )  # fmt: skip
    assert bits(fuse(with_columns(candidates, tuple(columns)), turned)) == bits(fuse(candidates, plan))


@pytest.mark.slow
@every_method
@few
@given(candidates=candidate_sets(), plan=fusion_plans(), all_cut=st.booleans())
def test_an_empty_ranking_changes_nothing(method, candidates, plan, all_cut):
    """A source that listed nothing, or whose whole list is cut, adds 0 everywhere, whatever it could compute."""
    plan = replace(plan, method=method)
    assume("vector@notes" not in {c.source for c in candidates.columns})
    n = len(candidates)
    empty = column(
        "vector@notes", list(range(n)), [1.0 - i / n for i in range(n)], n if all_cut else 0, 0 if all_cut else n
    )
    without, with_it = fuse(candidates, plan), fuse(with_columns(candidates, (*candidates.columns, empty)), plan)
    assert not with_it.contributions["vector@notes"].any()
    assert (with_it.chunk_ids, with_it.labels) == (without.chunk_ids, without.labels)
    assert with_it.scores.tobytes() == without.scores.tobytes()
    assert all(with_it.contributions[s].tobytes() == without.contributions[s].tobytes() for s in without.contributions)


@pytest.mark.slow
@every_method
@few
@given(case=cases(cuts=False), data=st.data())
def test_moving_up_never_moves_down(method, case, data):
    """A row that changes places with the one above it in one source is nowhere lower in the fused list.

    True of every method where a source's list keeps its scores: unit `chunk`, and unit `document` with raw positions. With
    `renumber` a document's list is refitted on other best scores, and the law holds for rrf, which reads no scores.
    """
    candidates, plan = case[0], replace(case[1], method=method)
    assume(plan.unit == "chunk" or not plan.renumber or plan.method == "rrf")
    index = data.draw(st.integers(0, len(candidates.columns) - 1))
    old = candidates.columns[index]
    listed = int(old.rank.max())
    assume(listed >= 2 and old.adapted is None)
    rank = data.draw(st.integers(2, listed))
    lower, upper = int(np.flatnonzero(old.rank == rank)[0]), int(np.flatnonzero(old.rank == rank - 1)[0])
    swap = np.arange(len(candidates))
    swap[[lower, upper]] = upper, lower
    moved = Column(old.source, old.kind, old.rank[swap], old.score[swap], old.computed[swap], old.cut)
    columns = tuple(moved if c is old else c for c in candidates.columns)
    assert fuse(with_columns(candidates, columns), plan).position(lower) <= fuse(candidates, plan).position(lower)


@every_method
@few
@given(case=cases(), depth=st.integers(1, 9))
def test_cutting_ranks_is_searching_less_deep(method, case, depth):
    """Candidates cut at a depth fuse to the same bytes as candidates that were retrieved at that depth."""
    candidates, plan = case[0], replace(case[1], method=method)
    in_documents = plan.unit == "document" and plan.renumber
    cut = to_depth(candidates, dict.fromkeys(SOURCES, depth), documents=in_documents)
    rows = retrieved_rows(cut)
    columns = (c.take(rows) for c in cut.columns)
    ids, documents, paths = (tuple(v[r] for r in rows) for v in (cut.chunk_ids, cut.document_ids, cut.paths))
    shallower = Candidates(ids, documents, paths, cut.start_lines[rows], cut.whole[rows], tuple(columns))
    assert bits(fuse(cut, plan)) == bits(fuse(shallower, plan))
    for ranks in fuse(cut, plan).ranks.values():
        assert ranks.max(initial=0) <= depth


def exact_value(column: Column, row: int, name: str, missing: str) -> Fraction:
    """Normalised score of a row, in fractions: the definitions of none, minmax and tmm, and of missing scores."""
    listed = [Fraction(s) for s, hit in zip(column.counting.tolist(), column.retrieved, strict=True) if hit]
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
        return put(Fraction(column.counting[row]))
    every = column.computed if column.adapted is None else column.adapted
    return {"zero": Fraction(0), "floor": min(map(put, listed)), "computed": put(Fraction(every[row]))}[missing]


def exact_contribution(candidates: Candidates, column: Column, row: int, plan: FusionPlan) -> Fraction:
    weight = Fraction(plan.weights[column.source])
    if plan.method == "rrf":
        hit = bool(column.retrieved[row])
        return weight / (Fraction(plan.k) + int(column.places[row]) - 1 + plan.rank_base) if hit else Fraction(0)
    if plan.method == "convex":
        weight *= Fraction(plan.alpha) if column.source.startswith("vector") else 1 - Fraction(plan.alpha)
    if plan.method == "combmnz":
        weight *= sum(bool(c.retrieved[row]) for c in candidates.columns if plan.weights[c.source])
    return weight * exact_value(column, row, plan.normalisation(column.source), plan.missing)


@pytest.mark.slow
@pytest.mark.parametrize("method", [m for m in METHODS if m != "max"])
@trials(20)
@given(candidates=candidate_sets(), plan=fusion_plans(normalisations=("none", "minmax", "tmm")))
def test_scores_and_order_agree_with_exact_fractions(method, candidates, plan):
    plan = replace(plan, method=method, unit="chunk")
    fused = fuse(candidates, plan)
    exact = []
    for position, row in enumerate(fused.rows.tolist()):
        parts = {c.source: exact_contribution(candidates, c, row, plan) for c in candidates.columns}
        for source, part in parts.items():
            assert fused.contributions[source][position] == pytest.approx(float(part), rel=1e-15, abs=1e-15)
        exact.append(sum(parts.values()))
    for first, second in pairwise(exact):
        assert first > second - Fraction(1, 10**12)
