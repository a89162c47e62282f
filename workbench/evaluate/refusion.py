"""Judged queries' candidates to the ranks of their judged documents, under many plans, exactly as a search ranks them.

Plans that cut candidates the same way (sources, depths, thresholds) are ranked together, all queries at once (`ranking.batch`).
What that cannot do goes one plan and query after another through the search's own code: a reranking model, rows of several judged
passages, equal texts among documents that are ranked as documents, or of which a judged one may be removed as another's copy.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from workbench.evaluate.pool import Pooled
from workbench.evaluate.run import with_alike
from workbench.plan.fields import FUSED, OFF
from workbench.plan.plan import Plan
from workbench.ranking.batch import Batch, Judged, Ready, shared_evidence
from workbench.ranking.candidates import Candidates
from workbench.ranking.methods import check
from workbench.retrieve.engine import Engine
from workbench.retrieve.fusing import fuse_plan
from workbench.retrieve.reranking import reranked
from workbench.retrieve.retrieved import Retrieved, counts_documents

Ints = NDArray[np.int64]
_KEPT = 6


class Refusion:
    """Some judged queries, fused again under any plan that their candidates serve. Safe from several threads.

    Args:
        engine: The pinned generation.
        queries: Their candidates; None where one could not be run.
        cutoff: Ranks beyond it do not matter.
    """

    def __init__(self, engine: Engine, queries: Sequence[Pooled | None], cutoff: int | None) -> None:
        self._engine, self._queries, self._cutoff = engine, queries, cutoff
        self._batches: LRUCache[tuple[object, ...], Batch] = LRUCache(_KEPT)
        self._ready: LRUCache[tuple[object, ...], list[tuple[Ready, slice]]] = LRUCache(_KEPT)
        self._lock = threading.Lock()

    def ranks(self, plans: Sequence[Plan]) -> Iterator[tuple[int, Ints, Ints]]:
        """Ranks of each query's judged documents: the query's position, positions of some of the plans (p,), and int64 (p, t)
        ranks from 1; 0 where a plan does not return the document, or beyond the cutoff.
        """
        groups: dict[tuple[object, ...], list[int]] = {}
        for n, plan in enumerate(plans):
            groups.setdefault(cut_key(plan), []).append(n)
        for positions in groups.values():
            yield from self._under(np.array(positions, np.int64), [plans[n] for n in positions])

    def _under(self, positions: Ints, plans: Sequence[Plan]) -> Iterator[tuple[int, Ints, Ints]]:
        """The same for plans that cut candidates alike."""
        together: list[int] = []
        for n, pooled in enumerate(self._queries):
            if pooled is None:
                continue
            if not len(pooled.targets):
                yield n, positions, np.zeros((len(plans), 0), np.int64)
            elif one_by_one(pooled, plans[0]):
                ranks = [ranks_in_full(self._engine, pooled, plan, self._cutoff) for plan in plans]
                yield n, positions, np.stack(ranks)
            else:
                together.append(n)
        if not together:
            return
        computed = any(map(Retrieved.uses_computed, plans))
        batch = self._batch(plans[0], together, computed)
        sources = [column.source for column in batch.columns]
        threshold = plans[0].threshold(FUSED)
        least = None if threshold == OFF else float(threshold)
        found = np.zeros((len(plans), len(batch.targets)), np.int64)
        order = sorted(range(len(plans)), key=lambda n: repr(shared_evidence(plans[n].fusion, sources)))
        for at in order:
            fusion = plans[at].fusion
            check(fusion, sources)
            for ready, targets in self._readied(batch, plans[at], computed, sources):
                found[at, targets] = ready.ranks(fusion, least)
        if self._cutoff is not None:
            found[found > self._cutoff] = 0
        ends = np.cumsum(batch.sizes)[:-1]
        for n, own in zip(together, np.split(found, ends, axis=1), strict=True):
            yield n, positions, own

    def _batch(self, plan: Plan, members: Sequence[int], computed: bool) -> Batch:
        """Queries laid end to end, cut to a plan's depths and thresholds."""
        key = ("cut", cut_key(plan), computed)
        with self._lock:
            made = self._batches.get(key)
        if made is None:
            pooled = [q for n in members if (q := self._queries[n]) is not None]
            if plan["grep.show"] == "passage":  # which rows a passage shows depends on the depths
                made = Batch.of([_judged(q, q.retrieved.candidates_for(plan, computed)) for q in pooled])
            else:
                made = self._raw(plan, pooled, computed)
                sources = [column.source for column in made.columns]
                thresholds = {s: plan.threshold(s) for s in sources if plan.threshold(s) != OFF}
                depths = {s: plan.depth(s) for s in sources}
                made = made.cut(depths, thresholds, str(plan["vector.metric"]), documents=counts_documents(plan))
            with self._lock:
                self._batches[key] = made
        return made

    def _raw(self, plan: Plan, pooled: Sequence[Pooled], computed: bool) -> Batch:
        key = ("raw", plan.sources, plan["grep.when"], computed, tuple(q.query_id for q in pooled))
        with self._lock:
            made = self._batches.get(key)
        if made is None:
            made = Batch.of([_judged(q, q.retrieved.raw(q.retrieved.sources_for(plan), computed)) for q in pooled])
            with self._lock:
                self._batches[key] = made
        return made

    def _readied(self, batch: Batch, plan: Plan, computed: bool, sources: Sequence[str]) -> list[tuple[Ready, slice]]:
        fusion = plan.fusion
        key = (cut_key(plan), computed, shared_evidence(fusion, sources))
        with self._lock:
            made = self._ready.get(key)
        if made is None:
            dedupe = bool(plan["dedupe"]) and fusion.unit == "chunk"
            passed = fusion.single_source == "passthrough"
            made = [
                (part.ready(fusion, cutoff=self._cutoff, dedupe=dedupe, passthrough=passed), targets)
                for part, targets in batch.blocks()
            ]
            with self._lock:
                self._ready[key] = made
        return made

    def warm(self, plan: Plan) -> None:
        """Work out the scores that methods other than rrf read, now rather than at the first move to one of them."""
        for pooled in self._queries:
            if pooled is not None:
                for source in pooled.retrieved.sources_for(plan):
                    pooled.retrieved.computed(source)


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


def ranks_in_full(engine: Engine, pooled: Pooled, plan: Plan, cutoff: int | None) -> Ints:
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


def one_by_one(pooled: Pooled, plan: Plan) -> bool:
    """Whether a query must be ranked by the search's own code: a model has the last word, a row has several judged passages, or
    which of two equal texts counts depends on the order, or, where documents are ranked, on the row that shows one.
    """
    if plan["rerank.model"] != OFF or pooled.single is None:
        return True
    if pooled.shared and plan["dedupe"]:
        return True
    return bool(plan["fusion.unit"] == "document" and (pooled.merged or (pooled.twins and plan["dedupe"])))


def _judged(pooled: Pooled, candidates: Candidates) -> Judged:
    texts = pooled.retrieved.columns.text_keys if pooled.twice else None
    return Judged(candidates, pooled.targets, pooled.single, texts)
