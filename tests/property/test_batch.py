"""Many plans over many queries at once, as sweeps rank them: always the ranks of one fusion after another."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranking_cases import candidate_sets, candidates_of, column, fusion_plans
from trials import trials

from workbench.plan import fields as plan_fields
from workbench.plan.fields import FusionPlan
from workbench.ranking.batch import Batch, Judged
from workbench.ranking.candidates import Candidates
from workbench.ranking.cutting import to_depth, to_threshold
from workbench.ranking.fuse import fuse, passthrough


def expected(
    candidates: Candidates,
    plan: FusionPlan,
    texts: list[int] | None = None,
    left_out: str | None = None,
    threshold: float | None = None,
    passed: bool = False,
) -> list[int]:
    """Rank of every row's document in the fused list, by plain loops."""
    lists = [c.source for c in candidates.columns if c.retrieved.any()]
    alone = passed and len(lists) == 1
    fused = passthrough(candidates, lists[0], plan) if alone else fuse(candidates, plan)
    seen: set[int] = set()
    documents: list[str] = []
    for row, score in zip(fused.rows.tolist(), fused.scores.tolist(), strict=True):
        if threshold is not None and not alone and score < threshold:
            continue
        if texts is not None and texts[row] in seen:
            continue
        if texts is not None:
            seen.add(texts[row])
        document = candidates.document_ids[row]
        if document not in documents and document != left_out:
            documents.append(document)
    return [documents.index(d) + 1 if d in documents else 0 for d in candidates.document_ids]


def judged(candidates: Candidates, texts: list[int] | None = None, left_out: str | None = None) -> Judged:
    names = tuple("" if d == left_out else d for d in candidates.document_ids)
    vectors = None if candidates.vectors is None else candidates.vectors(np.arange(len(candidates)))
    products = None if vectors is None else vectors @ vectors.T
    equal = None if texts is None else np.asarray(texts, np.uint64)
    return Judged(candidates, np.arange(len(candidates)), names, equal, products)


@trials(50)
@given(
    st.lists(candidate_sets(), min_size=1, max_size=4),
    st.lists(fusion_plans(plan_fields.METHODS, feedback=True), min_size=1, max_size=9),
    st.booleans(),
    st.sampled_from([None, 0.0, 0.02, 0.6]),
    st.sampled_from([None, 1, 2]),
    st.data(),
)
def test_every_plan_has_the_ranks_of_one_fusion_after_another(queries, plans, passed, threshold, cutoff, data):
    """Every method, normalisation, missing score and unit; queries that lack sources; equal texts, of which the first stays; a
    document that is left out; fused thresholds, lists that are passed through, cutoffs.
    """
    unit = plans[0].unit
    fed = {} if unit == "chunk" else {"feedback_weight": 0.0}  # documents with feedback go one by one
    plans = [replace(plan, unit=unit, **fed) for plan in plans]
    texts = [
        data.draw(st.lists(st.integers(0, 4), min_size=len(q), max_size=len(q))) if unit == "chunk" else None
        for q in queries
    ]
    out = data.draw(st.sampled_from([None, "d01", "d03"]))
    batch = Batch.of([judged(q, t, out) for q, t in zip(queries, texts, strict=True)])
    found = batch.ranks(plans, cutoff=cutoff, threshold=threshold, dedupe=True, passthrough=passed)
    for ranks, plan in zip(found.tolist(), plans, strict=True):
        every = [
            rank
            for q, t in zip(queries, texts, strict=True)
            for rank, name in zip(expected(q, plan, t, out, threshold, passed), q.document_ids, strict=True)
        ]
        wanted = [0 if cutoff is not None and rank > cutoff else rank for rank in every]
        assert ranks == wanted


@trials(30)
@given(st.lists(candidate_sets(cuts=False), min_size=1, max_size=3), st.booleans(), st.integers(1, 5))
def test_queries_are_cut_together_as_each_is_cut(queries, documents, depth):
    depths, thresholds = {"keyword": depth, "vector": depth + 1}, {"keyword": 2.0, "vector": 0.5, "grep": "off"}
    batch = Batch.of([judged(q) for q in queries]).cut(depths, thresholds, "angular", documents=documents)
    at = 0
    for query in queries:
        alone = to_depth(query, depths, documents=documents)
        for source, threshold in thresholds.items():
            alone = to_threshold(alone, source, threshold, "angular")
        for one in alone.columns:
            whole = next(c for c in batch.columns if c.source == one.source)
            rows = slice(at, at + len(query))
            assert whole.rank[rows].tolist() == one.rank.tolist()
            assert whole.cut[rows].tolist() == one.cut.tolist()
            assert np.array_equal(whole.score[rows], one.score, equal_nan=True)
        at += len(query)


PAIRS = [(1.0, 1.0), (0.3, 1.0), (1.0, 0.0), (0.0, 2.0), (2.0, 2.0), (1e-9, 1.0)]


@pytest.mark.parametrize("equal_texts", [False, True])
@pytest.mark.parametrize("sources", [("keyword", "vector"), ("grep", "keyword", "vector")])
def test_items_that_can_never_be_first_are_left_out_unseen(sources, equal_texts):
    """Three queries of 500 rows, many ties, one of them answered by one source only: ranks to 5 and to 20 as without a cutoff."""
    rng = np.random.default_rng(len(sources) + equal_texts)
    queries, texts = [], []
    for n in range(3):
        columns = []
        for source in sources[: 1 if n == 1 else None]:
            scores = np.round(rng.random(500), 2)
            order = np.argsort(-scores, kind="stable").tolist()
            columns.append(column(source, order, [float(scores[row]) for row in order], 300, 500))
        queries.append(candidates_of(columns, rng.integers(0, 120, 500).tolist(), [False] * 500))
        texts.append(rng.integers(0, 400, 500).tolist() if equal_texts else None)
    batch = Batch.of([judged(q, t) for q, t in zip(queries, texts, strict=True)])
    plans = [
        FusionPlan(method, weights={"keyword": a, "vector": b, "grep": b}, missing=missing)
        for method, missing in (("rrf", "zero"), ("weighted", "computed"), ("weighted", "zero"), ("max", "computed"))
        for a, b in PAIRS
    ]
    every = [
        [rank for q, t in zip(queries, texts, strict=True) for rank in expected(q, plan, t, passed=True)]
        for plan in plans
    ]
    for cutoff in (5, 20):
        found = batch.ranks(plans, cutoff=cutoff, dedupe=equal_texts, passthrough=True)
        assert found.tolist() == [[rank if rank <= cutoff else 0 for rank in ranks] for ranks in every]
