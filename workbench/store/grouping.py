"""Which documents of the next generation are copies of another: files with the same bytes are indexed once.

Documents with the same *content* (bytes, what reads them, who may see them, where they go: see `content_key`) make a group. The
first of a group in the total order (path, document id) is its *primary*: its records are the ones that are indexed. The others
are its *copies*: their paths are known and cited, and they cost one row each. Nothing of this depends on the order in which
files were indexed, so that a folder gives the same corpus whatever its history.

A copy becomes the primary when the one before it goes. Its text is the same and need not be there to be read again: the old
primary's records are carried over, vectors and all, under the ids that the copy's own would have.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.ingest.chunking import chunk_id
from workbench.records import Chunk, Document
from workbench.store.database import stream
from workbench.store.schema import Old
from workbench.store.staging import Staging, digest_of, old_tables, text_hash

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class Promoted:
    """A copy of the generation before that is a primary now.

    Attributes:
        file: Root and path of its file.
        retitled: Its title is not that under which its text was embedded.
    """

    file: tuple[str, str]
    retitled: bool


def content_key(document: Document, records: Sequence[Chunk], reader: str) -> str:
    """Hex blake2b-16 of all that two documents must share to be indexed as one; "" where the original's bytes are not known.

    Path, root, modification time and a title that comes from the file's name are not in it, nor are the spans of the records,
    which may differ with the length of the title.

    Args:
        document: The document.
        records: Its records.
        reader: What read it.
    """
    if not document.sha256:
        return ""
    said = [
        reader, document.sha256, document.type, document.url, document.language, document.tenant, sorted(document.roles),
        document.sensitivity, document.metadata, text_hash(document.text), document.page_starts,
        [(place.start, place.locator) for place in document.places],
        sorted({(record.collection, record.granularity.value) for record in records}),
    ]  # fmt: skip
    return hashlib.blake2b(json.dumps(said, sort_keys=True).encode(), digest_size=16).hexdigest()


def settle_copies(staging: Staging, old: Path | None) -> list[Promoted]:
    """Decide on primaries and copies, and leave in the staging file what the build needs of it.

    Fills `members`, `carried`, `relabelled`, `promoted`, `copies` and `former`. May be called again after more was staged.

    Args:
        staging: Everything that was read, and `dropped`; flushed.
        old: The database of the generation before, or None.

    Returns:
        The copies of `old` that became primaries, by path.
    """
    with staging.attached(old) as connection:
        for table in ("members", "carried", "relabelled", "promoted", "copies", "former"):
            connection.execute(f"DELETE FROM {table}")
        held = old_tables(connection, old is not None)
        connection.execute(f"INSERT INTO members {_members(held)}")
        connection.execute(
            "INSERT INTO carried SELECT number, document_id FROM members WHERE origin <> 'staged' AND document_id = primary_id"
        )
        connection.execute(f"INSERT INTO copies {_copies(held)}")
        if not held.copies:
            return []
        connection.execute(f"INSERT INTO former {_FORMER}")
        return _promote(connection)


def leave_out_copies(staging: Staging) -> None:
    """Take the records of staged copies out of the staging file, so that they are neither embedded nor indexed."""
    with staging.attached(None) as connection:
        theirs = (
            "document_id IN (SELECT document_id FROM members WHERE origin = 'staged' AND document_id <> primary_id)"
        )
        if not connection.execute(f"SELECT count(*) FROM documents WHERE {theirs}").fetchall()[0][0]:
            return
        connection.execute(f"DELETE FROM parts WHERE chunk_id IN (SELECT chunk_id FROM records WHERE {theirs})")
        connection.execute("DELETE FROM texts WHERE hash NOT IN (SELECT hash FROM parts)")
        for table in ("records", "fields", "places"):
            connection.execute(f"DELETE FROM {table} WHERE {theirs}")


_NOT_DROPPED = "NOT EXISTS (SELECT 1 FROM dropped x WHERE x.root = f.root AND x.path = f.path)"


def _members(old: Old) -> str:
    """Every document of the next generation with its primary. `number` is the old document that holds its text."""
    parts = ["SELECT document_id, path, content, 'staged' AS origin, NULL::INTEGER AS number FROM documents"]
    if old.there:
        content = "d.content" if old.copies else "''"
        parts.append(
            f"SELECT d.document_id, d.path, {content}, 'document', d.number FROM old.documents d"
            f" JOIN old.files f ON f.number = d.file_number WHERE {_NOT_DROPPED}"
        )
    if old.copies:
        parts.append(
            "SELECT c.document_id, c.path, d.content, 'copy', d.number FROM old.copies c"
            " JOIN old.documents d ON d.number = c.document_number"
            f" JOIN old.files f ON f.number = c.file_number WHERE {_NOT_DROPPED}"
        )
    return (
        "SELECT *, first_value(document_id) OVER (PARTITION BY CASE WHEN content = '' THEN document_id ELSE content END"
        f" ORDER BY path, document_id) AS primary_id FROM ({' UNION ALL '.join(parts)})"
    )


def _copies(old: Old) -> str:
    """Rows of `copies` from where each copy is known."""
    chosen = "JOIN members m ON m.document_id = s.document_id AND m.document_id <> m.primary_id AND m.origin"
    columns = "m.primary_id, s.document_id, s.root, s.path, s.title, s.modified, s.year, s.location"
    parts = [f"SELECT {columns}, s.file_root, s.file_path FROM documents s {chosen} = 'staged'"]
    if old.there:
        file = "JOIN old.files f ON f.number = s.file_number"
        parts.append(f"SELECT {columns}, f.root, f.path FROM old.documents s {chosen} = 'document' {file}")
    if old.copies:
        parts.append(f"SELECT {columns}, f.root, f.path FROM old.copies s {chosen} = 'copy' {file}")
    return " UNION ALL ".join(parts)


_FORMER = """
WITH held AS (
    SELECT document_id, path, content FROM old.documents
    UNION ALL SELECT c.document_id, c.path, d.content FROM old.copies c JOIN old.documents d ON d.number = c.document_number
    UNION ALL SELECT f.former_id, f.path, d.content FROM old.former f JOIN old.documents d ON d.number = f.document_number),
here AS (SELECT DISTINCT content, primary_id FROM members)
SELECT DISTINCT here.primary_id, held.path, held.document_id FROM held JOIN here USING (content)
WHERE content <> '' AND held.document_id NOT IN (SELECT document_id FROM members)
"""
"""Paths under which the same content was there before and is no more: a file was moved, or one of its copies went."""

_FIRST = "m.origin = 'copy' AND m.document_id = m.primary_id"

_PROMOTED = f"""
SELECT m.number, m.document_id, c.path, c.title, c.title <> d.title, f.root, f.path, d.type, d.url, d.language, d.tenant,
 d.roles, d.sensitivity, d.sha256, d.metadata, d.text
FROM members m JOIN old.copies c ON c.document_id = m.document_id JOIN old.documents d ON d.number = m.number
JOIN old.files f ON f.number = c.file_number WHERE {_FIRST} ORDER BY m.number
"""

_THEIR_RECORDS = f"""
SELECT m.number, m.document_id, r.number, r.collection, r.start_char, r.end_char, r.kind, r.section, r.text_hash
FROM members m JOIN old.records r ON r.document_number = m.number WHERE {_FIRST}
ORDER BY m.number, r.collection, r.chunk_index, r.number
"""


def _promote(connection: duckdb.DuckDBPyConnection) -> list[Promoted]:
    """Give the records of each copy that became a primary the ids of its own, and its document its digest."""
    relabelled: list[tuple[int, str]] = []
    indexed: dict[int, list[list[str]]] = {}
    for document, own, number, collection, start, end, kind, section, hashed in stream(connection, _THEIR_RECORDS):
        name = chunk_id(own, collection, start, end)
        relabelled.append((number, name))
        indexed.setdefault(document, []).append([name, collection, kind, section, hashed])
    made: list[tuple[str, Promoted]] = []
    digests: list[tuple[str, str]] = []
    for row in stream(connection, _PROMOTED, 200):
        number, own, path, title, retitled, root, file, kind, url, language, tenant, roles = row[:12]
        level, sha256, metadata, text = row[12:]
        known = [own, path, title, kind, url, language, tenant, sorted(roles), level, sha256, metadata, text_hash(text)]
        digests.append((own, digest_of(known, indexed.get(number, []))))
        made.append((path, Promoted((root, file), bool(retitled))))
    _insert(connection, "relabelled", relabelled)
    _insert(connection, "promoted", digests)
    return [promoted for _, promoted in sorted(made, key=lambda item: (item[0], item[1].file))]


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[tuple[int | str, str]]) -> None:
    import pyarrow as pa

    if rows:
        columns = [pa.array(values) for values in zip(*rows, strict=True)]
        connection.register("batch", pa.Table.from_arrays(columns, names=["first", "second"]))
        connection.execute(f"INSERT INTO {table} SELECT * FROM batch")
        connection.unregister("batch")
