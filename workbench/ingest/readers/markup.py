"""LaTeX, Org and AsciiDoc: the file as it is, with its headings as sections and its listings and tables as blocks.

The text is not changed, so the lines of a citation are those of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.ingest.errors import Problem
from workbench.ingest.outline import Lines, Outline, Section, separate
from workbench.ingest.readers.base import Parsed, Reader, Source
from workbench.records import Span

_LEVELS = {
    "part": 1,
    "chapter": 1,
    "section": 2,
    "subsection": 3,
    "subsubsection": 4,
    "paragraph": 5,
    "subparagraph": 6,
}
_LATEX = re.compile(
    r"(?m)^[ \t]*\\(part|chapter|section|subsection|subsubsection|paragraph|subparagraph)\*?(?:\[[^\]\n]*\])?\{"
)
_ABSTRACT = re.compile(r"(?m)^[ \t]*\\begin\{abstract\}.*$")
_LATEX_TITLE = re.compile(r"(?m)^[ \t]*\\title(?:\[[^\]\n]*\])?\{")
_ENVIRONMENT = re.compile(
    r"(?s)\\begin\{(verbatim|lstlisting|minted|equation|align|gather|table|tabular|figure|algorithm|tikzpicture)(\*?)\}.*?\\end\{\1\2\}"
)
_COMMAND = re.compile(r"\\[a-zA-Z]+\*?(?:\[[^\]]*\])?\s*")
_ORG = re.compile(
    r"(?m)^(\*+)[ \t]+(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#\w\][ \t]+)?(\S.*?)(?:[ \t]+:[\w@:]+:)?[ \t]*$"
)
_ORG_BLOCK = re.compile(r"(?ims)^[ \t]*#\+begin_(\w+)\b.*?^[ \t]*#\+end_\1\b[^\n]*|(?:^[ \t]*\|[^\n]*\n?)+")
_ORG_TITLE = re.compile(r"(?im)^#\+title:[ \t]*(\S.*)$")
_ADOC = re.compile(r"(?m)^(={1,6})[ \t]+(\S.*?)[ \t]*$")
_ADOC_BLOCK = re.compile(r"(?ms)^(----+|\.\.\.\.+|\|===+)[ \t]*$.*?^\1[ \t]*$")


def _latex(source: Source) -> Iterator[Parsed | Problem]:
    text, metadata = source.text()
    sections = []
    for match in _LATEX.finditer(text):
        title, end = _braces(text, match.end())
        if title:
            sections.append(Section(match.start(), _line_end(text, end), _LEVELS[match[1]], title))
    sections += [Section(m.start(), _line_end(text, m.end()), 2, "Abstract") for m in _ABSTRACT.finditer(text)]
    blocks = separate([Span(m.start(), m.end()) for m in _ENVIRONMENT.finditer(text)])
    found = _LATEX_TITLE.search(text)
    title = _braces(text, found.end())[0] if found is not None else ""
    ordered = tuple(sorted(sections, key=lambda section: section.start))
    yield Parsed(text, "latex", Outline(ordered, blocks), title, metadata=metadata)


def _braces(text: str, start: int) -> tuple[str, int]:
    """The words up to the brace that closes, without commands, and where it is."""
    depth, position = 1, start
    while position < len(text) and position - start < 2000:
        sign = text[position]
        if sign == "\\":
            position += 1
        elif sign in "{}":
            depth += 1 if sign == "{" else -1
            if not depth:
                break
        position += 1
    words = _COMMAND.sub(" ", text[start:position].replace("\\\\", " ")).replace("~", " ")
    return " ".join(words.replace("{", "").replace("}", "").split()), position


def _line_end(text: str, offset: int) -> int:
    found = text.find("\n", offset)
    return len(text) if found < 0 else found + 1


def _org(source: Source) -> Iterator[Parsed | Problem]:
    text, metadata = source.text()
    blocks = separate([Span(m.start(), m.end()) for m in _ORG_BLOCK.finditer(text)])
    title = _ORG_TITLE.search(text)
    yield Parsed(
        text, "org", Outline(_headings(text, _ORG, blocks), blocks), title[1] if title else "", metadata=metadata
    )


def _adoc(source: Source) -> Iterator[Parsed | Problem]:
    text, metadata = source.text()
    blocks = separate([Span(m.start(), m.end()) for m in _ADOC_BLOCK.finditer(text)])
    yield Parsed(text, "asciidoc", Outline(_headings(text, _ADOC, blocks), blocks), metadata=metadata)


def _headings(text: str, pattern: re.Pattern[str], blocks: tuple[Span, ...]) -> tuple[Section, ...]:
    """Headings outside of blocks; the marks before a title are its level."""
    lines = Lines(text)
    found: list[Section] = []
    inside = iter(blocks)
    block = next(inside, None)
    for match in pattern.finditer(text):
        while block is not None and block.end <= match.start():
            block = next(inside, None)
        if block is None or match.start() < block.start:
            body = lines.start(lines.number(match.start()))
            found.append(Section(match.start(), body, len(match[1]), match[2].strip()))
    return tuple(found)


LATEX = Reader("latex", _latex, frozenset({".tex", ".latex", ".ltx"}))
ORG = Reader("org", _org, frozenset({".org"}))
ASCIIDOC = Reader("asciidoc", _adoc, frozenset({".adoc", ".asciidoc"}))
