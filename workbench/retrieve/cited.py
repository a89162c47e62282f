"""From a citation, or a place as people write it, to characters of a document: the way back from `places.cite`.

What a result cites opens again: `notes.md:12-18`, `report.pdf#page=3`, `book.xlsx#sheet=Sales&row=12-18`,
`plan.docx#paragraph=12..table=2&row=3`. People write less than that, and it is read too: `12-18` (lines), `page 3`, `slide 3`,
`table 2 row 3`, `Sales!A5`, `Sales`, `1:02` in a film. A path may itself hold `#` and `:`, so a citation is tried as a path
first, and cut from its end after that.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from workbench.errors import UsageError
from workbench.locators import Place, ends_of, locator, order_of, pairs_of
from workbench.records import Span

Pairs = tuple[tuple[str, str], ...]

_LINES = re.compile(r"(?:lines?\s*[ =]?\s*|:)?(\d{1,9})(?:\s*[-–]\s*(\d{1,9}))?")
_CITED_LINES = re.compile(r"(.+):(\d{1,9}(?:-\d{1,9})?)", re.DOTALL)
_CELL = re.compile(r"(?:(.+)!)?\$?([A-Za-z]{0,3})\$?(\d{1,7})(?::\$?[A-Za-z]{0,3}\$?(\d{1,7}))?")
_TIME = re.compile(r"(?:(\d{1,2}):)?(\d{1,2}):(\d{2})(?:[.,]\d+)?")
_SAID = re.compile(r"([a-z]+)\s*[ =]\s*(\d[\d:.]*(?:\s*[-–]\s*\d[\d:.]*)?)[,;]?\s*")
_RANGE = re.compile(r"(\d[\d:.]*)-(\d[\d:.]*)")
_SHORT = {
    "p": "page",
    "pp": "page",
    "pages": "page",
    "slides": "slide",
    "rows": "row",
    "cells": "cell",
    "para": "paragraph",
}
_SHORT |= {"paragraphs": "paragraph", "parts": "part", "tables": "table", "outputs": "output"}
_FLOWING = frozenset({"line", "column", "time"})
"""Keys whose places mark where something begins; what lies between two of them belongs to the one before."""
_MOST_NAMED = 6
_LONGEST_SAID = 300
"""Characters of a place as people write it; only a locator, which is split and not matched, may be longer."""


def split_citation(asked: str) -> Iterator[tuple[str, str]]:
    """The ways to read a citation, as path and place, the whole as a path first; a place is "" where none is meant."""
    yield asked, ""
    lines = _CITED_LINES.fullmatch(asked)
    if lines is not None:
        yield lines[1], lines[2]
    path, mark, place = asked.rpartition("#")
    if mark and path:
        yield path, place


def find_place(at: str, text: str, places: Sequence[Place], page_starts: Sequence[int]) -> Span:
    """The characters of a text at a place.

    Args:
        at: The place: a locator, or as people write it.
        text: The document's text.
        places: Where it stands in its original, in order; may be empty.
        page_starts: First character of each page; may be empty.

    Returns:
        From the first character to the last that is not blank.

    Raises:
        UsageError: There is no such place; says which there are.
    """
    wanted = at.strip().removeprefix("#")
    known = tuple(places) or tuple(Place(start, locator(page=n)) for n, start in enumerate(page_starts, 1))
    looked = _Known(known, len(text))
    # A name may end in a blank of its own: a locator is read as it is written first, and without blanks around it then.
    exact = _spans(at, known, looked) if at != wanted and "=" in at else ()
    if exact:
        return _whole(exact, text)
    lines = _LINES.fullmatch(wanted) if len(wanted) <= _LONGEST_SAID else None
    numbered = bool(known) and known[-1].locator.startswith("line=")
    if lines is not None and not numbered:
        return _lines(text, int(lines[1]), int(lines[2] or lines[1]))
    if lines is not None:
        wanted = locator(line=f"{lines[1]}-{lines[2]}" if lines[2] else lines[1])
    found = _spans(wanted, known, looked)
    if not found:
        missing = next((end for end in _ends(wanted, known) if looked.span(end) is None), ())
        raise UsageError(f"There is no place {at.strip()[:_LONGEST_SAID]!r} in it", looked.there(missing, text))
    return _whole(found, text)


def _spans(wanted: str, known: Sequence[Place], looked: _Known) -> tuple[Span, ...]:
    """The characters at one place, or at the two ends of a range; () where one of them is not there."""
    spans = [looked.span(end) for end in _ends(wanted, known)]
    found = tuple(span for span in spans if span is not None)
    return found if len(found) == len(spans) else ()


def _whole(spans: Sequence[Span], text: str) -> Span:
    """From the first character of some spans to the last that is not blank."""
    start, end = min(s.start for s in spans), max(s.end for s in spans)
    return Span(start, start + len(text[start:end].rstrip()))


def _lines(text: str, first: int, last: int) -> Span:
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    if len(starts) > 1 and starts[-1] == len(text):
        starts.pop()  # a closing line end starts no further line
    if not 1 <= first <= len(starts):
        raise UsageError(f"There is no line {first:,} in it", f"Its last line is {len(starts):,}")
    last = min(max(first, last), len(starts))
    end = starts[last] - 1 if last < len(starts) else len(text) - text.endswith("\n")
    return Span(starts[first - 1], max(end, starts[first - 1]))


def _ends(wanted: str, known: Sequence[Place]) -> Iterator[Pairs]:
    """The places that are meant, one or the two ends of a range, as keys and values."""
    first, last = ends_of(wanted)
    for end in dict.fromkeys((first, last)):
        pairs = pairs_of(end) if "=" in end else _said(end, known)
        if pairs:
            yield tuple((_SHORT.get(key, key), value) for key, value in pairs)


def _said(words: str, known: Sequence[Place]) -> Pairs:
    """A place as people write it, as keys and values; () where it is none."""
    keys = {key for place in known for key, _ in pairs_of(place.locator)}
    named = _named(words, known)
    if named or len(words) > _LONGEST_SAID:
        return named
    time = _TIME.fullmatch(words)
    if time is not None and "time" in keys:
        return (("time", f"{int(time[1] or 0):02}:{int(time[2]):02}:{int(time[3]):02}"),)
    cell = _CELL.fullmatch(words)
    if cell is not None and "row" in keys and (cell[1] or "").count("\n") == 0:
        rows = ("row", cell[3] if cell[4] is None else f"{cell[3]}-{cell[4]}")
        if cell[1] is not None:
            return (("sheet", cell[1].strip().strip("'")), rows)
        first = next((pair for pair in pairs_of(known[0].locator) if pair[0] == "sheet"), None)
        return (rows,) if first is None else (first, rows)
    pairs: list[tuple[str, str]] = []
    rest = words.strip().lower()
    while match := _SAID.match(rest):
        pairs.append((_SHORT.get(match[1], match[1]), re.sub(r"\s*[-–]\s*", "-", match[2])))
        rest = rest[match.end() :]
    if rest and pairs:
        pairs.append(("part", rest))  # `slide 3 notes`
    return tuple(pairs)


def _named(words: str, known: Sequence[Place]) -> Pairs:
    """The outermost key whose value is just these words: a sheet, a part of a book."""
    wanted = words.strip().strip("'\"").casefold()
    for place in known:
        key, value = pairs_of(place.locator)[0]
        if value.casefold() == wanted and not value.isdigit():
            return ((key, value),)
    return ()


class _Known:
    """The places of a document, to look one up in."""

    def __init__(self, places: Sequence[Place], length: int) -> None:
        self._starts = [place.start for place in places]
        self._ends = [*self._starts[1:], length]
        self._pairs = [pairs_of(place.locator) for place in places]

    def span(self, wanted: Pairs) -> Span | None:
        """From the first to the last place that is meant, or inside of what is; None where there is none."""
        own = [n for n, pairs in enumerate(self._pairs) if _within(wanted, pairs)]
        if not own and wanted[-1][0] in _FLOWING:
            own = self._before(wanted)
        return Span(self._starts[own[0]], self._ends[own[-1]]) if own else None

    def _before(self, wanted: Pairs) -> list[int]:
        """The place before a line or moment that is none itself."""
        key, value = wanted[-1]
        low = order_of(value.partition("-")[0])
        own = [(n, dict(pairs)) for n, pairs in enumerate(self._pairs) if _within(wanted[:-1], pairs)]
        same = [(order_of(keys[key]), n) for n, keys in own if key in keys]
        # In the order of their numbers: a page may show the words of its lines in another one.
        at = bisect_right(sorted(number for number, _ in same), low)
        nearest = sorted(same)[at - 1][0] if at else None
        return [n for number, n in same if number == nearest]

    def there(self, wanted: Pairs, text: str) -> str:
        """What places there are, in a few words: the values of the innermost key that went wrong."""
        if not self._pairs:
            return f"It is cited by its lines, of which it has {len(text.splitlines()):,}, such as 12-18"
        outer = wanted[:-1]
        if outer and self.span(outer) is not None:
            values = [dict(pairs).get(wanted[-1][0], "") for pairs in self._pairs if _within(outer, pairs)]
            held = _listed(wanted[-1][0], values)
            if held:
                return f"There, {' '.join(outer[-1])} has {held}"
        keys = dict.fromkeys(pairs[0][0] for pairs in self._pairs)
        held = "; ".join(_listed(key, [v for p in self._pairs for k, v in p[:1] if k == key]) for key in keys)
        return f"It has {held}"


def _within(wanted: Pairs, pairs: Pairs) -> bool:
    """Whether a place has all the keys that are meant, with their values or with a number of their range."""
    own = dict(pairs)
    return all(key in own and _fits(value, own[key]) for key, value in wanted)


def _fits(wanted: str, value: str) -> bool:
    if wanted.casefold() == value.casefold():
        return True
    span = _RANGE.fullmatch(wanted)
    if span is None or not value[:1].isdigit():
        return False
    return order_of(span[1]) <= order_of(value) <= order_of(span[2])


def _listed(key: str, values: Sequence[str]) -> str:
    """`row 1 to 40`, `sheet Sales, Costs`; "" for none."""
    names = list(dict.fromkeys(value for value in values if value))
    if not names:
        return ""
    if len(names) > 2 and all(name[:1].isdigit() for name in names):
        return f"{key} {names[0]} to {names[-1]}"
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return f"{key} {', '.join(names[:_MOST_NAMED])}{more}"
