"""grep over a generation: passages, masks, long lines, records, Unicode, threads, and the bytes on disk."""

import re
import unicodedata

import numpy as np
import pytest
from grep_cases import RecordEntry, make_columns, make_grep, run

from workbench.errors import QueryError
from workbench.store.grep import search as grep_scan
from workbench.store.grep.pattern import compile_re2, has_capital, prepare, read_regex
from workbench.store.grep.search import LINE_CHARACTERS, PASSAGE_CHARACTERS, MappedGrep
from workbench.store.lexical.tokens import RE2_SEPARATOR, is_word_character
from workbench.store.types import Scope


def test_score_and_order(tmp_path):
    """Score: distinct patterns + n/(n+1); order: score down, path up, line up; several patterns mean any of them."""
    grep = make_grep(tmp_path, ["red", "red\nred", "blue", "red\nblue", "green"])
    answer = run(grep, "red", "blue", "red", context=1)
    assert [(p.path, p.score) for p in answer.passages] == [
        ("d0003.txt", 2 + 2 / 3),
        ("d0001.txt", 1 + 2 / 3),
        ("d0000.txt", 1.5),
        ("d0002.txt", 1.5),
    ]
    assert (answer.files, answer.lines, answer.complete) == (4, 6, True)
    assert len(run(grep, "red", "blue", depth=2).passages) == 2
    assert run(grep, "red", "blue", depth=2).lines == 6
    grep = make_grep(tmp_path, ["x y\nx", "x y\nx y\nx", "x y"], most_lines=4)
    for pattern, regex in (("x", False), ("x.*", True), (r"x|\S", True)):
        answer = run(grep, pattern, regex=regex, context=0)
        assert [(p.path, p.start_line) for p in answer.passages] == [
            ("d0000.txt", 1), ("d0000.txt", 2), ("d0001.txt", 1), ("d0001.txt", 2),
        ]  # fmt: skip
        assert (answer.lines, answer.files, answer.complete) == (4, 2, False)
    assert run(grep, "x y", context=0).complete


@pytest.mark.parametrize("pattern", ["mist", "Mist", "kiss", "ask", "wind", "i", "ss", "d m", "été", "\u017fo"])
def test_text_that_many_lines_hold(tmp_path, monkeypatch, pattern):
    """Many blocks, matches at their borders, and letters of which one case is beyond ASCII: what Python finds line by line."""
    monkeypatch.setattr(grep_scan, "_BLOCK_BYTES", 1 << 14)
    words = (
        "mist Mist mi\u017ft MIST kiss \u212ai\u017fs k ask asK a\u017fk a\u212a été so \u017fo wind is sist m".split()
    )
    chosen = np.random.default_rng(3).choice([*words, "\n", "\n"], (3, 9000))
    texts = ["".join(w if w == "\n" else f"{w} " for w in own).replace(" \n", "\n").strip("\n") for own in chosen]
    answer = run(make_grep(tmp_path, texts), pattern, context=0, depth=50_000)
    found = [(p.path, line) for p in answer.passages for line in p.matched_lines]
    oracle = re.compile(re.escape(pattern), re.NOFLAG if any(map(str.isupper, pattern)) else re.IGNORECASE)
    lines = [(f"d{n:04d}.txt", at, line) for n, text in enumerate(texts) for at, line in enumerate(text.split("\n"), 1)]
    assert sorted(found) == [(path, at) for path, at, line in lines if oracle.search(line)]


def test_nothing_crosses_a_newline_and_empty_lines_count(tmp_path):
    grep = make_grep(tmp_path, ["a\nb", "a", "b"])
    for pattern in ("a\nb", r"a\sb", "a[^x]b", r"a\x0ab", "(?s)a.b", r"a\Wb", r"a\n?b", "a[[:space:]]b"):
        assert not run(grep, pattern, regex=True).passages, pattern
    assert not run(grep, "a\nb").passages
    assert len(run(grep, r"\Aa\z", regex=True).passages) == 2
    assert len(run(grep, "(?-m)^b$", regex=True).passages) == 2
    answer = run(make_grep(tmp_path, ["a\n\nb\n", "", "\n", "c"]), "^$", regex=True, context=0)
    assert [(p.path, p.start_line, p.text, p.matches) for p in answer.passages] == [
        ("d0000.txt", 2, "", ()), ("d0002.txt", 1, "", ()),
    ]  # fmt: skip
    (passage,) = run(make_grep(tmp_path, ["cat cat concat cat"]), "cat", word=True).passages
    assert [(m.start, m.end) for m in passage.matches] == [(0, 3), (4, 7), (15, 18)]


@pytest.mark.parametrize(
    ("text", "pattern", "case", "hit"),
    [
        ("Straße", "straße", "smart", True),
        ("STRAẞE", "straße", "smart", True),
        ("İstanbul", "istanbul", "ignore", False),
        ("ΟΔΟΣ", "οδος", "smart", True),
        ("οδός", "ΟΔΌΣ", "smart", False),
        ("273 \u212aelvin", "kelvin", "smart", True),
        ("loſt", "lost", "sensitive", False),
        ("über", "ÜBER", "ignore", True),
        ("e\u0301tude", "e\u0301t", "smart", True),
        ("CAFE\u0301", "café", "smart", True),
        ("1 \u212bngstr\u00f6m", "\u00c5ngstro\u0308m", "smart", True),
        ("全文検索エンジン", "検索", "smart", True),
        ("ship it 👩‍💻 now", "👩‍💻", "smart", True),
        ("นักเรียน", "เรียน", "smart", True),
        ("Retry", "retry", "smart", True),
        ("w" * 300 + "needle" + "w" * 300, "wneedlew", "smart", True),
    ],
)
def test_case_and_scripts(tmp_path, text, pattern, case, hit):
    answer = run(make_grep(tmp_path, ["before\n" + text + "\nafter"]), pattern, case=case)
    assert bool(answer.passages) is hit
    for passage in answer.passages:
        (span,) = passage.matches
        shown, wanted = (unicodedata.normalize("NFC", t) for t in (passage.text[span.start : span.end], pattern))
        assert len(shown) == len(wanted)
        assert passage.matched_lines == (2,)


@pytest.mark.parametrize("letter", ["x", "é", "検"])
@pytest.mark.parametrize("at", [0, 150, 999, 1000, 1001, 5000, 19_994])
def test_long_lines_are_cut_around_the_match(tmp_path, letter, at):
    line = letter * at + "NEEDLE" + letter * (20_000 - at - 6)
    text = f"{letter * 3000}\n{line}\nend"
    (passage,) = run(make_grep(tmp_path, [text], records=[RecordEntry("r", 0, 0, len(text))]), "NEEDLE").passages
    above, shown, below = passage.text.split("\n")
    assert len(above) == LINE_CHARACTERS
    assert above.endswith("…")
    assert len(shown) <= LINE_CHARACTERS
    assert shown.startswith("…") == (at > 200)
    assert below == "end"
    assert [passage.text[m.start : m.end] for m in passage.matches] == ["NEEDLE"]


@pytest.mark.parametrize("letter", ["y", "é"])
def test_long_passages_end_after_the_limit(tmp_path, letter):
    text = "\n".join([letter * 50] * 400 + [f"{letter * 50} needle"] * 2000)
    (passage,) = run(make_grep(tmp_path, [text]), "needle", context=300).passages
    assert (passage.start_line, passage.end_line, len(passage.matched_lines)) == (101, 2400, 2000)
    assert passage.text.endswith("\n…")
    assert all(passage.text[m.start : m.end] == "needle" for m in passage.matches)
    assert len(passage.matches) >= 1
    (short,) = run(make_grep(tmp_path / "b", [text]), "needle", context=1).passages
    assert PASSAGE_CHARACTERS < len(short.text) < PASSAGE_CHARACTERS + 200


def test_the_record_and_the_page_of_a_passage(tmp_path):
    text = "aaaa bbbb cccc dddd\neeee\nffff"
    records = [
        RecordEntry("whole", 0, 0, len(text), whole=True),
        RecordEntry("first", 0, 0, 10),
        RecordEntry("second", 0, 10, 19),
        RecordEntry("other", 0, 20, 22),
    ]
    grep = make_grep(tmp_path, [text], records=records)
    wanted = {"aaaa": 1, "bbbb": 1, "cccc": 2, "b cccc": 1, "eeee": 3, "ee": 3, r"e\b": 3, "ffff": 0}
    for pattern, number in wanted.items():
        answer = run(grep, pattern, regex=True, context=0)
        assert answer.numbers.tolist() == [number], pattern
        assert answer.passages[0].chunk_id == records[number].chunk_id
    hidden = Scope(allowed=np.array([False, True, False, False]))
    answer = grep.search(["cccc", "ffff"], hidden, 10, regex=False, case="smart", word=False, context=0)
    assert answer.numbers.tolist() == [1, -1]
    assert [p.chunk_id for p in answer.passages] == ["first", ""]
    texts = ["one\ntwo\nthree", "one"]
    make_grep(tmp_path / "two", texts)
    columns = make_columns(tmp_path / "paged", ["a.pdf", "b.txt"], [], [(0, 4, 8), ()])
    grep = MappedGrep(tmp_path / "two", columns)
    assert [p.citation for p in run(grep, "three", context=0).passages] == ["a.pdf#page=3"]
    assert [p.citation for p in run(grep, "one", context=0).passages] == ["a.pdf#page=1", "b.txt:1-1"]


def test_nothing_hangs_and_asking_for_nothing_is_refused(tmp_path):
    for name, texts in (("none", []), ("empty", ["", ""])):
        grep = make_grep(tmp_path / name, texts)
        for pattern, regex in (("word", False), ("->", False), (".*", True), (r"\w+", True)):
            answer = run(grep, pattern, regex=regex)
            assert (answer.passages, answer.files, answer.lines, answer.complete) == ((), 0, 0, True)
    grep = make_grep(tmp_path, ["a"])
    for patterns in ((), ("a", ""), tuple(map(str, range(101)))):
        with pytest.raises(QueryError) as caught:
            run(grep, *patterns)
        assert caught.value.remedy
    grep = make_grep(tmp_path, ["pip -v install", "a(?=b) [x"])
    assert [p.path for p in run(grep, "-v install").passages] == ["d0000.txt"]
    assert [p.path for p in run(grep, "(?=b) [").passages] == ["d0001.txt"]
    grep = make_grep(tmp_path, ["a" * 200_000 + "!", "x" * 5000])
    for pattern in ("(a+)+$", "(a|aa)+$", "(a*)*b", "(.*)(.*)(.*)(.*)=", "(x+x+)+y", "a|a.*z"):
        answer = run(grep, pattern, regex=True)
        assert answer.files == (1 if pattern == "a|a.*z" else 0), pattern
    assert run(grep, "x*", regex=True).files == 2
    deep = "(a" * 600 + ")" * 600
    assert read_regex(deep) is None
    assert run(make_grep(tmp_path, ["a" * 600, "a" * 599]), deep, regex=True).files == 1


@pytest.mark.parametrize(
    ("pattern", "reason", "remedy"),
    [
        ("a(?=b)", "invalid perl operator: (?=", "no look-around"),
        (r"(a)\1", r"invalid escape sequence: \1", "no backreferences"),
        ("(", "missing ): (", "bracket"),
        ("[a", "missing ]: [a", "bracket"),
        ("*a", "no argument for repetition operator: *", "Fix"),
        ("a{5000}", "invalid repetition size: {5000}", "smaller repetitions"),
        ("(((a{100}){100}){100})", "repetition size", "smaller repetitions"),
        (r"(\pL{1,100}x){9}", "pattern too large", "smaller repetitions"),
        (r"a\C", r"\C matches single bytes", "any character"),
        ("-v needle", "do not match", "grep.regex off"),
        ("\ud800", "half of a character", "again"),
    ],
)
def test_a_refused_pattern_says_why_and_what_to_do(pattern, reason, remedy):
    with pytest.raises(QueryError) as caught:
        prepare(pattern, regex=True, case="smart", word=False)
    assert reason in caught.value.message
    assert remedy in caught.value.remedy
    assert not caught.value.message.endswith(".")
    assert len(str(caught.value)) < 300


@pytest.mark.slow
def test_very_long_patterns_and_searches_say_so(tmp_path, monkeypatch):
    word, phrase = "w" * 20_000, "some words " * 363
    grep = make_grep(tmp_path, [word + "\n" + phrase])
    for pattern, lines in ((word[:4000], 1), (phrase, 1), ("q" * 4000, 0), ("Words some " * 363, 0)):
        assert run(grep, pattern).lines == lines
        assert run(grep, pattern, regex=True).lines == lines
    for regex in (False, True):
        with pytest.raises(QueryError, match="has 100,000 characters, more than 4,000") as caught:
            run(grep, "é" * 100_000, regex=regex)
        assert len(str(caught.value)) < 300
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
        (r"\Q\Users\E", True, True), (r"\Q\x{FFFFFFFF}\E", True, True), (r"\Qa\E\S", True, False),
        ("É", True, True), ("ß", True, False), (r"[[:upper:]]\B", True, False),
    ],
)  # fmt: skip
def test_smart_case_looks_at_letters(pattern, regex, capital):
    assert has_capital(pattern, regex) is capital


def test_word_characters_are_the_same_everywhere():
    """The table and RE2 agree on every character; letters, marks and numbers are never separators."""
    characters = [chr(c) for c in range(0x20000) if not 0xD800 <= c < 0xE000]
    words = {c for c in characters if is_word_character(c)}
    joined = "".join(c for c in characters if c != "\n")
    found = compile_re2(f"{RE2_SEPARATOR}+", False).finditer(joined.encode())
    separators = b"".join(m.group() for m in found).decode()
    assert set(separators) | {"\n"} == set(characters) - words
    assert all(c in words for c in characters if unicodedata.category(c)[0] in "LMN")
    assert all(c in words or (c.lower() == c == c.upper()) for c in characters)
