"""More like this: the passages whose stored vectors are nearest to that of one passage. Nothing is embedded.

A passage's vector is there since it was indexed, so its neighbours are one look-up, exact where the index is. No Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import UsageError
from workbench.ranking.distance import to_distance
from workbench.records import Hit, cite
from workbench.ui import links
from workbench.ui.text import attribute, plain, visible

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.records import Document
    from workbench.store.types import ChunkRow
    from workbench.ui.state import AppState

MOST = 10
_EXCERPT = 220


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """Neighbours of a hit's passage.

    Attributes:
        hit: The passage.
        rows, documents, distances: Its neighbours, the nearest first, without itself.
        metric: What the distances are.
        encoder: Whose vectors.
        approximate: Whether the approximate index answered.
    """

    hit: Hit
    rows: tuple[ChunkRow, ...]
    documents: tuple[Document, ...]
    distances: tuple[float, ...]
    metric: str
    encoder: str
    approximate: bool


def nearest(corpus: Corpus, state: AppState, hit: Hit) -> Alike:
    """The nearest passages under the page's filter and the plan's collections.

    Raises:
        UsageError: The passage was indexed anew meanwhile.
        WorkbenchError: There are no vectors, or the filter cannot be read.
    """
    engine, plan = corpus.engine, state.moved
    records = engine.records
    number = records.find_record(hit.chunk_id, records.scope(corpus.principal, None, ()))
    if number is None:
        raise UsageError("The passage was indexed anew meanwhile", "Search again")
    index = engine.vectors("")
    scope = records.scope(corpus.principal, state.filters or None, plan["collections"])
    (vector,) = index.vectors(np.array([number], np.int64))
    found = index.search(vector, scope, MOST + 1, exact=plan["vector.exact"])
    near = [(n, s) for n, s in zip(found.numbers.tolist(), found.scores.tolist(), strict=True) if n != number][:MOST]
    rows = tuple(records.rows([n for n, _ in near]))
    documents = tuple(records.headers([row.document_number for row in rows]))
    metric = str(plan["vector.metric"])
    distances = tuple(float(to_distance(score, metric)) for _, score in near)
    return Alike(hit, rows, documents, distances, metric, index.identity.name, found.approximate)


def told(made: Alike) -> str:
    """What was done, in a sentence."""
    how = "by the approximate index" if made.approximate else "exactly"
    return (
        f"The passages nearest to {plain(made.hit.citation, 120)} by their stored vectors ({plain(made.encoder, 60)}), found "
        f"{how}; nothing was embedded. The page's filter and the plan's collections hold here too."
    )


def html(made: Alike) -> str:
    """The neighbours as a table: distance, title with a link to the place, and how the text begins."""
    if not made.rows:
        return '<p class="wb-msg">There is no other passage that the filter lets through.</p>'
    lines = []
    for row, document, distance in zip(made.rows, made.documents, made.distances, strict=True):
        chunk = row.chunk
        place = cite(document.path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator)
        link = attribute(links.chunk(chunk, document.path, document.document_id))
        title = visible(plain(document.title or document.path, 90))
        text = visible(plain(chunk.text, _EXCERPT))
        lines.append(
            f'<tr><td class="wb-num">{distance:.3f}</td><td><a href="{link}" target="_blank"><bdi>{title}</bdi></a>'
            f'<div class="wb-msg"><bdi>{visible(plain(place, 120))}</bdi></div><bdi>{text}</bdi></td></tr>'
        )
    head = f'<tr><th class="wb-num">{visible(made.metric)}</th><th>passage</th></tr>'
    table = f'<table class="wb-table" aria-label="Passages like this">{head}{"".join(lines)}</table>'
    return f'<div class="wb-scroll">{table}</div>'
