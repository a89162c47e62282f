"""The title of a PDF that names none: what its first page sets clearly larger than the rest, near the top.

Most PDFs have no title in their properties, or one that a program put there. Headings are not guessed: sizes tell titles from
text, but not headings from captions, bullets and labels.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from workbench.ingest.encoding import normalise

_LARGER = 1.3  # than the size of the body
_SAME = 0.04  # as a share: two sizes that are one
_LONGEST = 200
_FEWEST_LETTERS, _FEWEST_ON_PAGE = 5, 300
_UPPER = 0.5  # of the page
_BROKEN = "\ufffe"


@dataclass(frozen=True, slots=True)
class _Line:
    size: float
    bottom: float
    text: str


def title_of(content: Any, bottom: float, top: float) -> str:
    """What is set largest on a page, if nothing else about it speaks against its being the title; else "".

    Args:
        content: The page's text (`pypdfium2.PdfTextPage`). Call it under the lock.
        bottom, top: The page's edges in points.
    """
    lines = _lines(content)
    letters: Counter[float] = Counter()
    for line in lines:
        letters[round(line.size, 1)] += len(line.text)
    if letters.total() < _FEWEST_ON_PAGE:
        return ""
    body = letters.most_common(1)[0][0]
    groups = _merged(lines)
    largest = max((group.size for group in groups if _is_title(group.text)), default=0.0)
    found = [group for group in groups if group.size >= largest * (1 - _SAME)]
    if largest < body * _LARGER or len(found) > 1 or found[0].bottom < bottom + (top - bottom) * _UPPER:
        return ""
    return found[0].text


def _lines(content: Any) -> list[_Line]:
    import pypdfium2.raw as raw

    text = str(content.get_text_range())
    if max(text, default="") > "\uffff":  # PDFium counts such a letter twice
        return []
    found: list[_Line] = []
    box = raw.FS_RECTF()
    start = 0
    for line in text.split("\n"):
        words = " ".join(normalise(line).split())
        if words:
            index = raw.FPDFText_GetCharIndexFromTextIndex(content, start + len(line) - len(line.lstrip()))
            if raw.FPDFText_GetLooseCharBox(content, index, ctypes.byref(box)):
                found.append(_Line(box.top - box.bottom, box.bottom, words))
        start += len(line) + 1
    return found


def _merged(lines: list[_Line]) -> list[_Line]:
    """Lines of one size that follow one another are one; a word that was broken at a line's end keeps its hyphen."""
    merged: list[_Line] = []
    for line in lines:
        last = merged[-1] if merged else None
        if last is not None and abs(line.size - last.size) <= _SAME * last.size:
            between = "" if last.text.endswith(_BROKEN) else " "
            merged[-1] = replace(last, text=f"{last.text}{between}{line.text}")
        else:
            merged.append(line)
    return [replace(line, text=line.text.replace(_BROKEN, "-")) for line in merged]


def _is_title(text: str) -> bool:
    return " " in text and len(text) <= _LONGEST and sum(c.isalpha() for c in text) >= _FEWEST_LETTERS
