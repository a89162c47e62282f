"""The demo's files: the same selection everywhere, safe to write, and judged by passages that are really there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from bench import run
from bench.corpora import GivenDocument, build_given
from bench.figures import Figure, Goal, Peer, Row

from workbench.corpus import open_corpus
from workbench.demo import (
    LIBRARY,
    MARK,
    MODULES,
    QUESTIONS,
    SMALL_MODULES,
    demo_files,
    demo_judgments,
    demo_judgments_folder,
    demo_texts,
    sample_folder,
)
from workbench.encode.hashing import HashingEncoder
from workbench.errors import UsageError
from workbench.judgments.qrels import load_judgments
from workbench.store.vectors import MATRIX


@pytest.mark.slow
def test_writing_twice_leaves_every_file_alone(tmp_path: Path) -> None:
    """A second run rewrites nothing, so that indexing finds everything unchanged; a stray old file goes."""
    reports = []
    folder = demo_files(tmp_path / "demo", progress=reports.append)
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file() and p.name != MARK}
    assert {p.relative_to(folder).as_posix() for p in before} == set(demo_texts())
    assert (reports[-1].done, reports[-1].total) == (len(before), len(before))
    (folder / LIBRARY / "gone.py").write_text("x = 1\n", encoding="utf-8")
    demo_files(folder)
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file() and p.name != MARK} == before


@pytest.mark.slow
def test_the_small_part_answers_many_questions_and_grows_into_the_whole(tmp_path: Path) -> None:
    """The topics and few modules, each relevant to a judged question; the whole is written over it, and back."""
    small, whole = demo_texts(small=True), demo_texts()
    assert set(SMALL_MODULES) < set(MODULES)
    assert list(SMALL_MODULES) == sorted(SMALL_MODULES)
    assert {path: whole[path] for path in small} == small
    assert sum(map(len, small.values())) < 0.4 * sum(map(len, whole.values()))
    folder = demo_files(tmp_path / "demo", small=True)
    judgments = demo_judgments(folder)
    assert {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.name != MARK} == set(small)
    assert len(judgments) >= 40
    relevant = {key for grades in judgments.qrels.values() for key, grade in grades.items() if grade > 0}
    assert relevant <= set(small)
    judged = demo_judgments().qrels.values()
    relevant = {key for grades in judged for key, grade in grades.items() if grade > 0}
    assert {f"{LIBRARY}/{module}.py" for module in SMALL_MODULES} <= relevant
    demo_files(folder)
    assert demo_judgments(folder).query_ids == demo_judgments().query_ids
    demo_files(folder, small=True)
    assert demo_judgments(folder).query_ids == judgments.query_ids


def test_questions_on_a_folder_that_is_no_demo_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="answers no question"):
        demo_judgments(tmp_path)


def test_a_folder_with_other_files_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "mine.py").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="holds other files"):
        demo_files(tmp_path)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["mine.py"]


def test_every_judgment_of_the_demo_has_its_evidence_in_the_file() -> None:
    """Each judged path exists in the Python that runs, and holds the passage for which it was judged."""
    texts = {path: " ".join(text.split()) for path, text in demo_texts().items()}
    judgments = load_judgments(demo_judgments_folder())
    rows = (demo_judgments_folder() / "evidence.tsv").read_text(encoding="utf-8").splitlines()[1:]
    evidence = [tuple(row.split("\t")) for row in rows]
    judged = [(query_id, key) for query_id in judgments.query_ids for key in judgments.qrels[query_id]]
    assert sorted((query_id, path) for query_id, path, _ in evidence) == sorted(judged)
    missing = [(query_id, path) for query_id, path, pattern in evidence if not re.search(pattern, texts.get(path, ""))]
    assert missing == []


def test_the_tour_asks_judged_questions() -> None:
    judged = {(topic.text, topic.keywords) for topic in load_judgments(demo_judgments_folder()).topics.values()}
    assert [q.text for q in QUESTIONS if (q.text, q.keywords) not in judged] == []


# --- sample data -----------------------------------------------------------------------------------------------------


ROOT = sample_folder() / "files"
FILES = {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in sorted(ROOT.rglob("*")) if p.is_file()}


def lines(path: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in FILES[path].splitlines()]


def test_the_sample_judgments_name_files_and_records_that_exist() -> None:
    judgments = load_judgments(sample_folder())
    assert len(judgments) >= 20
    assert not judgments.without_relevant
    records = {f"{p}#{r['id']}" for p in FILES if p.endswith(".jsonl") for r in lines(p)}
    assert sorted(judgments.document_keys - set(FILES) - records) == []
    assert all(topic.keywords for topic in judgments.topics.values())


# --- bench parts -----------------------------------------------------------------------------------------------------


def figure(p50: float) -> Figure:
    return Figure(p50, p50, p50, 1)


def test_goals_are_judged_by_medians() -> None:
    """Equal is met; a peer that is missing leaves its goal open; one without a limit has none."""
    peers = (
        Peer("fast", figure(1.0), 2.0),
        Peer("slow", figure(1.9), 1.0),
        Peer("gone", None, 0.5),
        Peer("free", figure(4.0)),
    )
    row = Row("k", "t", "ms", figure(2.0), peers, at_most=2.0, at_least=3.0)
    assert row.goals == (
        Goal("at most 2 ms", True),
        Goal("at least 3", False),
        Goal("at most 2x fast", True),
        Goal("at most 1x slow", False),
        Goal("at most 0.5x gone", None),
    )
    assert [row.ratio(p) for p in peers] == [2.0, pytest.approx(2.0 / 1.9), None, 0.5]


DOCUMENTS = {
    "b/two.txt": ("One line.", "Next\r\nlines\n\nhere.", "Ünïcode and 日本 words"),
    "a.txt": ("A lonely chunk about herons\n",),
}


def given(encoder: HashingEncoder) -> Iterator[GivenDocument]:
    for path, texts in DOCUMENTS.items():
        yield GivenDocument(path, texts, encoder.encode(texts))


def test_a_corpus_is_made_from_given_chunks_and_vectors(tmp_path: Path) -> None:
    """Chunks are their documents' text between their offsets, on their lines, each with the vector that was given."""
    encoder = HashingEncoder()
    built = build_given(tmp_path / "corpus", "/from", given(encoder), encoder.identity, lambda _: None)
    assert dict(built.manifest.counts) | {"bytes": 0} == {
        "documents": 2, "records": 4, "files": 2, "bytes": 0,
    }  # fmt: skip
    with open_corpus(tmp_path / "corpus") as corpus:
        records, opened = corpus.engine.records, corpus.engine.opened
        rows = records.rows(range(4))
        documents = records.documents([row.document_number for row in rows])
        for row, document in zip(rows, documents, strict=True):
            chunk = row.chunk
            assert document.text[chunk.start : chunk.end] == chunk.text
            lines = document.text.split("\n")[chunk.start_line - 1 : chunk.end_line]
            assert "\n".join(lines) == chunk.text.rstrip("\n")
        texts = [text.replace("\r\n", "\n") for path in sorted(DOCUMENTS) for text in DOCUMENTS[path]]
        assert [row.chunk.text for row in rows] == texts
        stored = np.load(opened.folder / "vectors" / opened.encoder_key() / MATRIX)
        expected = encoder.encode([text for path in sorted(DOCUMENTS) for text in DOCUMENTS[path]])
        assert np.array_equal(stored, expected)
        assert corpus.search("heron").hits[0].citation == "a.txt:1-1"
        assert [p.path for p in corpus.grep("日本")] == ["b/two.txt"]
        opened.verify()
    assert sorted(p.name for p in (tmp_path / "corpus").iterdir()) == ["current", "generations", "writer.lock"]


def test_rows_are_chosen_by_key_or_group_in_the_order_of_the_table() -> None:
    """Nothing asked for is everything; each key stands once; an unknown name lists those there are."""
    assert run.choose(()) == run.KEYS
    assert len(set(run.KEYS)) == len(run.KEYS)
    assert run.choose(("vector", "keyword.content", "vector.exact")) == (
        "keyword.content",
        "vector.exact",
        "vector.graph",
    )
    groups = [key.partition(".")[0] for key in run.KEYS]
    assert sum(a != b for a, b in pairwise(groups)) + 1 == len(set(groups))
    with pytest.raises(UsageError, match=r"keyword\.typed"):
        run.choose(("keywords",))
