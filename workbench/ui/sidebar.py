"""The sidebar of the Search page: every setting of the plan that an analyst moves, grouped by what it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from workbench.plan import Plan
from workbench.presets import PRESETS
from workbench.retrieve.request import base_of, sources_of
from workbench.ui import controls
from workbench.ui.state import AppState

DEEPEST = 1_000
FILTER_HELP = (
    "A condition on documents: `type = 'markdown'`, `path glob 'reference/**' and not language = 'fr'`, "
    "`modified >= 2024-01-01`. [Guide](guide#filters)"
)


@dataclass(frozen=True, slots=True)
class Places:
    """Places in the sidebar that are filled when there are results: over and under the threshold slider, and the plan's."""

    histogram: DeltaGenerator
    counts: DeltaGenerator
    plan: DeltaGenerator

    def plan_text(self, plan: Plan) -> None:
        """Show the plan's text form, to take it away."""
        self.plan.code(str(plan), language=None, wrap_lines=True)


def draw(state: AppState, collections: Sequence[str]) -> Places:
    """Draw the sidebar.

    Args:
        state: What is set.
        collections: The corpus's collections.
    """
    plan = state.plan
    with st.sidebar:
        controls.preset(plan, [p.name for p in PRESETS], [p.summary for p in PRESETS])
        controls.slider(plan, "limit", "Results", 1, min(50, plan["limit.max"]), 1, whole_page=True)
        with st.expander("Threshold", expanded=True):
            histogram = st.empty()
            controls.threshold(plan)
            counts = st.empty()
            controls.metric(plan)
        with st.expander("Fusion", expanded=True):
            _fusion(state)
        with controls.section("Depth", "depth") as depth:
            if depth.open:
                for source in _asked(state):
                    deep = plan.depth(source)
                    controls.slider(plan, f"depth.{source}", f"Depth of {source}", 10, DEEPEST, 10, value=deep)
        with controls.section("Keyword: BM25", "keyword") as keyword:
            if keyword.open:
                controls.slider(plan, "keyword.k1", "k1", 0.0, 3.0, 0.05)
                controls.slider(plan, "keyword.b", "b", 0.0, 1.0, 0.05)
                controls.choice(plan, "keyword.operator", "Words")
        with controls.section("Grep", "grep") as grep:
            if grep.open:
                controls.switch(plan, "grep.regex", "Regular expressions")
                controls.choice(plan, "grep.case", "Case")
                controls.switch(plan, "grep.word", "Whole words")
                controls.slider(plan, "grep.context", "Lines of context", 0, 30, 1)
                controls.choice(plan, "grep.when", "Grep in the hybrid column")
        with controls.section("Documents", "documents", expanded=bool(state.filters)) as documents:
            if documents.open:
                controls.text_box("filters", "Filter", FILTER_HELP, "type = 'markdown'")
                if len(collections) > 1 or plan["collections"]:
                    controls.many(plan, "collections", "Collections", collections)
                controls.choice(plan, "vector.exact", "Exact vector search")
                controls.switch(plan, "dedupe", "Drop repeated texts")
                controls.slider(plan, "neighbours", "Neighbours", 0, 5, 1)
        controls.reset()
        st.caption("This plan, for `--plan`, notebooks and links:")
        text = st.empty()
    return Places(histogram, counts, text)


def _fusion(state: AppState) -> None:
    plan = state.plan
    controls.many(plan, "sources", "Sources of the hybrid column", ("grep", "keyword", "vector"))
    controls.choice(plan, "fusion.method", "Method")
    method = plan["fusion.method"]
    sources = sources_of(plan, "hybrid", state.query, state.keywords)
    if method == "rrf":
        controls.slider(plan, "fusion.k", "k", 1.0, 200.0, 1.0)
        controls.whole_choice(plan, "fusion.rank_base", "Ranks count from", (0, 1))
    if method == "convex":
        controls.slider(plan, "fusion.alpha", "alpha: vector's share", 0.0, 1.0, 0.01)
    else:
        for source in sources:
            controls.slider(plan, f"fusion.weights.{source}", f"Weight of {source}", 0.0, 2.0, 0.05)
    if method != "rrf":
        for source in sources:
            controls.choice(plan, f"fusion.normalise.{source}", f"Normalise {source}")
        controls.choice(plan, "fusion.missing", "Missing scores")
    controls.choice(plan, "fusion.unit", "Rank")


def _asked(state: AppState) -> tuple[str, ...]:
    """Every source that a column asks, grep first."""
    plan: Plan = state.plan
    names = {s for mode in state.modes for s in sources_of(plan, mode, state.query, state.keywords)}
    order = {"grep": 0, "keyword": 1, "vector": 2}
    return tuple(sorted(names, key=lambda s: (order[base_of(s)], s)))
