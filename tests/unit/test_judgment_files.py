"""Judgment files as other programs write them: odd ends of lines, separators and texts are read or refused with their line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.errors import JudgmentError
from workbench.judgments.qrels import Judgments, load_judgments

HEAD = "query_id,query,document,grade\n"


def load(folder: Path, name: str, text: str, topics: str | None = None) -> Judgments:
    (folder / name).write_text(text, encoding="utf-8", newline="")
    if topics is not None:
        (folder / "topics").write_text(topics, encoding="utf-8", newline="")
    return load_judgments(folder / name, topics=None if topics is None else folder / "topics")


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\u2029"])
def test_only_a_line_feed_ends_a_line(tmp_path: Path, mark: str) -> None:
    """A name of a document may hold what Unicode calls a line end; numbers of lines are those that an editor shows."""
    key = f"a{mark}b.md"
    assert load(tmp_path, "q.qrels", f"1 0 {key} 1\n1 0 c 0\n", "1\tone\n").qrels == {"1": {key: 1, "c": 0}}
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "one"}\n', encoding="utf-8")
    assert load(tmp_path, "q.tsv", f"1\t{key}\t1\n").qrels == {"1": {key: 1}}
    with pytest.raises(JudgmentError, match="line 2: the grade 'x'"):
        load(tmp_path, "q.qrels", f"1 0 {key} 1\n1 0 c x\n", "1\tone\n")
    assert load(tmp_path, "q.qrels", "1 0 c 1\n", f"1\tone{mark}two\n").topics["1"].text == f"one{mark}two"


def test_line_ends_of_old_spreadsheets_are_read(tmp_path: Path) -> None:
    assert load(tmp_path, "j.csv", HEAD.replace("\n", "\r") + "1,one,a,2\r1,one,b,0\r").qrels == {"1": {"a": 2, "b": 0}}


@pytest.mark.parametrize("mark", [";", "\t"])
def test_the_header_says_what_separates_the_fields(tmp_path: Path, mark: str) -> None:
    made = load(tmp_path, "j.csv", HEAD.replace(",", mark) + mark.join(("1", "one, two", "a,b", "2")) + "\n")
    assert made.topics["1"].text == "one, two"
    assert made.qrels == {"1": {"a,b": 2}}


def test_a_column_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JudgmentError, match="line 1: the header names query_id twice"):
        load(tmp_path, "j.csv", "query_id,query,document,grade,query_id\n1,one,a,2,7\n")


def test_a_field_of_any_length_is_read(tmp_path: Path) -> None:
    assert len(load(tmp_path, "j.csv", HEAD + f"1,{'word ' * 40_000},a,2\n").topics["1"].text) > 190_000


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
    """Numbers beyond reading, a name that occurs twice, half characters and control characters in query ids name their line."""
    good = json.dumps({"query_id": "2", "query": "y \U0001f600", "document": "b", "grade": 1}) + "\n"
    assert load(tmp_path, "good.jsonl", good).topics["2"].text == "y \U0001f600"
    with pytest.raises(JudgmentError, match=r"j\.jsonl, line 2: .*" + said):
        load(tmp_path, "j.jsonl", good + row + "\n")


def test_a_run_is_told_from_qrels(tmp_path: Path) -> None:
    for tag in ("bm25", "7"):
        with pytest.raises(JudgmentError, match=r"q\.qrels, line 1: this is a line of a run"):
            load(tmp_path, "q.qrels", f"1 Q0 a 1 9.25 {tag}\n", "1\tone\n")


def test_spaces_inside_a_query_id_are_one(tmp_path: Path) -> None:
    """Ids are kept with one space in query sets, so judgments of an id with two find their query."""
    rows = [{"_id": "q  1", "text": "x", "relevant": ["a"]}, {"_id": "q 2", "text": "y", "relevant": ["a"]}]
    assert set(load(tmp_path, "j.jsonl", "".join(json.dumps(r) + "\n" for r in rows)).qrels) == {"q 1", "q 2"}


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_title_beside_a_document_is_no_query(tmp_path: Path, form: str) -> None:
    row = {"query_id": "1", "document": "a.md", "title": "All about a", "grade": 1}
    text = json.dumps(row) + "\n" if form == "jsonl" else "query_id,document,title,grade\n1,a.md,All about a,1\n"
    assert load(tmp_path, f"j.{form}", text).topics == {}
    with_query = json.dumps({"_id": "1", "title": "kettle", "relevant": ["a.md"]}) + "\n"
    assert load(tmp_path, "q.jsonl", with_query).topics["1"].text == "kettle"
