"""What a reader knows of a text's shape: its headings, tables and the blocks that should stay in one piece.

Offsets are characters of the document's text. A section runs from its heading to the next heading; its path is made from
the levels, so a reader only says where a heading is and how deep. Readers of structured files write their text with a
`TextWriter`: blocks are set apart by a blank line, so that the chunker finds its cuts; headings are written as `# Title`;
the rows of a table are one line each with ` | ` between the cells, as everywhere in the workbench.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workbench.ingest.encoding import normalise
from workbench.locators import Place
from workbench.records import Span

CELLS = " | "
_ROWS_FOR_HEADER = 10
LONGEST_CELL = 500
_TEN = re.compile(r"(?<![\d.,])10$")
_EMPTY_TITLE = re.compile(
    r"(?i)[\W_]*(?:(?:untitled|unbenannt|anonymous|unspecified|title|titel)(?: ?(?:document|dokument|presentation|spreadsheet))?"
    r"|(?:slide|folie|page|sheet|document|book|presentation) ?\d+"
    r"|(?:power ?point|microsoft (?:power ?point|word|excel|office)) ?(?:presentation|document|worksheet)?"
    r"|microsoft (?:word|powerpoint|excel|office \w+) ?- .*"
    r"|(?:paper|document) title\b.*"
    r"|(?:table of )?contents|inhalt(?:sverzeichnis)?|table des mati\u00e8res|\u00edndice"
    r"|.*\.(?:docx?|pptx?|xlsx?|indd|tex|dvi|pdf|odt|ods|odp|rtf|pub|qxd|pmd))?[\W_]*"
)


@dataclass(frozen=True, slots=True)
class Section:
    """One heading, or one function or class.

    Attributes:
        start: First character of the heading, or of the comment and decorators above a function.
        body: First character after the heading.
        level: 1 for the outermost; deeper levels are nested in the last shallower one.
        title: Its words without markup; "" ends the sections of this level and below without opening one.
    """

    start: int
    body: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table, a row a line. A chunk that begins among its rows (from `body`) is given the header, one line, as context."""

    start: int
    body: int
    end: int
    header: str


@dataclass(frozen=True, slots=True)
class Outline:
    """The shape of one text.

    Attributes:
        sections: In order of `start`.
        blocks: Code blocks and tables, in order, not overlapping: cut only where there is no other way.
        front: Where the front matter ends, or 0.
        prose: False for source code, where a function called `summary` is no summary.
        tables: Tables with a header, in order, not overlapping; each is a block too.
        breaks: Characters at which a chunk ends, in order: sheets, slides, a cell's output.
    """

    sections: tuple[Section, ...] = ()
    blocks: tuple[Span, ...] = ()
    front: int = 0
    prose: bool = True
    tables: tuple[Table, ...] = ()
    breaks: tuple[int, ...] = ()

    def content(self, text: str) -> int:
        """Where the content begins: behind the front matter, which is metadata; 0 where nothing follows it."""
        return self.front if text[self.front :].strip() else 0


class Lines:
    """Offsets and numbers of a text's lines. A line ends at `\\n` and nowhere else. Indexes count from 0, numbers from 1."""

    __slots__ = ("starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts: list[int] = [0]
        find, position = text.find, text.find("\n")
        while position >= 0:
            self.starts.append(position + 1)
            position = find("\n", position + 1)

    def __len__(self) -> int:
        return len(self.starts)

    def number(self, offset: int) -> int:
        return bisect_right(self.starts, offset)

    def start(self, index: int) -> int:
        """Offset of line `index`; the text's length for lines past the end."""
        return self.starts[index] if index < len(self.starts) else len(self.text)

    def line(self, index: int) -> str:
        end = self.starts[index + 1] - 1 if index + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[index] : end]


def separate(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Spans in order, without those that overlap an earlier one."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if span.end > span.start and (not kept or span.start >= kept[-1].end):
            kept.append(span)
    return tuple(kept)


class TextWriter:
    """Writes the text of one document and notes its shape and places.

    In all methods `at` is the locator of the words in the original; "": where the text before them is. `hidden` counts what
    pages within it do not show.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.length = self.hidden = 0
        self._sections: list[Section] = []
        self._blocks: list[Span] = []
        self._tables: list[Table] = []
        self._breaks: list[int] = []
        self._places: list[Place] = []
        self._gap = self._break = self._ending = False

    def finish(self) -> tuple[str, Outline, tuple[Place, ...]]:
        blocks = separate(self._blocks)
        outline = Outline(tuple(self._sections), blocks, tables=tuple(self._tables), breaks=tuple(self._breaks))
        return "".join(self._parts), outline, tuple(self._places)

    def gap(self) -> None:
        self._gap = True

    def apart(self) -> None:
        """No chunk holds what comes next together with what was before."""
        self._gap = self._break = True

    def unheaded(self) -> None:
        """What comes next is under no heading but the title of the whole."""
        if self._sections and self._sections[-1].title:
            self._gap = self._ending = True

    def slide(self, title: str, at: str) -> None:
        """A slide begins: it shares no chunk with the one before, and no heading either where it has no title."""
        self.apart()
        if title.strip():
            self.heading(title, 1, at)
        else:
            self.unheaded()

    def aside(self, text: str, at: str) -> None:
        """A paragraph that is under no heading, and in no chunk with what was before."""
        if text.strip():
            self.apart()
            self.unheaded()
            self.paragraph(text, at)

    def line(self, text: str, at: str = "") -> None:
        words = normalise(text).strip("\n").rstrip()
        if words.strip():
            self._begin(at)
            self._write(words + "\n")

    def paragraph(self, text: str, at: str = "") -> None:
        if text.strip():
            self.gap()
            self.line(text, at)
            self.gap()

    def heading(self, title: str, level: int, at: str = "") -> None:
        """A heading, `level` 1 for the outermost, 0 for the title over all of them."""
        words = " ".join(normalise(title).split())
        if words:
            self.gap()
            start = self._begin(at)
            self._write(f"{'#' * min(max(level, 1), 6)} {words}\n")
            self._sections.append(Section(start, self.length, level, words))
            self.gap()

    def block(self, text: str, at: str = "") -> None:
        """Text that should stay in one piece, such as code; its indentation is kept."""
        words = normalise(text).strip("\n").rstrip()
        self.shaped(words, Outline(blocks=(Span(0, len(words) + 1),)), at)

    def table(self, rows: Iterable[tuple[Sequence[str], str]], *, header: int | None = None, carried: str = "") -> str:
        """A table.

        Args:
            rows: Cells and locator of each row, in order; a row without words is left out.
            header: Which row is the header, from 0; None: found by its look; -1: none.
            carried: The header of the table that this one goes on with, used where it has none of its own.

        Returns:
            The header as one line, or "".
        """
        written = [
            (" ".join(CELLS.join(trimmed(cells)).split()), cells, at)
            for cells, at in rows
            if any(map(str.strip, cells))
        ]
        if not written:
            return carried
        if header is None:
            header = find_header([cells for _, cells, _ in written])
        self.gap()
        start = body = -1
        for index, (words, _, at) in enumerate(written):
            begin = self._begin(at)
            start = begin if start < 0 else start
            self._write(normalise(words) + "\n")
            body = self.length if index == header else body
        self._blocks.append(Span(start, self.length))
        words = normalise(written[header][0]) if header >= 0 else carried
        if words:
            self._tables.append(Table(start, body if header >= 0 else start, self.length, words))
        self.gap()
        return words

    def html(self, source: str, at: str = "") -> None:
        from workbench.ingest.readers.html import html_text  # which uses this module

        text, outline, hidden = html_text(source)
        self.hidden += hidden
        self.shaped(text, outline, at)

    def shaped(self, text: str, outline: Outline, at: str = "") -> None:
        """Text whose shape is known, without blank lines before it."""
        text = normalise(text).strip("\n")
        if not text.strip():
            return
        self.gap()
        base = self._begin(at)
        self._write(text.rstrip() + "\n")
        self._sections += [Section(s.start + base, s.body + base, s.level, s.title) for s in outline.sections]
        self._blocks += [Span(b.start + base, b.end + base) for b in outline.blocks]
        self._tables += [Table(t.start + base, t.body + base, t.end + base, t.header) for t in outline.tables]
        self.gap()

    def _begin(self, at: str) -> int:
        """Write what is due before the next words; where they begin."""
        if self._gap and self.length:
            self._write("\n")
        if self._break and self.length:
            self._breaks.append(self.length)
        if self._ending:
            self._sections.append(Section(self.length, self.length, 1, ""))
        self._gap = self._break = self._ending = False
        if at and (not self._places or self._places[-1].locator != at):
            self._places.append(Place(self.length, at))
        return self.length

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self.length += len(text)


def raised(before: str, words: str, low: bool = False) -> str:
    """Raised or lowered words as they follow others: figures behind a figure are set apart, so that no number becomes another."""
    if not (words[:1].isdigit() and before[-1:].isdigit()):
        return words
    return ("^" if not low and _TEN.search(before) else " ") + words


def left_out(hidden: int, *named: str) -> dict[str, str]:
    """What the metadata says of hidden things: those that are read all the same, and how much was not."""
    lines = [*filter(None, named), *([f"text in {hidden} places, left out"] if hidden else ())]
    return {"hidden": "; ".join(lines)} if lines else {}


def trimmed(cells: Sequence[str]) -> Sequence[str]:
    """Cells without the empty ones at the end."""
    last = len(cells)
    while last and not cells[last - 1].strip():
        last -= 1
    return cells[:last]


def find_header(rows: Sequence[Sequence[str]]) -> int:
    """Which row is a table's header: the first that fills half of the columns with words and no numbers; -1 for none."""
    width = max((len(trimmed(row)) for row in rows[:_ROWS_FOR_HEADER]), default=0)
    for index, row in enumerate(rows[:_ROWS_FOR_HEADER] if len(rows) > 1 else ()):
        cells = [cell.strip() for cell in row if cell.strip()]
        if any(map(is_number, cells)):
            return -1
        if len(cells) * 2 >= width and (len(cells) > 1 or width == 1):
            return index if index + 1 < len(rows) else -1
    return -1


def is_number(cell: str) -> bool:
    """Whether a cell is a number, an amount, a time or a date in figures."""
    plain = cell.replace(",", "").replace(" ", "").strip("%$€£+-()")
    return plain.replace(".", "", 1).replace("-", "").replace(":", "").replace("/", "").isdigit()


def is_layout(cells: Sequence[Sequence[str]]) -> bool:
    """Whether a table is a frame around text: it has one column, or a cell of more than 500 characters."""
    return max(map(len, cells), default=0) < 2 or any(len(cell) > LONGEST_CELL for row in cells for cell in row)


def useful_title(title: str) -> str:
    """A title as one line, or "" where it says nothing about the document, as what programs put into its properties."""
    words = " ".join(title.split())
    return "" if _EMPTY_TITLE.fullmatch(words) else words
