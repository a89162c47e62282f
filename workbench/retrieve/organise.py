"""Hits by page: for each page its summary, its examples if they are short, then the found sections in document order.

Pages come in the order of their best hit. Rows that are added for context carry no rank, score or contribution, are marked
`added`, do not count toward the limit and are never doubled: a summary that was itself found stays a hit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.records import ChunkKind, Granularity, Hit, Label
from workbench.retrieve.engine import Engine
from workbench.store.types import ChunkRow

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
