"""The part of a plan that fusion reads: a value of its own, so that `ranking` needs no settings, no files, no presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.plan import fields as plan_fields
from workbench.plan.fields import base_of


@dataclass(frozen=True, slots=True)
class FusionPlan:
    """The part of a plan that `workbench.fuse` reads: nothing in it needs a store. Its defaults are the fields'.

    `weights` and `normalise` map a source to its value; a source that they lack has the field's default. A source
    `vector@artifacts` falls back to `vector`, and for `normalise` another encoder's `vector:NAME` does too: cosines are
    made comparable alike, whoever made the vectors.
    """

    method: str = "rrf"
    k: float = 60.0
    rank_base: int = 1
    alpha: float = 0.5
    weights: Mapping[str, float] = field(default_factory=dict)
    normalise: Mapping[str, str] = field(default_factory=dict)
    missing: str = "computed"
    unit: str = "chunk"
    renumber: bool = True
    prefer: str = "best"
    single_source: str = "passthrough"

    def weight(self, source: str) -> float:
        """The weight of a source."""
        return float(_family(self.weights, source, plan_fields.BY_NAME["fusion.weights"]))

    def share(self, source: str) -> float:
        """What a source's scores are multiplied by: its weight, under `convex` times its side's share."""
        side = self.alpha if base_of(source) == "vector" else 1.0 - self.alpha
        return self.weight(source) * (side if self.method == "convex" else 1.0)

    def normalisation(self, source: str) -> str:
        """The normalisation of a source."""
        return str(_family(self.normalise, source, plan_fields.BY_NAME["fusion.normalise"]))


def _family(values: Mapping[str, Any], source: str, spec: plan_fields.Field) -> Any:
    return next((values[name] for name in spec.looked_up(source) if name in values), spec.default)
