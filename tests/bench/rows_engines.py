"""Word search by others over the same chunks, as their own documentation shows them; indexes are built once and kept.

Each peer gets what its users would give it: stems, all words of the question, the best 100. Their tokens differ from
ours, so they rank other chunks; what is compared is time."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.figures import Peer, Row, in_turn, version
from bench.ground import Ground
from workbench import settings
from workbench.records import Progress
from workbench.store.types import Scope
from workbench.store.vectors import GRAPH, MATRIX

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


# --- rows keyword ----------------------------------------------------------------------------------------------------


_PEERS: tuple[tuple[str, Callable[[Ground], Search], float], ...] = (
    (f"tantivy {version('tantivy')}".strip(), tantivy, 2.0),
    (f"bm25s {version('bm25s')}".strip(), bm25s, 0.25),
    (f"SQLite FTS5 {sqlite3.sqlite_version}", fts5, 0.25),
)
"""Name, how it is opened, and the goal: the most that our median may be of its own."""

_DUCKDB = "DuckDB's fts extension is no peer here: there is no build of it for DuckDB 2 on the package index"


def typed(ground: Ground) -> Row:
    queries = [q.typed for q in ground.questions]
    return _row(ground, "keyword.typed", "BM25, best 100, questions with stop words", queries)


def content(ground: Ground) -> Row:
    queries = [q.content for q in ground.questions]
    return _row(ground, "keyword.content", "BM25, best 100, the same without stop words", queries)


def _row(ground: Ground, key: str, title: str, queries: Sequence[str]) -> Row:
    lexical, everything = ground.engine.lexical, Scope()

    def ours(query: str) -> object:
        return lexical.search(query, everything, DEPTH, k1=K1, b=B, operator="any")

    contestants: dict[str, Callable[[str], object]] = {"ours": ours}
    missing: dict[str, str] = {}
    for name, opened, _ in _PEERS:
        try:
            contestants[name] = opened(ground)
        except PeerMissing as exc:
            missing[name] = str(exc)
    figures = in_turn(contestants, queries)
    return Row(
        key,
        title,
        "ms",
        figures["ours"],
        tuple(Peer(name, figures.get(name), at_most, missing.get(name, "")) for name, _, at_most in _PEERS),
        notes=(_DUCKDB,),
    )


# --- rows vectors ----------------------------------------------------------------------------------------------------


RECALL = 0.98
_WIDTHS = (100, 128, 160, 200, 256, 320, 400, 500, 640, 800, 1000, 1280, 1600, 2048, 3000, 4096)

Vector = NDArray[np.float32]


def exact(ground: Ground) -> Row:
    from usearch.index import MetricKind, search

    index, everything = ground.engine.vectors(""), Scope()
    folder = ground.folder / "vectors" / ground.engine.opened.encoder_key()
    matrix = np.asarray(np.load(folder / MATRIX, mmap_mode="r"))
    threads = int(settings.get("threads"))
    figures = in_turn(
        {
            "ours": lambda vector: index.search(vector, everything, DEPTH, exact="yes"),
            "usearch": lambda vector: search(matrix, vector, DEPTH, MetricKind.IP, exact=True, threads=threads),
        },
        ground.vectors,
    )
    name = f"usearch {version('usearch')} exact, {threads} threads"
    return Row(
        "vector.exact",
        f"exact nearest {DEPTH} of {len(matrix):,} x {matrix.shape[1]} float32",
        "ms",
        figures["ours"],
        (Peer(name, figures["usearch"], 1.0),),
    )


def graph(ground: Ground) -> Row:
    """The approximate nearest 100: recall is that of these questions, against the exact answer."""
    from usearch.index import Index

    index, everything = ground.engine.vectors(""), Scope()
    truth = [index.search(vector, everything, DEPTH, exact="yes").numbers for vector in ground.vectors]

    def ours(vector: Vector) -> NDArray[np.int64]:
        return index.search(vector, everything, DEPTH, exact="no").numbers

    path = ground.folder / "vectors" / ground.engine.opened.encoder_key() / GRAPH
    own = Index(ndim=index.identity.dim, metric="ip", dtype="bf16", enable_key_lookups=False)
    own.view(str(path))

    def theirs(vector: Vector) -> NDArray[np.int64]:
        return np.asarray(own.search(vector, DEPTH, threads=1).keys, np.int64)

    recall, width = 0.0, _WIDTHS[-1]
    for candidate in _WIDTHS:
        own.expansion_search = width = candidate
        recall = _recall([theirs(vector) for vector in ground.vectors], truth)
        if recall >= RECALL:
            break
    ours_recall = _recall([ours(vector) for vector in ground.vectors], truth)
    figures = in_turn({"ours": ours, "usearch": theirs}, ground.vectors)
    name = f"usearch {version('usearch')} Index.search, ef {width}"
    return Row(
        "vector.graph",
        f"approximate nearest {DEPTH} (HNSW), recall@{DEPTH} {ours_recall:.3f}",
        "ms",
        figures["ours"],
        (Peer(name, figures["usearch"], 1.5, f"the smallest width that reaches recall {RECALL}; it has {recall:.3f}"),),
        notes=() if ours_recall >= RECALL else (f"Recall is below the goal of {RECALL}",),
    )


def _recall(found: Sequence[NDArray[np.int64]], truth: Sequence[NDArray[np.int64]]) -> float:
    shares: list[Any] = [len(np.intersect1d(f, t)) / max(1, len(t)) for f, t in zip(found, truth, strict=True)]
    return float(np.mean(shares))


# --- rows grep -------------------------------------------------------------------------------------------------------


_PATTERNS = 30
_FILES_IN_FOLDER = 500
_NO_LITERALS = (
    r"[A-Z]{3}-[0-9]{6}", r"[0-9a-f]{32}", r"\d+\.\d+\.\d+\.\d+", r"^.{300}$", r"[^\x00-\x7f]{5}", r"\s{20}\S",
    r'"[^"]{80}"', r"\w+_\w+_\w+_\w+_\w+[a-c]", r"[a-z]+@[a-z]+\.[a-z]{2,4}", r"\b[A-Z]{2,}[0-9]{2,}\b",
)  # fmt: skip
_WITH_LITERALS = (r"{}\w+", r"\b{}[a-z]*\W", r"{}.{{0,30}}[0-9]", r"[A-Za-z_]+{}")


def rare(ground: Ground) -> Row:
    words = ground.words(2, 20, _PATTERNS)
    return _beside_ripgrep(ground, "grep.rare", "a literal in 2 to 20 chunks", words, 0.25)


def frequent(ground: Ground) -> Row:
    """Words that at least one chunk in a hundred holds."""
    words = ground.words(ground.records // 100, ground.records, _PATTERNS)
    return _beside_ripgrep(ground, "grep.frequent", "a literal in 1 % of the chunks or more", words, 0.25)


def regex(ground: Ground) -> Row:
    words = ground.words(10, max(20, ground.records // 1000), _PATTERNS)
    patterns = [_WITH_LITERALS[n % len(_WITH_LITERALS)].format(re.escape(word)) for n, word in enumerate(words)]
    return _beside_ripgrep(ground, "grep.regex", "a regular expression with a literal", patterns, 1.0, regular=True)


def scan(ground: Ground) -> Row:
    """Regular expressions without any text that must occur: every line is looked at."""
    title = "a regular expression without literals"
    return _beside_ripgrep(ground, "grep.scan", title, _NO_LITERALS, 1.0, regular=True, rounds=5)


def _beside_ripgrep(
    ground: Ground,
    key: str,
    title: str,
    patterns: Sequence[str],
    at_most: float,
    *,
    regular: bool = False,
    rounds: int = 2,
) -> Row:
    grep, everything = ground.engine.grep, Scope()

    def ours(pattern: str) -> object:
        return grep.search([pattern], everything, DEPTH, regex=regular, case="smart", word=False, context=10)

    contestants: dict[str, Callable[[str], object]] = {"ours": ours}
    program = shutil.which("rg")
    name, note = "ripgrep", "not installed: apt-get install ripgrep, or cargo install ripgrep"
    if program is not None:
        folder = _files(ground)
        command = [program, "--no-config", "-c", "-S", *([] if regular else ["-F"])]

        def theirs(pattern: str) -> object:
            return subprocess.run([*command, "-e", pattern, str(folder)], capture_output=True, check=False)

        contestants["ripgrep"] = theirs
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
        name, note = " ".join(said.split()[:2]) or name, ""
    figures = in_turn(contestants, patterns, rounds, warm=3)
    return Row(
        key,
        f"{title} ({len(patterns)} of them)",
        "ms",
        figures["ours"],
        (Peer(name, figures.get("ripgrep"), at_most, note),),
    )


def _files(ground: Ground) -> Path:
    folder, mark = ground.built.peers / "files", ground.built.peers / "files.written"
    if not mark.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        ground.tell(Progress("files for ripgrep", 0, 1))
        for number, text in enumerate(ground.documents()):
            inside = folder / f"{number // _FILES_IN_FOLDER:03d}"
            inside.mkdir(parents=True, exist_ok=True)
            (inside / f"{number:06d}.txt").write_text(text, encoding="utf-8", errors="replace")
        ground.tell(Progress("files for ripgrep", 1, 1))
        mark.touch()
    return folder
