"""Vector search, exact and approximate, against usearch at the same over the same vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.figures import Peer, Row
from bench.ground import Ground
from bench.machine import version
from bench.timing import in_turn
from workbench import settings
from workbench.store.types import Scope
from workbench.store.vectors.build import GRAPH, MATRIX

DEPTH = 100
RECALL = 0.98
_WIDTHS = (100, 128, 160, 200, 256, 320, 400, 500, 640, 800, 1000, 1280, 1600, 2048, 3000, 4096)

Vector = NDArray[np.float32]


def exact(ground: Ground) -> Row:
    """The exact nearest 100."""
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
