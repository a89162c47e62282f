"""Names that are no UTF-8, or are spelled in other bytes than they are stored: found, read, explained and taken out."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner
from corpus_files import run

import workbench as wb
from workbench.cli.main import main
from workbench.errors import UsageError

NFD = unicodedata.normalize("NFD", "café.md")
RAW = os.fsdecode(b"caf\xe9.md")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / NFD).write_text("# Coffee\n\nRoasted twice.\n")
    (folder / ".gitignore").write_bytes(b"*.tmp\nold\xe9*\n")
    try:
        (folder / "sub" / RAW).write_text("# Tea\n\nSteeped long.\n")
        (folder / os.fsdecode(b"old\xe9.md")).write_text("ignored\n")
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    return folder


def test_a_document_is_found_by_its_name_as_the_system_spells_it(docs: Path, tmp_path: Path) -> None:
    run(docs, tmp_path / "corpus")
    with wb.open_corpus(tmp_path / "corpus") as corpus:
        for name in (NFD, str(docs / NFD)):
            assert "Roasted" in corpus.read_file(name)
        for name in (f"sub/{RAW}", str(docs / "sub" / RAW), "sub/caf\\xe9.md"):
            assert "Steeped" in corpus.read_file(name)
        assert corpus.explain(corpus.search("steeped"), f"sub/{RAW}").found
        assert corpus.read_file("half of a \ud800 character").startswith("[ERROR: ")
        assert not corpus.explain(corpus.search("steeped"), "half of a \ud800 character").found


def test_what_has_such_a_name_can_be_taken_out(docs: Path, tmp_path: Path) -> None:
    run(docs, tmp_path / "corpus")
    assert wb.remove([docs / NFD], tmp_path / "corpus").documents == 1
    assert wb.remove([f"sub/{RAW}"], tmp_path / "corpus").documents == 0


def test_what_vanished_from_a_folder_of_such_a_name_goes_when_that_folder_is_indexed(
    docs: Path, tmp_path: Path
) -> None:
    folder = docs / unicodedata.normalize("NFD", "für")
    folder.mkdir()
    for name in ("a.md", "b.md"):
        (folder / name).write_text(f"# {name}\n\nwords\n")
    run(docs, tmp_path / "corpus")
    (folder / "b.md").unlink()
    report = run(folder, tmp_path / "corpus")
    assert [file.path for file in report.files if file.status.value == "removed"] == ["für/b.md"]


def test_a_folder_or_corpus_of_such_a_name_is_refused_in_words(docs: Path, tmp_path: Path) -> None:
    """Its path could not be stored, and the next run would index it a second time."""
    folder = tmp_path / os.fsdecode(b"fold\xe9r")
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nwords\n")
    with pytest.raises(UsageError, match=r"fold\\xe9r is not UTF-8"):
        run(folder, tmp_path / "corpus")
    answer = CliRunner().invoke(main, ["index", str(docs), "--corpus", str(folder), "--encoder", "hashing"])
    assert answer.exit_code == 2
    assert "is not UTF-8" in answer.output
