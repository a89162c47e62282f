"""Pictures of tuning, drawn from frames: what is where, and never more bars than can be looked at."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from corpus_files import write_files

import workbench as wb
from workbench.charts.tuning import MOST_BARS, distribution_figure, heat_figure, sensitivity_figure, wins_figure
from workbench.errors import UsageError
from workbench.evaluate.differing import lists_of, queries_only, wins
from workbench.evaluate.distribution import Distribution, distribution
from workbench.evaluate.pool import Pool
from workbench.judgments.qrels import Judgments, Topic


def test_the_curve_has_its_band_and_marks() -> None:
    """The band goes there along the top and back along the bottom; a wide range of numbers is drawn by ratio."""
    frame = pl.DataFrame(
        {
            "value": ["1", "10", "60"], "number": [1.0, 10.0, 60.0], "mean": [0.5, 0.6, 0.4], "low": [0.4, 0.5, 0.3],
            "high": [0.6, 0.7, 0.5], "marks": ["", "best", "current,default"],
        }
    )  # fmt: skip
    drawn = sensitivity_figure(frame, "fusion.k", "nDCG@10")
    assert list(drawn.data[0].y) == [0.6, 0.7, 0.5, 0.3, 0.5, 0.4]
    assert drawn.layout.xaxis.type == "log"
    assert {t.name: list(t.x) for t in drawn.data[2:]} == {"current": [60.0], "best": [10.0], "default": [60.0]}
    beside = pl.DataFrame({"mark": ["current"], "value": ["20"], "number": [20.0], "mean": [0.7]})
    current = sensitivity_figure(frame, "fusion.k", "nDCG@10", beside).data[2]
    assert (current.name, list(current.x), list(current.y)) == ("current", [20.0], [0.7])
    words = frame.with_columns(number=pl.lit(None, pl.Float64))
    assert sensitivity_figure(words, "fusion.method", "RR").layout.xaxis.type == "category"


def test_the_map_frames_its_best_cell() -> None:
    frame = pl.DataFrame({"a": ["1", "1", "2", "2"], "b": ["x", "y", "x", "y"], "mean": [0.1, 0.4, 0.3, 0.2]})
    drawn = heat_figure(frame, "RR")
    assert [list(row) for row in drawn.data[0].z] == [[0.1, 0.4], [0.3, 0.2]]
    (shape,) = drawn.layout.shapes
    assert (shape.x0, shape.y0) == (0.5, -0.5)


def test_bars_leave_out_ties_and_keep_both_ends() -> None:
    """500 queries: the ties are counted in words, the greatest gains and losses are drawn."""
    differences = sorted([0.0] * 100 + [n / 400 - 0.5 for n in range(400)], reverse=True)
    frame = pl.DataFrame(
        {"query_id": [str(n) for n in range(500)], "query": ["q"] * 500, "first": [0.5] * 500,
         "second": [0.5 + d for d in differences], "difference": differences}
    )  # fmt: skip
    drawn = wins_figure(frame, "RR", ("a", "b"))
    assert len(drawn.data[0].y) == MOST_BARS
    assert drawn.data[0].y[0] == max(differences)
    assert drawn.data[0].y[-1] == min(differences)
    better, worse = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    assert drawn.layout.xaxis.title.text == f"queries: {better} better, {worse} worse, 101 equal"


def test_the_threshold_that_loses_at_most_a_share() -> None:
    """Ten relevant distances: 0 % keeps the last, 10 % lets one go, 25 % two; what it drops is counted."""
    found = Distribution(
        "vector", "angular distance", np.arange(1, 11) / 20, np.array([0.2, 0.6]), np.array([0.5, 0.9])
    )
    assert found.threshold(0.0) == pytest.approx(0.5)
    assert found.threshold(0.1) == pytest.approx(0.45)
    assert found.threshold(0.25) == pytest.approx(0.4)
    assert found.dropped(found.threshold(0.1)) == (0.1, 0.75)
    assert math.isnan(Distribution("vector", "x distance", np.zeros(0), np.zeros(0), np.zeros(0)).threshold())
    scores = Distribution("keyword", "score", np.arange(1.0, 11.0), np.zeros(0), np.zeros(0))
    assert scores.threshold(0.1) == 2.0
    with pytest.raises(UsageError, match="share to lose"):
        found.threshold(1.5)
    drawn = distribution_figure(found.frame(5), found.axis, 0.4)
    assert sum(drawn.data[0].y) == pytest.approx(1)
    assert len(drawn.layout.shapes) == 1


def test_plans_differ_most_where_their_lists_do(tmp_path: Path) -> None:
    """Without a judgment: the query whose lists share nothing comes before the one with equal lists."""
    files = {"a.md": "red apple\n", "b.md": "red brick\n", "c.md": "blue brick\n", "d.md": "green grass\n"}
    wb.index([write_files(tmp_path / "files", files)], corpus=tmp_path / "corpus", encoder="hashing")
    with wb.open_corpus(tmp_path / "corpus") as corpus:
        pool = Pool(corpus.engine, queries_only(["grass", "apple brick", "grass"]))
        same, other = (
            wb.Plan.parse("default sources=keyword"),
            wb.Plan.parse("default sources=keyword keyword.operator=all"),
        )
        lists = lists_of(pool, same, other)
        frame = lists.frame()
        assert frame["query"].to_list() == ["apple brick", "grass"]
        assert frame["rbo"].to_list()[1] == 1.0
        assert frame["only_first"].to_list()[0] == ["a.md", "b.md", "c.md"]
        judged = Judgments({"q": Topic("q", "red brick")}, {"q": {"b.md": 1, "a.md": 0}})
        found = distribution(Pool(corpus.engine, judged), wb.preset("default"))
        assert (len(found.relevant), len(found.judged)) == (1, 1)
        assert len(found.relevant) + len(found.judged) + len(found.others) == 4
        with pytest.raises(UsageError, match="does not ask"):
            distribution(Pool(corpus.engine, judged), same)
        one, two = corpus.evaluate(judged, same, "RR"), corpus.evaluate(judged, other, "RR")
        assert wins(one, two, "RR")["difference"].to_list() == [0.0]
    with pytest.raises(UsageError, match="no queries"):
        queries_only([" "])
