"""The line that says in a notebook how far long work is."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import workbench as wb
from workbench.notebook.progress import ProgressLine
from workbench.records import Progress


def drawn(reports: list[tuple[float, Progress]]) -> list[str]:
    lines: list[str] = []
    clock = SimpleNamespace(now=0.0)
    line = ProgressLine(lines.append, every=0.25, clock=lambda: clock.now)
    for clock.now, report in reports:
        line(report)
    return lines


def test_the_line_says_what_took_long_and_what_is_at_work() -> None:
    """A quick step leaves nothing, a long one its seconds; thousands are told apart; no total, no `of`."""
    assert drawn(
        [
            (0.0, Progress("walk", 12, 0)),
            (0.1, Progress("read", 3, 1_200, seconds_left=14.2)),
            (2.1, Progress("embed", 1_000, 2_019, seconds_left=0.4)),
        ]
    ) == ["walk 12", "read 3 of 1,200 (14 s left)", "read 2.0 s, embed 1,000 of 2,019"]


def test_in_a_notebook_one_output_changes_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    display = pytest.importorskip("IPython.display", reason="needs the extra notebooks: pip install ipykernel")
    sent: list[tuple[str, Any]] = []
    handle = SimpleNamespace(update=lambda data, raw: sent.append(("update", data["text/plain"])))
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr(display, "display", lambda data, **kw: sent.append(("display", kw["display_id"])) or handle)
    line = wb.progress_line()
    line(Progress("embed", 1, 2))
    line(Progress("embed", 2, 2))
    assert sent == [("display", True), ("update", "embed 1 of 2"), ("update", "embed 2 of 2")]


def test_on_a_terminal_it_overwrites_itself_and_elsewhere_it_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    wb.progress_line()(Progress("embed", 1, 2))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    line = wb.progress_line()
    line(Progress("embed", 1, 2))
    line(Progress("embed", 2, 2))
    assert capsys.readouterr().err == "\r\x1b[Kembed 1 of 2\r\x1b[Kembed 2 of 2"
