"""A plan is a value, and its text parses back."""

from __future__ import annotations

import pickle

import pytest

from workbench import plan_fields
from workbench.errors import PlanError
from workbench.plan import Plan
from workbench.presets import PRESETS, preset

TEXTS = [
    "default",
    "tmm",
    "tmm limit=5 fusion.alpha=0.7",
    "tmm fusion.normalise.keyword=minmax",
    "default sources=grep,keyword,vector collections=a,b vector.threshold=off depth.vector=200 depth.vector@a=30",
    "default fusion.weights.vector=0 fusion.method=weighted keyword.operator=all",
    "default vector.exact=yes rerank.model='some model' cache_seconds=0",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_form_parses_back(text: str) -> None:
    """parse(str(plan)) == plan, through YAML and pickle as well, and str is stable."""
    plan = Plan.parse(text)
    assert Plan.parse(str(plan)) == plan
    assert str(Plan.parse(str(plan))) == str(plan)
    assert Plan.from_yaml(plan.to_yaml()) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_the_order_of_sources_makes_no_difference() -> None:
    assert Plan.parse("sources=vector,keyword") == Plan.parse("sources=keyword,vector") == preset("default")


def test_equal_plans_have_equal_hashes_and_presets_do_not_count() -> None:
    changed = preset("default").replace(dict(preset("tmm")))
    assert changed == preset("tmm")
    assert hash(changed) == hash(preset("tmm"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fusion.q=1", "no plan field called 'fusion.q'"),
        ("fusion.kk=1", "Did you mean fusion.k"),
        ("limit=0", "from 1 to 1000"),
        ("limit=ten", "from 1 to 1000"),
        ("fusion.k=nan", "from 1 to 100000"),
        ("fusion.k=0.5", "from 1 to 100000"),
        ("depth.nonsense=5", "names no source"),
        ("depth=5", "needs a source"),
        ("nope", "no preset called 'nope'"),
        ("default limit", "not field=value"),
        ("default 'limit=3", "open quote"),
        ("fusion.method=convex sources=vector", "exactly keyword and vector"),
        ("limit.max=5", "from 1 to 5"),
    ],
)
def test_a_wrong_plan_is_one_readable_sentence(text: str, words: str) -> None:
    with pytest.raises(PlanError, match=words) as caught:
        Plan.parse(text)
    assert "\n" not in str(caught.value)


def test_depth_is_a_hundred_or_five_limits() -> None:
    assert Plan.parse("limit=10").depth("keyword") == 100
    assert Plan.parse("limit=40").depth("keyword") == 200
    assert Plan.parse("depth.vector=7").depth("vector@artifacts") == 7


def test_depth_may_follow_the_limit() -> None:
    """`3x` is three limits and `+5` the limit and five more, and both read back."""
    plan = Plan.parse("limit=4 depth.vector=3x depth.keyword=+5")
    assert (plan.depth("vector"), plan.depth("keyword")) == (12, 9)
    assert Plan.parse(str(plan)) == plan == Plan.from_yaml(plan.to_yaml())
    for wrong in ("0x", "x", "+0", "-3", "3y"):
        with pytest.raises(PlanError):
            Plan.parse(f"depth.vector={wrong}")


def test_every_default_is_inside_its_own_bounds() -> None:
    for spec in plan_fields.FIELDS:
        if spec.default is not None:
            assert spec.read(plan_fields.plain(spec.default)) == spec.default, spec.name


def test_a_plan_does_not_change() -> None:
    with pytest.raises(AttributeError):
        preset("default").limit = 5  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [p.name for p in PRESETS])
def test_a_preset_is_its_own_text(name: str) -> None:
    assert str(preset(name)) == name
    assert Plan.parse(name) == preset(name)


def test_the_threshold_setting_moves_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_VECTOR_SCORE_THRESHOLD", "0.4")
    assert preset("default")["vector.threshold"] == 0.4


def test_grep_that_joins_a_search_brings_its_weight() -> None:
    """Keywords make grep join keyword and vector: its weight and normalisation are the plan's, not the defaults."""
    plan = Plan.parse("default fusion.weights.grep=3 fusion.normalise.grep=top")
    assert "grep" not in plan.sources
    assert plan.fusion.weight("grep") == 3.0
    assert plan.fusion.normalisation("grep") == "top"
