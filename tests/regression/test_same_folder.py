"""The same folder gives the same corpus, in whatever order its files come and however many processes read them."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import workbench as wb
from workbench.records import FileReport, FileStatus
from workbench.store.reader import open_generation

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
def test_order_and_number_of_workers_change_nothing(folder, tmp_path):
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


SEEDED = """
import json, sys
import workbench as wb
names = tuple("gfedcba")
wb.index([sys.argv[1]], sys.argv[2], encoder="hashing", workers=0, collection=names, tenant="t", roles=names)
with wb.open_corpus(sys.argv[2], wb.Principal("t", names)) as corpus:
    found = corpus.search("pump pressure", "invoice raised", plan="default sources=vector,grep,keyword limit=40").to_dict()
    print(json.dumps([corpus.info()["digest"], {**found, "generation": ""}]))
"""


def test_two_processes_with_different_hash_seeds_agree_on_every_byte(folder, tmp_path):
    """What is indexed, and every score and message of a search."""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SEEDED, str(folder), str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(json.loads(outputs.pop())[1]["hits"]) > 10
    assert not outputs


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
def test_each_bad_reader_costs_one_file(tmp_path, monkeypatch):
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
def test_a_full_disk_is_one_sentence_and_the_corpus_stays(tmp_path, blocks):
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
