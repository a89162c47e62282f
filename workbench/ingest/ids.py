"""Ids that come from what a thing is, never from a counter or from the order of files.

A file's identity is its tenant and its path relative to its root; a record's is its tenant and `path#id`. A document's id
is a hash of that, a chunk's id a hash of the document's id, the collection and the span. So ids stay the same between
runs, after a root folder has moved, and whatever else is indexed.

A record of a JSONL or BEIR file keeps its own id in the metadata under `record_id`, which is what relevance judgments
name; it is not the document id because ids such as `1` are used by many files at once.

Two roots may hold the same relative path. The indexing run then passes a `salt` (a name for the second root) so that
the two documents stay two.
"""

from __future__ import annotations

from hashlib import blake2b

INGEST_VERSION = "12"
"""Changes whenever the same bytes would give other documents or chunks; part of the "unchanged?" digest of a file."""

_BYTES = 8


def _digest(*parts: str) -> str:
    """16 hex digits over the parts; each part's length is hashed with it, so that no two lists of parts look alike."""
    state = blake2b(digest_size=_BYTES)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


def document_id(tenant: str | None, path: str, salt: str = "") -> str:
    """Id of a document, 16 hex digits.

    Args:
        tenant: Its tenant; None and "" are not the same tenant.
        path: Path relative to the root, NFC, `/`; for a record `path#id` with the file's path and the record's id.
        salt: Tells two roots with the same relative path apart.
    """
    return _digest("document", "none" if tenant is None else f"tenant {tenant}", path, salt)


def chunk_id(document_id: str, collection: str, start: int, end: int) -> str:
    """Id of a chunk, 16 hex digits, from its document's id (tenant and path), its collection and its span."""
    return _digest("chunk", document_id, collection, str(start), str(end))
