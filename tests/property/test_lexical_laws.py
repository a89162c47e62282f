"""Laws of the word index over generated corpora: the textbook, the SQL, and visibility."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lexical_corpus import bm25, build

from workbench.errors import QueryError
from workbench.store.types import Scope

WORDS = [
    "run",
    "running",
    "the",
    "of",
    "git",
    "hub",
    "github",
    "GitHub",
    "get_user",
    "user",
    "a-b",
    "数据",
    "数",
    "x1.2",
    "C++",
]
TEXT = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
TEXTS = st.lists(st.one_of(TEXT, st.tuples(TEXT, TEXT)), max_size=7)
ATOM = st.one_of(
    st.sampled_from(WORDS),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(lambda words: '"' + " ".join(words) + '"'),
    st.sampled_from(["ru*", "g*", "get_*", "OR", "OR", "nowhere"]),
)
QUERY = st.lists(st.tuples(st.sampled_from(["", "", "", "-"]), ATOM).map("".join), min_size=1, max_size=5).map(" ".join)
SETTINGS = st.fixed_dictionaries(
    {
        "k1": st.sampled_from([0.0, 0.9, 2.0]),
        "b": st.sampled_from([0.0, 0.4, 1.0]),
        "operator": st.sampled_from(["any", "all"]),
    }
)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(TEXTS, st.lists(QUERY, min_size=1, max_size=8), SETTINGS)
def test_the_index_and_the_textbook_agree(texts: list, queries: list[str], values: dict) -> None:
    """Whatever the corpus and the query: scores to 1e-9, the same order; `score` gives the bits of `search`."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = build(Path(folder), texts, run_pieces=16)
        for query in queries:
            try:
                scored = corpus.lexical.search(query, Scope(), 100, **values)
            except QueryError:
                continue
            expected = bm25(texts, query, **values)
            got = dict(zip(scored.numbers.tolist(), scored.scores.tolist(), strict=True))
            assert got == pytest.approx(expected, abs=1e-9)
            numbers = np.arange(len(texts))
            every = corpus.lexical.score(query, Scope(), numbers, **values)
            assert every.tobytes() == np.array([got.get(n, 0.0) for n in numbers.tolist()], np.float64).tobytes()
        corpus.connection.close()


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(TEXTS, st.lists(QUERY, min_size=1, max_size=8), SETTINGS, st.data())
def test_a_hidden_record_changes_no_byte(texts: list, queries: list[str], values: dict, data: st.DataObject) -> None:
    visible = np.array(data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))), bool)
    kept = np.flatnonzero(visible)
    with tempfile.TemporaryDirectory() as folder:
        whole = build(Path(folder) / "whole", texts)
        without = build(Path(folder) / "without", [texts[n] for n in kept.tolist()])
        scope = Scope(visible, visible, key="some")
        for query in queries:
            try:
                ours = whole.lexical.search(query, scope, 3, **values)
            except QueryError:
                continue
            theirs = without.lexical.search(query, Scope(), 3, **values)
            assert ours.numbers.tolist() == kept[theirs.numbers].tolist()
            assert ours.scores.tobytes() == theirs.scores.tobytes()
            assert ours.found == theirs.found
            k1 = values["k1"]
            assert whole.lexical.upper_bound(query, scope, k1=k1) == without.lexical.upper_bound(query, Scope(), k1=k1)
        words = [*WORDS, "ru*"]
        assert whole.lexical.frequencies(words, scope).tolist() == without.lexical.frequencies(words, Scope()).tolist()
        whole.connection.close()
        without.connection.close()
