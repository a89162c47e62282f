"""How the readers of structured files write their text: lines, headings and tables, each with its place in the original.

One `TextWriter` writes one document. Blocks are set apart by a blank line, so that the chunker finds its cuts; headings are
written as `# Title`; the rows of a table are one line each with ` | ` between the cells, as everywhere in the workbench.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.ingest.encoding import normalise
from workbench.ingest.outline import Outline, Section, Table, separate
from workbench.locators import Place
from workbench.records import Span

CELLS = " | "
_LOOK_FOR_HEADER = 10


class TextWriter:
    """Writes the text of one document and notes its shape and places."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.length = 0
        self._gap = False
        self._sections: list[Section] = []
        self._blocks: list[Span] = []
        self._tables: list[Table] = []
        self._breaks: list[int] = []
        self._places: list[Place] = []
        self._break = self._ending = False

    def finish(self) -> tuple[str, Outline, tuple[Place, ...]]:
        """The text, its shape and its places."""
        blocks = separate(self._blocks)
        outline = Outline(tuple(self._sections), blocks, tables=tuple(self._tables), breaks=tuple(self._breaks))
        return "".join(self._parts), outline, tuple(self._places)

    def gap(self) -> None:
        """A blank line before what comes next."""
        self._gap = True

    def apart(self) -> None:
        """No chunk holds what comes next together with what was before."""
        self._gap = self._break = True

    def unheaded(self) -> None:
        """What comes next stands under no heading but the title of the whole."""
        if self._sections and self._sections[-1].title:
            self._gap = True
            self._ending = True

    def line(self, text: str, at: str = "") -> None:
        """One or more lines of text; blank ones at the edges are dropped.

        Args:
            text: The words; normalised here.
            at: Where they stand in the original; "": where the text before them does.
        """
        words = normalise(text).strip("\n").rstrip()
        if not words.strip():
            return
        self._begin(at)
        self._write(words + "\n")

    def paragraph(self, text: str, at: str = "") -> None:
        """Lines of text with a blank line before and after them."""
        if text.strip():
            self.gap()
            self.line(text, at)
            self.gap()

    def heading(self, title: str, level: int, at: str = "") -> None:
        """A heading, `level` 1 for the outermost, 0 for the title over all of them."""
        words = " ".join(normalise(title).split())
        if not words:
            return
        self.gap()
        self._begin(at)
        start = self.length
        self._write(f"{'#' * min(max(level, 1), 6)} {words}\n")
        self._sections.append(Section(start, self.length, level, words))
        self.gap()

    def block(self, text: str, at: str = "") -> None:
        """Text that should stay in one piece, such as code; its indentation is kept."""
        words = normalise(text).strip("\n").rstrip()
        if not words.strip():
            return
        self.gap()
        self._begin(at)
        start = self.length
        self._write(words + "\n")
        self._blocks.append(Span(start, self.length))
        self.gap()

    def table(self, rows: Iterable[tuple[Sequence[str], str]], *, header: int | None = None, carried: str = "") -> str:
        """A table.

        Args:
            rows: Cells and place of each row, in order; a row without words is left out.
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
            self._begin(at)
            start = self.length if start < 0 else start
            self._write(normalise(words) + "\n")
            body = self.length if index == header else body
        self._blocks.append(Span(start, self.length))
        words = normalise(written[header][0]) if header >= 0 else carried
        if words:
            self._tables.append(Table(start, body if header >= 0 else start, self.length, words))
        self.gap()
        return words

    def html(self, source: str, at: str = "") -> None:
        """The text of a piece of HTML, with its headings and tables."""
        from workbench.ingest.readers.html import html_text  # which uses this module

        self.shaped(*html_text(source), at)

    def shaped(self, text: str, outline: Outline, at: str = "") -> None:
        """Text whose shape is known, without blank lines before it."""
        text = normalise(text).strip("\n")
        if not text.strip():
            return
        self.gap()
        self._begin(at)
        base = self.length
        self._write(text.rstrip() + "\n")
        self._sections += [Section(s.start + base, s.body + base, s.level, s.title) for s in outline.sections]
        self._blocks += [Span(b.start + base, b.end + base) for b in outline.blocks]
        self._tables += [Table(t.start + base, t.body + base, t.end + base, t.header) for t in outline.tables]
        self.gap()

    def _begin(self, at: str) -> None:
        if self._gap and self.length:
            self._write("\n")
        self._gap = False
        if self._break and self.length:
            self._breaks.append(self.length)
        if self._ending:
            self._sections.append(Section(self.length, self.length, 1, ""))
        self._break = self._ending = False
        if at and (not self._places or self._places[-1].locator != at):
            self._places.append(Place(self.length, at))

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self.length += len(text)


def trimmed(cells: Sequence[str]) -> Sequence[str]:
    """Cells without the empty ones at the end."""
    last = len(cells)
    while last and not cells[last - 1].strip():
        last -= 1
    return cells[:last]


def find_header(rows: Sequence[Sequence[str]]) -> int:
    """Which row is a table's header: the first that fills half of the columns with words and no numbers; -1 for none."""
    width = max((len(trimmed(row)) for row in rows[:_LOOK_FOR_HEADER]), default=0)
    if len(rows) < 2:
        return -1
    for index, row in enumerate(rows[:_LOOK_FOR_HEADER]):
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
