"""From fused rows to hits: fetch the shown rows, mark what matched, add neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from workbench.errors import QueryError
from workbench.plan.fields import base_of, collection_of
from workbench.plan.plan import Plan
from workbench.records import ChunkKind, Granularity, Hit, Label, Passage, Ranked, Span
from workbench.retrieve.engine import Engine
from workbench.retrieve.fusing import Outcome
from workbench.retrieve.keywords import pattern_spans
from workbench.retrieve.retrieved import Retrieved, others, ranked
from workbench.retrieve.sources import POOL
from workbench.store.types import ChunkRow, joined

BOUNDARY = "[CHUNK BOUNDARY]"


def make_hits(engine: Engine, retrieved: Retrieved, outcome: Outcome, plan: Plan) -> tuple[Hit, ...]:
    """The shown rows as hits, best first."""
    fused = outcome.fused
    rows = fused.rows[outcome.shown]
    numbers = retrieved.columns.numbers[rows].tolist()
    _read(engine, retrieved, numbers)
    copies = _copies(engine, retrieved, outcome)
    hits: list[Hit] = []
    for rank, (position, row, number) in enumerate(zip(outcome.shown.tolist(), rows.tolist(), numbers, strict=True), 1):
        record, document = retrieved.shown[number]
        chunk = record.chunk
        passage = _passage(retrieved, outcome, plan, row)
        text, start_line, end_line = chunk.text, chunk.start_line, chunk.end_line
        if passage is not None:
            text, start_line, end_line = passage.text, passage.start_line, passage.end_line
        matches = _matches(engine, retrieved, record) if passage is None else _merge(passage.matches)
        if plan["neighbours"] and passage is None:
            text, matches = _with_neighbours(engine, record, int(plan["neighbours"]), text, matches)
        entries = _entries(outcome, plan, position)
        scores = {source: entry.score for source, entry in entries.items()}
        distances = (entry.distance for entry in entries.values() if entry.distance is not None)
        if position in outcome.rerank:
            scores["rerank"] = outcome.rerank[position]
        hits.append(
            Hit(
                rank=rank,
                score=float(fused.scores[position]),
                score_kind=outcome.score_kind,
                label=Label.STRONGEST if position == outcome.strongest else fused.labels[position],
                contributions={s: float(values[position]) for s, values in fused.contributions.items()},
                ranks={source: entry.rank for source, entry in entries.items()},
                scores=scores,
                counted={s: entry for s, entry in entries.items() if entry.chunk_id != chunk.chunk_id},
                chunk_id=chunk.chunk_id,
                document_id=chunk.document_id,
                chunk_index=chunk.chunk_index,
                collections=_collections(outcome, position, chunk.collection),
                path=retrieved.columns.paths[row],
                url=document.url,
                title=document.title,
                start_line=start_line,
                end_line=end_line,
                page=chunk.page,
                locator=chunk.locator,
                copies=copies.get(position, ()),
                section=chunk.section,
                text=text,
                matches=matches,
                distance=next(distances, None),
                metadata={
                    **document.metadata,
                    "type": document.type,
                    "sensitivity": document.sensitivity,
                    "granularity": str(chunk.granularity),
                    "tenant": document.tenant,
                },
            )
        )
    if plan["organise"] == "pages":
        return by_page(engine, hits, [retrieved.shown[n][0] for n in numbers])
    return tuple(hits)


def _copies(engine: Engine, retrieved: Retrieved, outcome: Outcome) -> dict[int, tuple[str, ...]]:
    """For each shown position the other paths of its text: documents with it, and those that dedupe left out."""
    columns, rows = retrieved.columns, outcome.fused.rows
    same: dict[int, list[int]] = {position: [int(rows[position])] for position in outcome.shown.tolist()}
    for position, better in sorted(outcome.duplicate_of.items()):
        if better in same:
            same[better].append(int(rows[position]))
    owners = columns.document_numbers
    known = engine.records.paths_of(
        sorted({int(owners[row]) for found in same.values() for row in found}), retrieved.scope
    )
    named: dict[int, tuple[str, ...]] = {}
    for position, found in same.items():
        every = (path for row in found for path in (columns.paths[row], *known.get(int(owners[row]), ())))
        named[position] = others(columns.paths[found[0]], every)
    return named


def _collections(outcome: Outcome, position: int, own: str) -> tuple[str, ...]:
    """The collections in which a hit was found, sorted: its own, and those of sources that search one collection."""
    found = {collection_of(s) for s, ranks in outcome.fused.ranks.items() if ranks[position] > 0}
    return tuple(sorted({own, *found} - {""}))


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


def _entries(outcome: Outcome, plan: Plan, position: int) -> dict[str, Ranked]:
    """Source -> what counted of a fused item: its rank, and the chunk, raw score and distance that it comes from."""
    candidates = outcome.candidates
    return {
        source: ranked(candidates, candidates.column(source), row, rank, plan["vector.metric"])
        for source, (rank, row) in outcome.fused.evidence(position).items()
    }


def _matches(engine: Engine, retrieved: Retrieved, record: ChunkRow) -> tuple[Span, ...]:
    """What the query's words and grep's patterns match in a record, of the sources that were asked."""
    made: dict[str, Callable[[], Sequence[Span]]] = {}
    if any(base_of(source) != "grep" for source in retrieved.answers):
        made["words"] = lambda: _words(engine, retrieved.request.query, record.chunk.text)
    if retrieved.patterns:
        made["patterns"] = lambda: pattern_spans(retrieved.patterns, record.chunk.text, retrieved.request.plan)
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


def _with_neighbours(
    engine: Engine, record: ChunkRow, reach: int, text: str, matches: tuple[Span, ...]
) -> tuple[str, tuple[Span, ...]]:
    """The chunk between its neighbours of the same document and collection, joined by a boundary line."""
    siblings = engine.records.rows(engine.records.records_of(record.document_number).tolist())
    by_index: Mapping[int, ChunkRow] = {
        s.chunk.chunk_index: s
        for s in siblings
        if s.chunk.collection == record.chunk.collection and s.chunk.granularity == record.chunk.granularity
    }
    index = record.chunk.chunk_index
    before = [by_index[i].chunk.text for i in range(index - reach, index) if i in by_index]
    after = [by_index[i].chunk.text for i in range(index + 1, index + reach + 1) if i in by_index]
    joint = f"\n{BOUNDARY}\n"
    shift = sum(len(t) + len(joint) for t in before)
    moved = tuple(Span(m.start + shift, m.end + shift) for m in matches)
    return joint.join([*before, text, *after]), moved


EXAMPLES_BELOW = 500
"""A page's examples are added only if the whole section has fewer characters than this."""


def by_page(engine: Engine, hits: Sequence[Hit], records: Sequence[ChunkRow]) -> tuple[Hit, ...]:
    """The hits by page, with the rows that are added.

    Args:
        engine: The generation.
        hits: Best first.
        records: The record of each hit.
    """
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
    own = [r for r in special if r.chunk.collection in collections]
    summary = [r for r in own if r.chunk.kind is ChunkKind.SUMMARY]
    examples = [r for r in own if r.chunk.kind is ChunkKind.EXAMPLES]
    if sum(len(r.chunk.text) for r in examples) >= EXAMPLES_BELOW:
        examples = []
    present = {hit.chunk_id: hit for hit, _ in found}
    head = [present.get(r.chunk.chunk_id) or _added(r, found[0][0]) for r in (*summary, *examples)]
    first = {hit.chunk_id for hit in head}
    rest = [(hit, record.chunk) for hit, record in found if hit.chunk_id not in first]
    rest.sort(key=lambda pair: (pair[1].start, pair[1].chunk_index, pair[1].kind, pair[1].chunk_id))
    return [*head, *(hit for hit, _ in rest)]


def _added(row: ChunkRow, like: Hit) -> Hit:
    chunk = row.chunk
    return Hit(
        rank=0,
        score=0.0,
        score_kind="added",
        label=Label.ADDED,
        contributions={},
        ranks={},
        scores={},
        chunk_id=chunk.chunk_id,
        document_id=chunk.document_id,
        chunk_index=chunk.chunk_index,
        collections=(chunk.collection,),
        path=like.path,
        url=like.url,
        title=like.title,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        page=chunk.page,
        locator=chunk.locator,
        section=chunk.section,
        text=chunk.text,
        matches=(),
        distance=None,
        metadata=like.metadata,
        added=True,
        copies=like.copies,
    )
