"""The query syntax."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import QueryError
from workbench.store.lexical.query import MAX_CHARACTERS, Matcher, parse, word_matcher


def term(word: str) -> Matcher:
    return Matcher((((word,),),))


def shown(matcher: Matcher) -> str:
    """A matcher on one line: phrases in quotes, ways to write a word between bars."""
    if not matcher.steps:
        return matcher.prefix + "*"
    steps = ["|".join("+".join(path) for path in step) for step in matcher.steps]
    return steps[0] if len(steps) == 1 else '"' + " ".join(steps) + '"'


@pytest.mark.parametrize(
    ("query", "alternatives", "excluded"),
    [
        ("retry policies", [["retri", "polici"]], []),
        ('"connection pool" size', [['"connect pool"', "size"]], []),
        ("“connection pool”", [['"connect pool"']], []),
        ("cats OR dogs birds", [["cat"], ["dog", "bird"]], []),
        ("cats | dogs", [["cat"], ["dog"]], []),
        ("OR cats OR OR dogs OR", [["cat"], ["dog"]], []),
        ("cats or dogs Or birds", [["cat"], ["dog"], ["bird"]], []),
        ("or cats or", [["or", "cat"]], []),
        ("is it safe or not", [["is", "it", "safe", "not"]], []),
        ("cats -dogs", [["cat"]], ["dog"]),
        ('cats -"big dogs"', [["cat"]], ['"big dog"']),
        ("cats -big.dogs", [["cat"]], ['"big dog"']),
        ("cats - dogs", [["cat", "dog"]], []),
        ("--dry-run", [["dri+run|dry-run"]], []),
        ("retr* x", [["retr*", "x"]], []),
        ("-retr* x", [["x"]], ["retr*"]),
        ("ACME-INV-* ACME-I*", [["acme-inv-*", "acme-i*"]], []),
        ("a*b *", [["a", "b"]], []),
        ("数据 库", [['"数 据"', "库"]], []),
        ("数据*", [['"数 据"']], []),
        ("C++ .NET", [["c++", ".net"]], []),
        ("parseQuery", [["pars+queri|parsequeri"]], []),
        ("foo_barBaz-qux", [["foo+bar+baz+qux|foo_barbaz+qux|foo_barbaz-qux"]], []),
        ('"one"', [["one"]], []),
        ('5" pipe', [["5", "pipe"]], []),
        ('say "hi', [["say", "hi"]], []),
        ("'; DROP TABLE records; --", [["drop", "tabl", "record"]], []),
        ("", [], []),
        ('"" - * OR ??? 😀', [], []),
    ],
)
def test_a_query_reads_as(query: str, alternatives: list[list[str]], excluded: list[str]) -> None:
    parsed = parse(query)
    assert [[shown(i.matcher) for i in items] for items in parsed.alternatives] == alternatives
    assert [shown(i.matcher) for i in parsed.excluded] == excluded


def test_stop_words_count_only_where_there_is_nothing_else() -> None:
    assert parse("the cat").scored == ((term("cat"), 1.0),)
    assert parse("to be").scored == ((term("be"), 1.0), (term("to"), 1.0))
    assert dict(parse('"the" cat').scored) == {term("cat"): 1.0, term("the"): 1.0}
    assert dict(parse("the OR cat").scored) == {term("cat"): 1.0, term("the"): 1.0}


def test_a_compound_counts_once_whole_and_once_in_parts() -> None:
    """Each of n parts weighs 1/n; a number or lone letter that touches another part counts only in the whole."""
    third = pytest.approx(1 / 3)
    whole = Matcher(((("acm", "inv", "49302"), ("acme-inv-49302",)),))
    assert dict(parse("ACME-INV-49302").scored) == {
        whole: 1.0,
        term("acm"): third,
        term("inv"): third,
        term("49302"): third,
    }
    assert dict(parse("vue3").scored) == {Matcher(((("vue", "3"), ("vue3",)),)): 1.0, term("vue"): 0.5}
    assert list(dict(parse("p53").scored).values()) == [1.0]


def test_a_compound_in_quotes_is_a_phrase() -> None:
    whole = Matcher(((("2024", "118"), ("2024-118",)),))
    assert parse('"2024-118"').scored == ((whole, 1.0),)
    assert dict(parse('"2024-118" invoice').scored) == {
        whole: 1.0,
        term("2024"): 0.5,
        term("118"): 0.5,
        term("invoic"): 1.0,
    }


def test_a_phrase_alone_is_one_word_and_its_words_count_beside_others() -> None:
    phrase = Matcher(((("connect",),), (("pool",),)))
    assert parse('"connection pool"').scored == ((phrase, 1.0),)
    assert dict(parse('"connection pool" size').scored) == {
        phrase: 1.0,
        term("connect"): 1.0,
        term("pool"): 1.0,
        term("size"): 1.0,
    }


def test_a_run_without_spaces_counts_its_pairs_too() -> None:
    """A run may be several words, of which no record may hold every character in a row; of Thai and the like, triples."""
    assert len(parse("数据").scored) == len(parse("게임").scored) == len(parse("แมว").scored) == 1
    for run, grams in (("备份失败", 3), ("게임을", 2), ("如何设置数据库连接池", 9), ("ภาษาไทย", 5)):
        scored = parse(run).scored
        assert len(scored) == 1 + grams
        assert sum(weight for _, weight in scored) == pytest.approx(2.0)


def test_a_word_typed_twice_counts_twice() -> None:
    assert parse("cat cats dog").scored == ((term("cat"), 2.0), (term("dog"), 1.0))


def test_only_exclusions_is_an_error_with_guidance() -> None:
    with pytest.raises(QueryError, match=r"leave out.*Add a word"):
        parse('-draft -"first version"')


@pytest.mark.slow
def test_a_query_beyond_the_limit_is_an_error_that_says_so() -> None:
    """100,000 characters are refused at once; the longest allowed query of any shape is read."""
    with pytest.raises(QueryError, match=r"100,000 characters.*10,000"):
        parse("x" * 100_000)
    for text in ("ab " * 5000, '"' * 5000, "a-a" * 4000, "数" * MAX_CHARACTERS, "aB" * 5000, "a-" * 5000, "a* " * 4000):
        assert parse(text[:MAX_CHARACTERS]).text == text[:MAX_CHARACTERS]


@given(st.text(alphabet=st.one_of(st.sampled_from(list('"-*|OR ab数é_.C+#\ud800\0')), st.characters())))
def test_any_text_is_read_or_refused_with_a_remedy(text: str) -> None:
    try:
        parsed = parse(text)
    except QueryError as error:
        parsed = None
        remedy = error.remedy
    if parsed is None:
        assert remedy
        return
    assert all(items for items in parsed.alternatives)
    assert bool(parsed.scored) == bool(parsed.alternatives)
    assert list(parsed.scored) == sorted(parsed.scored)
    word_matcher(text)
