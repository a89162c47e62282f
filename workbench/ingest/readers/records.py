"""Records: a JSONL file holds one document a line, and so does the `corpus.jsonl` of a BEIR folder.

A line is an object with `text`, and optionally `id` (or `_id`), `title`, `url`, `path`, `created_at`, `collection`,
`language`, `type`, `metadata`, and the visibility claims; all other keys become metadata. In a BEIR folder the text is
the title, a line end and the text, which is what published figures index (Thakur et al., BEIR, arXiv 2104.08663).

A line that cannot be read is reported with its number and the others are indexed. The lines are streamed: memory holds one
line and 8 bytes for each id.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import json
import re
import unicodedata
from collections.abc import Generator, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from workbench.errors import WorkbenchError
from workbench.ingest.encoding import clean, normalise
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.frontmatter import json_values
from workbench.ingest.outline import Outline
from workbench.ingest.readers.base import Parsed, Reader, Record, Source, unreadable
from workbench.ingest.readers.text import markdown_outline
from workbench.ingest.rules import collection_names

BEIR_CORPUS = "corpus.jsonl"
_OWN = frozenset("_id id text title url source_url path file_path created_at collection language metadata".split())
_MOST_REPORTED = 100
_FIRST_LOOK = 20
_TEXTLESS = "It has no text"


_ESCAPE = re.compile(r"\\(?:u([dD][89abAB]\w{2})\\u([dD][c-fC-F]\w{2})|u([0-9a-fA-F]{4})|(.))")


def unescaped(text: str) -> str:
    """JSON with the characters that its escapes stand for, a space for a line end: its lines stay those of the file."""

    def letter(match: re.Match[str]) -> str:
        high, low, code, sign = match.groups()
        if high:
            return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
        found = chr(int(code, 16)) if code else {"n": " ", "t": " ", "r": " ", "f": " ", "b": ""}.get(sign, sign)
        return found if found >= " " or not found else " "

    return clean(_ESCAPE.sub(letter, text)) if "\\" in text else text


def judgments_reason(file: Path) -> str:
    """Why a file beside a BEIR corpus holds judgments and no documents, or ""."""
    name = file.name.lower()
    if name.startswith("queries") and name.endswith(".jsonl") and (file.parent / BEIR_CORPUS).is_file():
        return "It holds the queries of a collection, which are judgments and no documents"
    beside = (file.parent / BEIR_CORPUS).is_file() and name.startswith("qrels")
    below = file.parent.name.lower() == "qrels" and (file.parent.parent / BEIR_CORPUS).is_file()
    if (beside or below) and name.endswith((".tsv", ".txt", ".jsonl")):
        return "It holds the qrels of a collection, which are judgments and no documents"
    return ""


def _read(source: Source) -> Iterator[Parsed | Problem]:
    held: list[Problem] = []
    good, bad = yield from _records(_lines(source), source.name.lower() == BEIR_CORPUS, held)
    if good:
        yield from _reported(held, bad, "lines are not records")
    elif held and all(one.reason == _TEXTLESS for one in held):
        text, metadata = source.text()
        yield Problem('Its lines are objects without "text", and were read as lines', held[0].remedy, loses=False)
        yield Parsed(unescaped(text), "code", Outline(prose=False), language="json", metadata=metadata)
    elif held:
        raise ReadError(
            f"None of its first {bad} lines is a record; line {held[0].line}: {held[0].reason}",
            'Write one JSON object with "text" a line, or give the file the suffix .txt',
        )


def read_objects(objects: list[dict[str, Any]]) -> Iterator[Parsed | Problem]:
    """The records of a JSON array, as the lines of a JSONL file would be read. Raises ReadError where none is one."""
    held: list[Problem] = []
    good, bad = yield from _records(enumerate(objects, 1), False, held)
    if not good:
        raise ReadError(f"None of its first {bad} records can be read; {held[0].reason}", held[0].remedy)
    yield from _reported(held, bad, "records cannot be read")


def _records(
    items: Iterable[tuple[int, Any]], beir: bool, held: list[Problem]
) -> Generator[Parsed, None, tuple[int, int]]:
    """The records among lines or objects; how many there are, and how many are none. Ends where the first are all none.

    The first problems are kept in `held`.
    """
    seen: set[bytes] = set()
    good = bad = 0
    for number, item in items:
        try:
            parsed = _parsed(item if isinstance(item, dict) else _object(item), beir)
            _remember(parsed, seen)
        except WorkbenchError as exc:
            bad += 1
            if bad <= _MOST_REPORTED and isinstance(item, dict):
                held.append(Problem(f"Record {number}: {exc.message}", exc.remedy))
            elif bad <= _MOST_REPORTED:
                held.append(Problem(exc.message, exc.remedy, number))
            if bad >= _FIRST_LOOK and not good:
                break
        else:
            good += 1
            yield parsed
    return good, bad


def _reported(held: list[Problem], bad: int, what: str) -> Iterator[Problem]:
    yield from held
    if bad > len(held):
        yield Problem(f"{bad - len(held)} more {what}", "Fix those listed first")


READER = Reader("records", _read, frozenset({".jsonl", ".ndjson"}))


def _lines(source: Source) -> Iterator[tuple[int, bytes | str]]:
    """The lines that are not blank, with their numbers from 1. Bytes, or text for UTF-16 and UTF-32 files."""
    try:
        with source.stream() as stream:
            wide = _wide(source.head())
            lines: IO[Any] = io.TextIOWrapper(stream, wide, "replace") if wide else stream
            for number, line in enumerate(lines, 1):
                if number == 1 and not wide:
                    line = line.removeprefix(codecs.BOM_UTF8)
                if line.strip():
                    yield number, line
    except OSError as exc:
        raise unreadable(exc) from exc


def _wide(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    return "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else ""


def _remember(parsed: Parsed, seen: set[bytes]) -> None:
    record = parsed.record
    name = record.id if record is not None else ""
    identity = blake2b(name.encode(), digest_size=8).digest()
    if identity in seen:
        raise ReadError(f"The id {name!r} is used by an earlier line", "Give each record its own id")
    seen.add(identity)


def _parsed(data: dict[str, Any], beir: bool) -> Parsed:
    title = _text(data, "title")
    text = _text(data, "text")
    if "text" not in data and not title:
        raise ReadError(_TEXTLESS, 'Give the record a "text"')
    if beir and title:
        text = f"{title}\n{text}" if text.strip() else title
    elif not text.strip():
        text = title
    if not text.strip():
        raise ReadError("Its text is empty", "Fill it, or take the line out")
    canonical = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8", "replace")
    digest = hashlib.sha256(canonical).hexdigest()
    identity = _identity(data, digest)
    created = data.get("created_at")
    inner = data.get("metadata")
    metadata = {**(inner if isinstance(inner, dict) else {}), **{k: v for k, v in data.items() if k not in _OWN}}
    if inner is not None and not isinstance(inner, dict):
        metadata["metadata"] = inner
    if created is not None:
        metadata["created_at"] = created
    named = data.get("collection")
    collections = () if named in (None, "") else collection_names(named, "Its collection")
    record = Record(identity, _path(data), _time(created), collections, len(canonical), digest)
    try:
        metadata = json_values(metadata)
    except ValueError as exc:
        raise ReadError(f"Its metadata cannot be kept: {exc}", "Make it flatter, or smaller") from exc
    outline = markdown_outline(text) if "\n#" in text or text.startswith("#") or "```" in text else Outline()
    return Parsed(
        text,
        "record",
        outline,
        title=" ".join(title.split()),
        language=_text(data, "language"),
        url=_text(data, "url") or _text(data, "source_url"),
        metadata={**metadata, "record_id": identity},
        record=record,
    )


def _object(line: bytes | str) -> dict[str, Any]:
    try:
        data = json.loads(line.decode("utf-8") if isinstance(line, bytes) else line)
    except UnicodeDecodeError as exc:
        raise ReadError("It is not UTF-8", "Save the file as UTF-8") from exc
    except (ValueError, RecursionError) as exc:
        words = getattr(exc, "msg", "") or "it is nested too deeply"
        raise ReadError(f"It is not JSON: {words}", "Write one JSON object a line") from exc
    if not isinstance(data, dict):
        raise ReadError("It is JSON, but no object", 'Write an object with "text"')
    return data


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ReadError(f"Its {name} is not text", f"Write {name} in quotes")
    return normalise(value)


def _identity(data: Mapping[str, Any], digest: str) -> str:
    """The record's own id, or one made from what it holds: the same whatever line it is on."""
    for name in ("_id", "id"):
        value = data.get(name)
        if isinstance(value, str) and value.strip():
            return normalise(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if value is not None and value != "":
            raise ReadError(f"Its {name} is neither text nor a whole number", "Write the id in quotes")
    return digest[:16]


def _path(data: Mapping[str, Any]) -> str:
    """The record's own path, for citations only: NFC and `/`."""
    value = _text(data, "path") or _text(data, "file_path")
    return unicodedata.normalize("NFC", " ".join(value.replace("\\", "/").split("\n"))).strip()


def _time(value: Any) -> datetime | None:
    """A record's time: ISO text, or seconds or milliseconds since 1970."""
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value.strip())
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise ReadError(f"Its created_at is {value!r}, which is not a time", "Write it as 2024-05-31T12:00:00Z")
