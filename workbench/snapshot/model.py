"""What a snapshot holds, as records and tables: schema version 1.

Everything about searches that is one value a search is a `SavedSearch`; what has many rows is a table, one for all searches of
the snapshot, whose first column says to which search (from 0) a row belongs. A change to any of this is a new `SCHEMA`, with a
reader for the old one and its file kept in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from workbench.records import EncoderIdentity, Principal, Step, Unavailable

if TYPE_CHECKING:
    import polars as pl

SCHEMA = 1
PLANS = "plans"
"""Under which name a snapshot's versions have the edition of the presets; where it is missing, it is the first."""


class Passages(StrEnum):
    """What of the documents' text a snapshot carries."""

    SHOWN = "shown"
    REDACTED = "redacted"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Origin:
    """The corpus that answered, as its principal saw it.

    Attributes:
        generation: Id of the generation.
        digest: Hex digest of the visible documents, their records and the encoders: equal digests answer alike.
        documents, records: How many are visible; records 0 where their number was left out for an audience.
        encoders: Whose vectors the corpus holds.
    """

    generation: str
    digest: str
    documents: int
    records: int
    encoders: tuple[EncoderIdentity, ...] = ()


@dataclass(frozen=True, slots=True)
class Audience:
    """For whom a snapshot was cut: `everyone` where nothing had to be left out by role."""

    tenant: str | None
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class About:
    """Where a snapshot comes from, and what was left out of it.

    Attributes:
        created: UTC, ISO 8601, whole seconds.
        by: Who made it (setting `user`).
        note: What they said of it.
        principal: Who asked; None is the local owner.
        origin: The corpus.
        packages: Versions of Python and of the packages that decide a result.
        passages: What of the documents' text is here.
        audience: For whom it was cut, or None.
        policy: Digest of the policy's name under which the results were had (16 hex digits; "": none). Not the name: it may
            hold the patterns that it masks.
        omitted: True where rows were left out because the audience may not see their documents.
    """

    created: str
    by: str
    note: str
    principal: Principal | None
    origin: Origin
    packages: Mapping[str, str]
    passages: Passages = Passages.SHOWN
    audience: Audience | None = None
    policy: str = ""
    omitted: bool = False


@dataclass(frozen=True, slots=True)
class SavedSearch:
    """One search: what was asked, with which settings, and what was said beside the rows.

    Attributes:
        query, keywords, context, mode, filters: As asked.
        context_left_out: True where there was a context and it is not here.
        plan: The plan's text form.
        settings: Dotted field -> value as YAML holds it, every field (a family: the sources it was set for), so that the plan
            can be read where a default or a preset has changed since.
        score_kind: `fused`, or the lone source whose scores the rows have.
        sources: The sources that answered, sorted.
        approximate: Those of them that an approximate index answered.
        depths: The depths that were asked for beside the plan's, of the sources whose answers depend on them.
        unavailable: Those that could not run.
        timings_ms: Milliseconds by step.
        funnel: The steps; empty where they were left out.
        messages, warnings: As shown.
    """

    query: str
    keywords: str
    context: str
    mode: str
    filters: str
    plan: str
    settings: Mapping[str, Any]
    score_kind: str
    sources: tuple[str, ...]
    approximate: tuple[str, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    funnel: tuple[Step, ...] = ()
    messages: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    context_left_out: bool = False
    depths: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SavedMean:
    """One measure's mean over the judged queries, with its 95 % bootstrap interval (None: too few queries)."""

    measure: str
    mean: float
    low: float | None
    high: float | None
    queries: int


@dataclass(frozen=True, slots=True)
class SavedEvaluation:
    """One evaluation: its name (the plan's text), its means, and what a reader of them must know.

    Attributes:
        name: What was evaluated.
        means: One a measure, in order.
        judgments: Index (from 0) of its judgments in the table.
        judgments_name, judgments_digest: Which they are.
        coverage: `judged`, `unjudged`, `unjudged_documents`, `empty`; see `evaluate.Coverage`. None: unknown.
        warnings: As shown.
        seed: Seed of the intervals.
    """

    name: str
    means: tuple[SavedMean, ...]
    judgments: int
    judgments_name: str
    judgments_digest: str
    coverage: Mapping[str, float | int | None]
    warnings: tuple[str, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class SavedSweep:
    """One sweep: what was tried, what was chosen, and what was said of it. Its plans' means are a table.

    Attributes:
        measure: The measure that chose.
        fields: The dotted plan fields that varied.
        baseline, best: Text forms of the plan compared with and of the plan with the best mean.
        before, after: Which evaluations of the snapshot, from 0, are theirs.
        verdict: What can be said, in words: held out where there were folds or test queries.
        agreement: Whether the folds chose the same plan, in words; "" without folds.
        difference, low, high, p: The reported difference, its 95 % interval and its test. None: too few queries.
        oracle: Mean of each query's best plan.
        search: grid or random.
        combinations: How many were asked for.
        complete: False where it was stopped before the end.
        warnings: As shown.
    """

    measure: str
    fields: tuple[str, ...]
    baseline: str
    best: str
    before: int
    after: int
    verdict: str
    agreement: str
    difference: float
    low: float | None
    high: float | None
    p: float
    oracle: float
    search: str
    combinations: int
    complete: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Content:
    """Everything that a snapshot's parts hold; the tables have the columns of `TABLES`."""

    searches: tuple[SavedSearch, ...]
    evaluations: tuple[SavedEvaluation, ...]
    sweeps: tuple[SavedSweep, ...]
    tables: Mapping[str, pl.DataFrame]

    def table(self, name: str) -> pl.DataFrame:
        """A table, empty where the snapshot has no such part."""
        found = self.tables.get(name)
        return empty(name) if found is None else found


# Column -> type: S text, I whole number, F float, B yes or no, LS and LI lists. `?` may be null.
TABLES: Mapping[str, Mapping[str, str]] = {
    # Every fused candidate, best first: place is its place in the fused list (from 1), rank its rank in the final order
    # (null: dropped as a duplicate of the candidate at that place).
    "candidates": {
        "search": "I", "place": "I", "rank": "I?", "shown": "B", "duplicate_of": "I?", "chunk_id": "S", "document_id": "S",
        "path": "S?", "start_line": "I", "end_line": "I", "whole": "B", "label": "S", "score": "F", "rerank": "F?",
    },
    # What each source says of a candidate: its rank and raw score where it retrieved it, and what it added to the score.
    "sources": {
        "search": "I", "place": "I", "source": "S", "rank": "I?", "score": "F?", "distance": "F?", "contribution": "F",
    },
    # The shown rows. place is null for rows that the organisation by page added.
    "passages": {
        "search": "I", "position": "I", "rank": "I", "place": "I?", "added": "B", "chunk_id": "S", "document_id": "S",
        "chunk_index": "I", "collections": "LS", "path": "S?", "citation": "S?", "start_line": "I", "end_line": "I", "page": "I?",
        "locator": "S", "title": "S?", "url": "S?", "section": "S?", "text": "S?", "match_starts": "LI", "match_ends": "LI",
        "score": "F?", "score_kind": "S", "label": "S", "distance": "F?", "metadata": "S?",
    },
    # The documents that the principal could see: content is the first 32 hex digits of the sha256 of the original.
    "documents": {
        "document_id": "S", "path": "S?", "content": "S", "tenant": "S?", "roles": "LS", "sensitivity": "S",
    },
    "measures": {"evaluation": "I", "query_id": "S", "measure": "S", "value": "F"},
    "queries": {"evaluation": "I", "query_id": "S", "query": "S?", "latency_ms": "F?", "failure": "S?"},
    "runs": {"evaluation": "I", "query_id": "S", "rank": "I", "document": "S"},
    "judgments": {"judgments": "I", "query_id": "S", "query": "S?", "document": "S", "grade": "I"},
    # Every plan of a sweep with its mean in each measure, the baseline first.
    "points": {"sweep": "I", "point": "I", "plan": "S", "changes": "S", "measure": "S", "mean": "F"},
}  # fmt: skip
SEARCH_TABLES = ("candidates", "sources", "passages", "documents")
EVALUATION_TABLES = ("measures", "queries", "runs", "judgments")
SWEEP_TABLES = ("points",)


def columns(name: str) -> dict[str, Any]:
    """The polars schema of a table."""
    import polars as pl

    types: dict[str, Any] = {
        "S": pl.String, "I": pl.Int64, "F": pl.Float64, "B": pl.Boolean, "LS": pl.List(pl.String), "LI": pl.List(pl.Int64),
    }  # fmt: skip
    return {column: types[kind.rstrip("?")] for column, kind in TABLES[name].items()}


def required(name: str) -> tuple[str, ...]:
    """The columns of a table that may not be null."""
    return tuple(column for column, kind in TABLES[name].items() if not kind.endswith("?"))


def empty(name: str) -> pl.DataFrame:
    """A table without rows."""
    import polars as pl

    return pl.DataFrame(schema=columns(name))
