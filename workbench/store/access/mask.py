"""A policy that masks: what patterns match, or everything of some sensitivities; and how `corpus.yaml` asks for it.

::

    policy:
      hide: [restricted]              # documents that nobody sees but whoever holds a role of `cleared`
      mask: ['\\b\\d{4}-\\d{4}-\\d{4}\\b']  # RE2: what they match is masked in every document
      mask_sensitivities: [confidential]  # all of such a document's text is masked; it is still found
      cleared: [admin]                # who sees everything as it is

Each masked character becomes a block of the same width in characters; line breaks stay, so every line number stays true.

A pattern masks what grep would find with it: a letter with marks however it is written, `\\w` and `\\b` in every script. What RE2
itself finds, with `\\w` and `\\b` of ASCII, is masked too: a number between Japanese words has no border of their script.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from workbench.errors import SettingError
from workbench.ingest.rules import policy_values
from workbench.records import Document, Principal
from workbench.store.access.visibility import MASK, Policy, holds_one
from workbench.store.grep.pattern import Search, compile_re2, matcher, matches, read_regex
from workbench.store.lexical.tokens import MARKS
from workbench.store.types import joined

_LEFT_MARKS = re.compile(f"(?<={MASK})[{MARKS}]+")
"""Marks of a letter that was masked without them."""


@dataclass(frozen=True, slots=True)
class MaskPatterns:
    """Masks what RE2 patterns match, and all of documents of some sensitivities, except for principals that are cleared.

    Args:
        patterns: Regular expressions in RE2's syntax, over the whole text; `^` and `$` are the borders of lines. They are
            applied to title, URL and the values of the metadata as well.
        sensitivities: Documents of these are masked whole.
        hidden: Documents of these are not seen at all.
        cleared: Roles whose holders see everything as it is.

    Raises:
        SettingError: RE2 refuses a pattern, or it matches the empty text.
    """

    patterns: tuple[str, ...] = ()
    sensitivities: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    cleared: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            if any(search(b"", 0, 0)[0] >= 0 for search in _searches(pattern)):
                raise SettingError(
                    f"The pattern {pattern!r} matches the empty text", "Write a pattern that needs a character"
                )

    @property
    def name(self) -> str:
        """Names everything that decides."""
        parts = (list(self.patterns), sorted(self.sensitivities), sorted(self.hidden), sorted(self.cleared))
        mask, levels, hide, cleared = map(json.dumps, parts)
        return f"mask {mask} {levels} hide {hide} unless {cleared}"

    def sees(self, principal: Principal | None, sensitivity: str) -> bool:
        """False for a hidden sensitivity without a clearing role."""
        return sensitivity not in self.hidden or holds_one(principal, self.cleared)

    def redacts(self, principal: Principal | None) -> bool:
        """True where there is something to mask and the principal is not cleared."""
        return bool(self.patterns or self.sensitivities) and not holds_one(principal, self.cleared)

    def redact(self, principal: Principal | None, document: Document) -> Document:
        """The document with what is to be masked masked."""
        if not self.redacts(principal):
            return document
        whole = document.sensitivity in self.sensitivities
        return replace(
            document,
            text=self._masked(document.text, whole),
            title=self._masked(document.title, whole),
            url=self._masked(document.url, whole),
            metadata={key: self._value(value, whole) for key, value in document.metadata.items()},
        )

    def _masked(self, text: str, whole: bool) -> str:
        if whole:
            return blocks(text)
        data = text.encode("utf-8", "surrogatepass")
        found: list[tuple[int, int]] = []
        for pattern in self.patterns:
            # In ASCII both readings are the same.
            for search in _searches(pattern)[: 1 if text.isascii() else None]:
                found += (span for span in matches(data, search) if span[0] < span[1])
        made, at = [], 0
        for first, last in joined(found):
            first, last = _character(data, first, -1), _character(data, last, 1)
            made += [data[at:first].decode("utf-8", "surrogatepass")]
            made += [blocks(data[max(at, first) : last].decode("utf-8", "surrogatepass"))]
            at = max(at, last)
        shown = "".join(made) + data[at:].decode("utf-8", "surrogatepass")
        return _LEFT_MARKS.sub(lambda marks: MASK * len(marks[0]), shown)

    def _value(self, value: Any, whole: bool) -> Any:
        """A value of the metadata: text masked, numbers where their text matches, lists and mappings value by value."""
        if isinstance(value, str):
            return self._masked(value, whole)
        if isinstance(value, Mapping):
            return {key: self._value(inner, whole) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(inner, whole) for inner in value]
        if value is None:
            return None
        masked = self._masked(str(value), whole)
        return value if masked == str(value) else masked


def blocks(text: str) -> str:
    """As many blocks as there are characters; line breaks stay."""
    return "\n".join(MASK * len(line) for line in text.split("\n"))


def _character(data: bytes, at: int, way: int) -> int:
    """An offset that is no character's border, moved to the next one."""
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += way
    return at


@lru_cache(maxsize=256)
def _searches(pattern: str) -> tuple[Search, ...]:
    """What finds a pattern: as RE2 reads it, and as grep does. Raises SettingError."""
    import re2

    try:
        found = [matcher(compile_re2(pattern, False, lines=False))]
        reading = read_regex(unicodedata.normalize("NFC", pattern), lines=False)
        if reading is not None:
            compiled = compile_re2(reading.text, False, reading.edged, lines=False)
            found.append(matcher(compiled, reading.edged))
        return tuple(found)
    except re2.error as exc:
        reason = exc.args[0].decode("utf-8", "replace") if exc.args and isinstance(exc.args[0], bytes) else str(exc)
        raise SettingError(
            f"RE2 refuses the pattern {pattern!r}: {reason.replace('(?m)', '', 1)}",
            "Correct the pattern under policy: mask",
        ) from exc


def load_policy(corpus: Path) -> Policy | None:
    """The policy that `corpus.yaml` asks for; None where it asks for none. Raises SettingError."""
    values = policy_values(corpus)
    if not values:
        return None
    return MaskPatterns(
        patterns=values.get("mask", ()),
        sensitivities=values.get("mask_sensitivities", ()),
        hidden=values.get("hide", ()),
        cleared=values.get("cleared", ()),
    )
