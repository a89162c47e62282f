"""From what the sources answered to an ordered list of rows: thresholds, fusion, dedupe, limit, each counted.

Pure but for its input, so this is what runs when a slider moves: no store is asked, but where a policy masks texts it is asked
once about each new document, to count it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from workbench.assist.models import Floats, check_named, load_reranker
from workbench.errors import AssistError
from workbench.plan.fields import FUSED, OFF, base_of
from workbench.plan.plan import Plan
from workbench.ranking.candidates import Candidates, Column, Ints
from workbench.ranking.cutting import at_least
from workbench.ranking.fuse import Fused, fuse, passthrough
from workbench.records import Step
from workbench.retrieve.engine import Engine
from workbench.retrieve.retrieved import Retrieved
from workbench.store.lexical.query import names_code


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A fused list and how it came to be.

    Attributes:
        candidates: Columns under the plan's depth and threshold.
        fused: Every fused row, best first.
        score_kind: `fused`, or the lone source whose scores these are.
        kept: int64 positions in `fused` that survive its threshold and dedupe, in order.
        shown: int64 positions in `fused` that are returned.
        strongest: The position that `keyword.keep_strongest` put in the first or last place of `shown`; -1 where it put none in.
        duplicate_of: position in `fused` -> position of the better row with the same text.
        above: How many positions of `fused`, from its first, `fusion.threshold` keeps.
        steps: The funnel.
        milliseconds: Time spent.
        rerank: position in `fused` -> a reranking model's score, where one was asked.
        rerank_ms: Time that it took; None where none was asked.
        notes: What to warn of.
    """

    candidates: Candidates
    fused: Fused
    score_kind: str
    kept: NDArray[np.int64]
    shown: NDArray[np.int64]
    strongest: int
    duplicate_of: dict[int, int]
    above: int
    steps: tuple[Step, ...]
    milliseconds: float
    rerank: Mapping[int, float] = field(default_factory=dict)
    rerank_ms: float | None = None
    notes: tuple[str, ...] = ()

    def groups(self) -> list[list[int]]:
        """Positions in `fused` of what dedupe left, in the final order, each before those that it removed for it."""
        made = {position: [position] for position in self.kept.tolist()}
        for position, better in sorted(self.duplicate_of.items()):
            made[better].append(position)
        return list(made.values())


def fuse_plan(retrieved: Retrieved, plan: Plan) -> Outcome:
    """Fuse what was retrieved under a plan that `Retrieved.check` accepts."""
    started = time.perf_counter()
    candidates = retrieved.candidates_for(plan)
    lists = [c for c in candidates.columns if bool(c.retrieved.any())]
    if len(lists) == 1 and plan["fusion.single_source"] == "passthrough":
        fused, score_kind = passthrough(candidates, lists[0].source, plan.fusion), lists[0].source
    else:
        fused, score_kind = fuse(candidates, plan.fusion), FUSED
    above = at_least(fused.scores, plan.threshold(FUSED)) if score_kind == FUSED else len(fused)
    kept, duplicate_of = _dedupe(fused.rows[:above], retrieved, plan)
    shown, strongest = show(retrieved, plan, candidates, fused, kept)
    steps = (
        *_steps(retrieved, plan, candidates, fused, score_kind, above, kept),
        *last_steps(retrieved, plan, fused, kept, shown, strongest),
    )
    taken = (time.perf_counter() - started) * 1000.0
    return Outcome(candidates, fused, score_kind, kept, shown, strongest, duplicate_of, above, steps, taken)


def _dedupe(rows: NDArray[np.int64], retrieved: Retrieved, plan: Plan) -> tuple[NDArray[np.int64], dict[int, int]]:
    """Positions of a list that stay, and for each dropped one the better row with the same text."""
    everything = np.arange(len(rows), dtype=np.int64)
    if not plan["dedupe"] or not len(everything):
        return everything, {}
    keys = retrieved.columns.text_keys[rows]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    original = first[inverse]
    dropped = np.flatnonzero(original != everything)
    return np.flatnonzero(original == everything), {int(p): int(original[p]) for p in dropped}


def show(
    retrieved: Retrieved, plan: Plan, candidates: Candidates, fused: Fused, kept: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """The first `limit` positions, and which of them was put in: the strongest keyword hit, where the plan keeps it; -1 where
    none was.

    It takes the first place where every hit of the keyword side must hold the identifier that the query names: who writes a
    code wants what holds it. Else it takes the last place, never the first, and only if it means something: its BM25 must be
    at least half of the most that the query could give. Normalised within its own list it would always be 1, and decide nothing.
    Where documents are fused, its document counts, whichever chunk of it is shown.
    """
    shown = kept[: int(plan["limit"])]
    if not plan["keyword.keep_strongest"]:
        return shown, -1
    first = puts_first(plan, retrieved.request.query)
    for column in candidates.columns:
        bound = retrieved.answers[column.source].bound
        rows = np.flatnonzero(column.retrieved & (column.rank == 1))
        if bound is None or not len(rows):
            continue
        position = fused.position(int(rows[0])) - 1
        if position < 0 or position not in kept:
            continue
        if first and position != shown[0]:
            return np.append(position, shown[shown != position])[: int(plan["limit"])], position
        if not first and len(shown) > 1 and position not in shown and column.score[rows[0]] >= bound() / 2:
            return np.append(shown[:-1], position), position
    return shown, -1


def puts_first(plan: Plan, query: str) -> bool:
    """Whether `keyword.keep_strongest` means the first place: the query names an identifier, which no keyword hit lacks."""
    return bool(plan["keyword.operator"] == "all" and names_code(query))


def last_steps(
    retrieved: Retrieved, plan: Plan, fused: Fused, kept: NDArray[np.int64], shown: NDArray[np.int64], strongest: int
) -> tuple[Step, ...]:
    """The funnel's end: the limit, and what was put in the first or last place."""
    limit = Step("limit", "", len(kept), len(shown), f"limit is {plan['limit']}")
    if strongest < 0:
        return (limit,)
    put, replaced = (retrieved.columns.paths[fused.rows[position]] for position in (strongest, kept[len(shown) - 1]))
    reason = f"{put}, the strongest keyword hit, was put in place of {replaced}"
    if shown[0] == strongest:
        reason = f"{put}, the strongest keyword hit, has the identifier of the query and was put first"
    return (limit, Step("strongest", "", len(shown), len(shown), reason))


def _steps(
    retrieved: Retrieved, plan: Plan, candidates: Candidates, fused: Fused, score_kind: str, above: int,
    kept: NDArray[np.int64],
) -> tuple[Step, ...]:  # fmt: skip
    steps = [Step("filters", "", retrieved.visible, retrieved.allowed, _filter_reason(retrieved))]
    for column in candidates.columns:
        steps += _source_steps(retrieved, plan, column)
    entered = sum(int(c.retrieved.sum()) for c in candidates.columns)
    unit = "documents" if plan["fusion.unit"] == "document" else "chunks"
    steps.append(Step("fusion", "", entered, len(fused.rows), f"the sources' lists became one list of {unit}"))
    if (least := plan.threshold(FUSED)) != OFF:
        reason = f"fused score at least {least:g}" if score_kind == FUSED else f"not applied: {own_scores(score_kind)}"
        steps.append(Step("threshold", FUSED, len(fused.rows), above, reason))
    left = len(kept)
    steps.append(Step("dedupe", "", above, left, "the same text as a better one" if plan["dedupe"] else "off"))
    if retrieved.masks:
        masked = retrieved.masked_rows(fused.rows[kept])
        steps.append(Step("policy", "", left, left, f"{masked:,} of them are shown with parts masked"))
    return tuple(steps)


def own_scores(source: str) -> str:
    """Why a list has no fused scores."""
    return f"{source} alone has results, and its own scores are shown"


def _filter_reason(retrieved: Retrieved) -> str:
    parts = []
    if retrieved.request.filters:
        parts.append(f"filter {retrieved.request.filters}")
    if retrieved.request.plan["collections"]:
        parts.append("collections " + ", ".join(retrieved.request.plan["collections"]))
    return " and ".join(parts) or "no filter"


def _source_steps(retrieved: Retrieved, plan: Plan, column: Column) -> list[Step]:
    source = column.source
    answer = retrieved.answers[source]
    found = answer.scored.found
    ranked = int(np.sum(column.rank > 0))
    what = {"keyword": "words that match", "vector": "vectors compared"}.get(base_of(source), "")
    if base_of(source) == "grep":
        # Chunks are known only as far as passages are read, and that says nothing of the plan; lines are counted to the end.
        end = answer.exhausted and found == ranked
        found, what = ranked, f"{answer.lines:,} lines in {answer.files:,} files match"
        what += "" if end else f": at least {ranked:,} chunks"
    steps = [
        Step("match", source, answer.entered, found, what),
        Step("depth", source, found, ranked, f"depth.{source} is {plan.depth(source)}"),
    ]
    threshold, field = plan.threshold(source), plan.threshold_field(source)
    if base_of(source) == "keyword" and threshold != OFF:
        left = int(column.retrieved.sum())
        steps.append(Step("threshold", source, ranked, left, f"BM25 score at least {threshold:g}, by {field}"))
    if base_of(source) == "vector":
        left = int(column.retrieved.sum())
        own = "" if field == "vector.threshold" else f", by {field}"
        reason = (
            f"{field} is off" if threshold == "off" else f"{plan['vector.metric']} distance below {threshold:g}{own}"
        )
        steps.append(Step("threshold", source, ranked, left, reason))
    return steps


def reranked(engine: Engine, retrieved: Retrieved, outcome: Outcome, plan: Plan) -> Outcome:
    """The outcome with its top in the model's order; as it was, with a warning in `notes`, where the model fails."""
    model = str(plan["rerank.model"])
    if model == OFF or not len(outcome.kept):
        return outcome
    started = time.perf_counter()
    top = outcome.kept[: int(plan["rerank.top"])]
    try:
        scores = _scores(engine, retrieved, outcome, model, top)
    except AssistError as exc:
        note = f"Reranking was left out: {exc.message}. {exc.remedy}. The order is the fused one"
        return replace(outcome, notes=(*outcome.notes, note), rerank_ms=_since(started))
    order = np.argsort(-scores, kind="stable")
    kept = np.concatenate((top[order], outcome.kept[len(top) :]))
    shown, strongest = show(retrieved, plan, outcome.candidates, outcome.fused, kept)
    step = Step("rerank", "", len(kept), len(kept), f"the first {len(top)} in the order of {model}")
    before = (s for s in outcome.steps if s.step not in ("limit", "strongest"))
    steps = (*before, step, *last_steps(retrieved, plan, outcome.fused, kept, shown, strongest))
    by_position = dict(zip(top.tolist(), scores.tolist(), strict=True))
    return replace(
        outcome, kept=kept, shown=shown, strongest=strongest, steps=steps, rerank=by_position, rerank_ms=_since(started)
    )


def _scores(engine: Engine, retrieved: Retrieved, outcome: Outcome, model: str, top: Ints) -> Floats:
    """The model's score of each of the top positions, float64."""
    if engine.served:
        check_named(model)
    rows = outcome.fused.rows[top]
    numbers = [int(n) for n in retrieved.columns.numbers[rows]]
    known = retrieved.reranked.setdefault(model, {})
    new = [n for n in numbers if n not in known]
    if new:
        texts = [r.chunk.text for r in engine.records.rows(new)]
        given = np.asarray(load_reranker(model).scores(retrieved.request.query, texts), np.float64)
        if given.shape != (len(new),) or not np.isfinite(given).all():
            raise AssistError(f"{model} did not give one finite score a text", "Choose another model in rerank.model")
        known.update(zip(new, given.tolist(), strict=True))
    return np.array([known[n] for n in numbers], np.float64)


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000.0
