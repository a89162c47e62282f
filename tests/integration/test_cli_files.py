"""Files that commands read and write: what is wrong with one is said in a sentence, and before any work is done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from corpus_files import write_judged

import workbench as wb
from workbench.cli.main import main
from workbench.demo import sample_folder

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
        ("snapshot", "save", "retries", "--out"),
    ],
    ids=lambda c: c[0],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    command: tuple[object, ...], sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is not there, or a folder in the file's place: exit 2, and nothing was searched for it."""
    monkeypatch.setattr("workbench.cli.options.Given.open", lambda *_, **__: pytest.fail("the corpus was opened"))
    for target, said in ((tmp_path / "none" / "file.txt", "There is no folder"), (tmp_path, "is a directory")):
        done = run(*command, target, "--corpus", sample_path, *SEE_ALL)
        assert done.exit_code == 2
        assert said in done.stderr


@pytest.fixture(scope="module")
def judged_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve judged queries and what they are in other forms."""
    folder = write_judged(tmp_path_factory.mktemp("files"), 12)
    lines = [line.split(",") for line in (folder / "judged.csv").read_text().splitlines()[1:]]
    (folder / "plain.qrels").write_text("".join(f"{i} 0 {path} 1\n" for i, _, path, _ in lines))
    (folder / "plain.topics.tsv").write_text("".join(f"{i}\t{text}\n" for i, text, _, _ in lines))
    (folder / "beir" / "qrels").mkdir(parents=True)
    (folder / "beir" / "qrels" / "test.tsv").write_text("".join(f"{i}\t{path}\t1\n" for i, _, path, _ in lines))
    queries = "".join(json.dumps({"_id": i, "text": text}) + "\n" for i, text, _, _ in lines)
    (folder / "beir" / "queries.jsonl").write_text(queries)
    (folder / "plan.yaml").write_text("preset: rrf\n")
    (folder / "run.txt").write_text("q0 Q0 f00.md 1 1 other\n")
    (folder / "linked.csv").symlink_to(folder / "judged.csv")
    (folder / "corpus" / "desk.sqlite").touch()
    return folder


OVER_INPUTS = """
check judged.csv --save judged.csv
check judged.csv --save ./linked.csv
check judged.csv --plan-file plan.yaml --save plan.yaml
check plain.qrels --save plain.topics.tsv
check beir --save beir/queries.jsonl
check beir/qrels/test.tsv --save beir/queries.jsonl
check judged.csv --save corpus/desk.sqlite
tune judged.csv --grid fusion.k=1,60 --plan rrf --out judged.csv
tune judged.csv --grid fusion.k=1,60 --plan rrf --test beir/qrels/test.tsv --out beir/qrels/test.tsv
eval judged.csv --run judged.csv
eval judged.csv --with-run run.txt --run run.txt
run export judged.csv judged.csv
run export beir beir/queries.jsonl
snapshot save word1 --judgments judged.csv --out judged.csv
snapshot export run.txt --html --out run.txt
judge export judged corpus/desk.sqlite
"""


@pytest.mark.parametrize("words", OVER_INPUTS.strip().splitlines())
def test_no_command_writes_over_its_own_input(judged_place: Path, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 2 with a sentence before any work, under whatever name, and every file is as it was."""
    monkeypatch.setattr("workbench.cli.options.Given.open", lambda *_, **__: pytest.fail("the corpus was opened"))
    monkeypatch.chdir(judged_place)
    before = {p: p.read_bytes() for p in judged_place.rglob("*") if p.is_file()}
    done = run(*words.split(), "--corpus", "corpus")
    assert done.exit_code == 2, done.output
    assert "is an input of this command, and would be overwritten. Write to another file." in done.stderr
    assert {p: p.read_bytes() for p in judged_place.rglob("*") if p.is_file()} == before


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

    monkeypatch.setattr("workbench.evaluate.distribution.save_baseline", fails)
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


def test_a_remark_on_an_indexed_file_is_printed(tmp_path: Path) -> None:
    """Once a reason with the number of files, so that what a file asked for and did not get is seen without --list."""
    for n in range(3):
        (tmp_path / f"{n}.md").write_text(f"---\nsensitivity: public\n---\n# Part {n}\n")
    words = ["index", str(tmp_path), "--corpus", str(tmp_path / "corpus"), "--encoder", "hashing"]
    said = CliRunner().invoke(main, words).output
    assert "note on 3: It says sensitivity: public, and the rules normal, which it keeps. To allow it, index it" in said
