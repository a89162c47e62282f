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

STAGED = {
    "documents": (
        "document_id VARCHAR, root VARCHAR, path VARCHAR, title VARCHAR, type VARCHAR, url VARCHAR, language VARCHAR,"
        " tenant VARCHAR, roles VARCHAR[], sensitivity VARCHAR, modified TIMESTAMP, size BIGINT, sha256 VARCHAR,"
        " characters INTEGER, lines INTEGER, page_starts INTEGER[], metadata VARCHAR, location VARCHAR, year INTEGER,"
        " digest VARCHAR, file_root VARCHAR, file_path VARCHAR, text VARCHAR"
    ),
    "records": (
        "document_id VARCHAR, chunk_id VARCHAR, collection VARCHAR, granularity VARCHAR, kind VARCHAR, chunk_index INTEGER,"
        " start_char INTEGER, end_char INTEGER, start_line INTEGER, end_line INTEGER, page INTEGER, section VARCHAR,"
        " context VARCHAR, text VARCHAR, text_hash VARCHAR, text_key UBIGINT, tokens INTEGER"
    ),
    "fields": (
        "document_id VARCHAR, key VARCHAR, position INTEGER, text VARCHAR, number DOUBLE, time TIMESTAMP, listed BOOLEAN"
    ),
    "files": (
        "root VARCHAR, path VARCHAR, size BIGINT, modified_ns BIGINT, sha256 VARCHAR, recipe VARCHAR, collections VARCHAR[],"
        " status VARCHAR, reason VARCHAR, remedy VARCHAR, documents INTEGER, chunks INTEGER, access VARCHAR"
    ),
    "places": "document_id VARCHAR, start INTEGER, locator VARCHAR",
    "parts": "chunk_id VARCHAR, position INTEGER, hash VARCHAR",
    "texts": "hash VARCHAR, tokens INTEGER, text VARCHAR",
    "dropped": "root VARCHAR, path VARCHAR",
    "roots": "root VARCHAR, whole BOOLEAN, salt VARCHAR, options VARCHAR",
    "collections": "name VARCHAR, granularity VARCHAR, chunking VARCHAR",
}
"""Tables of the staging file and their columns.

* `documents`: tenant, modified and year may be NULL. `location` is the absolute path of the file that is this document, "" for
  one of several records of a file; `digest` names what is indexed of it and its access; `file_root`, `file_path` name its file.
* `records`: chunks and whole documents; page may be NULL. `text_hash` is hex blake2b-16 of what is embedded (context and text),
  `text_key` the first 8 bytes of the blake2b of the text alone, for finding equal texts.
* `fields`: values of front matter; nested keys joined by dots, lists one row an element with `listed`.
* `files`: files seen. `recipe` is a digest of all that shaped a file's outcome beside its bytes; `access` is JSON of the tenant,
  roles and sensitivity that rules and flags gave to it, "" where they are not known.
* `places`: from which character on a document's text is at which place of the original (sheet and row, slide, cell, ...).
* `parts`: what a record's vector is made of, one text for a chunk, the document's chunks for a whole document; `texts`: what may
  have to be embedded, the same text perhaps more than once.
* `dropped`: the files of the old generation whose documents are not carried over.
"""

CUT_RECORDS = "SELECT number FROM records WHERE granularity = 'chunk' AND tokens > ? ORDER BY number"
"""Chunks of which an encoder that reads so many tokens embeds only the beginning."""

FILES = """(SELECT * REPLACE (coalesce(access, '') AS access)
    FROM (SELECT '' AS access WHERE false UNION ALL BY NAME SELECT * FROM files))"""
"""The files of a generation of any format: the first corpora did not say who may see a file without a document."""

CARRIED = """SELECT d.number, d.document_id FROM old.documents d JOIN old.files f ON f.number = d.file_number
    WHERE NOT EXISTS (SELECT 1 FROM {dropped} x WHERE x.root = f.root AND x.path = f.path)"""
"""Old documents that are carried over: those of files that are not in the table `dropped`."""


def attach(name: str, path: Path) -> str:
    quoted = str(path).replace("'", "''")  # ATTACH takes no parameter
    return f"ATTACH '{quoted}' AS {name} (READ_ONLY)"


def _every(old: bool) -> list[str]:
    halves = {
        "documents": """SELECT d.* EXCLUDE (number, content, file_number, access), o.root AS file_root, o.path AS file_path
            FROM old.documents d JOIN kept k USING (number) JOIN old.files o ON o.number = d.file_number""",
        "records": """SELECT k.document_id, r.number AS old_number, r.* EXCLUDE (number, document_number)
            FROM old.records r JOIN kept k ON k.number = r.document_number""",
        "files": """SELECT * EXCLUDE (number) FROM old.files f
            WHERE NOT EXISTS (SELECT 1 FROM staged.dropped x WHERE x.root = f.root AND x.path = f.path)""",
    }
    for table in ("fields", "places"):
        halves[table] = f"""SELECT k.document_id, t.* EXCLUDE (document_number)
            FROM old.{table} t JOIN kept k ON k.number = t.document_number"""
    return [
        f"CREATE TEMP VIEW every_{table[:-1]} AS SELECT *{', NULL::INTEGER AS old_number' if table == 'records' else ''}"
        f" FROM staged.{table}{f' UNION ALL BY NAME {half}' if old else ''}"
        for table, half in halves.items()
    ]


def build_tables(old: bool) -> list[str]:
    """The statements that fill a new generation, in order; `staged` is attached, and `old` if there is one.

    Documents are numbered by (path, document id), records by (path, start line, chunk id); text compares by its UTF-8 bytes,
    which is code-point order. Temporary tables hold only keys and numbers, so the texts are moved once and the sort of them
    may spill to disk. A document's `content` is the digest of its text, by which texts that are there several times are known.
    `former` has the paths and ids under which the text of a document was there before and is no more: a file was moved.
    """
    former = """CREATE TABLE former AS WITH held AS (
        SELECT document_id, path, md5(text) AS content FROM old.documents WHERE number NOT IN (SELECT number FROM kept)
        UNION ALL SELECT f.former_id, f.path, md5(d.text) FROM old.former f
        JOIN old.documents d ON d.number = f.document_number
        ), here AS (SELECT content, min(number) AS number FROM documents WHERE text <> '' GROUP BY content)
        SELECT DISTINCT here.number AS document_number, held.path, held.document_id AS former_id
        FROM held JOIN here USING (content)
        WHERE held.document_id NOT IN (SELECT document_id FROM document_numbers) ORDER BY ALL"""
    return [
        *([f"CREATE TEMP TABLE kept AS {CARRIED.format(dropped='staged.dropped')}"] if old else []),
        *_every(old),
        """CREATE TEMP TABLE file_numbers AS
            SELECT (row_number() OVER (ORDER BY root, path) - 1)::INTEGER AS number, root, path FROM every_file""",
        """CREATE TEMP TABLE document_numbers AS
            SELECT (row_number() OVER (ORDER BY path, document_id) - 1)::INTEGER AS number, document_id, path
            FROM every_document""",
        """CREATE TEMP TABLE record_numbers AS
            SELECT (row_number() OVER (ORDER BY n.path, r.start_line, r.chunk_id) - 1)::INTEGER AS number,
            n.number AS document_number, r.chunk_id, r.old_number
            FROM every_record r JOIN document_numbers n USING (document_id)""",
        """CREATE TABLE access AS
            SELECT (row_number() OVER (ORDER BY tenant NULLS FIRST, roles, sensitivity) - 1)::INTEGER AS code, *
            FROM (SELECT DISTINCT tenant, roles, sensitivity FROM every_document) ORDER BY code""",
        """CREATE TABLE documents AS
            SELECT n.number, d.* EXCLUDE (file_root, file_path, text), md5(d.text) AS content, f.number AS file_number,
            a.code AS access, d.text FROM every_document d JOIN document_numbers n USING (document_id)
            JOIN file_numbers f ON f.root = d.file_root AND f.path = d.file_path
            JOIN access a ON a.tenant IS NOT DISTINCT FROM d.tenant AND a.roles = d.roles AND a.sensitivity = d.sensitivity
            ORDER BY number""",
        """CREATE TABLE records AS SELECT n.number, n.document_number, r.* EXCLUDE (document_id, old_number)
            FROM every_record r JOIN record_numbers n USING (chunk_id) ORDER BY number""",
        """CREATE TABLE fields AS SELECT n.number AS document_number, t.* EXCLUDE (document_id)
            FROM every_field t JOIN document_numbers n USING (document_id) ORDER BY key, document_number, position""",
        """CREATE TABLE places AS SELECT n.number AS document_number, t.* EXCLUDE (document_id)
            FROM every_place t JOIN document_numbers n USING (document_id) ORDER BY document_number, start""",
        former if old else "CREATE TABLE former (document_number INTEGER, path VARCHAR, former_id VARCHAR)",
        """CREATE TABLE files AS WITH counts AS (
            SELECT d.file_number AS number, count(DISTINCT d.number)::INTEGER AS documents, count(r.number)::INTEGER AS chunks
            FROM documents d LEFT JOIN records r ON r.document_number = d.number GROUP BY d.file_number)
            SELECT n.number, f.* REPLACE (coalesce(c.documents, 0) AS documents, coalesce(c.chunks, 0) AS chunks,
            coalesce(f.access, '') AS access)
            FROM every_file f JOIN file_numbers n USING (root, path) LEFT JOIN counts c USING (number) ORDER BY n.number""",
        """CREATE TABLE collections AS
            SELECT (row_number() OVER (ORDER BY name) - 1)::INTEGER AS code, name, granularity, chunking
            FROM staged.collections WHERE name IN (SELECT collection FROM records) ORDER BY code""",
        "CREATE TABLE roots AS SELECT root, whole, salt, options FROM staged.roots ORDER BY root",
    ]


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
