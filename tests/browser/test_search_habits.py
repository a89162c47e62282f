"""Journeys through what a daily user does on the Search page: columns, keys, grades, notes, more like this, undo."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from visiting import choose, expect, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow]

QUERY = "retry request"


def open_search(page: Any, server: str, **params: str) -> None:
    page.goto(f"{server}/?{urlencode(params)}")
    expect(page.locator("section.wb-column article").first).to_be_attached()
    page.wait_for_function("!!window.__workbenchSend")
    settled(page)


def address(page: Any) -> dict[str, str]:
    return {n: v[0] for n, v in parse_qs(urlsplit(page.url).query).items()}


def region(page: Any, title: str) -> Any:
    return page.get_by_role("region", name=f"{title} results", exact=True)


def test_a_preset_becomes_a_column_that_the_sidebar_moves(page: Any, server: str, browser: Any) -> None:
    """Chosen on the page, moved beside the shared plan, restored from the link by somebody else."""
    open_search(page, server, q=QUERY, columns="keyword,hybrid")
    page.get_by_role("button", name="Columns").click()
    choose(page, "Column 1", "Preset tmm")
    expect(region(page, "tmm")).to_be_attached()
    page.get_by_role("button", name="Columns").click()
    settled(page)
    expect(region(page, "tmm").locator(".wb-badge")).to_have_text("moved by the sidebar")
    hybrid = region(page, "Hybrid").text_content()
    handle = page.locator(".st-key-wb-w-fusion-alpha input[type=range]")
    expect(handle).to_be_attached()
    handle.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(lambda url: "fusion.alpha%3D0.79" in url)
    expect(region(page, "tmm fusion.alpha=0.79")).to_be_attached()
    settled(page)
    assert region(page, "Hybrid").text_content() == hybrid
    shown = region(page, "tmm fusion.alpha=0.79").text_content()
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    other = context.new_page()
    other.goto(page.url)
    expect(region(other, "tmm fusion.alpha=0.79")).to_be_attached()
    assert region(other, "tmm fusion.alpha=0.79").text_content() == shown
    context.close()


def test_results_are_graded_by_keyboard_without_a_redraw(page: Any, server: str) -> None:
    """j, l and g with a digit; the grade shows at once, stays after reloading, and u takes it back."""
    open_search(page, server, q="rate limits explained", columns="keyword,vector")
    page.evaluate("window.kept = document.querySelector('section.wb-column')")
    for key in ("j", "j", "k", "g", "3"):
        page.keyboard.press(key)
    focused = page.locator("article:focus")
    expect(focused).to_have_attribute("data-rank", "1")
    chunk = focused.get_attribute("data-chunk")
    button = region(page, "Keyword").locator(f'article[data-chunk="{chunk}"] .wb-grades button[data-v="3"]')
    expect(button).to_have_attribute("aria-pressed", "true")
    page.wait_for_function("!window.__workbenchEvents.length")
    settled(page)
    assert page.evaluate("window.kept === document.querySelector('section.wb-column')")
    page.keyboard.press("l")
    assert page.evaluate("document.activeElement.closest('section').getAttribute('aria-label')") == "Vector results"
    page.reload()
    expect(button).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("There is nothing to undo.")).to_be_visible()
    settled(page)  # while the page is drawn anew, a column stands there twice for a moment
    button = region(page, "Keyword").locator(f'article[data-chunk="{chunk}"] .wb-grades button[data-v="1"]')
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    page.wait_for_function("!window.__workbenchEvents.length")
    page.keyboard.press("u")
    expect(page.get_by_text(re.compile("Undone: the grade 1"))).to_be_visible()
    settled(page)
    expect(button).to_have_attribute("aria-pressed", "false")


def test_a_note_is_written_on_a_card(page: Any, server: str) -> None:
    """n opens the box, the note stands on every card of the passage, and undo takes it away."""
    open_search(page, server, q="office kettle", columns="keyword,hybrid")
    page.keyboard.press("j")
    page.keyboard.press("n")
    box = page.get_by_role("dialog").get_by_role("textbox", name="Your note")
    expect(box).to_be_visible()
    box.fill("the one <b>to cite</b>")
    page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
    for title in ("Keyword", "Hybrid"):
        expect(region(page, title).locator(".wb-noted").first).to_have_text("the one <b>to cite</b>")
    settled(page)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".wb-noted")).to_have_count(0)


def test_more_like_this_and_back(page: Any, server: str) -> None:
    """m shows the passage's neighbours; a button there searches with its text; u goes back to the question."""
    open_search(page, server, q="kettle boils", columns="keyword,vector")
    page.keyboard.press("j")
    chunk = page.locator("article:focus").get_attribute("data-chunk")
    page.keyboard.press("m")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("nothing was embedded")).to_be_visible()
    expect(dialog.get_by_role("table", name="Passages like this").locator("tr")).to_have_count(11)
    assert "q=kettle" in page.url
    dialog.get_by_role("button", name="Search with its text instead").click()
    page.wait_for_url(lambda url: "q=kettle" not in url)
    expect(region(page, "Vector").locator("article").first).to_have_attribute("data-chunk", str(chunk))
    settled(page)
    page.keyboard.press("u")
    page.wait_for_url(lambda url: "q=kettle" in url)


def test_why_opens_the_explain_page_with_the_plan_of_the_moment(page: Any, server: str) -> None:
    """Query, target and the shared plan as it was moved are in its address."""
    open_search(page, server, q=QUERY, columns="hybrid")
    handle = page.locator(".st-key-wb-w-fusion-alpha input[type=range]")
    handle.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(lambda url: "fusion.alpha%3D0.79" in url)
    settled(page)
    with page.context.expect_page() as opened:
        region(page, "Hybrid").locator("a.wb-why").first.click()
    explain = opened.value
    explain.wait_for_url(re.compile("/explain"))
    asked = address(explain)
    assert (asked["q"], asked["plan"]) == (QUERY, "default fusion.alpha=0.79")
    assert asked["target"].endswith((".md", ".py", ".txt"))


def test_the_keys_are_told_and_the_link_is_copied(page: Any, server: str) -> None:
    """? shows them, Escape hides them; the box Export copies the address."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_search(page, server, q=QUERY, columns="keyword")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("more like this")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_have_count(0)
    page.get_by_role("button", name="Export").click()
    page.get_by_role("button", name="Copy the link").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    with page.expect_download() as taken:
        page.get_by_role("button", name="CSV").click()
    assert taken.value.path().read_text(encoding="utf-8").startswith("rank,")


def test_a_saved_search_is_found_again_and_deleted(page: Any, server: str) -> None:
    """Saved under a name, opened from the box in a fresh session, deleted, and brought back by undo."""
    open_search(page, server, q="making good tea", columns="keyword")
    page.get_by_role("button", name="Saved").click()
    page.get_by_role("textbox", name="Save this search as").fill("tea time")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Saved as tea time.")).to_be_visible()
    page.goto(server)
    page.get_by_role("button", name="Saved").click()
    page.get_by_role("button", name="tea time").click()
    page.wait_for_url(lambda url: "tea" in url and "columns=keyword" in url)
    expect(region(page, "Keyword").locator("article").first).to_be_attached()
