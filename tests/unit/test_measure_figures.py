"""Pictures of means and of differences, shared by the Tune page, the notebooks and the snapshots."""

from __future__ import annotations

import polars as pl

import workbench as wb


def test_measures_have_the_axis_from_0_to_1_and_differences_the_one_they_need() -> None:
    """Measures of several pictures compare by eye; an end of an interval below zero is not cut off."""
    measures = wb.charts.means_figure([("keyword", 0.5, 0.4, 0.6), ("no interval", 0.0, None, None)])
    differences = wb.charts.means_figure([("first", 0.03, -0.02, 0.08), ("second", 0.1, 0.05, 0.15)])
    assert measures.layout.xaxis.range == (0, 1.02)
    assert differences.layout.xaxis.range is None


def test_what_a_bar_of_wins_says_is_not_cut_off() -> None:
    """The upright title names both plans, on two lines: as one it is longer than the picture is high."""
    frame = pl.DataFrame({"query_id": ["a"], "query": ["q"], "first": [0.25], "second": [0.5], "difference": [0.25]})
    figure = wb.charts.wins_figure(frame, "nDCG@10", ("vector, 200 tokens", "vector, 60 tokens"))
    lines = figure.layout.yaxis.title.text.split("<br>")
    assert lines == ["nDCG@10: vector, 60 tokens", "minus vector, 200 tokens"]
    assert max(map(len, lines)) * 7 < figure.layout.height
