"""Candidates and plans for the laws of fusion: densely overlapping rankings, many ties, every method and setting."""

from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import strategies as st

from workbench.plan import fields as plan_fields
from workbench.plan.fields import FusionPlan
from workbench.ranking.candidates import Candidates, Column
from workbench.records import Kind

SOURCES = {"grep": Kind.LEXICAL, "keyword": Kind.LEXICAL, "vector": Kind.SEMANTIC, "vector@notes": Kind.SEMANTIC}
LEVELS = [n / 8 for n in range(-4, 9)]  # few levels: many ties


def column(source: str, order: list[int], scores: list[float], listed: int, kept: int) -> Column:
    """One source that puts every row in an order, lists the first `listed` of them and cuts those from `kept` on."""
    n = len(order)
    rank, computed = np.zeros(n, np.int64), np.empty(n)
    computed[order] = scores
    rank[order[:listed]] = np.arange(1, listed + 1)
    cut = np.zeros(n, bool)
    cut[order[kept:]] = True
    return Column(source, SOURCES[source], rank, np.where(rank > 0, computed, np.nan), computed, cut)


def candidates_of(columns: list[Column], documents: list[int], whole: list[bool]) -> Candidates:
    """Rows `c00`, `c01`, ... of the given documents, which rise with the row."""
    n = len(documents)
    names = tuple(f"d{d:02}" for d in sorted(documents))
    return Candidates(
        tuple(f"c{i:02}" for i in range(n)), names, names, np.arange(1, n + 1), np.array(whole), tuple(columns)
    )  # fmt: skip


@st.composite
def candidate_sets(draw: st.DrawFn, cuts: bool = True, sources: tuple[str, ...] | None = None) -> Candidates:
    """A pool of rows that every source orders its own way; scores fall along each order, with ties in row order."""
    n = draw(st.integers(1, 9))
    if sources is None:
        sources = tuple(draw(st.lists(st.sampled_from(sorted(SOURCES)), min_size=1, max_size=4, unique=True)))
    columns = []
    for source in sources:
        levels = draw(st.lists(st.sampled_from(LEVELS), min_size=n, max_size=n))
        if SOURCES[source] is Kind.LEXICAL:
            levels = [abs(level) * 7 for level in levels]
        order = sorted(range(n), key=lambda row, levels=levels: (-levels[row], row))
        listed = n - draw(st.integers(0, n))
        kept = n - draw(st.integers(0, n)) if cuts and SOURCES[source] is Kind.SEMANTIC else n
        made = column(source, order, [levels[row] for row in order], listed, kept)
        if SOURCES[source] is Kind.SEMANTIC and draw(st.booleans()):
            adapted = draw(st.lists(st.sampled_from(LEVELS), min_size=n, max_size=n))
            made = replace(made, adapted=np.array(adapted))
        columns.append(made)
    documents = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    angles = np.array(draw(st.lists(st.sampled_from(LEVELS), min_size=n, max_size=n)))
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    whole = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return replace(candidates_of(columns, documents, whole), vectors=lambda rows: vectors[rows])


@st.composite
def fusion_plans(
    draw: st.DrawFn,
    methods: tuple[str, ...] = ("rrf", "weighted", "max", "combmnz"),
    normalisations: tuple[str, ...] = plan_fields.NORMALISATIONS,
    feedback: bool = False,
) -> FusionPlan:
    """Any plan of these methods, over every normalisation, missing score and unit.

    One drawn number picks all settings. Drawn one by one they come in clumps, and of 60 plans none may have some method.
    """
    pick = Random(draw(st.integers(0, 2**32 - 1))).choice
    return FusionPlan(
        method=pick(methods),
        k=pick([1.0, 2.5, 10.0, 60.0]),
        rank_base=pick([0, 1]),
        alpha=pick([0.0, 0.2, 0.5, 0.8, 1.0]),
        weights={source: pick([0.0, 0.25, 0.3, 1.0, 1.0, 3.0]) for source in sorted(SOURCES)},
        normalise={source: pick(normalisations) for source in sorted(SOURCES)},
        missing=pick(plan_fields.MISSING),
        unit=pick(["chunk", "document"]),
        renumber=pick([False, True]),
        prefer=pick(["best", "chunk"]),
        feedback_top=pick([1, 2, 3]),
        feedback_weight=pick([0.0, 0.5, 2.0]) if feedback else 0.0,
    )


@st.composite
def cases(draw: st.DrawFn, cuts: bool = True) -> tuple[Candidates, FusionPlan]:
    return draw(candidate_sets(cuts=cuts)), draw(fusion_plans(plan_fields.METHODS))


def with_columns(candidates: Candidates, columns: tuple[Column, ...]) -> Candidates:
    return replace(candidates, columns=columns)


def retrieved_rows(candidates: Candidates) -> np.ndarray:
    """Rows that at least one source retrieved and did not cut, rising: the only ones that fusion ranks."""
    return np.flatnonzero(np.any([np.zeros(len(candidates), bool), *(c.retrieved for c in candidates.columns)], axis=0))
