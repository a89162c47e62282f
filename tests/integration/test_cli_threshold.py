"""`workbench threshold`, and the table of `workbench tune` on a narrow terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from corpus_files import write_judged

import workbench as wb
from workbench.cli.main import main


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of twenty files and judgments of eight queries."""
    return write_judged(tmp_path_factory.mktemp("threshold"), 8)


def run(place: Path, *arguments: str, columns: int = 80) -> Result:
    words = [arguments[0], str(place / "judged.csv"), "--corpus", str(place / "corpus"), *arguments[1:]]
    return CliRunner().invoke(main, words, catch_exceptions=False, env={"COLUMNS": str(columns)})


def test_a_threshold_loses_no_more_than_was_allowed(place: Path) -> None:
    """A row a source and share; what it says it loses is at most what it may lose; a stricter one drops more of the others."""
    done = run(place, "threshold", "--lose", "0", "--lose", "25", "--json")
    rows = json.loads(done.output)
    assert [(r["source"], r["lose"]) for r in rows] == [
        (source, lose) for source in ("keyword", "vector", "fused") for lose in (0, 25)
    ]
    assert all(r["relevant"] + r["not_found"] == 8 for r in rows if r["source"] != "fused")
    assert all(r["loses"] <= r["lose"] for r in rows)
    assert all(a["drops"] <= b["drops"] for a, b in zip(rows[::2], rows[1::2], strict=True))


def test_the_threshold_is_the_one_that_the_search_cuts_at(place: Path) -> None:
    """Taken into a plan, it leaves every relevant file among the vector side's candidates."""
    (row,) = json.loads(run(place, "threshold", "--lose", "0", "--source", "vector", "--json").output)
    with wb.open_corpus(place / "corpus") as corpus:
        plan = wb.Plan.parse(f"default vector.threshold={row['threshold']}")
        for n in range(8):
            hits = corpus.search(f"word{n} alpha", mode="vector", plan=plan, limit=100).hits
            assert f"f{n:02}.md" in {h.path for h in hits}


@pytest.mark.parametrize("source", ["keyword", "fused"])
@pytest.mark.parametrize("plan", ["default", "tmm", "default vector.threshold=0.3"])
def test_a_threshold_of_scores_loses_in_a_search_what_it_says(place: Path, source: str, plan: str) -> None:
    """Of eight relevant files as many are lost in eight searches as the row says, of BM25 and of fused scores."""
    row = json.loads(run(place, "threshold", "--lose", "40", "--source", source, "--plan", plan, "--json").output)[0]
    assert row["now"] == "off"
    cut = wb.Plan.parse(plan).replace({row["field"]: row["threshold"], "limit": 100})
    with wb.open_corpus(place / "corpus") as corpus:
        results = {n: corpus.search(f"word{n} alpha", plan=cut) for n in range(8)}
    if source == "keyword":
        kept = sum(f"f{n:02}.md" in {e.path for e in r.rankings["keyword"].entries} for n, r in results.items())
    else:
        kept = sum(f"f{n:02}.md" in {h.path for h in r.hits} for n, r in results.items())
    assert row["relevant"] - kept == round(row["loses"] * row["relevant"] / 100)


def test_the_threshold_table_says_how_to_take_it_over(place: Path) -> None:
    """The table, the axes, and the option; an unknown source is refused with those that there are."""
    done = run(place, "threshold")
    assert done.exit_code == 0
    assert "vector: angular distance" in done.output
    said = " ".join(done.output.split())
    for field in ("vector.threshold", "threshold.keyword", "fusion.threshold"):
        assert f"--set {field}=VALUE" in said
    refused = run(place, "threshold", "--source", "grep")
    assert refused.exit_code == 2
    assert "keyword, vector, fused" in refused.output


def test_the_table_of_tune_fits_a_terminal(place: Path) -> None:
    """Eighty columns cut no word off; where the fields do not fit beside each other they stand below each other."""
    grid = ("--grid", "keyword.k1=0.6,1.2", "--grid", "keyword.b=0.2,0.8", "--folds", "0", "--plan", "rrf")
    done = run(place, "tune", *grid)
    head = next(line for line in done.output.splitlines() if "p (Holm)" in line)
    assert head.split()[:3] == ["k1", "b", "mean"]
    many = (
        "--grid",
        "fusion.weights.vector=1,2",
        "--grid",
        "fusion.normalise.vector=tmm,minmax",
        "--grid",
        "fusion.alpha=0,1",
    )
    wide = run(place, "tune", *grid, *many, "--grid", "fusion.method=rrf,convex")
    for output in (done.output, wide.output):
        assert "…" not in output
    assert "changes" in wide.output
    assert "keyword.k1=1.2" in wide.output
