"""The sidebar of the Search page: every field of a plan, grouped by what it changes, from the table `plan_controls`.

It moves one plan: the shared one, or that of one column. Which one is named at its top, in the columns' headings, and in the
address. Sections that are closed draw no widgets, so that a slider is quick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from workbench.markup import visible
from workbench.plan import fields as plan_fields
from workbench.plan.controls import GROUPS, Group, Slot
from workbench.plan.fields import base_of
from workbench.plan.plan import Plan, preset
from workbench.plan.presets import PRESETS
from workbench.retrieve.request import sources_of
from workbench.ui import resources
from workbench.ui.components import boxes, cards, controls, live, tables, thresholds
from workbench.ui.components.tables import Html
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from workbench.corpus import Corpus


def plan_html(plan: Plan) -> str:
    """The plan's text form with a copy button, and a table of what differs from its preset, in the fields' order."""
    text, base = str(plan), preset(plan.preset)
    rows = [
        (
            Html(f"<code>{visible(n)}</code>"),
            plan_fields.show(base[n]),
            Html(f"<b>{visible(plan_fields.show(value))}</b>"),
        )
        for n, value in plan.changes().items()
    ]
    changed = (
        tables.table(("Setting", plan.preset, "Now"), rows)
        if rows
        else "<p class=wb-msg>Nothing differs from the preset.</p>"
    )
    return (
        f'<div class="wb-plan"><div class="wb-planline"><code class="wb-plantext">{visible(text)}</code>'
        f"{cards.copy_button(text, 'Copy the plan')}</div>{changed}</div>"
    )


def plan_files(plan: Plan) -> None:
    st.code(plan.to_yaml(), language="yaml", wrap_lines=True)
    st.download_button(
        "Save as a file",
        plan.to_yaml(),
        f"{plan.preset}.yaml",
        "application/yaml",
        key="wb.w.plan.file",
        on_click="ignore",
        help="A plan file, for `workbench search QUERY --plan-file plan.yaml` and notebooks.",
    )


MOST_FIELDS = 60
_TUNED = ("fusion", "depth", "keyword", "rerank")


@dataclass(frozen=True, slots=True)
class Places:
    """Places in the sidebar that are filled when there are results: on top the figure of judged queries, over and under each
    threshold's slider, and the plan's.
    """

    figure: DeltaGenerator
    thresholds: Mapping[str, thresholds.Place]
    plan: DeltaGenerator

    def plan_text(self, plan: Plan) -> None:
        self.plan.html(plan_html(plan))


def _sources(corpus: Corpus) -> tuple[str, ...]:
    """Every source that a plan of this corpus may name."""
    encoders = [str(e["name"]) for e in resources.info(corpus).get("encoders", ())][1:]
    names = resources.collections(corpus)
    several = names if len(names) > 1 else ()
    plain = ("grep", "keyword", "vector", *(f"vector:{name}" for name in encoders))
    return (*plain, *(f"{base}@{name}" for name in several for base in ("keyword", "vector")))


def draw(state: AppState, corpus: Corpus) -> Places:
    plan = state.moved
    with st.sidebar:
        figure = live.place()
        boxes.moved(state)
        controls.preset(plan, [p.name for p in PRESETS], [p.summary for p in PRESETS])
        places: dict[str, thresholds.Place] = {}
        for group in GROUPS:
            _group(group, plan, state, corpus, places)
        controls.reset()
        live.section(corpus)
        text = st.empty()
        with controls.section("Copy, paste or save this plan", "plan") as opened:
            if opened.open:
                plan_files(plan)
                controls.paste()
                boxes.save_plan()
        if roles := resources.choosable_roles():
            boxes.view_as(state, roles)
    return Places(figure, places, text)


def tuned(plan: Plan, state: AppState, corpus: Corpus) -> None:
    """The controls of what is tuned most, for a page that shows a figure beside them. To be drawn in the sidebar."""
    controls.preset(plan, [p.name for p in PRESETS], [p.summary for p in PRESETS])
    for group in GROUPS:
        if group.name == "threshold":
            thresholds.draw(plan)
        elif group.name in _TUNED:
            _group(group, plan, state, corpus, {})
    controls.reset()


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
                    named = ", ".join(f"`{name.replace('`', '')}`" for name in fields[:MOST_FIELDS])
                    more = f" and {len(fields) - MOST_FIELDS} more" if len(fields) > MOST_FIELDS else ""
                    st.caption(f"A filter may name: {named}{more}. [Guide](guide?page=search#filters)")


def _slot(slot: Slot, plan: Plan, state: AppState, corpus: Corpus) -> None:
    if not slot.shown(plan):
        return
    if slot.name == "limit":
        controls.slider(plan, "limit", slot.label, 1, min(int(slot.high or 50), plan["limit.max"]), 1, whole_page=True)
    elif slot.name == "sources":
        controls.many(plan, "sources", slot.label, _sources(corpus))
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
    names = {s for mode in ("hybrid", *modes) for s in sources_of(plan, mode, state.query, state.keywords)}
    order = {"grep": 0, "keyword": 1, "vector": 2}
    return tuple(sorted(names, key=lambda s: (order[base_of(s)], s)))
