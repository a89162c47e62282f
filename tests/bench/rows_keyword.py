"""Keyword search: BM25 of the best 100, against libraries and databases that people use for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from bench import peers
from bench.figures import Peer, Row
from bench.ground import Ground
from bench.timing import in_turn
from workbench.store.types import Scope

_PEERS: tuple[tuple[str, Callable[[Ground], peers.Search], float], ...] = (
    (f"tantivy {peers.version('tantivy')}".strip(), peers.tantivy, 2.0),
    (f"bm25s {peers.version('bm25s')}".strip(), peers.bm25s, 0.25),
    (f"SQLite FTS5 {sqlite3.sqlite_version}", peers.fts5, 0.25),
)
"""Name, how it is opened, and the goal: the most that our median may be of its own."""

_DUCKDB = "DuckDB's fts extension is no peer here: there is no build of it for DuckDB 2 on the package index"


def typed(ground: Ground) -> Row:
    """Questions as typed, stop words included."""
    queries = [q.typed for q in ground.questions]
    return _row(ground, "keyword.typed", "BM25, best 100, questions with stop words", queries)


def content(ground: Ground) -> Row:
    """The same questions without their stop words."""
    queries = [q.content for q in ground.questions]
    return _row(ground, "keyword.content", "BM25, best 100, the same without stop words", queries)


def _row(ground: Ground, key: str, title: str, queries: Sequence[str]) -> Row:
    lexical, everything = ground.engine.lexical, Scope()

    def ours(query: str) -> object:
        return lexical.search(query, everything, peers.DEPTH, k1=peers.K1, b=peers.B, operator="any")

    contestants: dict[str, Callable[[str], object]] = {"ours": ours}
    missing: dict[str, str] = {}
    for name, opened, _ in _PEERS:
        try:
            contestants[name] = opened(ground)
        except peers.PeerMissing as exc:
            missing[name] = str(exc)
    figures = in_turn(contestants, queries)
    return Row(
        key,
        title,
        "ms",
        figures["ours"],
        tuple(Peer(name, figures.get(name), at_most, missing.get(name, "")) for name, _, at_most in _PEERS),
        notes=(_DUCKDB,),
    )
