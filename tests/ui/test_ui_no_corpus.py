"""Before there is a corpus, every page says how to make one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from app_for_tests import all_text, go, run
from streamlit.testing.v1 import AppTest

Open = Callable[..., AppTest]


def test_the_search_page_says_what_to_run(open_app: Open, tmp_path: Path) -> None:
    """No trace, no empty page: the command to type, with the folder that the app looks at."""
    at = open_app(tmp_path / "none", q="retries")
    assert "There is no corpus yet" in all_text(at)
    assert f"workbench index PATH-TO-YOUR-FILES --corpus {tmp_path / 'none'}" in at.code[0].value


@pytest.mark.parametrize("allowed", [True, False])
def test_whoever_may_index_is_led_to_the_page_that_does(
    open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    """No terminal is needed for a first corpus, where the app may start a run."""
    monkeypatch.setenv("WORKBENCH_APP_INDEXING", "yes" if allowed else "no")
    at = open_app(tmp_path / "none")
    assert [link.proto.page for link in at.get("page_link")] == (["corpus"] if allowed else [])
    assert "in a terminal" in all_text(at)


def test_looking_again_runs_again(open_app: Open, tmp_path: Path) -> None:
    """The button is enough once the corpus is there; the query in the address is kept meanwhile."""
    at = open_app(tmp_path / "none", q="retries")
    at.button(key="wb.w.look-again").click()
    run(at)
    assert at.query_params == {"q": "retries"}


@pytest.mark.parametrize("page", ["document", "guide"])
def test_the_other_pages_run_too(open_app: Open, tmp_path: Path, page: str) -> None:
    """The guide needs no corpus; the document page says how to make one."""
    at = open_app(tmp_path / "none")
    go(at, page)
    run(at)
    assert ("no corpus yet" in all_text(at)) is (page == "document")
