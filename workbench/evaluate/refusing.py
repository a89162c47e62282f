"""Pooled candidates to the ranks of judged documents, for many plans at once and exactly as a search ranks them.

Plans that cut candidates the same way (sources, depths, thresholds) are one `Cut`: the candidates are cut once a query and
all its plans are fused as one matrix (`ranking.many`). What that cannot do goes one plan after another through the search's
own code: a reranking model, a threshold on fused scores, one source's list handed on as it is, equal texts among documents
ranked as documents, or of which a judged one may be removed as the copy of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from workbench.evaluate.pool import Pooled
from workbench.evaluate.run import with_alike
from workbench.plan.fields import FUSED, OFF
from workbench.plan.plan import Plan
from workbench.ranking.candidates import Candidates
from workbench.ranking.many import Batch, Ready, prepare, ranks_of
from workbench.retrieve.engine import Engine
from workbench.retrieve.fusing import fuse_plan
from workbench.retrieve.reranking import reranked
from workbench.retrieve.retrieved import Retrieved, counts_documents


@dataclass(slots=True, eq=False)
class Cut:
    """Plans that cut candidates alike.

    Attributes:
        plan: One of them.
        plans: All of them.
        members: int64 (p,), their positions among all plans.
        deepest: The plan whose fusion reads computed scores, if one does, else `plan`: candidates are made for it.
        batches: Grouped fusion plans by the sources that a query has.
    """

    plan: Plan
    plans: list[Plan]
    members: NDArray[np.int64]
    deepest: Plan
    batches: dict[tuple[str, ...], Batch] = field(default_factory=dict)

    def batch(self, candidates: Candidates) -> Batch:
        """The plans, grouped for the sources of these candidates."""
        sources = tuple(c.source for c in candidates.columns)
        if sources not in self.batches:
            self.batches[sources] = Batch([p.fusion for p in self.plans], sources)
        return self.batches[sources]


def cut_key(plan: Plan) -> tuple[object, ...]:
    """Equal for plans that cut candidates alike and whose lone lists go the same way."""
    sources = (*plan.sources, "grep")
    return (
        plan.sources, plan["grep.when"], tuple(plan.depth(s) for s in sources),
        tuple(plan.threshold(s) for s in (*plan.cuttable, FUSED)), plan["vector.metric"],
        counts_documents(plan), plan["dedupe"],
        plan["fusion.single_source"], plan["grep.show"], plan["fusion.unit"], plan["fusion.renumber"], plan["fusion.prefer"],
        plan["rerank.model"], plan["rerank.top"],
    )  # fmt: skip


def cuts_of(plans: Sequence[Plan], positions: Sequence[int]) -> list[Cut]:
    """Group plans, given with their positions among all."""
    members: dict[tuple[object, ...], list[int]] = {}
    for at, plan in enumerate(plans):
        members.setdefault(cut_key(plan), []).append(at)
    made = []
    for places in members.values():
        group = [plans[p] for p in places]
        reads = next((p for p in group if Retrieved.uses_computed(p)), group[0])
        made.append(Cut(group[0], group, np.array([positions[p] for p in places], np.int64), reads))
    return made


def ranks_under(engine: Engine, pooled: Pooled, cut: Cut, cutoff: int | None) -> NDArray[np.int64]:
    """Ranks of a query's judged documents, in documents, under each plan of a cut.

    Returns:
        int64 (p, t), from 1; 0 where the plan does not return the document, or beyond the cutoff.
    """
    count = len(cut.plans)
    if not len(pooled.targets):
        return np.zeros((count, 0), np.int64)
    if _one_by_one(pooled, cut.plan):
        return np.stack([ranks_in_full(engine, pooled, plan, cutoff) for plan in cut.plans])
    candidates = pooled.retrieved.candidates_for(cut.plan, computed=Retrieved.uses_computed(cut.deepest))
    if _alone(candidates, cut.plan):
        return np.repeat(ranks_in_full(engine, pooled, cut.plan, cutoff)[None, :], count, axis=0)
    texts = _texts(pooled, cut.plan)
    candidates = _by_key(pooled, cut.plan, candidates)
    reach = pooled.reach(cutoff)
    ranks = ranks_of(candidates, cut.batch(candidates), pooled.targets, documents=True, cutoff=reach, texts=texts)
    return pooled.closed_up(ranks, cutoff)


def ready_under(pooled: Pooled, plan: Plan, cutoff: int | None) -> Ready | None:
    """Candidates made ready for plans that differ from this one in k, rank base, weights and alpha; None where such plans
    must be fused one by one. Its ranks are those to `Pooled.closed_up`.
    """
    if _one_by_one(pooled, plan):
        return None
    candidates = pooled.retrieved.candidates_for(plan)
    if _alone(candidates, plan):
        return None
    texts = _texts(pooled, plan)
    candidates = _by_key(pooled, plan, candidates)
    reach = pooled.reach(cutoff)
    return prepare(candidates, plan.fusion, pooled.targets, documents=True, cutoff=reach, texts=texts)


def ranks_in_full(engine: Engine, pooled: Pooled, plan: Plan, cutoff: int | None) -> NDArray[np.int64]:
    """Ranks of the judged documents under one plan, int64 (t,), by the search's own steps."""
    most = sum(map(len, pooled.keys)) if cutoff is None else cutoff
    place = {key: n for n, key in enumerate(ranking_of(engine, pooled, plan, most), 1)}
    return np.array([place.get(key, 0) for key in pooled.judged], np.int64)


def ranking_of(engine: Engine, pooled: Pooled, plan: Plan, most: int) -> tuple[str, ...]:
    """The first `most` documents of a query under a plan, as the judgments spell them, best first."""
    outcome = reranked(engine, pooled.retrieved, fuse_plan(pooled.retrieved, plan), plan)
    keys: dict[str, None] = {}
    grades = dict(zip(pooled.judged, pooled.grades.tolist(), strict=True))
    for group in outcome.groups():
        own, *others = [pooled.keys[row] for row in outcome.fused.rows[group].tolist() if pooled.keys[row]] or [()]
        alike = [key for other in others for key in other]
        keys.update(dict.fromkeys(with_alike(own, alike, grades) if alike else own))
        if len(keys) >= most:
            break
    return tuple(keys)[:most]


def _one_by_one(pooled: Pooled, plan: Plan) -> bool:
    """Whether plans cannot be fused as one matrix: a model has the last word, fused scores are cut, a row has several judged
    passages, or, where documents are ranked, what is judged depends on the row that shows a document, or which of two equal
    texts stays does.
    """
    if plan["rerank.model"] != OFF or plan.threshold(FUSED) != OFF or pooled.single is None:
        return True
    if pooled.shared and plan["dedupe"]:
        return True
    return bool(plan["fusion.unit"] == "document" and (pooled.merged or (pooled.twins and plan["dedupe"])))


def _by_key(pooled: Pooled, plan: Plan, candidates: Candidates) -> Candidates:
    """Candidates whose documents are what the judgments name, where chunks are ranked."""
    if plan["fusion.unit"] == "document" or not pooled.merged or pooled.single is None:
        return candidates
    return replace(candidates, document_ids=pooled.single)


def _alone(candidates: Candidates, plan: Plan) -> bool:
    """Whether one source's list is handed on as it is, whatever the fusion says."""
    lists = sum(bool(c.retrieved.any()) for c in candidates.columns)
    return bool(plan["fusion.single_source"] == "passthrough" and lists == 1)


def _texts(pooled: Pooled, plan: Plan) -> NDArray[np.uint64] | None:
    """Keys of the rows' texts where equal ones must be dropped."""
    if not (pooled.twice and plan["dedupe"]) or plan["fusion.unit"] == "document":
        return None
    return pooled.retrieved.columns.text_keys
