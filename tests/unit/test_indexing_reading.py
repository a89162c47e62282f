"""Reading in helper processes: the same answers in the same order, and a crash costs one file."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from workbench.indexing import reading
from workbench.indexing.reading import Cutting, Outcome, Task, read_all
from workbench.ingest.rules import FileRules
from workbench.ingest.walk import FoundFile, walk
from workbench.records import Granularity
from workbench.reports import FileStatus

CUTTING = Cutting("hashing", 40, {"artifacts": Granularity.DOCUMENT})


def tasks(folder: Path, collections: tuple[str, ...] = ("docs",)) -> list[Task]:
    return [Task(f, FileRules(collections), "") for f in walk([folder]) if isinstance(f, FoundFile)]


def by_file(folder: Path, workers: int) -> list[tuple[str, list[str], FileStatus]]:
    """Path, ids of the documents, and status of each file, in the order they came."""
    done: list[tuple[str, list[str], FileStatus]] = []
    ids: list[str] = []
    for task, item in read_all(tasks(folder), CUTTING, workers):
        if isinstance(item, Outcome):
            done.append((task.found.path, ids, item.status))
            ids = []
        else:
            ids.extend(document.document_id for document, _ in item)
    return done


@pytest.mark.slow
def test_helpers_answer_in_the_order_of_the_files(tmp_path: Path):
    """The first is the slowest; a file of many records comes in batches; a bad one is an outcome."""
    records = [json.dumps({"id": str(i), "text": f"record {i} " * 5}) for i in range(700)]
    (tmp_path / "a.jsonl").write_text("\n".join(records))
    for name in "bcd":
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\nText.\n")
    (tmp_path / "e.pdf").write_bytes(b"%PDF-1.4 broken")
    alone = by_file(tmp_path, 0)
    assert [(path, len(ids)) for path, ids, _ in alone] == [
        ("a.jsonl", 700), ("b.md", 1), ("c.md", 1), ("d.md", 1), ("e.pdf", 0),
    ]  # fmt: skip
    assert alone[4][2] is FileStatus.FAILED
    assert by_file(tmp_path, 2) == alone


@pytest.mark.slow
def test_a_crashed_helper_costs_its_file_and_the_next_one_goes_on(tmp_path: Path):
    (tmp_path / "a.md").write_text("# A\n\nText.\n")
    (task,) = tasks(tmp_path)
    helper = reading._Helper(CUTTING)
    try:
        *_, outcome = helper.read(task)
        assert outcome == Outcome(FileStatus.INDEXED)
        assert helper._process is not None
        os.kill(helper._process.pid, signal.SIGKILL)
        helper._process.wait()
        (crashed,) = helper.read(task)
        assert isinstance(crashed, Outcome)
        assert crashed.status is FileStatus.FAILED
        assert "signal 9" in crashed.reason
        *_, outcome = helper.read(task)
        assert outcome == Outcome(FileStatus.INDEXED)
    finally:
        helper.close()
