"""What a sweep tries: fields with their values, and the plans that they make.

A field is spelled as everywhere (`fusion.k`, `fusion.weights.vector`). A family without its source (`fusion.normalise`)
stands for every source of the plan at once, and `preset` for the plan to start from. Values are listed, or a `Range`.
Fields that do nothing under a plan (`plan.plan.unread`) are put back to the base plan's, so that one plan is not tried under many
names. Under `convex` alpha and the weights of keyword and vector say the same thing, the ratio of the two: where both vary,
alpha alone does (and keyword's weight where grep may join, with which it divides its share).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.errors import PlanError, UsageError
from workbench.plan import fields as plan_fields
from workbench.plan.plan import DECIDING, Plan, assigned, greps, unread, without_effect

PRESET = "preset"
MOST_PLANS = 100_000
POINTS = 11
DEFAULT_GRID = (
    "fusion.method=rrf,convex",
    "fusion.k=1,5,10,20,60",
    "fusion.weights.vector=0.5,1,2",
    "fusion.alpha=0..1:0.1",
    "fusion.normalise=tmm",
)
"""What is tried where nobody says what to try."""

_TWO = ("keyword", "vector")
_NUMBER = r"-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?::({_NUMBER}))?(~?)")


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`, both included.

    Attributes:
        low, high: The ends.
        step: Distance of neighbours; None is any number between (a grid takes eleven evenly spaced ones).
        log: Spaced evenly by ratio rather than by difference.
        whole: Whole numbers only; a `Space` sets it for fields that take no others.
    """

    low: float
    high: float
    step: float | None = None
    log: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        numbers = (self.low, self.high, *(() if self.step is None else (self.step,)))
        if (
            not all(map(math.isfinite, numbers))
            or not self.low < self.high
            or (self.step is not None and self.step <= 0)
            or (self.log and self.low <= 0)
        ):
            raise UsageError(
                f"The range {self.low}..{self.high} cannot be walked",
                "Its low end must be below its high end (above 0 where it is logarithmic), its step above 0",
            )
        if self.step is not None and (self.high - self.low) / self.step >= MOST_PLANS:
            raise UsageError(f"The range {self} has more than {MOST_PLANS:,} values", "Give it a larger step")

    def values(self) -> tuple[float, ...]:
        """The values that a grid takes, rising."""
        if self.step is not None:
            count = math.floor((self.high - self.low) / self.step + 1e-9) + 1
            return tuple(round(self.low + n * self.step, 12) for n in range(count))
        spaced = (np.geomspace if self.log else np.linspace)(self.low, self.high, POINTS)
        if self.whole:
            return tuple(dict.fromkeys(self.rounded(float(v)) for v in spaced))
        return tuple(round(float(v), 12) for v in spaced)

    def rounded(self, value: float) -> int:
        """The whole number of the range that is nearest to a value."""
        return min(max(round(value), math.ceil(self.low)), math.floor(self.high))

    def __str__(self) -> str:
        step = "" if self.step is None else f":{self.step:g}"
        return f"{self.low:g}..{self.high:g}{step}{'~' if self.log else ''}"


Values = Sequence[Any] | Range


class Space:
    """Fields and the values to try."""

    def __init__(self, base: Plan | str, grid: Mapping[str, Values]) -> None:
        self.base = Plan.of(base)
        self.grid: dict[str, Values] = {}
        for name, values in grid.items():
            if isinstance(values, Range):
                fitting = _fitting(self.base, name, values)
                for value in fitting.values():
                    _read(self.base, name, value)
                self.grid[name] = fitting
            else:
                self.grid[name] = tuple(dict.fromkeys(_read(self.base, name, v) for v in _listed(name, values)))
        if not self.grid:
            raise UsageError("There is nothing to try", "Name a field and its values, such as fusion.k=1,10,60")

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that vary, in the order given."""
        return tuple(self.grid)

    def listed(self, field: str) -> tuple[Any, ...]:
        """The values of a field as a grid takes them."""
        values = self.grid[field]
        return values.values() if isinstance(values, Range) else tuple(values)

    @property
    def size(self) -> int:
        """How many combinations a grid has."""
        return math.prod(len(self.listed(f)) for f in self.fields)

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Every combination, the last field fastest. Raises UsageError for more than a machine tries in a while."""
        if self.size > MOST_PLANS:
            raise UsageError(
                f"The grid has {self.size:,} combinations", f"Try at most {MOST_PLANS:,}, or search at random instead"
            )
        for values in itertools.product(*(self.listed(f) for f in self.fields)):
            yield dict(zip(self.fields, values, strict=True))

    def drawn(self, trials: int, seed: int) -> Iterator[dict[str, Any]]:
        """Combinations at random, seeded; from ranges without a step any number between."""
        random = np.random.default_rng(seed)
        for _ in range(trials):
            yield {field: _draw(values, random) for field, values in self.grid.items()}

    def plan(self, combination: Mapping[str, Any]) -> Plan:
        """The plan of a combination, with what it does not read as in the base. Raises PlanError."""
        start = self.base
        if PRESET in combination:
            start = Plan.parse(str(combination[PRESET]))
        changes: dict[str, Any] = {}
        asked = start.replace({"sources": combination["sources"]}) if "sources" in combination else start
        for name, value in combination.items():
            if name != PRESET:
                changes |= dict.fromkeys(spelled(asked, name), value)
        made = effective(start.replace(changes), start)
        if "fusion.alpha" in combination and made["fusion.method"] == "convex" and made.sources == _TWO:
            # Grep has keyword's share of alpha too: where it may join, keyword's weight says how the two divide it.
            ratio = ("vector",) if greps(made) else _TWO
            made = made.replace({f"fusion.weights.{source}": start[f"fusion.weights.{source}"] for source in ratio})
        return made

    def idle(self) -> tuple[str, ...]:
        """The fields that do nothing in any combination, in words with the remedy."""
        return tuple(text for field in self.fields if field != PRESET and (text := self._idle(field)))

    def _idle(self, field: str) -> str:
        text = ""
        deciding = [f for f in self.fields if f in (*DECIDING, PRESET)]
        for values in itertools.product(*(self.listed(f) for f in deciding)):
            combination = dict(zip(deciding, values, strict=True))
            start = Plan.parse(str(combination.pop(PRESET))) if PRESET in combination else self.base
            try:
                plan = start.replace(combination)
            except PlanError:
                continue
            if not (why := without_effect(plan, field)):
                return ""
            text = text or why
        return text


def read_space(base: Plan | str, words: Sequence[str]) -> Space:
    """A space from words such as `fusion.k=1,10,60`, `fusion.alpha=0..1:0.1`, `sources=keyword|keyword,vector`.

    Values are separated by commas, or by `|` where there is one; `LOW..HIGH` is a range, `LOW..HIGH:STEP` one with steps,
    and `~` at its end spaces it by ratio.
    """
    grid: dict[str, Values] = {}
    for word in words:
        name, equals, text = assigned(word.strip())
        if not equals or not text.strip():
            raise UsageError(f"{word!r} is not FIELD=VALUES", "Write for example --grid fusion.k=1,10,60")
        if name.strip() in grid:
            raise UsageError(f"{name.strip()} is named twice", "Give each field once, with all its values")
        found = _RANGE.fullmatch(text.strip())
        if found:
            step = float(found[3]) if found[3] else None
            grid[name.strip()] = Range(float(found[1]), float(found[2]), step, bool(found[4]))
        else:
            grid[name.strip()] = [v.strip() for v in text.split("|" if "|" in text else ",")]
    return Space(base, grid)


def spelled(plan: Plan, name: str) -> tuple[str, ...]:
    """The dotted fields that a name stands for: itself, or where it is a family's name one for each source of the plan that
    the family is for, of which there may be none.
    """
    family = plan_fields.BY_NAME.get(name)
    if family is not None and family.family:
        return tuple(f"{name}.{source}" for source in family.of(plan.sources))
    return (name,)


def effective(plan: Plan, base: Plan) -> Plan:
    """The plan with every field that does nothing under it as the base has it: the same ranks, one name."""
    changes = {name: base[name] for name in unread(plan) if plan[name] != base[name]}
    return plan.replace(changes) if changes else plan


def _listed(name: str, values: Any) -> tuple[Any, ...]:
    listed = (values,) if isinstance(values, str) or not isinstance(values, Sequence) else tuple(values)
    if not listed:
        raise UsageError(f"{name} has no values to try", "Give at least one")
    return listed


def _read(base: Plan, name: str, value: Any) -> Any:
    """A value as the plan holds it. Raises PlanError."""
    if name == PRESET:
        return str(Plan.parse(str(value)))
    # No source of the base plan may have it: other sources, which are tried too, may.
    return plan_fields.read(next(iter(spelled(base, name)), f"{name}.vector"), value)


def _fitting(base: Plan, name: str, values: Range) -> Range:
    """A range without steps as the field takes it: of whole numbers where it takes no others."""
    between = (values.low + values.high) / 2
    half = math.floor(between) + 0.5
    if values.step is not None or math.ceil(values.low) > math.floor(values.high):
        return values
    try:
        _read(base, name, half if values.low < half < values.high else between)
    except PlanError:
        return replace(values, whole=True)
    return values


def _draw(values: Values, random: np.random.Generator) -> Any:
    if not isinstance(values, Range):
        return values[int(random.integers(len(values)))]
    if values.step is not None:
        steps = values.values()
        return steps[int(random.integers(len(steps)))]
    if values.log:
        found = float(np.exp(random.uniform(math.log(values.low), math.log(values.high))))
    else:
        found = float(random.uniform(values.low, values.high))
    if values.whole:
        return values.rounded(found)
    return min(max(float(f"{found:.4g}"), values.low), values.high)  # a plan that people can read
