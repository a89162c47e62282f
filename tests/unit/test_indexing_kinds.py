"""The report of a run by kinds of files."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from workbench.cli.main import main
from workbench.indexing.report import by_kind, kind_of, slowest
from workbench.reports import FileReport, FileStatus, IndexReport

FILES = (
    FileReport("a/x.PDF", FileStatus.INDEXED, documents=1, chunks=9, seconds=2.0),
    FileReport("a/y.pdf", FileStatus.FAILED, "locked", "unlock it", seconds=0.5),
    FileReport("b.pdf", FileStatus.UNCHANGED, documents=1, chunks=3),
    FileReport("Makefile", FileStatus.SKIPPED, "empty"),
    FileReport(".git/", FileStatus.SKIPPED, "version control"),
    FileReport("gone.md", FileStatus.REMOVED),
)
REPORT = IndexReport("g", FILES, 2, 12, 9, 3, 1.0)


def test_every_file_is_in_one_row_and_the_counts_add_up() -> None:
    none, pdf = by_kind(REPORT)
    assert (none.kind, none.files, none.skipped, none.reasons) == ("(none)", 1, 1, (("empty", 1),))
    assert (pdf.kind, pdf.files, pdf.read, pdf.unchanged, pdf.failed) == (".pdf", 3, 1, 1, 1)
    assert (pdf.documents, pdf.chunks, pdf.seconds, pdf.rate) == (2, 12, 2.5, 0.8)
    for row in (none, pdf):
        assert row.files == row.read + row.unchanged + row.skipped + row.failed


def test_the_slowest_files_come_first() -> None:
    assert [file.path for file in slowest(REPORT)] == ["a/x.PDF", "a/y.pdf"]
    assert [file.path for file in slowest(REPORT, 1)] == ["a/x.PDF"]


def test_a_kind_is_the_suffix_of_the_name() -> None:
    assert [kind_of(p) for p in ("a.b/c", "x.tar.GZ", ".bashrc", "a.md")] == ["(none)", ".gz", "(none)", ".md"]


@pytest.mark.slow
def test_the_command_prints_the_table(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for n in range(20):
        (tmp_path / "docs" / f"{n}.md").write_text(f"# Note {n}\n\nwords\n", encoding="utf-8")
    (tmp_path / "docs" / "t.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    args = ["index", str(tmp_path / "docs"), "--corpus", str(tmp_path / "c"), "--encoder", "hashing"]
    output = CliRunner().invoke(main, args).output
    assert [line.split()[:5] for line in output.split("\n") if line.startswith(("  .", "  kind"))] == [
        ["kind", "files", "read", "documents", "chunks"], [".csv", "1", "1", "1", "1"], [".md", "20", "20", "20", "20"],
    ]  # fmt: skip
