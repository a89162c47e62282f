"""Grades of the current query's candidates, for the pictures: looked up once a candidate, and again when the desk was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import streamlit as st

from workbench.charts import Place
from workbench.saved.database import open_database
from workbench.ui.marks import judged_query
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from workbench.corpus import Corpus

_KEPT = "wb.judged"


def grades(corpus: Corpus, state: AppState, places: Sequence[Place]) -> dict[str, int]:
    """Chunk id -> grade that this judge gave, for places that have one. Raises WorkbenchError as `Judging.grades` does.

    A slider brings few new candidates into the picture; only those are looked up.
    """
    query, keywords = judged_query(state)
    key = (corpus.engine.key, query, keywords, written(corpus))
    kept: tuple[object, dict[str, int | None]] | None = st.session_state.get(_KEPT)
    if kept is None or kept[0] != key:
        kept = st.session_state[_KEPT] = (key, {})
    known = kept[1]
    new = [p for p in places if p.chunk_id not in known]
    if new:
        found: Mapping[str, object] = corpus.judging.grades(query, new, keywords=keywords)
        known.update({p.chunk_id: getattr(found.get(p.chunk_id), "grade", None) for p in new})
    return {p.chunk_id: grade for p in places if (grade := known[p.chunk_id]) is not None}


def written(corpus: Corpus) -> int:
    """When the desk was last written, in nanoseconds."""
    path, last = open_database(corpus.path).path, 0
    for file in (path, path.with_name(path.name + "-wal")):
        with suppress(OSError):
            last = max(last, file.stat().st_mtime_ns)
    return last
