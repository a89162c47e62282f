"""From the text of a PDF's pages to the text that was meant: columns in order, words joined, running heads once.

PDFium gives text in the order in which the page was drawn, which is nearly always the order of reading. Where a page of prose
was drawn line by line across two columns, the lines are put right by their places: columns are told from tables by how much of
their width the lines fill.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

_BROKEN_WORD = re.compile("(\\w+)(?:[\ufffe\x02\u00ad]\\s*\n?|-\n)(?=(\\w+))")
_NUMBER = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(r"(?i)[\W_]*(?:(?:page|seite|p\.|pg\.?)\s*)?#(?:\s*(?:of|von|/|\|)\s*#)?[\W_]*")
_LOOKED_AT = 3
_FEWEST_PAGES = 4
_LETTERS_OF_A_HEAD = 12


@dataclass(frozen=True, slots=True)
class Box:
    """A run of text on a line: its place on the page in points, y upwards."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def width(self) -> float:
        """Width in points."""
        return self.right - self.left


def column_order(boxes: Sequence[Box], left: float, right: float) -> list[Box] | None:
    """The parts of a page in the order of reading, where it is prose in two columns that was drawn across them.

    Args:
        boxes: The runs of text, in the order in which they were drawn.
        left, right: The page's edges.

    Returns:
        Boxes that together hold all text, top to bottom: what spans both columns, then the left column, then the right one,
        and so on; None where the order of drawing is the order of reading, or nothing says that it is not.
    """
    middle = _gutter(boxes, left, right)
    if middle is None:
        return None
    lefts = [b for b in boxes if b.right <= middle]
    rights = [b for b in boxes if b.left >= middle]
    sides = [b.right <= middle for b in boxes if b.right <= middle or b.left >= middle]
    turns = sum(a != b for a, b in pairwise(sides))
    if turns < len(sides) / 3 or not (_is_prose(lefts) and _is_prose(rights)):
        return None
    across = sorted((b for b in boxes if b.left < middle < b.right), key=lambda b: -b.top)
    edges = [max(b.top for b in boxes) + 1, *(y for b in across for y in (b.top + 0.5, b.bottom - 0.5))]
    edges.append(min(b.bottom for b in boxes) - 1)
    order: list[Box] = []
    for index, (top, bottom) in enumerate(pairwise(edges)):
        if top <= bottom:
            continue
        if index % 2:
            order.append(Box(left, bottom, right, top))
        else:
            order += [Box(left, bottom, middle, top), Box(middle, bottom, right, top)]
    return order


def _gutter(boxes: Sequence[Box], left: float, right: float) -> float | None:
    """Where the white between two columns runs, or None: at most a tenth of the lines cross it."""
    if len(boxes) < 16:
        return None
    width = right - left
    best, fewest = None, len(boxes) // 10 + 1
    for step in range(35, 66):
        x = left + width * step / 100
        crossing = sum(b.left < x < b.right for b in boxes)
        if crossing < fewest or (crossing == fewest and best is not None and abs(step - 50) < abs(best - 50)):
            best, fewest = step, crossing
    return None if best is None else left + width * best / 100


def _is_prose(column: Sequence[Box]) -> bool:
    """Lines of prose fill their column; the cells of a table do not."""
    if len(column) < 8:
        return False
    full = max(b.right for b in column) - min(b.left for b in column)
    return full > 0 and median(b.width for b in column) >= 0.7 * full


def join_words(pages: Sequence[str]) -> list[str]:
    """Join words that were broken at the end of a line; a hyphen that belongs to the word stays.

    It belongs to it before a capital or a digit (`Lucene-BM25`), and where the document has the word with it elsewhere in the
    middle of a line and not without it.
    """
    words = Counter(w.lower() for page in pages for w in re.findall(r"\w+(?:-\w+)*", page))

    def joined(match: re.Match[str]) -> str:
        before, after = match[1], match[2]
        whole, hyphened = f"{before}{after}".lower(), f"{before}-{after}".lower()
        if not after[0].islower() or (words[hyphened] and not words[whole]):
            return f"{before}-"
        # A hyphen that was written as one is dropped only where the word is known without it, or can hardly be another.
        certain = match[0][len(before)] != "-" or words[whole] or before.islower() or before.istitle()
        return before if certain else f"{before}-"

    return [_BROKEN_WORD.sub(joined, page) for page in pages]


def without_furniture(pages: Sequence[str]) -> list[str]:
    """Take running heads, feet and page numbers off the pages; a head stays where it stands first.

    Only the first and last lines of a page are looked at, from its edge inwards, in documents of some pages. A line that
    differs from page to page by its number alone is furniture if the number counts the pages.
    """
    if sum(bool(page.strip()) for page in pages) < _FEWEST_PAGES:
        return list(pages)
    split = [page.split("\n") for page in pages]
    for from_top in (True, False):
        furniture = _repeated(split, from_top)
        seen: set[str] = set()
        for lines in split:
            for index in _edge(lines, from_top):
                pattern = _pattern(lines[index])
                if pattern not in furniture:
                    break
                if pattern in seen or _PAGE_NUMBER.fullmatch(pattern):
                    lines[index] = ""
                seen.add(pattern)
    return ["\n".join(lines).strip("\n") for lines in split]


def _edge(lines: Sequence[str], from_top: bool) -> list[int]:
    """The first or last lines that are not blank, from the edge inwards; never so many that a page could lose its body."""
    filled = [index for index, line in enumerate(lines) if line.strip()]
    most = min(_LOOKED_AT, (len(filled) - 1) // 2) if filled else 0
    return filled[:most] if from_top else filled[::-1][:most]


def _pattern(line: str) -> str:
    return _NUMBER.sub("#", " ".join(line.split()))


def _repeated(split: Sequence[Sequence[str]], from_top: bool) -> frozenset[str]:
    """Patterns of the lines that stand at this edge of at least two pages in five (left and right pages may differ)."""
    found: dict[str, list[tuple[int, list[int]]]] = {}
    filled = 0
    for number, lines in enumerate(split):
        edge = _edge(lines, from_top)
        filled += bool(edge)
        for pattern, line in {_pattern(lines[i]): lines[i] for i in edge}.items():
            found.setdefault(pattern, []).append((number, [int(n) for n in _NUMBER.findall(line)[:8]]))
    enough = max(3, filled * 0.4)
    return frozenset(p for p, where in found.items() if len(where) >= enough and _is_furniture(p, where, from_top))


def _is_furniture(pattern: str, where: Sequence[tuple[int, list[int]]], from_top: bool) -> bool:
    numbers = {tuple(numbers) for _, numbers in where}
    if len(numbers) <= 1:
        return any(c.isalpha() for c in pattern) or bool(_PAGE_NUMBER.fullmatch(pattern))
    counting = any(_counts(where, place) for place in range(min(len(n) for _, n in where)))
    if not from_top:
        return counting  # no heading stands at the foot of a page
    letters = sum(c.isalpha() for c in pattern)
    return counting and (bool(_PAGE_NUMBER.fullmatch(pattern)) or letters >= _LETTERS_OF_A_HEAD)


def _counts(where: Sequence[tuple[int, list[int]]], place: int) -> bool:
    """Whether a number of the line goes up with the pages, a few slips apart."""
    return len({numbers[place] - page for page, numbers in where}) <= 1 + len(where) // 10
