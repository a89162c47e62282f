"""Word search by others over the same chunks, as their own documentation shows them; indexes are built once and kept.

Each peer gets what its users would give it: stems, all words of the question, the best 100. Their tokens differ from
ours, so they rank other chunks; what is compared is time.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.ground import Ground
from bench.machine import version
from workbench.records import Progress

DEPTH = 100
K1, B = 0.9, 0.4

Search = Callable[[str], object]


class PeerMissing(Exception):
    """A peer that is not installed here; the message says how to get it."""


def tantivy(ground: Ground) -> Search:
    """tantivy, the Rust library that is closest to Lucene. Raises PeerMissing."""
    try:
        import tantivy as library
    except ImportError as exc:
        raise PeerMissing("not installed: pip install tantivy") from exc

    def build(folder: Path) -> None:
        schema = library.SchemaBuilder()
        schema.add_text_field("text", stored=False, tokenizer_name="en_stem")
        schema.add_integer_field("number", stored=True)
        writer = library.Index(schema.build(), path=str(folder)).writer(200_000_000, 1)
        for number, text in enumerate(ground.texts()):
            writer.add_document(library.Document(text=text, number=number))
        writer.commit()
        writer.wait_merging_threads()

    index = library.Index.open(str(_kept(ground, "tantivy", version("tantivy"), build)))
    index.reload()
    searcher = index.searcher()

    def search(query: str) -> object:
        return searcher.search(index.parse_query(query.lower(), ["text"]), DEPTH).hits

    return search


def bm25s(ground: Ground) -> Search:
    """bm25s with its numpy backend. Raises PeerMissing."""
    try:
        import bm25s as library
        import Stemmer
    except ImportError as exc:
        raise PeerMissing("not installed: pip install bm25s PyStemmer") from exc
    stemmer = Stemmer.Stemmer("english")

    def words(texts: list[str]) -> Any:
        return library.tokenize(texts, stopwords=None, stemmer=stemmer, show_progress=False)

    def build(folder: Path) -> None:
        made = library.BM25(method="lucene", k1=K1, b=B)
        made.index(words(list(ground.texts())), show_progress=False)
        made.save(str(folder), show_progress=False)

    index = library.BM25.load(str(_kept(ground, "bm25s", version("bm25s"), build)), show_progress=False)
    depth = min(DEPTH, ground.records)

    def search(query: str) -> object:
        return index.retrieve(words([query]), k=depth, show_progress=False)

    return search


def fts5(ground: Ground) -> Search:
    """SQLite's FTS5 of this Python. Raises PeerMissing."""

    def build(folder: Path) -> None:
        with sqlite3.connect(folder / "words.db") as connection:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='porter unicode61')")
            rows = enumerate(ground.texts())
            connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)
            connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        connection.close()

    try:
        folder = _kept(ground, "fts5", sqlite3.sqlite_version, build)
    except sqlite3.OperationalError as exc:
        raise PeerMissing(f"this Python's SQLite lacks it ({exc})") from exc
    connection = sqlite3.connect(f"file:{folder / 'words.db'}?mode=ro", uri=True)
    ground.closing.callback(connection.close)

    def search(query: str) -> object:
        match = " OR ".join(f'"{word}"' for word in query.split())
        sql = "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"
        return connection.execute(sql, [match, DEPTH]).fetchall()

    return search


def _kept(ground: Ground, name: str, release: str, build: Callable[[Path], None]) -> Path:
    """The folder of a peer's index, built if that release of it has none yet."""
    folder, mark = ground.built.peers / name, ground.built.peers / f"{name}.json"
    if mark.is_file() and json.loads(mark.read_text(encoding="utf-8")) == release and folder.is_dir():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    mark.unlink(missing_ok=True)
    folder.mkdir(parents=True)
    ground.tell(Progress(f"index of {name}", 0, 1))
    build(folder)
    ground.tell(Progress(f"index of {name}", 1, 1))
    mark.write_text(json.dumps(release), encoding="utf-8")
    return folder
