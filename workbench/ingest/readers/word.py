"""Word files (DOCX): paragraphs, lists, tables, text boxes, notes, comments, headers and footers, in reading order.

Read from the XML itself: the libraries for DOCX leave out text boxes, content controls, notes and numbering, and a search
that cannot find a footnote is wrong about the document. Deleted text of tracked changes is not there, inserted text is.

Word files have no pages until they are printed, so a place is a paragraph outside of tables (`paragraph=12`, from 1), a row of
a table (`table=2&row=3`), or a note, comment, header or footer by its number. The numbers of lists and headings are not in
the text, and people search for "4.2 Scope" all the same: they are counted here, for OpenDocument too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from workbench.ingest.errors import Problem
from workbench.ingest.outline import CELLS, TextWriter, is_layout, left_out, trimmed
from workbench.ingest.readers.base import Member, Parsed, Source, written
from workbench.ingest.readers.package import Package, drawings, embedded, formatted, opened, properties, shown
from workbench.ingest.readers.tree import attribute, child, chosen, descendants, is_on, local, value
from workbench.locators import locator, whole_number

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_PASSED = frozenset("pPr rPr instrText del moveFrom delText rt fldData sectPr tblPr tcPr".split())
_NOTES = {"footnotes": "footnote", "endnotes": "endnote", "comments": "comment"}
_OPEN_FORMATS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_PART = re.compile(r"%(\d)")


def read(source: Source) -> Iterator[Parsed | Member | Problem]:
    with opened(source) as package:
        main = package.main("word/document.xml")
        title, language, metadata = properties(package.xml("docProps/core.xml"))
        writer = _Writer(package, main)
        root = package.must(main)
        writer.body(child(writer.shown(root), "body"))
        writer.rest()
        metadata |= left_out(writer.hidden)
        yield written(writer.out, "word", title or writer.title, language=language, metadata=metadata)
        yield from embedded(package, writer.relations)


class _Styles:
    """What styles say of paragraphs: the level of a heading, 0 for the title of the whole, and numbering."""

    def __init__(self, root: Any) -> None:
        self.level: dict[str, int] = {}
        self.numbering: dict[str, tuple[str, str]] = {}
        self.title: set[str] = set()
        self.looks: dict[str, str] = {}
        parents: dict[str, str] = {}
        for style in descendants(root, "style"):
            key, name = attribute(style, "styleId"), value(style, "name")
            parents[key] = value(style, "basedOn")
            match = _HEADING.fullmatch(name)
            depth = whole_number(value(style, "pPr", "outlineLvl"), 9)
            if name.lower() == "title":
                self.title.add(key)
                self.level[key] = 0
            elif match is not None:
                self.level[key] = int(match[1])
            elif depth < 9:
                self.level[key] = depth + 1
            look = child(style, "rPr") if attribute(style, "type") == "character" else None
            self.looks[key] = "hidden" if is_on(child(look, "vanish")) else value(look, "vertAlign")
            number = child(style, "pPr", "numPr")
            if number is not None:
                self.numbering[key] = _number_of(number)
        for key, parent in parents.items():
            seen, up = {key}, parent
            while up and up not in seen:
                seen.add(up)
                if up in self.level:
                    self.level.setdefault(key, self.level[up])
                if up in self.numbering:
                    self.numbering.setdefault(key, self.numbering[up])
                up = parents.get(up, "")


def _number_of(node: Any) -> tuple[str, str]:
    return value(node, "numId"), value(node, "ilvl") if child(node, "ilvl") is not None else "0"


class _Writer:
    """Writes one document; `hidden` counts the runs of text that the program does not show."""

    def __init__(self, package: Package, main: str) -> None:
        self.out = TextWriter()
        self.title = ""
        self.hidden = 0
        self.relations = package.relations(main)
        self._package = package
        parts = dict(self.relations.values())
        self._styles = _Styles(package.xml(parts.get("styles", "word/styles.xml")))
        self._numbers = _Numbering(package.xml(parts.get("numbering", "word/numbering.xml")))
        self._paragraphs = self._tables = 0

    def shown(self, root: Any) -> Any:
        self.hidden += shown(root, self._styles.looks)
        return root

    def body(self, node: Any) -> None:
        for block in _blocks(node):
            if local(block) == "p":
                self._paragraphs += 1
                self._paragraph(block, locator(paragraph=self._paragraphs))
            else:
                self._tables += 1
                self._table(block, self._tables)

    def rest(self) -> None:
        targets = sorted(set(self.relations.values()))
        for kind, name in _NOTES.items():
            for part in (target for own, target in targets if own == kind):
                for note in descendants(self.shown(self._package.xml(part)), name):
                    if attribute(note, "type") not in ("separator", "continuationSeparator", "continuationNotice"):
                        self._apart(note, locator(**{name: attribute(note, "id")}), attribute(note, "author"))
        seen: set[str] = set()
        for name in ("header", "footer"):
            for number, part in enumerate((target for own, target in targets if own == name), 1):
                root = self.shown(self._package.xml(part))
                words = "\n".join(_texts(root))
                if any(map(str.isalpha, words)) and words not in seen:  # page numbers alone are passed over
                    seen.add(words)
                    self._apart(root, locator(**{name: number}), "")

    def _apart(self, node: Any, at: str, author: str) -> None:
        words = "\n".join(text for text in _texts(node) if text.strip())
        self.out.aside(f"{author}: {words}" if author and words else words, at)

    def _paragraph(self, node: Any, at: str) -> None:
        key = value(node, "pPr", "pStyle")
        level = self._styles.level.get(key, -1)
        direct = whole_number(value(node, "pPr", "outlineLvl"), None)
        if direct is not None:
            level = direct + 1 if direct < 9 else -1
        words = _paragraph_text(node)
        numbered = child(node, "pPr", "numPr")
        listed = _number_of(numbered) if numbered is not None else self._styles.numbering.get(key, ("", "0"))
        label, bullet, depth = self._numbers.next(*listed) if words.strip() else ("", False, 0)
        if level >= 0 and words.strip():
            if key in self._styles.title and not self.title:
                self.title = " ".join(words.split())
            self.out.heading(f"{label} {words}" if label else words, level, at)
        elif label or bullet:
            self.out.line("  " * depth + f"{label or '-'} {words.strip()}", at)
        else:
            self.out.paragraph(words, at)
        for box in _text_boxes(node):
            for words in _texts(box):
                self.out.paragraph(words, at)
        for words in drawings(node, self._package, self.relations):
            self.out.paragraph(words, at)

    def _table(self, node: Any, number: int) -> None:
        rows = list(_below(node, "tr"))
        cells = [[_cell(cell) for cell in _below(row, "tc")] for row in rows]
        if is_layout(cells):
            for index, row in enumerate(rows, 1):
                for cell in _below(row, "tc"):
                    for words in _texts(cell):
                        self.out.paragraph(words, locator(table=number, row=index))
            return
        marked = [i for i, row in enumerate(rows) if child(row, "trPr", "tblHeader") is not None]
        filled = [i for i, row in enumerate(cells) if any(c.strip() for c in row)]
        header = filled.index(marked[-1]) if marked and marked[-1] in filled else None
        spread = [_spread(row, texts) for row, texts in zip(rows, cells, strict=True)]
        lines = ((row, locator(table=number, row=index)) for index, row in enumerate(spread, 1))
        self.out.table(lines, header=header)


def _blocks(node: Any) -> Iterator[Any]:
    """Paragraphs and tables right below a node, through content controls and tracked insertions."""
    for inner in node if node is not None else ():
        name = local(inner)
        if name in ("p", "tbl"):
            yield inner
        elif name in ("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag", "body", "sect", "sub-section"):
            yield from _blocks(inner)
        elif name == "AlternateContent":
            yield from _blocks(chosen(inner))


def _paragraph_text(node: Any) -> str:
    """The words of a paragraph as they are shown, without those of text boxes that hang on it."""
    return "".join(_words(node)).strip("\n")


def _words(node: Any) -> Iterator[str]:
    for inner in node if node is not None else ():
        name = local(inner)
        if name in _PASSED or name == "txbxContent":
            continue
        if name == "t":
            yield inner.text or ""
        elif name in ("tab", "ptab"):
            yield "\t"
        elif name in ("br", "cr"):
            yield "\n"
        elif name == "noBreakHyphen":
            yield "-"
        elif name == "docPr":
            described = attribute(inner, "descr").strip()
            yield f"[{described}]" if described else ""
        else:
            yield from _words(chosen(inner) if name == "AlternateContent" else inner)


def _text_boxes(node: Any) -> Iterator[Any]:
    """Contents of the text boxes on a paragraph."""
    for inner in node if node is not None and next(node.iter("{*}txbxContent"), None) is not None else ():
        name = local(inner)
        if name == "txbxContent":
            yield inner
        elif name not in _PASSED:
            yield from _text_boxes(chosen(inner) if name == "AlternateContent" else inner)


def _texts(node: Any) -> Iterator[str]:
    """Every paragraph's words below a node, those of tables and boxes too."""
    for block in _blocks(node):
        if local(block) == "p":
            yield _paragraph_text(block)
            for box in _text_boxes(block):
                yield from _texts(box)
        else:
            for row in _below(block, "tr"):
                yield CELLS.join(trimmed([_cell(cell) for cell in _below(row, "tc")]))


def _below(node: Any, wanted: str) -> Iterator[Any]:
    for inner in node:
        if local(inner) == wanted:
            yield inner
        elif local(inner) in ("sdt", "sdtContent", "ins", "customXml"):
            yield from _below(inner, wanted)


def _cell(node: Any) -> str:
    return " ".join(" ".join(_texts(node)).split())


def _spread(row: Any, texts: Iterable[str]) -> list[str]:
    """Texts of a row's cells with empty ones for the columns before the first and for those that a wide cell covers."""
    found = [""] * min(whole_number(value(row, "trPr", "gridBefore"), 0), 100)
    for cell, words in zip(_below(row, "tc"), texts, strict=True):
        found += [words, *[""] * (min(whole_number(value(cell, "tcPr", "gridSpan"), 0), 100) - 1)]
    return found


class _Numbering:
    """Counts the lists of one document, from the root of `numbering.xml` or None."""

    def __init__(self, root: Any) -> None:
        self._levels: dict[str, dict[int, tuple[str, str, int]]] = {}
        self._lists: dict[str, str] = {}
        self._starts: dict[str, dict[int, int]] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._begun: set[str] = set()
        for abstract in descendants(root, "abstractNum"):
            self._levels[attribute(abstract, "abstractNumId")] = {
                whole_number(attribute(level, "ilvl"), 0): (
                    value(level, "numFmt"),
                    value(level, "lvlText"),
                    whole_number(value(level, "start"), 1),
                )
                for level in abstract
                if local(level) == "lvl"
            }
        for number in (n for n in root if local(n) == "num") if root is not None else ():
            key = attribute(number, "numId")
            self._lists[key] = value(number, "abstractNumId")
            for override in (n for n in number if local(n) == "lvlOverride"):
                start = value(override, "startOverride")
                if start:
                    depth = whole_number(attribute(override, "ilvl"), 0)
                    self._starts.setdefault(key, {})[depth] = whole_number(start, 1)

    def next(self, number: str, level: str) -> tuple[str, bool, int]:
        """The label of the next paragraph of a list: its number, whether it is a bullet instead, and its depth from 0."""
        abstract = self._lists.get(number, "")
        levels = self._levels.get(abstract, {})
        depth = whole_number(level, 0)
        if not number or number == "0" or depth not in levels:
            return "", bool(number) and number != "0", depth
        kind, text, start = levels[depth]
        if kind in ("bullet", "none", ""):
            return "", kind == "bullet", depth
        counts = self._counts.setdefault(abstract, {})
        if number not in self._begun:
            self._begun.add(number)
            for at, first in self._starts.get(number, {}).items():
                counts[at] = first - 1
        for upper in range(depth):  # a level that was left out has begun too: the next item on it is its second
            counts.setdefault(upper, levels.get(upper, ("", "", 1))[2])
        counts[depth] = counts.get(depth, start - 1) + 1
        for deeper in [d for d in counts if d > depth]:
            del counts[deeper]

        def shown(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            own, _, first = levels.get(at, ("decimal", "", 1))
            return formatted(counts.get(at, first), own)

        return _PART.sub(shown, text).strip(), False, depth


class OpenLists:
    """Counts the lists of an OpenDocument text, from its content and its styles (None where there are none)."""

    def __init__(self, content: Any, styles: Any) -> None:
        self._levels: dict[str, dict[int, tuple[str, str, str, int]]] = {}
        for style in (*descendants(styles, "list-style"), *descendants(content, "list-style")):
            self._levels[attribute(style, "name")] = {
                whole_number(attribute(level, "level"), 1) - 1: (
                    _OPEN_FORMATS.get(attribute(level, "num-format"), ""),
                    attribute(level, "num-prefix"),
                    attribute(level, "num-suffix"),
                    whole_number(attribute(level, "start-value"), 1),
                )
                for level in descendants(style, "list-level-style-number")
            }
        self._styles: dict[int, str] = {}
        self._counts: dict[int, int] = {}
        self._last: dict[tuple[str, int], int] = {}  # where the lists of a style have ended, for those that go on
        self._labels: dict[int, str] = {}

    def open(self, node: Any, depth: int) -> None:
        """A list begins, `depth` from 0; without a style of its own it has the one around it."""
        self._styles[depth] = attribute(node, "style-name") or self._styles.get(depth - 1, "")
        goes_on = attribute(node, "continue-numbering") == "true" or bool(attribute(node, "continue-list"))
        self._counts[depth] = self._last.get((self._styles[depth], depth), 0) if goes_on else 0

    def item(self, node: Any, depth: int) -> None:
        style = self._styles.get(depth, "")
        kind, before, after, start = self._levels.get(style, {}).get(depth, ("", "", "", 1))
        following = self._counts.get(depth, 0) + 1 if self._counts.get(depth) else start
        count = whole_number(attribute(node, "start-value"), following)
        self._counts[depth] = self._last[style, depth] = count
        self._labels[depth] = f"{before}{formatted(count, kind)}{after} " if kind else "- "

    def label(self, depth: int) -> str:
        """What comes before the next paragraph: its item's number or bullet before the first, nothing before the others."""
        return self._labels.pop(depth, "  ")
