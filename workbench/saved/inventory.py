"""Sources and ingest jobs as tables, as far as a principal may know them.

Whoever sees every document of the corpus, and could see all that a job was about, sees the job whole. Anybody else sees the jobs
that name a source in which they see documents (or could have seen some, where they are gone), with those paths only, and without
counts and reasons, which tell of documents that are hidden from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.records import Principal
from workbench.saved.jobs import COLUMNS, Job, list_jobs
from workbench.store.access.visibility import Policy, SeeAll, may_know
from workbench.store.types import RecordStore, Scope

if TYPE_CHECKING:
    import polars


def visible_jobs(corpus: Path, records: RecordStore, principal: Principal | None, policy: Policy | None) -> list[Job]:
    """The jobs that a principal may know, the newest first. Raises CorpusError.

    Args:
        corpus: The corpus folder.
        records: The generation's records.
        principal: Who asks.
        policy: The corpus's.
    """
    scope, everything = records.scope(principal, None, ()), Scope()
    roots, all_roots = set(records.roots(scope)), set(records.roots(everything))
    judge = policy or SeeAll()

    def seen(job: Job, path: str) -> tuple[bool, bool]:
        """Whether anything below a path is seen, and whether all of it."""
        kinds = None if job.access is None else [may_know(kind, principal, judge) for kind in job.access.get(path, ())]
        # Before a run is done it is only known what it may be about.
        some = kinds is None or (bool(kinds) and (any if job.counts else all)(kinds))
        if path in all_roots or records.find_document(path, everything) is not None:
            some = path in roots or records.find_document(path, scope) is not None
        elif kinds is None:
            some = False
        return some, kinds is None or (all(kinds) if kinds else principal is None)

    shown = []
    for job in list_jobs(corpus):
        found = {path: seen(job, path) for path in job.paths}
        if scope.visible_documents is None and all(whole for _, whole in found.values()):
            shown.append(job)
            continue
        paths = tuple(path for path, (some, _) in found.items() if some)
        if paths:
            # Which parts of the corpus a run was for says what there is besides.
            shown.append(replace(job, paths=paths, counts=None, reason="", remedy="", generation="", collections=()))
    return shown


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
