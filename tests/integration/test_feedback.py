"""Adapted similarity and feedback from a search to its table, snapshot, funnel, sweep and command line."""

import math

import pytest
from click.testing import CliRunner

import workbench as wb
from workbench.cli.main import main
from workbench.retrieve import engine

WORDS = "amber bridge cedar delta ember fjord grove harbour island juniper".split()
PLAN = "tmm vector.adapt=corpus vector.hubness=0.3 feedback.weight=0.4 feedback.top=2 vector.threshold=off"


@pytest.fixture(autouse=True)
def any_encoder(monkeypatch):
    """The hashing encoder is not adapted to: here it is, so that no model is needed."""
    monkeypatch.setattr(engine, "NOT_ADAPTED", frozenset())


@pytest.fixture(scope="module")
def corpus(corpus_of):
    words = {n: " ".join(WORDS[(n * k + k * k) % 10] for k in range(1, 5 + n % 7)) for n in range(120)}
    return corpus_of({f"n{n}.md": f"{said}\nnote {n}\n" for n, said in words.items()})


def test_contributions_add_up_wherever_they_are_shown(corpus, tmp_path):
    result = corpus.search("amber harbour bridge", plan=PLAN)
    assert {"keyword", "vector", "feedback"} == set(result.hits[0].contributions)
    for hit in result.hits:
        assert hit.score == math.fsum(hit.contributions.values())
    frame = result.frame()
    parts = frame["keyword_contribution"] + frame["vector_contribution"] + frame["feedback_contribution"]
    assert (parts - frame["score"]).abs().max() < 1e-12
    scores = [entry.score for entry in result.rankings["vector"].entries]
    assert scores == sorted(scores, reverse=True)
    assert [s.step for s in result.steps if s.step in ("adapt", "feedback")] == ["adapt", "feedback"]
    saved = result.snapshot()
    saved.save(tmp_path / "a.snapshot")
    again = wb.Snapshot.load(tmp_path / "a.snapshot")
    assert again.verify(corpus).ok
    assert again.frame()["feedback_contribution"].to_list() == frame["feedback_contribution"].to_list()
    assert "feedback added" in again.html()


def test_distances_and_the_threshold_are_those_of_the_plain_cosine(corpus):
    plain = corpus.search("amber harbour bridge", plan="tmm", mode="vector")
    adapted = corpus.search("amber harbour bridge", plan="tmm vector.adapt=corpus", mode="vector")
    far = {hit.chunk_id: hit.distance for hit in corpus.search("amber harbour bridge", plan="tmm", limit=100).hits}
    assert {e.chunk_id for e in plain.rankings["vector"].entries} == {
        e.chunk_id for e in adapted.rankings["vector"].entries
    }
    assert [hit.distance for hit in adapted.hits] == [far[hit.chunk_id] for hit in adapted.hits]
    assert [hit.score for hit in adapted.hits] == sorted((h.score for h in adapted.hits), reverse=True)


def test_the_command_line_names_what_feedback_added_and_what_has_no_effect(corpus):
    run = CliRunner().invoke(main, ["search", "amber harbour", "-c", str(corpus.path), "--plan", PLAN, "--limit", "2"])
    assert run.exit_code == 0, run.output
    assert "feedback (+" in run.output
    run = CliRunner().invoke(
        main, ["search", "amber", "-c", str(corpus.path), "--set", "feedback.top=5", "--plan", "rrf"]
    )
    assert "feedback.top has no effect with feedback.weight 0; add feedback.weight=0.2" in run.output


def test_who_sets_it_where_it_does_nothing_is_told(corpus, monkeypatch):
    result = corpus.search("amber", plan="rrf vector.adapt=corpus feedback.weight=1")
    assert result.outcome.candidates.column("vector").adapted is not None
    assert not [w for w in result.warnings if "vector.adapt" in w]
    monkeypatch.setattr(engine, "NOT_ADAPTED", frozenset({"hashing"}))
    corpus.refresh()
    again = corpus.search("harbour", plan="rrf vector.adapt=corpus feedback.weight=1")
    assert "feedback" not in again.hits[0].contributions
    assert any("vector.adapt has no effect here" in w for w in again.warnings)
    assert not corpus.search("island").warnings  # the default has it wherever it does something
