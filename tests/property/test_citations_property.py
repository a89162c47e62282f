"""A citation opens where the words are: each chunk's words are found at its place in the original, re-opened by other means.

For every format a file is made from random words, read and cut by the workbench, and opened again through the format's own
library (or none at all), which knows nothing of the workbench; the place that a chunk cites must hold the chunk's words.
"""

from __future__ import annotations

import email
import email.policy
import io
import json
import re
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

import reader_files as make
from citation_cases import CHECK, NAMES, PARAGRAPHS, ROWS, SENTENCE, WORD, Original, check, chunks, read, words_of
from ingest_cases import pdf

from workbench.records import Chunk


@pytest.mark.slow
@CHECK
@given(PARAGRAPHS, st.lists(st.lists(SENTENCE, min_size=2, max_size=2), max_size=8), PARAGRAPHS)
def test_word(tmp_path: Path, before: list[str], rows: list[list[str]], after: list[str]) -> None:
    """Through python-docx: paragraphs outside of tables, and rows, in the order of the body; a chunk may hold both."""
    import docx

    data = make.docx([("Heading 1" if n % 4 == 0 else "", p) for n, p in enumerate(before)], rows, after)
    original: Original = []
    paragraphs = tables = 0
    for item in docx.Document(io.BytesIO(data)).iter_inner_content():
        if isinstance(item, docx.table.Table):
            tables += 1
            original += [
                ({"table": tables, "row": n}, " ".join(c.text for c in row.cells)) for n, row in enumerate(item.rows, 1)
            ]
        else:
            paragraphs += 1
            original.append(({"paragraph": paragraphs}, item.text))
    check(chunks(tmp_path, "a.docx", data), original)


@CHECK
@given(st.lists(st.tuples(SENTENCE, SENTENCE, st.one_of(st.just(""), SENTENCE)), min_size=1, max_size=5))
def test_slides(tmp_path: Path, slides: list[tuple[str, str, str]]) -> None:
    import pptx

    data = make.pptx(slides)
    original: Original = []
    for n, slide in enumerate(pptx.Presentation(io.BytesIO(data)).slides, 1):
        original.append(({"slide": n}, "\n".join(s.text_frame.text for s in slide.shapes if s.has_text_frame)))
        if slide.has_notes_slide:
            original.append(({"slide": n, "part": "notes"}, slide.notes_slide.notes_text_frame.text))
    made = chunks(tmp_path, "a.pptx", data)
    check(made, original)
    assert all(re.fullmatch(r"slide=\d+(&part=notes)?", chunk.locator) for chunk in made)


@CHECK
@given(st.dictionaries(NAMES, ROWS, min_size=1, max_size=3))
def test_sheets(tmp_path: Path, sheets: dict[str, list[list[str | None]]]) -> None:
    """Through openpyxl; rows that are empty are counted, and no chunk holds rows of two sheets."""
    import openpyxl

    data = make.xlsx({name: [["start"], *rows] for name, rows in sheets.items()})
    original: Original = [
        (
            {"sheet": sheet.title, "row": n},
            " ".join([sheet.title if n == 1 else "", *(str(c.value or "") for c in row)]),
        )
        for sheet in openpyxl.load_workbook(io.BytesIO(data))
        for n, row in enumerate(sheet.rows, 1)
    ]
    made = chunks(tmp_path, "a.xlsx", data)
    check(made, original)
    assert not any("..sheet=" in chunk.locator for chunk in made)


@CHECK
@given(PARAGRAPHS, st.lists(st.lists(SENTENCE, min_size=2, max_size=2), max_size=6), PARAGRAPHS)
def test_opendocument(tmp_path: Path, before: list[str], rows: list[list[str]], after: list[str]) -> None:
    """Through odfpy: paragraphs and headings are counted together, tables and their rows apart."""
    from odf import teletype
    from odf.opendocument import load

    data = make.odt([(1 if n % 3 == 0 else 0, p) for n, p in enumerate(before)], rows, [(0, p) for p in after])
    original: Original = []
    counted = 0
    for block in load(io.BytesIO(data)).text.childNodes:
        if block.tagName == "table:table":
            own = [node for node in block.childNodes if node.tagName == "table:table-row"]
            original += [
                ({"table": 1, "row": n}, " ".join(teletype.extractText(cell) for cell in row.childNodes))
                for n, row in enumerate(own, 1)
            ]
        else:
            counted += 1
            original.append(({"paragraph": counted}, teletype.extractText(block)))
    check(chunks(tmp_path, "a.odt", data), original)


@CHECK
@given(st.dictionaries(NAMES, ROWS, min_size=1, max_size=3))
def test_opendocument_sheets(tmp_path: Path, sheets: dict[str, list[list[str | None]]]) -> None:
    from lxml import etree

    data = make.ods({name: [["start"], *([c or "" for c in row] for row in rows)] for name, rows in sheets.items()})
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        tree = etree.fromstring(package.read("content.xml"))
    original: Original = []
    for table in tree.iter("{*}table"):
        name = next(value for key, value in table.attrib.items() if key.endswith("}name"))
        for n, row in enumerate(table.iter("{*}table-row"), 1):
            original.append(({"sheet": name, "row": n}, (name if n == 1 else "") + " ".join(["", *row.itertext(), ""])))
    check(chunks(tmp_path, "a.ods", data), original)


@CHECK
@given(st.lists(st.tuples(SENTENCE, SENTENCE, st.one_of(st.just(""), SENTENCE)), min_size=1, max_size=5))
def test_opendocument_slides(tmp_path: Path, slides: list[tuple[str, str, str]]) -> None:
    from odf import draw, presentation, teletype
    from odf.opendocument import load

    data = make.odp(slides)
    original: Original = []
    for n, page in enumerate(load(io.BytesIO(data)).getElementsByType(draw.Page), 1):
        frames = [node for node in page.childNodes if node.tagName == "draw:frame"]
        original.append(({"slide": n}, "\n".join(teletype.extractText(frame) for frame in frames)))
        original += [
            ({"slide": n, "part": "notes"}, teletype.extractText(notes))
            for notes in page.getElementsByType(presentation.Notes)
        ]
    check(chunks(tmp_path, "a.odp", data), original)


@CHECK
@given(st.lists(st.lists(st.one_of(st.just(""), SENTENCE), min_size=2, max_size=4), min_size=2, max_size=14))
def test_tables(tmp_path: Path, rows: list[list[str]]) -> None:
    rows[0] = ["alpha", "beta"]
    data = "\r\n".join(";".join(row) for row in rows).encode("utf-8")
    original: Original = [({"row": n}, line) for n, line in enumerate(data.decode("utf-8").split("\r\n"), 1)]
    check(chunks(tmp_path, "a.csv", data), original)


@CHECK
@given(st.lists(st.tuples(st.booleans(), PARAGRAPHS, st.lists(SENTENCE, max_size=2)), min_size=1, max_size=5))
def test_notebooks(tmp_path: Path, cells: list[tuple[bool, list[str], list[str]]]) -> None:
    data = [
        {"cell_type": "code", "source": "\n".join(p), "outputs": [{"output_type": "stream", "text": o} for o in outputs]}
        if code else {"cell_type": "markdown", "source": "\n\n".join(p)}
        for code, p, outputs in cells
    ]  # fmt: skip
    original: Original = []
    for n, (code, paragraphs, outputs) in enumerate(cells, 1):
        original.append(({"cell": n}, "\n".join(paragraphs)))
        original += [({"cell": n, "output": m}, o) for m, o in enumerate(outputs, 1)] if code else []
    check(chunks(tmp_path, "a.ipynb", json.dumps({"cells": data}).encode()), original)


@CHECK
@given(st.lists(PARAGRAPHS, min_size=1, max_size=4))
def test_books(tmp_path: Path, chapters: list[list[str]]) -> None:
    pages = {f"{n}.xhtml": "".join(f"<p>{p}</p>" for p in paragraphs) for n, paragraphs in enumerate(chapters, 1)}
    data = make.epub(pages)
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        parts = [f"OEBPS/{name}" for name in pages]
        original: Original = [({"part": p}, re.sub("<[^>]*>", " ", book.read(p).decode())) for p in parts]
    check(chunks(tmp_path, "a.epub", data), original)


@CHECK
@given(SENTENCE, PARAGRAPHS, PARAGRAPHS, PARAGRAPHS)
def test_mail_and_what_is_attached(
    tmp_path: Path, subject: str, body: list[str], attached: list[str], inner: list[str]
) -> None:
    """Through email: the numbered part holds the words; a file and a message that are attached have places of their own."""
    within = email.message_from_bytes(make.mail("Inner", "\n".join(inner)), policy=email.policy.default)
    data = make.mail(subject, "\n".join(body), {"note.txt": "\n".join(attached).encode("utf-8"), "in.eml": within})
    made = {document.path: own for document, own in read(tmp_path, "a.eml", data)}
    assert list(made) == ["a.eml", "a.eml!/note.txt", "a.eml!/in.eml"]
    message = email.message_from_bytes(data, policy=email.policy.default)
    check(made["a.eml"], _parts(message))
    (attachment,) = (part.get_content() for part in message.iter_attachments() if part.get_filename() == "in.eml")
    check(made["a.eml!/in.eml"], _parts(attachment))
    _in_lines(made["a.eml!/note.txt"], "\n".join(attached))


def _parts(message: email.message.EmailMessage) -> Original:
    head = f"{message['Subject']} From {message['From']} To {message['To']} Date {message['Date']}"
    body = message.get_body(("plain",))
    assert body is not None
    return [({"part": 0}, head), ({"part": 1}, body.get_content())]


@CHECK
@given(PARAGRAPHS)
def test_xml(tmp_path: Path, paragraphs: list[str]) -> None:
    lines = ["<r>", *(f"<p>{p}</p>" for p in paragraphs), "</r>"]
    original: Original = [({"line": n}, "p " + re.sub("<[^>]*>", " ", line)) for n, line in enumerate(lines, 1)]
    check(chunks(tmp_path, "a.xml", "\n".join(lines).encode("utf-8")), original)


@CHECK
@given(PARAGRAPHS)
def test_subtitles(tmp_path: Path, cues: list[str]) -> None:
    times = [f"00:{n:02d}:00" for n in range(len(cues))]
    data = "\n\n".join(f"{n + 1}\n{t},000 --> {t},900\n{c}" for n, (t, c) in enumerate(zip(times, cues, strict=True)))
    original: Original = [({"time": t}, c) for t, c in zip(times, cues, strict=True)]
    check(chunks(tmp_path, "a.srt", data.encode("utf-8")), original)


@CHECK
@given(PARAGRAPHS)
def test_rtf(tmp_path: Path, paragraphs: list[str]) -> None:
    body = "".join("".join(c if c < "\x80" else f"\\u{ord(c)}?" for c in p) + "\\par\n" for p in paragraphs)
    made = chunks(tmp_path, "a.rtf", f"{{\\rtf1\\ansi {body}}}".encode("ascii"))
    check(made, [({"paragraph": n}, p) for n, p in enumerate(paragraphs, 1)])


LATIN = st.lists(st.text("abcdefghij", min_size=2, max_size=8), min_size=1, max_size=8).map(" ".join)


@CHECK
@given(st.lists(st.lists(LATIN, min_size=1, max_size=6), min_size=1, max_size=5))
def test_pdf_pages(tmp_path: Path, pages: list[list[str]]) -> None:
    """Through what was put on the pages: the page that is named, by number and by locator, holds the words."""
    for chunk in chunks(tmp_path, "a.pdf", pdf(["\n".join(lines) for lines in pages])):
        assert chunk.locator == f"page={chunk.page}"
        assert chunk.page is not None
        there = words_of("\n".join(pages[chunk.page - 1]))
        assert all(word in there for word in words_of(chunk.text))


@CHECK
@given(st.dictionaries(st.sampled_from(["a.txt", "d/b.txt", "d/e/c.txt"]), PARAGRAPHS, min_size=1), st.booleans())
def test_members_of_archives(tmp_path: Path, files: dict[str, list[str]], nested: bool) -> None:
    """Through the texts that were packed: the member that the path names holds the words at the cited lines."""
    data = make.zipped({name: "\n".join(lines) for name, lines in files.items()})
    for document, own in read(tmp_path, "a.zip", make.zipped({"in.zip": data}) if nested else data):
        name = document.path.removeprefix("a.zip!/in.zip!/" if nested else "a.zip!/")
        _in_lines(own, "\n".join(files[name]))


MARKED = st.lists(
    st.tuples(st.sampled_from(["", "# ", "* ", "\\section{x} ", "def f(): ", "=="]), SENTENCE), min_size=1
)


@CHECK
@given(MARKED, WORD)
@pytest.mark.parametrize("suffix", ["tex", "org", "adoc", "md", "rst", "txt", "py", "js"])
def test_texts(tmp_path: Path, suffix: str, lines: list[tuple[str, str]], word: str) -> None:
    text = "\n\n".join([f"{word} begins", *(mark + words for mark, words in lines)])
    _in_lines(chunks(tmp_path, f"a.{suffix}", text.encode("utf-8")), text)


def _in_lines(made: list[Chunk] | tuple[Chunk, ...], text: str) -> None:
    lines = text.split("\n")
    for chunk in made:
        assert not chunk.locator
        assert chunk.text.strip() in "\n".join(lines[chunk.start_line - 1 : chunk.end_line])


def test_every_kind_of_place_is_tried_here() -> None:
    root = Path(__file__).parents[2]
    files = [root / "workbench" / "ingest" / "read.py", *(root / "workbench" / "ingest" / "readers").glob("*.py")]
    keys = {key for file in files for key in re.findall(r"locator\((\w+)=", file.read_text(encoding="utf-8"))}
    assert keys == {"paragraph", "table", "slide", "sheet", "cell", "part", "row", "line", "time", "page"}
