"""Per-record and per-document columns as mapped arrays, so that a mask or a result's table needs no SQL.

The folder `records/` of a generation holds `records.npy` (int32, one row a column, so that a column is contiguous),
`documents.npy` (int64, the same), `keys.npy` (uint64, text keys), `digests.npy` (uint8 (d, 16)), and texts as one UTF-8
file with offsets each. All are derived from `corpus.duckdb` and opened memory-mapped: opening reads a few kilobytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.store.database import fetch, fetch_columns, stream
from workbench.store.generations import damaged, unreadable
from workbench.store.grep.text import load_array

if TYPE_CHECKING:
    import duckdb

RECORD_COLUMNS = (
    "document_number", "start_char", "end_char", "start_line", "end_line", "page", "chunk_index", "whole", "kind",
    "collection",
)  # fmt: skip
"""Rows of `records.npy`: `page` 0 means none, `whole` 1 a whole document, `kind` and `collection` are codes."""

DOCUMENT_COLUMNS = ("access", "type", "language", "size", "first_record", "records", "root")
"""Rows of `documents.npy`: `type`, `language` and `root` are codes, `first_record` starts the document's `record_order`."""

KINDS = ("body", "PAGE_SUMMARY", "PAGE_EXAMPLES")


class Strings:
    """Many texts as one mapped UTF-8 file with offsets: item `i` costs one slice, opening costs nothing."""

    def __init__(self, folder: Path, name: str) -> None:
        self._offsets = load_array(folder / f"{name}.offsets.npy")
        self._bytes = load_array(folder / f"{name}.utf8.npy")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def take(self, numbers: NDArray[np.int64]) -> tuple[str, ...]:
        """Texts by number, in the order asked."""
        starts, ends = self._offsets[numbers].tolist(), self._offsets[numbers + 1].tolist()
        view = memoryview(self._bytes)  # type: ignore[arg-type]  # a uint8 array is a buffer; numpy does not say so
        return tuple(str(view[a:b], "utf-8") for a, b in zip(starts, ends, strict=True))

    @staticmethod
    def write(folder: Path, name: str, blocks: Iterable[Sequence[str]]) -> None:
        """Write texts that come in blocks, in order."""
        lengths: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
        parts: list[bytes] = []
        for block in blocks:
            encoded = [text.encode("utf-8") for text in block]
            lengths.append(np.fromiter(map(len, encoded), np.int64, len(encoded)))
            parts.append(b"".join(encoded))
        np.save(folder / f"{name}.offsets.npy", np.cumsum(np.concatenate(lengths)))
        np.save(folder / f"{name}.utf8.npy", np.frombuffer(b"".join(parts), np.uint8))


class Columns:
    """The columns of one generation, mapped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        records, documents = load_array(folder / "records.npy"), load_array(folder / "documents.npy")
        self.records: dict[str, NDArray[np.int32]] = dict(zip(RECORD_COLUMNS, records, strict=True))
        self.documents: dict[str, NDArray[np.int64]] = dict(zip(DOCUMENT_COLUMNS, documents, strict=True))
        self.text_keys: NDArray[np.uint64] = load_array(folder / "keys.npy")
        self.digests: NDArray[np.uint8] = load_array(folder / "digests.npy")
        self.record_order: NDArray[np.int32] = load_array(folder / "record_order.npy")
        self.chunk_ids = Strings(folder, "chunk_ids")
        self.document_ids = Strings(folder, "document_ids")
        self.paths = Strings(folder, "paths")
        try:
            self.names: dict[str, list[Any]] = json.loads((folder / "names.json").read_text(encoding="utf-8"))
        except OSError as exc:
            raise unreadable(folder / "names.json", exc) from exc
        except ValueError as exc:
            raise damaged(folder / "names.json", "is not as it was written") from exc

    @property
    def records_total(self) -> int:
        """Number of records."""
        return len(self.text_keys)

    @property
    def documents_total(self) -> int:
        """Number of documents."""
        return len(self.digests)

    def records_of(self, document_number: int) -> NDArray[np.int64]:
        """Numbers of a document's records, up."""
        start = int(self.documents["first_record"][document_number])
        stop = start + int(self.documents["records"][document_number])
        return np.asarray(self.record_order[start:stop], np.int64)


def write_columns(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Derive `records/` from the tables of a new generation.

    Args:
        connection: The new generation's database.
        folder: Its `records` folder, which must not exist.
    """
    folder.mkdir()
    names = {
        "collections": [row[0] for row in fetch(connection, "SELECT name FROM collections ORDER BY code")],
        "granularities": [row[0] for row in fetch(connection, "SELECT granularity FROM collections ORDER BY code")],
        "types": _distinct(connection, "type"),
        "languages": _distinct(connection, "language"),
        "roots": _distinct(connection, "root"),
        "access": [
            list(row)
            for row in fetch(connection, "SELECT tenant, roles, sensitivity FROM access ORDER BY code")
        ],
    }  # fmt: skip
    (folder / "names.json").write_text(json.dumps(names, ensure_ascii=False, sort_keys=True), encoding="utf-8")
    records = fetch_columns(
        connection,
        "SELECT r.document_number, r.start_char, r.end_char, r.start_line, r.end_line, coalesce(r.page, 0)::INTEGER AS page,"
        " r.chunk_index, (r.granularity = 'document')::INTEGER AS whole,"
        " (list_position(?, r.kind) - 1)::INTEGER AS kind, c.code AS collection, r.text_key"
        " FROM records r JOIN collections c ON c.name = r.collection ORDER BY r.number",
        [list(KINDS)],
    )
    np.save(folder / "records.npy", np.stack([np.asarray(records[name], np.int32) for name in RECORD_COLUMNS]))
    np.save(folder / "keys.npy", np.asarray(records["text_key"], np.uint64))
    documents = fetch_columns(
        connection,
        "SELECT access, (list_position(?, type) - 1) AS type, (list_position(?, language) - 1) AS language, size,"
        " (list_position(?, root) - 1) AS root FROM documents ORDER BY number",
        [names["types"], names["languages"], names["roots"]],
    )
    owners = np.asarray(records["document_number"], np.int64)
    total = len(documents["access"])
    counts = np.bincount(owners, minlength=total)
    documents["records"], documents["first_record"] = counts, np.concatenate(([0], np.cumsum(counts)[:-1]))[:total]
    np.save(folder / "record_order.npy", np.argsort(owners, kind="stable").astype(np.int32))
    np.save(folder / "documents.npy", np.stack([np.asarray(documents[name], np.int64) for name in DOCUMENT_COLUMNS]))
    digests = b"".join(_digests(connection))
    np.save(folder / "digests.npy", np.frombuffer(digests, np.uint8).reshape(-1, 16))
    Strings.write(folder, "chunk_ids", _texts(connection, "SELECT chunk_id FROM records ORDER BY number"))
    Strings.write(folder, "document_ids", _texts(connection, "SELECT document_id FROM documents ORDER BY number"))
    Strings.write(folder, "paths", _texts(connection, "SELECT path FROM documents ORDER BY number"))


def _digests(connection: duckdb.DuckDBPyConnection) -> Iterator[bytes]:
    """The digest of each document: of what is indexed of it, and of the ids that its copies would have."""
    copies = dict(
        fetch(
            connection,
            "SELECT document_number, string_agg(document_id, ' ' ORDER BY path, document_id) FROM copies GROUP BY 1",
        )
    )
    for number, digest in fetch(connection, "SELECT number, digest FROM documents ORDER BY number"):
        if number in copies:
            digest = hashlib.blake2b(f"{digest} {copies[number]}".encode(), digest_size=16).hexdigest()
        yield bytes.fromhex(digest)


def _distinct(connection: duckdb.DuckDBPyConnection, column: str) -> list[str]:
    return [row[0] for row in fetch(connection, f"SELECT DISTINCT {column} FROM documents ORDER BY 1")]


def _texts(connection: duckdb.DuckDBPyConnection, sql: str) -> Iterable[list[str]]:
    rows = stream(connection, sql)
    while block := [row[0] for row in islice(rows, 20_000)]:
        yield block
