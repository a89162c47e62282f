"""In a Jupyter notebook: sliders over one search (`explorer`), and how far long work is, as one line.

`wb.explore(corpus, query)` is all that a notebook needs: the app's engine, settings and charts. ipywidgets and anywidget come
with the extra `notebooks` and are imported when an explorer is made, not before.

The line of progress is an output that changes in place, so that what stays is short and whole: a bar that a terminal draws leaves
a notebook full of its former states, and a cell that says nothing for half a minute looks dead. `progress_line()` is for
everything that takes `progress=`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from workbench.records import Progress

LEAST_SECONDS = 0.5
"""A finished step that took less is not named: the line says where the time went."""


class ProgressLine:
    """Takes reports of progress and shows them as one line.

    The line has the steps that are done and what they took, then the one at work: `read 1.2 s, embed 640 of 2,019 (12 s left)`.

    Args:
        show: Draws a text in place of the one before.
        every: Least seconds between two drawings; the last report of a step is always drawn.
    """

    def __init__(
        self, show: Callable[[str], None], *, every: float = 0.25, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._show, self._every, self._clock = show, every, clock
        self._ended: list[str] = []
        self._step = ""
        self._began = self._drawn = clock()

    def __call__(self, report: Progress) -> None:
        """Draw a report, unless one was drawn a moment ago."""
        now = self._clock()
        if report.step != self._step:
            if self._step and now - self._began >= LEAST_SECONDS:
                self._ended.append(f"{self._step} {now - self._began:.1f} s")
            self._step, self._began = report.step, now
        elif report.done != report.total and now - self._drawn < self._every:
            return
        self._drawn = now
        self._show(", ".join([*self._ended, _at_work(report)]))


def progress_line() -> ProgressLine:
    """A `progress=` for `wb.index`, `corpus.evaluate`, `corpus.sweep` and others: one line that changes in place.

    In a notebook the line is an output of the cell that calls this; on a terminal it is on standard error; where there is neither
    it is not drawn.
    """
    kernel = _kernel()
    if kernel is not None:
        return ProgressLine(_notebook_line())
    return ProgressLine(_terminal_line if sys.stderr.isatty() else lambda text: None)


def _at_work(report: Progress) -> str:
    counted = f"{report.done:,} of {report.total:,}" if report.total else f"{report.done:,}"
    return f"{report.step} {counted}" + (f" ({report.left})" if (report.seconds_left or 0) >= 1 else "")


def _kernel() -> Any:
    """The kernel of the notebook that runs this; None elsewhere. Nothing is imported that a notebook has not imported."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None)


def _notebook_line() -> Callable[[str], None]:
    from IPython import display as drawing

    shown: Any = drawing.display  # which has no types
    handle = shown({"text/plain": ""}, raw=True, display_id=True)
    return lambda text: handle.update({"text/plain": text}, raw=True)


def _terminal_line(text: str) -> None:
    """Over the line before, as far as a narrow terminal shows it."""
    sys.stderr.write(f"\r\x1b[K{text[-79:]}")
    sys.stderr.flush()
