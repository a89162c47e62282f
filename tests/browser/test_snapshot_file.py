"""`index.html` of a snapshot, opened from disk with the network off, and the Snapshots page of the app."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import workbench as wb

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture(scope="module")
def files(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `index.html` and the snapshot that it came from: three searches of the small corpus, one hostile."""
    folder = tmp_path_factory.mktemp("files")
    with wb.open_corpus(corpus) as opened:
        asked = [
            opened.search(q, plan="default vector.threshold=off") for q in ("retry pause", "hostile pelican", "kettle")
        ]
    made = wb.Snapshot.of(asked, note="three searches\nfor the journey")
    made.save(folder / "three.snapshot")
    (folder / "index.html").write_bytes(made.parts["index.html"])
    return folder


@pytest.fixture
def offline(browser: Any) -> Iterator[Any]:
    """A page of a browser without a network that keeps what the console says."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.said = []
    page.on("console", lambda m: page.said.append(m.text))
    page.on("pageerror", lambda e: page.said.append(str(e)))
    page.on("dialog", lambda d: (page.said.append(d.message), d.dismiss()))
    page.on("request", lambda r: page.said.append(r.url) if not r.url.startswith("file:") else None)
    yield page
    context.close()


def test_it_opens_from_disk_with_every_picture_live_and_a_silent_console(offline: Any, files: Path) -> None:
    offline.goto((files / "index.html").as_uri())
    plots = offline.locator(".plot")
    assert plots.count() == 12
    for n in range(plots.count()):
        plots.nth(n).scroll_into_view_if_needed()
        plots.nth(n).and_(offline.locator("[data-live=yes]")).wait_for()
    assert "retries.md" in offline.locator("#s0 .plot").first.text_content()
    assert "⟦" not in offline.locator("body").inner_text()
    offline.get_by_role("button", name="Dark or light").click()
    assert offline.said == []


def test_tables_sort_and_words_are_found(offline: Any, files: Path) -> None:
    offline.goto((files / "index.html").as_uri())
    table = offline.locator("#s0 table.sortable")
    table.get_by_role("button", name="score", exact=True).click()
    assert table.locator("th[aria-sort=descending]").inner_text().startswith("score")
    table.get_by_role("button", name="keyword rank").click()
    cells = table.locator("tbody tr td:nth-child(5)").all_inner_texts()
    ranks = [int(c) for c in cells if c]
    assert ranks == sorted(ranks)
    assert all(not c for c in cells[len(ranks) :])
    offline.get_by_label("Find").fill("kettle boils")
    offline.get_by_text("passages", exact=False).first.wait_for()
    shown = offline.locator("article:visible")
    assert 1 <= shown.count() < offline.locator("article").count()
    assert "kettle" in shown.first.inner_text().lower()
    assert offline.said == []


def test_it_fits_a_phone_and_reads_without_javascript(browser: Any, files: Path) -> None:
    """390 pixels wide, scripts off: nothing overflows, passages and tables are there, no empty picture stands about."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto((files / "index.html").as_uri())
    assert page.get_by_text("The pictures need JavaScript").is_visible()
    assert page.locator("article").first.is_visible()
    assert not page.locator(".plot").first.is_visible()
    assert page.locator("h1").bounding_box()["width"] <= 390
    context.close()
    context = browser.new_context(viewport={"width": 390, "height": 844}, offline=True)
    page = context.new_page()
    page.goto((files / "index.html").as_uri())
    page.locator(".plot").first.scroll_into_view_if_needed()  # pictures are drawn when they come into view
    page.locator("[data-live=yes]").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_saved_in_the_app_opened_at_its_address_and_uploaded(server: str, page: Any, files: Path) -> None:
    page.goto(f"{server}/?q=retry&columns=keyword,hybrid")
    page.get_by_role("link", name="Snapshots").first.click()
    page.get_by_label("Note").fill("saved by the journey")
    page.get_by_role("button", name="Save snapshot").click()
    page.get_by_role("radio", name="saved by the journey").wait_for()
    link = page.get_by_role("link", name="Open as a page")
    with page.context.expect_page() as opened:
        link.click()
    shown = opened.value
    shown.bring_to_front()
    shown.locator(".plot").first.scroll_into_view_if_needed()
    shown.locator("[data-live=yes]").first.wait_for()
    assert "/s/" in shown.url
    shown.close()
    page.bring_to_front()
    page.get_by_role("button", name="Copy the link of saved by the journey").wait_for()
    page.locator("input[type=file]").set_input_files(files / "three.snapshot")
    page.get_by_text("three searches").first.wait_for()
    page.get_by_role("button", name="Verify").click()
    page.get_by_text("Verified: every digest holds").first.wait_for()
    damaged = bytearray((files / "three.snapshot").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    bad = {"name": "bad.snapshot", "mimeType": "application/zip", "buffer": bytes(damaged)}
    page.locator("input[type=file]").set_input_files(bad)
    page.get_by_text("Ask for the file again").first.wait_for()
    assert page.foreign == []
