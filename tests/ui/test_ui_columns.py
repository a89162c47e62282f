"""The columns of the Search page: any modes and plans, side by side, and which of them the sidebar moves."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from app_for_tests import all_text, bodies, run
from streamlit.testing.v1 import AppTest

from workbench.ui import resources
from workbench.ui.components.boxes import titles
from workbench.ui.state import Column

Open = Callable[..., AppTest]
QUERY = "retry request"


def headings(at: AppTest) -> list[str]:
    """Headings of the columns from left to right, the mark of the moved ones after a bar."""
    found = [
        re.search(r"<h3>(.*?)(?:<span[^>]*>(.*?)</span>)?</h3>", b)
        for b in bodies(at)
        if '<section class="wb-column"' in b
    ]
    return [f"{m[1]}|{m[2]}" if m[2] else m[1] for m in found if m]


def opened(open_app: Open, corpus: Path, **params: str) -> AppTest:
    """The page with the box of columns open."""
    at = open_app(corpus, q=QUERY, **params)
    at.session_state["wb.w.section.columns"] = True
    return run(at)


def choose(at: AppTest, n: int, value: str) -> None:
    at.selectbox(key=f"wb.w.column.{n}").set_value(value)
    run(at)


def press(at: AppTest, key: str) -> None:
    at.button(key=f"wb.w.column.{key}").click()
    run(at)


def test_columns_are_added_swapped_and_taken_away(open_app: Open, small_corpus: Path) -> None:
    """At most four, at least one; what the sidebar moves goes along."""
    at = opened(open_app, small_corpus, columns="plan,keyword", column1="tmm", moves="1")
    press(at, "1.right")
    assert headings(at) == ["Keyword", "tmm|moved by the sidebar"]
    assert at.query_params["moves"] == "2"
    press(at, "add")
    press(at, "add")
    assert len(headings(at)) == 4
    assert not [b for b in at.button if b.key == "wb.w.column.add"]
    press(at, "1.away")
    assert headings(at)[0] == "tmm|moved by the sidebar"
    press(at, "1.away")
    assert "moves" not in at.query_params
    press(at, "1.away")
    (last,) = headings(at)
    assert at.button(key="wb.w.column.1.away").disabled
    assert last in {"Vector", "Grep"}


def test_the_sidebar_moves_the_chosen_plan_only(open_app: Open, small_corpus: Path) -> None:
    """A column with its own plan keeps it while the shared one moves, and the other way round."""
    at = opened(open_app, small_corpus, columns="hybrid,plan", column2="tmm limit=5")
    assert headings(at) == ["Hybrid|moved by the sidebar", "tmm limit=5"]
    at.slider(key="wb.w.limit").set_value(3)
    run(at)
    assert (at.query_params["plan"], at.query_params["column2"]) == ("default limit=3", "tmm limit=5")
    at.selectbox(key="wb.w.moves").set_value(2)
    run(at)
    assert at.slider(key="wb.w.limit").value == 5
    at.slider(key="wb.w.limit").set_value(7)
    run(at)
    assert (at.query_params["plan"], at.query_params["column2"]) == ("default limit=3", "tmm limit=7")
    counts = [len(re.findall("<article", b)) for b in bodies(at) if '<section class="wb-column"' in b]
    assert counts == [3, 7]


def test_a_saved_plan_is_a_column_by_its_name(
    open_app: Open, own_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is offered, and its name is the heading until the plan is moved."""
    monkeypatch.setenv("WORKBENCH_CORPUS", str(own_corpus))
    resources.searches().save_plan("my best", "tmm fusion.alpha=0.6")
    at = opened(open_app, own_corpus, columns="keyword,hybrid")
    choose(at, 2, "saved:my best")
    assert headings(at) == ["Keyword", "my best|moved by the sidebar"]
    at.slider(key="wb.w.fusion.alpha").set_value(0.5)
    run(run(at))
    assert headings(at)[1] == "tmm fusion.alpha=0.5|moved by the sidebar"


def test_a_preset_of_collections_names_them_and_pages_shows_added_rows(open_app: Open, two_collections: Path) -> None:
    """Collections stand on the cards where there are several; rows added by page have a card without a rank."""
    at = open_app(two_collections, q="kettle water", columns="plan,keyword", column1="pages")
    body = next(b for b in bodies(at) if "pages results" in b)
    assert 'data-rank="0"' in body
    assert "Added by page" in body
    assert "in docs" in body


def test_headings_differ() -> None:
    """So that a column can be spoken of."""
    from workbench.plan.plan import Plan

    plan = Plan.parse("tmm")
    columns = (Column("grep"), Column("grep"), Column(plan=plan), Column(plan=plan))
    assert titles(columns, {}) == ("Grep", "Grep (2)", "tmm", "tmm (2)")
    assert titles(columns[2:], {"tmm": "Grep"}) == ("Grep", "Grep (2)")


def test_how_much_the_columns_agree(open_app: Open, small_corpus: Path) -> None:
    """Shared, Jaccard and RBO of each two; nothing for a lone column."""
    at = open_app(small_corpus, q=QUERY, columns="vector,vector,keyword")
    (line,) = [b for b in bodies(at) if '<div class="wb-overlap"' in b]
    assert "Vector · Vector (2)</b> 10 of 10 <i>J</i> 1.00 <i>RBO</i> 1.00" in line
    assert line.count("wb-pair") == 3
    at = open_app(small_corpus, q=QUERY, columns="vector")
    assert not [b for b in bodies(at) if '<div class="wb-overlap"' in b]


def test_exact_against_approximate_is_a_sentence(open_app: Open, small_corpus: Path) -> None:
    """This query's recall and both times; a filter that leaves little is answered exactly, and that is said."""
    at = open_app(small_corpus, q=QUERY)
    at.button(key="wb.w.exactness").click()
    run(at)
    assert re.search(r"finds recall@10 1\.000 and recall@100 1\.000, in [\d.]+ ms against", all_text(at))
    at = open_app(small_corpus, q=QUERY, filters="path = 'kettle.md'")
    at.button(key="wb.w.exactness").click()
    run(at)
    assert "Every vector search of this query is exact" in all_text(at)
