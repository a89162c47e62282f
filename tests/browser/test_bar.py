"""The bar and the navigation on every page: at one place, in one tab, and readable in both themes, also on a phone."""

from __future__ import annotations

from typing import Any

import pytest
from visiting import expect, is_error, prepared, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow]
# Of Streamlit's own file uploader.
OPTIONS = {"resultTypes": ["violations"], "rules": {"presentation-role-conflict": {"enabled": False}}}
PAGES = ("Explain", "Judge", "Query sets", "Tune", "Compare", "Snapshots", "Document", "Corpus", "Guide", "Search")
PLACES = """() => [".stAppHeader a", ".wb-corpus", ".st-key-wb-w-undo"].flatMap(
  (name) => [...document.querySelectorAll(name)].map((e) => Math.round(e.getBoundingClientRect().x)))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_bar_never_moves_and_every_page_can_be_read(browser: Any, server: str, scheme: str) -> None:
    """From page to page by the navigation: what axe-core finds, where the bar is, and that the search comes along."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page, errors = prepared(context), []
    page.on("console", lambda said: errors.append(said.text) if is_error(said) else None)
    page.goto(f"{server}/?q=retry+request&plan=default+limit%3D5")
    expect(page.locator(".wb-column article").first).to_be_visible()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    settled(page)
    first = page.evaluate(PLACES)
    for name in PAGES:
        page.get_by_test_id("stTopNav").get_by_role("link", name=name, exact=True).click()
        expect(page.locator("h1 + h2")).to_contain_text(name)
        settled(page)
        assert page.evaluate(PLACES) == first, name
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            found = axe.run(page, options=OPTIONS).response["violations"]
            assert [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in found] == [], (name, width)
    page.locator(".wb-why").first.click()
    page.wait_for_url(lambda url: "/explain" in url and "limit%3D5" in url)
    assert len(context.pages) == 1
    assert page.foreign == errors == []
    context.close()
