"""A snapshot's rows as the records that pictures, pages and exports read: hits and places."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.assist.models import BUILT_IN
from workbench.charts.search import Place
from workbench.plan.fields import OFF
from workbench.records import Hit, Label, Span

if TYPE_CHECKING:
    import polars as pl

    from workbench.snapshot.model import Content, SavedSearch


def models_of(search: SavedSearch) -> tuple[str, ...]:
    """The models and files that running a search again would load, as its plan names them."""
    named = (str(search.settings.get(field, OFF)).strip() for field in ("rerank.model", "rewrite.model"))
    return tuple(dict.fromkeys(name for name in named if name not in BUILT_IN))


def rows_of(frame: pl.DataFrame, number: int) -> pl.DataFrame:
    """The rows of one search (or evaluation), in order."""
    import polars as pl

    return frame.filter(pl.col(frame.columns[0]) == number)


def name_of_row(row: Mapping[str, Any]) -> str:
    """What a candidate is called: path and first line, or its chunk id where the path was left out."""
    return row["chunk_id"] if row["path"] is None else f"{row['path']}:{row['start_line']}"


def standings(content: Content, number: int) -> dict[int, list[dict[str, Any]]]:
    """Place -> what each source says of that candidate, sources sorted by name."""
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows_of(content.table("sources"), number).iter_rows(named=True):
        found.setdefault(row["place"], []).append(row)
    return found


def placed(
    content: Content, number: int, most: int, name: Callable[[Mapping[str, Any]], str] = name_of_row
) -> tuple[Place, ...]:
    """The first `most` candidates of a search in their final order, as the charts take them.

    Args:
        content: The snapshot's content.
        number: The search, from 0.
        most: How many at most.
        name: What a candidate is called in the picture.
    """
    import polars as pl

    ranked = rows_of(content.table("candidates"), number).filter(pl.col("rank").is_not_null()).sort("rank").head(most)
    said = standings(content, number)
    made = []
    for row in ranked.iter_rows(named=True):
        lines = said.get(row["place"], [])
        made.append(
            Place(
                rank=row["rank"],
                fused_rank=row["place"],
                name=name(row),
                chunk_id=row["chunk_id"],
                path=row["path"] or row["chunk_id"],
                label=Label(row["label"]),
                ranks={line["source"]: line["rank"] for line in lines if line["rank"] is not None},
                scores={line["source"]: line["score"] for line in lines if line["score"] is not None},
                contributions={line["source"]: line["contribution"] for line in lines},
                score=row["score"],
                rerank=row["rerank"],
            )
        )
    return tuple(made)


def hits(content: Content, number: int) -> tuple[Hit, ...]:
    """The shown rows of a search; what was left out of the snapshot is "" in them."""
    said = standings(content, number)
    made = []
    for row in rows_of(content.table("passages"), number).iter_rows(named=True):
        lines = said.get(row["place"], []) if row["place"] is not None else []
        made.append(
            Hit(
                rank=row["rank"],
                score=float("nan") if row["score"] is None else row["score"],
                score_kind=row["score_kind"],
                label=Label(row["label"]),
                contributions={line["source"]: line["contribution"] for line in lines},
                ranks={line["source"]: line["rank"] for line in lines if line["rank"] is not None},
                scores={line["source"]: line["score"] for line in lines if line["score"] is not None},
                chunk_id=row["chunk_id"],
                document_id=row["document_id"],
                chunk_index=row["chunk_index"],
                collections=tuple(row["collections"]),
                path=row["path"] or "",
                url=row["url"] or "",
                title=row["title"] or "",
                start_line=row["start_line"],
                end_line=row["end_line"],
                page=row["page"],
                section=row["section"] or "",
                text=row["text"] or "",
                matches=spans(row),
                distance=row["distance"],
                metadata=_metadata(row["metadata"]),
                added=row["added"],
                locator=row["locator"],
            )
        )
    return tuple(made)


def spans(row: Mapping[str, Any]) -> tuple[Span, ...]:
    """The matches of a passage's row that lie in its text, in order."""
    length = len(row["text"] or "")
    pairs = zip(row["match_starts"], row["match_ends"], strict=False)
    return tuple(sorted(Span(start, end) for start, end in pairs if 0 <= start < end <= length))


def _metadata(text: str | None) -> dict[str, Any]:
    try:
        values = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
