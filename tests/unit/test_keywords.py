"""Keywords as people write them, drawn from questions by the corpus's frequencies, and names from code."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from workbench.retrieve.keywords import context_keywords, extract_keywords, parse_keywords, quoted_phrases

FREQUENCIES = {"retries": 5, "work": 90, "backoff": 2, "queue": 40, "exponential": 2, "documents": 900}


def counts(words: Sequence[str]) -> list[int]:
    return [FREQUENCIES.get(word, 0) for word in words]


@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        ("backoff retry", ("backoff", "retry")),
        ('"exponential backoff" retry', ("exponential backoff", "retry")),
        ("a  a\tb", ("a", "b")),
        ('  ""  " " ', ()),
        ('say "open', ("say", "open")),
        ("“smart quotes” x", ("smart quotes", "x")),
        ("foo->bar C++ it's", ("foo->bar", "C++", "it's")),
        ("Retry retry", ("Retry", "retry")),
        ("", ()),
    ],
)
def test_keywords_as_written(text: str, keywords: tuple[str, ...]) -> None:
    assert parse_keywords(text) == keywords


def test_quoted_phrases_are_those_not_excluded() -> None:
    assert quoted_phrases('find "a b" and "c" -"not this" "a b" “d e”') == ("a b", "c", "d e")
    assert quoted_phrases("none here") == ()


@pytest.mark.parametrize(
    ("query", "keywords"),
    [
        ("how do retries work", ("retries", "work")),
        ("how does the queue work with exponential backoff", ("exponential", "backoff", "queue", "work")),
        ('why is "lost update" in ACME-INV-49302 or foo_bar', ("lost update", "ACME-INV-49302", "foo_bar")),
        ("documents about unknownword and retries", ("retries", "documents", "unknownword")),
        ("C++ vs C#, .NET and BM25?", ("C++", "C#", ".NET", "BM25", "vs")),
        (
            "std::vector numpy.sum camelCase v1.2 --strict HTTP",
            ("std::vector", "numpy.sum", "camelCase", "v1.2", "HTTP"),
        ),
        ("retries (backoff) Backoff", ("backoff", "retries")),
        ("retries -work OR backoff*", ("backoff", "retries")),
        ("what is it", ("what", "is", "it")),
        ("what's this don't", ("what's", "this", "don't")),
        ("??", ("??",)),
        ("", ()),
    ],
)
def test_keywords_from_a_question(query: str, keywords: tuple[str, ...]) -> None:
    """Phrases, then codes, then the rarest words; stop words out, unless they are all there is."""
    assert extract_keywords(query, counts) == keywords


def test_at_most_eight_keywords() -> None:
    asked: list[Sequence[str]] = []

    def frequency(words: Sequence[str]) -> list[int]:
        asked.append(words)
        return [100 - int(word[1:].translate(str.maketrans("abcdefghij", "0123456789"))) for word in words]

    words = [f"w{'abcdefghij'[n // 10]}{'abcdefghij'[n % 10]}" for n in range(30)]
    assert extract_keywords(" ".join(["the", *words]), frequency) == tuple(reversed(words[-8:]))
    assert len(asked) == 1
    assert "the" not in asked[0]
    assert extract_keywords("foo_bar", frequency) == ("foo_bar",)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('s("bd*2 hh").note("c3 e3").lpf(800)', ("s", "bd", "hh", "note", "c3", "e3", "lpf")),
        ('note("c e g c").sound("<piano gm_pad>(3,8)")', ("note", "c", "e", "g", "sound", "piano", "gm_pad")),
        ("stack(\n  s('bd [~ sd]'), // a comment\n  n(`0 .. 7`).scale(\"C:minor\"))",
         ("stack", "s", "bd", "sd", "n", "scale", "minor")),
        ("def retry_call(fn, times=3):\n    # a comment\n    return fn(times)", ("retry_call", "times")),
        ("for (const i of itemsList) { total += price[i]; }", ("itemsList", "total", "price")),
        ('fetch("http://example.org/x")', ("fetch", "http", "example", "org")),
        ("it's the policy of don't", ("policy",)),
        ("/* open comment never closed foo", ()),
        ("a b 1 2 0xff", ()),
        ("Größe größe", ("Größe", "größe")),
        ("", ()),
    ],
)  # fmt: skip
def test_names_from_code(text: str, names: tuple[str, ...]) -> None:
    """Functions, identifiers and the words of quoted patterns in order of appearance, each once."""
    assert context_keywords(text) == names
