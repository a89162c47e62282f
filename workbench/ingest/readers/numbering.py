"""The numbers of lists and headings: they are not in the text, and people search for "4.2 Scope" all the same."""

from __future__ import annotations

import re
from typing import Any

from workbench.ingest.readers.package import attribute, child, descendants
from workbench.locators import whole_number

_OPEN_FORMATS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_PART = re.compile(r"%(\d)")
_BULLETS = frozenset({"bullet", "none", ""})
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
          (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


class Numbering:
    """Counts the lists of one document, from the root of `numbering.xml` or None."""

    def __init__(self, root: Any) -> None:
        self._levels: dict[str, dict[int, tuple[str, str, int]]] = {}
        self._lists: dict[str, str] = {}
        self._starts: dict[str, dict[int, int]] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._begun: set[str] = set()
        if root is None:
            return
        for abstract in descendants(root, "abstractNum"):
            levels = {}
            for level in (n for n in abstract if n.tag.endswith("}lvl")):
                kind, text, start = (_value(level, name) for name in ("numFmt", "lvlText", "start"))
                levels[whole_number(attribute(level, "ilvl"), 0)] = (kind, text, whole_number(start, 1))
            self._levels[attribute(abstract, "abstractNumId")] = levels
        for number in (n for n in root if n.tag.endswith("}num")):
            key = attribute(number, "numId")
            self._lists[key] = _value(number, "abstractNumId")
            for override in (n for n in number if n.tag.endswith("}lvlOverride")):
                start = _value(override, "startOverride")
                if start:
                    self._starts.setdefault(key, {})[whole_number(attribute(override, "ilvl"), 0)] = whole_number(
                        start, 1
                    )

    def next(self, number: str, level: str) -> tuple[str, bool, int]:
        """The label of the next paragraph of a list: its number, whether it is a bullet instead, and its depth from 0."""
        abstract = self._lists.get(number, "")
        levels = self._levels.get(abstract, {})
        depth = whole_number(level, 0)
        if not number or number == "0" or depth not in levels:
            return "", bool(number) and number != "0", depth
        kind, text, start = levels[depth]
        if kind in _BULLETS:
            return "", kind == "bullet", depth
        counts = self._counts.setdefault(abstract, {})
        if number not in self._begun:
            self._begun.add(number)
            for at, value in self._starts.get(number, {}).items():
                counts[at] = value - 1
        for upper in range(depth):  # a level that was left out has begun too: the next item on it is its second
            counts.setdefault(upper, levels.get(upper, ("", "", 1))[2])
        counts[depth] = counts.get(depth, start - 1) + 1
        for deeper in [d for d in counts if d > depth]:
            del counts[deeper]
        return _PART.sub(lambda m: self._shown(levels, counts, int(m[1]) - 1), text).strip(), False, depth

    def _shown(self, levels: dict[int, tuple[str, str, int]], counts: dict[int, int], depth: int) -> str:
        kind, _, start = levels.get(depth, ("decimal", "", 1))
        return formatted(counts.get(depth, start), kind)


class OpenLists:
    """Counts the lists of an OpenDocument text, from its content and its styles (None where there are none)."""

    def __init__(self, content: Any, styles: Any) -> None:
        self._levels: dict[str, dict[int, tuple[str, str, str, int]]] = {}
        for root in (styles, content):
            for style in descendants(root, "list-style") if root is not None else ():
                self._levels[attribute(style, "name")] = {
                    whole_number(attribute(level, "level"), 1) - 1: (
                        _OPEN_FORMATS.get(attribute(level, "num-format"), ""),
                        attribute(level, "num-prefix"), attribute(level, "num-suffix"),
                        whole_number(attribute(level, "start-value"), 1),
                    )
                    for level in descendants(style, "list-level-style-number")
                }  # fmt: skip
        self._styles: dict[int, str] = {}
        self._counts: dict[int, int] = {}
        self._last: dict[tuple[str, int], int] = {}  # where the lists of a style have ended, for those that go on
        self._labels: dict[int, str] = {}

    def open(self, node: Any, depth: int) -> None:
        """A list begins, `depth` from 0; without a style of its own it has the one around it."""
        self._styles[depth] = attribute(node, "style-name") or self._styles.get(depth - 1, "")
        goes_on = attribute(node, "continue-numbering") == "true" or bool(attribute(node, "continue-list"))
        self._counts[depth] = self._last.get((self._styles[depth], depth), 0) if goes_on else 0

    def item(self, node: Any, depth: int) -> None:
        """An item begins."""
        style = self._styles.get(depth, "")
        kind, before, after, start = self._levels.get(style, {}).get(depth, ("", "", "", 1))
        said = attribute(node, "start-value")
        count = whole_number(said, self._counts.get(depth, 0) + 1 if self._counts.get(depth) else start)
        self._counts[depth] = self._last[style, depth] = count
        self._labels[depth] = f"{before}{formatted(count, kind)}{after} " if kind else "- "

    def label(self, depth: int) -> str:
        """What stands before the next paragraph: its item's number or bullet before the first, nothing before the others."""
        return self._labels.pop(depth, "  ")


def formatted(number: int, kind: str) -> str:
    """A number in one of Word's formats; those of other scripts as digits."""
    if kind.endswith("Letter") and 0 < number <= 780:  # as far as Word goes
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters.upper() if kind.startswith("upper") else letters
    if kind.endswith("Roman") and 0 < number < 4000:
        found = ""
        for value, sign in _ROMAN:
            found += sign * (number // value)
            number %= value
        return found.upper() if kind.startswith("upper") else found
    return f"{number:02d}" if kind == "decimalZero" else str(number)


def _value(node: Any, name: str) -> str:
    inner = child(node, name)
    return attribute(inner, "val") if inner is not None else ""
