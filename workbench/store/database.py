"""Opening DuckDB the one way: limits set, nothing fetched from the network, one cursor a call.

DuckDB's own defaults are 80 % of the machine's memory in every process and a spill folder beside the file, neither of
which suits a laptop with an app, a notebook and an indexing run on one corpus. Connections to one file within a process
share one instance, which refuses to open again with other options; so options are set after opening.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from workbench import settings
from workbench.errors import CorpusError, CorpusLocked

if TYPE_CHECKING:
    import duckdb


def spill_folder(path: Path) -> str:
    """Folder for what does not fit in memory: one for each process and file, because DuckDB's names in it are not unique.

    It is made when it is needed and removed when its last user closes.
    """
    name = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:8]
    return str(Path(tempfile.gettempdir()) / f"workbench-duckdb-{os.getpid()}-{name}")


class Database:
    """A generation's database, read-only, opened when it is first asked, after `check`; use it through `fetch` and its kin."""

    def __init__(self, path: Path, check: Callable[[], None]) -> None:
        self.path = path
        self._check = check
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._closed = False

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor of its own for one statement. Raises CorpusDamaged, CorpusError."""
        with self._lock:
            if self._closed:
                raise CorpusError("This corpus is closed", "Open it again")
            if self._connection is None:
                self._check()
                self._connection = open_reading(self.path)
            return self._connection.cursor()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


Connection: TypeAlias = "duckdb.DuckDBPyConnection | Database"


def open_reading(path: Path) -> duckdb.DuckDBPyConnection:
    """A read-only connection to a generation's database, whose digest holds. Raises CorpusError."""
    import duckdb

    with _translated(path):
        connection = duckdb.connect(str(path), read_only=True)
        _limit(connection)
        # Refused by DuckDB once the instance has spilled, so only where it differs (another connection may have set it).
        if fetch(connection, "SELECT current_setting('temp_directory')")[0][0] != spill_folder(path):
            connection.execute("SET GLOBAL temp_directory = ?", [spill_folder(path)])
        return connection


_REASONS = (
    ("lock", CorpusLocked, "Close the program that has it open for writing"),
    ("different configuration", CorpusError, "Close that connection, or open it with read_only=True"),
    ("permission denied", CorpusError, "Give yourself the right to read it"),
    ("too many open files", CorpusError, "Close corpora not in use, or raise the limit of open files (ulimit -n)"),
    ("", CorpusError, "Check its disk, then run: workbench doctor --verify"),
)
"""What DuckDB says where a file is whole and cannot be read all the same, the kind of error, and the remedy."""


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """DuckDB's failure to open or read a file whose digest holds, as what it is. Other errors are the statement's."""
    import duckdb

    try:
        yield
    except (duckdb.OutOfMemoryException, MemoryError) as exc:
        raise CorpusError(
            f"There is too little memory to read {path}", "Raise the setting memory_limit_mb, or free memory"
        ) from exc
    except (duckdb.IOException, duckdb.ConnectionException, duckdb.FatalException, duckdb.InternalException) as exc:
        reason = str(exc).partition("\n")[0]
        kind, remedy = next((kind, remedy) for words, kind, remedy in _REASONS if words in reason.lower())
        raise kind(f"{path} cannot be read: {reason}", remedy) from exc


def open_writing(path: Path) -> duckdb.DuckDBPyConnection:
    """A new or existing database to write. It spills beside the file, into a folder that a killed run's cleaning removes."""
    import duckdb

    connection = duckdb.connect(str(path))
    _limit(connection)
    return connection


def _limit(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        f"SET GLOBAL memory_limit = '{int(settings.get('memory_limit_mb'))}MiB';"
        f"SET GLOBAL threads = {int(settings.get('threads'))};"
        "SET GLOBAL autoinstall_known_extensions = false; SET GLOBAL autoload_known_extensions = false"
    )


@contextmanager
def _cursor(connection: Connection) -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor for one statement, which is fetched to its end.

    A connection shared by threads answers some of them with others' rows, and refuses work while a result is not fetched
    to its end; a cursor a call has neither fault.
    """
    path = connection.path if isinstance(connection, Database) else Path("the database")
    with closing(connection.cursor()) as cursor, _translated(path):
        yield cursor


def fetch(connection: Connection, sql: str, values: Any = None) -> list[tuple[Any, ...]]:
    """All rows of one statement, on a cursor of its own."""
    with _cursor(connection) as cursor:
        return cursor.execute(sql, values if values is not None else []).fetchall()


def fetch_columns(connection: Connection, sql: str, values: Any = None) -> dict[str, Any]:
    """Like `fetch`, as numpy arrays by column name."""
    with _cursor(connection) as cursor:
        return dict(cursor.execute(sql, values if values is not None else []).fetchnumpy())


def fetch_arrow(connection: Connection, sql: str, values: Any = None) -> Any:
    """Like `fetch`, as an Arrow table."""
    with _cursor(connection) as cursor:
        return cursor.sql(sql, params=values if values is not None else []).to_arrow_table()


def stream(connection: Connection, sql: str, rows: int = 20_000) -> Iterator[tuple[Any, ...]]:
    """Rows of one statement, a block at a time: memory stays flat. Exhaust it or close it."""
    with _cursor(connection) as cursor:
        cursor.execute(sql)
        while block := cursor.fetchmany(rows):
            yield from block
