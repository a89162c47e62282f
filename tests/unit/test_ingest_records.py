"""JSONL and BEIR: one document a record, bad lines by number, ids that judgments find again."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from ingest_cases import count_words, cut_file, documents, found, problems, write

from workbench.ingest import FileRules, Problem, ReadDocument, ReadError, read_documents
from workbench.reports import FileStatus


def jsonl(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def test_a_record_keeps_what_it_says(tmp_path: Path) -> None:
    record = {
        "id": 7, "title": "A  title", "text": "line\r\nline", "created_at": "2024-05-31T12:00:00+02:00", "url": "https://x.test",
        "path": "mail\\inbox/e\u0301.txt", "collection": "memory", "year": 2024, "metadata": {"a": [1]}, "language": "en",
    }  # fmt: skip
    (item,) = read_documents(found(write(tmp_path, {"m.jsonl": jsonl(record)}) / "m.jsonl"), FileRules())
    assert isinstance(item, ReadDocument)
    document = item.document
    assert (document.text, document.title, document.url) == ("line\nline", "A title", "https://x.test")
    assert (document.path, document.type, document.language) == ("mail/inbox/é.txt", "record", "en")
    assert document.modified == datetime(2024, 5, 31, 10, tzinfo=UTC)
    assert document.metadata == {"a": [1], "year": 2024, "created_at": record["created_at"], "record_id": "7"}
    assert item.collections == ("memory",)


def test_bad_lines_are_reported_by_number_and_the_good_ones_read(tmp_path: Path) -> None:
    lines = [
        '{"id": "a", "text": "one"}', "{broken", "", "[1]",
        '{"id": "b"}', '{"id": "c", "text": 7}', '{"id": "a", "text": "again"}',
        '{"id": 1.5, "text": "x"}', '{"id": "d", "text": "x", "created_at": "soon"}',
        '{"id": "e", "text": "x", "collection": "a,b"}',
        '{"id": "f", "text": "  "}', '{"id": "z", "text": "last \\ud800"}',
    ]  # fmt: skip
    file = write(tmp_path, {"r.jsonl": "\n".join(lines).encode() + b'\n{"id": "g", "text": "\xff"}\n'}) / "r.jsonl"
    assert [d.text for d in documents(file)] == ["one", "last \ufffd"]
    assert [p.line for p in problems(file)] == [2, 4, 5, 6, 7, 8, 9, 10, 11, 13]
    assert all(p.reason and p.remedy for p in problems(file))


def test_a_file_without_records_fails_as_a_whole(tmp_path: Path) -> None:
    for lines in (3, 50):
        file = write(tmp_path, {"x.jsonl": "plain words\n" * lines}) / "x.jsonl"
        with pytest.raises(ReadError, match="None of its") as caught:
            documents(file)
        assert caught.value.status is FileStatus.FAILED


def test_thousands_of_bad_lines_are_summed_up(tmp_path: Path) -> None:
    file = write(tmp_path, {"x.jsonl": '{"text": "good"}\n' + "bad\n" * 250}) / "x.jsonl"
    found_problems = problems(file)
    assert len(found_problems) == 101
    assert found_problems[-1].reason.startswith("150 more lines")


def test_records_without_ids_are_known_by_what_they_hold(tmp_path: Path) -> None:
    a, b = {"text": "a"}, {"text": "b"}
    write(tmp_path, {"r.jsonl": jsonl(a, b)})
    before = {d.text: d.document_id for d in documents(tmp_path / "r.jsonl")}
    write(tmp_path, {"r.jsonl": jsonl(b, a, a)})
    assert {d.text: d.document_id for d in documents(tmp_path / "r.jsonl")} == before
    assert "earlier line" in problems(tmp_path / "r.jsonl")[0].reason


def test_equal_record_ids_in_two_files_stay_two_documents(tmp_path: Path) -> None:
    write(tmp_path, {"a.jsonl": jsonl({"id": "1", "text": "x"}), "b.jsonl": jsonl({"id": "1", "text": "x"})})
    (one,), (two,) = documents(tmp_path / "a.jsonl"), documents(tmp_path / "b.jsonl")
    assert one.document_id != two.document_id
    assert (one.path, two.path) == ("a.jsonl#1", "b.jsonl#1")
    assert one.metadata["record_id"] == two.metadata["record_id"] == "1"


def test_records_that_share_a_path_have_different_chunks(tmp_path: Path) -> None:
    records = [{"id": n, "text": "the same", "path": "p.md"} for n in "ab"]
    file = write(tmp_path, {"r.jsonl": jsonl(*records)}) / "r.jsonl"
    items = [i for i in cut_file(found(file), FileRules(), count_words) if not isinstance(i, Problem)]
    assert [d.path for d, _ in items] == ["p.md", "p.md"]
    assert len({c.chunk_id for _, chunks in items for c in chunks}) == 2


def test_a_beir_folder_gives_title_and_text_and_no_judgments(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "corpus.jsonl": jsonl(
                {"_id": "1", "title": "T", "text": "body"}, {"_id": "2", "title": "Only", "text": ""}, {"_id": "3", "text": "t"}
            ),
            "queries.jsonl": jsonl({"_id": "q", "text": "why"}), "queries.dev.jsonl": "{}", "qrels.tsv": "q\t1\t1\n",
            "qrels/test.tsv": "q\t1\t1\n",
        },
    )  # fmt: skip
    read = documents(tmp_path / "corpus.jsonl")
    assert [(d.metadata["record_id"], d.text) for d in read] == [("1", "T\nbody"), ("2", "Only"), ("3", "t")]
    for name in ("queries.jsonl", "queries.dev.jsonl", "qrels.tsv", "qrels/test.tsv"):
        with pytest.raises(ReadError, match="judgments") as caught:
            documents(tmp_path / name)
        assert caught.value.status is FileStatus.SKIPPED


def test_one_chunk_a_document_is_the_whole_text_without_context(tmp_path: Path) -> None:
    text = "word " * 900
    file = write(tmp_path, {"corpus.jsonl": jsonl({"_id": "1", "title": "T", "text": text})}) / "corpus.jsonl"
    ((document, chunks),) = cut_file(found(file), FileRules(), count_words, one_chunk=True)  # type: ignore[misc]
    (chunk,) = chunks
    assert (chunk.start, chunk.end, chunk.context) == (0, len(document.text), "")
    assert chunk.indexed_text == "T\n" + text
    assert chunk.tokens == 901


def test_wide_and_marked_files_are_read(tmp_path: Path) -> None:
    line = '{"id": "é", "text": "naïve"}\n'
    write(tmp_path, {"a.jsonl": b"\xef\xbb\xbf" + line.encode(), "b.jsonl": line.encode("utf-16")})
    for name in ("a.jsonl", "b.jsonl"):
        assert [d.text for d in documents(tmp_path / name)] == ["naïve"]
