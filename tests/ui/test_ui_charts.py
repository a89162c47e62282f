"""Charts: pure, small, true to the records, and readable with any colour vision."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hits_for_tests import hit

from workbench import charts
from workbench.charts import palette
from workbench.charts.results import labels_of
from workbench.errors import PlanError
from workbench.plan.fusion import FusionPlan
from workbench.ranking.candidates import Candidates
from workbench.ranking.fuse import fuse
from workbench.records import Label, Step
from workbench.ui import panels


def points(figure: Any) -> int:
    return sum(len(t.x) for t in figure.data)


def test_a_histogram_counts_every_distance_once() -> None:
    """Counts add up to the number of distances; NaN is left out."""
    distances = np.array([0.1, 0.2, 0.2, 0.9, np.nan])
    made = charts.histogram(distances, "angular", bins=8)
    assert made.total == 4
    assert made.edges[0] == pytest.approx(0.1)
    assert made.edges[-1] == pytest.approx(0.9)


def test_what_a_threshold_keeps_is_counted_of_the_candidates_and_of_all() -> None:
    """Strictly below is kept. The depth bounds the candidates; the histogram is of every record, and the text says so."""
    made = charts.histogram(np.array([0.1, 0.2, 0.3, 0.4, np.nan]), "angular")
    assert [made.kept(t) for t in ("off", 0.0, 0.2, 0.201, 0.9)] == [4, 0, 1, 2, 4]
    said = panels.counted(made, 0.3, 2, 2)
    assert said == "Drops 0 of 2 candidates, 2 kept. Drawn are all 4 records, 2 of them below it."
    assert panels.counted(made, 0.3, 4, 2) == "Drops 2 of 4 candidates, 2 kept."
    assert panels.counted(made, "off", 2, 2) == "Drops 0 of 2 candidates, 2 kept."


@pytest.mark.parametrize("distances", [[], [0.3], [0.3, 0.3]])
def test_a_histogram_of_few_or_equal_distances_can_be_drawn(distances: list[float]) -> None:
    """Nothing to spread is no error."""
    made = charts.histogram(np.array(distances, np.float64), "l2sq")
    assert made.total == len(distances)
    assert len(charts.distance_figure(made, 0.5).data) == 1


def test_the_cut_is_drawn_where_the_threshold_is_and_bars_beyond_it_are_grey() -> None:
    """Strictly below is kept."""
    made = charts.histogram(np.linspace(0, 1, 101), "angular", bins=10)
    drawn = charts.distance_figure(made, 0.5)
    assert (drawn.layout.shapes[0].x0, drawn.layout.shapes[0].x1) == (0.5, 0.5)
    assert [c == palette.GREY for c in drawn.data[0].marker.color] == [False] * 5 + [True] * 5
    assert not charts.distance_figure(made, "off").layout.shapes


def test_an_unknown_metric_is_refused() -> None:
    """Bad input is one readable sentence."""
    with pytest.raises(PlanError, match="no metric called 'manhattan'"):
        charts.histogram(np.zeros(3), "manhattan")


def test_every_result_is_a_line_through_its_ranks() -> None:
    """A line goes through the ranks in the sources and ends at the rank in the result."""
    hits = [hit(rank=1, ranks={"keyword": 4, "vector": 1}), hit(rank=2, ranks={"vector": 2})]
    drawn = charts.rank_figure(hits, ("keyword", "vector"))
    assert [tuple(t.y) for t in drawn.data] == [(4, 1, 1), (None, 2, 2)]


def test_a_deep_rank_is_in_the_picture_below_the_others() -> None:
    """Ranks beyond the results keep their order, however deep."""
    hits = [hit(rank=1, ranks={"keyword": 400}), hit(rank=2, ranks={"keyword": 40})]
    drawn = charts.rank_figure(hits, ("keyword",))
    deep, less = (t.y[0] for t in drawn.data)
    assert 2 < less < deep <= drawn.layout.yaxis.range[0]
    assert [t.customdata[0][0] for t in drawn.data] == [400, 40]


def test_results_of_one_title_have_labels_of_their_own() -> None:
    """A title alone where it is one of a kind; else with the section; else with the place."""
    hits = [
        hit(rank=1, title="Guide", section="Install"), hit(rank=2, title="Guide", section="Use", start_line=9),
        hit(rank=3, title="Guide", section="Use", start_line=30, end_line=40), hit(rank=4, title="Other"),
    ]  # fmt: skip
    assert labels_of(hits) == ["Guide · Install", "Guide · 9-9", "Guide · 30-40", "Other"]
    drawn = charts.rank_figure(hits, ("keyword", "vector"))
    assert len({a.text for a in drawn.layout.annotations}) == 4
    assert len(set(charts.share_figure(hits, ("keyword",)).data[0].y)) == 4


def test_shares_are_the_contributions() -> None:
    """Each source's bars are what the records say it added."""
    drawn = charts.share_figure([hit()], ("keyword", "vector"))
    assert {t.name: tuple(t.x) for t in drawn.data} == {"keyword": (1 / 64,), "vector": (1 / 61,)}


def test_no_chart_has_more_than_its_points() -> None:
    """However many results there are, a page draws at most 200 points and never with WebGL."""
    hits = [hit(rank=n, ranks={"keyword": n, "vector": n}) for n in range(1, 1001)]
    drawn = [charts.rank_figure(hits, ("keyword", "vector")), charts.share_figure(hits, ("keyword", "vector"))]
    ids = [f"d{n:04}" for n in range(1000)]
    rankings = {"keyword": [(i, 1000.0 - n) for n, i in enumerate(ids)], "vector": [(ids[-1], 0.9)]}
    drawn.append(charts.score_figure(fuse(Candidates.from_rankings(rankings), FusionPlan()), "keyword", "vector"))
    assert all(points(d) <= charts.MOST_POINTS for d in drawn)
    assert all(t.type in ("bar", "scatter") for d in drawn for t in d.data)


def test_a_candidate_that_one_source_lacks_lies_on_its_border() -> None:
    """Not retrieved is left of, or below, every retrieved score."""
    found = fuse(
        Candidates.from_rankings({"keyword": [("a", 5.0), ("b", 4.0)], "vector": [("b", 0.8), ("c", 0.7)]}), FusionPlan()
    )  # fmt: skip
    drawn = charts.score_figure(found, "keyword", "vector")
    by_label = {t.name: t for t in drawn.data}
    assert by_label[Label.HYBRID].x == (4.0,)
    assert by_label[Label.EXACT].y[0] < 0.7
    assert by_label[Label.SEMANTIC].x[0] < 4.0


def test_the_funnel_shows_what_entered_and_left() -> None:
    """Bars are on a logarithmic axis, one more than the count so that nought can be drawn."""
    steps = (Step("match", "keyword", 1000, 40, "words"), Step("limit", "", 40, 10, "limit is 10"))
    drawn = charts.funnel_figure(steps)
    assert tuple(drawn.data[0].x) == (1001, 41)
    assert tuple(drawn.data[1].x) == (41, 11)
    assert tuple(drawn.data[1].text) == ("40", "10")


def test_timings_leave_the_total_out() -> None:
    """A total among its parts would be counted twice."""
    drawn = charts.timing_figure({"hybrid": {"vector_ms": 2.0, "total_ms": 5.0}})
    assert [t.name for t in drawn.data] == ["vector"]


def test_titles_from_documents_are_text_in_charts() -> None:
    """plotly reads a little HTML and TeX: both are taken out of their meaning."""
    drawn = charts.rank_figure([hit(title="<b>x</b> $y$ \u202e")], ("keyword", "vector"))
    assert drawn.layout.annotations[0].text == "&lt;b&gt;x&lt;/b&gt; &#36;y&#36;"


def simulated(colour: str, matrix: Any) -> Any:
    """A colour as somebody with a colour deficiency sees it (Viénot, Brettel and Mollon 1999), linear RGB."""
    srgb = np.frombuffer(bytes.fromhex(colour[1:]), np.uint8) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return np.clip(matrix @ linear, 0, 1)


PROTANOPIA = np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]])
DEUTERANOPIA = np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]])


@pytest.mark.parametrize("matrix", [np.eye(3), PROTANOPIA, DEUTERANOPIA], ids=["full", "protanopia", "deuteranopia"])
@pytest.mark.parametrize("colours", [palette.SOURCES, palette.LABELS], ids=["sources", "labels"])
def test_colours_differ_for_every_colour_vision(colours: Any, matrix: Any) -> None:
    """Any two colours of one picture stay apart under the two common deficiencies."""
    for one, other in combinations(colours.values(), 2):
        assert np.linalg.norm(simulated(one, matrix) - simulated(other, matrix)) > 0.2


def test_a_sources_colour_is_its_familys_or_a_shade_of_it() -> None:
    """The same name has the same colour in every process; an encoder's own differs from the family's."""
    assert palette.source_colour("vector") == palette.GREEN
    assert palette.source_colour("vector:other") != palette.GREEN
    assert palette.source_colour("vector@notes") == palette.source_colour("vector@notes")
    assert palette.source_colour("unknown") == palette.GREY


def test_contrast_is_that_of_the_guidelines() -> None:
    """Black on white is 21 to 1."""
    assert palette.contrast("#000000", "#FFFFFF") == pytest.approx(21.0)
