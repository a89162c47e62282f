"""Rewriting and reranking in the pipeline: they help where they can, and never stand in the way."""

import math
from pathlib import Path

import pytest
from click.testing import CliRunner

import workbench as wb
from workbench.cli.main import main

QUERY = "how do retries work after a timeout"


def test_a_reranker_orders_the_top_and_leaves_scores_alone(sample: wb.Corpus) -> None:
    plain = sample.search(QUERY, plan="limit=20")
    again = sample.search(QUERY, plan="limit=20 rerank.model=overlap rerank.top=5")
    assert {h.chunk_id for h in again.hits[:5]} == {h.chunk_id for h in plain.hits[:5]}
    assert [h.chunk_id for h in again.hits[5:]] == [h.chunk_id for h in plain.hits[5:]]
    scores = [h.scores["rerank"] for h in again.hits[:5]]
    assert scores == sorted(scores, reverse=True)
    assert all(h.score == math.fsum(h.contributions.values()) for h in again.hits)
    assert "rerank_ms" in again.timings_ms
    assert [s.step for s in again.steps][-2:] == ["rerank", "limit"]
    assert plain.with_plan("limit=20 rerank.model=overlap rerank.top=5").to_dict() == again.to_dict()


@pytest.mark.parametrize("model", ["no/such/model", "endpoint:gpt"])
def test_a_reranker_that_fails_leaves_the_fused_order_and_a_warning(sample: wb.Corpus, model: str) -> None:
    plain = sample.search(QUERY)
    again = sample.search(QUERY, plan=wb.preset("default").replace({"rerank.model": model}))
    assert [h.chunk_id for h in again.hits] == [h.chunk_id for h in plain.hits]
    assert "Reranking was left out" in " ".join(again.warnings)


def test_a_rewritten_query_goes_to_the_vector_side_only(sample: wb.Corpus) -> None:
    plain = sample.search(QUERY)
    again = sample.search(QUERY, plan="rewrite.model=keywords")
    assert again.rankings["keyword"] == plain.rankings["keyword"]
    assert again.rankings["vector"] != plain.rankings["vector"]
    assert "rewrite_ms" in again.timings_ms
    echoed = sample.search(QUERY, plan="rewrite.model=echo")
    assert echoed.rankings == plain.rankings
    plain = sample.search(QUERY)
    again = sample.search(QUERY, plan="rewrite.model=endpoint:gpt")
    assert [h.chunk_id for h in again.hits] == [h.chunk_id for h in plain.hits]
    assert "Rewriting was left out" in " ".join(again.warnings)


def test_plans_of_others_name_only_what_the_owner_lists(sample_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    who = wb.Principal("acme", ("support",))
    monkeypatch.setenv("WORKBENCH_ALLOWED_MODELS", "/no/such/model")
    with wb.open_corpus(sample_path, who, served=True) as served:
        for field, model in [("rerank", "/etc"), ("rerank", "/no/such"), ("rewrite", "endpoint:x")]:
            said = " ".join(served.search(QUERY, plan=f"default {field}.model={model}").warnings)
            assert f"The plan names the model {model!r}, which is not allowed here" in said
        assert "Reranking was left out: There is no" in " ".join(
            served.search(QUERY, plan="rerank.model=/no/such/model").warnings
        )
        assert "rerank_ms" in served.search(QUERY, plan="rerank.model=overlap").timings_ms


def test_a_snapshot_that_names_a_model_is_run_when_it_may_be_loaded(
    sample: wb.Corpus, sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = ("rerank.model=/no/such/model", "rewrite.model=endpoint:x rerank.model=overlap")
    snapshot = wb.Snapshot.of([sample.search(QUERY, plan=plan) for plan in plans])
    assert snapshot.models == ("/no/such/model", "endpoint:x")
    assert all(name in snapshot._repr_html_() for name in snapshot.models)
    checked = snapshot.verify(sample)
    assert not checked.ran
    assert [name in one.differences[0] for name, one in zip(snapshot.models, checked.searches, strict=True)] == [
        True,
        True,
    ]
    assert snapshot.verify(sample, load_models=True).ran
    with wb.open_corpus(sample_path, sample.principal, served=True) as served:
        assert not snapshot.verify(served, load_models=True).ran
    file = str(snapshot.save(tmp_path / "x"))
    asker = ["--corpus", str(sample_path), "--tenant", "acme", "--role", "admin", "--role", "support"]
    shown = CliRunner().invoke(main, ["snapshot", "show", file]).output
    assert "Models, which only verifying loads, and asks first: /no/such/model, endpoint:x" in shown
    assert "its plan loads endpoint:x" in CliRunner().invoke(main, ["snapshot", "verify", file, *asker]).output
    assert "Verified" in CliRunner().invoke(main, ["snapshot", "verify", file, "--load-models", *asker]).output
    monkeypatch.setenv("WORKBENCH_ALLOWED_MODELS", ",".join(snapshot.models))
    assert snapshot.verify(sample).ran
