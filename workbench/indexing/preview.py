"""What an indexing run would do, without doing it: `workbench index --dry-run`.

It walks and compares as the run does and stops there: nothing is read beyond digests, embedded or written, no lock is taken,
and a corpus that does not exist is not made. What only a reader finds out (a binary named `.txt`, a locked PDF) cannot be
known yet, and the report says so by calling these files "to read".
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from workbench.indexing.alike import copies_among
from workbench.indexing.compare import compare, find_files
from workbench.indexing.embedding import Abort
from workbench.indexing.encoders import choose_encoders, settle_encoders
from workbench.indexing.previous import load_previous
from workbench.indexing.roots import targets
from workbench.indexing.session import ignore_progress, never
from workbench.indexing.state import Options, Run
from workbench.ingest.rules import load_rules
from workbench.records import ProgressCallback
from workbench.reports import FileStatus


class Action(StrEnum):
    """What a run would do with one file."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    FAILED = "failed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class FilePreview:
    """One file: its path relative to its root, what would become of it, why, and its bytes.

    `copy_of` is the path of the file with the same bytes that it would be indexed as, or "".
    """

    path: str
    action: Action
    reason: str = ""
    remedy: str = ""
    size: int = 0
    copy_of: str = ""


@dataclass(frozen=True, slots=True)
class IndexPreview:
    """What a run would do with each file, by path. `seconds` is what finding out took."""

    files: tuple[FilePreview, ...]
    seconds: float

    def count(self, action: Action) -> int:
        """Number of files with this action."""
        return sum(file.action is action for file in self.files)

    @property
    def copies(self) -> int:
        """Number of files that hold the same bytes as another one, and would be indexed as that one."""
        return sum(bool(file.copy_of) for file in self.files)

    @property
    def read_bytes(self) -> int:
        """Bytes of the files that would be read."""
        return sum(file.size for file in self.files if file.action in (Action.NEW, Action.CHANGED))


_ACTIONS = {
    FileStatus.UNCHANGED: Action.UNCHANGED,
    FileStatus.SKIPPED: Action.SKIPPED,
    FileStatus.FAILED: Action.FAILED,
    FileStatus.REMOVED: Action.REMOVED,
}


def preview(
    paths: Sequence[str | Path],
    corpus: str | Path,
    *,
    collections: Sequence[str] = ("docs",),
    progress: ProgressCallback | None = None,
    abort: Abort | None = None,
    encoder: str | Sequence[str] | None = None,
    tenant: str | None = None,
    roles: Sequence[str] = (),
    sensitivity: str | None = None,
    type: str | None = None,
    one_chunk_per_document: bool = False,
    hidden: bool = False,
    gitignore: bool = True,
) -> IndexPreview:
    """Say what `index` with the same arguments would do.

    Returns:
        Every file below `paths`, and those of the corpus that would go.

    Raises:
        UsageError, EncoderError, CorpusDamaged: As `index` does.
    """
    options = Options.of(
        collections, encoder, tenant, roles, sensitivity, type,
        one_chunk_per_document=one_chunk_per_document, hidden=hidden, gitignore=gitignore,
    )  # fmt: skip
    started = time.monotonic()
    asked, folder = targets(paths), Path(corpus)
    previous = load_previous(folder)
    try:
        encoders = choose_encoders(options, previous)
        run = Run(
            folder,
            options,
            progress or ignore_progress,
            abort or never,
            previous,
            load_rules(folder),
            encoders,
            started,
        )
        also = settle_encoders(run, asked)
        tasks = compare(run, find_files(run, asked, also), (*asked, *also))
        copies = copies_among(tasks, run.kept, previous.files, run.abort)
        files = [
            FilePreview(
                f.path, _ACTIONS[f.status], "" if key in copies else f.reason, f.remedy, copy_of=copies.get(key, "")
            )
            for key, f in run.reports
        ]
        for task in tasks:
            key = (task.found.root, task.found.path)
            action = Action.CHANGED if key in previous.files else Action.NEW
            files.append(FilePreview(task.found.path, action, size=task.found.size, copy_of=copies.get(key, "")))
    finally:
        previous.close()
    return IndexPreview(tuple(sorted(files, key=lambda f: (f.path, f.action))), time.monotonic() - started)
