"""Worked examples, searched apart from the pages that explain them.

An example is code with a line on what it is. Three things count as one:

* a document of type `example`, by front matter, by its record in a JSONL file, or by a rule of the corpus;
* a document in a collection called `examples`;
* each code block in a section called Examples (the chunks of kind `PAGE_EXAMPLES`), Markdown's two forms of it.

They are searched by the pipeline that every search runs, over these records alone; the plan is `pages` unless another is given:
0.7 of the cosine, 0.3 of BM25 as a share of its best result, limit + 5 records of each side, both at the same time, the query
rewritten and what somebody has open in an editor added for the vector side alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from workbench.errors import QueryError
from workbench.ingest.chunking import section_kind
from workbench.ingest.frontmatter import read_front_matter
from workbench.ingest.outline import Lines
from workbench.locators import locate
from workbench.plan.plan import Plan
from workbench.records import Chunk, ChunkKind, Document, cite
from workbench.retrieve.engine import Engine
from workbench.retrieve.request import Request, check_principal, make_request, whole
from workbench.retrieve.result import SearchResult
from workbench.retrieve.sources import retrieve
from workbench.store.types import Scope

EXAMPLE_TYPE = "example"
EXAMPLE_COLLECTION = "examples"
_MOST = 1000


@dataclass(frozen=True, slots=True)
class Example:
    """One worked example.

    Attributes:
        title: Of its record, file or page.
        description: What it is, in words; "" where nothing says it.
        code: The code, without the marks around it.
        tags: In the order of its record or front matter.
        url: Where the original lives, or "".
        score: `math.fsum` of the contributions, from 0 to 1.
        contributions: `vector` and `keyword`, what each side added.
        path, start_line, end_line: Where it is; lines from 1, both included.
        locator: Where that is in the original, or "" for a file that is cited by its lines.
    """

    title: str
    description: str
    code: str
    tags: tuple[str, ...]
    url: str
    score: float
    contributions: Mapping[str, float]
    path: str
    start_line: int
    end_line: int
    locator: str = ""

    @property
    def citation(self) -> str:
        """`path:start-end`, or `path#` and the locator."""
        return cite(self.path, self.start_line, self.end_line, None, self.locator)


class Examples(tuple[Example, ...]):
    """The examples found, best first, and in `warnings` what their reader must know: a side that could not run."""

    warnings: tuple[str, ...] = ()


def search_examples(
    engine: Engine, query: str, context: str | None = None, limit: int = 5, plan: Plan | str = "pages"
) -> Examples:
    """Search the examples that the engine's principal may see; arguments as `Corpus.search_examples` has them.

    Score down, then path, then line up; blocks of one section with more of the query's words first. A plan with a reranking
    model keeps its order.
    """
    request = make_request(query, engine.principal, plan, context=context, limit=whole(limit, "limit", 1, _MOST))
    check_principal(request.plan, engine.principal)
    scope = _examples(engine, request)
    if not request.query or not engine.records.count(scope)[1]:
        return Examples()
    result = SearchResult(engine, retrieve(engine, request, scope=scope))
    found = Examples(_made(result)[:limit])
    found.warnings = result.warnings
    return found


def _examples(engine: Engine, request: Request) -> Scope:
    own = f"type = '{EXAMPLE_TYPE}' or collection = '{EXAMPLE_COLLECTION}'"
    collections = request.plan["collections"]
    seen = engine.records.scope(request.principal, None, collections)
    allowed = engine.records.scope(request.principal, own, collections).allowed
    sections = engine.records.of_kind(ChunkKind.EXAMPLES)
    if seen.allowed is not None:
        sections = sections & seen.allowed
    # A mask of None lets everything pass: then all that is visible is an example.
    return replace(seen, allowed=None if allowed is None else allowed | sections, key=f"examples {seen.key}")


def _made(result: SearchResult) -> list[Example]:
    engine, records, fused = result.engine, result.engine.records, result.fused
    rows = records.rows(result.retrieved.columns.numbers[fused.rows[result.order]].tolist())
    numbers = sorted({row.document_number for row in rows})
    documents = dict(zip(numbers, records.headers(numbers), strict=True))
    made: dict[tuple[str, int, str], Example] = {}
    for position, row in zip(result.order.tolist(), rows, strict=True):
        document, chunk = documents[row.document_number], row.chunk
        added = {name: float(parts[position]) for name, parts in fused.contributions.items()}
        if document.type == EXAMPLE_TYPE or chunk.collection == EXAMPLE_COLLECTION:
            # Only these need the whole text, and the mapped file gives it without the texts beside it.
            examples = [_from_document(replace(document, text=engine.grep.text(row.document_number)), added)]
        else:
            examples = _from_section(engine, result.query, document, chunk, added)
        if chunk.locator:
            lines, places = Lines(engine.grep.text(row.document_number)), records.places(row.document_number)
            spans = ((lines.start(e.start_line - 1), lines.start(e.end_line)) for e in examples)
            examples = [replace(e, locator=locate(places, *span)) for e, span in zip(examples, spans, strict=True)]
        for example in examples:
            # A document may be in several collections, and is then in the list as often.
            made.setdefault((document.document_id, example.start_line, example.code), example)
    # Stable: equal scores stay as fusion and the section left them.
    return list(made.values()) if result.outcome.rerank else sorted(made.values(), key=lambda e: -e.score)


def _from_document(document: Document, added: Mapping[str, float]) -> Example:
    """A whole document as an example: its own `code` and `description`, else what its text holds."""
    text = document.text[read_front_matter(document.text).end :]
    code, description, blocks = document.metadata.get("code"), document.metadata.get("description"), list(_blocks(text))
    if not isinstance(code, str) or not code.strip():
        code = "\n\n".join(block.code for block in blocks) or text.strip()
    if not isinstance(description, str):
        description = next((block.before for block in blocks if block.before), "")
    return _example(document, description, code, added, 1, max(1, len(document.text.splitlines())))


def _from_section(
    engine: Engine, words: str, document: Document, chunk: Chunk, added: Mapping[str, float]
) -> list[Example]:
    """The code blocks of a section, those that hold more of the query's words first, then in their order.

    Words that occur beside one block say nothing of the others: what the keyword side added goes to the blocks that hold
    some, and to all where none does (the words are then in the page's title, or between the blocks).
    """
    blocks = [(_held(engine, words, f"{block.before}\n{block.code}"), block) for block in _blocks(chunk.text)]
    without = {**added, "keyword": 0.0} if "keyword" in added else added
    some, first = any(held for held, _ in blocks), chunk.start_line
    return [
        _example(document, b.before, b.code, added if held or not some else without, first + b.start, first + b.end)
        for held, b in sorted(blocks, key=lambda pair: -pair[0])
    ]


def _held(engine: Engine, words: str, text: str) -> int:
    try:
        spans = engine.lexical.highlight(words, text)
    except QueryError:
        return 0
    return len({text[span.start : span.end].casefold() for span in spans})


def _example(
    document: Document, description: str, code: str, added: Mapping[str, float], start: int, end: int
) -> Example:
    return Example(
        title=document.title,
        description=" ".join(description.split()),
        code=code,
        tags=_tags(document.metadata.get("tags")),
        url=document.url,
        score=math.fsum(added.values()),
        contributions=added,
        path=document.path,
        start_line=start,
        end_line=end,
    )


def _tags(value: Any) -> tuple[str, ...]:
    parts: Sequence[Any] = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else ()
    return tuple(dict.fromkeys(str(part).strip() for part in parts if str(part).strip()))


class _Block(NamedTuple):
    """A code block, the paragraph or heading before it, and its lines in the text, from 0, both included."""

    code: str
    before: str
    start: int
    end: int


def _blocks(text: str) -> Iterator[_Block]:
    """The fenced and indented code blocks of a text."""
    from markdown_it import MarkdownIt

    before, heading = "", False
    for token in MarkdownIt("commonmark").parse(text):
        if token.type in ("fence", "code_block"):
            code = token.content.rstrip("\n")
            if code.strip() and token.map is not None:
                yield _Block(code, before, token.map[0], token.map[1] - 1)
            before = ""
        elif token.type in ("heading_open", "paragraph_open"):
            heading = token.type == "heading_open"
        elif token.type == "inline" and not (heading and section_kind(token.content) is ChunkKind.EXAMPLES):
            before = token.content
