"""A page of a person of their own, for journeys: the fixture `page` gives one, and tests of several people make more."""

from typing import Any

PATIENCE = 30_000
"""Milliseconds that a journey waits for anything."""

_HOME = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "about:")


def prepared(context: Any) -> Any:
    """A page whose foreign requests and dialogs fail the test."""
    made = context.new_page()
    made.set_default_timeout(PATIENCE)
    foreign: list[str] = []
    made.on("request", lambda r: foreign.append(r.url) if not r.url.startswith(_HOME) else None)
    made.on("dialog", lambda d: (foreign.append(f"dialog: {d.message}"), d.dismiss()))
    made.foreign = foreign
    return made


def expect(locator: Any) -> Any:
    """Playwright's `expect` with a journey's patience; playwright is imported when the first journey runs."""
    from playwright.sync_api import expect as made

    made.set_options(timeout=PATIENCE)
    return made(locator)


def choose(page: Any, label: str, option: str, exact: bool = True) -> None:
    """Take an option of a select box."""
    page.get_by_role("combobox", name=label).click()
    page.get_by_role("option", name=option, exact=exact).click()


def settled(page: Any) -> None:
    """Wait until the script has run."""
    expect(page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]')).to_be_attached()


def listening(page: Any, button: str) -> None:
    """Wait until a button is there: from then on its key, and those of the buttons before it, are heard."""
    expect(page.get_by_role("button", name=button)).to_be_enabled()
    settled(page)


def is_error(said: Any) -> bool:
    """An error of the page. Streamlit first asks below a page's own address where its server is, and gets a 404 there."""
    return said.type == "error" and "/_stcore/" not in said.location["url"]
