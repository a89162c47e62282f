"""Text with a structure of its own: RTF, tables, JSON, XML, notebooks, subtitles, LaTeX, Org, AsciiDoc, and images."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest
from ingest_cases import count_words, cut_file, found
from reader_files import read, saved

from workbench.ingest import FileRules, ReadError, read_documents
from workbench.ingest.outline import find_header
from workbench.ingest.readers.text import find_delimiter
from workbench.locators import Place, joined, locate, locator
from workbench.records import Chunk, Document


def where(document: Document, words: str) -> str:
    start = document.text.index(words)
    return locate(document.places, start, start + len(words))


def chunks_of(file: Path, budget: int) -> tuple[Chunk, ...]:
    items = cut_file(found(file), FileRules(), count_words, budget)
    return next(item[1] for item in items if isinstance(item, tuple))


def headings(file: Path) -> list[tuple[int, str]]:
    (item,) = read_documents(found(file), FileRules())
    return [(s.level, s.title) for s in item.outline.sections]  # type: ignore[union-attr]


def test_locators_are_escaped_and_joined_by_their_first_difference() -> None:
    assert locator(sheet="R&D = 5%", row=3) == "sheet=R%26D %3D 5%25&row=3"
    assert joined("sheet=A&row=3", "sheet=A&row=9") == "sheet=A&row=3-9"
    assert joined("cell=4", "cell=4&output=1") == "cell=4"
    assert joined("slide=1&part=notes", "slide=1") == "slide=1"
    assert joined("paragraph=9", "paragraph=12") == "paragraph=9-12"
    assert joined("paragraph=12", "table=2&row=3") == "paragraph=12..table=2&row=3"
    assert joined("table=1&row=2", "table=2&row=1") == "table=1&row=2..table=2&row=1"
    assert joined("part=1.xhtml", "part=2.xhtml") == "part=1.xhtml..part=2.xhtml"
    places = [Place(5, "row=1"), Place(9, "row=2")]
    assert [locate(places, a, b) for a, b in ((0, 4), (0, 6), (5, 9), (6, 10))] == ["", "row=1", "row=1", "row=1-2"]


RTF = rb"""{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial Cyr;}{\f2\fcharset128 MS;}}
{\stylesheet{\s1 heading 1;}}{\info{\title A title}{\author Ada}}{\*\generator nobody}
\pard\s1 Head\par\pard caf\'e9 \u8364?\~5 {\f1\'cf\'f0\'e8\'e2\'e5\'f2} {\f2\'82\'b1\'83e}\par
{\v hidden}{\pict 00ff}seen{\footnote a note}\par
\trowd\intbl a\cell b\cell\row\trowd\intbl 1\cell 2\cell\row\pard end\par}"""


def test_rtf_is_read_in_the_code_page_of_each_font(tmp_path: Path) -> None:
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
def test_broken_rtf_gives_what_is_there_or_a_reason(tmp_path: Path, data: bytes) -> None:
    with contextlib.suppress(ReadError):
        documents, _ = read(saved(tmp_path, "a.rtf", data))
        assert documents[0].text.strip()


def test_a_row_of_a_table_is_a_line_of_the_text_and_chunks_carry_the_header(tmp_path: Path) -> None:
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
def test_the_delimiter_is_told_from_the_first_lines(text: str, sign: str) -> None:
    assert find_delimiter(text) == sign


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        ([["Name", "Age"], ["Ada", "36"]], 0), ([["1", "2"], ["3", "4"]], -1), ([["Title"], ["a", "b", "c"], ["1", "2", "3"]], 1),
        ([["only", "one"]], -1), ([["Name"], ["Ada"]], 0),
    ],
)  # fmt: skip
def test_the_header_of_a_table_is_told_by_its_look(rows: list[list[str]], header: int) -> None:
    assert find_header(rows) == header


def test_a_json_array_of_records_is_read_as_records_and_other_json_keeps_its_lines(tmp_path: Path) -> None:
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


def test_xml_gives_words_with_the_lines_of_the_file(tmp_path: Path) -> None:
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


def test_xml_that_declares_entities_or_is_broken_is_read_as_text(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><d>&b;</d>'
    (document,), problems = read(saved(tmp_path, "a.xml", bomb))
    assert document.text == bomb
    assert "entities" in problems[0].reason
    (document,), problems = read(saved(tmp_path, "b.xml", "<a>\n<b>words</a>"))
    assert problems[0].line == 2
    assert "words" in document.text


def test_a_notebooks_cells_and_outputs_are_kept_apart(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(("name", "data"), [("a.ipynb", "{"), ("a.ipynb", "[]"), ("a.ipynb", '{"x": 1}')])
def test_what_is_no_notebook_says_so(tmp_path: Path, name: str, data: str) -> None:
    with pytest.raises(ReadError, match="notebook"):
        read(saved(tmp_path, name, data))


def test_subtitles_give_what_is_said_with_its_time(tmp_path: Path) -> None:
    srt = "1\n00:00:01,000 --> 00:00:02,000\n<i>Hello</i>\nthere\n\n2\n01:02:03,500 --> 01:02:04,000\n{\\an8}42\n"
    (document,), _ = read(saved(tmp_path, "a.srt", srt))
    assert document.text == "Hello there\n\n42\n"
    assert where(document, "42") == "time=01:02:03"
    vtt = "WEBVTT\n\nNOTE no\n\nintro\n00:01.000 --> 00:02.000 align:left\n<v Ada>Hi\n"
    (document,), _ = read(saved(tmp_path, "b.vtt", vtt))
    assert document.text == "Ada: Hi\n"


def test_latex_org_and_asciidoc_keep_their_lines_and_have_sections(tmp_path: Path) -> None:
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


def test_images_are_read_by_what_is_written_into_them(tmp_path: Path) -> None:
    from PIL import Image

    image = Image.new("RGB", (40, 30))
    exif = image.getexif()
    exif[270], exif[315] = "A cat on a mat", "Ada"
    stream = io.BytesIO()
    image.save(stream, "JPEG", exif=exif)
    (document,), _ = read(saved(tmp_path, "cat.jpg", stream.getvalue()))
    assert document.text == "cat.jpg\nJPEG image, 40 x 30 pixels\ndescription: A cat on a mat\nartist: Ada\n"
    with pytest.raises(ReadError, match="broken"):
        read(saved(tmp_path, "b.png", b"\x89PNG\r\n\x1a\nrubbish"))


def test_a_text_that_is_called_a_word_file_is_read_and_a_binary_called_text_is_not(tmp_path: Path) -> None:
    (document,), problems = read(saved(tmp_path, "a.docx", "Plain words"))
    assert document.text == "Plain words"
    assert problems[0].reason == "It is not .docx, despite its name: it was read as text"
    with pytest.raises(ReadError, match="binary"):
        read(saved(tmp_path, "a.txt", bytes(range(256)) * 4))
