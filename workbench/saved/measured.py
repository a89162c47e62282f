"""Measures over time: what each check and each saved evaluation found, with when, in which generation, and under which plan.

A figure is taken over what its viewer could see, so each is kept for that viewer (principal and policy) and shown to no other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.plan.plan import recorded_text
from workbench.plan.presets import EDITION
from workbench.records import Principal, principal_key
from workbench.saved.database import Database, Group, now, time_of
from workbench.store.access.visibility import Policy, policy_digest

if TYPE_CHECKING:
    import polars as pl

    from workbench.evaluate.evaluation import Evaluation

MEASURED = Group(
    "measured",
    (
        "CREATE TABLE measured_runs (number INTEGER PRIMARY KEY, viewer TEXT NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL,"
        " generation TEXT NOT NULL, plan TEXT NOT NULL, edition INTEGER NOT NULL, judgments TEXT NOT NULL,"
        " digest TEXT NOT NULL, filters TEXT NOT NULL, queries INTEGER NOT NULL, figures TEXT NOT NULL) STRICT",
    ),
)


def keep(
    corpus: Path,
    evaluations: Sequence[Evaluation],
    generation: str,
    viewer: str,
    kind: str = "evaluation",
    filters: str | None = None,
) -> None:
    """Keep evaluations of a generation as points of their plans' lines. Raises CorpusError as `Database` does."""
    at = now()
    rows = []
    for e in evaluations:
        figures = {m: (mean, low, high) for m, mean, low, high, _ in e.frame().iter_rows()}
        judged = (e.judgments.name, e.judgments.given_digest, filters or "", len(e.query_ids))
        rows.append((viewer, at, kind, generation, e.name, EDITION, *judged, json.dumps(figures)))
    with Database(corpus).writing(MEASURED) as db:
        db.executemany(
            "INSERT INTO measured_runs (viewer, at, kind, generation, plan, edition, judgments, digest, filters, queries,"
            " figures) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )


def measured(corpus: Path, viewer: str) -> pl.DataFrame:
    """One row a kept evaluation and measure, in the order of time: at (UTC), kind (check or evaluation), generation, judgments,
    changed (the judgments are others than at the point before of that name), plan, filters, queries, measure, mean, low, high.
    """
    import polars as pl

    rows, before = [], dict[str, str]()
    sql = "SELECT * FROM measured_runs WHERE viewer = ? ORDER BY at, number"
    for row in Database(corpus).rows(MEASURED, sql, (viewer,)):
        changed = before.setdefault(row["judgments"], row["digest"]) != row["digest"]
        before[row["judgments"]] = row["digest"]
        plan = recorded_text(row["plan"], row["edition"])
        own = (time_of(row["at"]), row["kind"], row["generation"], row["judgments"], changed, plan, row["filters"])
        rows += [(*own, row["queries"], m, *ends) for m, ends in json.loads(row["figures"]).items()]
    texts: dict[str, Any] = dict.fromkeys(("kind", "generation", "judgments", "changed", "plan", "filters"), pl.String)
    numbers = dict.fromkeys(("mean", "low", "high"), pl.Float64)
    schema = {"at": pl.Datetime("us", "UTC"), **texts, "queries": pl.Int64, "measure": pl.String, **numbers}
    return pl.DataFrame(rows, schema={**schema, "changed": pl.Boolean}, orient="row")


def viewer_of(principal: Principal | None, policy: Policy | None) -> str:
    """Whose figures they are: a principal under a policy."""
    return json.dumps([principal_key(principal), policy_digest(policy)])
