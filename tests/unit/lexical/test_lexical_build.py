"""Building the word index: what its tables hold, however the work is cut, and what is refused."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from lexical_corpus import build

from workbench.errors import CorpusError
from workbench.records import Progress
from workbench.store.lexical import build as lexical_build
from workbench.store.types import Scope

TEXTS = [f"word{i % 7} shared Words_of{i % 5} run running runs 数据{i} fooBar-{i}" for i in range(200)]


def test_the_same_records_give_the_same_rows_however_they_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the size of blocks and runs nor the number of threads leaves a trace; progress ends with every word."""
    reports: list[Progress] = []
    whole = build(tmp_path / "whole", TEXTS, progress=reports.append)
    monkeypatch.setattr(lexical_build, "BLOCK_CHARACTERS", 500)
    monkeypatch.setenv("WORKBENCH_THREADS", "3")
    cut = build(tmp_path / "cut", TEXTS, run_pieces=64)
    for table in ("postings", "lengths", "words_made_with"):
        rows = f"SELECT * FROM {table}"
        assert whole.connection.execute(rows).fetchall() == cut.connection.execute(rows).fetchall()
    assert {(r.done, r.total) for r in reports if r.detail == "read"} >= {(200, 200)}
    assert reports[-1].done == reports[-1].total


def test_rows_are_sorted_and_add_up(tmp_path: Path) -> None:
    """By term and word; how often and where each word is in each record; lengths are the positions filled."""
    connection = build(tmp_path, [("a context", "Running runs run"), "run_fast run-fast", ""]).connection
    rows = connection.execute(
        "SELECT term, word, records, tfs, list_transform(positions, lambda p: [p >> 5, (p & 31) + 1]) FROM postings"
    ).fetchall()
    assert rows == [
        ("a", "a", [0], [1], [[0, 1]]),
        ("context", "context", [0], [1], [[1, 1]]),
        ("fast", "fast", [1], [2], [[1, 1], [3, 1]]),
        ("run", "run", [0, 1], [1, 2], [[5, 1], [0, 1], [2, 1]]),
        ("run", "running", [0], [1], [[3, 1]]),
        ("run", "runs", [0], [1], [[4, 1]]),
        ("run-fast", "run-fast", [1], [1], [[2, 2]]),
        ("run_fast", "run_fast", [1], [1], [[0, 2]]),
    ]
    assert connection.execute("SELECT length FROM lengths ORDER BY number").fetchall() == [(5,), (4,), (0,)]


def test_records_that_are_not_numbered_from_0_are_refused() -> None:
    """Nothing is built of them."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE records AS SELECT 5 AS number, '' AS context, 'text' AS text")
    with pytest.raises(CorpusError, match="not numbered from 0"):
        lexical_build.build_words(connection)


def test_words_made_by_other_rules_are_noticed(tmp_path: Path) -> None:
    """Another version of anything that decides what a word is."""
    made = build(tmp_path, ["run runs"])
    assert not made.lexical.older
    made.connection.execute("UPDATE words_made_with SET value = '0' WHERE name = 'words'")
    assert build(tmp_path, ["run"]).lexical.older is False
    assert lexical_build.made_alike(made.connection) is False


def test_many_occurrences_in_one_record_are_kept(tmp_path: Path) -> None:
    """A word that is there 70,000 times, and its phrase."""
    index = build(tmp_path, ["spam " * 70_000, "spam spam", "egg"]).lexical
    assert index.search('"spam spam"', Scope(), 5, k1=0.9, b=0.4, operator="any").numbers.tolist() == [0, 1]
