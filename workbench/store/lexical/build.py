"""Builds the word index of a generation: two tables of `corpus.duckdb` that a keyword search reads.

* `postings(term, word, records, tfs, positions)`: one row a folded word, sorted by the word's stem (`term`), then by the word:
  the numbers of the records that hold it, ascending; how often each does; and the places of all its occurrences, record by
  record, as (position << 5) | (span - 1), see `tokens`;
* `lengths(number, length)`: the number of positions that a record fills;

and `words_made_with(name, value)`, what decides which words a text has.

DuckDB finds the pieces of every text (`tokens.piece_sql`). What follows needs only whole numbers and is done in numpy, because
the same grouping in SQL peaked near 2 GB at 200,000 records whatever its memory limit. Here memory is bounded by a block of
records, the vocabulary and a block of words: occurrences are written as runs sorted by word, and merged a range of words at a
time.
"""

from __future__ import annotations

import tempfile
import unicodedata
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench import settings
from workbench.errors import CorpusError
from workbench.records import Progress, ProgressCallback
from workbench.store.database import Database, fetch
from workbench.store.lexical import tokens

if TYPE_CHECKING:
    import duckdb

BLOCK_CHARACTERS = 1 << 22
"""Characters of text that DuckDB splits at once."""

RUN_PIECES = 1 << 21
"""Pieces of text whose words are sorted at once: what memory is proportional to."""

_POSITIONS = 1 << 26  # a place is an int32 with five bits for the span

Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]


def made_alike(database: duckdb.DuckDBPyConnection | Database) -> bool:
    """Whether a database's words were made as they would be now."""
    return dict(fetch(database, "SELECT name, value FROM words_made_with")) == _makers()


def _makers() -> dict[str, str]:
    """What decides which words a text has: the rules here, and the versions of what they rest on."""
    import duckdb
    import Stemmer

    return {
        "words": str(tokens.WORDS_VERSION),
        "unicode": unicodedata.unidata_version,
        "stemmer": str(Stemmer.version()),
        "duckdb": str(duckdb.__version__),
    }


def build_words(
    connection: duckdb.DuckDBPyConnection,
    scratch: Path | None = None,
    progress: ProgressCallback | None = None,
    *,
    run_pieces: int = RUN_PIECES,
) -> int:
    """Make the tables from the table `records` (number 0..n-1, context, text).

    Args:
        connection: A database open for writing.
        scratch: Folder for temporary files, made if it is missing; None takes the system's.
        progress: Called with the step `words`.
        run_pieces: Pieces of text in a run.

    Returns:
        The number of distinct words.

    Raises:
        CorpusError: The records are not numbered from 0, or a record has too many words.
    """
    report = progress or (lambda _: None)
    if scratch is not None:
        scratch.mkdir(parents=True, exist_ok=True)
    connection.execute(
        "CREATE TABLE postings (term VARCHAR NOT NULL, word VARCHAR NOT NULL, records INTEGER[] NOT NULL,"
        " tfs INTEGER[] NOT NULL, positions INTEGER[] NOT NULL);"
        "CREATE TABLE lengths (number INTEGER NOT NULL, length INTEGER NOT NULL);"
        "CREATE TABLE words_made_with (name VARCHAR NOT NULL, value VARCHAR NOT NULL)"
    )
    connection.executemany("INSERT INTO words_made_with VALUES (?, ?)", list(_makers().items()))
    with tempfile.TemporaryDirectory(prefix=".words-", dir=scratch) as temporary:
        folder = Path(temporary)
        pieces, in_context, in_text = _read(connection, folder / "codes", report)
        vocabulary = _Vocabulary.of(pieces)
        per_record = in_context + in_text
        codes = (
            np.memmap(folder / "codes", np.int32, "r").view(np.ndarray) if per_record.sum() else np.zeros(0, np.int32)
        )
        ends = np.cumsum(per_record)
        runs: list[_Occurrences] = []
        lengths = np.zeros(len(per_record), np.int64)
        for first, last in _blocks(per_record, run_pieces):
            block = codes[int(ends[first] - per_record[first]) : int(ends[last - 1])]
            run = _Occurrences.of(vocabulary, block, in_context[first:last], in_text[first:last], first, lengths)
            runs.append(run.mapped(folder / f"run-{len(runs)}"))
            report(Progress("words", last, len(per_record), detail="sorted"))
        _insert(connection, "lengths", number=np.arange(len(lengths), dtype=np.int32), length=lengths.astype(np.int32))
        for first, last, rows in _merged(runs, len(vocabulary.words), run_pieces):
            _insert(
                connection, "postings", term=vocabulary.terms[first:last], word=vocabulary.words[first:last], **rows
            )
            report(Progress("words", last, len(vocabulary.words), detail="written, of the words"))
    connection.execute("CREATE INDEX postings_by_term ON postings(term)")  # a scan of the terms costs 15 ms at 500,000
    return len(vocabulary.words)


def _insert(connection: duckdb.DuckDBPyConnection, table: str, **columns: Any) -> None:
    import pyarrow as pa

    connection.register("block", pa.table(columns))
    try:
        connection.execute(f"INSERT INTO {table} SELECT * FROM block")
    finally:
        connection.unregister("block")


# --- pieces ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """The pieces of a range of records: distinct ones, each occurrence's code, and how many each record has."""

    pieces: list[str]
    codes: Int32s
    in_context: Ints
    in_text: Ints


def _read(
    connection: duckdb.DuckDBPyConnection, target: Path, report: ProgressCallback
) -> tuple[list[str], Ints, Ints]:
    """Split every record; codes go to the target. Returns the distinct pieces and the counts of each record."""
    rows = fetch(connection, "SELECT number, length(context) + length(text) FROM records ORDER BY number")
    if any(number != expected for expected, (number, _) in enumerate(rows)):
        raise CorpusError("The records are not numbered from 0", "Index again")
    numbers: dict[str, int] = {}
    in_context, in_text = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    ranges = _blocks(np.array([size for _, size in rows], np.int64), BLOCK_CHARACTERS)
    with target.open("wb") as out:
        for (first, last), split in _ahead(connection, ranges):
            own = np.array([numbers.setdefault(piece, len(numbers)) for piece in split.pieces], np.int32)
            (own[split.codes] if len(own) else own).tofile(out)
            in_context[first:last], in_text[first:last] = split.in_context, split.in_text
            report(Progress("words", last, len(rows), detail="read"))
    return list(numbers), in_context, in_text


def _ahead(
    connection: duckdb.DuckDBPyConnection, ranges: Sequence[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], _Split]]:
    """Ranges of records with their pieces, in order; split ahead by as many threads as the settings allow."""
    workers = int(settings.get("threads"))
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[tuple[tuple[int, int], Future[_Split]]] = deque()
        for both in ranges:
            waiting.append((both, pool.submit(_split, connection, *both)))
            if len(waiting) > workers:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()


def _split(connection: duckdb.DuckDBPyConnection, first: int, last: int) -> _Split:
    import pyarrow as pa

    cursor = connection.cursor()
    try:
        # A relation hands its rows to Arrow as they are; the DB-API's execute would copy them once more.
        table: Any = cursor.sql(
            f"SELECT {tokens.piece_sql('context')} AS context, {tokens.piece_sql('text')} AS text"
            f" FROM records WHERE number BETWEEN {first} AND {last - 1} ORDER BY number"
        ).to_arrow_table()
    finally:
        cursor.close()
    context, text = (table[name].combine_chunks() for name in ("context", "text"))
    counts = [np.diff(_numpy(column.offsets)).astype(np.int64) for column in (context, text)]
    both = pa.concat_arrays([context.flatten(), text.flatten()]).dictionary_encode()
    # A record's context and text follow each other: sorted stably by record, context first.
    rows = np.concatenate([np.repeat(np.arange(last - first), c) for c in counts])
    codes = _numpy(both.indices)[np.argsort(rows, kind="stable")]
    return _Split(both.dictionary.to_pylist(), codes.astype(np.int32, copy=False), *counts)


def _blocks(sizes: Ints, most: int) -> list[tuple[int, int]]:
    """Cuts 0..n into ranges whose sizes add up to about `most`, each at least one item."""
    if not len(sizes):
        return []
    group = (np.cumsum(sizes) - sizes) // max(1, most)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(group)) + 1))
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(sizes)], strict=True))


def _numpy(array: Any) -> NDArray[Any]:
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values


# --- words ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Vocabulary:
    """The distinct words of all pieces, sorted by term and word, and what each piece consists of.

    Attributes:
        words, terms: In step; text compares by code points.
        advance: int32 a piece, how many positions it fills.
        starts: int64 a piece and one more, where its occurrences start in the next three.
        word, offset, span: int32 an occurrence in a piece: word number, position within the piece, positions covered.
    """

    words: list[str]
    terms: list[str]
    advance: Int32s
    starts: Ints
    word: Int32s
    offset: Int32s
    span: Int32s

    @classmethod
    def of(cls, pieces: Sequence[str]) -> _Vocabulary:
        numbers: dict[str, int] = {}
        advance, counts, word, offset, span = [], [], [], [], []
        for piece in pieces:
            parts, wholes, _ = tokens.analyse(piece)
            advance.append(len(parts))
            found = [(i, 1, part.word) for i, part in enumerate(parts)]
            if wholes:
                found = sorted([*found, *((whole.first, whole.span, whole.word) for whole in wholes)])
            counts.append(len(found))
            for first, covered, text in found:
                word.append(numbers.setdefault(text, len(numbers)))
                offset.append(first)
                span.append(covered)
        rows = sorted(zip(tokens.stems(list(numbers)), numbers, strict=True))
        place = np.zeros(len(rows), np.int32)
        place[[numbers[text] for _, text in rows]] = np.arange(len(rows), dtype=np.int32)
        return cls(
            [text for _, text in rows],
            [term for term, _ in rows],
            np.array(advance, np.int32),
            np.concatenate(([0], np.cumsum(np.array(counts, np.int64)))).astype(np.int64),
            place[np.array(word, np.int64)],
            np.array(offset, np.int32),
            np.array(span, np.int32),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Occurrences:
    """Occurrences sorted by (word, record, place); int32 arrays of one length."""

    words: Int32s
    records: Int32s
    places: Int32s

    @classmethod
    def of(
        cls, vocabulary: _Vocabulary, codes: Int32s, in_context: Ints, in_text: Ints, first: int, lengths: Ints
    ) -> _Occurrences:
        """Expand the pieces of a block of records.

        Args:
            vocabulary: What pieces consist of.
            codes: Pieces in order: each record's context, then its text.
            in_context, in_text: How many pieces each record has there.
            first: Number of the first record.
            lengths: Of all records: filled with the number of positions of each of these.
        """
        per_record = in_context + in_text
        record = np.repeat(np.arange(len(per_record)), per_record)
        before = np.concatenate(([0], np.cumsum(vocabulary.advance[codes].astype(np.int64))))
        starts = np.cumsum(per_record) - per_record
        positions = before[starts + per_record] - before[starts]
        lengths[first : first + len(per_record)] = positions
        if len(positions) and int(positions.max()) + tokens.CONTEXT_GAP >= _POSITIONS:
            raise CorpusError(
                f"A document has more than {_POSITIONS:,} words", "Split it, or leave it out of the index"
            )
        behind = np.arange(len(codes)) - starts[record] >= in_context[record]
        gap = tokens.CONTEXT_GAP * (behind & (in_context[record] > 0))
        position = before[:-1] - before[starts][record] + gap
        piece, entry = expanded(vocabulary.starts[codes], np.diff(vocabulary.starts)[codes])
        words = vocabulary.word[entry]
        places = (position[piece] + vocabulary.offset[entry]) << tokens.SPAN_BITS | (vocabulary.span[entry] - 1)
        order = _stable_order(words)
        return cls(words[order], (record[piece][order] + first).astype(np.int32), places[order].astype(np.int32))

    def mapped(self, path: Path) -> _Occurrences:
        """The same, written to a file and mapped."""
        if not len(self.words):
            return self
        np.stack((self.words, self.records, self.places)).tofile(path)
        return _Occurrences(*np.memmap(path, np.int32, "r", shape=(3, len(self.words))).view(np.ndarray))


def expanded(starts: NDArray[Any], counts: NDArray[Any]) -> tuple[Ints, Ints]:
    """The numbers start, start + 1, ... of every range, one range after the other, and the range that each is of."""
    counts = counts.astype(np.int64)
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, (starts.astype(np.int64) - np.cumsum(counts) + counts)[owner] + np.arange(len(owner))


def _stable_order(keys: Int32s) -> Ints:
    packed = keys.astype(np.int64) << 32 | np.arange(len(keys))
    packed.sort()
    return packed & 0xFFFFFFFF


def _merged(runs: Sequence[_Occurrences], words: int, most: int) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Columns of `postings` for ranges of words (first, one after the last), with about `most` occurrences each.

    The runs hold ascending ranges of records, and every word occurs.
    """
    import pyarrow as pa

    counts = np.zeros(words, np.int64)
    for run in runs:
        counts += np.bincount(run.words, minlength=words)
    for low, high in _blocks(counts, most):
        cuts = [slice(*np.searchsorted(run.words, (low, high)).tolist()) for run in runs]
        word, record, place = (
            np.concatenate([getattr(run, name)[cut] for run, cut in zip(runs, cuts, strict=True)])
            for name in ("words", "records", "places")
        )
        order = _stable_order(word)
        word, record, place = word[order], record[order], place[order]
        starts = np.flatnonzero(np.r_[True, (np.diff(word) != 0) | (np.diff(record) != 0)])
        of_word = np.searchsorted(word[starts], np.arange(low, high + 1)).astype(np.int32)
        places = np.append(starts, len(word))[of_word].astype(np.int32)
        lists = {
            "records": (of_word, record[starts]),
            "tfs": (of_word, np.diff(np.append(starts, len(word))).astype(np.int32)),
            "positions": (places, place),
        }
        yield low, high, {name: pa.ListArray.from_arrays(pa.array(o), pa.array(v)) for name, (o, v) in lists.items()}
