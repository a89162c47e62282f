"""Judgments in and out: every form both ways, malformed files refused whole, pools and their order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import workbench as wb
from workbench.errors import JudgmentError, UsageError
from workbench.judgments import exchange
from workbench.judgments.pooling import make_pool
from workbench.judgments.query_sets import Query
from workbench.plan.plan import Plan
from workbench.records import Hit

Make = Callable[..., wb.Corpus]
FILES = {f"d{n}.md": f"# Title {n}\n\nwater kettle text number {n} {'boil ' * n}\n" for n in range(6)}
RECORDS = {
    "corpus.jsonl": "".join(json.dumps({"_id": f"R-{n}", "text": f"kettle record {n}"}) + "\n" for n in range(4))
}


@pytest.fixture
def judged(make_corpus: Make) -> wb.Corpus:
    """Two queries, passages graded by two people and a machine, one query not judged."""
    corpus = make_corpus(FILES)
    judging = corpus.judging
    judging.sets.create("tea", [Query("1", "water, kettle"), Query("2", 'boil "text"', "boil"), Query("3", "nothing")])
    queries = judging.queries("tea")
    for number, hit in enumerate(corpus.search("water", mode="keyword").hits[:4]):
        judging.grade(hit, number % 4, queries[number % 2], set="tea", judge="ann", note='said "so", twice\n')
    judging.grade(hit, 0, queries[1], set="tea", judge="machine:m")
    return corpus


@pytest.mark.slow
def test_records_go_by_their_own_ids(make_corpus: Make, tmp_path: Path) -> None:
    """Imported by id, found in the corpus, exported by id; an id that the corpus lacks is kept and told."""
    corpus = make_corpus(RECORDS)
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\tR-1\t2\nq\tR-9\t1\nq\tR-0\t0\n")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "kettle record"}\n')
    report = exchange.import_judgments(corpus.judging, tmp_path, "r")
    assert (report.new, report.unknown) == (3, ("R-9",))
    assert corpus.judgments("r").qrels == {"q": {"corpus.jsonl#R-0": 0, "corpus.jsonl#R-1": 2}}
    assert corpus.evaluate(corpus.judgments("r"), "default", ["R@10"]).mean("R@10") == 1.0
    exchange.export_judgments(corpus.judging, "r", tmp_path / "out", "beir")
    assert (tmp_path / "out/qrels/test.tsv").read_text() == "query-id\tcorpus-id\tscore\nq\tR-0\t0\nq\tR-1\t2\n"
    assert [x.stale for x in corpus.judging.located("r")] == [False, True, False]


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("x.csv", "query_id,query,document,grade,judge\n1,q,a.md,2,ann\n1,q,b.md,high,ann\n", "line 3"),
        (
            "x.jsonl",
            '{"query_id": "1", "query": "q", "document": "a", "grade": 1, "judge": "x"}\n{nonsense\n',
            "line 2",
        ),
        ("x.csv", "query_id,query,document,grade,start,end,quote\n1,q,a.md,2,9,3,abc\n1,q,a.md,2,-1,3,abc\n", "line 2"),
        ("x.csv", "query_id,query,document,grade,judge,time\n1,q,a.md,2,ann,yesterday\n", "line 2.*yesterday"),
        ("qrels.txt", "1 0 a.md 2\n1 0 b.md\n", "line 2"),
        ("x.jsonl", '{"query_id": "1", "document": "a", "grade": 1, "judge": "x"}\n', "text is not known"),
    ],
)
def test_a_bad_line_imports_nothing(make_corpus: Make, tmp_path: Path, name: str, text: str, lines: str) -> None:
    corpus = make_corpus(FILES)
    (tmp_path / name).write_text(text)
    with pytest.raises(JudgmentError, match=lines):
        exchange.import_judgments(corpus.judging, tmp_path / name, "bad")
    assert corpus.judging.overview() == ()


def test_an_id_with_another_text_is_refused(judged: wb.Corpus, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("query_id,query,document,grade\n9,new,d1.md,1\n1,other words,d1.md,1\n")
    with pytest.raises(JudgmentError, match="another text"):
        exchange.import_judgments(judged.judging, tmp_path / "x.csv", "tea")
    assert len(judged.judging.queries("tea")) == 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.txt", "how to boil water\n\n  kettle   water \n"),
        ("q.csv", "query,keywords\nhow to boil water,\nkettle water,\n"),
        ("q.jsonl", '{"text": "how to boil water"}\n{"question": "kettle water"}\n'),
    ],
)
def test_queries_are_read(make_corpus: Make, tmp_path: Path, name: str, text: str) -> None:
    judging = make_corpus(FILES).judging
    (tmp_path / name).write_text(text)
    assert exchange.import_queries(judging, tmp_path / name, "q") == (2, 2)
    assert exchange.import_queries(judging, tmp_path / name, "q") == (2, 0)
    assert [q.text for q in judging.queries("q")] == ["how to boil water", "kettle water"]
    (tmp_path / "bad.csv").write_text("query,query_id\n,1\nx,2\n")
    with pytest.raises(JudgmentError, match=r"line 2.*no text"):
        exchange.import_queries(judging, tmp_path / "bad.csv", "bad")


def _search(corpus: wb.Corpus) -> Callable[[Query, Plan, int], tuple[Hit, ...]]:
    return lambda query, plan, depth: corpus.search(query.text, keywords=query.keywords, plan=plan, limit=depth).hits


def test_a_pool_is_the_union_and_its_order_is_the_judges_own(judged: wb.Corpus) -> None:
    """Every plan's first results once; the same order each time, another for another judge, seed or query."""
    judging, plans = judged.judging, ["default", "default sources=vector", "default sources=keyword keyword.b=0"]
    queries = judging.queries("tea")[:2]
    pool = make_pool(_search(judged), judging, queries, plans, 3)
    for query in queries:
        wanted = {h.chunk_id for p in plans for h in judged.search(query.text, plan=p, limit=3).hits}
        assert {c.chunk_id for c in pool.candidates[query.query_id]} == wanted
    mine = pool.order("1", "ann")
    assert pool.order("1", "ann") == mine
    assert sorted(c.chunk_id for c in mine) == sorted(c.chunk_id for c in pool.order("1", "bob"))
    orders = {pool.order("1", judge, seed) for judge in ("ann", "bob", "cleo") for seed in range(3)}
    assert len(orders) > 1
    with pytest.raises(UsageError, match="at least one plan"):
        make_pool(_search(judged), judging, queries, [], 3)


def test_what_one_plan_cannot_read_is_listed(judged: wb.Corpus) -> None:
    queries = [Query("x", "water", "("), Query("y", "water")]
    pool = make_pool(_search(judged), judged.judging, queries, ["grep.regex=yes"], 3)
    assert list(pool.failures) == ["x"]
    assert pool.candidates["x"] == ()
    assert len(pool.candidates["y"]) == 3


def test_a_set_has_a_query_and_can_be_added_to_renamed_and_removed(make_corpus: Make, tmp_path: Path) -> None:
    """A set without queries is refused and leaves its name free; names are checked wherever a set is made or renamed."""
    judging = make_corpus(FILES).judging
    sets = judging.sets
    for make in (lambda: sets.create("tea", []), lambda: sets.add("tea", [], make=True)):
        with pytest.raises(JudgmentError, match="'tea' would have no queries"):
            make()
    with pytest.raises(JudgmentError, match="There is no query set 'tea'"):
        sets.add("tea", ["hot water"])
    assert sets.names() == ()
    assert sets.create(" tea  time ", ["hot water"]) == "tea time"
    assert sets.add("tea time", ["hot water", "kettle"]) == 1
    sets.create("other", ["x"])
    with pytest.raises(JudgmentError, match="There is a query set 'other' already"):
        sets.rename("tea time", "other")
    (tmp_path / "q.txt").write_text("kettle\n", encoding="utf-8")
    for bad, said in ((" ", "needs a name"), ("x" * 101, "The name has 101 characters")):
        with pytest.raises(JudgmentError, match=said):
            sets.rename("tea time", bad)
        with pytest.raises(JudgmentError, match=said):
            exchange.import_queries(judging, tmp_path / "q.txt", bad)
    assert sets.rename("tea time", "coffee") == "coffee"
    sets.remove("other")
    assert [(s.name, s.queries) for s in judging.overview()] == [("coffee", 2)]


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
def test_a_time_outside_the_calendar_is_refused_with_its_line(make_corpus: Make, tmp_path: Path, time: str) -> None:
    corpus = make_corpus(FILES)
    row = {"query_id": "1", "query": "water", "document": "d1.md", "grade": 1, "judge": "ann", "time": time}
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(JudgmentError, match=r"t\.jsonl, line 1: the time"):
        exchange.import_judgments(corpus.judging, tmp_path / "t.jsonl")
    assert corpus.judging.sets.names() == ()


def test_a_set_whose_judged_documents_are_gone_says_so(make_corpus: Make, tmp_path: Path) -> None:
    corpus = make_corpus(FILES)
    row = {"query_id": "1", "query": "water", "document": "elsewhere.md", "grade": 1}
    (tmp_path / "gone.jsonl").write_text(json.dumps(row) + "\n")
    exchange.import_judgments(corpus.judging, tmp_path / "gone.jsonl")
    with pytest.raises(JudgmentError, match=r"all of documents or passages that are not in the corpus now \(elsewhere"):
        corpus.judgments("gone")
