"""Candidates of the judged queries, retrieved once for all plans that a sweep tries.

What a source returns depends on few fields of a plan (BM25's k1 and b, the operator, the collections, ...). Plans that agree
in those share one retrieval, at the greatest depth that any of them asks for; a source whose own fields agree is asked once
even where another source's differ, so a sweep over k1 and b embeds and compares vectors once. A shallower search is a
prefix of a deeper one, but for the approximate vector index, which is asked once a depth.

Judged queries' candidates to the ranks of their judged documents, under many plans, exactly as a search ranks them.

Plans that cut candidates the same way (sources, depths, thresholds) are ranked together, all queries at once (`ranking.batch`).
What that cannot do goes one plan and query after another through the search's own code: a reranking model, rows of several judged
passages, equal texts among documents that are ranked as documents, or of which a judged one may be removed as another's copy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from cachetools import LRUCache

from workbench.errors import QueryError, WorkbenchError
from workbench.evaluate.run import Named, as_indexed, document_key, is_own, passage_keys, with_alike
from workbench.judgments.qrels import Judgments, Topic
from workbench.plan.fields import FUSED, OFF, RETRIEVAL, base_of, encoder_of
from workbench.plan.plan import Plan
from workbench.ranking.batch import Batch, Judged
from workbench.ranking.candidates import Candidates, Ints
from workbench.records import Principal, Span
from workbench.retrieve.engine import Engine
from workbench.retrieve.fusing import fuse_plan
from workbench.retrieve.request import check_principal, make_request, sources_of
from workbench.retrieve.retrieved import Answer, Retrieved, counts_documents
from workbench.retrieve.sources import retrieve


@dataclass(frozen=True, slots=True)
class Need:
    """What must be retrieved for some plans: one plan that stands for them, and depths by source.

    Attributes:
        key: Equal for plans that share it.
        plan: Sources are those of all of them together.
        depths: Source -> the greatest depth.
    """

    key: tuple[object, ...]
    plan: Plan
    depths: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """One judged query's candidates.

    Attributes:
        keys: What each row stands for in the judgments: its document's key, or those of the judged passages that it has;
            nothing for the query's own document where that is left out.
        single: The key of each row, "" for the query's own document; None where some row has several.
        targets: int64 (t,), the first row of each judged key that was retrieved.
        grades: int64 (t,), aligned.
        twice: Some text is in more than one row.
        shared: Some text is in rows of several keys of which one is judged or left out: which one counts depends on
            dedupe.
        merged: Keys are not the documents one to one.
    """

    query_id: str
    retrieved: Retrieved
    keys: tuple[tuple[str, ...], ...]
    single: tuple[str, ...] | None
    targets: Ints
    judged: tuple[str, ...]
    grades: Ints
    twice: bool
    shared: bool
    merged: bool


class Pool:
    """Judged queries and what their sources answered; nothing is retrieved before it is asked for.

    Args:
        mode: As in `Corpus.search`.
        filters: As in `Corpus.search`.

    Attributes:
        failures: query id -> why it could not be run; such a query has no candidates.
        unavailable: source -> how many queries went without it, and why.
    """

    def __init__(
        self,
        engine: Engine,
        judgments: Judgments,
        *,
        principal: Principal | None = None,
        mode: str = "hybrid",
        filters: str | None = None,
    ) -> None:
        judgments = as_indexed(judgments, engine.records, engine.records.scope(principal, filters, ()))
        self.engine, self.judgments, self.principal = engine, judgments, principal
        self.mode, self.filters = mode, filters
        self.topics: tuple[Topic, ...] = tuple(judgments.topic(i) for i in judgments.query_ids)
        self.failures: dict[str, str] = {}
        self.unavailable: dict[str, tuple[int, str]] = {}
        self._documents: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._approximate: dict[tuple[object, ...], bool] = {}

    def __len__(self) -> int:
        return len(self.topics)

    def needs(self, plans: Sequence[Plan]) -> tuple[dict[tuple[object, ...], Need], list[tuple[object, ...]]]:
        """What must be retrieved for these plans: needs by key, and each plan's key."""
        for plan in plans:
            check_principal(plan, self.principal)
        bases = ("grep", "keyword", "vector")
        keys: list[tuple[object, ...]] = [tuple(self._source_key(plan, b) for b in bases) for plan in plans]
        members: dict[tuple[object, ...], list[Plan]] = {}
        for key, plan in zip(keys, plans, strict=True):
            members.setdefault(key, []).append(plan)
        return {key: self._need(key, group, plans) for key, group in members.items()}, keys

    def _need(self, key: tuple[object, ...], group: Sequence[Plan], everybody: Sequence[Plan]) -> Need:
        sources = sorted({s for plan in group for s in self._own_sources(plan)})
        approximate = any(self._is_approximate(group[0], s) for s in sources if base_of(s) == "vector")
        # Grep joins a query with keywords or quoted phrases also where no plan names it.
        depths = {
            source: max(plan.depth(source) for plan in (group if approximate else everybody))
            for source in {*sources, "grep"}
        }
        changes: dict[str, object] = {"sources": sources, "fusion.method": "rrf", "rerank.model": "off"}
        if any(counts_documents(plan) for plan in (group if approximate else everybody)):
            changes |= {"fusion.unit": "document", "fusion.renumber": True}
        return Need(key, group[0].replace(changes), depths)

    def _own_sources(self, plan: Plan) -> tuple[str, ...]:
        """The plan's sources, without grep where it only joins."""
        return plan.sources if self.mode == "hybrid" else sources_of(plan, self.mode, "", "")

    def _source_key(self, plan: Plan, base: str) -> tuple[object, ...]:
        own: tuple[object, ...] = tuple(plan[name] for name in RETRIEVAL[base])
        if base == "vector":
            names = [s for s in self._own_sources(plan) if base_of(s) == "vector"]
            if any(self._is_approximate(plan, s) for s in names):
                return (*own, *(plan.depth(s) for s in names), counts_documents(plan))
        return own

    def _is_approximate(self, plan: Plan, source: str) -> bool:
        """Whether the approximate index may answer at this depth; then it does at every greater one, too."""
        exact, collections, depth = plan["vector.exact"], plan["collections"], plan.depth(source)
        key = (source, collections, exact, depth)
        if key not in self._approximate:
            try:
                index = None if exact == "yes" else self.engine.vectors(encoder_of(source))
            except WorkbenchError:
                index = None  # the search will meet the same error, and say it
            scope = self.engine.records.scope(self.principal, self.filters or None, collections)
            self._approximate[key] = index is not None and index.approximates(scope, depth, exact)
        return self._approximate[key]

    def ask(self, topic: Topic, need: Need, kept: dict[tuple[object, ...], Answer]) -> Pooled | None:
        """One query's candidates; None where the query cannot be run. `kept`: Answers to this query by source and its fields;
        used and added to.
        """
        try:
            request = make_request(
                topic.text, self.principal, need.plan, keywords=topic.keywords, mode=self.mode, filters=self.filters
            )
        except QueryError as exc:
            self.failures[topic.query_id] = exc.message
            return None
        sources = sources_of(need.plan, self.mode, request.query, request.keywords)
        documents = counts_documents(need.plan)
        fields = {s: tuple(need.plan[name] for name in RETRIEVAL[base_of(s)]) for s in sources}
        keys = {s: (s, need.depths.get(s), *fields[s], documents) for s in sources}
        given = {s: kept[key] for s, key in keys.items() if key in kept}
        try:
            retrieved = retrieve(self.engine, request, need.depths, given)
        except QueryError as exc:
            self.failures[topic.query_id] = exc.message
            return None
        for source, answer in retrieved.answers.items():
            kept[keys[source]] = answer
        for lost in retrieved.unavailable:
            count = self.unavailable.get(lost.source, (0, ""))[0]
            self.unavailable[lost.source] = (count + 1, f"{lost.reason}. {lost.remedy}")
        return self._pooled(topic, retrieved)

    def _pooled(self, topic: Topic, retrieved: Retrieved) -> Pooled:
        columns = retrieved.columns
        one = self._texts.setdefault  # the same documents come again in other queries: one copy of each text
        columns = replace(
            columns,
            chunk_ids=tuple([one(t, t) for t in columns.chunk_ids]),
            document_ids=tuple([one(t, t) for t in columns.document_ids]),
            paths=tuple([one(t, t) for t in columns.paths]),
        )
        retrieved.columns = columns
        keys = self._keys(topic, retrieved)
        first: dict[str, int] = {}
        for row, own in enumerate(keys):
            for key in own:
                first.setdefault(key, row)
        single = tuple([(*own, "")[0] for own in keys]) if all(len(own) < 2 for own in keys) else None
        qrels = self.judgments.qrels[topic.query_id]
        judged = [(first[key], key, grade) for key, grade in qrels.items() if key in first]
        _, place, number = np.unique(columns.text_keys, return_inverse=True, return_counts=True)
        again = np.flatnonzero(number[place] > 1)
        return Pooled(
            topic.query_id,
            retrieved,
            keys,
            single,
            np.array([row for row, _, _ in judged], np.int64),
            tuple([key for _, key, _ in judged]),
            np.array([grade for _, _, grade in judged], np.int64),
            bool(len(again)),
            _shared(place[again], [keys[row] or ("",) for row in again.tolist()], {"", *qrels}),
            single is None or not _one_to_one(single, columns.document_ids),
        )

    def _keys(self, topic: Topic, retrieved: Retrieved) -> tuple[tuple[str, ...], ...]:
        columns = retrieved.columns
        named = zip(columns.document_ids, columns.paths, strict=True)
        if not self.judgments.passages:
            return tuple([() if self._is_own(topic, d, p) else (self._document(d, p),) for d, p in named])
        passages = self.judgments.passages.get(topic.query_id, ())
        spans = zip(columns.start_chars.tolist(), columns.end_chars.tolist(), strict=True)
        rows = [Named(d, p, span=Span(*span)) for (d, p), span in zip(named, spans, strict=True)]
        return tuple([() if self._is_own(topic, r.document_id, r.path) else passage_keys([r], passages) for r in rows])

    def _is_own(self, topic: Topic, document_id: str, path: str) -> bool:
        drop = self.judgments.drop_identical_ids
        return bool(drop) and is_own(self.judgments, topic.query_id, Named(document_id, path))

    def _document(self, document_id: str, path: str) -> str:
        key = self._documents.get(document_id)
        if key is None:
            key = document_key(Named(document_id, path), self.judgments.document_keys)
            self._documents[document_id] = key
        return key

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be asked, with the number of queries."""
        lines = [f"{count} queries went without {s}: {why}" for s, (count, why) in sorted(self.unavailable.items())]
        if self.failures:
            query_id, reason = next(iter(self.failures.items()))
            lines.append(f"{len(self.failures)} queries could not be run and count 0: {query_id} ({reason})")
        return tuple(lines)


def _shared(texts: Ints, keys: Sequence[tuple[str, ...]], judged: set[str]) -> bool:
    """Whether rows of one text stand for different keys, and one of these is judged, or left out."""
    found: dict[int, set[str]] = {}
    for text, own in zip(texts.tolist(), keys, strict=True):
        found.setdefault(text, set()).update(own)
    return any(len(own) > 1 and not judged.isdisjoint(own) for own in found.values())


def _one_to_one(keys: Sequence[str], documents: Sequence[str]) -> bool:
    pairs = set(zip(keys, documents, strict=True))
    return len(set(keys)) == len(set(documents)) == len(pairs)


_KEPT = 6
_MOST_COMPARED = 400
"""Rows of a query up to which the products of all their vectors are kept, for plans with feedback: 1.3 MB at most."""


class Refusion:
    """Some judged queries, fused again under any plan that their candidates serve. Safe from several threads.

    Args:
        queries: Their candidates; None where one could not be run.
        cutoff: Ranks beyond it do not matter.
    """

    def __init__(self, engine: Engine, queries: Sequence[Pooled | None], cutoff: int | None) -> None:
        self._engine, self._queries, self._cutoff = engine, queries, cutoff
        self._batches: LRUCache[tuple[object, ...], Batch] = LRUCache(_KEPT)
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
        batch, first = self._batch(plans[0], together, computed), plans[0]
        least = first.threshold(FUSED)
        found = batch.ranks(
            [plan.fusion for plan in plans],
            cutoff=self._cutoff,
            threshold=None if least == OFF else float(least),
            dedupe=bool(first["dedupe"]) and first["fusion.unit"] == "chunk",
            passthrough=first["fusion.single_source"] == "passthrough",
        )
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
            # Which rows a passage shows depends on the depths, and an adapted similarity on the query.
            if plan["grep.show"] == "passage" or plan["vector.adapt"] != OFF:
                made = Batch.of([_laid(q, q.retrieved.candidates_for(plan, computed), plan) for q in pooled])
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
            made = Batch.of([_laid(q, q.retrieved.raw(q.retrieved.sources_for(plan), computed), plan) for q in pooled])
            with self._lock:
                self._batches[key] = made
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
        plan["rerank.model"], plan["rerank.top"], plan["vector.adapt"], plan["vector.hubness"],
        bool(plan["feedback.weight"]),
    )  # fmt: skip


def ranks_in_full(engine: Engine, pooled: Pooled, plan: Plan, cutoff: int | None) -> Ints:
    """Ranks of the judged documents under one plan, int64 (t,), by the search's own steps."""
    most = sum(map(len, pooled.keys)) if cutoff is None else cutoff
    place = {key: n for n, key in enumerate(ranking_of(engine, pooled, plan, most), 1)}
    return np.array([place.get(key, 0) for key in pooled.judged], np.int64)


def ranking_of(engine: Engine, pooled: Pooled, plan: Plan, most: int) -> tuple[str, ...]:
    """The first `most` documents of a query under a plan, as the judgments spell them, best first."""
    outcome = fuse_plan(pooled.retrieved, plan, engine)
    keys: dict[str, None] = {}
    grades = dict(zip(pooled.judged, pooled.grades.tolist(), strict=True))
    for group in outcome.groups():
        own, *others = [pooled.keys[row] for row in outcome.fused.rows[group].tolist() if pooled.keys[row]] or [()]
        alike = [key for other in others for key in other]
        keys.update(dict.fromkeys(with_alike(own, alike, grades) if alike else own))
        if len(keys) >= most:
            break
    return tuple(keys)[:most]


def rankings_of(
    pool: Pool, plans: Sequence[Plan], most: int, after: Callable[[Topic], bool] | None = None
) -> list[dict[str, tuple[str, ...]]]:
    """For each plan, query id -> the first `most` documents. `after`: Called after each query; False ends it there."""
    needs, keys = pool.needs(plans)
    rankings: list[dict[str, tuple[str, ...]]] = [{} for _ in plans]
    for topic in pool.topics:
        answers: dict[tuple[object, ...], Answer] = {}
        asked = {key: pool.ask(topic, need, answers) for key, need in needs.items()}
        for run, plan, key in zip(rankings, plans, keys, strict=True):
            pooled = asked[key]
            run[topic.query_id] = () if pooled is None else ranking_of(pool.engine, pooled, plan, most)
        if after is not None and not after(topic):
            break
    return rankings


def one_by_one(pooled: Pooled, plan: Plan) -> bool:
    """Whether a query must be ranked by the search's own code: a model has the last word, feedback compares many rows or
    documents, a row has several judged
    passages, or which of two equal texts counts depends on the order, or, where documents are ranked, on the row that shows one.
    """
    if plan["rerank.model"] != OFF or pooled.single is None:
        return True
    if plan["feedback.weight"] and (plan["fusion.unit"] == "document" or len(pooled.keys) > _MOST_COMPARED):
        return True
    if pooled.shared and plan["dedupe"]:
        return True
    return bool(plan["fusion.unit"] == "document" and (pooled.merged or (pooled.twice and plan["dedupe"])))


def _laid(pooled: Pooled, candidates: Candidates, plan: Plan) -> Judged:
    texts = pooled.retrieved.columns.text_keys if pooled.twice else None
    return Judged(candidates, pooled.targets, pooled.single, texts, pooled.retrieved.likeness(plan))
