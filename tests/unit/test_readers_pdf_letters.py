"""PDF: raised digits, titles, remarks, fields, pinned files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from reader_files import read, saved

from workbench.ingest.outline import useful_title
from workbench.ingest.readers.pdf import without_furniture


def made(stream: str, annotations: Sequence[str] = (), form: bool = False) -> bytes:
    """A page with this content, and what is written onto it."""
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
    """Page content: (x, y, size, words), drawn in this order."""
    return "BT " + "".join(f"/F1 {size} Tf 1 0 0 1 {x} {y} Tm ({words}) Tj " for x, y, size, words in lines) + "ET"


def test_a_raised_digit_behind_a_number_is_no_digit_of_it(tmp_path: Path) -> None:
    """The mark of a footnote makes no other figure; numbers that are set in one size stay whole."""
    stream = "BT /F1 12 Tf 1 0 0 1 40 700 Tm (8,935,112) Tj /F1 7 Tf 5 Ts (3) Tj 0 Ts /F1 12 Tf ( people and 2024 cars) Tj ET"
    (document,), _ = read(saved(tmp_path, "a.pdf", made(stream)))
    assert document.text.split() == ["8,935,112", "3", "people", "and", "2024", "cars"]


@pytest.mark.parametrize(
    "title",
    ["(anonymous)", "Untitled document", "Slide 1", "PowerPoint Presentation", "Microsoft Word - a.doc", "x.pdf"],
)
def test_titles_that_programs_put_into_every_file_are_none(title: str) -> None:
    assert useful_title(title) == ""
    assert useful_title("Anonymous  sources of a book") == "Anonymous sources of a book"


def test_remarks_come_after_the_words_of_their_page_with_their_author(tmp_path: Path) -> None:
    box = "/Rect [10 10 30 30]"
    notes = [
        f"<< /Type /Annot /Subtype /Text {box} /Contents (Please check this) /T (Ada) >>",
        f"<< /Type /Annot /Subtype /Highlight {box} /Contents (Good point) >>",
        f"<< /Type /Annot /Subtype /Popup {box} /Contents (not read twice) >>",
    ]
    (document,), _ = read(saved(tmp_path, "a.pdf", made(drawn([(40, 700, 12, "Words of the page")]), notes)))
    assert document.text == "Words of the page\n\nAda: Please check this\nGood point"


def test_filled_fields_are_read_with_their_names_and_empty_ones_are_not(tmp_path: Path) -> None:
    kind = "/Type /Annot /Subtype /Widget /Rect [10 10 90 30]"
    fields = [
        f"<< {kind} /FT /Tx /T (f1) /TU (Name) /V (Ada Lovelace) >>",
        f"<< {kind} /FT /Tx /T (Town) /V () >>",
        f"<< {kind} /FT /Btn /T (Member) /V /Yes /AS /Yes /AP << /N << /Yes 6 0 R >> >> >>",
        f"<< {kind} /FT /Btn /T (Quit) /V /Off /AS /Off /AP << /N << /Yes 6 0 R >> >> >>",
    ]
    (document,), _ = read(saved(tmp_path, "a.pdf", made(drawn([(40, 700, 12, "Form")]), fields, form=True)))
    assert document.text == "Form\n\nName: Ada Lovelace\nMember: Yes"


def test_a_file_that_is_pinned_to_a_page_is_a_document_of_its_own(tmp_path: Path) -> None:
    file = "<< /Type /Filespec /F (n.txt) /EF << /F 6 0 R >> >>"
    pin = f"<< /Type /Annot /Subtype /FileAttachment /Rect [10 10 30 30] /FS {file} >>"
    documents, _ = read(saved(tmp_path, "a.pdf", made(drawn([(40, 700, 12, "Page")]), [pin])))
    assert sorted((d.path.rpartition("/")[2], d.text) for d in documents) == [
        ("a.pdf", "Page"),
        ("n.txt", "pinned here"),
    ]


def test_a_pinned_file_that_lies_elsewhere_is_told_and_its_page_is_read(tmp_path: Path) -> None:
    pin = "<< /Type /Annot /Subtype /FileAttachment /Rect [10 10 30 30] /FS << /Type /Filespec /F (n.txt) >> >>"
    (document,), (told,) = read(saved(tmp_path, "a.pdf", made(drawn([(40, 700, 12, "Page")]), [pin])))
    assert document.text == "Page"
    assert "'n.txt'" in told.reason


def test_the_number_at_a_pages_foot_goes_with_the_words_beside_it() -> None:
    """However few they are, after the first page; at the head, `Step 3` may be a heading."""
    pages = [f"Body {n * 7} words\nmore\nand more\nGeo {n}" for n in range(1, 8)]
    assert without_furniture(pages) == [
        pages[0], *(f"Body {n * 7} words\nmore\nand more" for n in range(2, 8)),
    ]  # fmt: skip
