"""The plan's fields, each declared once: type, default, bounds and a line of help.

The command line, the pages, the guide and the parser read this table. A field whose name ends in `.<source>` is a family:
one value a source (`fusion.weights.vector`), with the family's default for sources that are not named.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench import plan_values as values
from workbench.errors import PlanError, quoted
from workbench.plan_values import FUSED, OFF, base_of, plain, show

METRICS = ("angular", "cosine", "l2", "l2sq")
METHODS = ("rrf", "weighted", "convex", "max", "combmnz")
NORMALISATIONS = ("none", "minmax", "tmm", "zscore", "rank", "dbsf", "top", "clip")
MISSING = ("computed", "zero", "floor")


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
    read: Callable[[Any], Any]
    bounds: str
    family: bool = False
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    every_encoder: bool = False
    bases: tuple[str, ...] = ("grep", "keyword", "vector")
    most: Mapping[str, float] = field(default_factory=dict)

    def takes(self, source: str) -> bool:
        """Whether a family has a value for a source."""
        return base_of(source) in self.bases

    def of(self, sources: Iterable[str]) -> tuple[str, ...]:
        """Those of some sources that the family's name without a source stands for, in their order."""
        return tuple(s for s in sources if base_of(s) in (self.most or self.bases))

    def looked_up(self, source: str) -> tuple[str, ...]:
        """The sources whose value may be this source's, the source itself first."""
        base = source.partition("@")[0]
        names = (source, base, base_of(source)) if self.every_encoder else (source, base)
        return tuple(dict.fromkeys(names))


def _number(name: str, default: Any, help: str, low: float, high: float, *, family: bool = False) -> Field:
    """A number between bounds, both included; a whole one where the default is."""
    whole = isinstance(default, int)
    bounds = f"a {'whole ' if whole else ''}number from {low} to {high}"
    return Field(name, default, help, values.number(low, high, whole), bounds, family, low=low, high=high)


def _choice(
    name: str, default: str, help: str, choices: tuple[str, ...], *, family: bool = False, every_encoder: bool = False
) -> Field:
    """One of some names."""
    bounds = f"{', '.join(choices[:-1])} or {choices[-1]}"
    read = values.choice(*choices)
    return Field(name, default, help, read, bounds, family, choices, every_encoder=every_encoder)


def _switch(name: str, default: bool, help: str) -> Field:
    """Yes or no."""
    return Field(name, default, help, values.boolean, "yes or no")


def _model(name: str, help: str) -> Field:
    """A model by name, or off."""
    return Field(name, OFF, help, values.off_or(values.text_of), "a model, or off")


FIELDS: tuple[Field, ...] = (
    Field(
        "sources",
        ("keyword", "vector"),
        "What retrieves: grep, keyword, vector, vector:ENCODER, each with @COLLECTION if wanted.",
        values.sources,
        "names of sources",
    ),
    Field(
        "collections",
        (),
        "Named parts of the corpus to search; all of them by default.",
        values.names,
        "names of collections, or all",
    ),
    _number("limit", 10, "How many results are returned.", 1, 1000),
    _number("limit.max", 1000, "The largest limit that a search may ask for.", 1, 10_000),
    _choice("principal", "optional", "Whether somebody must be named as the one who asks.", ("optional", "required")),
    _number("grep.context", 10, "Lines shown before and after a matched line.", 0, 1000),
    _switch("grep.regex", False, "Read the keywords as regular expressions (RE2)."),
    _choice(
        "grep.case",
        "smart",
        "Whether case matters; smart: only if the pattern has a capital.",
        ("smart", "sensitive", "ignore"),
    ),
    _switch("grep.word", False, "Match whole words only."),
    _choice(
        "grep.when",
        "auto",
        "When grep runs beside others: auto is with keywords or quoted phrases.",
        ("auto", "always", "never"),
    ),
    _choice(
        "grep.show", "chunk", "What a fused grep hit shows: its chunk, or the passage of lines.", ("chunk", "passage")
    ),
    _number("keyword.k1", 0.9, "BM25: how soon more of the same word stops counting.", 0, 10),
    _number("keyword.b", 0.4, "BM25: how much long chunks are held back.", 0, 1),
    _choice("keyword.operator", "any", "Whether one of the words is enough.", ("any", "all")),
    _switch(
        "keyword.keep_strongest",
        False,
        "Put the strongest keyword hit in the last place where fusion left it out and its score is at least half of the query's "
        "upper bound; first, where the operator is all and the query names an identifier.",
    ),
    _choice("vector.metric", "angular", "How a cosine is shown and cut as a distance.", METRICS),
    Field(
        "vector.threshold",
        0.5,
        "Candidates at this distance or beyond are dropped; off keeps all.",
        values.off_or(values.number(0, 4)),
        "a number from 0 to 4, or off",
        low=0,
        high=4,
    ),
    Field(
        "threshold",
        None,
        "The threshold of one source. Vector: as vector.threshold, which auto is. Keyword: results with a lower BM25 score are "
        "dropped; auto is off.",
        values.auto_or(values.off_or(values.number(0, 1000))),
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
        "Exact search, or the approximate index; auto decides by size.",
        values.auto_or_boolean,
        "auto, yes or no",
        choices=("auto", "yes", "no"),
    ),
    Field(
        "depth",
        None,
        "Candidates taken from a source; auto is max(100, 5 x limit).",
        values.depth,
        "a whole number from 1 to 100000, 3x (limits), +5 (more than the limit), or auto",
        family=True,
        low=1,
        high=100_000,
    ),
    _choice("fusion.method", "rrf", "How rankings become one.", METHODS),
    _number("fusion.k", 60.0, "rrf: how much more a top rank counts than the next.", 1, 100_000),
    _number("fusion.rank_base", 1, "rrf: whether ranks count from 1 or from 0.", 0, 1),
    _number("fusion.alpha", 0.5, "convex: the share of vector sources; keyword and grep have 1 - alpha.", 0, 1),
    _number("fusion.weights", 1.0, "A source's weight; not rescaled, and not 0 for all.", 0, 1000, family=True),
    _choice(
        "fusion.normalise",
        "minmax",
        "How a source's scores are made comparable.",
        NORMALISATIONS,
        family=True,
        every_encoder=True,
    ),
    _choice("fusion.missing", "computed", "Score of a candidate that a source did not retrieve.", MISSING),
    _choice("fusion.unit", "chunk", "What is ranked: chunks, or documents by their best chunk.", ("chunk", "document")),
    _switch(
        "fusion.renumber", True, "unit document: count ranks and depth in documents, after each keeps its best chunk."
    ),
    _choice("fusion.prefer", "best", "unit document: which record stands for the document.", ("best", "chunk")),
    _choice(
        "fusion.single_source",
        "passthrough",
        "One source alone has results: pass them through, or fuse as always.",
        ("passthrough", "fuse"),
    ),
    Field(
        "fusion.threshold",
        OFF,
        "Results with a lower fused score are dropped; off keeps all. A source that is passed through alone is not cut.",
        values.off_or(values.number(-1000, 1000)),
        "a number from -1000 to 1000, or off",
        low=-1000,
        high=1000,
    ),
    _switch("dedupe", True, "Drop hits whose text is that of a better hit."),
    _number("neighbours", 0, "Chunks shown before and after each hit.", 0, 10),
    _choice("organise", "none", "Group hits by page, with its summary and examples.", ("none", "pages")),
    _model(
        "rerank.model", "Reranks the top: overlap, endpoint:MODEL, learned:PATH, or a cross-encoder's folder or name."
    ),
    _number("rerank.top", 50, "How many candidates are reranked.", 1, 1000),
    _model("rewrite.model", "Rewrites the query for the vector side: keywords, echo, or endpoint:MODEL."),
    Field(
        "cache_seconds",
        180,
        "How long a result is kept; 0 keeps none.",
        values.number(0, 86_400),
        "a number of seconds from 0 to 86400",
        low=0,
        high=86_400,
    ),
)

BY_NAME: Mapping[str, Field] = {f.name: f for f in FIELDS}
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
    field = BY_NAME.get(name)
    if field is not None and not field.family:
        return field, ""
    for family in FIELDS:
        if family.family and name.startswith(family.name + "."):
            source = name[len(family.name) + 1 :]
            if values.is_source(source):
                if not family.takes(source):
                    raise PlanError(
                        f"The source {source} has no {family.name}",
                        f"Write {family.name}.keyword or {family.name}.vector",
                    )
                return family, source
            raise PlanError(
                f"{name!r} names no source",
                "Sources are grep, keyword, vector, vector:ENCODER, each with @COLLECTION if wanted",
            )
    if field is not None:
        raise PlanError(f"{name!r} needs a source", f"Write {name}.keyword or {name}.vector")
    raise PlanError(f"There is no plan field called {name!r}", _nearest(name))


def _nearest(name: str) -> str:
    for family in FIELDS:
        _, found, source = name.partition(f".{family.name}.")
        if family.family and found and values.is_source(source):
            return f"Did you mean {family.name}.{source}"
    known = [f.name + (".<source>" if f.family else "") for f in FIELDS]
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(close)}" if close else "The fields are " + ", ".join(known)


def read(name: str, value: Any) -> Any:
    """The value of a field from text or YAML, checked. Raises PlanError."""
    field, source = locate(name)
    try:
        read = field.read(value)
        if isinstance(read, float) and read > field.most.get(base_of(source), read):
            raise ValueError
        return read
    except (TypeError, ValueError) as exc:
        raise PlanError(f"{name} is {quoted(value)}", f"It must be {field.bounds}") from exc


__all__ = [
    "BY_NAME",
    "FIELDS",
    "FUSED",
    "METHODS",
    "METRICS",
    "MISSING",
    "NORMALISATIONS",
    "OFF",
    "ORDER",
    "RETRIEVAL",
    "Field",
    "base_of",
    "locate",
    "plain",
    "read",
    "show",
]
