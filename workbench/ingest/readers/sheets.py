"""Spreadsheets: XLSX from its XML, XLS by xlrd. One line a row, one table a block of rows, a sheet after the other.

A place is the sheet and the row as the program numbers it: `sheet=Sales&row=12`. Cells are read as they are shown where that
changes the words: dates as dates, percentages as percentages, numbers without the noise of floating point; formulas by their
last result. Text boxes come after the rows of their sheet. Hidden sheets are read too, and marked as hidden in their heading;
hidden rows and columns in the metadata. The XML is read as a stream, so that a sheet with one cell in its last row costs nothing.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from workbench.ingest.errors import Problem, ReadError, skip
from workbench.ingest.outline import TextWriter
from workbench.ingest.readers.base import LOCKED, RESAVE, Member, Parsed, Source
from workbench.ingest.readers.package import attribute, child, descendants, local, opened, properties, text_of
from workbench.ingest.readers.word import embedded
from workbench.locators import locator, whole_number

Row = tuple[int, Mapping[int, str]]
"""A row's number from 1, and its cells that are not empty by their column from 0."""
_CELL = re.compile(r"([A-Z]{1,3})(\d+)")
_FORMAT_NOISE = re.compile(r'"[^"]*"|\\.|\[(?![hms]+\])[^\]]*\]|_.|\*.')
_DATES = frozenset({14, 15, 16, 17, *range(27, 32), 36, 50, 57})
_TIMES = frozenset({18, 19, 20, 21, 45, 46, 47, 32, 33})
_WIDEST_GAP = 64


def write_sheet(writer: TextWriter, name: str, rows: Iterable[Row], hidden: bool = False) -> None:
    """Write a sheet: its name, then a table for each block of rows without an empty one between them."""
    writer.apart()
    block: list[Row] = []
    headed, header, last = False, "", 0
    for number, cells in (*rows, (0, {})):
        if block and number != last + 1:
            if not headed:
                writer.heading(f"{name} (hidden sheet)" if hidden else name, 1, locator(sheet=name, row=block[0][0]))
                headed = True
            header = _write_block(writer, name, block, header)
            block = []
        if cells:
            block.append((number, cells))
            last = number


def _write_block(writer: TextWriter, name: str, block: list[Row], header: str) -> str:
    columns = sorted({column for _, cells in block for column in cells})
    place: dict[int, int] = {}
    before = columns[0]
    for column in columns:  # a column far out does not make every row wide
        place[column] = (place[before] + min(column - before, _WIDEST_GAP)) if place else 0
        before = column
    lines = []
    for number, cells in block:
        texts = [""] * (place[max(cells)] + 1)
        for column, words in cells.items():
            texts[place[column]] = words
        lines.append((texts, locator(sheet=name, row=number)))
    return writer.table(lines, carried=header)


def read(source: Source) -> Iterator[Parsed | Member | Problem]:
    """Read an XLSX."""
    with opened(source) as package:
        main = package.main("xl/workbook.xml")
        if main.endswith(".bin"):
            raise skip("It is a binary workbook (XLSB), which is not read", "Save it as XLSX or CSV")
        relations = package.relations(main)
        parts = dict(relations.values())
        book = package.must(main)
        title, language, metadata = properties(package.xml("docProps/core.xml"))
        strings = package.xml(parts.get("sharedStrings", "xl/sharedStrings.xml"))
        shared = [_rich(item) for item in strings if local(item) == "si"] if strings is not None else []
        formats = _formats(package.xml(parts.get("styles", "xl/styles.xml")))
        from_1904 = attribute(child(book, "workbookPr"), "date1904") in ("1", "true")
        writer = TextWriter()
        hidden: list[str] = []
        problems: list[Problem] = []
        for sheet in descendants(book, "sheet"):
            name = attribute(sheet, "name")
            key = next((v for k, v in sheet.attrib.items() if k.endswith("}id")), "")
            kind, part = relations.get(key, ("", ""))
            if kind != "worksheet":
                continue
            try:
                data = package.read(part)
                secret = attribute(sheet, "state") in ("hidden", "veryHidden")
                hidden += [f"sheet {name}"] if secret else [f"{kind} of {name}" for kind in _hidden_parts(data)]
                write_sheet(writer, name, _rows(data, shared, formats, from_1904), secret)
                for drawing in package.related(part, "drawing"):
                    for body in descendants(drawing, "txBody"):
                        lines = (text_of(p, "t").strip() for p in descendants(body, "p"))
                        writer.paragraph("\n".join(line for line in lines if line), locator(sheet=name))
                for comments in package.related(part, "comments"):
                    for comment in descendants(comments, "comment"):
                        writer.paragraph(_rich(comment), locator(sheet=name, comment=attribute(comment, "ref")))
            except ReadError as exc:
                problems.append(Problem(f"The sheet {name} cannot be read: {exc.message}", exc.remedy))
        text, outline, places = writer.finish()
        if hidden:
            metadata["hidden"] = "; ".join(hidden)
        yield from problems
        if text.strip() or not problems:
            yield Parsed(text, "sheet", outline, title, language=language, metadata=metadata, places=places)
        yield from embedded(package, relations)


def _hidden_parts(data: bytes) -> list[str]:
    """`rows` and `columns`, where the sheet hides some."""
    marks = (("rows", rb"<(?:\w+:)?row\b[^>]*\bhidden="), ("columns", rb"<(?:\w+:)?col\b[^>]*\bhidden="))
    return [kind for kind, mark in marks if re.search(mark + rb'["\'](?:1|true)', data)]


def _rows(data: bytes, shared: list[str], formats: list[str], from_1904: bool) -> Iterator[Row]:
    """The rows of a sheet that are not empty. Raises ReadError for a sheet that ends too early."""
    from lxml import etree

    number = 0
    try:
        for _, row in etree.iterparse(io.BytesIO(data), tag="{*}row", resolve_entities=False, no_network=True):
            number = whole_number(row.get("r") or "", number + 1)
            cells: dict[int, str] = {}
            column = -1
            for cell in row:
                match = _CELL.match(cell.get("r") or "")
                column = _column(match[1]) if match is not None else column + 1
                words = _value(cell, shared, formats, from_1904)
                if words:
                    cells[column] = words
            row.clear()
            while row.getprevious() is not None:
                del row.getparent()[0]
            if cells:
                yield number, cells
    except etree.XMLSyntaxError as exc:
        raise ReadError("it is not well-formed XML", RESAVE) from exc


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _value(cell: Any, shared: list[str], formats: list[str], from_1904: bool) -> str:
    kind = cell.get("t") or "n"
    if kind == "inlineStr":
        return _rich(cell)
    node = child(cell, "v")
    raw = (node.text or "") if node is not None else ""
    if kind == "s":
        return shared[at] if (at := whole_number(raw, len(shared))) < len(shared) else ""
    if kind == "b":
        return {"1": "TRUE", "0": "FALSE"}.get(raw, raw)
    if kind != "n" or not raw:
        return _joined(raw)
    at = whole_number(cell.get("s") or "0", len(formats))
    try:
        return shown_number(float(raw), formats[at] if at < len(formats) else "", from_1904)
    except (ValueError, OverflowError):
        return raw


def shown_number(number: float, shown: str, from_1904: bool = False) -> str:
    """A number as its format shows it: `date`, `time`, `datetime`, `percent`, or "" for any other."""
    if shown == "percent":
        return f"{plain_number(number * 100)}%"
    if shown and (shown == "time" or number >= 0):
        start = datetime(1904, 1, 1, tzinfo=UTC) if from_1904 else datetime(1899, 12, 30, tzinfo=UTC)
        moment = start + timedelta(seconds=round(number * 86400))
        if shown == "time":
            return f"{moment:%H:%M:%S}" if 0 <= number < 1 else plain_number(number)
        return f"{moment:%Y-%m-%d}" if shown == "date" or number == int(number) else f"{moment:%Y-%m-%d %H:%M:%S}"
    return plain_number(number)


def plain_number(number: float) -> str:
    """The shortest text of a number with at most 15 digits, which is what spreadsheets show."""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else f"{number:.15g}"


def _rich(node: Any) -> str:
    """Text of a string with formatting, without its phonetic hints."""
    return _joined("".join(n.text or "" for n in descendants(node, "t") if local(n.getparent()) != "rPh"))


def _joined(text: str) -> str:
    return " ".join(text.replace("_x000D_", " ").split())


def _formats(root: Any) -> list[str]:
    """For each cell style what its number format shows."""
    own = {attribute(n, "numFmtId"): attribute(n, "formatCode") for n in descendants(root, "numFmt")}
    styles = child(root, "cellXfs")
    return [format_kind(attribute(n, "numFmtId"), own) for n in styles] if styles is not None else []


def format_kind(key: str, own: Mapping[str, str]) -> str:
    """What a number format shows: `date`, `time`, `datetime`, `percent`, or "" for any other."""
    if key in own:
        code = _FORMAT_NOISE.sub("", own[key].partition(";")[0]).lower()
        if "%" in code:
            return "percent"
        if code.strip() in ("", "general", "@") or "#" in code or "0" in code.replace("ss.0", "").replace("s.0", ""):
            return ""
        day, clock = bool(re.search("[dy]|mmm", code)), bool(re.search("[hs]", code))
        return "datetime" if day and clock else "date" if day else "time" if clock else ""
    number = whole_number(key, 0)
    if number in (9, 10):
        return "percent"
    return "datetime" if number == 22 else "date" if number in _DATES else "time" if number in _TIMES else ""


def read_xls(source: Source) -> Iterator[Parsed | Problem]:
    """Read an old workbook (XLS)."""
    import xlrd

    faults = (xlrd.XLRDError, xlrd.compdoc.CompDocError, struct.error, AssertionError, LookupError, ValueError)
    try:
        book = xlrd.open_workbook(
            file_contents=source.bytes(), on_demand=True, logfile=io.StringIO(), formatting_info=True
        )
    except faults as exc:
        if "password" in str(exc).lower() or "encrypted" in str(exc).lower():
            raise ReadError(*LOCKED) from exc
        raise ReadError("It is broken: it cannot be opened as a workbook", "Open it, and save it as XLSX") from exc
    writer = TextWriter()
    hidden: list[str] = []
    for name in book.sheet_names():
        sheet = book.sheet_by_name(name)
        if hasattr(sheet, "nrows"):
            rows = ((index + 1, _xls_cells(book, sheet.row(index))) for index in range(sheet.nrows))
            write_sheet(writer, name, (row for row in rows if row[1]), sheet.visibility != 0)
            hidden += [f"sheet {name}"] if sheet.visibility else []
            for (row, column), note in sorted(sheet.cell_note_map.items()):
                writer.paragraph(_joined(str(note.text)), locator(sheet=name, comment=xlrd.cellname(row, column)))
        book.unload_sheet(name)
    text, outline, places = writer.finish()
    metadata = {"author": " ".join(str(book.user_name or "").split()), "hidden": "; ".join(hidden)}
    metadata = {key: words for key, words in metadata.items() if words}
    yield Parsed(text, "sheet", outline, metadata=metadata, places=places)


def _xls_cells(book: Any, row: Iterable[Any]) -> dict[int, str]:
    import xlrd

    cells: dict[int, str] = {}
    for column, cell in enumerate(row):
        words = ""
        if cell.ctype == xlrd.XL_CELL_TEXT:
            words = _joined(str(cell.value))
        elif cell.ctype in (xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE):
            try:
                key = book.xf_list[cell.xf_index].format_key
                shown = format_kind(str(key), {str(key): book.format_map[key].format_str})
            except (IndexError, KeyError, TypeError):
                shown = ""
            words = shown_number(float(cell.value), shown, bool(book.datemode))
        elif cell.ctype == xlrd.XL_CELL_BOOLEAN:
            words = "TRUE" if cell.value else "FALSE"
        elif cell.ctype == xlrd.XL_CELL_ERROR:
            words = str(xlrd.error_text_from_code.get(cell.value, "#ERROR"))
        if words:
            cells[column] = words
    return cells
