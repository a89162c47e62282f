"""The plan's fields, each declared once: type, default, bounds and a line of help.

The command line, the pages, the guide and the parser read this table. A field whose name ends in `.<source>` is a family:
one value a source (`fusion.weights.vector`), with the family's default for sources that are not named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.errors import PlanError

METRICS = ("angular", "cosine", "l2", "l2sq")
METHODS = ("rrf", "weighted", "convex", "max", "combmnz")
NORMALISATIONS = ("none", "minmax", "tmm", "zscore", "rank", "dbsf", "top", "clip")
MISSING = ("computed", "zero", "floor")


@dataclass(frozen=True, slots=True)
class Field:
    """One plan field. `read` turns text or a YAML value into the value, or raises ValueError."""

    name: str
    default: Any
    help: str
    read: Callable[[Any], Any]
    bounds: str
    family: bool = False
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


def _text(value: Any) -> str:
    return str(value).strip()


def number(low: float | None = None, high: float | None = None, whole: bool = False) -> Callable[[Any], Any]:
    """A reader of numbers between bounds, both included."""

    def read(value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError
        result = float(value)
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
    """A reader of one of the names."""

    def read(value: Any) -> str:
        text = _text(value).lower()
        if text not in names:
            raise ValueError
        return text

    return read


def boolean(value: Any) -> bool:
    """Yes or no, in the usual spellings."""
    if isinstance(value, bool):
        return value
    text = _text(value).lower()
    if text in {"yes", "true", "on", "1"}:
        return True
    if text in {"no", "false", "off", "0"}:
        return False
    raise ValueError


OFF = "off"


def off_or(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`off`, or what `read` makes of the value."""

    def reader(value: Any) -> Any:
        if value is None or value is False or _text(value).lower() in {"off", "none", "no", ""}:
            return OFF
        return read(value)

    return reader


def auto_or_boolean(value: Any) -> str:
    """`auto`, `yes` or `no`."""
    if isinstance(value, str) and value.strip().lower() == "auto":
        return "auto"
    return "yes" if boolean(value) else "no"


def names(value: Any) -> tuple[str, ...]:
    """Names separated by commas, in sorted order, each once; `all` is the empty tuple."""
    parts = value.split(",") if isinstance(value, str) else [_text(v) for v in value]
    cleaned = tuple(sorted({p.strip() for p in parts if p.strip()}))
    return () if cleaned == ("all",) else cleaned


def _sources(value: Any) -> tuple[str, ...]:
    result = names(value)
    if not result or not all(_source_ok(s) for s in result):
        raise ValueError
    return result


def _source_ok(source: str) -> bool:
    base, _, collection = source.partition("@")
    kind, colon, encoder = base.partition(":")
    if "@" in source and not collection:
        return False
    return base in {"grep", "keyword", "vector"} or (kind == "vector" and bool(colon) and bool(encoder))


DEPTH_FORMS = re.compile(r"(\d+)x|\+(\d+)")


def _depth(value: Any) -> int | str | None:
    """A number of candidates; `3x` is three limits, `+5` is the limit and five more; None is auto."""
    text = _text(value).lower()
    if value is None or text in {"auto", ""}:
        return None
    form = DEPTH_FORMS.fullmatch(text)
    if form is None:
        return int(number(1, 100_000, whole=True)(value))
    number(1, 1000, whole=True)(form[1] or form[2])
    return f"{int(form[1])}x" if form[1] else f"+{int(form[2])}"


FIELDS: tuple[Field, ...] = (
    Field(
        "sources",
        ("keyword", "vector"),
        "What retrieves: grep, keyword, vector, vector:ENCODER, each with @COLLECTION if wanted.",
        _sources,
        "names of sources",
    ),
    Field(
        "collections",
        (),
        "Named parts of the corpus to search; all of them by default.",
        names,
        "names of collections, or all",
    ),
    Field(
        "limit",
        10,
        "How many results are returned.",
        number(1, 1000, whole=True),
        "a whole number from 1 to 1000",
        low=1,
        high=1000,
    ),
    Field(
        "limit.max",
        1000,
        "The largest limit that a search may ask for.",
        number(1, 10000, whole=True),
        "a whole number from 1 to 10000",
        low=1,
        high=10000,
    ),
    Field(
        "principal",
        "optional",
        "Whether somebody must be named as the one who asks.",
        choice("optional", "required"),
        "optional or required",
        choices=("optional", "required"),
    ),
    Field(
        "grep.context",
        10,
        "Lines shown before and after a matched line.",
        number(0, 1000, whole=True),
        "a whole number from 0 to 1000",
        low=0,
        high=1000,
    ),
    Field("grep.regex", False, "Read the keywords as regular expressions (RE2).", boolean, "yes or no"),
    Field(
        "grep.case",
        "smart",
        "Whether case matters; smart: only if the pattern has a capital.",
        choice("smart", "sensitive", "ignore"),
        "smart, sensitive or ignore",
        choices=("smart", "sensitive", "ignore"),
    ),
    Field("grep.word", False, "Match whole words only.", boolean, "yes or no"),
    Field(
        "grep.when",
        "auto",
        "When grep runs beside others: auto is with keywords or quoted phrases.",
        choice("auto", "always", "never"),
        "auto, always or never",
        choices=("auto", "always", "never"),
    ),
    Field(
        "grep.show",
        "chunk",
        "What a fused grep hit shows: its chunk, or the passage of lines.",
        choice("chunk", "passage"),
        "chunk or passage",
        choices=("chunk", "passage"),
    ),
    Field(
        "keyword.k1",
        0.9,
        "BM25: how soon more of the same word stops counting.",
        number(0, 10),
        "a number from 0 to 10",
        low=0,
        high=10,
    ),
    Field(
        "keyword.b",
        0.4,
        "BM25: how much long chunks are held back.",
        number(0, 1),
        "a number from 0 to 1",
        low=0,
        high=1,
    ),
    Field(
        "keyword.operator",
        "any",
        "Whether one of the words is enough.",
        choice("any", "all"),
        "any or all",
        choices=("any", "all"),
    ),
    Field(
        "keyword.keep_strongest",
        False,
        "Put the strongest keyword hit in if fusion left it out and its score is at least half of the query's upper bound.",
        boolean,
        "yes or no",
    ),
    Field(
        "vector.metric",
        "angular",
        "How a cosine is shown and cut as a distance.",
        choice(*METRICS),
        "angular, cosine, l2 or l2sq",
        choices=METRICS,
    ),
    Field(
        "vector.threshold",
        0.5,
        "Candidates at this distance or beyond are dropped; off keeps all.",
        off_or(number(0, 4)),
        "a number from 0 to 4, or off",
        low=0,
        high=4,
    ),
    Field(
        "vector.exact",
        "auto",
        "Exact search, or the approximate index; auto decides by size.",
        auto_or_boolean,
        "auto, yes or no",
        choices=("auto", "yes", "no"),
    ),
    Field(
        "depth",
        None,
        "Candidates taken from a source; auto is max(100, 5 x limit).",
        _depth,
        "a whole number from 1 to 100000, 3x (limits), +5 (more than the limit), or auto",
        family=True,
        low=1,
        high=100_000,
    ),
    Field("fusion.method", "rrf", "How rankings become one.", choice(*METHODS), ", ".join(METHODS), choices=METHODS),
    Field(
        "fusion.k",
        60.0,
        "rrf: how much more a top rank counts than the next.",
        number(1, 100_000),
        "a number from 1 to 100000",
        low=1,
        high=100_000,
    ),
    Field(
        "fusion.rank_base",
        1,
        "rrf: whether ranks count from 1 or from 0.",
        number(0, 1, whole=True),
        "0 or 1",
        low=0,
        high=1,
    ),
    Field(
        "fusion.alpha",
        0.5,
        "convex: the vector side's weight; the keyword side has 1 - alpha.",
        number(0, 1),
        "a number from 0 to 1",
        low=0,
        high=1,
    ),
    Field(
        "fusion.weights",
        1.0,
        "A source's weight; not rescaled.",
        number(0, 1000),
        "a number from 0 to 1000",
        family=True,
        low=0,
        high=1000,
    ),
    Field(
        "fusion.normalise",
        "minmax",
        "How a source's scores are made comparable.",
        choice(*NORMALISATIONS),
        ", ".join(NORMALISATIONS),
        family=True,
        choices=NORMALISATIONS,
    ),
    Field(
        "fusion.missing",
        "computed",
        "Score of a candidate that a source did not retrieve.",
        choice(*MISSING),
        ", ".join(MISSING),
        choices=MISSING,
    ),
    Field(
        "fusion.unit",
        "chunk",
        "What is ranked: chunks, or documents by their best chunk.",
        choice("chunk", "document"),
        "chunk or document",
        choices=("chunk", "document"),
    ),
    Field(
        "fusion.renumber",
        True,
        "unit document: count ranks and depth in documents, after each keeps its best chunk.",
        boolean,
        "yes or no",
    ),
    Field(
        "fusion.prefer",
        "best",
        "unit document: which record stands for the document.",
        choice("best", "chunk"),
        "best or chunk",
        choices=("best", "chunk"),
    ),
    Field(
        "fusion.single_source",
        "passthrough",
        "One source alone has results: pass them through, or fuse as always.",
        choice("passthrough", "fuse"),
        "passthrough or fuse",
        choices=("passthrough", "fuse"),
    ),
    Field("dedupe", True, "Drop hits whose text is that of a better hit.", boolean, "yes or no"),
    Field(
        "neighbours",
        0,
        "Chunks shown before and after each hit.",
        number(0, 10, whole=True),
        "a whole number from 0 to 10",
        low=0,
        high=10,
    ),
    Field(
        "organise",
        "none",
        "Group hits by page, with its summary and examples.",
        choice("none", "pages"),
        "none or pages",
        choices=("none", "pages"),
    ),
    Field(
        "rerank.model",
        OFF,
        "Reranks the top: a local cross-encoder's path or name, or an endpoint's model; off by default.",
        off_or(_text),
        "a model, or off",
    ),
    Field(
        "rerank.top",
        50,
        "How many candidates are reranked.",
        number(1, 1000, whole=True),
        "a whole number from 1 to 1000",
        low=1,
        high=1000,
    ),
    Field(
        "rewrite.model",
        OFF,
        "Rewrites the query for the vector side; off by default.",
        off_or(_text),
        "a model, or off",
    ),
    Field(
        "cache_seconds",
        180,
        "How long a result is kept; 0 keeps none.",
        number(0, 86_400),
        "a number of seconds from 0 to 86400",
        low=0,
        high=86_400,
    ),
)

BY_NAME: Mapping[str, Field] = {f.name: f for f in FIELDS}
ORDER: Mapping[str, int] = {f.name: i for i, f in enumerate(FIELDS)}


def locate(name: str) -> tuple[Field, str]:
    """Field and source of a dotted name; the source is "" unless the field is a family. Raises PlanError."""
    field = BY_NAME.get(name)
    if field is not None and not field.family:
        return field, ""
    for family in FIELDS:
        if family.family and name.startswith(family.name + "."):
            source = name[len(family.name) + 1 :]
            if _source_ok(source):
                return family, source
            raise PlanError(
                f"{name!r} names no source",
                "Sources are grep, keyword, vector, vector:ENCODER, each with @COLLECTION if wanted",
            )
    if field is not None:
        raise PlanError(f"{name!r} needs a source", f"Write {name}.keyword or {name}.vector")
    raise PlanError(f"There is no plan field called {name!r}", _nearest(name))


def _nearest(name: str) -> str:
    import difflib

    known = [f.name + (".<source>" if f.family else "") for f in FIELDS]
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(close)}" if close else "The fields are " + ", ".join(known)


def read(name: str, value: Any) -> Any:
    """The value of a field from text or YAML, checked. Raises PlanError."""
    field, _ = locate(name)
    try:
        return field.read(value)
    except (TypeError, ValueError) as exc:
        raise PlanError(f"{name} is {value!r}", f"It must be {field.bounds}") from exc


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
