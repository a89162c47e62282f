"""Journeys on the Tune page: try plans, take the best one to the Search page, and read the figure beside a moved slider."""

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
    fields = page.locator(".st-key-wb-w-tune-fields")
    for name in ("fusion.method", "fusion.k", "fusion.normalise"):
        fields.get_by_role("button", name=f"Remove {name}").click()
        settled(page)
    field = page.locator(".st-key-wb-w-tune-values-fusion-alpha input")
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


def seen(locator: Any, patience: float) -> bool:
    """Whether it is there within so many milliseconds."""
    from playwright.sync_api import TimeoutError as TooLate

    try:
        locator.wait_for(timeout=patience)
    except TooLate:
        return False
    return True


def test_the_best_plan_goes_to_the_search_page_with_its_figure(page: Any, server: str, judged: Path) -> None:
    """A small sweep over alpha; its curve; a threshold by what it loses; the winner on the Search page, where a moved slider
    shows the measure. No page logs an error.
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
    page.get_by_role("button", name="Use it on the Search page").click()
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
    expect(page.get_by_text("of 6 queries")).to_be_visible()
    assert page.foreign == []
    assert errors == []


def test_a_bar_that_is_clicked_opens_its_query_under_both_plans(page: Any, server: str, tmp_path: Path) -> None:
    """A click on the bar of a query that the best plan won shows the query's link, which opens the Search page with a column
    for each plan.
    """
    judged = tmp_path / "differing.csv"
    asked = {"tea kettle water": "tea.md", "rate limits": "limits.md", "kettle": "kettle.md"}
    lines = [f"q{n},{text},{file},1" for n, (text, file) in enumerate(asked.items())]
    judged.write_text("\n".join(["query_id,query,document,grade", *lines]) + "\n")
    errors = _tried(page, server, judged, "0.1,0.9")
    chart = page.locator(".st-key-wb-w-tune-wins")
    bars = chart.locator(".barlayer .point path")
    expect(bars).to_have_count(1)
    expect(page.get_by_text("Click a bar to open its query under both plans.")).to_be_visible()
    settled(page)
    link = page.get_by_role("link", name="Open under both plans: tea kettle water")
    # A chart that is drawn again as the mouse comes lets the click fall beside it.
    for patience in (5_000, 5_000, 20_000):
        bars.first.scroll_into_view_if_needed()
        box = bars.first.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        if seen(link, patience):
            break
    expect(link).to_be_visible()
    settled(page)
    link.click()
    page.wait_for_url(lambda url: "q=" in url and "column1=" in url and "column2=" in url)
    asked_for = page.get_by_role("searchbox").or_(page.get_by_label("Query", exact=True)).first
    expect(asked_for).to_have_value("tea kettle water")
    expect(page.locator(".wb-card").first).to_be_visible()
    assert page.foreign == []
    assert errors == []
