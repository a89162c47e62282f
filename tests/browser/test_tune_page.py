"""Journeys on the Tune page: try plans, take the best one to the Search page, and read the figure beside a moved slider."""

import re
from pathlib import Path
from typing import Any

import pytest
from visiting import expect, is_error, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ASKED = {
    "how do retries work": "retries.md", "timeouts": "timeouts.md", "rate limits": "limits.md", "kettle": "kettle.md",
    "good tea": "tea.md", "wait longer": "backoff.py",
}  # fmt: skip


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """Judgments of the small corpus."""
    path = tmp_path / "judged.csv"
    lines = [f"q{n},{text},{file},1" for n, (text, file) in enumerate(ASKED.items())]
    path.write_text("\n".join(["query_id,query,document,grade", *lines]) + "\n")
    return path


def _only_alpha(page: Any, judged: Path, values: str) -> None:
    """Judgments by their path, and alpha as the only field that varies."""
    path = page.get_by_role("textbox", name="or a path")
    path.fill(str(judged))
    path.press("Enter")
    page.wait_for_url(lambda url: judged.name in url)
    fields = page.locator(".st-key-wb-w-tune-fields")
    for name in ("Fusion · Method", "Fusion · k", "Fusion · Normalise each source"):
        remove = fields.get_by_role("button", name=f"Remove {name}")
        remove.click()
        expect(remove).to_have_count(0)
        settled(page)
    field = page.locator(".st-key-wb-w-tune-values-fusion-alpha input")
    expect(field).to_have_count(1)  # what is drawn elsewhere now is on the page twice for a moment
    field.fill(values)
    field.press("Enter")
    settled(page)


def _tried(page: Any, server: str, judged: Path, values: str) -> list[str]:
    """A sweep over alpha that was made; where the console's errors will be."""
    errors: list[str] = []
    page.on("console", lambda said: errors.append(said.text) if is_error(said) else None)
    page.goto(f"{server}/tune")
    _only_alpha(page, judged, values)
    page.get_by_role("button", name="Run the sweep").click()
    expect(page.get_by_role("heading", name="Result")).to_be_visible()
    return errors


def test_a_sweep_and_a_threshold_and_the_figure_on_the_search_page(page: Any, server: str, judged: Path) -> None:
    """A small sweep over alpha, in which nothing is better; its curve; a threshold by what it loses; on the Search page a moved
    slider shows the measure. No page logs an error.
    """
    errors = _tried(page, server, judged, "0.1,0.5,0.9")
    expect(page.locator(".st-key-wb-w-tune-curve-chart .main-svg").first).to_be_visible()
    settled(page)
    page.get_by_role("button", name="Draw the scores").click()
    expect(page.locator(".st-key-wb-w-tune-scores-chart .main-svg").first).to_be_visible()
    settled(page)
    page.get_by_role("button", name="as the threshold").click()
    expect(page.get_by_text("The shared plan cuts at angular distance")).to_be_visible()
    settled(page)
    expect(page.get_by_text("The plan that you have is the best one tried.")).to_be_visible()
    page.get_by_role("link", name="Search").first.click()
    query = page.get_by_role("searchbox").or_(page.get_by_label("Query", exact=True)).first
    expect(query).to_be_visible()
    settled(page)
    query.fill("kettle")
    query.press("Enter")
    page.wait_for_url(lambda url: "q=kettle" in url)
    settled(page)
    slider = page.locator(".st-key-wb-w-fusion-alpha input[type=range]")
    slider.press("ArrowLeft")
    figure = page.locator('.wb-live[role="status"]')
    expect(figure).to_contain_text("nDCG@10")
    expect(page.get_by_text(re.compile(r"of \d+ queries")).first).to_be_visible()
    assert page.foreign == []
    assert errors == []


def test_a_query_that_is_chosen_opens_under_both_plans(page: Any, server: str, tmp_path: Path) -> None:
    """A click on the row of a query that the best plan won opens both lists below, and from there both on the Search page."""
    judged = tmp_path / "differing.csv"
    asked = {"tea kettle water": "tea.md", "rate limits": "limits.md", "kettle": "kettle.md"}
    lines = [f"q{n},{text},{file},1" for n, (text, file) in enumerate(asked.items())]
    judged.write_text("\n".join(["query_id,query,document,grade", *lines]) + "\n")
    errors = _tried(page, server, judged, "0.1,0.9")
    rows = page.locator('[class*="st-key-wb-w-tune-table-"] canvas').first
    rows.scroll_into_view_if_needed()
    settled(page)
    box = rows.bounding_box()
    page.mouse.click(box["x"] + 18, box["y"] + 52)
    lists = page.locator(".wb-pair-lists")
    expect(lists).to_be_visible()
    expect(page.get_by_text("tea kettle water", exact=True).last).to_be_visible()
    page.wait_for_url(lambda url: "open=q0" in url)
    page.get_by_role("button", name="Open on the Search page").click()
    page.wait_for_url(lambda url: "column1=" in url and "column2=" in url)
    expect(page.locator(".wb-card").first).to_be_visible()
    assert page.foreign == []
    assert errors == []
