"""Every command that the guide, a notebook, a page or a message prints is a command: it runs on a small corpus.

A command that serves, asks an endpoint, or loads a model or another package is only parsed, down to its last option.
"""

import ast
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import file_makers
import pytest
from click.testing import CliRunner

import workbench as wb
from workbench import guide
from workbench.cli.main import COMMANDS, main

ROOT = Path(__file__).parents[2]
_COMMAND = rf"(?:[A-Z_]+=\S+ )*workbench (?:{'|'.join(COMMANDS)})\b"
_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.M | re.S)
_PARSED_ONLY = re.compile(r"^(app|mcp|demo|table|judge machine)\b|--encoder|--watch|machine:|--store|--ray")

PLACEHOLDERS = {
    "QUERY": "'how do retries work'", "TARGET": "docs/http.md", "JUDGMENTS": "judgments", "PATH": "docs", "PATH...": "docs",
    "PATH-TO-YOUR-FILES": "docs", "COLLECTION": "data/scifact", "COLLECTION...": "data/scifact", "FOLDER": "docs",
    "SET": "support", "NAME": "support", "ID": "@snapshot", "d1b2d78950ec1262": "@snapshot", "FILE": "a.file", "MODEL": "m",
    "machine:MODEL": "machine:m", "A": "hashing", "B": "hashing",
}  # fmt: skip
"""What stands for a value in a text -> the value here."""

VALUES = {
    "name": "support", "shell(name)": "support", "shlex.quote(name)": "support", "shlex.quote(o.name)": "support",
    "shlex.quote(known_name)": "support", "options": "--corpus my.corpus", "_options(corpus)": "--corpus my.corpus",
    "where": "--corpus my.corpus", "place": "--corpus my.corpus",
    "where(corpus)": "--corpus my.corpus", "shlex.quote(str(out))": "plan.yaml", "PACKAGED": "hashing",
    "shlex.quote(missing[0])": "docs/old.md", "shlex.quote(str(built.corpus))": "my.corpus",
    "shlex.quote(plain(str(resources.corpus_path()), 300))": "my.corpus",
    "shlex.quote(plain(str(path), 300))": "my.corpus", "shlex.quote(str(corpus))": "my.corpus",
    "shlex.quote(str(path))": "my.corpus", "to": "docs",
    "shlex.quote(plain(str(path.absolute()), 300))": "my.corpus",
}  # fmt: skip
"""The expressions that messages put into their commands -> the value here."""


def marked(text: str) -> Iterator[str]:
    """Commands between backticks; one without an argument names a command and says nothing about how it is called."""
    for found in re.findall(rf"`({_COMMAND}[^`]*)`", text):
        yield " ".join(found.split())


def of_markdown(text: str) -> Iterator[str]:
    """Commands of a page: lines of its blocks, and those between backticks."""
    for block in _BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if re.match(rf"(\$ )?{_COMMAND}", line):
                yield line.removeprefix("$ ")
    yield from marked(_BLOCK.sub("", text))


def of_code(path: Path) -> Iterator[str]:
    """Commands in the texts of a module, except its first, which nobody is shown."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    first = tree.body[0].value if tree.body and isinstance(tree.body[0], ast.Expr) else None
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "{" + ast.unparse(p.value) + "}" for p in node.values)
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside | {id(first)}:
            text = node.value
        else:
            continue
        yield from marked(text)
        for line in re.sub(r"`[^`]*`", "", text).splitlines():
            found = re.findall(rf"(?:^\s*|: |; |Run )({_COMMAND}.*)", line)
            yield from (re.split(r" {3,}", command)[0] for command in found)  # what it does stands in a second column


def texts() -> Iterator[tuple[str, str]]:
    pages = [
        guide.FOLDER / f"{name}.md" for name in guide.PAGES if name != "reference"
    ]  # that one has no commands to run
    for path in (ROOT / "README.md", *pages):
        yield from ((path.name, found) for found in of_markdown(path.read_text(encoding="utf-8")))
    for path in sorted((ROOT / "notebooks").glob("*.py")):
        said = re.sub(r"^# ?", "", path.read_text(encoding="utf-8"), flags=re.M)
        yield from ((path.name, found) for found in marked(said))
    for path in sorted((ROOT / "workbench").rglob("*.py")):
        yield from ((str(path.relative_to(ROOT)), found) for found in of_code(path))


def arguments(command: str, snapshot: str) -> list[str]:
    """The words after `workbench`, with values for what stands for one."""
    command = re.sub(r"\{(.+?)\}(?=\s|$)", lambda m: VALUES[m[1]] if m[1] in VALUES else f"{{{m[1]}}}", command)
    words = shlex.split(command.partition("workbench ")[2], comments=True)
    words = [word for name in words for word in shlex.split(PLACEHOLDERS.get(name, shlex.quote(name)))]
    return [snapshot if word == "@snapshot" else word for word in words]


def leaf(words: list[str]) -> tuple[click.Command, list[str]]:
    command: click.Command = main
    while isinstance(command, click.Group) and words:
        with click.Context(command) as context:
            _, found, words = command.resolve_command(context, words)
        command = found
    return command, words


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files, corpora, sets and judgments that the texts speak of."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "http.md").write_text(
        "# Retries\n\nHow do retries work: a request is sent again after a pause. See the note.\n"
    )
    (docs / "music.md").write_text(
        "# Waltz\n\nA waltz in three.\n\n## Examples\n\n```js\nnote('c e g').s('waltz')\n```\n"
    )
    (docs / "sales.xlsx").write_bytes(file_makers.xlsx({"May": [["what", "sum"], ["tea", 3], ["ham", 4]]}))
    (docs / "old.md").write_text("# Old\n\nNobody asks for it.\n")
    for n in range(12):
        (docs / f"n{n}.md").write_text(
            f"# Refund number {n}\n\nHow long do refunds of order {n} take? Some {n} days.\n"
        )
    for name in ("my-notes", "notes", "messy"):
        shutil.copytree(docs, tmp_path / name)
    shutil.copytree(ROOT / "data" / "sample", tmp_path / "data" / "sample")
    for name in ("judgments", "qrels-folder", "data/scifact"):
        made = tmp_path / name
        (made / "qrels").mkdir(parents=True)
        rows = [(f"q{n}", f"n{n}.md", f"refunds of order {n}") for n in range(12)]
        (made / "queries.jsonl").write_text("".join(json.dumps({"_id": q, "text": t}) + "\n" for q, _, t in rows))
        (made / "corpus.jsonl").write_text("".join(json.dumps({"_id": d, "text": t}) + "\n" for _, d, t in rows))
        (made / "qrels" / "test.tsv").write_text(
            "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t1\n" for q, d, _ in rows)
        )
    for name in ("questions.txt", "a.file"):
        (tmp_path / name).write_text("how long do refunds take\nwhat is a waltz\n")
    (tmp_path / "other.run").write_text("".join(f"q{n} Q0 n{n}.md 1 1.0 other\n" for n in range(12)))
    (tmp_path / "plan.yaml").write_text(wb.preset("tmm").to_yaml())
    shutil.copy(tmp_path / "plan.yaml", tmp_path / "winner.yaml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WORKBENCH_ENCODER", "hashing")
    monkeypatch.setenv("WORKBENCH_WORKERS", "0")
    wb.index([docs], corpus=".workbench", encoder="hashing", workers=0)
    for name in ("my.corpus", "large.corpus", "small.corpus"):
        shutil.copytree(".workbench", name)
    (tmp_path / "sample.corpus").mkdir()
    shutil.copy(ROOT / "data" / "sample" / "corpus.yaml", "sample.corpus")
    wb.index([ROOT / "data" / "sample" / "files"], corpus="sample.corpus", encoder="hashing", workers=0)
    for name in (".workbench", "my.corpus"):
        for kept in ("support", "scifact"):
            for judge in ("ann", "bob"):
                run(["judge", "import", "judgments", "--set", kept, "--judge", judge, "--corpus", name])
    run(["check", "judgments", "--plan-file", "winner.yaml", "--save", "good.json"])
    for name in ("before", "edited", "after"):
        run(["snapshot", "save", "retry pause", "-o", f"{name}.snapshot"])
    return tmp_path


def run(words: list[str]) -> click.testing.Result:
    made = CliRunner().invoke(main, words)
    assert made.exit_code in (0, 1), f"{words}: {made.output}"
    assert made.exit_code == 0 or not made.exception or isinstance(made.exception, SystemExit), made.exception
    return made


@pytest.mark.slow
def test_every_printed_command_runs(folder):
    """README's and the guide's in their order, with the files that the lines before them wrote."""
    snapshot = json.loads(run(["snapshot", "save", "retry pause", "note", "--json"]).output)["id"]
    wrong, ran, done = [], 0, set()
    for where, command in texts():
        if command in done:
            continue
        done.add(command)
        words = arguments(command, snapshot)
        try:
            left = [w for w in words if "{" in w]
            assert not left, f"{left}: what this stands for is not in VALUES"
            named, rest = leaf(words)
            if not rest:
                continue  # it names a command
            if _PARSED_ONLY.search(" ".join(words)):
                with pytest.MonkeyPatch.context() as environment:  # `--store` sets a setting of the process
                    environment.setenv("WORKBENCH_STORE", "")
                    named.make_context(words[0], list(rest))
                continue
            run(words)
            ran += 1
        except (AssertionError, click.ClickException, ValueError) as exc:
            wrong.append(f"{where}: {command}\n    {exc}")
    assert not wrong, "\n".join(wrong)
    assert ran > 30
