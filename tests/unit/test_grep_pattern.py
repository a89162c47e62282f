"""Patterns: what RE2 refuses is said plainly, nothing can hang, and what a pattern needs is read rightly."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
import re2
from grep_cases import make_grep, run

from workbench.errors import QueryError
from workbench.store.grep import scan as grep_scan
from workbench.store.grep.pattern import compile_re2, prepare
from workbench.store.grep.re2_syntax import All, Any, Fragment, has_capital, read_fixed, read_regex
from workbench.store.lexical.characters import (
    RE2_MARKS,
    RE2_SEPARATOR,
    RE2_SEPARATORS,
    RE2_WORDS,
    WORDS,
    is_word_character,
)


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
        ("*a", "no argument for repetition operator: *", "Mend"),
        ("a++", "bad repetition operator: ++", "Mend"),
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
    """One sentence with RE2's own reason, and the remedy that fits it."""
    with pytest.raises(QueryError) as caught:
        prepare(pattern, regex=True, case="smart", word=False)
    assert reason in caught.value.message
    assert remedy in caught.value.remedy
    assert not caught.value.message.endswith(".")
    assert len(str(caught.value)) < 300


def test_switches_are_only_text_among_fixed_words(tmp_path: Path) -> None:
    """`-v` and brackets are looked for as they are when they are fixed words."""
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


def _fragment(text: str, literal: str = "", start: bool = False, end: bool = False, length: int = 1) -> Fragment:
    return Fragment(text, literal, start, end, length)


@pytest.mark.parametrize(
    ("pattern", "needs", "in_word"),
    [
        (r"retry_\w+", _fragment(f"retry_[{RE2_WORDS}]+", length=7), True),
        ("abc", _fragment("abc", "abc", length=3), True),
        (r"\bfoo\b", _fragment("foo", "foo", start=True, end=True, length=3), True),
        (r"\bfoo\B", _fragment(f"foo[{RE2_WORDS}]", start=True, length=4), True),
        ("é", _fragment("(?:é|e\u0301)"), True),
        (r"a\bb", All((_fragment("a", "a", end=True), _fragment("b", "b", start=True))), False),
        (r"foo\b.+", _fragment("foo", "foo", length=3), False),
        ("^foo", _fragment("^foo", length=3), False),
        ("a-b", All((_fragment("a", "a", end=True), _fragment("b", "b", start=True))), False),
        (r"max-\d{2,}x", All((_fragment("max", "max", end=True, length=3), _fragment(r"\d{2,}x", start=True, length=3))), False),
        ("a.*b", All((_fragment("a", "a"), _fragment("b", "b"))), False),
        ("a b?c", All((_fragment("a", "a", end=True), _fragment("b?c", start=True))), False),
        ("cat|dog", Any((_fragment("cat", "cat", length=3), _fragment("dog", "dog", length=3))), True),
        ("cat|.", None, False),
        ("(cat|dog)+", _fragment("(?:cat|dog)+", length=3), True),
        ("(?:a b|c)d", All((Any((All((_fragment("a", "a", end=True), _fragment("b", "b", start=True))), _fragment("c", "c"))),
                            _fragment("d", "d"))), False),
        ("(a b)?", None, False), (r"\d*", None, False), ("->", None, False), ("", None, False),
        ("(?i)a", _fragment("(?i:a)"), True),
        (r"\pL\p{Nd}", _fragment(f"(?:\\pL{RE2_MARKS}*)(?:\\p{{Nd}}{RE2_MARKS}*)", length=2), True),
        (r"\p{Greek}\PL[^a]\W", None, False),
    ],
)  # fmt: skip
def test_what_a_pattern_needs(pattern: str, needs: object, in_word: bool) -> None:
    """Parts that match word characters only become fragments, with what is known of their place in the word."""
    reading = read_regex(pattern, False, False)
    assert reading is not None
    assert reading.needs == needs
    assert reading.in_word is in_word


@pytest.mark.parametrize(
    "part",
    [".", r"\W", r"\D", r"\S", "[^a]", r"\PN", "[[:^ascii:]]", r"[\x{80}-\x{ff}]", r"\pL", "[é]", "(?:é|-)", r"\W?", "-*é?",
     r"[\W-]", r"[^\w]", r"\s*", "-{0}", "(?:-|)", r"\b|.", "(?:-b)?", r"\PL|é", "[ -é]", r"[\D-]"],
)  # fmt: skip
def test_what_stands_between_words_is_not_guessed(tmp_path: Path, part: str) -> None:
    """What may match a letter, a separator or nothing tells nothing of where the words around it end."""
    lines = ["xy", "xéy", "x-y", "x y", "xay", "x1y", "x--y", "x-by", "x"]
    pattern = f"x(?:{part})y"
    meant = part.replace(r"[\W", f"[{RE2_SEPARATORS}").replace(r"[^\w", f"[^{RE2_WORDS}").replace(r"\W", RE2_SEPARATOR)
    wanted = tuple(n for n, line in enumerate(lines, 1) if compile_re2(f"x(?:{meant})y", False).search(line))
    assert wanted
    answer = run(make_grep(tmp_path, ["\n".join(lines)]), pattern, regex=True, context=99)
    assert answer.passages[0].matched_lines == wanted


def test_fixed_text_needs_its_words() -> None:
    """Interior words are whole, the first may be a word's end and the last its beginning; whole words are whole."""
    first, middle, last = (
        _fragment("ab", "ab", False, True, 2),
        _fragment("cd", "cd", True, True, 2),
        _fragment("e", "e", True),
    )
    assert read_fixed("ab cd e", False).needs == All((first, middle, last))
    assert read_fixed("ab", True).needs == _fragment("ab", "ab", True, True, 2)
    assert read_fixed("ab", True).in_word
    assert not read_fixed("ab cd", True).in_word


def test_many_alternatives_are_looked_for_at_once(tmp_path: Path) -> None:
    """A pattern of very many alternatives needs one fragment, and finds what each would."""
    words = [f"w{n:03d}x" for n in range(500)]
    reading = read_regex("|".join(words), False, False)
    assert reading is not None
    assert isinstance(reading.needs, Fragment)
    grep = make_grep(tmp_path, ["\n".join(words), "other"])
    assert run(grep, "|".join(words[:250]), regex=True).lines == 250


def test_deep_nesting_is_scanned(tmp_path: Path) -> None:
    """Brackets nested deeper than is read are still answered."""
    deep = "(a" * 600 + ")" * 600
    assert read_regex(deep, False, False) is None
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


def test_only_k_and_s_have_cases_beyond_ascii() -> None:
    """RE2 folds no character beyond ASCII to an ASCII letter but the Kelvin sign and the long s."""
    options = re2.Options()
    options.case_sensitive = False
    beyond = "".join(chr(c) for c in range(0x80, 0x110000) if not 0xD800 <= c < 0xE000)
    assert re2.findall("[a-z]", beyond, options) == ["\u017f", "\u212a"]
