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
from typing import TYPE_CHECKING

from workbench.records import Span

if TYPE_CHECKING:
    import polars

# C0 and C1 controls but newline and tab, line and paragraph separators, direction marks, soft hyphen, zero-width space
# and byte-order mark, the invisible operators, interlinear annotation, tag characters, and lone surrogates.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"}
_MARKUP_RE = re.compile("[&<>\"']")

LONGEST_LINE = 2_000


def visible(text: str) -> str:
    """Text as HTML: escaped, with characters that act unseen shown by name. Newlines and tabs stay.

    Args:
        text: Any text, lone surrogates included.

    Returns:
        HTML for element content, without a character that the browser acts on. Attributes need `attribute`.
    """
    escaped = _escape(text)
    return _HIDDEN.sub(lambda m: f'<span class="wb-code">{_name(m.group())}</span>', escaped)


def attribute(text: str) -> str:
    """Text for a quoted attribute: escaped, hidden characters named without markup around them."""
    return _escape(_HIDDEN.sub(lambda m: _name(m.group()), text))


def _escape(text: str) -> str:
    return _MARKUP_RE.sub(lambda m: _MARKUP[m.group()], text)


def plain(text: str, most: int = 200) -> str:
    """Text as one line for attributes, labels and Markdown-free places: hidden characters named, spaces joined, capped.

    The result is not escaped: pass it to `visible` or `attribute`, or to something that shows plain text.
    """
    named = _HIDDEN.sub(lambda m: _name(m.group()), text[: most * 4])
    return cut(" ".join(named.split()), most)


def cut(text: str, most: int) -> str:
    """At most `most` characters, with `…` at the end where some are missing."""
    return text if len(text) <= most else text[: max(most - 1, 0)] + "…"


# Spreadsheets read a cell that begins so as a formula. What begins with an apostrophe before it is quoted too, so that
# `cell_text` gives back exactly what `cell` was given.
_FORMULA = "^'*[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20]"
_FORMULA_RE = re.compile(_FORMULA)


def cell(text: str) -> str:
    """Text for a CSV cell: an apostrophe stands before what a spreadsheet would run as a formula."""
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


def _name(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return f"U+{code:04X}"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A piece of a passage: `text[start:end]`, its spans relative to it, and how much was left out on both sides."""

    text: str
    matches: tuple[Span, ...]
    start: int
    before: int
    after: int


def excerpt(text: str, matches: Sequence[Span], most: int, lead: int = 80) -> Excerpt:
    """The part of a passage to show: whole if it fits, else from a little before its first match.

    Args:
        text: The passage.
        matches: Character spans, in order, not overlapping.
        most: Most characters of the excerpt.
        lead: Characters kept before the first match.
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
    return Excerpt(text[start:end], spans, start, start, len(text) - end)


def marked(text: str, matches: Sequence[Span]) -> str:
    """Text as HTML with `<mark>` around its matches.

    Args:
        text: The passage.
        matches: Character spans in it; parts outside the text or inside an earlier span are passed over.
    """
    parts: list[str] = []
    done = 0
    for span in sorted(matches):
        start, end = max(span.start, done), min(span.end, len(text))
        if start >= end:
            continue
        parts += [visible(text[done:start]), "<mark>", visible(text[start:end]), "</mark>"]
        done = end
    parts.append(visible(text[done:]))
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Line:
    """One line as shown: its number from 1, its HTML, and whether anything in it is marked."""

    number: int
    html: str
    hit: bool


def lines_of(text: str, first: int, matches: Sequence[Span] = (), longest: int = LONGEST_LINE) -> list[Line]:
    """A text's lines as HTML, each with its own marks, none longer than `longest` characters.

    Args:
        text: Lines joined by newlines.
        first: Number of the first line.
        matches: Character spans in the text; a span over a line's end marks a part of each line.
        longest: Most characters shown of one line; the rest is counted in words.
    """
    shown: list[Line] = []
    spans = sorted(matches)
    start = position = 0
    for number, line in enumerate(text.split("\n"), first):
        end = start + len(line)
        while position < len(spans) and spans[position].end <= start:
            position += 1
        own = []
        for span in spans[position:]:
            if span.start >= end:
                break
            own.append(Span(max(span.start, start) - start, min(span.end, end) - start))
        own = [s for s in own if s.end > s.start]
        shown.append(Line(number, _line(line, own, longest), bool(own)))
        start = end + 1
    return shown


def _line(line: str, spans: Sequence[Span], longest: int) -> str:
    if len(line) <= longest:
        return marked(line, spans)
    piece = excerpt(line, spans, longest)
    parts = [marked(piece.text, piece.matches)]
    if piece.before:
        parts.insert(0, f'<span class="wb-more">… {piece.before:,} characters </span>')
    if piece.after:
        parts.append(f'<span class="wb-more"> … {piece.after:,} more characters</span>')
    return "".join(parts)
