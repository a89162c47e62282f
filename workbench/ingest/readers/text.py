"""Texts whose lines stay those of the file: plain text, Markdown, reStructuredText, LaTeX, Org, AsciiDoc; tables and subtitles.

The text is not changed, so the lines of a citation are those of the file; a reader only finds its headings, listings and
tables. Plain text is every file that nobody else claims and that is no binary: one that holds an underlined heading and
reStructuredText marks is read as reStructuredText, one whose lines are all cut by the same number of tabs is a table.

A table has a line of the text for a row of the file, so that line, row and citation are one number. Its delimiter and header are
found by their look. A place is the row, `row=12`, counted as records and not as lines: a quoted cell may hold line ends, which
become spaces.
"""

from __future__ import annotations

import csv
import io
import quopri
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from workbench.ingest.encoding import decode
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.frontmatter import read_front_matter
from workbench.ingest.outline import CELLS, Lines, Outline, Section, Table, TextWriter, find_header, separate, trimmed
from workbench.ingest.readers.base import Parsed, Reader, Source, written
from workbench.locators import Place, locator
from workbench.records import Span

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_RST_MARKS = re.compile(r"(?m)^\.\. [\w|\[]|^\.\. _|:[\w:+.-]+:`[^`\n]+`|::[ \t]*\n[ \t]*\n[ \t]+\S")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+[ \t]*")
_SIMPLE_TABLE = re.compile(r"[ \t]*=+([ \t]+=+)+[ \t]*")
_CODE = re.compile(
    r"([ \t]*)\.\. (code-block|code|sourcecode|literalinclude|highlight|parsed-literal|list-table|csv-table|table"
    r"|math|graphviz|productionlist|snippet|doctest|testcode)::"
)
_LABEL = re.compile(
    r"\.\. (?:_[^`\n]+|__.*|(?:index|module|currentmodule|setting|templatetag|templatefilter|fieldlookup|highlight)::.*)"
)
_ROLE = re.compile(r":[\w:+.-]+:`([^`<]*?)\s*(?:<[^`]*>)?`")
_LINK = re.compile(r"`([^`<]+?)\s*<[^`]*>`__?")
_GAP, _EMPHASIS = re.compile(r"[ \t]{2,}"), re.compile(r"[`*]")
_LEVELS = {
    name: level
    for level, names in enumerate(
        ("part chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph"), 1
    )
    for name in names.split()
}
_LATEX = re.compile(rf"(?m)^[ \t]*\\({'|'.join(_LEVELS)})\*?(?:\[[^\]\n]*\])?\{{")
_ABSTRACT = re.compile(r"(?m)^[ \t]*\\begin\{abstract\}.*$")
_LATEX_TITLE = re.compile(r"(?m)^[ \t]*\\title(?:\[[^\]\n]*\])?\{")
_ENVIRONMENT = re.compile(
    r"(?s)\\begin\{(verbatim|lstlisting|minted|equation|align|gather|table|tabular|figure|algorithm|tikzpicture)(\*?)\}.*?\\end\{\1\2\}"
)
_COMMAND = re.compile(r"\\[a-zA-Z]+\*?(?:\[[^\]]*\])?\s*")
_ACCENT = re.compile(
    r"\\(?:\\|-|(?P<sign>[\"'`^~.=]|[cvH](?=[ {])|[ukrdb](?=\{))\s*(?:\{\s*\\?(?P<braced>[A-Za-z])\s*\}"
    r"|(?P<bare>[A-Za-z]|\\[ij](?![A-Za-z])))"
    r"|(?P<word>ss|ae|AE|oe|OE|aa|AA|[oOlL])(?![A-Za-z])(?:\{\}| )?)"
)
_MARKS = "\u0308\u0301\u0300\u0302\u0303\u0304\u0307\u0306\u030c\u030b\u0327\u0328\u030a\u0323\u0331"
_ACCENTS = dict(zip("\"'`^~=.uvHckrdb", _MARKS, strict=True))
_SIGNS = dict(zip("ss ae AE oe OE aa AA o O l L".split(), "ßæÆœŒåÅøØłŁ", strict=True))
_ORG = re.compile(
    r"(?m)^(\*+)[ \t]+(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#\w\][ \t]+)?(\S.*?)(?:[ \t]+:[\w@:]+:)?[ \t]*$"
)
_ORG_BLOCK = re.compile(r"(?ims)^[ \t]*#\+begin_(\w+)\b.*?^[ \t]*#\+end_\1\b[^\n]*|(?:^[ \t]*\|[^\n]*\n?)+")
_ORG_TITLE = re.compile(r"(?im)^#\+title:[ \t]*(\S.*)$")
_ADOC = re.compile(r"(?m)^(={1,6})[ \t]+(\S.*?)[ \t]*$")
_ADOC_BLOCK = re.compile(r"(?ms)^(----+|\.\.\.\.+|\|===+)[ \t]*$.*?^\1[ \t]*$")
_TIMES = re.compile(r"[ \t]*(?:(\d+):)?(\d{1,2}):(\d{2})[,.]\d{1,3}[ \t]*-->[ \t]*[\d:.,]+.*")
_TAGS = re.compile(r"</?(?:[bius]|font|v|c|lang|ruby|rt|\d)[^<>]*>|\{\\[^{}]*\}")
_SPEAKER = re.compile(r"<v(?:\.[^ <>]*)? ([^<>]+)>")
_BINARY = re.compile(r"(?i)ENCODING=(?:B|BASE64)\b|VALUE=BINARY")
_PAUSE = 5  # seconds
_DELIMITERS = ",;\t|"
_LOOKED_AT = 100
_TOLD_BY, _FEWEST_LINES = 20, 4
_FIELD = 16 << 20
_MOST_OPEN = 20


def _text(source: Source) -> Iterator[Parsed | Problem]:
    text, metadata = source.text()
    if is_table(text):
        yield from read_table(source)
        return
    front = read_front_matter(text)
    if front.problem is not None:
        yield front.problem
    lines = Lines(text)
    sections = underlined_headings(lines, front.end, source.suffix in (".rst", ".rest"))
    rst = source.suffix in (".rst", ".rest") or bool(sections and _RST_MARKS.search(text))
    outline = Outline(sections, front=front.metadata_end)
    if rst:
        outline = replace(outline, blocks=rst_blocks(lines), tables=rst_tables(lines))
    yield Parsed(text, "rst" if rst else "text", outline, metadata={**metadata, **front.values})


def _markdown(source: Source) -> Iterator[Parsed | Problem]:
    text, metadata = source.text()
    front = read_front_matter(text)
    if front.problem is not None:
        yield front.problem
    outline = replace(markdown_outline(text, front.end), front=front.metadata_end)
    yield Parsed(text, "markdown", outline, metadata={**metadata, **front.values})


def markdown_outline(text: str, front: int = 0) -> Outline:
    """Headings, code blocks and tables of a Markdown text whose front matter ends at `front`.

    Only blocks are parsed; inline markup is looked at in headings alone, which is three times as fast. Headings inside
    quotations and lists are no sections.
    """
    lines = Lines(text)
    # The parser counts lines from where it starts; the front matter always ends at a line's start.
    shift = lines.number(front) - 1
    sections: list[Section] = []
    blocks: list[Span] = []
    headed: list[Table] = []
    tokens = _block_parser().parse(text[front:])
    for position, token in enumerate(tokens):
        if token.map is None:
            continue
        start, end = lines.start(token.map[0] + shift), lines.start(token.map[1] + shift)
        if token.type == "heading_open" and token.level == 0:
            sections.append(Section(start, end, int(token.tag[1:]), _plain(tokens[position + 1].content)))
        elif token.type in ("fence", "code_block", "table_open", "html_block"):
            blocks.append(Span(start, end))
            header = _table_heads(tokens, position) if token.type == "table_open" else ""
            if header:  # the rows begin after it and the rule below it
                headed.append(Table(start, lines.start(token.map[0] + 2 + shift), end, header))
    return Outline(tuple(sections), separate(blocks), front, tables=tuple(headed))


def _table_heads(tokens: list[Token], position: int) -> str:
    heads: list[str] = []
    for token in tokens[position:]:
        if token.type == "thead_close":
            break
        if token.type == "inline":
            heads.append(_plain(token.content))
    return CELLS.join(trimmed(heads))


@cache
def _block_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@cache
def _inline_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def _plain(content: str) -> str:
    """A heading's words without markup; attributes such as `{#anchor}` are dropped too."""
    content = content.partition(" {#")[0]
    if content.isalnum():
        return content
    words: list[str] = []
    for token in (inner for block in _inline_parser().parseInline(content) for inner in block.children or ()):
        if token.type in ("text", "code_inline", "text_special", "image"):
            words.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            words.append(" ")
    return " ".join("".join(words).split())


def underlined_headings(lines: Lines, front: int = 0, short: bool = False) -> tuple[Section, ...]:
    """Headings with an underline at least as long as the title (or an overline too), after the front matter.

    A `short` one of four signs will do in what is surely reStructuredText, as for docutils, which warns.

    docutils would parse all of reStructuredText at a hundred times the cost and refuse Sphinx's own directives. Levels come
    from the order in which the styles of adornment first appear
    (https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html#sections).
    """
    found: list[Section] = []
    styles: list[tuple[str, bool]] = []
    index = lines.number(front) - 1
    while index < len(lines):
        heading = _heading_at(lines, index, short)
        if heading is None:
            index += 1
            continue
        title, style, length = heading
        if style not in styles:
            styles.append(style)
        start, body = lines.start(_labels_above(lines, index, front)), lines.start(index + length)
        found.append(Section(start, body, styles.index(style) + 1, title))
        index += length
    return tuple(found)


def _heading_at(lines: Lines, index: int, short: bool) -> tuple[str, tuple[str, bool], int] | None:
    """Title, style (character, overlined) and number of lines of a heading that starts at this line, or None."""
    first = lines.line(index)
    if not first or first.isspace() or index + 1 >= len(lines):
        return None
    above = lines.line(index - 1) if index else ""
    second = lines.line(index + 1)
    if _ADORNMENT.fullmatch(first):
        if index + 2 >= len(lines) or not second.strip() or _ADORNMENT.fullmatch(second):
            return None
        matches = lines.line(index + 2).rstrip() == first.rstrip() and _width(second.strip()) <= len(first.rstrip())
        return (_plain_rst(second), (first[0], True), 3) if matches else None
    if first[0].isspace() or (above.strip() and not _ADORNMENT.fullmatch(above)):
        return None
    if not _ADORNMENT.fullmatch(second) or not any(c.isalnum() for c in first):
        return None
    size = len(second.rstrip())
    long = size >= max(3, _width(first.rstrip())) or (short and size >= 4)
    return (_plain_rst(first), (second[0], False), 2) if long else None


def _labels_above(lines: Lines, index: int, front: int) -> int:
    """First of the link targets and index marks right above a heading, which belong to it."""
    first = index
    while index > 0 and lines.start(index - 1) >= front:
        line = lines.line(index - 1)
        if _LABEL.fullmatch(line):
            first = index - 1
        elif line.strip():
            break
        index -= 1
    return first


def _width(text: str) -> int:
    """Columns that a text takes: wide East Asian characters take two, combining marks none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _plain_rst(title: str) -> str:
    title = _LINK.sub(r"\1", _ROLE.sub(r"\1", title))
    return " ".join(re.sub(r"[`*\\]", "", title).split())


def rst_blocks(lines: Lines) -> tuple[Span, ...]:
    found: list[Span] = []
    index = 0
    while index < len(lines):
        line = lines.line(index)
        end = index + 1
        if _SIMPLE_TABLE.fullmatch(line):
            end = _table_end(lines, index)
        elif _CODE.match(line) or (line.rstrip().endswith("::") and not line.lstrip().startswith(".. ")):
            end = _indented_end(lines, index)
        if end > index + 1:
            found.append(Span(lines.start(index), lines.start(end)))
        index = end
    return separate(found)


def rst_tables(lines: Lines) -> tuple[Table, ...]:
    """The simple tables that have a header: the lines between their first two borders, if a third one ends the rows."""
    found: list[Table] = []
    index = 0
    while index < len(lines):
        end = _table_end(lines, index) if _SIMPLE_TABLE.fullmatch(lines.line(index)) else index + 1
        borders = [at for at in range(index, end) if _SIMPLE_TABLE.fullmatch(lines.line(at))]
        if len(borders) == 3 and borders[1] == index + 2:
            heads = (" ".join(_EMPHASIS.sub("", cell).split()) for cell in _GAP.split(lines.line(index + 1).strip()))
            body = lines.start(borders[1] + 1)
            found.append(Table(lines.start(index), body, lines.start(end), CELLS.join(heads)))
        index = end
    return tuple(found)


def _indented_end(lines: Lines, index: int) -> int:
    """Line after the last one that is indented more than line `index`; blank lines at the end do not belong."""

    def indent(line: str) -> int:
        return len(line) - len(line.lstrip())

    depth, end = indent(lines.line(index)), index + 1
    for position in range(index + 1, len(lines)):
        line = lines.line(position)
        if line.strip() and indent(line) <= depth:
            break
        end = position + 1 if line.strip() else end
    return end


def _table_end(lines: Lines, index: int) -> int:
    """Line after a simple table: after its third border, or its second if a blank line follows that."""
    borders = 1
    for position in range(index + 1, len(lines)):
        if not _SIMPLE_TABLE.fullmatch(lines.line(position)):
            continue
        borders += 1
        following = lines.line(position + 1) if position + 1 < len(lines) else ""
        if borders >= 3 or not following.strip():
            return position + 1
    return index + 1


def _latex(source: Source) -> Iterator[Parsed | Problem]:
    text, metadata = source.text()
    text = unicodedata.normalize("NFC", _ACCENT.sub(_accented, text))
    blocks = separate(Span(*m.span()) for m in _ENVIRONMENT.finditer(text))
    found = [(m.start(), m.end(), 2, "Abstract") for m in _ABSTRACT.finditer(text)]
    for match in _LATEX.finditer(text):
        title, end = _braces(text, match.end())
        found.append((match.start(), end, _LEVELS[match[1]], title))
    named = _LATEX_TITLE.search(text)
    title = _braces(text, named.end())[0] if named is not None else ""
    yield Parsed(text, "latex", _outside(text, blocks, found), title, metadata=metadata)


def _accented(match: re.Match[str]) -> str:
    """The letter of `\"o`, `\v{s}` or `\\ss`; nothing for `\\-`, where a word may be broken."""
    letter = (match["braced"] or match["bare"] or "")[-1:]
    if match["word"]:
        return _SIGNS[match["word"]]
    if not letter or (match["sign"] == "=" and letter.lower() not in "aeiouy"):  # a line end; a stop of the tabulator
        return "" if match[0] == r"\-" else match[0]
    return letter + _ACCENTS[match["sign"]]


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


def _org(source: Source) -> Iterator[Parsed | Problem]:
    text, metadata = source.text()
    title = _ORG_TITLE.search(text)
    outline = _marked_headings(text, _ORG, _ORG_BLOCK)
    yield Parsed(text, "org", outline, title[1] if title else "", metadata=metadata)


def _asciidoc(source: Source) -> Iterator[Parsed | Problem]:
    text, metadata = source.text()
    yield Parsed(text, "asciidoc", _marked_headings(text, _ADOC, _ADOC_BLOCK), metadata=metadata)


def _marked_headings(text: str, pattern: re.Pattern[str], block: re.Pattern[str]) -> Outline:
    """Blocks and headings; the marks before a title are its level."""
    blocks = separate(Span(*m.span()) for m in block.finditer(text))
    return _outside(text, blocks, [(m.start(), m.start(), len(m[1]), m[2].strip()) for m in pattern.finditer(text)])


def _outside(text: str, blocks: tuple[Span, ...], found: list[tuple[int, int, int, str]]) -> Outline:
    """Blocks, and the headings (start, end, level, title) that are in none of them."""
    lines, starts = Lines(text), [block.start for block in blocks]
    sections = []
    for start, end, level, title in sorted(found):
        index = bisect_right(starts, start) - 1
        if title and (index < 0 or start >= blocks[index].end):
            sections.append(Section(start, lines.start(lines.number(end)), level, title))
    return Outline(tuple(sections), blocks)


def _subtitles(source: Source) -> Iterator[Parsed | Problem]:
    """What is said, one cue after the other; a place is the moment, `time=00:01:02`."""
    text, metadata = source.text()
    lines = text.split("\n")
    starts = [(index, match) for index, line in enumerate(lines) if (match := _TIMES.fullmatch(line)) is not None]
    if not starts:
        yield Problem("It has no times as subtitles have them, and was read as text", "Nothing needs to be done")
        yield Parsed(text, "text", metadata=metadata)
        return
    writer = TextWriter()
    last = 0
    for number, (index, match) in enumerate(starts):
        end = starts[number + 1][0] if number + 1 < len(starts) else len(lines)
        cue = lines[index + 1 : end]
        if number + 1 < len(starts) and cue and _names_next(cue):
            cue = cue[:-1]
        seconds = int(match[1] or 0) * 3600 + int(match[2]) * 60 + int(match[3])
        if seconds - last > _PAUSE:
            writer.gap()
        last = seconds
        spoken = _spoken(cue)
        words = " ".join(_TAGS.sub("", _SPEAKER.sub(r"\1: ", line)) for line in spoken)
        at = locator(time=f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}")
        writer.line(" ".join(words.split()), at)
    yield written(writer, "subtitles", metadata=metadata)


def _spoken(cue: list[str]) -> Iterator[str]:
    """The lines of a cue without the blocks of notes and styles behind it, which end at a blank line."""
    aside = False
    for line in cue:
        aside = bool(line.strip()) and (aside or line.split()[0] in ("NOTE", "STYLE", "REGION"))
        if not aside:
            yield line


def _names_next(cue: list[str]) -> bool:
    """Whether the last line before the next times is the number or name of that cue."""
    last = cue[-1].strip()
    return bool(last) and (last.isdigit() or not any(line.strip() for line in cue[-2:-1]))


def _calendar(source: Source) -> Iterator[Parsed | Problem]:
    """Events and people (iCalendar, vCard): a line a property, unfolded and decoded; a place is its line in the file.

    icalendar names no lines, refuses a whole calendar for one bad line and takes eight times as long; vobject refuses cards whose
    encoded lines are folded.
    """
    raw, metadata = source.text()
    writer = TextWriter()
    lines = raw.split("\n")
    at = 0
    while at < len(lines):
        begin, line = at + 1, lines[at]
        quoted = "ENCODING=QUOTED-PRINTABLE" in line.upper().partition(":")[0]
        at += 1
        while at < len(lines) and (lines[at][:1] in (" ", "\t") or (quoted and line.endswith("="))):
            line = line[:-1] + lines[at] if quoted and line.endswith("=") else line + lines[at][1:]
            at += 1
        name, _, words = line.partition(":")
        kind, *parameters = name.split(";")
        kind = kind.rpartition(".")[2].upper()
        if kind in ("BEGIN", "END"):
            writer.gap()
            continue
        if not words or kind in ("VERSION", "PRODID", "CALSCALE") or _BINARY.search(name) or words.startswith("data:"):
            continue
        if quoted:
            charset = next((p[8:] for p in parameters if p.upper().startswith("CHARSET=")), "utf-8")
            words = decode(quopri.decodestring(words.encode("utf-8")), charset)[0]
        elif kind in ("N", "ADR", "ORG"):
            words = " ".join(filter(None, re.split(r"(?<!\\);", words)))
        words = re.sub(r"\\(.)", lambda m: " " if m[1] in "nN" else m[1], words)
        shown = next((p.partition("=")[2].strip('"') for p in parameters if p.upper().startswith("CN=")), "")
        writer.line(f"{kind}: {shown + ' ' if shown else ''}{' '.join(words.split())}", locator(line=begin))
    yield written(writer, "calendar", metadata=metadata)


def read_table(source: Source) -> Iterator[Parsed | Problem]:
    text, metadata = source.text()
    first, _, rest = text.partition("\n")
    forced = ""
    if first.lower().startswith("sep=") and len(first.strip()) <= 5:
        forced, text = first.strip()[4:] or "\t", f"\n{rest}"
    delimiter = forced or ("\t" if source.suffix in (".tsv", ".tab") and "\t" in text else find_delimiter(text))
    csv.field_size_limit(_FIELD)
    try:
        rows, opened = _rows(text, delimiter)
    except csv.Error as exc:
        raise ReadError(
            f"It cannot be read as a table: {exc}", "Give it the suffix .txt to have it read as text"
        ) from exc
    for number in opened:
        reason = "A quote opens here and is not closed: its line was read without quotes"
        yield Problem(reason, "Close it", number, loses=False)
    parts: list[str] = []
    places: list[Place] = []
    position = 0
    for number, row in enumerate(rows, 1):
        line = " ".join(CELLS.join(trimmed(row)).split())
        if line:
            places.append(Place(position, locator(row=number)))
        parts.append(line + "\n")
        position += len(line) + 1
    whole = "".join(parts)
    filled = [index for index, row in enumerate(rows) if any(row)]
    header = find_header([rows[index] for index in filled])
    tables: tuple[Table, ...] = ()
    if header >= 0:
        index = filled[header]
        start = sum(map(len, parts[:index]))
        tables = (Table(start, start + len(parts[index]), len(whole), parts[index].strip()),)
    outline = Outline(blocks=(Span(0, len(whole)),) if whole.strip() else (), tables=tables)
    yield Parsed(whole, "table", outline, metadata=metadata, places=tuple(places))


def _rows(text: str, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """The rows, and the numbers of the lines whose quote is never closed, which would take in the lines behind it."""
    lines = io.StringIO(text, newline="").readlines()
    found: list[list[str]] = []
    opened: list[int] = []
    at = 0
    while at < len(lines):
        begin = at
        reader = csv.reader(lines[begin:], delimiter=delimiter, skipinitialspace=True)
        for row in reader:
            last, at = at, begin + reader.line_num
            if at - last > 1 and len(opened) < _MOST_OPEN and _is_open(lines[last:at], delimiter):
                opened.append(last + 1)
                at = last + 1
                (row,) = csv.reader(lines[last:at], delimiter=delimiter, quoting=csv.QUOTE_NONE)
                found.append([" ".join(cell.strip(' "').split()) for cell in row])
                break
            found.append([" ".join(cell.split()) for cell in row])
    return found, opened


def _is_open(lines: list[str], delimiter: str) -> bool:
    """Whether the quoted cell of one row never ends, or ends before other words."""
    try:
        list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True))
    except csv.Error:
        return True
    return False


def is_table(text: str) -> bool:
    """Whether a text of no certain kind is a table: its first lines are all cut by the same number of tabs."""
    whole = text.split("\n", _TOLD_BY)[:_TOLD_BY]
    counts = [line.count("\t") for line in whole if line.strip()]
    return len(counts) >= _FEWEST_LINES and min(counts) > 0 and min(counts) == max(counts)


def find_delimiter(text: str) -> str:
    """The sign that cuts the first lines into the same number of cells, more than one; a comma where none does."""
    sample = text[: 1 << 16]
    best, score = ",", 0.0
    for sign in _DELIMITERS:
        try:
            lines = islice(csv.reader(io.StringIO(sample), delimiter=sign), _LOOKED_AT)
            widths = [len(row) for row in lines if row]
        except csv.Error:
            continue
        if widths and max(widths) > 1:
            usual = max(set(widths), key=lambda width: (widths.count(width), width))
            found = widths.count(usual) / len(widths) + min(usual, 50) / 1000 if usual > 1 else 0.0
            if found > score:
                best, score = sign, found
    return best


TABLE = Reader("table", read_table, frozenset({".csv", ".tsv", ".tab", ".psv"}))
TEXT = Reader("text", _text, frozenset({".txt", ".text", ".rst", ".rest", ".log"}))
MARKDOWN = Reader("markdown", _markdown, frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"}))
LATEX = Reader("latex", _latex, frozenset({".tex", ".latex", ".ltx"}))
ORG = Reader("org", _org, frozenset({".org"}))
ASCIIDOC = Reader("asciidoc", _asciidoc, frozenset({".adoc", ".asciidoc"}))
CALENDAR = Reader(
    "calendar",
    _calendar,
    frozenset({".ics", ".vcf", ".vcs", ".ifb"}),
    sniff=lambda head: head.lstrip().upper().startswith((b"BEGIN:VCALENDAR", b"BEGIN:VCARD")),
)
SUBTITLES = Reader("subtitles", _subtitles, frozenset({".srt", ".vtt"}))
