"""The word index: what a search finds, in which order, and for whom."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from lexical_corpus import Corpus, build

from workbench.errors import QueryError
from workbench.records import Progress, Span
from workbench.store.lexical import build as lexical_build
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
        ("Zürich NAIVE", "all", {6}),
        ("retry github", "all", set()),
        ("the retry", "all", {0, 1}),
        ("retry backoff OR github string", "all", {0, 2, 3}),
        ('"connection pool"', "any", {0, 1}),
        ('"for the connection"', "any", {0}),
        ('"github actions"', "any", {2, 3}),
        ('"git hub actions"', "any", {2}),
        ('"parse query string and get"', "any", {2}),
        ("parse_query_string", "all", {2}),
        ("query-string", "all", {2, 3}),
        ("pool -backoff", "any", {1}),
        ('pool -"backoff policy"', "any", {1}),
        ("string -parse_query_string", "any", {3}),
        ("polic* -retries", "any", set()),
        ("connections*", "any", {1}),
        ("acme-inv-4*", "any", {4}),
        ("C++", "any", {2}),
        ("数据库", "any", {7, 8}),
        ("管理系统", "any", {7, 8}),
        ('"invoice acme-inv-49302"', "any", {4}),
        ("'; drop table postings; --", "all", {10}),
        ("", "any", set()),
    ],
)
def test_a_query_finds(corpus: Corpus, query: str, operator: str, expected: set[int]) -> None:
    assert set(found(corpus, query, operator).numbers.tolist()) == expected


def test_scopes_frequencies_and_the_very_code(corpus: Corpus) -> None:
    assert found(corpus, "ACME-INV-49302").numbers[0] == 4
    allowed = np.zeros(len(TEXTS), bool)
    allowed[[1, 3]] = True
    every, some = found(corpus, "pool policy string"), found(corpus, "pool policy string", scope=Scope(None, allowed))
    assert set(some.numbers.tolist()) == {1, 3}
    assert some.found == 2
    scores = dict(zip(every.numbers.tolist(), every.scores.tolist(), strict=True))
    assert [scores[n] for n in some.numbers.tolist()] == some.scores.tolist()
    words = ["Retry", "pools", "github", "query_string", "connection pool", "数据", "nowhere", "***", "-policy"]
    assert corpus.lexical.frequencies(words, EVERYTHING).tolist() == [2, 2, 2, 2, 2, 2, 0, 0, 2]
    visible = np.arange(len(TEXTS)) != 1
    assert corpus.lexical.frequencies(words[:2], Scope(visible, visible)).tolist() == [1, 1]
    assert corpus.lexical.frequencies([], EVERYTHING).tolist() == []
    with pytest.raises(QueryError, match="any or all"):
        found(corpus, "pool", "some")


@pytest.mark.parametrize("query", ["retry the pool policy policy", "to be", "'; -- it''s \\ %", "数"])
def test_the_sql_that_is_shown_gives_the_scores_of_words(corpus: Corpus, query: str) -> None:
    scored = corpus.lexical.search(query, EVERYTHING, 100, k1=0.9, b=0.4, operator="any")
    rows = corpus.connection.execute(corpus.lexical.sql(query, k1=0.9, b=0.4, depth=100)).fetchall()
    assert [number for number, _ in rows] == scored.numbers.tolist()
    assert [score for _, score in rows] == pytest.approx(scored.scores.tolist(), abs=1e-9)
    assert corpus.lexical.sql('"pool of" poli*', k1=0.9, b=0.4, depth=1).startswith("-- without the query's 2 phrases")


def test_equal_scores_stand_by_number_at_any_depth(tmp_path: Path) -> None:
    index = build(tmp_path, ["same words here", "other"] * 300).lexical
    for query in ("same", "same words"):
        for depth in (0, 1, 7, 299, 300, 1000):
            scored = index.search(query, EVERYTHING, depth, k1=0.9, b=0.4, operator="any")
            assert scored.numbers.tolist() == list(range(0, 600, 2))[:depth]
            assert scored.found == 300


def test_an_empty_corpus_answers_nothing(tmp_path: Path) -> None:
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
        ("zürich", "Zu\u0308rich", ["Zu\u0308rich"]),
        ("getUserName", "getUserName, get_user_name", ["getUserName", "get_user_name"]),
        ('"user name"', "getUserName or user name", ["UserName", "user name"]),
        ("retr*", "retry retrieval try", ["retry", "retrieval"]),
        ("数据", "管理数据库", ["数据"]),
        ("the cat -dog", "the cat, the dog", ["cat"]),
        ("ACME-INV-49302", "see ACME-INV-49302.", ["ACME-INV-49302"]),
        ("😀 x", "😀x😀", ["x"]),
        ("text", "", []),
    ],
)
def test_highlights(corpus: Corpus, query: str, text: str, marked: list[str]) -> None:
    spans = corpus.lexical.highlight(query, text)
    assert [text[s.start : s.end] for s in spans] == marked
    assert all(a.end <= b.start for a, b in itertools.pairwise(spans))
    assert all(isinstance(s, Span) for s in spans)


# --- lexical build ---------------------------------------------------------------------------------------------------


BUILT = [f"word{i % 7} shared Words_of{i % 5} run running runs 数据{i} fooBar-{i}" for i in range(200)]


def test_the_same_records_give_the_same_rows_however_they_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[Progress] = []
    whole = build(tmp_path / "whole", BUILT, progress=reports.append)
    monkeypatch.setattr(lexical_build, "BLOCK_CHARACTERS", 500)
    monkeypatch.setenv("WORKBENCH_THREADS", "3")
    cut = build(tmp_path / "cut", BUILT, most=64)
    for table in ("postings", "lengths", "words_made_with"):
        rows = f"SELECT * FROM {table}"
        assert whole.connection.execute(rows).fetchall() == cut.connection.execute(rows).fetchall()
    assert {(r.done, r.total) for r in reports if r.detail == "read"} >= {(200, 200)}
    assert reports[-1].done == reports[-1].total


def test_words_made_by_other_rules_are_noticed(tmp_path: Path) -> None:
    made = build(tmp_path, ["run runs"])
    assert not made.lexical.older
    made.connection.execute("UPDATE words_made_with SET value = '0' WHERE name = 'words'")
    assert build(tmp_path, ["run"]).lexical.older is False
    assert lexical_build.made_alike(made.connection) is False


def test_many_occurrences_in_one_record_are_kept(tmp_path: Path) -> None:
    index = build(tmp_path, ["spam " * 70_000, "spam spam", "egg"]).lexical
    assert index.search('"spam spam"', Scope(), 5, k1=0.9, b=0.4, operator="any").numbers.tolist() == [0, 1]
