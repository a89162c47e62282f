"""Builds the word index of a generation: two tables of `corpus.duckdb` that a keyword search reads.

* `postings(term, word, records, tfs, positions)`: one row a folded word, sorted by the word's stem (`term`), then by the word:
  the numbers of the records that hold it, ascending; how often each does; and the places of all its occurrences, record by
  record, as (position << 5) | (span - 1), see `tokens`;
* `lengths(number, length)`: the number of positions that a record fills;

and `words_made_with(name, value)`, what decides which words a text has.

DuckDB finds the pieces of every text (`tokens.piece_sql`). What follows needs only whole numbers and is done in numpy, because
the same grouping in SQL peaked near 2 GB at 200,000 records whatever its memory limit. Here memory is bounded by a block of
records, the vocabulary and a range of words: occurrences are written to disk as they come, record by record, and taken from there
a range of words at a time.
"""

from __future__ import annotations

import itertools
import tempfile
import unicodedata
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench import settings
from workbench.errors import CorpusError
from workbench.records import Progress, ProgressCallback
from workbench.store.database import Database, fetch, fetch_columns
from workbench.store.lexical import tokens

if TYPE_CHECKING:
    import duckdb

BLOCK_CHARACTERS = 1 << 22
"""Characters of text that DuckDB splits at once."""

RANGE = 1 << 21
"""Occurrences of words that are sorted at once: what memory is proportional to."""

_KEPT_PIECES = 1 << 18

_POSITIONS = 1 << 26  # a place is an int32 with five bits for the span

Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]


def made_alike(database: duckdb.DuckDBPyConnection | Database) -> bool:
    return dict(fetch(database, "SELECT name, value FROM words_made_with")) == makers()


def makers() -> dict[str, str]:
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
    most: int = RANGE,
) -> int:
    """Make the tables from the table `records` (number 0..n-1, context, text) of a database open for writing, and return the
    number of distinct words. Temporary files go to the folder `scratch`, or the system's; about `most` occurrences are sorted
    at once. Raises CorpusError where the records are not numbered from 0, or one has too many words.
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
    connection.executemany("INSERT INTO words_made_with VALUES (?, ?)", list(makers().items()))
    sizes = fetch_columns(
        connection, "SELECT number, length(context) + length(text) AS size FROM records ORDER BY number"
    )
    total = len(sizes["number"])
    if not np.array_equal(sizes["number"], np.arange(total)):
        raise CorpusError("The records are not numbered from 0", "Index again")
    vocabulary = _Vocabulary()
    with tempfile.TemporaryDirectory(prefix=".words-", dir=scratch) as temporary:
        files = [Path(temporary) / name for name in ("words", "records", "places")]
        with ExitStack() as stack:
            out = [stack.enter_context(file.open("wb")) for file in files]
            for first, split in _ahead(connection, _blocks(np.asarray(sizes["size"], np.int64), BLOCK_CHARACTERS)):
                *columns, lengths = vocabulary.occurrences(split, first)
                for file, column in zip(out, columns, strict=True):
                    column.astype(np.int32).tofile(file)
                numbers = np.arange(first, first + len(lengths), dtype=np.int32)
                _insert(connection, "lengths", number=numbers, length=lengths.astype(np.int32))
                report(Progress("words", first + len(lengths), total, detail="read"))
        rows = sorted(zip(tokens.stems(list(vocabulary.numbers)), vocabulary.numbers.items(), strict=True))
        terms, words = [term for term, _ in rows], [word for _, (word, _) in rows]
        place = np.zeros(len(rows), np.int32)
        place[[number for _, (_, number) in rows]] = np.arange(len(rows), dtype=np.int32)
        stored = [np.memmap(file, np.int32, "r+") if file.stat().st_size else np.zeros(0, np.int32) for file in files]
        counts = np.zeros(len(rows), np.int64)
        for start in range(0, len(stored[0]), most):
            some = slice(start, start + most)
            stored[0][some] = place[stored[0][some]]
            counts += np.bincount(stored[0][some], minlength=len(rows))
        for low, high in _blocks(counts, most):
            held = np.flatnonzero((stored[0] >= low) & (stored[0] < high))
            lists = _postings(*(column[held] for column in stored), first=low, last=high)
            _insert(connection, "postings", term=terms[low:high], word=words[low:high], **lists)
            report(Progress("words", high, len(words), detail="written, of the words"))
    connection.execute("CREATE INDEX postings_by_term ON postings(term)")  # a scan of the terms costs 15 ms at 500,000
    return len(words)


def _insert(connection: duckdb.DuckDBPyConnection, table: str, **columns: Any) -> None:
    import pyarrow as pa

    connection.register("block", pa.table(columns))
    try:
        connection.execute(f"INSERT INTO {table} SELECT * FROM block")
    finally:
        connection.unregister("block")


class _Split(NamedTuple):
    """The pieces of a range of records, each record's context before its text: distinct ones, the code of each in order, and how
    many each record has in both and in its context.
    """

    pieces: list[str]
    codes: Ints
    counts: Ints
    in_context: Ints


def _ahead(connection: duckdb.DuckDBPyConnection, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, _Split]]:
    """The first record of each range and the pieces, in order; split ahead by as many threads as the settings allow."""
    workers = int(settings.get("threads"))
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[tuple[int, Future[_Split]]] = deque()
        for first, last in ranges:
            waiting.append((first, pool.submit(_split, connection, first, last)))
            if len(waiting) > workers:
                start, future = waiting.popleft()
                yield start, future.result()
        for start, future in waiting:
            yield start, future.result()


def _split(connection: duckdb.DuckDBPyConnection, first: int, last: int) -> _Split:
    with closing(connection.cursor()) as cursor:
        # A relation hands its rows to Arrow as they are; the DB-API's execute would copy them once more.
        table: Any = cursor.sql(
            f"SELECT len(c)::BIGINT AS in_context, c || t AS pieces FROM (SELECT number, {tokens.piece_sql('context')} AS c,"
            f" {tokens.piece_sql('text')} AS t FROM records WHERE number BETWEEN {first} AND {last - 1}) ORDER BY number"
        ).to_arrow_table()
    lists = table["pieces"].combine_chunks()
    pieces = lists.flatten().dictionary_encode()
    counts, in_context = np.diff(lists.offsets.to_numpy()).astype(np.int64), table["in_context"].to_numpy()
    return _Split(pieces.dictionary.to_pylist(), pieces.indices.to_numpy().astype(np.int64), counts, in_context)


def _blocks(sizes: Ints, most: int) -> list[tuple[int, int]]:
    """Cuts 0..n into ranges whose sizes add up to about `most`, each at least one item."""
    if not len(sizes):
        return []
    group = (np.cumsum(sizes) - sizes) // max(1, most)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(group)) + 1))
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(sizes)], strict=True))


class _Vocabulary:
    """The words of all pieces so far: `numbers` by word, in the order in which they were met."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._words_of = lru_cache(_KEPT_PIECES)(self._analysed)

    def _analysed(self, piece: str) -> tuple[int, list[int]]:
        """How many positions a piece fills, and of each of its words: position in it, positions covered, number of the word."""
        parts, wholes, _ = tokens.analyse(piece)
        found = [(at, 1, part.word) for at, part in enumerate(parts)]
        if wholes:
            found = sorted([*found, *((whole.first, whole.span, whole.word) for whole in wholes)])
        made: list[int] = []
        for at, span, word in found:
            made += (at, span, self.numbers.setdefault(word, len(self.numbers)))
        return len(parts), made

    def occurrences(self, split: _Split, first: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Word, record and place of every occurrence in a range of records that begins at `first`, by record and place; and the
        number of positions of each record.
        """
        _, codes, counts, in_context = split
        known = [self._words_of(piece) for piece in split.pieces]
        advance = np.array([positions for positions, _ in known], np.int64)
        words_in = np.array([len(words) // 3 for _, words in known], np.int64)
        flat = np.fromiter(itertools.chain.from_iterable(words for _, words in known), np.int64)
        offset, span, word = flat.reshape(-1, 3).T
        record = np.repeat(np.arange(len(counts)), counts)
        before = np.concatenate(([0], np.cumsum(advance[codes])))
        starts = np.cumsum(counts) - counts
        lengths = before[starts + counts] - before[starts]
        if len(lengths) and int(lengths.max()) + tokens.CONTEXT_GAP >= _POSITIONS:
            raise CorpusError(
                f"A document has more than {_POSITIONS:,} words", "Split it, or leave it out of the index"
            )
        in_text = np.arange(len(codes)) - starts[record] >= in_context[record]
        position = before[:-1] - before[starts][record] + tokens.CONTEXT_GAP * (in_text & (in_context[record] > 0))
        piece, entry = expanded((np.cumsum(words_in) - words_in)[codes], words_in[codes])
        places = (position[piece] + offset[entry]) << tokens.SPAN_BITS | (span[entry] - 1)
        return word[entry], record[piece] + first, places, lengths


def expanded(starts: NDArray[Any], counts: NDArray[Any]) -> tuple[Ints, Ints]:
    """The numbers start, start + 1, ... of every range, one range after the other, and the range that each is of."""
    counts = counts.astype(np.int64)
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, (starts.astype(np.int64) - np.cumsum(counts) + counts)[owner] + np.arange(len(owner))


def _postings(word: Int32s, record: Int32s, place: Int32s, *, first: int, last: int) -> dict[str, Any]:
    """Columns of `postings` for the words from `first` to before `last`, all of which occur, from their occurrences by record."""
    import pyarrow as pa

    packed = word.astype(np.int64) << 32 | np.arange(len(word))  # a stable sort, faster than numpy's own
    packed.sort()
    order = packed & 0xFFFFFFFF
    word, record, place = word[order], record[order], place[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(word) != 0) | (np.diff(record) != 0)])
    of_word = np.searchsorted(word[starts], np.arange(first, last + 1)).astype(np.int32)
    places = np.append(starts, len(word))[of_word].astype(np.int32)
    lists = {
        "records": (of_word, record[starts]),
        "tfs": (of_word, np.diff(np.append(starts, len(word))).astype(np.int32)),
        "positions": (places, place),
    }
    return {name: pa.ListArray.from_arrays(pa.array(o), pa.array(v)) for name, (o, v) in lists.items()}
