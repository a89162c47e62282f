"""Reading in helper processes: the same answers in the same order, and a crash costs one file."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from workbench.indexing import reading
from workbench.indexing.reading import Batch, Cutting, Outcome, Task, make_counter, read_all, read_task
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


def test_a_large_file_is_never_held_as_a_whole(tmp_path: Path):
    """Batches are bounded by number and by characters."""
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"id": str(i), "text": f"t {i}"}) for i in range(600)))
    (task,) = tasks(tmp_path)
    sizes = [len(i) for i in read_task(task, CUTTING, make_counter("hashing")) if not isinstance(i, Outcome)]
    assert sum(sizes) == 600
    assert max(sizes) == reading._BATCH_DOCUMENTS


@pytest.mark.slow
def test_a_crashed_helper_costs_its_file_and_the_next_one_goes_on(tmp_path: Path):
    """Says how it died; a new process takes the next file."""
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


def test_leaving_early_ends_the_helpers(tmp_path: Path):
    """An interrupted run waits for nobody."""
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"id": str(i), "text": "t " * 50}) for i in range(5000)))
    items = read_all(tasks(tmp_path), CUTTING, 1)
    _, first = next(items)
    assert isinstance(first, tuple)
    items.close()


@pytest.mark.parametrize("name", ["docs", "artifacts"])
def test_a_record_comes_with_what_its_vector_is_made_of(tmp_path: Path, name: str):
    """A chunk of itself; a whole document of its chunks, which are not records."""
    (tmp_path / "a.md").write_text("# A\n\n" + "\n\n".join(f"Paragraph {i} " + "word " * 20 for i in range(6)))
    (task,) = tasks(tmp_path, (name,))
    batches: list[Batch] = [i for i in read_task(task, CUTTING, make_counter("hashing")) if not isinstance(i, Outcome)]
    ((_, records),) = batches[0]
    if name == "docs":
        assert len(records) > 2
        assert all(parts == (record,) for record, parts in records)
    else:
        ((record, parts),) = records
        assert record.granularity is Granularity.DOCUMENT
        assert len(parts) > 2
        assert all(part.granularity is Granularity.CHUNK for part in parts)
