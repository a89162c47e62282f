"""PDF: columns in the order of reading, broken words joined, running heads once, scans and attachments named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from corpus_files import write_files
from file_makers import count_words, cut_file, documents, found, pdf, read, saved

from workbench.ingest.outline import useful_title
from workbench.ingest.readers.pdf import join_words, without_furniture
from workbench.ingest.rules import FileRules

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


def made(stream: str, annotations: Sequence[str] = (), form: bool = False) -> bytes:
    first = 7
    references = " ".join(f"{first + n} 0 R" for n in range(len(annotations)))
    fields = f"/AcroForm << /Fields [{references}] /DA (/F1 10 Tf) /DR << /Font << /F1 5 0 R >> >> >>" if form else ""
    things = [
        f"<< /Type /Catalog /Pages 2 0 R {fields} >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >>"
        f" /Annots [{references}] >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /EmbeddedFile /Length 11 >>\nstream\npinned here\nendstream",
        *annotations,
    ]
    data, places = b"%PDF-1.7\n", []
    for number, thing in enumerate(things, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{thing}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(things) + 1
    return data + (
        f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    ).encode("latin-1")


def drawn(lines: Sequence[tuple[int, int, int, str]]) -> str:
    return "BT " + "".join(f"/F1 {size} Tf 1 0 0 1 {x} {y} Tm ({words}) Tj " for x, y, size, words in lines) + "ET"


def test_columns_that_were_drawn_line_by_line_are_read_one_after_the_other(tmp_path):
    rows = [(40, 740, 12, "A title that runs over both of the columns of this page, from one edge to the other")]
    for n in range(12):
        rows += [(40, 700 - 16 * n, 12, f"{LEFT[n % 3]} {n}"), (320, 700 - 16 * n, 12, f"{RIGHT[n % 3]} {n}")]
    (document,), _ = read(saved(tmp_path, "a.pdf", made(drawn(rows))))
    lines = [line.strip() for line in document.text.split("\n")]
    assert lines[0].startswith("A title")
    assert lines[1:13] == [f"{LEFT[n % 3]} {n}" for n in range(12)]
    assert lines[13:25] == [f"{RIGHT[n % 3]} {n}" for n in range(12)]


def test_a_table_of_two_columns_keeps_its_rows(tmp_path):
    rows = []
    for n in range(14):
        name = f"Item {n}" if n % 4 else "A long name of an item on sale"
        rows += [(40, 700 - 16 * n, 12, name), (420, 700 - 16 * n, 12, f"{n}.00")]
    more = "Some more words so that the page is long enough to be looked at, because short pages are not" + " x" * 40
    (document,), _ = read(saved(tmp_path, "a.pdf", made(drawn([*rows, (40, 400, 12, more)]))))
    assert "Item 5 5.00" in " ".join(document.text.split())


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("ineffi\ufffe\ncient ways", "inefficient ways"), ("ineffi-\ncient ways", "inefficient ways"),
        ("Lucene\ufffe\nBM25 here", "Lucene-BM25 here"),
        ("a dual\ufffe\nencoder or dual-encoder", "a dual-encoder or dual-encoder"),
        ("state\u00ad\nment", "statement"), ("covid-\n19 and", "covid-19 and"), ("a - b\n- c", "a - b\n- c"),
    ],
)  # fmt: skip
def test_words_broken_at_a_lines_end_are_joined_and_hyphens_that_belong_stay(page, text):
    assert join_words([page]) == [text]


def test_running_heads_stay_once_and_page_numbers_go():
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
def test_what_may_be_content_stays(pages):
    assert without_furniture(pages) == pages


def test_pages_that_are_pictures_are_named(tmp_path):
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


def test_a_raised_digit_behind_a_number_is_no_digit_of_it(tmp_path):
    """The mark of a footnote makes no other figure; numbers that are set in one size stay whole."""
    stream = "BT /F1 12 Tf 1 0 0 1 40 700 Tm (8,935,112) Tj /F1 7 Tf 5 Ts (3) Tj 0 Ts /F1 12 Tf ( people and 2024 cars) Tj ET"
    (document,), _ = read(saved(tmp_path, "a.pdf", made(stream)))
    assert document.text.split() == ["8,935,112", "3", "people", "and", "2024", "cars"]


@pytest.mark.parametrize(
    "title",
    ["(anonymous)", "Untitled document", "Slide 1", "PowerPoint Presentation", "Microsoft Word - a.doc", "x.pdf"],
)
def test_titles_that_programs_put_into_every_file_are_none(title):
    assert useful_title(title) == ""
    assert useful_title("Anonymous  sources of a book") == "Anonymous sources of a book"


def test_remarks_come_after_the_words_of_their_page_with_their_author(tmp_path):
    box = "/Rect [10 10 30 30]"
    notes = [
        f"<< /Type /Annot /Subtype /Text {box} /Contents (Please check this) /T (Ada) >>",
        f"<< /Type /Annot /Subtype /Highlight {box} /Contents (Good point) >>",
        f"<< /Type /Annot /Subtype /Popup {box} /Contents (not read twice) >>",
    ]
    (document,), _ = read(saved(tmp_path, "a.pdf", made(drawn([(40, 700, 12, "Words of the page")]), notes)))
    assert document.text == "Words of the page\n\nAda: Please check this\nGood point"


def test_filled_fields_are_read_with_their_names_and_empty_ones_are_not(tmp_path):
    kind = "/Type /Annot /Subtype /Widget /Rect [10 10 90 30]"
    fields = [
        f"<< {kind} /FT /Tx /T (f1) /TU (Name) /V (Ada Lovelace) >>",
        f"<< {kind} /FT /Tx /T (Town) /V () >>",
        f"<< {kind} /FT /Btn /T (Member) /V /Yes /AS /Yes /AP << /N << /Yes 6 0 R >> >> >>",
        f"<< {kind} /FT /Btn /T (Quit) /V /Off /AS /Off /AP << /N << /Yes 6 0 R >> >> >>",
    ]
    (document,), _ = read(saved(tmp_path, "a.pdf", made(drawn([(40, 700, 12, "Form")]), fields, form=True)))
    assert document.text == "Form\n\nName: Ada Lovelace\nMember: Yes"


def test_a_file_that_is_pinned_to_a_page_is_a_document_of_its_own(tmp_path):
    file = "<< /Type /Filespec /F (n.txt) /EF << /F 6 0 R >> >>"
    pin = f"<< /Type /Annot /Subtype /FileAttachment /Rect [10 10 30 30] /FS {file} >>"
    documents, _ = read(saved(tmp_path, "a.pdf", made(drawn([(40, 700, 12, "Page")]), [pin])))
    assert sorted((d.path.rpartition("/")[2], d.text) for d in documents) == [
        ("a.pdf", "Page"),
        ("n.txt", "pinned here"),
    ]


def test_a_pinned_file_that_lies_elsewhere_is_told_and_its_page_is_read(tmp_path):
    pin = "<< /Type /Annot /Subtype /FileAttachment /Rect [10 10 30 30] /FS << /Type /Filespec /F (n.txt) >> >>"
    (document,), (told,) = read(saved(tmp_path, "a.pdf", made(drawn([(40, 700, 12, "Page")]), [pin])))
    assert document.text == "Page"
    assert "'n.txt'" in told.reason


PAGES = ["First page of four words\nGoals\nwe want this", "", "Third page\nhas two lines"]


def test_bookmarks_are_sections_where_their_title_stands(tmp_path):
    file = write_files(tmp_path, {"a.pdf": pdf(PAGES, [("Goals", 0), ("Absent", 2)])}) / "a.pdf"
    ((_, chunks),) = cut_file(found(file), FileRules(), count_words, budget=16)
    assert [(c.section, c.text.split("\n")[0]) for c in chunks] == [
        ("", "First page of four words"), ("Goals", "Goals"), ("Absent", "Third page"),
    ]  # fmt: skip


def test_a_pdf_is_known_by_its_content(tmp_path):
    file = write_files(tmp_path, {"a.txt": pdf(["hello there"])}) / "a.txt"
    assert documents(file)[0].text == "hello there"
