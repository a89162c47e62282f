"""Which control each plan field has: where it is, its label, and the range of its slider.

The fields themselves (type, default, bounds, help) are declared once in `plan_fields`; this table only says how a person
moves them. The app's sidebar and the sliders of a notebook read it. A test holds that every field is in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from workbench.plan.fields import FUSED, base_of
from workbench.plan.plan import NEEDS, Plan
from workbench.ranking.cutting import metric


@dataclass(frozen=True, slots=True)
class Slot:
    """The control of one plan field.

    Attributes:
        name: The field; a family has one control a source.
        label: What the person reads; `{source}` stands for the source of a family.
        low, high, step: The slider's range and step; whole numbers for a whole-number field. None: no slider.
        typed: Plain box for the value in the plan's own spelling.
        whole_page: A move changes what other controls show.
    """

    name: str
    label: str
    low: float | None = None
    high: float | None = None
    step: float | None = None
    typed: bool = False
    whole_page: bool = False

    def shown(self, plan: Plan) -> bool:
        """Whether the field matters under a plan; one that does not has no control."""
        return self.name not in NEEDS or not NEEDS[self.name][2](plan)


@dataclass(frozen=True, slots=True)
class Group:
    """A part of the sidebar: its key, its title, its controls, and whether it starts open."""

    name: str
    title: str
    slots: tuple[Slot, ...]
    expanded: bool = False


GROUPS: tuple[Group, ...] = (
    Group("results", "", (Slot("limit", "Results", 1, 50, 1, whole_page=True),), expanded=True),
    Group(
        "threshold",
        "Threshold",
        (
            Slot("vector.threshold", "Threshold"),
            Slot("threshold", "Threshold of {source}"),
            Slot("fusion.threshold", "Threshold of the fused score"),
            Slot("vector.metric", "Metric"),
        ),
        expanded=True,
    ),
    Group(
        "fusion",
        "Fusion",
        (
            Slot("sources", "Sources"),
            Slot("fusion.method", "Method"),
            Slot("fusion.k", "k", 1.0, 200.0, 1.0),
            Slot("fusion.rank_base", "Ranks count from"),
            Slot("fusion.alpha", "alpha: vector's share", 0.0, 1.0, 0.01),
            Slot("fusion.weights", "Weight of {source}", 0.0, 2.0, 0.05),
            Slot("fusion.normalise", "Normalise {source}"),
            Slot("fusion.missing", "Missing scores"),
            Slot("fusion.unit", "Rank"),
        ),
        expanded=True,
    ),
    Group("depth", "Depth", (Slot("depth", "Depth of {source}", 10, 1_000, 10),)),
    Group(
        "keyword",
        "Keyword: BM25",
        (
            Slot("keyword.k1", "k1", 0.0, 3.0, 0.05),
            Slot("keyword.b", "b", 0.0, 1.0, 0.05),
            Slot("keyword.operator", "Match: any or all words"),
            Slot("keyword.keep_strongest", "Keep the strongest keyword hit"),
        ),
    ),
    Group(
        "grep",
        "Grep",
        (
            Slot("grep.regex", "Regular expressions"),
            Slot("grep.case", "Case"),
            Slot("grep.word", "Whole words"),
            Slot("grep.context", "Lines of context", 0, 30, 1),
            Slot("grep.when", "Use grep in hybrid"),
            Slot("grep.show", "Show grep hits as"),
        ),
    ),
    Group(
        "vector",
        "Vector",
        (
            Slot("vector.exact", "Exact vector search"),
            Slot("vector.adapt", "Adapt to the corpus", whole_page=True),
            Slot("vector.hubness", "Against hubs", 0.0, 1.0, 0.05),
        ),
    ),
    Group(
        "feedback",
        "Feedback from the top",
        (
            Slot("feedback.weight", "Weight of feedback", 0.0, 2.0, 0.05),
            Slot("feedback.top", "Results that it is taken from", 1, 20, 1),
        ),
    ),
    Group("documents", "Documents", (Slot("collections", "Collections"),)),
    Group(
        "list",
        "Result list",
        (
            Slot("dedupe", "Remove duplicate passages"),
            Slot("neighbours", "Neighbours", 0, 5, 1),
            Slot("organise", "Organise"),
            Slot("fusion.single_source", "If only one source finds anything"),
            Slot("fusion.prefer", "Represent a document by"),
            Slot("fusion.renumber", "Use document ranks"),
        ),
    ),
    Group(
        "rerank",
        "Rerank and rewrite",
        (
            Slot("rerank.model", "Reranker", typed=True),
            Slot("rerank.top", "Reranked candidates", 1, 200, 1),
            Slot("rewrite.model", "Rewriter", typed=True),
        ),
    ),
    Group(
        "rules",
        "Access and limits",
        (
            Slot("principal", "Require an identified user"),
            Slot("limit.max", "Largest limit", typed=True),
            Slot("cache_seconds", "Cache lifetime (seconds)", typed=True),
        ),
    ),
)


def title_of(name: str) -> str:
    """What the sidebar calls a field: `Fusion · Weight of vector`; the name itself where it has no control."""
    if name == "preset":
        return "Preset"
    for group in GROUPS:
        for slot in group.slots:
            family, _, source = name.partition(slot.name + ".")
            if name == slot.name or (source and not family):
                label = slot.label.replace("{source}", source or "each source")
                return label if label.startswith(group.title) else f"{group.title} · {label}"
    return name


def threshold_range(plan: Plan, source: str) -> tuple[float, float]:
    """The end and the step of a threshold's slider, which begins at 0: of a source, or of `fused`."""
    if base_of(source) == "vector":
        return metric(plan["vector.metric"]).largest, 0.01
    if source != FUSED:
        return 30.0, 0.1
    # The most that a result can have where every source puts it first; scores that are not normalised may lie beyond.
    fusion = plan.fusion
    end = sum(map(fusion.share, plan.sources)) or 1.0
    if fusion.method == "rrf":
        end /= fusion.k + fusion.rank_base
    step = 10.0 ** (math.floor(math.log10(end)) - 2)
    return round(math.ceil(end / step) * step, 10), step


def cut_words(source: str) -> str:
    """What a threshold cuts by, as in "Cut {...}"."""
    name = {"vector": "a distance", "keyword": "a BM25 score", FUSED: "a fused score"}[base_of(source)]
    return f"at {name}" if base_of(source) == "vector" else f"below {name}"
