"""The pictures of the guide, taken of the app on the sample corpus: `make pictures`. Needs chromium and the model.

The picture of the notebook is not among them; it is taken by hand.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from conftest import ARGUMENTS, CHROMIUM
from playwright.sync_api import sync_playwright
from serving import serving
from visiting import choose, expect, prepared, settled

import workbench as wb
from workbench.judgments.exchange import import_judgments

ROOT = Path(__file__).parents[2]
TO = ROOT / "workbench" / "guide" / "pictures"
QUERY = "how do retries work"
EYES = {"WORKBENCH_TENANT": "acme", "WORKBENCH_ROLES": "admin,support"}


def articles(page: Any) -> None:
    expect(page.locator("section.wb-column article").first).to_be_visible()


def charts(page: Any) -> None:
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()


def judged(page: Any) -> None:
    choose(page, "Query set", "sample", exact=False)
    page.get_by_role("button", name="Start judging").click()
    expect(page.get_by_label("Passage to judge")).to_be_visible()


def pressed(button: str) -> Callable[[Any], None]:
    def press(page: Any) -> None:
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("heading", name="Result")).to_be_visible(timeout=120_000)
        charts(page)

    return press


def saved(page: Any) -> None:
    for title in ("Retries before the new rules", "Asked by support"):
        page.get_by_role("textbox", name="Note").fill(title)
        page.get_by_role("button", name="Save snapshot").click()
        expect(page.get_by_role("radio", name=title)).to_be_visible()
        settled(page)


def nothing(page: Any) -> None:
    settled(page)


PLANS = "default\nrrf\ndefault sources=keyword\ndefault sources=vector"
Picture = tuple[str, str, dict[str, str], str, tuple[int, int], Callable[[Any], None]]
PICTURES: tuple[Picture, ...] = (
    ("search-light", "", {"q": QUERY, "picture": "ranks"}, "light", (1280, 900), charts),
    ("search-dark", "", {"q": QUERY, "picture": "ranks"}, "dark", (1280, 900), charts),
    ("search-phone", "", {"q": QUERY, "columns": "hybrid"}, "light", (390, 844), articles),
    ("explain-light", "explain", {"q": QUERY, "target": "src/backoff.py"}, "light", (1280, 900), charts),
    ("document-dark", "document", {"q": QUERY, "path": "kb/retries.md"}, "dark", (1280, 700), nothing),
    ("corpus-dark", "corpus", {}, "dark", (1280, 785), nothing),
    ("compare-light", "compare", {"plans": PLANS}, "light", (1280, 900), charts),
    ("tune-dark", "tune", {"plan": "rrf"}, "dark", (1280, 960), pressed("Run the sweep")),
    ("snapshots-light", "snapshots", {"q": QUERY}, "light", (1280, 720), saved),
    ("judge-light", "judge", {}, "light", (1280, 740), judged),
    ("judge-phone", "judge", {}, "light", (390, 844), judged),
)


def main() -> None:
    chosen = [p for p in PICTURES if p[0] in sys.argv[1:] or len(sys.argv) == 1]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        sample = ROOT / "data" / "sample"
        (corpus / "corpus.yaml").write_bytes((sample / "corpus.yaml").read_bytes())
        wb.index([sample / "files"], corpus=corpus)
        with wb.open_corpus(corpus, principal=wb.Principal("acme", ("admin", "support"))) as opened:
            import_judgments(opened.judging, sample, "sample")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        with serving(corpus, Path(folder), EYES) as address:
            for name, page_name, params, scheme, (width, height), ready in chosen:
                context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
                page = prepared(context)
                page.goto(f"{address}/{page_name}?{urlencode(params)}")
                page.wait_for_function("!!window.__workbenchPages")
                settled(page)
                ready(page)
                expect(page.locator('.wb-live[role="status"]')).to_be_visible()
                settled(page)
                page.screenshot(path=TO / f"{name}.png")
                context.close()
                print(name)


if __name__ == "__main__":
    main()
