"""A run that is killed at any point leaves the corpus whole and the next run completes it; readers never fail meanwhile."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from trials import TRIALS

from workbench import index
from workbench.records import FileStatus
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


CHOSEN = STEPS if TRIALS > 1 else ("read", "database", "manifest", "renamed", "swapped")


def write(folder: Path) -> Path:
    """Some files; `change` edits them."""
    folder.mkdir()
    for i in range(12):
        (folder / f"{i}.md").write_text(f"# Document {i}\n\n" + "\n\n".join(f"Paragraph {j} of {i}." for j in range(5)))
    return folder


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that were indexed in `first` and changed since; `undisturbed` is what a run of now makes of them."""
    docs = write(tmp_path_factory.mktemp("killed") / "docs")
    index([docs], docs.parent / "first", encoder="hashing")
    change(docs)
    index([docs], docs.parent / "undisturbed", encoder="hashing")
    return docs


@pytest.fixture
def corpus(docs: Path, tmp_path: Path) -> Path:
    """A copy of the corpus to disturb."""
    return Path(shutil.copytree(docs.parent / "first", tmp_path / "my.corpus"))


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


def check(docs: Path, corpus: Path, before: str) -> int:
    """The corpus answers; the next run completes it as if nothing had happened; nothing is left over."""
    with open_generation(corpus) as opened:
        opened.open_all()
        opened.verify()
        published = opened.id != before
        assert opened.records.documents_total == 12
    report = index([docs], corpus, encoder="hashing")
    assert report.found == sum(report.count(s) for s in FileStatus if s is not FileStatus.REMOVED) == 12
    assert report.changed is not published
    with open_generation(corpus) as opened, open_generation(docs.parent / "undisturbed") as other:
        opened.verify()
        assert (report.documents, report.chunks) == (other.records.documents_total, other.records.records_total)
        assert opened.manifest.digest == other.manifest.digest
        assert opened.manifest.counts == other.manifest.counts
    index([docs], corpus, encoder="hashing")
    left = {p.name for p in corpus.iterdir() if not p.name.startswith(("embeddings", "desk.sqlite"))}
    assert left == {"current", "generations", "jobs", "writer.lock"}
    assert list((corpus / "jobs").iterdir()) == []
    assert [p.name for p in Layout(corpus).generations.iterdir()] == [generations.current(corpus)]
    return report.embedded


@pytest.mark.parametrize("at", CHOSEN)
def test_killed_at_a_step(docs, corpus, at):
    """The old generation answers until the pointer is swapped, the new one from then on."""
    before = generations.current(corpus)
    process = start(docs, corpus, at)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, said
    assert (generations.current(corpus) == before) is (at != "swapped")
    embedded = check(docs, corpus, before)
    assert embedded == (2 if at == "read" else 0)


@pytest.mark.parametrize(("at", "workers", "embedded"), [("read", 2, 12), ("manifest", 0, 0)])
def test_killed_in_the_first_run(docs, tmp_path, at, workers, embedded):
    corpus = tmp_path / "my.corpus"
    said, _ = (process := start(docs, corpus, at, workers)).communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    children = [int(pid) for line in said.splitlines() if line.startswith("children") for pid in line.split()[1:]]
    assert children or not workers
    deadline = time.monotonic() + 30
    while any(_alive(pid) for pid in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not generations.exists(corpus)
    report = index([docs], corpus, encoder="hashing")
    assert (report.documents, report.embedded) == (12, embedded)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "helper" in Path(f"/proc/{pid}/cmdline").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_killed_before_the_job_is_written_down(docs, corpus):
    (corpus / "jobs" / "123-456.lock").touch()
    check(docs, corpus, generations.current(corpus))


@pytest.mark.parametrize("seed", range(TRIALS))
def test_killed_at_a_random_moment(docs, corpus, seed):
    before = generations.current(corpus)
    process = start(docs, corpus, "")
    assert process.stdout.readline() == "started\n"
    time.sleep(random.Random(seed).uniform(0, 1.2))
    process.kill()
    process.communicate()
    check(docs, corpus, before)


READ = """
import sys
from workbench.store.reader import open_generation
seen, opened = set(), 0
while True:
    with open_generation(sys.argv[1]) as g:
        store = g.records
        scope = store.scope(None, "type = 'markdown'", ())
        numbers = g.lexical.search("document", scope, 100, k1=0.9, b=0.4, operator="any").numbers
        rows = store.rows(numbers.tolist())
        texts = [d.text for d in store.documents([r.document_number for r in rows])]
        assert len(rows) == store.documents_total == g.manifest.counts["documents"], "half a corpus"
        assert len({t.split()[-1] for t in texts}) == 1, "two generations mixed"
        lines = g.grep.search(["Document"], scope, 100, regex=False, case="smart", word=False, context=0).lines
        assert lines == store.documents_total
        assert len(g.vectors().vectors(numbers)) == len(rows)
        seen.add(g.id)
    opened += 1
    if opened == 1:
        print("reading", flush=True)
    if opened >= 3 and len(seen) > 1 and g.is_current():
        break
print(opened, len(seen), flush=True)
"""


def write_version(docs: Path, version: int) -> None:
    """Every document ends in the version."""
    for i in range(10):
        (docs / f"{i}.md").write_text(f"# Document {i}\n\nVersion {version}\n")


def test_processes_read_while_one_writes(tmp_path):
    """Each opens again and again, until it has seen more than one generation whole."""
    docs, corpus = tmp_path / "docs", tmp_path / "my.corpus"
    docs.mkdir()
    write_version(docs, 0)
    index([docs], corpus, encoder="hashing")
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READ, str(corpus)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    try:
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "reading\n"
        for version in range(1, 3):
            write_version(docs, version)
            index([docs], corpus, encoder="hashing")
        for reader in readers:
            said, errors = reader.communicate(timeout=120)
            assert reader.returncode == 0, errors
            assert int(said.split()[1]) > 1
    finally:
        for reader in readers:
            reader.kill()
            reader.communicate()
    index([docs], corpus, encoder="hashing")
    assert len(list((corpus / "generations").iterdir())) == 1
