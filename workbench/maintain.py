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
    paths: str | Path | Sequence[str | Path],
    corpus: str | Path | None = None,
    collection: str | Sequence[str] = "docs",
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> IndexReport:
    """Index files and folders into a corpus; what did not change is not embedded again.

    Args:
        paths: Files and folders, or one; a leading `~` is the home folder.
        corpus: The corpus folder, made if it is not there; None is the setting `corpus`.
        collection: Named part of the corpus, or several.
        progress: Called with a Progress now and then.
        **options: tenant, roles, sensitivity, type, hidden, encoder, one_chunk_per_document, abort, as
            `workbench.indexing.index` has them.

    Raises:
        CorpusLocked, UsageError, EncoderError.
    """
    from workbench import indexing

    target = _corpus(corpus)
    collections = (collection,) if isinstance(collection, str) else tuple(collection)
    return indexing.index(_paths(paths), target, collections=collections, progress=progress, **options)


def preview(
    paths: str | Path | Sequence[str | Path],
    corpus: str | Path | None = None,
    collection: str | Sequence[str] = "docs",
    **options: Any,
) -> IndexPreview:
    """Say what `index` with the same arguments would do, and do nothing. Raises UsageError, EncoderError."""
    from workbench import indexing

    target = _corpus(corpus)
    collections = (collection,) if isinstance(collection, str) else tuple(collection)
    return indexing.preview(_paths(paths), target, collections=collections, **options)


def remove(paths: str | Path | Sequence[str | Path], corpus: str | Path | None = None, **options: Any) -> IndexReport:
    """Take files and folders out of a corpus. Raises CorpusNotFound, CorpusLocked."""
    from workbench import indexing

    return indexing.remove(_paths(paths), _corpus(corpus), **options)


def _paths(given: str | Path | Sequence[str | Path]) -> list[Path]:
    """One path or several; a text is not read letter by letter."""
    return [settings.path_of(p) for p in ((given,) if isinstance(given, (str, Path)) else given)]


def _corpus(given: str | Path | None) -> Path:
    return settings.path_of(settings.get("corpus") if given is None else given)
