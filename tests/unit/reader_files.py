"""Files of many formats for the tests of readers, made through the formats' own libraries."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from ingest_cases import found

from workbench.ingest import FileRules, Problem, ReadDocument, read_documents
from workbench.records import Document


def read(file: Path) -> tuple[list[Document], list[Problem]]:
    items = list(read_documents(found(file), FileRules()))
    return (
        [item.document for item in items if isinstance(item, ReadDocument)],
        [item for item in items if isinstance(item, Problem)],
    )


def saved(folder: Path, name: str, data: bytes | str) -> Path:
    file = folder / name
    file.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
    return file


def docx(paragraphs: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]] = (), after: Sequence[str] = ()) -> bytes:
    """A Word file: (style, words) paragraphs, then a table, then more paragraphs."""
    import docx as library

    document = library.Document()
    for style, words in paragraphs:
        document.add_paragraph(words, style=style or None)
    if rows:
        table = document.add_table(len(rows), len(rows[0]))
        for row, cells in zip(table.rows, rows, strict=True):
            for cell, words in zip(row.cells, cells, strict=True):
                cell.text = words
    for words in after:
        document.add_paragraph(words)
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def pptx(slides: Sequence[tuple[str, str, str]]) -> bytes:
    import pptx as library

    deck = library.Presentation()
    for title, body, notes in slides:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    stream = io.BytesIO()
    deck.save(stream)
    return stream.getvalue()


def xlsx(sheets: Mapping[str, Sequence[Sequence[object]]]) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row, cells in enumerate(rows, 1):
            for column, value in enumerate(cells, 1):
                if value is not None:
                    sheet.cell(row, column, value)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def odt(
    paragraphs: Sequence[tuple[int, str]], rows: Sequence[Sequence[str]] = (), after: Sequence[tuple[int, str]] = ()
) -> bytes:
    """An OpenDocument text: (level, words), level 0 for a paragraph; then a table, then more of them."""
    from odf import table, text
    from odf.opendocument import OpenDocumentText

    document = OpenDocumentText()
    for level, words in paragraphs:
        document.text.addElement(text.H(outlinelevel=level, text=words) if level else text.P(text=words))
    if rows:
        document.text.addElement(_odf_table(table.Table(name="T"), rows))
    for level, words in after:
        document.text.addElement(text.H(outlinelevel=level, text=words) if level else text.P(text=words))
    stream = io.BytesIO()
    document.write(stream)
    return stream.getvalue()


def ods(sheets: Mapping[str, Sequence[Sequence[str]]]) -> bytes:
    from odf import table
    from odf.opendocument import OpenDocumentSpreadsheet

    document = OpenDocumentSpreadsheet()
    for name, rows in sheets.items():
        document.spreadsheet.addElement(_odf_table(table.Table(name=name), rows))
    stream = io.BytesIO()
    document.write(stream)
    return stream.getvalue()


def _odf_table(made: Any, rows: Sequence[Sequence[str]]) -> Any:
    from odf import table, text

    for cells in rows:
        row = table.TableRow()
        for words in cells:
            cell = table.TableCell(valuetype="string")
            if words:
                cell.addElement(text.P(text=words))
            row.addElement(cell)
        made.addElement(row)
    return made


def odp(slides: Sequence[tuple[str, str, str]]) -> bytes:
    from odf import draw, presentation, style
    from odf.opendocument import OpenDocumentPresentation

    deck = OpenDocumentPresentation()
    layout = style.PageLayout(name="L")
    deck.automaticstyles.addElement(layout)
    deck.masterstyles.addElement(style.MasterPage(name="M", pagelayoutname=layout))
    for title, body, notes in slides:
        page = draw.Page(masterpagename="M")
        deck.presentation.addElement(page)
        for kind, words in (("title", title), ("outline", body)):
            page.addElement(_odf_frame(kind, words))
        if notes:
            held = presentation.Notes()
            held.addElement(_odf_frame("notes", notes))
            page.addElement(held)
    stream = io.BytesIO()
    deck.write(stream)
    return stream.getvalue()


def _odf_frame(kind: str, words: str) -> Any:
    from odf import draw, text

    frame, box = draw.Frame(attributes={"class": kind}), draw.TextBox()
    box.addElement(text.P(text=words))
    frame.addElement(box)
    return frame


def epub(chapters: Mapping[str, str], title: str = "A book") -> bytes:
    manifest = "".join(
        f'<item id="i{n}" href="{name}" media-type="application/xhtml+xml"/>' for n, name in enumerate(chapters)
    )
    spine = "".join(f'<itemref idref="i{n}"/>' for n in range(len(chapters)))
    files = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata><dc:title>{title}</dc:title><dc:language>en-GB</dc:language></metadata>"
        f"<manifest>{manifest}</manifest><spine>{spine}</spine></package>",
        **{f"OEBPS/{name}": body for name, body in chapters.items()},
    }
    return zipped(files)


def zipped(files: Mapping[str, bytes | str], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def mail(
    subject: str, body: str, attachments: Mapping[str, bytes | EmailMessage] | None = None, html: str = ""
) -> bytes:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, "ada@example.org", "bob@example.org"
    message["Date"] = "Tue, 01 Oct 2024 12:34:56 +0000"
    message.set_content(body)
    if html:
        message.add_alternative(html, subtype="html")
    for name, data in (attachments or {}).items():
        if isinstance(data, bytes):
            message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
        else:
            message.add_attachment(data, filename=name)
    return message.as_bytes()
