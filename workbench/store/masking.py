"""A policy that masks: what patterns match, or everything of some sensitivities; and how `corpus.yaml` asks for it.

::

    policy:
      hide: [restricted]              # documents that nobody sees but whoever holds a role of `cleared`
      mask: ['\\b\\d{4}-\\d{4}-\\d{4}\\b']  # RE2: what they match is masked in every document
      mask_sensitivities: [confidential]  # all of such a document's text is masked; it is still found
      cleared: [admin]                # who sees everything as it is

Each masked character becomes a block of the same width in characters; line breaks stay, so every line number stays true.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from workbench.errors import SettingError
from workbench.ingest.rules import policy_values
from workbench.records import Document, Principal
from workbench.store.visibility import MASK, Policy, holds_one


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
            if _compiled(pattern).search("") is not None:
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
        for pattern in self.patterns:
            text = _compiled(pattern).sub(lambda match: blocks(match.group(0)), text)
        return text

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


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile("(?m)" + pattern, options)
    except re2.error as exc:
        raise SettingError(
            f"RE2 refuses the pattern {pattern!r}: {exc}", "Mend the pattern under policy: mask"
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
