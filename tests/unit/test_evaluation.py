"""Evaluation: measures as ir_measures gives them, chunks credited once, intervals and tests that repeat."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ir_measures
import numpy as np
import pytest

import workbench as wb
from workbench.errors import JudgmentError, QueryError, SourceUnavailable, UsageError
from workbench.evaluate.evaluation import evaluate, score_run
from workbench.evaluate.measures import describe, parse_measure, parse_measures
from workbench.evaluate.run import Run, document_keys, make_run
from workbench.judgments.formats import qrels_to_trec
from workbench.judgments.qrels import Judgments, Topic


@dataclass(frozen=True)
class FakeHit:
    document_id: str
    path: str
    url: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    added: bool = False


@dataclass(frozen=True)
class FakeAnswer:
    hits: tuple[FakeHit, ...]
    timings_ms: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def judged(qrels: dict[str, dict[str, int]]) -> Judgments:
    return Judgments({i: Topic(i, f"text of {i}") for i in qrels}, qrels, "made up")


def random_case(seed: int, queries: int = 40) -> tuple[dict[str, list[str]], Judgments]:
    generator = np.random.default_rng(seed)
    pool = [f"docs/{n} file.md" for n in range(60)]
    qrels = {
        f"q{q}": {d: int(generator.integers(-1, 4)) for d in generator.choice(pool, 12, False)} for q in range(queries)
    }
    run = {f"q{q}": list(generator.permutation(pool)[: generator.integers(0, 40)]) for q in range(queries - 2)}
    return run, judged(qrels)


def test_ndcg_and_reciprocal_rank_by_hand() -> None:
    """Grades 2, 0, 1 at ranks 1, 2, 3 with one relevant document missed: the fractions of the definition."""
    judgments = judged({"q": {"a": 2, "b": 0, "c": 1, "missed": 2}})
    evaluation = score_run({"q": ["a", "b", "c"]}, judgments, ["nDCG@3", "RR", "R@3", "P@3", "AP"])
    gained = 2 / math.log2(2) + 1 / math.log2(4)
    ideal = 2 / math.log2(2) + 2 / math.log2(3) + 1 / math.log2(4)
    assert evaluation.mean("nDCG@3") == pytest.approx(gained / ideal, abs=1e-12)
    assert evaluation.mean("RR") == 1
    assert evaluation.mean("R@3") == pytest.approx(2 / 3)
    assert evaluation.mean("P@3") == pytest.approx(2 / 3)
    assert evaluation.mean("AP") == pytest.approx((1 / 1 + 2 / 3) / 3)
    late = score_run({"q": ["x", "b", "y", "c"]}, judgments, ["RR", "RR@3"])
    assert late.mean("RR") == pytest.approx(1 / 4)
    assert late.mean("RR@3") == 0


@pytest.mark.parametrize("seed", range(3))
def test_figures_equal_ir_measures_on_the_exported_run(seed: int) -> None:
    """Reading the exported TREC files with ir_measures gives the same figures to 1e-9, query by query."""
    run, judgments = random_case(seed)
    names = ["nDCG@10", "nDCG", "RR", "R@20", "P@10", "AP", "Judged@10", "Success@5", "P(rel=2)@5", "Bpref"]
    evaluation = score_run(run, judgments, names)
    qrels = list(ir_measures.read_trec_qrels(io.StringIO(qrels_to_trec(judgments))))
    exported = list(ir_measures.read_trec_run(io.StringIO(evaluation.run.to_trec())))
    measures = {n: getattr(ir_measures, n.split("@")[0].split("(")[0]) for n in names}
    measures = {n: m(rel=2) if "rel=2" in n else m for n, m in measures.items()}
    measures = {n: m @ int(n.split("@")[1]) if "@" in n else m for n, m in measures.items()}
    overall = ir_measures.calc_aggregate(list(measures.values()), qrels, exported)
    for name in names:
        assert evaluation.mean(name) == pytest.approx(overall[measures[name]], abs=1e-9)
    row = {query_id: n for n, query_id in enumerate(evaluation.query_ids)}
    for metric in ir_measures.iter_calc([measures["nDCG@10"]], qrels, exported):
        assert evaluation.column("nDCG@10")[row[metric.query_id]] == pytest.approx(metric.value, abs=1e-9)


def test_a_judged_query_without_results_counts_zero_and_is_told() -> None:
    evaluation = score_run({"a": ["x"]}, judged({"a": {"x": 1}, "b": {"y": 1}}), ["RR"])
    assert evaluation.mean("RR") == 0.5
    assert "1 of 2 judged queries returned nothing and count 0" in evaluation.warnings
    assert evaluation.frame()["queries"].to_list() == [2]


def test_chunks_of_a_document_count_once_at_the_best_rank() -> None:
    hits = [FakeHit("d1", "a.md"), FakeHit("d1", "a.md"), FakeHit("d3", "c.md", added=True), FakeHit("d2", "b.md")]
    assert document_keys(hits, frozenset({"a.md"})) == ("a.md", "b.md")


@pytest.mark.parametrize("used", ["own-7", "doc-7", "x.jsonl#7", "7", "https://e.example/7"])
def test_a_document_is_known_by_whichever_name_the_judgments_use(used: str) -> None:
    hit = FakeHit("doc-7", "x.jsonl#7", "https://e.example/7", {"record_id": "own-7"})
    assert document_keys([hit, hit], frozenset({used})) == (used,)
    assert document_keys([hit], frozenset()) == ("x.jsonl#7",)


def test_a_query_that_cannot_be_read_counts_zero_and_is_listed() -> None:

    def search(topic: Topic) -> FakeAnswer:
        if topic.query_id == "b":
            raise QueryError("the quote is open", "Close it")
        return FakeAnswer((FakeHit("x", "x"),), {"total_ms": 7.0}, ("vector is unavailable",))

    evaluation = evaluate(search, judged({"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1}}), ["RR"], name="n")
    assert evaluation.mean("RR") == pytest.approx(2 / 3)
    assert evaluation.per_query()["failure"].to_list() == [None, "the quote is open", None]
    assert evaluation.latency.p50 == 7.0
    assert "2 of 3 queries: vector is unavailable" in evaluation.warnings
    assert any("1 of 3 queries could not be run and count 0: b (the quote is open)" in w for w in evaluation.warnings)


def test_an_unavailable_source_ends_the_evaluation() -> None:

    def search(topic: Topic) -> FakeAnswer:
        raise SourceUnavailable("The vector side is not there", "Index again")

    with pytest.raises(SourceUnavailable):
        evaluate(search, judged({"a": {"x": 1}}))


def test_a_query_without_text_cannot_be_asked() -> None:
    alone = Judgments({}, {"a": {"x": 1}}, "qrels")
    assert score_run({"a": ["x"]}, alone, ["RR"]).mean("RR") == 1
    with pytest.raises(JudgmentError, match="its text is not known"):
        make_run(lambda topic: FakeAnswer(()), alone)


def test_low_coverage_foreign_judgments_and_unjudged_queries_are_told() -> None:
    judgments = Judgments({"a": Topic("a", "t"), "z": Topic("z", "u")}, {"a": {"x": 1, "y": 0}}, "j")
    evaluation = score_run({"a": ["x", "1", "2", "3"]}, judgments, ["RR", "P@10"])
    assert evaluation.coverage.judged == 0.25
    assert evaluation.coverage.unjudged == 0.75
    assert evaluation.coverage.unjudged_documents == 3
    assert any("Only 25% of the first 10 documents are judged" in w for w in evaluation.warnings)
    assert "1 queries have no judgments and were left out" in evaluation.warnings
    foreign = score_run({"a": ["p", "q"]}, judgments, ["RR"])
    assert any("No retrieved document is named in the judgments" in w for w in foreign.warnings)


def test_a_limit_below_a_cutoff_is_told_and_a_small_corpus_is_not() -> None:
    """Answers that all end at the same number of hits were cut; answers of all lengths are just short."""
    judgments = judged({i: {"x0": 1} for i in "abcd"})

    def hits(number: int) -> FakeAnswer:
        return FakeAnswer(tuple(FakeHit(f"x{n // 2}", f"x{n // 2}") for n in range(number)))

    cut = evaluate(lambda topic: hits(10), judgments, "R@5 P@10 RR")
    assert any(
        "Answers end at 10 hits, which hold at most 5 documents: P@10 cannot see more" in w for w in cut.warnings
    )
    lengths = dict(zip("abcd", (3, 5, 7, 9), strict=True))
    short = evaluate(lambda topic: hits(lengths[topic.query_id]), judgments, "P@10")
    assert not any("Answers end" in w for w in short.warnings)


def test_frames_have_fixed_columns_and_one_query_has_no_interval() -> None:
    evaluation = score_run({"a": ["x"]}, judged({"a": {"x": 1}}), "nDCG@10, RR")
    assert evaluation.frame().columns == ["measure", "mean", "low", "high", "queries"]
    assert evaluation.frame()["low"].to_list() == [None, None]
    expected = ["query_id", "query", "nDCG@10", "RR", "relevant", "retrieved", "latency_ms", "failure"]
    assert evaluation.per_query().columns == expected


def test_names_of_measures_have_one_spelling() -> None:
    assert parse_measures("ndcg@10,MRR  recall@100 P(rel=2)@5") == ("nDCG@10", "RR", "R@100", "P(rel=2)@5")
    assert parse_measures(["nDCG(gains={2: 3, 3: 7})@5"]) == ("nDCG(gains={2:3,3:7})@5",)
    assert parse_measures("RR RR@10 RR") == ("RR", "RR@10")
    assert parse_measures("iprec@.1 IPrec@1.0") == ("IPrec@0.1", "IPrec@1.0")  # a share of the relevant after @
    assert score_run({"a": ["y", "x"]}, judged({"a": {"x": 1}}), "IPrec@0.1").mean("IPrec@0.1") == 0.5
    for name in parse_measures("nDCG@10 RR P(rel=2)@5 nDCG(gains={2:3,3:7})@5 Success@10 Judged@10 AP@5"):
        assert str(parse_measure(name)) == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDGC@10", "Did you mean nDCG?"),
        ("nDCG@0", "whole number of at least 1"),
        ("nDCG@1.5", "whole number of at least 1"),
        ("IPrec@2", "takes no recall=2"),
        ("nDCG@ten", "cannot be read"),
        ("nDCG@-5", "whole number of at least 1"),
        ("R", "lacks its cutoff"),
        ("P(depth=3)@5", "has no parameter depth"),
        ("P(3)@5", "parameters are written name=value"),
        ("NumRet", "is a count and has no mean"),
        ("", "cannot be read"),
        ("__import__('os')", "parameters are written name=value"),
        ("P(rel=__import__('os'))@5", "cannot be read"),
        ("RBP", "cannot be computed here"),
        ("nDCG(dcg='exp-log2')@10", "cannot be computed here"),
    ],
)
def test_a_measure_that_is_none_is_refused_readably(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_measures([text])
    assert message in str(caught.value)


def test_the_gain_of_ndcg_is_stated_and_another_can_be_chosen() -> None:
    assert "linear gain" in describe("nDCG@10")
    judgments = judged({"q": {"a": 1, "b": 2}})
    evaluation = score_run({"q": ["a", "b"]}, judgments, ["nDCG@2", "nDCG(gains={2:3})@2"])
    second = 1 / math.log2(3)
    assert evaluation.mean("nDCG@2") == pytest.approx((1 + 2 * second) / (2 + second))
    assert evaluation.mean("nDCG(gains={2:3})@2") == pytest.approx((1 + 3 * second) / (3 + second))


def test_names_with_spaces_survive_the_trec_form_and_none_collide() -> None:
    run = Run({"q 1": ("a b.md",)}, "default fusion.k=20")
    assert run.to_trec() == "q%201 Q0 a%20b.md 1 1 default%20fusion.k=20\n"
    assert qrels_to_trec(judged({"q 1": {"a b.md": 1}})) == "q%201 0 a%20b.md 1\n"
    assert Run({"q": ("a b", "a%20b")}, "r").to_trec() == "q Q0 a%20b 1 2 r\nq Q0 a%2520b 2 1 r\n"


COPIES = {"a.md": "same text of the river\n", "c.md": "same text of the river\n\n", "z.md": "other words\n"}


@pytest.mark.slow
def test_a_judged_document_that_dedupe_removes_counts_at_the_rank_of_the_hit_that_stands_for_it(
    make_corpus: Callable[..., wb.Corpus],
) -> None:
    """Whichever of two equal texts is judged, or both; as many plans at once count them, too."""
    corpus = make_corpus(COPIES)
    for grades in ({"a.md": 1}, {"c.md": 1}, {"a.md": 1, "c.md": 1}, {"a.md": 0, "c.md": 2}):
        judgments = judged_of(grades)
        made = corpus.evaluate(judgments, "rrf", ["nDCG@10", "R@10", "RR"])
        assert made.values.tolist() == [[1.0, 1.0, 1.0]], grades
        swept = corpus.sweep(judgments, {"fusion.k": [1, 60]}, "nDCG@10", folds=0, plan="rrf", measures=["R@10", "RR"])
        assert swept.values.min() == 1.0, grades
        live = corpus.live(judgments, "RR", "rrf")
        assert live.figure(wb.preset("rrf")).mean == 1.0
    assert corpus.evaluate(judged_of({"c.md": 0}), "rrf").coverage.judged == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_answers_that_have_no_more_to_give_are_not_called_cut(make_corpus: Callable[..., wb.Corpus], mode: str) -> None:
    """Where everything that matches was returned, no depth shows more; where a depth cut, it is said."""
    corpus = make_corpus({f"{n:02}.md": f"river number{n}\n" for n in range(12)})
    judgments = judged_of({f"{n:02}.md": n % 2 for n in range(12)})
    for plan in ("rrf", "rrf limit=1000 depth.keyword=100000 depth.vector=100000"):
        assert not corpus.evaluate(judgments, plan, ["R@100"], mode=mode).warnings
    cut = corpus.evaluate(judgments, "rrf depth.keyword=3 depth.vector=3 vector.threshold=off", ["R@100"], mode=mode)
    assert any("Answers end at" in w for w in cut.warnings)


def judged_of(grades: dict[str, int]) -> Judgments:
    return Judgments({"q": Topic("q", "river")}, {"q": grades})
