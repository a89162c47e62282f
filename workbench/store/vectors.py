"""The vectors of a generation: the matrix, the approximate index, and who made them; exact and approximate search over them.

*Building.* The matrix is written as it comes, a block at a time, so that memory does not grow with the corpus. The graph is built
with one thread, so that the same vectors give the same answers, and only over so many vectors that `auto` would walk it. Where
building it fails, the generation answers exactly and says so.

*Searching.* Exact search is one product of the matrix with the query in float32, then the float64 cosine of everything that may
be among the best: so a record's score has the same bits however it was found. HNSW (Malkov and Yashunin, arXiv 1603.09320) finds
most of the nearest rows by walking a graph; the width of the walk (`ef`) buys recall with time. Measured on 200,000 MiniLM
vectors, queries near rows of the corpus reach recall@100 0.98 at ef 200, questions that people typed at 1,200: every walk has
that width. The graph holds bf16 copies of the vectors, so its order is rough, and its candidates are scored again.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from cachetools import LRUCache

from workbench.encode.protocol import Meter
from workbench.errors import CorpusError, EncoderMismatch, UsageError
from workbench.records import EncoderIdentity, ProgressCallback
from workbench.store.generations import damaged, unreadable
from workbench.store.types import Floats, Floats32, Ints, Scope, Scored

MATRIX = "vectors.npy"
GRAPH = "index.usearch"
IDENTITY = "identity.json"

CONNECTIVITY = 16
EXPANSION_ADD = 128
WIDTH = 1200
"""Width of a walk for 100 wanted rows or fewer."""

EXACT_MS_PER_ELEMENT = 7.8e-8
GRAPH_MS_PER_WIDTH = 3.0e-3
"""What exact search and a walk are expected to take: `auto` searches exactly where that is no slower."""

_BLOCK = 4096
_LENGTH_TOLERANCE = 1e-3
_GATHER_BELOW = 0.05
_GRAPH_ABOVE = 0.2
_MARGIN = 1e-6
_MARGIN_DIM = 384
_GROUP = 64
_SMALL = 1 << 14
_RESCORE_ROWS = 8192
_KEPT_PRODUCTS = 2  # queries whose cosines are kept: 4 bytes a record each


def build_vectors(
    folder: Path,
    blocks: Iterable[Floats32],
    n: int,
    identity: EncoderIdentity,
    progress: ProgressCallback | None = None,
) -> str:
    """Write `vectors.npy` and `identity.json` of `n` records, and `index.usearch` where exact search would be slower. Returns
    why that could not be built, or "".

    `blocks` are float32 (any, dim) in record order; rows have length 1, or 0: such a one is equally far from everything.
    `progress` is called with the steps `vectors` and `graph`. Raises CorpusError where rows are too many or too few, have another
    width than `identity` says, or are not unit vectors.
    """
    folder.mkdir(parents=True, exist_ok=True)
    matrix = _write_matrix(folder / MATRIX, blocks, n, identity, Meter(progress, "vectors", n))
    target, warning = folder / GRAPH, ""
    target.unlink(missing_ok=True)
    try:
        if _exact_is_slower(matrix.size):
            build_graph(matrix, target, Meter(progress, "graph", n))
    except Exception as exc:  # noqa: BLE001  the graph is an extra: whatever fails, the exact vectors answer
        target.unlink(missing_ok=True)
        reason = str(exc) or type(exc).__name__
        warning = f"The approximate index could not be built ({reason}); exact search answers"
    graph = {"size": target.stat().st_size if target.exists() else 0, "warning": warning}
    record = {"n": n, "identity": asdict(identity), "graph": graph}
    (folder / IDENTITY).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return warning


def build_graph(matrix: Floats32, target: Path, meter: Meter) -> None:
    """Build the graph over all rows (at least one, of length 1) and write it. Raises whatever usearch raises."""
    from usearch.index import Index

    count, dim = matrix.shape
    index = Index(ndim=dim, metric="ip", dtype="bf16", connectivity=CONNECTIVITY, expansion_add=EXPANSION_ADD)
    for start in range(0, count, _BLOCK):
        end = min(start + _BLOCK, count)
        index.add(np.arange(start, end, dtype=np.uint64), np.ascontiguousarray(matrix[start:end]), threads=1)
        meter.advance(end - start)
    index.save(str(target))
    index.reset()


def _write_matrix(path: Path, blocks: Iterable[Floats32], n: int, identity: EncoderIdentity, meter: Meter) -> Floats32:
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
            squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
            bad = np.flatnonzero(~((np.abs(squares - 1.0) <= _LENGTH_TOLERANCE) | (squares == 0)))
            if len(bad):
                raise CorpusError(
                    f"The vector of record {done + bad[0]} has length {float(squares[bad[0]]) ** 0.5:.4g}, not 1",
                    "Normalise the vectors, or index again with an encoder of this package",
                )
            if done + len(rows) > n:
                raise CorpusError(f"There are more vectors than the {n} records", "Index again")
            file.write(rows.tobytes())
            done += len(rows)
            meter.advance(len(rows))
    if done != n:
        raise CorpusError(f"There are {done} vectors for {n} records", "Index again")
    return np.asarray(np.load(path, mmap_mode="r" if n else None))


class VectorIndex:
    """The vectors of one encoder, in a folder that `build_vectors` wrote. Read-only, safe from several threads.

    Raises CorpusDamaged where a file is missing or not what `identity.json` says. A graph that is missing or of another size
    is no error: exact search answers, and `without_graph` says so.
    """

    def __init__(self, folder: Path) -> None:
        try:
            record = json.loads((folder / IDENTITY).read_text(encoding="utf-8"))
            self.identity = EncoderIdentity(**record["identity"])
            shape = (int(record["n"]), self.identity.dim)
            size, reason = int(record["graph"]["size"]), str(record["graph"]["warning"])
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
        self._lock = threading.Lock()
        self._products: LRUCache[bytes, Floats32] = LRUCache(_KEPT_PRODUCTS)
        self._path = folder / GRAPH
        self._graph: Any = None
        if not size and not reason:
            reason = f"Over {shape[0]:,} vectors exact search is no slower than an approximate index, so there is none"
        # usearch maps whatever it is given; a file cut short would take the process down with it.
        elif not reason and not (self._path.is_file() and self._path.stat().st_size == size):
            reason = f"The approximate index {self._path} is missing or has another size; exact search answers"
        self.without_graph = reason

    def __len__(self) -> int:
        return len(self._matrix)

    def search(self, vector: Floats32, scope: Scope, depth: int, *, exact: str = "auto") -> Scored:
        """The `depth` nearest allowed records by cosine, in [-1, 1] as float64, score down then number up; `found` is the
        number of allowed records. `vector` is float32 (dim,) of length 1. `exact` is `auto`: exact where that is no slower
        or where a mask leaves records out; `yes`; or `no`: approximate, except where there is no graph, records are hidden or
        the mask leaves few. A `visible` mask always means exact.

        Raises EncoderMismatch where the vector has another number of dimensions, UsageError where it is not finite, or
        `exact` is another word.
        """
        query = checked_query(vector, self.identity)
        rows = self._rows(scope)
        allowed = len(self) if rows is None else len(rows)
        check_exact(exact)
        if depth <= 0 or allowed == 0:
            return Scored(np.empty(0, np.int64), np.empty(0), allowed)
        if self._approximately(scope, rows, depth, exact):
            found = self._walk(query, rows, scope.allowed, depth)
            if found is not None:
                return Scored(*self._ordered(query, found, depth), allowed, approximate=True)
        rough = self._product(query, rows)
        chosen = _candidates(rough, depth, self._margin)
        return Scored(*self._ordered(query, chosen if rows is None else rows[chosen], depth), allowed)

    def score(self, vector: Floats32, numbers: Ints) -> Floats:
        """Cosine of given records, float64 in the same order, in [-1, 1]; bit-equal to `search`."""
        return self._cosines64(checked_query(vector, self.identity), np.asarray(numbers, np.int64))

    def cosines(self, vector: Floats32, scope: Scope) -> Floats32:
        """Cosine of every allowed record, float32, in number order, in [-1, 1]: for histograms."""
        query = checked_query(vector, self.identity)
        return np.clip(self._product(query, self._rows(scope)), np.float32(-1), np.float32(1))

    def vectors(self, numbers: Ints) -> Floats32:
        """Copies of stored vectors, float32 (m, dim), in the order asked."""
        copied: Floats32 = self._matrix[np.asarray(numbers, np.int64)]
        return copied

    def approximates(self, scope: Scope, depth: int, exact: str) -> bool:
        """Whether `search` asks the graph. A deeper search never does where a shallower one does not."""
        return self._approximately(scope, self._rows(scope), depth, exact)

    def _approximately(self, scope: Scope, rows: Ints | None, depth: int, exact: str) -> bool:
        if self.without_graph or exact == "yes" or scope.visible is not None:
            return False
        if exact == "no":
            return rows is None or len(rows) >= _GRAPH_ABOVE * len(self)
        return rows is None and _exact_is_slower(self._matrix.size, depth)

    def _walk(self, query: Floats32, rows: Ints | None, allowed: Any, depth: int) -> Ints | None:
        """Allowed candidates from the graph, a few more than `depth`; None if it fails or finds too few."""
        total = len(self)
        here = total if rows is None else len(rows)
        try:
            with self._lock:
                if self._graph is None:
                    from usearch.index import Index

                    graph = Index(ndim=self.identity.dim, metric="ip", dtype="bf16", enable_key_lookups=False)
                    graph.view(str(self._path))
                    self._graph = graph
            # ef is the larger of the index's own setting and the count asked for, so no shared setting is touched.
            width = min(total, math.ceil(_width(depth) * total / here))
            found: Ints = self._graph.search(query, width, threads=1).keys.astype(np.int64)
        except RuntimeError:
            return None
        if rows is not None:
            found = found[allowed[found]]
        # The graph's cosines are rough, so the border of the wanted ones is too.
        return found[: depth + max(16, depth // 8)] if len(found) >= min(depth, here) else None

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
        """Rough cosines of the rows, float32, not to be written to.

        The collections of one search, and the histogram after it, ask for the same ones at about the same time: one reads the
        matrix, the others wait for that.
        """
        product: Floats32 | None
        if rows is not None and len(rows) < _GATHER_BELOW * len(self):
            product = self._matrix[rows] @ query
            return product
        key = query.tobytes()
        with self._lock:
            product = self._products.get(key)
            if product is None:
                product = self._products[key] = self._matrix @ query
                product.flags.writeable = False
        return product if rows is None else product[rows]

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


def checked_query(vector: Floats32, identity: EncoderIdentity) -> Floats32:
    """A query's vector, float32 (dim,). Raises EncoderMismatch where it has other dimensions, UsageError where not finite."""
    query = np.ascontiguousarray(vector, np.float32)
    if query.shape != (identity.dim,):
        raise EncoderMismatch(
            f"The query's vector has shape {query.shape}, the corpus has {identity.dim} dimensions",
            f"Encode the query with {identity.name}",
        )
    if not np.isfinite(query).all():
        raise UsageError("The query's vector holds values that are not finite", "Encode the query again")
    return query


def check_exact(exact: str) -> None:
    """Raise UsageError for another word than those of the field `vector.exact`."""
    if exact not in ("auto", "yes", "no"):
        raise UsageError(f"exact is {exact!r}", "It is auto, yes or no")


def _exact_is_slower(elements: int, depth: int = 1) -> bool:
    """Whether reading so many elements of a matrix is expected to take longer than a walk."""
    return elements * EXACT_MS_PER_ELEMENT > _width(depth) * GRAPH_MS_PER_WIDTH


def _width(depth: int) -> int:
    return max(WIDTH, WIDTH * depth // 100)


def _candidates(rough: Floats32, depth: int, margin: float) -> Ints:
    """Positions of everything that may be among the best `depth` when scores stray by half of `margin`.

    A partial sort of all scores costs as much as a third of the product itself. Instead: the best of each of many groups;
    the `depth`-th of those is reached by at least `depth` rows, so nothing below it needs sorting.
    """
    if depth >= len(rough):
        return np.arange(len(rough))
    slack = np.float32(margin)
    some = np.arange(len(rough))
    groups = len(rough) // _GROUP
    if len(rough) >= _SMALL and groups >= 2 * depth:
        best = rough[: groups * _GROUP].reshape(_GROUP, groups).max(axis=0)
        some = np.flatnonzero(rough >= np.partition(best, groups - depth)[groups - depth] - slack)
    scores = rough[some]
    kept: Ints = some[scores >= np.partition(scores, len(scores) - depth)[len(scores) - depth] - slack]
    return kept
