"""Opening DuckDB the one way: limits set, nothing fetched from the network, one cursor a call.

DuckDB's own defaults are 80 % of the machine's memory in every process and a spill folder beside the file, neither of
which suits a laptop with an app, a notebook and an indexing run on one corpus. Connections to one file within a process
share one instance, which refuses to open again with other options; so options are set after opening.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import settings
from workbench.store.generations import damaged

if TYPE_CHECKING:
    import duckdb


def spill_folder(path: Path) -> str:
    """Folder for what does not fit in memory: one for each process and file, because DuckDB's names in it are not unique.

    It is made when it is needed and removed when its last user closes.
    """
    name = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:8]
    return str(Path(tempfile.gettempdir()) / f"workbench-duckdb-{os.getpid()}-{name}")


def open_reading(path: Path) -> duckdb.DuckDBPyConnection:
    """A read-only connection to a generation's database. Raises CorpusDamaged."""
    import duckdb

    try:
        connection = duckdb.connect(str(path), read_only=True)
    except duckdb.Error as exc:
        raise damaged(path, "cannot be opened") from exc
    limit(connection)
    # Refused by DuckDB once the instance has spilled, so only where it differs (another connection may have set it).
    if fetch(connection, "SELECT current_setting('temp_directory')")[0][0] != spill_folder(path):
        connection.execute("SET GLOBAL temp_directory = ?", [spill_folder(path)])
    return connection


def open_writing(path: Path) -> duckdb.DuckDBPyConnection:
    """A new or existing database to write. It spills beside the file, into a folder that a killed run's cleaning removes."""
    import duckdb

    connection = duckdb.connect(str(path))
    limit(connection)
    return connection


def limit(connection: duckdb.DuckDBPyConnection) -> None:
    """Set memory and threads from the settings; load and install no extension."""
    connection.execute(
        f"SET GLOBAL memory_limit = '{int(settings.get('memory_limit_mb'))}MiB';"
        f"SET GLOBAL threads = {int(settings.get('threads'))};"
        "SET GLOBAL autoinstall_known_extensions = false; SET GLOBAL autoload_known_extensions = false"
    )


def fetch(connection: duckdb.DuckDBPyConnection, sql: str, values: Any = None) -> list[tuple[Any, ...]]:
    """Run one statement on a cursor of its own and fetch to the end.

    A connection shared by threads answers some of them with others' rows, and refuses work while a result is not fetched
    to its end; a cursor a call has neither fault.
    """
    cursor = connection.cursor()
    try:
        return cursor.execute(sql, values).fetchall() if values is not None else cursor.execute(sql).fetchall()
    finally:
        cursor.close()


def stream(connection: duckdb.DuckDBPyConnection, sql: str, rows: int = 20_000) -> Iterator[tuple[Any, ...]]:
    """Rows of one statement on a cursor of its own, a block at a time: memory stays flat. Exhaust it or close it."""
    cursor = connection.cursor()
    try:
        cursor.execute(sql)
        while block := cursor.fetchmany(rows):
            yield from block
    finally:
        cursor.close()


def fetch_columns(connection: duckdb.DuckDBPyConnection, sql: str, values: Any = None) -> dict[str, Any]:
    """Like `fetch`, as numpy arrays by column name."""
    cursor = connection.cursor()
    try:
        return dict(cursor.execute(sql, values if values is not None else []).fetchnumpy())
    finally:
        cursor.close()
