"""Markdown: headings, code blocks and tables with their lines, from markdown-it-py's block parser.

Only blocks are parsed; inline markup is looked at in headings alone, which is three times as fast. Headings inside
quotations and lists are no sections.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from workbench.ingest.errors import Problem
from workbench.ingest.frontmatter import read_front_matter
from workbench.ingest.outline import Lines, Outline, Section, Table, separate
from workbench.ingest.readers.base import Parsed, Reader, Source
from workbench.ingest.writing import CELLS, trimmed
from workbench.records import Span

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_BLOCKS = frozenset({"fence", "code_block", "table_open", "html_block"})


def _read(source: Source) -> Iterator[Parsed | Problem]:
    text, metadata = source.text()
    front = read_front_matter(text)
    if front.problem is not None:
        yield front.problem
    outline = replace(markdown_outline(text, front.end), front=front.metadata_end)
    yield Parsed(text, "markdown", outline, metadata={**metadata, **front.values})


READER = Reader("markdown", _read, frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"}))


def markdown_outline(text: str, front: int = 0) -> Outline:
    """Headings, code blocks and tables of a Markdown text whose front matter ends at `front`."""
    lines = Lines(text)
    # The parser counts lines from where it starts; the front matter always ends at a line's start.
    shift = lines.number(front) - 1
    sections: list[Section] = []
    blocks: list[Span] = []
    tables: list[Table] = []
    tokens = _parser().parse(text[front:])
    for position, token in enumerate(tokens):
        if token.map is None:
            continue
        start, end = lines.start(token.map[0] + shift), lines.start(token.map[1] + shift)
        if token.type == "heading_open" and token.level == 0:
            sections.append(Section(start, end, int(token.tag[1:]), _plain(tokens[position + 1].content)))
        elif token.type in _BLOCKS:
            blocks.append(Span(start, end))
            header = _header(tokens, position) if token.type == "table_open" else ""
            if header:  # the rows begin after it and the rule below it
                tables.append(Table(start, lines.start(token.map[0] + 2 + shift), end, header))
    return Outline(tuple(sections), separate(blocks), front, tables=tuple(tables))


def _header(tokens: list[Token], position: int) -> str:
    """The heads of the table that opens here, as one line."""
    heads: list[str] = []
    for token in tokens[position:]:
        if token.type == "thead_close":
            break
        if token.type == "inline":
            heads.append(_plain(token.content))
    return CELLS.join(trimmed(heads))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@cache
def _inline() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def _plain(content: str) -> str:
    """A heading's words without markup; attributes such as `{#anchor}` are dropped too."""
    content = content.partition(" {#")[0]
    if content.isalnum():
        return content
    words: list[str] = []
    for token in _inline().parseInline(content):
        words.extend(_words(token.children or []))
    return " ".join("".join(words).split())


def _words(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in {"text", "code_inline", "text_special"}:
            yield token.content
        elif token.type in {"softbreak", "hardbreak"}:
            yield " "
        elif token.type == "image":
            yield token.content
