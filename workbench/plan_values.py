"""Values of plan fields: readers from text or YAML, which raise ValueError, and the text that they read back."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_MOST_YAML_VALUES = 250_000
_DEEPEST_YAML = 40


def text_of(value: Any) -> str:
    """Any value as trimmed text."""
    return str(value).strip()


def number(low: float | None = None, high: float | None = None, whole: bool = False) -> Callable[[Any], Any]:
    """A reader of numbers between bounds, both included; it raises ValueError for anything else."""

    def read(value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError
        try:
            result = float(value)
        except OverflowError:
            raise ValueError from None
        if result != result or result in (float("inf"), float("-inf")):
            raise ValueError
        if whole:
            if result != int(result):
                raise ValueError
            result = int(result)
        if (low is not None and result < low) or (high is not None and result > high):
            raise ValueError
        return result

    return read


def choice(*names: str) -> Callable[[Any], str]:
    """A reader of one of the names, in any case; it raises ValueError for any other text."""

    def read(value: Any) -> str:
        text = text_of(value).lower()
        if text not in names:
            raise ValueError
        return text

    return read


def boolean(value: Any) -> bool:
    """Yes or no, in the usual spellings. Raises ValueError for any other."""
    if isinstance(value, bool):
        return value
    text = text_of(value).lower()
    if text in {"yes", "true", "on", "1"}:
        return True
    if text in {"no", "false", "off", "0"}:
        return False
    raise ValueError


OFF = "off"
FUSED = "fused"
"""The name that the fused score has beside those of the sources."""


def off_or(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`off`, or what `read` makes of the value."""

    def reader(value: Any) -> Any:
        if value is None or value is False or text_of(value).lower() in {"off", "none", "no", ""}:
            return OFF
        return read(value)

    return reader


def auto_or(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`auto`, which is None, or what `read` makes of the value."""

    def reader(value: Any) -> Any:
        return None if value is None or text_of(value).lower() in {"auto", ""} else read(value)

    return reader


def auto_or_boolean(value: Any) -> str:
    """`auto`, `yes` or `no`."""
    if isinstance(value, str) and value.strip().lower() == "auto":
        return "auto"
    return "yes" if boolean(value) else "no"


def names(value: Any) -> tuple[str, ...]:
    """Names separated by commas, in sorted order, each once; `all` is the empty tuple."""
    parts = value.split(",") if isinstance(value, str) else [text_of(v) for v in value]
    cleaned = tuple(sorted({p.strip() for p in parts if p.strip()}))
    return () if cleaned == ("all",) else cleaned


def sources(value: Any) -> tuple[str, ...]:
    """Names of sources separated by commas, sorted, each once, at least one."""
    result = names(value)
    if not result or not all(is_source(s) for s in result):
        raise ValueError
    return result


def is_source(source: str) -> bool:
    """Whether a name is `grep`, `keyword`, `vector` or `vector:ENCODER`, perhaps with `@COLLECTION`."""
    base, _, collection = source.partition("@")
    kind, colon, encoder = base.partition(":")
    if "@" in source and not collection:
        return False
    return base in {"grep", "keyword", "vector"} or (kind == "vector" and bool(colon) and bool(encoder))


def base_of(source: str) -> str:
    """`grep`, `keyword` or `vector` of any source."""
    return source.partition("@")[0].partition(":")[0]


def encoder_of(source: str) -> str:
    """The encoder's name in `vector:NAME`; "" is the corpus's own."""
    return source.partition("@")[0].partition(":")[2]


def collection_of(source: str) -> str:
    """The collection in `vector@NAME`; "" is all that the plan searches."""
    return source.partition("@")[2]


DEPTH_FORMS = re.compile(r"(\d+)x|\+(\d+)")


def depth(value: Any) -> int | str | None:
    """A number of candidates; `3x` is three limits, `+5` is the limit and five more; None is auto."""
    text = text_of(value).lower()
    if value is None or text in {"auto", ""}:
        return None
    form = DEPTH_FORMS.fullmatch(text)
    if form is None:
        return int(number(1, 100_000, whole=True)(value))
    number(1, 1000, whole=True)(form[1] or form[2])
    return f"{int(form[1])}x" if form[1] else f"+{int(form[2])}"


def show(value: Any) -> str:
    """A value as the text that `read` reads back."""
    if value is None:
        return "auto"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(value) or "all"
    if isinstance(value, float):
        return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    return str(value)


def plain(value: Any) -> Any:
    """A value as YAML and JSON hold it."""
    return value if isinstance(value, (bool, int, float)) else show(value)


def read_yaml(text: str, first: int = 1) -> Any:
    """The value of a YAML text with plain values only: a settings file, a plan, a corpus's rules, a document's front matter.

    Args:
        text: The text.
        first: The number of its first line, for messages.

    Raises:
        ValueError: Whatever is wrong with it, in a few words; also a value that (through aliases) unfolds into too much.
    """
    import yaml

    try:
        value = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # nosec B506 - safe loaders
    except yaml.MarkedYAMLError as exc:
        mark = f" (line {exc.problem_mark.line + first})" if exc.problem_mark is not None else ""
        raise ValueError(f"{exc.problem or exc.context or 'it is not YAML'}{mark}") from exc
    except yaml.YAMLError as exc:
        raise ValueError(str(exc).partition("\n")[0].rstrip(".")) from exc
    except (ValueError, RecursionError, OverflowError, TypeError, LookupError, AttributeError) as exc:
        raise ValueError("it has a value that is none of its kind") from exc
    left, level = _MOST_YAML_VALUES, [value]
    for _ in range(_DEEPEST_YAML):
        inner: list[Any] = []
        for one in level:
            inner += (
                [*one, *one.values()] if isinstance(one, dict) else one if isinstance(one, list | set | tuple) else ()
            )
            if len(inner) > left:
                raise ValueError("it has too many values")
        left, level = left - len(inner), inner
    if level:
        raise ValueError("it has too many values inside each other")
    return value
