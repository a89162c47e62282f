"""From a found file to documents: the front of this package for an indexing run, which cuts them by `chunking`.

Everything that can go wrong with one file leaves here as a `ReadError` (the whole file) or as a `Problem` (a part of it,
the rest being indexed), whatever library it came from, so that one bad file never stops a run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.ingest import readers
from workbench.ingest.chunking import document_id
from workbench.ingest.errors import Problem, ReadError, skip
from workbench.ingest.outline import Outline
from workbench.ingest.readers.base import Member, Parsed, Source
from workbench.ingest.readers.records import judgments_reason
from workbench.ingest.rules import FileRules, key, narrow, widening
from workbench.ingest.walk import FoundFile
from workbench.records import Document, FileStatus

_SEEN = re.compile("[^\\s\u00ad\u200b-\u200f\u2060\ufeff]")
"""Anything but white space and characters that take no place."""
_URL_KEYS = ("url", "source_url", "canonical_url", "online_version")


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document with the shape of its text and the collections it goes to."""

    document: Document
    outline: Outline
    collections: tuple[str, ...]


def read_documents(
    found: FoundFile, rules: FileRules, salt: str = "", *, ocr: str = "", alive: Callable[[], None] = lambda: None
) -> Iterator[ReadDocument | Problem]:
    """Read one file: each of its documents in order, and each part that was left out.

    Args:
        found: The file.
        rules: What it is given.
        salt: Tells this file's root apart where two roots hold the same relative path.
        ocr, alive: See `Source`.

    Raises:
        ReadError: The file gives no documents, and why; `status` says whether it was skipped or failed.
    """
    yield from _read(Source(found, ocr=ocr, alive=alive), rules, salt)


def _read(source: Source, rules: FileRules, salt: str) -> Generator[ReadDocument | Problem, None, int]:
    """The documents of a file or member and of all inside it; returns their number. Raises ReadError where there are none."""
    try:
        documents, refused = 0, 0
        lost: list[ReadError] = []
        problems: list[Problem] = []
        taken: dict[str, int] = {}
        reason = judgments_reason(Path(source.found.absolute)) if not source.depth else ""
        if reason:
            raise skip(reason, "Load it with load_judgments, or rename it to have it indexed")
        if not source.head():
            raise skip("It is empty", "Nothing needs to be done")
        reader = readers.reader_for(source)
        misnamed = readers.misnamed(source, reader)
        if misnamed is not None:
            yield misnamed
        for item in reader.read(source):
            if isinstance(item, Problem):
                problems.append(item)
                yield item
                continue
            if isinstance(item, Member):
                source.limits.count()
                try:
                    documents += yield from _read(_inside(source, item, taken), rules, salt)
                except ReadError as exc:
                    lost.append(exc)
                    yield Problem(f"{item.name}: {exc.message}", exc.remedy)
                continue
            if not _SEEN.search(item.text):
                continue  # a message without words may have attachments
            try:
                result = _document(source, item, rules, salt)
            except ReadError as exc:
                if item.record is None:
                    raise
                refused += 1
                yield Problem(f"The record {item.record.id!r} was left out: {exc.message}", exc.remedy)
                continue
            documents += 1
            widened = widening(rules, item.metadata)
            if widened is not None:
                yield widened
            yield result
        if not documents and lost:
            raise _nothing_inside(lost)
        if not documents and not refused and problems:
            raise ReadError(f"Nothing of it could be read: {problems[0].reason}", problems[0].remedy)
        if not documents and not refused:
            raise skip("It has no text", "Nothing needs to be done")
        return documents
    except WorkbenchError:
        raise
    except MemoryError as exc:
        raise ReadError("It does not fit into memory", "Split the file, or raise max_read_memory_mb") from exc
    except Exception as exc:
        # A reader's library may raise anything, and no file may stop a run.
        words = f"{type(exc).__name__}: {exc}".partition("\n")[0][:200].rstrip(". ")
        raise ReadError(f"It cannot be read ({words})", "Open and save it again, or convert it to text") from exc


def _inside(source: Source, member: Member, taken: dict[str, int]) -> Source:
    """A member as a source, its path unlike those taken by members before it. Raises ReadError where it lies too deep.

    `taken` holds for each path the last number that was put before its name, so that the next one begins there.
    """
    inner = source.inner(member)
    own = inner.found.path
    while inner.found.path in taken:
        taken[own] += 1
        folder, mark, name = member.name.rpartition("/")
        inner = source.inner(replace(member, name=f"{folder}{mark}{taken[own]}-{name}"))
    taken[inner.found.path] = 1
    if inner.depth > source.limits.deepest:
        raise ReadError(
            f"It lies in more than {source.limits.deepest} archives or messages, the most of the setting max_nesting",
            "Raise max_nesting, or unpack it and index what is in it",
        )
    return inner


def _nothing_inside(lost: Sequence[ReadError]) -> ReadError:
    """Why a file whose members all gave nothing gives nothing: failed if one of them failed, else skipped."""
    failed = [exc for exc in lost if exc.status is FileStatus.FAILED]
    first = (failed or lost)[0]
    words = f"None of its {len(lost)} members could be read" if len(lost) > 1 else "Its only member could not be read"
    return ReadError(f"{words}: {first.message}", first.remedy, FileStatus.FAILED if failed else FileStatus.SKIPPED)


def _document(source: Source, parsed: Parsed, rules: FileRules, salt: str) -> ReadDocument:
    """Apply the rules to what a reader found. Raises ReadError where the document's own claims forbid it."""
    found, record = source.found, parsed.record
    visibility, metadata = narrow(rules, parsed.metadata)
    own = {key(name): value for name, value in metadata.items()}
    identity = found.path if record is None else f"{found.path}#{record.id}"
    document = Document(
        document_id=document_id(rules.tenant, identity, salt),
        path=(record.path if record is not None else "") or identity,
        root=found.root,
        text=parsed.text,
        title=_word(own.get("title")) or parsed.title or _heading_or_name(source, parsed),
        type=_word(own.get("type")) or rules.type or parsed.type,
        url=parsed.url or next((u for u in (_word(own.get(name)) for name in _URL_KEYS) if u), ""),
        language=parsed.language or _word(own.get("language")) or _word(own.get("lang")),
        tenant=visibility.tenant,
        roles=visibility.roles,
        sensitivity=visibility.sensitivity,
        modified=_modified(parsed, found.modified_ns),
        size=record.size if record is not None else found.size,
        sha256=record.sha256 if record is not None else source.sha256(),
        metadata=metadata,
        page_starts=parsed.page_starts,
        places=parsed.places,
    )
    collections = record.collections if record is not None and record.collections else rules.collections
    return ReadDocument(document, parsed.outline, collections)


def _word(value: Any) -> str:
    """A metadata value as one line of text; lists and the like are none."""
    return " ".join(str(value).split()) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _heading_or_name(source: Source, parsed: Parsed) -> str:
    """The first heading, or the file's name: without its suffix for prose, whole for source code; "" for a record."""
    if not parsed.outline.prose:
        return source.name
    name = source.name[: -len(source.suffix)] if source.suffix else source.name
    titles = (section.title for section in parsed.outline.sections if section.title)
    return next(titles, name if parsed.record is None else "")


def _modified(parsed: Parsed, modified_ns: int) -> datetime | None:
    if parsed.record is not None and parsed.record.modified is not None:
        return parsed.record.modified
    try:
        return datetime.fromtimestamp(modified_ns / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return None
