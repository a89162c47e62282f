"""What goes into one snapshot: searches, comparisons, evaluations and sweeps of one corpus, as one principal saw it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.errors import UsageError
from workbench.evaluate.evaluation import Evaluation
from workbench.evaluate.swept import Sweep
from workbench.retrieve.compare import Comparison
from workbench.retrieve.result import SearchResult
from workbench.snapshot import capture
from workbench.snapshot.capture import clean
from workbench.snapshot.model import EVALUATION_TABLES, About, Content, SavedEvaluation, SavedMean, SavedSweep

if TYPE_CHECKING:
    from workbench.corpus import Corpus

MOST_SEARCHES = 500


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
        engine, scope = results[0]._engine, results[0]._retrieved.scope
        principal = results[0]._retrieved.request.principal
    elif corpus is not None:
        engine, principal = corpus.engine, corpus.principal
        scope = engine.records.scope(principal, None, ())
    else:
        raise UsageError(
            "An evaluation does not know its corpus", "Pass corpus= too: wb.Snapshot.of(evaluation, corpus=corpus)"
        )
    for result in results:
        if result.generation != engine.generation or result._retrieved.request.principal != principal:
            raise UsageError(
                "The results are of several generations or principals",
                "Save one snapshot of each, and compare them with diff",
            )
    if corpus is not None and corpus.engine.generation != engine.generation:
        raise UsageError("The corpus has moved on since the search", "Search again, then save")
    content = capture.searches(results)
    if not results:
        documents = capture.frame("documents", capture.documents(engine, scope))
        content = replace(content, tables={**content.tables, "documents": documents})
    if evaluations:
        saved, tables = _evaluations(evaluations)
        content = replace(content, evaluations=saved, tables={**content.tables, **tables})
    if sweeps:
        points = [row for n, (one, *_) in enumerate(sweeps) for row in _points(n, one)]
        content = replace(
            content, sweeps=tuple(_sweep(*s) for s in sweeps),
            tables={**content.tables, "points": capture.frame("points", points)},
        )  # fmt: skip
    return capture.about(engine, scope, principal, note, by), content


def _sorted_out(items: Any) -> tuple[list[SearchResult], list[Evaluation], list[tuple[Sweep, int, int]]]:
    """Results, evaluations, and sweeps with the places of their two evaluations."""
    results: list[SearchResult] = []
    evaluations: list[Evaluation] = []
    sweeps: list[tuple[Sweep, int, int]] = []
    given: Iterable[Any] = items if isinstance(items, Sequence) else (items,)
    for item in given:
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


def _evaluations(evaluations: Sequence[Evaluation]) -> tuple[tuple[SavedEvaluation, ...], dict[str, Any]]:
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in EVALUATION_TABLES}
    saved: list[SavedEvaluation] = []
    known: dict[str, int] = {}
    for number, e in enumerate(evaluations):
        judgments = known.setdefault(e.judgments.digest, len(known))
        if judgments == len(known) - 1 and not any(r[0] == judgments for r in rows["judgments"]):
            rows["judgments"] += [
                (judgments, clean(i), _text_of(e, i), clean(key), int(grade))
                for i in e.judgments.query_ids
                for key, grade in e.judgments.qrels[i].items()
            ]
        means = tuple(
            SavedMean(r["measure"], r["mean"], r["low"], r["high"], r["queries"])
            for r in e.frame().iter_rows(named=True)
        )
        coverage = {
            "judged": _known(e.coverage.judged), "unjudged": _known(e.coverage.unjudged),
            "unjudged_documents": e.coverage.unjudged_documents, "empty": e.coverage.empty,
        }  # fmt: skip
        saved.append(
            SavedEvaluation(
                clean(e.name), means, judgments, clean(e.judgments.name), e.judgments.digest, coverage,
                tuple(map(clean, e.warnings)), e.seed,
            )
        )  # fmt: skip
        for at, query_id in enumerate(e.query_ids):
            rows["measures"] += [(number, clean(query_id), m, float(e.values[at, n])) for n, m in enumerate(e.measures)]
            failure = e.run.failures.get(query_id)
            rows["queries"].append(
                (
                    number,
                    clean(query_id),
                    _text_of(e, query_id),
                    e.run.latencies_ms.get(query_id),
                    failure and clean(failure),
                )
            )
            ranking = e.run.rankings.get(query_id, ())
            rows["runs"] += [(number, clean(query_id), rank, clean(key)) for rank, key in enumerate(ranking, 1)]
    return tuple(saved), {name: capture.frame(name, rows[name]) for name in EVALUATION_TABLES}


def _sweep(sweep: Sweep, before: int, after: int) -> SavedSweep:
    d = sweep.difference
    return SavedSweep(
        measure=sweep.measure, fields=tuple(sweep.space.grid), baseline=str(sweep.baseline), best=str(sweep.best),
        before=before, after=after, verdict=clean(sweep.verdict), agreement=clean(sweep.agreement),
        difference=d.difference, low=_known(d.low), high=_known(d.high), p=d.p, oracle=sweep.oracle,
        search=sweep.search, combinations=sweep.combinations, complete=sweep.complete,
        warnings=tuple(map(clean, sweep.warnings)),
    )  # fmt: skip


def _points(number: int, sweep: Sweep) -> list[tuple[Any, ...]]:
    """Every plan's mean in every measure."""
    rows: list[tuple[Any, ...]] = []
    for measure in sweep.measures:
        means = sweep.means(measure).tolist()
        rows += [(number, n, str(plan), sweep.changes(n), measure, means[n]) for n, plan in enumerate(sweep.plans)]
    return rows


def _text_of(evaluation: Evaluation, query_id: str) -> str | None:
    topic = evaluation.judgments.topics.get(query_id)
    return None if topic is None else clean(topic.text)


def _known(value: float) -> float | None:
    return None if value != value else float(value)
