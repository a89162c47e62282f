"""A result as tables, as JSON values, and as plain text for a tool that reads text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from workbench.errors import WorkbenchError
from workbench.records import Hit, Label, Step
from workbench.retrieve.fusing import Outcome
from workbench.retrieve.retrieved import Retrieved

if TYPE_CHECKING:
    from workbench.retrieve.result import SearchResult


def candidates_frame(retrieved: Retrieved, outcome: Outcome) -> pl.DataFrame:
    """One row a fused candidate, best first."""
    columns, fused = retrieved.columns, outcome.fused
    rows = fused.rows
    picked = rows.tolist()
    data: dict[str, Any] = {
        "rank": np.arange(1, len(rows) + 1, dtype=np.int64),
        "path": [columns.paths[r] for r in picked],
        "start_line": columns.start_lines[rows],
        "end_line": columns.end_lines[rows],
        "label": [str(Label.STRONGEST if i == outcome.strongest else label) for i, label in enumerate(fused.labels)],
        "score": fused.scores,
        "chunk_id": [columns.chunk_ids[r] for r in picked],
        "document_id": [columns.document_ids[r] for r in picked],
    }
    schema: dict[str, Any] = {
        "rank": pl.Int64,
        "path": pl.String,
        "start_line": pl.Int64,
        "end_line": pl.Int64,
        "label": pl.String,
        "score": pl.Float64,
        "chunk_id": pl.String,
        "document_id": pl.String,
    }
    for column in outcome.candidates.columns:
        name = column.source
        nothing = np.zeros(len(rows), np.int64)
        ranks, records = (a.get(name, nothing).tolist() for a in (fused.ranks, fused.records))
        data[f"{name}_rank"] = [rank or None for rank in ranks]
        data[f"{name}_score"] = [
            float(column.score[row]) if rank else None for rank, row in zip(ranks, records, strict=True)
        ]
        data[f"{name}_contribution"] = fused.contributions.get(name, np.zeros(len(rows)))
        schema |= {f"{name}_rank": pl.Int64, f"{name}_score": pl.Float64, f"{name}_contribution": pl.Float64}
        if fused.unit == "document":
            data[f"{name}_chunk_id"] = [
                columns.chunk_ids[row] if rank else None for rank, row in zip(ranks, records, strict=True)
            ]
            schema[f"{name}_chunk_id"] = pl.String
    return pl.DataFrame(data, schema=schema)


def funnel_frame(steps: Sequence[Step]) -> pl.DataFrame:
    """One row a step."""
    return pl.DataFrame(
        {
            "step": [s.step for s in steps],
            "source": [s.source for s in steps],
            "entered": [s.entered for s in steps],
            "left": [s.left for s in steps],
            "dropped": [s.entered - s.left for s in steps],
            "reason": [s.reason for s in steps],
        },
        schema={
            "step": pl.String,
            "source": pl.String,
            "entered": pl.Int64,
            "left": pl.Int64,
            "dropped": pl.Int64,
            "reason": pl.String,
        },
    )


def hit_dict(hit: Hit) -> dict[str, Any]:
    """A hit as JSON values."""
    return {
        "rank": hit.rank,
        "score": _number(hit.score),
        "score_kind": hit.score_kind,
        "label": str(hit.label),
        "match": hit.match,
        "citation": hit.citation,
        "path": hit.path,
        "start_line": hit.start_line,
        "end_line": hit.end_line,
        "page": hit.page,
        "locator": hit.locator,
        "copies": list(hit.copies),
        "title": hit.title,
        "url": hit.url,
        "section": hit.section,
        "ranks": dict(sorted(hit.ranks.items())),
        "counted": {s: {"chunk_id": e.chunk_id, "start_line": e.start_line} for s, e in sorted(hit.counted.items())},
        "scores": {s: _number(v) for s, v in sorted(hit.scores.items())},
        "contributions": {s: _number(v) for s, v in sorted(hit.contributions.items())},
        "distance": None if hit.distance is None else _number(hit.distance),
        "chunk_id": hit.chunk_id,
        "document_id": hit.document_id,
        "chunk_index": hit.chunk_index,
        "collections": list(hit.collections),
        "text": hit.text,
        "matches": [[m.start, m.end] for m in hit.matches],
        "metadata": dict(sorted(hit.metadata.items())),
        "added": hit.added,
    }


def result_dict(result: SearchResult, timings: bool) -> dict[str, Any]:
    """A result as JSON values."""
    data: dict[str, Any] = {
        "query": result.query,
        "keywords": result.keywords,
        "mode": result.mode,
        "filters": result.filters,
        "plan": str(result.plan),
        "generation": result.generation,
        "hits": [hit_dict(h) for h in result.hits],
        "funnel": [
            {"step": s.step, "source": s.source, "entered": s.entered, "left": s.left, "reason": s.reason}
            for s in result.steps
        ],
        "messages": list(result.messages),
        "warnings": list(result.warnings),
        "unavailable": [{"source": u.source, "reason": u.reason, "remedy": u.remedy} for u in result.unavailable],
    }
    if timings:
        data["timings_ms"] = {k: round(v, 3) for k, v in result.timings_ms.items()}
        data["stats"] = {k: round(v, 3) for k, v in result.stats.items()}
        data["cached"] = result.cached
    return data


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


SNIPPET = 200
_SEARCHED = ("artifacts", "artifact_chunks", "memory")
"""A result names its collections in the order in which they are searched; others follow by name."""


def format_text(result: SearchResult) -> str:
    """The result as text; `No results found.` where there is none."""
    hits = [h for h in result.hits if not h.added]
    if not hits:
        return "No results found."
    places = {id(hit): place for place, hit in enumerate(hits, 1)}
    collections = sorted({c for h in hits for c in h.collections})
    lines = [f"Found {len(hits)} results (searched: {', '.join(collections)}):", ""]
    for hit in result.hits:
        lines += [*_block(hit, _score_name(result, hit), places.get(id(hit), 0)), ""]
    return "\n".join(lines)


def format_failure(error: WorkbenchError) -> str:
    """What is printed only when every source failed."""
    return f"Search failed: {error.message}"


def _score_name(result: SearchResult, hit: Hit) -> str:
    """`RRF`; the fusion method, where it is another one; or the lone source whose own score it is."""
    if hit.score_kind != "fused":
        return hit.score_kind
    method = str(result.plan["fusion.method"])
    return "RRF" if method == "rrf" else method


def _block(hit: Hit, name: str, place: int) -> Sequence[str]:
    """A hit under its place in the text; of one that is placed by its page its rank too. A row that was added has neither."""
    metadata = hit.metadata
    whole = metadata.get("granularity") == "document"
    origin = f"(from: {', '.join(sorted(hit.collections, key=_place))})"
    ranked = "" if place == hit.rank else f" | Rank: {hit.rank}"
    lines = [
        f"[+] {hit.section.rpartition(' > ')[2]} of the page {origin}"
        if hit.added
        else f"[{place}] {name} score: {hit.score:.3f} {origin}{ranked}",
        f"Type: {'artifact' if whole else 'chunk'} | ID: {hit.document_id if whole else hit.chunk_id}",
    ]
    if hit.title:
        lines.append(f"Title: {hit.title}")
    if "artifact_type" in metadata:
        source = metadata.get("source_system") or "?"
        lines.append(f"Source: {source} | Sensitivity: {metadata.get('sensitivity') or 'normal'}")
    snippet = hit.text if len(hit.text) <= SNIPPET else hit.text[:SNIPPET] + "..."
    lines.append(f'Snippet: "{snippet}"')
    evidence = metadata.get("source_url") or hit.url
    if evidence:
        lines.append(f"Evidence: {evidence}")
    return lines


def _place(collection: str) -> tuple[int, str]:
    known = collection in _SEARCHED
    return (_SEARCHED.index(collection) if known else len(_SEARCHED), collection)
