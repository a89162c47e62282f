"""What an indexing run would do, without doing it: `workbench index --dry-run`.

It walks and compares as the run does and stops there: nothing is read beyond digests, embedded or written, no lock is taken,
and a corpus that does not exist is not made. What only a reader finds out (a binary named `.txt`, a locked PDF) cannot be
known yet, and the report says so by calling these files "to read".
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from workbench.indexing.compare import compare, cutting_for, elsewhere, find_files, inside, settle_encoders, targets
from workbench.indexing.state import Abort, FileKey, IndexOptions, Run, StoredFile, Task, check, load_previous
from workbench.ingest.walk import digest_of, relative_path
from workbench.records import FileStatus, ProgressCallback


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

    `copy_of` is the path of the first file with the same bytes, or ""; `elsewhere` the collections that it is in already,
    where it would be in these and in the one that the run names.
    """

    path: str
    action: Action
    reason: str = ""
    remedy: str = ""
    size: int = 0
    copy_of: str = ""
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexPreview:
    """What a run would do with each file, by path. `seconds` is what finding out took."""

    files: tuple[FilePreview, ...]
    seconds: float

    def count(self, action: Action | str) -> int:
        return sum(file.action == action for file in self.files)

    @property
    def copies(self) -> int:
        return sum(bool(file.copy_of) for file in self.files)

    @property
    def elsewhere(self) -> Mapping[str, int]:
        """How many files are in other collections already, by collection: see `FilePreview`."""
        return Counter(name for file in self.files for name in file.elsewhere)

    @property
    def read_bytes(self) -> int:
        return sum(file.size for file in self.files if file.action in (Action.NEW, Action.CHANGED))


def preview(
    paths: Sequence[str | Path],
    corpus: str | Path,
    options: IndexOptions | None = None,
    *,
    progress: ProgressCallback | None = None,
    abort: Abort | None = None,
) -> IndexPreview:
    """Say what `index` with the same arguments would do: every file below `paths`, and those of the corpus that would go.
    Raises as `index` does.
    """
    asked, folder = targets(paths), Path(corpus)
    with closing(load_previous(folder)) as previous:
        tell = progress or (lambda event: None)
        run = Run.begin(folder, options or IndexOptions(), previous, tell, abort or (lambda: False))
        more = settle_encoders(run, asked)
        tasks = compare(run, find_files(run, asked, more), (*asked, *more))
        copies = _same_bytes(run, tasks)
        files = [
            FilePreview(file.path, Action(file.status), file.reason, file.remedy, copy_of=copies.get(key, ""))
            for key, file in run.reports.items()
        ]
        for task in tasks:
            key = (task.found.root, task.found.path)
            action = Action.CHANGED if key in previous.files else Action.NEW
            also = elsewhere(run, key)
            files.append(FilePreview(task.found.path, action, "", "", task.found.size, copies.get(key, ""), also))
    return IndexPreview(tuple(sorted(files, key=lambda f: (f.path, f.action))), time.monotonic() - run.started)


def doubles(
    paths: Sequence[str | Path],
    corpus: str | Path,
    options: IndexOptions,
    know: Callable[[StoredFile], bool] = lambda file: True,
) -> Mapping[str, int]:
    """How many files that the corpus knows below `paths` are in other collections already, by collection, as the preview's
    `elsewhere` counts them, but without a look at the files; `know` leaves out those that nobody may hear of.
    """
    asked = [relative_path(target) for target in targets(paths)]
    with closing(load_previous(Path(corpus))) as previous:
        if not previous.files:
            return {}
        run = Run.begin(Path(corpus), None, previous, lambda event: None, lambda: False)
        run.options = options
        run.cutting = cutting_for(run, {*previous.granularities, *options.collections})
        below = (
            key
            for key, file in previous.files.items()
            if any(inside(relative_path(os.path.join(*key)), target) for target in asked) and know(file)
        )
        return Counter(name for key in below for name in elsewhere(run, key))


def _same_bytes(run: Run, tasks: Sequence[Task]) -> dict[FileKey, str]:
    """Files with the same bytes as another one, and the path of the first of these; only files of one size are digested."""
    known = {key: run.previous.files[key] for key in run.kept}
    sizes = Counter([*(task.found.size for task in tasks), *(file.size for file in known.values())])
    found = {key: file.sha256 for key, file in known.items() if file.status is FileStatus.INDEXED}
    for task in tasks:
        check(run.abort)
        if task.found.size and sizes[task.found.size] > 1:
            with suppress(OSError):
                found[task.found.root, task.found.path] = digest_of(task.found)
    first: dict[str, str] = {}
    ordered = sorted(found, key=lambda key: (key[1], key[0]))
    same = {key: first.setdefault(found[key], key[1]) for key in ordered}
    return {key: path for key, path in same.items() if path != key[1]}
