"""A query's own document is left out of its results before they are measured, as trec_eval and BEIR do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import collections as measured_collections
from click.testing import CliRunner
from corpus_files import write_files

import workbench as wb
from workbench.cli.main import main
from workbench.evaluate.run import load_run

TEXTS = {
    "a-pro": "Amber bridges carry cedar over the delta in spring.",
    "a-con": "Amber bridges burn, and cedar rots in the delta.",
    "b-pro": "Fjords grow groves of ember trees.",
    "b-con": "Ember trees die in fjords without groves.",
}
ANSWERS = {"a-pro": "a-con", "b-pro": "b-con"}


def beir(folder: Path, ids: dict[str, str]) -> Path:
    """A collection whose first document of each pair is the query for the other, under these ids of queries."""
    corpus = "".join(json.dumps({"_id": i, "title": f"Debate {i}", "text": t}) + "\n" for i, t in TEXTS.items())
    queries = "".join(json.dumps({"_id": q, "text": TEXTS[d]}) + "\n" for q, d in ids.items())
    qrels = "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{ANSWERS[d]}\t1\n" for q, d in ids.items())
    return write_files(folder, {"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels.tsv": qrels})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the collection `debates`, its corpus `made`, and `numbers`: the same with other ids of queries."""
    made = tmp_path_factory.mktemp("identical")
    beir(made / "debates", {i: i for i in ANSWERS})
    beir(made / "numbers", {"b-con": "a-pro", "a-con": "b-pro"})
    wb.index([made / "debates"], corpus=made / "made", encoder="hashing", workers=0)
    return made


@pytest.fixture(scope="module")
def corpus(folder: Path) -> Iterator[wb.Corpus]:
    with wb.open_corpus(folder / "made") as opened:
        yield opened


def test_every_way_to_measure_leaves_it_out_where_queries_are_documents(corpus: wb.Corpus, folder: Path) -> None:
    """The answer stands first by itself, second where the query's own document counts; a warning says so."""
    judgments = wb.load_judgments(folder / "debates")
    run = folder / "other.run"
    run.write_text(
        "".join(f"{q} Q0 {d} {n} {9 - n} other\n" for q, a in ANSWERS.items() for n, d in enumerate((q, a), 1))
    )
    for drop, figure in ((None, 1.0), (True, 1.0), (False, 0.5)):
        evaluated = corpus.evaluate(judgments, "default", ["RR"], drop_identical_ids=drop)
        swept = corpus.sweep(judgments, {"fusion.alpha": [0.3, 0.8]}, "RR", 0, drop_identical_ids=drop)
        live = corpus.live(judgments, "RR", drop_identical_ids=drop)
        foreign = corpus.evaluate_run(load_run(run), judgments, ["RR"], drop_identical_ids=drop)
        assert [evaluated.mean("RR"), foreign.mean("RR"), live.figure(wb.preset("default")).mean] == [figure] * 3
        assert swept.means().tolist() == [figure] * len(swept.plans)
        for said in (evaluated.warnings, swept.warnings, foreign.warnings):
            assert any("own document" in w for w in said) is (drop is not False)
            assert any("--no-drop-identical-ids" in w for w in said) is (drop is None)
    with pytest.raises(wb.WorkbenchError, match="different judgments"):
        corpus.evaluate(judgments, drop_identical_ids=False).compare(corpus.evaluate(judgments))


def test_equal_ids_of_other_texts_leave_nothing_out(corpus: wb.Corpus, folder: Path) -> None:
    """Queries and documents that are both numbered from 1 are different things, unless somebody says otherwise."""
    judgments = wb.load_judgments(folder / "numbers")
    plan = wb.preset("default").replace({"vector.threshold": "off"})
    plain, kept, left = (
        corpus.evaluate(judgments, plan, ["RR"], drop_identical_ids=drop) for drop in (None, False, True)
    )
    assert not any("own document" in w for w in plain.warnings)
    rankings = plain.run.rankings
    assert rankings == kept.run.rankings
    assert any(i in keys for i, keys in rankings.items())
    assert left.run.rankings == {i: tuple(k for k in keys if k != i) for i, keys in rankings.items()}


@pytest.mark.slow
def test_every_command_has_the_option(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`eval`, `check`, `tune`, `threshold`, `run export` and `table` leave it out, say so, and have the option."""
    monkeypatch.setattr(measured_collections, "GRID", ("fusion.k=5,20",))
    runner, own = CliRunner(), str(folder / "debates")
    at = ["--corpus", str(folder / "made")]
    target = folder / "exported.run"
    commands = {
        "eval": ["eval", own, "--measure", "RR", *at],
        "check": ["check", own, "--measure", "RR", "--min", "RR=0.9", *at],
        "tune": ["tune", own, "-g", "fusion.alpha=0.3,0.8", "--measure", "RR", "--folds", "0", *at],
        "threshold": ["threshold", own, *at],
        "run": ["run", "export", own, str(target), *at],
        "table": [own, "--keep", str(folder), "--folds", "2", "--measure", "RR"],
    }
    wb.index([own], corpus=folder / "debates.one", encoder="hashing", workers=0, one_chunk_per_document=True)
    for name, words in commands.items():
        command = measured_collections.table if name == "table" else main
        by_itself, counted = (runner.invoke(command, [*words, *more]) for more in ([], ["--no-drop-identical-ids"]))
        assert by_itself.exit_code == 0, by_itself.output
        assert counted.exit_code == (1 if name == "check" else 0), counted.output
        assert ("own document" in by_itself.output, "own document" in counted.output) == (True, False)
        if name == "run":
            with_own = target.read_text()
            runner.invoke(main, words)
            assert [line.split()[2] for line in target.read_text().splitlines() if line.split()[3] == "1"] == [
                "a-con",
                "b-con",
            ]
            assert len(with_own.splitlines()) == len(target.read_text().splitlines()) + 2
