"""HTML to plain text with headings, by selectolax (lexbor): an HTML5 parser that reads what browsers read, and quickly.

The text keeps what a reader of the page sees in the order of the page: headings as `# Heading`, list items as `- item`,
table rows with ` | ` between the cells, preformatted text as it is. Scripts, styles and drawings are no text. Navigation
and footers stay: what is boilerplate on one page is the content of another. A place is the line of the source on which the words
stand, `line=57`: the lines of the text are others.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from workbench.ingest.encoding import clean
from workbench.ingest.errors import Problem
from workbench.ingest.frontmatter import read_front_matter
from workbench.ingest.outline import Outline, Section, Table, separate
from workbench.ingest.readers.base import Parsed, Reader, Source
from workbench.ingest.readers.html_lines import Marks, SourceMarks, mark_source, moved, places_in_source, unmarked
from workbench.ingest.titles import said_title
from workbench.ingest.writing import CELLS, find_header, is_number, trimmed
from workbench.locators import Place, whole_number
from workbench.records import Span

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_OPENING = re.compile(
    rb"\s*(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.I | re.S
)
_HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_NO_TEXT = frozenset(
    {"script", "style", "noscript", "template", "svg", "head", "iframe", "object", "canvas", "datalist"}
)
_BLOCK = frozenset(
    {"p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "blockquote", "figure", "figcaption"}
    | {"ul", "ol", "dl", "table", "form", "fieldset", "address", "details", "summary", "hr", "pre", "hgroup", "center"}
)
_LINE = frozenset({"li", "tr", "td", "th", "dt", "dd", "caption", "option", "legend"})
_LONGEST_CELL = 500
_SPACE = re.compile(r"[ \t\n\r\f]+")
_META = {"description": "description", "author": "author", "keywords": "keywords", "date": "date", "dc.date": "date"}


def _read(source: Source) -> Iterator[Parsed | Problem]:
    from selectolax.lexbor import LexborHTMLParser

    raw, metadata = source.text()
    front = read_front_matter(raw)
    if front.problem is not None:
        yield front.problem
    tree = LexborHTMLParser(raw[front.end :])
    text, outline, places = html_places(tree, raw, front.end)
    found = _head(tree)
    yield Parsed(
        text,
        "html",
        outline,
        title=found.pop("title", ""),
        language=found.pop("language", ""),
        url=found.pop("url", ""),
        metadata={**metadata, **found, **front.values},
        places=places,
    )


def html_text(source: str) -> tuple[str, Outline]:
    """The text of a page or a piece of one, and its shape."""
    from selectolax.lexbor import LexborHTMLParser

    return _written(LexborHTMLParser(source), None).finish()


def html_places(tree: LexborHTMLParser, raw: str, start: int = 0) -> tuple[str, Outline, tuple[Place, ...]]:
    """The text of a page, its shape, and where it stands in the file.

    Args:
        tree: The page.
        raw: The whole file.
        start: Where the page begins in it.
    """
    writer = _written(tree, mark_source(raw[start:], tree))
    text, outline = writer.finish()
    return text, outline, places_in_source(text, writer.marks, raw, start)


def _written(tree: LexborHTMLParser, sources: SourceMarks | None) -> _Writer:
    writer = _Writer(sources)
    body = tree.body if sources is None else sources.tree.body
    if body is not None:
        writer.write(body)
    return writer


def _sniff(head: bytes) -> bool:
    return bool(_OPENING.match(head))


READER = Reader("html", _read, frozenset({".html", ".htm", ".xhtml", ".shtml"}), sniff=_sniff)


def _head(tree: LexborHTMLParser) -> dict[str, str]:
    """Title, language, canonical address and the usual descriptions."""
    found: dict[str, str] = {}
    title = tree.css_first("head > title")
    if title is not None:
        found["title"] = said_title(_squeeze(title.text()))
    root = tree.root
    found["language"] = _attribute(root, "lang").partition("-")[0].lower() if root is not None else ""
    link, shared = tree.css_first('link[rel="canonical"]'), tree.css_first('meta[property="og:url"]')
    said = [_attribute(link, "href")] if link is not None else []
    said += [_attribute(shared, "content")] if shared is not None else []
    # An address without a host leads nowhere from here.
    found["url"] = next((url for url in said if url.lower().startswith(("http://", "https://"))), "")
    for meta in tree.css("meta[name][content]"):
        name = _META.get(_attribute(meta, "name").lower(), "")
        if name and name not in found:
            found[name] = _squeeze(_attribute(meta, "content"))
    return {name: value for name, value in found.items() if value}


def _attribute(node: LexborNode, name: str) -> str:
    attributes: Mapping[str, Any] = node.attributes
    return clean(str(attributes.get(name) or "")).strip()


def _seen_attribute(node: LexborNode, name: str) -> str:
    """An attribute of a tree that may have marks, wherever they came to stand."""
    attributes: Mapping[str, Any] = node.attributes
    if name in attributes:
        return _attribute(node, name)
    return next((clean(str(v or "")).strip() for key, v in attributes.items() if unmarked(key) == name), "")


def _squeeze(text: str) -> str:
    return clean(_SPACE.sub(" ", text).strip())


class _Writer:
    """Writes the text of a tree and notes where headings, preformatted blocks and tables are.

    White space is collapsed as browsers do: a run of it is one space, and none at the edges of a line.
    """

    def __init__(self, sources: SourceMarks | None = None) -> None:
        self.sources = sources
        self.marks: Marks = []
        self.parts: list[str] = []
        self.length = 0
        self.breaks = 0  # line ends owed before the next word
        self.space = False  # a space owed before the next word
        self.sections: list[Section] = []
        self.blocks: list[Span] = []
        self.tables: list[Table] = []
        self.lists: list[int] = []  # the number of the next item of each open list; -1 in a list without numbers
        self.opened: dict[int, tuple[int, int]] = {}  # depth of a heading or `pre` -> its first character and part
        self.preformatted = 0
        self.bullet = -1  # where the text ends if it ends with a bullet: its item's first block stays on that line

    def write(self, top: LexborNode) -> None:
        """Depth first, without recursion: pages nest deeper than the interpreter's stack."""
        node: LexborNode | None = top
        depth = 0
        while node is not None:
            child = self._enter(node, depth)
            if child is not None:
                node, depth = child, depth + 1
                continue
            while node is not None:
                self._leave(node, depth)
                if depth == 0:
                    return
                if node.next is not None:
                    node = node.next
                    break
                node, depth = node.parent, depth - 1

    def finish(self) -> tuple[str, Outline]:
        """The text and its outline."""
        blocks = separate(self.blocks)
        return "".join(self.parts), Outline(tuple(self.sections), blocks, tables=tuple(self.tables))

    def _enter(self, node: LexborNode, depth: int) -> LexborNode | None:
        """Write what an element opens with; its first child, or None where nothing inside is left to write."""
        if node.is_text_node:
            self._text(node.text_content or "")
            return None
        tag = node.tag or ""
        if tag in _NO_TEXT or node.is_comment_node:
            return None
        if tag == "br":
            self._break(1)
            if self.preformatted:
                self._flush()
            return None
        if tag == "table" and self._data_table(node):
            return None
        self._boundary(tag)
        if tag == "img":
            self._text(_seen_attribute(node, "alt"))
        elif tag in {"ul", "ol"}:
            self.lists.append(_first_number(node) if tag == "ol" else -1)
        elif tag == "li":
            self._bullet()
        elif tag in _HEADINGS or tag == "pre":
            self._flush()
            self.opened[depth] = (self.length, len(self.parts))
            self.preformatted += tag == "pre"
        return node.child

    def _leave(self, node: LexborNode, depth: int) -> None:
        tag = node.tag or ""
        if depth in self.opened and (tag in _HEADINGS or tag == "pre"):
            start, part = self.opened.pop(depth)
            if tag == "pre":
                self.preformatted -= 1
                self.blocks.append(Span(start, self.length))
            else:
                self._heading(start, part, _HEADINGS[tag])
        if tag in {"ul", "ol"} and self.lists:
            self.lists.pop()
        if tag != "br":
            self._boundary(tag)

    def _boundary(self, tag: str) -> None:
        """The line ends that an element's edge asks for; blocks inside list items are set close."""
        if tag in _BLOCK or tag in _HEADINGS:
            self._break(1 if self.lists and tag not in _HEADINGS else 2)
        elif tag in _LINE:
            self._break(1)

    def _heading(self, start: int, part: int, level: int) -> None:
        """Put the marks before a heading that has just been written; one without words is no section."""
        written = "".join(self.parts[part:])
        title = _squeeze(written)
        if not title:
            return
        line = f"{'#' * level} {title}"
        inside = bisect_left(self.marks, (start, 0))
        marks = moved([(at - start, source) for at, source in self.marks[inside:]], written, title)
        self.marks[inside:] = [(start + level + 1 + at, source) for at, source in marks]
        del self.parts[part:]
        self.parts.append(line)
        self.length = start + len(line)
        self.sections.append(Section(start, self.length, level, title))
        self._break(2)

    def _bullet(self) -> None:
        number = self.lists[-1] if self.lists else -1
        if number >= 0:
            self.lists[-1] += 1
        if self.length == self.bullet:
            self.length -= len(self.parts.pop())  # an item without words
        else:
            self._flush()
        self._append("  " * (len(self.lists) - 1) + (f"{number}. " if number >= 0 else "- "))
        self.bullet = self.length

    def _data_table(self, table: LexborNode) -> bool:
        """Write a table of short cells, a row a line. False for one that is there for the layout."""
        # A selector finds the table itself too, and looks at what is around it.
        if (
            len(table.css("table")) > 1
            or table.css_first("td h1, td h2, td h3, td h4, td h5, td h6, td pre") is not None
        ):
            return False
        cells = [row.css("td, th") for row in table.css("tr")]
        marked = [[self._cell(cell) for cell in row] for row in cells]
        rows = [[words for words, _ in row] for row in marked]
        if not rows or max((len(cell) for row in rows for cell in row), default=0) > _LONGEST_CELL:
            return False
        caption = table.css_first("caption")
        above = [[self._cell(caption)]] if caption is not None else []
        lines = [words for ((words, _),) in above]
        lines += [CELLS.join(trimmed(row)) for row in rows if any(row)]
        self._break(2)
        if lines:
            self._flush()
            start = self.length
            self._mark_cells([*above, *(row for row, words in zip(marked, rows, strict=True) if any(words))])
            self._append("\n".join(lines))
            self.blocks.append(Span(start, self.length))
            named = [list(map(_is_head, row)) for row, words in zip(cells, rows, strict=True) if any(words)]
            self._header(lines, [row for row in rows if any(row)], named, start)
            self._break(2)
        return True

    def _cell(self, node: LexborNode) -> tuple[str, Marks]:
        """The text of a table cell as one line, and where its words stand."""
        writer = _Writer(self.sources)
        writer.write(node)
        written = "".join(writer.parts)
        words = " ".join(written.split())
        return words, moved(writer.marks, written, words)

    def _mark_cells(self, rows: list[list[tuple[str, Marks]]]) -> None:
        """Note where the words of rows stand that are about to be written."""
        at = self.length
        for row in rows:
            for index, words in enumerate(trimmed([words for words, _ in row])):
                at += len(CELLS) if index else 0
                self.marks += [(at + offset, source) for offset, source in row[index][1]]
                at += len(words)
            at += len("\n")

    def _header(self, lines: list[str], rows: list[list[str]], named: list[list[bool]], start: int) -> None:
        """Note the header of a table that has just been written, where it has one or looks as if it had one."""
        index = _marked_header(rows, named) if any(map(any, named)) else _told_header(rows)
        if index >= 0:
            index += len(lines) - len(rows)  # behind the caption
            body = start + sum(len(line) + 1 for line in lines[: index + 1])
            self.tables.append(Table(start, body, self.length, lines[index]))

    def _text(self, raw: str) -> None:
        if self.preformatted:
            words, marks = self._lifted(clean(raw.replace("\r\n", "\n").replace("\r", "\n")))
            self._flush()
            self.marks += [(self.length + at, source) for at, source in marks]
            self._append(words)
            return
        words, marks = self._lifted(clean(_SPACE.sub(" ", raw)))
        if words.startswith((" ", "\xa0")):
            self.space = True
        if words.strip(" \xa0"):  # a hard space alone holds a place in the layout, and is no line
            self._flush()
            before = self.length - words.startswith(" ")
            self.marks += [(max(self.length, before + at), source) for at, source in marks]
            self._append(words.strip(" "))
            self.space = words.endswith(" ")

    def _lifted(self, words: str) -> tuple[str, Marks]:
        return (words, []) if self.sources is None else self.sources.lift(words)

    def _break(self, count: int) -> None:
        if self.length == self.bullet:
            return
        self.breaks = max(self.breaks, count)
        self.space = False

    def _flush(self) -> None:
        """Write the line ends or the space that are owed; nothing at the start of the text or after a line end."""
        if self.length and self.breaks:
            last = self.parts[-1]
            self._append("\n" * (self.breaks - (0 if last.strip("\n") else len(last))))
        elif self.length and self.space and not self.parts[-1].endswith((" ", "\n")):
            self._append(" ")
        self.breaks, self.space = 0, False

    def _append(self, text: str) -> None:
        if text:
            self.parts.append(text)
            self.length += len(text)


def _is_head(cell: LexborNode) -> bool:
    """A head by its element, or by all of its words being bold."""
    if cell.tag == "th":
        return True
    bold = cell.css("b, strong")
    return len(bold) == 1 and _squeeze(bold[0].text()) == _squeeze(cell.text())


def _told_header(rows: list[list[str]]) -> int:
    """Which row is a header where none is marked: one that looks so and has numbers below its words; -1 for none."""
    index = find_header(rows)
    columns = range(len(rows[index])) if index >= 0 else ()
    below = [[row[column] for row in rows[index + 1 :] if column < len(row) and row[column]] for column in columns]
    numbers = any(cells and sum(map(is_number, cells)) * 2 > len(cells) for cells in below)
    return index if numbers else -1


def _marked_header(rows: list[list[str]], named: list[list[bool]]) -> int:
    """Which row is a header by its marks: the fullest of the first rows that are all heads; -1 where they stand beside cells."""
    heads: list[int] = []
    for index, (row, marks) in enumerate(zip(rows, named, strict=True)):
        if not all(mark for words, mark in zip(row, marks, strict=True) if words):
            break
        heads.append(index)
    best = max(heads, key=lambda index: (sum(map(bool, rows[index])), index), default=-1)
    return best if best + 1 < len(rows) else -1


def _first_number(node: LexborNode) -> int:
    start = _seen_attribute(node, "start")
    return whole_number(start, 1)
