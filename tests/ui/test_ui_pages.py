"""The Guide page, and moving between pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from app_for_tests import bodies, chunks, go, run
from streamlit.testing.v1 import AppTest

from workbench import guide
from workbench.ui import app as house

Open = Callable[..., AppTest]


def test_a_page_switch_and_back_keeps_query_and_settings(open_app: Open, small_corpus: Path) -> None:
    """What was set is there again, in the controls, the columns and the address."""
    at = open_app(small_corpus, q="retry request")
    at.slider(key="wb.w.fusion.alpha").set_value(0.7)
    run(run(at))
    address, before = dict(at.query_params), chunks(at, "hybrid")
    at.query_params.clear()
    go(at, "guide")
    run(at)
    at.query_params.clear()
    go(at, "search")
    run(at)
    assert at.query_params == address
    assert at.slider(key="wb.w.fusion.alpha").value == 0.7
    assert chunks(at, "hybrid") == before


@pytest.mark.parametrize(("page", "part"), [("", "a-first-hour"), ("reference", guide.anchor("fusion.k"))])
def test_the_guide_shows_the_page_that_the_address_names(
    page: str, part: str, open_app: Open, small_corpus: Path
) -> None:
    """A link in a help text opens the page of the guide; without a name it is the first."""
    at = open_app(small_corpus)
    go(at, "guide")
    if page:
        at.query_params["page"] = page
    run(at)
    assert any(f'id="{part}"' in body for body in bodies(at))


def test_the_filters_that_are_shown_as_examples_can_be_read() -> None:
    """An example that the language refuses would teach a fault."""
    from workbench.store.access.filters import parse
    from workbench.ui.views.search import FILTER_HELP

    table = guide.text("search").partition("| Filter |")[2].partition("\n\n")[0]
    examples = [*re.findall(r"^\| `(.*?)` \|", table, re.M), *FILTER_HELP.split("`")[1::2]]
    assert len(examples) > 7
    for example in examples:
        parse(example)


def test_a_tab_is_called_what_it_is_about() -> None:
    """First the query or the document, cut to what a tab can hold, then the page."""
    assert house.tab_title("Search", "") == "Search · Retrieval workbench"
    assert house.tab_title("Document", "retries.md") == "retries.md · Document · Retrieval workbench"
    assert len(house.tab_title("Search", "word " * 100)) < 100


def test_nothing_of_the_router_is_written_on_a_page(open_app: Open, small_corpus: Path) -> None:
    """Streamlit writes what stands alone in the main script as Markdown."""
    at = open_app(small_corpus, q="retry request")
    assert not any("address" in text.value for text in at.main.markdown)
