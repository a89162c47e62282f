"""The steps of an indexing run on the page."""

from __future__ import annotations

from pathlib import Path

import workbench as wb
from workbench.ui.views.corpus import STEPS


def test_every_step_of_a_run_has_its_words(tmp_path: Path) -> None:
    """The page knows each step that a run tells, and a run tells each step that the page knows."""
    (tmp_path / "docs").mkdir()
    for number in range(3):
        (tmp_path / "docs" / f"{number}.md").write_text(f"# Retry {number}\n\nRetries back off.\n")
    told: list[str] = []
    wb.index([tmp_path / "docs"], tmp_path / "c", encoder="hashing", progress=lambda p: told.append(p.step))
    assert list(dict.fromkeys(told)) == list(STEPS)
