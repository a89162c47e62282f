"""The optional last word: a model puts the top of the fused list in another order.

It sees the query and the first `rerank.top` texts after dedupe. Fused scores and contributions stay what they are; only the
order changes, and a hit carries the model's score under `rerank`. A model that fails or takes too long leaves the fused
order, with a warning. Scores are kept with what was retrieved, so a slider asks the model only about texts it has not seen.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from workbench.assist.models import Floats, check_named, load_reranker
from workbench.errors import AssistError
from workbench.plan.fields import OFF
from workbench.plan.plan import Plan
from workbench.ranking.candidates import Ints
from workbench.records import Step
from workbench.retrieve.engine import Engine
from workbench.retrieve.fusing import Outcome, last_steps, show
from workbench.retrieve.retrieved import Retrieved


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
