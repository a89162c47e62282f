"""The word index as memory-mapped arrays: written from the tables, opened without reading them.

Files in the folder, all `.npy`; T terms, W words, n records:

* `terms.utf8` uint8 and `terms.offsets` int64 (T + 1): the terms in byte order, one after the other; `words.*` the same;
* `term_starts` int64 (T + 1): where each term's postings start; `records` int32 and `tfs` (the smallest unsigned type that
  holds them), one a posting, records ascending within a term;
* `place_starts` int64 (T + 1) and `places` int32: each posting has tf places, in the same order;
* `word_terms` int32 (W); `word_starts` int64 (W + 1), `word_records`, `word_tfs`: postings of the words that are not alone
  (an alone word has none here: its term's postings are its own);
* `lengths` int32 (n).

A term is looked up by binary search over the bytes: no dictionary is built at opening.
"""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.store.database import fetch, fetch_columns
from workbench.store.generations import damaged
from workbench.store.grep.text import load_array

if TYPE_CHECKING:
    import duckdb

_BATCH = 1 << 20


def write_arrays(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Write every array from the tables, a batch of rows at a time."""
    for table, column in (("terms", "term"), ("words", "word")):
        _write_texts(connection, folder, table, column)
    words = fetch_columns(connection, "SELECT term_number FROM words ORDER BY word_number")
    np.save(folder / "word_terms.npy", words["term_number"].astype(np.int32))
    lengths = fetch_columns(connection, "SELECT length FROM lengths ORDER BY number")
    np.save(folder / "lengths.npy", lengths["length"].astype(np.int32))
    terms = fetch(connection, "SELECT count(*) FROM terms")[0][0]
    _write_postings(connection, folder, "postings", "term_number", int(terms))
    _write_postings(connection, folder, "word_postings", "word_number", len(words["term_number"]))


def _write_texts(connection: duckdb.DuckDBPyConnection, folder: Path, table: str, column: str) -> None:
    rows = fetch(connection, f"SELECT {column} FROM {table} ORDER BY {table[:-1]}_number")
    encoded = [text.encode("utf-8") for (text,) in rows]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    np.save(folder / f"{table}.offsets.npy", np.concatenate(([0], np.cumsum(lengths))).astype(np.int64))
    np.save(folder / f"{table}.utf8.npy", np.frombuffer(b"".join(encoded), np.uint8))


def _write_postings(connection: duckdb.DuckDBPyConnection, folder: Path, table: str, key: str, keys: int) -> None:
    whole = table == "postings"
    total, most, places_total = fetch(
        connection, f"SELECT count(*), coalesce(max(tf), 0), coalesce(sum(tf), 0)::BIGINT FROM {table}"
    )[0]
    prefix = "" if whole else "word_"
    records = _new(folder / f"{prefix}records.npy", np.int32, total)
    tfs = _new(folder / f"{prefix}tfs.npy", np.min_scalar_type(int(most)), total)
    places = _new(folder / "places.npy", np.int32, places_total) if whole else None
    counts, place_counts = np.zeros(keys, np.int64), np.zeros(keys, np.int64)
    at = place_at = 0
    cursor = connection.cursor()
    try:
        columns = f"{key}, number, tf" + (", positions" if whole else "")
        reader: Any = cursor.sql(f"SELECT {columns} FROM {table}").to_arrow_reader(_BATCH)
        for batch in reader:
            owner, number, tf = (batch[c].to_numpy(zero_copy_only=False) for c in (key, "number", "tf"))
            records[at : at + len(number)] = number
            tfs[at : at + len(number)] = tf
            at += len(number)
            counts += np.bincount(owner, minlength=keys)
            place_counts += np.bincount(owner, tf, minlength=keys).astype(np.int64)
            if places is not None:
                found = batch["positions"].flatten().to_numpy(zero_copy_only=False)
                places[place_at : place_at + len(found)] = found
                place_at += len(found)
    finally:
        cursor.close()
    for name, values in (("records", records), ("tfs", tfs), ("places", places)):
        if values is not None:
            _finish(folder / f"{prefix}{name}.npy", values)
    np.save(
        folder / ("term_starts.npy" if whole else "word_starts.npy"),
        np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
    )
    if whole:
        np.save(folder / "place_starts.npy", np.concatenate(([0], np.cumsum(place_counts))).astype(np.int64))


def _new(path: Path, dtype: Any, size: int) -> NDArray[Any]:
    """An array to fill: mapped to its file, in memory where it is empty (nothing to map)."""
    if not size:
        return np.zeros(0, dtype)
    mapped: NDArray[Any] = np.lib.format.open_memmap(path, "w+", dtype=dtype, shape=(size,))
    return mapped


def _finish(path: Path, values: NDArray[Any]) -> None:
    if isinstance(values, np.memmap):
        values.flush()
    else:
        np.save(path, values)


class Texts:
    """Sorted texts as bytes with offsets: look-up by binary search."""

    def __init__(self, folder: Path, name: str) -> None:
        self._offsets = load_array(folder / f"{name}.offsets.npy")
        self._bytes = memoryview(load_array(folder / f"{name}.utf8.npy"))  # type: ignore[arg-type]  # a uint8 array is a buffer
        if len(self._offsets) < 1 or int(self._offsets[-1]) != len(self._bytes):
            raise damaged(folder / f"{name}.utf8.npy", "does not fit its offsets")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> bytes:
        if number < 0:
            number += len(self)
        return bytes(self._bytes[self._offsets[number] : self._offsets[number + 1]])

    def find(self, text: str) -> int:
        """Number of a text, or -1."""
        wanted = text.encode("utf-8", "replace")
        at = bisect_left(self, wanted)
        return at if at < len(self) and self[at] == wanted else -1

    def starting_with(self, prefix: str) -> tuple[int, int]:
        """The range of numbers of texts that start with a prefix: first, and one after the last."""
        wanted = prefix.encode("utf-8", "replace")
        after = wanted + b"\xff"  # no UTF-8 text has this byte
        return bisect_left(self, wanted), bisect_left(self, after)


class Arrays:
    """The arrays of one generation, mapped. Raises CorpusDamaged."""

    def __init__(self, folder: Path) -> None:
        self.terms = Texts(folder, "terms")
        self.words = Texts(folder, "words")
        self.lengths = load_array(folder / "lengths.npy")
        self.term_starts = load_array(folder / "term_starts.npy")
        self.records = load_array(folder / "records.npy")
        self.tfs = load_array(folder / "tfs.npy")
        self.place_starts = load_array(folder / "place_starts.npy")
        self.places = load_array(folder / "places.npy")
        self.word_terms = load_array(folder / "word_terms.npy")
        self.word_starts = load_array(folder / "word_starts.npy")
        self.word_records = load_array(folder / "word_records.npy")
        self.word_tfs = load_array(folder / "word_tfs.npy")
        checks = (
            ("records", len(self.records), self.term_starts),
            ("tfs", len(self.tfs), self.term_starts),
            ("places", len(self.places), self.place_starts),
            ("word_records", len(self.word_records), self.word_starts),
            ("word_tfs", len(self.word_tfs), self.word_starts),
        )
        for name, length, starts in checks:
            if not len(starts) or int(starts[-1]) != length:
                raise damaged(folder / f"{name}.npy", "does not fit its offsets")
