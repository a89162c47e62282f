"""HTML to plain text with headings, by justhtml, an HTML5 parser that reads what browsers read; and books (EPUB) of such pages.

The text keeps what a reader of the page sees in the order of the page: headings as `# Heading`, list items as `- item`,
table rows with ` | ` between the cells, preformatted text as it is. Scripts, styles and drawings are no text. Navigation
and footers stay: what is boilerplate on one page is the content of another. A place is the line of the source on which the
words are, `line=57`, in a very long line also the column; in a book the chapter's file, `part=text/ch1.xhtml`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

from workbench.ingest.encoding import clean, declared_encoding, decode
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.frontmatter import read_front_matter
from workbench.ingest.outline import (
    CELLS,
    LONGEST_CELL,
    Lines,
    Outline,
    Section,
    Table,
    TextWriter,
    find_header,
    is_number,
    left_out,
    raised,
    separate,
    trimmed,
    useful_title,
)
from workbench.ingest.readers.base import Member, Parsed, Reader, Source, written
from workbench.ingest.readers.package import Package, math, opened
from workbench.ingest.readers.tree import attribute, descendants, local, parse_xml
from workbench.locators import Place, locator, whole_number
from workbench.records import Span

LONG_LINE = 2000
"""Characters of a line of the source above which a place in it has a column too."""
_OPENING = re.compile(
    rb"\s*(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body|table)\b",
    re.I | re.S,
)
_DOCTYPE = re.compile(r"\s*<!doctype[^>]*>", re.I)
_TAG, _COMMENT = re.compile("<[a-zA-Z/!?]"), re.compile("<!--(?!-?>)")
_NO_LINE_END = re.compile(r"[^\n]")
_BOGUS = re.compile(r"<(?:\?|!(?!--)|/(?![a-zA-Z>]))[^>]*>")
_HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_NO_TEXT = frozenset("script style noscript template svg head iframe object canvas datalist rt rp".split())
_UNSEEN = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\b", re.I)
_WIDEST = 1000  # columns that one cell spans, as in browsers
_BLOCK = frozenset(
    "p div section article main header footer nav aside blockquote figure figcaption ul ol dl table form"
    " fieldset address details summary hr pre hgroup center".split()
)
_LINE = frozenset("li tr td th dt dd caption option legend".split())
_SPACE, _ALL_SPACE = re.compile(r"[ \t\n\r\f]+"), re.compile(r"\s+")
_SET_BEFORE = re.compile(r"(?:#{1,6} |- |[0-9]+\. |[ |])*")  # what is written before the first words of a line
_META = {"description": "description", "author": "author", "keywords": "keywords", "date": "date", "dc.date": "date"}

Marks = list[tuple[int, int, int]]
"""Where words come from: offset in the text, line and column in the source, from 1; in the order of the text."""


def _read(source: Source) -> Iterator[Parsed | Problem]:
    raw, metadata = source.text()
    front = read_front_matter(raw)
    if front.problem is not None:
        yield front.problem
    root = _parsed(raw[front.end :], track=True)
    writer = _Writer(source=raw[front.end :])
    writer.write(_body(root))
    text, outline = writer.finish()
    found = _head(root)
    metadata |= left_out(writer.hidden)
    yield Parsed(
        text,
        "html",
        outline,
        title=found.pop("title", ""),
        language=found.pop("language", ""),
        url=found.pop("url", ""),
        metadata={**metadata, **found, **front.values},
        places=_places(text, writer.marks, Lines(raw), raw.count("\n", 0, front.end)),
    )


READER = Reader(
    "html", _read, frozenset({".html", ".htm", ".xhtml", ".shtml"}), sniff=lambda head: _OPENING.match(head) is not None
)


def html_text(source: str) -> tuple[str, Outline, int]:
    """Text, shape, and how many elements with words are not shown."""
    writer = _Writer()
    writer.write(_body(_parsed(source)))
    return *writer.finish(), writer.hidden


def _parsed(source: str, track: bool = False) -> Any:
    from justhtml import JustHTML

    if track:  # the parser then takes for text what is no markup: `<?xml ?>`, `</ a>`, a second doctype, an open tag
        source = _without_open_end(source)
        doctype = _DOCTYPE.match(source)
        start = doctype.end() if doctype is not None else 0
        source = source[:start] + _BOGUS.sub(_as_comment, source[start:])
    return JustHTML(source, sanitize=False, track_node_locations=track).root


def _without_open_end(source: str) -> str:
    """A page without a tag or comment that never ends, behind the last one that does."""
    comment = _COMMENT.search(source, source.rfind("-->") + 1)
    if comment is not None and source.find("--!>", comment.end()) < 0:
        source = source[: comment.start()]
    tag = _TAG.search(source, source.rfind(">") + 1)
    return source if tag is None else source[: tag.start()]


def _as_comment(match: re.Match[str]) -> str:
    """A comment as long as what is no markup, with its line ends; a longer one where it is too short for them."""
    inner, ends = _NO_LINE_END.sub(" ", match[0][4:-3]), "\n" * match[0].count("\n")
    return "<!--" + (inner if inner.count("\n") == len(ends) else ends) + "-->"


def _body(root: Any) -> Any:
    page = next((node for node in root.children if node.name == "html"), root)
    return next((node for node in page.children if node.name in ("body", "frameset")), page)


def _below(top: Any) -> Iterator[Any]:
    """All nodes below one, in their order, without recursion: pages nest deeper than the interpreter's stack."""
    stack = list(reversed(top.children or ()))
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children or ()))


def _words(node: Any) -> str:
    return _squeeze("".join(inner.data or "" for inner in _below(node) if inner.name == "#text"))


def _attribute(node: Any, name: str) -> str:
    return clean(str((node.attrs or {}).get(name) or "")).strip()


def _squeeze(text: str) -> str:
    return clean(_SPACE.sub(" ", text).strip())


def _head(root: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in _below(root):
        if node.name == "html":
            found.setdefault("language", _attribute(node, "lang").partition("-")[0].lower())
        elif node.name == "title" and node.parent.name == "head":
            found.setdefault("title", useful_title(_words(node)))
        elif node.name == "link" and _attribute(node, "rel") == "canonical":
            found.setdefault("canonical", _attribute(node, "href"))
        elif node.name == "meta" and _attribute(node, "property") == "og:url":
            found.setdefault("shared", _attribute(node, "content"))
        elif node.name == "meta" and "content" in node.attrs:
            name = _META.get(_attribute(node, "name").lower(), "")
            if name:
                found.setdefault(name, _squeeze(_attribute(node, "content")))
    # An address without a host leads nowhere from here.
    urls = (found.pop("canonical", ""), found.pop("shared", ""))
    found["url"] = next((url for url in urls if url.lower().startswith(("http://", "https://"))), "")
    return {name: value for name, value in found.items() if value}


def _places(text: str, marks: Marks, lines: Lines, above: int) -> tuple[Place, ...]:
    """One place where the text comes to another line of the source, in a long one for each line of the text.

    `lines` are those of the whole source, `above` says how many of them are before the first that marks count.
    """
    places: list[Place] = []
    last = line_end = -1  # the line of the source, and where the line of the text ends
    for offset, line, column in marks:
        number = line + above
        opens = offset > line_end
        if number == last and not opens:
            continue
        if opens:
            begin = text.rfind("\n", 0, offset) + 1
            line_end = text.find("\n", offset)
            line_end = len(text) if line_end < 0 else line_end
            if _SET_BEFORE.fullmatch(text, begin, offset):
                offset = begin
        long = lines.start(number) - lines.start(number - 1) > LONG_LINE
        if number == last and not long:
            continue
        places.append(Place(offset, locator(line=number, column=column) if long else f"line={number}"))
        last = number
    return tuple(places)


class _Writer:
    """Writes the text of a tree and notes where headings, preformatted blocks and tables are.

    White space is collapsed as browsers do: a run of it is one space, and none at the edges of a line.

    Args:
        single: Write one line, as of a heading or the cell of a table: line ends become spaces.
        blanks: What counts as white space.
        source: The page, to find the line of preformatted text.
    """

    def __init__(self, single: bool = False, blanks: re.Pattern[str] = _SPACE, source: str = "") -> None:
        self.single, self.blanks, self.source = single, blanks, source
        self.marks: Marks = []
        self.parts: list[str] = []
        self.length = 0
        self.hidden = 0  # how many elements with words are not shown
        self.breaks = 0  # line ends due before the next word
        self.space = False  # a space due before the next word
        self.sections: list[Section] = []
        self.blocks: list[Span] = []
        self.tables: list[Table] = []
        self.lists: list[int] = []  # the number of the next item of each open list; -1 in a list without numbers
        self.preformatted: list[int] = []  # where each open `pre` began
        self.bullet = -1  # where the text ends if it ends with a bullet: its item's first block stays on that line

    def write(self, top: Any) -> None:
        """Depth first, without recursion: pages nest deeper than the interpreter's stack."""
        stack = [(top, iter(self._enter(top)))]
        while stack:
            node, children = stack[-1]
            child = next(children, None)
            if child is not None:
                stack.append((child, iter(self._enter(child))))
            else:
                stack.pop()
                self._leave(node)

    def finish(self) -> tuple[str, Outline]:
        outline = Outline(tuple(self.sections), separate(self.blocks), tables=tuple(self.tables))
        return "".join(self.parts), outline

    def _enter(self, node: Any) -> Sequence[Any]:
        """Write what an element opens with; its children, none where nothing inside is left to write."""
        tag = node.name
        if tag == "#text":
            line, column = node.origin_line or 0, node.origin_col or 0
            first = line and node.parent.name == "pre" and node is node.parent.children[0]
            if first and self.source.startswith("\n", node.origin_offset):  # a line end that is not shown
                line, column = line + 1, 1
            self._text(node.data or "", line, column)
            return ()
        if tag == "math":
            self._text(math(parse_xml(node.to_html().encode())[0]), node.origin_line or 0, node.origin_col or 0)
            return ()
        if _is_hidden(node):
            self.hidden += bool(_words(node))
            return ()
        if tag in ("sup", "sub") and self.parts and not self.space and not self.breaks:
            apart = raised(self.parts[-1], _words(node), tag == "sub")[:1]
            self._append(apart if apart in (" ", "^") else "")
        if tag in _NO_TEXT or not node.children:
            if tag == "br":
                self._break(1)
                if self.preformatted:
                    self._flush()
            elif tag == "img":
                self._text(_attribute(node, "alt"), node.origin_line or 0, node.origin_col or 0)
            elif tag == "li":
                self._bullet()
            elif tag not in _NO_TEXT:
                self._boundary(tag)
            return ()
        if not self.single and (tag in _HEADINGS or (tag == "table" and self._data_table(node))):
            if tag in _HEADINGS:
                self._heading(node, _HEADINGS[tag])
            return ()
        self._boundary(tag)
        if tag in ("ul", "ol"):
            self.lists.append(whole_number(_attribute(node, "start"), 1) if tag == "ol" else -1)
        elif tag == "li":
            self._bullet()
        elif tag == "pre" and not self.single:
            self._flush()
            self.preformatted.append(self.length)
        return node.children or ()

    def _leave(self, node: Any) -> None:
        tag = node.name
        if tag in _NO_TEXT or not node.children or _is_hidden(node):
            return
        if tag == "pre" and self.preformatted:
            self.blocks.append(Span(self.preformatted.pop(), self.length))
        elif tag in ("ul", "ol") and self.lists:
            self.lists.pop()
        self._boundary(tag)

    def _boundary(self, tag: str) -> None:
        """The line ends that an element's edge asks for; blocks inside list items are set close."""
        if tag in _BLOCK or tag in _HEADINGS:
            self._break(1 if self.lists and tag not in _HEADINGS else 2)
        elif tag in _LINE:
            self._break(1)

    def _heading(self, node: Any, level: int) -> None:
        title, marks = _one_line(node)
        self._break(2)
        if title:
            self._flush()
            start = self.length
            self._append("#" * level + " ")
            self._append_marked(title, marks)
            self.sections.append(Section(start, self.length, level, title))
            self._break(2)

    def _bullet(self) -> None:
        number = self.lists[-1] if self.lists else -1
        if number >= 0:
            self.lists[-1] += 1
        if self.length == self.bullet:
            self.length -= len(self.parts.pop())  # an item without words
        else:
            self._break(1)
            self._flush()
        indent = "" if self.single else "  " * (len(self.lists) - 1)
        self._append(indent + (f"{number}. " if number >= 0 else "- "))
        self.bullet = self.length

    def _data_table(self, table: Any) -> bool:
        """Write a table of short cells, a row a line. False for one that is there for the layout."""
        if any(node.name == "table" for node in _below(table)):
            return False
        parts = [part for part in table.children if part.children]
        listed = (row for part in parts for row in ([part] if part.name == "tr" else part.children))
        rows = [row for row in listed if _is_shown(row, "tr")]
        cells = _grid([[cell for cell in row.children or () if _is_shown(cell, "td", "th")] for row in rows])
        inside = (inner.name for row in cells for cell in row if cell and cell.name == "td" for inner in _below(cell))
        if not rows or any(name in _HEADINGS or name == "pre" for name in inside):
            return False
        written = [[_one_line(cell, _ALL_SPACE) if cell is not None else ("", []) for cell in row] for row in cells]
        if max((len(words) for row in written for words, _ in row), default=0) > LONGEST_CELL:
            return False
        filled = [index for index, row in enumerate(written) if any(words for words, _ in row)]
        lines = [written[index] for index in filled]
        caption = next((part for part in parts if part.name == "caption"), None)
        above = [[_one_line(caption, _ALL_SPACE)]] if caption is not None else []
        self._break(2)
        if not above and not lines:
            return True
        self._flush()
        start, starts = self.length, []
        for index, line in enumerate([*above, *lines]):
            self._append("\n" if index else "")
            starts.append(self.length)
            for column in range(len(trimmed([words for words, _ in line]))):
                self._append(CELLS if column else "")
                self._append_marked(*line[column])
        self.blocks.append(Span(start, self.length))
        plain = [[words for words, _ in line] for line in lines]
        named = [[_is_head(cell) for cell in cells[index]] for index in filled]
        header = _marked_header(plain, named) if any(map(any, named)) else _likely_header(plain)
        if header >= 0:
            ends = [*(at - 1 for at in starts[1:]), self.length]
            at = header + len(above)
            words = "".join(self.parts)[-(self.length - starts[at]) :][: ends[at] - starts[at]]
            self.tables.append(Table(start, min(ends[at] + 1, self.length), self.length, words))
        self._break(2)
        return True

    def _text(self, raw: str, line: int, column: int) -> None:
        """Words, each line of the source with a mark; `line` and `column` of the first, 0 where they are not known."""
        pre = bool(self.preformatted)
        if pre:
            self._flush()
        for number, piece in enumerate(clean(raw).split("\n")):
            if number:
                self._append("\n" if pre else "")
                self.space = not pre
            words = piece if pre else self.blanks.sub(" ", piece)
            if not pre and words.startswith((" ", "\xa0")):
                self.space = True
            if not words.strip(" \xa0"):  # a hard space alone holds a place in the layout, and is no line
                self._append(words if pre else "")
                continue
            if not pre:
                self._flush()
                self.space = words.endswith(" ")
                words = words.strip(" ")
            blank = len(piece) - len(piece.lstrip(" \t\r\f"))
            if line:
                where = (line + number, blank + (1 if number else column))
                self.marks.append((self.length + (blank if pre else 0), *where))
            self._append(words)

    def _append_marked(self, words: str, marks: Marks) -> None:
        self.marks += [(self.length + at, line, column) for at, line, column in marks]
        self._append(words)

    def _break(self, count: int) -> None:
        if self.single:
            self.space = True
        elif self.length != self.bullet:
            self.breaks = max(self.breaks, count)
            self.space = False

    def _flush(self) -> None:
        """Write the line ends or the space that are due; nothing at the start of the text or after a line end."""
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


def _one_line(node: Any, blanks: re.Pattern[str] = _SPACE) -> tuple[str, Marks]:
    """The text of a heading or a table's cell as one line, and where its words come from."""
    writer = _Writer(True, blanks)
    for child in node.children or ():
        writer.write(child)
    return "".join(writer.parts).strip(), writer.marks


def _is_shown(node: Any, *names: str) -> bool:
    return node.name in names and not _is_hidden(node)


def _is_hidden(node: Any) -> bool:
    """Whether an element says itself that browsers do not show it; style sheets are not followed."""
    given = node.attrs
    if not given or not isinstance(given, dict):
        return bool(node.name == "dialog")
    if "hidden" in given and str(given["hidden"] or "").lower() != "until-found":
        return True
    closed = node.name == "dialog" and "open" not in given
    return closed or _UNSEEN.search(str(given.get("style") or "")) is not None


def _grid(rows: list[list[Any]]) -> list[list[Any]]:
    """The cells of each row in their columns: None where one from the left or from above goes on."""
    found: list[list[Any]] = []
    left: dict[int, int] = {}  # column -> rows that a cell from above still covers
    for row in rows:
        line: list[Any] = []
        for cell in (*row, None):  # behind the last cell, too, one from above may go on
            while left.get(len(line), 0) > 0:
                left[len(line)] -= 1
                line.append(None)
            if cell is None:
                break
            columns, down = (
                min(max(whole_number(_attribute(cell, name), 1), 1), _WIDEST) for name in ("colspan", "rowspan")
            )
            for column in range(columns):
                left[len(line)] = down - 1
                line.append(None if column else cell)
        found.append(line)
    return found


def _is_head(cell: Any) -> bool:
    """A head by its element, or by all of its words being bold."""
    if cell is None:
        return False
    if cell.name == "th":
        return True
    bold = [node for node in _below(cell) if node.name in ("b", "strong")]
    return len(bold) == 1 and _words(bold[0]) == _words(cell)


def _likely_header(rows: list[list[str]]) -> int:
    """Which row is a header where none is marked: one that looks so and has numbers below its words; -1 for none."""
    index = find_header(rows)
    columns = range(len(rows[index])) if index >= 0 else ()
    below = [[row[column] for row in rows[index + 1 :] if column < len(row) and row[column]] for column in columns]
    return index if any(cells and sum(map(is_number, cells)) * 2 > len(cells) for cells in below) else -1


def _marked_header(rows: list[list[str]], named: list[list[bool]]) -> int:
    """Which row is a header by its marks: the fullest of the first rows that are all heads; -1 where cells are beside them."""
    heads: list[int] = []
    for index, (row, marks) in enumerate(zip(rows, named, strict=True)):
        if not all(mark for words, mark in zip(row, marks, strict=True) if words):
            break
        heads.append(index)
    best = max(heads, key=lambda index: (sum(map(bool, rows[index])), index), default=-1)
    return best if best + 1 < len(rows) else -1


_BOOK = {"creator": "author"} | {name: name for name in ("publisher", "date", "subject", "description")}
_CHAPTERS = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document"})


def read_book(source: Source) -> Iterator[Parsed | Member | Problem]:
    with opened(source) as package:
        main = _book_part(package)
        book = package.must(main)
        folder = posixpath.dirname(main)
        items: dict[str, tuple[str, str]] = {}
        for item in descendants(book, "item"):
            part = posixpath.normpath(posixpath.join(folder, unquote(attribute(item, "href"))))
            items[attribute(item, "id")] = (part, attribute(item, "media-type"))
        spine = [items.get(attribute(ref, "idref"), ("", "")) for ref in descendants(book, "itemref")]
        for part, kind in spine:
            if kind not in _CHAPTERS:
                why = f"is {kind}, which is not read" if kind else "is of no kind that is named"
                reason = f"The chapter {part} {why}" if part else "A chapter is not in the list of its files"
                yield Problem(reason, "Convert the book")
        pages = [part for part, kind in spine if kind in _CHAPTERS]
        encryption = package.xml("META-INF/encryption.xml")
        locked = {attribute(node, "URI") for node in descendants(encryption, "CipherReference")}
        if pages and locked.issuperset(pages):
            raise ReadError("It is protected against copying (DRM)", "Get a copy without the protection")
        writer = TextWriter()
        for part in pages:
            writer.apart()
            if part in locked or not package.has(part):
                why = "protected against copying" if part in locked else "missing"
                yield Problem(f"The chapter {part} is {why}", "Get the book again")
                continue
            data = package.read(part)
            writer.html(decode(data, declared_encoding(data[:1024]))[0], locator(part=part))
        found: dict[str, str] = {}
        for node in book.iter():
            name = local(node)
            words = " ".join("".join(node.itertext()).split()) if name in (*_BOOK, "title", "language") else ""
            if words:
                found[name] = f"{found[name]}; {words}" if name in found and name != "title" else found.get(name, words)
        title = useful_title(found.pop("title", ""))
        language = found.pop("language", "").partition(";")[0].partition("-")[0].lower()
        metadata = {_BOOK[name]: words for name, words in found.items()} | left_out(writer.hidden)
        yield written(writer, "book", title, language=language, metadata=metadata)


def _book_part(package: Package) -> str:
    """The part that lists the book's files. Raises ReadError."""
    paths = [attribute(node, "full-path") for node in descendants(package.xml("META-INF/container.xml"), "rootfile")]
    found = [*filter(package.has, paths), *(name for name in package.names if name.endswith(".opf"))]
    if not found:
        raise ReadError("It is broken: it does not say where its chapters are", "Get the book again")
    return found[0]
