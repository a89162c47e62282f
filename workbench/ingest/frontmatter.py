"""Front matter: the block of YAML (`---`) or TOML (`+++`) that opens a document.

The block stays in the document's text, so that line numbers are those of the file; what it says becomes metadata with
JSON values. A block that is not a mapping is no front matter (a thematic break looks the same). A broken block costs a
document its metadata but not its text, unless it seems to restrict who may see the document: then the document is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Any

from workbench.ingest.encoding import clean
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.rules import mentions_visibility
from workbench.settings import read_yaml

_BLOCK = re.compile(r"(---|\+\+\+)[ \t]*\n(.*?)^(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"\s*[\w\"'][^\n:=]*[:=]")
_LONGEST = 1 << 16
_MOST_VALUES = 10_000
_DEEPEST = 32


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What a document says about itself.

    Attributes:
        end: Character offset where the body starts; 0 if there is no front matter.
        values: Its keys and JSON values.
        problem: Why it could not be read, or None.
    """

    end: int = 0
    values: Mapping[str, Any] = field(default_factory=dict)
    problem: Problem | None = None

    @property
    def metadata_end(self) -> int:
        """Where the block ends that became metadata: 0 for one that could not be read, which stays content."""
        return 0 if self.problem is not None else self.end


def read_front_matter(text: str) -> FrontMatter:
    """Read the block that opens a text.

    Raises:
        ReadError: The block is broken and mentions visibility.
    """
    if not text.startswith(("---", "+++")):
        return FrontMatter()
    match = _BLOCK.match(text, 0, _LONGEST)
    if match is None:
        return FrontMatter()
    raw = match[2]
    try:
        values = _parse(match[1], raw)
        if not isinstance(values, Mapping):
            return FrontMatter()
        return FrontMatter(match.end(), json_values(values))
    except ValueError as exc:
        reason = f"Its front matter cannot be read: {exc}"
        if mentions_visibility(raw):
            raise ReadError(
                f"{reason}; it seems to say who may see the document", "Fix the front matter, or take it out"
            ) from exc
        end = match.end() if _KEY.match(raw) else 0
        return FrontMatter(end, {}, Problem(reason, "Fix it; the text was indexed without its metadata", 1))


def _parse(fence: str, raw: str) -> Any:
    """The block's value; every way in which it can be broken is a ValueError."""
    if fence == "+++":
        import tomllib

        try:
            return tomllib.loads(raw)
        except RecursionError as exc:
            raise ValueError("it has too many values inside each other") from exc
    return read_yaml(raw, first=2)


def json_values(values: Mapping[Any, Any]) -> dict[str, Any]:
    """A mapping with JSON values only: dates as ISO text, keys as text, sets and tuples as lists.

    Raises:
        ValueError: It is nested too deeply, or (through aliases) has too many values.
    """
    left = [_MOST_VALUES]

    def convert(value: Any, depth: int) -> Any:
        left[0] -= 1
        if left[0] < 0 or depth > _DEEPEST:
            raise ValueError("it has too many values, or too many inside each other")
        match value:
            case None | bool():
                return value
            case int() if -(1 << 63) <= value < 1 << 63:
                return value
            case float() if math.isfinite(value):
                return value
            case datetime() if value.tzinfo:
                return value.astimezone(UTC).isoformat()
            case date() | time():
                return value.isoformat()
            case Mapping():
                return {clean(_name(k)): convert(v, depth + 1) for k, v in value.items()}
            case set() | frozenset():
                return [convert(v, depth + 1) for v in sorted(value, key=str)]
            case list() | tuple():
                return [convert(v, depth + 1) for v in value]
            case _:
                return clean(str(value))

    return {clean(_name(k)): convert(v, 1) for k, v in values.items()}


def _name(key: Any) -> str:
    return key.isoformat() if isinstance(key, date) else str(key)
