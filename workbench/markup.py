"""Text from documents as HTML that shows it and does nothing else.

Everything that a page or a snapshot writes as HTML and that comes from a document, a path or a query goes through here, once.
Markup is escaped; control characters, direction marks and other characters that would act without being seen are shown by
name; what remains sits in an isolated `<bdi>` at the call sites, so a right-to-left passage turns nothing around it; and
lengths are capped, so a line of a million characters costs no more than a short one.

The functions work character by character, so `visible(a) + visible(b) == visible(a + b)`: passages may be cut anywhere and
marks put in between.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import takewhile
from typing import TYPE_CHECKING

from workbench.errors import HIDDEN, character_name, one_line
from workbench.records import Span

if TYPE_CHECKING:
    import polars

LONGEST_LINE = 2_000


def visible(text: str) -> str:
    """Text as HTML for element content: escaped, with characters that act unseen shown by name. Newlines and tabs stay.

    Attributes need `attribute`.
    """
    return HIDDEN.sub(lambda m: f'<span class="wb-code">{character_name(m)}</span>', escape(text))


def attribute(text: str) -> str:
    """Text for a quoted attribute: escaped, hidden characters named without markup around them."""
    return escape(HIDDEN.sub(character_name, text))


def plain(text: str, most: int = 200) -> str:
    """Text as one line for attributes, labels and Markdown-free places: hidden characters named, spaces joined, capped.

    The result is not escaped: pass it to `visible` or `attribute`, or to something that shows plain text.
    """
    return cut(one_line(text[: most * 4]), most)


def cut(text: str, most: int) -> str:
    """At most `most` characters, with `…` at the end where some are missing."""
    return text if len(text) <= most else text[: max(most - 1, 0)] + "…"


# Spreadsheets read a cell that begins so as a formula. What begins with an apostrophe before it is quoted too, so that
# `cell_text` gives back exactly what `cell` was given.
_FORMULA = "^'*[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20]"
_FORMULA_RE = re.compile(_FORMULA)


def cell(text: str) -> str:
    """Text for a CSV cell: an apostrophe is before what a spreadsheet would run as a formula."""
    return "'" + text if _FORMULA_RE.match(text) else text


def cell_text(cell: str) -> str:
    """The text that `cell` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA_RE.match(cell) else cell


def csv_of(frame: polars.DataFrame) -> str:
    """A table as CSV that is safe to open in a spreadsheet: every text is a `cell`."""
    import polars as pl

    texts = pl.col(pl.String)
    safe = pl.when(texts.str.contains(_FORMULA)).then("'" + texts).otherwise(texts)
    names = {column: cell(column) for column in frame.columns}
    return frame.with_columns(safe.name.keep()).rename(names).write_csv()


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A piece of a passage, its spans relative to it, and how much was left out on both sides."""

    text: str
    matches: tuple[Span, ...]
    before: int
    after: int


def excerpt(text: str, matches: Sequence[Span], most: int, lead: int = 80) -> Excerpt:
    """The part of a passage to show: whole if it fits `most` characters, else from `lead` characters before its first match.

    The matches are character spans, in order, not overlapping.
    """
    start = 0
    if len(text) > most and matches and matches[0].end > most:
        start = min(max(matches[0].start - lead, 0), len(text) - most)
        border = max(text.rfind("\n", start, matches[0].start), text.rfind(" ", start, matches[0].start))
        start = border + 1 if border >= start else start
    end = min(start + most, len(text))
    if end < len(text):
        space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
        end = space if space > start + most // 2 else end
    spans = tuple(
        Span(max(m.start, start) - start, min(m.end, end) - start) for m in matches if m.end > start and m.start < end
    )
    return Excerpt(text[start:end], spans, start, len(text) - end)


def marked(text: str, matches: Sequence[Span], current: Span | None = None) -> str:
    """Text as HTML with `<mark>` around its matches (`current` in a class of its own); parts outside the text or inside an
    earlier span are passed over.
    """
    parts: list[str] = []
    done = 0
    for span in sorted(matches):
        start, end = max(span.start, done), min(span.end, len(text))
        if start < end:
            mark = '<mark class="wb-now">' if span == current else "<mark>"
            parts += [visible(text[done:start]), mark, visible(text[start:end]), "</mark>"]
            done = end
    return "".join((*parts, visible(text[done:])))


@dataclass(frozen=True, slots=True)
class Line:
    """One line as shown: its number from 1, its HTML, and whether anything in it is marked."""

    number: int
    html: str
    hit: bool


def lines_of(text: str, first: int, matches: Sequence[Span] = (), longest: int = LONGEST_LINE) -> list[Line]:
    """A text's lines as HTML, numbered from `first`, each with its own marks, none longer than `longest` characters.

    A span over a line's end marks a part of each line.
    """
    shown: list[Line] = []
    spans = sorted(matches)
    start = position = 0
    for number, line in enumerate(text.split("\n"), first):
        end = start + len(line)
        while position < len(spans) and spans[position].end <= start:
            position += 1
        here = takewhile(lambda span: span.start < end, spans[position:])  # noqa: B023 - used at once
        cut = (Span(max(s.start, start) - start, min(s.end, end) - start) for s in here)
        own = [s for s in cut if s.end > s.start]
        shown.append(Line(number, _line(line, own, longest), bool(own)))
        start = end + 1
    return shown


def _line(line: str, spans: Sequence[Span], longest: int) -> str:
    if len(line) <= longest:
        return marked(line, spans)
    piece = excerpt(line, spans, longest)
    before = f'<span class="wb-more">… {piece.before:,} characters </span>' if piece.before else ""
    after = f'<span class="wb-more"> … {piece.after:,} more characters</span>' if piece.after else ""
    return before + marked(piece.text, piece.matches) + after
