"""What a reader knows of a text's shape: its headings, and the blocks that should stay in one piece.

Offsets are characters of the document's text. A section runs from its heading to the next heading; its path is made from
the levels, so a reader only says where a heading is and how deep.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.records import Span


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
    """A table, a row a line. A chunk that begins among its rows is given the header as context.

    Attributes:
        start, end: Characters of all of it.
        body: First character after the header's line.
        header: The header as one line.
    """

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

    def first_title(self) -> str:
        """The first heading's words, or ""."""
        return next((section.title for section in self.sections if section.title), "")


class Lines:
    """Offsets and numbers of a text's lines. A line ends at `\\n` and nowhere else."""

    __slots__ = ("starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        starts = [0]
        find, position = text.find, text.find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = find("\n", position + 1)
        self.starts: list[int] = starts

    def __len__(self) -> int:
        return len(self.starts)

    def number(self, offset: int) -> int:
        """Line of a character, from 1."""
        return bisect_right(self.starts, offset)

    def start(self, index: int) -> int:
        """Offset of line `index`, from 0; the text's length for lines past the end."""
        return self.starts[index] if index < len(self.starts) else len(self.text)

    def line(self, index: int) -> str:
        """Line `index`, from 0, without its line end."""
        end = self.starts[index + 1] - 1 if index + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[index] : end]


def separate(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Spans in order, without those that overlap an earlier one."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if span.end > span.start and (not kept or span.start >= kept[-1].end):
            kept.append(span)
    return tuple(kept)
