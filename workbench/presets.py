"""The presets: named plans of the one pipeline.

`default` is the field defaults; `tmm` is a convex combination over theoretical minimum-maximum scores with computed
missing scores (Bruch, Gai, Ingber: An Analysis of Fusion Functions for Hybrid Retrieval, arXiv 2210.11934).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench import settings
from workbench.errors import PlanError
from workbench.plan import Plan


@dataclass(frozen=True, slots=True)
class Preset:
    """One preset: its name, one line about it, and the fields that differ from the defaults."""

    name: str
    summary: str
    values: Mapping[str, Any]


PRESETS: tuple[Preset, ...] = (
    Preset("default", "Keyword and vector by reciprocal rank fusion, k 60: a safe start on any corpus.", {}),
    Preset(
        "tmm",
        "Keyword and vector scores mixed 0.2 to 0.8 on a common scale, missing ones computed: best where scores are trusted.",
        {
            "fusion.method": "convex",
            "fusion.alpha": 0.8,
            "fusion.missing": "computed",
            "fusion.normalise.keyword": "tmm",
            "fusion.normalise.vector": "tmm",
        },
    ),
)

BY_NAME: Mapping[str, Preset] = {p.name: p for p in PRESETS}


def preset(name: str) -> Plan:
    """The plan of that name. Raises PlanError with the known names."""
    found = BY_NAME.get(name)
    if found is None:
        raise PlanError(f"There is no preset called {name!r}", "The presets are " + ", ".join(BY_NAME))
    return Plan({"vector.threshold": settings.get("vector_score_threshold"), **found.values}, preset=name)
