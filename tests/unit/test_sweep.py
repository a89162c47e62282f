"""The sweep: what it tries, how it chooses and reports; and the statistics that it and evaluations are judged by."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import trials

import workbench as wb
from workbench.errors import PlanError, UsageError
from workbench.evaluate.evaluation import score_run
from workbench.evaluate.grid import Range, Space, read_space
from workbench.evaluate.measures import compute, quick, values_of
from workbench.evaluate.run import Run
from workbench.evaluate.statistics import (
    Choice,
    best_of,
    bootstrap_interval,
    choice_difference,
    choice_means,
    deal,
    nested,
    paired_difference,
    randomisation_test,
)
from workbench.evaluate.sweep import Sweep
from workbench.judgments.agreement import agreement, cohen, fleiss
from workbench.judgments.qrels import Judgments, Topic
from workbench.plan.plan import Plan
from workbench.records import Progress


@pytest.fixture(scope="module")
def corpus(corpus_of: Callable[..., wb.Corpus]) -> wb.Corpus:
    """Thirty short files; the query's word and its answer are in one of them."""
    return corpus_of({f"f{n:02}.md": f"alpha word{n} beta word{(n * 7) % 30} gamma\n" for n in range(30)})


@pytest.fixture(scope="module")
def judgments() -> Judgments:
    topics = {f"q{n}": Topic(f"q{n}", f"word{n} alpha") for n in range(20)}
    return Judgments(topics, {f"q{n}": {f"f{n:02}.md": 2, f"f{(n + 1) % 30:02}.md": 0} for n in range(20)}, "made")


GRID = {"fusion.k": [1, 60], "fusion.weights.vector": [0, 0.5, 1], "fusion.method": ["rrf", "convex"]}


@pytest.fixture(scope="module")
def swept(corpus: wb.Corpus, judgments: Judgments) -> Sweep:
    return corpus.sweep(judgments, GRID, plan="rrf", folds=4, measures=["R@5"])


def test_a_plan_is_tried_once_and_each_query_judged_by_a_plan_chosen_without_it(swept):
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


def test_a_field_that_does_nothing_and_what_a_stop_left_are_told(corpus, judgments):
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

    def interrupted(report: Progress) -> None:
        if report.done == 8:
            raise KeyboardInterrupt

    half = corpus.sweep(judgments, GRID, progress=interrupted)
    assert not half.complete
    assert len(half.query_ids) == 8
    assert any("8 of 20" in w for w in half.warnings)
    whole = corpus.sweep(judgments, GRID)
    assert half.values.tolist() == whole.values[:, :8].tolist()


def test_alpha_and_the_weights_of_two_sources_are_not_both_varied(corpus, judgments):
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


def test_fields_are_read_from_words():
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
def test_what_cannot_be_tried_is_refused(words, said):
    with pytest.raises(UsageError, match=said):
        read_space("default", words)


def test_frames_hold_every_plan_and_query(swept):
    assert swept.after.mean("nDCG@10") == pytest.approx(swept.means()[swept.best_index])
    assert swept.oracle >= swept.means().max()
    frame = swept.frame(None)
    assert frame.height == len(swept.plans)
    assert frame["mean"].is_sorted(descending=True)
    assert frame.filter(frame["plan"] == "rrf")["p"].to_list() == [None]
    assert (frame["wins"] + frame["losses"] + frame["ties"]).to_list() == [20] * frame.height
    per_query = swept.per_query()
    assert per_query["oracle"].mean() == pytest.approx(swept.oracle)
    assert per_query["held_out"].to_list() == swept.choice.held_out.tolist()


def test_sensitivity_follows_one_setting(swept):
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


def test_what_is_held_out_is_said(corpus, judgments):
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


@pytest.mark.parametrize("word", ["limit=1..20", "depth.vector=10..1000~", "depth.keyword=1.5..7.5"])
def test_fields_of_whole_numbers_get_whole_numbers(word):
    space = read_space("default", [word])
    (name,) = space.fields
    low, high = space.grid[name].low, space.grid[name].high
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
def test_a_range_that_cannot_be_walked_is_refused(ends):
    with pytest.raises(UsageError, match="cannot be walked"):
        Range(*ends)


def test_the_test_is_exact_and_keeps_its_level():
    values = np.random.default_rng(2).normal(0.5, 0.2, 400)
    low, high = bootstrap_interval(values)
    error = values.std(ddof=1) / math.sqrt(400)
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)
    assert bootstrap_interval(np.full(7, 0.25)) == (0.25, 0.25)
    assert all(math.isnan(end) for end in bootstrap_interval(np.array([0.4])))
    differences = np.array([0.3, 0.1, -0.05, 0.2, 0.0, 0.15, 0.4, -0.1, 0.25])
    moving = [d for d in differences if d]
    observed = abs(sum(moving))
    patterns = list(itertools.product((1, -1), repeat=len(moving)))
    extreme = sum(abs(sum(s * d for s, d in zip(p, moving, strict=True))) >= observed - 1e-12 for p in patterns)
    assert randomisation_test(differences) == extreme / len(patterns)
    generator = np.random.default_rng(5)
    found = sum(randomisation_test(generator.normal(0, 1, 30), resamples=500) < 0.05 for _ in range(200))
    assert 2 <= found <= 22


def test_the_verdict_says_better_only_with_evidence():
    first = np.linspace(0.2, 0.6, 40)
    clear = paired_difference("nDCG@10", ("a", "b"), first, first + 0.1)
    assert clear.significant
    assert clear.verdict.startswith("b is better than a: nDCG@10 +0.100")
    assert (clear.wins, clear.losses, clear.ties) == (40, 0, 0)
    worse = paired_difference("RR", ("a", "b"), first, first - 0.1)
    assert worse.verdict.startswith("b is worse than a")
    noise = paired_difference("RR", ("a", "b"), first, first + np.array([0.1, -0.1] * 20))
    assert noise.verdict.startswith("No difference shown between b and a")
    assert "20 better, 20 worse, 0 equal" in noise.verdict
    same = paired_difference("RR", ("a", "b"), first, first.copy())
    assert same.verdict == "RR is the same for b and a on all 40 queries."
    few = paired_difference("RR", ("a", "b"), first[:3], first[:3] + np.array([0.1, 0.2, -0.1]))
    assert few.verdict.endswith("3 queries are too few to tell much.")
    topics = {"a": Topic("a", "t"), "b": Topic("b", "u")}
    one = Judgments(topics, {"a": {"x": 1}, "b": {"y": 1}})
    other = Judgments(topics, {"a": {"x": 2}, "b": {"y": 1}})
    good = score_run(Run({"a": ["x"], "b": ["y"]}, "good"), one, ["RR"])
    bad = score_run(Run({"a": ["z", "x"]}, "bad"), one, ["RR"])
    assert bad.compare(good).wins == 2
    assert bad.named("worse one").compare(good).first == "worse one"
    with pytest.raises(UsageError, match="judged by different judgments"):
        good.compare(score_run(Run({}), other, ["RR"]))
    with pytest.raises(UsageError, match="no measure in common"):
        good.compare(score_run(Run({}), one, ["AP"]))
    with pytest.raises(UsageError, match=r"AP was not computed\. Computed are: RR"):
        good.mean("AP")


def chosen(values: np.ndarray, seed: int = 0) -> Choice:
    return nested(values, deal(values.shape[1], 5, seed))


def test_where_nothing_can_be_gained_folds_say_so_as_often_as_they_promise():
    """Forty plans whose figures are random: the held-out mean gains nothing, the interval has 0 in it at least 19 times in
    20, and almost no verdict says better. With the chosen plans taken as given, both fail.
    """
    random = np.random.default_rng(5)
    gains, covered, short, better, naive = [], 0, 0, 0, 0
    rounds = 150
    for seed in range(rounds):
        values = random.random((40, 50))
        values[0] = 0.5
        choice = chosen(values, seed)
        gains.append(choice.held_out.mean() - 0.5)
        low, high = np.quantile(choice_means(values, choice, values[0], resamples=250), [0.025, 0.975])
        covered += low <= 0 <= high
        ends = bootstrap_interval(choice.held_out - 0.5, resamples=250)
        short += not ends[0] <= 0 <= ends[1]
        better += low > 0
        naive += ends[0] > 0
    assert abs(np.mean(gains)) < 4 * np.std(gains) / rounds**0.5
    assert covered >= 0.95 * rounds
    assert short > 0.05 * rounds
    assert better <= 0.025 * rounds
    assert better < naive


def test_the_verdict_of_a_sweep_has_the_choice_in_its_interval():
    random = np.random.default_rng(8)
    space = Space("default", {"fusion.alpha": [n / 10 for n in range(10)]})
    plans = tuple(space.plan(c) for c in space.combinations())
    values = random.random((10, 60))
    choice = chosen(values)
    ids = tuple(f"q{n}" for n in range(60))
    made = Sweep(space, plans, ("RR",), ids, values[:, :, None], choice, None, None)
    expected = choice_difference("RR", (str(plans[0]), "tuned"), values[0], values, choice)
    assert made.difference == expected
    alone = Sweep(space, plans, ("RR",), ids, values[:, :, None], None, None, None)
    assert alone.difference.low == paired_difference("RR", ("a", "b"), values[0], values[made.best_index]).low


NAMES = "nDCG@3 nDCG@10 nDCG RR RR@3 R@5 P@3 AP AP@4 Success@2 P(rel=2)@5 R(rel=2)@10".split()


@pytest.mark.slow
@trials(40)
@given(st.permutations(range(12)), st.integers(0, 12), st.lists(st.integers(-1, 3), min_size=1, max_size=12))
def test_the_same_values_as_ir_measures(order, returned, grades):
    """Any ranking, any grades, negative ones and documents that were not returned among them: equal to 1e-12."""
    ranking = [f"d{i}" for i in order[:returned]]
    qrels = {f"d{i}": grade for i, grade in enumerate(grades)}
    wanted = compute({"q": ranking}, {"q": qrels}, ["q"], NAMES)[0]
    ranks = np.array([[ranking.index(d) + 1 if d in ranking else 0 for d in qrels]])
    judged = np.array(grades)
    measures = [q for q in map(quick, NAMES) if q is not None]
    assert len(measures) == len(NAMES)
    assert values_of(measures, ranks, judged, judged)[0] == pytest.approx(wanted, abs=1e-12)


def test_a_query_with_negative_grades_only_counts_nothing():
    assert compute({"q": ["a"]}, {"q": {"a": -1}}, ["q"], ["nDCG@10", "AP"]).tolist() == [[0.0, 0.0]]


def test_kappas_are_those_of_their_papers():
    first = [1] * 20 + [0] * 15 + [1] * 5 + [0] * 10
    second = [1] * 20 + [0] * 15 + [0] * 5 + [1] * 10
    assert cohen(first, second) == pytest.approx(0.4)
    assert cohen(second, first) == pytest.approx(0.4)
    assert cohen(first, second, quadratic=True) == pytest.approx(0.4)  # two grades: weights change nothing
    table = [
        (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
    ]  # fmt: skip
    items = [[grade for grade, count in enumerate(row) for _ in range(count)] for row in table]
    assert fleiss(items) == pytest.approx(0.210, abs=0.0005)


@pytest.mark.parametrize(("first", "second"), [([], []), ([2, 2], [2, 2])])
def test_nothing_can_be_told_from_one_grade(first, second):
    assert math.isnan(cohen(first, second))
    assert math.isnan(fleiss([list(pair) for pair in zip(first, second, strict=True)]))


def test_only_items_of_two_judges_count():
    items = [{"a": 1, "b": 1}, {"a": 0, "b": 2}, {"a": 3}, {"b": 3, "c": 3}, {"a": 1, "b": 1, "c": 1}]
    two = agreement(items, ["a", "b"])
    assert (two.method, two.items, two.observed) == ("Cohen", 3, pytest.approx(2 / 3))
    assert two.kappa == cohen([1, 0, 1], [1, 2, 1])
    three = agreement(items)
    assert (three.method, three.items, three.judges) == ("Fleiss", 4, ("a", "b", "c"))
    assert three.kappa == fleiss([[1, 1], [0, 2], [3, 3], [1, 1, 1]])
    assert "3 judges agree on 75% of 4 passages" in three.words
    with pytest.raises(UsageError, match="two judges"):
        agreement([{"a": 1}])
    assert "no" not in agreement([{"a": 0, "b": 1}, {"a": 1, "b": 0}]).words.split()
    assert "worse than chance" in agreement([{"a": 0, "b": 1}, {"a": 1, "b": 0}]).words
    assert "almost perfect" in agreement([{"a": 0, "b": 0}, {"a": 1, "b": 1}]).words
    assert "nothing in common" in agreement([{"a": 0}, {"b": 1}]).words
