"""The letters of a PDF page with their places: what PDFium's text gets wrong is put right from them.

PDFium says which letters a page has, and guesses the spaces and line ends between them. Four guesses are wrong often enough to
cost searches, and each shows in the letters' boxes:

- Recognised text under a scan is laid out letter by letter, and a space is guessed before the last letter of a word
  ("Nort h America"): no wider than the gaps between the word's other letters.
- The Arabic ligature of lam and alef is one glyph for two letters, and comes out the wrong way round, as do vowel marks.
- A raised digit behind a number is read as one of its digits (a footnote makes 8,935,112 into 8,935,1123).
- Forms and designed pages are drawn in any order: a line is then put behind the lines that stand above it.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from workbench.ingest.encoding import normalise
from workbench.ingest.readers.pdf_text import Box

_ALEFS = frozenset("\u0622\u0623\u0625\u0627")
_LAM = "\u0644"
_MARKS = frozenset(map(chr, (*range(0x064B, 0x0653), 0x0670)))
_ARABIC = re.compile("[\u0621-\u064a]")
_LONE = re.compile(r"(?<=[^\W\d_] )[^\W\d_aAIioOyYeE](?= )")
_DIGITS = re.compile(r"\d{2,}")
_FEWEST_LONE, _MANY_LONE = 3, 0.02
_MOST_LINES = 1.5
_SPACED = 0.08  # of the line's height: gaps between letters that are wider than type is set
_RAISED = 0.8  # of the size of the digits before it
_WORD = 0.2  # of a line's height: the least space between two words
_ASKEW = 0.05  # sine of twice the angle
_MOST_ORDERED = 3000
"""Runs or lines of a page beyond which it is left as it was drawn: each is compared with each."""
_TOUCHING = 0.35  # of a line's height that may overlap with the next one


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page as it was drawn."""

    box: Box
    text: str


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter, and whether PDFium guessed it, as it does spaces and line ends."""

    text: str
    box: Box
    guessed: bool


def page_text(content: Any, boxes: Sequence[Box], page: Box) -> str:
    """The text of a page, with PDFium's wrong guesses put right.

    Args:
        content: The page's text (`pypdfium2.PdfTextPage`). Call it under the lock.
        boxes: The runs of text in the order in which they were drawn.
        page: The page's edges; what lies outside of them is not shown, and is no text of the page.

    Returns:
        Normalised text.
    """
    text = normalise(str(content.get_text_bounded()))
    lone = len(_LONE.findall(text))
    spaced = lone >= _FEWEST_LONE and lone >= _MANY_LONE * text.count(" ")
    disordered = out_of_order(boxes) and not _slanted(content)
    if spaced or disordered or _ARABIC.search(text):
        lines = lines_of(_letters(content, page), spaced)
        if len(lines) <= _MOST_LINES * (text.count("\n") + 1):  # else text that stands upright, a letter a line
            ordered = top_down(lines) if disordered and len(lines) <= _MOST_ORDERED else lines
            text = normalise("\n".join(line.text for line in ordered))
    return _apart(content, text)


def out_of_order(boxes: Sequence[Box]) -> bool:
    """Whether a line was drawn after one that stands below it and shares some of its width, which no column of text does.

    A drawing of thousands of labels has no order to find, and counts as none.
    """
    if len(boxes) > _MOST_ORDERED:
        return False
    for index, (before, box) in enumerate(pairwise(boxes), 1):
        upwards = box.bottom > before.top and box.bottom - before.top > (box.top - box.bottom) / 2
        if upwards and any(_under(earlier, box) for earlier in boxes[:index]):
            return True
    return False


def top_down(lines: Sequence[Line]) -> list[Line]:
    """Lines in the order in which they were drawn, but none before a line that stands above it and shares some of its width."""
    above = [
        [other for other, upper in enumerate(lines) if other != index and _under(line.box, upper.box)]
        for index, line in enumerate(lines)
    ]
    done = [False] * len(lines)
    order: list[Line] = []
    for first in range(len(lines)):
        waiting = [(first, iter(above[first]))]
        while waiting:
            index, uppers = waiting[-1]
            missing = -1 if done[index] else next((i for i in uppers if not done[i]), -1)
            if missing >= 0:
                waiting.append((missing, iter(above[missing])))
                continue
            waiting.pop()
            if not done[index]:
                done[index] = True
                order.append(lines[index])
    return order


def _under(box: Box, upper: Box) -> bool:
    """Whether a box stands below another one; no two boxes each stand below the other, so that an order always exists."""
    height = min(box.top - box.bottom, upper.top - upper.bottom)
    lower = box.top <= upper.bottom + _TOUCHING * height and box.top < upper.top and box.bottom < upper.bottom
    return lower and min(box.right, upper.right) - max(box.left, upper.left) > 1


def _letters(content: Any, page: Box) -> list[Letter]:
    """All letters of the page that lie on it, guessed spaces and line ends among them."""
    import pypdfium2.raw as raw

    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    found: list[Letter] = []
    half = 0
    for index in range(content.count_chars()):
        code = raw.FPDFText_GetUnicode(content, index)
        if 0xD800 <= code < 0xDC00:
            half = code
            continue
        if 0xDC00 <= code < 0xE000:
            code = 0x10000 + ((half - 0xD800) << 10) + code - 0xDC00 if half else 0xFFFD
        half = 0
        raw.FPDFText_GetCharBox(content, index, left, right, bottom, top)
        box = Box(left.value, bottom.value, right.value, top.value)
        guessed = raw.FPDFText_IsGenerated(content, index) == 1 or (code == 32 and box.width <= 0)
        if guessed or (
            box.right >= page.left and box.left <= page.right and box.top >= page.bottom and box.bottom <= page.top
        ):
            found.append(Letter(chr(code or 0xFFFD), box, guessed))
    return found


def lines_of(letters: Sequence[Letter], spaced: bool) -> list[Line]:
    """The lines of a page; a raised or lowered piece, which PDFium gives as a line, is a part of the line that it stands in."""
    lines: list[Line] = []
    line: list[Letter] = []
    for letter in (*letters, Letter("\n", Box(0, 0, 0, 0), True)):
        if letter.text not in "\r\n":
            line.append(letter)
            continue
        drawn = [one.box for one in line if one.text.strip() and one.box.width > 0]
        if drawn:
            box = Box(
                min(b.left for b in drawn), min(b.bottom for b in drawn),
                max(b.right for b in drawn), max(b.top for b in drawn),
            )  # fmt: skip
            kept = _arabic(_joined(line, box.top - box.bottom) if spaced else line)
            one_line = Line(box, "".join(one.text for one in kept))
            gap = box.left - lines[-1].box.right if lines else 0.0
            if lines and _beside(lines[-1].box, box):
                last = lines.pop()
                between = " " if gap > _WORD * (box.top - box.bottom) and not last.text.endswith(" ") else ""
                one_line = Line(_around(last.box, box), last.text + between + one_line.text)
            lines.append(one_line)
        line = []
    return lines


def _beside(box: Box, after: Box) -> bool:
    """Whether a piece goes on with the line before it: close behind it, and at most of the same height."""
    low, high = sorted((box.top - box.bottom, after.top - after.bottom))
    shared = min(box.top, after.top) - max(box.bottom, after.bottom)
    return shared >= low / 3 and -low / 2 <= after.left - box.right <= high / 2


def _around(box: Box, other: Box) -> Box:
    return Box(
        min(box.left, other.left), min(box.bottom, other.bottom), max(box.right, other.right), max(box.top, other.top)
    )  # fmt: skip


def _joined(line: Sequence[Letter], height: float) -> list[Letter]:
    """A line without the guessed spaces that are no wider than the gaps inside its words."""
    gaps = [b.box.left - a.box.right for a, b in pairwise(line) if a.text.strip() and b.text.strip()]
    usual = median(gaps) if len(gaps) > 2 else 0.0
    if usual < _SPACED * height:
        return list(line)
    kept: list[Letter] = []
    for index, letter in enumerate(line):
        inside = 0 < index < len(line) - 1 and line[index - 1].text.strip() and line[index + 1].text.strip()
        if letter.guessed and letter.text == " " and inside:
            gap = line[index + 1].box.left - line[index - 1].box.right
            if gap <= max(usual * 1.3, _SPACED * height):
                continue
        kept.append(letter)
    return kept


def _arabic(line: Sequence[Letter]) -> list[Letter]:
    """A line with ligatures of lam and alef, and vowel marks, in the order in which they are written."""
    kept: list[Letter] = []
    for letter in line:
        last = kept[-1] if kept else None
        if last is not None and letter.text in _MARKS and last.guessed and last.text == " ":
            kept.pop()
        kept.insert(len(kept) - (last is not None and _belongs_before(letter, last)), letter)
    return kept


def _belongs_before(letter: Letter, last: Letter) -> bool:
    """Whether a letter is written before the one that PDFium gave before it."""
    ligature = letter.text == _LAM and last.text in _ALEFS and last.box == letter.box
    return ligature or (last.text in _MARKS and letter.text.isalpha() and _covers(letter.box, last.box))


def _covers(letter: Box, mark: Box) -> bool:
    return letter.left <= (mark.left + mark.right) / 2 <= letter.right


def _slanted(content: Any) -> bool:
    """Whether a part of the page is set askew, where the boxes of lines do not say which stands above which."""
    import pypdfium2.raw as raw

    count = content.count_chars()
    angles = [raw.FPDFText_GetCharAngle(content, index) for index in range(0, count, max(1, count // 64))]
    return sum(abs(math.sin(2 * angle)) > _ASKEW for angle in angles) > len(angles) / 8


def _apart(content: Any, text: str) -> str:
    """The text with a space before raised digits that follow a number."""
    import pypdfium2.raw as raw

    numbers = list(_DIGITS.finditer(text))
    drawn = str(content.get_text_range()) if numbers else ""
    places = list(_DIGITS.finditer(drawn))
    if [n[0] for n in numbers] != [p[0] for p in places] or max(drawn, default="") > "\uffff":
        return text  # the two are not the same letters in the same order
    parts: list[str] = []
    end = 0
    for number, place in zip(numbers, places, strict=True):
        first = raw.FPDFText_GetCharIndexFromTextIndex(content, place.start())
        last = raw.FPDFText_GetCharIndexFromTextIndex(content, place.end() - 1)
        if _size(content, last) >= _RAISED * _size(content, first):
            continue
        raised = next(i for i in range(first + 1, last + 1) if _size(content, i) < _RAISED * _size(content, first))
        cut = number.start() + raised - first
        parts += [text[end:cut], " "]
        end = cut
    return "".join((*parts, text[end:]))


def _size(content: Any, index: int) -> float:
    import pypdfium2.raw as raw

    return float(raw.FPDFText_GetFontSize(content, index))
