"""Writing one encoder's vectors of a generation: the matrix, the approximate index, and who made them.

The matrix is written as it comes, a block at a time, so that memory does not grow with the corpus. The graph is built with one
thread, so that the same vectors give the same answers. Where building it fails, the generation answers exactly and says so.

HNSW (Malkov and Yashunin, arXiv 1603.09320) finds most of the nearest rows by walking a graph; the width of the walk
(`ef`) buys recall with time. One width does not fit all queries: measured on 200,000 MiniLM vectors, queries near rows of
the corpus reach recall@100 0.98 at ef 200; questions that people typed reach 0.88 there, and 0.98 only at 1,200. What tells
them apart is seen in the answer: where the last of the wanted cosines is low, the query lies outside the data and the walk
misses much. So a search walks narrow first, and again wider the further that cosine is below what is usual for rows of the
corpus: at least 0.98 for both kinds, with less work than the one width that would serve the questions.

The graph holds bf16 copies of the vectors, so its order is rough; whoever asks scores the candidates again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.errors import CorpusError
from workbench.records import EncoderIdentity, Progress, ProgressCallback

Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]

CONNECTIVITY = 16
EXPANSION_ADD = 128

_BLOCK = 4096
_SAMPLES = 100
_SAMPLE_DEPTH = 100
_AT_ONCE = 20  # rows whose cosines to all others are held: 16 MB at 200,000
_FAR_PERCENTILE = 20
_DOUBLING_DEVIATIONS = 0.3


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """What `identity.json` records of the graph.

    Attributes:
        size: Bytes of its file; 0 if there is none.
        rows: Rows in it.
        connectivity, expansion_add, dtype: How it was built.
        far: A walk whose last wanted cosine is below this is repeated wider: the 20th percentile of the cosine between
            rows of the corpus and their 100th neighbour.
        doubling: So far below `far`, the width doubles: 0.3 standard deviations of that cosine.
        usearch: Version that built it.
        warning: Why there is none, or "".
    """

    size: int = 0
    rows: int = 0
    connectivity: int = CONNECTIVITY
    expansion_add: int = EXPANSION_ADD
    dtype: str = "bf16"
    far: float = 1.0
    doubling: float = 0.05
    usearch: str = ""
    warning: str = ""


def build_graph(
    matrix: Floats32, target: Path, *, threads: int = 1, progress: Callable[[int], None] | None = None
) -> GraphFacts:
    """Build the graph over all rows and write it.

    Args:
        matrix: float32 (n, dim), n at least 1, rows of length 1.
        target: The file to write.
        threads: 1 gives the same bytes each time; more are faster and do not.
        progress: Called with the number of rows done.

    Raises:
        Exception: Whatever usearch raises.
    """
    import usearch
    from usearch.index import Index

    count, dim = matrix.shape
    index = Index(ndim=dim, metric="ip", dtype="bf16", connectivity=CONNECTIVITY, expansion_add=EXPANSION_ADD)
    for start in range(0, count, _BLOCK):
        end = min(start + _BLOCK, count)
        keys = np.arange(start, end, dtype=np.uint64)
        index.add(keys, np.ascontiguousarray(matrix[start:end]), threads=threads)
        if progress is not None:
            progress(end)
    index.save(str(target))
    index.reset()
    far, doubling = _spread(matrix)
    return GraphFacts(target.stat().st_size, count, far=far, doubling=doubling, usearch=str(usearch.__version__))


def _spread(matrix: Floats32) -> tuple[float, float]:
    """`far` and `doubling`: how near the 100th neighbour of a row is, over rows spread evenly through the corpus.

    A row is found more easily than a question, but how near its neighbours are is the scale on which "outside the data" is
    measured, whatever the encoder's habits.
    """
    count = len(matrix)
    depth = min(_SAMPLE_DEPTH, count)
    rows = np.linspace(0, count - 1, min(_SAMPLES, count)).astype(np.int64)
    last: list[float] = []
    for some in np.array_split(rows, -(-len(rows) // _AT_ONCE)):
        cosines = matrix[some] @ matrix.T  # several rows at once: the matrix is read once for all of them
        last += np.partition(cosines, count - depth, axis=1)[:, count - depth].tolist()
    return round(float(np.percentile(last, _FAR_PERCENTILE)), 4), max(
        round(float(np.std(last)) * _DOUBLING_DEVIATIONS, 4), 1e-3
    )


MATRIX = "vectors.npy"
GRAPH = "index.usearch"
IDENTITY = "identity.json"
FORMAT = 1

_LENGTH_TOLERANCE = 1e-3


def build_vectors(
    folder: Path,
    vectors: Iterable[NDArray[np.float32]] | Path,
    n: int,
    identity: EncoderIdentity,
    progress: ProgressCallback | None = None,
    threads: int = 1,
) -> GraphFacts:
    """Write `vectors.npy`, `index.usearch` and `identity.json`.

    Args:
        folder: Where to; made if missing, files of these names replaced.
        vectors: Blocks float32 (any, dim) in record order, or the path of a `.npy` file (n, dim). Rows have length 1; a row
            of zeros is allowed and is equally far from everything.
        n: Number of records.
        identity: Who made them; `dim` is checked.
        progress: Called with the steps `vectors` and `graph`.
        threads: Of the graph. With more than 1 the graph's bytes differ from run to run.

    Returns:
        What was recorded of the graph; its `warning` says why there is none.

    Raises:
        CorpusError: Rows are too many or too few, have another width, or are not unit vectors.
    """
    folder.mkdir(parents=True, exist_ok=True)
    blocks = _file_blocks(vectors) if isinstance(vectors, Path) else vectors
    _write_matrix(folder / MATRIX, blocks, n, identity, _reporter("vectors", n, progress))
    report = _reporter("graph", n, progress)
    facts = _build_graph(folder, n, threads, report)
    record = {"format": FORMAT, "n": n, "identity": asdict(identity), "graph": asdict(facts)}
    with (folder / IDENTITY).open("w", encoding="utf-8") as file:
        file.write(json.dumps(record, indent=1, sort_keys=True) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return facts


def _write_matrix(
    path: Path, blocks: Iterable[NDArray[np.float32]], n: int, identity: EncoderIdentity, report: Callable[[int], None]
) -> None:
    done = 0
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, identity.dim)}
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            rows = np.ascontiguousarray(block, dtype="<f4")
            if rows.ndim != 2 or rows.shape[1] != identity.dim:
                raise CorpusError(
                    f"Vectors of shape {rows.shape} came from the encoder {identity.name}, which has {identity.dim}"
                    " dimensions",
                    "Index again with one encoder",
                )
            _check_lengths(rows, done)
            if done + len(rows) > n:
                raise CorpusError(f"There are more vectors than the {n} records", "Index again")
            file.write(rows.tobytes())
            done += len(rows)
            report(done)
        file.flush()
        os.fsync(file.fileno())
    if done != n:
        raise CorpusError(f"There are {done} vectors for {n} records", "Index again")


def _check_lengths(rows: NDArray[np.float32], first: int) -> None:
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    bad = ~((np.abs(squares - 1.0) <= _LENGTH_TOLERANCE) | (squares == 0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise CorpusError(
            f"The vector of record {first + row} has length {float(squares[row]) ** 0.5:.4g}, not 1",
            "Normalise the vectors, or index again with an encoder of this package",
        )


def _file_blocks(path: Path) -> Iterator[NDArray[np.float32]]:
    matrix = np.load(path, mmap_mode="r")
    for start in range(0, len(matrix), _BLOCK):
        yield np.asarray(matrix[start : start + _BLOCK])


def _build_graph(folder: Path, n: int, threads: int, report: Callable[[int], None]) -> GraphFacts:
    target = folder / GRAPH
    target.unlink(missing_ok=True)
    if n == 0:
        return GraphFacts()
    matrix = np.asarray(np.load(folder / MATRIX, mmap_mode="r"))
    try:
        facts = build_graph(matrix, target, threads=threads, progress=report)
        with target.open("rb") as file:
            os.fsync(file.fileno())
        return facts
    except Exception as exc:  # noqa: BLE001  the graph is an extra: whatever fails, the exact vectors answer
        target.unlink(missing_ok=True)
        reason = str(exc) or type(exc).__name__
        return GraphFacts(warning=f"The approximate index could not be built ({reason}); exact search answers")


def _reporter(step: str, total: int, progress: ProgressCallback | None) -> Callable[[int], None]:
    """Turns a number of rows into a Progress."""
    begin = time.perf_counter()

    def report(done: int) -> None:
        if progress is not None:
            seconds = max(time.perf_counter() - begin, 1e-9)
            left = seconds * (total - done) / done if done else None
            progress(Progress(step, done, total, done / seconds, left))

    return report
