"""What a search says in words: what it returned, what could not run, and what to try when it found nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import counted
from workbench.plan.fields import FUSED, OFF, base_of, collection_of, encoder_of
from workbench.plan.plan import Plan, idle
from workbench.ranking.adapt import LEAST
from workbench.ranking.candidates import Floats, Ints
from workbench.ranking.cutting import to_distance
from workbench.records import Hit
from workbench.retrieve.fusing import Outcome, own_scores
from workbench.store.access.filters import conditions, parse
from workbench.store.catalogue import Catalogue
from workbench.store.lexical.synonyms import spoken
from workbench.store.types import Occurring, QueryWords

if TYPE_CHECKING:
    from workbench.retrieve.result import SearchResult


def messages_for(result: SearchResult) -> tuple[str, ...]:
    """What was found, or what to try where nothing was; then which words and patterns were looked for."""
    retrieved, hits = result.retrieved, result.hits
    keyword = (c.source for c in result.outcome.candidates.columns if base_of(c.source) == "keyword")
    silent = (
        [s for s in keyword if not result.outcome.candidates.column(s).retrieved.any()] if len(result.fused) else []
    )
    lines = [*(_found(result, hits) if hits else _nothing_found(result))]
    lines += [f"{source} found nothing: {_no_words(result, source)}" for source in silent]
    if retrieved.patterns and any(base_of(source) == "grep" for source in retrieved.sources_for(result.plan)):
        lines.append("grep looked for " + listed((f'"{p}"' for p in retrieved.patterns), "or"))
    if any(base_of(source) == "keyword" for source in retrieved.answers):
        words = spoken(result.query, result.engine.vocabulary)
        changed = (("Searched also: ", words.also), ("Not counted, being stop words of this corpus: ", words.dropped))
        lines += [lead + ", ".join(names) for lead, names in changed if names]
    return tuple(lines)


def _found(result: SearchResult, hits: Sequence[Hit]) -> Iterator[str]:
    """Characters returned and unique files (grep) or what the plan ranks (chunks or documents), what was masked, and how a
    lone source was passed through. Rows that were added for context are no results.
    """
    retrieved, outcome, plan = result.retrieved, result.outcome, result.plan
    where = f"from {counted(len(outcome.fused.rows), plan['fusion.unit'])} found"
    if result.mode == "grep":
        where = f"in {counted(sum(a.files for s, a in retrieved.answers.items() if base_of(s) == 'grep'), 'file')}"
    results = sum(not h.added for h in hits)
    beside = f" with {counted(len(hits) - results, 'row')} beside" if results < len(hits) else ""
    yield f"{counted(results, 'result')}{beside}, {sum(len(h.text) for h in hits):,} characters, {where}"
    rows = outcome.fused.rows[outcome.shown]
    if masked := retrieved.masked_rows(rows):
        parts = "is shown with a part" if masked == 1 else "are shown with parts"
        yield f"{masked:,} of the {len(rows):,} results {parts} masked by the corpus's policy"
    if (only := outcome.score_kind) != FUSED:
        if empty := [c.source for c in outcome.candidates.columns if c.source != only]:
            names = " and ".join(empty)
            yield f"Only {only} found anything ({names} found nothing), so its own order and scores are shown"
        if plan.threshold(FUSED) != OFF:
            yield f"fusion.threshold was not applied: {own_scores(only)}"
    yield from _emptied(outcome, plan)
    yield from _far(result)
    if outcome.strongest >= 0:
        # The order of the list, which a reranking model may have changed, is that of `kept`.
        place = int(np.flatnonzero(outcome.kept == outcome.strongest)[0]) + 1
        path = retrieved.columns.paths[outcome.fused.rows[outcome.strongest]]
        first = outcome.shown[0] == outcome.strongest
        put = "first, because it has the identifier of the query" if first else "in the last place"
        keyword = f"{path}, the strongest keyword hit, is number {place} of the list and was put {put}"
        yield f"{keyword}: keyword.keep_strongest is yes"


def warnings_for(result: SearchResult) -> tuple[str, ...]:
    """Sources that could not run, approximate answers, settings that do nothing, and words that nobody read."""
    retrieved, outcome, plan = result.retrieved, result.outcome, result.plan
    rest, columns = " and ".join(retrieved.answers) or "nothing", outcome.candidates.columns
    lost = retrieved.unavailable
    lines = [f"{u.source} could not run: {u.reason}. {u.remedy}. The result is from {rest}" for u in lost]
    exact = "set vector.exact=yes for the exact order"
    if plan["vector.exact"] == "yes":
        exact = "among so many chunks this store has no exact order, so add a filter for one"
    lines += [
        f"{column.source} was answered by the approximate index; {exact}"
        for column in columns
        if retrieved.answers[column.source].scored.approximate
    ]
    lines += [*retrieved.messages, *outcome.notes, *(_absent_collections(result) if retrieved.allowed else ())]
    if len(outcome.fused) and not any(values.any() for values in outcome.fused.contributions.values()):
        names = " and ".join(c.source for c in columns if c.retrieved.any())
        lines.append(f"Every score is 0, because {names} adds nothing under this plan: the order is that of the paths")
    compared = [c for c in columns if base_of(c.source) == "vector"]
    if plan.changes().get("vector.adapt", OFF) != OFF and compared and all(c.adapted is None for c in compared):
        lines.append(
            f"vector.adapt has no effect here: the corpus has fewer than {LEAST} chunks that you may see, or its encoder's "
            "vectors are sums over words"
        )
    if result.mode == "hybrid":
        lines += idle(plan, plan.changes())
        # What this plan fuses, which may leave out what was retrieved for another one.
        asked = (*retrieved.sources_for(plan), *(u.source for u in lost))
        if result.keywords and not any(base_of(source) == "grep" for source in asked):
            remedy = "set grep.when=always to use them"
            lines.append(f"The keywords were not used, because the plan {plan} runs no grep; {remedy}")
    return tuple(lines)


def _nothing_found(result: SearchResult) -> Sequence[str]:
    retrieved, outcome, plan, mode = result.retrieved, result.outcome, result.plan, result.mode
    if not result.query and not retrieved.patterns:
        return ("There is no query: type one",)
    if not retrieved.visible:
        return ("The corpus holds nothing that you may see: index a folder with `workbench index PATH`",)
    if not retrieved.allowed:
        return _nothing_allowed(result)
    columns = outcome.candidates.columns
    fields = {c.source: plan.threshold_field(c.source) for c in columns if plan.threshold(c.source) != OFF}
    near = list(dict.fromkeys(f for s, f in fields.items() if base_of(s) == "vector"))
    far = list(dict.fromkeys(f for s, f in fields.items() if base_of(s) != "vector"))
    raised = [f"raise {' or '.join(near)} or turn it off"] if near else []
    raised += [f"lower {' or '.join(far)} or turn it off"] if far else []
    if len(outcome.fused):
        best, least = float(outcome.fused.scores[0]), plan.threshold(FUSED)
        why = f"The best fused score is {best:.4g}, below fusion.threshold={least:g}: lower it or turn it off"
    elif mode == "grep":
        why = "No line matches: check the spelling, use fewer or shorter keywords, or try the mode keyword or vector"
    elif mode == "keyword" and not raised:
        why = _no_words(result, retrieved.sources_for(plan)[0])
    elif mode == "keyword":
        why = "No passage scores high enough: " + ", or ".join([*raised, "try the mode vector"])
    elif mode == "vector":
        why = "No passage is near enough in meaning: " + ", or ".join([*raised, "try the mode keyword"])
    else:
        tips = ["use other words", *raised, *(["take the filter away"] if result.filters else [])]
        why = "No source found anything: " + ", or ".join(tips)
    nothing = "in 0 files" if mode == "grep" else f"from 0 {plan['fusion.unit']}s found"
    lines = [f"0 results, 0 characters, {nothing}", why]
    for field in far:
        cut = sum(int((c.cut & (c.rank > 0)).sum()) for c in columns if plan.threshold_field(c.source) == field)
        if cut:
            lines.append(f"{cut:,} candidates were below {field}={plan[field]:g}")
    return (*lines, *_emptied(outcome, plan))


def _emptied(outcome: Outcome, plan: Plan, most: int = 10) -> Iterator[str]:
    """Of each vector source that its threshold left with nothing: how near the nearest is, and what would keep some."""
    for column in outcome.candidates.columns:
        ranked, metric = column.rank > 0, plan["vector.metric"]
        if base_of(column.source) != "vector" or not ranked.any() or column.retrieved.any():
            continue
        distances, field = np.sort(to_distance(column.score[ranked], metric)), plan.threshold_field(column.source)
        keeping, kept = _keeping(distances, min(most, len(distances)))
        yield (
            f"{column.source} found {len(distances):,} candidates, and {field}={plan[field]:g} dropped all of them: "
            f"the nearest is at {metric} distance {distances[0]:.3f}; {field}={keeping:g} would keep {kept:,}"
        )


def _far(result: SearchResult) -> Iterator[str]:
    """Of each vector source that found nothing near: its nearest record is no nearer to the query than one in twenty pairs of the
    corpus's own passages are to each other, which is where the bulk of distances begins.
    """
    metric = result.plan["vector.metric"]
    for column in result.outcome.candidates.columns:
        if base_of(column.source) != "vector" or not column.retrieved.any():
            continue
        nearest = float(np.nanmax(column.score[column.retrieved]))
        bulk = result.engine.bulk(encoder_of(column.source))
        if nearest <= bulk:
            at, begins = (float(to_distance(cosine, metric)) for cosine in (nearest, bulk))
            yield (
                f"Nothing here is near by {column.source}: the nearest passage is at {metric} distance {at:.3f}, and one in "
                f"twenty pairs of this corpus's passages are within {begins:.3f} of each other"
            )


def _keeping(distances: Floats, wanted: int) -> tuple[float, int]:
    """A threshold that keeps so many of the sorted distances, and how many it keeps: more only where some are equal."""
    for places in range(2, 8):
        threshold = float(np.ceil(distances[wanted - 1] * 10**places + 1e-9) / 10**places)
        if threshold <= distances[wanted - 1]:
            threshold += 10.0**-places
        kept = int(np.sum(distances < threshold))
        if kept == wanted:
            break
    return threshold, kept


def _absent_collections(result: SearchResult) -> tuple[str, ...]:
    named = {*result.plan["collections"], *map(collection_of, result.plan.sources)} - {""}
    known = sorted(result.engine.records.info(result.engine.visible)["collections"]) if named else []
    absent = sorted(named - set(known))
    if not absent or not known:
        return ()
    lacked, held = ("collection" if len(names) == 1 else "collections" for names in (absent, known))
    are = "is" if len(known) == 1 else "are"
    return (f"The corpus has no {lacked} {listed(absent, 'or')}: its {held} {are} {listed(known)}",)


def _nothing_allowed(result: SearchResult) -> Sequence[str]:
    """No record passes: the collections that there are not, or the filter, with the values that its fields have."""
    if absent := _absent_collections(result):
        return absent
    asked = result.plan["collections"]
    where = " in the collections " + ", ".join(asked) if asked else ""
    if not result.filters:
        return (f"There is no document{where}",)
    lines = [f"No document{where} matches the filter {result.filters}"]
    engine = result.engine
    catalogue = Catalogue(engine.opened)
    for field in dict.fromkeys(condition.field for condition in conditions(parse(result.filters))):
        values = list(catalogue.values(engine.visible, field, engine.records).items())
        if values:
            shown = ", ".join(f"{value} ({count:,})" for value, count in values[:_MOST_VALUES])
            lines.append(f"Values of {field} here: {shown}{', …' if len(values) > _MOST_VALUES else ''}")
    return lines


_MOST_VALUES = 12


def _no_words(result: SearchResult, source: str) -> str:
    engine = result.engine
    scopes = result.retrieved.answers[source].scope, engine.visible
    words, all_words = (engine.lexical.occurring(result.query, scope) for scope in scopes)
    return nothing_matches(words, all_words, result.plan["keyword.operator"])


# --- why words match nothing -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NoMatch:
    """Why the keyword source does not return one record.

    Attributes:
        reason: A clause of a sentence.
        missing: How many things it would still need.
        excluded: Exclusions of the query that it holds.
        any_helps: It holds something of the query, and `keyword.operator=any` would match it.
        unquoting_helps: It holds every word of a phrase that it lacks.
    """

    reason: str
    missing: int
    excluded: tuple[str, ...] = ()
    any_helps: bool = False
    unquoting_helps: bool = False


def why_not(words: QueryWords, number: int, operator: str, subject: str = "it") -> NoMatch:
    """Why a record, called `subject` in the reason, is no match; a match that nothing excludes has the reason ""."""
    items = _distinct(words.alternatives)
    if not items:
        return NoMatch("the query has no word to look for", 1)
    some = [item for item in items if _has(item.counting, number)]
    lacked = items if not some else []
    if operator == "all":
        lacked = min(([i for i in a if i.needed and not _has(i.records, number)] for a in words.alternatives), key=len)
    apart = [item for item in lacked if item.words and all(_has(records, number) for records in item.words)]
    parts = [item for item in lacked if item not in apart and not item.words and _has(item.counting, number)]
    absent = [item for item in lacked if item not in apart and item not in parts]
    out = tuple(item.text for item in words.excluded if _has(item.records, number))
    lines = []
    if out:
        lines.append(
            f"{subject} has {listed(out)}, which the query leaves out with {listed('-' + text for text in out)}"
        )
    if apart:
        lines.append(f"{subject} has the words of {_shown(apart)}, but not next to each other in that order")
    if parts:
        lines.append(f"{subject} has parts of {_shown(parts)}, but not the whole")
    if absent:
        lacks = f"lacks {_shown(absent)}" if some or len(absent) == 1 else f"has none of {_shown(absent)}"
        lines.append(f"{'it' if operator == 'any' and not out else subject} {lacks}")
    if lacked and operator == "all":
        lines.append("keyword.operator=all needs every word")
    return NoMatch(", and ".join(lines), len(lacked), out, bool(lacked and some), bool(apart))


def nothing_matches(words: QueryWords, everywhere: QueryWords, operator: str) -> str:
    """Why no record matches, and what to do, as one sentence for an empty answer.

    Args:
        words: Among the records that the filter and the plan's collections leave.
        everywhere: Among all that the principal may see.
        operator: any or all.
    """
    items = _distinct(words.alternatives)
    if not items:
        return "The query has no word to look for: add one, or use the mode vector"
    some = matching(words, "any")
    matched = some if operator == "any" else matching(words, "all")
    left = np.setdiff1d(some, np.concatenate([np.zeros(0, np.int64), *(item.records for item in words.excluded)]))
    out = [item for item in words.excluded if len(np.intersect1d(item.records, some))]
    if out and (len(matched) or not len(left)):
        held = f"{_chunks(len(matched))} these words" if len(matched) else f"{_chunks(len(some))} some of these words"
        return (
            f"{held}, but the query leaves out what has {listed(i.text for i in out)}: "
            f"take {listed('-' + i.text for i in out)} out of it"
        )
    apart = [i for i in items if i.words and not len(i.records) and len(_every(i.words))]
    if apart and (operator == "all" or len(apart) == len(items)):
        return (
            f"Nothing has the words of {_shown(apart)} next to each other in that order, though "
            f"{_chunks(len(_every(apart[0].words)))} them all: take the quotes away"
        )
    if len(some):
        return f"Nothing has {_all_of(items)}, but {_chunks(len(left))} some of them: use keyword.operator=any"
    outside = len(matching(everywhere, "any"))
    if outside:
        return f"{_chunks(outside)} some of these words, but none that the filter and the collections let through"
    return f"No document has {_shown(items, 'or')}: check the spelling, use a prefix*, or the mode vector"


def matching(words: QueryWords, operator: str) -> Ints:
    """Records that a query would match if it left nothing out, rising."""
    found = [np.zeros(0, np.int64)]
    for items in words.alternatives:
        found += [_every(i.records for i in items if i.needed)] if operator == "all" else [i.counting for i in items]
    return np.unique(np.concatenate(found))


def listed(texts: Iterable[str], joint: str = "and") -> str:
    """Texts as a sentence has them: `a`, `a and b`, `a, b and c`."""
    *first, last = texts
    return f"{', '.join(first)} {joint} {last}" if first else last


def _every(lists: Iterable[Ints]) -> Ints:
    first, *rest = lists
    for records in rest:
        first = np.intersect1d(first, records, assume_unique=True)
    return first


def _all_of(items: Iterable[Occurring]) -> str:
    wanted = [item for item in items if item.needed]
    return ("all of " if len(wanted) > 1 else "") + _shown(wanted)


def _shown(items: Iterable[Occurring], joint: str = "and") -> str:
    return listed(dict.fromkeys(f'"{item.text}"' if item.words else item.text for item in items), joint)


def _has(records: Ints, number: int) -> bool:
    at = int(np.searchsorted(records, number))
    return at < len(records) and int(records[at]) == number


def _distinct(alternatives: Iterable[Iterable[Occurring]]) -> list[Occurring]:
    return list({item.text: item for items in alternatives for item in items}.values())


def _chunks(count: int) -> str:
    return f"{count:,} {'chunk has' if count == 1 else 'chunks have'}"


# --- a result as plain text, for a tool that reads text ---------------------------------------------------------------------

SNIPPET = 200
_SEARCHED = ("artifacts", "artifact_chunks", "memory")
"""A result names its collections in the order in which they are searched; others follow by name."""


def format_text(result: SearchResult) -> str:
    """The result as text; `No results found.` where there is none."""
    hits = [h for h in result.hits if not h.added]
    if not hits:
        return "No results found."
    # `RRF`; the fusion method, where it is another one; or the lone source whose own scores these are.
    method = str(result.plan["fusion.method"]) if result.score_kind == FUSED else result.score_kind
    name = "RRF" if method == "rrf" else method
    places = {id(hit): place for place, hit in enumerate(hits, 1)}
    collections = sorted({c for h in hits for c in h.collections})
    lines = [f"Found {len(hits)} results (searched: {', '.join(collections)}):", ""]
    for hit in result.hits:
        lines += [*_block(hit, name, places.get(id(hit), 0)), ""]
    return "\n".join(lines)


def _block(hit: Hit, name: str, place: int) -> Sequence[str]:
    """A hit under its place in the text; of one that is placed by its page its rank too. A row that was added has neither."""
    metadata = hit.metadata
    whole = metadata.get("granularity") == "document"
    origin = f"(from: {', '.join(sorted(hit.collections, key=_place))})"
    ranked = "" if place == hit.rank else f" | Rank: {hit.rank}"
    lines = [
        f"[+] {hit.section.rpartition(' > ')[2]} of the page {origin}"
        if hit.added
        else f"[{place}] {name} score: {hit.score:.3f} {origin}{ranked}",
        f"Type: {'artifact' if whole else 'chunk'} | ID: {hit.document_id if whole else hit.chunk_id}",
    ]
    if hit.title:
        lines.append(f"Title: {hit.title}")
    if "artifact_type" in metadata:
        source = metadata.get("source_system") or "?"
        lines.append(f"Source: {source} | Sensitivity: {metadata.get('sensitivity') or 'normal'}")
    snippet = hit.text if len(hit.text) <= SNIPPET else hit.text[:SNIPPET] + "..."
    lines.append(f'Snippet: "{snippet}"')
    evidence = metadata.get("source_url") or hit.url
    if evidence:
        lines.append(f"Evidence: {evidence}")
    return lines


def _place(collection: str) -> tuple[int, str]:
    known = collection in _SEARCHED
    return (_SEARCHED.index(collection) if known else len(_SEARCHED), collection)
