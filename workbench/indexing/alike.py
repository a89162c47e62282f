"""Which files will be copies of others, before anything is read: those of equal bytes that are read and given alike.

Only files of a size that another one has are read, and only for their digests. The run itself goes by documents: members of
archives and what a reader refuses are known to it alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.indexing.embedding import Abort, check
from workbench.indexing.previous import FileKey, StoredFile
from workbench.indexing.reading import Task
from workbench.ingest.errors import ReadError
from workbench.ingest.readers import Source, reader_for
from workbench.ingest.walk import digest_of
from workbench.reports import FileStatus


def copies_among(
    tasks: Sequence[Task], kept: Mapping[FileKey, Task], stored: Mapping[FileKey, StoredFile], abort: Abort
) -> dict[FileKey, str]:
    """The files that will be indexed as another one.

    Args:
        tasks: Files that will be read.
        kept: Files that did not change.
        stored: What is known of those.
        abort: Asked for each file that is digested.

    Returns:
        For each copy the path of the file that stands for it: the first, by path.
    """
    sizes: dict[int, list[tuple[Task, str]]] = {}
    for task in tasks:
        if task.found.size:
            sizes.setdefault(task.found.size, []).append((task, ""))
    for key, task in kept.items():
        if stored[key].status is FileStatus.INDEXED:
            sizes.setdefault(task.found.size, []).append((task, stored[key].sha256))
    groups: dict[tuple[object, ...], list[Task]] = {}
    for alike in sizes.values():
        for task, known in alike if len(alike) > 1 else ():
            check(abort)
            content = _content(task, known)
            if content is not None:
                groups.setdefault(content, []).append(task)
    found: dict[FileKey, str] = {}
    for group in groups.values():
        first, *others = sorted(group, key=lambda task: (task.found.path, task.found.root))
        found.update({(task.found.root, task.found.path): first.found.path for task in others})
    return found


def _content(task: Task, known: str) -> tuple[object, ...] | None:
    """All that two files must share to be indexed as one; None for a file that nobody will read."""
    source = Source(task.found)
    try:
        reader = reader_for(source)
        digest = known or digest_of(task.found)
    except (ReadError, OSError):
        return None
    language = source.suffix if reader.name == "code" else ""
    return (digest, reader.name, language, task.rules)
