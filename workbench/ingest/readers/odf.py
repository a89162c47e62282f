"""OpenDocument: text (ODT), sheets (ODS) and slides (ODP), from `content.xml`.

Places are those of the Office formats: `paragraph=12` outside of tables, `table=2&row=3`, `sheet=Sales&row=12`, `slide=3`.
Charts, formulas and tables of other programs come where they are shown. What tracked changes have deleted is not there.
Heads and feet of the pages, from `styles.xml`, come once, at the end. Hidden sheets and slides are read too, and marked.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.outline import CELLS, TextWriter, is_layout, left_out, raised, trimmed
from workbench.ingest.readers.base import LOCKED, RESAVE, Member, Parsed, Source, written
from workbench.ingest.readers.package import Package, math, opened, properties
from workbench.ingest.readers.sheets import Row, column_name, write_sheet
from workbench.ingest.readers.tree import attribute, child, descendants, local, parse_xml
from workbench.ingest.readers.word import OpenLists
from workbench.locators import locator, whole_number

_PASSED = frozenset("tracked-changes note-citation sequence-decls forms annotation-end ruby-text page-number".split())
_FILES = (".pdf", ".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp")
_SHAPES = tuple("custom-shape rect ellipse circle polygon polyline path connector line measure caption".split())
_MOST_REPEATED, _LARGEST_CHART = 1000, 1 << 24
_CELLS = ("table-cell", "covered-table-cell")


def read(source: Source) -> Iterator[Parsed | Member | Problem]:
    """Read an ODT, ODS or ODP."""
    with opened(source) as package:
        if next(descendants(package.xml("META-INF/manifest.xml"), "encryption-data"), None) is not None:
            raise ReadError(*LOCKED)
        root, styles = package.must("content.xml"), package.xml("styles.xml")
        body = child(root, "body")
        content = next((n for n in body if isinstance(n.tag, str)), None) if body is not None else None
        if content is None:
            raise ReadError("It is broken: it has no body", RESAVE)
        writer = TextWriter()
        kind = local(content)
        hiding = _hiding_styles(root)
        secrets = _show(root, styles)
        hidden: list[str] = []
        if kind == "spreadsheet":
            for table in _own(content, "table"):
                name, secret = attribute(table, "name"), attribute(table, "style-name") in hiding
                hidden += [f"sheet {name}"] if secret else []
                remarks: list[tuple[str, str]] = []
                write_sheet(writer, name, _sheet_rows(table, remarks), secret)
                for cell, words in remarks:
                    writer.paragraph(words, locator(sheet=name, comment=cell))
                for drawn in descendants(table, "text-box", "object", *_SHAPES):
                    words = _object(drawn, package) if local(drawn) == "object" else _lines(drawn)
                    writer.paragraph(words, locator(sheet=name))
        elif kind == "presentation":
            for number, page in enumerate(descendants(content, "page"), 1):
                secret = attribute(page, "style-name") in hiding
                hidden += [f"slide {number}"] if secret else []
                _slide(writer, page, number, secret, package)
        else:
            _Text(writer, OpenLists(root, styles), package).blocks(content)
            _heads_and_feet(writer, styles)
        title, language, metadata = properties(package.xml("meta.xml"))
        metadata |= left_out(secrets, *hidden)
        named = {"spreadsheet": "sheet", "presentation": "slides"}.get(kind, "word")
        yield written(writer, named, title, language=language, metadata=metadata)
        for name in package.names:
            if not name.startswith("Thumbnails/") and name.lower().endswith(_FILES):
                yield Member(name, package.read(name))
        for node in descendants(root, "object-ole"):
            name = attribute(node, "href").removeprefix("./")
            if package.has(name):
                yield Member(f"{name}.bin", package.read(name))


def _show(root: Any, styles: Any) -> int:
    """Take out what is formatted as hidden, and set raised figures apart; how often something was hidden."""
    looks: dict[str, str] = {}
    for style in (*descendants(styles, "style"), *descendants(root, "style")):
        look = child(style, "text-properties")
        position = attribute(look, "text-position")
        raised_by = "" if position[:1] in ("", "0") else "low" if position.startswith(("sub", "-")) else "high"
        looks[attribute(style, "name")] = "hidden" if attribute(look, "display") == "none" else raised_by
    hidden = 0
    for node in root.iter("{*}frame", "{*}g", *(f"{{*}}{name}" for name in _SHAPES)):
        if next((v for k, v in node.attrib.items() if k.endswith("drawing:1.0}display")), "") in ("none", "printer"):
            hidden += bool("".join(node.itertext()).strip())
            node[:] = []
    for node in root.iter("{*}span", "{*}p", "{*}h"):
        look = looks.get(attribute(node, "style-name"), "")
        if look == "hidden" and "".join(node.itertext()).strip():
            hidden += 1
            node[:], node.text = [], ""
        elif look and local(node) == "span":
            before = node.getprevious()
            words = node.getparent().text if before is None else before.tail or "".join(before.itertext())
            node.text = raised(words or "", node.text or "", look == "low")
    return hidden


def _words(node: Any) -> str:
    """The words of a paragraph with its spaces, tabs and line ends, without its notes."""
    found: list[str] = [node.text or ""]
    for inner in node:
        name = local(inner)
        if name == "s":
            found.append(" " * min(whole_number(attribute(inner, "c"), 1), 200))
        elif name in ("tab", "line-break"):
            found.append("\t" if name == "tab" else "\n")
        elif name not in _PASSED and name not in ("note", "annotation", "frame", "text-box", *_SHAPES):
            found.append(_words(inner))
        found.append(inner.tail or "")
    return "".join(found)


def _lines(node: Any) -> str:
    """The paragraphs below a node, a line each."""
    return "\n".join(_words(p).strip() for p in descendants(node, "p", "h"))


def _cell(node: Any) -> str:
    return " ".join(" ".join(_words(p) for p in descendants(node, "p", "h")).split())


class _Text:
    """Writes the blocks of a text document."""

    def __init__(self, writer: TextWriter, lists: OpenLists, package: Package) -> None:
        self._out, self._lists, self._package = writer, lists, package
        self._paragraphs = self._tables = 0

    def blocks(self, node: Any, depth: int = -1) -> None:
        """Write what is below a node; `depth` of the list that it is in, -1 outside of lists."""
        for inner in node:
            name = local(inner)
            if name in ("h", "p"):
                self._paragraphs += 1
                self._paragraph(inner, depth, locator(paragraph=self._paragraphs))
            elif name == "list":
                self._lists.open(inner, depth + 1)
                self.blocks(inner, depth + 1)
                if depth < 0:
                    self._out.gap()
            elif name == "list-item":
                self._lists.item(inner, depth)
                self.blocks(inner, depth)
            elif name == "table":
                self._tables += 1
                self._table(inner, self._tables)
            elif name not in _PASSED and isinstance(inner.tag, str):
                self.blocks(inner, depth)

    def _paragraph(self, node: Any, depth: int, at: str) -> None:
        words = _words(node)
        if local(node) == "h":
            self._out.heading(words, whole_number(attribute(node, "outline-level"), 1), at)
        elif depth < 0:
            self._out.paragraph(words, at)
        elif words.strip():
            self._out.line(f"{'  ' * depth}{self._lists.label(depth)}{words.strip()}", at)
        # Notes, remarks, text boxes and objects that hang on a paragraph, after it.
        for inner in descendants(node, "note-body", "annotation", "text-box", "object", *_SHAPES):
            if local(inner) == "object":
                self._out.paragraph(_object(inner, self._package), at)
            elif next(inner.iterancestors("{*}object"), None) is None:  # else the object's own words have it
                self._out.paragraph(_lines(inner), at)

    def _table(self, node: Any, number: int) -> None:
        rows = list(_own(node, "table-row"))
        cells = [[_cell(cell) for cell in row if local(cell) in _CELLS] for row in rows]
        if is_layout(cells):
            for index, row in enumerate(rows, 1):
                for paragraph in descendants(row, "p", "h"):
                    self._out.paragraph(_words(paragraph), locator(table=number, row=index))
        else:
            self._out.table((row, locator(table=number, row=index)) for index, row in enumerate(cells, 1))


def _heads_and_feet(writer: TextWriter, styles: Any) -> None:
    """Heads and feet of the pages, each once however many kinds of page have it; page numbers alone are not shown."""
    for name in ("header", "footer"):
        names = (name, f"{name}-first", f"{name}-left")
        nodes = [node for master in descendants(styles, "master-page") for node in descendants(master, *names)]
        found = dict.fromkeys(_lines(node).strip() for node in nodes)
        for number, words in enumerate((words for words in found if any(map(str.isalpha, words))), 1):
            writer.aside(words, locator(**{name: number}))


def _hiding_styles(root: Any) -> frozenset[str]:
    return frozenset(
        attribute(style, "name")
        for style in descendants(root, "style")
        for inner in style
        if (local(inner) == "table-properties" and attribute(inner, "display") == "false")
        or (local(inner) == "drawing-page-properties" and attribute(inner, "visibility") == "hidden")
    )


def _own(node: Any, wanted: str) -> Iterator[Any]:
    """Rows of a table or tables of a spreadsheet, also those in groups, headers and links, not those inside another one."""
    for inner in node if node is not None else ():
        name = local(inner)
        if name == wanted:
            yield inner
        elif name in ("table-rows", "table-header-rows", "table-row-group", "dde-links"):
            yield from _own(inner, wanted)


def _sheet_rows(table: Any, remarks: list[tuple[str, str]]) -> Iterator[Row]:
    """The rows of a sheet; adds the remarks on its cells, `B3` and words."""
    number = 0
    for row in _own(table, "table-row"):
        times = whole_number(attribute(row, "number-rows-repeated"), 1)
        cells: dict[int, str] = {}
        column = 0
        for cell in row:
            if local(cell) in _CELLS:
                count = whole_number(attribute(cell, "number-columns-repeated"), 1)
                own = " ".join(_words(p) for p in cell if local(p) in ("p", "h"))
                words = " ".join(own.split()) or " ".join(attribute(cell, "string-value").split())
                for note in cell.iterchildren("{*}annotation"):
                    author = child(note, "creator")
                    by = f"{author.text}: " if author is not None and author.text else ""
                    remarks.append((f"{column_name(column)}{number + 1}", by + _lines(note)))
                if words:
                    cells |= {column + n: words for n in range(min(count, _MOST_REPEATED))}
                column += count
        if cells:
            for n in range(min(times, _MOST_REPEATED)):
                yield number + n + 1, cells
        number += times


def _object(node: Any, package: Package) -> str:
    """The words of an object in a frame: a chart's titles and series, a formula, or the text and tables of another file."""
    root = child(node, "document")
    if root is None:
        root = package.xml(f"{attribute(node, 'href').removeprefix('./')}/content.xml")
    if root is None:
        root = child(node, "math")
    if root is not None and local(root) == "math":
        return math(root)
    words = _chart(root)
    return words if words is not None else "\n".join(words for words in _inner(root) if words.strip())


def chart_words(data: bytes) -> str:
    """The words of a chart that is an OpenDocument package by itself; "" for anything else."""
    with suppress(zipfile.BadZipFile, KeyError), zipfile.ZipFile(io.BytesIO(data)) as package:
        small = package.getinfo("content.xml").file_size < _LARGEST_CHART
        return (_chart(parse_xml(package.read("content.xml"))[0]) if small else "") or ""
    return ""


def _inner(root: Any) -> Iterator[str]:
    """Rows and paragraphs of an embedded text or sheet, in their order; those of a table as cells."""
    for node in descendants(child(root, "body"), "table-row", "p", "h"):
        if local(node) == "table-row":
            yield CELLS.join(trimmed([_cell(cell) for cell in node if local(cell) == "table-cell"]))
        elif next(node.iterancestors("{*}table-cell"), None) is None:
            yield _words(node).strip()


def _chart(root: Any) -> str | None:
    """Titles of the chart below a node and of its axes, then its series: `name: category value, ...`; None without a chart."""
    chart = next((node for node in descendants(root, "chart") if child(node, "plot-area") is not None), None)
    if chart is None:
        return None
    titles = descendants(chart, "title", "subtitle")
    found = [" ".join(_words(p).strip() for p in descendants(title, "p")) for title in titles]
    rows = [[_cell(cell) for cell in row] for row in _own(child(chart, "table"), "table-row")]
    for column in range(1, max(map(len, rows), default=0)):
        points = [(row[0], row[column]) for row in rows[1:] if len(row) > column and row[column]]
        pairs = ", ".join(f"{category} {number}".strip() for category, number in points)
        name = rows[0][column] if len(rows[0]) > column else ""
        found.append(f"{name}: {pairs}" if name and pairs else name or pairs)
    return "\n".join(words for words in found if words.strip())


def _slide(writer: TextWriter, page: Any, number: int, hidden: bool, package: Package) -> None:
    at = locator(slide=number)
    notes = child(page, "notes")
    frames = [n for n in page if isinstance(n.tag, str) and n is not notes]
    title = next((f for f in frames if attribute(f, "class") == "title"), None)
    words = " ".join(_words(p) for p in descendants(title, "p", "h"))
    writer.slide(words + " (hidden slide)" * hidden, at)
    for frame in (frame for frame in frames if frame is not title):
        embedded = next(descendants(frame, "object"), None)
        table = next(descendants(frame, "table"), None)
        if embedded is not None:
            writer.paragraph(_object(embedded, package), at)
        elif table is not None:
            rows = ([c for c in row if local(c) in _CELLS] for row in _own(table, "table-row"))
            writer.table(([_cell(c) for c in row], at) for row in rows)
        else:
            writer.paragraph(_lines(frame), at)
    writer.paragraph("\n".join(_words(p).strip() for p in descendants(notes, "p")), locator(slide=number, part="notes"))
