"""Many plans at once, as sweeps rank them: documents, equal texts, cutoffs; always the ranks of one fusion after another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking_cases import candidate_sets, candidates_of, column, fusion_plans

from workbench.plan import FusionPlan
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
