"""Files of many formats, made through the formats' own libraries or byte by byte, and what reading and cutting them gives."""

import io
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from email.message import EmailMessage
from itertools import pairwise
from pathlib import Path
from typing import Any

from workbench.ingest.chunking import CountTokens, chunk_document
from workbench.ingest.errors import Problem
from workbench.ingest.read import ReadDocument, read_documents
from workbench.ingest.rules import CorpusRules, FileRules
from workbench.ingest.walk import FoundFile, SkippedFile, walk
from workbench.locators import locate
from workbench.records import Chunk, Document


def count_words(texts: Sequence[str]) -> list[int]:
    """A tokenizer for tests: words and single punctuation marks; long words count a token for each 8 characters."""
    return [sum(-(-len(w) // 8) for w in re.findall(r"\w+|[^\w\s]", text)) for text in texts]


def found(file: Path) -> FoundFile:
    (item,) = walk([file])
    assert isinstance(item, FoundFile)
    return item


def cut_file(
    found: FoundFile,
    rules: FileRules | None = None,
    count: CountTokens = count_words,
    budget: int = 200,
    salt: str = "",
    one_chunk: bool = False,
) -> Iterator[tuple[Document, tuple[Chunk, ...]] | Problem]:
    """The documents of a file with their chunks in all collections, and its problems."""
    for item in read_documents(found, rules or FileRules(), salt):
        if isinstance(item, Problem):
            yield item
            continue
        chunks: list[Chunk] = []
        for name in item.collections:
            granularity = CorpusRules().granularity(name)
            chunks += chunk_document(item.document, item.outline, name, granularity, budget, count, one_chunk=one_chunk)
        yield item.document, tuple(chunks)


def names(items: Sequence[FoundFile | SkippedFile]) -> tuple[list[str], dict[str, str]]:
    """Paths of the found ones, and path -> reason of the skipped ones."""
    return (
        [i.path for i in items if isinstance(i, FoundFile)],
        {i.path: i.reason for i in items if isinstance(i, SkippedFile)},
    )


def documents(file: Path, rules: FileRules | None = None) -> list[Document]:
    items = read_documents(found(file), rules or FileRules())
    return [item.document for item in items if isinstance(item, ReadDocument)]


def problems(file: Path, rules: FileRules | None = None) -> list[Problem]:
    return [item for item in read_documents(found(file), rules or FileRules()) if isinstance(item, Problem)]


def chunks_of(file: Path, budget: int = 200) -> list[Chunk]:
    return [chunk for item in cut_file(found(file), budget=budget) if isinstance(item, tuple) for chunk in item[1]]


def headings(file: Path) -> list[tuple[int, str]]:
    items = [item for item in read_documents(found(file), FileRules()) if isinstance(item, ReadDocument)]
    return [(s.level, s.title) for item in items for s in item.outline.sections if s.title]


def where(document: Document, words: str) -> str:
    """The place of some words of a document's text, as it is cited."""
    start = document.text.index(words)
    return locate(document.places, start, start + len(words))


def check_chunks(document: Document, chunks: Sequence[Chunk]) -> None:
    """The laws of chunks: exact spans and lines, in order, no overlap, every character that is not blank covered."""
    position = 0
    for index, chunk in enumerate(chunks):
        assert chunk.text == document.text[chunk.start : chunk.end]
        assert chunk.text.strip()
        assert chunk.chunk_index == index
        assert chunk.document_id == document.document_id
        assert position <= chunk.start < chunk.end
        assert not document.text[position : chunk.start].strip()
        assert chunk.start_line == document.text.count("\n", 0, chunk.start) + 1
        assert chunk.end_line == document.text.count("\n", 0, chunk.end - 1) + 1
        position = chunk.end
    assert not document.text[position:].strip()
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)


def pdf(
    pages: Sequence[str],
    bookmarks: Sequence[tuple[str, int]] = (),
    encrypt: bool = False,
    size: tuple[float, float] = (612, 792),
) -> bytes:
    """A PDF with a line of Helvetica for each line of each page; an empty page has no content. `size`: of a page, in points."""
    kids = " ".join(f"{10 + 2 * n} 0 R" for n in range(len(pages)))
    objects = {1: "<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R >>"}
    objects[2] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"
    objects[3] = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    outlines = [f"{1000 + n} 0 R" for n in range(len(bookmarks))]
    ends = f"/First {outlines[0]} /Last {outlines[-1]}" if outlines else ""
    objects[4] = f"<< /Type /Outlines /Count {len(outlines)} {ends} >>"
    for n, (title, page) in enumerate(bookmarks):
        after = f"/Next {outlines[n + 1]}" if n + 1 < len(outlines) else ""
        objects[1000 + n] = f"<< /Title ({title}) /Parent 4 0 R /Dest [{10 + 2 * page} 0 R /Fit] {after} >>"
    for n, page in enumerate(pages):
        shown = "".join(f"({line}) Tj T* " for line in page.split("\n") if line)
        stream = f"BT /F1 12 Tf 14 TL 72 {size[1] - 72} Td {shown}ET"
        objects[10 + 2 * n] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {size[0]} {size[1]}] /Contents {11 + 2 * n} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects[11 + 2 * n] = f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream"
    extra = ""
    if encrypt:
        key = "00" * 32
        objects[5] = f"<< /Filter /Standard /V 1 /R 2 /O <{key}> /U <{key}> /P -4 >>"
        extra = f" /Encrypt 5 0 R /ID [<{'00' * 16}> <{'00' * 16}>]"
    body, offsets = "%PDF-1.4\n", {}
    for number in sorted(objects):
        offsets[number] = len(body)
        body += f"{number} 0 obj\n{objects[number]}\nendobj\n"
    table = "".join(f"{number} 1\n{offset:010d} 00000 n \n" for number, offset in sorted(offsets.items()))
    tail = f"xref\n0 1\n0000000000 65535 f \n{table}trailer\n<< /Size 2000 /Root 1 0 R{extra} >>\n"
    return (body + tail + f"startxref\n{len(body)}\n%%EOF\n").encode("latin-1")


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


def tar(
    files: dict[str, bytes] | list[tuple[str, bytes]], mode: str = "w", links: dict[str, str] | None = None
) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, data in files.items() if isinstance(files, dict) else files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
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


Streams = Mapping[str, bytes]

_SECTOR, _MINI, _CUTOFF = 512, 64, 4096
_END, _FREE, _FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD


def ole(streams: Streams) -> bytes:
    """A compound file ([MS-CFB]) of streams, whose names are paths with `/`."""
    names = sorted({"/".join(path.split("/")[:n]) for path in streams for n in range(1, path.count("/") + 2)})
    mini, mini_fat, sectors, fat = bytearray(), [], bytearray(), []
    places = {}
    for name in names:
        data = streams.get(name, b"")
        size, (store, table) = (_MINI, (mini, mini_fat)) if len(data) < _CUTOFF else (_SECTOR, (sectors, fat))
        places[name] = _chained(store, table, data, size)
    root = _chained(sectors, fat, bytes(mini), _SECTOR)
    first_mini = _chained(sectors, fat, struct.pack(f"<{len(mini_fat)}I", *mini_fat), _SECTOR, b"\xff")
    directory = _chained(sectors, fat, _directory(names, streams, places, root, len(mini)), _SECTOR)
    number = 1
    while number * 128 < len(fat) + number:
        number += 1
    own = list(range(len(fat), len(fat) + number))
    fat += [_FAT] * number
    sectors += struct.pack(f"<{number * 128}I", *fat, *[_FREE] * (number * 128 - len(fat)))
    mini_sectors = -(-len(mini_fat) * 4 // _SECTOR)
    head = struct.pack(
        "<8s16x5H6x9I", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6, 0, number, directory, 0, _CUTOFF,
        first_mini, mini_sectors, _END, 0,
    )  # fmt: skip
    return head + struct.pack("<109I", *own, *[_FREE] * (109 - number)) + bytes(sectors)


def _chained(store: bytearray, table: list[int], data: bytes, size: int, filler: bytes = b"\0") -> int:
    """Put bytes at the end of a store and their chain into its table; the number of the first sector."""
    if not data:
        return _END
    first, count = len(table), -(-len(data) // size)
    table += [*range(first + 1, first + count), _END]
    store += data.ljust(count * size, filler)
    return first


def _directory(names: Sequence[str], streams: Streams, places: Mapping[str, int], root: int, mini: int) -> bytes:
    entries = ["", *names]
    children = {
        parent: sorted(
            (n for n in names if n.rpartition("/")[0] == parent),
            key=lambda n: (len(n.rpartition("/")[2]), n.rpartition("/")[2].upper()),
        )
        for parent in ["", *(n for n in names if n not in streams)]
    }
    after = {one: two for own in children.values() for one, two in pairwise(own)}
    found = b""
    for name in entries:
        own = (name.rpartition("/")[2] or "Root Entry").encode("utf-16-le")
        stream = name in streams
        kind, start, size = (2, places[name], len(streams[name])) if stream else (1, 0, 0)
        if not name:
            kind, start, size = 5, root, mini
        right = entries.index(after[name]) if name in after else _FREE
        child = entries.index(children[name][0]) if children.get(name) else _FREE
        found += own.ljust(64, b"\0") + struct.pack(
            "<HBB3I16x4x16xIQ", len(own) + 2, kind, 1, _FREE, right, child, start, size
        )
    return found


# --- Outlook ----------------------------------------------------------------------------------------------------------


def msg(subject: str, body: str, attachments: Mapping[str, bytes | Streams] | None = None) -> bytes:
    """An Outlook message ([MS-OXMSG]); an attachment is the bytes of a file, or the streams of a message (`msg_streams`)."""
    return ole(msg_streams(subject, body, attachments))


def msg_streams(
    subject: str, body: str, attachments: Mapping[str, bytes | Streams] | None = None, inside: bool = False
) -> dict[str, bytes]:
    """The streams of a message, by their paths; `inside`: of one that is attached to another."""
    found = {
        "__properties_version1.0": bytes(24 if inside else 32)
        + struct.pack("<IIQ", 0x00390040, 6, 133_500_000_000_000_000),
        **{
            f"__substg1.0_{key}001F": words.encode("utf-16-le")
            for key, words in (
                ("0037", subject),
                ("0C1A", "Ada"),
                ("0C1F", "ada@example.org"),
                ("0E04", "Bob"),
                ("1000", body),
            )
        },
    }
    for number, (name, data) in enumerate((attachments or {}).items()):
        at = f"__attach_version1.0_#{number:08X}"
        found[f"{at}/__properties_version1.0"] = bytes(8)
        found[f"{at}/__substg1.0_3707001F"] = name.encode("utf-16-le")
        if isinstance(data, bytes):
            found[f"{at}/__substg1.0_37010102"] = data
        else:
            found |= {f"{at}/__substg1.0_3701000D/{path}": stream for path, stream in data.items()}
    return found


# --- Word, Excel, PowerPoint ------------------------------------------------------------------------------------------


def doc(paragraphs: Sequence[str], rows: Sequence[Sequence[str]] = ()) -> bytes:
    """A Word 97 document of one piece: paragraphs, then a table."""
    text = "".join(p + "\r" for p in paragraphs) + "".join("".join(c + "\x07" for c in row) + "\x07" for row in rows)
    return doc_of([(text, b"")])


def doc_of(
    runs: Sequence[tuple[str, bytes]],
    paragraphs: Sequence[tuple[str, bytes]] = (),
    more: Mapping[str, bytes] | None = None,
) -> bytes:
    """A Word 97 document whose runs and paragraphs have properties ([MS-DOC] 2.9.33 and 2.9.181)."""
    words = "".join(text for text, _ in runs).encode("utf-16-le")
    stream = bytearray(0x400) + words
    stream += bytes(-len(stream) % 512)
    table = b""

    def page(parts: Sequence[tuple[str, bytes]], entry: int, width: int) -> None:
        nonlocal table
        data, ends, at = bytearray(512), [0x400], 510
        for number, (text, look) in enumerate(parts):
            ends.append(ends[-1] + 2 * len(text))
            body = (bytes([len(look)]) if width == 1 else bytes([len(look) // 2 + 2]) + b"\0\0") + look
            at = (at - len(body)) // 2 * 2
            data[at : at + len(body)] = body
            data[4 * (len(parts) + 1) + number * width] = at // 2
        struct.pack_into(f"<{len(ends)}I", data, 0, *ends)
        data[511] = len(parts)
        struct.pack_into("<2I", stream, entry, len(table), 12)
        table += struct.pack("<3I", 0x400, ends[-1], len(stream) // 512)
        stream.extend(data)

    page(runs, 0xFA, 1)
    if paragraphs:
        page(paragraphs, 0x102, 13)
    struct.pack_into("<2H", stream, 0, 0xA5EC, 0xC1)
    struct.pack_into("<H", stream, 0x0A, 0x0200)
    struct.pack_into("<i", stream, 0x4C, len(words) // 2)
    pieces = struct.pack("<2I2xI2x", 0, len(words) // 2, 0x400)
    struct.pack_into("<2I", stream, 0x1A2, len(table), 5 + len(pieces))
    table += b"\x02" + struct.pack("<I", len(pieces)) + pieces
    font = "Symbol".encode("utf-16-le") + b"\0\0"
    struct.pack_into("<2I", stream, 0x112, len(table), 4 + 40 + len(font))
    table += struct.pack("<2H", 1, 0) + bytes([39 + len(font)]) + bytes(39) + font
    return ole({"WordDocument": bytes(stream), "1Table": table, **(more or {})})


def xls(sheets: Mapping[str, Sequence[Sequence[str | float | None]]], drawn: Sequence[str] = ()) -> bytes:
    """A workbook ([MS-XLS]); in each sheet a chart with the first of these words and a box with the second."""
    bodies = [_sheet(rows, drawn) for rows in sheets.values()]
    head = _record(0x809, struct.pack("<4H2I", 0x600, 5, 0x0DBB, 0x07CC, 0, 6)) + _record(0x42, struct.pack("<H", 1200))
    head += _record(0xE0, struct.pack("<3H14x", 0, 0, 1))
    at = len(head) + sum(12 + 2 * len(name) for name in sheets) + 4
    for body, name in zip(bodies, sheets, strict=True):
        head += _record(0x85, struct.pack("<IHBB", at, 0, len(name), 1) + name.encode("utf-16-le"))
        at += len(body)
    return ole({"Workbook": (head + _record(0x0A, b"") + b"".join(bodies)).ljust(_CUTOFF, b"\0")})


def _sheet(rows: Sequence[Sequence[str | float | None]], drawn: Sequence[str] = ()) -> bytes:
    found = _record(0x809, struct.pack("<4H2I", 0x600, 0x10, 0x0DBB, 0x07CC, 0, 6))
    for row, cells in enumerate(rows):
        for column, value in enumerate(cells):
            if isinstance(value, str):
                words = value.encode("utf-16-le")
                found += _record(0x204, struct.pack("<4HB", row, column, 0, len(words) // 2, 1) + words)
            elif value is not None:
                found += _record(0x203, struct.pack("<3Hd", row, column, 0, value))
    if drawn:
        chart, box = (words.encode("utf-16-le") for words in drawn)
        found += _record(0x809, struct.pack("<4H2I", 0x600, 0x20, 0x0DBB, 0x07CC, 0, 6))
        found += _record(0x100D, struct.pack("<HBB", 0, len(chart) // 2, 1) + chart) + _record(0x0A, b"")
        found += _record(0x5D, struct.pack("<5H12x2H", 0x15, 0x12, 6, 1, 0, 0, 0))
        found += _record(0x1B6, struct.pack("<2H6xHH4x", 0, 0, len(box) // 2, 16)) + _record(0x3C, b"\x01" + box)
        found += _record(0x3C, struct.pack("<4H8x", 0, 0, 0, 0)[:8] + struct.pack("<4H", len(box) // 2, 0, 0, 0))
    return found + _record(0x0A, b"")


def _record(kind: int, data: bytes) -> bytes:
    return struct.pack("<2H", kind, len(data)) + data


def ppt(
    slides: Sequence[tuple[str, str, str]],
    before: Sequence[tuple[str, str, str]] = (),
    locked: bool = False,
    hidden: bool = False,
    chart: bytes = b"",
) -> bytes:
    """A presentation ([MS-PPT]): title, body, notes. The title stands in the outline, the body in its shape.

    Args:
        slides: As they are.
        before: Slides as an earlier save had them; their records are still in the file.
        locked: Say that it is encrypted.
        hidden: Hide the slides.
        chart: An OLE file that every slide shows.
    """
    stream, last = _saved(b"", before, 0) if before else (b"", 0)
    stream, last = _saved(stream, slides, last, hidden, chart)
    token = 0xF3D1C4DF if locked else 0xE391C05F
    return ole({"PowerPoint Document": stream, "Current User": _atom(0x0FF6, struct.pack("<3I", 20, token, last))})


def _saved(
    stream: bytes, slides: Sequence[tuple[str, str, str]], last: int, hidden: bool = False, chart: bytes = b""
) -> tuple[bytes, int]:
    """The stream after one more save, and where that save's own record is. Object 1 is the document."""
    places: list[int] = [0]
    listed, notes = b"", b""
    for number, (title, body, note) in enumerate(slides, 1):
        listed += _atom(0x03F3, struct.pack("<4I4x", len(places) + 1, 0, 1, 255 + number)) + _atom(
            0x0F9F, struct.pack("<I", 0)
        )
        listed += _atom(0x0FA0, title.encode("utf-16-le"))
        places.append(len(stream))
        identity = 1000 + number if note else 0
        boxes = _box(_atom(0x0F9E, struct.pack("<I", 0))) + _box(_atom(0x0F9F, struct.pack("<I", 1)), _text(body))
        boxes += _held(0xF004, _held(0xF011, _atom(0x0BC1, struct.pack("<I", 7)))) if chart else b""
        show = _atom(0x03F9, struct.pack("<2I2BH4x", 0, 0, 0, 0, 4 * hidden))
        stream += _held(
            0x03EE, _atom(0x03EF, struct.pack("<12x3I", 0, identity, 0)) + show + _held(0x040C, _held(0xF002, boxes))
        )
        if note:
            notes += _atom(0x03F3, struct.pack("<4I4x", len(places) + 1, 0, 0, identity))
            places.append(len(stream))
            stream += _held(0x03F0, _held(0x040C, _box(_atom(0x0F9F, struct.pack("<I", 2)), _text(note))))
    objects = b""
    if chart:
        places.append(len(stream))
        packed = struct.pack("<I", len(chart)) + zlib.compress(chart)
        stream += struct.pack("<2HI", 1 << 4, 0x1011, len(packed)) + packed
        objects = _held(0x0409, _held(0x0FCC, _atom(0x0FC3, struct.pack("<6I", 1, 0, 7, 0, len(places), 0))))
    places[0] = len(stream)
    stream += _held(0x03E8, objects + _held(0x0FF0, listed, 0) + _held(0x0FF0, notes, 2))
    directory = len(stream)
    stream += _atom(0x1772, struct.pack(f"<{len(places) + 1}I", len(places) << 20 | 1, *places))
    edit = len(stream)
    return stream + _atom(0x0FF5, struct.pack("<IH2B4I", 0, 0, 0, 3, last, directory, 1, len(places) + 1)), edit


def _text(words: str) -> bytes:
    if max(words, default="a") < "\x80":
        return _atom(0x0FA8, words.encode("ascii"))
    return _atom(0x0FA0, words.encode("utf-16-le"))


def _box(*atoms: bytes) -> bytes:
    return _held(0xF004, _held(0xF00D, b"".join(atoms)))


def _held(kind: int, data: bytes, instance: int = 0) -> bytes:
    return struct.pack("<2HI", 15 | instance << 4, kind, len(data)) + data


def _atom(kind: int, data: bytes) -> bytes:
    return struct.pack("<2HI", 0, kind, len(data)) + data
