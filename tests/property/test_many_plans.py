"""Many plans at once, as sweeps rank them: documents, equal texts, cutoffs; always the ranks of one fusion after another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking_cases import candidate_sets, candidates_of, column, fusion_plans

from workbench.plan.fusion import FusionPlan
from workbench.ranking import lone, many
from workbench.ranking.candidates import Candidates
from workbench.ranking.fuse import fuse
from workbench.ranking.many import prepare, ranks_of


def expected(candidates: Candidates, plan: FusionPlan, texts: list[int] | None) -> list[int]:
    """Rank of every row's document in the fused list, after rows with an earlier row's text are gone; by plain loops."""
    seen: set[int] = set()
    documents: list[str] = []
    for row in fuse(candidates, plan).rows.tolist():
        if texts is not None and texts[row] in seen:
            continue
        if texts is not None:
            seen.add(texts[row])
        if candidates.document_ids[row] not in documents:
            documents.append(candidates.document_ids[row])
    return [documents.index(d) + 1 if d in documents else 0 for d in candidates.document_ids]


@settings(max_examples=60, deadline=None)
@given(candidate_sets(), st.lists(fusion_plans(), min_size=1, max_size=4), st.data())
def test_rows_with_an_earlier_text_are_not_counted(
    candidates: Candidates, plans: list[FusionPlan], data: st.DataObject
) -> None:
    """Which of two equal texts stays depends on the plan; documents that lose all their rows have no rank."""
    plans = [replace(plan, unit="chunk") for plan in plans]
    texts = data.draw(st.lists(st.integers(0, 4), min_size=len(candidates), max_size=len(candidates)))
    rows = list(range(len(candidates)))
    keys = np.asarray(texts, np.uint64)
    found = ranks_of(candidates, plans, rows, documents=True, texts=keys)
    for at, plan in enumerate(plans):
        wanted = expected(candidates, plan, texts)
        assert found[at].tolist() == wanted
        assert prepare(candidates, plan, rows, documents=True, texts=keys).ranks(plan).tolist() == wanted


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("equal_texts", [False, True])
def test_documents_within_the_cutoff_keep_their_ranks_when_hopeless_rows_are_left_out(
    seed: int, equal_texts: bool
) -> None:
    """500 rows of 120 documents with many ties and equal texts: ranks to 5 and to 20 as without a cutoff."""
    rng = np.random.default_rng(seed)
    columns = []
    for source in ("keyword", "vector"):
        scores = np.round(rng.random(500), 2)
        order = np.argsort(-scores, kind="stable").tolist()
        columns.append(column(source, order, [float(scores[row]) for row in order], 300, 500))
    candidates = candidates_of(columns, rng.integers(0, 120, 500).tolist(), [False] * 500)
    texts = rng.integers(0, 400, 500).astype(np.uint64) if equal_texts else None
    plans = [FusionPlan(m, weights={"keyword": a, "vector": b}) for m in ("rrf", "weighted", "max") for a, b in PAIRS]
    rows = list(range(0, 500, 7))
    for cutoff in (5, 20):
        found = ranks_of(candidates, plans, rows, documents=True, texts=texts, cutoff=cutoff)
        for at, plan in enumerate(plans):
            every = expected(candidates, plan, None if texts is None else texts.tolist())
            assert found[at].tolist() == [every[r] if every[r] <= cutoff else 0 for r in rows]


PAIRS = [(1.0, 1.0), (0.3, 1.0), (1.0, 0.0), (0.0, 2.0)]


@settings(max_examples=80, deadline=None)
@given(candidate_sets(), st.lists(fusion_plans(), min_size=1, max_size=6), st.data())
def test_the_ways_for_many_plans_give_the_ranks_of_one_fusion_after_another(
    candidates: Candidates, plans: list[FusionPlan], data: st.DataObject
) -> None:
    """Halving over what one source alone found, and plans side by side: used however few items or plans there are."""
    rows = data.draw(st.lists(st.integers(0, max(len(candidates) - 1, 0)), max_size=8)) if len(candidates) else []
    plans = [replace(plan, unit="chunk") for plan in plans]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lone, "_WORTH", 0)
        patch.setattr(many, "MANY_PLANS", 1)
        found = ranks_of(candidates, plans, rows)
    for at, plan in enumerate(plans):
        listed = fuse(candidates, plan).rows.tolist()
        assert found[at].tolist() == [listed.index(r) + 1 if r in listed else 0 for r in rows]


@pytest.mark.parametrize("sources", [("keyword", "vector"), ("grep", "keyword", "vector")])
def test_long_lists_that_hardly_overlap_have_the_ranks_of_one_fusion_after_another(sources: tuple[str, ...]) -> None:
    """600 rows of each source, ties between sources, weights of 0, and k so large that shares of neighbours are equal."""
    rng = np.random.default_rng(5)
    rows = 500 * len(sources)
    columns = []
    for n, source in enumerate(sources):
        own = np.isin(np.arange(rows), np.arange(450 * n, 450 * n + 600) % rows)
        order = [*rng.permutation(np.flatnonzero(own)).tolist(), *np.flatnonzero(~own).tolist()]
        columns.append(column(source, order, [1 - i / 2000 for i in range(rows)], 600, rows))
    candidates = candidates_of(columns, list(range(rows)), [False] * rows)
    weights = [(1.0, 1.0, 1.0), (0.0, 1.0, 2.0), (1.0, 0.0, 0.0), (1e-9, 1.0, 0.5), (0.7, 0.3, 1.1)]
    plans = [
        FusionPlan("rrf", k=k, rank_base=base, weights=dict(zip(reversed(sources), weight, strict=False)))
        for k in (1.0, 60.0, 1e5)
        for base in (0, 1)
        for weight in weights
    ]
    chosen = sorted(rng.choice(rows, 12, replace=False).tolist())
    found = ranks_of(candidates, plans, chosen)
    for at, plan in enumerate(plans):
        place = {row: rank for rank, row in enumerate(fuse(candidates, plan).rows.tolist(), 1)}
        assert found[at].tolist() == [place.get(row, 0) for row in chosen]
