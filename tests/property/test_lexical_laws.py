"""Laws of the word index over generated corpora: the textbook, the SQL, and visibility."""

import tempfile
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from grep_cases import make_grep, run
from hypothesis import given
from hypothesis import strategies as st
from lexical_corpus import Corpus, bm25, build
from trials import trials

from workbench.errors import QueryError
from workbench.store.grep.search import MappedGrep
from workbench.store.lexical import tokens
from workbench.store.lexical.query import parse
from workbench.store.types import Scope

WORDS = "run running the of git hub github GitHub get_user user a-b 数据 数 x1.2 C++".split()
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
@trials(15)
@given(TEXTS, st.lists(QUERY, min_size=1, max_size=8), SETTINGS)
def test_the_index_and_the_textbook_agree(texts, queries, values):
    """Whatever the corpus and the query: scores to 1e-9, the same order; `score` gives the bits of `search`."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = build(Path(folder), texts, most=16)
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
@trials(15)
@given(TEXTS, st.lists(QUERY, min_size=1, max_size=8), SETTINGS, st.data())
def test_a_hidden_record_changes_no_byte(texts, queries, values, data):
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


FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_WORDS = (
    "zurückgebaut Ångström naïveté Việt Łódź ﬁnancial x² Ａｃｍｅ été ÅNGSTRÖM Ωμέγα йод Ёлка हिन्दी क़लम"
    " 게임을 학점인정 ガード データ テーブル 数据库 备份 ภาษาไทย كِتَابٌ مدرسة إلى שָׁלוֹם ٢٠٢٤ ǆ ſpät İstanbul"
)
SPELLED = _WORDS.split()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    texts = [unicodedata.normalize(form, f"vor {word}, nach") for word in SPELLED for form in FORMS]
    return build(tmp_path_factory.mktemp("forms"), texts)


@trials(25)
@given(st.integers(0, len(SPELLED) - 1), st.sampled_from(FORMS), st.sampled_from(["any", "all"]))
def test_a_word_in_any_form_finds_every_form(written, which, form, operator):
    query = unicodedata.normalize(form, SPELLED[which])
    found = written.lexical.search(query, Scope(), 1000, k1=0.9, b=0.4, operator=operator).numbers.tolist()
    assert set(range(which * len(FORMS), (which + 1) * len(FORMS))) <= set(found)


CANONICAL = ("NFC", "NFD")


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> MappedGrep:
    texts = [unicodedata.normalize(form, f"vor {word}, nach") for word in SPELLED for form in CANONICAL]
    return make_grep(tmp_path_factory.mktemp("lines"), texts)


@trials(30)
@given(
    st.integers(0, len(SPELLED) - 1),
    st.sampled_from(CANONICAL),
    st.sampled_from(["smart", "sensitive", "ignore"]),
    st.sampled_from(["fixed", "word", r"\b{}\b", r"vor\b.*{}", "({}|nowhere)"]),
)
def test_grep_finds_a_word_in_either_form(lines, which, form, case, how):
    word = unicodedata.normalize(form, SPELLED[which])
    pattern = how.format(word) if "{}" in how else word
    answer = run(lines, pattern, regex="{}" in how, case=case, word=how == "word")
    found = {p.path: [p.text[m.start : m.end] for m in p.matches] for p in answer.passages}
    for number in range(which * len(CANONICAL), (which + 1) * len(CANONICAL)):
        (shown,) = found[f"d{number:04d}.txt"]
        assert unicodedata.normalize("NFC", shown).removeprefix("vor ") == unicodedata.normalize("NFC", SPELLED[which])


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
def test_a_regular_expression_reads_letters_of_every_script(tmp_path, pattern, text):
    grep = make_grep(tmp_path, [unicodedata.normalize(form, text) for form in CANONICAL])
    assert run(grep, pattern, regex=True).files == 2
    assert not run(grep, r"\bveté|pér\b|\bт|加\B", regex=True).files


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
def test_the_parts_of_an_identifier_find_it(made):
    first, words, last = made
    for text in (first + "".join(words) + last, "_".join((*filter(None, (first,)), *words)) + last):
        for query in (*words, text, text.lower()):
            assert _holds(text, query.lower()), (text, query)


@given(
    st.lists(st.integers(0, 3000), min_size=2, max_size=4),
    st.sampled_from(["v", "release-", "python", "", "lib_", "V"]),
)
def test_the_number_of_a_version_finds_it(numbers, before):
    version = ".".join(map(str, numbers))
    assert _holds(before + version, version)
    assert _holds(before + version, before + version)


@given(st.integers(0, 10**6), st.sampled_from(["GB", "ms", "px", "Mbit"]))
def test_a_number_and_its_unit_are_found_joined_and_apart(number, unit):
    apart = {tokens.stem(w) for w in (str(number), unit.lower())}
    joined = tokens.analyse(f"{number}{unit}")
    assert {tokens.stem(p.word) for p in joined.parts} == apart
    assert _holds(f"{number} {unit}", f"{number}{unit}")
