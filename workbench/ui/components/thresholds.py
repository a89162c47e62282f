"""The thresholds: a switch and a slider for each vector source of the plan, with the metric of their distances, for each
keyword source and for the fused score.

A plan that asks one vector source has one threshold, `vector.threshold`. Beside another vector source each has its own
(`threshold.SOURCE`), since the distances of two encoders have other scales: a slider then moves one source's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from workbench.plan import fields as plan_fields
from workbench.plan.controls import cut_words, threshold_range
from workbench.plan.fields import FUSED, OFF, base_of
from workbench.plan.plan import Plan
from workbench.ranking.cutting import to_cosine, to_distance
from workbench.ui import state as app_state
from workbench.ui.components.controls import PREFIX, bound, help_of, slider

SHARED = "vector.threshold"
_FILLED = "wb.thresholds"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a source's histogram (over its slider) and what the threshold drops (under it) are drawn. They stay in view while the
    page searches for what will take their place, so that no control moves.
    """

    source: str
    histogram: DeltaGenerator
    counts: DeltaGenerator

    def fill(self, histogram: str, counts: str) -> None:
        """Draw a histogram as HTML and what is dropped in words; "" draws nothing."""
        st.session_state.setdefault(_FILLED, {})[self.source] = (histogram, counts)
        self.again()

    def again(self) -> None:
        histogram, counts = st.session_state.get(_FILLED, {}).get(self.source, ("", ""))
        if histogram:
            self.histogram.html(histogram)
        else:
            self.histogram.empty()
        if counts:
            self.counts.caption(counts)
        else:
            self.counts.empty()


def sources(plan: Plan) -> tuple[str, ...]:
    """What has a control: the vector sources of the plan, or the one that a search by meaning alone asks, those that find by
    words, and the fused score.
    """
    return (*sorted(plan.cuttable, key=lambda s: base_of(s) != "vector"), FUSED)


def draw(plan: Plan, of_vectors: Callable[[Plan], None] | None = None) -> Mapping[str, Place]:
    """The switch and slider of each source's threshold and of the fused score's; `of_vectors` is drawn after the vector sources,
    on the page that fills the places. Returns source (or `fused`) -> its places.
    """
    shown, made = sources(plan), {}
    for source in shown:
        if of_vectors is not None and source == plan.cuttable[0]:  # the first keyword source
            of_vectors(plan)
        several = sum(base_of(s) == base_of(source) for s in shown) > 1
        made[source] = _one(plan, source, source if several else "")
        if of_vectors is not None:
            made[source].again()
    return made


def _one(plan: Plan, source: str, name: str) -> Place:
    field, value = plan.threshold_to_set(source), plan.threshold(source)
    vector = base_of(source) == "vector"
    histogram = st.empty()
    st.toggle(
        f"Apply a distance threshold{f' to {name}' if name else ''}" if vector else f"Cut {cut_words(source)}",
        value != OFF,
        help=help_of(field),
        **bound(f"cut.{source}", value != OFF, _switch, field, source),
    )
    if value != OFF:
        of = name or ("" if vector else source)
        slider(plan, field, f"Threshold of {of}".removesuffix(" of "), 0.0, *threshold_range(plan, source), value=value)
    counts = st.empty()
    own = vector and field != SHARED and plan.threshold_field(source) == field
    if own and plan[field] is not None:
        back = plan_fields.show(plan.replace({field: "auto"}).threshold(source))
        st.button(
            f"Back to {back}, as {plan.replace({field: 'auto'}).threshold_field(source)} says",
            type="tertiary",
            key=f"{PREFIX}{field}.auto",
            on_click=app_state.set_plan,
            args=({field: "auto"},),
            help=help_of(field),
        )
    return Place(source, histogram, counts)


def _switch(on: bool, field: str, source: str) -> None:
    """Off keeps every candidate. On again a distance starts from the shared threshold, or from the default where that is off
    too, and a score from 0.
    """
    plan = app_state.current().moved
    if base_of(source) != "vector":
        app_state.set_plan({field: 0.0 if on else OFF})
        return
    default = app_state.default_plan()[SHARED]
    start = _converted(default if default != OFF else 0.5, "angular", plan["vector.metric"])
    if field != SHARED and plan[SHARED] != OFF:
        start = plan[SHARED]
    app_state.set_plan({field: start if on else OFF})


def metric(plan: Plan) -> None:
    """The metric; changing it keeps the same candidates, by saying the same thresholds in the new metric."""
    st.selectbox(
        "Metric",
        plan_fields.METRICS,
        help=help_of("vector.metric"),
        index=plan_fields.METRICS.index(plan["vector.metric"]),
        **bound("vector.metric", plan["vector.metric"], _set_metric),
    )


def _set_metric(chosen: str) -> None:
    plan = app_state.current().moved
    now = {SHARED: plan[SHARED], **{name: value for name, value in plan if name.startswith("threshold.vector")}}
    moved = {n: _converted(v, plan["vector.metric"], chosen) for n, v in now.items() if v is not None and v != OFF}
    app_state.set_plan({"vector.metric": chosen, **moved})


def _converted(distance: float, old: str, new: str) -> float:
    return distance if old == new else round(float(to_distance(to_cosine(distance, old), new)), 6)
