"""The plan's fields, each declared once: type, default, bounds and a line of help.

The command line, the pages, the guide and the parser read this table. A field whose name ends in `.<source>` is a family:
one value a source (`fusion.weights.vector`), with the family's default for sources that are not named.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import PlanError, quoted

METRICS = ("angular", "cosine", "l2", "l2sq")
METHODS = ("rrf", "weighted", "convex", "max", "combmnz")
NORMALISATIONS = ("none", "minmax", "tmm", "zscore", "rank", "dbsf", "top", "clip")
MISSING = ("computed", "zero", "floor")
OFF = "off"
FUSED = "fused"
"""The name that the fused score has beside those of the sources."""

_DEPTH_FORMS = re.compile(r"(\d+)x|\+(\d+)")
_YES_NO = {**dict.fromkeys(("yes", "true", "on", "1"), True), **dict.fromkeys(("no", "false", "off", "0"), False)}

# --- readers: text or a YAML value to the field's value, or ValueError -----------------------------------------------------

Reader = Callable[[Any], Any]


def _text_of(value: Any) -> str:
    return str(value).strip()


def _number(low: float, high: float, whole: bool = False) -> Reader:

    def read(value: Any) -> Any:
        try:
            result = float(value)
        except OverflowError:
            raise ValueError from None
        if isinstance(value, bool) or not low <= result <= high or (whole and result != int(result)):
            raise ValueError
        return int(result) if whole else result

    return read


def _choice(*names: str) -> Reader:
    def read(value: Any) -> str:
        text = _text_of(value).lower()
        if text not in names:
            raise ValueError
        return text

    return read


def _boolean(value: Any) -> bool:
    try:
        return value if isinstance(value, bool) else _YES_NO[_text_of(value).lower()]
    except KeyError:
        raise ValueError from None


def _off_or(read: Reader) -> Reader:
    def reader(value: Any) -> Any:
        off = value is None or value is False or _text_of(value).lower() in {"off", "none", "no", ""}
        return OFF if off else read(value)

    return reader


def _auto_or(read: Reader) -> Reader:
    return lambda value: None if value is None or _text_of(value).lower() in {"auto", ""} else read(value)


def _auto_or_boolean(value: Any) -> str:
    if isinstance(value, str) and value.strip().lower() == "auto":
        return "auto"
    return "yes" if _boolean(value) else "no"


def _names(value: Any) -> tuple[str, ...]:
    """Names separated by commas, in sorted order, each once; `all` is the empty tuple."""
    parts = ",".join([value] if isinstance(value, str) else map(_text_of, value)).split(",")
    cleaned = tuple(sorted({p.strip() for p in parts if p.strip()}))
    return () if cleaned == ("all",) else cleaned


def _sources(value: Any) -> tuple[str, ...]:
    result = _names(value)
    if not result or not all(map(is_source, result)):
        raise ValueError
    return result


def _depth(value: Any) -> int | str:
    """A number of candidates; `3x` is three limits, `+5` is the limit and five more."""
    form = _DEPTH_FORMS.fullmatch(_text_of(value).lower())
    if form is None:
        return int(_number(1, 100_000, whole=True)(value))
    _number(1, 1000, whole=True)(form[1] or form[2])
    return f"{int(form[1])}x" if form[1] else f"+{int(form[2])}"


# --- the names of sources --------------------------------------------------------------------------------------------------


def is_source(source: str) -> bool:
    """Whether a name is `grep`, `keyword`, `vector` or `vector:ENCODER`, perhaps with `@COLLECTION`."""
    return re.fullmatch("(grep|keyword|vector(:[^@]+)?)(@.+)?", source, re.DOTALL) is not None


def base_of(source: str) -> str:
    """`grep`, `keyword` or `vector` of any source."""
    return source.partition("@")[0].partition(":")[0]


def encoder_of(source: str) -> str:
    """The encoder's name in `vector:NAME`; "" is the corpus's own."""
    return source.partition("@")[0].partition(":")[2]


def collection_of(source: str) -> str:
    """The collection in `vector@NAME`; "" is all that the plan searches."""
    return source.partition("@")[2]


# --- the table -------------------------------------------------------------------------------------------------------------


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
    return value if isinstance(value, (bool, int, float)) else show(value)


@dataclass(frozen=True, slots=True)
class Field:
    """One plan field. `read` turns text or a YAML value into the value, or raises ValueError.

    A family has one value a source, of the kinds in `bases`. `most` has the largest value of kinds whose bound is another one;
    the family's name without a source stands for these alone, since one number means nothing on two scales.
    `vector@artifacts` falls back to `vector`; with `every_encoder`, which is for what belongs to a kind of score,
    `vector:NAME` does too.
    """

    name: str
    default: Any
    help: str
    read: Reader
    bounds: str
    family: bool = False
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    every_encoder: bool = False
    bases: tuple[str, ...] = ("grep", "keyword", "vector")
    most: Mapping[str, float] = field(default_factory=dict)

    def takes(self, source: str) -> bool:
        return base_of(source) in self.bases

    def of(self, sources: Iterable[str]) -> tuple[str, ...]:
        """Those of some sources that the family's name without a source stands for, in their order."""
        return tuple(s for s in sources if base_of(s) in (self.most or self.bases))

    def looked_up(self, source: str) -> tuple[str, ...]:
        """The sources whose value may be this source's, the source itself first."""
        base = source.partition("@")[0]
        return tuple(dict.fromkeys((source, base, base_of(source)) if self.every_encoder else (source, base)))

    def value(self, values: Mapping[str, Any], source: str, prefix: str = "") -> Any:
        """A family's value of a source in a mapping by source, whose keys may have a prefix."""
        names = (prefix + name for name in self.looked_up(source))
        return next((values[name] for name in names if name in values), self.default)


def _number_field(name: str, default: Any, help: str, low: float, high: float, *, family: bool = False) -> Field:
    whole = isinstance(default, int)
    bounds = f"a {'whole ' if whole else ''}number from {low} to {high}"
    return Field(name, default, help, _number(low, high, whole), bounds, family, low=low, high=high)


def _choice_field(name: str, default: str, help: str, choices: tuple[str, ...], **more: Any) -> Field:
    bounds = f"{', '.join(choices[:-1])} or {choices[-1]}"
    return Field(name, default, help, _choice(*choices), bounds, choices=choices, **more)


def _switch(name: str, default: bool, help: str) -> Field:
    return Field(name, default, help, _boolean, "yes or no")


def _model(name: str, help: str) -> Field:
    return Field(name, OFF, help, _off_or(_text_of), "a model, or off")


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
        _names,
        "names of collections, or all",
    ),
    _number_field("limit", 10, "How many results are returned.", 1, 1000),
    _number_field("limit.max", 1000, "The largest limit that a search may ask for.", 1, 10_000),
    _choice_field("principal", "optional", "Whether a search needs a principal.", ("optional", "required")),
    _number_field("grep.context", 10, "Lines shown before and after a matched line.", 0, 1000),
    _switch("grep.regex", False, "Read the keywords as regular expressions (RE2)."),
    _choice_field(
        "grep.case",
        "smart",
        "Whether case matters; smart: only if the pattern has a capital.",
        ("smart", "sensitive", "ignore"),
    ),
    _switch("grep.word", False, "Match whole words only."),
    _choice_field(
        "grep.when",
        "auto",
        "When grep runs beside others: auto is with keywords or quoted phrases.",
        ("auto", "always", "never"),
    ),
    _choice_field(
        "grep.show", "chunk", "What a fused grep hit shows: its chunk, or the passage of lines.", ("chunk", "passage")
    ),
    _number_field("keyword.k1", 0.9, "BM25: term-frequency saturation (k1).", 0, 10),
    _number_field("keyword.b", 0.4, "BM25: length normalisation (b).", 0, 1),
    _choice_field("keyword.operator", "any", "Whether one of the words is enough.", ("any", "all")),
    _switch(
        "keyword.keep_strongest",
        False,
        "Put the strongest keyword result in the last place if fusion left it out and its score is at least half of the query's "
        "upper bound; first, where the operator is all and the query names an identifier.",
    ),
    _choice_field("vector.metric", "angular", "How a cosine is shown and cut as a distance.", METRICS),
    Field(
        "vector.threshold",
        0.5,
        "Candidates at this distance or beyond are dropped; off keeps all.",
        _off_or(_number(0, 4)),
        "a number from 0 to 4, or off",
        low=0,
        high=4,
    ),
    Field(
        "threshold",
        None,
        "The threshold of one source. Vector: as vector.threshold, which auto is. Keyword: results with a lower BM25 score are "
        "dropped; auto is off.",
        _auto_or(_off_or(_number(0, 1000))),
        "a number from 0 to 4 (vector) or from 0 to 1000 (keyword), off, or auto",
        family=True,
        low=0,
        high=1000,
        bases=("keyword", "vector"),
        most={"vector": 4},
    ),
    Field(
        "vector.exact",
        "auto",
        "Exact search, or the approximate index that large corpora have; auto decides by size.",
        _auto_or_boolean,
        "auto, yes or no",
        choices=("auto", "yes", "no"),
    ),
    _choice_field(
        "vector.adapt",
        OFF,
        "corpus: within a vector source's list, order and scores are by similarity adapted to the corpus, where what all texts "
        "share counts less. Depth, threshold and distances stay those of the plain cosine.",
        (OFF, "corpus"),
    ),
    _number_field(
        "vector.hubness", 0.0, "vector.adapt corpus: how much counts against a record that is near to everything.", 0, 1
    ),
    Field(
        "depth",
        None,
        "Candidates taken from a source; auto is max(100, 5 x limit).",
        _auto_or(_depth),
        "a whole number from 1 to 100000, 3x (limits), +5 (more than the limit), or auto",
        family=True,
        low=1,
        high=100_000,
    ),
    _choice_field("fusion.method", "rrf", "How rankings become one.", METHODS),
    _number_field("fusion.k", 60.0, "rrf: how much more a top rank counts than the next.", 1, 100_000),
    _number_field("fusion.rank_base", 1, "rrf: whether ranks count from 1 or from 0.", 0, 1),
    _number_field("fusion.alpha", 0.5, "convex: the share of vector sources; keyword and grep have 1 - alpha.", 0, 1),
    _number_field("fusion.weights", 1.0, "A source's weight; not rescaled, and not 0 for all.", 0, 1000, family=True),
    _choice_field(
        "fusion.normalise",
        "minmax",
        "How a source's scores are made comparable.",
        NORMALISATIONS,
        family=True,
        every_encoder=True,
    ),
    _choice_field("fusion.missing", "computed", "Score of a candidate that a source did not retrieve.", MISSING),
    _choice_field(
        "fusion.unit", "chunk", "What is ranked: chunks, or documents by their best chunk.", ("chunk", "document")
    ),
    _switch(
        "fusion.renumber", True, "unit document: count ranks and depth in documents, after each keeps its best chunk."
    ),
    _choice_field("fusion.prefer", "best", "unit document: which record represents the document.", ("best", "chunk")),
    _choice_field(
        "fusion.single_source",
        "passthrough",
        "One source alone has results: pass them through, or fuse as always.",
        ("passthrough", "fuse"),
    ),
    Field(
        "fusion.threshold",
        OFF,
        "Results with a lower fused score are dropped; off keeps all. A source that is passed through alone is not cut.",
        _off_or(_number(-1000, 1000)),
        "a number from -1000 to 1000, or off",
        low=-1000,
        high=1000,
    ),
    _number_field("feedback.top", 3, "How many of the best results stand for the query in feedback.", 1, 100),
    _number_field(
        "feedback.weight",
        0.0,
        "vector.adapt corpus: how much counts that a candidate's adapted vector is like those of the best results.",
        0,
        2,
    ),
    _switch("dedupe", True, "Drop hits whose text is that of a better hit."),
    _number_field("neighbours", 0, "Chunks shown before and after each hit.", 0, 10),
    _choice_field("organise", "none", "Group hits by page, with its summary and examples.", ("none", "pages")),
    _model("rerank.model", "Reranks the top: overlap, endpoint:MODEL, or a cross-encoder's folder or name."),
    _number_field("rerank.top", 50, "How many candidates are reranked.", 1, 1000),
    _model("rewrite.model", "Rewrites the query for the vector side: keywords, echo, or endpoint:MODEL."),
    Field(
        "cache_seconds",
        180,
        "How long a result is kept; 0 keeps none.",
        _number(0, 86_400),
        "a number of seconds from 0 to 86400",
        low=0,
        high=86_400,
    ),
)

BY_NAME: Mapping[str, Field] = {f.name: f for f in FIELDS}
FAMILIES: tuple[Field, ...] = tuple(f for f in FIELDS if f.family)
ORDER: Mapping[str, int] = {f.name: i for i, f in enumerate(FIELDS)}
RETRIEVAL: Mapping[str, tuple[str, ...]] = {
    "grep": ("collections", "grep.context", "grep.regex", "grep.case", "grep.word", "grep.when"),
    "keyword": ("collections", "keyword.k1", "keyword.b", "keyword.operator"),
    "vector": ("collections", "vector.exact", "rewrite.model"),
}
"""Kind of source -> the fields that decide what it answers, besides its depth. Plans that agree in them can be served from the
same answers; all other fields only decide what is made of the answers.
"""


def locate(name: str) -> tuple[Field, str]:
    """Field and source of a dotted name; the source is "" unless the field is a family. Raises PlanError."""
    found = BY_NAME.get(name)
    if found is not None:
        if found.family:
            raise PlanError(f"{name!r} needs a source", f"Write {name}.keyword or {name}.vector")
        return found, ""
    family = next((f for f in FAMILIES if name.startswith(f.name + ".")), None)
    if family is None:
        raise PlanError(f"There is no plan field called {name!r}", _nearest(name))
    source = name[len(family.name) + 1 :]
    if not is_source(source):
        remedy = "Sources are grep, keyword, vector, vector:ENCODER, each with @COLLECTION if wanted"
        raise PlanError(f"{name!r} names no source", remedy)
    if not family.takes(source):
        remedy = f"Write {family.name}.keyword or {family.name}.vector"
        raise PlanError(f"The source {source} has no {family.name}", remedy)
    return family, source


def _nearest(name: str) -> str:
    for family in FAMILIES:
        _, found, source = name.partition(f".{family.name}.")
        if found and is_source(source):
            return f"Did you mean {family.name}.{source}"
    known = [f.name + (".<source>" if f.family else "") for f in FIELDS]
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(close)}" if close else "The fields are " + ", ".join(known)


def read(name: str, value: Any) -> Any:
    """The value of a field from text or YAML, checked. Raises PlanError."""
    field, source = locate(name)
    try:
        result = field.read(value)
        if isinstance(result, float) and result > field.most.get(base_of(source), result):
            raise ValueError
        return result
    except (TypeError, ValueError) as exc:
        raise PlanError(f"{name} is {quoted(value)}", f"It must be {field.bounds}") from exc


@dataclass(frozen=True, slots=True)
class FusionPlan:
    """The part of a plan that `workbench.fuse` reads: nothing in it needs a store. Its defaults are the fields'.

    `weights` and `normalise` map a source to its value; a source that they lack has the field's default. A source
    `vector@artifacts` falls back to `vector`, and for `normalise` another encoder's `vector:NAME` does too: cosines are
    made comparable alike, whoever made the vectors.
    """

    method: str = "rrf"
    k: float = 60.0
    rank_base: int = 1
    alpha: float = 0.5
    weights: Mapping[str, float] = field(default_factory=dict)
    normalise: Mapping[str, str] = field(default_factory=dict)
    missing: str = "computed"
    unit: str = "chunk"
    renumber: bool = True
    prefer: str = "best"
    single_source: str = "passthrough"
    feedback_top: int = 3
    feedback_weight: float = 0.0

    def weight(self, source: str) -> float:
        """The weight of a source."""
        return float(BY_NAME["fusion.weights"].value(self.weights, source))

    def share(self, source: str) -> float:
        """What a source's scores are multiplied by: its weight, under `convex` times its side's share."""
        side = self.alpha if base_of(source) == "vector" else 1.0 - self.alpha
        return self.weight(source) * (side if self.method == "convex" else 1.0)

    def normalisation(self, source: str) -> str:
        """The normalisation of a source."""
        return str(BY_NAME["fusion.normalise"].value(self.normalise, source))
