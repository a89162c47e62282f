"""The corpus to measure on: made once, kept in the cache, found again by the digest of what it is made of.

`large.parquet` (`doc_id`, `chunk_idx`, `text`) and `large_vectors.npz` (`codes` int8 (n, dim), `scale` (n,): a row's vector
is its codes times its scale, normalised) in the folder of the setting `measure_data` are some 200,000 real chunks with
vectors of the default model. Without them the corpus is smaller: the sources of this Python's library, cut into blocks of
lines, with vectors of the hashing encoder.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.given import GivenDocument, build_given
from workbench import settings
from workbench.encode.hashing import HashingEncoder
from workbench.encode.load import identity_of
from workbench.encode.protocol import Meter
from workbench.errors import CorpusDamaged, UsageError
from workbench.records import EncoderIdentity, Progress
from workbench.store import generations
from workbench.store.reader import open_generation

PARQUET, VECTORS = "large.parquet", "large_vectors.npz"
MODEL = "all-MiniLM-L6-v2"
LIBRARY_ROWS = 20_000
BUILT = "built.json"

_RECIPE = 1
"""Changes when the same data would give another corpus."""

_BLOCK = 700  # characters of a chunk of the library, as in the large corpus
_LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "__pycache__", "ensurepip"}


@dataclass(frozen=True, slots=True)
class Source:
    """What a corpus is made from.

    Attributes:
        name: For people.
        digest: Hex digest of the data, the number of rows and how they are made into a corpus.
        root: What its documents say they come from.
        identity: The encoder of its vectors.
        rows: Number of chunks.
        documents: Makes the documents, anew at each call.
        notes: What to know of it.
    """

    name: str
    digest: str
    root: str
    identity: EncoderIdentity
    rows: int
    documents: Callable[[], Iterator[GivenDocument]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BenchCorpus:
    """A corpus that is there: its folder, where its peers' indexes go, and how it was built.

    Attributes:
        source: What it is made from.
        folder: The corpus folder.
        peers: Folder of the peers' indexes of the same chunks.
        seconds, memory_mb: Time and largest memory (this process and its largest child) of building it, whenever that was.
    """

    source: Source
    folder: Path
    peers: Path
    seconds: float
    memory_mb: float


def find_source(data: Path | None, rows: int | None) -> Source:
    """What there is to measure on.

    Args:
        data: Folder with the large corpus; None is the setting `measure_data`.
        rows: Take so many chunks at most.

    Raises:
        UsageError: `data` was given and lacks the files, or `rows` is below 100.
        EncoderError: The model that made the vectors is not on this machine.
    """
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


def prepare(source: Source, keep: Path | None, tell: Callable[[Progress], None]) -> BenchCorpus:
    """The corpus of a source, built if it is not there.

    Args:
        source: What it is made from.
        keep: Where corpora are kept; None is the cache.
        tell: Called with a Progress at each step of building.
    """
    base = (keep or settings.cache_dir() / "bench") / f"corpus-{source.digest[:16]}"
    folder, facts = base / "corpus", base / BUILT
    if not (facts.is_file() and _whole(folder)):
        started = time.perf_counter()
        build_given(folder, source.root, _told(source, tell), source.identity, tell)
        built = {"seconds": time.perf_counter() - started, "memory_mb": peak_memory()}
        facts.write_text(json.dumps(built), encoding="utf-8")
    known = json.loads(facts.read_text(encoding="utf-8"))
    return BenchCorpus(source, folder, base / "peers", known["seconds"], known["memory_mb"])


def _whole(folder: Path) -> bool:
    """Whether a corpus is there and this version of the workbench can read all of it."""
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
    """The documents, saying how far they are."""
    meter = Meter(tell, "stage", source.rows)
    for document in source.documents():
        yield document
        meter.advance(len(document.texts), document.path)


def peak_memory() -> float:
    """Largest resident memory of this process so far and of its largest ended child, added up, in MB."""
    both = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(both) / (1024.0 * 1024.0 if sys.platform == "darwin" else 1024.0)


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
    """The library's files, in path order of each folder; packages of others and tests are left out."""
    for base, inner, names in os.walk(folder):
        inner[:] = sorted(set(inner) - _LEFT_OUT)
        yield from (Path(base, name) for name in sorted(names) if name.endswith(".py"))


def _blocks(text: str) -> list[str]:
    """Runs of whole lines of at most `_BLOCK` characters (one longer line alone), blank ones left out."""
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
