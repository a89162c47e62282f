"""The indexing run: what is read, carried over, removed, embedded, and what the report says of it."""

import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from corpus_files import paths, run, write_texts

from workbench.cli.main import main
from workbench.errors import UsageError
from workbench.indexing import remove
from workbench.indexing.compare import salted, targets
from workbench.indexing.state import Root
from workbench.records import FileReport, FileStatus, Granularity, IndexReport, by_kind
from workbench.store import generations
from workbench.store.generations import Layout
from workbench.store.reader import open_generation


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write_texts(tmp_path / "docs")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return tmp_path / "my.corpus"


@pytest.mark.slow
def test_a_run_reports_every_file_and_the_generation_that_answers(docs, corpus):
    (docs / "program.exe").write_bytes(b"MZ\x90\0\0\0\3\0")
    report = run(docs, corpus)
    assert [(f.path, f.status.value) for f in report.files] == [
        ("a.md", "indexed"), ("b.md", "indexed"), ("program.exe", "skipped"), ("sub/c.md", "indexed"),
    ]  # fmt: skip
    assert report.files[2].reason
    assert (report.documents, report.changed) == (3, True)
    assert report.embedded == report.chunks == 3
    assert report.generation == generations.current(corpus)
    held = {p.name for p in corpus.iterdir() if not p.name.startswith("desk.sqlite-")}
    assert held == {"current", "desk.sqlite", "generations", "jobs", "writer.lock"}


@pytest.mark.slow
def test_only_what_changed_is_read_and_embedded(docs, corpus):
    first = run(docs, corpus)
    manifest = (Layout(corpus).folder(first.generation) / "manifest.json").read_bytes()
    second = run(docs, corpus)
    assert (second.generation, second.changed, second.embedded) == (first.generation, False, 0)
    assert second.count(FileStatus.UNCHANGED) == 3
    assert second.reused == first.chunks
    assert (Layout(corpus).folder(first.generation) / "manifest.json").read_bytes() == manifest
    run(docs, corpus)
    (docs / "b.md").write_text("# Backoff\n\nWait less.\n")
    report = run(docs, corpus)
    assert (report.count(FileStatus.INDEXED), report.count(FileStatus.UNCHANGED), report.embedded) == (1, 2, 1)
    os.utime(docs / "a.md", (1, 1))
    report = run(docs, corpus)
    assert (report.count(FileStatus.INDEXED), report.embedded, report.changed) == (1, 0, True)
    with open_generation(corpus) as opened:
        assert opened.records.documents([0])[0].modified.year == 1970


@pytest.mark.slow
def test_what_vanished_is_removed(docs, corpus):
    run(docs, corpus)
    (docs / "b.md").unlink()
    (docs / "sub" / "c.md").write_text("# Dogs\n")
    report = run(docs / "sub", corpus)
    assert [(f.path, f.status.value) for f in report.files] == [("sub/c.md", "indexed")]
    assert paths(corpus) == ["a.md", "b.md", "sub/c.md"]
    assert remove([docs], corpus).documents == 0
    with open_generation(corpus) as opened:
        opened.open_all()
        assert opened.records.info(opened.records.scope(None, None, ()))["documents"] == 0


@pytest.mark.slow
def test_a_whole_document_has_the_normalised_mean_of_its_chunks_vectors(docs, corpus):
    (docs / "long.md").write_text("".join(f"# Part {i}\n\n{f'word{i} ' * 150}\n\n" for i in range(4)))
    run(docs, corpus, collection=("artifacts", "artifact_chunks"))
    with open_generation(corpus) as opened:
        store = opened.records
        number = store.find_document("long.md", store.scope(None, None, ()))
        rows = store.rows(store.records_of(number).tolist())
        whole = [r.number for r in rows if r.chunk.granularity is Granularity.DOCUMENT]
        chunks = [r.number for r in rows if r.chunk.granularity is Granularity.CHUNK]
        assert len(chunks) > 2
        mean = opened.vectors().vectors(np.array(chunks)).astype(np.float64).mean(axis=0)
        expected = (mean / np.linalg.norm(mean)).astype(np.float32)
        assert np.allclose(opened.vectors().vectors(np.array(whole))[0], expected, atol=1e-7)
    (docs / "b.md").write_text("other")
    run(docs, corpus, collection=("artifacts", "artifact_chunks"))
    with open_generation(corpus) as opened:
        store = opened.records
        number = store.find_document("long.md", store.scope(None, None, ()))
        rows = store.rows(store.records_of(number or 0).tolist())
        carried = [r.number for r in rows if r.chunk.granularity is Granularity.DOCUMENT]
        assert np.allclose(opened.vectors().vectors(np.array(carried))[0], expected, atol=1e-7)


def test_a_folder_of_other_files_does_not_become_a_corpus(docs, tmp_path):
    with pytest.raises(UsageError, match="is not a corpus"):
        run(docs, docs / "sub")
    with pytest.raises(UsageError, match="cannot be made"):
        run(docs, docs / "a.md")


FILES = (
    FileReport("a/x.PDF", FileStatus.INDEXED, documents=1, chunks=9, seconds=2.0),
    FileReport("a/y.pdf", FileStatus.FAILED, "locked", "unlock it", seconds=0.5),
    FileReport("b.pdf", FileStatus.UNCHANGED, documents=1, chunks=3),
    FileReport("Makefile", FileStatus.SKIPPED, "empty"),
    FileReport(".git/", FileStatus.SKIPPED, "version control"),
    FileReport("gone.md", FileStatus.REMOVED),
)
REPORT = IndexReport("g", FILES, 2, 12, 9, 3, 1.0)


@pytest.mark.slow
def test_the_table_of_a_run_adds_up(tmp_path):
    (tmp_path / "docs").mkdir()
    for n in range(20):
        (tmp_path / "docs" / f"{n}.md").write_text(f"# Note {n}\n\nwords\n", encoding="utf-8")
    (tmp_path / "docs" / "t.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    args = ["index", str(tmp_path / "docs"), "--corpus", str(tmp_path / "c"), "--encoder", "hashing"]
    output = CliRunner().invoke(main, args).output
    assert [line.split()[:5] for line in output.split("\n") if line.startswith(("  .", "  kind"))] == [
        ["kind", "files", "read", "documents", "chunks"], [".csv", "1", "1", "1", "1"], [".md", "20", "20", "20", "20"],
    ]  # fmt: skip
    none, pdf = by_kind(REPORT)
    assert (none.kind, none.files, none.skipped, none.reasons) == ("(none)", 1, 1, (("empty", 1),))
    assert (pdf.kind, pdf.files, pdf.read, pdf.unchanged, pdf.failed) == (".pdf", 3, 1, 1, 1)
    assert (pdf.documents, pdf.chunks, pdf.seconds, pdf.rate) == (2, 12, 2.5, 0.8)
    for row in (none, pdf):
        assert row.files == row.read + row.unchanged + row.skipped + row.failed


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("docs/a.md", "docs/sub/b.md", "notes/a.md", "c.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def test_the_second_root_with_a_path_of_the_first_gets_a_salt_for_good(tree):
    docs, notes = str(tree / "docs"), str(tree / "notes")
    roots = {docs: Root(docs, True, "", "{}"), notes: Root(notes, True, "", "{}")}
    held = {docs: {"a.md", "sub/b.md"}, notes: {"a.md"}}
    result, warnings = salted(roots, {docs, notes}, held)
    assert (result[docs].salt, result[notes].salt) == ("", "notes")
    assert "both hold a.md" in warnings[0]
    assert salted(result, set(), held) == (result, ())
    assert salted(roots, {notes}, {docs: {"x"}, notes: {"a.md"}})[1] == ()
    with pytest.raises(UsageError, match="Name at least one"):
        targets([])
    with pytest.raises(UsageError, match="no file or folder"):
        targets([tree / "none"])
