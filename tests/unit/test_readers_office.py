"""Office files: their words in reading order, their shape, and where each piece stands in the original."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from file_makers import chunks_of, docx, epub, found, ods, odt, pptx, read, saved, where, xlsx, zipped

from workbench.ingest.errors import ReadError
from workbench.ingest.read import read_documents
from workbench.ingest.readers.package import formatted
from workbench.ingest.rules import FileRules
from workbench.locators import locate
from workbench.records import FileStatus


def test_a_word_file_keeps_headings_paragraphs_and_tables_with_their_places(tmp_path):
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


def test_notes_comments_text_boxes_and_headers_of_a_word_file_are_read_and_deleted_text_is_not(tmp_path):
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


def test_a_sheets_rows_are_cited_as_the_program_numbers_them_and_chunks_carry_the_header(tmp_path):
    """Rows 1 and 2 are empty; the header stands in the context of every chunk of rows and not in their text."""
    rows: list[list[object]] = [[None], [None], [None, "Product", "Sold"]]
    rows += [[None, f"thing {n} with a long name of many words", n] for n in range(40)]
    file = saved(tmp_path, "a.xlsx", xlsx({"Sales & more": rows, "Other": [["x", "y"], [1, 2.5]]}))
    (document,), _ = read(file)
    assert where(document, "thing 7 ") == "sheet=Sales %26 more&row=11"
    chunks = [c for c in chunks_of(file, 40) if "Sales" in c.locator]
    assert len(chunks) > 3
    for chunk in chunks[1:]:
        assert chunk.context.endswith("Product | Sold")
        assert "Product" not in chunk.text
        low, high = (int(n) for n in chunk.locator.rpartition("=")[2].split("-"))
        assert chunk.text.startswith(f"thing {low - 4} ")
        assert chunk.text.rstrip().split("\n")[-1].startswith(f"thing {high - 4} ")
    assert "1 | 2.5" in document.text


def test_one_cell_far_out_makes_no_long_line(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "first", "last"
    stream = io.BytesIO()
    book.save(stream)
    (document,), _ = read(saved(tmp_path, "a.xlsx", stream.getvalue()))
    assert len(document.text) < 400
    assert where(document, "last") == "sheet=Sheet&row=1048576"


def test_a_books_chapters_come_in_the_order_of_its_spine(tmp_path):
    page = "<html><body><h1>{0}</h1><p>words of {0}</p></body></html>"
    file = saved(tmp_path, "a.epub", epub({"z.xhtml": page.format("One"), "a.xhtml": page.format("Two")}, "My book"))
    (document,), _ = read(file)
    assert document.text.index("words of One") < document.text.index("words of Two")
    assert where(document, "words of Two") == "part=OEBPS/a.xhtml"
    assert (document.title, document.language, document.type) == ("My book", "en", "book")


def test_numbers_of_lists_are_written_as_word_shows_them():
    kinds = ("decimal", "lowerLetter", "upperRoman", "decimalZero", "chineseCounting")
    assert [formatted(28, kind) for kind in kinds] == ["28", "bb", "XXVIII", "28", "28"]


@pytest.mark.parametrize("cut", [30, 200, 2000])
@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx", "odt", "epub"])
def test_a_file_that_ends_too_early_is_named_as_broken(tmp_path, kind, cut):
    data = {
        "docx": docx([("", "words")]), "pptx": pptx([("a", "b", "")]), "xlsx": xlsx({"S": [["a"]]}),
        "odt": odt([(0, "words")]), "epub": epub({"a.xhtml": "<p>words</p>"}),
    }[kind]  # fmt: skip
    with pytest.raises(ReadError, match="broken") as caught:
        list(read_documents(found(saved(tmp_path, f"a.{kind}", data[: min(cut, len(data) - 60)])), FileRules()))
    assert caught.value.status is FileStatus.FAILED
    assert caught.value.remedy


def test_entities_of_a_package_are_not_expanded(tmp_path):
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


WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def changed(data: bytes, part: str, change: Callable[[str], str], more: dict[str, str] | None = None) -> bytes:
    """A package with one of its parts changed, and with more parts."""
    source = zipfile.ZipFile(io.BytesIO(data))
    files: dict[str, bytes | str] = {name: source.read(name) for name in source.namelist()}
    files[part] = change(source.read(part).decode("utf-8"))
    return zipped({**files, **(more or {})})


def word(body: str, parts: dict[str, str] | None = None) -> bytes:
    parts = parts or {}
    rels = "".join(f'<Relationship Id="r{n}" Type="x/{kind}" Target="{kind}.xml"/>' for n, kind in enumerate(parts))
    return zipped({
        "[Content_Types].xml": "<Types/>",
        "word/document.xml": f"<w:document {WORD}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": f"<Relationships>{rels}</Relationships>",
        **{f"word/{kind}.xml": words for kind, words in parts.items()},
    })  # fmt: skip


OPEN = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("style", "table"))


def styled(xml: str, styles: str) -> str:
    xml = xml.replace("<office:automatic-styles/>", "").replace(
        "<office:document-content ", f"<office:document-content {OPEN} ", 1
    )
    return xml.replace("<office:body>", f"<office:automatic-styles>{styles}</office:automatic-styles><office:body>")


def paragraph(words: str, properties: str = "", run: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:rPr>{run}</w:rPr><w:t>{words}</w:t></w:r></w:p>"


def sections(file: Path) -> list[tuple[str, str]]:
    return [(c.section, c.text.split("\n")[0]) for c in chunks_of(file)]


def test_a_level_that_was_left_out_of_a_numbered_list_counts_as_begun(tmp_path):
    levels = "".join(
        f'<w:lvl w:ilvl="{n}"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="{text}"/></w:lvl>'
        for n, text in enumerate(("%1.", "%1.%2.", "%1.%2.%3."))
    )
    numbering = f'<w:numbering {WORD}><w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
    numbering += '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>'
    body = "".join(
        paragraph(words, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>')
        for level, words in ((0, "a"), (2, "b"), (1, "c"))
    )
    (document,), _ = read(saved(tmp_path, "a.docx", word(body, {"numbering": numbering})))
    assert [line.strip() for line in document.text.strip().split("\n")] == ["1. a", "1.1.1. b", "1.2. c"]


def test_a_row_that_starts_late_keeps_its_columns(tmp_path):
    def cells(*words: str) -> str:
        return "".join(f"<w:tc>{paragraph(w)}</w:tc>" for w in words)

    rows = (
        f"<w:tr>{cells('Name', 'Town')}</w:tr><w:tr><w:trPr><w:gridBefore w:val='1'/></w:trPr>{cells('London')}</w:tr>"
    )
    (document,), _ = read(saved(tmp_path, "a.docx", word(f"<w:tbl>{rows}</w:tbl>")))
    assert document.text == "Name | Town\n| London\n"


def test_notes_and_headers_stand_under_no_heading_of_the_body_and_page_numbers_are_none(tmp_path):
    styles = f'<w:styles {WORD}><w:style w:styleId="H"><w:name w:val="heading 1"/></w:style></w:styles>'
    head = f"<w:hdr {WORD}>{paragraph('On every page')}</w:hdr>"
    foot = f"<w:ftr {WORD}>{paragraph('17')}</w:ftr>"
    body = paragraph("Last chapter", '<w:pStyle w:val="H"/>') + paragraph("words")
    file = saved(tmp_path, "a.docx", word(body, {"styles": styles, "header": head, "footer": foot}))
    assert sections(file) == [("Last chapter", "# Last chapter"), ("", "On every page")]


def test_text_that_word_does_not_show_is_left_out_and_said_to_be_there(tmp_path):
    file = saved(tmp_path, "a.docx", word(paragraph("seen") + paragraph("unseen", run="<w:vanish/>")))
    (document,), _ = read(file)
    assert document.text == "seen\n"
    assert document.metadata["hidden"] == "text in 1 places, left out"
    (plain,), _ = read(saved(tmp_path, "b.docx", docx([("", "seen")])))
    assert "hidden" not in plain.metadata


def test_an_office_file_that_was_saved_as_xml_is_read_as_one(tmp_path):
    source = zipfile.ZipFile(io.BytesIO(docx([("Heading 1", "Scope"), ("", "First words.")])))

    def part(name: str) -> str:
        words = re.sub(r"<\?xml[^>]*\?>", "", source.read(name).decode("utf-8"))
        return f'<pkg:part pkg:name="/{name}"><pkg:xmlData>{words}</pkg:xmlData></pkg:part>'

    names = ("_rels/.rels", "word/_rels/document.xml.rels", "word/document.xml", "word/styles.xml")
    broken = '<pkg:part pkg:name="/x.bin"><pkg:binaryData>?</pkg:binaryData></pkg:part>'
    mark = 'xmlns:pkg="http://schemas.microsoft.com/office/2006/xmlPackage"'
    text = f"<?xml version='1.0'?><pkg:package {mark}>{''.join(map(part, names))}{broken}</pkg:package>"
    (document,), problems = read(saved(tmp_path, "a.xml", text))
    assert (document.type, document.text, problems) == ("word", "# Scope\n\nFirst words.\n", [])
    assert locate(document.places, document.text.index("First"), len(document.text)) == "paragraph=2"


def test_a_table_in_a_text_box_has_no_bars_behind_its_last_words(tmp_path):
    row = f"<w:tr><w:tc>{paragraph('in a box')}</w:tc><w:tc>{paragraph('')}</w:tc></w:tr>"
    box = f"<w:p><w:r><w:txbxContent><w:tbl>{row}</w:tbl></w:txbxContent></w:r></w:p>"
    (document,), _ = read(saved(tmp_path, "a.docx", word(box)))
    assert document.text == "in a box\n"


def test_a_slide_without_a_title_is_not_put_under_the_title_of_the_one_before(tmp_path):
    file = saved(tmp_path, "a.pptx", pptx([("One", "alpha", ""), ("", "beta", "")]))
    assert sections(file) == [("One", "# One"), ("", "beta")]


def test_hidden_slides_are_read_and_said_to_be_hidden(tmp_path):
    data = changed(
        pptx([("One", "alpha", ""), ("Two", "beta", "")]), "ppt/slides/slide2.xml",
        lambda xml: xml.replace("<p:sld ", '<p:sld show="0" ', 1),
    )  # fmt: skip
    (document,), _ = read(saved(tmp_path, "a.pptx", data))
    assert "# Two (hidden slide)\n\nbeta" in document.text
    assert document.metadata["hidden"] == "slides 2"


def test_numbered_paragraphs_of_a_slide_have_their_numbers(tmp_path):
    numbered = '<a:pPr><a:buAutoNum type="alphaLcParenR" startAt="2"/></a:pPr>'
    data = changed(
        pptx([("One", "x\ny\nz", "")]), "ppt/slides/slide1.xml",
        lambda xml: re.sub(r"<a:p>(?=<a:r><a:t>[xy]<)", f"<a:p>{numbered}", xml),
    )  # fmt: skip
    (document,), _ = read(saved(tmp_path, "a.pptx", data))
    assert document.text == "# One\n\nb) x\nc) y\nz\n"


def test_a_charts_series_are_read_with_their_categories_and_numbers(tmp_path):
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE

    deck = Presentation()
    chart = CategoryChartData()
    chart.categories = ["North", "South"]
    chart.add_series("Harvest", (1.5, 20))
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, 4_000_000, 3_000_000, chart)
    deck.save(str(tmp_path / "a.pptx"))
    documents, _ = read(tmp_path / "a.pptx")
    assert "Harvest: North 1.5, South 20" in documents[0].text


def test_a_sheet_that_breaks_off_keeps_the_rows_before(tmp_path):
    book = xlsx({"Sales": [["a", "b"], [1, 2], [], ["c", "d"], [3, 4]]})
    data = changed(book, "xl/worksheets/sheet1.xml", lambda part: part[: part.rindex("<row")])
    (document,), problems = read(saved(tmp_path, "a.xlsx", data))
    assert "a | b\n1 | 2" in document.text
    assert len(problems) == 1


def test_text_boxes_on_a_sheet_are_read_after_its_rows(tmp_path):
    spaces = 'xmlns:x="urn:x" xmlns:a="urn:a"'
    words = "<a:p><a:r><a:t>Not </a:t></a:r><a:r><a:t>audited</a:t></a:r></a:p>"
    box = f"<x:wsDr {spaces}><x:sp><x:txBody>{words}</x:txBody></x:sp></x:wsDr>"
    rels = '<Relationships><Relationship Id="r1" Type="x/drawing" Target="../drawings/drawing1.xml"/></Relationships>'
    parts = {"xl/drawings/drawing1.xml": box, "xl/worksheets/_rels/sheet1.xml.rels": rels}
    data = changed(xlsx({"Sales": [["a", "b"], [1, 2]]}), "xl/worksheets/sheet1.xml", str, parts)
    (document,), _ = read(saved(tmp_path, "a.xlsx", data))
    assert document.text.endswith("1 | 2\n\nNot audited\n")
    assert locate(document.places, document.text.index("Not"), len(document.text)) == "sheet=Sales"


def test_hidden_sheets_rows_and_columns_are_read_and_said_to_be_hidden(tmp_path):
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(xlsx({"Sales": [["a", "b"], [1, 2]], "Costs": [["c", "d"], [3, 4]]})))
    book["Costs"].sheet_state = "veryHidden"
    book["Sales"].row_dimensions[2].hidden = True
    book.save(tmp_path / "a.xlsx")
    (document,), _ = read(tmp_path / "a.xlsx")
    assert document.text == "# Sales\n\na | b\n1 | 2\n\n# Costs (hidden sheet)\n\nc | d\n3 | 4\n"
    assert document.metadata["hidden"] == "rows of Sales; sheet Costs"
    assert locate(document.places, document.text.index("3 |"), len(document.text)) == "sheet=Costs&row=2"


def test_numbered_lists_of_an_opendocument_text_have_their_numbers(tmp_path):
    """The second paragraph of an item has none; a list that goes on counts on; bullets stay bullets."""
    style = (
        '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-suffix="." style:num-format="1"/>'
        '<text:list-level-style-number text:level="2" style:num-suffix=")" style:num-format="a"/></text:list-style>'
    )

    def item(words: str, more: str = "") -> str:
        return f"<text:list-item><text:p>{words}</text:p>{more}</text:list-item>"

    inner = f"<text:list>{item('c')}</text:list>"
    lists = f'<text:list text:style-name="L">{item("a", "<text:p>more</text:p>")}{item("b", inner)}</text:list><text:p>x</text:p>'
    lists += f'<text:list text:style-name="L" text:continue-numbering="true">{item("d")}</text:list>'
    lists += f"<text:list>{item('e')}</text:list>"
    data = changed(
        odt([(0, "@")]), "content.xml",
        lambda xml: styled(xml.replace("<text:p>@</text:p>", lists), style),
    )  # fmt: skip
    (document,), _ = read(saved(tmp_path, "a.odt", data))
    assert [line for line in document.text.split("\n") if line] == [
        "1. a", "  more", "2. b", "  a) c", "x", "3. d", "- e",
    ]  # fmt: skip


def test_heads_and_feet_of_an_opendocument_text_come_once_at_its_end(tmp_path):
    master = "<style:master-page style:name='{}'><style:header><text:p>Minutes</text:p></style:header>"
    master += "<style:footer><text:p>3</text:p></style:footer></style:master-page>"
    data = changed(
        odt([(1, "Chapter"), (0, "words")]), "styles.xml",
        lambda xml: xml.replace("<office:document-styles ", f"<office:document-styles {OPEN} ").replace(
            "</office:document-styles>", f"{master.format('A')}{master.format('B')}</office:document-styles>"
        ),
    )  # fmt: skip
    file = saved(tmp_path, "a.odt", data)
    assert sections(file) == [("Chapter", "# Chapter"), ("", "Minutes")]
    (document,), _ = read(file)
    assert locate(document.places, document.text.index("Minutes"), len(document.text)) == "header=1"


def test_hidden_sheets_of_an_opendocument_workbook_are_said_to_be_hidden(tmp_path):
    style = (
        '<style:style style:name="h" style:family="table"><style:table-properties table:display="false"/></style:style>'
    )
    data = changed(
        ods({"Sales": [["a", "b"]], "Costs": [["c", "d"]]}), "content.xml",
        lambda xml: styled(xml, style).replace('table:name="Costs"', 'table:name="Costs" table:style-name="h"'),
    )  # fmt: skip
    (document,), _ = read(saved(tmp_path, "a.ods", data))
    assert "# Sales\n" in document.text
    assert "# Costs (hidden sheet)\n" in document.text
    assert document.metadata["hidden"] == "sheet Costs"


def test_a_star_inside_a_group_of_rtf_hides_nothing(tmp_path):
    """Only at a group's start does it mean that a reader may pass over what it does not know."""
    text = r"{\rtf1\ansi{\f0\*\cs7 The quick fox}{" + "\n" + r"\*\unknown not read}{\*\generator neither}\par}"
    (document,), _ = read(saved(tmp_path, "a.rtf", text))
    assert document.text == "The quick fox\n"


def test_an_office_file_as_xml_counts_for_what_may_be_unpacked(tmp_path, monkeypatch):
    """Each part carries all namespaces of the whole: a small file comes to many times its size."""
    mark = 'xmlns:pkg="http://schemas.microsoft.com/office/2006/xmlPackage"'
    names = " ".join(f'xmlns:n{n}="urn:a:name:space:of:some:length:{n}"' for n in range(300))
    part = '<pkg:part pkg:name="/word/{}.xml"><pkg:xmlData><a/></pkg:xmlData></pkg:part>'
    data = f"<pkg:package {mark} {names}>{''.join(part.format(n) for n in range(200))}</pkg:package>"
    monkeypatch.setenv("WORKBENCH_MAX_UNPACKED_MB", "1")
    with pytest.raises(ReadError, match="max_unpacked_mb"):
        read(saved(tmp_path, "a.xml", data))


@pytest.mark.parametrize(
    ("name", "data", "part"),
    [
        ("a.docx", docx([("", "One."), ("", "Two."), ("", "Three.")]), "word/document.xml"),
        ("a.odt", odt([(0, "One."), (0, "Two."), (0, "Three.")]), "content.xml"),
        ("a.pptx", pptx([("One.", "Two.", ""), ("Three.", "Four.", "")]), "ppt/slides/slide1.xml"),
    ],
)
def test_a_part_that_is_cut_short_is_named_while_the_rest_is_read(tmp_path, name, data, part):
    """Reading mends what it can; that words are missing must not be silent. A whole file, and a DOCTYPE, say nothing."""
    (whole,), nothing = read(saved(tmp_path, name, data))
    short = changed(data, part, lambda xml: xml[: xml.index("Two.")])
    (rest,), problems = read(saved(tmp_path, name, short))
    assert "One." in rest.text
    assert len(rest.text) < len(whole.text)
    assert [p.reason for p in problems] == [f"Its part {part} is not well-formed XML: words may be missing"]
    assert not nothing
    plain = changed(data, part, lambda xml: re.sub(r"^(<\?xml[^>]*\?>)?", r"\1<!DOCTYPE a>", xml, count=1))
    assert read(saved(tmp_path, name, plain))[1] == []
    own = changed(
        data, part, lambda xml: re.sub(r"^(<\?xml[^>]*\?>)?", r'\1<!DOCTYPE a [<!ENTITY e "x">]>', xml, count=1)
    )
    assert [p.reason for p in read(saved(tmp_path, name, own))[1]] == [
        f"Its part {part} declares entities, which are not followed: words may be missing"
    ]


def test_a_page_that_word_saved_in_one_file_is_read_whatever_its_name(tmp_path):
    raw = (
        'MIME-Version: 1.0\nContent-Type: multipart/related; boundary="b"\n\n'
        "--b\nContent-Type: text/html\n\n<p>The <b>plan</b>.</p>\n--b--\n"
    )
    (page,), problems = read(saved(tmp_path, "plan.doc", raw))
    assert (page.text, page.type) == ("The plan.\n", "html")
    assert [p.reason for p in problems] == ["It is not .doc, despite its name: it was read as mail"]


SPACES = " ".join(f'xmlns:{prefix}="{prefix}"' for prefix in "o t d x c b".split())
CELL = "<b:table-cell><t:p>{}</t:p></b:table-cell>"
TONS = (("", "Tons"), ("East", "1.5"), ("West", "2.5"))
ROWS = "".join(f"<b:table-row>{CELL.format(a)}{CELL.format(b)}</b:table-row>" for a, b in TONS)
TITLE = "<c:title><t:p>Catch of the year</t:p></c:title>"
CHART = f"<c:chart {SPACES}>{TITLE}<c:plot-area/><b:table>{ROWS}</b:table></c:chart>"
OTHER = f"<o:document-content {SPACES}><o:body><o:text><t:p>Text of another file.</t:p></o:text></o:body></o:document-content>"


@pytest.mark.parametrize(
    ("inner", "shown"),
    [
        (CHART, "Catch of the year\nTons: East 1.5, West 2.5"),
        (OTHER, "Text of another file."),
        ("<math><mrow><mi>w</mi><mo>×</mo><mi>h</mi></mrow></math>", "w × h"),
    ],
    ids=["chart", "text", "formula"],
)
def test_an_object_is_read_where_it_is_shown(tmp_path, inner, shown):
    """With the place of the slide, or of the paragraph that it hangs on."""
    frame = '<d:frame><d:object x:href="./Object 1"/></d:frame>'
    bodies = {
        "text": (
            f"<o:text><t:p>Before.</t:p><t:p>See:{frame}</t:p></o:text>",
            f"Before.\n\nSee:\n\n{shown}\n",
            "paragraph=2",
        ),
        "presentation": (f"<o:presentation><d:page>{frame}</d:page></o:presentation>", f"{shown}\n", "slide=1"),
    }
    for kind, (body, text, place) in bodies.items():
        parts = {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f"<o:document-content {SPACES}><o:body>{body}</o:body></o:document-content>",
            "Object 1/content.xml": inner,
        }
        (found,), _ = read(saved(tmp_path, "a.zip", zipped(parts)))
        assert (found.text, found.places[-1].locator) == (text, place)
