"""Text with a structure of its own: RTF, tables, JSON, XML, notebooks, subtitles, LaTeX, Org, AsciiDoc, and images."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re

import pytest
from file_makers import chunks_of, headings, read, saved, where
from hypothesis import example, given
from hypothesis import strategies as st
from trials import trials

from workbench.ingest.errors import ReadError
from workbench.ingest.outline import Outline, find_header
from workbench.ingest.readers.base import Member, Parsed, Source
from workbench.ingest.readers.html import READER, html_text
from workbench.ingest.readers.text import find_delimiter, is_table
from workbench.ingest.walk import FoundFile
from workbench.locators import Place, locate

RTF = rb"""{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial Cyr;}{\f2\fcharset128 MS;}}
{\stylesheet{\s1 heading 1;}}{\info{\title A title}{\author Ada}}{\*\generator nobody}
\pard\s1 Head\par\pard caf\'e9 \u8364?\~5 {\f1\'cf\'f0\'e8\'e2\'e5\'f2} {\f2\'82\'b1\'83e}\par
{\v hidden}{\pict 00ff}seen{\footnote a note}\par
\trowd\intbl a\cell b\cell\row\trowd\intbl 1\cell 2\cell\row\pard end\par}"""


def test_rtf_is_read_in_the_code_page_of_each_font(tmp_path):
    """Cyrillic, and Japanese whose second byte is a plain letter; pictures, hidden text and field codes are not there."""
    (document,), problems = read(saved(tmp_path, "a.rtf", RTF))
    assert document.text == (
        "# Head\n\ncafé € 5 Привет こテ\n\nseen\n\na | b\n1 | 2\n\nend\n\na note\n"
    )  # fmt: skip
    assert (document.title, document.metadata["author"]) == ("A title", "Ada")
    assert where(document, "seen") == "paragraph=3"
    assert not problems


@pytest.mark.parametrize(
    "data",
    [b"{\\rtf1 no end", b"{\\rtf1 {\\b x}}} trailing}", b"{\\rtf1\\bin99999 x}", b"{\\rtf1 \\u-10179?\\u-8704?}"],
)
def test_broken_rtf_gives_what_is_there_or_a_reason(tmp_path, data):
    with contextlib.suppress(ReadError):
        documents, _ = read(saved(tmp_path, "a.rtf", data))
        assert documents[0].text.strip()


def test_a_row_of_a_table_is_a_line_of_the_text_and_chunks_carry_the_header(tmp_path):
    """A quoted cell may hold delimiters, quotes and line ends; row, line and place are one number."""
    rows = "".join(f'{n},"says ""{n}"", on\ntwo lines",x\n' for n in range(30))
    file = saved(tmp_path, "a.csv", f"id,words,kind\n{rows}")
    (document,), _ = read(file)
    assert document.text.split("\n")[4] == '3 | says "3", on two lines | x'
    assert where(document, 'says "3"') == "row=5"
    chunks = chunks_of(file, 60)
    assert len(chunks) > 3
    assert all(chunk.context.endswith("id | words | kind") and chunk.tokens <= 60 for chunk in chunks[1:])
    assert chunks[1].locator == f"row={chunks[1].start_line}-{chunks[1].end_line}"


@pytest.mark.parametrize(
    ("text", "sign"),
    [("a;b\n1,5;2\n", ";"), ("a\tb, c\n1\t2\n", "\t"), ("a|b\n1|2\n", "|"), ("words\nonly\n", ","), ("a,b\n", ",")],
)
def test_the_delimiter_is_told_from_the_first_lines(text, sign):
    assert find_delimiter(text) == sign


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        ([["Name", "Age"], ["Ada", "36"]], 0), ([["1", "2"], ["3", "4"]], -1), ([["Title"], ["a", "b", "c"], ["1", "2", "3"]], 1),
        ([["only", "one"]], -1), ([["Name"], ["Ada"]], 0),
    ],
)  # fmt: skip
def test_the_header_of_a_table_is_told_by_its_look(rows, header):
    assert find_header(rows) == header


def test_a_json_array_of_records_is_read_as_records_and_other_json_keeps_its_lines(tmp_path):
    records = [
        {"id": "a", "text": "first"},
        {"id": "a", "text": "twice"},
        {"text": ""},
        {"id": 7, "text": "third", "tag": "x"},
    ]
    documents, problems = read(saved(tmp_path, "a.json", json.dumps(records)))
    assert [(d.path, d.text) for d in documents] == [("a.json#a", "first"), ("a.json#7", "third")]
    assert len(problems) == 2
    (plain,), _ = read(saved(tmp_path, "b.json", '{"a":\n  1}'))
    assert plain.text == '{"a":\n  1}'
    (laid,), _ = read(saved(tmp_path, "c.json", json.dumps({"k": ["words"] * 500})))
    assert laid.text.count("\n") > 400
    (broken,), _ = read(saved(tmp_path, "d.json", "{not json"))
    assert broken.text == "{not json"


def test_xml_gives_words_with_the_lines_of_the_file(tmp_path):
    body = '<?xml version="1.0" encoding="iso-8859-1"?>\n<r xml:lang="fr">\n<title>Été</title>\n<p>a <b>bold</b> word</p>\n'
    body += '<item id="3"><d>&lt;p&gt;One&lt;/p&gt;&lt;p&gt;Two&lt;/p&gt;</d></item>\n</r>'
    (document,), problems = read(saved(tmp_path, "a.xml", body.encode("latin-1")))
    assert (document.title, document.language, document.type) == ("Été", "fr", "xml")
    assert where(document, "Été") == "line=3"
    assert where(document, "bold") == "line=4"
    assert where(document, "Two") == "line=5"
    assert "item id='3'" in document.text
    assert "<" not in document.text
    assert not problems


def test_xml_that_declares_entities_or_is_broken_is_read_as_text(tmp_path):
    bomb = '<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><d>&b;</d>'
    (document,), problems = read(saved(tmp_path, "a.xml", bomb))
    assert document.text == bomb
    assert "entities" in problems[0].reason
    (document,), problems = read(saved(tmp_path, "b.xml", "<a>\n<b>words</a>"))
    assert problems[0].line == 2
    assert "words" in document.text


def test_a_notebooks_cells_and_outputs_are_kept_apart(tmp_path):
    """Headings of Markdown cells are sections; a picture is left out, an error's colours too."""
    picture = "iVBOR" * 200
    outputs = [
        {"output_type": "stream", "text": ["printed\n"]},
        {"output_type": "display_data", "data": {"image/png": picture, "text/plain": ["<Figure>"]}},
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[31mBoom\x1b[0m"]},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Head\n", "words"]},
        {"cell_type": "code", "source": "x = 1\nprint(x)", "outputs": outputs},
        {"cell_type": "markdown", "source": "after"},
    ]
    data = {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}
    file = saved(tmp_path, "a.ipynb", json.dumps(data))
    (document,), _ = read(file)
    assert (document.title, document.language, document.type) == ("Head", "python", "notebook")
    assert [where(document, w) for w in ("words", "print(x)", "printed", "Boom", "after")] == [
        "cell=1", "cell=2", "cell=2&output=1", "cell=2&output=3", "cell=3",
    ]  # fmt: skip
    assert picture[:50] not in document.text
    assert "\x1b" not in document.text
    chunks = chunks_of(file, 200)
    assert [c.locator for c in chunks] == [
        "cell=1-2",
        "cell=2&output=1",
        "cell=2&output=2",
        "cell=2&output=3",
        "cell=3",
    ]


def test_subtitles_give_what_is_said_with_its_time(tmp_path):
    srt = "1\n00:00:01,000 --> 00:00:02,000\n<i>Hello</i>\nthere\n\n2\n01:02:03,500 --> 01:02:04,000\n{\\an8}42\n"
    (document,), _ = read(saved(tmp_path, "a.srt", srt))
    assert document.text == "Hello there\n\n42\n"
    assert where(document, "42") == "time=01:02:03"
    vtt = "WEBVTT\n\nNOTE no\n\nintro\n00:01.000 --> 00:02.000 align:left\n<v Ada>Hi\n"
    (document,), _ = read(saved(tmp_path, "b.vtt", vtt))
    assert document.text == "Ada: Hi\n"


def test_latex_org_and_asciidoc_keep_their_lines_and_have_sections(tmp_path):
    tex = "\\title{A \\emph{fine} paper}\n\\begin{abstract}\nx\n\\end{abstract}\n\\section*{One {\\bf two}}\n"
    tex += "words\n\\subsection[s]{Three}\n"
    file = saved(tmp_path, "a.tex", tex)
    (document,), _ = read(file)
    assert (document.text, document.title) == (tex, "A fine paper")
    assert headings(file) == [(2, "Abstract"), (2, "One two"), (3, "Three")]
    org = "#+TITLE: My notes\n* TODO One :tag:\nwords\n#+begin_src sh\n* no heading\n#+end_src\n** Two\n"
    file = saved(tmp_path, "a.org", org)
    (document,), _ = read(file)
    assert (document.text, document.title) == (org, "My notes")
    assert headings(file) == [(1, "One"), (2, "Two")]
    adoc = "= Title\n\n== One\n\n----\n== no heading\n----\n"
    assert headings(saved(tmp_path, "a.adoc", adoc)) == [(1, "Title"), (2, "One")]


def test_images_are_read_by_what_is_written_into_them(tmp_path):
    from PIL import Image

    image = Image.new("RGB", (40, 30))
    exif = image.getexif()
    exif[270], exif[315] = "A cat on a mat", "Ada"
    stream = io.BytesIO()
    image.save(stream, "JPEG", exif=exif)
    (document,), _ = read(saved(tmp_path, "cat.jpg", stream.getvalue()))
    assert document.text == "cat.jpg\nJPEG image, 40 x 30 pixels\ndescription: A cat on a mat\nartist: Ada\n"


def test_a_text_whose_lines_are_cut_by_tabs_is_a_table(tmp_path):
    """As programs of measuring write it; a row is cited as one, and chunks of rows carry the header."""
    rows = ["Probe\tAmount"] + [f"p{n}\t{n}" for n in range(5)]
    (document,), _ = read(saved(tmp_path, "a.txt", "\n".join(rows)))
    assert document.type == "table"
    assert document.text.startswith("Probe | Amount\np0 | 0\n")
    assert document.places[2].locator == "row=3"


@pytest.mark.parametrize(
    "text",
    [
        "a\tb\nc\td\ne\tf",  # too few lines to tell
        "a\tb\nc\td\ne\tf\ng\th\ti",  # not the same number
        "\tindented\n\tlines\n\tof\n\tcode\nand one that is not",
        "no tabs\n" * 9,
    ],
)
def test_other_texts_with_tabs_are_texts(text):
    assert not is_table(text)


MARKDOWN = "".join(f"| `new{n}` | makes the thing of number {n} |\n" for n in range(30))
SIMPLE = "".join(f"``new{n}``   makes thing number {n}\n" for n in range(30))
BORDER = "=========  ==================\n"


@pytest.mark.parametrize(
    ("name", "text", "header"),
    [
        ("a.md", f"# Verbs\n\n|  **Verb**  | What  it does |\n|---|---|\n{MARKDOWN}\nAfter.\n", "Verb | What it does"),
        ("b.md", f"# Verbs\n\n| | |\n|---|---|\n{MARKDOWN}", ""),
        (
            "a.rst",
            f"Verbs\n=====\n\n{BORDER}Verb       What it does\n{BORDER}{SIMPLE}{BORDER}\nAfter.\n",
            "Verb | What it does",
        ),
    ],
)
def test_rows_of_a_table_in_a_text_carry_its_header(tmp_path, name, text, header):
    inside = [c for c in chunks_of(saved(tmp_path, name, text), 80) if c.text.startswith(("| `new", "``new"))]
    assert len(inside) > 2
    assert {c.context.removeprefix("Verbs").strip("\n") for c in inside} == {header}


def test_a_table_inside_a_cell_keeps_its_rows():
    inner = "<table><tr><th>Name</th><th>Town</th></tr><tr><td>Ada</td><td>London</td></tr></table>"
    text, outline, _ = html_text(f"<table><tr><td>People</td><td>{inner}</td></tr></table>")
    assert text.split("\n") == ["People", "", "Name | Town", "Ada | London"]
    assert [table.header for table in outline.tables] == ["Name | Town"]


def test_heads_beside_the_rows_are_no_header_over_the_columns():
    _, outline, _ = html_text(
        "<table><tr><th>Kind</th><td>public</td></tr><tr><th>Founded</th><td>in spring</td></tr></table>"
    )
    assert not outline.tables


def test_the_fullest_of_several_rows_of_heads_is_the_header():
    rows = "<tr><td></td><th>North</th></tr><tr><th>Year</th><th>Corn</th></tr><tr><th>2023</th><td>7</td></tr>"
    text, outline, _ = html_text(f"<table><caption>Harvest</caption>{rows}</table>")
    assert text == "Harvest\n | North\nYear | Corn\n2023 | 7"
    assert [(table.header, text[table.body :]) for table in outline.tables] == [("Year | Corn", "2023 | 7")]


def test_an_address_without_a_host_is_none(tmp_path):
    head = '<title>Untitled Document</title><link rel="canonical" href="/a/b">{}'
    page = f"<html><head>{head}</head><body><h1>Ports</h1></body></html>"
    (document,), _ = read(saved(tmp_path, "a.html", page.format("")))
    assert (document.url, document.title) == ("", "Ports")
    shared = '<meta property="og:url" content="https://example.org/a/b">'
    (document,), _ = read(saved(tmp_path, "b.html", page.format(shared)))
    assert document.url == "https://example.org/a/b"


def test_hard_spaces_alone_are_no_lines_and_rows_end_with_their_last_words():
    page = "<p>One</p><p>&nbsp;</p><p>a&nbsp;b</p><table><tr><td>x</td><td>y</td><td>&nbsp;</td></tr></table>"
    assert html_text(page)[0] == "One\n\na\xa0b\n\nx | y"


def test_without_marks_a_header_is_told_by_bold_words_or_by_the_numbers_below_it():
    """A list of places set as a table has none: its first place would stand above all the others."""

    def header(*rows: tuple[str, str]) -> list[str]:
        body = "".join(f"<tr><td>{a}</td><td>{b}</td></tr>" for a, b in rows)
        return [table.header for table in html_text(f"<table>{body}</table>")[1].tables]

    assert header(("The lake", "Frontispiece"), ("The rink", "at the end"), ("The hut", "at the end")) == []
    assert header(("Crop", "Tons"), ("Corn", "1,200"), ("Rye", "80")) == ["Crop | Tons"]
    assert header(("<b>Plate</b>", "<b>Place</b>"), ("The rink", "at the end")) == ["Plate | Place"]


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


@trials(50)
@example(["<?x\n?>", "WORD"])
@given(SOUP)
def test_any_page_keeps_its_text_and_its_words_their_lines(tokens):
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
def test_broken_pages_are_read(page):
    text, outline, _ = placed(page)
    assert (text, outline) == html_text(page)[:2]


def test_text_between_rows_is_shown_before_the_table():
    page = "<p>over\n<table>\n<tr><td>cell\n</tr>stray\n<tr><td>last</table>after"
    assert list(places_of(page)) == ["over", "stray", "cell", "last", "after"]


def test_what_is_not_shown_takes_no_line_from_what_is():
    page = (
        "<head><title>\nThe head</title></head><noscript>hidden</noscript>shown<template>no</template> <svg><text>x</text></svg>"
        "drawn\n<script>\nvar a = '<p>b';\n</script>behind <!-- one\ntwo --> here\n&nbsp;<p>end <img src=x alt='picture'> rest"
    )
    lines = {"shown": 2, "drawn": 2, "behind": 5, "here": 6, "end": 7, "picture": 7, "rest": 7}
    assert places_of(page) == {word: f"line={line}" for word, line in lines.items()}


def test_long_lines_have_columns():
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
def test_lines_are_those_of_the_file(tmp_path, encoding, end):
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
