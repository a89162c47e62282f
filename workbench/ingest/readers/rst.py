"""The shape of reStructuredText: headings by their underlines, and blocks that belong together by their indentation.

docutils would parse all of it, at a hundred times the cost and refusing Sphinx's own directives; for cutting a text into
chunks the adornments and the indentation say enough. Levels come from the order in which the styles of adornment first
appear, as the specification has it (https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html#sections).
"""

from __future__ import annotations

import re
import unicodedata

from workbench.ingest.outline import Lines, Section, Table, separate
from workbench.ingest.writing import CELLS
from workbench.records import Span

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+[ \t]*")
_SIMPLE_TABLE = re.compile(r"[ \t]*=+([ \t]+=+)+[ \t]*")
_CODE = re.compile(
    r"([ \t]*)\.\. (code-block|code|sourcecode|literalinclude|highlight|parsed-literal|list-table|csv-table|table"
    r"|math|graphviz|productionlist|snippet|doctest|testcode)::"
)
_LABEL = re.compile(
    r"\.\. (?:_[^`\n]+|__.*|(?:index|module|currentmodule|setting|templatetag|templatefilter|fieldlookup|highlight)::.*)"
)
_ROLE = re.compile(r":[\w:+.-]+:`([^`<]*?)\s*(?:<[^`]*>)?`")
_GAP, _EMPHASIS = re.compile(r"[ \t]{2,}"), re.compile(r"[`*]")
_LINK = re.compile(r"`([^`<]+?)\s*<[^`]*>`__?")


def underlined_headings(lines: Lines, front: int = 0) -> tuple[Section, ...]:
    """Headings with an underline at least as long as the title (or an overline too), after the front matter."""
    found: list[Section] = []
    styles: list[tuple[str, bool]] = []
    index = lines.number(front) - 1
    while index < len(lines):
        heading = _heading_at(lines, index)
        if heading is None:
            index += 1
            continue
        title, style, length = heading
        if style not in styles:
            styles.append(style)
        start, body = lines.start(_labels_above(lines, index, front)), lines.start(index + length)
        found.append(Section(start, body, styles.index(style) + 1, title))
        index += length
    return tuple(found)


def _heading_at(lines: Lines, index: int) -> tuple[str, tuple[str, bool], int] | None:
    """Title, style (character, overlined) and number of lines of a heading that starts at this line, or None."""
    first = lines.line(index)
    if not first or first.isspace() or index + 1 >= len(lines):
        return None
    above = lines.line(index - 1) if index else ""
    second = lines.line(index + 1)
    if _ADORNMENT.fullmatch(first):
        if index + 2 >= len(lines) or not second.strip() or _ADORNMENT.fullmatch(second):
            return None
        under = lines.line(index + 2)
        if under.rstrip() == first.rstrip() and width(second.strip()) <= len(first.rstrip()):
            return plain(second), (first[0], True), 3
        return None
    if first[0].isspace() or (above.strip() and not _ADORNMENT.fullmatch(above)):
        return None
    if not _ADORNMENT.fullmatch(second) or not any(c.isalnum() for c in first):
        return None
    length = len(second.rstrip())
    return (plain(first), (second[0], False), 2) if length >= max(3, width(first.rstrip())) else None


def _labels_above(lines: Lines, index: int, front: int) -> int:
    """First of the link targets and index marks that stand above a heading and belong to it."""
    first = index
    while index > 0 and lines.start(index - 1) >= front:
        line = lines.line(index - 1)
        if _LABEL.fullmatch(line):
            first = index - 1
        elif line.strip():
            break
        index -= 1
    return first


def width(text: str) -> int:
    """Columns that a text takes: wide East Asian characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )  # fmt: skip


def plain(title: str) -> str:
    """A heading's words without roles, links and emphasis."""
    title = _LINK.sub(r"\1", _ROLE.sub(r"\1", title))
    return " ".join(title.replace("``", "").replace("`", "").replace("*", "").replace("\\", "").split())


def rst_blocks(lines: Lines) -> tuple[Span, ...]:
    """Literal blocks, code directives and simple tables."""
    found: list[Span] = []
    index = 0
    while index < len(lines):
        line = lines.line(index)
        end = index + 1
        if _SIMPLE_TABLE.fullmatch(line):
            end = _table_end(lines, index)
        elif _CODE.match(line):
            end = _indented_end(lines, index)
        elif line.rstrip().endswith("::") and not line.lstrip().startswith(".. "):
            # The paragraph's last line introduces the block; the block itself starts after it.
            inner = _indented_end(lines, index)
            if inner > index + 1:
                found.append(Span(lines.start(index), lines.start(inner)))
            index = inner
            continue
        if end > index + 1:
            found.append(Span(lines.start(index), lines.start(end)))
        index = end
    return separate(found)


def rst_tables(lines: Lines) -> tuple[Table, ...]:
    """The simple tables that have a header: the lines between their first two borders, if a third one ends the rows."""
    found: list[Table] = []
    index = 0
    while index < len(lines):
        end = _table_end(lines, index) if _SIMPLE_TABLE.fullmatch(lines.line(index)) else index + 1
        borders = [at for at in range(index, end) if _SIMPLE_TABLE.fullmatch(lines.line(at))]
        if len(borders) == 3 and borders[1] == index + 2:
            heads = (" ".join(_EMPHASIS.sub("", cell).split()) for cell in _GAP.split(lines.line(index + 1).strip()))
            header = CELLS.join(heads)
            found.append(Table(lines.start(index), lines.start(borders[1] + 1), lines.start(end), header))
        index = end
    return tuple(found)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _indented_end(lines: Lines, index: int) -> int:
    """Line after the last one that is indented more than line `index`; blank lines at the end do not belong."""
    depth, end = _indent(lines.line(index)), index + 1
    for position in range(index + 1, len(lines)):
        line = lines.line(position)
        if not line.strip():
            continue
        if _indent(line) <= depth:
            break
        end = position + 1
    return end


def _table_end(lines: Lines, index: int) -> int:
    """Line after a simple table: after its third border, or its second if a blank line follows that."""
    borders = 1
    for position in range(index + 1, len(lines)):
        if not _SIMPLE_TABLE.fullmatch(lines.line(position)):
            continue
        borders += 1
        following = lines.line(position + 1) if position + 1 < len(lines) else ""
        if borders >= 3 or (borders == 2 and not following.strip()):
            return position + 1
    return index + 1
