"""PDF, letter by letter: spaces, ligatures, raised digits, the order of the lines; title, remarks, fields, pinned files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from reader_files import read, saved

from workbench.ingest.readers.pdf_letters import Letter, Line, lines_of, out_of_order, top_down
from workbench.ingest.readers.pdf_text import Box, without_furniture
from workbench.ingest.titles import said_title


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


def set_apart(words: str, gap: float, guesses: Sequence[int] = ()) -> list[Letter]:
    """Letters of width 6 in a line of height 10; a guessed space, of no width, before those at these places."""
    letters: list[Letter] = []
    x = 0.0
    for place, word in enumerate(words):
        if place in guesses:
            letters.append(Letter(" ", Box(x, 0, x, 0), True))
        letters.append(Letter(word, Box(x, 0, x + 6, 10), False))
        x += 6 + gap
    return letters


def test_guessed_spaces_inside_a_spaced_out_word_go_and_drawn_ones_stay() -> None:
    """So is the text laid out that recognition puts under a scan."""
    (line,) = lines_of(set_apart("North America", 2.5, guesses=(4, 12)), spaced=True)
    assert line.text == "North America"


def test_a_guessed_space_that_is_wider_than_the_gaps_between_letters_stays() -> None:
    letters = set_apart("North", 0.3)
    letters += [Letter(" ", Box(32, 0, 32, 0), True)]
    letters += [Letter(c, Box(36 + 6.3 * n, 0, 42 + 6.3 * n, 10), False) for n, c in enumerate("Sea")]
    assert lines_of(letters, spaced=True)[0].text == "North Sea"


def test_the_ligature_of_lam_and_alef_and_vowel_marks_come_in_the_order_of_writing() -> None:
    """PDFium gives the two letters of one glyph the wrong way round, and the mark before its letter, behind a space."""
    glyph = Box(20, 0, 26, 10)
    alone = [
        Letter("\u0628", Box(30, 0, 36, 10), False),
        Letter("\u0627", glyph, False),
        Letter("\u0644", glyph, False),
    ]
    assert lines_of(alone, spaced=False)[0].text == "\u0628\u0644\u0627"
    marked = [
        Letter("\u064a", Box(30, 0, 36, 10), False), Letter(" ", Box(29, 0, 29, 0), True),
        Letter("\u064b", Box(21, 8, 23, 10), False), Letter("\u0636", glyph, False),
    ]  # fmt: skip
    assert lines_of(marked, spaced=False)[0].text == "\u064a\u0636\u064b"


def test_letters_of_two_glyphs_keep_their_order() -> None:
    """The article, alef before lam, is no ligature."""
    article = [Letter("\u0627", Box(26, 0, 30, 10), False), Letter("\u0644", Box(20, 0, 25, 10), False)]
    assert lines_of(article, spaced=False)[0].text == "\u0627\u0644"


def test_a_raised_piece_belongs_to_its_line() -> None:
    letters = [*set_apart("size", 0.3), Letter("\n", Box(0, 0, 0, 0), True), Letter("i", Box(26, -3, 28, 4), False)]
    assert [line.text for line in lines_of(letters, spaced=False)] == ["sizei"]


def test_lines_drawn_after_what_stands_below_them_come_before_it() -> None:
    """A form: its fields are drawn first, then its heads; each line keeps its words."""
    heads = [(40, 740, 16, "Repair shop of the village"), (40, 700, 10, "Customer"), (300, 700, 10, "Vehicle")]
    fields = [(40, 680 - 15 * n, 10, f"Field {n}") for n in range(4)] + [(300, 680, 10, "Model T")]
    boxes = [Box(x, y, x + 60, y + 10) for x, y, _, _ in (*fields, *heads)]
    assert out_of_order(boxes)
    assert not out_of_order([Box(x, y, x + 60, y + 10) for x, y, _, _ in (*heads, *fields)])


def test_the_page_of_a_form_is_read_from_top_to_bottom(tmp_path: Path) -> None:
    rows = [(40, 680 - 15 * n, 10, f"Field {n}") for n in range(4)] + [
        (40, 740, 10, "The shop"),
        (40, 710, 10, "Customer"),
    ]
    (document,), _ = read(saved(tmp_path, "a.pdf", made(drawn(rows))))
    assert document.text.split("\n") == ["The shop", "Customer", *(f"Field {n}" for n in range(4))]


def test_what_lies_outside_of_the_page_is_no_text_of_it(tmp_path: Path) -> None:
    """Marks of the printer beside a page that was cut out of a larger sheet."""
    rows = [(40, 680, 10, "Field"), (40, 740, 10, "The shop"), (40, 5000, 10, "Sheet 7")]
    (document,), _ = read(saved(tmp_path, "a.pdf", made(drawn(rows))))
    assert document.text == "The shop\nField"


def test_a_page_that_is_set_askew_is_read_as_it_was_drawn(tmp_path: Path) -> None:
    """The boxes of slanted lines lie over one another and say nothing about their order."""
    words = [(40, 300, "Second things"), (40, 280, "third things"), (40, 500, "First things")]
    stream = "".join(f"BT /F1 10 Tf 0.94 0.34 -0.34 0.94 {x} {y} Tm ({w}) Tj ET " for x, y, w in words)
    (document,), _ = read(saved(tmp_path, "a.pdf", made(stream)))
    assert document.text.split("\n")[0] == "Second things"


def test_two_columns_drawn_one_after_the_other_are_left_as_they_are() -> None:
    """The second column begins above the end of the first, and to its right."""
    columns = [Box(x, y, x + 200, y + 10) for x in (40, 300) for y in range(700, 500, -15)]
    assert not out_of_order(columns)
    lines = [Line(box, str(n)) for n, box in enumerate(columns)]
    assert top_down(lines) == lines


def test_a_raised_digit_behind_a_number_is_no_digit_of_it(tmp_path: Path) -> None:
    """The mark of a footnote makes no other figure; numbers that are set in one size stay whole."""
    stream = "BT /F1 12 Tf 1 0 0 1 40 700 Tm (8,935,112) Tj /F1 7 Tf 5 Ts (3) Tj 0 Ts /F1 12 Tf ( people and 2024 cars) Tj ET"
    (document,), _ = read(saved(tmp_path, "a.pdf", made(stream)))
    assert document.text.split() == ["8,935,112", "3", "people", "and", "2024", "cars"]


def test_the_largest_line_near_the_top_is_the_title_of_a_pdf_without_one(tmp_path: Path) -> None:
    body = [(40, 600 - 14 * n, 10, f"A line of the body of this report with its number {n}") for n in range(12)]
    head = (40, 700, 22, "Harbours of the North")
    (document,), _ = read(saved(tmp_path, "a.pdf", made(drawn([head, *body]))))
    assert document.title == "Harbours of the North"
    (document,), _ = read(saved(tmp_path, "b.pdf", made(drawn([*body, (40, 100, 22, "Sold out by now")]))))
    assert document.title == "b"


@pytest.mark.parametrize(
    "title",
    ["(anonymous)", "Untitled document", "Slide 1", "PowerPoint Presentation", "Microsoft Word - a.doc", "x.pdf"],
)
def test_titles_that_programs_put_into_every_file_are_none(title: str) -> None:
    assert said_title(title) == ""
    assert said_title("Anonymous  sources of a book") == "Anonymous sources of a book"


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


def test_a_drawing_of_many_labels_is_left_as_it_was_drawn() -> None:
    """Each line would be compared with each: some minutes for what has no order."""
    boxes = [Box(0, float(n), 9, n + 0.5) for n in range(3001)]
    assert out_of_order(boxes[:3000])
    assert not out_of_order(boxes)


def test_the_number_at_a_pages_foot_goes_with_the_words_beside_it() -> None:
    """However few they are, after the first page; at the head, `Step 3` may be a heading."""
    pages = [f"Body {n * 7} words\nmore\nand more\nGeo {n}" for n in range(1, 8)]
    assert without_furniture(pages) == [
        pages[0], *(f"Body {n * 7} words\nmore\nand more" for n in range(2, 8)),
    ]  # fmt: skip
