"""`index --dry-run` says what a run would do; `index --watch` does it again after each change; `corpus.yaml` chooses files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import workbench as wb
from workbench.cli.main import main
from workbench.errors import SettingError
from workbench.indexing.run import Action
from workbench.ingest.rules import parse_rules
from workbench.records import FileStatus


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Three files and a drafts folder."""
    folder = tmp_path / "docs"
    (folder / "drafts").mkdir(parents=True)
    for name in ("a.md", "b.md", "c.txt", "drafts/d.md"):
        (folder / name).write_text(f"# {name}\n\nWords of {name}.\n")
    return folder


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_dry_run_says_what_the_run_then_does(docs: Path, tmp_path: Path) -> None:
    """New, changed, unchanged, skipped, removed: the counts of both are the same, and nothing was written before."""
    corpus = tmp_path / "c.corpus"
    wb.index([docs], corpus, encoder="hashing")
    (docs / "a.md").write_text("# a\n\nOther words.\n")
    (docs / "b.md").unlink()
    (docs / "n.md").write_text("# n\n\nNew.\n")
    (corpus / "corpus.yaml").write_text('exclude: ["drafts/**"]\n')
    before = files_below(corpus)
    found = wb.preview([docs], corpus)
    assert files_below(corpus) == before
    assert {f.path: f.action for f in found.files} == {
        "a.md": Action.CHANGED, "b.md": Action.REMOVED, "c.txt": Action.UNCHANGED, "drafts/d.md": Action.SKIPPED,
        "n.md": Action.NEW,
    }  # fmt: skip
    report = wb.index([docs], corpus)
    assert report.count(FileStatus.INDEXED) == found.count(Action.NEW) + found.count(Action.CHANGED) == 2
    for status, action in ((FileStatus.UNCHANGED, Action.UNCHANGED), (FileStatus.REMOVED, Action.REMOVED)):
        assert report.count(status) == found.count(action) == 1
    assert report.count(FileStatus.SKIPPED) == found.count(Action.SKIPPED) == 1
    with wb.open_corpus(corpus) as opened:
        assert "drafts/d.md" not in opened.search("words", mode="keyword").frame()["path"].to_list()


def test_a_dry_run_says_which_files_have_the_same_bytes(docs: Path, tmp_path: Path) -> None:
    """As the run then does; nothing else of them is read."""
    corpus = tmp_path / "c.corpus"
    for name, of in (
        ("z.md", "a.md"),
        ("y.markdown", "a.md"),
        ("x.txt", "a.md"),
        ("drafts/s.md", "b.md"),
        ("b2.md", "b.md"),
    ):
        (docs / name).write_bytes((docs / of).read_bytes())
    (docs / "same-size.md").write_bytes((docs / "b.md").read_bytes().replace(b"W", b"V"))
    for name in ("empty", "empty2"):
        (docs / name).write_bytes(b"")
    corpus.mkdir()
    (corpus / "corpus.yaml").write_text("rules: [{path: 'drafts/**', roles: [hr]}]\n")
    found = wb.preview([docs], corpus, encoder="hashing")
    assert {f.path: f.copy_of for f in found.files if f.copy_of} == {
        "b2.md": "b.md",
        "drafts/s.md": "b.md",
        "x.txt": "a.md",
        "y.markdown": "a.md",
        "z.md": "a.md",
    }
    report = wb.index([docs], corpus, encoder="hashing")
    assert {f.path: f.same_as for f in report.files if f.same_as} == {
        f.path: f.copy_of for f in found.files if f.copy_of
    }
    assert (report.copies, found.copies) == (5, 5)
    (docs / "0.md").write_bytes((docs / "a.md").read_bytes())
    again = wb.preview([docs], corpus)
    assert {f.path: f.copy_of for f in again.files if f.copy_of} == {
        "a.md": "0.md", "x.txt": "0.md", "y.markdown": "0.md", "z.md": "0.md", "b2.md": "b.md", "drafts/s.md": "b.md",
    }  # fmt: skip
    done = CliRunner().invoke(main, ["index", str(docs), "--corpus", str(corpus), "--dry-run", "--list"])
    assert "6 files hold the same bytes as another\n" in done.output
    assert "  unchanged z.md: the same bytes as 0.md\n" in done.output


@pytest.mark.parametrize(
    ("data", "taken"),
    [
        ({"include": ["*.md"]}, ["a.md", "drafts/d.md"]),
        ({"include": "*.md", "exclude": "drafts/"}, ["a.md"]),
        ({"exclude": ["**/d.*", "*.txt"]}, ["a.md"]),
        ({}, ["a.md", "c.txt", "drafts/d.md"]),
    ],
)
def test_include_and_exclude_choose_files(data: dict[str, object], taken: list[str]) -> None:
    """Patterns as in .gitignore; exclusions win; what is left out is said with the pattern."""
    rules = parse_rules(data)
    assert [p for p in ("a.md", "c.txt", "drafts/d.md") if not rules.left_out(p)] == taken
    assert all("corpus.yaml" in rules.left_out(p) for p in ("a.md", "c.txt", "drafts/d.md") if p not in taken)


@pytest.mark.parametrize("value", [[""], ["!a"], ["#a"], [3], {"a": 1}, ["[z-a]"], ["[[:nonsense:]]"]])
def test_a_pattern_that_cannot_be_is_refused(value: object) -> None:
    """One sentence that names the key."""
    with pytest.raises(SettingError, match="exclude in"):
        parse_rules({"exclude": value})


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
def test_watching_follows_changes_until_ctrl_c(docs: Path, tmp_path: Path) -> None:
    """A new, a changed and a removed file are found, and changed rules; one that cannot be is said and does not end it."""
    corpus = tmp_path / "c.corpus"
    log = tmp_path / "log"
    # Where the tests run in the background Ctrl-C is ignored, and a process inherits that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                sys.executable, "-m", "workbench.cli.main", "index", str(docs), "--corpus", str(corpus), "--encoder", "hashing",
                "--watch",
            ],
            stdout=out, stderr=subprocess.STDOUT, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
    signal.signal(signal.SIGINT, before or signal.SIG_DFL)

    def found(word: str) -> int:
        with wb.open_corpus(corpus) as opened:
            return len(opened.search(word, mode="keyword").hits)

    try:
        _wait(lambda: "Watching" in log.read_text())
        assert (found("words"), found("zebra")) == (4, 0)
        (docs / "new.md").write_text("# New\n\nA zebra.\n")
        _wait(lambda: found("zebra") == 1)
        (docs / "a.md").write_text("# A\n\nTwo zebras: zebra.\n")
        (docs / "b.md").unlink()
        _wait(lambda: (found("zebra"), found("words")) == (2, 2))
        (corpus / "corpus.yaml").write_text("nonsense: 1\n")
        _wait(lambda: "nonsense" in log.read_text())
        (docs / "new.md").write_text("# New\n\nA giraffe.\n")
        (corpus / "corpus.yaml").unlink()
        _wait(lambda: found("giraffe") == 1)
        (corpus / "corpus.yaml").write_text("exclude: [new.md]\n")
        _wait(lambda: found("giraffe") == 0)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert "Stopped watching" in log.read_text()
    finally:
        process.kill()
        process.wait()
