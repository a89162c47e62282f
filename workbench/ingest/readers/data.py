"""JSON and XML: what is written in them, not their brackets.

A JSON file of records (an array of objects with `text`) is read as a JSONL file is. Any other JSON keeps its own lines, which a
citation then names; one without line ends is laid out first. XML becomes one line an element that holds words, `name: words`,
and its place is the line of the file on which the element begins, `line=57`. HTML inside an element, as feeds have it, is read
as HTML; an Office file that was saved as XML is read as the Office file that it is. Entities that a file declares are refused,
external ones are never fetched.
"""

from __future__ import annotations

import json
import re
import xml.parsers.expat as expat
from collections.abc import Iterator

from workbench.ingest.encoding import clean
from workbench.ingest.errors import Problem
from workbench.ingest.outline import Outline
from workbench.ingest.readers import flat
from workbench.ingest.readers.base import Member, Parsed, Reader, Source
from workbench.ingest.readers.records import read_objects
from workbench.ingest.writing import TextWriter
from workbench.locators import locator

_LONG_LINE = 2000
_TAGS = re.compile(r"<(?:p|br|div|a|b|i|img|ul|li|h\d|table|span|em|strong)\b[^<>]*>", re.IGNORECASE)
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_HTML_ROOT = re.compile(r"(?is)^\s*(?:<\?xml[^>]*>\s*)?(?:<!doctype\s+html|<html\b)")


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
    yield Parsed(text, "code", Outline(prose=False), language="json", metadata=metadata)


JSON = Reader("json", _read_json, frozenset({".json", ".geojson", ".webmanifest"}))


class _Entities(Exception):
    """The file declares entities."""


def _read_xml(source: Source) -> Iterator[Parsed | Member | Problem]:
    raw, metadata = source.text()
    if _HTML_ROOT.match(raw[:4096]):
        from workbench.ingest.readers.html import READER as HTML

        yield from HTML.read(source)
        return
    if flat.is_flat(raw):
        yield from flat.read(source, raw)
        return
    tree = _Xml()
    try:
        tree.parse(raw)
    except _Entities:
        yield Problem(
            "It declares entities, which are not followed, and was read as text", "Write the words themselves"
        )
    except expat.ExpatError as exc:
        words = expat.ErrorString(exc.code)
        yield Problem(f"It is not well-formed XML ({words}) and was read as text", "Mend it", exc.lineno)
    else:
        text, outline, places = tree.writer.finish()
        if text.strip():
            yield Parsed(text, "xml", outline, tree.title, language=tree.language, metadata=metadata, places=places)
            return
    yield Parsed(raw, "xml", Outline(prose=False), metadata=metadata)


XML = Reader(
    "xml", _read_xml, frozenset({".xml", ".rss", ".atom", ".xsd", ".xsl", ".xslt", ".kml", ".gpx", ".dita", ".opml", ".wsdl",
        ".fodt", ".fods", ".fodp", ".fodg"}),
    sniff=lambda head: bool(re.match(rb"\s*(?:\xef\xbb\xbf)?<\?xml\b", head)),
)  # fmt: skip


class _Xml:
    """Writes the words of an XML file as its elements end; no recursion, so depth costs nothing."""

    def __init__(self) -> None:
        self.writer = TextWriter()
        self.title = self.language = ""
        self._parser = expat.ParserCreate("utf-8", " ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._words
        self._parser.EntityDeclHandler = self._entity
        # For each open element: name, line, attributes, the words since its start or last child, had words beside children.
        self._open: list[list[object]] = []
        self._text: list[list[str]] = []

    def parse(self, raw: str) -> None:
        """Read a whole file. Raises ExpatError, _Entities."""
        declaration = _DECLARATION.match(raw)
        if declaration is not None:  # the declared encoding was that of the bytes; line numbers stay
            raw = "\n" * declaration[0].count("\n") + raw[declaration.end() :]
        self._parser.Parse(raw.lstrip(" \t") if raw[:1] in (" ", "\t") else raw, True)

    def _entity(self, *_: object) -> None:
        raise _Entities

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._text:
            self._flush()
        short = name.rpartition(" ")[2]
        said = [f"{key.rpartition(' ')[2]}={value!r}" for key, value in attributes.items() if self._worth(key, value)]
        if not self._open:
            self.language = next((v for k, v in attributes.items() if k.endswith("lang")), "").partition("-")[0].lower()
        self._open.append([short, self._parser.CurrentLineNumber, " ".join(said)])
        self._text.append([])

    def _words(self, data: str) -> None:
        if self._text:
            self._text[-1].append(data)

    def _end(self, _name: str) -> None:
        self._flush(ending=True)
        self._open.pop()
        self._text.pop()

    def _flush(self, ending: bool = False) -> None:
        """Write what the innermost element has said so far."""
        words = "".join(self._text[-1]).strip()
        self._text[-1] = []
        name, line, said = self._open[-1]
        self._open[-1][2] = ""
        if not words and not said:
            return
        at = locator(line=line)
        if words and _TAGS.search(words):
            self.writer.line(f"{name}:", at)
            self.writer.html(words, at)
            return
        words = words if "\n" in words and len(words) > 200 else " ".join(words.split())
        if name == "title" and words and not self.title:
            self.title = " ".join(words.split())
        if name in ("item", "entry", "record", "row"):
            self.writer.gap()
        label = f"{name} {said}".strip()
        self.writer.line(f"{label}: {words}" if words else label, at)
        if len(words) > 200:
            self.writer.gap()

    @staticmethod
    def _worth(key: str, value: str) -> bool:
        """Attributes that hold words or numbers; names of schemas and identifiers of the format are noise."""
        return bool(value.strip()) and "schemaLocation" not in key and not value.startswith("http://www.w3.org/")
