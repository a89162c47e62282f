"""Tables, progress bars and highlighted passages on a terminal.

All that a command prints goes through `console`, `say` or `print_json`: nothing that comes from a document, a path or a
query acts there, neither as Rich markup nor as an escape sequence.
"""

from __future__ import annotations

import json
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

from workbench.records import Passage, Span
from workbench.records import Progress as Report

if TYPE_CHECKING:
    import polars

# Control characters in a document must not reach the terminal: they could move the cursor, change colours or turn the line
# around. Halves of surrogate pairs (arguments that are not UTF-8) cannot be written at all.
_CONTROLS = dict.fromkeys(
    (*range(9), *range(11, 32), *range(127, 160), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A),
     *range(0xD800, 0xE000)),
    "\N{REPLACEMENT CHARACTER}",
)  # fmt: skip


_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class _Console(Console):
    """A console whose texts hold no control character, whoever made them."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(plain(segment.text), segment.style)


def console(stderr: bool = False) -> Console:
    """A console that follows the terminal's width and colours; square brackets are text."""
    return _Console(stderr=stderr, highlight=False, soft_wrap=False, markup=False, emoji=False)


def print_json(data: Any) -> None:
    """JSON with sorted-as-given keys, readable, in UTF-8; control characters and halves of surrogate pairs are escaped."""
    text = json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False)
    click.echo(_UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def say(text: str, *, err: bool = False, nl: bool = True, raw: bool = False) -> None:
    """Print text without control characters; `raw`: as it is, unless a terminal reads it."""
    stream = sys.stderr if err else sys.stdout
    click.echo(text if raw and not stream.isatty() else plain(text), err=err, nl=nl)


def show(as_json: bool, data: Any, text: str) -> None:
    """One result: as JSON, or as a sentence."""
    if as_json:
        print_json(data)
    else:
        say(text)


def warn(warnings: Iterable[str], *, err: bool = False) -> None:
    out = console(stderr=err)
    for warning in warnings:
        out.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)


def plain(text: str) -> str:
    """Text without control characters but newline and tab: each is a replacement character."""
    return text.translate(_CONTROLS)


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


def counted(number: int, word: str) -> str:
    """`1 file`, `1,234 files`; `copy|copies` says the plural where it is more than an s."""
    one, _, many = word.partition("|")
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def also(copies: Sequence[str], most: int = 5) -> str:
    """The other paths of a text, the first few by name."""
    more = f" and {len(copies) - most:,} more" if len(copies) > most else ""
    return f"the same text: {', '.join(copies[:most])}{more}"


def print_passages(passages: Sequence[Passage]) -> None:
    """Passages as grep prints them: a citation, then numbered lines, matching ones marked with a colon."""
    out = console()
    for passage in passages:
        out.print(Text(one_line(passage.citation), style="bold"))
        if passage.copies:
            out.print(Text(one_line(also(passage.copies)), style="dim"), soft_wrap=True)
        offset = 0
        for number, line in enumerate(passage.text.split("\n"), passage.start_line):
            spans = [
                Span(max(m.start - offset, 0), min(m.end - offset, len(line)))
                for m in passage.matches
                if m.end > offset and m.start < offset + len(line)
            ]
            mark = ":" if number in passage.matched_lines else "-"
            out.print(Text(f"{number:>6}{mark} ", style="dim") + highlighted(line, spans), soft_wrap=True)
            offset += len(line) + 1
        out.print()


def frame_table(frame: polars.DataFrame, title: str = "", digits: int = 4) -> Table:
    """A polars frame as a rich table; numbers to the right."""
    table = Table(title=title or None, title_justify="left", header_style="bold")
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        table.add_column(name, justify="right" if dtype.is_numeric() else "left", overflow="fold")
    for row in frame.iter_rows():
        table.add_row(*(plain(_cell(value, digits)) for value in row))
    return table


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
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[detail]}", style="dim", markup=False),
    )
    tasks: dict[str, Any] = {}
    with Progress(*columns, console=out, transient=False) as bar:

        def show(report: Report) -> None:
            fields: dict[str, Any] = {
                "rate": f"{report.rate:,.0f}/s" if report.rate else "",
                "left": _left(report.seconds_left),
                "detail": plain(report.detail)[-40:],
            }
            if report.step not in tasks:
                tasks[report.step] = bar.add_task(report.step, total=report.total or None, **fields)
            bar.update(tasks[report.step], completed=report.done, total=report.total or None, **fields)

        yield show


def _left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.0f} s left" if seconds < 90 else f"{seconds / 60:.0f} min left"
