"""Word files (DOCX): paragraphs, lists, tables, text boxes, notes, comments, headers and footers, in reading order.

Read from the XML itself: the libraries for DOCX leave out text boxes, content controls, notes and numbering, and a search
that cannot find a footnote is wrong about the document. Deleted text of tracked changes is not there, inserted text is.

Word files have no pages until they are printed, so a place is a paragraph outside of tables (`paragraph=12`, from 1), a row of
a table (`table=2&row=3`), or a note, comment, header or footer by its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from workbench.ingest.errors import Problem
from workbench.ingest.readers.base import Member, Parsed, Source
from workbench.ingest.readers.numbering import Numbering
from workbench.ingest.readers.package import Package, attribute, child, descendants, local, opened, properties
from workbench.ingest.writing import TextWriter, trimmed
from workbench.locators import locator, whole_number

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_PASSED = frozenset(
    {"pPr", "rPr", "instrText", "del", "moveFrom", "delText", "rt", "fldData", "sectPr", "tblPr", "tcPr"}
)
_NOTES = (("footnotes", "footnote"), ("endnotes", "endnote"), ("comments", "comment"))
_LONGEST_CELL = 500
_EMBEDDED = re.compile(r"(?i)\.(docx|xlsx|pptx|docm|xlsm|pdf|rtf|txt|csv|html?|mht|eml|msg|odt|ods|bin)$")


def read(source: Source) -> Iterator[Parsed | Member | Problem]:
    """Read a DOCX."""
    with opened(source) as package:
        main = main_part(package, "word/document.xml")
        relations = package.relations(main)
        title, language, metadata = properties(package.xml("docProps/core.xml"))
        writer = _Writer(package, relations)
        writer.body(child(package.must(main), "body"))
        writer.rest()
        text, outline, places = writer.out.finish()
        if writer.hidden:
            metadata["hidden"] = f"text in {writer.hidden} paragraphs"
        yield Parsed(
            text, "word", outline, title or writer.title, language=language, metadata=metadata, places=places
        )  # fmt: skip
        yield from embedded(package, relations)


def main_part(package: Package, usual: str) -> str:
    """The part that the package says is its document."""
    return next((target for kind, target in package.relations("").values() if kind == "officeDocument"), usual)


def embedded(package: Package, relations: dict[str, tuple[str, str]]) -> Iterator[Member]:
    """Files that lie in the package as they are: embedded documents and imported pieces."""
    wanted = {target for kind, target in relations.values() if kind in ("aFChunk", "subDocument")}
    for name in package.names:
        if (name in wanted or "/embeddings/" in name) and _EMBEDDED.search(name):
            yield Member(name.rpartition("/")[2], package.read(name))


class _Styles:
    """What styles say of paragraphs: the level of a heading, 0 for the title of the whole, and numbering."""

    def __init__(self, root: Any) -> None:
        self.level: dict[str, int] = {}
        self.numbering: dict[str, tuple[str, str]] = {}
        self.title: set[str] = set()
        parents: dict[str, str] = {}
        for style in descendants(root, "style") if root is not None else ():
            key = attribute(style, "styleId")
            name = child(style, "name")
            named = attribute(name, "val") if name is not None else ""
            based = child(style, "basedOn")
            parents[key] = attribute(based, "val") if based is not None else ""
            match = _HEADING.fullmatch(named)
            outline = child(style, "pPr", "outlineLvl")
            if named.lower() == "title":
                self.title.add(key)
                self.level[key] = 0
            elif match is not None:
                self.level[key] = int(match[1])
            elif outline is not None and whole_number(attribute(outline, "val"), 9) < 9:
                self.level[key] = whole_number(attribute(outline, "val"), 0) + 1
            number = child(style, "pPr", "numPr")
            if number is not None:
                self.numbering[key] = number_of(number)
        for key in parents:
            seen, up = {key}, parents[key]
            while up and up not in seen:
                seen.add(up)
                if key not in self.level and up in self.level:
                    self.level[key] = self.level[up]
                if key not in self.numbering and up in self.numbering:
                    self.numbering[key] = self.numbering[up]
                up = parents.get(up, "")


def number_of(node: Any) -> tuple[str, str]:
    """List id and level of a `numPr`."""
    number, level = child(node, "numId"), child(node, "ilvl")
    return (
        attribute(number, "val") if number is not None else "",
        attribute(level, "val") if level is not None else "0",
    )


class _Writer:
    """Writes one document."""

    def __init__(self, package: Package, relations: dict[str, tuple[str, str]]) -> None:
        self.out = TextWriter()
        self.title = ""
        self._package, self._relations = package, relations
        parts = dict(relations.values())
        self._styles = _Styles(package.xml(parts.get("styles", "word/styles.xml")))
        self._numbers = Numbering(package.xml(parts.get("numbering", "word/numbering.xml")))
        self._paragraphs = self._tables = 0
        self.hidden = 0  # paragraphs with text that the program does not show

    def body(self, node: Any) -> None:
        """All blocks of the body."""
        for block in blocks(node):
            if local(block) == "p":
                self._paragraphs += 1
                self._paragraph(block, locator(paragraph=self._paragraphs))
            else:
                self._tables += 1
                self._table(block, self._tables)

    def rest(self) -> None:
        """Notes, comments, headers and footers, each apart from the body."""
        targets = sorted(set(self._relations.values()))
        for part, name in _NOTES:
            for _, target in (pair for pair in targets if pair[0] == part):
                root = self._package.xml(target)
                for note in descendants(root, name) if root is not None else ():
                    if attribute(note, "type") not in ("separator", "continuationSeparator", "continuationNotice"):
                        self._apart(note, locator(**{name: attribute(note, "id")}), attribute(note, "author"))
        seen: set[str] = set()
        for name in ("header", "footer"):
            for number, (_, target) in enumerate((pair for pair in targets if pair[0] == name), 1):
                root = self._package.xml(target)
                words = "\n".join(_texts(root)) if root is not None else ""
                if any(map(str.isalpha, words)) and words not in seen:  # page numbers alone are passed over
                    seen.add(words)
                    self._apart(root, locator(**{name: number}), "")

    def _apart(self, node: Any, at: str, author: str) -> None:
        words = "\n".join(text for text in _texts(node) if text.strip())
        if words.strip():
            self.out.apart()
            self.out.unheaded()
            self.out.paragraph(f"{author}: {words}" if author else words, at)

    def _paragraph(self, node: Any, at: str) -> None:
        style = child(node, "pPr", "pStyle")
        key = attribute(style, "val") if style is not None else ""
        direct = child(node, "pPr", "outlineLvl")
        level = self._styles.level.get(key, -1)
        depth = None if direct is None else whole_number(attribute(direct, "val"), None)
        if depth is not None:
            level = depth + 1 if depth < 9 else -1
        words = paragraph_text(node)
        self.hidden += any(_is_hidden(run) for run in descendants(node, "r"))
        numbered = child(node, "pPr", "numPr")
        listed = number_of(numbered) if numbered is not None else self._styles.numbering.get(key, ("", "0"))
        label, bullet, depth = self._numbers.next(*listed) if words.strip() else ("", False, 0)
        if level >= 0 and words.strip():
            if key in self._styles.title and not self.title:
                self.title = " ".join(words.split())
            self.out.heading(f"{label} {words}" if label else words, level, at)
        elif label or bullet:
            self.out.line("  " * depth + f"{label or '-'} {words.strip()}", at)
        else:
            self.out.paragraph(words, at)
        for box in text_boxes(node):
            for words in _texts(box):
                self.out.paragraph(words, at)

    def _table(self, node: Any, number: int) -> None:
        rows = list(_rows(node))
        cells = [[_cell(cell) for cell in _cells(row)] for row in rows]
        longest = max((len(cell) for row in cells for cell in row), default=0)
        if longest > _LONGEST_CELL or max(map(len, cells), default=0) < 2:  # a frame around text, or a layout
            for index, row in enumerate(rows, 1):
                for cell in _cells(row):
                    for words in _texts(cell):
                        self.out.paragraph(words, locator(table=number, row=index))
            return
        marked = [i for i, row in enumerate(rows) if child(row, "trPr", "tblHeader") is not None]
        filled = [i for i, row in enumerate(cells) if any(c.strip() for c in row)]
        header = filled.index(marked[-1]) if marked and marked[-1] in filled else None
        spread = [_spread(row, texts) for row, texts in zip(rows, cells, strict=True)]
        self.out.table(
            ((row, locator(table=number, row=index)) for index, row in enumerate(spread, 1)), header=header
        )  # fmt: skip


def blocks(node: Any) -> Iterator[Any]:
    """Paragraphs and tables right below a node, through content controls and tracked insertions."""
    for inner in node if node is not None else ():
        name = local(inner)
        if name in ("p", "tbl"):
            yield inner
        elif name in ("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag", "body"):
            yield from blocks(inner)
        elif name == "AlternateContent":
            yield from blocks(_choice(inner))


def paragraph_text(node: Any) -> str:
    """The words of a paragraph as they are shown, without those of text boxes that hang on it."""
    return "".join(_words(node)).strip("\n")


def _words(node: Any) -> Iterator[str]:
    for inner in node:
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
        elif name == "AlternateContent":
            chosen = _choice(inner)
            yield from _words(chosen) if chosen is not None else ()
        else:
            yield from _words(inner)


def _is_hidden(run: Any) -> bool:
    mark = child(run, "rPr", "vanish")
    return mark is not None and attribute(mark, "val") not in ("0", "false", "off") and child(run, "t") is not None


def _choice(node: Any) -> Any:
    chosen = child(node, "Choice")
    return chosen if chosen is not None else child(node, "Fallback")


def text_boxes(node: Any) -> Iterator[Any]:
    """Contents of the text boxes on a paragraph; of an alternative only the first choice, or each would come twice."""
    for inner in node:
        name = local(inner)
        if name == "txbxContent":
            yield inner
        elif name == "AlternateContent":
            chosen = _choice(inner)
            yield from text_boxes(chosen) if chosen is not None else ()
        elif name not in _PASSED:
            yield from text_boxes(inner)


def _texts(node: Any) -> Iterator[str]:
    """Every paragraph's words below a node, those of tables and boxes too."""
    for block in blocks(node):
        if local(block) == "p":
            yield paragraph_text(block)
            for box in text_boxes(block):
                yield from _texts(box)
        else:
            for row in _rows(block):
                yield " | ".join(trimmed([_cell(cell) for cell in _cells(row)]))


def _rows(table: Any) -> Iterator[Any]:
    return _below(table, "tr")


def _cells(row: Any) -> Iterator[Any]:
    return _below(row, "tc")


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
    found = [""] * _columns(child(row, "trPr", "gridBefore"))
    for cell, words in zip(_cells(row), texts, strict=True):
        found += [words, *[""] * (_columns(child(cell, "tcPr", "gridSpan")) - 1)]
    return found


def _columns(node: Any) -> int:
    said = attribute(node, "val") if node is not None else ""
    return min(whole_number(said, 0), 100)
