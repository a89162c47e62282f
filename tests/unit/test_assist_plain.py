"""The seams, their shipped implementations without a model, and which name means which."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest

import workbench as wb
from workbench.assist.models import (
    EchoRewriter,
    Floats,
    KeywordsRewriter,
    OverlapReranker,
    load_reranker,
    load_rewriter,
)
from workbench.errors import AssistError


def test_a_text_with_more_of_the_querys_words_is_better_and_a_denser_one_wins_a_tie() -> None:
    """Stemmed, stop words left out: (words found + share of the text) / (words of the query + 1), by hand."""
    scores = OverlapReranker().scores(
        "how do the retries use jitter", ["nothing here", "retry", "retrying now", "Using jitter, RETRY!", ""]
    )
    assert scores.tolist() == [0, (1 + 1 / 1) / 4, (1 + 1 / 2) / 4, (3 + 3 / 3) / 4, 0]


def test_the_rewriters_do_what_they_say_and_no_more() -> None:
    """`echo` gives the query back; `keywords` leaves out stop words and repetitions, and never everything."""
    assert EchoRewriter().rewrite("  How do retries work? ", "x") == "How do retries work?"
    keywords = KeywordsRewriter()
    assert keywords.rewrite("How do the Retries of ACME-INV-49302 and retries work in C++?", "x") == (
        "Retries ACME-INV-49302 work C++"
    )
    assert keywords.rewrite("to be or not?", "") == "to be or not?"
    assert keywords.rewrite("", "") == ""


class Wrong:
    """A reranker that breaks its promise."""

    name = "wrong"

    def __init__(self, scores: Sequence[float]) -> None:
        self._scores = scores

    def scores(self, query: str, texts: Sequence[str]) -> Floats:
        return np.array(self._scores)


@pytest.mark.parametrize("scores", [[1.0], [1.0, 2.0, 3.0], [1.0, float("nan")], [float("inf"), 0.0]])
def test_a_reranker_that_does_not_score_each_text_is_refused(
    sample: wb.Corpus, monkeypatch: pytest.MonkeyPatch, scores: list[float]
) -> None:
    monkeypatch.setattr("workbench.retrieve.fusing.load_reranker", lambda model: Wrong(scores))
    found = sample.search("how do retries work", plan="rerank.model=overlap rerank.top=2", bypass_cache=True)
    assert "did not give one finite score" in " ".join(found.warnings)


def test_names_mean_what_load_says() -> None:
    assert load_reranker(" overlap ").name == "overlap"
    assert load_rewriter("echo").name == "echo"
    assert load_rewriter("keywords").name == "keywords"
    with pytest.raises(AssistError, match="There is no rewriter called 'overlap'"):
        load_rewriter("overlap")
    with pytest.raises(AssistError, match="names no model"):
        load_reranker("endpoint: ")


def test_loading_a_plain_model_loads_nothing_heavy() -> None:
    code = (
        "import sys; from workbench.assist.models import load_reranker, load_rewriter;"
        "load_reranker('overlap'), load_rewriter('keywords');"
        "print(sorted(set(sys.modules) & set(sys.argv[1:])))"
    )
    heavy = ["torch", "openai", "httpx2", "sentence_transformers", "transformers", "duckdb", "sklearn"]
    done = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
