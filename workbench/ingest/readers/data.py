"""JSON, XML and notebooks: what is written in them, not their brackets.

A JSON file of records (an array of objects with `text`) is read as a JSONL file is. Any other JSON keeps its own lines, which a
citation then names; one without line ends is laid out first. XML becomes one line an element that holds words, `name: words`,
and its place is the line of the file on which the element begins, `line=57`; an element within a
sentence is a part of its line. HTML inside an element, as feeds have it, is read
as HTML; an Office file that was saved as XML is read as the Office file that it is. Entities that a file declares are refused,
external ones are never fetched.

In a notebook a place is the cell's number from 1, `cell=4`, and `cell=4&output=1` for an output. No chunk mixes code and output:
an answer that quotes a printed table is not an answer about the code that printed it. Pictures are left out, what describes
them in text is kept; very long outputs are cut. nbformat would find no word more, and takes as long to parse as all of this.
"""

from __future__ import annotations

import json
import re
import xml.parsers.expat as expat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.ingest.encoding import clean, normalise, without_colours
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.outline import Outline, TextWriter
from workbench.ingest.readers import archives, html, sheets
from workbench.ingest.readers.base import Member, Parsed, Reader, Source, written
from workbench.ingest.readers.records import read_objects, unescaped
from workbench.ingest.readers.text import markdown_outline
from workbench.ingest.readers.tree import DECLARATION
from workbench.locators import locator

_LONG_LINE = 2000
_ITEMS = ("item", "entry", "record", "row")
_BLOCKS = frozenset((*_ITEMS, *"p para div li td th tr ul ol table h1 h2 h3 h4 h5 h6 sec section title".split()))
_MOST_INLINE = 50
_TAGS = re.compile(r"<(?:p|br|div|a|b|i|img|ul|li|h\d|table|span|em|strong)\b[^<>]*>", re.IGNORECASE)
_HTML_ROOT = re.compile(r"(?is)^\s*(?:<\?xml[^>]*>\s*)?(?:<!doctype\s+html|<html\b)")
_PICTURE = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/=]{400,}")
_NO_WORDS = re.compile(r"\s*<[\w.]+ object(?: at 0x[0-9a-f]+)?>\s*|\s*<[\w.]+ at 0x[0-9a-f]+>\s*")
_LONGEST_OUTPUT = 20_000


def _read_json(source: Source) -> Iterator[Parsed | Problem]:
    text, metadata = source.text()
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        yield Parsed(text, "code", Outline(prose=False), language="json", metadata=metadata)
        return
    if isinstance(data, list) and data and all(isinstance(d, dict) and isinstance(d.get("text"), str) for d in data):
        yield from read_objects(data)
        return
    if max(map(len, text.split("\n"))) > _LONG_LINE:
        text = clean(json.dumps(data, ensure_ascii=False, indent=1))
        metadata = {**metadata, "laid_out": True}
    yield Parsed(unescaped(text), "code", Outline(prose=False), language="json", metadata=metadata)


class _Entities(Exception):
    """The file declares entities."""


def _read_xml(source: Source) -> Iterator[Parsed | Member | Problem]:
    raw, metadata = source.text()
    if _HTML_ROOT.match(raw[:4096]):
        yield from html.READER.read(source)
        return
    if sheets.is_xml_book(raw):
        yield sheets.read_xml_book(raw)
        return
    if archives.is_flat(raw):
        yield from archives.read_flat(source, raw)
        return
    try:
        tree = _Xml(raw)
    except _Entities:
        reason = "It declares entities, which are not followed, and was read as text"
        yield Problem(reason, "Write the words themselves")
    except expat.ExpatError as exc:
        reason = f"It is not well-formed XML ({expat.ErrorString(exc.code)}) and was read as text"
        yield Problem(reason, "Correct it", exc.lineno)
    else:
        if tree.writer.length:
            yield written(tree.writer, "xml", tree.title, language=tree.language, metadata=metadata)
            return
    yield Parsed(raw, "xml", Outline(prose=False), metadata=metadata)


_Line = tuple[str, str, str, int]
"""Name and attributes of an element, its words, and the line of the file on which it begins."""


@dataclass(slots=True)
class _Element:
    """An open element: its words and what its children have become, in their order."""

    name: str
    attributes: str
    line: int
    parts: list[str | _Closed] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Closed:
    """A child: its lines, and its words where it can be a part of its parent's sentence (None where it is a block)."""

    lines: list[_Line]
    words: str | None


class _Xml:
    """The lines of an XML file, one an element that holds words; no recursion, so depth costs nothing.

    Where words are before or behind an element, as an emphasis is in a sentence, its words are a part of its parent's line.
    Raises ExpatError, _Entities.
    """

    def __init__(self, raw: str) -> None:
        self.writer = TextWriter()
        self.title = self.language = ""
        self._parser = parser = expat.ParserCreate("utf-8", " ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._words
        parser.EntityDeclHandler = self._entity
        self._open = [_Element("", "", 1)]
        declaration = DECLARATION.match(raw)
        if declaration is not None:  # the declared encoding was that of the bytes; line numbers stay
            raw = "\n" * declaration[0].count("\n") + raw[declaration.end() :]
        parser.Parse(raw.lstrip(" \t"), True)
        for closed in self._open[0].parts:
            for line in closed.lines if isinstance(closed, _Closed) else ():
                self._write(*line)

    def _words(self, data: str) -> None:
        self._open[-1].parts.append(data)

    def _entity(self, *_: object) -> None:
        raise _Entities

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) == 1:
            self.language = next((v for k, v in attributes.items() if k.endswith("lang")), "").partition("-")[0].lower()
        # Names of schemas and identifiers of the format are noise.
        shown = [
            f"{key.rpartition(' ')[2]}={value!r}"
            for key, value in attributes.items()
            if value.strip() and "schemaLocation" not in key and not value.startswith("http://www.w3.org/")
        ]
        self._open.append(_Element(name.rpartition(" ")[2], " ".join(shown), self._parser.CurrentLineNumber))

    def _end(self, _name: str) -> None:
        element = self._open.pop()
        name, attributes, line, parts = element.name, element.attributes, element.line, element.parts
        mixed = any(isinstance(part, str) and part.strip() for part in parts)
        lines: list[_Line] = []
        words: list[str] = []  # of the sentence so far
        aside: list[_Line] = []  # attributes of what is in it
        for part in (*parts, _Closed([], None)):
            if isinstance(part, str):
                words.append(part)
            elif mixed and part.words is not None:
                words.append(part.words)
                aside += [(own, given, "", at) for own, given, _, at in part.lines if given]
            else:
                sentence = "".join(words).strip()
                if sentence or attributes:
                    lines.append((name, attributes, sentence, line))
                lines += aside + part.lines
                words, aside, attributes = [], [], ""
        inline = name not in _BLOCKS and sum(bool(own[2]) for own in lines) <= 1 and len(lines) < _MOST_INLINE
        inner = "".join(part if isinstance(part, str) else part.words or "" for part in parts) if inline else None
        self._open[-1].parts.append(_Closed(lines, " " if name in ("br", "lb") else inner))

    def _write(self, name: str, attributes: str, words: str, line: int) -> None:
        at = locator(line=line)
        if words and _TAGS.search(words):
            self.writer.line(f"{name}:", at)
            self.writer.html(words, at)
            return
        words = words if "\n" in words and len(words) > 200 else " ".join(words.split())
        if name == "title" and words and not self.title:
            self.title = " ".join(words.split())
        if name in _ITEMS:
            self.writer.gap()
        label = f"{name} {attributes}".strip()
        self.writer.line(f"{label}: {words}" if words else label, at)
        if len(words) > 200:
            self.writer.gap()


def _read_notebook(source: Source) -> Iterator[Parsed | Problem]:
    raw, metadata = source.text()
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise ReadError("It is a broken notebook: it is not JSON", "Open it in Jupyter, and save it again") from exc
    data = data if isinstance(data, dict) else {}
    cells = data.get("cells")
    if not isinstance(cells, list):  # version 3 kept them in worksheets
        sheets = data.get("worksheets")
        if not isinstance(sheets, list):
            raise ReadError("It is not a notebook: it has no cells", "Give it the suffix .json")
        cells = [cell for sheet in sheets if isinstance(sheet, dict) for cell in sheet.get("cells", ())]
    writer = TextWriter()
    cut = sum(_cell(writer, cell, number) for number, cell in enumerate(cells, 1) if isinstance(cell, dict))
    if cut:
        reason = f"{cut} outputs were cut to their first {_LONGEST_OUTPUT:,} characters"
        yield Problem(reason, "Nothing needs to be done")
    inner, language = data.get("metadata"), ""
    for name, key in (("kernelspec", "language"), ("language_info", "name")):
        part = inner.get(name) if isinstance(inner, dict) else None
        language = str(part.get(key) or language) if isinstance(part, dict) else language
    yield written(writer, "notebook", language=language, metadata=metadata)


def _cell(writer: TextWriter, cell: Mapping[str, Any], number: int) -> int:
    """Write a cell and its outputs; returns how many outputs were cut."""
    at = locator(cell=number)
    words = _joined(cell.get("source", cell.get("input", "")))
    kind = cell.get("cell_type")
    if kind == "heading":
        level = cell.get("level", 1)
        writer.heading(words, level if isinstance(level, int) else 1, at)
    elif kind == "code":
        writer.block(words, at)
    else:
        words = _PICTURE.sub("[picture]", words)
        writer.shaped(words, markdown_outline(normalise(words).strip("\n")), at)
    cut = 0
    outputs = cell.get("outputs")
    for index, output in enumerate(outputs if isinstance(outputs, list) else (), 1):
        words = _output(output) if isinstance(output, dict) else ""
        if words.strip():
            cut += len(words) > _LONGEST_OUTPUT
            writer.apart()
            writer.block(words[:_LONGEST_OUTPUT], locator(cell=number, output=index))
            writer.apart()
    return cut


def _output(output: Mapping[str, Any]) -> str:
    if output.get("output_type") in ("error", "pyerr"):
        trace = output.get("traceback")
        words = "\n".join(map(str, trace)) if isinstance(trace, list) and trace else ""
        return without_colours(words or f"{output.get('ename', '')}: {output.get('evalue', '')}")
    data = output.get("data", output)
    if not isinstance(data, dict):
        return ""
    for name in ("text/markdown", "text/plain", "text/latex", "text"):
        words = _joined(data.get(name))
        if name in data and not _NO_WORDS.fullmatch(words):
            return _PICTURE.sub("[picture]", without_colours(words))
    return html.html_text(_joined(data.get("text/html")))[0] or _joined(data.get("text/plain"))


def _joined(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


JSON = Reader("json", _read_json, frozenset({".json", ".geojson", ".webmanifest"}))
XML = Reader(
    "xml",
    _read_xml,
    frozenset(".xml .rss .atom .xsd .xsl .xslt .kml .gpx .dita .opml .wsdl .fodt .fods .fodp .fodg".split()),
    sniff=lambda head: bool(re.match(rb"\s*(?:\xef\xbb\xbf)?<\?xml\b", head)),
)
NOTEBOOK = Reader("notebook", _read_notebook, frozenset({".ipynb"}))
