"""What a snapshot holds, as records and tables: schema version 1.

Everything about searches that is one value a search is a `SavedSearch`; what has many rows is a table, one for all searches of
the snapshot, whose first column says to which search (from 0) a row belongs. A change to any of this is a new `SCHEMA`, with a
reader for the old one and its file kept in the tests.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from workbench.assist.models import BUILT_IN
from workbench.charts.search import Candidate
from workbench.errors import SnapshotError
from workbench.plan.fields import OFF
from workbench.plan.plan import recorded_fields, recorded_text
from workbench.plan.presets import EDITION
from workbench.records import EncoderIdentity, Hit, Label, Principal, Span, Step, Unavailable

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
    audience: Principal | None = None
    policy: str = ""
    omitted: bool = False

    @property
    def when(self) -> str:
        """When it was made, for a reader: `29 Nov 2026, 10:20 UTC`."""
        try:
            return datetime.fromisoformat(self.created).strftime("%-d %b %Y, %H:%M UTC")
        except ValueError:
            return self.created


@dataclass(frozen=True, slots=True)
class SavedSearch:
    """One search: the request, its settings, and what was said beside the rows.

    Attributes:
        query, keywords, context, mode, filters: The request.
        plan: The plan's text form.
        settings: Dotted field -> value as YAML holds it, every field (a family: the sources it was set for), so that the plan
            can be read where a default or a preset has changed since.
        score_kind: `fused`, or the lone source whose scores the rows have.
        sources: The sources that answered, sorted.
        approximate: Those of them that an approximate index answered.
        unavailable: Those that could not run.
        timings_ms: Milliseconds by step.
        funnel: The steps; empty where they were left out.
        messages, warnings: As shown.
        context_left_out: True where there was a context and it is not here.
        depths: The depths that were requested beside the plan's, of the sources whose answers depend on them.
    """

    query: str
    keywords: str
    context: str
    mode: str
    filters: str
    plan: str
    settings: Mapping[str, str | int | float | bool | None]
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

    @property
    def title(self) -> str:
        return self.query or self.keywords

    @property
    def models(self) -> tuple[str, ...]:
        """The models and files that running the search again would load, as its plan names them."""
        named = (str(self.settings.get(name, OFF)).strip() for name in ("rerank.model", "rewrite.model"))
        return tuple(dict.fromkeys(name for name in named if name not in BUILT_IN))


@dataclass(frozen=True, slots=True)
class SavedMean:
    """One measure's mean over the judged queries, with its 95 % bootstrap interval (None: too few queries)."""

    measure: str
    mean: float
    low: float | int | None
    high: float | int | None
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
    """One sweep; its plans' means are a table.

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
        combinations: How many were requested.
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
    low: float | int | None
    high: float | int | None
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

    @property
    def models(self) -> tuple[str, ...]:
        """The models and files that the searches' plans name, each once."""
        return tuple(dict.fromkeys(name for search in self.searches for name in search.models))

    def table(self, name: str) -> pl.DataFrame:
        """A table, empty where the snapshot has no such part."""
        import polars as pl

        found = self.tables.get(name)
        return pl.DataFrame(schema=columns(name)) if found is None else found

    def rows(self, name: str, number: int) -> pl.DataFrame:
        """The rows of a table that belong to one search (evaluation, sweep, judgments), in order."""
        import polars as pl

        frame = self.table(name)
        return frame.filter(pl.col(frame.columns[0]) == number)

    def evidence(self, number: int) -> dict[int, list[dict[str, Any]]]:
        """Place -> what each source says of that candidate of a search, sources sorted by name."""
        found: dict[int, list[dict[str, Any]]] = {}
        for row in self.rows("sources", number).iter_rows(named=True):
            found.setdefault(row["place"], []).append(row)
        return found


# Column:type, with S text, I whole number, F float, B yes or no, LS and LI lists; `?` may be null.
_TABLES = {
    # Every fused candidate, best first: place is its place in the fused list (from 1), rank its rank in the final order
    # (null: dropped as a duplicate of the candidate at that place).
    "candidates": "search:I place:I rank:I? shown:B duplicate_of:I? chunk_id:S document_id:S path:S? start_line:I "
    "end_line:I whole:B label:S score:F rerank:F?",
    # What each source says of a candidate: its rank and raw score where it retrieved it, and what it added to the score.
    "sources": "search:I place:I source:S rank:I? score:F? distance:F? contribution:F",
    # The shown rows. place is null for rows that the organisation by page added.
    "passages": "search:I position:I rank:I place:I? added:B chunk_id:S document_id:S chunk_index:I collections:LS path:S? "
    "citation:S? start_line:I end_line:I page:I? locator:S title:S? url:S? section:S? text:S? match_starts:LI match_ends:LI "
    "score:F? score_kind:S label:S distance:F? metadata:S?",
    # The documents that the principal could see: content is the first 32 hex digits of the sha256 of the original.
    "documents": "document_id:S path:S? content:S tenant:S? roles:LS sensitivity:S",
    "measures": "evaluation:I query_id:S measure:S value:F",
    "queries": "evaluation:I query_id:S query:S? latency_ms:F? failure:S?",
    "runs": "evaluation:I query_id:S rank:I document:S",
    "judgments": "judgments:I query_id:S query:S? document:S grade:I",
    # Every plan of a sweep with its mean in each measure, the baseline first.
    "points": "sweep:I point:I plan:S changes:S measure:S mean:F",
}
TABLES: Mapping[str, Mapping[str, str]] = {
    name: dict(pair.split(":") for pair in text.split()) for name, text in _TABLES.items()
}
SEARCH_TABLES = ("candidates", "sources", "passages", "documents")
EVALUATION_TABLES = ("measures", "queries", "runs", "judgments")
SWEEP_TABLES = ("points",)


def columns(name: str) -> dict[str, Any]:
    return types_of(TABLES[name].items())


def types_of(kinds: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Columns and kinds, as `TABLES` has them, as polars' schema."""
    import polars as pl

    types: dict[str, Any] = {"S": pl.String, "I": pl.Int64, "F": pl.Float64, "B": pl.Boolean}
    types |= {"LS": pl.List(pl.String), "LI": pl.List(pl.Int64)}
    return {column: types[kind.rstrip("?")] for column, kind in kinds}


def of_this_edition(content: Content, about: About) -> Content:
    """The content with its plans' texts and fields as this version writes them.

    The presets' names may have come to mean something else since a snapshot was saved (`plan.presets.EDITION`). Its rows and
    digests stay; the plans that it names are read as the plans that they were. Raises SnapshotError for no edition.
    """
    named = about.packages.get(PLANS, "1")
    if not named.isascii() or not named.isdigit():
        raise SnapshotError("The snapshot's manifest.json names no edition of its plans", "Ask for the file again")
    edition = int(named)
    if edition >= EDITION:
        return content
    now = functools.partial(recorded_text, edition=edition)
    tables = dict(content.tables)
    if "points" in tables:
        plans = tables["points"]["plan"]
        tables["points"] = tables["points"].with_columns(plans.replace({text: now(text) for text in plans.unique()}))
    return Content(
        tuple(replace(s, plan=now(s.plan), settings=recorded_fields(s.settings, edition)) for s in content.searches),
        tuple(replace(e, name=now(e.name)) for e in content.evaluations),
        tuple(replace(s, baseline=now(s.baseline), best=now(s.best)) for s in content.sweeps),
        tables,
    )


# --- rows as the records that pictures, pages and exports read ------------------------------------------------------------


def who(principal: Principal | None) -> str:
    if principal is None:
        return "the local owner"
    return f"tenant {principal.tenant or 'none'} with roles {', '.join(principal.roles) or 'none'}"


def name_of_row(row: Mapping[str, Any]) -> str:
    """What a candidate is called: path and first line, or its chunk id where the path was left out."""
    return row["chunk_id"] if row["path"] is None else f"{row['path']}:{row['start_line']}"


def _by_source(lines: list[dict[str, Any]]) -> dict[str, Any]:
    known = {
        name: {x["source"]: x[name[:-1]] for x in lines if x[name[:-1]] is not None} for name in ("ranks", "scores")
    }
    return {**known, "contributions": {x["source"]: x["contribution"] for x in lines}}


def placed(
    content: Content, number: int, most: int, name: Callable[[Mapping[str, Any]], str] = name_of_row
) -> tuple[Candidate, ...]:
    """The first `most` candidates of a search in their final order, as the charts take them."""
    import polars as pl

    ranked = content.rows("candidates", number).filter(pl.col("rank").is_not_null()).sort("rank").head(most)
    evidence = content.evidence(number)
    return tuple(
        Candidate(
            rank=row["rank"],
            fused_rank=row["place"],
            name=name(row),
            chunk_id=row["chunk_id"],
            path=row["path"] or row["chunk_id"],
            label=Label(row["label"]),
            score=row["score"],
            rerank=row["rerank"],
            **_by_source(evidence.get(row["place"], [])),
        )
        for row in ranked.iter_rows(named=True)
    )


_SAME = "rank score_kind chunk_id document_id chunk_index start_line end_line page distance added locator".split()


def hits(content: Content, number: int) -> tuple[Hit, ...]:
    """The shown rows of a search; what was left out of the snapshot is "" in them."""
    evidence = content.evidence(number)
    made = []
    for row in content.rows("passages", number).iter_rows(named=True):
        lines = evidence.get(row["place"], []) if row["place"] is not None else []
        texts: dict[str, Any] = {name: row[name] or "" for name in ("path", "url", "title", "section", "text")}
        made.append(
            Hit(
                score=float("nan") if row["score"] is None else row["score"],
                label=Label(row["label"]),
                collections=tuple(row["collections"]),
                matches=spans(row),
                metadata=_metadata(row["metadata"]),
                **{name: row[name] for name in _SAME},
                **texts,
                **_by_source(lines),
            )
        )
    return tuple(made)


def spans(row: Mapping[str, Any]) -> tuple[Span, ...]:
    """The matches of a passage's row that are inside its text, in order."""
    length = len(row["text"] or "")
    pairs = zip(row["match_starts"], row["match_ends"], strict=False)
    return tuple(sorted(Span(start, end) for start, end in pairs if 0 <= start < end <= length))


def _metadata(text: str | None) -> dict[str, Any]:
    try:
        values = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
