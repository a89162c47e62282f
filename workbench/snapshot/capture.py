"""From results to the content of a snapshot.

Only what the principal could see goes in, because only that is asked for: the rows are those of the result, the documents
those that its scope shows, and the digest is the visible documents' own.
"""

from __future__ import annotations

import getpass
import hashlib
import importlib.metadata
import json
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import settings
from workbench.errors import UsageError
from workbench.plan import fields as plan_fields
from workbench.plan.fields import base_of
from workbench.plan.plan import Plan
from workbench.plan.presets import EDITION
from workbench.ranking.distance import to_distance
from workbench.records import EncoderIdentity, Hit, Principal
from workbench.snapshot.model import PLANS, SEARCH_TABLES, About, Content, Origin, SavedSearch, columns

if TYPE_CHECKING:
    import polars as pl

    from workbench.retrieve.engine import Engine
    from workbench.retrieve.result import SearchResult
    from workbench.store.access.visibility import Policy
    from workbench.store.types import Scope

PACKAGES = (
    "numpy", "duckdb", "usearch", "google-re2", "PyStemmer", "sentence-transformers", "torch", "openvino", "polars", "plotly",
)  # fmt: skip
"""Packages that can change a result or its picture: their versions go into the manifest."""
LONGEST_NOTE = 10_000
CONTENT_DIGITS = 32


def about(engine: Engine, scope: Scope, principal: Principal | None, note: str, by: str | None = None) -> About:
    """Where a snapshot comes from, now."""
    if len(note) > LONGEST_NOTE:
        raise UsageError(f"The note has {len(note):,} characters", f"Use at most {LONGEST_NOTE:,}")
    info = engine.records.info(scope)
    origin = Origin(
        generation=engine.generation,
        digest=str(info["digest"]),
        documents=int(info["documents"]),
        records=int(info["records"]),
        encoders=tuple(EncoderIdentity(**e) for e in info["encoders"]),
    )
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    policy = policy_digest(getattr(engine, "policy", None))
    made_by = clean(maker() if by is None else by)
    return About(created, made_by, clean(note), principal, origin, packages(), policy=policy)


def policy_digest(policy: Policy | None) -> str:
    """A policy's name as a digest, 16 hex digits; "" for none."""
    return "" if policy is None else hashlib.sha256(policy.name.encode("utf-8")).hexdigest()[:16]


def maker() -> str:
    """Who makes snapshots here: the setting `user`, else the login name, else nobody."""
    named = str(settings.get("user"))
    if named:
        return named
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def packages() -> dict[str, str]:
    """Versions of Python, the workbench, its presets and the packages that decide a result; those not there are left out."""
    from workbench import __version__

    found = {"python": platform.python_version(), "workbench": __version__, PLANS: str(EDITION)}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def clean(text: str) -> str:
    """Text that UTF-8 can hold: lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def searches(results: Sequence[SearchResult]) -> Content:
    """The content of some results, in their order."""
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in SEARCH_TABLES}
    saved = []
    for number, result in enumerate(results):
        saved.append(_search(result))
        _candidates(number, result, rows)
        places = {chunk_id: place for place, chunk_id in enumerate(result.fused.chunk_ids, 1)}
        rows["passages"] += [_passage(number, at, hit, places) for at, hit in enumerate(result.hits)]
    if results:
        rows["documents"] = documents(results[0]._engine, results[0]._retrieved.scope)
    return Content(tuple(saved), (), (), {name: frame(name, rows[name]) for name in SEARCH_TABLES})


def frame(name: str, rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    """Rows as a table of the schema."""
    import polars as pl

    return pl.DataFrame(list(rows), schema=columns(name), orient="row")


def documents(engine: Engine, scope: Scope) -> list[tuple[Any, ...]]:
    """Every visible document: id, path, content digest and who may see it."""
    seen = scope.visible_documents
    numbers = range(engine.records.documents_total) if seen is None else np.flatnonzero(seen).tolist()
    return [
        (d.document_id, clean(d.path), d.sha256[:CONTENT_DIGITS], d.tenant, list(d.roles), d.sensitivity)
        for d in engine.records.headers(list(numbers))
    ]


def plan_settings(plan: Plan) -> Mapping[str, Any]:
    """Every field's value as YAML holds it; of a family, the values that were set."""
    values = {f.name: plan_fields.plain(plan[f.name]) for f in plan_fields.FIELDS if not f.family}
    families = {name: plan_fields.plain(value) for name, value in plan if plan_fields.locate(name)[0].family}
    return values | families


def _search(result: SearchResult) -> SavedSearch:
    request = result._retrieved.request
    rankings = result.rankings
    return SavedSearch(
        query=result.query,
        keywords=result.keywords,
        context=request.context,
        mode=result.mode,
        filters=result.filters,
        plan=str(result.plan),
        settings=plan_settings(result.plan),
        score_kind=result._outcome.score_kind,
        sources=tuple(sorted(rankings)),
        approximate=tuple(sorted(s for s, r in rankings.items() if r.approximate)),
        unavailable=result.unavailable,
        timings_ms={name: round(float(value), 3) for name, value in result.timings_ms.items()},
        funnel=result.steps,
        messages=tuple(map(clean, result.messages)),
        warnings=tuple(map(clean, result.warnings)),
        depths={s: a.depth for s, a in result._retrieved.answers.items() if not a.steady},
    )


def _candidates(number: int, result: SearchResult, rows: dict[str, list[tuple[Any, ...]]]) -> None:
    """Every fused candidate, and what each source says of it."""
    outcome, columns_of = result._outcome, result._retrieved.columns
    fused = outcome.fused
    ranks = {int(position): rank for rank, position in enumerate(outcome.kept.tolist(), 1)}
    shown = set(outcome.shown.tolist())
    metric = result.plan["vector.metric"]
    for position, row in enumerate(fused.rows.tolist()):
        better = outcome.duplicate_of.get(position)
        rows["candidates"].append(
            (
                number, position + 1, ranks.get(position), position in shown, None if better is None else better + 1,
                columns_of.chunk_ids[row], columns_of.document_ids[row], clean(columns_of.paths[row]),
                int(columns_of.start_lines[row]), int(columns_of.end_lines[row]), bool(columns_of.whole[row]),
                str(fused.labels[position]), float(fused.scores[position]), _finite(outcome.rerank.get(position)),
            )
        )  # fmt: skip
        for column in outcome.candidates.columns:
            added, counted = fused.contributions.get(column.source), fused.ranks.get(column.source)
            contribution = 0.0 if added is None else float(added[position])
            rank = 0 if counted is None else int(counted[position])
            if not rank and contribution == 0.0:
                continue
            # For a document, the record whose rank counted is not always the one that is shown.
            score = float(column.score[int(fused.records[column.source][position])]) if rank else None
            far = score is not None and base_of(column.source) == "vector"
            distance = float(to_distance(np.array(score), metric)) if far else None
            rows["sources"].append(
                (number, position + 1, column.source, rank or None, _finite(score), _finite(distance), contribution)
            )


def _passage(number: int, at: int, hit: Hit, places: Mapping[str, int]) -> tuple[Any, ...]:
    metadata = json.dumps(dict(hit.metadata), sort_keys=True, ensure_ascii=False, default=str)
    return (
        number, at, hit.rank, None if hit.added else places.get(hit.chunk_id), hit.added, hit.chunk_id, hit.document_id,
        hit.chunk_index, list(hit.collections), clean(hit.path), clean(hit.citation), hit.start_line, hit.end_line, hit.page,
        clean(hit.locator), clean(hit.title), clean(hit.url), clean(hit.section), clean(hit.text),
        [m.start for m in hit.matches], [m.end for m in hit.matches], _finite(hit.score), hit.score_kind, str(hit.label),
        _finite(hit.distance), clean(metadata),
    )  # fmt: skip


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
