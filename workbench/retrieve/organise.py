"""Hits by page: for each page its summary, its examples if they are short, then the found sections in document order.

Pages come in the order of their best hit. Rows that are added for context carry no rank, score or contribution, are marked
`added`, do not count toward the limit and are never doubled: a summary that was itself found stays a hit.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.records import ChunkKind, Granularity, Hit, Label
from workbench.retrieve.engine import Engine
from workbench.store.protocols import ChunkRow

EXAMPLES_BELOW = 500
"""A page's examples are added only if the whole section has fewer characters than this."""


def by_page(engine: Engine, hits: Sequence[Hit], numbers: Sequence[int]) -> tuple[Hit, ...]:
    """The hits by page, with the rows that are added.

    Args:
        engine: The generation.
        hits: Best first.
        numbers: Document number of each hit.
    """
    pages: dict[int, list[Hit]] = {}
    for hit, number in zip(hits, numbers, strict=True):
        pages.setdefault(number, []).append(hit)
    organised: list[Hit] = []
    for number, found in pages.items():
        organised += _page(engine, number, found)
    return tuple(organised)


def _page(engine: Engine, number: int, found: Sequence[Hit]) -> list[Hit]:
    collections = {c for h in found for c in h.collections}
    rows = [
        r
        for r in engine.records.rows(engine.records.records_of(number).tolist())
        if r.chunk.granularity is Granularity.CHUNK and r.chunk.collection in collections
    ]
    kinds = {r.chunk.chunk_id: r.chunk.kind for r in rows}
    place = {r.chunk.chunk_id: (r.chunk.start, r.chunk.chunk_index) for r in rows}
    summary = [r for r in rows if r.chunk.kind is ChunkKind.SUMMARY]
    examples = [r for r in rows if r.chunk.kind is ChunkKind.EXAMPLES]
    if sum(len(r.chunk.text) for r in examples) >= EXAMPLES_BELOW:
        examples = []
    present = {h.chunk_id: h for h in found}
    head = [present.get(r.chunk.chunk_id) or _added(r, found[0]) for r in (*summary, *examples)]
    first = {h.chunk_id for h in head}
    rest = [h for h in found if h.chunk_id not in first]
    rest.sort(
        key=lambda h: (place.get(h.chunk_id, (h.start_line, h.chunk_index)), kinds.get(h.chunk_id, ""), h.chunk_id)
    )
    return [*head, *rest]


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
    )
