"""Tables, progress bars and highlighted passages on a terminal.

All that a command prints goes through `console`, `say`, `line` or `print_json`: nothing that comes from a document, a path or
a query acts there, neither as Rich markup nor as an escape sequence.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from workbench.errors import some_of
from workbench.records import Passage, Span
from workbench.records import Progress as Report

if TYPE_CHECKING:
    import polars

# Control characters in a document must not reach the terminal: they could move the cursor, change colours or turn the line
# around. Halves of surrogate pairs (arguments that are not UTF-8) cannot be written at all.
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_PIPE = 10_000  # columns: Rich takes 80 where there is no terminal
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f]|{_UNSEEN.pattern}")


class _Console(Console):
    """A console whose texts hold no control character, whoever made them."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(plain(segment.text), segment.style)


def console(stderr: bool = False) -> Console:
    """A console that follows the terminal's width and colours; square brackets are text. In a pipe no line is cut, so that a
    citation and its figures stay on one, and a row of a table too; COLUMNS sets a width there.
    """
    made = _Console(stderr=stderr, highlight=False, soft_wrap=False, markup=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = _PIPE
    return made


def print_json(data: Any) -> None:
    """JSON, readable, in UTF-8; control characters and halves of surrogate pairs are escaped."""
    text = json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False)
    click.echo(_UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def say(text: str, *, err: bool = False, nl: bool = True, raw: bool = False) -> None:
    """Print text without control characters; `raw`: as it is, unless a terminal reads it."""
    stream = sys.stderr if err else sys.stdout
    click.echo(text if raw and not stream.isatty() else plain(text), err=err, nl=nl)


def line(text: str | Text, style: str = "", *, err: bool = False) -> None:
    """Print one line, whole in a pipe however long it is."""
    console(stderr=err).print(Text(text, style=style) if isinstance(text, str) else text, soft_wrap=True)


def show(as_json: bool, data: Any, text: str) -> None:
    """One result: as JSON, or as a sentence."""
    if as_json:
        print_json(data)
    else:
        say(text)


def warn(warnings: Iterable[str], *, err: bool = False) -> None:
    for warning in warnings:
        line(f"warning: {warning}", "yellow", err=err)


def plain(text: str) -> str:
    """Text without control characters but newline and tab: each is a replacement character."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """Text without control characters, on one line: a path may hold line ends and tabs, which are shown as in a shell."""
    return plain(text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t"))


def highlighted(text: str, matches: Sequence[Span], most: int | None = None) -> Text:
    """A passage with its matches in bold; cut near the first match when longer than `most` characters."""
    start, end = 0, len(text)
    if most is not None and len(text) > most:
        first = matches[0].start if matches else 0
        start = max(0, min(first - most // 4, len(text) - most))
        end = start + most
    shown = Text(plain(text[start:end]))
    for match in matches:
        low, high = max(match.start, start), min(match.end, end)
        if low < high:
            shown.stylize("bold reverse", low - start, high - start)
    if start:
        shown = Text("…") + shown
    return shown + Text("…") if end < len(text) else shown


def print_passages(passages: Sequence[Passage]) -> None:
    """Passages as grep prints them: a citation, then numbered lines, matching ones marked with a colon."""
    for passage in passages:
        line(one_line(passage.citation), "bold")
        if passage.copies:
            line(one_line("the same text: " + some_of(passage.copies, 5)), "dim")
        offset = 0
        for number, text in enumerate(passage.text.split("\n"), passage.start_line):
            spans = [
                Span(max(m.start - offset, 0), min(m.end - offset, len(text)))
                for m in passage.matches
                if m.end > offset and m.start < offset + len(text)
            ]
            mark = ":" if number in passage.matched_lines else "-"
            line(Text(f"{number:>6}{mark} ", style="dim") + highlighted(text, spans))
            offset += len(text) + 1
        line("")


def table(
    head: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "", *, right: Sequence[str] = (), digits: int = 4
) -> Table:
    """A table of rows; columns named in `right` are of numbers, whose fractions have `digits`."""
    made = Table(title=Text(title) if title else None, title_justify="left", header_style="bold")
    for name in head:
        made.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(value if isinstance(value, Text) else plain(_cell(value, digits)) for value in row))
    return made


def print_frame(frame: polars.DataFrame, title: str = "", digits: int = 4) -> None:
    """A polars frame as a table; numbers to the right."""
    numbers = [name for name, dtype in frame.schema.items() if dtype.is_numeric()]
    console().print(table(frame.columns, frame.iter_rows(), title, right=numbers, digits=digits))


def _cell(value: Any, digits: int) -> str:
    if value is None:
        return ""
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)


@contextmanager
def progress_bar(enabled: bool = True) -> Iterator[Callable[[Report], None]]:
    """A progress bar for each step, with rate and time left; on a terminal only, and on standard error."""
    out = console(stderr=True)
    if not enabled or not out.is_terminal:
        yield lambda report: None
        return
    texts = ("{task.fields[rate]}", "{task.fields[left]}")
    detail = TextColumn("{task.fields[detail]}", style="dim", markup=False)
    name = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), name, BarColumn(), MofNCompleteColumn(), *map(TextColumn, texts), detail)
    tasks: dict[str, Any] = {}
    with Progress(*columns, console=out, transient=False) as bar:

        def show(report: Report) -> None:
            fields: dict[str, Any] = {
                "rate": f"{report.rate:,.0f}/s" if report.rate else "",
                "left": report.left,
                "detail": plain(report.detail)[-40:],
            }
            if report.step not in tasks:
                tasks[report.step] = bar.add_task(report.step, total=report.total or None, **fields)
            bar.update(tasks[report.step], completed=report.done, total=report.total or None, **fields)

        yield show
