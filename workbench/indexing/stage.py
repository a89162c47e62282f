"""Reading the files that changed into the staging file, and saying what became of each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from workbench import settings
from workbench.encode.protocol import Meter
from workbench.indexing.compare import recipe_of
from workbench.indexing.embedding import check
from workbench.indexing.reading import Batch, Outcome, Task, read_all
from workbench.indexing.state import Run
from workbench.ingest.readers import READERS
from workbench.ingest.walk import digest_of
from workbench.records import Document
from workbench.reports import FileReport, FileStatus
from workbench.store.database import fetch, open_reading
from workbench.store.generations import step
from workbench.store.grouping import content_key
from workbench.store.staging import Staging

_FILES_PER_WORKER = 40
_BYTES_PER_WORKER = 4_000_000


def stage_files(run: Run, staging: Staging, tasks: Sequence[Task]) -> None:
    """Read what has changed, into the staging file."""
    meter = Meter(run.tell, "read", len(tasks), float(sum(task.found.size for task in tasks)) or 1.0)
    taken = _TakenIds(run)
    items = read_all(tasks, run.cutting, _workers(run.options.workers, tasks))
    file: _StagedFile | None = None
    try:
        for task, item in items:
            check(run.abort)
            file = file or _StagedFile(run, staging, task, taken)
            if isinstance(item, Outcome):
                run.reports.append(((task.found.root, task.found.path), file.finish(item)))
                file = None
                meter.advance(1, task.found.path, float(task.found.size))
                step("read")
            else:
                file.add(item)
                meter.advance(0, task.found.path)
    finally:
        items.close()
    staging.flush()


_PLAIN = frozenset({".md", ".markdown", ".txt", ".rst", ".py", ".js", ".ts", ".c", ".h", ".java", ".go", ".rs", ".sh"})
"""Files that only this project's own code and the standard library read: these neither crash nor loop."""


def _workers(asked: int | None, tasks: Sequence[Task]) -> int:
    """Helpers for these files: one takes a second to start, and keeps a reader's crash, loop or greed from this process."""
    if asked is not None:
        return asked
    size = sum(task.found.size for task in tasks)
    if len(tasks) <= _FILES_PER_WORKER and size < _BYTES_PER_WORKER:
        return int(any(os.path.splitext(task.found.path)[1].lower() not in _PLAIN for task in tasks))
    return min(int(settings.get("threads")), len(tasks))


class _StagedFile:
    """One file on its way into the staging file."""

    def __init__(self, run: Run, staging: Staging, task: Task, taken: _TakenIds) -> None:
        self._run, self._staging, self._task, self._taken = run, staging, task, taken
        self._documents = self._chunks = self._doubled = 0

    def add(self, batch: Batch) -> None:
        """Stage some of its documents."""
        found = self._task.found
        for document, records in batch:
            if not self._taken.take(document.document_id):
                self._doubled += 1
                continue
            location = found.absolute if document.path == found.path else ""
            content = content_key(document, [record for record, _ in records], _reader_of(document))
            self._staging.add_document(
                document, records, file=(found.root, found.path), location=location, content=content
            )
            self._documents += 1
            self._chunks += len(records)

    def finish(self, outcome: Outcome) -> FileReport:
        """Its row of the table of files, and its report."""
        run, found, rules = self._run, self._task.found, self._task.rules
        reason, remedy = outcome.reason, outcome.remedy
        if self._doubled:
            reason = f"{self._doubled} of its records have the id of another one" + (f"; {reason}" if reason else "")
            remedy = remedy or "Give each record its own id"
        status = FileStatus.INDEXED if self._documents else outcome.status
        if status is FileStatus.INDEXED and not self._documents:
            status = FileStatus.FAILED
        run.read += bool(self._documents)
        digest = recipe = ""
        if outcome.status is not FileStatus.FAILED:  # else the next run tries again
            recipe = recipe_of(run, found, rules)
            with suppress(OSError):  # it has gone since it was read: without a digest the next run finds it changed
                digest = digest_of(found)
        run.rows.append(
            (
                found.root, found.path, found.size, found.modified_ns, digest, recipe, list(rules.collections),
                status.value, reason, remedy, self._documents, self._chunks,
                rules.access,
            )
        )  # fmt: skip
        return FileReport(found.path, status, reason, remedy, self._documents, self._chunks, outcome.seconds)


def _reader_of(document: Document) -> str:
    """What reads a document, as far as its name decides: with the same bytes the rest is the same."""
    if "record_id" in document.metadata:
        return "record"
    suffix = os.path.splitext(document.path)[1].lower()
    return next((reader.name for reader in READERS if suffix in reader.suffixes), "")


class _TakenIds:
    """Ids of documents that are carried over or staged: two documents never share one."""

    def __init__(self, run: Run) -> None:
        self._ids: set[str] = set()
        database = run.previous.database
        if database is not None:
            connection = open_reading(database)
            try:
                held = "SELECT d.document_id, f.root, f.path FROM {} d JOIN files f ON f.number = d.file_number"
                rows = fetch(connection, held.format("documents"))
                if run.previous.copies:
                    rows += fetch(connection, held.format("copies"))
            finally:
                connection.close()
            self._ids.update(row[0] for row in rows if (row[1], row[2]) not in run.dropped)

    def take(self, document_id: str) -> bool:
        """True the first time."""
        if document_id in self._ids:
            return False
        self._ids.add(document_id)
        return True
