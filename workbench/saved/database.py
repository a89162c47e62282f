"""`<corpus>/desk.sqlite`: what several people and processes write, a little at a time.

Generations never change; judgments, query sets, notes and jobs change all day. They are in one SQLite file in WAL mode: readers
never wait for a writer, writers queue for `BUSY_SECONDS`, and a commit is on the disk when it returns (`synchronous=FULL`), so
a killed process loses at most what it was writing.

A module that keeps something here declares a `Group` of tables with its own migrations and version::

    JOBS = Group("jobs", ("CREATE TABLE jobs (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT",))

    database = Database(corpus.path)
    with database.writing(JOBS) as db:            # one transaction: all of it, or nothing
        db.execute("INSERT INTO jobs (name) VALUES (?)", (name,))
    rows = database.rows(JOBS, "SELECT * FROM jobs")

A migration that was released is never edited: add another one after it. Table names of a group begin with its name. Reading makes
no file: where nobody has written, and where the folder cannot be written, there are empty tables.

Each use opens a connection of its own and closes it (0.7 ms to read, some 5 ms to write), so that threads and forked processes
never share one, and a file that was replaced is never written.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from workbench.errors import CorpusDamaged, CorpusError, CorpusLocked, CorpusNotFound
from workbench.store.generations import private, step

FILE = "desk.sqlite"
BUSY_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Group:
    """Tables that belong together."""

    name: str
    migrations: tuple[str, ...]

    @property
    def version(self) -> int:
        return len(self.migrations)


def now() -> float:
    """Seconds since 1970, UTC: how times are kept."""
    return datetime.now(UTC).timestamp()


def time_of(seconds: float) -> datetime:
    """A kept time, aware, UTC."""
    return datetime.fromtimestamp(seconds, UTC)


class Database:
    """The database of one corpus folder. Safe from several threads and processes; opens no file until it is used."""

    def __init__(self, corpus: str | Path, busy_seconds: float = BUSY_SECONDS) -> None:
        self.corpus = Path(corpus).absolute()
        self.path = self.corpus / FILE
        self._busy = busy_seconds

    def rows(self, group: Group, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """The rows of one SELECT. Raises as `reading` does."""
        with self.reading(group) as db:
            return db.execute(sql, values).fetchall()

    @contextmanager
    def reading(self, *groups: Group) -> Iterator[sqlite3.Connection]:
        """A connection to read from: every statement sees the same moment."""
        if not self.path.exists():
            with self._empty(groups) as db:
                yield db
            return
        with self._translated("read"), self._connection() as db:
            if not self._writable() and not any(_version(db, each) for each in groups):
                with self._empty(groups) as empty:
                    yield empty
                return
            for group in groups:
                _migrate(db, group, self.path)
            db.execute("BEGIN")
            yield db

    @contextmanager
    def writing(self, *groups: Group) -> Iterator[sqlite3.Connection]:
        """A connection to write with, in one transaction that is on the disk when the block ends; an error undoes all."""
        if not self.corpus.is_dir():
            raise CorpusNotFound(f"There is no corpus at {self.corpus}", "Make one with workbench index")
        if not self._writable():
            remedy = "Ask for write access to the corpus folder, or copy the corpus"
            raise CorpusError(f"{self.path} cannot be written", remedy)
        with self._translated("written"), self._connection(make=True) as db:
            for group in groups:
                _migrate(db, group, self.path)
            db.execute("BEGIN IMMEDIATE")
            yield db  # closing the connection undoes what an error leaves
            db.execute("COMMIT")

    def check(self) -> list[str]:
        """What is wrong with its structure, read whole. Raises as `reading` does."""
        with self._translated("read"), self._connection() as db:
            found = [str(row[0]) for row in db.execute("PRAGMA integrity_check(3)") if row[0] != "ok"]
            return found + [
                f"a row of {row[0]} refers to a missing row"
                for row in db.execute("PRAGMA foreign_key_check").fetchmany(3)
            ]

    def _writable(self) -> bool:
        return os.access(self.corpus, os.W_OK) and (not self.path.exists() or os.access(self.path, os.W_OK))

    @contextmanager
    def _empty(self, groups: Sequence[Group]) -> Iterator[sqlite3.Connection]:
        with closing(_connect(":memory:")) as empty:
            for each in groups:
                _migrate(empty, each, self.path)
            yield empty

    @contextmanager
    def _connection(self, make: bool = False) -> Iterator[sqlite3.Connection]:
        with closing(self._open(make)) as db:
            yield db

    def _open(self, make: bool) -> sqlite3.Connection:
        where = "file:" + quote(str(self.path))
        if self._writable():
            new = make and not self.path.exists()
            db = _connect(f"{where}?mode={'rwc' if make else 'rw'}", self._busy)
            if new:
                private(self.path)  # the files that WAL makes beside it get the same rights
            try:
                _use_wal(db, self._busy)
                db.execute("PRAGMA synchronous=FULL")
            except BaseException:
                db.close()
                raise
            return db
        # WAL wants to make files beside the database even to read; where nothing can be made, nobody here can write either.
        db = _connect(f"{where}?mode=ro", self._busy)
        try:
            db.execute("SELECT 1 FROM sqlite_schema").fetchall()
        except sqlite3.OperationalError:
            db.close()
            db = _connect(f"{where}?immutable=1", self._busy)
        return db

    @contextmanager
    def _translated(self, done: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise  # a rule of a table was broken: the module that declared it says what that means
        except sqlite3.OperationalError as exc:
            code = exc.sqlite_errorcode & 0xFF
            if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                text = f"{self.path} was being written by others for {self._busy:g} seconds"
                raise CorpusLocked(text, "Try again") from exc
            if code == sqlite3.SQLITE_ERROR:
                raise  # a statement that SQLite refuses is a fault of the program, not of the file
            remedy = "Check the folder's rights and the free space on its disk"
            raise CorpusError(f"{self.path} cannot be {done}: {exc}", remedy) from exc
        except sqlite3.DatabaseError as exc:
            if getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_ERROR) == sqlite3.SQLITE_ERROR:
                raise
            corpus = self.corpus
            raise CorpusDamaged(
                f"{self.path} is damaged: {exc}",
                f"Run `workbench doctor --repair --corpus {shlex.quote(str(corpus))}`: it saves what can be read",
            ) from exc


# --- damage --------------------------------------------------------------------------------------------------------------


def check_database(corpus: Path) -> str:
    """What is wrong with the structure of a corpus's database; "" where nothing is, or where there is none."""
    if not (corpus / FILE).exists():
        return ""
    try:
        return "; ".join(Database(corpus).check()).replace("\n", " ")
    except CorpusDamaged as exc:
        return exc.message


def repair_database(corpus: Path) -> tuple[str, ...]:
    """Save what can be read of a damaged database in a new file, and set the damaged one aside; what was done, a sentence each.

    The damaged file gets its second name, in `damaged/`, when the new one has everything. So where a run was killed after that,
    the next one finds both names on one file, and goes on with the new one.
    """
    path, fresh, aside = corpus / FILE, corpus / f"{FILE}.new", corpus / "damaged"
    kept = next((p for p in aside.glob(f"{FILE}*") if path.exists() and p.samefile(path)), None)
    reason = "a repair was interrupted"
    if kept is None or not fresh.exists():
        reason = check_database(corpus)
        if not reason:
            return ()
        for tail in ("", "-wal", "-shm", "-journal"):
            fresh.with_name(fresh.name + tail).unlink(missing_ok=True)
        _save_rows(path, fresh)
        if kept is None:
            aside.mkdir(exist_ok=True)
            kept = next(p for n in range(1000) if not (p := aside / (f"{FILE}.{n}" if n else FILE)).exists())
            os.link(path, kept)
    with closing(_connect(str(fresh))) as new:
        tables = [row[0] for row in new.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        saved = {t: new.execute(f'SELECT count(*) FROM "{t}"').fetchone()[0] for t in tables if t[:7] != "sqlite_"}
    # The log of the damaged file must not be read as the new one's.
    for tail in ("-wal", "-shm"):
        left = path.with_name(path.name + tail)
        if left.exists():
            os.replace(left, kept.with_name(kept.name + tail))
    step("log-set-aside")
    os.replace(fresh, path)
    counts = ", ".join(f"{count:,} {name}" for name, count in saved.items()) or "nothing could be read"
    return (f"{path} was damaged ({reason}) and is set aside in {kept}; saved from it: {counts}",)


def _save_rows(damaged: Path, fresh: Path) -> None:
    """Copy every row that can be read, from both ends of each table."""
    with (
        closing(_connect(f"file:{quote(str(damaged))}?mode=rw", BUSY_SECONDS)) as old,
        closing(_connect(str(fresh))) as new,
    ):
        private(fresh)
        with suppress(sqlite3.DatabaseError):
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with suppress(sqlite3.DatabaseError):  # one that is too damaged for a transaction is not being written either
            old.execute("BEGIN IMMEDIATE")
        new.execute("PRAGMA foreign_keys=OFF")
        new.execute("PRAGMA synchronous=FULL")
        new.execute("BEGIN")
        schema: list[tuple[str, str, str]] = []
        with suppress(sqlite3.DatabaseError):
            sql = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
            schema.extend(tuple(row) for row in old.execute(sql))
        for kind, name, sql in sorted(schema, key=lambda entry: entry[0] != "table"):
            try:
                new.execute(sql)
            except sqlite3.DatabaseError:
                continue  # a damaged schema may name a table twice
            named = name.replace('"', '""')
            for order in ("", " DESC") if kind == "table" else ():
                with suppress(sqlite3.DatabaseError):
                    for row in old.execute(f'SELECT * FROM "{named}" ORDER BY rowid{order}'):
                        marks = ", ".join("?" * len(row))
                        with suppress(sqlite3.DatabaseError):
                            new.execute(f'INSERT OR IGNORE INTO "{named}" VALUES ({marks})', tuple(row))
        new.execute("COMMIT")


# --- connections and versions --------------------------------------------------------------------------------------------


def _connect(where: str, busy: float = 0.0) -> sqlite3.Connection:
    db = sqlite3.connect(
        where, timeout=busy, isolation_level=None, check_same_thread=False, uri=where.startswith("file:")
    )
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA foreign_keys=ON")
    return db


def _use_wal(db: sqlite3.Connection, busy: float) -> None:
    """Switch to WAL mode, which the file keeps. Where others do so at the same moment SQLite refuses without waiting."""
    deadline = time.monotonic() + busy
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _version(db: sqlite3.Connection, group: Group) -> int:
    known = db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'desk_versions'").fetchone()
    row = known and db.execute("SELECT version FROM desk_versions WHERE name = ?", (group.name,)).fetchone()
    return int(row[0]) if row else 0


def _migrate(db: sqlite3.Connection, group: Group, path: Path) -> None:
    """Bring a group's tables to this program's version, in one transaction. Raises CorpusError where they are newer."""
    found = _version(db, group)
    if found < group.version:
        db.execute("BEGIN IMMEDIATE")
        db.execute("CREATE TABLE IF NOT EXISTS desk_versions (name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT")
        found = _version(db, group)  # another process may have been faster
        for migration in group.migrations[found:]:
            for statement in filter(str.strip, migration.split(";")):
                db.execute(statement)
        if found < group.version:
            db.execute("INSERT OR REPLACE INTO desk_versions VALUES (?, ?)", (group.name, group.version))
        db.execute("COMMIT")
    if found > group.version:
        raise CorpusError(
            f"The {group.name} in {path} were written by a newer workbench (version {found}, this one knows {group.version})",
            "Update the workbench",
        )
