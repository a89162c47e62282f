"""Sliders of a notebook: they make the plan they say, show what a search under it shows, and say what cannot be."""

import sys
from typing import Any

import pytest

import workbench as wb
from workbench.demo import sample_folder
from workbench.errors import SourceUnavailable, UsageError
from workbench.notebook import explorer as explorer_module

pytest.importorskip("ipywidgets", reason="needs the extra notebooks")
from types import SimpleNamespace

import numpy as np
import polars as pl

from workbench.notebook import ProgressLine
from workbench.records import Progress

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


def test_whatever_moved_the_list_is_that_of_a_search_under_the_plan(sample, explorer):
    for changes in MOVES:
        explorer.move(changes)
        fresh = sample.search(explorer.result.query, plan=explorer.plan, bypass_cache=True)
        assert [(h.chunk_id, h.score) for h in explorer.result.hits] == [(h.chunk_id, h.score) for h in fresh.hits]
        assert explorer.plan == wb.Plan.parse(str(explorer.plan))


def test_moving_a_slider_is_moving_the_plan(explorer, tmp_path):
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
    assert control(explorer, "fusion.alpha").widget.layout.display == "none"
    explorer.move({"fusion.method": "convex"})
    assert control(explorer, "fusion.alpha").widget.layout.display is None
    assert control(explorer, "fusion.k").widget.layout.display == "none"
    explorer.move({"sources": "keyword"})
    assert {c.name for c in explorer._controls if c.name.startswith("depth")} == {"depth.keyword"}
    explorer.move({"fusion.k": 11, "fusion.weights.vector": 1.5})
    kept = explorer.save(tmp_path / "mine.yaml")
    assert wb.Plan.from_yaml(kept.read_text(encoding="utf-8")) == explorer.plan


def test_what_cannot_be_is_said_and_changes_nothing(explorer):
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
def test_a_button_that_cannot_do_it_says_why(explorer, monkeypatch, button, does):
    def fails(*args: Any) -> None:
        raise SourceUnavailable("The encoder is gone", "Index again")

    monkeypatch.setattr(type(explorer), does, fails)
    getattr(explorer, button).click()
    assert "The encoder is gone" in explorer._alert.value
    assert 'role="alert"' in explorer._alert.value


def test_a_setting_that_retrieves_offers_to_measure_again(sample, judged, explorer):
    explorer.move({"keyword.k1": 1.7})
    assert explorer.measured is None
    assert explorer._again.layout.display is None
    explorer._again.click()
    assert explorer._again.layout.display == "none"
    assert explorer.measured.mean == pytest.approx(
        sample.evaluate(judged, plan=explorer.plan, measures="nDCG@10").mean("nDCG@10"), abs=1e-9
    )
    assert f"{explorer.measured.mean:.3f}" in explorer._head.value
    explorer.move({"fusion.k": 3})
    explorer._query.value = "who is on call"
    assert explorer.result.query == "who is on call"
    assert explorer.plan["fusion.k"] == 3
    assert explorer._before == {h.chunk_id: h.rank for h in sample.search("who is on call", plan=RRF).hits}


def test_without_judgments_there_is_no_measure_and_without_the_extra_a_remedy(sample, monkeypatch):
    made = wb.explore(sample, "retry", settings=["fusion.k"])
    assert (made.live, made.measured, made._head.value) == (None, None, "")
    assert "queries" not in made._picture.options
    assert [c.name for c in made._controls] == ["fusion.k"]
    with pytest.raises(UsageError, match="no judged queries"):
        made.measure_again()
    with pytest.raises(UsageError, match="nothing to search"):
        wb.explore(sample)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(UsageError, match=r"\[notebooks\]"):
        wb.explore(sample, "retry")


def test_each_of_two_encoders_has_its_own_threshold():
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


def test_judged_collections_are_folders_in_the_beir_form(tmp_path, monkeypatch):
    for name, parts in (("b", 3), ("a", 3), ("half", 2)):
        folder = tmp_path / "collections" / name
        folder.mkdir(parents=True)
        for part in ("corpus.jsonl", "queries.jsonl", "qrels.tsv")[:parts]:
            (folder / part).touch()
    found = {"a": tmp_path / "collections" / "a", "b": tmp_path / "collections" / "b"}
    monkeypatch.delenv("WORKBENCH_MEASURE_DATA", raising=False)
    assert wb.judged_collections() == {}
    assert wb.judged_collections(tmp_path / "collections") == found
    assert wb.judged_collections(tmp_path / "absent") == {}
    monkeypatch.setenv("WORKBENCH_MEASURE_DATA", str(tmp_path))
    assert list(wb.judged_collections().items()) == list(found.items())


@pytest.mark.slow
def test_frequencies_and_texts_of_documents(make_corpus, sample_path):
    corpus = make_corpus({"a.md": "queues wait", "b.md": "a queue waits", "c.md": "wait queue"})
    words = ["queue", "queues", "wait", "wait queue", "zebra", "?!"]
    assert corpus.frequencies(words) == dict(zip(words, (3, 3, 3, 1, 0, 0), strict=True))
    with (
        wb.open_corpus(sample_path, wb.Principal("acme", ("admin", "support"))) as much,
        wb.open_corpus(sample_path, wb.Principal("nobody", ())) as little,
    ):
        assert little.frequencies(["the"])["the"] < much.frequencies(["the"])["the"]
    corpus = make_corpus({"<img src=x onerror=alert(1)>.md": "pelican pelican", "b.md": "pelican"})
    made = wb.explore(corpus, "pelican")
    assert "&lt;img src=x" in made._list.value
    assert "<img" not in made._list.value + str(made.figure.to_plotly_json())


def test_wins_and_distributions_agree_with_evaluations(sample, judged):
    plans = ("default sources=keyword", "default sources=vector")
    first, second = (sample.evaluate(judged, plan=p, measures=["nDCG@10", "RR"]) for p in plans)
    frame = first.wins(second)
    live = sample.live(judged, "nDCG@10", plans[0])
    live.prepare(wb.Plan.parse(plans[1]))
    assert frame.columns == ["query_id", "query", "first", "second", "difference"]
    assert frame.sort("query_id").drop("query_id", "query").to_numpy() == pytest.approx(
        live.wins(wb.Plan.parse(plans[1])).sort("query_id").drop("query_id", "query").to_numpy(), abs=1e-9
    )
    assert frame["difference"].is_sorted(descending=True)
    assert frame["difference"].mean() == pytest.approx(second.mean("nDCG@10") - first.mean("nDCG@10"))
    assert first.wins(second, "RR")["first"].mean() == pytest.approx(first.mean("RR"))
    with pytest.raises(UsageError, match="different queries"):
        first.wins(sample.evaluate(judged.subset(judged.query_ids[:2]), plan=plans[0], measures="nDCG@10"))
    found = sample.distribution(judged, "default", "vector")
    assert found.distances
    assert np.all(np.diff(found.relevant) >= 0)
    lost, _ = found.dropped(found.threshold(0.1))
    assert lost <= 0.1
    with pytest.raises(UsageError, match="does not ask grep"):
        sample.distribution(judged, "default", "grep")


def drawn(reports: list[tuple[float, Progress]]) -> list[str]:
    lines: list[str] = []
    clock = SimpleNamespace(now=0.0)
    line = ProgressLine(lines.append, every=0.25, clock=lambda: clock.now)
    for clock.now, report in reports:
        line(report)
    return lines


def test_the_line_of_progress_on_a_terminal_and_elsewhere(monkeypatch, capsys):
    assert drawn(
        [
            (0.0, Progress("walk", 12, 0)),
            (0.1, Progress("read", 3, 1_200, seconds_left=14.2)),
            (2.1, Progress("embed", 1_000, 2_019, seconds_left=0.4)),
        ]
    ) == ["walk 12", "read 3 of 1,200 (14 s left)", "read 2.0 s, embed 1,000 of 2,019"]
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    wb.progress_line()(Progress("embed", 1, 2))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    line = wb.progress_line()
    line(Progress("embed", 1, 2))
    line(Progress("embed", 2, 2))
    assert capsys.readouterr().err == "\r\x1b[Kembed 1 of 2\r\x1b[Kembed 2 of 2"


def test_in_a_notebook_one_output_changes_in_place(monkeypatch):
    display = pytest.importorskip("IPython.display", reason="needs the extra notebooks: pip install ipykernel")
    sent: list[tuple[str, Any]] = []
    handle = SimpleNamespace(update=lambda data, raw: sent.append(("update", data["text/plain"])))
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr(display, "display", lambda data, **kw: sent.append(("display", kw["display_id"])) or handle)
    line = wb.progress_line()
    line(Progress("embed", 1, 2))
    line(Progress("embed", 2, 2))
    assert sent == [("display", True), ("update", "embed 1 of 2"), ("update", "embed 2 of 2")]


def test_figures_fit_what_they_show():
    measures = wb.charts.means_figure([("keyword", 0.5, 0.4, 0.6), ("no interval", 0.0, None, None)])
    differences = wb.charts.means_figure([("first", 0.03, -0.02, 0.08), ("second", 0.1, 0.05, 0.15)])
    assert measures.layout.xaxis.range == (0, 1.02)
    assert differences.layout.xaxis.range is None
    frame = pl.DataFrame({"query_id": ["a"], "query": ["q"], "first": [0.25], "second": [0.5], "difference": [0.25]})
    figure = wb.charts.wins_figure(frame, "nDCG@10", ("vector, 200 tokens", "vector, 60 tokens"))
    lines = figure.layout.yaxis.title.text.split("<br>")
    assert lines == ["nDCG@10: vector, 60 tokens", "minus vector, 200 tokens"]
    assert max(map(len, lines)) * 7 < figure.layout.height
