"""What a run has read and not yet published: a DuckDB file that documents stream into, so that memory does not grow.

Rows are gathered until they hold a few megabytes of text and are then inserted as one Arrow table, which is what makes
DuckDB fast from Python (row by row it is a hundred times slower). The file lives in the corpus's `building` folder and goes
with it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.records import Chunk, Document
from workbench.store import schema
from workbench.store.database import fetch, open_reading, open_writing, stream

if TYPE_CHECKING:
    import duckdb


_BATCH_CHARACTERS = 8_000_000
_OWN_PART = "granularity = 'chunk' OR chunking = 'whole'"
_INDEXED_TEXT = "CASE WHEN context = '' THEN text ELSE context || chr(10) || text END"
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


class Staging:
    """An empty staging file, open for writing. Use from one thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = open_writing(path)
        for table, columns in schema.STAGED.items():
            self._connection.execute(f"CREATE TABLE {table} ({columns})")
        self._rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in schema.STAGED}
        self._held = 0

    def add_document(
        self,
        document: Document,
        records: Sequence[tuple[Chunk, Sequence[Chunk]]],
        *,
        file: tuple[str, str],
        location: str,
    ) -> None:
        """Stage a document and its records, each with the chunks that its vector is made of (itself, or a whole document's
        chunks). `file` is root and path of the file it was read from, `location` the absolute path of the file that is this
        document, or "".
        """
        metadata = json.dumps(document.metadata, sort_keys=True)
        for record, parts in records:
            self._rows["records"].append(_record_row(record))
            for position, part in enumerate(parts):
                hashed = text_hash(part.indexed_text)
                self._rows["parts"].append((record.chunk_id, position, hashed))
                self._rows["texts"].append((hashed, part.tokens, part.indexed_text))
                self._held += len(part.text)
        self._rows["fields"] += [(document.document_id, *row) for row in field_rows(document.metadata)]
        self._rows["places"] += [(document.document_id, place.start, place.locator) for place in document.places]
        lines = document.text.count("\n") + bool(document.text and not document.text.endswith("\n"))
        self._rows["documents"].append(
            (
                document.document_id, document.root, document.path, document.title, document.type, document.url,
                document.language, document.tenant, sorted(document.roles), document.sensitivity,
                _naive(document.modified), document.size, document.sha256, len(document.text), lines,
                list(document.page_starts), metadata, location, year_of(document),
                document_digest(document, metadata, [record for record, _ in records]), *file, document.text,
            )
        )  # fmt: skip
        self._held += len(document.text) + sum(len(record.text) for record, _ in records)
        if self._held > _BATCH_CHARACTERS:
            self.flush()

    def add(self, table: str, *rows: tuple[Any, ...]) -> None:
        """Stage rows of one of the small tables, in the order of its columns in `schema.STAGED`."""
        self._rows[table].extend(rows)

    def flush(self) -> None:
        import pyarrow as pa

        for name, rows in self._rows.items():
            if rows:
                columns = self._connection.sql(f"FROM {name} LIMIT 0").to_arrow_table().schema
                values = list(zip(*rows, strict=True))
                try:
                    batch = pa.Table.from_arrays([*map(pa.array, values, columns.types)], schema=columns)
                except UnicodeEncodeError:
                    whole = [[_encodable(value) for value in column] for column in values]
                    batch = pa.Table.from_arrays([*map(pa.array, whole, columns.types)], schema=columns)
                self._connection.register("batch", batch)
                self._connection.execute(f"INSERT INTO {name} FROM batch")
                self._connection.unregister("batch")
                rows.clear()
        self._held = 0

    def collections(self) -> list[str]:
        return [name for (name,) in fetch(self._connection, "SELECT DISTINCT collection FROM records")]

    def find_missing(self, old_database: Path | None, known: Sequence[str]) -> tuple[int, int, int]:
        """Find the staged texts that have no vector yet: neither among `known` hashes nor in the old generation's database, where
        its vectors count. Returns how many, their tokens, and the number of texts with one; equal texts count once.
        """
        import pyarrow as pa

        with self._attached(old_database) as connection:
            connection.register("known", pa.table({"hash": pa.array(known, pa.string())}))
            there = "SELECT hash FROM known"
            if old_database is not None:
                there += " UNION ALL SELECT text_hash FROM old.records WHERE granularity = 'chunk'"
            connection.execute(
                "CREATE OR REPLACE TABLE missing AS SELECT min(rowid) AS row, hash, any_value(tokens) AS tokens FROM texts"
                f" WHERE hash NOT IN ({there}) GROUP BY hash"
            )
            connection.unregister("known")
        ((missing, tokens, every),) = fetch(
            self._connection,
            "SELECT count(*), coalesce(sum(tokens), 0)::BIGINT, (SELECT count(DISTINCT hash) FROM texts) FROM missing",
        )
        return missing, tokens, every - missing

    @contextmanager
    def _attached(self, old_database: Path | None) -> Iterator[duckdb.DuckDBPyConnection]:
        if old_database is not None:
            self._connection.execute(schema.attach("old", old_database))
        try:
            yield self._connection
        finally:
            if old_database is not None:
                self._connection.execute("DETACH old")

    def stage_carried(self, old_database: Path) -> None:
        """Stage the texts and parts of the records that are carried over, because an encoder's old vectors cannot be.

        A whole document's parts are its chunks in another collection: `lost_wholes` names the files without them.
        """
        carried = (
            "SELECT r.*, k.chunking FROM old.records r"
            f" JOIN ({schema.CARRIED.format(dropped='dropped')}) c ON c.number = r.document_number"
            " JOIN old.collections k ON k.name = r.collection"
        )
        with self._attached(old_database) as connection:
            connection.execute(f"CREATE TEMP TABLE carried_records AS {carried}")
            connection.execute(
                f"INSERT INTO texts SELECT text_hash, tokens, {_INDEXED_TEXT} FROM carried_records WHERE {_OWN_PART}"
            )
            connection.execute(
                f"INSERT INTO parts SELECT chunk_id, 0, text_hash FROM carried_records WHERE {_OWN_PART} UNION ALL"
                " SELECT w.chunk_id, p.chunk_index, p.text_hash FROM carried_records w JOIN carried_records p"
                f" ON p.document_number = w.document_number AND p.collection = (SELECT min(o.collection) FROM"
                " carried_records o WHERE o.document_number = w.document_number AND o.granularity = 'chunk' AND"
                f" o.chunking <> 'whole') WHERE NOT (w.granularity = 'chunk' OR w.chunking = 'whole')"
            )
            connection.execute("DROP TABLE carried_records")

    def missing_texts(self, window: int) -> Iterator[list[tuple[str, int, str]]]:
        """Hash, tokens and text of what `find_missing` found, each once, at most `window` at a time."""
        sql = "SELECT t.hash, t.tokens, t.text FROM texts t JOIN missing m ON m.row = t.rowid ORDER BY m.row"
        rows = stream(self._connection, sql, window)
        while block := list(islice(rows, window)):
            yield block

    def close(self) -> None:
        self._connection.close()


def lost_wholes(old_database: Path) -> list[tuple[str, str]]:
    """Root and path of the files of a generation with whole documents whose chunks it does not hold: the parts of their
    vectors are known to their files alone."""
    lost = (
        "SELECT DISTINCT f.root, f.path FROM records r JOIN collections k ON k.name = r.collection"
        " JOIN documents d ON d.number = r.document_number JOIN files f ON f.number = d.file_number"
        " WHERE NOT (r.granularity = 'chunk' OR k.chunking = 'whole') AND NOT EXISTS (SELECT 1 FROM records o"
        " JOIN collections n ON n.name = o.collection WHERE o.document_number = r.document_number"
        " AND o.granularity = 'chunk' AND n.chunking <> 'whole') ORDER BY 1, 2"
    )
    with closing(open_reading(old_database)) as connection:
        return [(root, path) for root, path in fetch(connection, lost)]


def text_hash(text: str) -> str:
    """Hex blake2b-16 of a text: what a vector is found again by."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def text_key(text: str) -> int:
    """First 8 bytes of the blake2b of a text, as an unsigned number: equal texts have equal keys."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def document_digest(document: Document, metadata: str, records: Sequence[Chunk]) -> str:
    """Hex blake2b-16 of what is indexed of a document: its text, what is known of it, who may see it, its records.

    Its root folder and modification time are left out, so that two copies of the same files have the same digest.
    """
    known = [
        document.document_id, document.path, document.title, document.type, document.url, document.language,
        document.tenant, sorted(document.roles), document.sensitivity, document.sha256, metadata,
        text_hash(document.text),
    ]  # fmt: skip
    ordered = sorted(records, key=lambda r: (r.collection, r.chunk_index, r.chunk_id))
    indexed = [[r.chunk_id, r.collection, r.kind.value, r.section, text_hash(r.indexed_text)] for r in ordered]
    return hashlib.blake2b(json.dumps([*known, indexed], ensure_ascii=True).encode(), digest_size=16).hexdigest()


def year_of(document: Document) -> int | None:
    """The front matter's `year` where it is a year, else the year of the modification time."""
    given = document.metadata.get("year")
    if (
        isinstance(given, (int, str))
        and not isinstance(given, bool)
        and re.fullmatch(r"[1-9]\d{0,3}", str(given).strip())
    ):
        return int(given)
    return document.modified.astimezone(UTC).year if document.modified is not None else None


_Field = tuple[str, int, str, float | None, datetime | None, bool]


def field_rows(metadata: Mapping[str, Any]) -> list[_Field]:
    """Front matter as (key, position, text, number, time, listed): nested keys joined by dots, a list one row an element."""
    rows: list[_Field] = []

    def add(key: str, value: Any, listed: bool) -> None:
        if isinstance(value, Mapping):
            for name in sorted(value, key=str):
                add(f"{key}.{name}" if key else str(name), value[name], listed)
        elif isinstance(value, (list, tuple)):
            for item in value:
                add(key, item, True)
        elif value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            number = float(text) if _NUMBER.fullmatch(text.strip()) else None
            finite = number is not None and abs(number) < float("inf")
            rows.append((key, len(rows), text, number if finite else None, _time(text), listed))

    add("", metadata, False)
    return rows


def _time(text: str) -> datetime | None:
    if not _ISO_DATE.fullmatch(text.strip()):
        return None
    try:
        return _naive(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        return None


def _naive(moment: datetime | None) -> datetime | None:
    """A time as naive UTC; one without a zone is taken as UTC."""
    if moment is None or moment.tzinfo is None:
        return moment
    return moment.astimezone(UTC).replace(tzinfo=None)


def _record_row(record: Chunk) -> tuple[Any, ...]:
    return (
        record.document_id, record.chunk_id, record.collection, record.granularity.value, record.kind.value,
        record.chunk_index, record.start, record.end, record.start_line, record.end_line, record.page, record.section,
        record.context, record.text, text_hash(record.indexed_text), text_key(record.text), record.tokens,
    )  # fmt: skip


def _encodable(value: Any) -> Any:
    """Half a surrogate pair (JSON can say it, UTF-8 cannot) as the replacement character: the length stays the same."""
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    return _SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value
