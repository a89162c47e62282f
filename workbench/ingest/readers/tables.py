"""Tables as text (CSV, TSV): a line of the text a row of the file, so that line, row and citation are one number.

The delimiter is told from the first lines (comma, semicolon, tab, bar), the header by its look; a chunk of rows is given the
header as context. A place is the row, `row=12`, counted as records and not as lines: a quoted cell may hold line ends, which
become spaces.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice

from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.outline import CELLS, Outline, Table, find_header, trimmed
from workbench.ingest.readers.base import Parsed, Reader, Source
from workbench.locators import Place, locator
from workbench.records import Span

_DELIMITERS = ",;\t|"
_LOOKED_AT = 100
_TOLD_BY, _FEWEST_LINES = 20, 4
_FIELD = 16 << 20


def read(source: Source) -> Iterator[Parsed | Problem]:
    """Read a table."""
    text, metadata = source.text()
    first, _, rest = text.partition("\n")
    forced = ""
    if first.lower().startswith("sep=") and len(first.strip()) <= 5:
        forced, text = first.strip()[4:] or "\t", f"\n{rest}"
    delimiter = forced or ("\t" if source.suffix in (".tsv", ".tab") and "\t" in text else find_delimiter(text))
    csv.field_size_limit(_FIELD)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        rows = [[" ".join(cell.split()) for cell in row] for row in lines]
    except csv.Error as exc:
        raise ReadError(
            f"It cannot be read as a table: {exc}", "Give it the suffix .txt to have it read as text"
        ) from exc
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
    yield Parsed(whole, "table", _shape(whole, parts, rows), metadata=metadata, places=tuple(places))


def is_table(text: str) -> bool:
    """Whether a text of no certain kind is a table: its first lines are all cut by the same number of tabs."""
    whole = text.split("\n", _TOLD_BY)[:_TOLD_BY]
    counts = [line.count("\t") for line in whole if line.strip()]
    return len(counts) >= _FEWEST_LINES and min(counts) > 0 and min(counts) == max(counts)


READER = Reader("table", read, frozenset({".csv", ".tsv", ".tab", ".psv"}))


def _shape(whole: str, parts: list[str], rows: list[list[str]]) -> Outline:
    filled = [index for index, row in enumerate(rows) if any(row)]
    header = find_header([rows[index] for index in filled])
    block = (Span(0, len(whole)),) if whole.strip() else ()
    if header < 0:
        return Outline(blocks=block)
    index = filled[header]
    start = sum(map(len, parts[:index]))
    table = Table(start, start + len(parts[index]), len(whole), parts[index].strip())
    return Outline(blocks=block, tables=(table,))


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
