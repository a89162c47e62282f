"""An assistant's memories: records of a JSONL file that the corpus keeps itself, indexed into the collection `memory`.

The file is a source of the corpus like any other, one record a line: `id`, `text`, `created_at` and metadata. It lies in the
corpus's folder. Where documents have tenants or roles, each principal has a file of its own, indexed for its tenant and roles.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import UsageError
from workbench.records import Principal, principal_key
from workbench.store import locks
from workbench.store.generations import private, write_whole

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
    """Keep a principal's memory (None: nobody's documents are kept apart) and index it; see `Corpus.remember`. Returns its id.
    Raises UsageError: no text, a time that cannot be read, or metadata that is not JSON."""
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

    allowed = records.scope(principal, None, (COLLECTION,)).allowed_documents
    numbers = np.arange(records.documents_total) if allowed is None else np.flatnonzero(allowed)
    rows = [
        (str(d.metadata.get("record_id", d.document_id)), d.modified, d.text, d.title, d.path)
        for d in records.documents(numbers.tolist())
    ]
    schema: Any = {"id": pl.String, "created_at": pl.Datetime("us", "UTC"), "text": pl.String, "title": pl.String}
    frame = pl.DataFrame(rows, schema={**schema, "path": pl.String}, orient="row")
    return frame.sort(["created_at", "id"], descending=[True, False], nulls_last=True)


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
    folder = corpus / _FOLDER
    folder.mkdir(exist_ok=True)
    private(folder)
    return locks.writer(folder / "lock", corpus, wait=True)


def _lines(corpus: Path, principal: Principal | None) -> dict[str, str]:
    try:
        lines = _file(corpus, principal).read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return {}
    return {json.loads(line)["id"]: line for line in lines if line.strip()}


def _write(corpus: Path, principal: Principal | None, lines: Mapping[str, str]) -> None:
    """Write the file whole, by one rename, and index it."""
    from workbench import indexing

    file = _file(corpus, principal)
    write_whole(file, "".join(f"{line}\n" for line in lines.values()))
    tenant, roles = (principal.tenant, principal.roles) if principal is not None else (None, ())
    options = indexing.IndexOptions((COLLECTION,), tenant=tenant, roles=roles, workers=0)
    indexing.index([file], corpus, options, wait=True)
