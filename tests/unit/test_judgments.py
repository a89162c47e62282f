"""Judgments: every form reads to the same record, and a malformed line is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.errors import JudgmentError
from workbench.judgments.qrels import Judgments, Topic, load_judgments

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


def test_keywords_are_read_where_the_form_has_them(tmp_path: Path) -> None:
    topics = forms(tmp_path)["beir folder"].topics
    assert topics == {"q1": Topic("q1", "blue kettle"), "q2": Topic("q2", "red door", "red door")}


MALFORMED = [
    ("qrels.tsv", "q1\ta\t1\nq1\tb\n", "qrels.tsv, line 2: there are 2 fields"),
    ("qrels.tsv", "q1\ta\thigh\n", "qrels.tsv, line 1: the grade 'high' is not a whole number"),
    ("qrels.tsv", "q1\ta\t1\nq1\tb\t0.5\n", "line 2: the grade '0.5'"),
    ("qrels.tsv", "q1\ta\t1_0\n", "line 1: the grade '1_0'"),
    ("qrels.tsv", "q1\ta\t101\n", "from -100 to 100"),
    ("qrels.tsv", "q1\t\t1\n", "line 1: the query id or the document is empty"),
    ("qrels.tsv", "q1\ta\t1\nq1\ta\t2\n", "line 2: 'q1' and 'a' had grade 1 in line 1"),
    ("qrels.tsv", "query-id\tcorpus-id\tcode\nq1\ta\t1\n", "line 1: the third column is called 'code', not score"),
    ("qrels.tsv", "query-id\tcorpus-id\tscore\n", "holds no judgments"),
    ("qrels.tsv", "", "holds no judgments"),
    ("qrels.txt", "q1 0 a\n", "qrels.txt, line 1: there are fewer than 4 fields"),
    ("qrels.txt", "q1 0 a 1\nq1 0 b x\n", "qrels.txt, line 2: the grade 'x'"),
    ("j.csv", "query_id,grade\nq1,1\n", "j.csv, line 1: the header has no column document"),
    ("j.csv", "query_id,document,grade\nq1,a,1,9\n", "j.csv, line 2: there are 4 fields under 3 columns"),
    ("j.csv", 'query_id,document,grade\nq1,"a,1\n', "j.csv, line 2: this is not CSV"),
    ("j.csv", "query_id,query,document,grade\nq1,x,a,1\nq1,y,b,1\n", "line 3: query 'q1' was given before"),
    ("j.jsonl", '{"query_id": "q1", "path": "a", "grade": 1}\n{oops\n', "j.jsonl, line 2: this is not JSON"),
    ("j.jsonl", "[1]\n", "j.jsonl, line 1: this is not a JSON object"),
    ("j.jsonl", "[" * 100_000 + "\n", "j.jsonl, line 1: this is not JSON"),
    ("j.jsonl", '{"query_id": "q1", "path": "a", "grade": true}\n', "line 1: the grade True"),
    ("j.jsonl", '{"_id": "q1", "text": "t", "relevant": []}\n', "line 1: relevant is neither"),
    ("j.jsonl", '{"_id": "q1", "text": "", "relevant": ["a"]}\n', "line 1: query 'q1' has no text"),
]


@pytest.mark.parametrize(("name", "text", "message"), MALFORMED)
def test_a_malformed_line_is_refused_with_file_and_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    write(tmp_path, {name: text})
    with pytest.raises(JudgmentError) as caught:
        load_judgments(tmp_path / name)
    assert message in str(caught.value)


def test_all_bad_lines_are_counted_and_the_first_five_shown(tmp_path: Path) -> None:
    write(tmp_path, {"qrels.tsv": "bad\n" * 9})
    with pytest.raises(JudgmentError) as caught:
        load_judgments(tmp_path / "qrels.tsv")
    assert "line 5" in str(caught.value)
    assert "line 6" not in str(caught.value)
    assert "and 4 more" in str(caught.value)


def test_a_judged_query_that_the_queries_lack_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"queries.jsonl": QUERIES, "qrels.tsv": "q1\ta\t1\nq9\ta\t1\nq9\tb\t1\n"})
    with pytest.raises(JudgmentError, match=r"qrels.tsv, line 2: query 'q9' is not among the queries\. "):
        load_judgments(tmp_path)


def test_bytes_that_are_not_utf8_are_refused_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "qrels.tsv").write_bytes(b"q1\ta\t1\nq1\t\xff\t1\n")
    with pytest.raises(JudgmentError, match=r"line 2: this is not UTF-8"):
        load_judgments(tmp_path / "qrels.tsv")


def test_splits_are_chosen_by_name_and_unknown_ones_refused(tmp_path: Path) -> None:
    """`split` picks qrels (and queries) of that name; several without a choice are refused with their names."""
    write(tmp_path, {"queries.jsonl": QUERIES, "qrels/dev.tsv": "q1\tz\t1\n", "qrels/train.tsv": "q2\ty\t1\n"})
    assert load_judgments(tmp_path, split="dev").qrels == {"q1": {"z": 1}}
    assert load_judgments(tmp_path, split="dev").name == f"{tmp_path.name} (dev)"
    with pytest.raises(JudgmentError, match="Choose one with split=: dev, train"):
        load_judgments(tmp_path)
    with pytest.raises(JudgmentError, match=r"no split 'test'\. Its splits are: dev, train"):
        load_judgments(tmp_path, split="test")


def test_places_without_judgments_are_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(JudgmentError, match="no judgments at"):
        load_judgments(tmp_path / "missing")
    with pytest.raises(JudgmentError, match=r"holds no qrels. It should have qrels.tsv"):
        load_judgments(tmp_path)


def test_keys_are_nfc_and_repeated_lines_are_counted(tmp_path: Path) -> None:
    write(tmp_path, {"qrels.tsv": "q1\tcafe\u0301.md\t1\nq1\tcaf\u00e9.md\t1\n"})
    judgments = load_judgments(tmp_path / "qrels.tsv")
    assert judgments.qrels == {"q1": {"caf\u00e9.md": 1}}
    assert judgments.notes == ("1 lines repeat an earlier judgment with the same grade",)


def test_the_digest_ignores_order_and_form_and_sees_content(tmp_path: Path) -> None:
    first = Judgments({"a": Topic("a", "x"), "b": Topic("b", "y")}, {"a": {"1": 1, "2": 0}, "b": {"3": 1}})
    same = Judgments({"b": Topic("b", "y"), "a": Topic("a", "x")}, {"b": {"3": 1}, "a": {"2": 0, "1": 1}})
    assert first.digest == same.digest
    assert first.digest != Judgments(first.topics, {"a": {"1": 2, "2": 0}, "b": {"3": 1}}).digest
    assert first.digest != Judgments({**first.topics, "a": Topic("a", "z")}, first.qrels).digest


def test_a_subset_keeps_the_order_of_the_whole_and_refuses_unknown_queries() -> None:
    whole = Judgments({i: Topic(i, i) for i in "abc"}, {i: {"d": 1} for i in "cab"}, "w")
    assert whole.query_ids == ("a", "b", "c")
    assert whole.subset(["c", "a"]).query_ids == ("a", "c")
    with pytest.raises(JudgmentError, match="no judgments for query 'z'"):
        whole.subset(["z"])
