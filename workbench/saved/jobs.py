"""Ingest jobs: every run that changes a corpus, with its state, kept beside the generations.

A run is `queued` from the moment it starts until it has the writer's lock, then `running`, then `done` with its counts or
`failed` with a reason. A generation cannot keep this: a run that fails makes none. Each run holds a lock on a file of its own
for as long as it lives (the kernel lets go of it however the process dies), so a job that says queued or running and whose
lock is free died, and is shown as failed.

A job that cannot be written down never stops a run: indexing is worth more than its record.

Whoever sees every document of the corpus, and could see all that a job was about, sees the job whole. Anybody else sees the jobs
that name a source in which they see documents (or could have seen some, where they are gone), with those paths only, and without
counts and reasons, which tell of documents that are hidden from them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import CorpusError, WorkbenchError
from workbench.records import FileStatus, IndexReport, Principal
from workbench.saved.database import Database, Group, now, time_of
from workbench.store import locks
from workbench.store.access.visibility import Policy, SeeAll, may_know
from workbench.store.records import StoredRecords
from workbench.store.types import Scope

if TYPE_CHECKING:
    import sqlite3

    import polars

FOLDER = "jobs"
"""Folder of the corpus with one lock file for each run that lives."""

MOST = 1_000
"""Jobs that are kept: the newest."""

_COUNTS = ("found", "indexed", "unchanged", "skipped", "failed", "removed", "documents", "chunks", "embedded", "reused")
COLUMNS = (
    "number", "kind", "state", "paths", "collections", "queued", "started", "ended", "generation", *_COUNTS, "reason", "remedy",
)  # fmt: skip
"""What a job is shown as, in this order."""
_TIMES = ("queued", "started", "ended")

JOBS = Group(
    "jobs",
    (
        "CREATE TABLE jobs (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, state TEXT NOT NULL,"
        " paths TEXT NOT NULL, collections TEXT NOT NULL, lock TEXT NOT NULL, queued REAL NOT NULL, started REAL, ended REAL,"
        " generation TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', remedy TEXT NOT NULL DEFAULT '',"
        + ", ".join(f"{name}_count INTEGER" for name in _COUNTS)
        + ") STRICT",
        "ALTER TABLE jobs ADD COLUMN access TEXT NOT NULL DEFAULT ''",
    ),
)
_DIED = "The process ended before the run did"
_DIED_REMEDY = "Run the same command again: it goes on where that one stopped"


class JobState(StrEnum):
    """Where a run is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


_OPEN = (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True, slots=True)
class Job:
    """One run.

    Attributes:
        queued, started, ended: UTC; None where it has not come to that.
        generation: The generation that answered after it, "" unless done.
        counts: Files found, indexed, unchanged, skipped, failed and removed; documents and chunks in the corpus after it;
            texts embedded and vectors reused. None unless done.
        access: Path -> what decides who sees the files below it, at the time: each kind as `FileRules.access` has it. None for
            a job of before this was kept.
    """

    number: int
    kind: str
    state: JobState
    paths: tuple[str, ...]
    collections: tuple[str, ...]
    queued: datetime
    started: datetime | None
    ended: datetime | None
    generation: str
    reason: str
    remedy: str
    counts: dict[str, int] | None
    access: dict[str, list[str]] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The job as JSON values, its counts beside the rest."""
        values: dict[str, Any] = {name: getattr(self, name, None) for name in COLUMNS} | (self.counts or {})
        for name in _TIMES:
            values[name] = values[name] and values[name].isoformat()
        return values | {"state": str(self.state), "paths": list(self.paths), "collections": list(self.collections)}


class Recorder:
    """Writes down what becomes of one run; see `recording`. What cannot be written is kept in `trouble`."""

    def __init__(self, database: Database, number: int, trouble: str = "") -> None:
        self._database, self._number = database, number
        self.trouble = trouble

    def running(self) -> None:
        """The run has the writer's lock."""
        self._set(state=JobState.RUNNING.value, started=now())

    def touches(self, access: Mapping[str, Collection[str]]) -> None:
        """Who may see what is below the paths that the run was asked for."""
        self._set(access=json.dumps({path: sorted(kinds) for path, kinds in access.items()}))

    def done(self, report: IndexReport) -> None:
        """The run is over, and this is its report."""
        counts = {status.value: report.count(status) for status in FileStatus}
        counts |= {"found": report.found, "documents": report.documents, "chunks": report.chunks}
        counts |= {"embedded": report.embedded, "reused": report.reused}
        named = {f"{name}_count": counts[name] for name in _COUNTS}
        self._set(state=JobState.DONE.value, ended=now(), generation=report.generation, **named)

    def failed(self, error: BaseException) -> None:
        """The run ended with an error."""
        if isinstance(error, WorkbenchError):
            reason, remedy = error.message, error.remedy
        elif isinstance(error, KeyboardInterrupt):
            reason, remedy = "It was stopped", _DIED_REMEDY
        else:
            reason, remedy = f"{type(error).__name__}: {error}", "Run `workbench doctor` to see what is wrong"
        self._set(state=JobState.FAILED.value, ended=now(), reason=reason, remedy=remedy)

    def _set(self, **values: Any) -> None:
        if not self._number:
            return
        assigned = ", ".join(f"{name} = ?" for name in values)
        try:
            with self._database.writing(JOBS) as db:
                db.execute(f"UPDATE jobs SET {assigned} WHERE number = ?", (*values.values(), self._number))
        except CorpusError as exc:
            self.trouble = str(exc)


@contextmanager
def recording(
    corpus: Path, kind: str, paths: Sequence[str], collections: Sequence[str], access: Mapping[str, Collection[str]]
) -> Iterator[Recorder]:
    """Keep a job for one run: queued at once, failed by whatever error leaves the block; the rest is for the run to say."""
    database, lock = Database(corpus), None
    try:
        folder = corpus / FOLDER
        folder.mkdir(exist_ok=True)
        name = f"{os.getpid()}-{time.time_ns()}.lock"
        with database.writing(JOBS) as db:
            # In here, where one process is at a time: a file that is free and that no job names was left by a killed run.
            (folder / name).touch()
            lock = locks.exclusive(folder / name)
            values = (kind, JobState.QUEUED.value, json.dumps(list(paths)), json.dumps(list(collections)), name, now())
            number = db.execute(
                "INSERT INTO jobs (kind, state, paths, collections, lock, queued) VALUES (?, ?, ?, ?, ?, ?)", values
            ).lastrowid
            _settle(db, folder)
            db.execute("DELETE FROM jobs WHERE number <= ?", ((number or 0) - MOST,))
        recorder = Recorder(database, number or 0)
        recorder.touches({path: access.get(path, ()) for path in paths})
    except (CorpusError, OSError) as exc:
        recorder = Recorder(database, 0, str(exc))
    try:
        yield recorder
    except BaseException as exc:
        recorder.failed(exc)
        raise
    finally:
        if lock is not None:
            # The name goes while the lock is held: nobody finds a file that is free and not yet gone.
            lock.path.unlink(missing_ok=True)
            lock.close()


def _settle(db: sqlite3.Connection, folder: Path) -> None:
    """Write down as failed what died, and remove the lock files that were left."""
    rows = db.execute("SELECT number, lock FROM jobs WHERE state IN ('queued', 'running')").fetchall()
    for row in rows:
        if not _lives(folder / row["lock"]):
            values = (JobState.FAILED.value, _DIED, _DIED_REMEDY, row["number"])
            db.execute("UPDATE jobs SET state = ?, reason = ?, remedy = ? WHERE number = ?", values)
            (folder / row["lock"]).unlink(missing_ok=True)
    named = {row["lock"] for row in rows}
    for path in sorted(folder.glob("*.lock")):
        if path.name not in named and not _lives(path):
            path.unlink(missing_ok=True)


def _lives(path: Path) -> bool:
    """Whether a run still holds its lock file."""
    with suppress(PermissionError):
        if not path.exists():
            return False
        lock = locks.exclusive(path)
        if lock is not None:
            lock.close()
            return False
    return True


def list_jobs(corpus: Path) -> list[Job]:
    """Every job, the newest first; those whose process died as failed. Writes nothing. Raises CorpusError, CorpusDamaged."""
    database, folder = Database(corpus), corpus / FOLDER
    rows = database.rows(JOBS, "SELECT * FROM jobs ORDER BY number DESC")
    dead = {row["number"] for row in rows if row["state"] in _OPEN and not _lives(folder / row["lock"])}
    if dead:
        # A run may have ended between the two looks: what it wrote before it let go of its lock counts.
        again = {row["number"]: row for row in database.rows(JOBS, "SELECT * FROM jobs")}
        rows = [again.get(row["number"], row) if row["number"] in dead else row for row in rows]
    return [_job(row, row["number"] in dead) for row in rows]


def _job(row: sqlite3.Row, dead: bool) -> Job:
    same = ("number", "kind", "generation", "reason", "remedy")
    counts = {name: row[f"{name}_count"] for name in _COUNTS}
    times = {n: None if row[n] is None else time_of(row[n]) for n in _TIMES}
    lists = {name: tuple(json.loads(row[name])) for name in ("paths", "collections")}
    values: dict[str, Any] = {**{name: row[name] for name in same}, **times, **lists}
    job = Job(
        **values,
        state=JobState(row["state"]),
        counts=None if counts["found"] is None else counts,
        access=json.loads(row["access"]) if row["access"] else None,
    )
    died = dead and job.state in _OPEN
    return replace(job, state=JobState.FAILED, reason=_DIED, remedy=_DIED_REMEDY) if died else job


# --- what a principal may know -----------------------------------------------------------------------------------------------


def visible_jobs(corpus: Path, records: StoredRecords, principal: Principal | None, policy: Policy | None) -> list[Job]:
    """The jobs that a principal may know, the newest first. Raises CorpusError."""
    scope, everything = records.scope(principal, None, ()), Scope()
    roots, all_roots = set(records.roots(scope)), set(records.roots(everything))
    judge = policy or SeeAll()

    def seen(job: Job, path: str) -> tuple[bool, bool]:
        """Whether anything below a path is seen, and whether all of it."""
        kinds = None if job.access is None else [may_know(kind, principal, judge) for kind in job.access.get(path, ())]
        # Before a run is done it is only known what it may be about.
        some = kinds is None or (bool(kinds) and (any if job.counts else all)(kinds))
        if path in all_roots or records.find_document(path, everything) is not None:
            some = path in roots or records.find_document(path, scope) is not None
        elif kinds is None:
            some = False
        return some, kinds is None or (all(kinds) if kinds else principal is None)

    shown = []
    for job in list_jobs(corpus):
        found = {path: seen(job, path) for path in job.paths}
        if scope.visible_documents is None and all(whole for _, whole in found.values()):
            shown.append(job)
            continue
        paths = tuple(path for path, (some, _) in found.items() if some)
        if paths:
            # Which parts of the corpus a run was for says what there is besides.
            shown.append(replace(job, paths=paths, counts=None, reason="", remedy="", generation="", collections=()))
    return shown


def jobs_frame(jobs: Sequence[Job]) -> polars.DataFrame:
    """One row a job: number, kind, state, paths, collections, queued, started, ended, generation, a column a count, reason,
    remedy. Times are UTC; counts are null unless the job is done and its reader sees the whole corpus.
    """
    import polars as pl

    rows = [{**job.to_dict(), **{name: getattr(job, name) for name in _TIMES}} for job in jobs]
    schema: dict[str, Any] = dict.fromkeys(COLUMNS, pl.Int64)
    schema |= dict.fromkeys(("kind", "state", "generation", "reason", "remedy"), pl.String)
    schema |= dict.fromkeys(("paths", "collections"), pl.List(pl.String))
    return pl.DataFrame(rows, schema=schema | dict.fromkeys(_TIMES, pl.Datetime("us", "UTC")))


def sources_frame(records: StoredRecords, scope: Scope) -> polars.DataFrame:
    """One row a source: path, kind (`folder`, or `files` indexed one by one), documents, chunks, bytes, modified (UTC), copies:
    how many more there are that are indexed under another path.
    """
    import polars as pl

    schema: dict[str, Any] = {"path": pl.String, "kind": pl.String, "documents": pl.Int64, "chunks": pl.Int64}
    schema |= {"bytes": pl.Int64, "modified": pl.Datetime("us", "UTC"), "copies": pl.Int64}
    return pl.DataFrame([asdict(source) for source in records.sources(scope)], schema=schema)
