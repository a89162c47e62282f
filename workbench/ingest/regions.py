"""From an outline to regions: stretches of text that lie in one section and on one page.

Regions are the first cut of a document, at headings and page borders. Small ones are joined to groups before they are
chunked (`grouped`), so that no chunk is a lone heading or a crumb.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from workbench.ingest.outline import Outline
from workbench.records import ChunkKind, Span

_KINDS = (
    (re.compile(r"(?:\d+(?:\.\d+)*[.)]?\s+)?(?:summary|overview)\s*:?", re.IGNORECASE), ChunkKind.SUMMARY),
    (re.compile(r"(?:\d+(?:\.\d+)*[.)]?\s+)?examples?\s*:?", re.IGNORECASE), ChunkKind.EXAMPLES),
)


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of one section on one page.

    Attributes:
        start, end: Character offsets.
        path: Titles of the sections it lies in, outermost first.
        heading: Span of the heading it begins with, or None.
        page: Number of the page from 0; 0 where there are no pages.
        kind: What its section, or one around it, is called.
    """

    start: int
    end: int
    path: tuple[str, ...]
    heading: Span | None
    page: int
    kind: ChunkKind

    @property
    def parents(self) -> tuple[str, ...]:
        """The sections that a neighbour must lie in to be joined."""
        return self.path[:-1] if self.heading is not None and self.path else self.path

    def only_heading(self, text: str) -> bool:
        """Whether nothing but the heading is there."""
        return self.heading is not None and not text[self.heading.end : self.end].strip()


def section_kind(title: str) -> ChunkKind:
    """Summary for a section called Summary or Overview, examples for Example or Examples, else body."""
    return next((kind for pattern, kind in _KINDS if pattern.fullmatch(title.strip())), ChunkKind.BODY)


def regions(text: str, outline: Outline, page_starts: Sequence[int]) -> list[Region]:
    """The regions of a text's content that are not blank, in order; together they hold all of it that is not blank."""
    content = outline.content(text)
    starts = {0, content, *page_starts}
    sections = {s.start: s for s in outline.sections}
    title = _title_heading(outline)
    points = sorted(p for p in {*starts, *sections} if p < len(text))
    found: list[Region] = []
    stack: list[tuple[int, str, ChunkKind]] = []
    pages = set(page_starts)
    page = -1 if page_starts else 0
    own: ChunkKind | None = None
    for index, start in enumerate(points):
        end = points[index + 1] if index + 1 < len(points) else len(text)
        page += start in pages
        section = sections.get(start)
        heading = None
        if section is not None:
            while stack and stack[-1][0] >= section.level:
                stack.pop()
            own = None
            if section.title:
                kind = section_kind(section.title) if outline.prose else ChunkKind.BODY
                inherited = kind if kind is not ChunkKind.BODY else stack[-1][2] if stack else ChunkKind.BODY
                if start == title and kind is not ChunkKind.BODY:
                    # A page called "Overview" is not a summary as a whole; only what stands right under its title is.
                    own, inherited = kind, ChunkKind.BODY
                stack.append((section.level, section.title, inherited))
                heading = Span(start, max(start, min(section.body, end)))
        if start >= content and text[start:end].strip():
            kind = own or (stack[-1][2] if stack else ChunkKind.BODY)
            path = tuple(name for _, name, _ in stack)
            region = Region(start, end, path, heading, max(page, 0), kind)
            found.append(replace(region, kind=ChunkKind.BODY) if own and region.only_heading(text) else region)
    return found


def _title_heading(outline: Outline) -> int:
    """Offset of the heading that is the document's title: the first one, if no other is as far out; else -1."""
    titled = [s for s in outline.sections if s.title]
    if not titled or any(s.level <= titled[0].level for s in titled[1:]):
        return -1
    return titled[0].start


def grouped(
    text: str, found: Sequence[Region], tokens: Sequence[int], tiny: int, fits: Callable[[int, int], bool]
) -> list[tuple[int, int]]:
    """Join small regions with the ones after them.

    A heading without text always goes with the first section below it. What is then below `tiny` tokens takes the next
    one in, if it is of the same kind, lies under the same parent and both fit.

    Args:
        text: The document's text.
        found: Its regions.
        tokens: Length of each.
        tiny: Below how many tokens a group takes the next one in.
        fits: Whether the regions first..end (excluded) would fit into one chunk.

    Returns:
        (first, end) indexes of the groups, in order.
    """
    units: list[tuple[int, int]] = []
    for index in range(len(found)):
        if units and found[index - 1].only_heading(text) and _below(found[index - 1], found[index]):
            units[-1] = (units[-1][0], index + 1)
        else:
            units.append((index, index + 1))
    groups: list[tuple[int, int]] = []
    for first, end in units:
        if groups:
            start, before = groups[-1]
            small = sum(tokens[start:before]) < tiny
            # What headings without text lead to decides of what kind a unit is.
            alike = found[before - 1].kind is found[end - 1].kind
            if (
                small
                and alike
                and _together(found[before - 1], found[first], found[start].parents)
                and fits(start, end)
            ):
                groups[-1] = (start, end)
                continue
        groups.append((first, end))
    return groups


def _below(heading: Region, other: Region) -> bool:
    return other.page == heading.page and other.path[: len(heading.path)] == heading.path and other.path != heading.path


def _together(last: Region, other: Region, parents: tuple[str, ...]) -> bool:
    return other.page == last.page and other.path[: len(parents)] == parents
