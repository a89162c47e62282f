"""PDF: columns in the order of reading, broken words joined, running heads once, scans and attachments named."""

from __future__ import annotations

from pathlib import Path

import pytest
from ingest_cases import pdf
from reader_files import read, saved

from workbench.ingest.readers.pdf import Box, column_order, join_words, without_furniture

LEFT = [
    "Reading order is what people expect",
    "of a page that was set in columns, so",
    "the left column comes first and is",
]
RIGHT = [
    "The right column follows after it and",
    "goes on where the left one has ended,",
    "which is how papers have been printed",
]


def placed(lines: list[tuple[int, int, str]]) -> bytes:
    """A page on which each line is drawn at (x, y), in this order."""
    data = pdf(["x"])
    shown = "".join(f"1 0 0 1 {x} {y} Tm ({words}) Tj " for x, y, words in lines)
    stream = f"BT /F1 12 Tf {shown}ET"
    start = data.index(b"11 0 obj")
    end = data.index(b"endobj", start)
    body = f"11 0 obj\n<< /Length {len(stream)} >>\nstream\n{stream}\nendstream\n".encode()
    return data[:start] + body + data[end:]


def test_columns_that_were_drawn_line_by_line_are_read_one_after_the_other(tmp_path: Path) -> None:
    """The title over both columns comes first."""
    rows = [(40, 740, "A title that runs over both of the columns of this page, from one edge to the other")]
    for n in range(12):
        rows += [(40, 700 - 16 * n, f"{LEFT[n % 3]} {n}"), (320, 700 - 16 * n, f"{RIGHT[n % 3]} {n}")]
    (document,), _ = read(saved(tmp_path, "a.pdf", placed(rows)))
    lines = [line.strip() for line in document.text.split("\n")]
    assert lines[0].startswith("A title")
    assert lines[1:13] == [f"{LEFT[n % 3]} {n}" for n in range(12)]
    assert lines[13:25] == [f"{RIGHT[n % 3]} {n}" for n in range(12)]


def test_a_table_of_two_columns_keeps_its_rows(tmp_path: Path) -> None:
    rows = []
    for n in range(14):
        rows += [
            (40, 700 - 16 * n, f"Item {n}" if n % 4 else "A long name of an item on sale"),
            (420, 700 - 16 * n, f"{n}.00"),
        ]
    rows += [
        (
            40,
            400,
            "Some more words so that the page is long enough to be looked at, because short pages are not" + " x" * 40,
        )
    ]
    (document,), _ = read(saved(tmp_path, "a.pdf", placed(rows)))
    assert "Item 5 5.00" in " ".join(document.text.split())


def test_few_lines_say_nothing_about_columns() -> None:
    assert column_order([Box(0, y, 100, y + 10) for y in range(0, 100, 20)], 0, 600) is None


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("ineffi\ufffe\ncient ways", "inefficient ways"), ("ineffi-\ncient ways", "inefficient ways"),
        ("Lucene\ufffe\nBM25 here", "Lucene-BM25 here"),
        ("a dual\ufffe\nencoder or dual-encoder", "a dual-encoder or dual-encoder"),
        ("state\u00ad\nment", "statement"), ("covid-\n19 and", "covid-19 and"), ("a - b\n- c", "a - b\n- c"),
    ],
)  # fmt: skip
def test_words_broken_at_a_lines_end_are_joined_and_hyphens_that_belong_stay(page: str, text: str) -> None:
    assert join_words([page]) == [text]


def test_running_heads_stay_once_and_page_numbers_go() -> None:
    pages = [f"Annual report of the society\nBody {n * 7} words\nmore\nPage {n} of 6" for n in range(1, 7)]
    assert without_furniture(pages) == [
        "Annual report of the society\nBody 7 words\nmore", *(f"Body {n * 7} words\nmore" for n in range(2, 7)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "pages",
    [
        [f"Step {n}\nwords" for n in range(1, 8)],  # a heading of its own on every page
        [f"{n * n} kg\nwords {n}" for n in range(1, 8)],  # numbers that do not count the pages
        ["Head of the page\nwords"] * 3,  # too few pages to tell
    ],
)
def test_what_may_be_content_stays(pages: list[str]) -> None:
    assert without_furniture(pages) == pages


def test_pages_that_are_pictures_are_named(tmp_path: Path) -> None:
    """The others are read; the report says which are missing, and what to do."""
    data = pdf(["words on a page", "x"])
    image = (
        b"99 0 obj\n<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8"
        b" /Length 1 >>\nstream\n0\nendstream\nendobj\n"
    )
    start = data.index(b"13 0 obj")
    end = data.index(b"endobj", start)
    picture = b"13 0 obj\n<< /Length 29 >>\nstream\nq 100 0 0 100 50 50 cm /I Do Q\nendstream\n"
    data = data[:start] + picture + data[end:]
    data = data.replace(b"/Font << /F1 3 0 R >> >> >>", b"/Font << /F1 3 0 R >> /XObject << /I 99 0 R >> >> >>")
    data = data.replace(b"xref\n", image + b"xref\n", 1)
    (document,), problems = read(saved(tmp_path, "a.pdf", data))
    assert "words on a page" in document.text
    assert [p.reason for p in problems] == ["1 of its 2 pages are pictures without text: 2"]


def test_a_text_that_is_called_a_pdf_is_read_and_the_report_says_so(tmp_path: Path) -> None:
    """An error page that was saved under the name of the report."""
    (document,), problems = read(saved(tmp_path, "a.pdf", "<html><body><p>Not found</p></body></html>"))
    assert document.type == "html"
    assert problems[0].reason == "It is not .pdf, despite its name: it was read as html"
