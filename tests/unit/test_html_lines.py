"""The words of an HTML page know the line of the file on which they are, whatever the page is like."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from reader_files import read, saved

from workbench.ingest import FoundFile
from workbench.ingest.outline import Outline
from workbench.ingest.readers import Member, Parsed, Source
from workbench.ingest.readers.html import READER, html_text
from workbench.locators import Place, locate

TAGS = "p div b i a span h1 h2 ul ol li pre br script style noscript template svg title head body option object".split()
MARKUP = st.one_of(
    st.builds("<{}{}>".format, st.sampled_from(TAGS), st.sampled_from(["", " a=1", ' c="<i>"', " d=e=f", " /"])),
    st.sampled_from(TAGS).map("</{}>".format),
    st.sampled_from(
        ["<!-- c\n -->", "<!-->", "<!doctype html>", "<?x\n?>", "</ x>", "<", "&amp;", "&nbsp;", "\xa0", "é"]
    ),
)
SOUP = st.lists(st.one_of(st.just("WORD"), MARKUP, st.sampled_from([" ", "\n", "\n\n  ", "\t"])), max_size=40)


def placed(page: str) -> tuple[str, Outline, tuple[Place, ...]]:
    source = Source(FoundFile("", "a", "", 0, 0)).inner(Member("a.html", page.encode()))
    parsed = next(item for item in READER.read(source) if isinstance(item, Parsed))
    return parsed.text, parsed.outline, parsed.places


def places_of(page: str) -> dict[str, str]:
    """For each word of three letters or more that is shown, its place."""
    text, _, places = placed(page)
    return {word[0]: locate(places, word.start(), word.end()) for word in re.finditer(r"\w{3,}", text)}


@settings(max_examples=100, deadline=None)
@given(SOUP)
def test_any_page_keeps_its_text_and_its_words_their_lines(tokens: list[str]) -> None:
    """Elements in any order, closed or not: the text and its shape are those without places, each word's line is its own."""
    numbers = iter(range(1000))
    page = "<p>" + "".join(f" word{next(numbers):03} " if token == "WORD" else token for token in tokens)
    text, outline, places = placed(page)
    assert (text.split(), len(outline.sections)) == (html_text(page)[0].split(), len(html_text(page)[1].sections))
    assert [p.start for p in places] == sorted({p.start for p in places})
    for word in re.finditer(r"word\d{3}", text):
        line = page.count("\n", 0, page.index(word[0])) + 1
        assert locate(places, word.start(), word.end()) == f"line={line}", (page, word[0])


@pytest.mark.parametrize(
    "page", ["<p>x" + "<a " * 9_000, "<p>x" + "<!--" * 9_000, "<table>" * 400 + "x", "<p>x" + "&#10;" * 50_000]
)
def test_broken_pages_are_read(page: str) -> None:
    text, outline, _ = placed(page)
    assert (text, outline) == html_text(page)


@pytest.mark.parametrize(
    ("page", "text", "places"),
    [
        (
            "<!doctype html>\n<h1>Kettles\n and pots</h1>\n<p>One two\n\n  three <b>four\n</b> five</p>\n<ul><li>six</li></ul>",
            "# Kettles and pots\n\nOne two three four five\n\n- six",
            [
                ("# Kettles ", 2),
                ("and pots\n\n", 3),
                ("One two ", 4),
                ("three four ", 6),
                ("five\n\n", 7),
                ("- six", 8),
            ],
        ),
        (
            "<p>over</p>\n<table>\n<tr>\n<th>\nName<th>Town\n<tr><td><td>Oslo\n</table>\n<ol>\n<li>\n<p>first</ol>\n<h2>\nEnd</h2>",
            "over\n\nName | Town\n | Oslo\n\n1. first\n\n## End",
            [("over\n\n", 1), ("Name | Town\n", 5), (" | Oslo\n\n", 6), ("1. first\n\n", 10), ("## End", 12)],
        ),
        (
            "<p>way</p>\n<pre>\none\n  two <b>bold\n\nlast</b></pre><p>on",
            "way\n\none\n  two bold\n\nlast\n\non",
            [("way\n\n", 1), ("one\n", 3), ("  two bold\n\n", 4), ("last\n\non", 6)],
        ),
        ("<?xml version='1.0'?>\n<html><body>\n<p>a</ b>c", "ac", [("ac", 3)]),
    ],
    ids=["paragraphs", "rows, items and headings", "preformatted", "an XML declaration"],
)
def test_each_passage_begins_at_the_line_of_its_words(page: str, text: str, places: list[tuple[str, int]]) -> None:
    found, _, at = placed(page)
    assert found == text
    ends = [*(p.start for p in at[1:]), len(found)]
    assert [(found[p.start : end], p.locator) for p, end in zip(at, ends, strict=True)] == [
        (words, f"line={line}") for words, line in places
    ]


def test_a_passage_over_several_lines_is_cited_by_all_of_them() -> None:
    text, _, places = placed("<p>One\ntwo\n\nthree</p>")
    assert locate(places, 0, len(text)) == "line=1-4"


def test_text_between_rows_is_shown_before_the_table() -> None:
    page = "<p>over\n<table>\n<tr><td>cell\n</tr>stray\n<tr><td>last</table>after"
    assert list(places_of(page)) == ["over", "stray", "cell", "last", "after"]


def test_what_is_not_shown_takes_no_line_from_what_is() -> None:
    page = (
        "<head><title>\nThe head</title></head><noscript>hidden</noscript>shown<template>no</template> <svg><text>x</text></svg>"
        "drawn\n<script>\nvar a = '<p>b';\n</script>behind <!-- one\ntwo --> here\n&nbsp;<p>end <img src=x alt='picture'> rest"
    )
    lines = {"shown": 2, "drawn": 2, "behind": 5, "here": 6, "end": 7, "picture": 7, "rest": 7}
    assert places_of(page) == {word: f"line={line}" for word, line in lines.items()}


def test_long_lines_have_columns() -> None:
    """The one in which a line of the text begins; of a page on one line, nothing else would tell where."""
    page = "<html>" + "".join(f"<p>par{n:03} {'words ' * 20}</p>" for n in range(40)) + "\n<p>short"
    places = places_of(page)
    for n in range(40):
        assert places[f"par{n:03}"] == f"line=1&column={page.index(f'par{n:03}') + 1}"
    assert places["short"] == "line=2"
    text, _, found = placed(page)
    assert locate(found, 0, text.index("par002") - 2) == f"line=1&column=10-{page.index('par001') + 1}"
    assert locate(found, text.index("par039"), len(text)) == f"line=1&column={page.index('par039') + 1}..line=2"


@pytest.mark.parametrize(
    ("encoding", "end"), list(itertools.product(["utf-8-sig", "utf-16", "shift_jis"], ["\n", "\r\n"]))
)
def test_lines_are_those_of_the_file(tmp_path: Path, encoding: str, end: str) -> None:
    page = (
        "---\nauthor: Ada\n---\n<!doctype html>\n<html><head><meta charset=shift_jis>\n</head><body>\n<p>\nかな<p>カナ"
    )
    data = page.replace("\n", end).encode(encoding)
    (document,), _ = read(saved(tmp_path, "a.html", data))
    lines = data.decode(encoding).split(end)
    for word in ("かな", "カナ"):
        at = document.text.index(word)
        number = int(locate(document.places, at, at + 1).removeprefix("line="))
        assert word in lines[number - 1]
    assert document.text == "かな\n\nカナ"
