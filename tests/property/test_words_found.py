"""A word is found whatever form it is written in, and an identifier by its parts: laws over words made at random."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from grep_cases import make_grep, run
from hypothesis import given, settings
from hypothesis import strategies as st
from lexical_corpus import Corpus, build

from workbench.store.grep.search import MappedGrep
from workbench.store.lexical import tokens
from workbench.store.lexical.query import parse
from workbench.store.types import Scope

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_WORDS = (
    "zurückgebaut Ångström naïveté Việt Łódź ﬁnancial x² Ａｃｍｅ été ÅNGSTRÖM Ωμέγα йод Ёлка हिन्दी क़लम"
    " 게임을 학점인정 ガード データ テーブル 数据库 备份 ภาษาไทย كِتَابٌ مدرسة إلى שָׁלוֹם ٢٠٢٤ ǆ ſpät İstanbul"
)
WORDS = _WORDS.split()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    texts = [unicodedata.normalize(form, f"vor {word}, nach") for word in WORDS for form in FORMS]
    return build(tmp_path_factory.mktemp("forms"), texts)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, len(WORDS) - 1), st.sampled_from(FORMS), st.sampled_from(["any", "all"]))
def test_a_word_in_any_form_finds_every_form(written: Corpus, which: int, form: str, operator: str) -> None:
    """Keyword search compares words under NFKC, case folding and the folding of accents, on both sides."""
    query = unicodedata.normalize(form, WORDS[which])
    found = written.lexical.search(query, Scope(), 1000, k1=0.9, b=0.4, operator=operator).numbers.tolist()
    assert set(range(which * len(FORMS), (which + 1) * len(FORMS))) <= set(found)


CANONICAL = ("NFC", "NFD")


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> MappedGrep:
    texts = [unicodedata.normalize(form, f"vor {word}, nach") for word in WORDS for form in CANONICAL]
    return make_grep(tmp_path_factory.mktemp("lines"), texts)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, len(WORDS) - 1),
    st.sampled_from(CANONICAL),
    st.sampled_from(["smart", "sensitive", "ignore"]),
    st.sampled_from(["fixed", "word", r"\b{}\b", r"vor\b.*{}", "({}|nowhere)"]),
)
def test_grep_finds_a_word_in_either_form(lines: MappedGrep, which: int, form: str, case: str, how: str) -> None:
    """As fixed text and in regular expressions; what is marked is the word as it stands in the document."""
    word = unicodedata.normalize(form, WORDS[which])
    pattern = how.format(word) if "{}" in how else word
    answer = run(lines, pattern, regex="{}" in how, case=case, word=how == "word")
    found = {p.path: [p.text[m.start : m.end] for m in p.matches] for p in answer.passages}
    for number in range(which * len(CANONICAL), (which + 1) * len(CANONICAL)):
        (shown,) = found[f"d{number:04d}.txt"]
        assert unicodedata.normalize("NFC", shown).removeprefix("vor ") == unicodedata.normalize("NFC", WORDS[which])


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\w+té\b", "naïveté"),
        (r"\bété\b", "un été chaud"),
        (r"^na.veté$", "naïveté"),
        ("na[ï-ö]v", "naïveté"),
        (r"[[:alpha:]é]+\W\w", "été chaud"),
        (r"\bвс\w+", "на всём"),
        (r"\B加", "参加"),
        ("(?i)ÉTÉ", "été"),
        (r"\x{e9}t", "été"),
        (r"\Qété\E", "été"),
    ],
)
def test_a_regular_expression_reads_letters_of_every_script(tmp_path: Path, pattern: str, text: str) -> None:
    grep = make_grep(tmp_path, [unicodedata.normalize(form, text) for form in CANONICAL])
    assert run(grep, pattern, regex=True).files == 2
    assert not run(grep, r"\bveté|pér\b|\bт|加\B", regex=True).files


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("كِتَابٌ", "كتاب"),
        ("أحمد", "احمد"),
        ("مدرسة", "مدرسه"),
        ("على", "علي"),
        ("کتاب", "كتاب"),
        ("شَلوم", "شلوم"),
        ("שָׁלוֹם", "שלום"),
    ],
)
def test_vowel_marks_and_variants_of_letters_make_no_other_word(marked: str, plain: str) -> None:
    assert tokens.fold(marked) == tokens.fold(plain)


CAMEL = st.tuples(
    st.sampled_from(["", "", "I", "T", "x", "k", "get", "OAuth", "my"]),
    st.lists(st.from_regex(r"[A-Z][a-z]{2,7}", fullmatch=True), min_size=1, max_size=4),
    st.sampled_from(["", "", "2", "64"]),
)


def _holds(text: str, query: str) -> bool:
    """Whether some part or whole of the text's pieces is the term of the query, a word."""
    words = {
        tokens.stem(w.word)
        for p in tokens.PIECES.findall(text)
        for a in [tokens.analyse(p)]
        for w in (*a.parts, *a.wholes)
    }
    matcher = parse(query).alternatives[0][0].matcher
    return matcher.term in words if matcher.term is not None else any(set(path) <= words for path in matcher.steps[0])


@given(CAMEL)
def test_the_parts_of_an_identifier_find_it(made: tuple[str, list[str], str]) -> None:
    """Every word of camelCase, PascalCase, snake_case, with a lone letter before it or a number after it, and the whole."""
    first, words, last = made
    for text in (first + "".join(words) + last, "_".join((*filter(None, (first,)), *words)) + last):
        for query in (*words, text, text.lower()):
            assert _holds(text, query.lower()), (text, query)


@given(
    st.lists(st.integers(0, 3000), min_size=2, max_size=4),
    st.sampled_from(["v", "release-", "python", "", "lib_", "V"]),
)
def test_the_number_of_a_version_finds_it(numbers: list[int], before: str) -> None:
    version = ".".join(map(str, numbers))
    assert _holds(before + version, version)
    assert _holds(before + version, before + version)


@given(st.integers(0, 10**6), st.sampled_from(["GB", "ms", "px", "Mbit"]))
def test_a_number_and_its_unit_are_found_joined_and_apart(number: int, unit: str) -> None:
    apart = {tokens.stem(w) for w in (str(number), unit.lower())}
    joined = tokens.analyse(f"{number}{unit}")
    assert {tokens.stem(p.word) for p in joined.parts} == apart
    assert _holds(f"{number} {unit}", f"{number}{unit}")
