"""Known-item queries: something to tune with in the first five minutes, made from the corpus itself.

A known-item query is what somebody types who has seen a document and wants it again (Azzopardi, de Rijke and Balog 2007 make
them from the documents, as here). It has one right answer, the document or passage that it was made of:

* `title`: a document's title; the document answers it;
* `heading`: a heading with its title, where the heading alone is not telling; the text below answers it;
* `phrase`: a few words in a row, with the rarest word of their passage, that are in one document only;
* `question`: a heading or line that ends in a question mark, as in FAQs; the text below answers it.

The words stay in the index, since one cannot take them out for one query without making another corpus. So these queries
are easier than people's, most of all for the keyword side; every figure that is measured with them says so. Compare
plans by them, and judge real questions before believing small differences.

The same corpus, seed and arguments give the same queries: documents are taken in the order of a hash of seed and id.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from workbench.errors import JudgmentError, UsageError
from workbench.judgments.judging import Judging, passage
from workbench.judgments.log import KNOWN_ITEM
from workbench.judgments.query_sets import JUDGING, Query, Source, add_queries
from workbench.records import Chunk, Document, Granularity, Span
from workbench.retrieve.engine import Engine
from workbench.store.types import Scope

KINDS = ("title", "heading", "phrase", "question")
MOST = 1_000
GRADE = 3
_BATCH = 40
_WORD = re.compile(r"[^\W\d_]{3,}")
_PHRASE_WORDS = 5
_LETTERS = re.compile(r"[^\W_]+")
_MARKUP = re.compile(r"^[\s#>*+\-=~`|]+|[\s#*=~`|]+$")
# Headings that every second document has tell nobody which one is meant.
_PLAIN = frozenset(
    "introduction overview summary examples example usage notes note see also description parameters returns contents "
    "conclusion references syntax background installation license changelog todo faq about".split()
)


@dataclass(frozen=True, slots=True)
class KnownItem:
    """A query and its one answer.

    Attributes:
        used: Its characters that became the query; 0 to 0 where they are no part of the text (a title of front matter).
        chunk_id: The chunk that answers it; "" for the whole document.
    """

    text: str
    kind: str
    document_number: int
    used: Span
    chunk_id: str = ""


def make_known_items(
    engine: Engine, scope: Scope, count: int = 50, kinds: Sequence[str] = KINDS, seed: int = 0
) -> tuple[KnownItem, ...]:
    """Make queries from the documents in scope. `count`: How many at most, 1 to 1,000; fewer where the corpus does not give
    as many.
    """
    unknown = [k for k in kinds if k not in KINDS]
    if unknown or not kinds or not 1 <= count <= MOST:
        raise UsageError(
            f"There is no kind {unknown[0]!r}" if unknown else f"{count} queries of {len(kinds)} kinds cannot be made",
            f"Ask for 1 to {MOST:,} queries of: {', '.join(KINDS)}",
        )
    wanted = list(dict.fromkeys(kinds))
    made: dict[str, list[KnownItem]] = {kind: [] for kind in wanted}
    texts: set[str] = set()
    # Each document gives one query at most, of the kind of which there are fewest, so that no long document rules.
    for found in _documents(engine, scope, seed):
        if len(texts) >= count:
            break
        for kind in sorted(wanted, key=lambda k: (len(made[k]), wanted.index(k))):
            candidates = (c for c in _CANDIDATES[kind](found) if c[0].lower() not in texts)
            if (candidate := next(candidates, None)) is not None:
                text, used, chunk = candidate
                texts.add(text.lower())
                made[kind].append(KnownItem(text, kind, found.number, used, "" if chunk is None else chunk.chunk_id))
                break
    return tuple(item for kind in wanted for item in made[kind])


@dataclass(frozen=True, slots=True)
class _Found:
    """A visible document with its chunks of one collection, in order, and in the order of the seed."""

    engine: Engine
    scope: Scope
    number: int
    document: Document
    chunks: Sequence[Chunk]
    shuffled: Sequence[Chunk]

    @property
    def title(self) -> str:
        return " ".join(self.document.title.split())


_Candidate = tuple[str, Span, Chunk | None]
"""A query's text, its characters in the document, and the chunk that answers it; None for the whole document."""


def _place(seed: int, name: str) -> bytes:
    return hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=8).digest()


def _documents(engine: Engine, scope: Scope, seed: int) -> Iterator[_Found]:
    visible = scope.visible_documents
    numbers = [n for n in range(engine.records.documents_total) if visible is None or visible[n]]
    ids: dict[int, str] = {}
    for part in _parts(numbers, 5_000):
        ids.update({n: d.document_id for n, d in zip(part, engine.records.headers(part), strict=True)})
    numbers.sort(key=lambda n: _place(seed, ids[n]))
    for part in _parts(numbers, _BATCH):
        for number, document in zip(part, engine.records.headers(part), strict=True):
            rows = engine.records.rows(engine.records.records_of(number).tolist())
            chunks = [r.chunk for r in rows if r.chunk.granularity is Granularity.CHUNK]
            first = min((c.collection for c in chunks), default="")
            own = sorted((c for c in chunks if c.collection == first), key=lambda c: (c.start, c.chunk_id))
            if own:
                shuffled = sorted(own, key=lambda c: _place(seed, c.chunk_id))
                yield _Found(engine, scope, number, document, own, shuffled)


def _parts(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


def _telling(text: str) -> bool:
    """Whether a text says what is wanted: two to fifteen words, not all of them in every document."""
    words = _LETTERS.findall(text.lower())
    return " " in text and 2 <= len(words) <= 15 and len(text) <= 150 and not set(words) <= _PLAIN


def _at(chunk: Chunk, text: str) -> Span:
    at = chunk.text.find(text)
    return Span(0, 0) if at < 0 else Span(chunk.start + at, chunk.start + at + len(text))


def _title(found: _Found) -> Iterator[_Candidate]:
    if found.document.type != "code" and _telling(found.title) and not found.title.endswith("?"):
        yield found.title, _at(found.chunks[0], found.title), None


def _heading(found: _Found) -> Iterator[_Candidate]:
    for chunk in found.shuffled:
        heading = " ".join(chunk.section.split(" > ")[-1].split())
        if not heading or heading == found.title or heading.endswith("?"):
            continue
        text = heading if _telling(heading) else f"{found.title} {heading}"
        if _telling(text) and next(c for c in found.chunks if c.section == chunk.section) is chunk:
            yield text, _at(chunk, heading), chunk


def _phrase(found: _Found) -> Iterator[_Candidate]:
    for chunk in found.shuffled[:5]:
        for line in re.finditer(r"[^\n]+", chunk.text):
            words = list(_WORD.finditer(line.group()))
            if len(words) < _PHRASE_WORDS + 2 or line.group().lstrip().startswith(("#", "|", "```")):
                continue
            frequencies = found.engine.lexical.frequencies([w.group() for w in words], found.scope).tolist()
            rarest = min(range(len(words)), key=lambda i: (frequencies[i] or 1 << 30, i))
            first = max(0, min(rarest - _PHRASE_WORDS // 2, len(words) - _PHRASE_WORDS))
            start, end = words[first].start(), words[first + _PHRASE_WORDS - 1].end()
            text = " ".join(line.group()[start:end].split())
            if '"' in text or len(text) > 150 or not _only_here(found, text):
                continue
            base = chunk.start + line.start()
            yield text, Span(base + start, base + end), chunk


def _only_here(found: _Found, phrase: str) -> bool:
    hits = found.engine.lexical.search(f'"{phrase}"', found.scope, 50, k1=0.9, b=0.4, operator="all")
    return set(found.engine.records.columns(hits.numbers).document_numbers.tolist()) == {found.number}


def _question(found: _Found) -> Iterator[_Candidate]:
    for chunk in found.shuffled:
        for line in re.finditer(r"[^\n]+\?[^\S\n]*[#*_]*[^\S\n]*(?=\n)", chunk.text):
            text = " ".join(_MARKUP.sub("", line.group()).split())
            below = chunk.text[line.end() :].strip()
            if len(_LETTERS.findall(text)) >= 3 and len(text) <= 150 and len(_LETTERS.findall(below)) >= 5:
                yield text, Span(chunk.start + line.start(), chunk.start + line.end()), chunk


_CANDIDATES = {"title": _title, "heading": _heading, "phrase": _phrase, "question": _question}


def make_known_item_set(
    judging: Judging, engine: Engine, name: str, count: int = 50, kinds: Sequence[str] = KINDS, seed: int = 0
) -> int:
    """Make a set of known-item queries with their judgments, in one transaction.

    Args:
        count: How many queries at most.

    Returns:
        How many queries it has.
    """
    items = make_known_items(engine, judging.scope, count, kinds, seed)
    if not items:
        raise JudgmentError("No such queries can be made of these documents", "Index more text, or choose other kinds")
    numbers = sorted({i.document_number for i in items})
    documents = dict(zip(numbers, engine.records.headers(numbers), strict=True))
    queries, anchors = [], []
    for number, item in enumerate(items, 1):
        document = documents[item.document_number]
        whole = passage(document, 0, 0, "")
        where = {n: getattr(whole, n) for n in ("path", "root", "tenant", "roles", "sensitivity", "document_id")}
        source = Source(kind=item.kind, start=item.used.start, end=item.used.end, **where)
        queries.append(Query(f"{item.kind}-{number}", item.text, None, source))
        anchors.append(judging.anchor(item.chunk_id) if item.chunk_id else whole)
    note = f"Made from the documents: {', '.join(dict.fromkeys(i.kind for i in items))}; seed {seed}"
    with judging.sets.database.writing(JUDGING) as db:
        made = judging.sets.make(db, name, note, judging.judge)
        add_queries(db, made, name, queries)
        for query, anchor in zip(queries, anchors, strict=True):
            judging.log.write(db, made, query.query_id, anchor, GRADE, KNOWN_ITEM)
    return len(items)
