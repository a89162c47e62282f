r"""A policy that masks: what patterns match, or everything of some sensitivities; and how `corpus.yaml` asks for it.

::

    policy:
      hide: [restricted]              # documents that nobody sees but whoever holds a role of `cleared`
      mask: ['\b\d{4}-\d{4}-\d{4}\b']  # RE2: what they match is masked in every document
      mask_sensitivities: [confidential]  # all of such a document's text is masked; it is still found
      cleared: [admin]                # who sees everything as it is

Each masked character becomes a block of the same width in characters; line breaks stay, so every line number stays true.

A pattern masks what grep would find with it: a letter with marks however it is written, `\w` and `\b` in every script. What RE2
itself finds, with `\w` and `\b` of ASCII, is masked too: a number between Japanese words has no border of their script.

Redaction at the border of the store: records, documents and passages leave it masked, so nothing behind it can leak them.

A search finds what it finds; then its policy may mask parts of what is shown. Everything that shows text (hits, neighbours,
added rows of a page, worked examples, passages, whole documents, what a reranking model reads) reads it from the store, so the
classes here, which are its records, lines and postings with masked texts, mask once for all of them. A policy is always asked
with a document's *whole* text: a number that a chunk's border cuts in two is masked in both halves. As the text keeps its
length, chunks, citations and match positions stay true; matches are looked for in the masked text, so none points at what is
behind a mask.

What can be asked letter by letter would spell masked text out. So grep and the word index know the masked text only: lines and
words behind a mask are no matches, and passages, scores, counts and document frequencies are those of what is shown. A filter
matches no document whose value of a field that it names is masked. Digests are those of what is shown. Vectors are those of the
whole text: a document is still near to what is masked in it. What must not even be guessed is hidden by the policy (`sees`).
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from workbench.errors import SettingError
from workbench.ingest.chunking import SEPARATOR
from workbench.ingest.rules import policy_values
from workbench.records import Document, Principal, joined
from workbench.store.access import filters
from workbench.store.access.visibility import MASK, Policy, holds_one
from workbench.store.grep.pattern import GrepPattern, Search, compile_re2, matcher, matches, read_regex
from workbench.store.grep.search import MappedGrep
from workbench.store.lexical.query import Matcher, occurrences_of
from workbench.store.lexical.search import Postings, PostingsReader
from workbench.store.lexical.tokens import MARKS
from workbench.store.records import StoredRecords, frozen
from workbench.store.types import ChunkRow, Scope

T = TypeVar("T")
_LEFT_MARKS = re.compile(f"(?<={MASK})[{MARKS}]+")
"""Marks of a letter that was masked without them."""


@dataclass(frozen=True, slots=True)
class MaskPatterns:
    """Masks what RE2 patterns match, in the whole text, title, URL and the values of the metadata (`^` and `$` are the
    borders of lines), and all of documents of some `sensitivities`; documents of `hidden` ones are not seen at all.
    Principals that hold a role of `cleared` see everything as it is. Raises SettingError where RE2 refuses a pattern, or it
    matches the empty text.
    """

    patterns: tuple[str, ...] = ()
    sensitivities: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    cleared: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            if any(search(b"", 0, 0)[0] >= 0 for search in _searches(pattern)):
                raise SettingError(
                    f"The pattern {pattern!r} matches the empty text", "Write a pattern that needs a character"
                )

    @property
    def name(self) -> str:
        parts = (list(self.patterns), sorted(self.sensitivities), sorted(self.hidden), sorted(self.cleared))
        mask, levels, hide, cleared = map(json.dumps, parts)
        return f"mask {mask} {levels} hide {hide} unless {cleared}"

    def sees(self, principal: Principal | None, sensitivity: str) -> bool:
        """False for a hidden sensitivity without a clearing role."""
        return sensitivity not in self.hidden or holds_one(principal, self.cleared)

    def redacts(self, principal: Principal | None) -> bool:
        """True where there is something to mask and the principal is not cleared."""
        return bool(self.patterns or self.sensitivities) and not holds_one(principal, self.cleared)

    def redact(self, principal: Principal | None, document: Document) -> Document:
        if not self.redacts(principal):
            return document
        whole = document.sensitivity in self.sensitivities
        return replace(
            document,
            text=self._masked(document.text, whole),
            title=self._masked(document.title, whole),
            url=self._masked(document.url, whole),
            metadata={key: self._value(value, whole) for key, value in document.metadata.items()},
        )

    def _masked(self, text: str, whole: bool) -> str:
        if whole:
            return blocks(text)
        data = text.encode("utf-8", "surrogatepass")
        found: list[tuple[int, int]] = []
        for pattern in self.patterns:
            # In ASCII both readings are the same.
            for search in _searches(pattern)[: 1 if text.isascii() else None]:
                found += (span for span in matches(data, search) if span[0] < span[1])
        made, at = [], 0
        for first, last in joined(found):
            first, last = _character(data, first, -1), _character(data, last, 1)
            made += [data[at:first].decode("utf-8", "surrogatepass")]
            made += [blocks(data[max(at, first) : last].decode("utf-8", "surrogatepass"))]
            at = max(at, last)
        shown = "".join(made) + data[at:].decode("utf-8", "surrogatepass")
        return _LEFT_MARKS.sub(lambda marks: MASK * len(marks[0]), shown)

    def _value(self, value: Any, whole: bool) -> Any:
        """A value of the metadata: text masked, numbers where their text matches, lists and mappings value by value."""
        if isinstance(value, str):
            return self._masked(value, whole)
        if isinstance(value, Mapping):
            return {key: self._value(inner, whole) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(inner, whole) for inner in value]
        if value is None:
            return None
        masked = self._masked(str(value), whole)
        return value if masked == str(value) else masked


def blocks(text: str) -> str:
    return "\n".join(MASK * len(line) for line in text.split("\n"))


def _character(data: bytes, at: int, way: int) -> int:
    """An offset that is no character's border, moved to the next one."""
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += way
    return at


@lru_cache(maxsize=256)
def _searches(pattern: str) -> tuple[Search, ...]:
    """What finds a pattern: as RE2 reads it, and as grep does. Raises SettingError."""
    import re2

    try:
        found = [matcher(compile_re2(pattern, False, lines=False))]
        reading = read_regex(unicodedata.normalize("NFC", pattern), lines=False)
        if reading is not None:
            compiled = compile_re2(reading.text, False, reading.edged, lines=False)
            found.append(matcher(compiled, reading.edged))
        return tuple(found)
    except re2.error as exc:
        reason = exc.args[0].decode("utf-8", "replace") if exc.args and isinstance(exc.args[0], bytes) else str(exc)
        raise SettingError(
            f"RE2 refuses the pattern {pattern!r}: {reason.replace('(?m)', '', 1)}",
            "Correct the pattern under policy: mask",
        ) from exc


def load_policy(corpus: Path) -> Policy | None:
    """The policy that `corpus.yaml` asks for; None where it asks for none. Raises SettingError."""
    values = policy_values(corpus)
    if not values:
        return None
    return MaskPatterns(
        patterns=values.get("mask", ()),
        sensitivities=values.get("mask_sensitivities", ()),
        hidden=values.get("hide", ()),
        cleared=values.get("cleared", ()),
    )


MOST_LINES = 5_000
"""Matched lines of one pattern that are ranked where some may be masked: the document of each is read."""

_KEPT = 512
_KEPT_SCOPES = 32
_NEVER_MASKED = frozenset(filters.COLUMNS) - {"title", "url"}
_KEPT_CHARACTERS = 16_000_000


@dataclass(frozen=True, slots=True)
class Redacted:
    """A document as it may be read, and as it is.

    Attributes:
        document: With the masked text.
        original: The stored text.
        masked: bool (characters,), which characters were changed; None where none was.
        changed: Whether anything of it is masked: text, title, URL or metadata.
    """

    document: Document
    original: str
    masked: NDArray[np.bool_] | None
    changed: bool


class Redactor:
    """Asks a policy about documents for a principal, each once; safe from several threads."""

    def __init__(self, records: StoredRecords, grep: MappedGrep, policy: Policy, principal: Principal | None) -> None:
        self._records, self._grep, self.policy, self.principal = records, grep, policy, principal
        self._kept: LRUCache[int, Redacted] = LRUCache(_KEPT_CHARACTERS, getsizeof=_size)
        self._lock = threading.Lock()

    def many(self, numbers: Sequence[int]) -> dict[int, Redacted]:
        """Documents by number. Raises SettingError where the policy gives a text of another length."""
        wanted = sorted({int(n) for n in numbers})
        with self._lock:
            found = {n: self._kept[n] for n in wanted if n in self._kept}
        new = [n for n in wanted if n not in found]
        for number, header in zip(new, self._records.headers(new), strict=True):
            found[number] = self._made(replace(header, text=self._grep.text(number)))
        with self._lock:
            for n in new:
                if _size(found[n]) <= _KEPT_CHARACTERS:
                    self._kept[n] = found[n]
        return found

    def one(self, number: int) -> Redacted:
        return self.many([number])[number]

    def _made(self, document: Document) -> Redacted:
        given = self.policy.redact(self.principal, document)
        masked = _differing(self.policy, document.text, given.text)
        made = Redacted(given, document.text, masked, True)
        # A title is often the first heading: it is no less secret there than in the text.
        given = replace(given, title=self.heading(made, document.title, given.title))
        same = (given.title, given.url, given.metadata) == (document.title, document.url, document.metadata)
        if masked is not None or not same:
            # The digest of the file would let anybody try what is behind a short mask.
            shown = json.dumps([given.text, given.title, given.url, given.metadata], default=str)
            given = replace(given, sha256=hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest())
            return Redacted(given, document.text, masked, True)
        return Redacted(given, document.text, None, False)

    def heading(self, redacted: Redacted, text: str, shown: str) -> str:
        """A heading as it may be shown: `shown`, with what is masked wherever the text holds the heading masked too."""
        hidden = np.zeros(len(text), bool) if len(shown) == len(text) else None
        if hidden is None or not text:
            return shown
        if redacted.masked is not None:
            for at in _occurrences(redacted.original, text):
                hidden |= redacted.masked[at : at + len(text)]
        return "".join(MASK if gone else c for c, gone in zip(shown, hidden.tolist(), strict=True))

    def section(self, redacted: Redacted, section: str) -> str:
        """A heading path as it may be shown, heading by heading."""
        return SEPARATOR.join(
            self.heading(redacted, part, self.policy.redact(self.principal, replace(redacted.document, text=part)).text)
            for part in section.split(SEPARATOR)
        )


def _size(redacted: Redacted) -> int:
    return len(redacted.original) + 30_000  # so that there are some 500 short ones


def _differing(policy: Policy, before: str, after: str) -> NDArray[np.bool_] | None:
    """Which characters differ; None where none does. Raises SettingError where lengths or line breaks do."""
    if before == after:
        return None
    if [len(line) for line in before.split("\n")] != [len(line) for line in after.split("\n")]:
        raise SettingError(
            f"The policy {policy.name} gave a text with other line breaks or of another length, so nothing is shown",
            "Let it replace characters one by one, and leave line breaks as they are",
        )
    points = (np.frombuffer(text.encode("utf-32-le"), np.uint32) for text in (before, after))
    return np.not_equal(*points)


def _occurrences(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


class RedactedRecords(StoredRecords):
    """Records whose texts are masked. Masks hide no citation and no name of a field; what holds no text is as it is stored."""

    def __init__(self, records: StoredRecords, redactor: Redactor) -> None:
        vars(self).update(vars(records))
        self.masks = redactor.policy.name
        self._redactor = redactor
        self._unmasked: LRUCache[str, Scope] = LRUCache(_KEPT_SCOPES)
        self._digests: LRUCache[str, str] = LRUCache(_KEPT_SCOPES)

    def masked(self, document_numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which documents are shown with something masked, bool in the order asked."""
        found = self._redactor.many(np.unique(document_numbers).tolist())
        return np.array([found[int(n)].changed for n in document_numbers], bool)

    def may_read(self, root: str, path: str, claims: Mapping[str, Any], principal: Principal | None) -> bool:
        """No: a file on disk is not masked."""
        return False

    def rows(self, numbers: Sequence[int]) -> list[ChunkRow]:
        """Records by number, in the order asked, masked."""
        rows = super().rows(numbers)
        documents = self._redactor.many([row.document_number for row in rows])
        return [self._row(row, documents[row.document_number]) for row in rows]

    def _row(self, row: ChunkRow, document: Redacted) -> ChunkRow:
        if not document.changed:
            return row
        chunk = row.chunk
        # What is put before the text when it is embedded holds title and headings, and is never shown.
        shown = replace(
            chunk,
            text=document.document.text[chunk.start : chunk.end],
            section=self._redactor.section(document, chunk.section),
            context="",
        )
        return replace(row, chunk=shown)

    def documents(self, numbers: Sequence[int]) -> list[Document]:
        found = self._redactor.many(numbers)
        return [found[int(n)].document for n in numbers]

    def headers(self, numbers: Sequence[int]) -> list[Document]:
        """Documents by number, in the order asked, masked, with "" for the text."""
        return [replace(document, text="") for document in self.documents(numbers)]

    def scope(self, principal: Principal | None, where: str | None, collections: Sequence[str]) -> Scope:
        """As stored, but a filter passes no document of whose fields that it names one is masked."""
        scope = super().scope(principal, where, collections)
        node = filters.parse(where) if where is not None and where.strip() else None
        named = {c.field for c in filters.conditions(node)} if node is not None else set()
        if scope.allowed is None or scope.allowed_documents is None or named <= _NEVER_MASKED:
            return scope
        kept = self._unmasked.get(scope.key)
        if kept is None:
            documents = scope.allowed_documents.copy()
            for some in _some(np.flatnonzero(documents).tolist()):
                shown = self._redactor.many(some)
                for number, stored in zip(some, super().headers(some), strict=True):
                    own = shown[number]
                    documents[number] = not own.changed or all(
                        _value(stored, f) == _value(own.document, f) for f in named
                    )
            allowed = frozen(scope.allowed & documents[self.arrays.records["document_number"]])
            key = json.dumps([*json.loads(scope.key), "masked"])
            kept = self._unmasked[scope.key] = replace(
                scope, allowed=allowed, allowed_documents=frozen(documents), key=key
            )
        return kept

    def distinct(self, scope: Scope) -> Scope:
        """The scope itself: of two documents with one text perhaps only one is masked."""
        return scope

    def info(self, scope: Scope) -> Mapping[str, Any]:
        """As stored, with the digest of what is shown."""
        info = dict(super().info(scope))
        if scope.key not in self._digests:
            seen = scope.visible_documents
            numbers = np.arange(self.documents_total)[slice(None) if seen is None else seen]
            state = hashlib.blake2b(json.dumps(info["encoders"], sort_keys=True).encode(), digest_size=16)
            for some in _some(numbers.tolist()):
                for d in self.headers(some):
                    state.update(f"{d.document_id} {d.sha256} {d.sensitivity}\n".encode())
            self._digests[scope.key] = state.hexdigest()
        return info | {"digest": self._digests[scope.key]}


def _some(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """So many at a time as documents are kept."""
    for start in range(0, len(values), _KEPT // 2):
        yield values[start : start + _KEPT // 2]


def _value(document: Document, field: str) -> object:
    """What a filter compares: title, url, or a value of the metadata, by its name or the first part of it."""
    if field in ("title", "url"):
        return getattr(document, field)
    metadata = document.metadata
    return [metadata.get(field), metadata.get(field.partition(".")[0])]


class ShownPostings(PostingsReader):
    """Postings of the masked texts: in records where something is masked, a matcher is counted in what is shown."""

    def __init__(self, inner: PostingsReader, records: StoredRecords, redactor: Redactor) -> None:
        vars(self).update(vars(inner))
        self._records, self._redactor = records, redactor
        self._plain = np.zeros(records.records_total, bool)  # records that are known to be shown as they are
        self._shown: LRUCache[Matcher, Postings] = LRUCache(_KEPT)

    def read(self, matchers: Collection[Matcher]) -> dict[Matcher, Postings]:
        """As `PostingsReader.read`, of the masked texts."""
        with self._lock:
            kept = {m: self._shown[m] for m in matchers if m in self._shown}
        stored = super().read([m for m in matchers if m not in kept])
        shown = {matcher: self._as_shown(matcher, found) for matcher, found in stored.items()}
        with self._lock:
            self._shown.update(shown)
        return kept | shown

    def _as_shown(self, matcher: Matcher, found: Postings) -> Postings:
        tfs = np.array(found.tfs)
        places = np.flatnonzero(~self._plain[found.records])
        for some in _some(places.tolist()):
            rows = self._records.rows(found.records[some].tolist())
            documents = self._redactor.many([row.document_number for row in rows])
            for place, row in zip(some, rows, strict=True):
                document, chunk = documents[row.document_number], row.chunk
                text, context = chunk.text, chunk.context
                if document.changed:
                    text = document.document.text[chunk.start : chunk.end]
                    context = self._redactor.section(document, chunk.context)
                same = (text, context) == (chunk.text, chunk.context)
                self._plain[row.number] = same
                if not same:
                    (tfs[place],) = occurrences_of([matcher], f"{context}\n{text}")
        return Postings(found.records[tfs > 0], tfs[tfs > 0])


class RedactedGrep(MappedGrep):
    """A line index that finds what is not masked: a line that matches only behind a mask is no match."""

    def __init__(self, grep: MappedGrep, redactor: Redactor) -> None:
        vars(self).update(vars(grep))
        self._most_lines = min(self._most_lines, MOST_LINES)
        self._redactor = redactor

    def text(self, document_number: int) -> str:
        """A document's whole text, masked."""
        return self._redactor.one(document_number).document.text

    def _shown(self, pattern: GrepPattern, lines: NDArray[np.int64]) -> NDArray[np.int64]:
        kept: list[int] = []
        for some in _some(list(zip(lines.tolist(), self._text.document_of(lines).tolist(), strict=True))):
            documents = self._redactor.many([owner for _, owner in some])
            for line, owner in some:
                shown = self._masked_line(documents[owner], owner, line)
                if shown is None or pattern.search(shown, 0, len(shown))[0] >= 0:
                    kept.append(line)
        return np.array(kept, np.int64)

    def _masked_line(self, redacted: Redacted, document: int, line: int) -> bytes | None:
        first, last = self._text.line_span(document, line)
        if redacted.masked is None or not redacted.masked[first:last].any():
            return None
        return redacted.document.text[first:last].encode()

    def _line_texts(self, document: int, first: int, last: int) -> Iterator[bytes]:
        redacted = self._redactor.one(document)
        for line, data in enumerate(super()._line_texts(document, first, last), first):
            yield self._masked_line(redacted, document, line) or data
