"""The same folder gives the same corpus, in whatever order its files come and however many processes read them."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import workbench as wb
from workbench.store.reader import open_generation

TESTS = Path(__file__).parents[1]
QUERIES = ("pump pressure", "invoice", '"second paragraph"', "raised")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of many kinds."""
    made = tmp_path / "folder"
    made.mkdir()
    for n in range(4):
        (made / f"note{n}.md").write_text(
            f"# Note {n}\n\nThe pump {n} raised its pressure.\n\nA second paragraph of {n}.\n"
        )
    (made / "table.csv").write_text("name,amount\n" + "".join(f"invoice {n},{n}\n" for n in range(40)))
    (made / "page.html").write_text("<h1>Pumps</h1><p>Pressure and invoices.</p>")
    (made / "mail.eml").write_text("From: a@example.org\nSubject: Invoice\n\nThe invoice for the pump is raised.\n")
    with zipfile.ZipFile(made / "more.zip", "w") as archive:
        for n in range(5):
            archive.writestr(f"inner/{n}.txt", f"The pump in archive {n} lost pressure.\n")
    return made


def answers(corpus: Path) -> tuple[str, list[str], list[list[tuple[str, float]]]]:
    """Digest, chunk ids, and what the queries find with their scores."""
    with open_generation(corpus) as opened:
        digest, total = opened.manifest.digest, opened.records.records_total
        ids = [row.chunk.chunk_id for row in opened.records.rows(range(total))]
    with wb.open_corpus(corpus) as opened_corpus:
        found = [[(h.chunk_id, h.score) for h in opened_corpus.search(q, limit=30).hits] for q in QUERIES]
    return digest, ids, found


@pytest.mark.slow
def test_order_and_number_of_workers_change_nothing(folder: Path, tmp_path: Path) -> None:
    """In this process, with helpers, and file by file from the last to the first."""
    expected = None
    for workers in (0, 2):
        corpus = tmp_path / f"{workers}.corpus"
        wb.index([folder], corpus, encoder="hashing", workers=workers)
        expected = expected or answers(corpus)
        assert answers(corpus) == expected
    backwards = tmp_path / "backwards.corpus"
    wb.index([folder / "note0.md"], backwards, encoder="hashing")
    for path in sorted(folder.iterdir(), reverse=True):
        wb.index([path], backwards)
    wb.index([folder], backwards)
    digest, ids, found = answers(backwards)
    assert (digest, ids, found) == expected
    assert all(found)


SCRIPT = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from file_makers import cut_file
from workbench.ingest import FileRules
from workbench.ingest.walk import walk
rules = FileRules(("b", "a"), roles=("y", "x"))
for found in walk(sys.argv[1:]):
    for item in cut_file(found, rules, lambda ts: [len(t.split()) for t in ts], budget=60):
        print(ascii(item))
"""


def test_two_processes_with_different_hash_seeds_agree_on_every_byte() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(TESTS), *map(str, sorted(TESTS.glob("regression/test_*.py"))[:2])],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"chunk_id=") > 20
