"""Journeys through the Search page in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from visiting import expect, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow]

COLUMNS = ("Grep", "Keyword", "Vector", "Hybrid")
QUERY = "retry request"


def open_search(page: Any, server: str, **params: str) -> None:
    """Open the page and wait until its last column is there."""
    page.goto(f"{server}/?{urlencode(params)}")
    expect(page.get_by_role("region", name=f"{COLUMNS[-1]} results")).to_be_visible()
    settled(page)


SECTIONS = {"depth": "Depth", "keyword": "Keyword: BM25", "grep": "Grep", "neighbours": "The list of results"}


def slider(page: Any, name: str) -> Any:
    """The handle of a plan field's slider; its section is opened first where it starts closed."""
    handle = page.locator(f".st-key-wb-w-{name.replace('.', '-')} input[type=range]")
    section = SECTIONS.get(name.partition(".")[0])
    if section is not None and not handle.count():
        page.locator('[data-testid="stSidebar"] summary').filter(has_text=section).click()
    expect(handle).to_be_attached()
    return handle


def chunks(page: Any, column: str) -> list[str]:
    cards = page.get_by_role("region", name=f"{column} results").locator("article")
    return [str(c.get_attribute("data-chunk")) for c in cards.all()]


def address(page: Any) -> dict[str, str]:
    return {n: v[0] for n, v in parse_qs(urlsplit(page.url).query).items()}


def test_a_question_is_answered_four_ways(page: Any, server: str, tmp_path: Path) -> None:
    """Type, press Enter, see four columns; the tab's address is a link to this page; nothing left this machine."""
    page.goto(server)
    box = page.get_by_role("searchbox", name="Query").or_(page.get_by_role("textbox", name="Query"))
    expect(box).to_be_visible()
    page.keyboard.press("/")
    expect(box).to_be_focused()
    page.keyboard.type(QUERY)
    page.keyboard.press("Enter")
    for name in COLUMNS:
        expect(page.get_by_role("region", name=f"{name} results").locator("article").first).to_be_visible()
    expect(page.locator("mark").first).to_be_visible()
    page.wait_for_url(lambda url: "q=retry+request" in url or "q=retry%20request" in url)
    page.screenshot(path=tmp_path / "four.png")
    lefts = [page.get_by_role("region", name=f"{n} results").bounding_box()["x"] for n in COLUMNS]
    assert lefts == sorted(lefts)
    assert len(set(lefts)) == 4
    assert page.foreign == []


MOVES = [
    ("limit", "ArrowLeft", "default", "Hybrid"),
    ("fusion.k", "ArrowLeft", "rrf", "Hybrid"),
    ("keyword.k1", "ArrowRight", "default", "Keyword"),
]


def test_each_slider_moves_its_column(page: Any, server: str) -> None:
    """One key press: the shown scores or the number of cards change, and the address says the new setting."""
    for name, key, plan, title in MOVES:
        open_search(page, server, q=QUERY, plan=plan)
        column = page.get_by_role("region", name=f"{title} results")
        before = column.text_content()
        handle = slider(page, name)
        handle.focus()
        page.keyboard.press(key)
        page.wait_for_url(lambda url, name=name: f"{name}%3D" in url)
        expect(column).not_to_have_text(before)
        settled(page)
        expect(handle).to_be_focused()


def test_a_link_restores_the_page_and_the_back_button_undoes(page: Any, server: str, browser: Any) -> None:
    """Another person with the same link sees the same cards; back takes the last move back."""
    open_search(page, server, q=QUERY)
    first = chunks(page, "Hybrid")
    hybrid = page.get_by_role("region", name="Hybrid results")
    before = hybrid.text_content()
    handle = slider(page, "fusion.weights.keyword")
    handle.focus()
    page.keyboard.press("Home")
    page.wait_for_url(lambda url: "fusion.weights.keyword%3D0" in url)
    expect(hybrid).not_to_have_text(before)
    settled(page)
    shown = [page.get_by_role("region", name=f"{n} results").text_content() for n in COLUMNS]
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    other = context.new_page()
    other.goto(page.url)
    expect(other.get_by_role("region", name="Hybrid results").locator("article").first).to_be_visible()
    settled(other)
    assert [other.get_by_role("region", name=f"{n} results").text_content() for n in COLUMNS] == shown
    context.close()
    page.go_back()
    page.wait_for_url(lambda url: "weights" not in url)
    settled(page)
    expect(page.get_by_role("region", name="Hybrid results").locator("article").first).to_have_attribute(
        "data-chunk", first[0]
    )
    assert chunks(page, "Hybrid") == first


def test_a_narrow_screen_stacks_the_columns(browser: Any, server: str, tmp_path: Path) -> None:
    """At 390 pixels nothing is wider than the screen, and columns stand one below the other."""
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
    page = context.new_page()
    open_search(page, server, q=QUERY, plan="default limit=3")
    boxes = [page.get_by_role("region", name=f"{n} results").bounding_box() for n in COLUMNS]
    assert len({round(b["x"]) for b in boxes}) == 1
    assert [b["y"] for b in boxes] == sorted(b["y"] for b in boxes)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.screenshot(path=tmp_path / "narrow.png")
    context.close()


def test_a_citation_is_copied_and_opens_the_document(page: Any, server: str, browser: Any) -> None:
    """The button puts `path:start-end` on the clipboard; the link opens those lines in a tab of its own."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_search(page, server, q="kettle boils")
    card = page.get_by_role("region", name="Keyword results").locator("article").first
    card.get_by_role("button", name="Copy the citation").click()
    expect(card.get_by_text("Copied")).to_be_visible()
    citation = page.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(r"kettle\.md:\d+-\d+", citation)
    with page.context.expect_page() as opened:
        card.get_by_role("link", name=citation).click()
    document = opened.value
    expect(document.locator(".wb-target").first).to_be_visible()
    assert "Fill the kettle" in document.locator(".wb-doc").text_content()
    assert page.url.endswith("q=kettle+boils")


def test_hostile_text_does_nothing(page: Any, server: str) -> None:
    """A document full of markup runs no script, loads nothing and opens no dialog, in cards and in the document."""
    open_search(page, server, q="hostile pelican", keywords="pelican", picture="ranks")
    expect(page.get_by_text("<img src=x onerror=alert(3)>").first).to_be_visible()
    page.goto(f"{server}/document?path=hostile.md")
    expect(page.locator(".wb-doc")).to_contain_text("<script>alert(1)</script>")
    assert page.foreign == []
    assert page.locator(".wb-doc script, .wb-doc img").count() == 0


def test_every_picture_appears_and_follows_a_slider(page: Any, server: str, tmp_path: Path) -> None:
    """It is drawn over the columns, and the columns stay usable beside it."""
    for picture in ("ranks", "distances", "timings"):
        # What was asked a moment ago has a kept answer, and takes no time: nothing to draw.
        open_search(page, server, q="a request after a pause" if picture == "timings" else QUERY, picture=picture)
        chart = page.locator(".js-plotly-plot .main-svg").first
        expect(chart).to_be_visible()
        handle = slider(page, "limit")
        handle.focus()
        page.keyboard.press("ArrowLeft")
        expect(page.get_by_role("region", name="Hybrid results").locator("article")).to_have_count(9)
        expect(chart).to_be_visible()
        settled(page)
        page.screenshot(path=tmp_path / f"{picture}.png")


def test_back_goes_from_page_to_page_with_the_search(page: Any, server: str) -> None:
    """Each page is one step of the browser's history, and the search is on every one of them, and in the tab's name."""
    open_search(page, server, q=QUERY, plan="default limit=7")
    for name in ("Tune", "Corpus", "Compare"):
        page.get_by_test_id("stTopNav").get_by_role("link", name=name).click()
        page.wait_for_url(lambda url, name=name: f"/{name.lower()}?" in url and "q=retry" in url)
        settled(page)
        expect(page).to_have_title(f"{QUERY} · {name} · Retrieval workbench")
    for path, name in (("/corpus", "Corpus"), ("/tune", "Tune"), ("/", "Search")):
        page.go_back()
        page.wait_for_url(lambda url, path=path: urlsplit(url).path == path)
        # The page's run has come; a step before that would be undone by it.
        expect(page).to_have_title(f"{QUERY} · {name} · Retrieval workbench")
        settled(page)
        assert address(page) == {"q": QUERY, "plan": "default limit=7"}
    expect(page.get_by_role("region", name=f"{COLUMNS[-1]} results").locator("article")).to_have_count(7)
