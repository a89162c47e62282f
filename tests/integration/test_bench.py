"""The bench as a whole on a tiny corpus: figures that are figures, peers that may be missing, Ctrl-C."""

from __future__ import annotations

import builtins
import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench import corpora, rows_engines, run
from bench.__main__ import bench
from bench.figures import Figure, Row, Unmeasured
from bench.ground import QUESTIONS, Ground
from click.testing import CliRunner

from workbench.errors import EncoderError
from workbench.retrieve.engine import _KEPT_VECTORS
from workbench.store.lexical.tokens import STOP_WORDS

ROWS = 250


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tiny corpus is kept."""
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def ground(kept: Path) -> Iterator[Ground]:
    """The tiny corpus, open."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("WORKBENCH_MEASURE_DATA", raising=False)
        built = corpora.prepare(corpora.find_source(None, ROWS), kept, lambda _: None)
    opened = Ground(built, "hashing", lambda _: None)
    yield opened
    opened.close()


def call(arguments: list[str]) -> Any:
    return CliRunner().invoke(bench, arguments, standalone_mode=False, env={"WORKBENCH_MEASURE_DATA": ""})


def check(row: Row | Unmeasured) -> None:
    """Every figure of a row is a finite number that is more than nothing."""
    assert isinstance(row, Row), row
    for figure in (row.figure, *(peer.figure for peer in row.peers if peer.figure is not None)):
        assert all(math.isfinite(value) and value > 0 for value in (figure.p50, figure.p95, figure.best))
        assert figure.best <= figure.p50 <= figure.p95
        assert figure.samples >= 1
    json.dumps(row.to_dict(), allow_nan=False)


@pytest.mark.slow
def test_rows_give_finite_figures(ground: Ground) -> None:
    """Rows of searching, with whatever peers are installed; those of plans, processes and builds take long at any size."""
    keys = tuple(key for key in run.KEYS if key.partition(".")[0] in {"keyword", "vector", "grep", "hybrid"})
    rows = list(run.run(ground, keys, lambda _: None))
    assert tuple(row.key for row in rows) == keys
    for row in rows:
        check(row)


def test_questions_are_drawn_from_the_corpus_and_the_same_each_time(ground: Ground) -> None:
    """Two to five words that say something, with stop words and without; few enough that their vectors are kept."""
    assert ground.questions == ground.draw(QUESTIONS)
    assert len(ground.questions) == QUESTIONS <= _KEPT_VECTORS
    text = "\n".join(ground.texts())
    for question in ground.questions:
        typed = question.typed.split()
        assert question.content.split() == [word for word in typed if word.lower() not in STOP_WORDS]
        assert 2 <= len(question.content.split()) <= 5
        assert typed[0] in text
        assert typed != question.content.split()


def test_a_missing_peer_is_said_in_its_row(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """tantivy and bm25s not installed, no ripgrep: our figures and the others' stand, and the row says what to do."""
    real = builtins.__import__

    def importing(name: str, *rest: Any, **named: Any) -> Any:
        if name in ("tantivy", "bm25s"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", importing)
    row = rows_engines.content(ground)
    check(row)
    missing = [peer for peer in row.peers if peer.figure is None]
    assert [peer.name.split()[0] for peer in missing] == ["tantivy", "bm25s"]
    assert all("pip install" in peer.note for peer in missing)
    assert [goal.met for goal in row.goals if goal.met is None] == [None, None]
    monkeypatch.setattr(shutil, "which", lambda _: None)
    row = rows_engines.rare(ground)
    check(row)
    assert row.peers[0].figure is None
    assert "install" in row.peers[0].note


def test_a_row_that_cannot_be_measured_leaves_the_others(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is listed with its reason and remedy."""

    def failing(_: Ground) -> Row:
        raise EncoderError("There is no model here", "Install one")

    measures = (run.Measure(("keyword.typed",), failing), run.Measure(("open.one",), stub("open.one")))
    monkeypatch.setattr(run, "MEASURES", measures)
    rows = list(run.run(ground, ("keyword.typed", "open.one"), lambda _: None))
    assert [type(row) for row in rows] == [Unmeasured, Row]
    assert "Install one" in rows[0].to_dict()["unmeasured"]


def stub(key: str, interrupt: bool = False) -> Callable[[Ground], Row]:
    def measure(_: Ground) -> Row:
        if interrupt:
            raise KeyboardInterrupt
        return Row(key, "a title", "ms", Figure.of([1.0, 2.0]), at_most=3.0, notes=("a note",))

    return measure


def test_the_table_names_machine_corpus_and_goals(ground: Ground, kept: Path) -> None:
    """A figure with its address; the kept corpus is used again."""
    before = sorted(kept.glob("corpus-*"))
    result = call(["--rows", str(ROWS), "--keep", str(kept), "--only", "keyword.content", "--only", "build"])
    assert result.exception is None, result.output
    for said in ("machine", "cores", "Python 3.", ground.built.source.digest[:16], f"{ROWS:,} blocks", "at most 2x"):
        assert said in result.output
    assert "smaller" in result.output
    assert sorted(kept.glob("corpus-*")) == before


def test_json_holds_what_the_table_shows(kept: Path, ground: Ground) -> None:
    """And is JSON alone."""
    result = call(["--rows", str(ROWS), "--keep", str(kept), "--only", "open.one", "--json"])
    said = json.loads(result.stdout)
    assert said["corpus"]["digest"] == ground.built.source.digest
    assert said["corpus"]["chunks"] == ground.records == ROWS
    assert said["machine"]["cores"] >= 1
    assert {"numpy", "duckdb", "workbench"} <= set(said["machine"]["versions"])
    (row,) = said["rows"]
    assert row["key"] == "open.one"
    assert row["samples"] >= 50
    assert row["goals"][0]["goal"] == "at most 50 ms"
    assert said["stopped"] is False


def test_ctrl_c_prints_what_is_done(kept: Path, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1, and how far it came on standard error."""
    measures = (run.Measure(("open.one",), stub("open.one")), run.Measure(("open.eight",), stub("", interrupt=True)))
    monkeypatch.setattr(run, "MEASURES", measures)
    arguments = ["--rows", str(ROWS), "--keep", str(kept), "--only", "open"]
    result = CliRunner().invoke(bench, arguments, env={"WORKBENCH_MEASURE_DATA": ""})
    assert result.exit_code == 1
    assert "a title" in result.stdout
    assert "a note" in result.stdout
    assert "stopped after 1 of 2 rows" in result.stderr


def test_a_corpus_that_cannot_be_read_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a change of the format on disk."""
    monkeypatch.delenv("WORKBENCH_MEASURE_DATA", raising=False)
    source = corpora.find_source(None, 100)
    built = corpora.prepare(source, tmp_path, lambda _: None)
    (manifest,) = built.folder.glob("generations/*/manifest.json")
    manifest.write_text("{}")
    again = corpora.prepare(source, tmp_path, lambda _: None)
    opened = Ground(again, None, lambda _: None)
    assert opened.records == 100
    opened.close()


def test_a_peer_is_built_once_for_each_release(ground: Ground) -> None:
    """The index is kept beside the corpus until the peer's version changes."""
    made: list[str] = []

    def build(folder: Path) -> None:
        made.append(folder.name)

    for release in ("1", "1", "2"):
        rows_engines._kept(ground, "some", release, build)
    assert made == ["some", "some"]
