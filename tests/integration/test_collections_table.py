"""The table of judged collections, and the sweep of the bench against ranx."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from bench import collections, rows_plans
from click.testing import CliRunner

import workbench as wb
from workbench.errors import UsageError
from workbench.ranking.candidates import Candidates


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


@pytest.mark.slow
def test_the_figures_of_the_table_are_those_of_evaluating_each_plan(folder: Path, tmp_path: Path) -> None:
    """Fixed plans, what users get, the plan chosen on the train split, and an oracle that no plan beats."""
    said = json.loads(run(folder, "--keep", tmp_path, "--json"))
    (row,) = said["collections"]
    judged = wb.load_judgments(folder)
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


@pytest.mark.slow
def test_the_table_says_where_the_tuned_plan_comes_from_and_where_a_mix_loses(folder: Path, tmp_path: Path) -> None:
    """A sample of the split where that is asked for, folds where there is none; intervals, the pooled line, the losses."""
    sampled = run(folder, "--keep", tmp_path, "--most", 10)
    assert "12 test queries; tuned on the 6 train queries" in sampled
    many = folder.parent / "tiny2"
    shutil.copytree(folder, many)
    for name in ("queries.train.jsonl", "qrels.train.tsv"):
        (many / name).unlink()
    (tmp_path / "tiny2.one").symlink_to(tmp_path / "tiny.one")
    both = run(folder, many, "--keep", tmp_path)
    assert "12 test queries; tuned on 4 of 5 folds at a time (it has no train or dev split)" in both
    assert "default against rrf: " in both
    assert "All, default minus rrf: " in both
    assert "of 2 collections" in both
    assert "is below one source alone on: " in both
    drawn = collections._drawn(wb.load_judgments(folder), 10, 0)
    assert len(drawn) == 10
    assert drawn.query_ids == collections._drawn(wb.load_judgments(folder), 10, 0).query_ids
    assert drawn.query_ids != collections._drawn(wb.load_judgments(folder), 10, 1).query_ids


def test_the_reference_plans_are_those_of_published_figures() -> None:
    """1,000 candidates a source, no threshold, no grep; `default` and `rrf` are the presets untouched."""
    for name, plan in collections.FIXED.items():
        if name in ("default", "rrf"):
            assert plan == wb.preset(name)
        else:
            assert (plan.depth("keyword"), plan["vector.threshold"], plan["grep.when"]) == (1000, "off", "never")


def run(*words: object) -> str:
    """What the command prints, when it succeeds, in one line."""
    done = CliRunner().invoke(collections.table, [str(w) for w in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


@pytest.mark.slow
def test_a_sweep_gives_the_means_that_ranx_gives() -> None:
    """rrf and min-max sums over made-up rankings without ties: nDCG@10 of every plan as ranx fuses and evaluates it."""
    pytest.importorskip("ranx")
    random = np.random.default_rng(5)
    asked = []
    for _ in range(4):
        rankings = {}
        for source in ("keyword", "vector"):
            ids = [f"c{n:02}" for n in random.permutation(40)[:30]]
            rankings[source] = list(zip(ids, np.sort(random.random(30))[::-1].tolist(), strict=True))
        candidates = Candidates.from_rankings(rankings)
        asked.append((candidates, np.sort(random.choice(len(candidates), 10, replace=False))))
    grid = rows_plans.fusions()
    means = rows_plans.figures(asked, grid).mean(axis=0)
    peer, apart = rows_plans._ranx(asked, grid, means)
    assert peer.figure is not None
    # Equal ranks in the two sources tie in rrf, and ranx settles ties its own way: at most a few places move.
    assert apart == pytest.approx(0, abs=0.02)


def test_a_folder_that_lacks_a_part_is_refused_before_the_first_is_measured(folder: Path, tmp_path: Path) -> None:
    """Each of the three parts is looked for, and in all folders: an hour of measuring would be lost at the last one."""
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "queries.jsonl").write_text("")
    with pytest.raises(UsageError, match=r"bare is not a judged collection: it lacks corpus.jsonl, qrels.tsv"):
        run(folder, bare, "--keep", tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
