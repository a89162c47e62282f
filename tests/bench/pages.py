"""The app in a browser: how long the first page takes, and a slider from the key press to the painted page.

Measured from outside: `workbench app` runs as its own process, a headless Chromium opens the Search page with four columns of
twenty results, and the page itself takes the time between the key and the frame that shows the changed column.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from serving import serving

from bench.corpora import BenchCorpus, Source
from bench.figures import Figure, Row
from bench.ground import Ground
from workbench.corpus import open_corpus
from workbench.errors import UsageError
from workbench.records import EncoderIdentity, Progress

FIRST, SLIDER = "ui.first", "ui.slider"
KEYS = (FIRST, SLIDER)
PRESSES, FIRST_PAGES = 51, 3
PATIENCE = 180_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
RUNNING = '[data-testid="stApp"][data-test-script-state="notRunning"]'
COLUMN = 'section[aria-label="Hybrid results"]'
WATCH = """(name) => {
  window.times = [];
  let pressed = 0, last = document.querySelector(name);
  document.addEventListener("keydown", () => { pressed = performance.now(); }, true);
  new MutationObserver(() => {
    const now = document.querySelector(name);
    if (!now || now === last) return;
    last = now;
    const start = pressed;
    requestAnimationFrame(() => {
      const painted = new MessageChannel();
      painted.port1.onmessage = () => window.times.push(performance.now() - start);
      painted.port2.postMessage(0);
    });
  }).observe(document.body, {subtree: true, childList: true});
}"""


def given(folder: Path) -> BenchCorpus:
    """A corpus that is there already, of any size, as something to measure the pages on. Raises WorkbenchError."""
    with open_corpus(folder) as corpus:
        info = corpus.info()
    encoders = [EncoderIdentity(**held) for held in info["encoders"]]
    identity = encoders[0] if encoders else EncoderIdentity("", "", "", 0, 0)
    name = f"the {info['records']:,} passages of {folder}"
    source = Source(name, str(info["digest"]), "", identity, int(info["records"]), lambda: iter(()))
    return BenchCorpus(source, folder, folder, 0.0, 0.0)


def pages(ground: Ground) -> tuple[Row, ...]:
    """The first page and the slider on the ground's corpus."""
    question = ground.questions[0].typed
    with browser() as chromium, serving(ground.built.folder, ground.built.folder, {}) as address:
        first = [_first_page(chromium, address) for _ in range(FIRST_PAGES)]
        slider = _presses(chromium, address, question, ground)
    cold = "A new visitor each time; the server runs, the first of them finds it cold"
    note = (
        f"Four columns of 20 results for {question!r}; the slider is fusion.k of the preset rrf, {len(slider)} presses"
    )
    title = "app: first page, from the address to the question box"
    return (
        Row(FIRST, title, "s", Figure.of(first), at_most=3, notes=(cold,)),
        Row(SLIDER, "app: slider, from the key press to the painted page", "ms", Figure.of(slider), at_most=150,
            notes=(note,)),
    )  # fmt: skip


def _first_page(browser: Any, address: str) -> float:
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        started = time.perf_counter()
        page.goto(address, timeout=PATIENCE)
        page.locator('input[aria-label="Query"]').wait_for(timeout=PATIENCE)
        return time.perf_counter() - started


def _presses(browser: Any, address: str, query: str, ground: Ground) -> list[float]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{address}/?{urlencode({'q': query, 'plan': 'rrf limit=20'})}")
    page.locator(f"{COLUMN} article").first.wait_for()
    page.wait_for_selector(RUNNING, state="attached")
    page.locator(".st-key-wb-w-fusion-k input[type=range]").focus()
    page.evaluate(WATCH, COLUMN)
    for n in range(PRESSES):
        page.keyboard.press("ArrowRight" if n % 2 else "ArrowLeft")
        page.wait_for_function(f"window.times.length > {n}")
        page.wait_for_selector(RUNNING, state="attached")
        ground.tell(Progress("press", n + 1, PRESSES, detail=SLIDER))
    return [float(t) for t in page.evaluate("window.times")]


@contextmanager
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as exc:
        raise UsageError("Measuring the pages needs Playwright", "Install it with pip install playwright") from exc
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    arguments = ["--no-sandbox", "--headless=new", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=arguments, timeout=PATIENCE)
        except Error as exc:
            raise UsageError(
                "Measuring the pages needs a Chromium, and none could be started",
                "Install one, for example with apt-get install chromium or playwright install chromium",
            ) from exc
        with browser:
            yield browser
