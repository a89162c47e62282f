"""The Guide page, and moving between pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app_for_tests import chunks, run
from streamlit.testing.v1 import AppTest

from workbench.plan import fields as plan_fields
from workbench.plan.presets import PRESETS
from workbench.ui import controls, house, reference

Open = Callable[..., AppTest]


def test_a_page_switch_and_back_keeps_query_and_settings(open_app: Open, small_corpus: Path) -> None:
    """What was set is there again, in the controls, the columns and the address."""
    at = open_app(small_corpus, q="retry request")
    at.slider(key="wb.w.fusion.alpha").set_value(0.7)
    run(run(at))
    address, before = dict(at.query_params), chunks(at, "hybrid")
    at.query_params.clear()
    at.switch_page("views/guide.py")
    run(at)
    at.query_params.clear()
    at.switch_page("views/search.py")
    run(at)
    assert at.query_params == address
    assert at.slider(key="wb.w.fusion.alpha").value == 0.7
    assert chunks(at, "hybrid") == before


def test_the_guide_has_every_field_and_preset() -> None:
    """One declaration: what is declared is on the page, at the place that the help links to."""
    html = reference.html()
    for field in plan_fields.FIELDS:
        assert f'id="{controls.anchor(field.name)}"' in html
    for preset in PRESETS:
        assert f"<code>{preset.name}</code>" in html


def test_the_guides_filters_can_be_read() -> None:
    """An example that the language refuses would teach a fault."""
    from workbench.store.access.filters import parse
    from workbench.ui.query_bar import FILTER_HELP

    for example, _ in reference.FILTERS:
        parse(example)
    for example in FILTER_HELP.split("`")[1::2]:
        parse(example)


def test_a_tab_is_called_what_it_is_about() -> None:
    """First the query or the document, cut to what a tab can hold, then the page."""
    assert house.tab_title("Search", "") == "Search · Retrieval workbench"
    assert house.tab_title("Document", "retries.md") == "retries.md · Document · Retrieval workbench"
    assert len(house.tab_title("Search", "word " * 100)) < 100
