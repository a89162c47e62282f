"""Many queries under several plans: what each finds first, and what the plans share, by documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import workbench as wb
from workbench.cli.main import main
from workbench.demo import sample_folder
from workbench.errors import UsageError
from workbench.retrieve.compare import Asked, compare_many, read_queries

Make = Callable[..., wb.Corpus]
SEE_ALL = ("--tenant", "acme", "--role", "admin", "--role", "support")


def run(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)


def test_each_plan_is_held_against_the_first(make_corpus: Make) -> None:
    """Shared documents, jaccard, rbo and the first place are those of the first plan's list of documents."""
    corpus = make_corpus({"a.md": "apples", "b.md": "apples and pears", "c.md": "plums"})
    made = compare_many(
        corpus.compare, [Asked("apples"), Asked("plums")], ["sources=keyword", "vector.threshold=off", "sources=grep"]
    )
    frame = made.frame()
    assert frame["plan"].to_list() == [*made.names, *made.names]
    keyword, both, grep = frame.to_dicts()[:3]
    assert (keyword["hits"], keyword["documents"], keyword["shared"], keyword["rbo"]) == (2, 2, 2, 1.0)
    assert keyword["top"] == "a.md:1-1"
    assert (both["hits"], both["shared"], both["jaccard"]) == (3, 2, pytest.approx(2 / 3))
    assert (grep["hits"], grep["shared"], grep["jaccard"], grep["same_top"]) == (2, 2, 1.0, True)
    summary = {row["plan"]: row for row in made.summary().to_dicts()}
    assert summary[made.names[0]] == {
        "plan": made.names[0], "queries": 2, "empty": 0, "hits": 1.5, "same_top": 2, "shared": 1.5, "jaccard": 1.0, "rbo": 1.0,
    }  # fmt: skip


def test_a_query_that_finds_nothing_is_counted(make_corpus: Make) -> None:
    """No first result, an empty list; two empty lists are the same."""
    corpus = make_corpus({"a.md": "apples"})
    made = compare_many(corpus.compare, [Asked("zebra")], ["sources=keyword", "sources=grep", "vector.threshold=off"])
    rows = made.frame().to_dicts()
    assert [(r["hits"], r["top"], r["same_top"]) for r in rows[:2]] == [(0, None, True)] * 2
    assert rows[2]["same_top"] is False
    assert made.summary()["empty"].to_list() == [1, 1, 0]


def test_chunks_of_one_document_and_the_document_are_the_same_answer(make_corpus: Make) -> None:
    """Plans of another unit are compared by documents, and added rows of a page are no hits."""
    text = "# Page\n\n## Summary\n\nIn short.\n\n" + "".join(f"## S{n}\n\n{'apples ' * 150}\n\n" for n in range(4))
    corpus = make_corpus({"a.md": text, "b.md": "pears"})
    rows = (
        compare_many(corpus.compare, [Asked("apples")], ["vector.threshold=off", "contract", "pages limit=2"])
        .frame()
        .to_dicts()
    )
    assert [r["documents"] for r in rows] == [2, 2, 1]
    assert rows[1]["rbo"] == 1.0
    assert rows[2]["hits"] == 2


def test_queries_are_read_as_lines_or_records(tmp_path: Path) -> None:
    """One query a line, blank lines left out; JSON lines may give keywords."""
    (tmp_path / "a.txt").write_text("one\n\n  two words \n", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"_id": "1", "text": "x", "keywords": "y"}\n{"text": "z"}\n', encoding="utf-8")
    assert read_queries(tmp_path / "a.txt") == (Asked("one"), Asked("two words"))
    assert read_queries(tmp_path / "b.jsonl") == (Asked("x", "y"), Asked("z"))
    for line in ('{"text": 3}', '{"query": "x"}', "[]", "x", '{"text": " "}', '{"text": "x", "keywords": 1}'):
        (tmp_path / "q.jsonl").write_text('{"text": "fine"}\n' + line + "\n", encoding="utf-8")
        with pytest.raises(UsageError, match=r"Line 2 of .*q\.jsonl is not a query"):
            read_queries(tmp_path / "q.jsonl")
    (tmp_path / "empty.txt").write_text("\n \n", encoding="utf-8")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    for name, said in (
        ("empty.txt", "has no queries"),
        ("bytes.txt", "cannot be read"),
        ("none.txt", "cannot be read"),
    ):
        with pytest.raises(UsageError, match=said):
            read_queries(tmp_path / name)


def test_what_compare_needs_is_told(sample_path: Path, tmp_path: Path) -> None:
    """A query or a file, at least one plan, keywords with one query only."""
    (tmp_path / "q.txt").write_text("x\n")
    at = ("--corpus", sample_path, *SEE_ALL)
    for arguments, said in (
        (("compare", "--plan", "default"), "either a query or --queries FILE"),
        (("compare", "x", "--queries", tmp_path / "q.txt", "--plan", "default"), "either a query or --queries FILE"),
        (("compare", "x"), "There is no plan to compare"),
        (
            ("compare", "--queries", tmp_path / "q.txt", "--plan", "default", "-k", "y"),
            "--keywords belongs to one query",
        ),
    ):
        done = run(*arguments, *at)
        assert done.exit_code == 2
        assert said in done.stderr


def test_plans_come_from_presets_texts_and_files(sample_path: Path, tmp_path: Path) -> None:
    """--plan and --preset are the same; files come after them; --set changes every plan."""
    (tmp_path / "mine.yaml").write_text("preset: tmm\nfields:\n  fusion:\n    alpha: 0.5\n")
    arguments = (
        "--preset",
        "contract",
        "--plan",
        "default fusion.k=5",
        "--plan-file",
        tmp_path / "mine.yaml",
        "--set",
        "limit=3",
    )
    names = ["contract limit=3", "default limit=3 fusion.k=5", "tmm limit=3 fusion.alpha=0.5"]
    at = ("--corpus", sample_path, *SEE_ALL, "--json")
    compared = json.loads(run("compare", "retries", *arguments, *at).output)
    assert [(o["a"], o["b"]) for o in compared["overlap"]] == [
        (names[0], names[1]),
        (names[0], names[2]),
        (names[1], names[2]),
    ]
    measured = json.loads(run("eval", sample_folder(), *arguments, *at).output)
    assert [m["plan"] for m in measured] == names
