"""Adapted similarity and feedback from a search to its table, snapshot, funnel, sweep and command line."""

import math

import pytest
from click.testing import CliRunner
from corpus_files import write_files

import workbench as wb
from workbench.cli.main import main
from workbench.evaluate.live import LiveMeasure
from workbench.judgments.qrels import Judgments, Topic
from workbench.retrieve import engine

WORDS = "amber bridge cedar delta ember fjord grove harbour island juniper".split()
PLAN = "tmm vector.adapt=corpus vector.hubness=0.3 feedback.weight=0.4 feedback.top=2 vector.threshold=off"


@pytest.fixture(autouse=True)
def any_encoder(monkeypatch):
    """The hashing encoder is not adapted to: here it is, so that no model is needed."""
    monkeypatch.setattr(engine, "NOT_ADAPTED", frozenset())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapted")
    files = {
        f"n{n}.md": " ".join(WORDS[(n * k + k * k) % 10] for k in range(1, 5 + n % 7)) + f"\nnote {n}\n"
        for n in range(120)
    }
    wb.index([write_files(folder / "files", files)], corpus=folder / "corpus", encoder="hashing")
    with wb.open_corpus(folder / "corpus") as opened:
        yield opened


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


def test_a_slider_and_a_sweep_give_what_a_search_gives(corpus):
    asked = "amber harbour bridge"
    start = corpus.search(asked, plan="tmm vector.threshold=off")
    topics = {"q1": Topic("q1", asked), "q2": Topic("q2", "ember island")}
    judgments = Judgments(topics, {"q1": {"n3.md": 1, "n8.md": 2}, "q2": {"n20.md": 1}}, "made")
    live = LiveMeasure(corpus.engine, judgments)
    live.prepare(start.plan)
    for change in (
        PLAN,
        "rrf vector.adapt=corpus",
        "rrf feedback.weight=1",
        "tmm vector.adapt=corpus vector.hubness=1",
    ):
        plan = wb.Plan.parse(change).replace({"vector.threshold": "off"})
        assert start.with_plan(plan).to_dict() == corpus.search(asked, plan=plan).to_dict()
        whole = corpus.evaluate(judgments, plan=plan, measures=["nDCG@10"])
        assert live.values(plan) == pytest.approx(whole.per_query()["nDCG@10"].to_numpy(), abs=1e-9)


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
