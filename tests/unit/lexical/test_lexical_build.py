"""Building the word index: what its tables hold, however the work is cut, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from lexical_corpus import build

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


def test_words_made_by_other_rules_are_noticed(tmp_path: Path) -> None:
    made = build(tmp_path, ["run runs"])
    assert not made.lexical.older
    made.connection.execute("UPDATE words_made_with SET value = '0' WHERE name = 'words'")
    assert build(tmp_path, ["run"]).lexical.older is False
    assert lexical_build.made_alike(made.connection) is False


def test_many_occurrences_in_one_record_are_kept(tmp_path: Path) -> None:
    index = build(tmp_path, ["spam " * 70_000, "spam spam", "egg"]).lexical
    assert index.search('"spam spam"', Scope(), 5, k1=0.9, b=0.4, operator="any").numbers.tolist() == [0, 1]
