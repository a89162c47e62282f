"""The approximate index beside the vectors: a usearch HNSW graph, how it is built and how far a search in it goes.

HNSW (Malkov and Yashunin, arXiv 1603.09320) finds most of the nearest rows by walking a graph; the width of the walk
(`ef`) buys recall with time. One width does not fit all queries: measured on 200,000 MiniLM vectors, rows of the corpus
itself reach recall@100 0.98 at ef 256, questions that people typed 0.90 at that width and 0.98 only at 1,200. What tells them
apart is seen in the answer: where the last of the wanted cosines is low, the query lies outside the data and the walk
misses much. So a search goes narrow first and again wide when that cosine is below a level that was measured when the graph
was built.

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
NARROW = 200
WIDE = 1200
"""Widths of the two walks for 100 wanted rows or fewer."""

_BLOCK = 4096
_SAMPLES = 100
_SAMPLE_DEPTH = 100
_GOOD_RECALL = 0.985


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """What `identity.json` records of the graph.

    Attributes:
        size: Bytes of its file; 0 if there is none.
        rows: Rows in it.
        connectivity, expansion_add, dtype: How it was built.
        far: A narrow walk whose last wanted cosine is below this is repeated wide.
        usearch: Version that built it.
        warning: Why there is none, or "".
    """

    size: int = 0
    rows: int = 0
    connectivity: int = CONNECTIVITY
    expansion_add: int = EXPANSION_ADD
    dtype: str = "bf16"
    far: float = 1.0
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
    graph = Graph(target, dim)
    far = _far(matrix, graph)
    return GraphFacts(target.stat().st_size, count, far=far, usearch=str(usearch.__version__))


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


def widths(depth: int) -> tuple[int, int]:
    """Widths of the narrow and the wide walk for so many wanted rows."""
    return max(NARROW, 2 * depth), max(WIDE, 6 * depth)


def _far(matrix: Floats32, graph: Graph) -> float:
    """The lowest last cosine at which a narrow walk is still good enough, from searches for rows of the corpus.

    Rows are sorted by the cosine of the 100th true neighbour; the level is where the mean recall of the fifth of them around
    it falls below 0.985. A row is easier to find than a question, so the level errs on the side of the wide walk.
    """
    count = len(matrix)
    depth = min(_SAMPLE_DEPTH, count)
    seen = []
    for row in np.linspace(0, count - 1, min(_SAMPLES, count)).astype(np.int64):
        scores = matrix @ matrix[row]
        true = np.argpartition(-scores, depth - 1)[:depth]
        found, _ = graph.search(np.ascontiguousarray(matrix[row]), min(NARROW, count))
        recall = len(np.intersect1d(true, found)) / depth
        seen.append((float(scores[true].min()), recall))
    seen.sort(reverse=True)
    levels, recalls = np.array([s[0] for s in seen]), np.array([s[1] for s in seen])
    window = max(1, len(seen) // 5)
    for end in range(window, len(seen) + 1):
        if recalls[end - window : end].mean() < _GOOD_RECALL:
            return round(float(levels[end - window]), 4)
    return round(float(levels[-1]), 4)
