"""Building the word index: tables, arrays, determinism, and what happens when something is wrong."""

from __future__ import annotations

import hashlib
from pathlib import Path

import duckdb
import numpy as np
import pytest
from lexical_corpus import build

from workbench.errors import CorpusDamaged, CorpusError
from workbench.records import Progress
from workbench.store.lexical import build as lexical_build
from workbench.store.lexical.search import MappedLexical
from workbench.store.types import Scope

TEXTS = [f"word{i % 7} shared Words_of{i % 5} run running runs 数据{i} fooBar-{i}" for i in range(200)]


def digests(folder: Path) -> dict[str, str]:
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(folder.iterdir())}


def database(path: Path, texts: list[str], first: int = 0) -> Path:
    connection = duckdb.connect(str(path))
    connection.execute("CREATE TABLE records (number INTEGER, context VARCHAR, text VARCHAR)")
    connection.executemany(
        "INSERT INTO records VALUES (?, '', ?)", [(number, text) for number, text in enumerate(texts, first)]
    )
    connection.close()
    return path


def test_the_same_records_give_the_same_bytes_however_they_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the size of blocks and runs nor the number of threads leaves a trace."""
    whole = build(tmp_path / "whole", TEXTS)
    monkeypatch.setattr(lexical_build, "BLOCK_CHARACTERS", 500)
    monkeypatch.setenv("WORKBENCH_THREADS", "3")
    cut = build(tmp_path / "cut", TEXTS, run_pieces=64)
    assert digests(whole.folder) == digests(cut.folder)
    for table in lexical_build.TABLES:
        rows = f"SELECT * FROM {table}"
        assert whole.connection.execute(rows).fetchall() == cut.connection.execute(rows).fetchall()


def test_tables_are_sorted_and_add_up(tmp_path: Path) -> None:
    """Terms and words in byte order, df and tf those of the postings, lengths the positions filled."""
    connection = build(tmp_path, [("a context", "Running runs run"), "run_fast run-fast", ""]).connection
    terms = connection.execute("SELECT term, df FROM terms ORDER BY term_number").fetchall()
    assert terms == [("a", 1), ("context", 1), ("fast", 1), ("run", 2), ("run-fast", 1), ("run_fast", 1)]
    words = connection.execute(
        "SELECT word, term, alone FROM words JOIN terms USING (term_number) ORDER BY word_number"
    ).fetchall()
    assert [w for w, _, _ in words] == sorted(w for w, _, _ in words)
    assert {(w, t) for w, t, alone in words if not alone} == {("run", "run"), ("running", "run"), ("runs", "run")}
    run = connection.execute(
        "SELECT number, tf, list_transform(positions, lambda p: [p >> 5, (p & 31) + 1]) FROM postings"
        " JOIN terms USING (term_number) WHERE term IN ('run', 'run_fast') ORDER BY term, number"
    ).fetchall()
    assert run == [(0, 3, [[3, 1], [4, 1], [5, 1]]), (1, 2, [[0, 1], [2, 1]]), (1, 1, [[0, 2]])]
    assert connection.execute("SELECT length FROM lengths ORDER BY number").fetchall() == [(5,), (4,), (0,)]
    own = connection.execute(
        "SELECT word, number, tf FROM word_postings JOIN words USING (word_number) ORDER BY word_number, number"
    ).fetchall()
    assert own == [("run", 0, 1), ("run", 1, 2), ("running", 0, 1), ("runs", 0, 1)]


def test_a_process_of_its_own_builds_the_same(tmp_path: Path) -> None:
    """And reports progress that ends with every record read and every term written."""
    here, there = database(tmp_path / "here.duckdb", TEXTS), database(tmp_path / "there.duckdb", TEXTS)
    reports: list[Progress] = []
    assert lexical_build.build(there, tmp_path / "there", reports.append) == lexical_build.build_here(
        here, tmp_path / "here"
    )
    assert digests(tmp_path / "here") == digests(tmp_path / "there")
    assert {(r.step, r.done, r.total) for r in reports if r.detail == "read"} >= {("words", 200, 200)}
    assert reports[-1].done == reports[-1].total


def test_a_failed_build_says_why(tmp_path: Path) -> None:
    """The last words of the process are in the message."""
    with pytest.raises(CorpusError, match=r"could not be built.*not numbered from 0"):
        lexical_build.build(database(tmp_path / "x.duckdb", TEXTS, first=5), tmp_path / "x")


def test_a_missing_or_short_file_is_named(tmp_path: Path) -> None:
    """Opening refuses it, rather than answering from half an index."""
    folder = build(tmp_path, TEXTS).folder
    full = np.load(folder / "records.npy")
    np.save(folder / "records.npy", full[:-3])
    with pytest.raises(CorpusDamaged, match=r"records\.npy"):
        MappedLexical(folder)
    (folder / "records.npy").unlink()
    with pytest.raises(CorpusDamaged, match=r"records\.npy"):
        MappedLexical(folder)


def test_term_frequencies_beyond_a_byte_are_kept(tmp_path: Path) -> None:
    """The arrays take the smallest type that holds the largest."""
    index = build(tmp_path, ["spam " * 70_000, "spam spam", "egg"]).lexical
    assert index.arrays.tfs.dtype == np.uint32
    assert index.search('"spam spam"', Scope(), 5, k1=0.9, b=0.4, operator="any").numbers.tolist() == [0, 1]
