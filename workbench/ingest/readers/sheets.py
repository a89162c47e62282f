"""Spreadsheets: XLSX from its XML, XLS by xlrd. One line a row, one table a block of rows, a sheet after the other.

A place is the sheet and the row as the program numbers it: `sheet=Sales&row=12`. Cells are read as they are shown where that
changes the words: dates, durations and percentages, the zeros before a number and the words around it, numbers without the
noise of floating point; formulas by their last result. Text boxes and charts come after the rows of their sheet. Hidden sheets
are read too, and marked as hidden in their heading; hidden rows and columns in the metadata. The XML is read as a stream, so
that a sheet with one cell in its last row costs nothing.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from workbench.ingest.errors import Problem, ReadError, skip
from workbench.ingest.outline import TextWriter, left_out
from workbench.ingest.readers.base import LOCKED, RESAVE, Member, Parsed, Source, written
from workbench.ingest.readers.package import Package, drawings, embedded, opened, plain_number, properties, shown
from workbench.ingest.readers.tree import attribute, child, descendants, local, parse_text, text_of
from workbench.locators import locator, whole_number

Row = tuple[int, Mapping[int, str]]
"""A row's number from 1, and its cells that are not empty by their column from 0."""
_CELL = re.compile(r"([A-Z]{1,3})(\d+)")
_FORMAT_NOISE = re.compile(r'"[^"]*"|\\.|\[(?![hms]+\])[^\]]*\]|_.|\*.')
_TOKEN = re.compile(r'((?:General|[#0?.,])+)|"([^"]*)"|\\(.)|\[\$([^-\]]*)[^\]]*\]|\[[^\]]*\]|_.|\*.|([^;()+])')
_DATES = frozenset({14, 15, 16, 17, *range(27, 32), 36, 50, 57})
_TIMES = frozenset({18, 19, 20, 21, 45, 47, 32, 33})
_WIDEST_GAP = 64
_BOF, _EOF, _BOUND, _BOX, _CONTINUE, _LABEL, _SERIES_TEXT = 0x809, 0x0A, 0x85, 0x1B6, 0x3C, 0x204, 0x100D
_NO_CELLS = ("dialogsheet", "macrosheet", "xlMacrosheet", "xlIntlMacrosheet")


def write_sheet(writer: TextWriter, name: str, rows: Iterable[Row], hidden: bool = False) -> None:
    """Write a sheet: its name, then a table for each block of rows without an empty one between them."""
    writer.apart()
    header: str | None = None
    # One block after the other: where the sheet breaks off, what came before is there.
    for _, numbered in groupby(enumerate(rows), lambda counted: counted[1][0] - counted[0]):
        block = [row for _, row in numbered]
        if header is None:
            writer.heading(name + " (hidden sheet)" * hidden, 1, locator(sheet=name, row=block[0][0]))
        header = _write_block(writer, name, block, header or "")


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
    with opened(source) as package:
        main = package.main("xl/workbook.xml")
        if main.endswith(".bin"):
            raise skip("It is a binary workbook (XLSB), which is not read", "Save it as XLSX or CSV")
        relations = package.relations(main)
        parts = dict(relations.values())
        book = package.must(main)
        title, language, metadata = properties(package.xml("docProps/core.xml"))
        strings = package.xml(parts.get("sharedStrings", "xl/sharedStrings.xml"))
        shown(strings)
        cells = _Cells(
            [_rich(item) for item in strings if local(item) == "si"] if strings is not None else [],
            _formats(package.xml(parts.get("styles", "xl/styles.xml"))),
            attribute(child(book, "workbookPr"), "date1904") in ("1", "true"),
        )
        writer = TextWriter()
        hidden: list[str] = []
        secrets = 0
        problems: list[Problem] = []
        for sheet in descendants(book, "sheet"):
            name = attribute(sheet, "name")
            key = next((v for k, v in sheet.attrib.items() if k.endswith("}id")), "")
            kind, part = relations.get(key, ("", ""))
            try:
                secret = attribute(sheet, "state") in ("hidden", "veryHidden")
                data = package.read(part) if kind == "worksheet" else b""
                if kind != "chartsheet" and not data:
                    what = "a sheet of macros or dialogs" if kind in _NO_CELLS else "missing in the file"
                    problems.append(Problem(f"The sheet {name} is not read: it is {what}", RESAVE))
                hidden += [f"sheet {name}"] if secret else [f"{kind} of {name}" for kind in _hidden_parts(data)]
                write_sheet(writer, name, cells.rows(data) if data else (), secret)
                secrets += _write_drawings(writer, package, part, name)
                for comments in package.related(part, "comments"):
                    for comment in descendants(comments, "comment"):
                        writer.paragraph(_rich(comment), locator(sheet=name, comment=attribute(comment, "ref")))
            except ReadError as exc:
                problems.append(Problem(f"The sheet {name} cannot be read: {exc.message}", exc.remedy))
        if cells.uncalculated:
            reason = f"{cells.uncalculated:,} of its formulas have no stored result, and were read as formulas"
            problems.append(Problem(reason, RESAVE, loses=False))
        metadata |= left_out(secrets, *hidden)
        yield from problems
        if writer.length or not problems:
            yield written(writer, "sheet", title, language=language, metadata=metadata)
        yield from embedded(package, relations)


def _write_drawings(writer: TextWriter, package: Package, part: str, name: str) -> int:
    """The text boxes, charts and diagrams of a sheet; a sheet that is a chart has nothing else. How many are hidden."""
    hidden = 0
    for kind, target in package.relations(part).values():
        drawing = package.xml(target) if kind == "drawing" else None
        if drawing is None:
            continue
        hidden += shown(drawing)
        for body in descendants(drawing, "txBody"):
            lines = (text_of(p, "t").strip() for p in descendants(body, "p"))
            writer.paragraph("\n".join(line for line in lines if line), locator(sheet=name))
        for words in drawings(drawing, package, package.relations(target)):
            writer.paragraph(words, locator(sheet=name))
    return hidden


def _hidden_parts(data: bytes) -> list[str]:
    """`rows` and `columns`, where the sheet hides some."""
    marks = (("rows", rb"<(?:\w+:)?row\b[^>]*\bhidden="), ("columns", rb"<(?:\w+:)?col\b[^>]*\bhidden="))
    return [kind for kind, mark in marks if re.search(mark + rb'["\'](?:1|true)', data)]


@dataclass(slots=True)
class _Cells:
    """How the cells of a workbook are read; `uncalculated` counts the formulas that have no result."""

    shared: list[str]
    formats: list[str]
    from_1904: bool
    uncalculated: int = 0

    def rows(self, data: bytes) -> Iterator[Row]:
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
                    words = self.value(cell)
                    if words:
                        cells[column] = words
                row.clear()
                while row.getprevious() is not None:
                    del row.getparent()[0]
                if cells:
                    yield number, cells
        except etree.XMLSyntaxError as exc:
            raise ReadError("it is not well-formed XML", RESAVE) from exc

    def value(self, cell: Any) -> str:
        kind = cell.get("t") or "n"
        if kind == "inlineStr":
            shown(cell)
            return _rich(cell)
        node = child(cell, "v")
        raw = (node.text or "") if node is not None else ""
        if kind == "s":
            return self.shared[at] if (at := whole_number(raw, len(self.shared))) < len(self.shared) else ""
        if kind == "b":
            return {"1": "TRUE", "0": "FALSE"}.get(raw, raw)
        if not raw:
            formula = child(cell, "f")
            if formula is None or not formula.text or kind == "str":  # a text without letters is a result
                return ""
            self.uncalculated += 1
            return _joined(f"={formula.text}")
        if kind != "n":
            return _joined(raw)
        at = whole_number(cell.get("s") or "0", len(self.formats))
        try:
            return shown_number(float(raw), self.formats[at] if at < len(self.formats) else "", self.from_1904)
        except (ValueError, OverflowError):
            return raw


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


def column_name(number: int) -> str:
    return column_name(number // 26 - 1) + chr(65 + number % 26) if number >= 0 else ""


def shown_number(number: float, kind: str, from_1904: bool = False) -> str:
    name, _, more = kind.partition(" ")
    if name == "percent":
        return f"{plain_number(number * 100)}%"
    if name == "number":
        return _in_pattern(number, more)
    if name == "duration":
        minutes, seconds = divmod(round(abs(number) * 86400), 60)
        return f"{'-' * (number < 0)}{minutes // 60}:{minutes % 60:02d}{f':{seconds:02d}' if more else ''}"
    if not name or number < 0:
        return plain_number(number)
    if not from_1904 and number < 60:
        number += 1  # the 29th of February 1900 is a day to spreadsheets
    start = datetime(1904, 1, 1, tzinfo=UTC) if from_1904 else datetime(1899, 12, 30, tzinfo=UTC)
    moment = start + timedelta(seconds=round(number * 86400, len(more)))
    day, clock = f"{moment:%Y-%m-%d}", f"{moment:%H:%M:%S.%f}"[: len(more) + 9 if more else 8]
    if name == "date" or (name == "datetime" and number == int(number) and not more):
        return day
    return clock if name == "time" else f"{day} {clock}"


def _in_pattern(number: float, code: str) -> str:
    """A number in a format with words in it or zeros before it, such as `"C-"0000` or `0.0" kg"`; all of its decimals."""
    sections = code.split(";")
    at = 1 if number < 0 else 2 if number == 0 else 0
    tokens = [m.groups() for m in _TOKEN.finditer(sections[at if at < len(sections) else 0])]
    slots = [n for n, token in enumerate(tokens) if token[0]]
    digits = "".join(tokens[n][0] for n in slots)
    scale = len(digits) - len(digits.rstrip(","))
    plain = plain_number(round(abs(number) / 1000**scale, 15 - 3 * scale if scale < 5 else 0))
    whole, point, decimals = plain.partition(".")
    whole = whole.zfill(digits.partition(".")[0].count("0"))
    found: dict[int, str] = {}
    for n in reversed(slots[1:] if "." not in digits and not point else []):  # `000-0000`: groups of their own
        size = len(tokens[n][0].replace(",", ""))
        found[n], whole = whole[-size:], whole[:-size]
    if slots:
        found[slots[0]] = whole + point + decimals
    texts = (found.get(n, "") if token[0] else next(filter(None, token), "") for n, token in enumerate(tokens))
    words = _joined("".join(texts)).removeprefix("-")
    return f"{'-' * (number < 0)}{words or plain}"


def _rich(node: Any) -> str:
    """Text of a string with formatting, without its phonetic hints."""
    return _joined("".join(n.text or "" for n in descendants(node, "t") if local(n.getparent()) != "rPh"))


def _joined(text: str) -> str:
    return " ".join(text.replace("_x000D_", " ").split())


def _formats(root: Any) -> list[str]:
    own = {attribute(n, "numFmtId"): attribute(n, "formatCode") for n in descendants(root, "numFmt")}
    styles = child(root, "cellXfs")
    return [format_kind(attribute(n, "numFmtId"), own) for n in styles] if styles is not None else []


def format_kind(key: str, own: Mapping[str, str]) -> str:
    """What a number format shows: `date`, `time`, `datetime`, `percent`, `duration`, `number` and its code, "" for any other.

    Dates and times may be followed by the zeros of the fractions of a second, a duration by a sign that it has seconds.
    """
    if key not in own:
        number = whole_number(key, 0)
        if number in (9, 10):
            return "percent"
        if number == 46:
            return "duration s"
        return "datetime" if number == 22 else "date" if number in _DATES else "time" if number in _TIMES else ""
    code = _FORMAT_NOISE.sub("", own[key].partition(";")[0]).lower()
    if "%" in code:
        return "percent"
    if re.search(r"\[[hms]+\]", code):
        return "duration s" if "s" in code else "duration"
    fraction = re.search(r"s[.,](0+)", code)
    clockless = code.replace(fraction[0], "s") if fraction is not None else code
    if code.strip() in ("", "general", "@") or "#" in code or "0" in clockless:
        literal = re.sub(r"\[\$-[^\]]*\]|_.|\*.|\\? |[-()+]", "", own[key])
        words = re.search(r'"[^"]*[^" ()+-][^"]*"|\\[^ ()+-]|\[\$[^-\]]|[$\u20ac\u00a3\u00a5]', literal)
        padded = re.search(r"(?<![.0#?])[#,]*0[0,]*0", literal.partition(";")[0])
        return f"number {own[key]}" if (words or padded) and "e+" not in code and "?/" not in code else ""
    day, clock = bool(re.search("[dy]|mmm", code)), bool(re.search("[hs]", code))
    kind = "datetime" if day and clock else "date" if day else "time" if clock else ""
    return f"{kind} {fraction[1]}" if fraction is not None and kind else kind


def is_xml_book(raw: str) -> bool:
    return re.search(r"<(?:\w+:)?Workbook\s[^>]*urn:schemas-microsoft-com:office:spreadsheet", raw[:4096]) is not None


def read_xml_book(raw: str) -> Parsed:
    root = parse_text(raw)
    writer = TextWriter()
    for sheet in descendants(root, "Worksheet"):
        rows: list[Row] = []
        number = 0
        for row in descendants(sheet, "Row"):
            number = whole_number(attribute(row, "Index"), number + 1)
            cells: dict[int, str] = {}
            column = 0
            for cell in (cell for cell in row if local(cell) == "Cell"):
                column = whole_number(attribute(cell, "Index"), column + 1)
                words = _joined(
                    " ".join("".join(data.itertext()) for data in cell if local(data) in ("Data", "Comment"))
                )
                if words:
                    cells[column - 1] = words
                column += whole_number(attribute(cell, "MergeAcross"), 0)
            rows += [(number, cells)] if cells else []
        write_sheet(writer, attribute(sheet, "Name"), rows)
    return written(writer, "sheet")


def read_xls(source: Source) -> Iterator[Parsed | Problem]:
    import xlrd

    faults = (xlrd.XLRDError, xlrd.compdoc.CompDocError, struct.error, AssertionError, LookupError, ValueError)
    try:
        book = xlrd.open_workbook(
            file_contents=source.data(), on_demand=True, logfile=io.StringIO(), formatting_info=True
        )
    except faults as exc:
        if "password" in str(exc).lower() or "encrypted" in str(exc).lower():
            raise ReadError(*LOCKED) from exc
        raise ReadError("It is broken: it cannot be opened as a workbook", "Open it, and save it as XLSX") from exc
    writer = TextWriter()
    hidden: list[str] = []
    whole = book.mem[book.base : book.base + book.stream_len] if book.biff_version >= 80 else b""
    drawings: dict[str, list[str]] = {}
    with suppress(struct.error, IndexError):  # what is damaged here costs no cell
        drawings.update(_drawings(whole))
    for name in book.sheet_names():
        sheet = book.sheet_by_name(name)
        if hasattr(sheet, "nrows"):
            rows = ((index + 1, _xls_cells(book, sheet.row(index))) for index in range(sheet.nrows))
            write_sheet(writer, name, (row for row in rows if row[1]), sheet.visibility != 0)
            hidden += [f"sheet {name}"] if sheet.visibility else []
            for what, infos in (("rows", sheet.rowinfo_map), ("columns", sheet.colinfo_map)):
                hidden += [f"{what} of {name}"] if any(info.hidden for info in infos.values()) else []
            notes = {_joined(str(note.text)) for note in sheet.cell_note_map.values()}
            for (row, column), note in sorted(sheet.cell_note_map.items()):
                writer.paragraph(_joined(str(note.text)), locator(sheet=name, comment=xlrd.cellname(row, column)))
            for words in (words for words in drawings.pop(name, ()) if words not in notes):
                writer.paragraph(words, locator(sheet=name))
        book.unload_sheet(name)
    for name, own in drawings.items():  # sheets that are charts
        write_sheet(writer, name, ())
        for words in own:
            writer.paragraph(words, locator(sheet=name))
    author = " ".join(str(book.user_name or "").split())
    yield written(writer, "sheet", metadata=({"author": author} if author else {}) | left_out(0, *hidden))


def _biff(stream: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Place, kind and data of each record of a workbook ([MS-XLS] 2.1.4)."""
    at = 0
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<2H", stream, at)
        yield at, kind, stream[at + 4 : at + 4 + size]
        at += 4 + size


def _drawings(stream: bytes) -> Iterator[tuple[str, list[str]]]:
    """The words of the charts and text boxes of each sheet that has some: titles, names of series, what is in a box.

    The numbers of a chart are those of cells, which are read with their sheet.
    """
    names: dict[int, str] = {}
    name, depth, box = "", 0, 0
    found: list[str] = []
    for at, kind, data in _biff(stream):
        if kind == _BOUND:
            names[struct.unpack_from("<I", data)[0]] = _short_string(data[6:])
        elif kind == _BOF:
            name = names.get(at, name) if not depth else name
            depth += 1
        elif kind == _EOF:
            depth -= 1
            if not depth and found:
                yield name, list(dict.fromkeys(found))
                found = []
        elif kind == _SERIES_TEXT and len(data) > 3:
            found.append(_joined(_short_string(data[2:])))
        elif kind == _BOX and len(data) > 12:
            (box,) = struct.unpack_from("<H", data, 10)
        elif kind == _CONTINUE and box:
            words = data[1:].decode("utf-16-le" if data[:1] == b"\1" else "latin-1", "replace")[:box]
            found.append(_joined(words))
            box = 0
    if found:
        yield name, list(dict.fromkeys(found))


def _short_string(data: bytes) -> str:
    """A text with its length in one byte, then whether its letters have two."""
    size, wide = data[0], data[1] & 1
    return data[2 : 2 + size * (1 + wide)].decode("utf-16-le" if wide else "latin-1", "replace")


def drawn_words(stream: bytes) -> str:
    """The words of a workbook that is shown as a chart on a slide: its titles and series, and the words of its cells."""
    found = [words for _, own in _drawings(stream) for words in own]
    for _, kind, data in _biff(stream):
        if kind == _LABEL and len(data) > 8:
            found.append(_joined(_short_string(data[6:7] + data[8:])))
    return "\n".join(words for words in dict.fromkeys(found) if words)


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
