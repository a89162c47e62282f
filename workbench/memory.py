"""An assistant's memories: records of a JSONL file that the corpus keeps itself, indexed into the collection `memory`.

The file is a source of the corpus like any other, one record a line: `id`, `text`, `created_at` and metadata. It lies in the
corpus's folder. Where documents have tenants or roles, each principal has a file of its own, indexed for its tenant and roles.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import UsageError
from workbench.records import Principal, principal_key
from workbench.store import locks
from workbench.store.generations import private

if TYPE_CHECKING:
    import polars

    from workbench.store.records import StoredRecords

COLLECTION = "memory"
_FOLDER = "memory"
_OWN = ("id", "text", "title", "created_at", "collection")


def remember(
    corpus: Path,
    text: str,
    principal: Principal | None,
    id: str | None = None,
    title: str = "",
    created_at: datetime | str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> str:
    """Keep a memory and index it; one with the same id is replaced.

    Args:
        corpus: The corpus folder.
        text: What to remember.
        principal: Whose it is; None where nobody's documents are kept apart.
        id: Its id; None makes one from the text and the time.
        title: A title.
        created_at: Since when; None is now.
        metadata: More fields, to filter by.

    Returns:
        The id.

    Raises:
        UsageError: No text, a time that cannot be read, or metadata that is not JSON.
    """
    if not isinstance(text, str) or not text.strip():
        raise UsageError("There is nothing to remember", "Pass a text")
    moment = _moment(created_at)
    name = id or "mem-" + hashlib.blake2b(f"{moment}\n{text}".encode(), digest_size=6).hexdigest()
    extra = {key: value for key, value in (metadata or {}).items() if key not in _OWN}
    record = {"id": name, "text": text, "title": title, "created_at": moment, "collection": COLLECTION, **extra}
    try:
        line = json.dumps(record, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise UsageError(f"The metadata is not JSON: {exc}", "Use text, numbers, lists, true and false") from exc
    with _lock(corpus):
        lines = _lines(corpus, principal)
        lines.pop(name, None)
        _write(corpus, principal, {**lines, name: line})
    return name


def forget(corpus: Path, id: str, principal: Principal | None) -> None:
    """Take a memory out of the file and of the index. Raises UsageError where the principal has none with that id."""
    with _lock(corpus):
        lines = _lines(corpus, principal)
        if id not in lines:
            raise UsageError(f"There is no memory {id!r}", "List the memories for their ids")
        del lines[id]
        _write(corpus, principal, lines)


def memories(records: StoredRecords, principal: Principal | None) -> polars.DataFrame:
    """The memories that a principal may see, the newest first: id, created_at (UTC), text, title, path."""
    import polars as pl

    scope = records.scope(principal, None, (COLLECTION,))
    numbers = np.arange(records.documents_total)
    if scope.allowed_documents is not None:
        numbers = np.flatnonzero(scope.allowed_documents)
    found = records.documents(numbers.tolist())
    rows = [
        {
            "id": str(document.metadata.get("record_id", document.document_id)),
            "created_at": document.modified,
            "text": document.text,
            "title": document.title,
            "path": document.path,
        }
        for document in found
    ]
    schema: dict[str, Any] = {
        "id": pl.String,
        "created_at": pl.Datetime("us", "UTC"),
        "text": pl.String,
        "title": pl.String,
        "path": pl.String,
    }
    return pl.DataFrame(rows, schema=schema).sort(["created_at", "id"], descending=[True, False], nulls_last=True)


def _moment(value: datetime | str | None) -> str:
    try:
        moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value or datetime.now(UTC)
    except ValueError as exc:
        raise UsageError(f"created_at is {value!r}, which is not a time", "Write it as 2024-05-31T12:00:00Z") from exc
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat()


def _file(corpus: Path, principal: Principal | None) -> Path:
    name = "memory" if principal is None else hashlib.sha256(principal_key(principal).encode()).hexdigest()[:16]
    return corpus / _FOLDER / f"{name}.jsonl"


def _lock(corpus: Path) -> locks.FileLock:
    """One change at a time."""
    folder = corpus / _FOLDER
    folder.mkdir(exist_ok=True)
    private(folder)
    return locks.writer(folder / "lock", corpus, wait=True)


def _lines(corpus: Path, principal: Principal | None) -> dict[str, str]:
    """Id -> line of the file, in order."""
    try:
        lines = _file(corpus, principal).read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return {}
    return {json.loads(line)["id"]: line for line in lines if line.strip()}


def _write(corpus: Path, principal: Principal | None, lines: Mapping[str, str]) -> None:
    """Write the file whole, by one rename, and index it."""
    from workbench import indexing

    file = _file(corpus, principal)
    beside = file.with_suffix(".new")
    beside.write_text("".join(f"{line}\n" for line in lines.values()), encoding="utf-8")
    private(beside)
    os.replace(beside, file)
    tenant, roles = (principal.tenant, principal.roles) if principal is not None else (None, ())
    options = indexing.IndexOptions((COLLECTION,), tenant=tenant, roles=roles, workers=0)
    indexing.index([file], corpus, options, wait=True)
