"""Word search by others over the same chunks, as their own documentation shows them; indexes are built once and kept.

Each peer gets what its users would give it: stems, all words of the question, the best 100. Their tokens differ from
ours, so they rank other chunks; what is compared is time."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.figures import version
from bench.ground import Ground
from workbench.records import Progress

DEPTH = 100
K1, B = 0.9, 0.4

Search = Callable[[str], object]


def tantivy(ground: Ground) -> Search:
    """The Rust library that is closest to Lucene."""
    import tantivy as library

    def build(folder: Path) -> None:
        schema = library.SchemaBuilder()
        schema.add_text_field("text", stored=False, tokenizer_name="en_stem")
        schema.add_integer_field("number", stored=True)
        writer = library.Index(schema.build(), path=str(folder)).writer(200_000_000, 1)
        for number, text in enumerate(ground.texts()):
            writer.add_document(library.Document(text=text, number=number))
        writer.commit()
        writer.wait_merging_threads()

    index = library.Index.open(str(kept(ground, "tantivy", version("tantivy"), build)))
    index.reload()
    searcher = index.searcher()
    return lambda query: searcher.search(index.parse_query(query.lower(), ["text"]), DEPTH).hits


def bm25s(ground: Ground) -> Search:
    """With its numpy backend."""
    import bm25s as library
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def words(texts: list[str]) -> Any:
        return library.tokenize(texts, stopwords=None, stemmer=stemmer, show_progress=False)

    def build(folder: Path) -> None:
        made = library.BM25(method="lucene", k1=K1, b=B)
        made.index(words(list(ground.texts())), show_progress=False)
        made.save(str(folder), show_progress=False)

    index = library.BM25.load(str(kept(ground, "bm25s", version("bm25s"), build)), show_progress=False)
    depth = min(DEPTH, ground.records)
    return lambda query: index.retrieve(words([query]), k=depth, show_progress=False)


def fts5(ground: Ground) -> Search:
    """SQLite's, of this Python."""

    def build(folder: Path) -> None:
        with sqlite3.connect(folder / "words.db") as connection:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='porter unicode61')")
            rows = enumerate(ground.texts())
            connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)
            connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        connection.close()

    folder = kept(ground, "fts5", sqlite3.sqlite_version, build)
    connection = sqlite3.connect(f"file:{folder / 'words.db'}?mode=ro", uri=True)
    ground.closing.callback(connection.close)

    def search(query: str) -> object:
        match = " OR ".join(f'"{word}"' for word in query.split())
        sql = "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"
        return connection.execute(sql, [match, DEPTH]).fetchall()

    return search


def files(ground: Ground) -> Path:
    """The documents as files, for ripgrep."""

    def build(folder: Path) -> None:
        for number, text in enumerate(ground.documents()):
            inside = folder / f"{number // 500:03d}"
            inside.mkdir(exist_ok=True)
            (inside / f"{number:06d}.txt").write_text(text, encoding="utf-8", errors="replace")

    return kept(ground, "files", "1", build)


def kept(ground: Ground, name: str, release: str, build: Callable[[Path], None]) -> Path:
    """The folder that `build` filled for this release of a peer, now or in an earlier run."""
    folder, mark = ground.built.peers / name, ground.built.peers / f"{name}.json"
    if not (mark.is_file() and json.loads(mark.read_text(encoding="utf-8")) == release):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        ground.tell(Progress(f"index of {name}", 0, 1))
        build(folder)
        ground.tell(Progress(f"index of {name}", 1, 1))
        mark.write_text(json.dumps(release), encoding="utf-8")
    return folder


PEERS: dict[str, tuple[Callable[[Ground], Search], float, str]] = {
    f"tantivy {version('tantivy')}".strip(): (tantivy, 2.0, "pip install tantivy"),
    f"bm25s {version('bm25s')}".strip(): (bm25s, 0.25, "pip install bm25s PyStemmer"),
    f"SQLite FTS5 {sqlite3.sqlite_version}": (fts5, 0.25, "a Python whose SQLite has FTS5"),
}
"""How each is opened, the most that our median may be of its own, and how to get it."""
