"""Parts of the Explain page as HTML and text: where a document is ranked, the candidates, the statements. No Streamlit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from workbench.charts import Candidate
from workbench.charts.layout import source_colour
from workbench.markup import attribute, plain, visible
from workbench.plan.fields import OFF, base_of, encoder_of
from workbench.plan.plan import Plan
from workbench.records import by_chunk
from workbench.retrieve.explain import Explanation, SourceStanding
from workbench.ui.components import links, tables
from workbench.ui.components.cards import number
from workbench.ui.components.tables import Html, table
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from workbench.retrieve.result import SearchResult

STEPS: Mapping[str, str] = {
    "corpus": "It is not in the corpus",
    "filters": "Dropped by the filter",
    "match": "No source found it",
    "depth": "Dropped by the depth",
    "threshold": "Dropped by the threshold",
    "dedupe": "Dropped as a repeated text",
    "strongest": "Replaced by the strongest keyword hit",
    "limit": "Dropped by the limit",
    "policy": "Hidden by the policy",
}

_CODE = re.compile(r"`([^`]*)`")

FROM_CACHE = (
    "This search was asked a moment ago and its answer was kept, so no step took time. The field cache_seconds says how "
    "long answers are kept."
)


def search_link(state: AppState, found: Explanation) -> str:
    """Address of the Search page with what an explanation changes, relative to the app's other pages."""
    plan: Plan = state.moved.replace(found.changes) if found.changes else state.moved
    changed = replace(
        state.with_moved(plan), query=found.query or state.query, filters="" if found.without_filter else state.filters
    )
    return "./?" + urlencode(changed.to_params(), errors="replace")


def standing(found: Explanation, state: AppState) -> str:
    """Where a document is: its rank or the step that dropped it, each source, and the way in."""
    name = visible(plain(found.citation or found.target, 300))
    if found.rank:
        head = f"Rank {found.rank}"
        why = "" if found.fused_rank in (None, found.rank) else f"Number {found.fused_rank} of the fused list."
        why = why if found.reason == "It is a result" else f"{found.reason}. {why}".rstrip()
    else:
        head = STEPS.get(found.dropped_by, f"Dropped by {found.dropped_by}")
        why = found.reason + "."
    parts = [
        f'<div class="wb-standing" role="status" data-step="{attribute(found.dropped_by)}">',
        f'<h4>{visible(head)} <span class="wb-dim"><bdi>{name}</bdi></span></h4>',
        f'<p class="wb-note">{visible(plain(why, 600))}</p>' if why else "",
        _sources(found.standings) if found.standings else "",
    ]
    if not found.rank and found.remedy:
        tried = " Verified: the document is then a result." if found.verified else ""
        remedy = _CODE.sub(r"<code>\1</code>", visible(plain(found.remedy, 400)))
        parts.append(f'<p class="wb-note"><b>{remedy}.</b>{tried}</p>')
        if found.verified or found.without_filter:
            link = attribute(search_link(state, found))
            label = "Bring it in on the Search page" if found.verified else "Search without the filter"
            parts.append(f'<p><a class="wb-button" href="{link}" target="_self" data-wb-way-in>{label}</a></p>')
    return "".join(parts) + "</div>"


def _sources(standings: Sequence[SourceStanding]) -> str:
    rows = [
        (
            Html(
                f'<i class="wb-dot" style="background:{source_colour(s.source)}"></i>{visible(s.source)}',
                ' class="wb-short"',
            ),
            Html(visible(s.state), f' title="{attribute(plain(s.reason, 400))}"'),
            "–" if s.rank is None else s.rank,
            *map(_value, (s.score, s.distance, s.contribution)),
        )
        for s in standings
    ]
    return table(("Source", "", "Rank", "Score", "Distance", "Contribution"), rows, range(2, 6))


def _value(value: float | None) -> Html:
    """A number in four digits, all of it on hover: the same one as in the table file and JSON."""
    return Html("–") if value is None else Html(number(value), f' title="{value!r}"')


def candidates_table(shown: Sequence[Candidate], sources: Sequence[str], asked: Mapping[str, str] | None = None) -> str:
    """The numbers under the pictures: rank, candidate, score, and of each source its rank, score and contribution.

    `asked` has the address parameters of the search, for the links to the documents.
    """
    reranked = any(p.rerank is not None for p in shown)
    heads = ["#", "Candidate", "Label", "Score", *(["Rerank"] if reranked else [])]
    for source in sources:
        heads += [f"{source} rank", "score", "added"]
    rows = []
    for p in shown:
        line = int(p.name.rpartition(":")[2])
        link = tables.link(links.document(p.path, lines=(line, line), asked=asked), p.name, 200)
        label = Html(visible(str(p.label)), ' class="wb-short"')
        cells: list[Any] = [p.rank, link, label, _value(p.score), *([_value(p.rerank)] if reranked else [])]
        for source in sources:
            rank = f"{p.ranks[source]:,}" if source in p.ranks else "absent"
            other = source in p.counted
            cells.append(Html(rank + "*", f' title="{by_chunk(p.counted[source])}"') if other else Html(rank))
            cells += [_value(p.scores.get(source)), _value(p.contributions.get(source))]
        rows.append(cells)
    marks = [f' data-chunk="{attribute(p.chunk_id)}"' for p in shown]
    numbers = {0, *range(3, len(heads))}
    return f'<div class="wb-places">{table(heads, rows, numbers, row_attributes=marks)}</div>'


def from_cache(timings: Mapping[str, float]) -> bool:
    """Whether the timings of a result say that nothing was run for it."""
    return not any(ms for step, ms in timings.items() if step != "total_ms")


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that was run: what it is, and its text."""

    title: str
    text: str
    language: str = "sql"


def statements(result: SearchResult) -> list[Statement]:
    """What each source ran, as SQL where it is SQL and else in words; and the filter's SQL with its values."""
    plan, made = result.plan, []
    engine, retrieved = result.engine, result.retrieved
    for source in retrieved.sources_for(plan):
        base, depth, bound = base_of(source), plan.depth(source), plan.threshold(source)
        if base == "keyword":
            text = engine.lexical.sql(result.query, k1=plan["keyword.k1"], b=plan["keyword.b"], depth=depth)
            cut = "" if bound == OFF else f"; scores below {bound:g} are then dropped"
            made.append(
                Statement(f"{source}: BM25 of the words as SQL, over every record of the generation{cut}", text)
            )
        elif base == "vector":
            answer = retrieved.answers[source]
            index = engine.vectors(encoder_of(source))
            how = "approximate: usearch HNSW" if answer.scored.approximate else "exact: every vector is compared"
            kept = "at any distance" if bound == OFF else f"{plan['vector.metric']} distance below {bound:g}"
            text = (
                f"cosine(query, X), X float32 of {answer.entered:,} x {index.identity.dim}; {how}\n"
                f"encoder {index.identity.name}, {index.identity.runtime}\n"
                f"the best {depth:,}, {kept}"
            )
            made.append(Statement(f"{source}: no SQL, an array of vectors", text, "text"))
        else:
            text = "\n".join(retrieved.patterns) or "(no pattern)"
            what = "regular expressions" if plan["grep.regex"] else "fixed texts"
            made.append(Statement(f"{source}: no SQL, lines that hold any of these {what}", text, "text"))
    if result.filters:
        made.append(Statement("filter: which documents take part", filter_statement(result)))
    return made


def filter_statement(result: SearchResult) -> str:
    """The filter as the store runs it, with its values as a comment."""
    from workbench.store.access import filters

    records, request = result.engine.records, result.retrieved.request
    node = filters.parse(result.filters)
    # Every condition's field was known when the search ran, so the fields that it names are taken as known here.
    keys = sorted({c.field.removeprefix("metadata.") for c in filters.conditions(node)})
    scope = records.scope(request.principal, None, ())
    names = sorted(records.info(scope)["collections"]) if filters.uses_collection(node) else ()
    made = filters.select(node, names, keys)
    values = "\n".join(f"-- ${i}: {v!r}" for i, v in enumerate(made.values, 1))
    return f"{made.sql}\n{values}".rstrip()
