"""Judgments: every form reads to the same record, and a malformed line is refused with its place."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import workbench as wb
from workbench.errors import JudgmentError, UsageError
from workbench.judgments import exchange
from workbench.judgments.pooling import make_pool
from workbench.judgments.qrels import Judgments, Topic, load_judgments
from workbench.judgments.query_sets import Query
from workbench.plan.plan import Plan
from workbench.records import Hit

QUERIES = '{"_id": "q1", "text": "blue kettle"}\n{"_id": "q2", "text": "red door", "keywords": ["red", "door"]}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\tdocs/a.md\t2\nq1\tdocs/b c.md\t0\nq2\tx#7\t1\n"
GRADES = {"q1": {"docs/a.md": 2, "docs/b c.md": 0}, "q2": {"x#7": 1}}
TEXTS = {"q1": "blue kettle", "q2": "red door"}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")
    return folder


def forms(folder: Path) -> dict[str, Judgments]:
    write(folder, {"beir/queries.jsonl": QUERIES, "beir/qrels.tsv": QRELS})
    write(folder, {"split/queries.jsonl": QUERIES, "split/qrels/test.tsv": QRELS, "split/qrels/dev.tsv": "q1\tz\t1\n"})
    write(folder, {"windows/queries.jsonl": "\ufeff" + QUERIES, "windows/qrels.tsv": QRELS.replace("\n", "\r\n")})
    trec = "q1 0 docs/a.md 2\nq1 0 docs/b c.md 0\n\nq2 Q0 x#7 1\n"
    topics = "<top>\n<num> Number: q1\n<title> blue\n kettle\n<desc> Description:\nno\n</top>\n<top><num>q2<title>red door</top>"
    write(folder, {"trec/qrels.txt": trec, "trec/topics.txt": topics, "topics.tsv": "q1\tblue kettle\nq2\tred door\n"})
    rows = [
        ("q1", "blue kettle", "docs/a.md", 2),
        ("q1", "blue kettle", "docs/b c.md", 0),
        ("q2", "red door", "x#7", 1),
    ]
    table = "query_id,query,document,grade\n" + "".join(",".join(map(str, r)) + "\n" for r in rows)
    lines = "".join(json.dumps(dict(zip(("query_id", "query", "path", "score"), r, strict=True))) + "\n" for r in rows)
    nested = "".join(json.dumps({"_id": i, "text": TEXTS[i], "relevant": g}) + "\n" for i, g in GRADES.items())
    write(folder, {"j.csv": table, "lines.jsonl": lines, "nested.jsonl": nested})
    return {
        "beir folder": load_judgments(folder / "beir"),
        "beir file": load_judgments(folder / "beir" / "qrels.tsv"),
        "qrels folder": load_judgments(folder / "split"),
        "named split": load_judgments(folder / "split", split="test"),
        "byte order mark and CRLF": load_judgments(folder / "windows"),
        "trec folder": load_judgments(folder / "trec"),
        "trec file, tab topics": load_judgments(folder / "trec" / "qrels.txt", topics=folder / "topics.tsv"),
        "csv": load_judgments(folder / "j.csv"),
        "jsonl, a judgment a line": load_judgments(folder / "lines.jsonl"),
        "jsonl, a query a line": load_judgments(folder / "nested.jsonl"),
    }


def test_every_form_reads_to_the_same_judgments(tmp_path: Path) -> None:
    for form, judgments in forms(tmp_path).items():
        assert judgments.qrels == GRADES, form
        assert {i: t.text for i, t in judgments.topics.items()} == TEXTS, form
        assert judgments.query_ids == ("q1", "q2"), form
    topics = forms(tmp_path)["beir folder"].topics
    assert topics == {"q1": Topic("q1", "blue kettle"), "q2": Topic("q2", "red door", "red door")}


MALFORMED = [
    ("qrels.tsv", "q1\ta\t1\nq1\tb\n", "qrels.tsv, line 2: there are 2 fields"),
    ("qrels.tsv", "q1\ta\thigh\n", "qrels.tsv, line 1: the grade 'high' is not a whole number"),
    ("qrels.tsv", "q1\ta\t101\n", "from -100 to 100"),
    ("qrels.tsv", "q1\t\t1\n", "line 1: the query id or the document is empty"),
    ("qrels.tsv", "q1\ta\t1\nq1\ta\t2\n", "line 2: 'q1' and 'a' had grade 1 in line 1"),
    ("qrels.tsv", "query-id\tcorpus-id\tcode\nq1\ta\t1\n", "line 1: the third column is called 'code', not score"),
    ("qrels.tsv", "query-id\tcorpus-id\tscore\n", "holds no judgments"),
    ("qrels.txt", "q1 0 a\n", "qrels.txt, line 1: there are fewer than 4 fields"),
    ("j.csv", "query_id,grade\nq1,1\n", "j.csv, line 1: the header has no column document"),
    ("j.csv", "query_id,document,grade\nq1,a,1,9\n", "j.csv, line 2: there are 4 fields under 3 columns"),
    ("j.csv", 'query_id,document,grade\nq1,"a,1\n', "j.csv, line 2: this is not CSV"),
    ("j.csv", "query_id,query,document,grade\nq1,x,a,1\nq1,y,b,1\n", "line 3: query 'q1' was given before"),
    ("j.jsonl", '{"query_id": "q1", "path": "a", "grade": 1}\n{oops\n', "j.jsonl, line 2: this is not JSON"),
    ("j.jsonl", "[1]\n", "j.jsonl, line 1: this is not a JSON object"),
    ("j.jsonl", '{"_id": "q1", "text": "t", "relevant": []}\n', "line 1: relevant is neither"),
]


@pytest.mark.parametrize(("name", "text", "message"), MALFORMED)
def test_a_malformed_line_is_refused_with_file_and_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    write(tmp_path, {name: text})
    with pytest.raises(JudgmentError) as caught:
        load_judgments(tmp_path / name)
    assert message in str(caught.value)


def test_splits_are_chosen_by_name_and_unknown_ones_refused(tmp_path: Path) -> None:
    write(tmp_path, {"queries.jsonl": QUERIES, "qrels/dev.tsv": "q1\tz\t1\n", "qrels/train.tsv": "q2\ty\t1\n"})
    assert load_judgments(tmp_path, split="dev").qrels == {"q1": {"z": 1}}
    assert load_judgments(tmp_path, split="dev").name == f"{tmp_path.name} (dev)"
    with pytest.raises(JudgmentError, match="Choose one with split=: dev, train"):
        load_judgments(tmp_path)
    with pytest.raises(JudgmentError, match=r"no split 'test'\. Its splits are: dev, train"):
        load_judgments(tmp_path, split="test")


def test_what_cannot_be_read_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(JudgmentError, match="no judgments at"):
        load_judgments(tmp_path / "missing")
    with pytest.raises(JudgmentError, match=r"holds no qrels. It should have qrels.tsv"):
        load_judgments(tmp_path)
    write(tmp_path, {"qrels.tsv": "bad\n" * 9})
    with pytest.raises(JudgmentError) as caught:
        load_judgments(tmp_path / "qrels.tsv")
    assert "line 5" in str(caught.value)
    assert "line 6" not in str(caught.value)
    assert "and 4 more" in str(caught.value)
    (tmp_path / "qrels.tsv").write_bytes(b"q1\ta\t1\nq1\t\xff\t1\n")
    with pytest.raises(JudgmentError, match=r"line 2: this is not UTF-8"):
        load_judgments(tmp_path / "qrels.tsv")
    with pytest.raises(JudgmentError, match="line 1: the header names query_id twice"):
        load(tmp_path, "j.csv", "query_id,query,document,grade,query_id\n1,one,a,2,7\n")
    assert len(load(tmp_path, "j.csv", HEAD + f"1,{'word ' * 40_000},a,2\n").topics["1"].text) > 190_000
    for tag in ("bm25", "7"):
        with pytest.raises(JudgmentError, match=r"q\.qrels, line 1: this is a line of a run"):
            load(tmp_path, "q.qrels", f"1 Q0 a 1 9.25 {tag}\n", "1\tone\n")
    write(tmp_path, {"queries.jsonl": QUERIES, "qrels.tsv": "q1\ta\t1\nq9\ta\t1\nq9\tb\t1\n"})
    with pytest.raises(JudgmentError, match=r"qrels.tsv, line 2: query 'q9' is not among the queries\. "):
        load_judgments(tmp_path)


def test_digests_and_subsets_do_not_depend_on_order(tmp_path: Path) -> None:
    first = Judgments({"a": Topic("a", "x"), "b": Topic("b", "y")}, {"a": {"1": 1, "2": 0}, "b": {"3": 1}})
    same = Judgments({"b": Topic("b", "y"), "a": Topic("a", "x")}, {"b": {"3": 1}, "a": {"2": 0, "1": 1}})
    assert first.digest == same.digest
    assert first.digest != Judgments(first.topics, {"a": {"1": 2, "2": 0}, "b": {"3": 1}}).digest
    assert first.digest != Judgments({**first.topics, "a": Topic("a", "z")}, first.qrels).digest
    whole = Judgments({i: Topic(i, i) for i in "abc"}, {i: {"d": 1} for i in "cab"}, "w")
    assert whole.query_ids == ("a", "b", "c")
    assert whole.subset(["c", "a"]).query_ids == ("a", "c")
    with pytest.raises(JudgmentError, match="no judgments for query 'z'"):
        whole.subset(["z"])


# --- judgment files --------------------------------------------------------------------------------------------------


HEAD = "query_id,query,document,grade\n"


def load(folder: Path, name: str, text: str, topics: str | None = None) -> Judgments:
    (folder / name).write_text(text, encoding="utf-8", newline="")
    if topics is not None:
        (folder / "topics").write_text(topics, encoding="utf-8", newline="")
    return load_judgments(folder / name, topics=None if topics is None else folder / "topics")


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\u2029"])
def test_only_a_line_feed_ends_a_line(tmp_path: Path, mark: str) -> None:
    key = f"a{mark}b.md"
    assert load(tmp_path, "q.qrels", f"1 0 {key} 1\n1 0 c 0\n", "1\tone\n").qrels == {"1": {key: 1, "c": 0}}
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "one"}\n', encoding="utf-8")
    assert load(tmp_path, "q.tsv", f"1\t{key}\t1\n").qrels == {"1": {key: 1}}
    with pytest.raises(JudgmentError, match="line 2: the grade 'x'"):
        load(tmp_path, "q.qrels", f"1 0 {key} 1\n1 0 c x\n", "1\tone\n")
    assert load(tmp_path, "q.qrels", "1 0 c 1\n", f"1\tone{mark}two\n").topics["1"].text == f"one{mark}two"


@pytest.mark.parametrize("mark", [";", "\t"])
def test_the_header_says_what_separates_the_fields(tmp_path: Path, mark: str) -> None:
    made = load(tmp_path, "j.csv", HEAD.replace(",", mark) + mark.join(("1", "one, two", "a,b", "2")) + "\n")
    assert made.topics["1"].text == "one, two"
    assert made.qrels == {"1": {"a,b": 2}}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"query_id": "1", "query": "x", "document": "a", "grade": ' + "1" * 5000 + "}", "not JSON: Exceeds the limit"),
        ('{"_id": "1", "text": "x", "relevant": {"a": 1, "a": 0}}', "'a' occurs twice in one object"),
        ('{"query_id": "1", "query": "x", "document": "a", "grade": 1, "grade": 2}', "'grade' occurs twice"),
        ('{"query_id": "1", "query": "\\ud800", "document": "a", "grade": 1}', "half of a character"),
        ('{"query_id": "1\\u0000", "query": "x", "document": "a", "grade": 1}', "has a control character"),
    ],
)  # fmt: skip
def test_json_that_would_lose_or_break_something_is_refused_with_its_line(tmp_path: Path, row: str, said: str) -> None:
    good = json.dumps({"query_id": "2", "query": "y \U0001f600", "document": "b", "grade": 1}) + "\n"
    assert load(tmp_path, "good.jsonl", good).topics["2"].text == "y \U0001f600"
    with pytest.raises(JudgmentError, match=r"j\.jsonl, line 2: .*" + said):
        load(tmp_path, "j.jsonl", good + row + "\n")


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_title_beside_a_document_is_no_query(tmp_path: Path, form: str) -> None:
    row = {"query_id": "1", "document": "a.md", "title": "All about a", "grade": 1}
    text = json.dumps(row) + "\n" if form == "jsonl" else "query_id,document,title,grade\n1,a.md,All about a,1\n"
    assert load(tmp_path, f"j.{form}", text).topics == {}
    with_query = json.dumps({"_id": "1", "title": "kettle", "relevant": ["a.md"]}) + "\n"
    assert load(tmp_path, "q.jsonl", with_query).topics["1"].text == "kettle"


# --- judgments exchange ----------------------------------------------------------------------------------------------


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
def test_records_go_by_their_own_ids_and_gone_documents_are_named(make_corpus: Make, tmp_path: Path) -> None:
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
    corpus = make_corpus(FILES)
    row = {"query_id": "1", "query": "water", "document": "elsewhere.md", "grade": 1}
    (tmp_path / "gone.jsonl").write_text(json.dumps(row) + "\n")
    exchange.import_judgments(corpus.judging, tmp_path / "gone.jsonl")
    with pytest.raises(JudgmentError, match=r"all of documents or passages that are not in the corpus now \(elsewhere"):
        corpus.judgments("gone")


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


def test_a_pool_is_the_union_and_its_order_is_the_judges_own(judged: wb.Corpus, tmp_path: Path) -> None:
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
    queries = [Query("x", "water", "("), Query("y", "water")]
    pool = make_pool(_search(judged), judged.judging, queries, ["grep.regex=yes"], 3)
    assert list(pool.failures) == ["x"]
    assert pool.candidates["x"] == ()
    assert len(pool.candidates["y"]) == 3
    (tmp_path / "x.csv").write_text("query_id,query,document,grade\n9,new,d1.md,1\n1,other words,d1.md,1\n")
    with pytest.raises(JudgmentError, match="another text"):
        exchange.import_judgments(judged.judging, tmp_path / "x.csv", "tea")
    assert len(judged.judging.queries("tea")) == 3


def test_a_set_has_a_query_and_can_be_added_to_renamed_and_removed(make_corpus: Make, tmp_path: Path) -> None:
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
    number = sets.remove("other")
    assert [(s.name, s.queries) for s in judging.overview()] == [("coffee", 2)]
    sets.restore(number)
    assert sets.names() == ("other", "coffee")
    sets.describe("coffee", judging.query("coffee", "kettle").query_id, " what it costs ")
    assert [q.need for q in judging.queries("coffee")] == ["", "what it costs"]
    sets.set_grade_texts("coffee", ["off topic", "", "part: some of it"])
    assert sets.grade_texts("coffee") == ("off topic", "related", "part: some of it", "answers it")
    for wrong, said in (
        (lambda: sets.describe("coffee", "q9", "x"), "no query 'q9'"),
        (lambda: sets.set_grade_texts("coffee", ["x"] * 5), "These are 5 texts"),
    ):
        with pytest.raises(JudgmentError, match=said):
            wrong()


@pytest.mark.parametrize("form", exchange.FORMATS)
def test_a_set_goes_out_as_one_file_and_comes_in_again(judged: wb.Corpus, tmp_path: Path, form: str) -> None:
    """Of passages the own forms, with needs; the others of documents."""
    judging = judged.judging
    judging.sets.describe("tea", "1", "how much water")
    name, data = exchange.export_name("tea", form), exchange.exported(judging, "tea", form)
    (tmp_path / name).write_bytes(data)
    assert exchange.import_files(judging, [tmp_path / name], "again").startswith("again: ")
    own = form in ("jsonl", "csv")
    again, before = judged.judgments("again"), judged.judgments("tea", documents=not own)
    graded = [sorted(sorted(grades.items()) for grades in j.qrels.values()) for j in (again, before)]
    assert graded[0] == graded[1]
    assert [q.need for q in judging.queries("again")][:1] == (["how much water"] if own else [""])
    if form == "quepid":
        assert data.decode().startswith('query,docid,rating\n"water, kettle",')
        assert again.topics.keys() == {q.query_id for q in judging.queries("again")}
    if form == "trec":
        topic = ("<num> Number: 7", "<title> water", "<desc> Description:\nHow\nmuch", "<narr> Narrative: in a pot")
        topics = "\n".join(("<top>", *topic, "<e-note lang='en'>none", "</top>"))
        (tmp_path / "topics.txt").write_text(topics, encoding="utf-8")
        exchange.import_files(judging, [tmp_path / "topics.txt"], "topics")
        assert [(q.text, q.need) for q in judging.queries("topics")] == [("water", "How much\nin a pot")]
        with zipfile.ZipFile(tmp_path / name) as archive:
            parts = [Path(archive.extract(part, tmp_path)) for part in archive.namelist()]
        assert len(parts) == 2
        exchange.import_files(judging, parts[::-1], "two files")
        assert judged.judgments("two files").qrels == again.qrels
        with pytest.raises(JudgmentError, match="not clear what these files are"):
            exchange.import_files(judging, [*parts, tmp_path / name], "three")
    (tmp_path / "bad.zip").write_bytes(b"no archive")
    with pytest.raises(JudgmentError, match="cannot be unpacked"):
        exchange.import_files(judging, [tmp_path / "bad.zip"], "bad")
