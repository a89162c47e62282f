"""OpenDocument files saved as one XML file, and what other programs put into frames: charts, formulas, tables."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from file_makers import odp, ods, odt, read, saved, zipped
from odf import chart, draw, style, table, text
from odf.opendocument import OpenDocumentChart, OpenDocumentPresentation, OpenDocumentText, load

from workbench.ingest.errors import ReadError

TABLE = [["", "Tons"], ["East", "1.5"], ["West", "2.5"]]


def flat(package: bytes) -> bytes:
    """A packaged file as the one XML file that its program would save it as."""
    return bytes(load(io.BytesIO(package)).xml())


def packed(document: Any) -> bytes:
    stream = io.BytesIO()
    document.write(stream)
    return stream.getvalue()


def drawn_chart() -> Any:
    """A chart of tons by place, with the table that it is drawn from."""
    made = OpenDocumentChart()
    whole = chart.Chart(attributes={"class": "chart:bar"})
    made.chart.addElement(whole)
    title = chart.Title()
    title.addElement(text.P(text="Catch of the year"))
    whole.addElement(title)
    whole.addElement(chart.PlotArea())
    held, rows = table.Table(name="local-table"), table.TableRows()
    for number, words in enumerate(TABLE):
        row = table.TableRow()
        for cell in words:
            made_cell = table.TableCell(valuetype="string")
            made_cell.addElement(text.P(text=cell))
            row.addElement(made_cell)
        head = table.TableHeaderRows()
        (head if not number else rows).addElement(row)
        if not number:
            held.addElement(head)
    held.addElement(rows)
    whole.addElement(held)
    return made


def deck_with(inner: Any) -> bytes:
    deck = OpenDocumentPresentation()
    layout = style.PageLayout(name="L")
    deck.automaticstyles.addElement(layout)
    deck.masterstyles.addElement(style.MasterPage(name="M", pagelayoutname=layout))
    page, frame = draw.Page(masterpagename="M"), draw.Frame()
    deck.presentation.addElement(page)
    frame.addElement(draw.Object(href=deck.addObject(inner)))
    page.addElement(frame)
    return packed(deck)


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("a.fodt", odt([(1, "Ropes"), (0, "Splice them.")], [["Part", "Count"], ["rope", "12"]], [(0, "The end.")])),
        ("a.fods", ods({"Sales": [["Item", "Price"], ["Rope", "12"]], "More": [["x", "y"]]})),
        ("a.fodp", odp([("Winter", "It is cold.", "Say it slowly."), ("Spring", "It thaws.", "")])),
    ],
)
def test_a_file_in_one_piece_is_read_as_the_package_it_stands_for(tmp_path: Path, name: str, package: bytes) -> None:
    (one,), problems = read(saved(tmp_path, name, flat(package)))
    (whole,), _ = read(saved(tmp_path, name.replace(".f", "."), package))
    assert (one.text, one.type, one.places, problems) == (whole.text, whole.type, whole.places, [])


def test_one_in_one_piece_that_is_broken_is_named(tmp_path: Path) -> None:
    data = b'<?xml version="1.0"?><office:document xmlns:office="x" office:mimetype="y"></office:document>'
    with pytest.raises(ReadError, match="it has no body"):
        read(saved(tmp_path, "a.fodt", data))


def test_a_chart_on_a_slide_is_read_with_its_numbers(tmp_path: Path) -> None:
    (deck,), _ = read(saved(tmp_path, "a.odp", deck_with(drawn_chart())))
    assert deck.text == "Catch of the year\nTons: East 1.5, West 2.5\n"
    assert [place.locator for place in deck.places] == ["slide=1"]


def test_a_chart_in_a_text_stands_at_its_paragraph(tmp_path: Path) -> None:
    document = OpenDocumentText()
    document.text.addElement(text.P(text="Before."))
    paragraph, frame = text.P(text="See the chart:"), draw.Frame()
    frame.addElement(draw.Object(href=document.addObject(drawn_chart())))
    paragraph.addElement(frame)
    document.text.addElement(paragraph)
    (found,), _ = read(saved(tmp_path, "a.odt", packed(document)))
    assert found.text == "Before.\n\nSee the chart:\n\nCatch of the year\nTons: East 1.5, West 2.5\n"
    assert found.places[-1].locator == "paragraph=2"


def test_a_text_of_another_file_is_read_where_it_is_shown(tmp_path: Path) -> None:
    inner = OpenDocumentText()
    inner.text.addElement(text.P(text="Text of another file."))
    (deck,), _ = read(saved(tmp_path, "a.odp", deck_with(inner)))
    assert deck.text == "Text of another file.\n"


def test_a_formula_is_read_as_its_signs(tmp_path: Path) -> None:
    content = (
        '<o:document-content xmlns:o="o" xmlns:t="t" xmlns:d="d" xmlns:x="x"><o:body><o:text><t:p>Area:<d:frame>'
        '<d:object x:href="./Object 1"/></d:frame></t:p></o:text></o:body></o:document-content>'
    )
    parts = {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": content,
        "Object 1/content.xml": "<math><mrow><mi>w</mi><mo>×</mo><mi>h</mi></mrow></math>",
    }
    (found,), _ = read(saved(tmp_path, "a.odt", zipped(parts)))
    assert found.text == "Area:\n\nw × h\n"
