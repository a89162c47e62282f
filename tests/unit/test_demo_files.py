"""The demo's files: the same selection everywhere, safe to write, and judged by passages that are really there."""

import json
import re
from itertools import pairwise

import pytest
from bench import rows

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
from workbench.errors import UsageError
from workbench.judgments.qrels import load_judgments


@pytest.mark.slow
def test_writing_twice_leaves_every_file_alone(tmp_path):
    """A second rows rewrites nothing, so that indexing finds everything unchanged; a stray old file goes."""
    reports = []
    folder = demo_files(tmp_path / "demo", progress=reports.append)
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file() and p.name != MARK}
    assert {p.relative_to(folder).as_posix() for p in before} == set(demo_texts())
    assert (reports[-1].done, reports[-1].total) == (len(before), len(before))
    (folder / LIBRARY / "gone.py").write_text("x = 1\n", encoding="utf-8")
    demo_files(folder)
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file() and p.name != MARK} == before


@pytest.mark.slow
def test_the_small_part_answers_many_questions_and_grows_into_the_whole(tmp_path):
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


def test_a_folder_that_is_no_demo_is_refused_untouched(tmp_path):
    with pytest.raises(UsageError, match="answers no question"):
        demo_judgments(tmp_path)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "mine.py").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="holds other files"):
        demo_files(tmp_path)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["mine.py"]


def test_judgments_of_demo_and_sample_name_what_exists():
    texts = {path: " ".join(text.split()) for path, text in demo_texts().items()}
    judgments = load_judgments(demo_judgments_folder())
    rows = (demo_judgments_folder() / "evidence.tsv").read_text(encoding="utf-8").splitlines()[1:]
    evidence = [tuple(row.split("\t")) for row in rows]
    judged = [(query_id, key) for query_id in judgments.query_ids for key in judgments.qrels[query_id]]
    assert sorted((query_id, path) for query_id, path, _ in evidence) == sorted(judged)
    missing = [(query_id, path) for query_id, path, pattern in evidence if not re.search(pattern, texts.get(path, ""))]
    assert missing == []
    judged = {(topic.text, topic.keywords) for topic in load_judgments(demo_judgments_folder()).topics.values()}
    assert [q.text for q in QUESTIONS if (q.text, q.keywords) not in judged] == []
    judgments = load_judgments(sample_folder())
    assert len(judgments) >= 20
    assert not judgments.without_relevant
    records = {f"{p}#{r['id']}" for p in FILES if p.endswith(".jsonl") for r in lines(p)}
    assert sorted(judgments.document_keys - set(FILES) - records) == []
    assert all(topic.keywords for topic in judgments.topics.values())


ROOT = sample_folder() / "files"
FILES = {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in sorted(ROOT.rglob("*")) if p.is_file()}


def lines(path: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in FILES[path].splitlines()]


def test_rows_are_chosen_by_key_or_group_in_the_order_of_the_table():
    assert rows.choose(()) == rows.KEYS
    assert len(set(rows.KEYS)) == len(rows.KEYS)
    assert rows.choose(("vector", "keyword.content", "vector.exact")) == (
        "keyword.content",
        "vector.exact",
        "vector.graph",
    )
    groups = [key.partition(".")[0] for key in rows.KEYS]
    assert sum(a != b for a, b in pairwise(groups)) + 1 == len(set(groups))
    with pytest.raises(UsageError, match=r"keyword\.typed"):
        rows.choose(("keywords",))
