"""Every plan field has a control that says what it sets, and the address says what the page shows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from app_for_tests import all_text, open_plan, run
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from workbench import guide
from workbench.plan import controls as plan_controls
from workbench.plan import fields as plan_fields
from workbench.plan.plan import Plan
from workbench.ui import state
from workbench.ui.state import MODES, PICTURES, AppState, Column, from_params

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
    "vector.adapt": ("rrf", "vector.adapt", "corpus", "vector.adapt=corpus"),
    "vector.hubness": ("rrf vector.adapt=corpus", "vector.hubness", 0.3, "vector.hubness=0.3"),
    "feedback.weight": ("rrf vector.adapt=corpus", "feedback.weight", 0.25, "feedback.weight=0.25"),
    "feedback.top": ("rrf vector.adapt=corpus feedback.weight=0.25", "feedback.top", 5, "feedback.top=5"),
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
    assert guide.address("reference", guide.anchor(field)) in widget(at, name).help


def test_what_differs_from_the_preset_is_said_and_a_depth_can_be_automatic_again(
    open_app: Open, small_corpus: Path
) -> None:
    plan = Plan.parse("tmm fusion.alpha=0.3 limit=20")
    at = open_plan(open_app(small_corpus, plan=str(plan)))
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
    at = open_plan(open_app(small_corpus, plan="tmm limit=20"))
    assert Plan.from_yaml(at.code[0].value) == Plan.parse("tmm limit=20")


@pytest.mark.parametrize("text", ["tmm fusion.alpha=0.3", "preset: tmm\nfields:\n  fusion:\n    alpha: 0.3\n"])
def test_a_plan_can_be_pasted(open_app: Open, small_corpus: Path, text: str) -> None:
    at = open_plan(open_app(small_corpus))
    at.text_area(key="wb.w.paste").set_value(text)
    run(at)
    assert at.query_params["plan"] == "tmm fusion.alpha=0.3"
    assert open_plan(at).text_area(key="wb.w.paste").value == ""
    at.text_area(key="wb.w.paste").set_value("tmm fusion.gamma=1")
    run(at)
    assert "There is no plan field called" in all_text(at)
    assert at.query_params["plan"] == "tmm fusion.alpha=0.3"


PLANS = [
    "default",
    "default fusion.k=20 limit=5",
    "tmm",
    "tmm fusion.alpha=0.3",
    "default vector.threshold=off sources=grep,keyword",
]

texts = st.text(min_size=0, max_size=30).map(str.strip)
plans = st.sampled_from(PLANS).map(Plan.parse)
columns = st.lists(
    st.one_of(st.sampled_from(MODES).map(Column), plans.map(lambda plan: Column(plan=plan))), min_size=1, max_size=4
).map(tuple)


@st.composite
def states(draw: st.DrawFn) -> AppState:
    chosen = draw(columns)
    owns = [n for n, column in enumerate(chosen, 1) if column.plan is not None]
    return AppState(
        query=draw(texts), keywords=draw(texts), context=draw(texts), filters=draw(texts), columns=chosen,
        plan=draw(plans), moves=draw(st.sampled_from([0, *owns])), picture=draw(st.sampled_from(PICTURES)),
        roles=draw(st.sampled_from([None, (), ("staff",), ("hr", "staff")])),
    )  # fmt: skip


@settings(max_examples=50)
@given(states())
def test_every_state_reads_back_from_its_address(state: AppState) -> None:
    restored, said = from_params(state.to_params())
    assert restored == state
    assert [str(restored.plan_of(c)) for c in restored.columns] == [str(state.plan_of(c)) for c in state.columns]
    assert str(restored.moved) == str(state.moved)
    assert said == ()


def test_an_untouched_page_has_an_empty_address_and_a_copy_of_the_plan_moves_by_itself() -> None:
    assert AppState().to_params() == {}
    plan = Plan.parse("tmm")
    state = AppState(columns=(Column("grep"), Column(plan=plan)), plan=plan, moves=2)
    moved = state.with_moved(plan.replace({"limit": 3}))
    assert str(moved.plan) == "tmm"
    assert str(moved.moved) == "tmm limit=3"
    assert moved.columns[0] == Column("grep")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"plan": "default fusion.q=3"}, "no plan field called 'fusion.q'"),
        ({"plan": "nosuch"}, "no preset called 'nosuch'"),
        ({"plan": "default limit=0"}, "limit is '0'"),
        ({"columns": "grep,telepathy"}, "unknown columns (telepathy)"),
        ({"columns": "plan,grep", "column1": "nosuch"}, "Column 1 in the address could not be read"),
        ({"columns": "grep,grep,grep,grep,grep"}, "has 5 columns; the first 4"),
        ({"moves": "2"}, "has no plan of its own"),
        ({"picture": "mandala"}, "unknown picture"),
        ({"q": "x" * 5000}, "5,000 characters"),
    ],
)
def test_what_cannot_be_read_is_said_and_has_its_default(params: dict[str, str], words: str) -> None:
    state, said = from_params({"keywords": "kept", **params})
    assert any(words in s for s in said)
    assert state.keywords == "kept"
    assert state.plan == AppState().plan


def mini() -> None:
    """A page with one widget of the state, for the session's rules."""
    import streamlit as st

    from workbench.ui import state
    from workbench.ui.components import controls

    state.enter(st.session_state.get("page", "search"), {})
    controls.text_box("query", "Query", "help")
    controls.slider(state.current().plan, "fusion.alpha", "alpha", 0.0, 0.9, 0.01)
    st.text(state.current().query)


def test_widgets_state_and_address_follow_each_other() -> None:
    at = AppTest.from_function(mini)
    at.query_params.update({"q": "retries", "plan": "default fusion.alpha=1", "path": "a.md"})
    at.run()
    assert at.text_input(key="wb.w.query").value == "retries"
    assert at.slider(key="wb.w.fusion.alpha").value == 1.0, "beyond the slider's usual end"
    at.slider(key="wb.w.fusion.alpha").set_value(0.2).run()
    at.text_input(key="wb.w.query").set_value("rain").run()
    assert at.query_params == {"q": "rain", "plan": "default fusion.alpha=0.2", "path": "a.md"}
    # A run that a box or a timer asks for comes with the address that the browser shows, some runs behind.
    at.slider(key="wb.w.fusion.alpha").set_value(0.3).run()
    for lagging in ({"q": "rain", "plan": "default fusion.alpha=0.2"}, {}):
        at.query_params.clear()
        at.query_params.update(lagging)
        at.run()
        assert at.slider(key="wb.w.fusion.alpha").value == 0.3
        assert at.query_params["plan"] == "default fusion.alpha=0.3"
    at.query_params.clear()
    at.session_state["page"] = "guide"
    at.run()
    assert at.query_params == {"q": "rain", "plan": "default fusion.alpha=0.3"}, "a switch of pages clears the address"
    assert not at.exception


def test_a_pages_own_values_are_taken_from_the_address_only_where_somebody_went_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A first visit, Back, and a switch of pages; in every other run the address may lag behind what was pressed."""

    def page() -> None:
        import streamlit as st

        from workbench.ui import state

        state.enter(st.session_state.get("page", "document"), {})
        step = lambda: state.set_page_values(lines="", match=str(int(state.page_value("match") or 0) + 1))  # noqa: E731
        st.button("Next", key="next", on_click=step)
        st.text(f"{state.page_value('path')} {state.page_value('match')}")

    at = AppTest.from_function(page)
    at.query_params.update({"path": "a.md", "lines": "3-4"})
    at.run()
    for press in range(1, 4):
        at.query_params.clear()
        at.query_params.update({"path": "a.md", "lines": "3-4"})
        at.button(key="next").click().run()
        assert at.text[0].value == f"a.md {press}"
        assert at.query_params == {"path": "a.md", "match": str(press)}
    with monkeypatch.context() as back:
        back.setattr(state, "_went_back", lambda: True)
        at.query_params["match"] = "2"
        at.run()
    assert at.text[0].value == "a.md 2"
    at.query_params.clear()
    at.session_state["page"] = "corpus"
    at.run()
    assert at.text[0].value.strip() == ""
    assert at.query_params == {}


def test_a_change_that_cannot_be_is_said_and_changes_nothing() -> None:
    def page() -> None:
        from workbench.ui import state
        from workbench.ui.components import controls

        state.enter("search", {})
        controls.slider(state.current().plan, "limit", "Results", 1, 50, 1, whole_page=True)

    at = AppTest.from_function(page)
    at.query_params["plan"] = "tmm limit.max=20"
    at.run()
    at.slider(key="wb.w.limit").set_value(50).run()
    assert not at.exception
    assert "It must be a whole number from 1 to 20" in at.toast[0].value
    assert at.query_params == {"plan": "tmm limit.max=20"}
