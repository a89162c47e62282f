"""Which ipywidgets control each setting has: the labels and ranges of the app's sidebar, from the same table.

A control reads a plan (`show`) and tells a change of one field in the plan's own spelling; it knows nothing of searching.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from workbench.errors import PlanError
from workbench.plan import fields as plan_fields
from workbench.plan.controls import GROUPS, Slot, cut_words, threshold_range
from workbench.plan.plan import Plan

OFFERED = (
    "fusion.method", "fusion.k", "fusion.alpha", "fusion.weights", "fusion.normalise", "fusion.missing", "vector.threshold",
    "depth", "keyword.k1", "keyword.b",
)  # fmt: skip
"""The settings that have a control where nobody says which."""

_SLOTS = {slot.name: slot for group in GROUPS for slot in group.slots}
_LABEL = {"description_width": "9.5rem"}
_WIDTH = "23rem"

Moved = Callable[[str, Any], None]


class Control:
    """The control of one field.

    Args:
        name: The dotted field, its source included.
        slot: How the app shows it.
        plan: The plan to read first.
        moved: Told the field and its new value when a person moves it.
    """

    def __init__(self, name: str, slot: Slot, plan: Plan, moved: Moved) -> None:
        import ipywidgets

        self.name, self._slot, self._moved = name, slot, moved
        field, source = plan_fields.locate(name)
        self._quiet = False
        look: dict[str, Any] = {
            "description": slot.label.format(source=source), "tooltip": field.help, "style": dict(_LABEL),
            "layout": ipywidgets.Layout(width=_WIDTH),
        }  # fmt: skip
        self._switch: Any = None
        self._cuts = _cut_by(name)
        if self._cuts:
            end, step = threshold_range(plan, self._cuts)
            self.input = ipywidgets.FloatSlider(
                min=0.0, max=end, step=step, readout_format=f".{max(2, -math.floor(math.log10(step)))}f",
                continuous_update=True, **look,
            )  # fmt: skip
            self._switch = ipywidgets.Checkbox(
                description=f"Cut {source} {cut_words(self._cuts)}".replace("  ", " "),
                tooltip=field.help,
                indent=True,
                style=dict(_LABEL),
                layout=look["layout"],
            )
            self._switch.observe(self._told, "value")
            self.widget: Any = ipywidgets.VBox([self._switch, self.input])
        elif slot.low is not None and slot.high is not None and slot.step is not None:
            whole = isinstance(slot.step, int)
            made = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
            shape = {} if whole else {"readout_format": ".2f" if slot.step < 1 else ".0f"}
            self.input = made(min=slot.low, max=slot.high, step=slot.step, continuous_update=True, **shape, **look)
            self.widget = self.input
        elif field.choices:
            self.input = ipywidgets.Dropdown(options=field.choices, value=None, **look)
            self.widget = self.input
        elif isinstance(field.default, bool):
            self.input = ipywidgets.Checkbox(indent=True, **look)
            self.widget = self.input
        else:
            self.input = ipywidgets.Text(continuous_update=False, **look)
            self.widget = self.input
        self.show(plan)
        self.input.observe(self._told, "value")

    def show(self, plan: Plan) -> None:
        """Take the plan's value, without telling anybody; hide where the plan does not read the field."""
        self._quiet = True
        try:
            self.widget.layout.display = None if self._slot.shown(plan) else "none"
            value = plan[self.name]
            if self._switch is not None:
                value = plan.threshold(self._cuts) if self.name.startswith("threshold.") else value
                off = value == plan_fields.OFF
                self._switch.value = not off
                low, high = (0.0, 0.0) if off else (min(0.0, float(value)), float(value))
                self.input.min, self.input.max = low, max(threshold_range(plan, self._cuts)[0], high)
                self.input.disabled = off
                if not off:
                    self.input.value = float(value)
            elif self.name.startswith("depth."):
                self._fit(plan.depth(self.name.removeprefix("depth.")))
            elif hasattr(self.input, "step"):
                self._fit(value)
            elif isinstance(self.input.value, bool):
                self.input.value = value
            else:
                self.input.value = plan_fields.show(value)
        finally:
            self._quiet = False

    def _fit(self, value: float) -> None:
        """Set a slider; its ends move out where the value is beyond them."""
        self.input.min, self.input.max = min(self.input.min, value), max(self.input.max, value)
        self.input.value = value

    def _told(self, change: Any) -> None:
        if self._quiet:
            return
        value = self.input.value
        if self._switch is not None and not self._switch.value:
            value = plan_fields.OFF
        self._moved(self.name, round(value, 10) if isinstance(value, float) else value)


def _cut_by(name: str) -> str:
    """The source that a field is a threshold of, or `fused`; "" where it is none."""
    field, source = plan_fields.locate(name)
    return {"vector.threshold": "vector", "threshold": source, "fusion.threshold": plan_fields.FUSED}.get(
        field.name, ""
    )


def fields_for(names: Sequence[str], plan: Plan) -> tuple[str, ...]:
    """The fields that have a control, in the order of the names, each once: a family without its source has one for each of
    the plan's sources, and `vector.threshold` where the plan asks several vector sources is the threshold of each.

    Raises:
        PlanError: An unknown field.
    """
    made: list[str] = []
    for name in names:
        spec = plan_fields.BY_NAME.get(name)
        if name == "vector.threshold" and plan.vectors:
            made += [plan.threshold_to_set(source) for source in plan.vectors]
        elif spec is not None and spec.family:
            made += [f"{name}.{source}" for source in spec.of(plan.sources)]
        else:
            made.append(name)
    for name in made:
        if plan_fields.locate(name)[0].name not in _SLOTS:
            raise PlanError(f"{name} has no control", "Choose among " + ", ".join(_SLOTS))
    return tuple(dict.fromkeys(made))


def controls_for(names: Sequence[str], plan: Plan, moved: Moved) -> list[Control]:
    """The controls of `fields_for`, in their order.

    Raises:
        PlanError: An unknown field.
    """
    return [Control(name, _SLOTS[plan_fields.locate(name)[0].name], plan, moved) for name in fields_for(names, plan)]
