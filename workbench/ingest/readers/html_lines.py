"""Where the words of an HTML page stand in its source: marks that go through the parser with them.

lexbor says no positions, and it moves text about as browsers do: text between the rows of a table goes before the table, ends
of elements that were left out are put in. To follow the words, the page is parsed a second time with a *mark* before words:
inside tables, drawings and very long lines before each run of text, elsewhere before the first on each line. A mark is one of
the characters that Unicode has assigned to nothing, and stands for an offset in the source. Marks touch nothing but words, so
both trees must be the same without them. This is checked on every page. Where it does not hold, or the page has such characters
itself, there are no marks, and the page is cited by the lines of its text.

The finding of text in the source is HTML's own tokenisation (https://html.spec.whatwg.org/multipage/parsing.html#tokenization)
in regular expressions that never go back, so a broken page costs no more than a whole one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from workbench.ingest.outline import Lines
from workbench.locators import Place, locator

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

LONG_LINE = 2000
"""Characters of a line of the source above which a place in it has a column too."""

Marks = list[tuple[int, int]]
"""Where words stand: offset in the text, offset in the source; in the order of the text."""

_FIRST_MARK, _MOST_MARKS = 0x40000, 0xA0000  # the planes 4 to 13, which Unicode leaves empty
_MARK = re.compile(f"([{chr(_FIRST_MARK)}-{chr(_FIRST_MARK + _MOST_MARKS - 1)}])")

_INSIDE = r"""[^>=]*+(?:=\s*+(?:"[^"]*+"?+|'[^']*+'?+|(?:[^\s>"'][^\s>]*+)?+)[^>=]*+)*+(?:>|\Z)"""
_MARKUP = re.compile(rf"<(?:/?([a-zA-Z][^\s/>]*+){_INSIDE}|!--(?:-?>|.*?(?:--!?>|\Z))|[!?/][^>]*+(?:>|\Z))", re.S)
_RAW = frozenset({"script", "style", "iframe", "noembed", "noframes"})
_WORDS_ONLY = frozenset({"title", "textarea", "xmp"})
_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.I) for name in _RAW | _WORDS_ONLY}
_FOREIGN = frozenset({"svg", "math"})
_APART = _FOREIGN | {"table", "noscript", "template", "object", "canvas", "datalist"}
"""Elements that may be moved or not be shown, so that the words inside and behind them cannot tell their lines by others."""
_NAMED = _RAW | _WORDS_ONLY | _APART | {"img"}
_ALT = re.compile(r"""(?<=[\s"'/])alt\s*=\s*(?:["']\s*)?(?=[^\s>"'])""", re.I)
_FIRST_OF_LINE = re.compile(r"\n[ \t\n\f]*+(?=[^ \t\n\f])")
_BLANKS = re.compile(r"(?:[ \t\n\f]|&(?:#0*(?:9|10|12|13|32)|#[xX]0*(?:9|[aA]|[cC]|[dD]|20)|Tab|NewLine);)*+")
"""Blanks that are written as references hold no mark: a mark among blanks would be a word."""

_SET_BEFORE = re.compile(r"(?:#{1,6} |- |[0-9]+\. |[ |])*")
"""What the reader writes before the first words of a line."""


class SourceMarks:
    """The offsets that the marks of one page stand for.

    Attributes:
        tree: The page with its marks.
        offsets: In the source, by the number of a mark.
    """

    __slots__ = ("offsets", "tree")

    def __init__(self, tree: LexborHTMLParser, offsets: Sequence[int]) -> None:
        self.tree = tree
        self.offsets = offsets

    def lift(self, words: str) -> tuple[str, Marks]:
        """Words without their marks, and what these say."""
        if words.isascii():
            return words, []
        parts = _MARK.split(words)
        if len(parts) == 1:
            return words, []
        found: Marks = []
        length = len(parts[0])
        for mark, part in zip(parts[1::2], parts[2::2], strict=True):
            found.append((length, self.offsets[ord(mark) - _FIRST_MARK]))
            length += len(part)
        return "".join(parts[::2]), found


def mark_source(page: str, tree: LexborHTMLParser) -> SourceMarks | None:
    """Parse a page once more, with marks.

    Args:
        page: The source.
        tree: The page as it is parsed without them.

    Returns:
        The marks; None where the page cannot have any.
    """
    from selectolax.lexbor import LexborHTMLParser

    plain = tree.html or ""
    if not plain.isascii() and _MARK.search(plain):
        return None
    marked, offsets = _marked(page)
    if len(offsets) > _MOST_MARKS:
        return None
    again = LexborHTMLParser(marked)
    return SourceMarks(again, offsets) if _MARK.sub("", again.html or "") == plain else None


def unmarked(name: str) -> str:
    """A name or value without marks."""
    return name if name.isascii() else _MARK.sub("", name)


def _marked(page: str) -> tuple[str, list[int]]:
    """The source with marks in it, and the offsets that they stand for, no more than one above the most."""
    parts: list[str] = []
    offsets: list[int] = []
    start = done = 0  # where the next run begins, and what is in `parts`
    known = -1  # up to here words stand on the line of the last mark, and need none
    opened = dict.fromkeys(_APART, 0)
    apart = 0  # how many of them are open

    def mark(at: int) -> None:
        nonlocal done, known
        parts.append(page[done:at])
        parts.append(chr(_FIRST_MARK + len(offsets)))
        offsets.append(at)
        done = at
        if not apart:
            known = page.find("\n", at, at + LONG_LINE)
            before = page.rfind("\n", max(0, at - LONG_LINE), at)
            if known - before > LONG_LINE or (before < 0 and at > LONG_LINE):
                known = -1  # a long line is cited with columns

    def mark_run(start: int, end: int) -> None:
        """Before the first word of a run and before that of each further line."""
        run = page[start:end]
        if run.isspace():
            return
        last = len(run.rstrip(" \t\n\f"))
        starts = [len(run) - len(run.lstrip(" \t\n\f"))]
        if "\n" in run:  # those behind the last word would be tried one by one
            starts += [line.end() for line in _FIRST_OF_LINE.finditer(run, starts[0], last)]
        nonlocal known
        passed = 0
        for at in starts:
            if start + at < known or at < passed:
                continue
            if len(offsets) > _MOST_MARKS:
                return
            reference = run[at] == "&"
            if reference:
                blanks = _BLANKS.match(run, at)
                passed = at = at if blanks is None else blanks.end()
            if at < len(run):
                mark(start + at)
            if reference:
                known = -1  # a hard space alone is not shown, and its mark is lost

    while len(offsets) <= _MOST_MARKS:
        found = _MARKUP.search(page, start)
        end = len(page) if found is None else found.start()
        if max(start, known) < end:
            mark_run(start, end)
        if found is None:
            break
        start = found.end()
        name = (found[1] or "").lower()
        if name not in _NAMED:
            continue
        if name == "img":
            alt = _ALT.search(page, found.start(), start)
            if alt is not None:
                mark(alt.end())
            continue
        known = -1
        closes = page[end + 1] == "/"
        if name in _APART:
            more = -(opened[name] > 0) if closes else not (name in _FOREIGN and page[start - 2] == "/")
            opened[name] += more
            apart += more
        elif not closes and not opened["svg"] and not opened["math"]:  # in which no element holds raw text
            closing = _ENDS[name].search(page, start)
            inner = len(page) if closing is None else closing.start()
            if name in _WORDS_ONLY and start < inner:
                mark_run(start, inner)
            start = inner
    parts.append(page[done:])
    return "".join(parts), offsets


def moved(marks: Iterable[tuple[int, int]], old: str, new: str) -> Marks:
    """Marks of a text that was set anew: its blanks are other ones, its other characters are the same in the same order.

    Args:
        marks: Of the old text.
        old, new: The text before and after.
    """
    found: Marks = []
    at = passed = 0
    for offset, source in marks:
        words = sum(map(len, old[passed:offset].split()))
        at, passed = _skipped(new, at, words), offset
        found.append((at, source))
    return found


def _skipped(text: str, at: int, count: int) -> int:
    """The next character that is no blank, after so many that are none."""
    while at < len(text) and (count or text[at].isspace()):
        count -= not text[at].isspace()
        at += 1
    return at


def places_in_source(text: str, marks: Marks, page: str, skipped: int) -> tuple[Place, ...]:
    """Places of a text by the lines of its source, `line=57`; in a long line also the column, `line=1&column=20480`.

    Args:
        text: The text.
        marks: Where its words stand, in the order of the text.
        page: The whole source.
        skipped: Its characters before the first that offsets count.

    Returns:
        One place where the text comes to another line of the source, and in a long one for each line of the text.
    """
    lines = Lines(page)
    places: list[Place] = []
    last = line_end = -1  # the line of the source, and where the line of the text ends
    for offset, source in marks:
        if offset >= len(text):
            break  # what was marked is not shown
        number = lines.number(source + skipped)
        opens = offset > line_end
        if number == last and not opens:
            continue
        if opens:
            begin = text.rfind("\n", 0, offset) + 1
            line_end = text.find("\n", offset)
            line_end = len(text) if line_end < 0 else line_end
            if _SET_BEFORE.fullmatch(text, begin, offset):
                offset = begin
        start = lines.start(number - 1)
        long = lines.start(number) - start > LONG_LINE
        if number == last and not long:
            continue
        at = locator(line=number, column=source + skipped - start + 1) if long else f"line={number}"
        places.append(Place(offset, at))
        last = number
    return tuple(places)
