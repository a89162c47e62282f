"""The pictures that explain: absent is drawn as absent, stacks add up, the line of equal score turns with the weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from workbench import charts
from workbench.charts import explain as drawn
from workbench.charts.palette import BLUE, ORANGE
from workbench.plan.fusion import FusionPlan
from workbench.ranking.candidates import Candidates, Column
from workbench.ranking.fuse import Fused, fuse
from workbench.records import Kind

RANKINGS = {
    "keyword": [("a", 9.0), ("b", 6.0), ("c", 3.0), ("d", 1.0)],
    "vector": [("c", 0.9), ("a", 0.7), ("e", 0.5), ("b", 0.1)],
}


def fused(**changes: Any) -> Fused:
    return fuse(Candidates.from_rankings(RANKINGS), FusionPlan(**changes))


def shown(made: Fused, most: int = 10, rerank: dict[int, float] | None = None) -> tuple[charts.Place, ...]:
    return charts.places(made, np.arange(len(made)), most, rerank)


def test_places_carry_the_fused_numbers_and_add_up() -> None:
    """Each place's score is the exact sum of its contributions, which are those of the fused list."""
    made = fused(method="weighted", weights={"keyword": 0.3, "vector": 0.7})
    places = shown(made)
    assert [p.score for p in places] == made.scores.tolist()
    assert all(math.fsum(p.contributions.values()) == p.score for p in places)
    assert [p.contributions["vector"] for p in places] == made.contributions["vector"].tolist()


def test_a_place_that_a_source_lacks_is_a_cross_in_the_row_absent() -> None:
    """It has no rank there, and says so when pointed at."""
    places = shown(fused())
    figure = charts.bump_figure(places, ("keyword", "vector"))
    floor = figure.layout.yaxis.tickvals[-1]
    assert figure.layout.yaxis.ticktext[-1] == drawn.ABSENT
    crosses = [
        (x, y, said[1])
        for t in figure.data
        if t.mode == "markers"
        for x, y, said, symbol in zip(t.x, t.y, t.customdata, t.marker.symbol, strict=True)
        if symbol == "x-thin-open"
    ]
    assert sorted(crosses) == [("keyword", floor, "e:1"), ("vector", floor, "d:1")]


def test_lines_are_coloured_by_their_direction_and_dashed_too() -> None:
    """Up, down and level are told apart by colour and by dash; what was absent is a thin dotted line."""
    figure = charts.bump_figure(shown(fused()), ("keyword", "vector"))
    lines = {t.name: t for t in figure.data if t.mode == "lines"}
    assert lines["goes up"].line.color == BLUE
    assert (lines["goes down"].line.color, lines["goes down"].line.dash) == (ORANGE, "dash")
    # c goes from 3 to 1 between keyword and vector; d is absent in vector.
    ups = list(zip(lines["goes up"].y[::3], lines["goes up"].y[1::3], strict=True))
    assert (3, 1) in ups
    assert all(after < before for before, after in ups)
    assert lines["was absent"].line.dash == "dot"


def test_the_order_after_reranking_is_a_column_of_its_own() -> None:
    """Only where a model ran."""
    made = fused()
    order = np.array([2, 0, 1])
    places = charts.places(made, order, 3, {0: 0.1, 1: 0.0, 2: 0.9})
    figure = charts.bump_figure(places, ("keyword", "vector"), reranked=True)
    assert figure.layout.xaxis.categoryarray == ("keyword", "vector", "fused", "reranked")
    assert [(p.rank, p.fused_rank, p.rerank) for p in places] == [(1, 3, 0.9), (2, 1, 0.1), (3, 2, 0.0)]
    plain = charts.bump_figure(places, ("keyword", "vector"))
    assert "reranked" not in plain.layout.xaxis.categoryarray


def test_the_stack_ends_at_the_score() -> None:
    """The diamond stands at the exact sum of the bars, and every number is written out on hover."""
    places = shown(fused(method="weighted", normalise={"keyword": "zscore", "vector": "zscore"}))
    figure = charts.contribution_figure(places, ("keyword", "vector"))
    bars, diamond = [t for t in figure.data if t.type == "bar"], figure.data[-1]
    for at, place in enumerate(places):
        assert math.fsum(bar.x[at] for bar in bars) == diamond.x[at] == place.score
        assert [bar.customdata[at] for bar in bars] == [repr(place.contributions[b.name]) for b in bars]


def line(made: Fused, score: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    columns = made.candidates.columns
    xs, ys = drawn.iso_line(made, (columns[0], columns[1]), score, (1.0, 9.0))
    return np.array([xs, ys])


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.8])
def test_the_line_of_equal_score_has_that_score_everywhere(alpha: float) -> None:
    """For min-max the fused score of any point of it, worked out by hand, is the score asked for."""
    made = fused(method="convex", alpha=alpha, normalise={"keyword": "minmax", "vector": "minmax"})
    x, y = line(made, 0.5)
    assert len(x) > 5
    np.testing.assert_allclose(alpha * (y - 0.1) / 0.8 + (1 - alpha) * (x - 1) / 8, 0.5, atol=1e-12)


def test_the_line_turns_with_alpha() -> None:
    """The more the vector side counts, the flatter it lies: similarity alone then decides."""
    slopes = []
    for alpha in (0.3, 0.5, 0.7, 0.9):
        x, y = line(fused(method="convex", alpha=alpha, normalise={"keyword": "minmax", "vector": "minmax"}), 0.5)
        slopes.append((y[-1] - y[0]) / (x[-1] - x[0]))
    assert all(s < 0 for s in slopes)
    assert slopes == sorted(slopes)


def test_a_weight_of_nothing_makes_the_line_upright() -> None:
    """Where the vector side adds nothing, the keyword score alone decides."""
    made = fused(method="weighted", weights={"vector": 0.0}, normalise={"keyword": "minmax", "vector": "minmax"})
    x, y = line(made, 0.5)
    assert x.tolist() == [5.0, 5.0]
    assert y.tolist() == [0.1, 0.9]


def plane(made: Fused, **changes: Any) -> Any:
    columns = []
    for column in made.candidates.columns:
        computed = np.where(np.isnan(column.score), 0.25, column.score)
        columns.append(Column(column.source, column.kind, column.rank, column.score, computed, column.cut))
    return charts.plane_figure(made, (columns[0], columns[1]), last=2, **changes)


def test_every_candidate_stands_at_its_own_two_scores() -> None:
    """A score that a source did not give is worked out, so nothing is left on a border."""
    figure = plane(fused())
    points = {(x, y) for t in figure.data if t.mode == "markers" for x, y in zip(t.x, t.y, strict=True)}
    assert points == {(9.0, 0.7), (6.0, 0.1), (3.0, 0.9), (1.0, 0.25), (0.25, 0.5)}


def test_results_are_filled_and_judged_points_have_their_grades_shape() -> None:
    """A colour never says it alone."""
    figure = plane(fused(), grades={"c": 3, "d": 0})
    symbols = {
        said[1]: symbol
        for t in figure.data
        if t.mode == "markers"
        for said, symbol in zip(t.customdata, t.marker.symbol, strict=True)
    }
    assert symbols == {"a": "circle", "c": "star", "b": "circle-open", "e": "circle-open", "d": "x-open"}


def test_a_method_without_a_line_draws_none() -> None:
    """CombMAX is no sum."""
    assert any(t.mode == "lines" for t in plane(fused()).data)
    assert not any(t.mode == "lines" for t in plane(fused(method="max"), additive=False).data)


@pytest.mark.parametrize("sources", [2, 3, 4])
@pytest.mark.parametrize("reranked", [False, True])
def test_no_picture_draws_more_than_its_points(sources: int, reranked: bool) -> None:
    """At most 200 points however many candidates and sources there are; None between lines is no point."""
    names = ["grep", "keyword", "vector", "vector:other"][-sources:]
    rankings = {n: [(f"d{i:03}", 1000.0 - i) for i in range(400)] for n in names}
    made = fuse(Candidates.from_rankings(rankings), FusionPlan())
    places = charts.places(made, np.arange(len(made)), 400, dict.fromkeys(range(400), 0.5) if reranked else None)
    figures = [
        charts.bump_figure(places, names, reranked=reranked),
        charts.contribution_figure(places, names),
        charts.plane_figure(made, (made.candidates.columns[0], made.candidates.columns[1]), last=10),
    ]
    for figure in figures:
        assert sum(x is not None for t in figure.data for x in t.x) <= charts.MOST_POINTS
        assert all(t.type in ("bar", "scatter") for t in figure.data)


def test_an_empty_list_can_be_drawn() -> None:
    """Nothing found is no error."""
    empty = np.zeros(0)
    column = Column("keyword", Kind.LEXICAL, empty.astype(int), empty, empty, empty.astype(bool))
    other = Column("vector", Kind.SEMANTIC, empty.astype(int), empty, empty, empty.astype(bool))
    made = fuse(Candidates((), (), (), empty.astype(int), empty.astype(bool), (column, other)))
    assert not shown(made)
    assert not charts.bump_figure((), ("keyword", "vector")).layout.annotations
    assert not charts.plane_figure(made, (column, other), last=1).data
