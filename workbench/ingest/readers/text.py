"""Plain text and reStructuredText; also every file that nobody else claims and that is no binary.

A `.txt` file that holds an underlined heading and reStructuredText marks is read as reStructuredText. In other texts
underlined lines are headings too, where the line above them stands alone. A text whose lines are all cut by the same number of
tabs is a table, as programs of measuring and statistics write it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.ingest.errors import Problem
from workbench.ingest.frontmatter import read_front_matter
from workbench.ingest.outline import Lines, Outline
from workbench.ingest.readers import delimited
from workbench.ingest.readers.base import Parsed, Reader, Source
from workbench.ingest.readers.rst import rst_blocks, rst_tables, underlined_headings

_MARKS = re.compile(r"(?m)^\.\. [\w|\[]|^\.\. _|:[\w:+.-]+:`[^`\n]+`|::[ \t]*\n[ \t]*\n[ \t]+\S")


def _read(source: Source) -> Iterator[Parsed | Problem]:
    text, metadata = source.text()
    if delimited.is_table(text):
        yield from delimited.read(source)
        return
    front = read_front_matter(text)
    if front.problem is not None:
        yield front.problem
    lines = Lines(text)
    sections = underlined_headings(lines, front.end)
    rst = source.suffix in {".rst", ".rest"} or bool(sections and _MARKS.search(text))
    blocks = rst_blocks(lines) if rst else ()
    outline = Outline(sections, blocks, front.metadata_end, tables=rst_tables(lines) if rst else ())
    yield Parsed(text, "rst" if rst else "text", outline, metadata={**metadata, **front.values})


READER = Reader("text", _read, frozenset({".txt", ".text", ".rst", ".rest", ".log"}))
