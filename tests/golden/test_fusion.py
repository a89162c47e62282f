"""Fusion by hand: tiny cases with the scores written as fractions."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest

from workbench.errors import PlanError, UsageError
from workbench.plan.fields import FusionPlan
from workbench.plan.plan import Plan
from workbench.ranking.candidates import Candidates, Column
from workbench.ranking.cutting import at_least, to_threshold
from workbench.ranking.fuse import Fused, fuse, passthrough
from workbench.records import Kind, Label

NAN = float("nan")


def column(source: str, rank: list[int], computed: list[float]) -> Column:
    ranks, scores = np.array(rank), np.array(computed)
    kind = Kind.SEMANTIC if source.startswith("vector") else Kind.LEXICAL
    return Column(source, kind, ranks, np.where(ranks > 0, scores, np.nan), scores, np.zeros(len(rank), bool))


def rows(ids: str, documents: str, columns: list[Column], whole: str = "") -> Candidates:
    names = tuple(documents)
    return Candidates(
        tuple(ids), names, names, np.arange(1, len(ids) + 1), np.array([i in whole for i in ids]), tuple(columns)
    )


def four() -> Candidates:
    """Keyword lists a 8, b 4, c 2 and could give d 1; vector lists b 0.9, d 0.5, a 0.1 and could give c -0.1."""
    keyword = column("keyword", [1, 2, 3, 0], [8.0, 4.0, 2.0, 1.0])
    return rows("abcd", "abcd", [keyword, column("vector", [3, 1, 0, 2], [0.1, 0.9, -0.1, 0.5])])


def check(fused: Fused, expected: Mapping[str, F]) -> None:
    assert list(fused.chunk_ids) == list(expected)
    assert fused.scores.tolist() == pytest.approx([float(score) for score in expected.values()], abs=1e-15)


BOTH = {"keyword": "tmm", "vector": "tmm"}
CASES = {
    "rrf counts ranks from 1": (
        FusionPlan(),
        {"b": F(1, 62) + F(1, 61), "a": F(1, 61) + F(1, 63), "d": F(1, 62), "c": F(1, 63)},
    ),
    "rrf with k, ranks from 0 and weights": (
        FusionPlan(k=1.0, rank_base=0, weights={"keyword": 2.0, "vector": 0.5}),
        {"a": F(2, 1) + F(1, 6), "b": F(2, 2) + F(1, 2), "c": F(2, 3), "d": F(1, 4)},
    ),
    "weighted, minmax, computed missing scores may be below 0": (
        FusionPlan("weighted", weights={"keyword": 0.5}),
        {"b": F(7, 6), "a": F(1, 2), "d": F(5, 12), "c": F(-1, 4)},
    ),
    "weighted, minmax, missing is 0: a tie goes to the item that more sources retrieved": (
        FusionPlan("weighted", weights={"keyword": 0.5}, missing="zero"),
        {"b": F(7, 6), "a": F(1, 2), "d": F(1, 2), "c": F(0)},
    ),
    "weighted, raw scores, missing is the list's lowest": (
        FusionPlan("weighted", normalise={"keyword": "none", "vector": "none"}, missing="floor"),
        {"a": F(81, 10), "b": F(49, 10), "d": F(25, 10), "c": F(21, 10)},
    ),
    "convex over tmm, alpha is the vector's": (
        FusionPlan("convex", alpha=0.8, normalise=BOTH),
        {"b": F(9, 10), "a": F(63, 95), "d": F(499, 760), "c": F(163, 380)},
    ),
    "convex, a weight is a factor of its source's share: 0.8 of the vector's, twice 0.2 of keyword's": (
        FusionPlan("convex", alpha=0.8, normalise=BOTH, weights={"keyword": 2.0}),
        {"b": F(9, 10) + F(1, 10), "a": F(63, 95) + F(1, 5), "d": F(499, 760) + F(1, 40), "c": F(163, 380) + F(1, 20)},
    ),
    "max: equal scores and coverage go by row": (FusionPlan("max"), {"a": F(1), "b": F(1), "d": F(1, 2), "c": F(0)}),
    "combmnz multiplies by the number of sources": (
        FusionPlan("combmnz", missing="zero"),
        {"b": F(8, 3), "a": F(2), "d": F(1, 2), "c": F(0)},
    ),
    "combmnz does not count a source of weight 0": (
        FusionPlan("combmnz", missing="zero", weights={"keyword": 0.0}),
        {"b": F(1), "d": F(1, 2), "a": F(0), "c": F(0)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_scores_and_order_are_the_ones_worked_out_by_hand(name):
    plan, expected = CASES[name]
    check(fuse(four(), plan), expected)


def test_plain_rankings_fuse_by_the_default_plan():
    fused = fuse({"keyword": [("x", 3.0), ("y", 2.0)], "vector": [("y", 0.5), ("z", 0.4)]})
    check(fused, {"y": F(1, 62) + F(1, 61), "x": F(1, 61), "z": F(1, 62)})
    assert fused.labels == (Label.HYBRID, Label.EXACT, Label.SEMANTIC)
    assert fused.coverage.tolist() == [2, 1, 1]


def test_max_takes_one_contribution_of_those_that_gave_a_score():
    candidates = rows("a", "a", [column("vector", [1], [0.5]), column("keyword", [1], [3.0])])
    fused = fuse(candidates, FusionPlan("max"))
    assert {s: v.tolist() for s, v in fused.contributions.items()} == {"keyword": [1.0], "vector": [0.0]}
    keyword, vector = column("keyword", [1, 2], [3.0, 1.0]), column("vector", [1, 0], [0.5, NAN])
    plan = FusionPlan("max", missing="zero", normalise={"keyword": "zscore"})
    check(fuse(rows("ab", "ab", [keyword, vector]), plan), {"a": F(1), "b": F(-1)})


def test_ranks_and_scores_of_documents_are_those_of_the_collapsed_list():
    candidates = rows("12345", "aaabc", [column("keyword", [1, 2, 4, 3, 5], [5.0, 4.0, 2.0, 3.0, 1.0])])
    renumbered = fuse(candidates, FusionPlan(unit="document"))
    assert renumbered.document_ids == ("a", "b", "c")
    assert renumbered.scores.tolist() == [1 / 61, 1 / 62, 1 / 63]
    assert fuse(candidates, FusionPlan(unit="document", renumber=False)).scores.tolist() == [1 / 61, 1 / 63, 1 / 65]
    candidates = rows("12345", "aabcc", [column("keyword", [1, 2, 3, 4, 5], [5.0, 4.0, 3.0, 2.0, 1.0])])
    collapsed = fuse(candidates, FusionPlan("weighted", unit="document"))
    assert collapsed.scores.tolist() == pytest.approx([1, float(F(1, 3)), 0])
    raw = fuse(candidates, FusionPlan("weighted", unit="document", renumber=False))
    assert raw.scores.tolist() == pytest.approx([1, float(F(1, 2)), float(F(1, 4))])
    keyword = column("keyword", [0, 1, 2, 0], [0.0, 6.0, 3.0, 0.0])
    vector = column("vector", [1, 0, 0, 0], [0.6, 0.2, 0.4, 0.45])
    candidates = to_threshold(rows("1234", "abbb", [keyword, vector]), "vector", 0.75, "cosine")
    assert candidates.column("vector").cut.tolist() == [False, True, False, False]
    plan = FusionPlan("weighted", unit="document", normalise={"vector": "none"}, weights={"keyword": 0.0})
    fused = fuse(candidates, plan)
    assert dict(zip(fused.document_ids, fused.contributions["vector"].tolist(), strict=True)) == {"a": 0.6, "b": 0.4}
    assert fused.chunk_ids == ("1", "2")


def test_the_row_shown_is_the_record_that_added_most():
    """Document a: row 1 is keyword's second, with weight 10, and row 2 is vector's first: row 1 is shown."""
    keyword, vector = column("keyword", [2, 0, 1], [3.0, 0.0, 4.0]), column("vector", [0, 1, 0], [0.0, 0.5, 0.1])
    candidates = rows("123", "aab", [keyword, vector])
    heavy = fuse(candidates, FusionPlan(unit="document", weights={"keyword": 10.0}))
    assert heavy.chunk_ids[heavy.document_ids.index("a")] == "1"
    even = fuse(candidates, FusionPlan(unit="document"))
    assert even.chunk_ids[even.document_ids.index("a")] == "2"
    candidates = rows("123", "aab", [column("keyword", [3, 2, 1], [0.0, 1.0, 5.0])])
    fused = fuse(candidates, FusionPlan("weighted", unit="document", normalise={"keyword": "zscore"}))
    assert fused.chunk_ids == ("3", "2")
    assert fused.scores.tolist() == [1.0, -1.0]
    candidates = rows("123", "aaa", [column("vector", [1, 3, 2], [0.9, 0.2, 0.5])], whole="1")
    assert fuse(candidates, FusionPlan(unit="document", prefer="chunk")).chunk_ids == ("3",)
    assert fuse(candidates, FusionPlan(unit="document", prefer="best")).chunk_ids == ("1",)


@pytest.mark.parametrize("missing", ["computed", "zero", "floor"])
def test_a_cut_candidate_gets_nothing_from_that_source_whatever_missing_says(missing):
    cut = to_threshold(
        four(), "vector", 0.5, "cosine"
    )  # d at distance 0.5 and a beyond are cut: strictly below is kept
    fused = fuse(cut, FusionPlan("weighted", normalise={"vector": "none"}, missing=missing))
    assert dict(zip(fused.chunk_ids, fused.contributions["vector"].tolist(), strict=True)) == {"a": 0, "b": 0.9, "c": 0}
    assert dict(zip(fused.chunk_ids, fused.labels, strict=True))["a"] is Label.EXACT
    assert "d" not in fused.chunk_ids, "no source retrieved it any more"


@pytest.mark.parametrize("missing", ["computed", "zero", "floor"])
def test_what_a_bm25_threshold_cuts_adds_nothing_and_the_list_that_is_left_decides(missing):
    """Keyword 6, 4, 2 and a computed 1, cut below 3: minmax is over 6 and 4. Vector 1, 1/2, 0 stays as it is."""
    keyword = column("keyword", [1, 2, 3, 0], [6.0, 4.0, 2.0, 1.0])
    vector = column("vector", [0, 3, 1, 2], [NAN, 0.0, 1.0, 0.5])
    cut = to_threshold(rows("abcd", "abcd", [keyword, vector]), "keyword", 3.0, "cosine")
    fused = fuse(cut, FusionPlan("convex", alpha=0.75, missing=missing))
    check(fused, {"c": F(3, 4), "d": F(3, 8), "a": F(1, 4), "b": F(0)})
    assert fused.contributions["keyword"].tolist() == pytest.approx([0, 0, 0.25, 0])
    assert [at_least(fused.scores, t) for t in (0.76, 0.75, 0.375, 0.26, 0.25, 0.0)] == [0, 1, 2, 2, 3, 4]


def test_grep_and_another_encoder_are_voices_of_their_own_under_convex():
    grep = column("grep", [2, 0, 1, 0], [1.5, NAN, 2.5, NAN])
    plan = FusionPlan("convex", alpha=0.8, normalise={**BOTH, "grep": "tmm"})
    fused = fuse(replace(four(), columns=(*four().columns, grep)), plan)
    check(fused, {"b": F(9, 10), "a": F(63, 95) + F(3, 25), "d": F(499, 760), "c": F(163, 380) + F(1, 5)})
    nothing = fuse(replace(four(), columns=(*four().columns, column("grep", [0] * 4, [NAN] * 4))), plan)
    assert nothing.scores.tolist() == fuse(four(), plan).scores.tolist()
    other = replace(four().columns[1], source="vector:static")
    plan = FusionPlan("convex", alpha=0.8, normalise=BOTH)
    fused = fuse(replace(four(), columns=(*four().columns, other)), plan)
    assert fused.contributions["vector"].tolist() == fused.contributions["vector:static"].tolist()
    alone = fuse(replace(four(), columns=four().columns[:1]), plan)
    assert alone.chunk_ids == ("a", "b", "c")
    assert alone.scores.tolist() == pytest.approx([0.2, 0.1, 0.05])
    grep = column("grep", [1, 0], [1.5, NAN])
    fused = fuse(rows("ab", "ab", [grep, column("keyword", [1, 2], [2.0, 1.0])]), FusionPlan("weighted"))
    assert fused.contributions["grep"].tolist() == [1.0, 0.0]
    assert np.isnan(fused.normalised["grep"][1])


def test_passthrough_is_the_sources_own_list_and_nothing_an_empty_one():
    fused = passthrough(four(), "vector")
    assert fused.chunk_ids == ("b", "d", "a")
    assert fused.scores.tolist() == [0.9, 0.5, 0.1]
    assert fused.labels == (Label.SEMANTIC,) * 3
    with pytest.raises(UsageError, match=r"no source 'grep'.*keyword, vector"):
        passthrough(four(), "grep")
    for candidates in (fuse({}), fuse({"keyword": [], "vector": []}, FusionPlan("weighted", unit="document"))):
        assert (len(candidates), candidates.chunk_ids, candidates.labels) == (0, (), ())
    fused = fuse(four(), FusionPlan("weighted", weights={"vector": 0.0}))
    assert [str(v) for v in fused.contributions["vector"].tolist()] == ["0.0"] * 4


@pytest.mark.parametrize(
    ("rankings", "plan", "message"),
    [
        ({"bm25": [("a", 1.0)]}, FusionPlan("convex"), r"convex cannot tell on which side bm25 is.*Name sources"),
        ({"keyword": []}, FusionPlan("borda"), "fusion.method is 'borda'. It must be rrf"),
        ({"keyword": []}, FusionPlan(k=0.0), "fusion.k is 0.0. It must be a number from 1"),
        ({"keyword": []}, Plan.of("default"), r"takes a FusionPlan, not Plan\. Pass .* plan\.fusion"),
        ({"keyword": []}, "default", r"takes a FusionPlan, not str\. Pass .* plan\.fusion"),
        ({"keyword": []}, FusionPlan(weights={"keyword": -1.0}), "fusion.weights.keyword is -1.0"),
        ({"bm25": []}, FusionPlan(normalise={"bm25": "softmax"}), "fusion.normalise.bm25 is 'softmax'"),
    ],
)
def test_a_plan_that_cannot_be_fused_is_refused_with_the_remedy(rankings, plan, message):
    with pytest.raises(PlanError, match=message):
        fuse(rankings, plan)


def test_rankings_that_cannot_be_fused_are_refused_with_the_remedy():
    with pytest.raises(UsageError, match=r"keyword ranks 'a' twice. Give each id once"):
        fuse({"keyword": [("a", 2.0), ("a", 1.0)]})
    with pytest.raises(UsageError, match="without a finite score"):
        fuse({"keyword": [("a", NAN)]})
