"""Patterns: what RE2 refuses is said plainly, nothing can hang, and what a pattern needs is read rightly."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from grep_cases import make_grep, run

from workbench.errors import QueryError
from workbench.store.grep import search as grep_scan
from workbench.store.grep.pattern import compile_re2, has_capital, prepare, read_regex
from workbench.store.lexical.tokens import RE2_SEPARATOR, WORDS, is_word_character


@pytest.mark.parametrize(
    ("pattern", "reason", "remedy"),
    [
        ("a(?=b)", "invalid perl operator: (?=", "no look-around"),
        ("(?<!a)b", "invalid perl operator: (?<!", "no look-around"),
        (r"(a)\1", r"invalid escape sequence: \1", "no backreferences"),
        ("(?P<n>a)(?P=n)", "invalid perl operator: (?P", "no backreferences"),
        ("(", "missing ): (", "bracket"),
        ("[a", "missing ]: [a", "bracket"),
        ("a)", "unexpected ): a)", "bracket"),
        ("*a", "no argument for repetition operator: *", "Fix"),
        ("a++", "bad repetition operator: ++", "Fix"),
        ("a{5000}", "invalid repetition size: {5000}", "smaller repetitions"),
        ("(((a{100}){100}){100})", "repetition size", "smaller repetitions"),
        (r"(\pL{1,100}x){9}", "pattern too large", "smaller repetitions"),
        (r"(\pL{1,50}x){4}", "steps", "smaller repetitions"),
        (r"a\C", r"\C matches single bytes", "any character"),
        ("-v needle", "do not match", "grep.regex off"),
        ("\ud800", "half of a character", "again"),
    ],
)
def test_a_refused_pattern_says_why_and_what_to_do(pattern: str, reason: str, remedy: str) -> None:
    with pytest.raises(QueryError) as caught:
        prepare(pattern, regex=True, case="smart", word=False)
    assert reason in caught.value.message
    assert remedy in caught.value.remedy
    assert not caught.value.message.endswith(".")
    assert len(str(caught.value)) < 300


def test_switches_are_only_text_among_fixed_words(tmp_path: Path) -> None:
    grep = make_grep(tmp_path, ["pip -v install", "a(?=b) [x"])
    assert [p.path for p in run(grep, "-v install").passages] == ["d0000.txt"]
    assert [p.path for p in run(grep, "(?=b) [").passages] == ["d0001.txt"]


def test_nothing_hangs(tmp_path: Path) -> None:
    """Patterns that take a backtracking engine exponential time are answered, on a long line as on any other."""
    grep = make_grep(tmp_path, ["a" * 200_000 + "!", "x" * 5000])
    for pattern in ("(a+)+$", "(a|aa)+$", "(a*)*b", "(.*)(.*)(.*)(.*)=", "(x+x+)+y", "a|a.*z"):
        answer = run(grep, pattern, regex=True)
        assert answer.files == (1 if pattern == "a|a.*z" else 0), pattern
    assert run(grep, "x*", regex=True).files == 2


@pytest.mark.slow
def test_very_long_patterns(tmp_path: Path) -> None:
    """A pattern of 4,000 characters is answered, also where it overlaps itself; a longer one is refused shortly."""
    word, phrase = "w" * 20_000, "some words " * 363
    grep = make_grep(tmp_path, [word + "\n" + phrase])
    for pattern, lines in ((word[:4000], 1), (phrase, 1), ("q" * 4000, 0), ("Words some " * 363, 0)):
        assert run(grep, pattern).lines == lines
        assert run(grep, pattern, regex=True).lines == lines
    for regex in (False, True):
        with pytest.raises(QueryError, match="has 100,000 characters, more than 4,000") as caught:
            run(grep, "é" * 100_000, regex=regex)
        assert len(str(caught.value)) < 300


def test_a_search_that_takes_too_long_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that runs out is an error with the remedy, in verifying lines as in scanning, never part of an answer."""
    monkeypatch.setattr(grep_scan, "MOST_SECONDS", -1.0)
    grep = make_grep(tmp_path, ["a b\n" * 10])
    for pattern in ("a b", r"\W"):
        with pytest.raises(QueryError, match="takes longer than") as caught:
            run(grep, pattern, regex=True)
        assert caught.value.remedy


@pytest.mark.parametrize(
    ("pattern", "regex", "capital"),
    [
        ("retry", False, False), ("Retry", False, True), (r"\S+", False, True), (r"\S+\W\D\pL\p{Lu}", True, False),
        (r"[A-Z]", True, True), (r"\x41", True, True), ("(?P<Name>a)", True, False), (r"\QA\E", True, True),
        ("É", True, True), ("ß", True, False), (r"[[:upper:]]\B", True, False),
    ],
)  # fmt: skip
def test_smart_case_looks_at_letters(pattern: str, regex: bool, capital: bool) -> None:
    """Only a letter that is searched for makes a pattern sensitive; classes and names do not."""
    assert has_capital(pattern, regex) is capital


def test_deep_nesting_is_scanned(tmp_path: Path) -> None:
    deep = "(a" * 600 + ")" * 600
    assert read_regex(deep) is None
    assert run(make_grep(tmp_path, ["a" * 600, "a" * 599]), deep, regex=True).files == 1


def test_word_characters_are_the_same_everywhere() -> None:
    """The table, Python's pattern and RE2 agree on every character; letters, marks and numbers are never separators."""
    characters = [chr(c) for c in range(0x20000) if not 0xD800 <= c < 0xE000]
    words = {c for c in characters if is_word_character(c)}
    assert words == {c for c in characters if WORDS.fullmatch(c)}
    joined = "".join(c for c in characters if c != "\n")
    found = compile_re2(f"{RE2_SEPARATOR}+", False).finditer(joined.encode())
    separators = b"".join(m.group() for m in found).decode()
    assert set(separators) | {"\n"} == set(characters) - words
    assert all(c in words for c in characters if unicodedata.category(c)[0] in "LMN")
    assert all(c in words or (c.lower() == c == c.upper()) for c in characters)
