"""Places: how a citation names a spot in a file that has no lines of its own.

A text file is cited by its lines and a PDF by its page. A row of a sheet, a slide, a cell of a notebook, a part of a message or
a moment of a film is named by a *locator*, a short list of `key=value` pairs joined by `&`, outermost first, written as the
fragment of an address is: `sheet=Sales&row=12`, `slide=3`, `cell=4&output=1`. A document carries its places in the order of
its text; each holds up to the next one. A passage that spans several of them is cited by a range: of numbers where only the
last key differs, `sheet=Sales&row=12-18`, else of two places, `paragraph=12..table=2&row=3`. A range holds all that is
between its ends in the order of the document, also places of another kind.

A page of HTML and a file of XML have lines, but their text as it is shown has others: they are cited by those of the file,
`page.html#line=12-18`, and `path:12-18` means the lines of a text that is shown as it is. A long line has columns,
`line=1&column=20480`, each the one at which a line of the text begins.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

_Otherwise = TypeVar("_Otherwise", int, int | None)

BETWEEN = ".."
"""Stands between the two places of a range. A value holds no `=`, so that `..key=` can be nothing else."""

_RESERVED = re.compile(r"[%&=#\x00-\x1f\x7f]")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_RANGE = re.compile(r"\.\.(?=[a-z]+=)")
_NUMBER = re.compile(r"[0-9][0-9:.]*")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """From `start` (a character of the document's text) to the next place, the text is at `locator` in the original."""

    start: int
    locator: str


def locator(**keys: object) -> str:
    """A locator from its keys, outermost first; a `_` at the end of a key is dropped, reserved characters are escaped."""
    return "&".join(f"{key.rstrip('_')}={_RESERVED.sub(_escape, str(value))}" for key, value in keys.items())


def _escape(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"


def locate(places: Sequence[Place], start: int, end: int) -> str:
    """The locator of the characters `start` (included) to `end` of a text with these places; "" where there is none."""
    if not places:
        return ""
    first = bisect_right(places, start, key=_start) - 1
    last = bisect_right(places, max(start, end - 1), key=_start) - 1
    if last < 0:
        return ""
    return joined(places[max(first, 0)].locator, places[last].locator)


def _start(place: Place) -> int:
    return place.start


def joined(first: str, last: str) -> str:
    """One locator for all from `first` to `last`: the place that holds both, a range of numbers, or a range of places."""
    if first == last:
        return first
    one, other = first.split("&"), last.split("&")
    shared = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if shared in (len(one), len(other)):
        return "&".join(one[:shared])
    (key, _, low), (key_too, _, high) = one[shared].partition("="), other[shared].partition("=")
    numbered = key == key_too and _NUMBER.fullmatch(low) and _NUMBER.fullmatch(high)
    if numbered and key in ("line", "column") and order_of(low) > order_of(high):
        first, last, low, high = last, first, high, low  # HTML shows words of a broken table in another order
    if numbered and order_of(low) < order_of(high) and shared + 1 == len(one) == len(other):
        return "&".join((*one[:shared], f"{key}={low}-{high}"))
    return f"{first}{BETWEEN}{last}"


def order_of(number: str) -> tuple[tuple[int, str], ...]:
    """What sorts numbers and times, of any length: `9` before `10`, `00:59:00` before `01:00:00`."""
    parts = (part.lstrip("0") for part in re.findall("[0-9]+", number))
    return tuple((len(part), part) for part in parts)


def ends_of(locator: str) -> tuple[str, str]:
    """The places that a range of two places runs from and to; a locator of one place twice."""
    found = _RANGE.search(locator)
    return (locator[: found.start()], locator[found.end() :]) if found else (locator, locator)


def pairs_of(locator: str) -> tuple[tuple[str, str], ...]:
    """Keys and values of a locator of one place, in order, without escapes."""
    pairs = (part.partition("=") for part in locator.split("&"))
    return tuple((key, _ESCAPE.sub(lambda match: chr(int(match[1], 16)), value)) for key, _, value in pairs)


def spoken(locator: str) -> str:
    """A locator as people say it: `sheet Sales, row 12-18`, `paragraph 12 to table 2, row 3`."""
    first, last = (", ".join(" ".join(pair) for pair in pairs_of(end)) for end in ends_of(locator))
    return first if first == last else f"{first} to {last}"


def line_of(locator: str) -> int | None:
    """The line of the file at which a place begins; None for one that is no line."""
    key, value = pairs_of(ends_of(locator)[0])[0]
    return whole_number(value.partition("-")[0], None) if key == "line" else None


def whole_number(text: str, otherwise: _Otherwise, most: int = 10**9) -> int | _Otherwise:
    """The number that a file or an address writes in ASCII digits; `otherwise` where the text is anything else or more than
    `most`: `²` is a digit and no number, and a number of thousands of digits is none that anybody meant.
    """
    found = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
    return otherwise if found is None or found > most else found


def cite(path: str, start_line: int, end_line: int, page: int | None, locator: str = "") -> str:
    """The one spelling of a citation."""
    if locator:
        return f"{path}#{locator}"
    return f"{path}#page={page}" if page is not None else f"{path}:{start_line}-{end_line}"
