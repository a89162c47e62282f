"""Text from documents is shown as text: nothing in it acts on the page."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import markup as t
from workbench.records import Span

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</div></section><h1>",
    "&lt;b&gt; &amp;",
    "**bold** [link](javascript:alert(1)) $x^2$ :red[x] `code`",
    "\x1b[31mred\x1b[0m \x00\x07\x7f",
    "abc\u202egnp.exe\u202c \u2066x\u2069 \u200f",
    "zero\u200bwidth\ufeff soft\u00adhyphen",
    "lone \ud800 surrogate",
    "\U000e0041\U000e0042 tags",
]


def tags(markup: str) -> set[str]:
    """Names of the elements of a piece of HTML."""
    return set(re.findall(r"</?([a-z0-9]+)", markup))


@pytest.mark.parametrize("text", HOSTILE)
def test_text_makes_no_element_but_ours(text: str) -> None:
    """Only the spans that name hidden characters are markup; every other sign is escaped."""
    shown = t.visible(text)
    assert tags(shown) <= {"span"}
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown)


@pytest.mark.parametrize("text", HOSTILE)
def test_an_attribute_holds_neither_quotes_nor_brackets(text: str) -> None:
    """What `attribute` returns cannot end the attribute that it stands in."""
    assert not set(t.attribute(text)) & set("\"'<>")


@given(st.text(), st.text())
def test_text_may_be_cut_anywhere(one: str, other: str) -> None:
    """Escaping works character by character, so marks can be put between pieces."""
    assert t.visible(one) + t.visible(other) == t.visible(one + other)


@given(st.text(alphabet=st.characters(blacklist_categories=("Cc", "Cf", "Cs", "Zl", "Zp"))))
def test_ordinary_text_reads_back_as_itself(text: str) -> None:
    """Nothing is lost: unescaping the HTML of a text without hidden characters gives the text."""
    assert html.unescape(t.visible(text)) == text


def test_hidden_characters_are_named() -> None:
    """A control character is shown by its picture, a direction mark by its number."""
    assert "␛" in t.visible("\x1b")
    assert "U+202E" in t.visible("\u202e")
    assert t.visible("a\tb\nc") == "a\tb\nc"


def test_marks_stand_around_the_matches_and_nowhere_else() -> None:
    """Spans become <mark>; text inside them is escaped like the rest; spans outside the text are passed over."""
    assert t.marked("a<b>c", [Span(1, 4)]) == "a<mark>&lt;b&gt;</mark>c"
    assert t.marked("abc", [Span(2, 9), Span(5, 7)]) == "ab<mark>c</mark>"
    assert t.marked("abcd", [Span(1, 3), Span(2, 4)]) == "a<mark>bc</mark><mark>d</mark>"


def test_an_excerpt_begins_before_its_first_match_and_counts_what_is_left_out() -> None:
    """A late match moves the excerpt; before + shown + after is the whole text."""
    text = "word " * 1000 + "needle " + "word " * 1000
    at = text.index("needle")
    piece = t.excerpt(text, [Span(at, at + 6)], 200)
    assert piece.text[piece.matches[0].start : piece.matches[0].end] == "needle"
    assert piece.before + len(piece.text) + piece.after == len(text)
    assert len(piece.text) <= 200


@given(
    st.text(max_size=300), st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), max_size=5), st.integers(1, 80)
)
def test_an_excerpt_is_a_piece_of_the_text(text: str, raw: list[tuple[int, int]], most: int) -> None:
    """Whatever the spans, the excerpt is `text[start:...]`, no longer than asked, its spans inside it."""
    spans = [Span(s, s + n) for s, n in raw if s + n <= len(text)]
    piece = t.excerpt(text, sorted(spans), most)
    assert text[piece.start : piece.start + len(piece.text)] == piece.text
    assert len(piece.text) <= most
    assert all(0 <= m.start <= m.end <= len(piece.text) for m in piece.matches)


def test_a_million_characters_cost_no_more_than_the_cap() -> None:
    """One endless line is cut in a card and in the document, and says how much is missing."""
    text = "x" * 1_000_000
    (line,) = t.lines_of(text, 1)
    assert len(line.html) < t.LONGEST_LINE + 200
    assert "998,000 more characters" in line.html
    assert len(t.plain(text)) == 200


def test_a_span_over_a_line_end_marks_both_lines() -> None:
    """Marks never cross a line's element."""
    lines = t.lines_of("ab\ncd\nef", 7, [Span(1, 4)])
    assert [(x.number, x.html, x.hit) for x in lines] == [
        (7, "a<mark>b</mark>", True), (8, "<mark>c</mark>d", True), (9, "ef", False)
    ]  # fmt: skip
