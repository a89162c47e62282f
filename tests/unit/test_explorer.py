"""Sliders of a notebook: they make the plan they say, show what a search under it shows, and say what cannot be."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.demo import sample_folder
from workbench.errors import SourceUnavailable, UsageError
from workbench.notebook import explorer as explorer_module

pytest.importorskip("ipywidgets", reason="needs the extra notebooks")

RRF = "default fusion.method=rrf fusion.k=60 vector.threshold=off"
MOVES: list[dict[str, Any]] = [
    {"fusion.k": 1.0},
    {"fusion.weights.vector": 0.0},
    {"fusion.method": "convex", "fusion.alpha": 0.8},
    {"fusion.normalise.keyword": "tmm", "fusion.normalise.vector": "tmm"},
    {"depth.keyword": 3, "vector.threshold": 0.45},
    {"keyword.k1": 2.0, "keyword.b": 0.0},
    {"sources": "vector"},
]


@pytest.fixture(scope="module")
def judged() -> Any:
    return wb.load_judgments(sample_folder())


@pytest.fixture
def explorer(sample: wb.Corpus, judged: Any) -> Any:
    return wb.explore(sample, "how long do we wait before a retry", judged, plan=RRF)


def control(explorer: Any, name: str) -> Any:
    return next(c for c in explorer._controls if c.name == name)


def test_whatever_moved_the_list_is_that_of_a_search_under_the_plan(sample: wb.Corpus, explorer: Any) -> None:
    for changes in MOVES:
        explorer.move(changes)
        fresh = sample.search(explorer.result.query, plan=explorer.plan, bypass_cache=True)
        assert [(h.chunk_id, h.score) for h in explorer.result.hits] == [(h.chunk_id, h.score) for h in fresh.hits]
        assert explorer.plan == wb.Plan.parse(str(explorer.plan))


@pytest.mark.slow
def test_the_figure_beside_the_sliders_is_that_of_evaluate(sample: wb.Corpus, judged: Any, explorer: Any) -> None:
    for changes in MOVES[:4]:
        explorer.move(changes)
        full = sample.evaluate(judged, plan=explorer.plan, measures=["nDCG@10"])
        assert explorer.measured.mean == pytest.approx(full.mean("nDCG@10"), abs=1e-9)
        assert f"{explorer.measured.mean:.3f}" in explorer._head.value


def test_moving_a_slider_is_moving_the_plan(explorer: Any) -> None:
    control(explorer, "fusion.k").input.value = 7.0
    assert explorer.plan == wb.Plan.parse(RRF).replace({"fusion.k": 7})
    control(explorer, "depth.vector").input.value = 20
    control(explorer, "fusion.method").input.value = "convex"
    control(explorer, "fusion.alpha").input.value = 0.31
    control(explorer, "vector.threshold")._switch.value = True
    assert explorer.plan["vector.threshold"] == control(explorer, "vector.threshold").input.value
    assert (explorer.plan["depth.vector"], explorer.plan["fusion.alpha"]) == (20, 0.31)
    assert explorer.figure.data[0].type == "scatter"
    explorer._reset.click()
    assert explorer.plan == explorer.start
    assert control(explorer, "fusion.k").input.value == 60.0


def test_a_control_is_seen_only_where_the_plan_reads_its_field(explorer: Any) -> None:
    assert control(explorer, "fusion.alpha").widget.layout.display == "none"
    explorer.move({"fusion.method": "convex"})
    assert control(explorer, "fusion.alpha").widget.layout.display is None
    assert control(explorer, "fusion.k").widget.layout.display == "none"
    explorer.move({"sources": "keyword"})
    assert {c.name for c in explorer._controls if c.name.startswith("depth")} == {"depth.keyword"}


def test_what_cannot_be_is_said_and_changes_nothing(explorer: Any) -> None:
    """A refused value leaves plan, picture and list as they were, with the remedy beside them."""
    before = (explorer.plan, explorer._list.value)
    explorer._moved("fusion.k", 0.0)
    assert "fusion.k is 0" in explorer._alert.value
    assert 'role="alert"' in explorer._alert.value
    assert (explorer.plan, explorer._list.value) == before
    depth = control(explorer, "depth.vector").input
    depth.value = 20
    depth.min = 0
    depth.value = 0
    assert "depth.vector is 0" in explorer._alert.value
    assert depth.value == explorer.plan.depth("vector") == 20  # what was refused does not stay on the slider
    explorer._query.value = '"unclosed OR'
    explorer.move({"fusion.k": 2})
    assert explorer._alert.value == ""
    with pytest.raises(UsageError, match="no picture 'pie'"):
        explorer.show("pie")


@pytest.mark.parametrize(("button", "does"), [("_again", "measure_again"), ("_reset", "become")])
def test_a_button_that_cannot_do_it_says_why(
    explorer: Any, monkeypatch: pytest.MonkeyPatch, button: str, does: str
) -> None:
    """Jupyter sends what a button's callback raises to a log that nobody reads, so it is said on the page."""

    def fails(*args: Any) -> None:
        raise SourceUnavailable("The encoder is gone", "Index again")

    monkeypatch.setattr(type(explorer), does, fails)
    getattr(explorer, button).click()
    assert "The encoder is gone" in explorer._alert.value
    assert 'role="alert"' in explorer._alert.value


def test_a_setting_that_retrieves_offers_to_measure_again(sample: wb.Corpus, judged: Any, explorer: Any) -> None:
    """The query itself is searched again at once; the judged queries only when the person says so."""
    explorer.move({"keyword.k1": 1.7})
    assert explorer.measured is None
    assert explorer._again.layout.display is None
    explorer._again.click()
    assert explorer._again.layout.display == "none"
    assert explorer.measured.mean == pytest.approx(
        sample.evaluate(judged, plan=explorer.plan, measures="nDCG@10").mean("nDCG@10"), abs=1e-9
    )


def test_another_query_keeps_the_plan(sample: wb.Corpus, explorer: Any) -> None:
    explorer.move({"fusion.k": 3})
    explorer._query.value = "who is on call"
    assert explorer.result.query == "who is on call"
    assert explorer.plan["fusion.k"] == 3
    assert explorer._before == {h.chunk_id: h.rank for h in sample.search("who is on call", plan=RRF).hits}


def test_without_judgments_there_is_no_measure(sample: wb.Corpus) -> None:
    made = wb.explore(sample, "retry", settings=["fusion.k"])
    assert (made.live, made.measured, made._head.value) == (None, None, "")
    assert "queries" not in made._picture.options
    assert [c.name for c in made._controls] == ["fusion.k"]
    with pytest.raises(UsageError, match="no judged queries"):
        made.measure_again()
    with pytest.raises(UsageError, match="nothing to search"):
        wb.explore(sample)


def test_the_plan_is_taken_away_as_a_file(explorer: Any, tmp_path: Path) -> None:
    explorer.move({"fusion.k": 11, "fusion.weights.vector": 1.5})
    kept = explorer.save(tmp_path / "mine.yaml")
    assert wb.Plan.from_yaml(kept.read_text(encoding="utf-8")) == explorer.plan


@pytest.mark.slow
def test_texts_of_documents_stay_texts(make_corpus: Callable[..., wb.Corpus]) -> None:
    """A path is shown, never run: what HTML would read is escaped in the list."""
    corpus = make_corpus({"<img src=x onerror=alert(1)>.md": "pelican pelican", "b.md": "pelican"})
    made = wb.explore(corpus, "pelican")
    assert "&lt;img src=x" in made._list.value
    assert "<img" not in made._list.value + str(made.figure.to_plotly_json())


def test_without_the_extra_the_remedy_is_said(sample: wb.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(UsageError, match=r"\[notebooks\]"):
        wb.explore(sample, "retry")


def test_each_of_two_encoders_has_its_own_threshold() -> None:
    plan = wb.Plan.parse("sources=vector,vector:b vector.threshold=0.6 threshold.vector:b=off")
    told: list[Any] = []
    first, second = explorer_module.controls_for(["vector.threshold"], plan, lambda *change: told.append(change))
    assert (first.name, second.name) == ("threshold.vector", "threshold.vector:b")
    assert (first.input.value, first._switch.value, second._switch.value) == (0.6, True, False)
    first.input.value = 0.4
    second._switch.value = True
    assert told[0] == ("threshold.vector", 0.4)
    assert told[1][0] == "threshold.vector:b"
    assert explorer_module.fields_for(["vector.threshold", "threshold"], plan) == (first.name, second.name)
    assert explorer_module.fields_for(["vector.threshold"], wb.Plan.parse("default")) == ("vector.threshold",)
    assert explorer_module.fields_for(["vector.threshold"], wb.Plan.parse("default threshold.vector=0.3")) == (
        "threshold.vector",
    )
