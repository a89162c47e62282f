"""Learn a ranking from judgments, and say what it is worth on queries that it did not see.

Every judged query is searched once under a plan. The features of its fused candidates and the grades of their documents
train a LambdaMART ranking (`workbench.assist.training`), fold by fold of queries, so that each query is also ranked by a
model that saw none of its judgments. Two evaluations come of the same searches: the plan's own order, and the order in
which that model puts the plan's first `rerank.top`, which is what a search with the finished model would do.

A chunk has the grade of its document, also where passages were judged: then a document has the highest of its passages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.assist.learned import lightgbm
from workbench.assist.protocol import Floats, Ints
from workbench.assist.training import HIGHEST_GRADE, Training, train
from workbench.errors import UsageError
from workbench.evaluate.evaluation import Evaluation, score_run
from workbench.evaluate.measures import needed_depth, parse_measures
from workbench.evaluate.plans import evaluate_plan
from workbench.evaluate.run import Named, Run, document_names, judged_keys
from workbench.evaluate.statistics import Difference
from workbench.judgments.qrels import Judgments, Topic
from workbench.plan.fields import OFF
from workbench.plan.plan import Plan
from workbench.records import Progress
from workbench.retrieve.reranking import fused_features
from workbench.retrieve.result import SearchResult


@dataclass(frozen=True, slots=True, eq=False)
class Learning:
    """A learned ranking and its worth.

    Attributes:
        plan: The plan whose candidates it was trained on, without a reranker.
        training: The model, trained on all queries, and how it came to be.
        base: The plan's own order.
        learned: The plan's first `rerank.top` in the order of models that did not see the query.
    """

    plan: Plan
    training: Training
    base: Evaluation
    learned: Evaluation

    def compare(self) -> Difference:
        """The learned order against the plan's, on the first measure."""
        return self.base.compare(self.learned)


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """What is kept of one query's search.

    Attributes:
        names, matrix: Features of the fused list, in fused order.
        kept: Positions in the fused list after dedupe, best first.
        found: The document of each fused position.
    """

    names: tuple[str, ...]
    matrix: Floats
    kept: Ints
    found: tuple[Named, ...]


def learn(
    search: Callable[..., SearchResult],
    judgments: Judgments,
    plan: Plan | str = "tmm",
    measures: str | tuple[str, ...] = ("nDCG@10", "R@100", "RR"),
    *,
    collections: tuple[str, ...] = (),
    folds: int = 5,
    seed: int = 0,
    filters: str | None = None,
    origin: Mapping[str, Any] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Learning:
    """Learn a ranking from judgments.

    Args:
        search: Searches, as `Corpus.search` does.
        judgments: Queries and graded documents.
        plan: The plan whose candidates are ranked; a reranker in it is left out.
        measures: ir_measures names; the first decides.
        collections: Collections that get a feature; those of the corpus.
        folds: Folds of queries, at least 2.
        seed: Decides the folds.
        filters: As in `search`.
        origin: What else the model's file should say, as JSON values.
        progress: Called with a Progress after each query.

    Raises:
        UsageError: Too few queries with both better and worse candidates, an unknown measure, a grade above 30.
        JudgmentError, PlanError: Judgments or plan cannot be used.
        AssistError: LightGBM is not installed, or failed.
    """
    lightgbm()  # before the searches, not after them
    names = parse_measures(measures)
    value = Plan.of(plan).replace({"rerank.model": OFF})
    asked: dict[str, _Asked] = {}
    told = {**(origin or {}), "judgments": judgments.name, "judgments_digest": judgments.given_digest}
    judgments = judgments.by_document()

    def run(topic: Topic) -> SearchResult:
        result = search(topic.text, topic.keywords or None, plan=value, filters=filters, bypass_cache=True)
        asked[topic.query_id] = _kept(result, collections)
        return result

    base = evaluate_plan(run, judgments, names, name=str(value), progress=progress)
    training = _trained(asked, judgments, value, folds, seed, told)
    run_learned = _reordered(asked, training, base.run, judgments, int(value["rerank.top"]), needed_depth(names))
    learned = score_run(run_learned, judgments, names, name="learned")
    return Learning(value, training, base, learned)


def _kept(result: SearchResult, collections: tuple[str, ...]) -> _Asked:
    outcome, retrieved = result._outcome, result._retrieved
    names, matrix = fused_features(result._engine, retrieved, outcome, collections)
    columns = retrieved.columns
    found = [Named(columns.document_ids[r], columns.paths[r]) for r in outcome.fused.rows.tolist()]
    for first, *others in outcome.groups():
        found[first] = replace(found[first], alike=tuple(found[position] for position in others))
    return _Asked(names, matrix, outcome.kept, tuple(found))


def _trained(
    asked: Mapping[str, _Asked], judgments: Judgments, plan: Plan, folds: int, seed: int, origin: Mapping[str, Any]
) -> Training:
    """Train on every query that has candidates."""
    told = {i: a for i, a in asked.items() if len(a.matrix)}
    # A source that could not run for some query gives other columns: nothing can be learned across them.
    kinds = {a.names for a in told.values()}
    if len(kinds) != 1:
        raise UsageError(
            "The queries were not all answered by the same sources" if kinds else "No judged query found anything",
            "Run `workbench doctor`, and check that the judgments belong to this corpus",
        )
    grades = [_grade(f, judgments.qrels[i]) for i, a in told.items() for f in a.found]
    if max(grades) > HIGHEST_GRADE:
        raise UsageError(f"A grade is {max(grades)}, and {HIGHEST_GRADE} is the highest", "Use smaller grades")
    return train(
        kinds.pop(),
        np.concatenate([a.matrix for a in told.values()]),
        grades,
        [len(a.matrix) for a in told.values()],
        folds=folds,
        seed=seed,
        origin={**origin, "plan": str(plan)},
    )


def _grade(found: Named, grades: Mapping[str, int]) -> int:
    """The grade of a document by the name that the judgments use; unjudged and negative are 0."""
    return max(0, next((grades[name] for name in document_names(found) if name in grades), 0))


def _reordered(
    asked: Mapping[str, _Asked], training: Training, base: Run, judgments: Judgments, top: int, depth: int
) -> Run:
    """Each query's list with its first `top` in the order of the model that did not see the query."""
    start = 0
    rankings = dict(base.rankings)
    for query_id, query in asked.items():
        scores = training.held_out[start : start + len(query.matrix)]
        start += len(query.matrix)
        head = query.kept[:top]
        order = np.concatenate((head[np.argsort(-scores[head], kind="stable")], query.kept[top:]))
        rankings[query_id] = judged_keys([query.found[p] for p in order.tolist()], judgments, query_id)[:depth]
    return Run(rankings, "learned", failures=base.failures, cut_at=base.cut_at)
