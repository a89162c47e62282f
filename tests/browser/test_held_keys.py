"""A slider under a key that is held, and under ten quick presses, beside a judged set whose figure is being retrieved.

Once each in the suite; WORKBENCH_PRESSES=20 does it twenty times.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from serving import serving
from visiting import expect, is_error, prepared, settled

import workbench as wb
from workbench.judgments.exchange import import_judgments

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TIMES = int(os.environ.get("WORKBENCH_PRESSES", "1"))
PRESSES = 10
WORDS = "lamp bridge river copper signal garden window ladder copper engine harbour meadow pencil violin tunnel".split()


class App(NamedTuple):
    """A server's address, and what it printed so far."""

    address: str
    log: list[str]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """A corpus of some hundred files with forty judged queries: their retrieval is on while keys are pressed."""
    folder = tmp_path_factory.mktemp("pressed")
    (folder / "files").mkdir()
    rows = ["query_id,query,document,grade"]
    for n in range(160):
        a, b, c = (WORDS[(n * k + k) % len(WORDS)] for k in (1, 4, 7))
        text = "\n\n".join(f"The {a} {k} beside the {b}, and the {c} number {n} once more." for k in range(12))
        (folder / "files" / f"f{n:03}.md").write_text(f"# {a} {b}\n\n{text}\n")
        rows += [f"q{n},the {a} beside the {b} number {n},f{n:03}.md,1"] if n < 40 else []
    (folder / "judged.csv").write_text("\n".join(rows) + "\n")
    wb.index([folder / "files"], corpus=folder / "corpus", encoder="hashing", workers=0)
    with wb.open_corpus(folder / "corpus") as corpus:
        import_judgments(corpus.judging, folder / "judged.csv", "pressed")
    log: list[str] = []
    with serving(folder / "corpus", tmp_path_factory.mktemp("elsewhere"), {}, log=log) as address:
        yield App(address, log)


def held(page: Any) -> None:
    """A key that stays down repeats."""
    for _ in range(PRESSES):
        page.keyboard.down("ArrowLeft")
    page.keyboard.up("ArrowLeft")


def quick(page: Any) -> None:
    """Presses as fast as fingers."""
    for _ in range(PRESSES):
        page.keyboard.press("ArrowLeft", delay=40)


ANSWERED = {"": ".wb-column article", "explain": ".js-plotly-plot .main-svg", "tune": ".wb-live"}


@pytest.mark.parametrize("name", ANSWERED)
def test_ten_moves_within_a_second_are_all_answered(browser: Any, app: App, name: str, tmp_path: Path) -> None:
    before = len(app.log)
    for how in (held, quick) * TIMES:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = prepared(context)
        errors: list[str] = []
        page.on("console", lambda said, errors=errors: errors.append(said.text) if is_error(said) else None)
        page.goto(f"{app.address}/{name}?q=the+copper+bridge&plan=tmm")
        expect(page.locator(ANSWERED[name]).first).to_be_visible()
        handle = page.locator(".st-key-wb-w-fusion-alpha input[type=range]")
        handle.focus()
        how(page)
        page.wait_for_url(lambda url: "fusion.alpha%3D0.7" in url)
        figure = page.locator('.wb-live[role="status"]')
        expect(figure).to_contain_text(re.compile(r"nDCG@10 \d"))
        settled(page)
        page.keyboard.press("ArrowRight")
        page.wait_for_url(lambda url: "fusion.alpha%3D0.71" in url)
        expect(page.locator(".wb-plan-label")).to_have_text("tmm + 1 change")
        settled(page)
        expect(handle).to_be_focused()
        if name == "":
            expect(page.get_by_text("How ranks moved")).to_be_visible()
        assert page.locator(".stException, .wb-alert").count() == 0
        page.screenshot(path=tmp_path / f"{name or 'search'}-{how.__name__}.png")
        assert errors == []
        assert page.foreign == []
        context.close()
    assert [line for line in app.log[before:] if re.search("error|exception|traceback|warn", line, re.I)] == []
