"""The thresholds: a switch and a slider for each vector source of the plan, and the metric that they are said in.

A plan that asks one vector source has one threshold, `vector.threshold`. Beside another vector source each has its own
(`threshold.SOURCE`), since the distances of two encoders have other scales: a slider then moves one source's alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from workbench import plan_fields
from workbench.plan import Plan
from workbench.plan_fields import OFF
from workbench.ranking.distance import metric as metric_of
from workbench.ranking.distance import to_cosine, to_distance
from workbench.ui import state as app_state
from workbench.ui.controls import PREFIX, _bind, help_of, slider

SHARED = "vector.threshold"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a source's histogram (over its slider) and what the threshold drops (under it) are drawn."""

    histogram: DeltaGenerator
    counts: DeltaGenerator


def sources(plan: Plan) -> tuple[str, ...]:
    """The vector sources that have a control: those of the plan, or the one that a search by meaning alone asks."""
    return plan.vectors or ("vector",)


def draw(plan: Plan) -> Mapping[str, Place]:
    """The switch and slider of each vector source, in the plan's metric.

    Returns:
        Source -> its places, which are empty.
    """
    shown = sources(plan)
    return {source: _one(plan, source, f" of {source}" if len(shown) > 1 else "") for source in shown}


def _one(plan: Plan, source: str, of: str) -> Place:
    field, value = plan.threshold_to_set(source), plan.threshold(source)
    histogram = st.empty()
    switch = f"cut.{source}"
    st.toggle(
        f"Cut {source} at a distance" if of else "Cut at a distance", value != OFF, key=_bind(switch, value != OFF),
        help=help_of(field), on_change=_switch, args=(switch, field),
    )  # fmt: skip
    if value != OFF:
        slider(plan, field, f"Threshold{of}", 0.0, metric_of(plan["vector.metric"]).largest, 0.01, value=value)
    counts = st.empty()
    if field != SHARED and plan[field] is not None and plan.threshold_field(source) == field:
        back = plan_fields.show(plan.replace({field: "auto"}).threshold(source))
        st.button(
            f"Back to {back}, as {plan.replace({field: 'auto'}).threshold_field(source)} says", type="tertiary",
            key=f"{PREFIX}{field}.auto", on_click=_set, args=(field, "auto"), help=help_of(field),
        )  # fmt: skip
    return Place(histogram, counts)


def _set(field: str, value: Any) -> None:
    app_state.set_plan({field: value})


def _switch(switch: str, field: str) -> None:
    """Off keeps every candidate; on again starts from the shared threshold, or from the default where that is off too."""
    on, plan = st.session_state[PREFIX + switch], app_state.current().moved
    default = app_state.default_plan()[SHARED]
    start = _converted(default if default != OFF else 0.5, "angular", plan["vector.metric"])
    if field != SHARED and plan[SHARED] != OFF:
        start = plan[SHARED]
    app_state.set_plan({field: start if on else OFF})


def metric(plan: Plan) -> None:
    """The metric; changing it keeps the same candidates, by saying the same thresholds in the new metric."""
    st.selectbox(
        "Metric", plan_fields.METRICS, key=_bind("vector.metric", plan["vector.metric"]), help=help_of("vector.metric"),
        index=plan_fields.METRICS.index(plan["vector.metric"]), on_change=_set_metric,
    )  # fmt: skip


def _set_metric() -> None:
    plan, chosen = app_state.current().moved, st.session_state[PREFIX + "vector.metric"]
    said = {SHARED: plan[SHARED], **{name: value for name, value in plan if name.startswith("threshold.")}}
    moved = {n: _converted(v, plan["vector.metric"], chosen) for n, v in said.items() if v is not None and v != OFF}
    app_state.set_plan({"vector.metric": chosen, **moved})


def _converted(distance: float, old: str, new: str) -> float:
    return distance if old == new else round(float(to_distance(to_cosine(distance, old), new)), 6)
