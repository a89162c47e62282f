"""A hit to draw in tests of cards and charts."""

from typing import Any

from workbench.records import Hit, Label, Span


def hit(**changes: Any) -> Hit:
    values: dict[str, Any] = {
        "rank": 1, "score": 1 / 61 + 1 / 64, "score_kind": "fused", "label": Label.HYBRID,
        "contributions": {"keyword": 1 / 64, "vector": 1 / 61}, "ranks": {"keyword": 4, "vector": 1},
        "scores": {"keyword": 7.5, "vector": 0.8}, "chunk_id": "c1", "document_id": "d1", "chunk_index": 0,
        "collections": ("docs",), "path": "notes/a.md", "url": "", "title": "A title", "start_line": 3, "end_line": 9,
        "page": None, "section": "A > B", "text": "How do retries work here", "matches": (Span(7, 14),), "distance": 0.21,
    }  # fmt: skip
    return Hit(**{**values, **changes})
