"""Sources and ingest jobs as tables, as far as a principal may know them.

Whoever sees every document of the corpus sees every job whole. Anybody else sees the jobs that name a source in which he sees
documents, with those paths only, and without counts and reasons: they tell of documents that are hidden from him.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.desk.jobs import COLUMNS, Job, list_jobs
from workbench.store.protocols import RecordStore, Scope

if TYPE_CHECKING:
    import polars


def visible_jobs(corpus: Path, records: RecordStore, scope: Scope) -> list[Job]:
    """The jobs that a principal may know, the newest first. Raises CorpusError.

    Args:
        corpus: The corpus folder.
        records: The generation's records.
        scope: What the principal sees.
    """
    jobs = list_jobs(corpus)
    if scope.visible_documents is None:
        return jobs
    roots = set(records.roots(scope))
    known = [
        replace(
            job,
            paths=tuple(path for path in job.paths if path in roots or records.find_document(path, scope) is not None),
            counts=None,
            reason="",
            remedy="",
            generation="",
            # Which parts of the corpus a run was for says what there is besides.
            collections=(),
        )
        for job in jobs
    ]
    return [job for job in known if job.paths]


def jobs_frame(jobs: Sequence[Job]) -> polars.DataFrame:
    """One row a job: number, kind, state, paths, collections, queued, started, ended, generation, a column a count, reason,
    remedy. Times are UTC; counts are null unless the job is done and its reader sees the whole corpus.
    """
    import polars as pl

    time, text, number = pl.Datetime("us", "UTC"), pl.String, pl.Int64
    lists, times = ("paths", "collections"), ("queued", "started", "ended")
    rows = [{**job.to_dict(), **{name: getattr(job, name) for name in times}} for job in jobs]
    texts = ("kind", "state", "generation", "reason", "remedy")
    schema = {
        name: pl.List(text) if name in lists else time if name in times else text if name in texts else number
        for name in COLUMNS
    }
    return pl.DataFrame(rows, schema=schema)


def sources_frame(records: RecordStore, scope: Scope) -> polars.DataFrame:
    """One row a source: path, kind (`folder`, or `files` indexed one by one), documents, chunks, bytes, modified (UTC), copies:
    how many more there are that are indexed under another path.
    """
    import polars as pl

    schema: dict[str, Any] = {
        "path": pl.String,
        "kind": pl.String,
        "documents": pl.Int64,
        "chunks": pl.Int64,
        "bytes": pl.Int64,
        "modified": pl.Datetime("us", "UTC"),
        "copies": pl.Int64,
    }
    return pl.DataFrame([asdict(source) for source in records.sources(scope)], schema=schema)
