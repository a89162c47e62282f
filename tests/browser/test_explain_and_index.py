"""Journeys: find out why a document is missing and bring it in; go through a document by keys; index a folder and search it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from visiting import expect, listening, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow]

QUERY = "retry request"


def test_why_a_document_is_missing_and_how_it_comes_in(page: Any, server: str, tmp_path: Path) -> None:
    page.goto(f"{server}/?{urlencode({'q': QUERY, 'plan': 'default limit=3'})}")
    hybrid = page.get_by_role("region", name="Hybrid results")
    expect(hybrid.locator("article")).to_have_count(3)
    assert "limits.md" not in hybrid.text_content()
    page.get_by_role("link", name="Explain").click()
    box = page.get_by_role("combobox", name="Find a document")
    box.click()
    page.keyboard.type("limits.md")
    page.keyboard.press("Enter")
    said = page.locator(".wb-standing")
    expect(said).to_contain_text("Dropped by the limit")
    expect(said).to_contain_text("Verified")
    page.wait_for_url(lambda url: "target=limits.md" in url)
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    page.screenshot(path=tmp_path / "explain.png", full_page=True)
    said.get_by_role("link", name="Bring it in on the Search page").click()
    expect(hybrid.locator("article").first).to_be_visible()
    settled(page)
    assert "limits.md" in hybrid.text_content()
    assert page.foreign == []


def test_a_document_is_gone_through_by_keys(page: Any, server: str) -> None:
    page.goto(f"{server}/document?{urlencode({'path': 'long.txt', 'q': 'start needlework'})}")
    expect(page.locator(".wb-doc")).to_be_visible()
    listening(page, "Next match")
    page.keyboard.press("n")
    now = page.locator("mark.wb-now")
    expect(now).to_have_text("start")
    page.keyboard.press("n")
    expect(now).to_have_text("needlework")
    expect(now).to_be_in_viewport()
    page.wait_for_url(lambda url: "match=2" in url)
    page.keyboard.press("p")
    expect(now).to_have_text("start")
    expect(now).to_be_in_viewport()
    assert page.foreign == []


def test_the_pages_fit_a_phone(browser: Any, server: str, tmp_path: Path) -> None:
    """Nothing is wider than 390 pixels, and the hybrid results come first."""
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    addresses = (
        f"explain?{urlencode({'q': QUERY, 'target': 'tea.md'})}",
        f"document?{urlencode({'path': 'long.txt', 'q': 'needlework'})}",
        "corpus", "corpus?part=chunks", "corpus?part=runs", "corpus?part=index", f"?{urlencode({'q': QUERY})}",
    )  # fmt: skip
    for number, address in enumerate(addresses):
        page.goto(f"{server}/{address}")
        settled(page)
        expect(page.locator("h3, h4, form, .wb-chunk, .wb-standing, [data-testid=stForm]").first).to_be_attached()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, address
        page.screenshot(path=tmp_path / f"{number}.png")
    columns = page.locator("section.wb-column")
    expect(columns).to_have_count(4)
    boxes = [column.bounding_box() for column in columns.all()]
    assert len({round(b["x"]) for b in boxes}) == 1
    tops = [b["y"] for b in boxes]
    assert [tops[3], *tops[:3]] == sorted(tops)
    context.close()


@pytest.fixture(scope="module")
def empty_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app without a corpus."""
    from serving import serving

    folder = tmp_path_factory.mktemp("empty")
    variables = {"WORKBENCH_ENCODER": "hashing", "WORKBENCH_CACHE_DIR": str(folder / "cache")}
    with serving(folder / "corpus", folder, variables) as url:
        yield url


def test_a_folder_is_indexed_from_the_page_and_searched(page: Any, empty_server: str, tmp_path: Path) -> None:
    source = tmp_path / "notes"
    source.mkdir()
    for n in range(60):
        (source / f"note-{n}.md").write_text(f"# Note {n}\n\n" + f"The pelican number {n} eats fish. " * 60)
    (source / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing that follows is one")
    page.goto(empty_server)
    expect(page.get_by_role("button", name="Build the demo")).to_be_visible()
    page.get_by_role("tab", name="Index your files").click()
    box = page.get_by_role("textbox", name="Files and folders, one per line")
    box.fill("/no/such/folder")
    page.get_by_role("button", name="Start indexing").click()
    expect(page.get_by_text("There is no file or folder /no/such/folder")).to_be_visible()
    box.fill(str(source))
    page.get_by_role("button", name="Start indexing").click()
    expect(page.get_by_role("button", name="Stop the run")).to_be_visible()
    # Another tab sees the same run, and cannot start a second one; this one goes elsewhere and comes back.
    other = page.context.new_page()
    other.goto(empty_server)
    expect(other.get_by_role("button", name="Stop the run").or_(other.get_by_text("60 indexed"))).to_be_visible()
    page.goto(f"{empty_server}/guide")
    settled(page)
    page.goto(f"{empty_server}/corpus?part=index")
    expect(page.get_by_text("60 indexed").first).to_be_visible(timeout=90_000)
    expect(page.get_by_role("table", name="Files that were not indexed")).to_contain_text("broken.pdf")
    dropped = {"name": "dropped.md", "mimeType": "text/markdown", "buffer": b"# Dropped\n\nA heron.\n"}
    page.locator('input[type="file"]').set_input_files(dropped)
    expect(page.get_by_text("dropped.md")).to_be_visible()
    page.get_by_role("button", name="Add the files").click()
    expect(page.get_by_text("1 file found, 1 indexed").first).to_be_visible(timeout=90_000)
    expect(other.get_by_text("Ask something, and see what finds it")).to_be_visible()
    other.close()
    page.get_by_role("link", name="Search it").click()
    search = page.get_by_role("searchbox", name="Query").or_(page.get_by_role("textbox", name="Query"))
    search.fill("pelican")
    search.press("Enter")
    column = page.get_by_role("region", name="Keyword results")
    expect(column.locator("article").first).to_be_visible()
    assert "note-" in column.text_content()
    assert page.foreign == []
