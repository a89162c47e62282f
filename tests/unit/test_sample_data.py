"""The sample corpus has at least one file for every rule that tests, guide and demonstrations lean on."""

from __future__ import annotations

import json

from workbench.demo import sample_folder
from workbench.judgments.qrels import load_judgments

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
