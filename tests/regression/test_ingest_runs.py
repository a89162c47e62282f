"""Reading the same files gives the same bytes: in another process, with another hash seed, and on real folders."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from ingest_cases import cut_file

from workbench.ingest import FileRules, Problem, ReadError, SkippedFile, TokenCounter
from workbench.ingest.frontmatter import read_front_matter
from workbench.ingest.rules import parse_rules
from workbench.ingest.walk import walk
from workbench.reports import FileStatus

UNIT = str(Path(__file__).parents[1] / "unit")
SAMPLE = Path(__file__).parents[2] / "workbench" / "ingest"
SCRIPT = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from ingest_cases import cut_file
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
            [sys.executable, "-c", SCRIPT, UNIT, str(SAMPLE / "chunking.py"), str(SAMPLE / "walk.py")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"chunk_id=") > 20


def test_what_goes_to_a_worker_process_and_back_can_be_pickled(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nx: 1\n---\n# A\n\ntext\n")
    (found,) = walk([tmp_path])
    rules = parse_rules([{"path": "*.md", "roles": ["x"]}]).for_file("a.md", FileRules())
    for value in (found, rules, Problem("r", "m", 3)):
        assert pickle.loads(pickle.dumps(value)) == value
    error = pickle.loads(pickle.dumps(ReadError("what", "how", FileStatus.SKIPPED)))
    assert (str(error), error.status) == ("what. how.", FileStatus.SKIPPED)
    items = list(cut_file(found, rules, salt="two"))  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(items)) == items


def _count(texts: Sequence[str]) -> list[int]:
    return [sum(-(-len(w) // 6) for w in re.findall(r"\w+|[^\w\s]", text)) for text in texts]


@pytest.mark.measure
@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "least"), [("powershell-docs", 15_000), ("django-docs-rst", 9_000), ("messy", 8_000)]
)
def test_the_laws_of_chunks_hold_on_real_folders(measure_data: Path, folder: str, least: int) -> None:
    """Every file is read, skipped or failed; spans are exact and cover; budgets hold; few chunks are crumbs."""
    counter = TokenCounter(_count, additive=True)
    files = read = refused = chunks = crumbs = 0
    identities: set[str] = set()
    for found in walk([measure_data / "folders" / folder]):
        files += 1
        if isinstance(found, SkippedFile):
            refused += 1
            continue
        try:
            items = [i for i in cut_file(found, FileRules(), counter) if not isinstance(i, Problem)]
        except ReadError:
            refused += 1
            continue
        read += 1
        for document, parts in items:
            # Front matter is metadata; what follows it is covered.
            position = min(read_front_matter(document.text).end, parts[0].start) if parts else 0
            for chunk in parts:
                assert document.text[chunk.start : chunk.end] == chunk.text
                assert position <= chunk.start
                assert not document.text[position : chunk.start].strip()
                assert chunk.tokens <= 200
                position = chunk.end
                crumbs += chunk.tokens < 20
                identities.add(chunk.chunk_id)
            assert not document.text[position:].strip()
            chunks += len(parts)
    assert files == read + refused
    assert len(identities) == chunks >= least
    assert crumbs < 0.02 * chunks
