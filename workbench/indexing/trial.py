"""A few searches of every kind on a new generation, before it answers anybody: one that fails is never published."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from workbench.errors import CorpusError, WorkbenchError
from workbench.records import EncoderIdentity, Principal
from workbench.retrieve.engine import Engine
from workbench.retrieve.request import make_request
from workbench.retrieve.result import SearchResult
from workbench.retrieve.sources import retrieve
from workbench.store.reader import Generation

_MODES = ("grep", "keyword", "vector", "hybrid")
_MOST_COLLECTIONS = 8
_WORD = re.compile(r"[^\W_]{2,30}")


class _OwnVectors(Engine):
    """The engine of a generation that embeds nothing: the query's vector is that of the record which the query is made of."""

    record = 0

    def embed(self, text: str, encoder: str) -> NDArray[np.float32]:
        vector = self.vectors(encoder).vectors(np.array([self.record]))[0]
        length = max(float(np.linalg.norm(vector)), 1e-9)  # all zero for a text without words
        own: NDArray[np.float32] = (vector / length).astype(np.float32)
        return own


def try_searches(generation: Generation, encoders: Sequence[tuple[str, EncoderIdentity]]) -> None:
    """Search for the first record of each collection, as one who may see it. Raises CorpusError where that fails."""
    try:
        _try(generation, [name for name, _ in encoders])
    except Exception as exc:
        reason = exc.message if isinstance(exc, WorkbenchError) else f"{type(exc).__name__}: {exc}"
        raise CorpusError(
            f"The new generation does not answer searches ({reason}), so it was not published",
            "The corpus answers as before; leave out the files that were added last, or report this",
        ) from exc


def _try(generation: Generation, encoders: Sequence[str]) -> None:
    generation.open_all()
    records, arrays = generation.records, generation.records.arrays
    expected = generation.manifest.counts
    counts = {
        "documents": (arrays.documents_total, len(arrays.paths)),
        "records": (
            arrays.records_total,
            *map(len, arrays.records.values()),
            len(generation.lexical.lengths),
            *(len(generation.vectors(name)) for name in encoders),
        ),
    }
    for name, found in counts.items():
        if set(found) != {expected[name]}:
            raise CorpusError(f"Its parts hold {sorted(set(found))} {name} instead of {expected[name]}")
    codes, firsts = np.unique(arrays.records["collection"], return_index=True)
    engine = _OwnVectors(generation, None)
    sources = ", ".join(["keyword", *(f"vector:{name}" if at else "vector" for at, name in enumerate(encoders))])
    for turn, (code, first) in enumerate(islice(zip(codes.tolist(), firsts.tolist(), strict=True), _MOST_COLLECTIONS)):
        (row,) = records.rows([first])
        tenant, roles, _ = arrays.names["access"][int(arrays.documents["access"][row.document_number])]
        words = _WORD.findall(row.chunk.text)[:5] or ["nothing"]
        engine.record = first
        for mode in _MODES if not turn else _MODES[-1:]:
            request = make_request(
                " ".join(words),
                Principal(tenant, tuple(roles)),
                f"default vector.threshold=off sources={sources.replace(' ', '')}",
                keywords=words[0],
                mode=mode,
                filters=f"collection = '{arrays.names['collections'][code]}'",
            )
            result = SearchResult(engine, retrieve(engine, request), request.plan)
            if result.unavailable:
                raise CorpusError(f"its source {result.unavailable[0].source}: {result.unavailable[0].reason}")
            _ = result.hits
