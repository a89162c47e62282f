"""A server of the app on a small corpus, and Debian's chromium: for the journeys."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import serving
from visiting import prepared

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox", "--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; skips where it is missing. Its first start is slow.

    It ends with the module: Playwright keeps an event loop running in this thread, and tests of other servers need their own.
    """
    if not Path(CHROMIUM).exists():
        pytest.skip(f"needs Debian's chromium at {CHROMIUM}: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    with playwright.sync_playwright() as p:
        started = p.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, timeout=120_000)
        yield started
        started.close()


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small corpus of the page tests."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))
    try:
        from app_for_tests import write_corpus
    finally:
        sys.path.pop(0)
    return write_corpus(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="session")
def server(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the app, started as `workbench app` starts it, from a folder that has nothing to do with it. It prints nothing
    while the journeys are made.
    """
    log: list[str] = []
    with serving(corpus, tmp_path_factory.mktemp("elsewhere"), {}, log=log) as address:
        begun = len(log)
        yield address
    # What was pressed on a page that was replaced meanwhile is nobody's fault, and Streamlit says so.
    assert [line for line in log[begun:] if line.strip() and "does not exist anymore" not in line] == []


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of a person of their own, 1280 pixels wide; it may speak to this machine only, and never shows a dialog."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield prepared(context)
    context.close()
