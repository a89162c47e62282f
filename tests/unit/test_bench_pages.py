"""`make bench --ui`: what it refuses, and what it says where a browser is missing. The figures are taken by hand."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
from bench import rows_pages
from bench.__main__ import bench
from bench.figures import Figure
from click.testing import CliRunner

from workbench.errors import UsageError


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of one's own."""
    import workbench as wb

    folder = tmp_path_factory.mktemp("own")
    (folder / "files").mkdir()
    for n in range(8):
        text = f"# Note {n}\n\nHow the retry of a request number {n} waits for the answer of the server.\n"
        (folder / "files" / f"{n}.md").write_text(text, encoding="utf-8")
    wb.index([folder / "files"], corpus=folder / "corpus", encoder="hashing", workers=0)
    return folder / "corpus"


def call(*arguments: str) -> Any:
    return CliRunner().invoke(bench, list(arguments), standalone_mode=False)


def test_the_pages_have_rows_of_their_own(tmp_path: Path) -> None:
    """Other rows cannot be asked for with them, and a corpus of one's own is for them alone."""
    for arguments in (("--ui", "--only", "keyword"), ("--on", str(tmp_path))):
        with pytest.raises(UsageError) as raised:
            raise call(*arguments, "--rows", "100").exception
        assert raised.value.remedy


def test_without_playwright_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is imported when it is needed, and its absence is a sentence."""
    original = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("playwright"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(UsageError, match="needs Playwright"), rows_pages._browser():
        pass


def test_a_corpus_of_ones_own_is_measured_on(own: Path) -> None:
    """Its size and digest are told, as of the bench's own."""
    built = rows_pages.standing(own)
    assert built.folder == own
    assert built.source.rows > 0
    assert built.source.digest


@pytest.mark.slow
def test_the_rows_have_their_goals(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page under three seconds, the slider under 150 ms at the median."""
    from bench.ground import Ground

    monkeypatch.setattr(rows_pages, "measure", lambda *args: ([1.0, 4.0, 2.0], [100.0, 160.0, 120.0]))
    opened = Ground(rows_pages.standing(own), None, lambda _: None)
    try:
        first, slider = rows_pages.pages(opened)
    finally:
        opened.close()
    assert (first.key, slider.key) == rows_pages.KEYS
    assert first.figure == Figure.of([1.0, 4.0, 2.0])
    assert [goal.met for goal in (*first.goals, *slider.goals)] == [True, True]
