"""A document as HTML: its lines, numbered, a page of them at a time, with a passage marked. No Streamlit."""

from __future__ import annotations

import re
from dataclasses import dataclass

from workbench.records import Span
from workbench.ui.text import lines_of, plain, visible

LINES_A_PAGE = 400


@dataclass(frozen=True, slots=True)
class Target:
    """What to show: lines from 1, both included (0 and 0: none), and the first words of a passage in a long line."""

    first: int = 0
    last: int = 0
    quote: str = ""


def read_target(lines: str, quote: str = "") -> Target:
    """A target from `12-18` or `12`; anything else is none."""
    found = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", lines)
    if found is None:
        return Target(quote=quote)
    first = int(found[1])
    return Target(first, max(first, int(found[2] or first)), quote)


@dataclass(frozen=True, slots=True)
class Opened:
    """A document ready to be shown: its text with the start of every line."""

    text: str
    starts: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Opened:
        """Find the lines."""
        return cls(text, (0, *(m.end() for m in re.finditer("\n", text))))

    @property
    def lines(self) -> int:
        """Number of lines."""
        return len(self.starts)

    @property
    def pages(self) -> int:
        """Number of pages of lines, at least 1."""
        return -(-self.lines // LINES_A_PAGE)

    def page_of(self, target: Target) -> int:
        """The page, from 1, that holds the target's first line."""
        return min(max(target.first - 1, 0) // LINES_A_PAGE + 1, self.pages)

    def html(self, page: int, target: Target) -> str:
        """One page of lines, the target's lines marked."""
        first = (page - 1) * LINES_A_PAGE
        last = min(first + LINES_A_PAGE, self.lines)
        start = self.starts[first]
        end = self.starts[last] - 1 if last < self.lines else len(self.text)
        spans = self._quoted(target)
        spans = tuple(Span(s.start - start, s.end - start) for s in spans if start <= s.start < end)
        rows = []
        for line in lines_of(self.text[start:end], first + 1, spans):
            inside = target.first <= line.number <= target.last
            rows.append(
                f'<div class="wb-line{" wb-target" if inside else ""}" id="line-{line.number}">'
                f'<span class="wb-no">{line.number}</span>'
                f'<span class="wb-src-line" dir="auto">{line.html}</span></div>'
            )
        return f'<div class="wb-lines wb-doc" role="document">{"".join(rows)}</div>'

    def _quoted(self, target: Target) -> tuple[Span, ...]:
        """Where the target's quote stands in its lines: the words, with any space between them."""
        words = target.quote.rstrip("…").split()
        if not words or not 1 <= target.first <= self.lines:
            return ()
        start = self.starts[target.first - 1]
        end = self.starts[target.last] if target.last < self.lines else len(self.text)
        found = re.compile(r"\s+".join(map(re.escape, words))).search(self.text, start, end)
        return () if found is None else (Span(found.start(), found.end()),)


def heading(path: str, target: Target, lines: int) -> str:
    """The document's name and where in it we are."""
    where = f", lines {target.first}–{target.last}" if target.first else ""
    return (
        f'<h3 class="wb-heading"><bdi>{visible(plain(path, 300))}</bdi></h3>'
        f'<p class="wb-msg">{lines:,} {"line" if lines == 1 else "lines"}{where}</p>'
    )
