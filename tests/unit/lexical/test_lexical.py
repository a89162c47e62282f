"""The word index: what a search finds, in which order, and for whom."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import numpy as np
import pytest
from lexical_corpus import Corpus, bm25, build

from workbench.errors import QueryError
from workbench.records import Span
from workbench.store.types import Scope, Scored

EVERYTHING = Scope()
TEXTS = [
    "Retries with a backoff policy for the connection pool.",
    "The pool of connections retries; connection pooling is a policy of its own, a policy for the pool.",
    "GitHub Actions run parse_query_string and getUserName in C++ and C#.",
    "parse the query string with github actions; get user name",
    ("Invoice ACME-INV-49302", "Paid late."),
    "ACME invoices: INV 49301, INV 49303. acme inv acme inv",
    "Zürich is Zurich, naïve café",
    "数据库管理系统 stores 数据",
    "管理数据的系统",
    "to be or not to be, that is the question",
    "'; DROP TABLE postings; --",
    "",
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return build(tmp_path_factory.mktemp("corpus"), TEXTS)


def found(corpus: Corpus, query: str, operator: str = "any", scope: Scope = EVERYTHING, depth: int = 100) -> Scored:
    return corpus.lexical.search(query, scope, depth, k1=0.9, b=0.4, operator=operator)


@pytest.mark.parametrize(
    ("query", "operator", "expected"),
    [
        ("retry", "any", {0, 1}),
        ("zurich", "any", {6}),
        ("Zürich NAIVE", "all", {6}),
        ("retry github", "any", {0, 1, 2, 3}),
        ("retry github", "all", set()),
        ("the retry", "all", {0, 1}),
        ("retry OR github", "all", {0, 1, 2, 3}),
        ("retry backoff OR github string", "all", {0, 2, 3}),
        ('"connection pool"', "any", {0, 1}),
        ('"connection pool for"', "any", set()),
        ('"pool of connections"', "any", {1}),
        ('"for the connection"', "any", {0}),
        ('"github actions"', "any", {2, 3}),
        ('"git hub actions"', "any", {2}),
        ('"GitHub Actions"', "any", {2, 3}),
        ('"query string"', "any", {2, 3}),
        ('"parse query string and get"', "any", {2}),
        ('"parse_query_string and getusername in"', "any", {2}),
        ("parse_query_string", "all", {2}),
        ("query-string", "all", {2, 3}),
        ("pool -backoff", "any", {1}),
        ('pool -"backoff policy"', "any", {1}),
        ("string -parse_query_string", "any", {3}),
        ("polic* -retries", "any", set()),
        ("poli*", "any", {0, 1}),
        ("connecti*", "any", {0, 1}),
        ("connections*", "any", {1}),
        ("getU*", "any", {2}),
        ("acme-inv-4*", "any", {4}),
        ("C++", "any", {2}),
        ("数据", "any", {7, 8}),
        ("数据库", "any", {7, 8}),
        ("数据库", "all", {7}),
        ("管理系统", "any", {7, 8}),
        ('"invoice acme-inv-49302"', "any", {4}),
        ('"49302 paid"', "any", set()),
        ("to be or not", "all", {9}),
        ("'; drop table postings; --", "all", {10}),
        ("unknownword", "any", set()),
        ("", "any", set()),
    ],
)
def test_a_query_finds(corpus: Corpus, query: str, operator: str, expected: set[int]) -> None:
    """Operators, phrases, prefixes, compounds and scripts, by hand."""
    assert set(found(corpus, query, operator).numbers.tolist()) == expected


def test_the_record_with_the_very_code_comes_first(corpus: Corpus) -> None:
    """Above one that repeats its parts more often."""
    assert found(corpus, "ACME-INV-49302").numbers[0] == 4


@pytest.mark.parametrize("operator", ["any", "all"])
@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (0.0, 0.0), (0.0, 1.0), (3.0, 1.0), (1.2, 0.0)])
def test_the_index_and_the_textbook_agree(corpus: Corpus, operator: str, k1: float, b: float) -> None:
    """Scores to 1e-9, the same order; `score` gives the bits of `search`; no score is above the upper bound."""
    for query in (
        "retry the pool policy policy", '"connection pool" retry', "poli* OR parse_query_string -github", "数据 管理",
        "ACME-INV-49302 zurich", "to be", "foo_barBaz-qux", "get user name C++", "what-if", "'; -- it''s \\ %",
    ):  # fmt: skip
        scored = corpus.lexical.search(query, EVERYTHING, 100, k1=k1, b=b, operator=operator)
        expected = bm25(TEXTS, query, k1=k1, b=b, operator=operator)
        assert dict(zip(scored.numbers.tolist(), scored.scores.tolist(), strict=True)) == pytest.approx(
            expected, abs=1e-9
        )
        assert scored.found == len(expected)
        again = corpus.lexical.score(query, EVERYTHING, scored.numbers, k1=k1, b=b, operator=operator)
        assert again.tobytes() == scored.scores.tobytes()
        bound = corpus.lexical.upper_bound(query, EVERYTHING, k1=k1)
        assert bound * (1 + 1e-12) >= max(scored.scores.tolist(), default=0.0)


@pytest.mark.parametrize("query", ["retry the pool policy policy", "to be", "'; -- it''s \\ %", "数"])
def test_the_sql_that_is_shown_gives_the_scores_of_words(corpus: Corpus, query: str) -> None:
    """To 1e-9, in the same order; what it leaves out is named in its first line."""
    scored = corpus.lexical.search(query, EVERYTHING, 100, k1=0.9, b=0.4, operator="any")
    rows = corpus.connection.execute(corpus.lexical.sql(query, k1=0.9, b=0.4, depth=100)).fetchall()
    assert [number for number, _ in rows] == scored.numbers.tolist()
    assert [score for _, score in rows] == pytest.approx(scored.scores.tolist(), abs=1e-9)
    assert corpus.lexical.sql('"pool of" poli*', k1=0.9, b=0.4, depth=1).startswith("-- without the query's 2 phrases")


def test_equal_scores_stand_by_number_at_any_depth(tmp_path: Path) -> None:
    """Ties never depend on where the answer is cut."""
    index = build(tmp_path, ["same words here", "other"] * 300).lexical
    for query in ("same", "same words"):
        for depth in (0, 1, 7, 299, 300, 1000):
            scored = index.search(query, EVERYTHING, depth, k1=0.9, b=0.4, operator="any")
            assert scored.numbers.tolist() == list(range(0, 600, 2))[:depth]
            assert scored.found == 300


def test_what_a_scope_does_not_allow_is_not_found(corpus: Corpus) -> None:
    """A filter changes what is returned, not the scores; `found` counts what is allowed."""
    allowed = np.zeros(len(TEXTS), bool)
    allowed[[1, 3]] = True
    every, some = found(corpus, "pool policy string"), found(corpus, "pool policy string", scope=Scope(None, allowed))
    assert set(some.numbers.tolist()) == {1, 3}
    assert some.found == 2
    scores = dict(zip(every.numbers.tolist(), every.scores.tolist(), strict=True))
    assert [scores[n] for n in some.numbers.tolist()] == some.scores.tolist()


def test_a_hidden_record_has_no_score(corpus: Corpus) -> None:
    """Nor has an excluded one, one that misses a required word, or one without the words."""
    visible = np.ones(len(TEXTS), bool)
    visible[1] = False
    numbers = np.array([0, 1, 2], np.int64)
    kwargs = {"k1": 0.9, "b": 0.4, "operator": "any"}
    assert (corpus.lexical.score("pool", Scope(visible, visible), numbers, **kwargs) > 0).tolist() == [
        True,
        False,
        False,
    ]
    assert (corpus.lexical.score("pool -own", EVERYTHING, numbers, **kwargs) > 0).tolist() == [True, False, False]
    kwargs["operator"] = "all"
    assert (corpus.lexical.score("pool backoff", EVERYTHING, numbers, **kwargs) > 0).tolist() == [True, False, False]


def test_frequencies_count_visible_records(corpus: Corpus) -> None:
    """Words as tokenised and stemmed, compounds whole or in parts, phrases; 0 where there is no word."""
    words = ["Retry", "pools", "github", "query_string", "connection pool", "数据", "nowhere", "***", "-policy"]
    assert corpus.lexical.frequencies(words, EVERYTHING).tolist() == [2, 2, 2, 2, 2, 2, 0, 0, 2]
    visible = np.arange(len(TEXTS)) != 1
    assert corpus.lexical.frequencies(words[:2], Scope(visible, visible)).tolist() == [1, 1]
    assert corpus.lexical.frequencies([], EVERYTHING).tolist() == []


def test_an_unknown_operator_is_refused(corpus: Corpus) -> None:
    """With the two there are."""
    with pytest.raises(QueryError, match="any or all"):
        found(corpus, "pool", "some")


def test_an_empty_corpus_answers_nothing(tmp_path: Path) -> None:
    """No record, or no word in any record."""
    for name, texts in (("none", []), ("blank", ["", "  ", "***"])):
        index = build(tmp_path / name, texts)
        for query in ("pool", '"a b" c', "po*", "", "a -b"):
            for operator in ("any", "all"):
                assert not found(index, query, operator).found
            assert not index.connection.execute(index.lexical.sql(query, k1=0.9, b=0.4, depth=3)).fetchall()
        assert index.lexical.upper_bound("pool", EVERYTHING, k1=0.9) == 0.0
        assert index.lexical.frequencies(["pool"], EVERYTHING).tolist() == [0]


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("retry", "Retries, retried; a retry", ["Retries", "retried", "retry"]),
        ("zurich", "In Zürich", ["Zürich"]),
        ("zürich", "Zu\u0308rich", ["Zu\u0308rich"]),
        ("user", "getUserName", ["User"]),
        ("getUserName", "getUserName, get_user_name", ["getUserName", "get_user_name"]),
        ('"user name"', "getUserName or user name", ["UserName", "user name"]),
        ('"github actions"', "GitHub Actions", ["GitHub Actions"]),
        ("retr*", "retry retrieval try", ["retry", "retrieval"]),
        ("数据", "管理数据库", ["数据"]),
        ("the cat -dog", "the cat, the dog", ["cat"]),
        ("ACME-INV-49302", "see ACME-INV-49302.", ["ACME-INV-49302"]),
        ('"a b"', "a b a b c", ["a b", "a b"]),
        ("😀 x", "😀x😀", ["x"]),
        ("", "text", []),
        ("text", "", []),
    ],
)
def test_highlights(corpus: Corpus, query: str, text: str, marked: list[str]) -> None:
    """The characters of the original text, in order, not overlapping."""
    spans = corpus.lexical.highlight(query, text)
    assert [text[s.start : s.end] for s in spans] == marked
    assert all(a.end <= b.start for a, b in itertools.pairwise(spans))
    assert all(isinstance(s, Span) for s in spans)


def test_threads_get_their_own_answers(corpus: Corpus) -> None:
    """Eight threads, mixed queries and scopes, the same bytes as alone."""
    visible = np.arange(len(TEXTS)) % 2 == 0
    scopes = [EVERYTHING, Scope(visible, visible, key="even")]
    queries = ["pool policy", '"connection pool"', "poli* github", "parse_query_string the", "数据 acme"]
    expected = {(q, i): found(corpus, q, scope=s).scores.tobytes() for q in queries for i, s in enumerate(scopes)}
    wrong: list[str] = []

    def work() -> None:
        for _ in range(20):
            for (query, i), scores in expected.items():
                if found(corpus, query, scope=scopes[i]).scores.tobytes() != scores:
                    wrong.append(query)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
