"""The numbers of Word's lists and headings: they are not in the text, and people search for "4.2 Scope" all the same."""

from __future__ import annotations

import re
from typing import Any

from workbench.ingest.readers.package import attribute, child, descendants

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
                levels[_int(attribute(level, "ilvl"), 0)] = (kind, text, _int(start, 1))
            self._levels[attribute(abstract, "abstractNumId")] = levels
        for number in (n for n in root if n.tag.endswith("}num")):
            key = attribute(number, "numId")
            self._lists[key] = _value(number, "abstractNumId")
            for override in (n for n in number if n.tag.endswith("}lvlOverride")):
                start = _value(override, "startOverride")
                if start:
                    self._starts.setdefault(key, {})[_int(attribute(override, "ilvl"), 0)] = _int(start, 1)

    def next(self, number: str, level: str) -> tuple[str, bool, int]:
        """The label of the next paragraph of a list: its number, whether it is a bullet instead, and its depth from 0."""
        abstract = self._lists.get(number, "")
        levels = self._levels.get(abstract, {})
        depth = _int(level, 0)
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
        counts[depth] = counts.get(depth, start - 1) + 1
        for deeper in [d for d in counts if d > depth]:
            del counts[deeper]
        return _PART.sub(lambda m: self._shown(levels, counts, int(m[1]) - 1), text).strip(), False, depth

    def _shown(self, levels: dict[int, tuple[str, str, int]], counts: dict[int, int], depth: int) -> str:
        kind, _, start = levels.get(depth, ("decimal", "", 1))
        return formatted(counts.get(depth, start), kind)


def formatted(number: int, kind: str) -> str:
    """A number in one of Word's formats; those of other scripts as digits."""
    if kind.endswith("Letter") and number > 0:
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


def _int(text: str, otherwise: int) -> int:
    return int(text) if text.lstrip("-").isdigit() else otherwise
