"""The demo from end to end, with the encoder that needs no model, and what its tour claims, with the model."""

import sys

import pytest

import workbench as wb
from workbench.demo import CHECKED, CONTENDERS, MODES, QUESTIONS, ask, build, check


@pytest.mark.slow
def test_the_demo_builds_answers_and_checks(tmp_path):
    first = build(tmp_path, encoder="hashing")
    assert first.report.count("failed") == 0
    assert 3_000 <= first.report.chunks <= 8_000
    second = build(tmp_path, encoder="hashing")
    assert second.report.embedded == 0
    assert not second.report.changed

    with wb.open_corpus(first.corpus) as corpus:
        answers = ask(corpus)
        assert [(a.question, a.mode) for a in answers] == [(q, m) for q in QUESTIONS for m in MODES]
        assert all(answer.citations for answer in answers)
        named = next(a for a in answers if a.mode == "grep")
        assert any(citation.startswith("lib/socket") for citation in named.citations)

        contenders = check(corpus)
    assert [c.name for c in contenders] == [name for name, _, _ in CONTENDERS]
    assert all(c.evaluation.measures == CHECKED for c in contenders)
    assert [c.name for c in contenders if c.against is None] == ["hybrid"]
    # Words are found by words with any encoder: far above chance, below perfect.
    keyword = next(c.evaluation for c in contenders if c.name == "keyword")
    assert 0.5 < keyword.mean("nDCG@10") < 0.9


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the demo's files are this Python's own; looked at on 3.11")
def test_the_tour_shows_what_it_says(small_demo):
    judgments = wb.demo_judgments()
    answers = {
        judgments.topic(i).text: {k for k, grade in judgments.qrels[i].items() if grade} for i in judgments.query_ids
    }
    with wb.open_corpus(small_demo / "demo" / "corpus") as corpus:
        first = {
            (a.question.text, a.mode): a.citations[0].rpartition(":")[0] in answers[a.question.text]
            for a in ask(corpus)
        }
    name, description, both = (q.text for q in QUESTIONS)
    assert first[name, "grep"]
    assert [first[description, mode] for mode in ("keyword", "vector", "hybrid")] == [False, True, True]
    assert [first[both, mode] for mode in MODES] == [False, False, False, True]
