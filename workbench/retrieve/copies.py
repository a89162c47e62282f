"""The paths of documents that are there several times and indexed once: which one a result shows, and which it names beside.

A result shows the document's own path (the first of them), but where a filter on path lets it through by the path of a copy
only, that one: who asks for `archive/**` gets paths in `archive/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from workbench.records import Passage
from workbench.store.types import RecordColumns, RecordStore, Scope


def as_asked(columns: RecordColumns, scope: Scope) -> RecordColumns:
    """Columns with the paths under which a scope shows their documents."""
    if not scope.paths:
        return columns
    owners = columns.document_numbers.tolist()
    paths = tuple(scope.paths.get(owner, path) for owner, path in zip(owners, columns.paths, strict=True))
    return replace(columns, paths=paths)


def others(shown: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Paths without the shown one, each once, in order."""
    return tuple(path for path in dict.fromkeys(paths) if path != shown)


def with_copies(
    records: RecordStore, scope: Scope, passages: Sequence[Passage], numbers: NDArray[np.int64]
) -> tuple[Passage, ...]:
    """Passages under the paths that a scope shows, each with the other paths of its document.

    Args:
        records: The store.
        scope: Whom and what was asked for.
        passages: What was found.
        numbers: int64 (m,), the record that stands for each; -1 where none does.
    """
    held = np.flatnonzero(numbers >= 0)
    owners = dict(zip(held.tolist(), records.columns(numbers[held]).document_numbers.tolist(), strict=True))
    paths = records.paths_of(sorted(set(owners.values())))
    if not paths:
        return tuple(passages)
    made = []
    for at, passage in enumerate(passages):
        owner = owners.get(at, -1)
        shown = scope.paths.get(owner, passage.path)
        made.append(replace(passage, path=shown, copies=others(shown, paths.get(owner, ()))))
    return tuple(made)
