"""The words of an HTML page know the line of the file on which they stand, whatever the page is like, and stay as they were."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

sys.path.insert(0, str(Path(__file__).parent))

from reader_files import read, saved

from workbench.ingest.readers import html_lines
from workbench.ingest.readers.html import html_places, html_text
from workbench.locators import locate

TAGS = (
    "p", "div", "b", "i", "a", "span", "h1", "h2", "ul", "ol", "li", "table", "tr", "td", "th", "tbody", "caption", "pre", "br",
    "script", "style", "noscript", "template", "svg", "title", "textarea", "head", "body", "select", "option", "object", "math",
)  # fmt: skip
MARKUP = st.one_of(
    st.builds(
        "<{}{}>".format, st.sampled_from(TAGS), st.sampled_from(["", " a=1", "\nb='>'", ' c="<i>"', " d=e=f", " /"])
    ),
    st.sampled_from(TAGS).map("</{}>".format),
    st.sampled_from(
        ["<!-- c\n -->", "<!-->", "<!doctype html>", "<?x\n?>", "</ x>", "<", "&amp;", "&#10;", "&nbsp;", "\xa0", "é"]
    ),
)
BLANK = st.sampled_from([" ", "\n", "\n\n  ", "\t", "\f"])
WORD = st.just("WORD")
SOUP = st.lists(st.one_of(WORD, WORD, MARKUP, BLANK), max_size=40)


def places_of(page: str) -> dict[str, str]:
    """For each word of three letters or more that is shown, its place."""
    text, _, places = html_places(LexborHTMLParser(page), page)
    return {word[0]: locate(places, word.start(), word.end()) for word in re.finditer(r"\w{3,}", text)}


def lines_of(page: str) -> dict[str, int]:
    """The lines of the words that are shown; each word stands on one."""
    return {word: int(place.removeprefix("line=")) for word, place in places_of(page).items()}


@settings(max_examples=200, deadline=None)
@given(SOUP)
def test_any_page_keeps_its_text_and_its_words_their_lines(tokens: list[str]) -> None:
    """Elements in any order, closed or not: the text and its shape are those without places, each word's line is its own."""
    numbers = iter(range(1000))
    page = "".join(f" word{next(numbers):03} " if token == "WORD" else token for token in tokens)
    text, outline, places = html_places(LexborHTMLParser(page), page)
    assert (text, outline) == html_text(page)
    assert [p.start for p in places] == sorted({p.start for p in places})
    if "<svg" in page or "<math" in page:
        return  # what ends a drawing that is not closed is known to the parser alone
    for word in re.finditer(r"word\d{3}", text):
        line = page.count("\n", 0, page.index(word[0])) + 1
        assert locate(places, word.start(), word.end()) == f"line={line}", (page, word[0])


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("<>/!-=\"'& \nabp\x00\ufffd\U00040000\U000dffff;#x1"), max_size=60))
def test_no_page_breaks_it(page: str) -> None:
    """Characters that are markup, or that stand for marks."""
    text, outline, places = html_places(LexborHTMLParser(page), page)
    assert (text, outline) == html_text(page)
    assert all(0 <= place.start <= len(text) for place in places)


@pytest.mark.parametrize(
    "page",
    [
        "<a " * 30_000, "<a b=\"" * 30_000, "<!--" * 30_000, "<script>" * 20_000, "<table>" * 400 + "x", "<" * 90_000,
        "x" + "\n" * 100_000, "x" + "&#10;" * 50_000, "x" + "\n&#10;" * 50_000,
    ],
)  # fmt: skip
def test_broken_pages_are_passed_once(page: str) -> None:
    """Markup that never ends: a pattern that went back would not come to an end here."""
    text, outline, _ = html_places(LexborHTMLParser(page), page)
    assert (text, outline) == html_text(page)


def test_a_paragraph_over_several_lines_is_cited_by_all_of_them() -> None:
    page = "<!doctype html>\n<h1>Kettles\n and pots</h1>\n<p>One two\n\n  three <b>four\n</b> five</p>\n<ul><li>six</li></ul>"
    text, outline, places = html_places(LexborHTMLParser(page), page)
    assert text == "# Kettles and pots\n\nOne two three four five\n\n- six"
    assert [(text[a.start : b.start], a.locator) for a, b in itertools.pairwise(places)] == [
        ("# Kettles ", "line=2"), ("and pots\n\n", "line=3"), ("One two ", "line=4"), ("three four ", "line=6"),
        ("five\n\n", "line=7"),
    ]  # fmt: skip
    assert (text[places[-1].start :], places[-1].locator) == ("- six", "line=8")
    assert locate(places, text.index("One"), len(text) - 6) == "line=4-7"
    assert [section.title for section in outline.sections] == ["Kettles and pots"]


def test_the_marks_of_rows_items_and_headings_belong_to_their_words() -> None:
    """A chunk begins at them."""
    page = "<p>over</p>\n<table>\n<tr>\n<th>\nName<th>Town\n<tr><td><td>Oslo\n</table>\n<ol>\n<li>\n<p>first</ol>\n<h2>\nEnd</h2>"
    text, _, places = html_places(LexborHTMLParser(page), page)
    assert text == "over\n\nName | Town\n | Oslo\n\n1. first\n\n## End"
    assert [(p.start, p.locator) for p in places] == [
        (text.index(words), f"line={n}") for words, n in (("over", 1), ("Name", 5), (" | Oslo", 6), ("1.", 10), ("##", 12))
    ]  # fmt: skip


def test_text_between_rows_keeps_its_line_where_the_parser_moves_it() -> None:
    """It is shown before the table; a passage of both is cited from the first line to the last."""
    page = "<p>over\n<table>\n<tr><td>cell\n</tr>stray\n<tr><td>last</table>after"
    text, _, places = html_places(LexborHTMLParser(page), page)
    assert text.split() == ["over", "stray", "cell", "last", "after"]
    assert lines_of(page) == {"over": 1, "stray": 4, "cell": 3, "last": 5, "after": 5}
    assert locate(places, text.index("stray"), text.index("last")) == "line=3-4"


def test_what_is_not_shown_takes_no_line_from_what_is() -> None:
    page = (
        "<head><title>\nThe head</title></head><noscript>hidden</noscript>shown<template>no</template> <svg><text>x</text></svg>"
        "drawn\n<script>\nvar a = '<p>b';\n</script>behind <!-- one\ntwo --> here\n&nbsp;<p>end <img src=x\nalt='picture'> rest"
    )
    assert lines_of(page) == {"shown": 2, "drawn": 2, "behind": 5, "here": 6, "end": 7, "picture": 8, "rest": 8}


def test_preformatted_text_keeps_its_lines() -> None:
    page = "<p>way</p>\n<pre>\none\n  two <b>bold\n\nlast</b></pre><p>on"
    assert lines_of(page) == {"way": 1, "one": 3, "two": 4, "bold": 4, "last": 6}


def test_long_lines_have_columns() -> None:
    """The one in which a line of the text begins; of a page on one line, nothing else would tell where."""
    page = "<html>" + "".join(f"<p>par{n:03} {'words ' * 20}</p>" for n in range(40)) + "\n<p>short"
    places = places_of(page)
    for n in range(40):
        assert places[f"par{n:03}"] == f"line=1&column={page.index(f'par{n:03}') + 1}"
    assert places["short"] == "line=2"
    text, _, found = html_places(LexborHTMLParser(page), page)
    assert locate(found, 0, text.index("par002") - 2) == f"line=1&column=10-{page.index('par001') + 1}"
    assert locate(found, text.index("par039"), len(text)) == f"line=1&column={page.index('par039') + 1}..line=2"


def test_a_page_with_characters_that_stand_for_marks_has_no_places() -> None:
    """It is cited by the lines of its text, as a page is that cannot be followed."""
    for page in ("<p>a \U00040000 b", "<p>a &#x40000; b"):
        text, _, places = html_places(LexborHTMLParser(page), page)
        assert places == ()
        assert text == "a \U00040000 b"


def test_a_page_of_more_lines_than_there_are_marks_has_no_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one element holds them all, as a log in a page does: it is read, and cited by the lines of its text."""
    page = "<pre>" + "a line\n" * 50
    assert len(html_places(LexborHTMLParser(page), page)[2]) == 50
    monkeypatch.setattr(html_lines, "_MOST_MARKS", 20)
    text, _, places = html_places(LexborHTMLParser(page), page)
    assert (text.count("a line"), places) == (50, ())
    assert len(html_lines._marked(page)[1]) == 21


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "shift_jis"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("front", ["", "---\nauthor: Ada\n---\n"])
def test_lines_are_those_of_the_file(tmp_path: Path, encoding: str, end: str, front: str) -> None:
    """Whatever its encoding and line ends are, and with the front matter that stands before the page."""
    page = f"{front}<!doctype html>\n<html><head><meta charset={encoding.removesuffix('-sig')}>\n</head><body>\n<p>\nかな<p>カナ"
    data = page.replace("\n", end).encode(encoding)
    (document,), _ = read(saved(tmp_path, "a.html", data))
    lines = data.decode(encoding).split(end)
    for word in ("かな", "カナ"):
        at = document.text.index(word)
        number = int(locate(document.places, at, at + 1).removeprefix("line="))
        assert word in lines[number - 1]
    assert document.text == "かな\n\nカナ"
