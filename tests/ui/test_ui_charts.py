"""Charts: pure, small, true to the records, and readable with any colour vision."""

import math
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from hits_for_tests import hit

from workbench import charts
from workbench.charts import layout, search
from workbench.charts.layout import BLUE, GREY, ORANGE
from workbench.errors import PlanError
from workbench.evaluate.statistics import paired_difference
from workbench.plan.fields import FusionPlan
from workbench.ranking.candidates import Candidates, Column
from workbench.ranking.fuse import Fused, fuse
from workbench.records import Kind, Step

RANKINGS = {
    "keyword": [("a", 9.0), ("b", 6.0), ("c", 3.0), ("d", 1.0)],
    "vector": [("c", 0.9), ("a", 0.7), ("e", 0.5), ("b", 0.1)],
}
MINMAX = {"keyword": "minmax", "vector": "minmax"}


def fused(**changes: Any) -> Fused:
    return fuse(Candidates.from_rankings(RANKINGS), FusionPlan(**changes))


def shown(made: Fused, most: int = 10) -> tuple[charts.Candidate, ...]:
    return charts.places(made, np.arange(len(made)), most)


def markers(figure: Any) -> list[tuple[Any, Any, Any, str]]:
    """x, y, customdata and symbol of every point."""
    return [
        point
        for t in figure.data
        if t.mode == "markers"
        for point in zip(t.x, t.y, t.customdata, t.marker.symbol, strict=True)
    ]


@pytest.mark.parametrize("distances", [[], [0.3], [0.3, 0.3], [0.1, 0.2, 0.2, 0.9, math.nan]])
def test_a_histogram_counts_every_distance_once(distances: list[float]) -> None:
    made = charts.histogram(np.array(distances, np.float64), "angular", bins=8)
    known = [d for d in distances if not math.isnan(d)]
    assert made.total == len(known)
    assert [made.kept(t) for t in ("off", 0.2, 0.201)] == [
        len(known),
        *(sum(d < t for d in known) for t in (0.2, 0.201)),
    ]
    assert len(charts.distance_figure(made, 0.5).data) == 1
    with pytest.raises(PlanError, match="no metric called 'manhattan'"):
        charts.histogram(np.zeros(3), "manhattan")


def test_the_cut_is_drawn_where_the_threshold_is_and_bars_beyond_it_are_grey() -> None:
    made = charts.histogram(np.linspace(0, 1, 101), "angular", bins=10)
    drawn = charts.distance_figure(made, 0.5)
    assert (drawn.layout.shapes[0].x0, drawn.layout.shapes[0].x1) == (0.5, 0.5)
    assert [c == GREY for c in drawn.data[0].marker.color] == [False] * 5 + [True] * 5
    assert not charts.distance_figure(made, "off").layout.shapes


def test_ranks_are_joined_by_lines_that_say_their_direction_by_colour_and_dash() -> None:
    figure = charts.bump_figure(shown(fused()), ("keyword", "vector"))
    lines = {t.name: t for t in figure.data if t.mode == "lines"}
    assert lines["goes up"].line.color == BLUE
    assert (lines["goes down"].line.color, lines["goes down"].line.dash) == (ORANGE, "dash")
    assert lines["was absent"].line.dash == "dot"
    # c goes from 3 to 1 between keyword and vector
    ups = list(zip(lines["goes up"].y[::3], lines["goes up"].y[1::3], strict=True))
    assert (3, 1) in ups
    assert all(after < before for before, after in ups)
    floor = figure.layout.yaxis.tickvals[-1]
    assert figure.layout.yaxis.ticktext[-1] == search.ABSENT
    crosses = [(x, y, said[1]) for x, y, said, symbol in markers(figure) if symbol == "x-thin-open"]
    assert sorted(crosses) == [("keyword", floor, "e:1"), ("vector", floor, "d:1")]
    hits = [
        hit(rank=1, title="Guide", section="Install"),
        hit(rank=2, title="Guide", section="Use", start_line=9),
        hit(rank=3, title="Guide", section="Use", start_line=30, end_line=40),
        hit(rank=4, title="Other"),
    ]
    assert search.labels_of(hits) == ["Guide · Install", "Guide · 9-9", "Guide · 30-40", "Other"]
    assert len(set(charts.share_figure(hits, ("keyword",)).data[0].y)) == 4


def test_stacks_are_the_contributions_and_candidates_stand_at_their_scores() -> None:
    made = fused(method="weighted", normalise={"keyword": "zscore", "vector": "zscore"})
    places = shown(made)
    assert [p.score for p in places] == made.scores.tolist()
    figure = charts.contribution_figure(places, ("keyword", "vector"))
    bars, diamond = [t for t in figure.data if t.type == "bar"], figure.data[-1]
    for at, place in enumerate(places):
        assert math.fsum(bar.x[at] for bar in bars) == diamond.x[at] == place.score
        assert [bar.customdata[at] for bar in bars] == [repr(place.contributions[b.name]) for b in bars]
    drawn = charts.share_figure([hit()], ("keyword", "vector"))
    assert {t.name: tuple(t.x) for t in drawn.data} == {"keyword": (1 / 64,), "vector": (1 / 61,)}
    figure = plane(fused(), grades={"c": 3, "d": 0})
    points = markers(figure)
    assert {(x, y) for x, y, *_ in points} == {(9.0, 0.7), (6.0, 0.1), (3.0, 0.9), (1.0, 0.25), (0.25, 0.5)}
    assert {said[1]: symbol for _, _, said, symbol in points} == {
        "a": "circle", "c": "star", "b": "circle-open", "e": "circle-open", "d": "x-open",
    }  # fmt: skip
    assert any(t.mode == "lines" for t in figure.data)
    assert not any(t.mode == "lines" for t in plane(fused(method="max"), additive=False).data)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.8])
def test_the_line_of_equal_score_has_that_score_everywhere(alpha: float) -> None:
    """For min-max the fused score of any point of it, worked out by hand, is the score asked for."""
    made = fused(method="convex", alpha=alpha, normalise=MINMAX)
    x, y = (np.array(v) for v in search.iso_line(made, made.candidates.columns[:2], 0.5, (1.0, 9.0)))
    assert len(x) > 5
    np.testing.assert_allclose(alpha * (y - 0.1) / 0.8 + (1 - alpha) * (x - 1) / 8, 0.5, atol=1e-12)


def plane(made: Fused, **changes: Any) -> Any:
    columns = []
    for column in made.candidates.columns:
        computed = np.where(np.isnan(column.score), 0.25, column.score)
        columns.append(Column(column.source, column.kind, column.rank, column.score, computed, column.cut))
    return charts.plane_figure(made, (columns[0], columns[1]), last=2, **changes)


def test_the_funnel_and_the_timings_and_an_empty_list() -> None:
    steps = (Step("match", "keyword", 1000, 40, "words"), Step("limit", "", 40, 10, "limit is 10"))
    drawn = charts.funnel_figure(steps)
    assert (tuple(drawn.data[0].x), tuple(drawn.data[1].x), tuple(drawn.data[1].text)) == (
        (1001, 41),
        (41, 11),
        ("40", "10"),
    )
    columns = {
        "vector": {"embed_ms": 9.0, "vector_ms": 2.0, "total_ms": 11.0},
        "hybrid": {"vector_ms": 2.0, "total_ms": 5.0},
    }
    timings = {t.name: dict(zip(t.y, t.x, strict=True)) for t in charts.timing_figure(columns).data}
    once = "embedding, once for all"
    assert timings == {
        "vector": {"vector": 2.0, "hybrid": 2.0, once: 0.0}, "embed": {"vector": 0.0, "hybrid": 0.0, once: 9.0},
    }  # fmt: skip
    shared = charts.upset_figure({"Grep": ["a", "b"], "Vector": ["b", "c"], "Hybrid": ["b", "c", "d"]})
    assert dict(zip(shared.data[0].customdata, shared.data[0].y, strict=True)) == {
        "1 in Grep alone": 1, "1 in Grep and Vector and Hybrid": 1, "1 in Vector and Hybrid": 1, "1 in Hybrid alone": 1,
    }  # fmt: skip
    none = np.zeros(0)
    column, other = (
        Column(name, kind, none.astype(int), none, none, none.astype(bool))
        for name, kind in (("keyword", Kind.LEXICAL), ("vector", Kind.SEMANTIC))
    )
    made = fuse(Candidates((), (), (), none.astype(int), none.astype(bool), (column, other)))
    assert not shown(made)
    assert not charts.bump_figure((), ("keyword", "vector")).layout.annotations
    assert not charts.plane_figure(made, (column, other), last=1).data


def test_the_curve_has_its_band_and_marks() -> None:
    frame = pl.DataFrame(
        {
            "value": ["1", "10", "60"],
            "number": [1.0, 10.0, 60.0],
            "mean": [0.5, 0.6, 0.4],
            "low": [0.4, 0.5, 0.3],
            "high": [0.6, 0.7, 0.5],
            "marks": ["", "best", "current,default"],
        }
    )
    drawn = charts.sensitivity_figure(frame, "fusion.k", "nDCG@10")
    assert list(drawn.data[0].y) == [0.6, 0.7, 0.5, 0.3, 0.5, 0.4]
    assert drawn.layout.xaxis.type == "log"
    assert {t.name: list(t.x) for t in drawn.data[2:]} == {"current": [60.0], "best": [10.0], "default": [60.0]}
    beside = pl.DataFrame({"mark": ["current"], "value": ["20"], "number": [20.0], "mean": [0.7]})
    current = charts.sensitivity_figure(frame, "fusion.k", "nDCG@10", beside).data[2]
    assert (current.name, list(current.x), list(current.y)) == ("current", [20.0], [0.7])
    words = frame.with_columns(number=pl.lit(None, pl.Float64))
    assert charts.sensitivity_figure(words, "fusion.method", "RR").layout.xaxis.type == "category"


def test_differences_stand_beside_the_line_of_none_and_generations_are_marked() -> None:
    values = np.arange(20) / 20
    better, none = (paired_difference("RR", ("a", "b"), values, values + d) for d in (0.1, 0.0))
    drawn = charts.forest_figure([("b", better), ("c", none)], "RR", "a")
    assert [t.name for t in drawn.data] == ["better", "no difference shown"]
    assert drawn.data[0].x[0] == pytest.approx(0.1)
    assert drawn.layout.shapes[0].x0 == 0
    alike = charts.forest_figure([("b" * n + " the same end" * 9, none) for n in (1, 2)], "RR", "a")
    assert list(alike.data[0].y) == ["0", "1"]
    at = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    rows = {"at": at, "generation": ["1", "1", "2"], "plan": ["rrf"] * 3, "filters": [""] * 3, "kind": ["check"] * 3}
    numbers = {name: [0.1, 0.2, 0.3] for name in ("mean", "low", "high")} | {"queries": [9] * 3}
    over = charts.history_figure(pl.DataFrame({**rows, **numbers}), "RR")
    assert list(over.data[0].y) == [0.1, 0.2, 0.3]
    assert [shape.x0 for shape in over.layout.shapes] == [at[2].isoformat()]


@pytest.mark.parametrize(("sources", "reranked"), [(2, False), (3, True), (4, False)])
def test_no_picture_draws_more_than_its_points(sources: int, reranked: bool) -> None:
    """At most 200 points however many candidates and sources there are, never with WebGL; None between lines is no point."""
    names = ["grep", "keyword", "vector", "vector:other"][-sources:]
    made = fuse(
        Candidates.from_rankings({n: [(f"d{i:03}", 1000.0 - i) for i in range(400)] for n in names}), FusionPlan()
    )
    places = charts.places(made, np.arange(len(made)), 400, dict.fromkeys(range(400), 0.5) if reranked else None)
    hits = [hit(rank=n, ranks=dict.fromkeys(names, n)) for n in range(1, 500)]
    figures = [
        charts.bump_figure(places, names, reranked=reranked),
        charts.contribution_figure(places, names),
        charts.plane_figure(made, (made.candidates.columns[0], made.candidates.columns[1]), last=10),
        charts.rank_figure(hits, names),
        charts.share_figure(hits, names),
        charts.score_figure(made, *names[:2]),
    ]
    for figure in figures:
        assert sum(x is not None for t in figure.data for x in t.x) <= charts.MOST_POINTS
        assert all(t.type in ("bar", "scatter") for t in figure.data)


PROTANOPIA = np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]])
DEUTERANOPIA = np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]])


def seen(colour: str, matrix: Any) -> Any:
    """A colour as somebody with a colour deficiency sees it (Viénot, Brettel and Mollon 1999), linear RGB."""
    srgb = np.frombuffer(bytes.fromhex(colour[1:]), np.uint8) / 255
    return np.clip(matrix @ np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4), 0, 1)


def test_colours_differ_for_every_colour_vision() -> None:
    for matrix in (np.eye(3), PROTANOPIA, DEUTERANOPIA):
        for colours in (layout.SOURCES, layout.LABELS):
            for one, other in combinations(colours.values(), 2):
                assert np.linalg.norm(seen(one, matrix) - seen(other, matrix)) > 0.2
    assert layout.source_colour("vector") == layout.GREEN != layout.source_colour("vector:other")
    assert layout.source_colour("unknown") == GREY
