"""Reading the files that changed into the staging file, and saying what became of each."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from workbench import settings
from workbench.indexing.compare import recipe_of
from workbench.indexing.embedding import check
from workbench.indexing.progress import Meter
from workbench.indexing.reading import Outcome, Task, read_all
from workbench.indexing.state import Run
from workbench.records import FileReport, FileStatus
from workbench.store.duck import fetch, open_reading
from workbench.store.generations import file_digest, step
from workbench.store.staging import Staging

_FILES_PER_WORKER = 40


def stage_files(run: Run, staging: Staging, tasks: list[Task]) -> None:
    """Read what has changed, into the staging file."""
    meter = Meter(run.tell, "read", len(tasks))
    taken = _TakenIds(run)
    outcomes = read_all(tasks, run.cutting, _workers(run.options.workers, tasks))
    try:
        last = time.monotonic()
        for task, outcome in outcomes:
            check(run.abort)
            now = time.monotonic()
            run.reports.append(_stage(run, staging, task, outcome, taken, now - last))
            last = now
            meter.advance(detail=task.found.path)
            step("read")
    finally:
        outcomes.close()
    staging.flush()


def _workers(asked: int | None, tasks: list[Task]) -> int:
    """Helpers for that many files: a helper takes a second to start."""
    if asked is not None:
        return asked
    few = len(tasks) <= _FILES_PER_WORKER and not any(t.found.path.lower().endswith(".pdf") for t in tasks)
    return 0 if few else min(int(settings.get("threads")), max(1, len(tasks) // _FILES_PER_WORKER))


class _TakenIds:
    """Ids of documents that are carried over or staged: two documents never share one."""

    def __init__(self, run: Run) -> None:
        self._ids: set[str] = set()
        database = run.previous.database
        if database is not None:
            connection = open_reading(database)
            try:
                rows = fetch(
                    connection,
                    "SELECT d.document_id, f.root, f.path FROM documents d JOIN files f ON f.number = d.file_number",
                )
            finally:
                connection.close()
            self._ids.update(row[0] for row in rows if (row[1], row[2]) not in run.dropped)

    def take(self, document_id: str) -> bool:
        """True the first time."""
        if document_id in self._ids:
            return False
        self._ids.add(document_id)
        return True


def _stage(
    run: Run, staging: Staging, task: Task, outcome: Outcome, taken: _TakenIds, seconds: float
) -> FileReport:  # fmt: skip
    found, key = task.found, (task.found.root, task.found.path)
    reason, remedy, status = outcome.reason, outcome.remedy, outcome.status
    documents = [pair for pair in outcome.documents if taken.take(pair[0].document_id)]
    if len(documents) < len(outcome.documents):
        doubled = len(outcome.documents) - len(documents)
        reason = f"{doubled} of its records have the id of another one" + (f"; {reason}" if reason else "")
        remedy = remedy or "Give each record its own id"
        status = status if documents else FileStatus.FAILED
    chunks = 0
    for document, records in documents:
        location = found.absolute if document.path == found.path else ""
        staging.add_document(document, records, file=key, location=location)
        chunks += len(records)
    run.read += bool(documents)
    digest = recipe = ""
    if status is not FileStatus.FAILED:
        recipe = recipe_of(run, found, task.rules)
        with suppress(OSError):  # it has gone since it was read: without a digest the next run finds it changed
            digest = file_digest(Path(found.absolute))
    run.rows.append(
        (
            found.root, found.path, found.size, found.modified_ns, digest, recipe, list(task.rules.collections),
            status.value, reason, remedy, len(documents), chunks,
        )
    )  # fmt: skip
    return FileReport(found.path, status, reason, remedy, len(documents), chunks, seconds)
