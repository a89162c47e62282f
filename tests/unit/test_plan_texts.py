"""Every field of every preset through the text form and the file form, and texts that are none."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from workbench.cli.options import changed
from workbench.errors import PlanError
from workbench.evaluate.grid import read_space
from workbench.plan import fields as plan_fields
from workbench.plan.plan import Plan, preset
from workbench.plan.presets import BY_NAME

ODD_NAMES = ("vector:/models/a=b c", "vector:static@notes", "vector@my docs", "vector:x'\"y")
"""Names of sources as folders and collections really are: blanks, quotes and equals signs in them."""


def values_of(field: plan_fields.Field) -> list[Any]:
    """Both ends (of a family those of every source), every choice, and what else a field's kind has."""
    if field.choices:
        return list(field.choices)
    ends = [end for end in (field.low, min(field.most.values(), default=field.high)) if end is not None]
    kinds: dict[str, list[Any]] = {
        "sources": ["grep", "keyword,vector@artifacts", "vector:/models/a=b c,grep"],
        "collections": ["docs", "all", "my docs,other"],
        "vector.threshold": ["off", 0.417],
        "threshold": ["off", "auto", 0.3],
        "fusion.threshold": ["off", 0.0164],
        "depth": ["auto", "3x", "+5", 7],
        "rerank.model": ["overlap", "/a b/c=d.txt", "endpoint:a \"b\" 'c'"],
        "rewrite.model": ["keywords", "endpoint:x"],
    }
    made = [*ends, *kinds.get(field.name, [])]
    return made or ["yes", "no"]


@pytest.mark.parametrize("field", plan_fields.FIELDS, ids=lambda f: f.name)
def test_every_value_of_every_field_parses_back(field: plan_fields.Field) -> None:
    spellings = [f"{field.name}.{source}" for source in ODD_NAMES] if field.family else [field.name]
    for base, spelled, value in product(map(preset, BY_NAME), spellings, values_of(field)):
        start = base.replace({"limit": 1, "limit.max": 10_000} if field.name.startswith("limit") else {})
        plan = start.replace({spelled: value})
        assert Plan.parse(str(plan)) == plan
        assert str(Plan.parse(str(plan))) == str(plan)
        assert Plan.from_yaml(plan.to_yaml()) == plan
        assert changed(start, [f"{spelled}={plan_fields.show(value)}"]) == plan


def test_a_grid_names_a_source_with_an_equals_sign() -> None:
    """`fusion.weights.vector:/models/a=b=0,1` are two weights of one source, in a plan that asks it."""
    source = "vector:/models/a=b"
    space = read_space(Plan.parse(f"rrf 'sources=keyword,{source}'"), [f"fusion.weights.{source}=0,1"])
    assert space.fields == (f"fusion.weights.{source}",)


@pytest.mark.parametrize("wrong", [None, 5, ["default"], b"default"])
def test_what_is_no_text_is_no_plan(wrong: Any) -> None:
    with pytest.raises(PlanError, match="not text"):
        Plan.of(wrong)


@pytest.mark.parametrize("value", [10**400, -(10**400), "1e999", float("nan"), None, True, [1]])
def test_a_number_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(PlanError, match=r"fusion\.k is .* a number from 1 to 100000"):
        preset("rrf").replace({"fusion.k": value})


def test_a_switch_is_no_edition() -> None:
    with pytest.raises(PlanError, match="edition true"):
        Plan.from_yaml("edition: true\n")
