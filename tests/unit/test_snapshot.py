"""Snapshots: what goes in, the same bytes out, and what `verify` says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from snapshot_cases import shrunk, small

import workbench as wb
from workbench.demo import sample_folder
from workbench.errors import SnapshotError, UsageError
from workbench.snapshot.exports import to_csv, to_json, to_trec

QUERY = "how do retries work"


@pytest.fixture(scope="module")
def result(sample: wb.Corpus) -> wb.SearchResult:
    return sample.search(QUERY, keywords="retry backoff", plan="default limit=5 vector.threshold=off")


@pytest.fixture(scope="module")
def snapshot(result: wb.SearchResult) -> wb.Snapshot:
    return result.snapshot(note="the retry question\nasked twice a week")


def test_save_load_save_gives_the_same_bytes(snapshot: wb.Snapshot, tmp_path: Path) -> None:
    first = snapshot.save(tmp_path / "one")
    assert first.suffix == ".snapshot"
    again = wb.Snapshot.load(first)
    assert again.save(tmp_path / "two.snapshot").read_bytes() == first.read_bytes()
    assert again == snapshot
    assert again.id == snapshot.id
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.snapshot", "two.snapshot"]


def test_every_candidate_has_the_ranks_scores_and_contributions_of_the_result(
    snapshot: wb.Snapshot, result: wb.SearchResult
) -> None:
    ours, theirs = snapshot.frame(), result.frame()
    assert ours.equals(theirs.select(ours.columns))


def test_the_passages_are_the_hits(snapshot: wb.Snapshot, result: wb.SearchResult) -> None:
    assert len(snapshot.hits()) == len(result.hits) == 5
    for ours, theirs in zip(snapshot.hits(), result.hits, strict=True):
        for name in ("rank", "score", "label", "ranks", "scores", "chunk_id", "citation", "text", "matches", "title"):
            assert getattr(ours, name) == getattr(theirs, name), name
        assert {s: v for s, v in theirs.contributions.items() if v} == {
            s: v for s, v in ours.contributions.items() if v
        }
        assert ours.metadata["type"] == theirs.metadata["type"]


def test_it_says_where_it_comes_from(snapshot: wb.Snapshot, sample: wb.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    about, info = snapshot.about, sample.info()
    assert (about.origin.generation, about.origin.digest) == (info["generation"], info["digest"])
    assert about.origin.documents == info["documents"] == len(snapshot.documents())
    assert about.origin.encoders[0].name == "hashing"
    assert about.principal == wb.Principal("acme", ("admin", "support"))
    assert {"python", "workbench", "numpy", "duckdb", "usearch"} <= set(about.packages)
    assert about.created.endswith("Z")
    assert snapshot.title == "the retry question"
    monkeypatch.setenv("WORKBENCH_USER", "Ada")
    assert sample.search(QUERY).snapshot().about.by == "Ada"


def test_several_searches_and_a_comparison_go_into_one(sample: wb.Corpus) -> None:
    both = sample.compare(QUERY, ["default limit=3 vector.threshold=off", "tmm limit=4"])
    made = wb.Snapshot.of([sample.search("retry", mode="keyword"), both], note="three")
    assert [s.query for s in made.searches] == ["retry", QUERY, QUERY]
    assert [s.plan for s in made.searches][1:] == ["default limit=3 vector.threshold=off", "tmm limit=4"]
    assert len(made.hits(1)) == 3
    assert made.searches[0].sources == ("keyword",)
    with pytest.raises(UsageError, match="has no search 3"):
        made.frame(3)


def test_results_of_two_generations_or_principals_are_refused(sample: wb.Corpus, sample_path: Path) -> None:
    with wb.open_corpus(sample_path, wb.Principal("birch", ("support",))) as other:
        theirs = other.search(QUERY)
    with pytest.raises(UsageError, match="several generations or principals"):
        wb.Snapshot.of([sample.search(QUERY), theirs])
    with pytest.raises(UsageError, match="nothing to save"):
        wb.Snapshot.of([])
    with pytest.raises(UsageError, match="cannot hold a str"):
        wb.Snapshot.of(["text"])


def test_verify_runs_the_searches_again(snapshot: wb.Snapshot, sample: wb.Corpus) -> None:
    checked = snapshot.verify(sample)
    assert checked.ok
    assert checked.ran
    assert checked.verdict.startswith("Verified")
    alone = snapshot.verify()
    assert alone.ok
    assert not alone.ran
    assert "no corpus was given" in alone.verdict


def test_verify_finds_what_the_corpus_does_not_say(snapshot: wb.Snapshot, sample: wb.Corpus) -> None:
    content, about = snapshot.content, snapshot.about
    for table, column, value in (
        ("passages", "text", pl.lit("The password is swordfish.")),
        ("candidates", "score", pl.col("score") + 0.5),
        ("sources", "rank", pl.col("rank") + 1),
    ):
        changed = content.table(table).with_columns(value.alias(column))
        forged = small(about, replace(content, tables={**content.tables, table: changed}))
        assert forged.verify().digests
        checked = wb.Snapshot.load(forged.to_bytes()).verify(sample)
        assert not checked.ok, column
        assert column in checked.searches[0].said[0]


@pytest.mark.slow
def test_verify_says_why_it_could_not_ask(snapshot: wb.Snapshot, sample_path: Path, tmp_path: Path) -> None:
    with wb.open_corpus(sample_path, wb.Principal("birch")) as other:
        assert "the corpus is open as tenant birch" in snapshot.verify(other).asked
    (tmp_path / "a.md").write_text("# A\n\nsomething else\n")
    wb.index([tmp_path / "a.md"], corpus=tmp_path / "c", encoder="hashing")
    with wb.open_corpus(tmp_path / "c", wb.Principal("acme", ("admin", "support"))) as other:
        assert "is not at hand" in snapshot.verify(other).asked


def test_an_evaluation_is_saved_with_its_run_and_judgments(sample: wb.Corpus) -> None:
    judgments = wb.load_judgments(sample_folder(), name="sample")
    evaluation = sample.evaluate(judgments, measures=["nDCG@10", "RR"])
    made = shrunk(wb.Snapshot.of(evaluation, corpus=sample))
    again = wb.Snapshot.load(made.to_bytes())
    saved = again.evaluations[0]
    assert [m.measure for m in saved.means] == ["nDCG@10", "RR"]
    assert saved.means[0].mean == evaluation.mean("nDCG@10")
    assert saved.judgments_digest == evaluation.judgments.digest
    assert evaluation.judgments.given_digest == judgments.digest  # the sample judges copies of one file
    assert again.verify().evaluations[0].same
    with pytest.raises(UsageError, match="corpus="):
        wb.Snapshot.of(evaluation)
    wrong = again.content.table("measures").with_columns(value=pl.lit(1.0))
    forged = small(again.about, replace(again.content, tables={**again.content.tables, "measures": wrong}))
    assert not forged.verify().ok


def test_a_sweep_is_saved_with_its_verdict_and_every_plan(sample: wb.Corpus) -> None:
    judgments = wb.load_judgments(sample_folder())
    swept = sample.sweep(judgments, {"fusion.k": [1, 10, 60]}, "nDCG@10", 3)
    made = wb.Snapshot.load(wb.Snapshot.of([swept], corpus=sample).to_bytes())
    (saved,) = made.sweeps
    assert saved.verdict == swept.verdict
    assert saved.best == str(swept.best)
    assert made.evaluations[saved.after].means[0].mean == swept.after.mean("nDCG@10")
    points = made.content.table("points")
    assert points["plan"].to_list() == [str(p) for p in swept.plans]
    assert points["mean"].to_list() == swept.means().tolist()
    assert swept.verdict in made.html()
    assert '"points"' in to_json(made)
    assert made.verify(sample).ok


def test_exports(snapshot: wb.Snapshot) -> None:
    rows = pl.read_csv(to_csv(snapshot).encode())
    assert rows.filter(pl.col("shown"))["path"].n_unique() >= 1
    assert set(rows["source"].drop_nulls()) == {"grep", "keyword", "vector"}
    first = to_trec(snapshot).splitlines()[0].split()
    assert first[:2] == ["1", "Q0"]
    assert first[2] == snapshot.hits()[0].path
    assert '"passages"' in to_json(snapshot)


def test_a_cell_that_a_spreadsheet_would_run_is_text(snapshot: wb.Snapshot) -> None:
    content = snapshot.content
    named = content.table("candidates").with_columns(path=pl.lit('=HYPERLINK("http://x")'))
    made = small(snapshot.about, replace(content, tables={**content.tables, "candidates": named}))
    assert "\"'=HYPERLINK(" in to_csv(made)


def test_a_snapshot_that_cannot_be_written_or_read_is_a_sentence(snapshot: wb.Snapshot, tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="cannot be written"):
        snapshot.save(tmp_path / "no" / "folder.snapshot")
    with pytest.raises(SnapshotError, match="There is no snapshot at"):
        wb.Snapshot.load(tmp_path / "none.snapshot")
    with pytest.raises(SnapshotError, match="cannot be read"):
        wb.Snapshot.load(tmp_path)
