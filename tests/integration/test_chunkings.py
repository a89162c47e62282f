"""Chunkings compared: passages are judged, so corpora of the same files that are cut otherwise have the same judgments."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import workbench as wb
from workbench.cli.main import main

TEXT = "\n\n".join(
    f"# Part {n}\n\nThe {animal} sleeps in its {home}. It asks for {food} when the sun comes up, and for more at night."
    for n, (animal, home, food) in enumerate(
        [("cat", "basket", "fish"), ("dog", "kennel", "bones"), ("horse", "stable", "hay"), ("mouse", "wall", "cheese")]
    )
)
ASKED = {"q1": ("who asks for hay", "hay when the sun"), "q2": ("where is the mouse", "mouse sleeps in its wall")}


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    """One document as a whole and in parts, and a file that judges two passages of it."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "pets.md").write_text(TEXT)
    (tmp_path / "docs" / "other.md").write_text("# Other\n\nNothing to see, and no animal asks for anything here.\n")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    wb.index([tmp_path / "docs"], corpus=whole, encoder="hashing", one_chunk_per_document=True, workers=0)
    monkeypatch.setenv("WORKBENCH_CHUNK_TOKENS", "30")
    wb.index([tmp_path / "docs"], corpus=parts, encoder="hashing", workers=0)
    with (tmp_path / "passages.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["query_id", "query", "document", "start", "end", "quote", "grade"])
        for query_id, (query, quote) in ASKED.items():
            start = TEXT.index(quote)
            rows.writerow([query_id, query, "pets.md", start, start + len(quote), quote, 1])
    return whole, parts, tmp_path / "passages.csv"


def test_the_same_passages_judge_both_cuts(corpora: tuple[Path, Path, Path]) -> None:
    whole, parts, passages = corpora
    with wb.open_corpus(whole) as one, wb.open_corpus(parts) as other:
        assert (one.info()["records"], other.info()["records"] > 4) == (2, True)
        judgments = one.judgments(one.import_judgments(passages))
        assert other.judgments(other.import_judgments(passages)).digest == judgments.digest
        evaluations = [
            c.evaluate(judgments, "default vector.threshold=off", ["nDCG@10", "R@10"]).named(name)
            for c, name in ((one, "whole"), (other, "parts"))
        ]
    for evaluation in evaluations:
        assert evaluation.mean("R@10") == 1
    difference = evaluations[0].compare(evaluations[1])
    assert "whole" in difference.verdict
    assert "parts" in difference.verdict
    assert difference.low <= difference.difference <= difference.high
    whole, parts, passages = corpora
    with wb.open_corpus(whole) as opened:
        opened.import_judgments(passages, "passages")
    words = ["eval", "passages", "--corpus", str(whole), "--against", str(parts), "--measure", "R@10", "--json"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    first, second = json.loads(result.output)
    assert (first["plan"], second["plan"]) == (f"{whole}: default", f"{parts}: default")
    assert second["measures"][0]["mean"] == first["measures"][0]["mean"] == 1
    assert str(parts) in second["against"]["verdict"]
