"""The bench on a tiny corpus, and the table of judged collections: figures that are figures, Ctrl-C."""

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench import collections, corpora, growth, rows
from bench.__main__ import bench
from bench.figures import Figure, Memory, Row, Unmeasured, describe, memory
from bench.ground import Ground
from click.testing import CliRunner

import workbench as wb
from workbench.errors import UsageError
from workbench.store import vectors

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
        patch.setattr(vectors, "GRAPH_MS_PER_WIDTH", 0.0)  # so that the corpus has a graph, small as it is
        built = corpora.prepare(corpora.find_source(None, ROWS), kept, lambda _: None)
    with Ground(built, "hashing", lambda _: None) as opened:
        yield opened


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
def test_rows_give_finite_figures(ground):
    """A row of each kind of searching, with whatever peers are installed; others take long at any size."""
    last = {key.partition(".")[0]: key for key in rows.KEYS}
    keys = tuple(last[kind] for kind in ("keyword", "vector", "grep", "hybrid"))
    made = list(rows.run(ground, keys, lambda _: None))
    assert tuple(row.key for row in made) == keys
    for row in made:
        check(row)


def test_json_holds_what_the_table_shows(kept, ground):
    result = call(["--rows", str(ROWS), "--keep", str(kept), "--only", "open.one", "--json"])
    said = json.loads(result.stdout)
    assert said["corpus"]["digest"] == ground.built.source.digest
    assert said["corpus"]["chunks"] == ground.records == ROWS
    assert said["machine"]["cores"] >= 1
    assert {"numpy", "duckdb", "workbench"} <= set(said["machine"]["versions"])
    (row,) = said["rows"]
    assert row["key"] == "open.one"
    assert row["samples"] == 10
    assert row["goals"][0]["goal"] == "at most 50 ms"
    assert said["stopped"] is False


def test_ctrl_c_prints_what_is_done(kept, ground, monkeypatch):
    """Exit code 1, and how far it came on standard error."""

    def interrupt(_: Ground) -> Row:
        raise KeyboardInterrupt

    made = Row("open.one", "a title", "ms", Figure.of([1.0, 2.0]), at_most=3.0, notes=("a note",))
    monkeypatch.setattr(rows, "MEASURES", {("open.one",): lambda _: made, ("open.eight",): interrupt})
    arguments = ["--rows", str(ROWS), "--keep", str(kept), "--only", "open"]
    result = CliRunner().invoke(bench, arguments, env={"WORKBENCH_MEASURE_DATA": ""})
    assert result.exit_code == 1
    assert "a title" in result.stdout
    assert "a note" in result.stdout
    assert "stopped after 1 of 2 rows" in result.stderr


def test_memory_is_that_of_all_processes_while_they_run():
    """A child counts while it lives, and what its parent has is not counted a second time for it."""
    own = bytearray(b"x") * (100 << 20)
    held = "import sys; held = bytearray(b'x') * (50 << 20); print(1, flush=True); sys.stdin.read()"
    with Memory() as most:
        before = memory()
        with subprocess.Popen([sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            with_child = memory()
    assert 45 < with_child - before < len(own) >> 20
    assert memory() < with_child - 45
    assert most.most_mb > len(own) >> 20


def test_notes_outlive_results_that_are_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(growth, "RESULTS", tmp_path)
    facts = {"machine": describe(), "questions": 1, "words": 1, "rows": []}
    assert "Somebody's remark" not in growth.markdown(facts)
    (tmp_path / "growth.notes.md").write_text("Somebody's remark.\n")
    assert growth.markdown(facts).index("Somebody's remark.") < growth.markdown(facts).index("| chunks |")


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection of twenty records with twelve judged queries, six of them to train on."""
    monkeypatch.setenv("WORKBENCH_ENCODER", "hashing")
    monkeypatch.setattr(collections, "GRID", ("fusion.k=5,60", "keyword.b=0.4,0.9"))
    made = tmp_path / "tiny"
    made.mkdir()
    records = [
        {"_id": f"d{n}", "title": f"number {n}", "text": f"alpha word{n} beta word{n * 7 % 20}"} for n in range(20)
    ]
    (made / "corpus.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    queries = [{"_id": f"q{n}", "text": f"word{n} alpha"} for n in range(12)]
    for name, part in (("queries", queries), ("queries.train", queries[:6])):
        (made / f"{name}.jsonl").write_text("".join(json.dumps(q) + "\n" for q in part))
    for name, part in (("qrels", range(12)), ("qrels.train", range(6))):
        (made / f"{name}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\td{n}\t1\n" for n in part))
    return made


def table(*words: object) -> str:
    """What the command prints, when it succeeds, in one line."""
    done = CliRunner().invoke(collections.table, [str(w) for w in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


@pytest.mark.slow
def test_the_figures_of_the_table_are_those_of_evaluating_each_plan(collection, tmp_path):
    said = json.loads(table(collection, "--keep", tmp_path, "--json"))
    (row,) = said["collections"]
    judged = wb.load_judgments(collection)
    with wb.open_corpus(tmp_path / "tiny.one") as corpus:
        for name, plan in collections.FIXED.items():
            assert row["figures"][name] == pytest.approx(corpus.evaluate(judged, plan, "nDCG@10").mean("nDCG@10")), name
        tuned = corpus.evaluate(judged, row["tuned"], "nDCG@10").mean("nDCG@10")
    assert row["figures"]["tuned"] == pytest.approx(tuned)
    assert row["tuned_on"] == "the 6 train queries"
    assert set(row["figures"]) == set(collections.COLUMNS) == set(row["per_query"])
    assert row["figures"]["oracle"] >= max(row["figures"].values())
    assert row["against"]["default"]["to"] == "rrf"
    difference = row["figures"]["default"] - row["figures"]["rrf"]
    assert row["against"]["default"]["difference"] == pytest.approx(difference)
    assert said["pooled"]["default minus rrf"]["difference"] == pytest.approx(difference)
    assert {said["machine"]["cores"] > 0, len(row["digest"]) > 8, said["date"][:2] == "20"} == {True}


def test_a_folder_that_lacks_a_part_is_refused_before_the_first_is_measured(collection, tmp_path):
    """Each of the three parts is looked for, and in all folders: an hour of measuring would be lost at the last one."""
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "queries.jsonl").write_text("")
    with pytest.raises(UsageError, match=r"bare is not a judged collection: it lacks corpus.jsonl, qrels.tsv"):
        table(collection, bare, "--keep", tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
