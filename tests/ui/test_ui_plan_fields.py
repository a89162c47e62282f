"""Every plan field has a control, and every control says what it sets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from app_for_tests import all_text, run
from streamlit.testing.v1 import AppTest

from workbench.plan import controls as plan_controls
from workbench.plan import fields as plan_fields
from workbench.plan.plan import Plan

Open = Callable[..., AppTest]
KINDS = ("slider", "selectbox", "toggle", "button_group", "text_input", "multiselect")
# For each field a plan under which it matters, its control, and another value with its spelling in the plan.
MOVES: dict[str, tuple[str, str, Any, str]] = {
    "sources": ("default", "sources", ["vector"], "sources=vector"),
    "collections": ("default", "collections", ["docs"], "collections=docs"),
    "limit": ("default", "limit", 7, "limit=7"),
    "limit.max": ("default", "limit.max", "30", "limit.max=30"),
    "principal": ("default", "principal", "required", "principal=required"),
    "grep.context": ("default", "grep.context", 3, "grep.context=3"),
    "grep.regex": ("default", "grep.regex", True, "grep.regex=yes"),
    "grep.case": ("default", "grep.case", "ignore", "grep.case=ignore"),
    "grep.word": ("default", "grep.word", True, "grep.word=yes"),
    "grep.when": ("default", "grep.when", "always", "grep.when=always"),
    "grep.show": ("default", "grep.show", "passage", "grep.show=passage"),
    "keyword.k1": ("default", "keyword.k1", 2.0, "keyword.k1=2"),
    "keyword.b": ("default", "keyword.b", 0.75, "keyword.b=0.75"),
    "keyword.operator": ("default", "keyword.operator", "all", "keyword.operator=all"),
    "keyword.keep_strongest": ("default", "keyword.keep_strongest", True, "keyword.keep_strongest=yes"),
    "vector.metric": ("default", "vector.metric", "cosine", "vector.metric=cosine vector.threshold=1"),
    "vector.threshold": ("default", "vector.threshold", 0.4, "vector.threshold=0.4"),
    "threshold": (
        "default sources=keyword,vector,vector:table",
        "threshold.vector:table",
        0.4,
        "threshold.vector:table=0.4",
    ),
    "fusion.threshold": ("default fusion.threshold=0.1", "fusion.threshold", 0.5, "fusion.threshold=0.5"),
    "vector.exact": ("default", "vector.exact", "yes", "vector.exact=yes"),
    "depth": ("default", "depth.vector", 50, "depth.vector=50"),
    "fusion.method": ("default", "fusion.method", "max", "fusion.method=max"),
    "fusion.k": ("rrf", "fusion.k", 5.0, "fusion.k=5"),
    "fusion.rank_base": ("rrf", "fusion.rank_base", 0, "fusion.rank_base=0"),
    "fusion.alpha": ("tmm", "fusion.alpha", 0.5, "fusion.alpha=0.5"),
    "fusion.weights": ("default", "fusion.weights.keyword", 0.5, "fusion.weights.keyword=0.5"),
    "fusion.normalise": ("tmm", "fusion.normalise.vector", "rank", "fusion.normalise.vector=rank"),
    "fusion.missing": ("tmm", "fusion.missing", "zero", "fusion.missing=zero"),
    "fusion.unit": ("default", "fusion.unit", "document", "fusion.unit=document"),
    "fusion.renumber": ("contract", "fusion.renumber", False, "fusion.renumber=no"),
    "fusion.prefer": ("contract", "fusion.prefer", "chunk", "fusion.prefer=chunk"),
    "fusion.single_source": ("default", "fusion.single_source", "fuse", "fusion.single_source=fuse"),
    "dedupe": ("default", "dedupe", False, "dedupe=no"),
    "neighbours": ("default", "neighbours", 2, "neighbours=2"),
    "organise": ("default", "organise", "pages", "organise=pages"),
    "rerank.model": ("default", "rerank.model", "overlap", "rerank.model=overlap"),
    "rerank.top": ("default rerank.model=overlap", "rerank.top", 20, "rerank.top=20"),
    "rewrite.model": ("default", "rewrite.model", "keywords", "rewrite.model=keywords"),
    "cache_seconds": ("default", "cache_seconds", "60", "cache_seconds=60"),
}


def widget(at: AppTest, name: str) -> Any:
    """The control of that name, of whatever kind."""
    (found,) = [w for kind in KINDS for w in getattr(at, kind) if w.key == f"wb.w.{name}"]
    return found


def test_every_field_is_in_the_table_of_controls_once() -> None:
    """And in the table of this test: a new field cannot be forgotten."""
    named = [slot.name for group in plan_controls.GROUPS for slot in group.slots]
    assert sorted(named) == sorted(plan_fields.BY_NAME)
    assert set(MOVES) == set(plan_fields.BY_NAME)


@pytest.mark.parametrize("field", MOVES)
def test_a_control_sets_its_field(open_app: Open, small_corpus: Path, field: str) -> None:
    """The plan of the address says the new value, the control shows it, and nothing else changed."""
    plan, name, value, spelled = MOVES[field]
    # Without a query nothing is searched: what the settings do is tested where it is done.
    at = open_app(small_corpus, plan=plan, moves="0")
    widget(at, name).set_value(value)
    run(at)
    assert at.query_params["plan"] in (f"{plan} {spelled}", str(Plan.parse(f"{plan} {spelled}")))
    run(at)
    assert widget(at, name).value == value
    assert plan_fields.BY_NAME[field].help in widget(at, name).help


def test_what_differs_from_the_preset_is_said_and_a_depth_can_be_automatic_again(
    open_app: Open, small_corpus: Path
) -> None:
    plan = Plan.parse("tmm fusion.alpha=0.3 limit=20")
    at = open_app(small_corpus, plan=str(plan))
    (shown,) = [e.proto.body for e in at.get("html") if 'class="wb-plan"' in e.proto.body]
    assert 'data-wb-copy="tmm limit=20 fusion.alpha=0.3"' in shown
    assert "<bdi>0.8</bdi></td><td><b>0.3</b></td>" in shown
    assert shown.index("<code>limit") < shown.index("<code>fusion.alpha")
    at = open_app(small_corpus, q="retry", plan="default depth.vector=3x")
    assert widget(at, "depth.vector").value == 30
    at.button(key="wb.w.depth.vector.auto").click()
    run(at)
    assert "plan" not in at.query_params
    assert widget(at, "depth.vector").value == 100
    at = open_app(small_corpus)
    widget(at, "cache_seconds").set_value("soon")
    run(at)
    assert "a number of seconds from 0 to 86400" in all_text(at)
    assert "plan" not in at.query_params
    assert widget(at, "cache_seconds").value == "180"
    at = open_app(small_corpus, plan="tmm limit=20")
    assert Plan.from_yaml(at.code[0].value) == Plan.parse("tmm limit=20")


@pytest.mark.parametrize("text", ["tmm fusion.alpha=0.3", "preset: tmm\nfields:\n  fusion:\n    alpha: 0.3\n"])
def test_a_plan_can_be_pasted(open_app: Open, small_corpus: Path, text: str) -> None:
    at = open_app(small_corpus)
    at.text_area(key="wb.w.paste").set_value(text)
    run(at)
    assert at.query_params["plan"] == "tmm fusion.alpha=0.3"
    assert at.text_area(key="wb.w.paste").value == ""
    at.text_area(key="wb.w.paste").set_value("tmm fusion.gamma=1")
    run(at)
    assert "There is no plan field called" in all_text(at)
    assert at.query_params["plan"] == "tmm fusion.alpha=0.3"
