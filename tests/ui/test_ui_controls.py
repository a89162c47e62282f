"""Every control changes what it says it changes, and a slider does not search."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from app_for_tests import all_text, chunks, column, open_plan, paths, run
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.plan import fields as plan_fields
from workbench.ui.state import MODES

Open = Callable[..., AppTest]
QUERY = "retry request"


@pytest.fixture
def page(open_app: Open, small_corpus: Path) -> AppTest:
    return open_app(small_corpus, q=QUERY)


def moved(at: AppTest, kind: str, name: str, value: Any) -> AppTest:
    """Set one control and run.

    A slider draws only the answers again, and AppTest then knows only those; so the whole page runs once more, and must
    show the same answers.
    """
    getattr(at, kind)(key=f"wb.w.{name}").set_value(value)
    run(at)
    if kind == "slider" and name != "limit":
        assert not at.slider, "a slider drew the sidebar again"
        answers, address = columns(at), dict(at.query_params)
        run(at)
        assert (columns(at), dict(at.query_params)) == (answers, address)
    return at


def columns(at: AppTest) -> list[str]:
    return [column(at, mode) for mode in MODES]


def scores(at: AppTest, mode: str) -> list[float]:
    return [float(s) for s in re.findall(r'class="wb-score" title="[^:]+: ([^"]+)"', column(at, mode))]


def test_a_closed_section_draws_no_widgets_and_loses_no_setting(page: AppTest) -> None:
    moved(page, "slider", "keyword.k1", 2.0)
    page.session_state["wb.w.section.keyword"] = False
    run(page)
    assert "wb.w.keyword.k1" not in {s.key for s in page.slider}
    assert page.query_params["plan"] == "default keyword.k1=2"
    page.session_state["wb.w.section.keyword"] = True
    run(page)
    assert page.slider(key="wb.w.keyword.k1").value == 2.0


def test_what_a_callback_was_kept_from_is_taken_when_the_page_is_drawn(page: AppTest) -> None:
    """A request that comes while a callback runs cuts it short: the widget has the new value then, and the state the old one."""
    page.session_state["wb.w.keywords"] = "kettle"
    page.session_state["wb.w.fusion.alpha"] = 0.3
    run(page)
    assert (page.query_params["keywords"], page.query_params["plan"]) == ("kettle", "default fusion.alpha=0.3")
    page.button(key="wb.w.undo").click()
    run(page)
    assert "plan" not in page.query_params
    assert page.slider(key="wb.w.fusion.alpha").value == 0.8


def test_weights_and_alpha_move_between_the_two_sides_and_every_method_fuses(page: AppTest) -> None:
    moved(page, "slider", "fusion.weights.keyword", 0.0)
    assert chunks(page, "hybrid") == chunks(page, "vector")
    moved(page, "slider", "fusion.weights.keyword", 1.0)
    moved(page, "slider", "fusion.weights.vector", 0.0)
    assert chunks(page, "hybrid") == chunks(page, "keyword")
    moved(page, "slider", "fusion.weights.vector", 1.0)
    for alpha, mode in ((1.0, "vector"), (0.0, "keyword")):
        moved(page, "slider", "fusion.alpha", alpha)
        assert chunks(page, "hybrid")[:5] == chunks(page, mode)[:5]
    for method in plan_fields.METHODS:
        moved(page, "selectbox", "fusion.method", method)
        assert len(chunks(page, "hybrid")) == 10
        keys = {e.key for kind in ("slider", "selectbox", "button_group") for e in getattr(page, kind)}
        assert ("wb.w.fusion.k" in keys) is (method == "rrf")
        assert ("wb.w.fusion.alpha" in keys) is (method == "convex")
        assert ("wb.w.fusion.normalise.keyword" in keys) is (method != "rrf")
        assert {"wb.w.fusion.weights.keyword", "wb.w.fusion.weights.vector"} <= keys


def test_the_threshold_drops_and_says_how_many(page: AppTest) -> None:
    moved(page, "slider", "vector.threshold", 0.3)
    kept = len(chunks(page, "vector"))
    dropped, entered, left = map(
        int, re.search(r"Drops (\d+) of (\d+) candidates, (\d+) kept", all_text(page)).groups()  # type: ignore[union-attr]
    )  # fmt: skip
    assert dropped + left == entered
    assert kept == min(left, 10)
    assert dropped > 0
    assert all(float(d) < 0.3 for d in re.findall(r"distance (\d\.\d+)<", column(page, "vector")))
    moved(page, "toggle", "cut.vector", False)
    assert page.query_params["plan"] == "default vector.threshold=off"
    moved(page, "toggle", "cut.vector", True)
    assert "plan" not in page.query_params, "on again starts from the default"


@pytest.mark.parametrize("source", ["keyword", "fused"])
def test_scores_are_cut_where_their_histogram_says(page: AppTest, source: str) -> None:
    field, axis = {"keyword": ("threshold.keyword", "BM25 score"), "fused": ("fusion.threshold", "fused score")}[source]
    moved(page, "toggle", f"cut.{source}", True)
    assert page.query_params["plan"] == f"default {field}=0"
    (drawn,) = [e.proto.body for e in page.get("html") if "wb-histogram" in e.proto.body and axis in e.proto.body]
    assert "cut at 0" in drawn
    (slider,) = [s for s in page.slider if s.key == f"wb.w.{field}"]
    best = scores(page, "hybrid" if source == "fused" else source)[0]
    at = round(int(best / slider.step) * slider.step, 6)
    moved(page, "slider", field, at)
    counts = re.findall(r"Drops (\d+) of (\d+) candidates, (\d+) kept", all_text(page))
    dropped, entered, left = map(int, counts[-1])
    assert dropped + left == entered
    assert dropped > 0
    moved(page, "toggle", f"cut.{source}", False)
    assert not [s for s in page.slider if s.key == f"wb.w.{field}"]


def test_what_is_searched_and_by_whom_is_set_beside_the_columns(page: AppTest) -> None:
    moved(page, "text_input", "keywords", r"b[a-z]+off\(")
    assert not chunks(page, "grep")
    moved(page, "toggle", "grep.regex", True)
    assert paths(page, "grep")[0].startswith("backoff.py")
    moved(page, "button_group", "grep.when", "always")
    assert 'aria-label="grep' in column(page, "hybrid")
    assert page.slider(key="wb.w.fusion.weights.grep").value == 1.0
    moved(page, "text_input", "keywords", "")
    page.button(key="wb.w.reset").click()
    run(page)
    for sources in (["vector"], []):
        moved(page, "button_group", "sources", sources)
        assert chunks(page, "hybrid") == chunks(page, "vector")
    assert "at least one source" in all_text(page)
    moved(page, "text_input", "keywords", "retry")
    moved(page, "text_input", "filters", "path glob 'notes/*'")
    for mode in MODES:
        assert chunks(page, mode)
        assert all(p.startswith("notes/") for p in paths(page, mode))


def test_a_preset_sets_every_control_and_is_gone_back_to(page: AppTest) -> None:
    moved(page, "selectbox", "preset", "tmm")
    assert page.slider(key="wb.w.fusion.alpha").value == 0.8
    moved(page, "slider", "fusion.alpha", 0.3)
    assert page.query_params["plan"] == "tmm fusion.alpha=0.3"
    assert '<code class="wb-plantext">tmm fusion.alpha=0.3</code>' in all_text(open_plan(page))
    page.button(key="wb.w.reset").click()
    run(page)
    assert page.slider(key="wb.w.fusion.alpha").value == 0.8
    assert page.query_params["plan"] == "tmm"


def test_a_slider_neither_searches_nor_embeds(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threshold, alpha, weights, depth and limit fuse what is there; a new k1 searches, with the query's vector kept."""
    from workbench.encode.hashing import HashingEncoder

    asked: list[str] = []
    for kind, name in ((HashingEncoder, "encode_query"), (wb.Corpus, "search")):
        original = getattr(kind, name)
        spy = lambda *a, name=name, original=original, **k: (asked.append(name), original(*a, **k))[1]  # noqa: E731
        monkeypatch.setattr(kind, name, spy)
    moves = {
        "fusion.alpha": 0.3,
        "vector.threshold": 0.4,
        "fusion.weights.keyword": 0.5,
        "depth.keyword": 20,
        "limit": 5,
    }
    for name, value in moves.items():
        moved(page, "slider", name, value)
    for method in plan_fields.METHODS:
        moved(page, "selectbox", "fusion.method", method)
    assert asked == []
    moved(page, "slider", "keyword.k1", 2.0)
    assert set(asked) == {"search"}


def test_every_control_says_its_value_as_its_default_too(open_app: Open, small_corpus: Path) -> None:
    """A browser that missed the run which set a value by its key draws the default: it must be the value, not the least."""
    at = open_app(small_corpus, q=QUERY, plan="rrf fusion.k=20 fusion.weights.vector=0.5 vector.metric=cosine limit=7")
    assert list(at.slider(key="wb.w.fusion.k").proto.default) == [20]
    assert len(at.slider) > 4
    for slider in at.slider:
        assert list(slider.proto.default) == [slider.value], slider.key
    for box in at.selectbox:
        assert box.options[box.proto.default] == box.value or box.proto.default == box.index, box.key
    for widget in (*at.toggle, *at.text_input):
        assert widget.proto.default == widget.value, widget.key
