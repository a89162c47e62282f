"""Builds the word index of a generation: the tables in `corpus.duckdb`, and the mapped arrays that answer.

Tables, all sorted by their first columns:

* `terms(term_number, term, df)`: the stems, in byte order; `df` is the number of records that hold the term;
* `words(word_number, word, term_number, alone)`: the folded words behind the terms, in byte order, for prefixes;
  `alone` where the term has no other word, so that its postings are the word's too;
* `postings(term_number, number, tf, positions)`: `positions` INTEGER[] are (position << 5) | (span - 1), see `tokens`;
* `word_postings(word_number, number, tf)`: for the words that are not alone;
* `lengths(number, length)`: the number of positions a record fills.

DuckDB finds the pieces of every text (the one expression, `tokens.piece_sql`); what follows needs only whole numbers and
is done in numpy, because the same grouping in SQL peaked near 2 GB at 200,000 records whatever its memory limit. Here memory
is bounded by a block of records, the vocabulary, and a block of terms: runs of occurrences sorted by term are written beside
the target, and merged a range of terms at a time. The same records give the same bytes, whether their words are found in their
texts or read off the arrays of the generation before (`lexical_carried`).

`build` is what a writer calls: it runs in a process of its own, so that all memory goes back when it ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench import settings
from workbench.errors import CorpusError
from workbench.records import Progress
from workbench.store.database import fetch, open_writing
from workbench.store.lexical import tokens
from workbench.store.lexical.arrays import write_arrays
from workbench.store.lexical.carried import Carried, made_alike, write_makers
from workbench.store.lexical.runs import Occurrences, Vocabulary, merged_blocks, write_run
from workbench.store.processes import end, start_python

if TYPE_CHECKING:
    import duckdb

BLOCK_CHARACTERS = 1 << 22
"""Characters of text that DuckDB splits at once."""

RUN_PIECES = 1 << 21
"""Pieces of text whose words are sorted at once: what memory is proportional to."""

TABLES = {
    "terms": "term_number INTEGER NOT NULL, term VARCHAR NOT NULL, df INTEGER NOT NULL",
    "words": "word_number INTEGER NOT NULL, word VARCHAR NOT NULL, term_number INTEGER NOT NULL, alone BOOLEAN NOT NULL",
    "postings": "term_number INTEGER NOT NULL, number INTEGER NOT NULL, tf INTEGER NOT NULL, positions INTEGER[] NOT NULL",
    "word_postings": "word_number INTEGER NOT NULL, number INTEGER NOT NULL, tf INTEGER NOT NULL",
    "lengths": "number INTEGER NOT NULL, length INTEGER NOT NULL",
}

Tell = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Before:
    """The generation before: the folder of its arrays, and a file with the new number of each of its records (int32, -1 for
    one that has gone), whose context and text are the same."""

    folder: Path
    numbers: Path


def build(database: Path | str, folder: Path | str, progress: Tell | None = None, before: Before | None = None) -> int:
    """Build tables and arrays in a process of its own.

    Args:
        database: A database file with the table `records`; nobody else may have it open.
        folder: Where the arrays go; made if it is missing.
        progress: Called with steps `words` (records read, sorted, written).
        before: Where the words of records may be taken from; they are if it was made as it would be now.

    Returns:
        The number of terms.

    Raises:
        CorpusError: The process ended with an error; the message ends with its last words.
    """
    with tempfile.TemporaryFile() as errors:
        process = start_python(
            "workbench.store.lexical.build",
            *(str(database), str(folder), *((str(before.folder), str(before.numbers)) if before is not None else ())),
            stdout=subprocess.PIPE,
            stderr=errors.fileno(),
        )
        terms = -1
        try:
            for line in process.stdout or ():
                message = json.loads(line)
                if "terms" in message:
                    terms = int(message["terms"])
                elif progress is not None:
                    progress(Progress(**message))
            code = process.wait()
        finally:
            end(process)
        if code or terms < 0:
            errors.seek(0)
            last = (errors.read().decode("utf-8", "replace").strip().splitlines() or [f"exit code {code}"])[-1]
            raise CorpusError(f"The word index could not be built: {last}", "Free memory or disk space and index again")
    return terms


def build_here(
    database: Path | str, folder: Path | str, progress: Tell | None = None, before: Before | None = None
) -> int:
    """Like `build`, in this process."""
    connection = open_writing(Path(database))
    try:
        terms = build_terms(connection, Path(folder), progress, before=before)
        build_arrays(connection, folder)
        connection.execute("CHECKPOINT")
    finally:
        connection.close()
    return terms


def build_arrays(connection: duckdb.DuckDBPyConnection, folder: Path | str) -> None:
    """Write the arrays that `MappedLexical` opens, from the tables. The folder is made if it is missing."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_arrays(connection, Path(folder))
    write_makers(Path(folder))


def build_terms(
    connection: duckdb.DuckDBPyConnection,
    scratch: Path | None = None,
    progress: Tell | None = None,
    *,
    run_pieces: int = RUN_PIECES,
    before: Before | None = None,
) -> int:
    """Make the tables from the table `records` (number 0..n-1, context, text).

    Args:
        connection: A database open for writing.
        scratch: Folder for temporary files, made if it is missing; None takes the system's.
        progress: Called after each block of records.
        run_pieces: Pieces of text in a run.
        before: See `build`.

    Returns:
        The number of terms.
    """
    tell = progress or (lambda _: None)
    if scratch is not None:
        scratch.mkdir(parents=True, exist_ok=True)
    for table, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {table} ({columns})")
    with tempfile.TemporaryDirectory(prefix=".words-", dir=scratch) as temporary:
        return _Builder(connection, Path(temporary), tell, run_pieces, before).build()


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """The pieces of a range of records: distinct ones, each occurrence's code, and how many each record has."""

    pieces: list[str]
    codes: NDArray[np.int32]
    in_context: NDArray[np.int64]
    in_text: NDArray[np.int64]


class _Builder:
    """One build; holds the state that its steps hand on."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, folder: Path, tell: Tell, run_pieces: int, before: Before | None
    ) -> None:
        self.connection, self.folder, self.tell, self.run_pieces = connection, folder, tell, run_pieces
        self.total = int(fetch(connection, "SELECT count(*) FROM records")[0][0])
        self.carried: Carried | None = None
        self.fresh: NDArray[np.int64] = np.arange(self.total)
        if before is not None and made_alike(before.folder):
            numbers: NDArray[np.int32] = np.load(before.numbers)
            self.carried = Carried(before.folder, numbers, run_pieces)
            self.fresh = np.setdiff1d(self.fresh, numbers, assume_unique=False)

    def build(self) -> int:
        pieces, in_context, in_text = self._read()
        vocabulary = Vocabulary.of(pieces, self.carried.words if self.carried is not None else ())
        self._insert("words", vocabulary.words_table())
        codes: NDArray[np.int32] = np.zeros(0, np.int32)
        if in_context.sum() + in_text.sum():
            codes = np.memmap(self.folder / "codes", np.int32, "r").view(np.ndarray)
        lengths = np.zeros(self.total, np.int64)
        runs: list[Occurrences] = []
        if self.carried is not None:
            self.carried.lengths(lengths)
            runs.append(self.carried.write_run(self.folder / "carried", vocabulary))
        per_record = in_context + in_text
        ends = np.cumsum(per_record)
        for first, last in _blocks(per_record, self.run_pieces):
            block = slice(int(ends[first] - per_record[first]), int(ends[last - 1]))
            name = self.folder / f"run-{len(runs)}"
            rows = slice(first, last)
            own = codes[block], in_context[rows], in_text[rows], self.fresh[rows]
            runs.append(write_run(name, vocabulary, *own, lengths))
            self.tell(Progress("words", last, len(self.fresh), detail="sorted"))
        df = np.zeros(len(vocabulary.terms), np.int64)
        for postings in merged_blocks(runs, vocabulary, self.run_pieces, mixed=self.carried is not None):
            self._insert("postings", postings.table())
            if postings.words is not None:
                self._insert("word_postings", postings.words)
            df += np.bincount(postings.terms, minlength=len(df))
            self.tell(
                Progress("words", int(postings.terms[-1]) + 1, len(vocabulary.terms), detail="written, of the terms")
            )
        self._insert("terms", vocabulary.terms_table(df))
        self._insert("lengths", _table(number=np.arange(self.total, dtype=np.int32), length=lengths.astype(np.int32)))
        return len(vocabulary.terms)

    def _insert(self, table: str, rows: Any) -> None:
        self.connection.register("block", rows)
        try:
            self.connection.execute(f"INSERT INTO {table} SELECT * FROM block")
        finally:
            self.connection.unregister("block")

    def _read(self) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
        """Split every fresh record; codes go to the scratch file. Returns the distinct pieces and the counts of each record."""
        numbers: dict[str, int] = {}
        in_context, in_text = np.zeros(len(self.fresh), np.int64), np.zeros(len(self.fresh), np.int64)
        with (self.folder / "codes").open("wb") as out:
            for first, last, split in self._splits():
                own = np.array([numbers.setdefault(piece, len(numbers)) for piece in split.pieces], np.int32)
                (own[split.codes] if len(own) else own).tofile(out)
                in_context[first:last], in_text[first:last] = split.in_context, split.in_text
                self.tell(Progress("words", last, len(self.fresh), detail="read"))
        return list(numbers), in_context, in_text

    def _splits(self) -> Iterator[tuple[int, int, _Split]]:
        """Ranges of the fresh records and their pieces, in order; split ahead by as many threads as the settings allow."""
        rows = fetch(self.connection, "SELECT number, length(context) + length(text) FROM records ORDER BY number")
        if any(number != expected for expected, (number, _) in enumerate(rows)):
            raise CorpusError("The records are not numbered from 0", "Index again")
        ranges = _blocks(np.array([size for _, size in rows], np.int64)[self.fresh], BLOCK_CHARACTERS)
        workers = int(settings.get("threads"))
        with ThreadPoolExecutor(workers) as pool:
            waiting: deque[tuple[int, int, Future[_Split]]] = deque()
            for first, last in ranges:
                waiting.append((first, last, pool.submit(self._split, first, last)))
                if len(waiting) > workers:
                    begin, end, future = waiting.popleft()
                    yield begin, end, future.result()
            for begin, end, future in waiting:
                yield begin, end, future.result()

    def _split(self, first: int, last: int) -> _Split:
        import pyarrow as pa

        numbers = self.fresh[first:last]
        where = f"number BETWEEN {int(numbers[0])} AND {int(numbers[-1])}"
        if int(numbers[-1]) - int(numbers[0]) >= len(numbers):
            where += f" AND number IN (SELECT unnest({numbers.tolist()}))"
        cursor = self.connection.cursor()
        try:
            # A relation hands its rows to Arrow as they are; the DB-API's execute would copy them once more.
            table: Any = cursor.sql(
                f"SELECT {tokens.piece_sql('context')} AS context, {tokens.piece_sql('text')} AS text"
                f" FROM records WHERE {where} ORDER BY number"
            ).to_arrow_table()
        finally:
            cursor.close()
        context, text = (table[name].combine_chunks() for name in ("context", "text"))
        counts = [np.diff(_numpy(column.offsets)).astype(np.int64) for column in (context, text)]
        both = pa.concat_arrays([context.flatten(), text.flatten()]).dictionary_encode()
        codes = _numpy(both.indices)
        # Context and text of each record stand side by side: sorted stably by record, context first.
        rows = np.concatenate([np.repeat(np.arange(last - first), c) for c in counts])
        codes = codes[np.argsort(rows, kind="stable")]
        return _Split(both.dictionary.to_pylist(), codes.astype(np.int32, copy=False), counts[0], counts[1])


def _blocks(sizes: NDArray[np.int64], most: int) -> list[tuple[int, int]]:
    """Cuts 0..n into ranges whose sizes add up to about `most`, each at least one item."""
    if not len(sizes):
        return []
    group = (np.cumsum(sizes) - sizes) // max(1, most)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(group)) + 1))
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(sizes)], strict=True))


def _numpy(array: Any) -> NDArray[Any]:
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values


def _table(**columns: Any) -> Any:
    import pyarrow as pa

    return pa.table(columns)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone: then its end of the pipe to our standard input closes."""
    while os.read(0, 1024):  # not sys.stdin: its lock, held by this thread, would stop the process from ending well
        pass
    os._exit(1)


def _main(arguments: list[str]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def tell(progress: Progress) -> None:
        message = {"step": progress.step, "done": progress.done, "total": progress.total, "detail": progress.detail}
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    before = Before(Path(arguments[2]), Path(arguments[3])) if len(arguments) > 2 else None
    terms = build_here(arguments[0], arguments[1], tell, before)
    sys.stdout.write(json.dumps({"terms": terms}) + "\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
