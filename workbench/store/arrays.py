"""What is asked of every record and document, as mapped arrays: masks, a result's table and grep's passages need no SQL.

All of them are in one file of a generation, `records/columns.arrays`, derived from `corpus.duckdb` and mapped (opening reads its
first line):

- `records` (int32) and `documents` (int64), one row a column so that a column is contiguous; `names` says what the codes in them
  mean; `keys` (uint64, text keys), `digests` (uint8 (d, 16));
- `order` (int32): record numbers by document, first character and number;
- `page_starts` and `place_starts` (int32): characters at which pages and places begin, document after document, and `locators`,
  what the places are called;
- `chunk_ids`, `document_ids`, `paths`, `locators`: texts, as UTF-8 and, under `.offsets`, where each starts.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.locators import Place, joined
from workbench.store.database import fetch, fetch_columns, stream
from workbench.store.generations import damaged, unreadable

if TYPE_CHECKING:
    import duckdb

RECORD_COLUMNS = (
    "document_number", "start_char", "end_char", "start_line", "end_line", "page", "chunk_index", "whole", "kind",
    "collection",
)  # fmt: skip
"""Rows of `records`: `page` 0 means none, `whole` 1 a whole document, `kind` and `collection` are codes."""

DOCUMENT_COLUMNS = (
    "access", "type", "language", "size", "root", "same", "first_record", "records", "first_page", "pages", "first_place",
    "places",
)  # fmt: skip
"""Rows of `documents`: `type`, `language` and `root` are codes, `same` is the first document with the same text, and
`first_*` says where a document's records, pages and places begin in their arrays."""

COLUMNS = "columns.arrays"

KINDS = ("body", "PAGE_SUMMARY", "PAGE_EXAMPLES")

_ALIGNED = 64


def map_bytes(path: Path) -> mmap.mmap | bytes:
    """Map a file's bytes read-only (an empty file cannot be mapped and gives b""). Raises CorpusDamaged, CorpusError."""
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""
    except (OSError, MemoryError) as exc:
        raise unreadable(path, exc) from exc


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any] | None = None) -> None:
    """Write arrays into one file: a line of JSON that says where each one is, and the facts; then the arrays, aligned."""
    places, at = {}, 0
    for name, array in arrays.items():
        places[name] = [array.dtype.str, array.shape, at]
        at += array.nbytes + -array.nbytes % _ALIGNED
    head = json.dumps({"arrays": places, "facts": facts or {}}, ensure_ascii=False, sort_keys=True).encode()
    with path.open("wb") as out:
        out.write(head + b" " * (-(len(head) + 1) % _ALIGNED) + b"\n")
        for array in arrays.values():
            out.write(np.ascontiguousarray(array).tobytes() + bytes(-array.nbytes % _ALIGNED))


def load_arrays(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays of such a file, mapped read-only, and its facts. Raises CorpusDamaged, CorpusError."""
    data = map_bytes(path)
    try:
        start = data.find(b"\n") + 1
        head = json.loads(data[:start])
        arrays: dict[str, NDArray[Any]] = {
            name: np.ndarray(shape, kind, data, start + at) for name, (kind, shape, at) in head["arrays"].items()
        }
        return arrays, head["facts"]
    except (ValueError, KeyError, TypeError) as exc:
        raise damaged(path, "is not as it was written") from exc


class Strings:
    """Many texts as UTF-8 with offsets: item `i` costs one slice, opening costs nothing."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], name: str) -> None:
        self._offsets, self._bytes = arrays[f"{name}.offsets"], memoryview(arrays[name])  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def take(self, numbers: NDArray[np.int64]) -> tuple[str, ...]:
        """Texts by number, in the order asked; "" for -1."""
        starts, ends = self._offsets[numbers].tolist(), self._offsets[numbers + 1].tolist()
        return tuple(str(self._bytes[a:b], "utf-8") for a, b in zip(starts, ends, strict=True))

    @staticmethod
    def arrays(name: str, texts: Iterable[str]) -> dict[str, NDArray[Any]]:
        """The two arrays of some texts."""
        data = [text.encode() for text in texts]
        offsets = np.cumsum([0, *map(len, data)], dtype=np.int64)
        return {name: np.frombuffer(b"".join(data), np.uint8), f"{name}.offsets": offsets}


class Columns:
    """The arrays of one generation; safe from several threads.

    Raises:
        CorpusDamaged: A file is missing, or the files do not fit each other.
    """

    def __init__(self, folder: Path) -> None:
        arrays, self.names = load_arrays(folder / COLUMNS)
        try:
            records, documents = arrays["records"], arrays["documents"]
            self.records: dict[str, NDArray[np.int32]] = dict(zip(RECORD_COLUMNS, records, strict=True))
            self.documents: dict[str, NDArray[np.int64]] = dict(zip(DOCUMENT_COLUMNS, documents, strict=True))
            self.text_keys, self.digests = arrays["keys"], arrays["digests"]
            self.chunk_ids, self.document_ids, self.paths, self._locators = (
                Strings(arrays, name) for name in ("chunk_ids", "document_ids", "paths", "locators")
            )
            self._order, self._pages, self._places = (arrays[n] for n in ("order", "page_starts", "place_starts"))
        except (KeyError, ValueError) as exc:
            raise damaged(folder / COLUMNS, "is not as it was written") from exc
        if len({records.shape[1], len(self.text_keys), len(self._order), len(self.chunk_ids)}) != 1 or (
            len({documents.shape[1], len(self.digests), len(self.paths), len(self.document_ids)}) != 1
        ):
            raise damaged(folder / COLUMNS, "does not fit together")
        self.records_total, self.documents_total = len(self.text_keys), len(self.digests)

    def _part(self, array: NDArray[Any], kind: str, document: int) -> NDArray[Any]:
        start = int(self.documents[f"first_{kind}"][document])
        return array[start : start + int(self.documents[f"{kind}s"][document])]

    def records_of(self, document: int) -> NDArray[np.int64]:
        """Numbers of a document's records, up."""
        return np.sort(self._part(self._order, "record", document).astype(np.int64))

    def page(self, document: int, character: int) -> int | None:
        """The page (from 1) that a character is on; None where the document has no pages."""
        pages = self._part(self._pages, "page", document)
        return max(1, int(np.searchsorted(pages, character, side="right"))) if len(pages) else None

    def places(self, document: int) -> tuple[Place, ...]:
        """Where a document's text is in its original, in order; empty for a file that is cited by its lines."""
        starts = self._part(self._places, "place", document)
        names = self._locators.take(np.arange(len(starts)) + self.documents["first_place"][document])
        return tuple(Place(start, name) for start, name in zip(starts.tolist(), names, strict=True))

    def locator(self, document: int, start: int, end: int) -> str:
        """Where the characters `start` (included) to `end` of a document are in its original; "" where nothing says."""
        own = self._part(self._places, "place", document)
        if not len(own):
            return ""
        first, last = (int(n) - 1 for n in np.searchsorted(own, [start, max(start, end - 1)], side="right"))
        if last < 0:
            return ""
        names = self._locators.take(np.array([max(first, 0), last]) + self.documents["first_place"][document])
        return joined(names[0], names[1])

    def holder(
        self, document: int, match: tuple[int, int], line: tuple[int, int], allowed: NDArray[np.bool_] | None
    ) -> int:
        """The allowed record that represents a match, or -1 if no allowed record covers its line.

        The chunk that holds the match's first character; else the first that holds another part of it, or of its line
        (a match may lie in what no chunk covers); for a line before all chunks, which is front matter, the first of them;
        else the whole-document record. Among several, the lowest number. `match` and `line` are characters of the document.
        """
        order = self._part(self._order, "record", document)
        whole = self.records["whole"][order].astype(bool)
        chunks = order[~whole]
        starts, ends = self.records["start_char"][chunks], self.records["end_char"][chunks]
        for first, last in ((match[0], match[0] + 1), match, line):
            held = chunks[(starts < max(last, first + 1)) & (ends > first)]
            record = _lowest(held, allowed)
            if record >= 0:
                return record
        if len(chunks) and line[0] < starts[0]:
            permitted = chunks if allowed is None else chunks[allowed[chunks]]
            if len(permitted):
                return int(permitted[0])
        return _lowest(order[whole], allowed)


def _lowest(numbers: NDArray[np.int32], allowed: NDArray[np.bool_] | None) -> int:
    if allowed is not None:
        numbers = numbers[allowed[numbers]]
    return int(numbers.min()) if len(numbers) else -1


def write_columns(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Derive `records/` from the tables of a new generation; the folder must not exist."""
    names = {
        "collections": [row[0] for row in fetch(connection, "SELECT name FROM collections ORDER BY code")],
        "granularities": [row[0] for row in fetch(connection, "SELECT granularity FROM collections ORDER BY code")],
        **{f"{column}s": _distinct(connection, column) for column in ("type", "language", "root")},
        "access": [
            list(row) for row in fetch(connection, "SELECT tenant, roles, sensitivity FROM access ORDER BY code")
        ],
    }
    records = fetch_columns(
        connection,
        "SELECT r.document_number, r.start_char, r.end_char, r.start_line, r.end_line, coalesce(r.page, 0)::INTEGER AS page,"
        " r.chunk_index, (r.granularity = 'document')::INTEGER AS whole,"
        " (list_position(?, r.kind) - 1)::INTEGER AS kind, c.code AS collection, r.text_key"
        " FROM records r JOIN collections c ON c.name = r.collection ORDER BY r.number",
        [list(KINDS)],
    )
    documents = fetch_columns(
        connection,
        "SELECT access, (list_position(?, type) - 1) AS type, (list_position(?, language) - 1) AS language, size,"
        " (list_position(?, root) - 1) AS root, first_value(number) OVER (PARTITION BY content ORDER BY number) AS same,"
        " len(page_starts) AS pages FROM documents ORDER BY number",
        [names["types"], names["languages"], names["roots"]],
    )
    places = fetch_columns(connection, "SELECT document_number, start FROM places ORDER BY document_number, start")
    documents["places"] = np.bincount(
        np.asarray(places["document_number"], np.int64), minlength=len(documents["access"])
    )
    save_columns(
        folder,
        names,
        records,
        documents,
        chunk_ids=_texts(connection, "SELECT chunk_id FROM records ORDER BY number"),
        document_ids=_texts(connection, "SELECT document_id FROM documents ORDER BY number"),
        paths=_texts(connection, "SELECT path FROM documents ORDER BY number"),
        digests=[bytes.fromhex(d) for d in _texts(connection, "SELECT digest FROM documents ORDER BY number")],
        pages=[
            page for (own,) in stream(connection, "SELECT page_starts FROM documents ORDER BY number") for page in own
        ],
        places=np.asarray(places["start"], np.int32),
        locators=_texts(connection, "SELECT locator FROM places ORDER BY document_number, start"),
    )


def save_columns(
    folder: Path,
    names: Mapping[str, Sequence[Any]],
    records: Mapping[str, Any],
    documents: Mapping[str, Any],
    *,
    chunk_ids: Iterable[str],
    document_ids: Iterable[str],
    paths: Iterable[str],
    digests: Sequence[bytes],
    pages: Sequence[int] = (),
    places: Sequence[int] | NDArray[np.int32] = (),
    locators: Iterable[str] = (),
) -> None:
    """Write the arrays: `records` and `documents` by column name, but for what is counted from the others (`first_*`)."""
    folder.mkdir(parents=True)
    owners, starts = np.asarray(records["document_number"], np.int64), np.asarray(records["start_char"], np.int64)
    counted = {**documents, "records": np.bincount(owners, minlength=len(digests))}
    for kind in ("record", "page", "place"):
        counts = np.asarray(counted[f"{kind}s"], np.int64)
        counted[f"first_{kind}"] = np.cumsum(counts) - counts
    arrays: dict[str, NDArray[Any]] = {
        "records": np.stack([np.asarray(records[name], np.int32) for name in RECORD_COLUMNS]),
        "documents": np.stack([np.asarray(counted[name], np.int64) for name in DOCUMENT_COLUMNS]),
        "keys": np.asarray(records["text_key"], np.uint64),
        "order": np.lexsort((np.arange(len(owners)), starts, owners)).astype(np.int32),
        "digests": np.frombuffer(b"".join(digests), np.uint8).reshape(-1, 16),
        "page_starts": np.asarray(pages, np.int32),
        "place_starts": np.asarray(places, np.int32),
    }
    texts = {"chunk_ids": chunk_ids, "document_ids": document_ids, "paths": paths, "locators": locators}
    for name, values in texts.items():
        arrays |= Strings.arrays(name, values)
    save_arrays(folder / COLUMNS, arrays, names)


def _distinct(connection: duckdb.DuckDBPyConnection, column: str) -> list[str]:
    return [row[0] for row in fetch(connection, f"SELECT DISTINCT {column} FROM documents ORDER BY 1")]


def _texts(connection: duckdb.DuckDBPyConnection, sql: str) -> Iterable[str]:
    return (row[0] for row in stream(connection, sql))
