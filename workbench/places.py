"""Places: how a citation names a spot in a file that has no lines of its own.

A text file is cited by its lines and a PDF by its page. A row of a sheet, a slide, a cell of a notebook, a part of a message or
a moment of a film is named by a *locator*, a short list of `key=value` pairs joined by `&`, outermost first, written as the
fragment of an address is: `sheet=Sales&row=12`, `slide=3`, `cell=4&output=1`. A document carries its places in the order of
its text; each holds up to the next one. A passage that spans several of them is cited by a range, `sheet=Sales&row=12-18`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

_RESERVED = re.compile(r"[%&=#\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """From `start` (a character of the document's text) to the next place, the text is at `locator` in the original."""

    start: int
    locator: str


def locator(**keys: object) -> str:
    """A locator from its keys, outermost first; a `_` at the end of a key is dropped, reserved characters are escaped."""
    return "&".join(f"{key.rstrip('_')}={_escaped(str(value))}" for key, value in keys.items())


def _escaped(value: str) -> str:
    return _RESERVED.sub(lambda match: f"%{ord(match[0]):02X}", value)


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
    """One locator for all from `first` to `last`: what they share, then a range of the first key in which they differ."""
    if first == last:
        return first
    shared: list[str] = []
    for one, other in zip(first.split("&"), last.split("&"), strict=False):
        if one == other:
            shared.append(one)
            continue
        (key, _, low), (key_too, _, high) = one.partition("="), other.partition("=")
        if key == key_too and low[:1].isdigit() and high[:1].isdigit():
            shared.append(f"{key}={low}-{high}")
        break
    return "&".join(shared) or first


def cite(path: str, start_line: int, end_line: int, page: int | None, locator: str = "") -> str:
    """The one spelling of a citation."""
    if locator:
        return f"{path}#{locator}"
    return f"{path}#page={page}" if page is not None else f"{path}:{start_line}-{end_line}"
