"""An indexing run that is killed at any point leaves the corpus whole, and the next run completes it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench import index
from workbench.reports import FileStatus
from workbench.store import generations
from workbench.store.generations import Layout
from workbench.store.reader import open_generation

pytestmark = pytest.mark.slow

STEPS = (
    "read", "embedded", "tables", "database", "texts", "vectors", "words", "manifest", "tried", "renamed",
    "pointer-written", "swapped",
)  # fmt: skip

RUN = """
import os, sys
from pathlib import Path
from workbench import index
from workbench.store import generations
docs, corpus, at, workers = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
def kill(name):
    if name == at:
        lists = Path("/proc/self/task").glob("*/children")
        print("children", *(pid for one in lists for pid in one.read_text().split()), flush=True)
        os.kill(os.getpid(), 9)
generations.hooks.append(kill)
print("started", flush=True)
index([docs], corpus, encoder="hashing", workers=workers)
"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Some files; `change` edits them."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for i in range(12):
        (folder / f"{i}.md").write_text(f"# Document {i}\n\n" + "\n\n".join(f"Paragraph {j} of {i}." for j in range(5)))
    return folder


def change(docs: Path) -> None:
    """One file changed, one gone, one new, one renamed."""
    (docs / "1.md").write_text("# Changed\n\nOther words.\n")
    (docs / "2.md").unlink()
    (docs / "new.md").write_text("# New\n\nNever seen.\n")
    (docs / "3.md").rename(docs / "three.md")


def start(docs: Path, corpus: Path, at: str, workers: int = 0) -> subprocess.Popen[str]:
    """An indexing run in a process of its own that kills itself at a step."""
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(docs), str(corpus), at, str(workers)], stdout=subprocess.PIPE, text=True
    )


def check(docs: Path, corpus: Path, before: str, tmp_path: Path) -> int:
    """The corpus answers; the next run completes it as if nothing had happened; nothing is left over."""
    with open_generation(corpus) as opened:
        opened.open_all()
        opened.verify()
        published = opened.id != before
        assert opened.records.documents_total == 12
    report = index([docs], corpus, encoder="hashing")
    assert report.found == sum(report.count(s) for s in FileStatus if s is not FileStatus.REMOVED) == 12
    assert report.changed is not published
    undisturbed = index([docs], tmp_path / "undisturbed.corpus", encoder="hashing")
    assert (report.documents, report.chunks) == (undisturbed.documents, undisturbed.chunks)
    with open_generation(corpus) as opened, open_generation(tmp_path / "undisturbed.corpus") as other:
        opened.verify()
        assert opened.manifest.digest == other.manifest.digest
        assert opened.manifest.counts == other.manifest.counts
    index([docs], corpus, encoder="hashing")
    left = {p.name for p in corpus.iterdir() if not p.name.startswith(("embeddings", "desk.sqlite"))}
    assert left == {"current", "generations", "jobs", "writer.lock"}
    assert list((corpus / "jobs").iterdir()) == []
    assert [p.name for p in Layout(corpus).generations.iterdir()] == [generations.current(corpus)]
    return report.embedded


@pytest.mark.parametrize("at", STEPS)
def test_killed_at_a_step(docs: Path, tmp_path: Path, at: str):
    """The old generation answers until the pointer is swapped, the new one from then on."""
    corpus = tmp_path / "my.corpus"
    before = index([docs], corpus, encoder="hashing").generation
    change(docs)
    process = start(docs, corpus, at)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, said
    assert (generations.current(corpus) == before) is (at != "swapped")
    embedded = check(docs, corpus, before, tmp_path)
    assert embedded == (2 if at == "read" else 0)


def test_killed_in_the_first_run(docs: Path, tmp_path: Path):
    """There is no corpus yet: it says so, and the next run makes it."""
    corpus = tmp_path / "my.corpus"
    process = start(docs, corpus, "manifest")
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert not generations.exists(corpus)
    report = index([docs], corpus, encoder="hashing")
    assert (report.documents, report.embedded) == (12, 0)


def test_a_killed_run_leaves_no_helper_behind(docs: Path, tmp_path: Path):
    """The processes that read end with the one that started them."""
    process = start(docs, tmp_path / "my.corpus", "read", workers=2)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    children = [int(pid) for line in said.splitlines() if line.startswith("children") for pid in line.split()[1:]]
    assert children
    deadline = time.monotonic() + 30
    while any(_alive(pid) for pid in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "helper" in Path(f"/proc/{pid}/cmdline").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_killed_before_the_job_is_written_down(docs: Path, tmp_path: Path):
    """The lock file that was made for it and that no job names goes with the next run."""
    corpus = tmp_path / "my.corpus"
    before = index([docs], corpus, encoder="hashing").generation
    change(docs)
    (corpus / "jobs" / "123-456.lock").touch()
    check(docs, corpus, before, tmp_path)


@pytest.mark.parametrize("seed", range(int(os.environ.get("KILLS", "4"))))
def test_killed_at_a_random_moment(docs: Path, tmp_path: Path, seed: int):
    """Between any two instructions, not only where there is a name for it."""
    corpus = tmp_path / "my.corpus"
    before = index([docs], corpus, encoder="hashing").generation
    change(docs)
    process = start(docs, corpus, "")
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(random.Random(seed).uniform(0, 1.2))
    process.kill()
    process.communicate()
    check(docs, corpus, before, tmp_path)
