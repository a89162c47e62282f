"""Whole systems that hold texts and vectors and answer hybrid searches, each as its own documentation shows it, behind one face.

`python -m bench.adapters NAME FOLDER DATA build|serve` is run by `bench.systems` with the interpreter that has the system,
so this file imports nothing of ours but in `Workbench`. DATA is a folder with `texts.json`, `paths.json`, `vectors.npy`,
`order.npy` (in which order to insert), `queries.json` and `queries.npy`. Each system is used with its own defaults and fusion;
where it has none, the form that its documentation gives: reciprocal ranks with k 60 over the best 100 of each side.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

READ, DEPTH, RRF = 10, 100, 60
Found = list[tuple[int, float, str]]
"""Number, score and text of each result, best first."""


class System(Protocol):
    """A system on a folder: made where `index` is called first, else opened."""

    def __init__(self, folder: Path) -> None: ...
    def index(self, numbers: list[int], texts: list[str], vectors: Any) -> None: ...
    def open(self) -> None: ...
    def search(self, text: str, vector: Any) -> Found: ...


def parts(*columns: Any, size: int = 5000) -> Any:
    """Columns in parts of some thousand rows."""
    for start in range(0, len(columns[0]), size):
        yield [column[start : start + size] for column in columns]


def fused(*lists: list[int]) -> list[tuple[int, float]]:
    """Reciprocal ranks, best ten; ties by number."""
    scores: dict[int, float] = {}
    for found in lists:
        for rank, number in enumerate(found, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (RRF + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:READ]


class Workbench:
    """Preset `default`: BM25 and vectors in a convex mix."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def index(self, numbers: list[int], texts: list[str], vectors: Any) -> None:
        from bench.corpora import MODEL, GivenDocument, build_given
        from workbench.encode.load import identity_of

        paths = json.loads((data / "paths.json").read_text())
        documents: dict[str, list[int]] = {}
        for place, number in enumerate(numbers):
            documents.setdefault(paths[number], []).append(place)
        given = (
            GivenDocument(path, tuple(texts[n] for n in own), vectors[own])
            for path, own in ((p, sorted(o, key=lambda n: numbers[n])) for p, o in documents.items())
        )
        build_given(self.folder / "corpus", "/", given, identity_of(MODEL), lambda _: None)

    def open(self) -> None:
        from workbench.corpus import open_corpus

        self.corpus = open_corpus(self.folder / "corpus")
        self.corpus.engine.opened.open_all()
        first: dict[str, int] = {}
        for number, path in enumerate(json.loads((data / "paths.json").read_text())):
            first.setdefault(path, number)
        self.first = first

    def search(self, text: str, vector: Any) -> Found:
        vector.flags.writeable = False
        self.corpus.engine._embedded["", text] = vector  # the vector is given, as it is to the others
        hits = self.corpus.search(text, bypass_cache=True).hits
        return [(self.first[hit.path] + hit.chunk_index, hit.score, hit.text) for hit in hits]


class LanceDB:
    """Its full-text index and vectors; RRF is its default for hybrid queries."""

    def __init__(self, folder: Path) -> None:
        import lancedb

        self.db = lancedb.connect(folder / "lance")

    def index(self, numbers: list[int], texts: list[str], vectors: Any) -> None:
        import pyarrow as pa

        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
        table = pa.table({"number": numbers, "text": texts, "vector": column})
        self.db.create_table("texts", table).create_fts_index("text")

    def open(self) -> None:
        self.table = self.db.open_table("texts")

    def search(self, text: str, vector: Any) -> Found:
        rows = self.table.search(query_type="hybrid").vector(vector).text(text).limit(READ).to_list()
        return [(row["number"], row["_relevance_score"], row["text"]) for row in rows]


class Chroma:
    """Vectors alone: hybrid search is its cloud's."""

    def __init__(self, folder: Path) -> None:
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        self.client = chromadb.PersistentClient(str(folder / "chroma"), settings=settings)

    def index(self, numbers: list[int], texts: list[str], vectors: Any) -> None:
        collection = self.client.create_collection("texts", embedding_function=None)
        for some in parts(numbers, texts, vectors):
            collection.add(ids=[str(n) for n in some[0]], documents=some[1], embeddings=some[2])

    def open(self) -> None:
        self.collection = self.client.get_collection("texts", embedding_function=None)

    def search(self, text: str, vector: Any) -> Found:
        found = self.collection.query(query_embeddings=[vector], n_results=READ, include=["documents", "distances"])
        rows = zip(found["ids"][0], found["distances"][0], found["documents"][0], strict=True)
        return [(int(number), -distance, said) for number, distance, said in rows]


class Qdrant:
    """Local mode: dense and sparse vectors and its RRF. The sparse ones are made here as its `Qdrant/bm25` makes them."""

    def __init__(self, folder: Path) -> None:
        from qdrant_client import QdrantClient

        self.client = QdrantClient(path=str(folder / "qdrant"))

    def index(self, numbers: list[int], texts: list[str], vectors: Any) -> None:
        from qdrant_client import models

        self.client.create_collection(
            "texts",
            vectors_config={"dense": models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)},
            sparse_vectors_config={"words": models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
        for some in parts(numbers, texts, vectors, size=1000):
            points = [
                models.PointStruct(id=n, vector={"dense": v, "words": sparse(t, True)}, payload={"text": t})
                for n, t, v in zip(some[0], some[1], some[2].tolist(), strict=True)
            ]
            self.client.upsert("texts", points)

    def open(self) -> None:
        self.client.get_collection("texts")

    def search(self, text: str, vector: Any) -> Found:
        from qdrant_client import models

        found = self.client.query_points(
            "texts",
            prefetch=[
                models.Prefetch(query=vector.tolist(), using="dense", limit=DEPTH),
                models.Prefetch(query=sparse(text, False), using="words", limit=DEPTH),
            ],
            query=models.FusionQuery(fusion=models.Fusion.RRF),
            limit=READ,
        )
        return [(point.id, point.score, point.payload["text"]) for point in found.points]


def stems(text: str) -> list[str]:
    import bm25s

    return bm25s.tokenize([text], stopwords="en", stemmer=stemmer(), return_ids=False, show_progress=False)[0]


@cache
def stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


def sparse(text: str, document: bool) -> Any:
    """Term weights with k 1.2, b 0.75 and a mean length of 256, by hash; 1 for each word of a query."""
    from zlib import crc32

    from qdrant_client import models

    words = stems(text)
    counts = {word: words.count(word) for word in words}
    room = 1.2 * (1 - 0.75 + 0.75 * len(words) / 256)
    weights = {crc32(w.encode()): n * 2.2 / (n + room) if document else 1.0 for w, n in counts.items()}
    return models.SparseVector(indices=list(weights), values=list(weights.values()))


class Txtai:
    """Its `hybrid` index with contents, given vectors: a convex mix of scaled scores."""

    def __init__(self, folder: Path) -> None:
        os.environ["ALLOW_RESOLVE_TRANSFORM"] = "True"  # it asks for this before it calls a function of ours
        from txtai import Embeddings

        self.folder, self.next = folder / "txtai", np.zeros((0, 0))
        self.transform = lambda texts: self.given(texts)  # it must be a function
        self.embeddings = Embeddings(
            {"method": "external", "transform": self.transform, "hybrid": True, "content": True}
        )

    def given(self, texts: list[str]) -> Any:
        taken, self.next = self.next[: len(texts)], self.next[len(texts) :]
        return taken

    def index(self, numbers: list[int], texts: list[str], vectors: Any) -> None:
        self.next = vectors
        self.embeddings.index(zip(numbers, texts, strict=True))
        self.embeddings.save(str(self.folder))

    def open(self) -> None:
        self.embeddings.load(str(self.folder), config={"transform": self.transform})

    def search(self, text: str, vector: Any) -> Found:
        self.next = vector[None, :]
        return [(int(row["id"]), row["score"], row["text"]) for row in self.embeddings.search(text, READ)]


class MilvusLite:
    """Its BM25 function, vectors and `RRFRanker`."""

    def __init__(self, folder: Path) -> None:
        from pymilvus import MilvusClient

        self.client = MilvusClient(str(folder / "milvus.db"))

    def index(self, numbers: list[int], texts: list[str], vectors: Any) -> None:
        from pymilvus import DataType, Function, FunctionType

        schema = self.client.create_schema(auto_id=False)
        schema.add_field("number", DataType.INT64, is_primary=True)
        schema.add_field("text", DataType.VARCHAR, max_length=65535, enable_analyzer=True)
        schema.add_field("dense", DataType.FLOAT_VECTOR, dim=vectors.shape[1])
        schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
        bm25 = Function(
            name="bm25", function_type=FunctionType.BM25, input_field_names="text", output_field_names="words"
        )
        schema.add_function(bm25)
        indexes = self.client.prepare_index_params()
        indexes.add_index("dense", index_type="AUTOINDEX", metric_type="COSINE")
        indexes.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
        self.client.create_collection("texts", schema=schema, index_params=indexes)
        for some in parts(numbers, texts, vectors):
            rows = [{"number": n, "text": t, "dense": v} for n, t, v in zip(*some, strict=True)]
            self.client.insert("texts", rows)
        self.client.flush("texts")

    def open(self) -> None:
        self.client.load_collection("texts")

    def search(self, text: str, vector: Any) -> Found:
        from pymilvus import AnnSearchRequest, RRFRanker

        requests = [
            AnnSearchRequest([vector], "dense", {"metric_type": "COSINE"}, limit=DEPTH),
            AnnSearchRequest([text], "words", {"metric_type": "BM25"}, limit=DEPTH),
        ]
        found = self.client.hybrid_search("texts", requests, RRFRanker(RRF), limit=READ, output_fields=["text"])
        return [(row["number"], row["distance"], row["entity"]["text"]) for row in found[0]]


class SQLite:
    """FTS5 and sqlite-vec with the query for reciprocal ranks that sqlite-vec's documentation gives."""

    def __init__(self, folder: Path) -> None:
        import pysqlite3  # many a Python's own may load no extension
        import sqlite_vec

        self.db = pysqlite3.connect(str(folder / "texts.db"))
        self.db.enable_load_extension(True)
        sqlite_vec.load(self.db)

    def index(self, numbers: list[int], texts: list[str], vectors: Any) -> None:
        self.db.executescript(
            "CREATE TABLE texts (number INTEGER PRIMARY KEY, text TEXT);"
            "CREATE VIRTUAL TABLE words USING fts5(text, content='texts', content_rowid='number', tokenize='porter');"
            f"CREATE VIRTUAL TABLE vectors USING vec0(number INTEGER PRIMARY KEY, vector float[{vectors.shape[1]}]);"
        )
        with self.db:
            self.db.executemany("INSERT INTO texts VALUES (?, ?)", zip(numbers, texts, strict=True))
            self.db.execute("INSERT INTO words (rowid, text) SELECT number, text FROM texts")
            rows = ((n, v.tobytes()) for n, v in zip(numbers, vectors, strict=True))
            self.db.executemany("INSERT INTO vectors VALUES (?, ?)", rows)

    def open(self) -> None:
        self.db.execute("SELECT count(*) FROM vectors_chunks").fetchall()

    def search(self, text: str, vector: Any) -> Found:
        match = " OR ".join(f'"{word}"' for word in "".join(c if c.isalnum() else " " for c in text).split())
        rows = self.db.execute(
            "WITH near AS (SELECT number, row_number() OVER (ORDER BY distance) AS place FROM vectors"
            " WHERE vector MATCH :vector AND k = :depth), said AS (SELECT rowid AS number, row_number() OVER (ORDER BY rank)"
            " AS place FROM words WHERE words MATCH :match ORDER BY rank LIMIT :depth)"
            " SELECT number, sum(1.0 / (:k + place)) AS score, text FROM (SELECT * FROM near UNION ALL SELECT * FROM said)"
            " JOIN texts USING (number) GROUP BY number ORDER BY score DESC LIMIT :read",
            {"vector": vector.tobytes(), "match": match, "depth": DEPTH, "k": RRF, "read": READ},
        )
        return rows.fetchall()


class DuckDBFts:
    """DuckDB 1.5.5 with its `fts` from the package index: its BM25 and exact vectors, fused by reciprocal ranks in SQL."""

    def __init__(self, folder: Path) -> None:
        import duckdb
        import duckdb_extension_fts

        (extension,) = Path(duckdb_extension_fts.__file__).parent.rglob("fts.duckdb_extension")
        self.db = duckdb.connect(str(folder / "texts.duckdb"))
        self.db.load_extension(str(extension))

    def index(self, numbers: list[int], texts: list[str], vectors: Any) -> None:
        import pyarrow as pa

        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
        given = pa.table({"number": numbers, "text": texts, "vector": column})
        self.db.register("given", given)
        self.db.execute(
            f"CREATE TABLE texts AS SELECT number, text, vector::FLOAT[{vectors.shape[1]}] AS vector FROM given"
        )
        self.db.execute("PRAGMA create_fts_index('texts', 'number', 'text')")
        self.db.execute("CHECKPOINT")

    def open(self) -> None:
        self.db.execute("SELECT count(*) FROM texts").fetchall()

    def search(self, text: str, vector: Any) -> Found:
        return self.db.execute(
            "WITH scored AS (SELECT number, array_inner_product(vector, $vector::FLOAT[384]) AS near,"
            " fts_main_texts.match_bm25(number, $text) AS said FROM texts), places AS ("
            "(SELECT number, row_number() OVER (ORDER BY near DESC) AS place FROM scored ORDER BY near DESC LIMIT $depth)"
            " UNION ALL (SELECT number, row_number() OVER (ORDER BY said DESC) AS place FROM scored WHERE said IS NOT NULL"
            " ORDER BY said DESC LIMIT $depth))"
            " SELECT number, sum(1.0 / ($k + place)) AS score, any_value(text) FROM places JOIN texts USING (number)"
            " GROUP BY number ORDER BY score DESC LIMIT $read",
            {"vector": vector.tolist(), "text": text, "depth": DEPTH, "k": RRF, "read": READ},
        ).fetchall()


class Bm25sFaiss:
    """bm25s and an exact faiss index, fused in Python; texts in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def index(self, numbers: list[int], texts: list[str], vectors: Any) -> None:
        import bm25s
        import faiss

        words = bm25s.BM25()
        words.index(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer(), show_progress=False), show_progress=False)
        words.save(str(self.folder / "words"), show_progress=False)
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        faiss.write_index(index, str(self.folder / "vectors.faiss"))
        (self.folder / "texts.json").write_text(json.dumps([numbers, texts]))

    def open(self) -> None:
        import bm25s
        import faiss

        self.words = bm25s.BM25.load(str(self.folder / "words"), show_progress=False)
        self.vectors = faiss.read_index(str(self.folder / "vectors.faiss"))
        self.numbers, self.texts = json.loads((self.folder / "texts.json").read_text())

    def search(self, text: str, vector: Any) -> Found:
        import bm25s

        words = bm25s.tokenize([text], stopwords="en", stemmer=stemmer(), return_ids=False, show_progress=False)
        said, scores = self.words.retrieve(words, k=DEPTH, show_progress=False)
        near = self.vectors.search(vector[None, :], DEPTH)[1][0].tolist()
        found = fused(near, [n for n, score in zip(said[0].tolist(), scores[0].tolist(), strict=True) if score > 0])
        return [(self.numbers[place], score, self.texts[place]) for place, score in found]


SYSTEMS: dict[str, Callable[[Path], System]] = {
    kind.__name__: kind
    for kind in (Workbench, LanceDB, Chroma, Qdrant, Txtai, MilvusLite, SQLite, DuckDBFts, Bm25sFaiss)
}


def build(name: str, folder: Path) -> dict[str, float]:
    order = np.load(data / "order.npy").tolist()
    texts = json.loads((data / "texts.json").read_text())
    vectors = np.ascontiguousarray(np.load(data / "vectors.npy")[order])
    before = peak()
    system = SYSTEMS[name](folder)
    started, used = time.perf_counter(), sum(os.times()[:4])
    system.index(order, [texts[n] for n in order], vectors)
    taken, used = time.perf_counter() - started, sum(os.times()[:4]) - used
    return {"seconds": taken, "processor_seconds": used, "memory_mb": peak(), "given_mb": before}


def serve(name: str, folder: Path) -> None:
    """Open, then answer the numbers of questions that come line by line."""
    questions, vectors = json.loads((data / "queries.json").read_text()), np.load(data / "queries.npy")
    started = time.perf_counter()
    system = SYSTEMS[name](folder)
    system.open()
    system.search(questions[0], vectors[0].copy())
    print(json.dumps({"open_ms": (time.perf_counter() - started) * 1000}), flush=True)
    for line in sys.stdin:
        number = int(line)
        vector = vectors[number].copy()
        started = time.perf_counter()
        found = system.search(questions[number], vector)
        taken = (time.perf_counter() - started) * 1000
        rows = [(int(n), float(score), len(said)) for n, score, said in found]
        print(json.dumps({"ms": taken, "found": rows, "memory_mb": peak()}), flush=True)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    system_name, where, data, task = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    where.mkdir(parents=True, exist_ok=True)
    if task == "build":
        print(json.dumps(build(system_name, where)), flush=True)
    else:
        serve(system_name, where)
