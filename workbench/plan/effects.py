"""Which fields of a plan do nothing under it, and what to change so that they do.

A field that the fusion method does not read, or that belongs to a source which does not run, may be set all the same: plans
are changed one field at a time. But whoever sets it expects something to move, so that a search, a sweep and the sliders say
it, in one sentence with the remedy, from this one table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workbench.plan import fields as plan_fields
from workbench.plan.fields import base_of
from workbench.plan.plan import Plan

_BY_RANK = frozenset({"fusion.k", "fusion.rank_base"})
_BY_SCORE = frozenset({"fusion.missing", "fusion.normalise"})
_BY_DOCUMENT = frozenset({"fusion.renumber", "fusion.prefer"})

DECIDING = ("sources", "grep.when", "fusion.method", "fusion.unit", "rerank.model")
"""The fields that decide whether others do anything."""


def without_effect(plan: Plan, name: str) -> str:
    """Why a field does nothing under a plan, and the remedy: `fusion.k has no effect with fusion.method convex; add
    fusion.method=rrf`. "" where it does something.

    Args:
        plan: Any plan.
        name: A dotted field (`fusion.k`, `fusion.weights.vector`), or a family's name without its source. Raises PlanError
            for an unknown one.
    """
    spec = plan_fields.BY_NAME.get(name)
    source = ""
    if spec is None or not spec.family:
        spec, source = plan_fields.locate(name)
    found = _reason(plan, spec.name, source)
    return f"{name} has no effect {found[0]}; {found[1]}" if found else ""


def idle(plan: Plan, names: Iterable[str]) -> tuple[str, ...]:
    """The sentences of those of some fields that do nothing under a plan, in their order."""
    return tuple(said for name in names if (said := without_effect(plan, name)))


def unread(plan: Plan) -> Iterator[str]:
    """Every field that does nothing under a plan; of a family those of the plan's sources and those that are set."""
    families = [f for f in plan_fields.FIELDS if f.family]
    names = [f.name for f in plan_fields.FIELDS if not f.family]
    names += [f"{family.name}.{source}" for family in families for source in family.of(plan.sources)]
    names += [name for name, _ in plan if plan_fields.locate(name)[0].family]
    return (name for name in dict.fromkeys(names) if without_effect(plan, name))


def greps(plan: Plan) -> bool:
    """Whether grep may run in a hybrid search: it is a source, or joins where keywords or quoted phrases are given."""
    return bool(plan["grep.when"] != "never")


def _reason(plan: Plan, field: str, source: str) -> tuple[str, str] | None:
    """What is in the way, and what to do; None where nothing is."""
    method = plan["fusion.method"]
    if field in _BY_RANK and method != "rrf":
        return f"with fusion.method {method}", "add fusion.method=rrf"
    if field == "fusion.alpha" and method != "convex":
        return f"with fusion.method {method}", "add fusion.method=convex"
    if field in _BY_SCORE and method == "rrf":
        return "with fusion.method rrf, which reads ranks and no scores", "add fusion.method=convex or weighted"
    if field in _BY_DOCUMENT and plan["fusion.unit"] != "document":
        return f"with fusion.unit {plan['fusion.unit']}", "add fusion.unit=document"
    if field == "rerank.top" and plan["rerank.model"] == plan_fields.OFF:
        return "with rerank.model off", "name a reranking model"
    if source:
        running = (*plan.sources, "grep") if greps(plan) else tuple(s for s in plan.sources if base_of(s) != "grep")
        looked_up = {name for running_one in running for name in plan_fields.BY_NAME[field].looked_up(running_one)}
        return None if source in looked_up else _absent(plan, source)
    kind = field.partition(".")[0]
    if kind in {"keyword", "vector"} and kind not in plan.bases():
        return _absent(plan, kind)
    if field == "vector.threshold" and all(plan.threshold_field(s) != field for s in plan.vectors):
        own = " and ".join(dict.fromkeys(plan.threshold_field(s) for s in plan.vectors))
        return f"beside {own}", f"add {own.split(' and ')[0]}=auto"
    if field == "threshold" and not source and not plan.vectors:
        return _absent(plan, "vector")
    if field == "fusion.threshold" and plan["fusion.single_source"] == "passthrough" and _alone(plan):
        return f"with {plan.sources[0]} alone, which is passed through", "add fusion.single_source=fuse"
    if kind == "grep" and field != "grep.when" and not greps(plan):
        return _absent(plan, kind)
    return None


def _alone(plan: Plan) -> bool:
    """Whether no other source can bring a result in a hybrid search."""
    return len(plan.sources) == 1 and (plan.bases() == ("grep",) or not greps(plan))


def _absent(plan: Plan, source: str) -> tuple[str, str]:
    if base_of(source) == "grep" and not greps(plan):
        return "with grep.when never", "add grep.when=auto"
    return f"without {source} among the sources", f"add sources={','.join(sorted({*plan.sources, source}))}"
