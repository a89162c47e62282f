"""From what the sources answered to an ordered list of rows: thresholds, fusion, dedupe, rerank, limit, each counted.

Pure but for its input and a reranking model, so this is what runs when a slider moves: no store is asked, but where a policy
masks texts it is asked once about each new document, to count it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.assist.models import check_named, load_reranker
from workbench.errors import AssistError
from workbench.plan.fields import FUSED, OFF, base_of
from workbench.plan.plan import Plan
from workbench.ranking.candidates import Candidates, Column, Floats, Ints
from workbench.ranking.cutting import at_least
from workbench.ranking.fuse import Fused, fuse, passthrough
from workbench.records import FEEDBACK, Step
from workbench.retrieve.engine import Engine
from workbench.retrieve.retrieved import Retrieved
from workbench.retrieve.sources import since
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
    kept: Ints
    shown: Ints
    strongest: int
    duplicate_of: dict[int, int]
    above: int
    steps: tuple[Step, ...]
    milliseconds: float = 0.0
    rerank: Mapping[int, float] = field(default_factory=dict)
    rerank_ms: float | None = None
    notes: tuple[str, ...] = ()

    def groups(self, positions: Ints | None = None) -> list[list[int]]:
        """Positions in `fused` of what dedupe left, in the final order, each before those that it removed for it; of all, or of
        some of them.
        """
        made = {position: [position] for position in (self.kept if positions is None else positions).tolist()}
        for position, better in sorted(self.duplicate_of.items()):
            if better in made:
                made[better].append(position)
        return list(made.values())


def fuse_plan(retrieved: Retrieved, plan: Plan, engine: Engine | None = None) -> Outcome:
    """Fuse what was retrieved under a plan that `Retrieved.under` accepts.

    With an engine the plan's reranking model orders the top; where it fails, the fused order stays, with a warning in `notes`.
    """
    started = time.perf_counter()
    candidates = retrieved.candidates_for(plan)
    lists = [c for c in candidates.columns if bool(c.retrieved.any())]
    if len(lists) == 1 and plan["fusion.single_source"] == "passthrough":
        fused, score_kind = passthrough(candidates, lists[0].source, plan.fusion), lists[0].source
    else:
        fused, score_kind = fuse(candidates, plan.fusion), FUSED
    above = at_least(fused.scores, plan.threshold(FUSED)) if score_kind == FUSED else len(fused)
    kept, duplicate_of = _dedupe(fused.rows[:above], retrieved, plan)
    made = Outcome(candidates, fused, score_kind, kept, kept, -1, duplicate_of, above, ())
    made = replace(made, steps=tuple(_steps(retrieved, plan, made)))
    fusing = since(started)
    if engine is not None and plan["rerank.model"] != OFF and len(kept):
        started = time.perf_counter()
        made = _reranked(engine, retrieved, made, plan)
        made = replace(made, rerank_ms=since(started))
    return replace(_limited(retrieved, plan, made), milliseconds=fusing)


def _dedupe(rows: Ints, retrieved: Retrieved, plan: Plan) -> tuple[Ints, dict[int, int]]:
    """Positions of a list that stay, and for each dropped one the better row with the same text."""
    everything = np.arange(len(rows), dtype=np.int64)
    if not plan["dedupe"] or not len(everything):
        return everything, {}
    _, first, inverse = np.unique(retrieved.columns.text_keys[rows], return_index=True, return_inverse=True)
    original = first[inverse]
    dropped = np.flatnonzero(original != everything)
    return np.flatnonzero(original == everything), {int(p): int(original[p]) for p in dropped}


def _reranked(engine: Engine, retrieved: Retrieved, made: Outcome, plan: Plan) -> Outcome:
    model, top = str(plan["rerank.model"]), made.kept[: int(plan["rerank.top"])]
    try:
        scores = _scores(engine, retrieved, made, model, top)
    except AssistError as exc:
        note = f"Reranking was left out: {exc.message}. {exc.remedy}. The order is the fused one"
        return replace(made, notes=(note,))
    kept = np.concatenate((top[np.argsort(-scores, kind="stable")], made.kept[len(top) :]))
    step = Step("rerank", "", len(kept), len(kept), f"the first {len(top)} in the order of {model}")
    by_position = dict(zip(top.tolist(), scores.tolist(), strict=True))
    return replace(made, kept=kept, steps=(*made.steps, step), rerank=by_position)


def _scores(engine: Engine, retrieved: Retrieved, made: Outcome, model: str, top: Ints) -> Floats:
    """The model's score of each of the top positions, float64; each record is scored once for all fusions."""
    if engine.served:
        check_named(model)
    numbers = retrieved.columns.numbers[made.fused.rows[top]].tolist()
    known = retrieved.reranked.setdefault(model, {})
    new = [n for n in numbers if n not in known]
    if new:
        texts = [r.chunk.text for r in engine.records.rows(new)]
        given = np.asarray(load_reranker(model).scores(retrieved.request.query, texts), np.float64)
        if given.shape != (len(new),) or not np.isfinite(given).all():
            raise AssistError(f"{model} did not give one finite score a text", "Choose another model in rerank.model")
        known.update(zip(new, given.tolist(), strict=True))
    return np.array([known[n] for n in numbers], np.float64)


def _limited(retrieved: Retrieved, plan: Plan, made: Outcome) -> Outcome:
    """The first `limit` results, among them the strongest keyword hit where the plan keeps it."""
    shown, strongest = _with_strongest(retrieved, plan, made)
    steps = [Step("limit", "", len(made.kept), len(shown), f"limit is {plan['limit']}")]
    if strongest >= 0:
        rows, paths = made.fused.rows, retrieved.columns.paths
        put, replaced = paths[rows[strongest]], paths[rows[made.kept[len(shown) - 1]]]
        reason = f"{put}, the strongest keyword hit, was put in place of {replaced}"
        if shown[0] == strongest:
            reason = f"{put}, the strongest keyword hit, has the identifier of the query and was put first"
        steps.append(Step("strongest", "", len(shown), len(shown), reason))
    return replace(made, shown=shown, strongest=strongest, steps=(*made.steps, *steps))


def _with_strongest(retrieved: Retrieved, plan: Plan, made: Outcome) -> tuple[Ints, int]:
    """The first `limit` positions, and which of them was put in: the strongest keyword hit, where the plan keeps it; -1 where
    none was.

    It takes the first place where every hit of the keyword side must hold the identifier that the query names: who writes a
    code wants what holds it. Else it takes the last place, never the first, and only if it means something: its BM25 must be
    at least half of the most that the query could give. Normalised within its own list it would always be 1, and decide nothing.
    Where documents are fused, its document counts, whichever chunk of it is shown.
    """
    limit, kept = int(plan["limit"]), made.kept
    shown = kept[:limit]
    if not plan["keyword.keep_strongest"]:
        return shown, -1
    first = plan["keyword.operator"] == "all" and names_code(retrieved.request.query)
    for column in made.candidates.columns:
        bound = retrieved.answers[column.source].bound
        rows = np.flatnonzero(column.retrieved & (column.rank == 1))
        position = made.fused.position(int(rows[0])) - 1 if bound is not None and len(rows) else -1
        if bound is None or position < 0 or position not in kept:
            continue
        if first and position != shown[0]:
            return np.append(position, shown[shown != position])[:limit], position
        if not first and len(shown) > 1 and position not in shown and column.score[rows[0]] >= bound() / 2:
            return np.append(shown[:-1], position), position
    return shown, -1


# --- the funnel --------------------------------------------------------------------------------------------------------------


def _steps(retrieved: Retrieved, plan: Plan, made: Outcome) -> list[Step]:
    request, total, left = retrieved.request, len(made.fused.rows), len(made.kept)
    parts = [f"filter {request.filters}"] if request.filters else []
    if request.plan["collections"]:
        parts.append("collections " + ", ".join(request.plan["collections"]))
    steps = [Step("filters", "", retrieved.visible, retrieved.allowed, " and ".join(parts) or "no filter")]
    for column in made.candidates.columns:
        steps += _source_steps(retrieved, plan, column)
    entered = sum(int(c.retrieved.sum()) for c in made.candidates.columns)
    unit = "documents" if plan["fusion.unit"] == "document" else "chunks"
    steps.append(Step("fusion", "", entered, total, f"the sources' lists became one list of {unit}"))
    if FEEDBACK in made.fused.contributions:
        reason = (
            f"each adds how like the first {plan['feedback.top']} it is, by feedback.weight {plan['feedback.weight']:g}"
        )
        steps.append(Step(FEEDBACK, "", total, total, reason))
    if (least := plan.threshold(FUSED)) != OFF:
        fused = made.score_kind == FUSED
        reason = f"fused score at least {least:g}" if fused else f"not applied: {own_scores(made.score_kind)}"
        steps.append(Step("threshold", FUSED, total, made.above, reason))
    steps.append(Step("dedupe", "", made.above, left, "the same text as a better one" if plan["dedupe"] else "off"))
    if retrieved.ask_masked is not None:
        masked = retrieved.masked_rows(made.fused.rows[made.kept])
        steps.append(Step("policy", "", left, left, f"{masked:,} of them are shown with parts masked"))
    return steps


def own_scores(source: str) -> str:
    return f"{source} alone has results, and its own scores are shown"


def _source_steps(retrieved: Retrieved, plan: Plan, column: Column) -> list[Step]:
    source, kind = column.source, base_of(column.source)
    answer = retrieved.answers[source]
    found, ranked = answer.scored.found, int(np.sum(column.rank > 0))
    what = {"keyword": "words that match", "vector": "vectors compared"}.get(kind, "")
    what += "" if answer.scored.counted else f": at least {found:,}, the likeliest were looked at"
    if kind == "grep":
        # Chunks are known only as far as passages are read, and that says nothing of the plan; lines are counted to the end.
        what = f"{answer.lines:,} lines in {answer.files:,} files match"
        what += "" if answer.exhausted and found == ranked else f": at least {ranked:,} chunks"
        found = ranked
    steps = [
        Step("match", source, answer.entered, found, what),
        Step("depth", source, found, ranked, f"depth.{source} is {plan.depth(source)}"),
    ]
    threshold, field = plan.threshold(source), plan.threshold_field(source)
    if kind == "keyword" and threshold != OFF:
        reason = f"BM25 score at least {threshold:g}, by {field}"
    elif kind == "vector":
        own = "" if field == "vector.threshold" else f", by {field}"
        cut = f"{plan['vector.metric']} distance below {threshold:g}{own}" if threshold != OFF else ""
        reason = cut or f"{field} is off"
    else:
        return steps
    left = int(column.retrieved.sum())
    steps.append(Step("threshold", source, ranked, left, reason))
    if column.adapted is not None:
        steps.append(Step("adapt", source, left, left, "in the order of similarity adapted to the corpus"))
    return steps
