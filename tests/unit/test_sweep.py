"""The sweep: what it tries, how it chooses and reports, and that a stopped one goes on."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from corpus_files import write_files

import workbench as wb
from workbench.errors import PlanError, UsageError
from workbench.evaluate.grid import Range, Space, read_space
from workbench.evaluate.statistics import best_of, nested
from workbench.evaluate.sweep import Sweep
from workbench.judgments.qrels import Judgments, Topic
from workbench.plan.plan import Plan
from workbench.records import Progress


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wb.Corpus]:
    """Thirty short files; the query's word and its answer are in one of them."""
    folder = tmp_path_factory.mktemp("tuned")
    files = {f"f{n:02}.md": f"alpha word{n} beta word{(n * 7) % 30} gamma\n" for n in range(30)}
    wb.index([write_files(folder / "files", files)], corpus=folder / "corpus", encoder="hashing")
    with wb.open_corpus(folder / "corpus") as opened:
        yield opened


@pytest.fixture(scope="module")
def judgments() -> Judgments:
    topics = {f"q{n}": Topic(f"q{n}", f"word{n} alpha") for n in range(20)}
    return Judgments(topics, {f"q{n}": {f"f{n:02}.md": 2, f"f{(n + 1) % 30:02}.md": 0} for n in range(20)}, "made")


GRID = {"fusion.k": [1, 60], "fusion.weights.vector": [0, 0.5, 1], "fusion.method": ["rrf", "convex"]}


@pytest.fixture(scope="module")
def swept(corpus: wb.Corpus, judgments: Judgments) -> Sweep:
    return corpus.sweep(judgments, GRID, plan="rrf", folds=4, measures=["R@5"])


# --- what is tried ------------------------------------------------------------------------------------------------------


def test_a_plan_is_tried_once_and_each_query_judged_by_a_plan_chosen_without_it(swept: Sweep) -> None:
    assert swept.combinations == 12
    assert [str(p) for p in swept.plans] == [
        "rrf", "rrf fusion.k=1 fusion.weights.vector=0", "rrf fusion.method=convex fusion.weights.vector=0",
        "rrf fusion.k=1 fusion.weights.vector=0.5", "rrf fusion.method=convex fusion.weights.vector=0.5",
        "rrf fusion.k=1", "rrf fusion.method=convex", "rrf fusion.weights.vector=0", "rrf fusion.weights.vector=0.5",
    ]  # fmt: skip
    assert not [w for w in swept.warnings if "no effect" in w]
    values = np.array([[0.5, 0.5, 0.5, 0.5], [1.0, 0.9, 0.0, 0.0], [0.0, 0.1, 1.0, 0.8]])
    choice = nested(values, np.array([0, 0, 1, 1]))
    assert choice.chosen == (2, 1)
    assert choice.held_out.tolist() == [0.0, 0.1, 0.0, 0.0]
    assert best_of(values, np.ones(4, bool)) == 0  # the baseline's 0.5 beats 0.475 on all four


def test_a_field_that_does_nothing_in_the_whole_sweep_is_told(corpus: wb.Corpus, judgments: Judgments) -> None:
    made = corpus.sweep(judgments, {"fusion.k": [1, 10, 60], "fusion.weights.vector": [0, 0.5, 1]}, folds=5)
    assert made.combinations == 9
    assert [str(p) for p in made.plans] == [
        "default", "default fusion.weights.vector=0", "default fusion.weights.vector=0.5",
    ]  # fmt: skip
    assert "fusion.k has no effect with fusion.method convex; add fusion.method=rrf" in made.warnings
    curve = made.sensitivity("fusion.k")
    assert curve["value"].to_list() == ["1", "10", "60"]
    assert curve["mean"].n_unique() == 1
    heat = made.heat("fusion.k", "fusion.weights.vector")
    assert heat.rows()[0][:2] == ("not used", "0")
    assert heat.height == 3


def test_alpha_and_the_weights_of_two_sources_are_not_both_varied(corpus: wb.Corpus, judgments: Judgments) -> None:
    """They say the same, the ratio of the two sides; weights vary where alpha does not, or a third source takes part: grep
    that may join divides one side with keyword.
    """
    grid = {"fusion.alpha": [0.5, 0.8], "fusion.weights.vector": [0.5, 1], "fusion.weights.keyword": [1, 2]}
    never = Space("default grep.when=never", grid)
    assert list(dict.fromkeys(str(never.plan(c)) for c in never.combinations())) == [
        "default grep.when=never fusion.alpha=0.5", "default grep.when=never",
    ]  # fmt: skip
    joins = Space("default", grid)
    assert list(dict.fromkeys(str(joins.plan(c)) for c in joins.combinations())) == [
        "default fusion.alpha=0.5", "default fusion.alpha=0.5 fusion.weights.keyword=2",
        "default", "default fusion.weights.keyword=2",
    ]  # fmt: skip
    third = Space("default sources=keyword,vector,vector:b", grid)
    assert len({third.plan(c) for c in third.combinations()}) == 8
    grep = Space("default", {"fusion.alpha": [0.8], "fusion.weights.grep": [0, 1]})
    assert len({grep.plan(c) for c in grep.combinations()}) == 2


def test_fields_are_read_from_words() -> None:
    space = read_space(
        "default", ["fusion.k=1,60", "sources=keyword|keyword,vector", "fusion.alpha=0..1:0.25", "preset=default,tmm"]
    )
    assert space.listed("fusion.k") == (1.0, 60.0)
    assert space.listed("sources") == (("keyword",), ("keyword", "vector"))
    assert space.listed("fusion.alpha") == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert space.size == 2 * 2 * 5 * 2
    assert Space("rrf", {"fusion.normalise": ["tmm"]}).plan({"fusion.normalise": "tmm"}) == Plan.parse("rrf")
    convex = Space("rrf", {"fusion.method": ["convex"], "fusion.normalise": ["tmm"]})
    assert convex.plan({"fusion.method": "convex", "fusion.normalise": "tmm"})["fusion.normalise.keyword"] == "tmm"
    assert Range(1, 100, log=True).values()[5] == pytest.approx(10)
    with pytest.raises(UsageError, match="more than 100,000 values"):
        read_space("default", ["fusion.alpha=0..1:0.00000001"])
    assert read_space("default", ["fusion.alpha=.25...75:.25"]).listed("fusion.alpha") == (0.25, 0.5, 0.75)
    assert read_space("rrf", ["fusion.k=1..1e3~"]).grid["fusion.k"] == Range(1, 1000, None, True)
    assert isinstance(Space("rrf", {"fusion.k": Range(1, 60)}).grid["fusion.k"], Range)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fusion.k"], "is not FIELD=VALUES"),
        (["fusion.kk=1"], "no plan field"),
        (["fusion.k=0"], "fusion.k is"),
        (["fusion.k=1", "fusion.k=2"], "named twice"),
        (["fusion.alpha=1..0"], "cannot be walked"),
        ([], "nothing to try"),
    ],
)
def test_what_cannot_be_tried_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_space("default", words)


# --- how it chooses -----------------------------------------------------------------------------------------------------


# --- what it reports ----------------------------------------------------------------------------------------------------


def test_the_figures_are_those_of_evaluating_each_plan(corpus: wb.Corpus, judgments: Judgments, swept: Sweep) -> None:
    for n, plan in enumerate(swept.plans):
        alone = corpus.evaluate(judgments, plan, ["nDCG@10", "R@5"])
        assert swept.values[n] == pytest.approx(alone.values, abs=1e-12)
    assert swept.after.mean("nDCG@10") == pytest.approx(swept.means()[swept.best_index])
    assert swept.oracle >= swept.means().max()
    frame = swept.frame(None)
    assert frame.height == len(swept.plans)
    assert frame["mean"].is_sorted(descending=True)
    assert frame.filter(frame["plan"] == "rrf")["p"].to_list() == [None]
    assert (frame["wins"] + frame["losses"] + frame["ties"]).to_list() == [20] * frame.height
    per_query = swept.per_query()
    assert per_query["oracle"].mean() == pytest.approx(swept.oracle)
    assert swept.choice is not None
    assert per_query["held_out"].to_list() == swept.choice.held_out.tolist()


def test_sensitivity_follows_one_setting(swept: Sweep) -> None:
    """Values in order, marks at the current, best and default one, the band around the mean."""
    curve = swept.sensitivity("fusion.weights.vector", at="rrf")
    assert curve["value"].to_list() == ["0", "0.5", "1"]
    assert "current" in curve["marks"].to_list()[2]
    assert (curve["low"] <= curve["mean"]).all()
    with pytest.raises(UsageError, match="did not vary"):
        swept.sensitivity("keyword.k1")
    heat = swept.heat("fusion.k", "fusion.weights.vector", at="rrf")
    assert heat.height == 6
    heat = swept.heat("fusion.method", "fusion.k", at="rrf")
    assert [row[:2] for row in heat.rows()] == [("rrf", "1"), ("rrf", "60"), ("convex", "not used")]
    turned = swept.heat("fusion.k", "fusion.method", at="rrf")
    assert [row[:2] for row in turned.rows()] == [("1", "rrf"), ("60", "rrf"), ("not used", "convex")]
    assert Plan.from_yaml(swept.to_yaml()) == swept.best
    scope: dict[str, object] = {}
    exec(swept.to_python(), scope)
    assert scope["plan"] == swept.best


def test_what_is_held_out_is_said(corpus: wb.Corpus, judgments: Judgments) -> None:
    made = corpus.sweep(judgments, {"fusion.alpha": [1]}, folds=0)
    assert made.choice is None
    assert any("held out" in w for w in made.warnings)
    assert "flattering" in made.how
    train = judgments.subset([f"q{n}" for n in range(10)])
    test = judgments.subset([f"q{n}" for n in range(10, 20)])
    made = corpus.sweep(train, GRID, folds=0, test=test)
    assert made.difference.queries == 10
    assert made.difference.second_mean == pytest.approx(corpus.evaluate(test, made.best, "nDCG@10").mean("nDCG@10"))
    made = corpus.sweep(judgments, {"limit": [5, 20], "limit.max": [10, 50]}, folds=0)
    assert sum(made.skipped.values()) == 1
    assert made.combinations == 4
    with pytest.raises(PlanError, match="No combination is a plan"):
        corpus.sweep(judgments, {"limit": [20], "limit.max": [10]}, folds=0)


def test_a_stopped_sweep_has_the_figures_of_what_was_done(corpus: wb.Corpus, judgments: Judgments) -> None:

    def interrupted(report: Progress) -> None:
        if report.done == 8:
            raise KeyboardInterrupt

    half = corpus.sweep(judgments, GRID, progress=interrupted)
    assert not half.complete
    assert len(half.query_ids) == 8
    assert any("8 of 20" in w for w in half.warnings)
    whole = corpus.sweep(judgments, GRID)
    assert half.values.tolist() == whole.values[:, :8].tolist()


# --- sweep ranges ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["limit=1..20", "depth.vector=10..1000~", "depth.keyword=1.5..7.5"])
def test_fields_of_whole_numbers_get_whole_numbers(word: str) -> None:
    space = read_space("default", [word])
    (name,) = space.fields
    low, high = space.grid[name].low, space.grid[name].high  # type: ignore[union-attr]
    values = space.listed(name)
    assert list(values) == sorted(set(values))
    assert all(isinstance(v, int) and low <= v <= high for v in values)
    drawn = [c[name] for c in space.drawn(30, 0)]
    assert all(isinstance(v, int) and low <= v <= high for v in drawn)
    assert len(set(drawn)) > 3
    assert space.plan({name: drawn[0]})[name] == drawn[0]


@pytest.mark.parametrize(
    "ends", [(0, math.inf), (math.nan, 1), (2, 1), (0, 1, math.nan), (0, 1, 0), (0, 1, None, True)]
)
def test_a_range_that_cannot_be_walked_is_refused(ends: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="cannot be walked"):
        Range(*ends)  # type: ignore[arg-type]
