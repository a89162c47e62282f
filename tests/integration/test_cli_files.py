"""Files that commands read and write: what is wrong with one is said in a sentence, and before any work is done."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import workbench as wb
from workbench.cli.main import main
from workbench.demo.data import sample_folder

SEE_ALL = ("--tenant", "acme", "--role", "admin", "--role", "support")


def run(*arguments: object) -> Result:
    """Run a command in this process; what it does not catch comes out."""
    return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)


@pytest.mark.parametrize(
    "command",
    [
        ("tune", sample_folder(), "--grid", "fusion.alpha=0.5,0.8", "--out"),
        ("check", sample_folder(), "--save"),
        ("eval", sample_folder(), "--run"),
        ("run", "export", sample_folder()),
        ("learn", sample_folder(), "--output"),
        ("snapshot", "save", "retries", "--out"),
    ],
    ids=lambda c: c[0],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    command: tuple[object, ...], sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is not there, or a folder in the file's place: exit 2, and nothing was searched for it."""
    monkeypatch.setattr("workbench.cli.options.Asker.open", lambda *_, **__: pytest.fail("the corpus was opened"))
    for target, said in ((tmp_path / "none" / "file.txt", "There is no folder"), (tmp_path, "is a directory")):
        done = run(*command, target, "--corpus", sample_path, *SEE_ALL)
        assert done.exit_code == 2
        assert said in done.stderr


def test_a_plan_file_that_is_no_text_is_named(sample_path: Path, tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are one sentence, not a trace."""
    bad = tmp_path / "plan.yaml"
    bad.write_bytes(b"\xff\xfe\x00preset")
    done = run("search", "retries", "--plan-file", bad, "--corpus", sample_path, *SEE_ALL)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"workbench: The plan file {bad} cannot be read")


def test_a_file_error_of_the_system_is_one_sentence(sample_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever command meets it, with the file and the system's word for what is wrong."""

    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "run.txt")

    monkeypatch.setattr("workbench.evaluate.guarding.save_baseline", fails)
    done = run("check", sample_folder(), "--save", "run.txt", "--corpus", sample_path, *SEE_ALL)
    assert done.exit_code == 2
    assert done.stderr == "workbench: run.txt: No space left on device. Check the path, its rights and the disk.\n"


@pytest.mark.parametrize("words", [["doctor", "--no-model"], ["info"], ["snapshot", "list"]], ids=lambda w: w[0])
def test_a_corpus_is_named_from_the_home_folder(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--corpus=~/x`, which a shell leaves as it is, is the folder in the home folder for every command."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "notes.md").write_text("# Notes\n\nA pelican.\n")
    wb.index([tmp_path / "notes.md"], corpus=tmp_path / "my.corpus", encoder="hashing", workers=0)
    done = CliRunner().invoke(main, [*words, "--corpus=~/my.corpus"])
    assert "There is no corpus" not in done.output
    assert "~" not in done.output
    assert done.exit_code == (1 if "snapshot" in words else 0), done.output
