"""Every preset runs on the sample corpus, and does what makes it itself."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import workbench as wb
from workbench.errors import PlanError, PrincipalRequired
from workbench.plan.plan import preset
from workbench.plan.presets import PRESETS
from workbench.retrieve.messages import format_text

QUERY = "how do retries work"


@pytest.mark.parametrize("name", [p.name for p in PRESETS])
def test_every_preset_answers_and_adds_up(sample: wb.Corpus, name: str) -> None:
    result = sample.search(QUERY, plan=name)
    assert result.hits
    for hit in result.hits:
        assert hit.score == math.fsum(hit.contributions.values())
    assert result.with_plan(str(preset(name))).to_dict() == result.to_dict()


def test_passages_shows_lines_around_exact_keywords(sample: wb.Corpus) -> None:
    """Grep always runs, on keywords from the query where none are given, and its hits show ten lines around."""
    result = sample.search(QUERY, keywords="backoff", plan="passages")
    grep = [h for h in result.hits if "grep" in h.ranks]
    assert grep
    assert all(h.text[h.matches[0].start : h.matches[0].end].lower() == "backoff" for h in grep)
    assert "grep" in sample.search("backoff retries", plan="passages").rankings


def test_collections_adds_the_contributions_of_one_artifact(sample: wb.Corpus) -> None:
    """Ranks count from 0, an artifact in both collections has both contributions, and its chunk is shown."""
    result = sample.search("storm damage report", plan="collections")
    assert len({h.document_id for h in result.hits}) == len(result.hits)
    both = [h for h in result.hits if len(h.contributions) == 2 and min(h.contributions.values()) > 0]
    assert both
    for hit in both:
        assert hit.collections == ("artifact_chunks", "artifacts")
        assert hit.metadata["granularity"] == "chunk"
    top = result.rankings["vector@artifacts"].entries[0]
    assert next(h for h in result.hits if h.document_id == top.document_id).contributions["vector@artifacts"] == 1 / 60


def test_collections_refuses_a_limit_beyond_fifty(sample: wb.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in (0, 51):
        with pytest.raises(PlanError, match="from 1 to"):
            sample.search(QUERY, plan="collections", limit=limit)
    monkeypatch.setenv("RRF_CONSTANT", "10")
    monkeypatch.setenv("OVERFETCH_MULTIPLIER", "4")
    monkeypatch.setenv("MAX_HYBRID_SEARCH_RESULTS", "3")
    changed = preset("collections")
    assert (changed["fusion.k"], changed.depth("vector@artifacts"), changed["limit.max"]) == (10, 12, 3)
    assert preset("default")["fusion.k"] == 60


def test_collections_has_a_text_form(sample: wb.Corpus) -> None:
    result = sample.search("storm damage report", plan="collections")
    lines = format_text(result).split("\n")
    assert lines[0] == f"Found {len(result.hits)} results (searched: artifact_chunks, artifacts):"
    assert lines[2].startswith(f"[1] RRF score: {result.hits[0].score:.3f} (from: ")
    assert (
        format_text(sample.search("x", plan="collections collections=none sources=vector@none")) == "No results found."
    )


def test_pages_puts_the_summary_first_and_sections_in_order(sample: wb.Corpus) -> None:
    """Added rows carry no rank and are never doubled; found sections stand in document order within a page."""
    result = sample.search("make the bell sound darker with a filter", plan="pages collections=pages limit=2")
    ranked = [h for h in result.hits if not h.added]
    added = [h for h in result.hits if h.added]
    assert added
    assert all(h.rank == 0 and not h.contributions for h in added)
    assert sorted(h.rank for h in ranked) == list(range(1, len(ranked) + 1))
    assert len({h.chunk_id for h in result.hits}) == len(result.hits)
    best = [min(h.rank for h in ranked if h.path == p) for p in dict.fromkeys(h.path for h in result.hits)]
    assert best == sorted(best)


def test_contract_ranks_whole_documents(sample: wb.Corpus) -> None:
    result = sample.search("retries timeout", plan="contract")
    assert len({h.path for h in result.hits}) == len(result.hits)
    assert set(result.rankings) == {"keyword", "vector"}


def test_scoped_refuses_an_anonymous_call(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.md").write_text("apples")
    wb.index([tmp_path / "files"], corpus=tmp_path / "corpus", encoder="hashing")
    with wb.open_corpus(tmp_path / "corpus") as anonymous, pytest.raises(PrincipalRequired, match="principal"):
        anonymous.search("apples", plan="scoped")


def test_scoped_keeps_the_strongest_keyword_hit_if_it_is_strong(sample: wb.Corpus) -> None:
    """A code that vectors do not favour is kept as the last result; a weak word is not."""
    weak = "scoped limit=2 fusion.weights.keyword=0 fusion.weights.vector=1 dedupe=no"
    for query, kept in (("ACME-INV-49302", True), ("the system of a day", False)):
        strongest = sample.search(query, mode="keyword", plan="keyword.operator=all").hits
        if not strongest:
            continue
        shown = sample.search(query, plan=weak).hits
        without = sample.search(query, plan=weak + " keyword.keep_strongest=no").hits
        if strongest[0].chunk_id not in {h.chunk_id for h in without}:
            assert (shown[1].chunk_id == strongest[0].chunk_id) is kept
            assert shown[0].chunk_id == without[0].chunk_id


def test_a_policy_hides_a_sensitivity_from_whom_it_does_not_clear(sample_path: Path) -> None:
    from workbench.store.access.mask import MaskPatterns

    everything = wb.Principal("acme", ("admin", "support"))
    policy = MaskPatterns(hidden=("confidential",), cleared=("auditor",))
    with (
        wb.open_corpus(sample_path, everything) as plain,
        wb.open_corpus(sample_path, everything, policy=policy) as hidden,
    ):
        assert "admin/salaries.md" in {h.path for h in plain.search("salary bands", mode="keyword").hits}
        for mode in ("grep", "keyword", "vector", "hybrid"):
            assert "admin/salaries.md" not in json.dumps(hidden.search("salary bands", mode=mode).to_dict())
        assert hidden.read_file("admin/salaries.md").startswith("[ERROR: NOT_FOUND]")
