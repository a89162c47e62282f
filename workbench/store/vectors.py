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

The vectors of one encoder, mapped, and the nearest of them to a query.

The exact path is one product over the mapped matrix in float32, which picks candidates, and one dot product a candidate in
float64, which orders them. Float32 products move by 2e-7 with the shape of the matrix and the number of threads; the
float64 of a row depends on nothing but the row and the query. So whatever the filter, the visible subset or the machine's
threads, a record has the same bits of score and the order is the same, ties by number.

The approximate path asks the graph (see `vectors_graph`) and scores its candidates in the same way: what it returns has
exact scores in exact order, only some of the nearest may be missing. It never answers where records are hidden from the
principal: a walk through a graph goes by way of hidden rows, and what it finds would depend on them.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from workbench.errors import CorpusError, EncoderMismatch, UsageError
from workbench.ranking.agreement import reached
from workbench.records import EncoderIdentity, Progress, ProgressCallback
from workbench.store.generations import damaged, unreadable
from workbench.store.types import Scope, Scored

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


Floats32 = NDArray[np.float32]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NARROW = 176
WIDEST = 3000
"""Widths of the first walk and of the widest second one, for 100 wanted rows or fewer."""

EXACT_LIMIT_MS = 2.0
"""`auto` searches exactly where that is expected to take at most this long."""

_EXACT_MS_PER_ELEMENT = 7.8e-8
_GRAPH_MS_PER_WIDTH = 3.0e-3
_GATHER_BELOW = 0.05
_GRAPH_ABOVE = 0.2
_WORTH_A_SECOND = 2.0
_MARGIN = 1e-6
_MARGIN_DIM = 384
_GROUP = 64
_SMALL = 1 << 14
_RESCORE_ROWS = 8192
_KEPT_PRODUCTS = 2  # queries whose cosines are kept: 4 bytes a record each


class VectorIndex:
    """The vectors of one encoder, in a folder that `build_vectors` wrote. Read-only, safe from several threads.

    Args:
        folder: The folder.

    Raises:
        CorpusDamaged: A file is missing or not what `identity.json` says. A graph that is missing or of another size is
            no error: exact search answers, and `warnings` says so.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            record = json.loads((folder / IDENTITY).read_text(encoding="utf-8"))
            if record["format"] != FORMAT:
                raise ValueError(f"format {record['format']}")
            self.identity = EncoderIdentity(**record["identity"])
            self.facts = GraphFacts(**record["graph"])
            shape = (int(record["n"]), self.identity.dim)
            matrix = np.load(folder / MATRIX, mmap_mode="r" if shape[0] else None)
        except (OSError, MemoryError) as exc:
            raise unreadable(folder / MATRIX, exc) from exc
        except (EOFError, ValueError, KeyError, TypeError) as exc:
            raise damaged(folder, f"cannot be opened: {exc}") from exc
        if matrix.shape != shape or matrix.dtype != np.float32:
            raise damaged(folder / MATRIX, f"has {matrix.shape} of {matrix.dtype}, not {shape} of float32")
        self._matrix: Floats32 = np.asarray(matrix)
        # Float32 sums of more terms stray further; the error grows like the root of their number.
        self._margin = _MARGIN * max(1.0, math.sqrt(self.identity.dim / _MARGIN_DIM))
        self._graph, self.warnings = self._find_graph()
        self._lock = threading.Lock()
        self._products: LRUCache[bytes, Floats32] = LRUCache(_KEPT_PRODUCTS)

    def __len__(self) -> int:
        return len(self._matrix)

    def close(self) -> None:
        """Unmap the graph; the matrix is unmapped when the last array over it is gone."""
        if self._graph is not None:
            self._graph.close()

    def search(self, vector: Floats32, scope: Scope, depth: int, *, exact: str = "auto") -> Scored:
        """The `depth` nearest allowed records by cosine.

        Args:
            vector: float32 (dim,), length 1.
            scope: What may be returned. A `visible` mask always means exact.
            depth: How many at most.
            exact: `auto` is exact where that takes about 2 ms or where a mask leaves records out; `yes`; `no` is
                approximate, except where records are hidden or the mask leaves few.

        Returns:
            Cosines in [-1, 1] as float64, score down then number up; `found` is the number of allowed records.

        Raises:
            EncoderMismatch: The vector has another number of dimensions.
            UsageError: The vector is not finite, or `exact` is another word.
        """
        query = self._query(vector)
        rows = self._rows(scope)
        allowed = len(self) if rows is None else len(rows)
        if exact not in ("auto", "yes", "no"):
            raise UsageError(f"exact is {exact!r}", "It is auto, yes or no")
        if depth <= 0 or allowed == 0:
            return Scored(np.empty(0, np.int64), np.empty(0), allowed)
        if self._graph is not None and self._approximately(scope, rows, depth, exact):
            found = self._walk(self._graph, query, rows, scope.allowed, depth)
            if found is not None:
                return Scored(*self._ordered(query, found, depth), allowed, approximate=True)
        return Scored(*self._nearest(query, rows, depth), allowed)

    def score(self, vector: Floats32, numbers: Ints) -> Floats:
        """Cosine of given records, float64 in the same order, in [-1, 1]; bit-equal to `search`."""
        return self._cosines64(self._query(vector), np.asarray(numbers, np.int64))

    def cosines(self, vector: Floats32, scope: Scope) -> Floats32:
        """Cosine of every allowed record, float32, in number order, in [-1, 1]: for histograms."""
        query = self._query(vector)
        return np.clip(self._product(query, self._rows(scope)), np.float32(-1), np.float32(1))

    def vectors(self, numbers: Ints) -> Floats32:
        """Copies of stored vectors, float32 (m, dim), in the order asked."""
        copied: Floats32 = self._matrix[np.asarray(numbers, np.int64)]
        return copied

    def approximates(self, scope: Scope, depth: int, exact: str) -> bool:
        """Whether `search` asks the graph. A deeper search never does where a shallower one does not."""
        return self._graph is not None and self._approximately(scope, self._rows(scope), depth, exact)

    def recall(self, vector: Floats32, scope: Scope, depth: int) -> float:
        """Share of the exact nearest `depth` that the approximate search finds for this query, in [0, 1]; any record as near as
        the last of them is as good.

        1.0 where the approximate search answers exactly anyway (hidden records, few allowed ones, no graph).
        """
        approximate = self.search(vector, scope, depth, exact="no")
        if not approximate.approximate:
            return 1.0
        true = self.search(vector, scope, depth, exact="yes")
        if not len(true.numbers):
            return 1.0
        return reached(approximate.scores.tolist(), true.scores.tolist()) / len(true.numbers)

    # --- deciding ---------------------------------------------------------------------------------------------------

    def _find_graph(self) -> tuple[Graph | None, tuple[str, ...]]:
        if self.facts.warning:
            return None, (self.facts.warning,)
        if not len(self):
            return None, ()
        path = self._folder / GRAPH
        # usearch maps whatever it is given; a file cut short would take the process down with it.
        if not path.is_file() or path.stat().st_size != self.facts.size or self.facts.rows != len(self):
            return None, (f"The approximate index {path} is missing or has another size; exact search answers",)
        return Graph(path, self.identity.dim), ()

    def _approximately(self, scope: Scope, rows: Ints | None, depth: int, exact: str) -> bool:
        """Whether the graph should answer."""
        if exact == "yes" or scope.visible is not None:
            return False
        if exact == "no":
            return rows is None or len(rows) >= _GRAPH_ABOVE * len(self)
        expected = self._matrix.size * _EXACT_MS_PER_ELEMENT
        return rows is None and expected > max(EXACT_LIMIT_MS, first_width(depth) * _GRAPH_MS_PER_WIDTH)

    def _walk(self, graph: Graph, query: Floats32, rows: Ints | None, allowed: Any, depth: int) -> Ints | None:
        """Allowed candidates from the graph, a few more than `depth`; None if it fails or finds too few."""
        total = len(self)
        here = total if rows is None else len(rows)
        wanted = min(depth, here)
        width: int | None = first_width(depth)
        found, reach = np.empty(0, np.int64), 0
        while width is not None and reach < total:
            again, reach = reach > 0, min(total, math.ceil(width * total / here))
            try:
                found, cosines = graph.search(query, reach)
            except RuntimeError:
                return None
            if rows is not None:
                kept = allowed[found]
                found, cosines = found[kept], cosines[kept]
            last = float(cosines[wanted - 1]) if len(found) >= wanted else -math.inf
            width = None if again else second_width(depth, last, self.facts)
        # The graph's cosines are rough, so the border of the wanted ones is too.
        return found[: depth + max(16, depth // 8)] if len(found) >= wanted else None

    # --- calculating ------------------------------------------------------------------------------------------------

    def _query(self, vector: Floats32) -> Floats32:
        query = np.ascontiguousarray(vector, np.float32)
        if query.shape != (self.identity.dim,):
            raise EncoderMismatch(
                f"The query's vector has shape {query.shape}, the corpus has {self.identity.dim} dimensions",
                f"Encode the query with {self.identity.name}",
            )
        if not np.isfinite(query).all():
            raise UsageError("The query's vector holds values that are not finite", "Encode the query again")
        return query

    def _rows(self, scope: Scope) -> Ints | None:
        """Numbers of the allowed records, up; None for all."""
        mask = scope.allowed if scope.allowed is not None else scope.visible
        if mask is None:
            return None
        if len(mask) != len(self):
            raise UsageError(f"The mask covers {len(mask)} records of {len(self)}", "Make the scope from this corpus")
        rows = np.flatnonzero(mask)
        return None if len(rows) == len(self) else rows

    def _product(self, query: Floats32, rows: Ints | None) -> Floats32:
        """Rough cosines of the rows, float32."""
        product: Floats32
        if rows is not None and len(rows) < _GATHER_BELOW * len(self):
            product = self._matrix[rows] @ query
        else:
            product = self._whole(query)
            product = product if rows is None else product[rows]
        return product

    def _whole(self, query: Floats32) -> Floats32:
        """Rough cosines of all rows, float32, not to be written to.

        The collections of one search, and the histogram after it, ask for the same ones at about the same time: one reads the
        matrix, the others wait for that.
        """
        key = query.tobytes()
        with self._lock:
            product = self._products.get(key)
            if product is None:
                product = self._products[key] = self._matrix @ query
                product.flags.writeable = False
            return product

    def _nearest(self, query: Floats32, rows: Ints | None, depth: int) -> tuple[Ints, Floats]:
        rough = self._product(query, rows)
        chosen = _candidates(rough, depth, self._margin)
        return self._ordered(query, chosen if rows is None else rows[chosen], depth)

    def _ordered(self, query: Floats32, numbers: Ints, depth: int) -> tuple[Ints, Floats]:
        scores = self._cosines64(query, numbers)
        order = np.lexsort((numbers, -scores))[:depth]
        return numbers[order], scores[order]

    def _cosines64(self, query: Floats32, numbers: Ints) -> Floats:
        wide = query.astype(np.float64)
        result = np.empty(len(numbers))
        for start in range(0, len(numbers), _RESCORE_ROWS):
            part = numbers[start : start + _RESCORE_ROWS]
            result[start : start + _RESCORE_ROWS] = np.einsum("ij,j->i", self._matrix[part].astype(np.float64), wide)
        return np.clip(result, -1.0, 1.0, out=result)


def _candidates(rough: Floats32, depth: int, margin: float) -> Ints:
    """Positions of everything that may be among the best `depth` when scores stray by half of `margin`.

    A partial sort of all scores costs as much as a third of the product itself. Instead: the best of each of many groups;
    the `depth`-th of those is reached by at least `depth` rows, so nothing below it needs sorting.
    """
    if depth >= len(rough):
        return np.arange(len(rough))
    slack = np.float32(margin)
    groups = len(rough) // _GROUP
    if len(rough) < _SMALL or groups < 2 * depth:
        last = np.partition(rough, len(rough) - depth)[len(rough) - depth]
        return np.flatnonzero(rough >= last - slack)
    best = rough[: groups * _GROUP].reshape(_GROUP, groups).max(axis=0)
    floor = np.partition(best, groups - depth)[groups - depth]
    some = np.flatnonzero(rough >= floor - slack)
    scores = rough[some]
    last = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    kept: Ints = some[scores >= last - slack]
    return kept


# --- walking the graph ------------------------------------------------------------------------------------------


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
