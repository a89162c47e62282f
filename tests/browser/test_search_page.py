"""Journeys through the Search page in a real browser."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from visiting import choose, expect, listening, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow]

COLUMNS = ("Grep", "Keyword", "Vector", "Hybrid")
QUERY = "retry request"


def open_search(page: Any, server: str, **params: str) -> None:
    """Open the page and wait until its last column is there."""
    page.goto(f"{server}/?{urlencode(params)}")
    expect(page.get_by_role("region", name=f"{COLUMNS[-1]} results")).to_be_visible()
    settled(page)


SECTIONS = {"depth": "Depth", "keyword": "Keyword: BM25", "grep": "Grep", "neighbours": "Result list"}


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


def test_a_link_restores_the_page_and_the_back_button_undoes(page: Any, server: str, browser: Any) -> None:
    open_search(page, server, q=QUERY)
    first = chunks(page, "Hybrid")
    hybrid = page.get_by_role("region", name="Hybrid results")
    before = hybrid.text_content()
    handle = slider(page, "fusion.weights.keyword")
    handle.press("Home")
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


def test_a_citation_is_copied_and_opens_the_document(page: Any, server: str, browser: Any) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_search(page, server, q="kettle boils")
    card = page.get_by_role("region", name="Keyword results").locator("article").first
    card.get_by_role("button", name="Copy the citation").click()
    # The button says "Copied" for a moment only, and not at all where the card is drawn once more just then.
    page.wait_for_function("navigator.clipboard.readText().then((text) => /^kettle\\.md:\\d+-\\d+$/.test(text))")
    citation = page.evaluate("navigator.clipboard.readText()")
    card.get_by_role("link", name=citation).click()
    expect(page.locator(".wb-target").first).to_be_visible()
    assert "Fill the kettle" in page.locator(".wb-doc").text_content()
    page.go_back()
    expect(card).to_be_visible()
    open_search(page, server, q="hostile pelican", keywords="pelican", picture="ranks")
    expect(page.get_by_text("<img src=x onerror=alert(3)>").first).to_be_visible()
    page.goto(f"{server}/document?path=hostile.md")
    expect(page.locator(".wb-doc")).to_contain_text("<script>alert(1)</script>")
    assert page.foreign == []
    assert page.locator(".wb-doc script, .wb-doc img").count() == 0


def test_every_picture_appears_and_follows_a_slider(page: Any, server: str, tmp_path: Path) -> None:
    for picture in ("ranks", "distances", "timings"):
        # What was asked a moment ago has a kept answer, and takes no time: nothing to draw.
        open_search(page, server, q="a request after a pause" if picture == "timings" else QUERY, picture=picture)
        chart = page.locator(".js-plotly-plot .main-svg").first
        expect(chart).to_be_visible()
        handle = slider(page, "limit")
        handle.press("ArrowLeft")
        expect(page.get_by_role("region", name="Hybrid results").locator("article")).to_have_count(9)
        expect(chart).to_be_visible()
        settled(page)
        page.screenshot(path=tmp_path / f"{picture}.png")


def test_back_goes_from_page_to_page_with_the_search(page: Any, server: str) -> None:
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


def open_columns(page: Any, server: str, **params: str) -> None:
    page.goto(f"{server}/?{urlencode(params)}")
    expect(page.locator("section.wb-column article").first).to_be_attached()
    page.wait_for_function("!!window.__workbenchSend")
    settled(page)


def region(page: Any, title: str) -> Any:
    return page.get_by_role("region", name=f"{title} results", exact=True)


def test_a_preset_becomes_a_column_that_the_sidebar_moves(page: Any, server: str, browser: Any) -> None:
    """Chosen on the page, moved beside the shared plan, restored from the link by somebody else."""
    open_columns(page, server, q=QUERY, columns="keyword,hybrid")
    page.get_by_role("button", name="Columns").click()
    choose(page, "Column 1", "Preset tmm")
    expect(region(page, "tmm")).to_be_attached()
    page.get_by_role("button", name="Columns").click()
    settled(page)
    expect(region(page, "tmm").locator(".wb-badge")).to_have_text("moved by the sidebar")
    hybrid = region(page, "Hybrid").text_content()
    handle = page.locator(".st-key-wb-w-fusion-alpha input[type=range]")
    expect(handle).to_be_attached()
    handle.press("ArrowLeft")
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


def test_results_are_graded_by_keyboard_and_the_figures_follow(page: Any, server: str) -> None:
    """The columns are drawn again with their figures, and the keys go on where they were."""
    open_columns(page, server, q="rate limits explained", columns="keyword,vector")
    for key in ("j", "j", "k"):
        page.keyboard.press(key)
    focused = page.locator("article:focus")
    expect(focused).to_have_attribute("data-rank", "1")
    chunk = focused.get_attribute("data-chunk")
    page.keyboard.press("g")
    page.keyboard.press("3")
    button = region(page, "Keyword").locator(f'article[data-chunk="{chunk}"] .wb-grades button[data-v="3"]')
    expect(button).to_have_attribute("aria-pressed", "true")
    page.wait_for_function("!window.__workbenchEvents.length")
    settled(page)
    expect(region(page, "Keyword").locator(".wb-figures")).to_contain_text("nDCG@10")
    expect(focused).to_have_attribute("data-chunk", chunk)
    page.keyboard.press("l")
    assert page.evaluate("document.activeElement.closest('section').getAttribute('aria-label')") == "Vector results"
    page.reload()
    expect(button).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("There is nothing to undo.")).to_be_visible()
    settled(page)  # while the page is drawn again, a column stands there twice for a moment
    button = region(page, "Keyword").locator(f'article[data-chunk="{chunk}"] .wb-grades button[data-v="1"]')
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    page.wait_for_function("!window.__workbenchEvents.length")
    page.keyboard.press("u")
    expect(page.get_by_text(re.compile("Undone: the grade 1"))).to_be_visible()
    settled(page)
    expect(button).to_have_attribute("aria-pressed", "false")


def test_a_note_is_written_on_a_card_and_more_like_it_is_shown(page: Any, server: str) -> None:
    open_columns(page, server, q="office kettle", columns="keyword,hybrid")
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
    open_columns(page, server, q="kettle boils", columns="keyword,vector")
    page.keyboard.press("j")
    chunk = page.locator("article:focus").get_attribute("data-chunk")
    page.keyboard.press("m")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("nothing was embedded")).to_be_visible()
    expect(dialog.get_by_role("group", name="Passages like this").locator("details")).to_have_count(10)
    assert "q=kettle" in page.url
    dialog.get_by_role("button", name="Search with its text instead").click()
    page.wait_for_url(lambda url: "q=kettle" not in url)
    expect(region(page, "Vector").locator("article").first).to_have_attribute("data-chunk", str(chunk))
    settled(page)
    page.keyboard.press("u")
    page.wait_for_url(lambda url: "q=kettle" in url)


def test_why_opens_the_explain_page_and_the_link_is_copied(page: Any, server: str) -> None:
    open_columns(page, server, q=QUERY, columns="hybrid")
    handle = page.locator(".st-key-wb-w-fusion-alpha input[type=range]")
    handle.press("ArrowLeft")
    page.wait_for_url(lambda url: "fusion.alpha%3D0.79" in url)
    settled(page)
    region(page, "Hybrid").locator("a.wb-why").first.click()
    page.wait_for_url(re.compile("/explain"))
    asked = address(page)
    assert (asked["q"], asked["plan"]) == (QUERY, "default fusion.alpha=0.79")
    assert asked["target"].endswith((".md", ".py", ".txt"))
    assert len(page.context.pages) == 1
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_columns(page, server, q=QUERY, columns="keyword")
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


def test_a_saved_search_is_found_again(page: Any, server: str) -> None:
    open_columns(page, server, q="making good tea", columns="keyword")
    page.get_by_role("button", name="Saved").click()
    page.get_by_role("textbox", name="Save this search as").fill("tea time")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Saved as tea time.")).to_be_visible()
    page.goto(server)
    page.get_by_role("button", name="Saved").click()
    page.get_by_role("button", name="tea time").click()
    page.wait_for_url(lambda url: "tea" in url and "columns=keyword" in url)
    expect(region(page, "Keyword").locator("article").first).to_be_attached()


def test_quick_moves_through_a_document_are_all_made(page: Any, server: str) -> None:
    """Pressed faster than the address follows: each is made, Back undoes one, and a turned page keeps the document."""
    page.goto(f"{server}/document?{urlencode({'path': 'long.txt', 'q': 'word', 'lines': '1-1'})}")
    expect(page.get_by_text("8,000 matches", exact=True)).to_be_visible()
    listening(page, "Next match")
    for n in range(1, 6):
        page.keyboard.press("n")
        expect(page.get_by_text(f"Match {n} of 8,000")).to_be_visible()  # drawn; the address may come later
    page.wait_for_url(lambda url: "match=5" in url)
    settled(page)
    assert address(page) == {"path": "long.txt", "q": "word", "match": "5"}
    page.go_back()
    expect(page.get_by_text("Match 4 of 8,000")).to_be_visible()
    listening(page, "Next match")
    page.keyboard.press("n")
    expect(page.get_by_text("Match 5 of 8,000")).to_be_visible()
