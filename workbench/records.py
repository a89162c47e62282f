"""Every record that crosses a border between two parts of the workbench.

Records are frozen and slotted; a kind is an enum; no dict of loose keys crosses a border. They hold no behaviour beyond
small derived properties, import nothing heavy, and are the only thing that `ingest`, `store`, `retrieve`, `ranking`,
`evaluate`, the command line and the pages have to agree on.

Conventions, fixed here once: a score is higher-is-better; a rank starts at 1 (0 means "not ranked"); a line number starts
at 1 and ranges include both ends; a character or byte offset starts at 0 and ranges exclude the end; a page starts at 1
(None: the format has no pages); a time is an aware UTC `datetime`.

At the end what an indexing run says of itself: one report a file, and the sums over all of them.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from workbench.errors import UsageError, one_line
from workbench.locators import Place
from workbench.locators import cite as cite


class Kind(StrEnum):
    """What a source matches on: the words themselves, or their meaning."""

    LEXICAL = "lexical"
    SEMANTIC = "semantic"


class Label(StrEnum):
    """Which kinds of source retrieved a hit. `Strongest keyword hit` is one that `keyword.keep_strongest` put in its
    place; `Added` is no hit but a row that is shown with one.
    """

    EXACT = "Exact match"
    SEMANTIC = "Semantic match"
    HYBRID = "Hybrid"
    STRONGEST = "Strongest keyword hit"
    ADDED = "Added"

    @property
    def match(self) -> str:
        """`exact`, `semantic` or `hybrid`; "" for `Added`. A strongest keyword hit is an exact match."""
        return "exact" if self is Label.STRONGEST else "" if self is Label.ADDED else self.name.lower()


class ChunkKind(StrEnum):
    """What part of its document a chunk is."""

    BODY = "body"
    SUMMARY = "PAGE_SUMMARY"
    EXAMPLES = "PAGE_EXAMPLES"


class Granularity(StrEnum):
    """Whether a collection's records are chunks or whole documents."""

    CHUNK = "chunk"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks.

    Attributes:
        tenant: The tenant whose documents may be seen; None is the tenant of documents that have none.
        roles: Role names held; a document with allowed roles needs one of them.

    Raises:
        UsageError: Roles that are one text instead of several, or names that are no texts.
    """

    tenant: str | None = None
    roles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # A lone text is a collection of letters too, and would silently be nobody's roles.
        many = isinstance(self.roles, Collection) and not isinstance(self.roles, str)
        if not many or not all(isinstance(role, str) for role in self.roles):
            raise UsageError(
                f"The roles {self.roles!r} are not names in a tuple", "Write for example roles=('support',)"
            )
        if self.tenant is not None and not isinstance(self.tenant, str):
            raise UsageError(f"The tenant {self.tenant!r} is not text", "Write for example tenant='acme'")
        object.__setattr__(self, "roles", tuple(sorted(set(self.roles))))


def principal_key(principal: Principal | None) -> str:
    """A principal as a text that no other principal has, whatever its names hold: for the keys of caches and scopes."""
    return json.dumps(None if principal is None else [principal.tenant, principal.roles])


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A run of characters (or bytes, where said): `start` included, `end` excluded, from 0."""

    start: int
    end: int


def joined(spans: Iterable[tuple[int, int]], *, touching: bool = False) -> list[tuple[int, int]]:
    """The spans (start included, end excluded; in any order) in order, overlapping ones as one; with `touching` also those
    that only touch.
    """
    made: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if made and (start < made[-1][1] or (touching and start == made[-1][1])):
            made[-1] = (made[-1][0], max(made[-1][1], end))
        else:
            made.append((start, end))
    return made


# --- documents ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Document:
    """One document as it was read: its whole text and what is known about it.

    Attributes:
        document_id: Stable id, 16 hex digits from tenant and path; for a record from tenant and `file.jsonl#id`. The record's
            own id, which judgments name, is `metadata["record_id"]`.
        path: Path relative to its root, `/`, NFC: what citations show and ties are broken by. For records of a JSONL file it
            is `file.jsonl#id` unless the record has a path of its own.
        root: Absolute path of the indexed folder it came from.
        text: The whole text, line ends `\n`, no NUL.
        title: Title by front matter, first heading, or file name (source code: always the file name).
        type: `markdown`, `text`, `html`, `pdf`, `word`, `sheet`, `slides`, `mail`, ... or what front matter says under
            `type`.
        url: Where the original lives, or "".
        language: Programming or natural language where known, or "".
        tenant, roles, sensitivity: Who may see it; roles empty means everyone of the tenant.
        sha256: Hex digest of the original's bytes (of the record's canonical JSON for JSONL).
        metadata: Everything else from front matter or the record: JSON values only.
        page_starts: Character offset of each page's first character; empty if the format has no pages.
        places: Where the text is in a file that is not cited by its lines, in order; see `places`.
    """

    document_id: str
    path: str
    root: str
    text: str
    title: str = ""
    type: str = "text"
    url: str = ""
    language: str = ""
    tenant: str | None = None
    roles: tuple[str, ...] = ()
    sensitivity: str = "normal"
    modified: datetime | None = None
    size: int = 0
    sha256: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    page_starts: tuple[int, ...] = ()
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A contiguous run of one document's characters: `document.text[start:end] == text`.

    Attributes:
        chunk_id: Hex id made from tenant, document path, collection and span.
        collection: The named part of the corpus it belongs to.
        chunk_index: Position among the document's chunks of this collection, from 0.
        start, end: Character offsets in the document's text.
        start_line, end_line: Lines, from 1, both included.
        section: Heading path, `A > B`; "" at the top.
        page: Page of the first character, or None.
        granularity: A whole-document record, or a chunk.
        context: Words put before the text when it is embedded and when its words are counted (title and section where the
            text lacks them); never shown as the chunk's text.
        tokens: Length of context and text in the encoder's tokens.
        locator: Where it is in the original (`sheet=Sales&row=12-18`, `page=3`), or "" for a file that is cited by its
            lines.
    """

    chunk_id: str
    document_id: str
    collection: str
    chunk_index: int
    start: int
    end: int
    start_line: int
    end_line: int
    text: str
    section: str = ""
    page: int | None = None
    kind: ChunkKind = ChunkKind.BODY
    granularity: Granularity = Granularity.CHUNK
    context: str = ""
    tokens: int = 0
    locator: str = ""

    @property
    def indexed_text(self) -> str:
        """What the encoder and the word index see."""
        return f"{self.context}\n{self.text}" if self.context else self.text


# --- long work ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Progress:
    """One progress report of long work: `total` 0 means not known yet; `rate` in items a second."""

    step: str
    done: int
    total: int
    rate: float = 0.0
    seconds_left: float | None = None
    detail: str = ""

    @classmethod
    def since(cls, begun: float, step: str, done: int, total: int, detail: str = "", before: int = 0) -> Progress:
        """With the rate since `begun` (`time.monotonic`), when `before` were done."""
        rate = max(done - before, 1) / max(time.monotonic() - begun, 1e-9)
        return cls(step, done, total, rate, max(total - done, 0) / rate, detail)

    @property
    def left(self) -> str:
        """`12 s left`, `3 min left`; "" where nobody knows."""
        seconds = self.seconds_left
        if seconds is None:
            return ""
        return f"{seconds:.0f} s left" if seconds < 90 else f"{seconds / 60:.0f} min left"


ProgressCallback = Callable[[Progress], None]
"""Who hears of long work; called in the thread that asked for it."""


# --- encoders -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """What made a vector: two vectors may be compared only where name, digest and dim are equal.

    Attributes:
        name: Model name or path as set.
        digest: sha256 hex of the weights.
        runtime: What ran it: `openvino 2026.4 bf16`, `torch 2.13 fp32`, `hashing 1`.
    """

    name: str
    digest: str
    runtime: str
    dim: int
    max_tokens: int


# --- search ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ranked:
    """One entry of one source's ranking: rank from 1, raw score, `distance` for vector sources only."""

    rank: int
    chunk_id: str
    document_id: str
    path: str
    start_line: int
    score: float
    distance: float | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """One source's ordered answer, after the threshold and cut to its depth.

    Attributes:
        source: `grep`, `keyword`, `vector`, `vector:NAME` or `SOURCE@COLLECTION`.
        approximate: True when an approximate index answered.
    """

    source: str
    kind: Kind
    entries: tuple[Ranked, ...]
    approximate: bool = False


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A source that could not run, why, and what to do."""

    source: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines around grep matches.

    Attributes:
        document_id, path: Where.
        start_line, end_line: The passage's lines.
        text: The lines, joined by newlines; very long lines are cut and end in `…`.
        matches: Character spans in `text`.
        matched_lines: Line numbers that match.
        score: distinct keywords + n/(n+1) with n matched lines.
        chunk_id: The chunk that holds the first matched line: the passage's identity in fusion.
        copies: Other paths of the document, where files with the same bytes were indexed once.
    """

    document_id: str
    path: str
    start_line: int
    end_line: int
    text: str
    matches: tuple[Span, ...]
    matched_lines: tuple[int, ...]
    score: float
    chunk_id: str = ""
    page: int | None = None
    locator: str = ""
    copies: tuple[str, ...] = ()

    @property
    def citation(self) -> str:
        """`path:start-end`, `path#page=N`, or `path#` and the locator of its first match."""
        return cite(self.path, self.start_line, self.end_line, self.page, self.locator)

    def to_dict(self) -> dict[str, Any]:
        """The passage as JSON values."""
        return {"citation": self.citation, **_json_of(self)}


FEEDBACK = "feedback"
"""What a plan's feedback added to a score: it is beside the sources wherever contributions do."""


def by_chunk(start_line: int) -> str:
    """Which chunk's rank counted for a document, where it is not the shown one, in words."""
    return f"by its chunk at line {start_line:,}"


def found_by(hit: Any) -> list[str]:
    """Each source's rank and share of a hit (or of its JSON model), in words: `keyword #2 (+0.0161)`."""
    said = []
    for source, rank in sorted(hit.ranks.items()):
        chunk = f", {by_chunk(hit.counted[source].start_line)}" if source in hit.counted else ""
        said.append(f"{one_line(source)} #{rank} (+{hit.contributions.get(source) or 0.0:.4f}{chunk})")
    if FEEDBACK in hit.contributions:
        said.append(f"{FEEDBACK} ({hit.contributions[FEEDBACK] or 0.0:+.4f})")
    return said


def _json_of(record: Any) -> dict[str, Any]:
    return {f.name: _json_value(getattr(record, f.name)) for f in fields(record)}


def _json_value(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, Span):
        return [value.start, value.end]
    if isinstance(value, tuple):
        return list(map(_json_value, value))
    if isinstance(value, Mapping):
        return {name: _json_value(v) for name, v in sorted(value.items())}
    return value


@dataclass(frozen=True, slots=True)
class Hit:
    """One result.

    Attributes:
        rank: From 1.
        score: The fused score, equal to `math.fsum` of the contributions; a lone source's own score where `score_kind`
            names that source.
        score_kind: `fused`, or the source whose score it is.
        label: Which kinds of source retrieved it.
        contributions: source -> what it added.
        ranks: source -> the rank that counted, from 1, only sources that retrieved it. Where documents are ranked, it is the
            document's.
        scores: source -> raw score at that rank; and `rerank`, where a model ran.
        counted: source -> the entry whose rank and score counted, only where that is not the shown chunk but another one of
            the document.
        matches: Character spans in `text` that the query's words or patterns match.
        distance: Distance in the plan's metric, where a vector source retrieved it.
        added: True for rows that the page organisation added; they carry no rank (0) and no contribution.
        locator: Where it is in the original (`slide=3`, `page=3`), or "" for a file that is cited by its lines.
        copies: Other paths of the same text: those of the document, where files with the same bytes were indexed once, then
            those of documents that were found too and left out by `dedupe`, best first.
    """

    rank: int
    score: float
    score_kind: str
    label: Label
    contributions: Mapping[str, float]
    ranks: Mapping[str, int]
    scores: Mapping[str, float]
    chunk_id: str
    document_id: str
    chunk_index: int
    collections: tuple[str, ...]
    path: str
    url: str
    title: str
    start_line: int
    end_line: int
    page: int | None
    section: str
    text: str
    matches: tuple[Span, ...]
    distance: float | None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    added: bool = False
    locator: str = ""
    copies: tuple[str, ...] = ()
    counted: Mapping[str, Ranked] = field(default_factory=dict)

    @property
    def citation(self) -> str:
        """`path:start-end`, `path#page=N`, or `path#` and the locator."""
        return cite(self.path, self.start_line, self.end_line, self.page, self.locator)

    @property
    def match(self) -> str:
        """The label as a program reads it: `exact`, `semantic` or `hybrid`; "" for a row that was only added."""
        both = self.label is Label.STRONGEST and any(source.startswith("vector") for source in self.ranks)
        return (Label.HYBRID if both else self.label).match

    def to_dict(self) -> dict[str, Any]:
        """The hit as JSON values; what is named by source in the order of the names, a span as start and end."""
        counted = {s: {"chunk_id": e.chunk_id, "start_line": e.start_line} for s, e in sorted(self.counted.items())}
        return {"citation": self.citation, "match": self.match, **_json_of(self), "counted": counted}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the funnel: how many candidates entered and left, and why the others did not."""

    step: str
    source: str
    entered: int
    left: int
    reason: str


class FileStatus(StrEnum):
    """What an indexing run did with one file."""

    INDEXED = "indexed"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    FAILED = "failed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of one file: `reason` and `remedy` are filled for skipped and failed ones.

    Attributes:
        documents, chunks: What is indexed under its path. Over all files they are those of the generation.
        same_as: Path of the first file with the same bytes, or "".
    """

    path: str
    status: FileStatus
    reason: str = ""
    remedy: str = ""
    documents: int = 0
    chunks: int = 0
    seconds: float = 0.0
    same_as: str = ""

    def counted(self, documents: int, chunks: int, same_as: str) -> FileReport:
        """This report with what the generation holds of the file; that it has the bytes of another is part of its reason."""
        note = f"The same bytes as {same_as}" if same_as else ""
        reason = "; ".join(part for part in (self.reason, note) if part)
        return replace(self, reason=reason, documents=documents, chunks=chunks, same_as=same_as)


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What an indexing run did. `found == indexed + unchanged + skipped + failed`; removed files are counted apart.

    Attributes:
        generation: Id of the generation that now answers.
        files: One report a file, in path order.
        documents, chunks: In the generation now.
        embedded: Texts that went through the encoder in this run.
        reused: Vectors taken over from the generation before or from an interrupted run.
        seconds: Wall time.
        changed: False when nothing changed and the old generation stays.
        embedding_seconds: Of these, what embedding took, loading the encoder included.
        encoders: Names of the encoders whose vectors the corpus holds, its own first.
    """

    generation: str
    files: tuple[FileReport, ...]
    documents: int
    chunks: int
    embedded: int
    reused: int
    seconds: float
    changed: bool = True
    warnings: tuple[str, ...] = ()
    embedding_seconds: float = 0.0
    encoders: tuple[str, ...] = ()

    def count(self, status: FileStatus) -> int:
        """Number of files with that status, given as itself or as its text."""
        return sum(1 for f in self.files if f.status == status)

    @property
    def copies(self) -> int:
        """Number of files with the same bytes as another one."""
        return sum(bool(file.same_as) for file in self.files)

    @property
    def found(self) -> int:
        """Files found: everything but the removed ones."""
        return len(self.files) - self.count(FileStatus.REMOVED)


NO_SUFFIX = "(none)"


@dataclass(frozen=True, slots=True)
class KindReport:
    """What a run did with the files of one suffix (in lower case with its dot, or `(none)`).
    `files == read + unchanged + skipped + failed`.

    Attributes:
        documents, chunks: What those read and unchanged hold.
        seconds: Time that their readers and the cutting took, of all helpers together.
        reasons: Why files were skipped or failed, and how many for each reason, the most frequent first.
    """

    kind: str
    files: int
    read: int
    unchanged: int
    skipped: int
    failed: int
    documents: int
    chunks: int
    seconds: float
    reasons: tuple[tuple[str, int], ...]

    @property
    def rate(self) -> float:
        """Files a second of those that were opened in this run; 0 where none was."""
        return (self.files - self.unchanged) / self.seconds if self.seconds else 0.0


def kind_of(path: str) -> str:
    """A file's kind by its name: the suffix in lower case, or `(none)`."""
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return (dot + suffix).lower() if stem.strip(".") else NO_SUFFIX


def by_kind(report: IndexReport) -> tuple[KindReport, ...]:
    """One row a kind, in the order of their names; folders that were skipped and removed files are in none."""
    found: dict[str, list[FileReport]] = {}
    for file in report.files:
        if file.status is not FileStatus.REMOVED and not file.path.endswith("/"):
            found.setdefault(kind_of(file.path), []).append(file)
    return tuple(_row(kind, files) for kind, files in sorted(found.items()))


def _row(kind: str, files: list[FileReport]) -> KindReport:
    counts = Counter(file.status for file in files)
    left = Counter(file.reason for file in files if file.status in (FileStatus.SKIPPED, FileStatus.FAILED))
    return KindReport(
        kind, len(files), counts[FileStatus.INDEXED], counts[FileStatus.UNCHANGED], counts[FileStatus.SKIPPED],
        counts[FileStatus.FAILED], sum(f.documents for f in files), sum(f.chunks for f in files),
        sum(f.seconds for f in files), tuple(sorted(left.items(), key=lambda item: (-item[1], item[0]))),
    )  # fmt: skip


def slowest(report: IndexReport, most: int = 10) -> tuple[FileReport, ...]:
    """The files whose reading took longest, longest first; those that took no time are none of them."""
    timed = [file for file in report.files if file.seconds > 0]
    return tuple(sorted(timed, key=lambda file: (-file.seconds, file.path))[:most])
