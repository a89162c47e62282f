"""The presets: named plans of the one pipeline.

`tmm` is a convex combination over theoretical minimum-maximum scores with computed missing scores (Bruch, Gai, Ingber:
An Analysis of Fusion Functions for Hybrid Retrieval, arXiv 2210.11934). `default` is `tmm` with similarity adapted to the corpus
and feedback from the top (`ranking.adapt`), because over nine judged collections it is better than `tmm`,
and that than reciprocal rank fusion (figures in the guide). `rrf` is the field defaults,
reciprocal rank fusion with k 60. The other five are retrieval systems in use, each as one plan, so that they run side by side
on the same corpus; they build on the field defaults and on no other preset. The setting `vector_score_threshold` is the
default threshold of all but those that have none.

A preset's name may come to mean something else, and then plans that were recorded under it must stay what they were: what is
kept says its `EDITION`, and `recorded` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench import settings
from workbench.errors import PlanError

EDITION = 4
"""What the presets' names mean; a recorded plan says under which edition it was written.

1: `default` was what `rrf` is now; `convex` mixed exactly keyword and vector, read no weights, and grep did not join it by
itself; another encoder's scores were normalised by minmax where nothing was said of that encoder.
2: `default` is what `tmm` is.
3: `contract` and `scoped` keep results with equal texts; `pages` rewrites the query by `keywords`.
4: `default` adapts similarity to the corpus and has feedback; before it was `tmm`.
"""


@dataclass(frozen=True, slots=True)
class Preset:
    """One preset: its name, one line about it, and the fields that differ from the defaults."""

    name: str
    summary: str
    values: Mapping[str, Any]


def _preset(name: str, summary: str, text: str = "") -> Preset:
    return Preset(name, summary, dict(word.split("=") for word in text.split()))


_TMM = (
    "fusion.method=convex fusion.alpha=0.8 fusion.missing=computed "
    "fusion.normalise.grep=tmm fusion.normalise.keyword=tmm fusion.normalise.vector=tmm"
)

PRESETS: tuple[Preset, ...] = (
    _preset(
        "default",
        "Keyword scores and similarity adapted to the corpus, mixed 0.2 to 0.8, with feedback from the first results: best over "
        "the judged collections.",
        f"{_TMM} vector.adapt=corpus vector.hubness=0.3 feedback.weight=0.2",
    ),
    _preset(
        "rrf", "Keyword and vector by reciprocal rank fusion, k 60: reads ranks only, so no score need be trusted."
    ),
    _preset(
        "tmm",
        "Keyword and vector scores mixed 0.2 to 0.8 on a common scale (theoretical minimum, maximum), missing ones computed.",
        _TMM,
    ),
    _preset(
        "passages",
        "Grep passages of ten lines around exact keywords, and vectors on the question, by rrf 60.",
        "sources=grep,vector grep.when=always grep.show=passage vector.metric=l2sq depth.grep=100 depth.vector=100",
    ),
    _preset(
        "collections",
        "Vectors in several collections at once, contributions of one artifact added, ranks from 0; one result an artifact.",
        "sources=vector@artifact_chunks,vector@artifacts collections=artifact_chunks,artifacts limit=5 limit.max=50 "
        "grep.when=never vector.threshold=off depth.vector=3x fusion.rank_base=0 fusion.unit=document fusion.renumber=no "
        "fusion.prefer=chunk fusion.single_source=fuse dedupe=no "
        # An artifact may add its share in both of its collections, a memory is in one only: it counts for two, so that
        # the memory that answers best is beside the best artifact, and is not below all that are in both.
        "fusion.weights.vector@memory=2 fusion.weights.vector@history=2",
    ),
    _preset(
        "pages",
        "0.7 of the cosine of the query's keywords, 0.3 of BM25; hits organised by page: summary, short examples, sections.",
        "grep.when=never keyword.operator=all vector.threshold=off depth.keyword=+5 depth.vector=+5 fusion.method=weighted "
        "fusion.weights.keyword=0.3 fusion.weights.vector=0.7 fusion.normalise.keyword=top fusion.normalise.vector=clip "
        "fusion.missing=zero fusion.single_source=fuse organise=pages rewrite.model=keywords",
    ),
    _preset(
        "contract",
        "Keyword and vector over whole documents by rrf 60: labelled, and in the same order every time.",
        "grep.when=never vector.threshold=off depth.keyword=100 depth.vector=100 fusion.unit=document dedupe=no",
    ),
    _preset(
        "scoped",
        "0.65 of the vector side and 0.35 of the keyword side for one tenant's roles; the strongest exact hit is kept.",
        "limit=8 principal=required grep.when=never keyword.operator=all keyword.keep_strongest=yes vector.threshold=off "
        "depth.keyword=50 depth.vector=50 fusion.method=weighted fusion.weights.keyword=0.35 fusion.weights.vector=0.65 "
        "fusion.normalise.keyword=minmax fusion.normalise.vector=minmax fusion.missing=zero fusion.single_source=fuse "
        "dedupe=no rerank.top=50 cache_seconds=180",
    ),
)

BY_NAME: Mapping[str, Preset] = {p.name: p for p in PRESETS}


def values_of(name: str) -> Mapping[str, Any]:
    """The fields in which a preset differs from the defaults. Raises PlanError with the known names."""
    found = BY_NAME.get(name)
    if found is None:
        raise PlanError(f"There is no preset called {name!r}", "The presets are " + ", ".join(BY_NAME))
    values = {"vector.threshold": settings.get("vector_score_threshold"), **found.values}
    if name == "collections":  # the environment may set these
        most = settings.get("max_hybrid_search_results")
        values |= {"fusion.k": settings.get("rrf_constant"), "limit.max": most, "limit": min(5, most)}
        values["depth.vector"] = f"{settings.get('overfetch_multiplier')}x"
    return values
