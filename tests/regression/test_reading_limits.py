"""A reader that loops, eats the memory or crashes in C costs its own file and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import workbench as wb
from workbench.reports import FileReport, FileStatus

BAD = '''
"""Makes the helper's reader do what the file asks for."""
import ctypes, time
from workbench.ingest import readers

real = readers.reader_for

def reader_for(source):
    head = source.head()
    if head.startswith(b"LOOP"):
        while True:
            time.sleep(0.05)
    if head.startswith(b"EAT"):
        held = []
        while True:
            held.append(bytearray(8 << 20))
    if head.startswith(b"CRASH"):
        ctypes.string_at(0)
    return real(source)

readers.reader_for = reader_for
'''


@pytest.fixture
def bad_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers with faults in every helper that is started; this process keeps its own."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(BAD)
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.usefixtures("bad_readers")
def test_each_bad_reader_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time, memory and a crash are each said of their file; those before and after are indexed, in the same run."""
    monkeypatch.setenv("WORKBENCH_MAX_READ_SECONDS", "3")
    monkeypatch.setenv("WORKBENCH_MAX_READ_MEMORY_MB", "128")
    docs = tmp_path / "docs"
    docs.mkdir()
    for number, words in enumerate(["One.", "LOOP", "Two.", "EAT", "Three.", "CRASH", "Four."]):
        (docs / f"{number}.md").write_text(words)
    report = wb.index([docs], tmp_path / "c.corpus", encoder="hashing", workers=1)
    files: dict[str, FileReport] = {f.path: f for f in report.files}
    assert [files[f"{n}.md"].status.value for n in range(7)] == [
        "indexed", "failed", "indexed", "failed", "indexed", "failed", "indexed",
    ]  # fmt: skip
    assert "max_read_seconds" in files["1.md"].reason
    assert "memory" in files["3.md"].reason
    assert "max_read_memory_mb" in files["3.md"].remedy
    assert "crashed (signal 11)" in files["5.md"].reason
    assert report.count(FileStatus.INDEXED) + report.count(FileStatus.FAILED) == report.found == 7


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [8, 600])
def test_a_full_disk_is_one_sentence_and_the_corpus_stays(tmp_path: Path, blocks: int) -> None:
    """The disk fills at different steps: the old generation answers, and the next run is whole."""
    small, large = tmp_path / "small", tmp_path / "large"
    for folder, files, paragraphs in ((small, 3, 1), (large, 40, 30)):
        folder.mkdir()
        for n in range(files):
            text = "\n\n".join(f"Paragraph {p} of {n}: " + f"word{n}x{p} " * 60 for p in range(paragraphs))
            (folder / f"{folder.name}{n}.md").write_text(f"# File {n}\n\n{text}\n")
    corpus = tmp_path / "c.corpus"
    before = wb.index([small], corpus, encoder="hashing")
    run = f"ulimit -f {blocks}; exec {sys.executable} -m workbench.cli.main index {large} --corpus {corpus}"
    done = subprocess.run(["bash", "-c", run], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout
    assert done.stderr.startswith("workbench: The new generation could not be built: ")
    assert "Free disk space or memory" in done.stderr
    assert "Traceback" not in done.stderr
    with wb.open_corpus(corpus) as opened:
        assert opened.generation == before.generation
    assert not (corpus / "building").exists()
    assert wb.index([large], corpus).documents == 43
