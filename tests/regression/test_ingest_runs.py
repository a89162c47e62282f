"""Reading the same files gives the same bytes: in another process, with another hash seed, and on real folders."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

from file_makers import cut_file

from workbench.ingest import FileRules, Problem, ReadError
from workbench.ingest.rules import parse_rules
from workbench.ingest.walk import walk
from workbench.reports import FileStatus

HELPERS = str(Path(__file__).parents[1])
SAMPLE = Path(__file__).parents[2] / "workbench" / "ingest"
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
            [sys.executable, "-c", SCRIPT, HELPERS, str(SAMPLE / "chunking.py"), str(SAMPLE / "walk.py")],
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
