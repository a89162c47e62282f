"""A snapshot in other forms: the table of a result, CSV, a TREC run, JSON, the page."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from workbench.errors import UsageError
from workbench.evaluate.run import Run
from workbench.markup import csv_of
from workbench.records import FEEDBACK
from workbench.snapshot.boards import evaluation_of

if TYPE_CHECKING:
    import polars as pl

    from workbench.snapshot.schema import Content
    from workbench.snapshot.snapshot import Snapshot


def candidates(content: Content, number: int) -> pl.DataFrame:
    import polars as pl

    frame = content.rows("candidates", number).with_columns(rank="place")
    names = ("place", "rank", "path", "start_line", "end_line", "label", "score", "chunk_id", "document_id")
    frame, sources = frame.select(names), content.rows("sources", number)
    fed = [FEEDBACK] if any(sources["source"] == FEEDBACK) else []
    for source in (*content.searches[number].sources, *fed):
        mine = sources.filter(pl.col("source") == source)
        mine = mine.select("place", *(pl.col(n).alias(f"{source}_{n}") for n in ("rank", "score", "contribution")))
        added = pl.col(f"{source}_contribution").fill_null(0.0)
        frame = frame.join(mine, on="place", how="left", maintain_order="left").with_columns(added)
    return frame.drop("place", *(f"{name}_{what}" for name in fed for what in ("rank", "score")))


def to_csv(snapshot: Snapshot) -> str:
    """Every candidate of every search, one row for each source that says something of it; safe to open in a spreadsheet."""
    import polars as pl

    content = snapshot.content
    rows = [(n, s.title, s.mode, s.plan) for n, s in enumerate(content.searches)]
    schema: dict[str, Any] = {"search": pl.Int64, **dict.fromkeys(("query", "mode", "plan"), pl.String)}
    searches = pl.DataFrame(rows, schema=schema, orient="row")
    sources = content.table("sources").rename({"rank": "source_rank", "score": "source_score"})
    frame = content.table("candidates").join(searches, on="search", how="left", maintain_order="left")
    frame = frame.join(sources, on=["search", "place"], how="left", maintain_order="left_right")
    first = ["search", "query", "mode", "plan", "rank", "shown", "path", "start_line", "end_line", "label", "score"]
    return csv_of(frame.select(*first, *(c for c in frame.columns if c not in first)))


def to_trec(snapshot: Snapshot) -> str:
    """The runs of the evaluations, else the searches as runs: `query Q0 document rank score name`.

    A search's query id is its number, from 1; its documents are paths, each once, at its best passage.

    Raises:
        UsageError: The snapshot holds no names of documents.
    """
    content = snapshot.content
    runs = [evaluation_of(content, n).run for n in range(len(content.evaluations))]
    if not runs:
        rankings: dict[str, tuple[str, ...]] = {}
        for number in range(len(content.searches)):
            ranked = content.rows("candidates", number).drop_nulls("rank").sort("rank")
            rankings[str(number + 1)] = tuple(dict.fromkeys(p for p in ranked["path"] if p is not None))
        runs = [Run(rankings, f"snapshot-{snapshot.id}")]
    text = "".join(run.to_trec() for run in runs)
    if not text:
        raise UsageError("The snapshot holds no names of documents", "Export from one that was saved with them")
    return text


def to_dict(snapshot: Snapshot) -> dict[str, Any]:
    content = snapshot.content

    def rows(table: str, number: int, key: str) -> list[dict[str, Any]]:
        return content.rows(table, number).drop(key).to_dicts()

    searches = [
        {**asdict(s), "candidates": candidates(content, n).to_dicts(), "passages": rows("passages", n, "search")}
        for n, s in enumerate(content.searches)
    ]
    evaluations = [
        {**asdict(e), "per_query": rows("measures", n, "evaluation")} for n, e in enumerate(content.evaluations)
    ]
    sweeps = [{**asdict(s), "points": rows("points", n, "sweep")} for n, s in enumerate(content.sweeps)]
    head: dict[str, Any] = {"id": snapshot.id, "schema": snapshot.manifest.schema, "title": snapshot.title}
    head["about"] = asdict(snapshot.about)
    body = {"searches": searches, "evaluations": evaluations, "sweeps": sweeps}
    return {**head, "models": list(snapshot.models), **body, "documents": content.table("documents").to_dicts()}


def to_json(snapshot: Snapshot) -> str:
    return json.dumps(to_dict(snapshot), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
