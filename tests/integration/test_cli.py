"""The command line: what it prints, and its exit codes 0, 1 and 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from corpus_files import write_files

from workbench.cli.main import COMMANDS, main

SEE_ALL = ("--tenant", "acme", "--role", "admin", "--role", "support")


def run(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    done = run(name, "--help")
    assert done.exit_code == 0
    assert "Usage:" in done.output


@pytest.mark.slow
def test_index_search_and_read(tmp_path: Path) -> None:
    """A folder is indexed, found, read and indexed again with nothing to do."""
    source = write_files(
        tmp_path / "notes", {"a.md": "# Retries\n\nWait with backoff.\n", "b.bin": "\x00\x01", "c.mp3": "x"}
    )
    corpus = tmp_path / "corpus"
    first = run("index", source, "--corpus", corpus, "--encoder", "hashing")
    assert first.exit_code == 0, first.output
    assert "3 files: 1 indexed, 0 unchanged, 2 skipped, 0 failed; 0 removed" in first.output
    (made,) = [
        line for line in first.output.splitlines() if "generation" in line
    ]  # one line, also where 80 are too few
    assert made.startswith("1 document, 1 chunk; 1 embedded, 0 reused; ")
    again = json.loads(run("index", source, "--corpus", corpus, "--json").output)
    assert (again["changed"], again["embedded"], again["counts"]["unchanged"]) == (False, 0, 1)
    found = run("search", "backoff", "--corpus", corpus)
    assert found.exit_code == 0
    assert "a.md:1-3" in found.output
    assert "1 result" in found.output
    assert run("read", "a.md", "--corpus", corpus).output == "# Retries\n\nWait with backoff.\n\n"
    assert "a.md" in run("grep", "backoff", "--corpus", corpus).output
    assert json.loads(run("info", "--corpus", corpus, "--json").output)["documents"] == 1


def test_exit_codes(sample_path: Path) -> None:
    """1 when nothing is found, 2 with one sentence when the input cannot be read."""
    at = ("--corpus", sample_path, *SEE_ALL)
    assert run("search", "qqxzzv", "--mode", "keyword", *at).exit_code == 1
    assert run("grep", "qqxzzv", *at).exit_code == 1
    assert run("read", "kb/none.md", *at).exit_code == 1
    assert run("read", "/etc/passwd", *at).exit_code == 2
    for bad in (
        ("search", "x", "--set", "fusion.kk=1", *at),
        ("search", "x", "--filter", "colour = 'red'", *at),
        ("search", "x", "--corpus", sample_path / "none"),
        ("search", "x", "--corpus", sample_path),
        ("grep", "(open", "--regex", *at),
        ("search", "x", "--preset", "none", *at),
    ):
        done = run(*bad)
        assert done.exit_code == 2, bad
        assert done.stderr.startswith("workbench: ")
        assert len(done.stderr.strip().split("\n")) == 1, done.stderr
    assert run("search").exit_code == 2
    assert run("nonsense").exit_code == 2


def test_json_is_the_result(sample_path: Path) -> None:
    done = run("search", "how do retries work", "--json", "--limit", "3", "--corpus", sample_path, *SEE_ALL)
    data = json.loads(done.output)
    assert [h["rank"] for h in data["hits"]] == [1, 2, 3]
    assert "timings_ms" not in data
    timed = run("search", "retries", "--json", "--timings", "--corpus", sample_path, *SEE_ALL)
    assert json.loads(timed.output)["timings_ms"]["total_ms"] > 0


def test_explain_and_compare(sample_path: Path) -> None:
    at = ("--corpus", sample_path, *SEE_ALL)
    done = run("explain", "how do retries work", "kb/kettle.md", "--set", "limit=1", *at)
    assert done.exit_code == 0
    assert "dropped by limit" in done.output
    assert "it is then a result" in done.output
    assert run("explain", "retries", "none.md", *at).exit_code == 1
    table = run("compare", "retries", "--plan", "default", "--plan", "tmm", *at)
    assert "Overlap" in table.output
    assert "tmm" in table.output


def test_eval_prints_a_table_and_a_verdict(sample_path: Path, tmp_path: Path) -> None:
    from workbench.demo import sample_folder

    at = ("--corpus", sample_path, *SEE_ALL)
    done = run("eval", sample_folder(), "--plan", "default", "--plan", "rrf", "--run", tmp_path / "run.txt", *at)
    assert done.exit_code == 0, done.output
    assert "rrf" in done.output
    assert "default: nDCG@10" in " ".join(done.output.split())
    assert (tmp_path / "run.txt").read_text().startswith("s01 Q0 ")
    data = json.loads(run("eval", sample_folder(), "--json", "--mode", "keyword", *at).output)
    assert data[0]["plan"] == "keyword: default"
    assert run("eval", tmp_path / "none", *at).exit_code == 2


def test_doctor_examines_without_a_model(sample_path: Path) -> None:
    done = run("doctor", "--no-model", "--verify", "--json", "--corpus", sample_path)
    found = json.loads(done.output)
    assert {f["area"] for f in found} == {"versions", "settings", "corpus", "desk"}
    assert not [f for f in found if f["state"] == "fault"], found
    assert done.exit_code == 0


def test_doctor_names_settings_and_keeps_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong setting is a fault with its remedy, one that there is not is noted; a key is only said to be set."""
    monkeypatch.setenv("WORKBENCH_ENDPOINT_KEY", "sesame")
    monkeypatch.setenv("WORKBENCH_THREADS", "many")
    monkeypatch.setenv("WORKBENCH_ENCODRE", "static")
    done = run("doctor", "--no-model", "--json", "--corpus", "none")
    found = {f["name"]: f for f in json.loads(done.output) if f["area"] == "settings"}
    assert found["endpoint_key"]["said"] == "set"
    assert found["threads"]["state"] == "fault"
    assert found["WORKBENCH_ENCODRE"]["state"] == "note"
    assert found["WORKBENCH_ENCODRE"]["said"].endswith("did you mean WORKBENCH_ENCODER?")
    assert "sesame" not in done.output
    assert done.exit_code == 1


@pytest.mark.slow
def test_square_brackets_are_text_in_every_table(tmp_path: Path) -> None:
    """Paths, queries and texts are never read as markup of the terminal library, nor as escape sequences."""
    name, query = "app/[slug]/[bold]x[/].md", "what does [/kettle] \x1b[2J mean"
    corpus = tmp_path / "corpus"
    folder = write_files(
        tmp_path / "files", {name: "# [/b]\n\nkettle [red]words[/red] \x9b2J\n", "b.md": "# Other\n\nkettle\n"}
    )
    assert "[slug]" in run("index", folder, "--corpus", corpus, "--list").output
    (tmp_path / "q.txt").write_text(query + "\n")
    for command in (
        ("search", query, "--mode", "keyword"),
        ("compare", query, "--plan", "rrf", "--plan", "contract"),
        ("compare", "--queries", tmp_path / "q.txt", "--plan", "rrf", "--plan", "contract"),
        ("explain", query, name),
        ("grep", "[red]"),
        ("read", name),
        ("judge", "add", "[/set]", query),
        ("judge", "list"),
        ("search", query, "--mode", "keyword", "--json"),
        ("search", "x", "--filter", "[/nope] \x1b = 1"),
        ("snapshot", "save", query, "--mode", "keyword", "--note", "[/note]"),
        ("snapshot", "list"),
    ):
        result = run(*command, "--corpus", corpus)
        assert result.exception is None or isinstance(result.exception, SystemExit), command
        if command[0] != "read":
            assert "\x1b" not in result.output, command
            assert "\x9b" not in result.output, command
        if command[0] in ("search", "explain", "grep") and "x" not in command:
            assert "[slug]/[bold]x[/].md" in result.output, command


@pytest.mark.slow
def test_two_hash_seeds_print_the_same_bytes(sample_path: Path) -> None:
    """Nothing depends on the order of a set: two processes with different hash seeds print the same JSON."""
    asked = (
        "how do retries work",
        "--keywords",
        "backoff timeout",
        "--set",
        "sources=vector,grep,keyword",
        "--limit",
        "40",
    )
    command = [sys.executable, "-m", "workbench", "search", *asked, "--json", "--corpus", str(sample_path), *SEE_ALL]
    outputs = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("1", "2")
    }
    assert json.loads(outputs.pop())["hits"]
    assert not outputs
