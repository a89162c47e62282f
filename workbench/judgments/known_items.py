"""Known-item queries: something to tune with in the first five minutes, made from the corpus itself.

A known-item query is what somebody types who has seen a document and wants it again (Azzopardi, de Rijke and Balog 2007 make
them from the documents, as here). It has one right answer, the document or passage that it was made of:

* `title`: a document's title; the document answers it;
* `heading`: a heading with its title, where the heading alone is not telling; the text below answers it;
* `phrase`: a few words in a row, with the rarest word of their passage, that stand in one document only;
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
from workbench.judgments.query_sets import JUDGING, Query, Source
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
    [
        "introduction", "overview", "summary", "examples", "example", "usage", "notes", "note", "see", "also", "description",
        "parameters", "returns", "contents", "conclusion", "references", "syntax", "background", "installation", "license",
        "changelog", "todo", "faq", "about",
    ]
)  # fmt: skip


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
    """Make queries from the documents in scope.

    Args:
        count: How many at most, 1 to 1,000; fewer where the corpus does not give as many.

    Raises:
        UsageError: A kind that there is not, or a count out of bounds.
    """
    unknown = [k for k in kinds if k not in KINDS]
    if unknown or not kinds or not 1 <= count <= MOST:
        raise UsageError(
            f"There is no kind {unknown[0]!r}" if unknown else f"{count} queries of {len(kinds)} kinds cannot be made",
            f"Ask for 1 to {MOST:,} queries of: {', '.join(KINDS)}",
        )
    wanted = list(dict.fromkeys(kinds))
    made: dict[str, list[KnownItem]] = {kind: [] for kind in wanted}
    said: set[str] = set()
    # Each document gives one query at most, of the kind of which there are fewest, so that no long document rules.
    for number, document, chunks in _documents(engine, scope, seed):
        if sum(map(len, made.values())) >= count:
            break
        for kind in sorted(wanted, key=lambda k: (len(made[k]), wanted.index(k))):
            item = next(
                (
                    i
                    for i in _CANDIDATES[kind](engine, scope, number, document, chunks, seed)
                    if i.text.lower() not in said
                ),
                None,
            )
            if item is not None:
                said.add(item.text.lower())
                made[kind].append(item)
                break
    return tuple(item for kind in wanted for item in made[kind])


def _documents(engine: Engine, scope: Scope, seed: int) -> Iterator[tuple[int, Document, list[Chunk]]]:
    """Visible documents in the order of the seed, with their chunks of one collection, in order."""
    visible = scope.visible_documents
    numbers = [n for n in range(engine.records.documents_total) if visible is None or visible[n]]
    ids: dict[int, str] = {}
    for start in range(0, len(numbers), 5_000):
        part = numbers[start : start + 5_000]
        ids.update({n: d.document_id for n, d in zip(part, engine.records.headers(part), strict=True)})
    numbers.sort(key=lambda n: hashlib.blake2b(f"{seed}\0{ids[n]}".encode(), digest_size=8).digest())
    for start in range(0, len(numbers), _BATCH):
        part = numbers[start : start + _BATCH]
        for number, document in zip(part, engine.records.headers(part), strict=True):
            rows = engine.records.rows(engine.records.records_of(number).tolist())
            chunks = [r.chunk for r in rows if r.chunk.granularity is Granularity.CHUNK]
            first = min((c.collection for c in chunks), default="")
            own = sorted((c for c in chunks if c.collection == first), key=lambda c: (c.start, c.chunk_id))
            if own:
                yield number, document, own


def _telling(text: str) -> bool:
    """Whether a text says what is wanted: two to fifteen words, not all of them in every document."""
    words = _LETTERS.findall(text.lower())
    return " " in text and 2 <= len(words) <= 15 and len(text) <= 150 and not set(words) <= _PLAIN


def _title(
    engine: Engine, scope: Scope, number: int, document: Document, chunks: Sequence[Chunk], seed: int
) -> Iterator[KnownItem]:
    title = " ".join(document.title.split())
    if document.type != "code" and _telling(title) and not title.endswith("?"):
        at = chunks[0].text.find(title)
        used = Span(0, 0) if at < 0 else Span(chunks[0].start + at, chunks[0].start + at + len(title))
        yield KnownItem(title, "title", number, used)


def _heading(
    engine: Engine, scope: Scope, number: int, document: Document, chunks: Sequence[Chunk], seed: int
) -> Iterator[KnownItem]:
    title = " ".join(document.title.split())
    for chunk in _shuffled(chunks, seed):
        heading = " ".join(chunk.section.split(" > ")[-1].split())
        if not heading or heading == title or heading.endswith("?"):
            continue
        text = heading if _telling(heading) else f"{title} {heading}"
        if _telling(text) and _first_of_section(chunk, chunks):
            at = chunk.text.find(heading)
            used = Span(0, 0) if at < 0 else Span(chunk.start + at, chunk.start + at + len(heading))
            yield KnownItem(text, "heading", number, used, chunk.chunk_id)


def _phrase(
    engine: Engine, scope: Scope, number: int, document: Document, chunks: Sequence[Chunk], seed: int
) -> Iterator[KnownItem]:
    for chunk in _shuffled(chunks, seed)[:5]:
        for line in re.finditer(r"[^\n]+", chunk.text):
            words = list(_WORD.finditer(line.group()))
            if len(words) < _PHRASE_WORDS + 2 or line.group().lstrip().startswith(("#", "|", "```")):
                continue
            frequencies = engine.lexical.frequencies([w.group() for w in words], scope).tolist()
            rarest = min(range(len(words)), key=lambda i: (frequencies[i] or 1 << 30, i))
            first = max(0, min(rarest - _PHRASE_WORDS // 2, len(words) - _PHRASE_WORDS))
            start, end = words[first].start(), words[first + _PHRASE_WORDS - 1].end()
            text = " ".join(line.group()[start:end].split())
            if '"' in text or len(text) > 150 or not _only_here(engine, scope, text, number):
                continue
            base = chunk.start + line.start()
            yield KnownItem(text, "phrase", number, Span(base + start, base + end), chunk.chunk_id)


def _only_here(engine: Engine, scope: Scope, phrase: str, number: int) -> bool:
    found = engine.lexical.search(f'"{phrase}"', scope, 50, k1=0.9, b=0.4, operator="all")
    owners = engine.records.columns(found.numbers).document_numbers.tolist()
    return bool(owners) and set(owners) == {number}


def _question(
    engine: Engine, scope: Scope, number: int, document: Document, chunks: Sequence[Chunk], seed: int
) -> Iterator[KnownItem]:
    for chunk in _shuffled(chunks, seed):
        for line in re.finditer(r"[^\n]+\?[^\S\n]*[#*_]*[^\S\n]*(?=\n)", chunk.text):
            text = " ".join(_MARKUP.sub("", line.group()).split())
            below = chunk.text[line.end() :].strip()
            if len(_LETTERS.findall(text)) < 3 or len(text) > 150 or len(_LETTERS.findall(below)) < 5:
                continue
            yield KnownItem(
                text, "question", number, Span(chunk.start + line.start(), chunk.start + line.end()), chunk.chunk_id
            )


_CANDIDATES = {"title": _title, "heading": _heading, "phrase": _phrase, "question": _question}


def _shuffled(chunks: Sequence[Chunk], seed: int) -> list[Chunk]:
    return sorted(chunks, key=lambda c: hashlib.blake2b(f"{seed}\0{c.chunk_id}".encode(), digest_size=8).digest())


def _first_of_section(chunk: Chunk, chunks: Sequence[Chunk]) -> bool:
    return next(c for c in chunks if c.section == chunk.section) is chunk


def make_known_item_set(
    judging: Judging, engine: Engine, name: str, count: int = 50, kinds: Sequence[str] = KINDS, seed: int = 0
) -> int:
    """Make a set of known-item queries with their judgments, in one transaction.

    Args:
        count: How many queries at most.

    Returns:
        How many queries it has.

    Raises:
        JudgmentError: There is a set of that name, or the corpus gives no such queries.
        UsageError: A kind that there is not, or a count out of bounds.
    """
    items = make_known_items(engine, judging.scope, count, kinds, seed)
    if not items:
        raise JudgmentError("No such queries can be made of these documents", "Index more text, or choose other kinds")
    numbers = sorted({i.document_number for i in items})
    documents = dict(zip(numbers, engine.records.headers(numbers), strict=True))
    queries, anchors = [], []
    for number, item in enumerate(items, 1):
        document = documents[item.document_number]
        source = Source(
            document.path, item.kind, item.used.start, item.used.end, False, document.root, document.tenant,
            document.roles, document.sensitivity, document.document_id,
        )  # fmt: skip
        queries.append(Query(f"{item.kind}-{number}", item.text, None, source))
        anchors.append(judging.anchor(item.chunk_id) if item.chunk_id else passage(document, 0, 0, ""))
    note = f"Made from the documents: {', '.join(dict.fromkeys(i.kind for i in items))}; seed {seed}"
    with judging.sets.database.writing(JUDGING) as db:
        made = judging.sets.make(db, name, note, judging.judge)
        judging.sets.add_in(db, made, name, queries)
        for query, anchor in zip(queries, anchors, strict=True):
            judging.log.write(db, made, query.query_id, anchor, GRADE, KNOWN_ITEM)
    return len(items)
