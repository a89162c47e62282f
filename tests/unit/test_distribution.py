"""Distributions of scores with the threshold that loses at most a share, and the queries on which two plans differ most."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from corpus_files import write_files

import workbench as wb
from workbench.charts import distribution_figure
from workbench.errors import UsageError
from workbench.evaluate.distribution import Distribution, distribution
from workbench.evaluate.evaluation import lists_of, queries_only, wins
from workbench.evaluate.pool import Pool
from workbench.judgments.qrels import Judgments, Topic


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


@pytest.mark.slow
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
