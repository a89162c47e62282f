"""A corpus from chunks whose borders and vectors are given: written by the project's own writer, without embedding.

It is what an indexing run does after reading and embedding: documents go into the staging file, vectors into the journal,
and the writer builds and publishes a generation from both. So a bench of 200,000 chunks needs minutes and not an hour."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.figures import Memory
from workbench import settings
from workbench.encode.hashing import HashingEncoder
from workbench.encode.load import identity_of
from workbench.encode.protocol import Meter
from workbench.errors import CorpusDamaged, UsageError
from workbench.ingest.chunking import chunk_id, document_id
from workbench.ingest.rules import DEFAULT_GRANULARITIES
from workbench.records import Chunk, Document, EncoderIdentity, FileStatus, Granularity, Progress, ProgressCallback
from workbench.store import generations, locks
from workbench.store.build import Built, build_generation, vector_key
from workbench.store.generations import Layout
from workbench.store.journal import Journal, forget
from workbench.store.reader import open_generation
from workbench.store.staging import Staging, text_hash

COLLECTION = "docs"
_JOINT = "\n"


@dataclass(frozen=True, slots=True, eq=False)
class GivenDocument:
    """A document as its chunks."""

    path: str
    texts: tuple[str, ...]
    vectors: NDArray[np.float32]
    collections: tuple[str, ...] = (COLLECTION,)


def build_given(
    corpus: Path, root: str, documents: Iterable[GivenDocument], identity: EncoderIdentity, tell: ProgressCallback
) -> Built:
    """Build and publish a generation of a new corpus."""
    corpus.mkdir(parents=True, exist_ok=True)
    layout = Layout(corpus)
    with locks.writer(layout.writer_lock, corpus):
        generations.clean(corpus)
        try:
            layout.building.mkdir()
            journal = Journal(layout.embeddings, identity)
            staging = Staging(layout.building / "staging.duckdb")
            try:
                names: set[str] = set()
                for given in documents:
                    _stage(staging, journal, root, given)
                    names.update(given.collections)
                staging.add("roots", (root, False, "", ""))
                for name in sorted(names):
                    staging.add("collections", (name, _granularity(name).value, "structure"))
                staging.flush()
            finally:
                staging.close()
            built = build_generation(corpus, staging.path, None, {vector_key(identity): (identity, journal)}, tell)
            forget(journal, built.text_hashes, 0)
        finally:
            generations.clean(corpus)
    return built


def _stage(staging: Staging, journal: Journal, root: str, given: GivenDocument) -> None:
    texts = [text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "") for text in given.texts]
    whole = _JOINT.join(texts)
    data = whole.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(data).hexdigest()
    own = document_id(None, given.path)
    document = Document(
        own, given.path, root, whole, title=given.path.rpartition("/")[2], size=len(data), sha256=digest
    )
    pieces = []
    start, line = 0, 1
    for position, text in enumerate(texts):
        end = start + len(text)
        last = line + text.rstrip("\n").count("\n")
        pieces.append(Chunk("", own, "", position, start, end, line, last, text))
        line += text.count("\n") + len(_JOINT)
        start = end + len(_JOINT)
    journal.append([text_hash(piece.indexed_text) for piece in pieces], given.vectors)
    records: list[tuple[Chunk, Sequence[Chunk]]] = []
    for name in given.collections:
        if _granularity(name) is Granularity.DOCUMENT:
            # A whole document's vector is made of its pieces' ones.
            one = Chunk("", own, "", 0, 0, len(whole), 1, pieces[-1].end_line, whole, granularity=Granularity.DOCUMENT)
            records.append((_in(one, name), pieces))
        else:
            records += [(_in(piece, name), (piece,)) for piece in pieces]
    staging.add_document(document, records, file=(root, given.path), location="")
    status = FileStatus.INDEXED.value
    staging.add(
        "files", (root, given.path, len(data), 0, digest, "", list(given.collections), status, "", "", 1, len(records), "")
    )  # fmt: skip


def _in(chunk: Chunk, collection: str) -> Chunk:
    own = chunk_id(chunk.document_id, collection, chunk.start, chunk.end)
    return replace(chunk, chunk_id=own, collection=collection)


def _granularity(collection: str) -> Granularity:
    return DEFAULT_GRANULARITIES.get(collection, Granularity.CHUNK)


# --- corpora ---------------------------------------------------------------------------------------------------------


PARQUET, VECTORS = "large.parquet", "large_vectors.npz"
MODEL = "all-MiniLM-L6-v2"
LIBRARY_ROWS = 20_000
BUILT = "built.json"

_RECIPE = 2
"""Changes when the same data would give another corpus."""

_BLOCK = 700  # characters of a chunk of the library, as in the large corpus
_LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "__pycache__", "ensurepip"}


@dataclass(frozen=True, slots=True)
class Source:
    """What a corpus is made from."""

    name: str
    digest: str
    root: str
    identity: EncoderIdentity
    rows: int
    documents: Callable[[], Iterator[GivenDocument]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BenchCorpus:
    """A corpus that is there: its folder, where its peers' indexes go, and how it was built."""

    source: Source
    folder: Path
    peers: Path
    seconds: float
    memory_mb: float

    def to_dict(self) -> dict[str, Any]:
        source = self.source
        facts = {"name": source.name, "digest": source.digest, "chunks": source.rows}
        return {**facts, "folder": str(self.folder), "notes": list(source.notes)}


def find_source(data: Path | None, rows: int | None) -> Source:
    if rows is not None and rows < 100:
        raise UsageError(f"{rows} chunks are too few to measure on", "Take at least 100")
    setting = str(settings.get("measure_data"))
    folder = data or (Path(setting) if setting else None)
    if folder is not None and all((folder / name).is_file() for name in (PARQUET, VECTORS)):
        return _large(folder, rows)
    if data is not None:
        raise UsageError(f"{data} does not hold {PARQUET} and {VECTORS}", "Leave --data out to use Python's library")
    return _library(rows or LIBRARY_ROWS)


def in_collections(source: Source) -> Source:
    """The same documents in three collections: each tenth in `memory`, the others as artifacts, whole and in chunks."""

    def documents() -> Iterator[GivenDocument]:
        for number, given in enumerate(source.documents()):
            names = ("memory",) if number % 10 == 9 else ("artifact_chunks", "artifacts")
            yield replace(given, collections=names)

    return replace(
        source,
        name=f"{source.name}, in three collections",
        digest=_digest(source.digest, "three collections"),
        documents=documents,
    )


def repeated(source: Source, times: int) -> Source:
    """The documents again and again, each repeat with a mark in its texts and with vectors a little off: cosine .98 or so."""

    def documents() -> Iterator[GivenDocument]:
        yield from source.documents()
        for turn in range(1, times):
            noise = np.random.default_rng(turn)
            for given in source.documents():
                dim = given.vectors.shape[1]
                moved = given.vectors + noise.normal(0, 0.2 / dim**0.5, given.vectors.shape).astype(np.float32)
                moved /= np.linalg.norm(moved, axis=1, keepdims=True)
                texts = tuple(f"{text}\nrepeat{turn}" for text in given.texts)
                yield GivenDocument(f"{turn}/{given.path}", texts, moved, given.collections)

    return replace(
        source,
        name=f"{source.name}, {times} times",
        digest=_digest(source.digest, "repeated", times),
        rows=source.rows * times,
        documents=documents,
        notes=(*source.notes, "Repeats have a mark in their texts and vectors at a cosine of .98 to the first ones"),
    )


def prepare(source: Source, keep: Path | None, tell: Callable[[Progress], None]) -> BenchCorpus:
    """The corpus of a source, built if it is not there."""
    base = (keep or settings.cache_dir() / "bench") / f"corpus-{source.digest[:16]}"
    folder, facts = base / "corpus", base / BUILT
    if not (
        facts.is_file() and "processor_seconds" in json.loads(facts.read_text(encoding="utf-8")) and _whole(folder)
    ):
        started, used = time.perf_counter(), sum(os.times()[:4])
        with Memory() as memory:
            build_given(folder, source.root, _told(source, tell), source.identity, tell)
        built = {"seconds": time.perf_counter() - started, "processor_seconds": sum(os.times()[:4]) - used}
        built["memory_mb"] = memory.most_mb
        facts.write_text(json.dumps(built), encoding="utf-8")
    known = json.loads(facts.read_text(encoding="utf-8"))
    return BenchCorpus(source, folder, base / "peers", known["seconds"], known["memory_mb"])


def _whole(folder: Path) -> bool:
    if not generations.exists(folder):
        return False
    try:
        with open_generation(folder) as generation:
            generation.open_all()
    except CorpusDamaged:
        shutil.rmtree(folder)
        return False
    return True


def _told(source: Source, tell: Callable[[Progress], None]) -> Iterator[GivenDocument]:
    meter = Meter(tell, "stage", source.rows)
    for document in source.documents():
        yield document
        meter.advance(len(document.texts), document.path)


# --- the large corpus --------------------------------------------------------------------------------------------------


def _large(folder: Path, rows: int | None) -> Source:
    import pyarrow.parquet

    parquet, vectors = folder / PARQUET, folder / VECTORS
    total = int(pyarrow.parquet.read_metadata(parquet).num_rows)
    count = min(total, rows or total)
    identity = identity_of(MODEL)
    digest = _digest(_file_digest(parquet), _file_digest(vectors), count, asdict(identity))
    part = f"the first {count:,} of {total:,} chunks of" if count < total else f"the {total:,} chunks of"
    return Source(
        f"{part} {PARQUET}",
        digest,
        str(folder.absolute()),
        identity,
        count,
        lambda: _large_documents(parquet, vectors, count),
        (f"Vectors are those of {VECTORS} ({MODEL}, int8 codes), not embedded again",),
    )


def _large_documents(parquet: Path, vectors: Path, count: int) -> Iterator[GivenDocument]:
    import pyarrow.parquet

    stored = np.load(vectors)
    codes, scale = stored["codes"], stored["scale"]
    table = pyarrow.parquet.read_table(parquet, columns=["doc_id", "chunk_idx", "text"]).slice(0, count)
    names = np.asarray(table["doc_id"].to_pylist(), object)
    index = table["chunk_idx"].to_numpy()
    texts = table["text"]
    order = np.lexsort((index, names.astype(str)))
    starts = np.flatnonzero(np.r_[True, names[order][1:] != names[order][:-1]])
    for rows in np.split(order, starts[1:]):
        wide = codes[rows].astype(np.float32) * scale[rows, None]
        unit = wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12)
        yield GivenDocument(
            str(names[rows[0]]), tuple(texts[int(r)].as_py() for r in rows), unit.astype(np.float32)
        )  # fmt: skip


# --- the library -------------------------------------------------------------------------------------------------------


def _library(rows: int) -> Source:
    folder = Path(sysconfig.get_paths()["stdlib"])
    chosen: list[tuple[str, list[str]]] = []
    count = 0
    for path in _sources(folder):
        if count >= rows:
            break
        inside = path.relative_to(folder)
        try:
            blocks = _blocks(path.read_text(encoding="utf-8"))[: rows - count]
        except (OSError, UnicodeDecodeError):
            continue  # a file that cannot be read is no part of the corpus, whose digest is made of what is
        if blocks:
            chosen.append((inside.as_posix(), blocks))
            count += len(blocks)
    if count < 100:
        raise UsageError(
            f"This Python comes without the sources of its library in {folder}",
            "Set WORKBENCH_MEASURE_DATA, or use a full installation of Python",
        )
    encoder = HashingEncoder()

    def documents() -> Iterator[GivenDocument]:
        for name, blocks in chosen:
            yield GivenDocument(name, tuple(blocks), encoder.encode(blocks))

    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Source(
        f"{count:,} blocks of the library of Python {version}",
        _digest(chosen, asdict(encoder.identity)),
        str(folder),
        encoder.identity,
        count,
        documents,
        (
            f"The setting measure_data names no folder with {PARQUET}: this corpus is smaller, its vectors are those of the"
            " hashing encoder, and the goals are meant for the large one",
        ),
    )


def _sources(folder: Path) -> Iterator[Path]:
    for base, inner, names in os.walk(folder):
        inner[:] = sorted(set(inner) - _LEFT_OUT)
        yield from (Path(base, name) for name in sorted(names) if name.endswith(".py"))


def _blocks(text: str) -> list[str]:
    blocks: list[str] = []
    held: list[str] = []
    length = 0
    for line in text.split("\n"):
        if held and length + len(line) > _BLOCK:
            blocks.append("\n".join(held))
            held, length = [], 0
        held.append(line)
        length += len(line) + 1
    blocks.append("\n".join(held))
    return [block for block in blocks if block.strip()]


def _digest(*parts: Any) -> str:
    said: Sequence[Any] = (_RECIPE, generations.FORMAT, *parts)
    return hashlib.sha256(json.dumps(said, ensure_ascii=True).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
