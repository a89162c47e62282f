"""The approximate index beside the vectors: a usearch HNSW graph, how it is built and how far a search in it goes.

HNSW (Malkov and Yashunin, arXiv 1603.09320) finds most of the nearest rows by walking a graph; the width of the walk
(`ef`) buys recall with time. One width does not fit all queries: measured on 200,000 MiniLM vectors, queries near rows of
the corpus reach recall@100 0.98 at ef 200; questions that people typed reach 0.88 there, and 0.98 only at 1,200. What tells
them apart is seen in the answer: where the last of the wanted cosines is low, the query lies outside the data and the walk
misses much. So a search walks narrow first, and again wider the further that cosine is below what is usual for rows of the
corpus: at least 0.98 for both kinds, with less work than the one width that would serve the questions.

The graph holds bf16 copies of the vectors, so its order is rough; whoever asks scores the candidates again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]

CONNECTIVITY = 16
EXPANSION_ADD = 128
NARROW = 176
WIDEST = 3000
"""Widths of the first walk and of the widest second one, for 100 wanted rows or fewer."""

_BLOCK = 4096
_SAMPLES = 100
_SAMPLE_DEPTH = 100
_AT_ONCE = 20  # rows whose cosines to all others are held: 16 MB at 200,000
_FAR_PERCENTILE = 20
_DOUBLING_DEVIATIONS = 0.3
_WORTH_A_SECOND = 2.0


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

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


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


class Graph:
    """The graph of one generation, mapped when it is first searched. Safe from several threads.

    Args:
        path: Its file.
        dim: Dimensions of its vectors.
    """

    def __init__(self, path: Path, dim: int) -> None:
        self._path = path
        self._dim = dim
        self._index: Any = None
        self._lock = threading.Lock()

    def search(self, vector: Floats32, width: int) -> tuple[Ints, Floats32]:
        """A walk of that width: rows (int64) and rough cosines (float32), at most `width`, best first.

        Raises:
            RuntimeError: usearch failed.
        """
        index = self._open()
        # ef is the larger of the index's own setting and the count asked for, so no shared setting is touched.
        matches = index.search(vector, width, threads=1)
        return matches.keys.astype(np.int64), 1.0 - matches.distances.astype(np.float32)

    def close(self) -> None:
        """Unmap it."""
        with self._lock:
            self._index = None

    def _open(self) -> Any:
        with self._lock:
            if self._index is None:
                from usearch.index import Index

                index = Index(ndim=self._dim, metric="ip", dtype="bf16", enable_key_lookups=False)
                index.view(str(self._path))
                self._index = index
            return self._index


def first_width(depth: int) -> int:
    """Width of the first walk for so many wanted rows."""
    return max(NARROW, NARROW * depth // 100)


def second_width(depth: int, last: float, facts: GraphFacts) -> int | None:
    """Width of a second walk, or None if the first was good enough.

    Args:
        depth: Wanted rows.
        last: Cosine of the last of them that the first walk found; -inf if it found fewer.
        facts: The graph's.
    """
    first = first_width(depth)
    growth = min((facts.far - last) / facts.doubling, 64.0)
    width = min(first * 2.0**growth, max(WIDEST, WIDEST * depth // 100))
    return round(width) if width >= _WORTH_A_SECOND * first else None


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
