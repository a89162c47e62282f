"""Changing a corpus: index files and folders, see what that would do, take them out. The front of `workbench.indexing`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import settings
from workbench.records import Progress
from workbench.reports import IndexReport

if TYPE_CHECKING:
    from workbench.indexing.preview import IndexPreview


def index(
    paths: Sequence[str | Path],
    corpus: str | Path | None = None,
    collection: str | Sequence[str] = "docs",
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> IndexReport:
    """Index files and folders into a corpus; what did not change is not embedded again.

    Args:
        paths: Files and folders.
        corpus: The corpus folder, made if it is not there; None is the setting `corpus`.
        collection: Named part of the corpus, or several.
        progress: Called with a Progress now and then.
        **options: tenant, roles, sensitivity, type, hidden, encoder, one_chunk_per_document, abort, as
            `workbench.indexing.index` has them.

    Raises:
        CorpusLocked, UsageError, EncoderError.
    """
    from workbench import indexing

    target = Path(settings.get("corpus") if corpus is None else corpus)
    collections = (collection,) if isinstance(collection, str) else tuple(collection)
    return indexing.index([Path(p) for p in paths], target, collections=collections, progress=progress, **options)


def preview(
    paths: Sequence[str | Path],
    corpus: str | Path | None = None,
    collection: str | Sequence[str] = "docs",
    **options: Any,
) -> IndexPreview:
    """Say what `index` with the same arguments would do, and do nothing. Raises UsageError, EncoderError."""
    from workbench import indexing

    target = Path(settings.get("corpus") if corpus is None else corpus)
    collections = (collection,) if isinstance(collection, str) else tuple(collection)
    return indexing.preview([Path(p) for p in paths], target, collections=collections, **options)


def remove(paths: Sequence[str | Path], corpus: str | Path | None = None, **options: Any) -> IndexReport:
    """Take files and folders out of a corpus. Raises CorpusNotFound, CorpusLocked."""
    from workbench import indexing

    return indexing.remove(
        [Path(p) for p in paths], Path(settings.get("corpus") if corpus is None else corpus), **options
    )
