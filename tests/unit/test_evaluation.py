"""Evaluation: measures as ir_measures gives them, chunks credited once, intervals and tests that repeat."""

import io
import itertools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import ir_measures
import numpy as np
import pytest
from bench import collections as measured_collections
from click.testing import CliRunner
from corpus_files import write_files

import workbench as wb
from workbench.charts import distribution_figure
from workbench.cli.main import main
from workbench.demo import sample_folder
from workbench.errors import JudgmentError, SourceUnavailable, UsageError
from workbench.evaluate.distribution import Distribution
from workbench.evaluate.evaluation import score_run
from workbench.evaluate.leaderboard import Leaderboard, queries_only
from workbench.evaluate.measures import parse_measure, parse_measures
from workbench.evaluate.run import Named, Run, as_judged, document_key, load_run, make_run
from workbench.judgments.formats import qrels_to_trec
from workbench.judgments.known_items import make_known_item_set
from workbench.judgments.qrels import Judgments, Topic


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


@pytest.mark.parametrize("seed", range(3))
def test_figures_equal_ir_measures_on_the_exported_run(seed):
    """Reading the exported TREC files with ir_measures gives the same figures to 1e-9, query by query."""
    run, judgments = random_case(seed)
    names = ["nDCG@10", "nDCG", "RR", "R@20", "P@10", "AP", "Judged@10", "Success@5", "P(rel=2)@5", "Bpref"]
    evaluation = score_run(Run(run), judgments, names)
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


def test_what_is_scored_and_what_counts_zero():
    evaluation = score_run(Run({"a": ["x"]}), judged({"a": {"x": 1}, "b": {"y": 1}}), ["RR"])
    assert evaluation.mean("RR") == 0.5
    assert "1 of 2 judged queries returned nothing and count 0" in evaluation.warnings
    assert evaluation.frame()["queries"].to_list() == [2]
    evaluation = score_run(Run({"a": ["x"]}), judged({"a": {"x": 1}}), "nDCG@10, RR")
    assert evaluation.frame().columns == ["measure", "mean", "low", "high", "queries"]
    assert evaluation.frame()["low"].to_list() == [None, None]
    expected = ["query_id", "query", "nDCG@10", "RR", "relevant", "retrieved", "latency_ms", "failure"]
    assert evaluation.per_query().columns == expected
    judgments = judged({"q": {"a": 1, "b": 2}})
    evaluation = score_run(Run({"q": ["a", "b"]}), judgments, ["nDCG@2", "nDCG(gains={2:3})@2"])
    second = 1 / math.log2(3)
    assert evaluation.mean("nDCG@2") == pytest.approx((1 + 2 * second) / (2 + second))
    assert evaluation.mean("nDCG(gains={2:3})@2") == pytest.approx((1 + 3 * second) / (3 + second))
    alone = Judgments({}, {"a": {"x": 1}}, "qrels")
    assert score_run(Run({"a": ["x"]}), alone, ["RR"]).mean("RR") == 1
    with pytest.raises(JudgmentError, match="its text is not known"):
        make_run(lambda topic: pytest.fail("it was searched"), alone)


@pytest.mark.parametrize("used", ["doc-7", "x.jsonl#7", "7"])
def test_a_document_is_known_by_whichever_name_the_judgments_use(used):
    hit = Named("doc-7", "x.jsonl#7")
    assert document_key(hit, frozenset({used})) == used
    assert document_key(hit, frozenset()) == "x.jsonl#7"


def test_a_query_that_cannot_be_read_counts_zero_and_is_listed(corpus):
    """Also what a source could not do is said once, with the number of queries; without any source there is no figure."""
    topics = {i: Topic(i, "amber", "(" if i == "b" else None) for i in "abc"}
    asked = Judgments(topics, {i: {"corpus.jsonl#a-con": 1, "corpus.jsonl#a-pro": 1} for i in topics})
    evaluation = corpus.evaluate(asked, "default grep.regex=yes sources=keyword,vector:none", ["RR"])
    assert evaluation.mean("RR") == pytest.approx(2 / 3)
    assert [bool(f) for f in evaluation.per_query()["failure"].to_list()] == [False, True, False]
    assert evaluation.latency.p50 > 0
    assert any(w.startswith("2 of 3 queries: vector:none could not run") for w in evaluation.warnings)
    assert any("1 of 3 queries could not be run and count 0: b (" in w for w in evaluation.warnings)
    with pytest.raises(SourceUnavailable):
        corpus.evaluate(asked, "default sources=vector:none")


def test_what_the_judgments_leave_open_is_told():
    judgments = Judgments({"a": Topic("a", "t"), "z": Topic("z", "u")}, {"a": {"x": 1, "y": 0}}, "j")
    evaluation = score_run(Run({"a": ("x", "1", "2", "3")}), judgments, ["RR", "P@10"])
    assert evaluation.coverage.judged == 0.25
    assert evaluation.coverage.unjudged == 0.75
    assert evaluation.coverage.unjudged_documents == 3
    assert any("Only 25% of the first 10 documents are judged" in w for w in evaluation.warnings)
    assert "1 queries have no judgments and were left out" in evaluation.warnings
    foreign = score_run(Run({"a": ("p", "q")}), judgments, ["RR"])
    assert any("No retrieved document is named in the judgments" in w for w in foreign.warnings)
    rankings = {i: tuple(f"x{n}" for n in range(5)) for i in "abcd"}
    cut, whole = (
        score_run(Run(rankings, cut_at=at), judged({i: {"x0": 1} for i in "abcd"}), "R@5 P@10 RR") for at in (10, None)
    )
    assert "Answers end at 10 hits, which hold at most 5 documents: P@10 cannot see more" in " ".join(cut.warnings)
    assert not any("Answers end" in w for w in whole.warnings)


def test_names_of_measures_have_one_spelling():
    assert parse_measures("ndcg@10,MRR  recall@100 P(rel=2)@5") == ("nDCG@10", "RR", "R@100", "P(rel=2)@5")
    assert parse_measures(["nDCG(gains={2: 3, 3: 7})@5"]) == ("nDCG(gains={2:3,3:7})@5",)
    assert parse_measures("RR RR@10 RR") == ("RR", "RR@10")
    assert parse_measures("iprec@.1 IPrec@1.0") == ("IPrec@0.1", "IPrec@1.0")  # a share of the relevant after @
    assert score_run(Run({"a": ["y", "x"]}), judged({"a": {"x": 1}}), "IPrec@0.1").mean("IPrec@0.1") == 0.5
    for name in parse_measures("nDCG@10 RR P(rel=2)@5 nDCG(gains={2:3,3:7})@5 Success@10 Judged@10 AP@5"):
        assert str(parse_measure(name)) == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDGC@10", "Did you mean nDCG?"),
        ("nDCG@0", "whole number of at least 1"),
        ("IPrec@2", "takes no recall=2"),
        ("nDCG@ten", "cannot be read"),
        ("R", "lacks its cutoff"),
        ("P(depth=3)@5", "has no parameter depth"),
        ("NumRet", "is a count and has no mean"),
        ("", "cannot be read"),
        ("__import__('os')", "parameters are written name=value"),
        ("nDCG(dcg='exp-log2')@10", "cannot be computed here"),
    ],
)
def test_a_measure_that_is_none_is_refused_readably(text, message):
    with pytest.raises(UsageError) as caught:
        parse_measures([text])
    assert message in str(caught.value)


COPIES = {"a.md": "same text of the river\n", "c.md": "same text of the river\n\n", "z.md": "other words\n"}


@pytest.mark.slow
def test_a_judged_document_that_dedupe_removes_counts_at_the_rank_of_the_hit_that_stands_for_it(make_corpus):
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
def test_answers_that_have_no_more_to_give_are_not_called_cut(make_corpus, mode):
    corpus = make_corpus({f"{n:02}.md": f"river number{n}\n" for n in range(12)})
    judgments = judged_of({f"{n:02}.md": n % 2 for n in range(12)})
    for plan in ("rrf", "rrf limit=1000 depth.keyword=100000 depth.vector=100000"):
        assert not corpus.evaluate(judgments, plan, ["R@100"], mode=mode).warnings
    cut = corpus.evaluate(judgments, "rrf depth.keyword=3 depth.vector=3 vector.threshold=off", ["R@100"], mode=mode)
    assert any("Answers end at" in w for w in cut.warnings)


def judged_of(grades: dict[str, int]) -> Judgments:
    return Judgments({"q": Topic("q", "river")}, {"q": grades})


Make = Callable[..., wb.Corpus]
WORDS = ("gauge", "bridge", "keeper", "valley", "storm", "evening", "river", "stone")
FILES = {
    f"notes {n}.md": f"# Report {n} on the {word}\n\nThe {word} of number{n} rose while keeper{n} watched it quietly.\n"
    for n, word in enumerate(WORDS)
}


def test_the_score_decides_and_names_are_those_of_the_judgments(tmp_path):
    file = tmp_path / "other.run"
    file.write_bytes(
        b"\xef\xbb\xbfq1 Q0 b 2 7.5 bm25\r\nq1 Q0 a c.md 1 7.5 bm25\r\n\r\nq1 Q0 d 9 1e1 bm25\r\nq2 Q0 a 1 -3 bm25\r\n"
    )
    run = load_run(file)
    assert run.name == "bm25"
    assert run.rankings == {"q1": ("d", "a c.md", "b"), "q2": ("a",)}
    assert load_run(file, name="theirs").name == "theirs"
    judgments = Judgments({"q 1": Topic("q 1", "x")}, {"q 1": {"a b.md": 1, "c%20d": 1}}, "set")
    (tmp_path / "a.run").write_text(
        "q%201 Q0 own-7 1 9 x\nq%201 Q0 a%20b.md 2 8 x\nq%201 Q0 c%20d 3 7 x\nq%201 Q0 e 4 6 x\nq9 Q0 a 1 1 x\n"
    )
    run = as_judged(load_run(tmp_path / "a.run"), judgments, {"own-7": "a b.md"})
    assert run.rankings == {"q 1": ("a b.md", "c%20d", "e")}
    assert run.warnings == ("1 of 2 queries of the run are not judged and were left out",)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("q1 Q0 a 2 nan x", "score 'nan'"),
        ("q1 Q0 a first 2 x", "rank 'first'"),
        ("q1 Q0 a 1_000 2 x", "rank '1_000'"),
        ("q1 Q0 a 2 ٣ x", "score '٣'"),
        ("q1 0 a 1", "fewer than 6 fields"),
        ("q 1 Q0 a 1 2 x", "the query's id has a space"),
        ("q1 Q0 z 3 1 x", "'z' in line 1 already"),
    ],
)
def test_a_line_that_is_none_refuses_the_whole(tmp_path, line, said):
    file = tmp_path / "a.run"
    file.write_text(f"q1 Q0 z 1 9 x\n{line}\n", encoding="utf-8")
    with pytest.raises(JudgmentError, match=r"a\.run, line 2") as caught:
        load_run(file)
    assert said in caught.value.message


@pytest.mark.slow
def test_a_run_may_name_documents_otherwise_than_the_judgments(make_corpus):
    corpus = make_corpus({"a b.md": "# One\n\nA stone.\n", "more.jsonl": '{"id": "r1", "text": "the river"}\n'})
    names = {
        hit.path: tuple(filter(None, (hit.path, hit.document_id, hit.metadata.get("record_id"))))
        for hit in corpus.search("stone river", mode="keyword", plan="default keyword.operator=any").hits
    }
    assert sorted(map(len, names.values())) == [2, 3]
    for group in names.values():
        for key, other in itertools.product(group, group):
            judgments = Judgments({"q": Topic("q", "x")}, {"q": {key: 1}}, "set")
            done = corpus.evaluate_run(Run({"q": ("elsewhere", other)}, "theirs"), judgments, "RR")
            assert (key, other, done.mean("RR")) == (key, other, 0.5)


@pytest.mark.slow
def test_an_exported_run_has_the_figures_of_its_plan(make_corpus, tmp_path):
    records = "".join(json.dumps({"id": f"r{n}", "text": text}) + "\n" for n, text in enumerate(FILES.values()))
    corpus = make_corpus(FILES | {"more.jsonl": records})
    make_known_item_set(corpus.judging, corpus.engine, "known", 12)
    at = ["--corpus", str(corpus.path)]
    target = str(tmp_path / "their run.txt")
    export = ["run", "export", "known", target, "--depth", "50", "--name", "theirs", *at]
    assert CliRunner().invoke(main, export).exit_code == 0
    words = ["eval", "known", "--with-run", target, "--depth", "50", "--plan", "default limit=50", "--json", *at]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    plan, run = json.loads(done.stdout)
    assert run["plan"] == "theirs"
    assert run["measures"] == plan["measures"]
    assert plan["measures"][0]["mean"] > 0
    assert run["latency_ms"] == {"p50": None, "p95": None}
    assert run["against"]["verdict"].startswith("nDCG@10 is the same for theirs and default")
    assert "theirs" in CliRunner().invoke(main, [w for w in words if w != "--json"]).output
    corpus = make_corpus(FILES)
    make_known_item_set(corpus.judging, corpus.engine, "known", 4)
    words = ["eval", "known", "--filter", "path = 'none'", "--corpus", str(corpus.path)]
    done = CliRunner().invoke(main, [*words, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["judged@10"] is None
    assert "nan" not in CliRunner().invoke(main, words).output


TEXTS = {
    "a-pro": "Amber bridges carry cedar over the delta in spring.",
    "a-con": "Amber bridges burn, and cedar rots in the delta.",
    "b-pro": "Fjords grow groves of ember trees.",
    "b-con": "Ember trees die in fjords without groves.",
}
ANSWERS = {"a-pro": "a-con", "b-pro": "b-con"}


def beir(folder: Path, ids: dict[str, str]) -> Path:
    """A collection whose first document of each pair is the query for the other, under these ids of queries."""
    corpus = "".join(json.dumps({"_id": i, "title": f"Debate {i}", "text": t}) + "\n" for i, t in TEXTS.items())
    queries = "".join(json.dumps({"_id": q, "text": TEXTS[d]}) + "\n" for q, d in ids.items())
    qrels = "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{ANSWERS[d]}\t1\n" for q, d in ids.items())
    return write_files(folder, {"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels.tsv": qrels})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the collection `debates`, its corpus `made`, and `numbers`: the same with other ids of queries."""
    made = tmp_path_factory.mktemp("identical")
    beir(made / "debates", {i: i for i in ANSWERS})
    beir(made / "numbers", {"b-con": "a-pro", "a-con": "b-pro"})
    wb.index([made / "debates"], corpus=made / "made", encoder="hashing", workers=0)
    return made


@pytest.fixture(scope="module")
def corpus(folder: Path) -> Iterator[wb.Corpus]:
    with wb.open_corpus(folder / "made") as opened:
        yield opened


def test_every_way_to_measure_leaves_it_out_where_queries_are_documents(corpus, folder):
    judgments = wb.load_judgments(folder / "debates")
    run = folder / "other.run"
    run.write_text(
        "".join(f"{q} Q0 {d} {n} {9 - n} other\n" for q, a in ANSWERS.items() for n, d in enumerate((q, a), 1))
    )
    for drop, figure in ((None, 1.0), (True, 1.0), (False, 0.5)):
        evaluated = corpus.evaluate(judgments, "default", ["RR"], drop_identical_ids=drop)
        swept = corpus.sweep(judgments, {"fusion.alpha": [0.3, 0.8]}, "RR", 0, drop_identical_ids=drop)
        live = corpus.live(judgments, "RR", drop_identical_ids=drop)
        foreign = corpus.evaluate_run(load_run(run), judgments, ["RR"], drop_identical_ids=drop)
        assert [evaluated.mean("RR"), foreign.mean("RR"), live.figure(wb.preset("default")).mean] == [figure] * 3
        assert swept.means().tolist() == [figure] * len(swept.plans)
        for said in (evaluated.warnings, swept.warnings, foreign.warnings):
            assert any("own document" in w for w in said) is (drop is not False)
            assert any("--no-drop-identical-ids" in w for w in said) is (drop is None)
    with pytest.raises(wb.WorkbenchError, match="different judgments"):
        corpus.evaluate(judgments, drop_identical_ids=False).compare(corpus.evaluate(judgments))
    judgments = wb.load_judgments(folder / "numbers")
    plan = wb.preset("default").replace({"vector.threshold": "off"})
    plain, kept, left = (
        corpus.evaluate(judgments, plan, ["RR"], drop_identical_ids=drop) for drop in (None, False, True)
    )
    assert not any("own document" in w for w in plain.warnings)
    rankings = plain.run.rankings
    assert rankings == kept.run.rankings
    assert any(i in keys for i, keys in rankings.items())
    assert left.run.rankings == {i: tuple(k for k in keys if k != i) for i, keys in rankings.items()}


@pytest.mark.slow
def test_every_command_has_the_option(folder, monkeypatch):
    monkeypatch.setattr(measured_collections, "GRID", ("fusion.k=5,20",))
    runner, own = CliRunner(), str(folder / "debates")
    at = ["--corpus", str(folder / "made")]
    target = folder / "exported.run"
    commands = {
        "eval": ["eval", own, "--measure", "RR", *at],
        "check": ["check", own, "--measure", "RR", "--min", "RR=0.9", *at],
        "tune": ["tune", own, "-g", "fusion.alpha=0.3,0.8", "--measure", "RR", "--folds", "0", *at],
        "threshold": ["threshold", own, *at],
        "run": ["run", "export", own, str(target), *at],
        "table": [own, "--keep", str(folder), "--folds", "2", "--measure", "RR"],
    }
    wb.index([own], corpus=folder / "debates.one", encoder="hashing", workers=0, one_chunk_per_document=True)
    for name, words in commands.items():
        command = measured_collections.table if name == "table" else main
        by_itself, counted = (runner.invoke(command, [*words, *more]) for more in ([], ["--no-drop-identical-ids"]))
        assert by_itself.exit_code == 0, by_itself.output
        assert counted.exit_code == (1 if name == "check" else 0), counted.output
        assert ("own document" in by_itself.output, "own document" in counted.output) == (True, False)
        if name == "run":
            with_own = target.read_text()
            runner.invoke(main, words)
            assert [line.split()[2] for line in target.read_text().splitlines() if line.split()[3] == "1"] == [
                "a-con",
                "b-con",
            ]
            assert len(with_own.splitlines()) == len(target.read_text().splitlines()) + 2


def test_the_threshold_that_loses_at_most_a_share():
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
def test_plans_differ_most_where_their_lists_do(tmp_path):
    files = {"a.md": "red apple\n", "b.md": "red brick\n", "c.md": "blue brick\n", "d.md": "green grass\n"}
    wb.index([write_files(tmp_path / "files", files)], corpus=tmp_path / "corpus", encoder="hashing")
    with wb.open_corpus(tmp_path / "corpus") as corpus:
        asked = queries_only(["grass", "apple brick", "grass"])
        same, other = (
            wb.Plan.parse("default sources=keyword"),
            wb.Plan.parse("default sources=keyword keyword.operator=all"),
        )
        board = corpus.leaderboard(asked, [same, other])
        assert not board.judged
        assert board.frame().columns == ["plan", "p50_ms", "p95_ms"]
        frame = board.per_query(1)
        assert frame["query"].to_list() == ["apple brick", "grass"]
        assert frame["rbo"].to_list()[1] == 1.0
        assert frame["lost"].to_list()[0] == ["a.md", "b.md", "c.md"]
        assert "difference" not in frame.columns
        judged = Judgments({"q": Topic("q", "red brick")}, {"q": {"b.md": 1, "a.md": 0}})
        found = corpus.distribution(judged)
        assert [len(found.relevant), len(found.judged), len(found.others)] == [1, 1, 2]
    with pytest.raises(UsageError, match="no queries"):
        queries_only([" "])


def test_a_leaderboard_has_means_verdicts_and_the_queries_that_moved() -> None:
    """Means are those of each evaluation; p is corrected for the number of plans; lost and won are relevant documents."""
    qrels = {f"q{n}": {"right": 2, "wrong": 0} for n in range(12)}
    good = {i: ["right", "x"] for i in qrels}
    bad = {**{i: ["wrong", "right"] for i in qrels}, "q0": ["wrong", "x"]}
    asked = judged(qrels)
    runs = {"bad": bad, "good": good, "same": bad, "also good": good}
    made = tuple(score_run(Run(run, name), asked, ["nDCG@10", "P@1"]) for name, run in runs.items())
    board = Leaderboard(made)
    frame = board.frame()
    assert frame["plan"].to_list() == ["good", "also good", "bad", "same"]
    assert frame["P@1"].to_list() == [1.0, 1.0, 0.0, 0.0]
    alone, of_three = made[0].compare(made[1]), board.differences()[1]
    assert of_three is not None
    assert of_three.p == pytest.approx(min(1.0, 3 * alone.p))
    assert (of_three.wins, of_three.significant) == (12, True)
    assert board.differences()[0] is None
    assert "is the same" in str(frame["verdict"].to_list()[3])
    queries = board.per_query(1)
    assert queries["query_id"].to_list()[0] == "q0"
    assert (queries["lost"].to_list()[0], queries["won"].to_list()[0]) == ([], ["right"])
    assert queries["won"].to_list()[1] == []
    turned = board.against(1)
    assert turned.per_query(0)["difference"].to_list()[0] == -1.0
    assert [d is None for d in turned.differences("P@1")] == [False, True, False, False]


def test_measures_are_kept_over_time_for_who_saw_them(tmp_path: Path) -> None:
    """A point a kept evaluation, in the order of time, with its generation; another principal's points are not shown."""
    wb.index([write_files(tmp_path / "files", {"a.md": "red apple\n"})], corpus=tmp_path / "corpus", encoder="hashing")
    asked = Judgments({"q": Topic("q", "apple")}, {"q": {"a.md": 1}}, "fruit")
    with wb.open_corpus(tmp_path / "corpus") as corpus:
        assert len(corpus.measured()) == 0
        for plans in (["default"], ["default", "rrf"]):
            corpus.keep_evaluations(corpus.leaderboard(asked, plans, ["RR", "P@1"]).evaluations)
        kept = corpus.measured()
        assert kept["plan"].to_list() == ["default"] * 4 + ["rrf"] * 2
        assert kept["measure"].to_list() == ["RR", "P@1"] * 3
        assert kept["mean"].to_list() == [1.0] * 6
        assert set(kept["generation"]) == {corpus.generation}
        assert kept["changed"].to_list() == [False] * 6
    with wb.open_corpus(tmp_path / "corpus", wb.Principal("acme")) as other:
        assert len(other.measured()) == 0


def test_a_leaderboard_has_the_figures_of_evaluations_or_those_that_were_done(sample: wb.Corpus) -> None:
    asked = wb.load_judgments(sample_folder(), name="sample")
    plans = ["default", "rrf", "default sources=keyword limit=3", "contract"]
    board = sample.leaderboard(asked, plans, ["nDCG@10", "R@100"], baseline=1)
    for n, plan in enumerate(plans):
        alone = sample.evaluate(asked, plan, ["nDCG@10", "R@100"])
        assert board.names[n] == alone.name
        assert board.evaluations[n].values == pytest.approx(alone.values)
        assert board.evaluations[n].coverage == alone.coverage
        assert board.evaluations[n].latency.p50 > 0
    assert board.base.name == "rrf"
    seen: list[int] = []

    def stop() -> bool:
        seen.append(1)
        return len(seen) > 2

    board = sample.leaderboard(asked, plans[:2], ["RR"], stop=stop)
    assert [len(e.query_ids) for e in board.evaluations] == [3, 3]
    assert any(f"3 of {len(asked)} queries" in w for w in board.warnings)
    with pytest.raises(KeyboardInterrupt):
        sample.leaderboard(asked, plans[:1], stop=lambda: True)
    with pytest.raises(UsageError, match="no plan"):
        sample.leaderboard(asked, [])
