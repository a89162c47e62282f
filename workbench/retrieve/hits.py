"""From fused rows to hits: fetch the shown rows, mark what matched, add neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.errors import QueryError
from workbench.plan.fields import base_of, collection_of
from workbench.plan.plan import Plan
from workbench.records import Chunk, ChunkKind, Granularity, Hit, Label, Passage, Span
from workbench.retrieve.engine import Engine
from workbench.retrieve.fusing import Outcome
from workbench.retrieve.keywords import pattern_spans
from workbench.retrieve.retrieved import Retrieved, others, ranked
from workbench.retrieve.sources import POOL
from workbench.store.types import ChunkRow, joined

BOUNDARY = "[CHUNK BOUNDARY]"
EXAMPLES_BELOW = 500
"""A page's examples are added only if the whole section has fewer characters than this."""
_OF_CHUNK = "chunk_id document_id chunk_index start_line end_line page locator section text".split()


def make_hits(engine: Engine, retrieved: Retrieved, outcome: Outcome, plan: Plan) -> tuple[Hit, ...]:
    rows = outcome.fused.rows[outcome.shown]
    numbers = retrieved.columns.numbers[rows].tolist()
    _read(engine, retrieved, numbers)
    copies = _copies(engine, retrieved, outcome)
    places = zip(outcome.shown.tolist(), rows.tolist(), numbers, strict=True)
    hits = [
        replace(_hit(engine, retrieved, outcome, plan, position, row, number), rank=rank, copies=copies[position])
        for rank, (position, row, number) in enumerate(places, 1)
    ]
    if plan["organise"] == "pages":
        return _by_page(engine, hits, [retrieved.shown[n][0] for n in numbers])
    return tuple(hits)


def _hit(
    engine: Engine, retrieved: Retrieved, outcome: Outcome, plan: Plan, position: int, row: int, number: int
) -> Hit:
    fused, candidates = outcome.fused, outcome.candidates
    record, document = retrieved.shown[number]
    chunk = record.chunk
    entries = {
        source: ranked(candidates, candidates.column(source), at, rank, plan["vector.metric"])
        for source, (rank, at) in fused.evidence(position).items()
    }
    scores = {source: entry.score for source, entry in entries.items()}
    if position in outcome.rerank:
        scores["rerank"] = outcome.rerank[position]
    # The collections in which it was found: its own, and those of sources that search one collection.
    collections = {chunk.collection, *map(collection_of, entries)} - {""}
    hit = Hit(
        **_of(chunk),
        rank=0,
        score=float(fused.scores[position]),
        score_kind=outcome.score_kind,
        label=Label.STRONGEST if position == outcome.strongest else fused.labels[position],
        contributions={s: float(values[position]) for s, values in fused.contributions.items()},
        ranks={source: entry.rank for source, entry in entries.items()},
        scores=scores,
        counted={s: entry for s, entry in entries.items() if entry.chunk_id != chunk.chunk_id},
        collections=tuple(sorted(collections)),
        path=retrieved.columns.paths[row],
        url=document.url,
        title=document.title,
        matches=(),
        distance=next((e.distance for e in entries.values() if e.distance is not None), None),
        metadata={
            **document.metadata,
            "type": document.type,
            "sensitivity": document.sensitivity,
            "granularity": str(chunk.granularity),
            "tenant": document.tenant,
        },
    )
    passage = _passage(retrieved, outcome, plan, row)
    if passage is not None:
        lines: dict[str, Any] = {"start_line": passage.start_line, "end_line": passage.end_line}
        return replace(hit, text=passage.text, matches=_merge(passage.matches), **lines)
    hit = replace(hit, matches=_matches(engine, retrieved, record))
    return _with_neighbours(engine, record, int(plan["neighbours"]), hit) if plan["neighbours"] else hit


def _of(chunk: Chunk) -> dict[str, Any]:
    return {name: getattr(chunk, name) for name in _OF_CHUNK}


def _copies(engine: Engine, retrieved: Retrieved, outcome: Outcome) -> dict[int, tuple[str, ...]]:
    """For each shown position the other paths of its text: documents with it, and those that dedupe left out."""
    columns, rows = retrieved.columns, outcome.fused.rows
    same: dict[int, list[int]] = {position: [int(rows[position])] for position in outcome.shown.tolist()}
    for position, better in sorted(outcome.duplicate_of.items()):
        if better in same:
            same[better].append(int(rows[position]))
    owners = columns.document_numbers
    wanted = sorted({int(owners[row]) for found in same.values() for row in found})
    known = engine.records.paths_of(wanted, retrieved.scope)
    named: dict[int, tuple[str, ...]] = {}
    for position, found in same.items():
        every = (path for row in found for path in (columns.paths[row], *known.get(int(owners[row]), ())))
        named[position] = others(columns.paths[found[0]], every)
    return named


def _read(engine: Engine, retrieved: Retrieved, numbers: Sequence[int]) -> None:
    """Read the records that no earlier fusion of the same answers has shown: a slider reads only what is new."""
    new = [n for n in numbers if n not in retrieved.shown]
    if not new:
        return
    owners = retrieved.columns.document_numbers[np.searchsorted(retrieved.columns.numbers, new)]
    wanted = np.unique(owners).tolist()
    headers = POOL.submit(engine.records.headers, wanted)  # beside the rows: a millisecond or two of ten
    stored = engine.records.rows(new)
    documents = dict(zip(wanted, headers.result(), strict=True))
    for record in stored:
        retrieved.shown[record.number] = record, documents[record.document_number]


def _passage(retrieved: Retrieved, outcome: Outcome, plan: Plan, row: int) -> Passage | None:
    """The grep passage that a hit shows instead of its chunk, if the plan shows passages and grep, at its depth, found it."""
    if plan["grep.show"] != "passage" and retrieved.request.mode != "grep":
        return None
    for column in outcome.candidates.columns:
        if base_of(column.source) == "grep" and column.rank[row] > 0:
            return retrieved.answers[column.source].passages[int(retrieved.columns.numbers[row])]
    return None


def _matches(engine: Engine, retrieved: Retrieved, record: ChunkRow) -> tuple[Span, ...]:
    """What the query's words and grep's patterns match in a record, of the sources that were asked."""
    text, request = record.chunk.text, retrieved.request
    made: dict[str, Callable[[], Iterable[Span]]] = {}
    if any(base_of(source) != "grep" for source in retrieved.answers):
        made["words"] = lambda: _words(engine, request.query, text)
    if retrieved.patterns:
        made["patterns"] = lambda: pattern_spans(retrieved.patterns, text, request.plan)
    spans: list[Span] = []
    for kind, find in made.items():
        key = (kind, record.number)
        if key not in retrieved.marked:
            retrieved.marked[key] = tuple(find())
        spans += retrieved.marked[key]
    return _merge(spans)


def _words(engine: Engine, query: str, text: str) -> Sequence[Span]:
    try:
        return engine.lexical.highlight(query, text)
    except QueryError:
        return ()  # The vector source reads any text; words that the query syntax refuses mark nothing.


def _merge(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Spans in order, overlapping and touching ones joined."""
    return tuple(Span(start, end) for start, end in joined(((s.start, s.end) for s in spans), touching=True))


def _with_neighbours(engine: Engine, record: ChunkRow, reach: int, hit: Hit) -> Hit:
    """The chunk between its neighbours of the same document and collection, joined by a boundary line."""
    own = record.chunk
    siblings = (s.chunk for s in engine.records.rows(engine.records.records_of(record.document_number).tolist()))
    texts: Mapping[int, str] = {
        s.chunk_index: s.text for s in siblings if s.collection == own.collection and s.granularity == own.granularity
    }
    index, joint = own.chunk_index, f"\n{BOUNDARY}\n"
    before = [texts[i] for i in range(index - reach, index) if i in texts]
    after = [texts[i] for i in range(index + 1, index + reach + 1) if i in texts]
    shift = sum(len(t) + len(joint) for t in before)
    moved = tuple(Span(m.start + shift, m.end + shift) for m in hit.matches)
    return replace(hit, text=joint.join([*before, hit.text, *after]), matches=moved)


def _by_page(engine: Engine, hits: Sequence[Hit], records: Sequence[ChunkRow]) -> tuple[Hit, ...]:
    """The hits, best first and each with its record, by page, with the rows that are added."""
    pages: dict[int, list[tuple[Hit, ChunkRow]]] = {}
    for hit, record in zip(hits, records, strict=True):
        pages.setdefault(record.document_number, []).append((hit, record))
    special = _special(engine, list(pages))
    return tuple(hit for number, found in pages.items() for hit in _page(found, special.get(number, [])))


def _special(engine: Engine, documents: Sequence[int]) -> dict[int, list[ChunkRow]]:
    """Summaries and examples of these documents, in document order: the only rows that are read, all at once."""
    store = engine.records
    if not documents:
        return {}
    special = store.of_kind(ChunkKind.SUMMARY) | store.of_kind(ChunkKind.EXAMPLES)
    numbers = np.concatenate([store.records_of(number) for number in documents])
    rows: dict[int, list[ChunkRow]] = {}
    for row in store.rows(numbers[special[numbers]].tolist()):
        if row.chunk.granularity is Granularity.CHUNK:
            rows.setdefault(row.document_number, []).append(row)
    return rows


def _page(found: Sequence[tuple[Hit, ChunkRow]], special: Sequence[ChunkRow]) -> list[Hit]:
    collections = {c for hit, _ in found for c in hit.collections}
    own = [r.chunk for r in special if r.chunk.collection in collections]
    summary = [c for c in own if c.kind is ChunkKind.SUMMARY]
    examples = [c for c in own if c.kind is ChunkKind.EXAMPLES]
    if sum(len(c.text) for c in examples) >= EXAMPLES_BELOW:
        examples = []
    present = {hit.chunk_id: hit for hit, _ in found}
    head = [present.get(c.chunk_id) or _added(c, found[0][0]) for c in (*summary, *examples)]
    first = {hit.chunk_id for hit in head}
    rest = [(hit, record.chunk) for hit, record in found if hit.chunk_id not in first]
    rest.sort(key=lambda pair: (pair[1].start, pair[1].chunk_index, pair[1].kind, pair[1].chunk_id))
    return [*head, *(hit for hit, _ in rest)]


def _added(chunk: Chunk, like: Hit) -> Hit:
    nothing: dict[str, Any] = {"contributions": {}, "ranks": {}, "scores": {}, "counted": {}, "matches": ()}
    return replace(
        like,
        **_of(chunk),
        **nothing,
        rank=0,
        score=0.0,
        score_kind="added",
        label=Label.ADDED,
        collections=(chunk.collection,),
        distance=None,
        added=True,
    )
