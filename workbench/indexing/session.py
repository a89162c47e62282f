"""What every run that writes does around its work: lock, clean, tell, keep the job, and say a full disk in one sentence."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

from workbench.errors import CorpusError
from workbench.indexing.embedding import Abort, check
from workbench.indexing.previous import Previous, load_previous
from workbench.ingest.walk import relative_path
from workbench.records import Progress, ProgressCallback
from workbench.reports import IndexReport
from workbench.saved.jobs import Recorder
from workbench.store import generations, locks
from workbench.store.database import fetch, has_column, open_reading
from workbench.store.generations import DATABASE, Layout


def ignore_progress(progress: Progress) -> None:
    """ProgressCallback nobody."""


_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)


def never() -> bool:
    """Go on."""
    return False


@contextmanager
def told() -> Iterator[None]:
    """A full or read-only disk, or too little memory, in one sentence, wherever in the run it is met."""
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError, MemoryError) as exc:
        if isinstance(exc, OSError) and exc.errno in _FORBIDDEN:
            where = f" at {exc.filename}" if exc.filename else ""
            raise CorpusError(
                f"The corpus cannot be written: {str(exc.strerror).lower()}{where}",
                "Give yourself the right to write there, or choose another --corpus",
            ) from exc
        reason = str(exc).partition("\n")[0] or type(exc).__name__
        # Faults of the SQL itself; all others come from outside, also a commit whose log cannot be written.
        if isinstance(exc, (duckdb.ProgrammingError, duckdb.InternalError, duckdb.IntegrityError, duckdb.DataError)):
            raise CorpusError(
                f"The new generation could not be built: {reason}", "The corpus is as it was; report this"
            ) from exc
        raise CorpusError(
            f"The new generation could not be built: {reason}",
            "Free disk space or memory, and run the same command again; the corpus is as it was",
        ) from exc


def access_below(database: Path | None, paths: Sequence[str]) -> dict[str, set[str]]:
    """For each path (absolute, or as citations show it) the kinds of access of the documents and files below it.

    Args:
        database: A generation's; None has none.
        paths: Files and folders.
    """
    if database is None:
        return {path: set() for path in paths}
    connection = open_reading(database)
    try:
        access = "f.access" if has_column(connection, "files", "access") else "''"
        sql = (
            f"SELECT DISTINCT d.tenant, d.roles, d.sensitivity, {access} FROM files f LEFT JOIN documents d"
            " ON d.file_number = f.number WHERE f.path = $1 OR starts_with(f.path, $1 || '/')"
            " OR f.root || '/' || f.path = $1 OR starts_with(f.root || '/' || f.path, $1 || '/')"
        )
        found: dict[str, set[str]] = {}
        for path in paths:
            names = {path, os.path.abspath(path), os.path.realpath(path)}
            rows = [row for name in sorted(names) for row in fetch(connection, sql, [relative_path(name).rstrip("/")])]
            kinds = {given if level is None else json.dumps([t, roles, level]) for t, roles, level, given in rows}
            found[path] = kinds - {""}
        return found
    finally:
        connection.close()


def locked(
    recorded: AbstractContextManager[Recorder],
    folder: Path,
    tell: ProgressCallback,
    abort: Abort,
    wait: bool,
    work: Callable[[Previous, ProgressCallback, Abort], IndexReport],
    paths: Sequence[str] = (),
) -> IndexReport:
    """Do the work under the writer's lock, between two cleanings, and keep its job, which is about `paths`."""
    with told(), recorded as job, locks.writer(Layout(folder).writer_lock, folder, wait=wait, abort=abort):
        job.running()
        generations.clean(folder)
        previous = load_previous(folder)
        held = access_below(previous.database, paths)
        if any(held.values()):
            job.touches(held)

        def tell_or_stop(progress: Progress) -> None:
            # The builders know nothing of stopping: they are stopped through the progress that they report. Publishing is
            # not stopped half-way: by its last report the new generation answers.
            if progress.step != "publish":
                check(abort)
            tell(progress)

        try:
            report = work(previous, tell_or_stop, abort)
            now = access_below(Layout(folder).folder(report.generation) / DATABASE, paths)
            now = {path: kinds | held[path] for path, kinds in now.items()}
            if any(now.values()):
                job.touches(now)
        finally:
            previous.close()
            # Whatever happened, what was being built goes; vectors that were made stay in the journal.
            generations.clean(folder)
        job.done(report)
        if job.trouble:
            report = replace(
                report, warnings=(*report.warnings, f"The run was not written down as a job: {job.trouble}")
            )
        return report
