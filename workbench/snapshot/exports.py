"""A snapshot in other forms: the table of a result, CSV, a TREC run, JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from workbench.errors import UsageError
from workbench.evaluate.run import Run
from workbench.markup import csv_of
from workbench.snapshot.view import rows_of

if TYPE_CHECKING:
    import polars as pl

    from workbench.snapshot.model import Content
    from workbench.snapshot.snapshot import Snapshot


def candidates(content: Content, number: int) -> pl.DataFrame:
    """See `Snapshot.frame`."""
    import polars as pl

    frame = rows_of(content.table("candidates"), number)
    frame = frame.select(
        "place",
        pl.col("place").alias("rank"),
        "path",
        "start_line",
        "end_line",
        "label",
        "score",
        "chunk_id",
        "document_id",
    )
    said = rows_of(content.table("sources"), number)
    for source in content.searches[number].sources:
        mine = said.filter(pl.col("source") == source).select(
            "place",
            pl.col("rank").alias(f"{source}_rank"),
            pl.col("score").alias(f"{source}_score"),
            pl.col("contribution").alias(f"{source}_contribution"),
        )
        frame = frame.join(mine, on="place", how="left", maintain_order="left").with_columns(
            pl.col(f"{source}_contribution").fill_null(0.0)
        )
    return frame.drop("place")


def to_html(snapshot: Snapshot) -> str:
    """The page, drawn from the data."""
    return snapshot.html()


def to_csv(snapshot: Snapshot) -> str:
    """Every candidate of every search, one row for each source that says something of it; safe to open in a spreadsheet."""
    import polars as pl

    content = snapshot.content
    asked = pl.DataFrame(
        {
            "search": pl.Series(range(len(content.searches)), dtype=pl.Int64),
            "query": pl.Series([s.query or s.keywords for s in content.searches], dtype=pl.String),
            "mode": pl.Series([s.mode for s in content.searches], dtype=pl.String),
            "plan": pl.Series([s.plan for s in content.searches], dtype=pl.String),
        }
    )
    sources = content.table("sources").rename({"rank": "source_rank", "score": "source_score"})
    frame = (
        content.table("candidates")
        .join(asked, on="search", how="left", maintain_order="left")
        .join(sources, on=["search", "place"], how="left", maintain_order="left_right")
    )
    first = ["search", "query", "mode", "plan", "rank", "shown", "path", "start_line", "end_line", "label", "score"]
    frame = frame.select(*first, *(c for c in frame.columns if c not in first))
    return csv_of(frame)


def to_trec(snapshot: Snapshot) -> str:
    """The runs of the evaluations, else the searches as runs: `query Q0 document rank score name`.

    A search's query id is its number, from 1; its documents are paths, each once, at its best passage.

    Raises:
        UsageError: The snapshot holds no names of documents.
    """
    content = snapshot.content
    if content.evaluations:
        texts = []
        for number, saved in enumerate(content.evaluations):
            rankings: dict[str, list[str]] = {}
            for row in rows_of(content.table("runs"), number).iter_rows(named=True):
                rankings.setdefault(row["query_id"], []).append(row["document"])
            texts.append(Run({i: tuple(keys) for i, keys in rankings.items()}, saved.name).to_trec())
        text = "".join(texts)
    else:
        rankings = {}
        for number in range(len(content.searches)):
            ranked = rows_of(content.table("candidates"), number).drop_nulls("rank").sort("rank")
            rankings[str(number + 1)] = list(dict.fromkeys(p for p in ranked["path"] if p is not None))
        text = Run({i: tuple(keys) for i, keys in rankings.items()}, f"snapshot-{snapshot.id}").to_trec()
    if not text:
        raise UsageError("The snapshot holds no names of documents", "Export from one that was saved with them")
    return text


def to_dict(snapshot: Snapshot) -> dict[str, Any]:
    """Everything but the page, as JSON values."""
    content, about = snapshot.content, snapshot.about
    searches = []
    for number, search in enumerate(content.searches):
        values = asdict(search)
        values["candidates"] = candidates(content, number).to_dicts()
        values["passages"] = rows_of(content.table("passages"), number).drop("search").to_dicts()
        searches.append(values)
    evaluations = []
    for number, saved in enumerate(content.evaluations):
        values = asdict(saved)
        values["per_query"] = rows_of(content.table("measures"), number).drop("evaluation").to_dicts()
        evaluations.append(values)
    sweeps = []
    for number, one in enumerate(content.sweeps):
        points = rows_of(content.table("points"), number).drop("sweep").to_dicts()
        sweeps.append({**asdict(one), "points": points})
    return {
        "id": snapshot.id, "schema": snapshot.manifest.schema, "title": snapshot.title, "about": asdict(about),
        "models": list(snapshot.models),
        "searches": searches, "evaluations": evaluations, "sweeps": sweeps, "documents": content.table("documents").to_dicts(),
    }  # fmt: skip


def to_json(snapshot: Snapshot) -> str:
    """`to_dict` as text."""
    return json.dumps(to_dict(snapshot), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
