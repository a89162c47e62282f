"""A result as plain text for a tool that reads text: header, then a block a hit.

The form is fixed to the character, because programs read it: places in order (results by page have their rank beside it, and
the page's summary and examples under `[+]`); score to three decimals, snippet of 200 characters with `...`
only where there is more; title, source and evidence only where there are any: a document without an `artifact_type` has no
line on its source. It serves every plan: a score that is no sum of reciprocal ranks is called by what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.errors import WorkbenchError
from workbench.records import Hit

if TYPE_CHECKING:
    from workbench.retrieve.result import SearchResult

SNIPPET = 200
_SEARCHED = ("artifacts", "artifact_chunks", "memory")
"""A result names its collections in the order in which they are searched; others follow by name."""


def format_text(result: SearchResult) -> str:
    """The result as text; `No results found.` where there is none."""
    hits = [h for h in result.hits if not h.added]
    if not hits:
        return "No results found."
    places = {id(hit): place for place, hit in enumerate(hits, 1)}
    collections = sorted({c for h in hits for c in h.collections})
    lines = [f"Found {len(hits)} results (searched: {', '.join(collections)}):", ""]
    for hit in result.hits:
        lines += [*_block(hit, _score_name(result, hit), places.get(id(hit), 0)), ""]
    return "\n".join(lines)


def format_failure(error: WorkbenchError) -> str:
    """What is printed only when every source failed."""
    return f"Search failed: {error.message}"


def _score_name(result: SearchResult, hit: Hit) -> str:
    """`RRF`; the fusion method, where it is another one; or the lone source whose own score it is."""
    if hit.score_kind != "fused":
        return hit.score_kind
    method = str(result.plan["fusion.method"])
    return "RRF" if method == "rrf" else method


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
