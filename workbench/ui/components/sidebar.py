"""The sidebar of the Search page: every field of a plan, grouped by what it changes, from the table `plan_controls`.

It moves one plan: the shared one, or that of one column. Which one is named at its top, in the columns' headings, and in the
address. Sections that are closed draw no widgets, so that a slider is quick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import some_of
from workbench.plan import fields as plan_fields
from workbench.plan.controls import GROUPS, Group, Slot
from workbench.plan.plan import Plan
from workbench.retrieve.request import sources_of
from workbench.ui import resources
from workbench.ui.components import boxes, controls, thresholds
from workbench.ui.finder import in_order
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from workbench.corpus import Corpus


MOST_FIELDS = 60
_TUNED = ("fusion", "depth", "keyword", "rerank")


def _sources(corpus: Corpus) -> tuple[str, ...]:
    """Every source that a plan of this corpus may name."""
    encoders = [str(e["name"]) for e in resources.info(corpus).get("encoders", ())][1:]
    names = resources.collections(corpus)
    several = names if len(names) > 1 else ()
    plain = ("grep", "keyword", "vector", *(f"vector:{name}" for name in encoders))
    return (*plain, *(f"{base}@{name}" for name in several for base in ("keyword", "vector")))


def draw(state: AppState, corpus: Corpus) -> Mapping[str, thresholds.Place]:
    """Every control. Returns the places over and under each threshold's slider, to be filled when there are results."""
    plan = state.moved
    places: dict[str, thresholds.Place] = {}
    with st.sidebar:
        boxes.moved(state)
        controls.preset(plan)
        for group in GROUPS:
            _group(group, plan, state, corpus, places)
        controls.reset(width="stretch")
        if roles := resources.choosable_roles():
            boxes.view_as(state, roles)
    return places


def tuned(plan: Plan, state: AppState, corpus: Corpus) -> None:
    """The controls of what is tuned most, for a page that shows a figure beside them. To be drawn in the sidebar."""
    controls.preset(plan)
    for group in GROUPS:
        if group.name == "threshold":
            thresholds.draw(plan)
        elif group.name in _TUNED:
            _group(group, plan, state, corpus, {})
    controls.reset(width="stretch")


def some(names: Sequence[str], plan: Plan, state: AppState, corpus: Corpus) -> None:
    """The controls of a few fields, in their order. To be drawn in the sidebar."""
    slots = {slot.name: slot for group in GROUPS for slot in group.slots}
    for name in names:
        _slot(slots[name], plan, state, corpus)


def _group(group: Group, plan: Plan, state: AppState, corpus: Corpus, places: dict[str, thresholds.Place]) -> None:
    if group.name == "threshold":
        with st.expander(group.title, expanded=True):
            places.update(thresholds.draw(plan, thresholds.metric))
    elif group.expanded or not group.title:
        with st.expander(group.title, expanded=True) if group.title else nullcontext():
            for slot in group.slots:
                _slot(slot, plan, state, corpus)
    else:
        with controls.section(group.title, group.name) as opened:
            if opened.open:
                for slot in group.slots:
                    _slot(slot, plan, state, corpus)
                if group.name == "vector":
                    boxes.exactness()
                if group.name == "documents":
                    fields = resources.filter_fields(corpus)
                    named = some_of([f"`{name.replace('`', '')}`" for name in fields], MOST_FIELDS)
                    st.caption(f"A filter may name: {named}. [Guide](guide?page=search#filters)")


def _slot(slot: Slot, plan: Plan, state: AppState, corpus: Corpus) -> None:
    if not slot.shown(plan):
        return
    if slot.name == "limit":
        controls.slider(plan, "limit", slot.label, 1, min(int(slot.high or 50), plan["limit.max"]), 1, whole_page=True)
    elif slot.name == "sources":
        running = sources_of(plan, "hybrid", state.query, state.keywords)
        controls.many(plan, "sources", slot.label, _sources(corpus), running)
    elif slot.name == "collections":
        controls.many(plan, "collections", slot.label, resources.collections(corpus))
    elif plan_fields.BY_NAME[slot.name].family:
        for source in asked_sources(state, plan, every=slot.name == "depth"):
            controls.field(plan, slot, source)
    else:
        controls.field(plan, slot)


def asked_sources(state: AppState, plan: Plan, *, every: bool) -> tuple[str, ...]:
    """The sources that a plan fuses, grep first; with `every` also those that a column of one mode asks."""
    modes = {c.mode for c in state.columns if c.plan is None} if every and not state.moves else set()
    return in_order({s for mode in ("hybrid", *modes) for s in sources_of(plan, mode, state.query, state.keywords)})
