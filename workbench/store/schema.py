"""The tables of a generation, and the SQL that makes a new one from the old one and what a run staged.

`corpus.duckdb` is the record: everything else in a generation can be made from it. A new generation is never an altered copy
of the old one: its tables are written whole, sorted by number, from the old file attached read-only and the staging file.
(Appending to a copy grew the file by half over fifteen small changes.) Sorted tables also make range look-ups by number touch
few blocks.

Tables beside `documents` and `records`: `former` (paths and ids under which a document's text was there before, by which
judgments are found again), `files` (every file seen, also skipped and failed ones), `fields` (front matter, one row a value,
for filters), `places` (where a text is in its original), `access` (distinct combinations of tenant, roles and sensitivity),
`collections`, `roots`; and what the word index builds.
"""

from __future__ import annotations

from pathlib import Path


def _columns(declared: str) -> dict[str, str]:
    """Name -> SQL type, in order."""
    return dict(column.split() for column in declared.split(","))


DOCUMENT_COLUMNS = _columns(
    "document_id VARCHAR, root VARCHAR, path VARCHAR, title VARCHAR, type VARCHAR, url VARCHAR, language VARCHAR,"
    " tenant VARCHAR, roles VARCHAR[], sensitivity VARCHAR, modified TIMESTAMP, size BIGINT, sha256 VARCHAR,"
    " characters INTEGER, lines INTEGER, page_starts INTEGER[], metadata VARCHAR, location VARCHAR, year INTEGER,"
    " digest VARCHAR, file_root VARCHAR, file_path VARCHAR, text VARCHAR"
)
"""A document as staged; tenant, modified and year may be NULL. `location` is the absolute path of the file that is this document,
"" for one of several records of a file; `digest` names what is indexed of it and its access; `file_root` and `file_path` name its
row of `files`."""

RECORD_COLUMNS = _columns(
    "document_id VARCHAR, chunk_id VARCHAR, collection VARCHAR, granularity VARCHAR, kind VARCHAR, chunk_index INTEGER,"
    " start_char INTEGER, end_char INTEGER, start_line INTEGER, end_line INTEGER, page INTEGER, section VARCHAR,"
    " context VARCHAR, text VARCHAR, text_hash VARCHAR, text_key UBIGINT, tokens INTEGER"
)
"""A record as staged: a chunk, or a whole document; page may be NULL. `text_hash` is hex blake2b-16 of what is embedded (context
and text); `text_key` the first 8 bytes of the blake2b of the text alone, for finding equal texts."""

FIELD_COLUMNS = _columns(
    "document_id VARCHAR, key VARCHAR, position INTEGER, text VARCHAR, number DOUBLE, time TIMESTAMP, listed BOOLEAN"
)
"""One value of front matter: nested keys joined by dots, lists one row an element with `listed`."""

FILE_COLUMNS = _columns(
    "root VARCHAR, path VARCHAR, size BIGINT, modified_ns BIGINT, sha256 VARCHAR, recipe VARCHAR, collections VARCHAR[],"
    " status VARCHAR, reason VARCHAR, remedy VARCHAR, documents INTEGER, chunks INTEGER, access VARCHAR"
)
"""One file seen: `recipe` is a digest of all that shaped its outcome beside its bytes; `access` is JSON of the tenant, roles and
sensitivity that rules and flags gave to it, "" where they are not known."""

PLACE_COLUMNS = _columns("document_id VARCHAR, start INTEGER, locator VARCHAR")
"""From which character on a document's text is at which place of the original (sheet and row, slide, cell, ...)."""

STAGED = {
    "documents": DOCUMENT_COLUMNS,
    "records": RECORD_COLUMNS,
    "fields": FIELD_COLUMNS,
    "places": PLACE_COLUMNS,
    "files": FILE_COLUMNS,
    "parts": _columns("chunk_id VARCHAR, position INTEGER, hash VARCHAR"),
    "texts": _columns("hash VARCHAR, tokens INTEGER, text VARCHAR"),
    "dropped": _columns("root VARCHAR, path VARCHAR"),
    "roots": _columns("root VARCHAR, whole BOOLEAN, salt VARCHAR, options VARCHAR"),
    "collections": _columns("name VARCHAR, granularity VARCHAR, chunking VARCHAR"),
}
"""Tables of the staging file. `parts`: what a record's vector is made of, one text for a chunk, the document's chunks for a whole
document. `texts`: what may have to be embedded, the same text perhaps more than once. `dropped`: the files of the old
generation whose documents are not carried over."""

CUT_RECORDS = "SELECT number FROM records WHERE granularity = 'chunk' AND tokens > ? ORDER BY number"
"""Chunks of which an encoder that reads so many tokens embeds only the beginning."""


def created(table: str, columns: dict[str, str]) -> str:
    """The statement that makes an empty table."""
    return f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})"


def _without(columns: dict[str, str], *names: str) -> dict[str, str]:
    return {name: kind for name, kind in columns.items() if name not in names}


_OF_DOCUMENT = {"document_number": "INTEGER"}
_EMPTY_OLD = {
    "documents": {
        "number": "INTEGER",
        **_without(DOCUMENT_COLUMNS, "file_root", "file_path"),
        "file_number": "INTEGER",
    },
    "records": {"number": "INTEGER", **_OF_DOCUMENT, **_without(RECORD_COLUMNS, "document_id")},
    "fields": {**_OF_DOCUMENT, **_without(FIELD_COLUMNS, "document_id")},
    "places": {**_OF_DOCUMENT, **_without(PLACE_COLUMNS, "document_id")},
    "former": {**_OF_DOCUMENT, **_columns("path VARCHAR, former_id VARCHAR")},
    "files": {"number": "INTEGER", **FILE_COLUMNS},
}


def attach(name: str, path: Path | None) -> list[str]:
    """The statements that attach a database read-only; None as `old`: a generation that holds nothing."""
    if path is not None:
        quoted = str(path).replace("'", "''")  # ATTACH takes no parameter
        return [f"ATTACH '{quoted}' AS {name} (READ_ONLY)"]
    return [f"ATTACH ':memory:' AS {name}", *(created(f"{name}.{t}", columns) for t, columns in _EMPTY_OLD.items())]


CARRIED = """SELECT d.number, d.document_id, d.path FROM old.documents d JOIN old.files f ON f.number = d.file_number
    WHERE NOT EXISTS (SELECT 1 FROM {dropped} x WHERE x.root = f.root AND x.path = f.path)"""
"""Old documents that are carried over: those of files that are not in the table `dropped`."""


def build_tables() -> list[str]:
    """The statements that fill a new generation, in order; `old` and `staged` are attached.

    Documents are numbered by (path, document id), records by (path, start line, chunk id); text compares by its UTF-8 bytes,
    which is code-point order. Temporary tables hold only keys and numbers, so the texts are moved once and the sort of them
    may spill to disk. A document's `content` is the digest of its text, by which texts that are there several times are known.
    `former` has the paths and ids under which the text of a document was there before and is no more: a file was moved.
    """
    document = ", ".join(f"d.{name}" for name in _without(DOCUMENT_COLUMNS, "file_root", "file_path", "text"))
    document += ", md5(d.text) AS content, f.number AS file_number, a.code AS access, d.text"
    access = (
        "access a ON a.tenant IS NOT DISTINCT FROM d.tenant AND a.roles = d.roles AND a.sensitivity = d.sensitivity"
    )
    record = ", ".join(f"r.{name}" for name in _without(RECORD_COLUMNS, "document_id"))
    own = ", ".join(f"f.{name}" for name in _without(FILE_COLUMNS, "documents", "chunks"))
    every_file = ", ".join(FILE_COLUMNS)
    files = f"""(SELECT {every_file} FROM staged.files UNION ALL SELECT {every_file} FROM old.files f
        WHERE NOT EXISTS (SELECT 1 FROM staged.dropped x WHERE x.root = f.root AND x.path = f.path))"""
    return [
        f"CREATE TEMP TABLE kept AS {CARRIED.format(dropped='staged.dropped')}",
        f"""CREATE TEMP TABLE file_numbers AS
            SELECT (row_number() OVER (ORDER BY root, path) - 1)::INTEGER AS number, root, path FROM {files}""",
        """CREATE TEMP TABLE document_numbers AS
            SELECT (row_number() OVER (ORDER BY path, document_id) - 1)::INTEGER AS number, * FROM (
            SELECT document_id, path, NULL::INTEGER AS old_number FROM staged.documents
            UNION ALL SELECT document_id, path, number FROM kept)""",
        """CREATE TEMP TABLE record_numbers AS
            SELECT (row_number() OVER (ORDER BY n.path, r.start_line, r.chunk_id) - 1)::INTEGER AS number,
            n.number AS document_number, r.chunk_id, r.old_number FROM (
            SELECT document_id, chunk_id, start_line, NULL::INTEGER AS old_number FROM staged.records
            UNION ALL SELECT k.document_id, r.chunk_id, r.start_line, r.number
            FROM old.records r JOIN kept k ON k.number = r.document_number
            ) r JOIN document_numbers n ON n.document_id = r.document_id""",
        """CREATE TABLE access AS
            SELECT (row_number() OVER (ORDER BY tenant NULLS FIRST, roles, sensitivity) - 1)::INTEGER AS code, * FROM (
            SELECT tenant, roles, sensitivity FROM staged.documents
            UNION SELECT tenant, roles, sensitivity FROM old.documents WHERE number IN (SELECT number FROM kept)
            ) ORDER BY code""",
        f"""CREATE TABLE documents AS SELECT * FROM (
            SELECT n.number, {document} FROM staged.documents d
            JOIN document_numbers n ON n.document_id = d.document_id AND n.old_number IS NULL
            JOIN file_numbers f ON f.root = d.file_root AND f.path = d.file_path JOIN {access}
            UNION ALL SELECT n.number, {document} FROM old.documents d
            JOIN document_numbers n ON n.old_number = d.number JOIN old.files o ON o.number = d.file_number
            JOIN file_numbers f ON f.root = o.root AND f.path = o.path JOIN {access}
            ) ORDER BY number""",
        f"""CREATE TABLE records AS SELECT * FROM (
            SELECT n.number, n.document_number, {record} FROM staged.records r
            JOIN record_numbers n ON n.chunk_id = r.chunk_id AND n.old_number IS NULL
            UNION ALL SELECT n.number, n.document_number, {record} FROM old.records r
            JOIN record_numbers n ON n.old_number = r.number
            ) ORDER BY number""",
        _of_documents("fields", FIELD_COLUMNS, "key, document_number, position"),
        _of_documents("places", PLACE_COLUMNS, "document_number, start"),
        """CREATE TABLE former AS WITH held AS (
            SELECT document_id, path, md5(text) AS content FROM old.documents
            WHERE number NOT IN (SELECT number FROM kept)
            UNION ALL SELECT f.former_id, f.path, md5(d.text) FROM old.former f
            JOIN old.documents d ON d.number = f.document_number
            ), here AS (SELECT content, min(number) AS number FROM documents WHERE text <> '' GROUP BY content)
            SELECT DISTINCT here.number AS document_number, held.path, held.document_id AS former_id
            FROM held JOIN here USING (content)
            WHERE held.document_id NOT IN (SELECT document_id FROM document_numbers) ORDER BY ALL""",
        f"""CREATE TABLE files AS SELECT n.number, {own}, coalesce(c.documents, 0)::INTEGER AS documents,
            coalesce(c.chunks, 0)::INTEGER AS chunks FROM {files} f
            JOIN file_numbers n ON n.root = f.root AND n.path = f.path LEFT JOIN (
            SELECT d.file_number, count(*) AS documents, sum(coalesce(r.chunks, 0)) AS chunks FROM documents d
            LEFT JOIN (SELECT document_number, count(*) AS chunks FROM records GROUP BY document_number) r
            ON r.document_number = d.number GROUP BY d.file_number
            ) c ON c.file_number = n.number ORDER BY n.number""",
        """CREATE TABLE collections AS
            SELECT (row_number() OVER (ORDER BY name) - 1)::INTEGER AS code, name, granularity, chunking
            FROM staged.collections WHERE name IN (SELECT collection FROM records) ORDER BY code""",
        "CREATE TABLE roots AS SELECT root, whole, salt, options FROM staged.roots ORDER BY root",
    ]


def _of_documents(table: str, columns: dict[str, str], order: str) -> str:
    """A table of documents' values, staged and carried over."""
    names = list(_without(columns, "document_id"))
    rest, own = ", ".join(names), ", ".join(f"t.{name}" for name in names)
    return f"""CREATE TABLE {table} AS SELECT * FROM (
        SELECT n.number AS document_number, {own} FROM (
        SELECT document_id, {rest} FROM staged.{table}
        UNION ALL SELECT k.document_id, {own} FROM old.{table} t JOIN kept k ON k.number = t.document_number
        ) t JOIN document_numbers n ON n.document_id = t.document_id) ORDER BY {order}"""


def vector_sources(old: bool) -> str:
    """Where the vector of each new record comes from: (number, source, row), ordered by number and part.

    Source 0 is a row of the old generation's vectors, 1 a row of the embedding journal; several rows with one number are
    averaged. `locations(hash, source, row)` says where the vector of a text is.
    """
    sql = (
        "SELECT n.number, l.source, l.row, p.position FROM record_numbers n"
        " JOIN staged.parts p ON p.chunk_id = n.chunk_id JOIN locations l ON l.hash = p.hash"
    )
    if old:  # else every record that is carried over was staged with its parts too
        sql += " WHERE n.old_number IS NULL"
        sql += " UNION ALL SELECT number, 0, old_number, 0 FROM record_numbers WHERE old_number IS NOT NULL"
    return f"SELECT number, source, row FROM ({sql}) ORDER BY number, position"
