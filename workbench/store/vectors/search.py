"""The vectors of one encoder, mapped, and the nearest of them to a query.

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
import threading
from pathlib import Path
from typing import Any

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from workbench.errors import EncoderMismatch, UsageError
from workbench.ranking.agreement import reached
from workbench.records import EncoderIdentity
from workbench.store.generations import damaged, unreadable
from workbench.store.types import Scope, Scored
from workbench.store.vectors.build import FORMAT, GRAPH, IDENTITY, MATRIX, GraphFacts

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
