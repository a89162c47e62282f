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
    """What a line shows of reports that come at these seconds."""
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


def test_many_reports_are_drawn_a_few_times_a_second_and_the_last_always() -> None:
    """A browser is not sent a thousand states; the count never stops short of its end."""
    reports = [(n / 1_000, Progress("embed", n, 999)) for n in range(1_000)]
    lines = drawn(reports)
    assert len(lines) <= 6
    assert lines[-1] == "embed 999 of 999"


def test_in_a_notebook_one_output_changes_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cell has one output whatever is reported; the same output is updated."""
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
    """A script whose standard error is a file gets no rubbish in it."""
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    wb.progress_line()(Progress("embed", 1, 2))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    line = wb.progress_line()
    line(Progress("embed", 1, 2))
    line(Progress("embed", 2, 2))
    assert capsys.readouterr().err == "\r\x1b[Kembed 1 of 2\r\x1b[Kembed 2 of 2"


@pytest.mark.slow
def test_indexing_and_evaluating_report_to_it(tmp_path: Any) -> None:
    """What it is for takes it, and the last report is of the end."""
    (tmp_path / "a.md").write_text("# Queues\n\nJobs wait in a queue.\n", encoding="utf-8")
    lines: list[str] = []
    wb.index([tmp_path / "a.md"], corpus=tmp_path / "corpus", encoder="hashing", progress=ProgressLine(lines.append))
    assert lines[-1].endswith("publish 1 of 1")
