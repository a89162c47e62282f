"""grep against a plain oracle: Python's `re`, line by line, over small alphabets where the two engines agree."""

import re
import tempfile
from pathlib import Path

import pytest
from grep_cases import as_expected, expected, make_grep, run
from hypothesis import assume, example, given
from hypothesis import strategies as st
from trials import trials

from workbench.store.grep.pattern import prepare

# é has no capital here, so that ignoring case means the same to both engines (re.ASCII folds ASCII only).
ALPHABET = "abA_1- .é\n"
QUICK = trials(25)

texts = st.lists(st.text(ALPHABET, max_size=40), min_size=1, max_size=4)
fixed = st.text(ALPHABET.replace("\n", ""), min_size=1, max_size=5)

_ATOMS = r"""
a b A 1 _ - \x20 é . \w \W \d \s \S [ab] [^a] [a-b1] [\w-] \. \x61 \b \B ^ $ [^\w] [-\s] \x{e9} \141 (?:) \Qa-\E
[[:alpha:]]
"""
_atoms = st.sampled_from(_ATOMS.split())
_repeats = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,}", "{0,2}", "+?", "*?"])


def _quantified(pair: tuple[str, str]) -> str:
    atom, repeat = pair
    return atom + repeat if atom not in ("^", "$", r"\b", r"\B", "(?:)", r"\Qa-\E") else atom


_row = st.lists(st.tuples(_atoms, _repeats).map(_quantified), min_size=1, max_size=4).map("".join)
_groups = st.tuples(
    st.sampled_from(["(", "(?:", "(?P<n>", "(?i:", "(?s:"]),
    st.lists(_row, min_size=1, max_size=3).map("|".join),
    _repeats,
).map(lambda g: f"{g[0]}{g[1]}){g[2]}")
regexes = st.one_of(
    _row,
    st.tuples(_row, _groups, _row).map("".join),
    st.lists(st.one_of(_row, _groups), min_size=2, max_size=3).map("|".join),
).filter(lambda p: p.count("(?P<n>") < 2)


def _as_python(pattern: str) -> str:
    pattern = pattern.replace(r"\Qa-\E", "a-").replace("[[:alpha:]]", "[A-Za-z]").replace(r"\x{e9}", "é")
    return pattern.replace("(?P<n>", "(")


def _oracle(pattern: str, case: str, literal: bool, word: bool) -> re.Pattern[str]:
    flags = re.NOFLAG
    if case == "ignore" or (case == "smart" and not any(c.isupper() for c in re.sub(r"\\.", "", pattern) if c != "P")):
        flags |= re.IGNORECASE
    # Python's \B did not match the empty text before 3.14; what it stands for always has.
    text = re.escape(pattern) if literal else _as_python(pattern).replace(r"\B", r"(?!\b)")
    return re.compile(rf"(?:^|[^\wé])(?:{text})(?:$|[^\wé])" if word else text, flags)


@pytest.mark.slow
@QUICK
@given(texts, st.lists(fixed, min_size=1, max_size=3, unique=True), st.sampled_from(["smart", "sensitive", "ignore"]),
       st.booleans(), st.integers(0, 3))  # fmt: skip
def test_fixed_text(documents, patterns, case, word, context):
    """Fixed text finds what looking through each line finds, for any number of patterns and lines of context."""
    wanted = expected(documents, [_oracle(p, case, True, word) for p in patterns], context)
    with tempfile.TemporaryDirectory() as folder:
        answer = run(make_grep(Path(folder), documents), *patterns, case=case, word=word, context=context)
    assert as_expected(answer) == wanted
    assert answer.lines == sum(len(e.matched_lines) for e in wanted)
    assert answer.files == len({e.path for e in wanted})
    assert answer.complete


@pytest.mark.slow
@QUICK
@example(["\n"], r"\B", "smart", False, 0)
@example(["1"], r"a\b\B\b", "smart", False, 0)
@example(["été -a", "a été1"], r"\bété\b.*a", "smart", False, 0)
@example(["aé é", "éa é"], r"\Bé", "smart", False, 0)
@given(texts, regexes, st.sampled_from(["smart", "sensitive", "ignore"]), st.booleans(), st.integers(0, 2))
def test_regular_expressions(documents, pattern, case, word, context):
    """Regular expressions find the lines that Python's do, anchors and borders of words and all, as far as RE2 can tell."""
    assume(not prepare(pattern, regex=True, case=case, word=word).note)
    case = case if "(?P<n>" not in pattern or case != "smart" else "sensitive"
    wanted = expected(documents, [_oracle(pattern, case, False, word)], context)
    with tempfile.TemporaryDirectory() as folder:
        answer = run(make_grep(Path(folder), documents), pattern, regex=True, case=case, word=word, context=context)
    assert as_expected(answer) == wanted


@pytest.mark.slow
@QUICK
@given(st.text(ALPHABET, max_size=60), fixed, st.booleans())
def test_marked_spans(text, pattern, ignore):
    """The marked spans are the leftmost matches, one after the other, as characters of the passage's text."""
    oracle = re.compile(re.escape(pattern), re.ASCII | (re.IGNORECASE if ignore else 0))
    with tempfile.TemporaryDirectory() as folder:
        grep = make_grep(Path(folder), [text])
        for regex in (False, True):
            asked = re.escape(pattern) if regex else pattern
            answer = run(grep, asked, regex=regex, case="ignore" if ignore else "sensitive", context=99)
            for passage in answer.passages:
                spans = [(m.start, m.end) for m in passage.matches]
                assert spans == [m.span() for m in oracle.finditer(passage.text)]


@pytest.mark.slow
@QUICK
@given(texts, st.one_of(fixed.map(re.escape), regexes), st.data())
def test_hidden_documents_change_nothing(documents, pattern, data):
    chosen = data.draw(st.sets(st.integers(0, len(documents) - 1)).map(sorted))
    names = [f"d{n}" for n in range(len(documents))]
    with tempfile.TemporaryDirectory() as folder:
        whole = make_grep(Path(folder) / "whole", documents, names=names, most_lines=3)
        part = make_grep(
            Path(folder) / "part", [documents[n] for n in chosen], names=[names[n] for n in chosen], most_lines=3
        )
        seen = run(whole, pattern, regex=True, documents=chosen)
        alone = run(part, pattern, regex=True)
    assert seen.passages == alone.passages
    assert (seen.files, seen.lines, seen.complete) == (alone.files, alone.lines, alone.complete)
