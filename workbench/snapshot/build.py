"""From results to the content of a snapshot, and from a content to less of it: what is redacted, what an audience may see.

Only what the principal could see goes in, because only that is requested: the rows are those of the result, the documents
those that its scope shows, and the digest is the visible documents' own.

An audience is judged as a search judges it (`store.access`): tenant, roles, sensitivity. What cannot be attributed to a
document that the audience may see is left out. Counts, messages and timings of a search that lost rows go too, because they
count documents that the audience may not know of; ranks and scores stay as they were, since renumbered ones would be a lie.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import PrincipalRequired, UsageError
from workbench.evaluate.evaluation import Evaluation
from workbench.evaluate.statistics import finite
from workbench.evaluate.sweep import Sweep
from workbench.plan import fields as plan_fields
from workbench.plan.plan import Plan
from workbench.plan.presets import EDITION
from workbench.ranking.cutting import to_distance
from workbench.records import FEEDBACK, EncoderIdentity, Hit, Principal
from workbench.retrieve.compare import Comparison
from workbench.retrieve.result import SearchResult
from workbench.settings import login
from workbench.snapshot.schema import (
    EVALUATION_TABLES,
    PLANS,
    SEARCH_TABLES,
    About,
    Content,
    Origin,
    Passages,
    SavedEvaluation,
    SavedMean,
    SavedSearch,
    SavedSweep,
    columns,
)
from workbench.store.access.visibility import Access, Policy, SeeAll, policy_digest, visible

if TYPE_CHECKING:
    import polars as pl

    from workbench.corpus import Corpus
    from workbench.retrieve.engine import Engine
    from workbench.store.types import Scope

PACKAGES = tuple("numpy duckdb usearch google-re2 PyStemmer sentence-transformers torch openvino polars".split())
"""Packages that can change a result: with plotly, which draws it, their versions go into the manifest."""
LONGEST_NOTE = 10_000
CONTENT_DIGITS = 32
MOST_SEARCHES = 500
Rows = dict[str, list[tuple[Any, ...]]]


def gather(
    items: Sequence[Any] | Any, *, note: str = "", corpus: Corpus | None = None, by: str | None = None
) -> tuple[About, Content]:
    """Where the items come from, and what they hold. Raises UsageError; see `Snapshot.of`."""
    results, evaluations, sweeps = _sorted_out(items)
    if not results and not evaluations:
        raise UsageError("There is nothing to save", "Pass at least one search result or evaluation")
    if len(results) > MOST_SEARCHES:
        raise UsageError(f"{len(results)} searches are too many for one snapshot", f"Save at most {MOST_SEARCHES}")
    if results:
        engine, scope = results[0].engine, results[0].retrieved.scope
        principal = results[0].retrieved.request.principal
    elif corpus is not None:
        engine, principal = corpus.engine, corpus.principal
        scope = engine.visible
    else:
        raise UsageError(
            "An evaluation does not know its corpus", "Pass corpus= too: wb.Snapshot.of(evaluation, corpus=corpus)"
        )
    for result in results:
        if result.generation != engine.generation or result.retrieved.request.principal != principal:
            raise UsageError(
                "The results are of several generations or principals",
                "Save one snapshot of each, and compare them with diff",
            )
    if corpus is not None and corpus.engine.generation != engine.generation:
        raise UsageError("The corpus has moved on since the search", "Search again, then save")
    content = searches(results)
    tables = dict(content.tables)
    if not results:
        tables["documents"] = frame("documents", documents(engine, scope))
    saved: tuple[SavedEvaluation, ...] = ()
    if evaluations:
        saved, more = _evaluations(evaluations)
        tables |= more
    if sweeps:
        tables["points"] = frame("points", [row for n, (one, *_) in enumerate(sweeps) for row in _points(n, one)])
    made = replace(content, evaluations=saved, sweeps=tuple(_sweep(*s) for s in sweeps), tables=tables)
    return about(engine, scope, principal, note, by), made


def _sorted_out(items: Any) -> tuple[list[SearchResult], list[Evaluation], list[tuple[Sweep, int, int]]]:
    """Results, evaluations, and sweeps with the places of their two evaluations."""
    results: list[SearchResult] = []
    evaluations: list[Evaluation] = []
    sweeps: list[tuple[Sweep, int, int]] = []
    for item in items if isinstance(items, Sequence) else (items,):
        if isinstance(item, SearchResult):
            results.append(item)
        elif isinstance(item, Comparison):
            results += item.results
        elif isinstance(item, Evaluation):
            evaluations.append(item)
        elif isinstance(item, Sweep):
            sweeps.append((item, len(evaluations), len(evaluations) + 1))
            evaluations += [item.before, item.after]
        else:
            raise UsageError(
                f"A snapshot cannot hold a {type(item).__name__}",
                "Pass search results, comparisons, evaluations and sweeps",
            )
    return results, evaluations, sweeps


# --- where it comes from --------------------------------------------------------------------------------------------------


def about(engine: Engine, scope: Scope, principal: Principal | None, note: str, by: str | None = None) -> About:
    if len(note) > LONGEST_NOTE:
        raise UsageError(f"The note has {len(note):,} characters", f"Use at most {LONGEST_NOTE:,}")
    info = engine.records.info(scope)
    encoders = tuple(EncoderIdentity(**e) for e in info["encoders"])
    origin = Origin(engine.generation, str(info["digest"]), int(info["documents"]), int(info["records"]), encoders)
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    policy = policy_digest(getattr(engine, "policy", None))
    return About(
        created, clean(login() if by is None else by), clean(note), principal, origin, packages(), policy=policy
    )


def packages() -> dict[str, str]:
    """Versions of Python, the workbench, its presets and the packages that decide a result; those not there are left out."""
    from workbench import __version__

    found = {"python": platform.python_version(), "workbench": __version__, PLANS: str(EDITION)}
    for name in (*PACKAGES, "plotly"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def clean(text: str) -> str:
    """Text that UTF-8 can hold: lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def documents(engine: Engine, scope: Scope) -> list[tuple[Any, ...]]:
    """Every visible document: id, path, content digest and who may see it."""
    seen = scope.visible_documents
    numbers = range(engine.records.documents_total) if seen is None else np.flatnonzero(seen).tolist()
    return [
        (d.document_id, clean(d.path), d.sha256[:CONTENT_DIGITS], d.tenant, list(d.roles), d.sensitivity)
        for d in engine.records.headers(list(numbers))
    ]


def frame(name: str, rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(list(rows), schema=columns(name), orient="row")


# --- searches -------------------------------------------------------------------------------------------------------------


def searches(results: Sequence[SearchResult]) -> Content:
    rows: Rows = {name: [] for name in SEARCH_TABLES}
    saved = []
    for number, result in enumerate(results):
        saved.append(_search(result))
        _candidates(number, result, rows)
        places = {chunk_id: place for place, chunk_id in enumerate(result.fused.chunk_ids, 1)}
        rows["passages"] += [_passage(number, at, hit, places) for at, hit in enumerate(result.hits)]
    if results:
        rows["documents"] = documents(results[0].engine, results[0].retrieved.scope)
    return Content(tuple(saved), (), (), {name: frame(name, rows[name]) for name in SEARCH_TABLES})


def plan_settings(plan: Plan) -> Mapping[str, Any]:
    values = {f.name: plan_fields.plain(plan[f.name]) for f in plan_fields.FIELDS if not f.family}
    families = {name: plan_fields.plain(value) for name, value in plan if plan_fields.locate(name)[0].family}
    return values | families


def _search(result: SearchResult) -> SavedSearch:
    rankings = result.rankings
    return SavedSearch(
        **{
            name: getattr(result, name)
            for name in ("query", "keywords", "mode", "filters", "score_kind", "unavailable")
        },
        context=result.retrieved.request.context,
        plan=str(result.plan),
        settings=plan_settings(result.plan),
        sources=tuple(sorted(rankings)),
        approximate=tuple(sorted(s for s, r in rankings.items() if r.approximate)),
        timings_ms={name: round(float(value), 3) for name, value in result.timings_ms.items()},
        funnel=result.steps,
        messages=tuple(map(clean, result.messages)),
        warnings=tuple(map(clean, result.warnings)),
        depths={s: a.depth for s, a in result.retrieved.answers.items() if not a.steady},
    )


def _candidates(number: int, result: SearchResult, rows: Rows) -> None:
    outcome, fused, made = result.outcome, result.fused, result.retrieved.columns
    ranks = {int(position): rank for rank, position in enumerate(result.order.tolist(), 1)}
    shown = set(outcome.shown.tolist())
    metric = result.plan["vector.metric"]
    for position, row in enumerate(fused.rows.tolist()):
        better = outcome.duplicate_of.get(position)
        place = (number, position + 1, ranks.get(position), position in shown, None if better is None else better + 1)
        chunk = (made.chunk_ids[row], made.document_ids[row], clean(made.paths[row]))
        lines = (int(made.start_lines[row]), int(made.end_lines[row]), bool(made.whole[row]))
        label, score = str(fused.labels[position]), float(fused.scores[position])
        rows["candidates"].append((*place, *chunk, *lines, label, score, finite(outcome.rerank.get(position))))
        evidence = fused.evidence(position)
        for source, added in fused.contributions.items():
            rank, record = evidence.get(source, (None, -1))
            raw = far = None
            if rank is not None:
                # For a document, the record whose rank counted is not always the one that is shown.
                column = outcome.candidates.column(source)
                raw = float(column.counting[record])
                if plan_fields.base_of(source) == "vector":
                    far = float(to_distance(column.score[record], metric))
            if rank or added[position] or source == FEEDBACK:
                measured = (source, rank, finite(raw), finite(far), float(added[position]))
                rows["sources"].append((number, position + 1, *measured))


def _passage(number: int, at: int, hit: Hit, places: Mapping[str, int]) -> tuple[Any, ...]:
    row = hit.to_dict()
    row |= {
        "search": number,
        "position": at,
        "place": None if hit.added else places.get(hit.chunk_id),
        "match_starts": [start for start, _ in row["matches"]],
        "match_ends": [end for _, end in row["matches"]],
        "score": finite(hit.score),
        "distance": finite(hit.distance),
        "metadata": json.dumps(dict(hit.metadata), sort_keys=True, ensure_ascii=False, default=str),
    }
    return tuple(clean(v) if isinstance(v, str) else v for v in (row[column] for column in columns("passages")))


# --- evaluations and sweeps -----------------------------------------------------------------------------------------------


def _evaluations(evaluations: Sequence[Evaluation]) -> tuple[tuple[SavedEvaluation, ...], dict[str, Any]]:
    rows: Rows = {name: [] for name in EVALUATION_TABLES}
    saved: list[SavedEvaluation] = []
    known: dict[str, int] = {}
    for number, e in enumerate(evaluations):
        if e.judgments.digest not in known:
            known[e.judgments.digest] = len(known)
            rows["judgments"] += [
                (len(known) - 1, clean(i), _text_of(e, i), clean(key), int(grade))
                for i in e.judgments.query_ids
                for key, grade in e.judgments.qrels[i].items()
            ]
        means = (SavedMean(r["measure"], r["mean"], r["low"], r["high"], r["queries"]) for r in e.frame().to_dicts())
        coverage = {"judged": finite(e.coverage.judged), "unjudged": finite(e.coverage.unjudged)}
        coverage |= {"unjudged_documents": e.coverage.unjudged_documents, "empty": e.coverage.empty}
        which = (known[e.judgments.digest], clean(e.judgments.name), e.judgments.digest)
        warnings = tuple(map(clean, e.warnings))
        saved.append(SavedEvaluation(clean(e.name), tuple(means), *which, coverage, warnings, e.seed))
        for at, query_id in enumerate(e.query_ids):
            own, run = (number, clean(query_id)), e.run
            rows["measures"] += [(*own, m, float(e.values[at, n])) for n, m in enumerate(e.measures)]
            failure = run.failures.get(query_id)
            asked = (_text_of(e, query_id), run.latencies_ms.get(query_id), failure and clean(failure))
            rows["queries"].append((*own, *asked))
            rows["runs"] += [(*own, rank, clean(key)) for rank, key in enumerate(run.rankings.get(query_id, ()), 1)]
    return tuple(saved), {name: frame(name, rows[name]) for name in EVALUATION_TABLES}


def _sweep(sweep: Sweep, before: int, after: int) -> SavedSweep:
    d = sweep.difference
    same = ("measure", "oracle", "search", "combinations", "complete")
    return SavedSweep(
        fields=tuple(sweep.space.grid),
        baseline=str(sweep.baseline),
        best=str(sweep.best),
        before=before,
        after=after,
        verdict=clean(sweep.verdict),
        agreement=clean(sweep.agreement),
        difference=d.difference,
        low=finite(d.low),
        high=finite(d.high),
        p=d.p,
        warnings=tuple(map(clean, sweep.warnings)),
        **{name: getattr(sweep, name) for name in same},
    )


def _points(number: int, sweep: Sweep) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for measure in sweep.measures:
        means = sweep.means(measure).tolist()
        rows += [(number, n, str(plan), sweep.changes(n), measure, means[n]) for n, plan in enumerate(sweep.plans)]
    return rows


def _text_of(evaluation: Evaluation, query_id: str) -> str | None:
    topic = evaluation.judgments.topics.get(query_id)
    return None if topic is None else clean(topic.text)


# --- less of it -----------------------------------------------------------------------------------------------------------

_TEXT = ("title", "url", "section", "text", "metadata")
_NAMES = ("path", "citation", *_TEXT)


def redacted(about: About, content: Content) -> tuple[About, Content]:
    if about.passages is not Passages.SHOWN:
        return about, content
    tables = {**content.tables, "passages": _without(content.table("passages"), _TEXT)}
    return replace(about, passages=Passages.REDACTED), _without_contexts(content, tables)


def metadata_only(about: About, content: Content) -> tuple[About, Content]:
    """Nothing that names a document or holds its text; rows keep their ids."""
    import polars as pl

    tables = dict(content.tables)
    tables["passages"] = _without(content.table("passages"), _NAMES).with_columns(locator=pl.lit(""))
    for name in ("candidates", "documents"):
        tables[name] = _without(content.table(name), ("path",))
    # Runs and judgments name documents by their paths: the measures stay.
    for name in ("runs", "judgments"):
        if name in tables:
            tables[name] = tables[name].clear()
    return replace(about, passages=Passages.NONE), _without_contexts(content, tables)


def for_audience(
    about: About,
    content: Content,
    principal: Principal | None,
    policy: Policy | None,
    shown: Collection[str] | None = None,
) -> tuple[About, Content]:
    """What an audience may see, of documents with the ids `shown` (None: all). Raises PrincipalRequired.

    Where the policy masks texts for the audience and they were had as somebody else, or under another policy, none of them
    stays: a policy masks whole documents, and here are only pieces.
    """
    import polars as pl

    same = principal == about.principal and policy_digest(policy) == about.policy
    if policy is not None and policy.redacts(principal) and not same:
        about, content = redacted(about, content)
    listed = content.table("documents")
    kinds = [Access(r["tenant"], tuple(r["roles"]), r["sensitivity"]) for r in listed.iter_rows(named=True)]
    if principal is None and any(k.tenant is not None or k.roles for k in kinds):
        raise PrincipalRequired(
            "This snapshot has documents of tenants or roles, and no audience was given",
            "Name the audience: tenant and roles",
        )
    seen = {k: visible(k, principal, policy or SeeAll()) for k in dict.fromkeys(kinds)}
    about = replace(about, audience=principal or Principal())
    pairs = zip(kinds, listed["document_id"], strict=True)
    kept = listed.filter(pl.Series([seen[k] and (shown is None or i in shown) for k, i in pairs], dtype=pl.Boolean))
    # A row whose document the list does not name belongs to nobody.
    ids = kept["document_id"].implode()
    tables = dict(content.tables)
    for name in ("candidates", "passages"):
        tables[name] = content.table(name).filter(pl.col("document_id").is_in(ids))
    if len(kept) == len(listed) and all(len(tables[t]) == len(content.table(t)) for t in ("candidates", "passages")):
        return about, content
    tables["documents"] = kept
    place, candidates = ["search", "place"], tables["candidates"]
    tables["sources"] = content.table("sources").join(candidates, on=place, how="semi", maintain_order="left")
    names = pl.concat([kept["document_id"], kept["path"].drop_nulls()]).unique().implode()
    for name in ("runs", "judgments"):
        if name in tables:
            key = pl.col("document")
            tables[name] = tables[name].filter(key.is_in(names) | key.str.replace(r"#\d+-\d+$", "").is_in(names))
    # The statistics of a search are taken over all that its principal saw: where the audience sees less, none is shown.
    less = _without_contexts(content, tables)
    quiet = tuple(replace(s, funnel=(), messages=(), timings_ms={}) for s in less.searches)
    origin = replace(about.origin, documents=len(kept), records=0)
    return replace(about, omitted=True, origin=origin), replace(less, searches=quiet)


def _without_contexts(content: Content, tables: Mapping[str, pl.DataFrame]) -> Content:
    """The content with other tables and without the texts that people had open."""
    searches = (
        replace(s, context="", context_left_out=bool(s.context) or s.context_left_out) for s in content.searches
    )
    return replace(content, searches=tuple(searches), tables=tables)


def _without(frame: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    """The frame with nothing in these columns, and without matches where the text goes."""
    import polars as pl

    gone = {name: pl.lit(None, pl.String) for name in names if name in frame.columns}
    if "text" in gone:
        none: pl.Expr = pl.lit([], pl.List(pl.Int64))
        gone |= {"match_starts": none, "match_ends": none}
    return frame.with_columns(**gone)
