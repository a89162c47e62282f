"""The tables of a generation, and the SQL that makes a new one from the old one and what a run staged.

`corpus.duckdb` is the record: everything else in a generation can be made from it. A new generation is never an altered copy
of the old one: its tables are written whole, sorted by number, from the old file attached read-only and the staging file.
(Appending to a copy grew the file by half over fifteen small changes and made its bytes depend on history.) Sorted tables
also make range look-ups by number touch few blocks.

Tables beside `documents` and `records`: `copies` (documents that are indexed as another one), `former` (paths that a document
had, by which judgments are found again), `files` (every file seen, also skipped and failed ones), `fields` (front matter, one
row a value, for filters), `places` (where a text stands in its original), `access` (distinct combinations of tenant, roles and
sensitivity), `collections`, `roots`; and `postings` and `lengths`, which the word index builds.
"""

from __future__ import annotations

from dataclasses import dataclass

DOCUMENT_COLUMNS = {
    "document_id": "VARCHAR NOT NULL",
    "root": "VARCHAR NOT NULL",
    "path": "VARCHAR NOT NULL",
    "title": "VARCHAR NOT NULL",
    "type": "VARCHAR NOT NULL",
    "url": "VARCHAR NOT NULL",
    "language": "VARCHAR NOT NULL",
    "tenant": "VARCHAR",
    "roles": "VARCHAR[] NOT NULL",
    "sensitivity": "VARCHAR NOT NULL",
    "modified": "TIMESTAMP",
    "size": "BIGINT NOT NULL",
    "sha256": "VARCHAR NOT NULL",
    "characters": "INTEGER NOT NULL",
    "lines": "INTEGER NOT NULL",
    "page_starts": "INTEGER[] NOT NULL",
    "metadata": "VARCHAR NOT NULL",
    "location": "VARCHAR NOT NULL",
    "year": "INTEGER",
    "digest": "VARCHAR NOT NULL",
    "content": "VARCHAR NOT NULL",
    "file_root": "VARCHAR NOT NULL",
    "file_path": "VARCHAR NOT NULL",
    "text": "VARCHAR NOT NULL",
}
"""A document as staged. `location` is the absolute path of the file that is this document, "" for one of several records of
a file; `digest` names what is indexed of it and its access, `content` what it shares with its copies ("" where it can have
none); `file_root` and `file_path` name its row of `files`."""

RECORD_COLUMNS = {
    "document_id": "VARCHAR NOT NULL",
    "chunk_id": "VARCHAR NOT NULL",
    "collection": "VARCHAR NOT NULL",
    "granularity": "VARCHAR NOT NULL",
    "kind": "VARCHAR NOT NULL",
    "chunk_index": "INTEGER NOT NULL",
    "start_char": "INTEGER NOT NULL",
    "end_char": "INTEGER NOT NULL",
    "start_line": "INTEGER NOT NULL",
    "end_line": "INTEGER NOT NULL",
    "page": "INTEGER",
    "section": "VARCHAR NOT NULL",
    "context": "VARCHAR NOT NULL",
    "text": "VARCHAR NOT NULL",
    "text_hash": "VARCHAR NOT NULL",
    "text_key": "UBIGINT NOT NULL",
    "tokens": "INTEGER NOT NULL",
}
"""A record as staged: a chunk, or a whole document. `text_hash` is hex blake2b-16 of what is embedded (context and text);
`text_key` the first 8 bytes of the blake2b of the text alone, for finding equal texts."""

FIELD_COLUMNS = {
    "document_id": "VARCHAR NOT NULL",
    "key": "VARCHAR NOT NULL",
    "position": "INTEGER NOT NULL",
    "text": "VARCHAR NOT NULL",
    "number": "DOUBLE",
    "time": "TIMESTAMP",
    "listed": "BOOLEAN NOT NULL",
}
"""One value of front matter: nested keys joined by dots, lists one row an element with `listed`."""

FILE_COLUMNS = {
    "root": "VARCHAR NOT NULL",
    "path": "VARCHAR NOT NULL",
    "size": "BIGINT NOT NULL",
    "modified_ns": "BIGINT NOT NULL",
    "sha256": "VARCHAR NOT NULL",
    "recipe": "VARCHAR NOT NULL",
    "collections": "VARCHAR[] NOT NULL",
    "status": "VARCHAR NOT NULL",
    "reason": "VARCHAR NOT NULL",
    "remedy": "VARCHAR NOT NULL",
    "documents": "INTEGER NOT NULL",
    "chunks": "INTEGER NOT NULL",
    "access": "VARCHAR NOT NULL",
}
"""One file seen: `recipe` is a digest of all that shaped its outcome beside its bytes; `access` is JSON of the tenant, roles and
sensitivity that rules and flags gave to it, "" where they are not known."""

PLACE_COLUMNS = {"document_id": "VARCHAR NOT NULL", "start": "INTEGER NOT NULL", "locator": "VARCHAR NOT NULL"}
"""From which character on a document's text stands at which place of the original (sheet and row, slide, cell, ...)."""

PART_COLUMNS = {"chunk_id": "VARCHAR NOT NULL", "position": "INTEGER NOT NULL", "hash": "VARCHAR NOT NULL"}
"""What a staged record's vector is made of: one text for a chunk, the document's chunks for a whole document."""

CUT_RECORDS = "SELECT number FROM records WHERE granularity = 'chunk' AND tokens > ? ORDER BY number"
"""Chunks of which an encoder that reads so many tokens embeds only the beginning."""

TEXT_COLUMNS = {"hash": "VARCHAR NOT NULL", "tokens": "INTEGER NOT NULL", "text": "VARCHAR NOT NULL"}
"""What may have to be embedded, by the hash of it; the same text may be staged more than once."""

MEMBER_COLUMNS = {
    "document_id": "VARCHAR NOT NULL",
    "path": "VARCHAR NOT NULL",
    "content": "VARCHAR NOT NULL",
    "origin": "VARCHAR NOT NULL",
    "number": "INTEGER",
    "primary_id": "VARCHAR NOT NULL",
}
"""A document of the next generation, and the one it is indexed as (mostly itself). `origin` is where it is known from:
`staged`, or `document` or `copy` of the old generation, whose document `number` then holds its text."""

COPY_COLUMNS = {
    "primary_id": "VARCHAR NOT NULL",
    "document_id": "VARCHAR NOT NULL",
    "root": "VARCHAR NOT NULL",
    "path": "VARCHAR NOT NULL",
    "title": "VARCHAR NOT NULL",
    "modified": "TIMESTAMP",
    "year": "INTEGER",
    "location": "VARCHAR NOT NULL",
    "file_root": "VARCHAR NOT NULL",
    "file_path": "VARCHAR NOT NULL",
}
"""A copy: what is its own. All else is its primary's."""

STAGED = {
    "documents": DOCUMENT_COLUMNS,
    "records": RECORD_COLUMNS,
    "fields": FIELD_COLUMNS,
    "places": PLACE_COLUMNS,
    "files": FILE_COLUMNS,
    "parts": PART_COLUMNS,
    "texts": TEXT_COLUMNS,
    "members": MEMBER_COLUMNS,
    "copies": COPY_COLUMNS,
    "former": {"document_id": "VARCHAR NOT NULL", "path": "VARCHAR NOT NULL", "former_id": "VARCHAR NOT NULL"},
    "carried": {"number": "INTEGER NOT NULL", "document_id": "VARCHAR NOT NULL"},
    "relabelled": {"number": "INTEGER NOT NULL", "chunk_id": "VARCHAR NOT NULL"},
    "promoted": {"document_id": "VARCHAR NOT NULL", "digest": "VARCHAR NOT NULL"},
    "dropped": {"root": "VARCHAR NOT NULL", "path": "VARCHAR NOT NULL"},
    "retried": {"root": "VARCHAR NOT NULL", "path": "VARCHAR NOT NULL"},
    "roots": {
        "root": "VARCHAR NOT NULL", "whole": "BOOLEAN NOT NULL", "salt": "VARCHAR NOT NULL",
        "options": "VARCHAR NOT NULL",
    },
    "collections": {"name": "VARCHAR NOT NULL", "granularity": "VARCHAR NOT NULL", "chunking": "VARCHAR NOT NULL"},
}  # fmt: skip
"""Tables of the staging file. `dropped` names the files of the old generation whose documents are not carried over, `retried`
those that the next run reads again. `carried` are old documents whose records are carried over, under the id that they have from
now on; it differs where a copy takes the place of its primary (`promoted`), and then the records' ids do (`relabelled`).
`former` are paths and ids under which the content of a document was there and is no more."""


def create(table: str, columns: dict[str, str]) -> str:
    """A CREATE TABLE statement."""
    return f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})"


def staging_tables() -> list[str]:
    """The statements that make an empty staging file."""
    return [create(name, columns) for name, columns in STAGED.items()]


@dataclass(frozen=True, slots=True)
class Old:
    """Whether there is an old generation, and what it knows; one that was made before lacks some tables."""

    there: bool = False
    places: bool = True
    copies: bool = True
    file_access: bool = True


def build_tables(old: Old) -> list[str]:
    """The statements that fill a new generation, in order; `old` (where there is one) and `staged` are attached.

    Documents are numbered by (path, document id), records by (path, start line, chunk id); text compares by its UTF-8 bytes,
    which is code-point order. Temporary tables hold only keys and numbers, so the texts are moved once and the sort of them
    may spill to disk.
    """
    has_old = old.there
    return [
        _file_numbers(old),
        _document_numbers(old),
        _record_numbers(has_old),
        "CREATE TABLE access AS SELECT (row_number() OVER (ORDER BY tenant NULLS FIRST, roles, sensitivity) - 1)::INTEGER"
        " AS code, tenant, roles, sensitivity FROM ("
        + _all("documents", "tenant, roles, sensitivity", has_old, True)
        + ")"
        " ORDER BY code",
        _documents(old),
        _records(has_old),
        "CREATE TABLE fields AS SELECT n.number AS document_number, f.key, f.position, f.text, f.number, f.time, f.listed"
        " FROM (" + _fields(has_old) + ") f JOIN document_numbers n ON n.document_id = f.document_id"
        " ORDER BY f.key, n.number, f.position",
        "CREATE TABLE places AS SELECT n.number AS document_number, p.start, p.locator FROM ("
        + _places(has_old and old.places)
        + ") p JOIN document_numbers n ON n.document_id = p.document_id ORDER BY n.number, p.start",
        "CREATE TABLE copies AS SELECT n.number AS document_number, c.document_id, c.root, c.path, c.title, c.modified, c.year,"
        " c.location, f.number AS file_number FROM staged.copies c JOIN document_numbers n ON n.document_id = c.primary_id"
        " JOIN file_numbers f ON f.root = c.file_root AND f.path = c.file_path ORDER BY n.number, c.path, c.document_id",
        "CREATE TABLE former AS SELECT n.number AS document_number, s.path, s.former_id FROM staged.former s"
        " JOIN document_numbers n ON n.document_id = s.document_id ORDER BY n.number, s.path, s.former_id",
        _files_table(old),
        "CREATE TABLE collections AS SELECT (row_number() OVER (ORDER BY name) - 1)::INTEGER AS code, name, granularity,"
        " chunking FROM staged.collections WHERE name IN (SELECT collection FROM records) ORDER BY code",
        "CREATE TABLE roots AS SELECT root, whole, salt, options FROM staged.roots ORDER BY root",
    ]


def _files(old: Old) -> str:
    columns = ", ".join(FILE_COLUMNS)
    new = f"SELECT {columns} FROM staged.files"
    if not old.there:
        return new
    again = "EXISTS (SELECT 1 FROM staged.retried x WHERE x.root = f.root AND x.path = f.path)"
    columns = columns.replace("recipe", f"CASE WHEN {again} THEN '' ELSE recipe END AS recipe")
    columns = columns if old.file_access else columns.replace("access", "'' AS access")
    kept = (
        f"SELECT {columns} FROM old.files f WHERE NOT EXISTS"
        " (SELECT 1 FROM staged.dropped x WHERE x.root = f.root AND x.path = f.path)"
    )
    return f"{new} UNION ALL {kept}"


def _files_table(old: Old) -> str:
    """Documents and chunks of a file are those that are indexed under it: none for a copy, whose primary has them."""
    own = ", ".join(f"f.{column}" for column in FILE_COLUMNS if column not in ("documents", "chunks"))
    return (
        f"CREATE TABLE files AS SELECT n.number, {own}, coalesce(c.documents, 0)::INTEGER AS documents,"
        f" coalesce(c.chunks, 0)::INTEGER AS chunks FROM ({_files(old)}) f"
        " JOIN file_numbers n ON n.root = f.root AND n.path = f.path"
        " LEFT JOIN (SELECT d.file_number, count(*) AS documents, sum(coalesce(r.chunks, 0)) AS chunks FROM documents d"
        " LEFT JOIN (SELECT document_number, count(*) AS chunks FROM records GROUP BY document_number) r"
        " ON r.document_number = d.number GROUP BY d.file_number) c ON c.file_number = n.number ORDER BY n.number"
    )


def _all(table: str, columns: str, has_old: bool, distinct: bool = False) -> str:
    """Columns of a table, from the staging file and the documents carried over."""
    word = "SELECT DISTINCT" if distinct else "SELECT"
    new = f"{word} {columns} FROM staged.{table}"
    if not has_old:
        return new
    old = f"{word} {columns} FROM old.{table} WHERE number IN (SELECT number FROM kept)"
    return f"{new} {'UNION' if distinct else 'UNION ALL'} {old}"


def _file_numbers(old: Old) -> str:
    kept = "CREATE TEMP TABLE kept AS SELECT number, document_id FROM staged.carried; " if old.there else ""
    return (
        f"{kept}CREATE TEMP TABLE file_numbers AS SELECT (row_number() OVER (ORDER BY root, path) - 1)::INTEGER AS number,"
        f" root, path FROM ({_files(old)})"
    )


def _document_numbers(old: Old) -> str:
    source = (
        "SELECT document_id, path, NULL::INTEGER AS old_number FROM staged.documents"
        " WHERE document_id NOT IN (SELECT document_id FROM staged.copies)"
    )
    if old.there:
        path, copies = "d.path", ""
        if old.copies:
            path, copies = "coalesce(c.path, d.path)", " LEFT JOIN old.copies c ON c.document_id = k.document_id"
        source += (
            f" UNION ALL SELECT k.document_id, {path}, d.number FROM kept k"
            f" JOIN old.documents d ON d.number = k.number{copies}"
        )
    return (
        "CREATE TEMP TABLE document_numbers AS SELECT (row_number() OVER (ORDER BY path, document_id) - 1)::INTEGER"
        f" AS number, document_id, path, old_number FROM ({source})"
    )


def _record_numbers(has_old: bool) -> str:
    source = "SELECT document_id, chunk_id, start_line, NULL::INTEGER AS old_number FROM staged.records"
    if has_old:
        source += (
            " UNION ALL SELECT k.document_id, coalesce(l.chunk_id, r.chunk_id), r.start_line, r.number FROM old.records r"
            " JOIN kept k ON k.number = r.document_number LEFT JOIN staged.relabelled l ON l.number = r.number"
        )
    return (
        "CREATE TEMP TABLE record_numbers AS SELECT"
        " (row_number() OVER (ORDER BY n.path, r.start_line, r.chunk_id) - 1)::INTEGER AS number,"
        f" n.number AS document_number, r.chunk_id, r.old_number FROM ({source}) r"
        " JOIN document_numbers n ON n.document_id = r.document_id"
    )


_COPYS_OWN = ("root", "path", "title", "location", "modified", "year")


def _documents(old: Old) -> str:
    plain = [c for c in DOCUMENT_COLUMNS if c not in ("file_root", "file_path", "text")]
    access = "JOIN access a ON a.tenant IS NOT DISTINCT FROM d.tenant AND a.roles = d.roles AND a.sensitivity = d.sensitivity"
    listed, tail = ", ".join(f"d.{c}" for c in plain), "f.number AS file_number, a.code AS access, d.text"
    sql = (
        f"SELECT n.number, {listed}, {tail} FROM staged.documents d"
        " JOIN document_numbers n ON n.document_id = d.document_id AND n.old_number IS NULL"
        f" JOIN file_numbers f ON f.root = d.file_root AND f.path = d.file_path {access}"
    )
    if old.there:
        special, promoted, file = {"document_id": "n.document_id", "content": "''"}, "", "d.file_number"
        if old.copies:
            # A copy that takes the place of its primary brings what is its own.
            special = {c: f"CASE WHEN c.document_id IS NULL THEN d.{c} ELSE c.{c} END" for c in _COPYS_OWN}
            special |= {"document_id": "n.document_id", "digest": "coalesce(p.digest, d.digest)"}
            promoted = (
                " LEFT JOIN staged.promoted p ON p.document_id = n.document_id"
                " LEFT JOIN old.copies c ON c.document_id = p.document_id"
            )
            file = "coalesce(c.file_number, d.file_number)"
        listed = ", ".join(f"{special.get(c, f'd.{c}')} AS {c}" for c in plain)
        sql += (
            f" UNION ALL SELECT n.number, {listed}, {tail} FROM old.documents d"
            f" JOIN document_numbers n ON n.old_number = d.number{promoted}"
            f" JOIN old.files o ON o.number = {file}"
            f" JOIN file_numbers f ON f.root = o.root AND f.path = o.path {access}"
        )
    return f"CREATE TABLE documents AS SELECT * FROM ({sql}) ORDER BY number"


def _records(has_old: bool) -> str:
    listed = ", ".join(f"r.{c}" for c in RECORD_COLUMNS if c != "document_id")
    sql = (
        f"SELECT n.number, n.document_number, {listed} FROM staged.records r"
        " JOIN record_numbers n ON n.chunk_id = r.chunk_id AND n.old_number IS NULL"
    )
    if has_old:
        sql += (
            f" UNION ALL SELECT n.number, n.document_number, {listed.replace('r.chunk_id', 'n.chunk_id')} FROM old.records r"
            " JOIN record_numbers n ON n.old_number = r.number"
        )
    return f"CREATE TABLE records AS SELECT * FROM ({sql}) ORDER BY number"


def _fields(has_old: bool) -> str:
    new = "SELECT document_id, key, position, text, number, time, listed FROM staged.fields"
    if not has_old:
        return new
    return (
        f"{new} UNION ALL SELECT k.document_id, f.key, f.position, f.text, f.number, f.time, f.listed"
        " FROM old.fields f JOIN kept k ON k.number = f.document_number"
    )


def _places(has_old: bool) -> str:
    new = "SELECT document_id, start, locator FROM staged.places"
    if not has_old:
        return new
    return (
        f"{new} UNION ALL SELECT k.document_id, p.start, p.locator"
        " FROM old.places p JOIN kept k ON k.number = p.document_number"
    )


def vector_sources(has_old: bool) -> str:
    """Where the vector of each new record comes from: (number, source, row), ordered by number and part.

    Source 0 is a row of the old generation's vectors, 1 a row of the embedding journal; several rows with one number are
    averaged. `locations(hash, source, row)` says where the vector of a text is.
    """
    sql = (
        "SELECT n.number, l.source, l.row, p.position FROM record_numbers n"
        " JOIN staged.parts p ON p.chunk_id = n.chunk_id JOIN locations l ON l.hash = p.hash"
    )
    if has_old:  # else every record that is carried over was staged with its parts too
        sql += " WHERE n.old_number IS NULL"
        sql += " UNION ALL SELECT number, 0, old_number, 0 FROM record_numbers WHERE old_number IS NOT NULL"
    return f"SELECT number, source, row FROM ({sql}) ORDER BY number, position"
