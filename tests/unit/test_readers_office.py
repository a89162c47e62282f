"""Office files: their words in reading order, their shape, and where each piece stands in the original."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from file_makers import count_words, cut_file, docx, epub, found, odt, pptx, read, saved, xlsx, zipped

from workbench.ingest import FileRules, ReadError, read_documents
from workbench.ingest.readers.package import formatted, plain_number
from workbench.ingest.readers.sheets import format_kind, shown_number
from workbench.locators import locate
from workbench.records import Chunk
from workbench.reports import FileStatus


def where(document: object, words: str) -> str:
    start = document.text.index(words)  # type: ignore[attr-defined]
    return locate(document.places, start, start + len(words))  # type: ignore[attr-defined]


def chunks_of(file: Path, budget: int = 40) -> list[Chunk]:
    items = cut_file(found(file), FileRules(), count_words, budget)
    return [chunk for item in items if isinstance(item, tuple) for chunk in item[1]]


def test_a_word_file_keeps_headings_paragraphs_and_tables_with_their_places(tmp_path: Path) -> None:
    """Paragraphs are counted outside of tables, rows inside theirs, as the library counts them."""
    rows = [["Name", "Town"], ["Ada", "London"], ["Émilie", "Paris"]]
    words = [
        ("Title", "Report"),
        ("Heading 1", "Scope"),
        ("", "First words."),
        ("List Bullet", "an item"),
        ("", "Last words."),
    ]
    (document,), _ = read(saved(tmp_path, "a.docx", docx(words, rows)))
    assert document.title == "Report"
    assert "# Scope\n\nFirst words.\n" in document.text
    assert "- an item\n" in document.text
    assert "Name | Town\nAda | London\nÉmilie | Paris\n" in document.text
    assert where(document, "First words.") == "paragraph=3"
    assert where(document, "Émilie | Paris") == "table=1&row=3"
    assert where(document, "Ada | London\nÉmilie") == "table=1&row=2-3"
    assert document.type == "word"


def test_notes_comments_text_boxes_and_headers_of_a_word_file_are_read_and_deleted_text_is_not(tmp_path: Path) -> None:
    ns = (
        'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
        ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    )
    box = "<w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent>"
    body = (
        f"<w:document {ns}><w:body><w:p><w:r><w:t>kept</w:t></w:r><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del>"
        f"<w:ins><w:r><w:t xml:space='preserve'> inserted</w:t></w:r></w:ins><w:r><mc:AlternateContent><mc:Choice>{box}"
        f"</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
        "<w:sdt><w:sdtContent><w:p><w:r><w:t>in a control</w:t></w:r></w:p></w:sdtContent></w:sdt></w:body></w:document>"
    )
    kinds = ("footnotes", "comments", "header")
    rels = "".join(f'<Relationship Id="r{n}" Type="x/{kind}" Target="{kind}1.xml"/>' for n, kind in enumerate(kinds))
    note = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>"
    files = {
        "[Content_Types].xml": "<Types/>",
        "word/document.xml": body,
        "word/_rels/document.xml.rels": f"<Relationships>{rels}</Relationships>",
        "word/footnotes1.xml": f'<w:footnotes {ns}><w:footnote w:id="2">{note.format("a note")}</w:footnote></w:footnotes>',
        "word/comments1.xml": f'<w:comments {ns}><w:comment w:id="7" w:author="Ada">{note.format("hm")}</w:comment></w:comments>',
        "word/header1.xml": f"<w:hdr {ns}>{note.format('on every page')}</w:hdr>",
    }
    (document,), problems = read(saved(tmp_path, "a.docx", zipped(files)))
    assert document.text == (
        "kept inserted\n\nin a box\n\nin a control\n\na note\n\nAda: hm\n\non every page\n"
    )  # fmt: skip
    assert [where(document, w) for w in ("a note", "Ada: hm", "on every")] == ["footnote=2", "comment=7", "header=1"]
    assert not problems


def test_a_sheets_rows_are_cited_as_the_program_numbers_them_and_chunks_carry_the_header(tmp_path: Path) -> None:
    """Rows 1 and 2 are empty; the header stands in the context of every chunk of rows and not in their text."""
    rows: list[list[object]] = [[None], [None], [None, "Product", "Sold"]]
    rows += [[None, f"thing {n} with a long name of many words", n] for n in range(40)]
    file = saved(tmp_path, "a.xlsx", xlsx({"Sales & more": rows, "Other": [["x", "y"], [1, 2.5]]}))
    (document,), _ = read(file)
    assert where(document, "thing 7 ") == "sheet=Sales %26 more&row=11"
    chunks = [c for c in chunks_of(file) if "Sales" in c.locator]
    assert len(chunks) > 3
    for chunk in chunks[1:]:
        assert chunk.context.endswith("Product | Sold")
        assert "Product" not in chunk.text
        low, high = (int(n) for n in chunk.locator.rpartition("=")[2].split("-"))
        assert chunk.text.startswith(f"thing {low - 4} ")
        assert chunk.text.rstrip().split("\n")[-1].startswith(f"thing {high - 4} ")
    assert "1 | 2.5" in document.text


@pytest.mark.parametrize(
    ("number", "shown", "text"),
    [
        (45292.0, "date", "2024-01-01"), (0.5, "time", "12:00:00"), (45292.75, "datetime", "2024-01-01 18:00:00"),
        (0.155, "percent", "15.5%"), (0.1 + 0.2, "", "0.3"), (12.0, "", "12"), (1e300, "", "1e+300"),
    ],
)  # fmt: skip
def test_numbers_are_read_as_sheets_show_them(number: float, shown: str, text: str) -> None:
    assert shown_number(number, shown) == text


def test_formats_of_numbers_are_told_apart() -> None:
    own = {
        "164": "yyyy\\-mm\\-dd",
        "165": "#,##0.00",
        "166": "0.0%",
        "167": "[h]:mm",
        "168": '"day" 0',
        "169": "dd/mm/yyyy hh:mm",
    }
    assert [format_kind(k, own) for k in own] == ["date", "", "percent", "duration", 'number "day" 0', "datetime"]
    assert [format_kind(k, {}) for k in ("0", "9", "14", "22", "x")] == ["", "percent", "date", "datetime", ""]
    assert plain_number(-3.0) == "-3"


def test_one_cell_far_out_makes_no_long_line(tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "first", "last"
    stream = io.BytesIO()
    book.save(stream)
    (document,), _ = read(saved(tmp_path, "a.xlsx", stream.getvalue()))
    assert len(document.text) < 400
    assert where(document, "last") == "sheet=Sheet&row=1048576"


def test_a_books_chapters_come_in_the_order_of_its_spine(tmp_path: Path) -> None:
    page = "<html><body><h1>{0}</h1><p>words of {0}</p></body></html>"
    file = saved(tmp_path, "a.epub", epub({"z.xhtml": page.format("One"), "a.xhtml": page.format("Two")}, "My book"))
    (document,), _ = read(file)
    assert document.text.index("words of One") < document.text.index("words of Two")
    assert where(document, "words of Two") == "part=OEBPS/a.xhtml"
    assert (document.title, document.language, document.type) == ("My book", "en", "book")


def test_a_book_with_copy_protection_is_named_as_such(tmp_path: Path) -> None:
    data = epub({"a.xhtml": "garbage"})
    stream = io.BytesIO(data)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("META-INF/encryption.xml", '<encryption><CipherReference URI="OEBPS/a.xhtml"/></encryption>')
    with pytest.raises(ReadError, match="protected against copying"):
        read(saved(tmp_path, "a.epub", stream.getvalue()))


def test_numbers_of_lists_are_written_as_word_shows_them() -> None:
    kinds = ("decimal", "lowerLetter", "upperRoman", "decimalZero", "chineseCounting")
    assert [formatted(28, kind) for kind in kinds] == ["28", "bb", "XXVIII", "28", "28"]


@pytest.mark.parametrize("cut", [30, 200, 2000])
@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx", "odt", "epub"])
def test_a_file_that_ends_too_early_is_named_as_broken(tmp_path: Path, kind: str, cut: int) -> None:
    data = {
        "docx": docx([("", "words")]), "pptx": pptx([("a", "b", "")]), "xlsx": xlsx({"S": [["a"]]}),
        "odt": odt([(0, "words")]), "epub": epub({"a.xhtml": "<p>words</p>"}),
    }[kind]  # fmt: skip
    with pytest.raises(ReadError, match="broken") as caught:
        list(read_documents(found(saved(tmp_path, f"a.{kind}", data[: min(cut, len(data) - 60)])), FileRules()))
    assert caught.value.status is FileStatus.FAILED
    assert caught.value.remedy


def test_entities_of_a_package_are_not_expanded(tmp_path: Path) -> None:
    secret = saved(tmp_path, "secret.txt", "SECRET")
    body = (
        f'<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY s SYSTEM "{secret}">]>'
        '<w:document xmlns:w="urn:w"><w:body><w:p><w:r><w:t>before &b;&s; after</w:t></w:r></w:p></w:body></w:document>'
    )
    (document,), _ = read(
        saved(tmp_path, "a.docx", zipped({"[Content_Types].xml": "<Types/>", "word/document.xml": body}))
    )
    assert "SECRET" not in document.text
    assert "aaa" not in document.text
