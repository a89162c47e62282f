"""Names that a notebook needs beside the engine: collections on this machine, word frequencies, wins, distributions, charts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.demo import sample_folder
from workbench.errors import UsageError


@pytest.fixture(scope="module")
def judged() -> Any:
    return wb.load_judgments(sample_folder())


def test_judged_collections_are_folders_in_the_beir_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, sorted; a folder without judgments is none of them, and without the setting there are none."""
    for name, parts in (("b", 3), ("a", 3), ("half", 2)):
        folder = tmp_path / "collections" / name
        folder.mkdir(parents=True)
        for part in ("corpus.jsonl", "queries.jsonl", "qrels.tsv")[:parts]:
            (folder / part).touch()
    found = {"a": tmp_path / "collections" / "a", "b": tmp_path / "collections" / "b"}
    monkeypatch.delenv("WORKBENCH_MEASURE_DATA", raising=False)
    assert wb.judged_collections() == {}
    assert wb.judged_collections(tmp_path / "collections") == found
    assert wb.judged_collections(tmp_path / "absent") == {}
    monkeypatch.setenv("WORKBENCH_MEASURE_DATA", str(tmp_path))
    assert list(wb.judged_collections().items()) == list(found.items())


@pytest.mark.slow
def test_frequencies_count_chunks_as_the_keyword_source_reads_words(make_corpus: Callable[..., wb.Corpus]) -> None:
    """Stemmed, a text of several words as a phrase, 0 for what is nowhere and for what holds no word."""
    corpus = make_corpus({"a.md": "queues wait", "b.md": "a queue waits", "c.md": "wait queue"})
    words = ["queue", "queues", "wait", "wait queue", "zebra", "?!"]
    assert corpus.frequencies(words) == dict(zip(words, (3, 3, 3, 1, 0, 0), strict=True))


def test_frequencies_are_those_of_the_visible_chunks(sample_path: Path) -> None:
    with (
        wb.open_corpus(sample_path, wb.Principal("acme", ("admin", "support"))) as much,
        wb.open_corpus(sample_path, wb.Principal("nobody", ())) as little,
    ):
        assert little.frequencies(["the"])["the"] < much.frequencies(["the"])["the"]


def test_wins_of_two_evaluations_and_of_a_live_measure_agree(sample: wb.Corpus, judged: Any) -> None:
    """The same rows, the greatest gain first, and their mean is the difference of the means."""
    plans = ("default sources=keyword", "default sources=vector")
    first, second = (sample.evaluate(judged, plan=p, measures=["nDCG@10", "RR"]) for p in plans)
    frame = first.wins(second)
    live = sample.live(judged, "nDCG@10", plans[0])
    live.prepare(wb.Plan.parse(plans[1]))
    assert frame.columns == ["query_id", "query", "first", "second", "difference"]
    assert frame.sort("query_id").drop("query_id", "query").to_numpy() == pytest.approx(
        live.wins(wb.Plan.parse(plans[1])).sort("query_id").drop("query_id", "query").to_numpy(), abs=1e-9
    )
    assert frame["difference"].is_sorted(descending=True)
    assert frame["difference"].mean() == pytest.approx(second.mean("nDCG@10") - first.mean("nDCG@10"))
    assert first.wins(second, "RR")["first"].mean() == pytest.approx(first.mean("RR"))
    with pytest.raises(UsageError, match="different queries"):
        first.wins(sample.evaluate(judged.subset(judged.query_ids[:2]), plan=plans[0], measures="nDCG@10"))


def test_a_distribution_says_what_a_threshold_loses(sample: wb.Corpus, judged: Any) -> None:
    found = sample.distribution(judged, "default", "vector")
    assert found.distances
    assert np.all(np.diff(found.relevant) >= 0)
    lost, _ = found.dropped(found.threshold(0.1))
    assert lost <= 0.1
    with pytest.raises(UsageError, match="does not ask grep"):
        sample.distribution(judged, "default", "grep")


def test_the_charts_are_a_public_name() -> None:
    assert "charts" in wb.__all__
    for name in wb.charts.__all__:
        assert getattr(wb.charts, name) is not None
    assert {"sensitivity_figure", "heat_figure", "wins_figure", "distribution_figure", "change_figure"} <= set(
        wb.charts.__all__
    )
