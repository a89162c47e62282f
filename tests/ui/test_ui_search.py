"""The Search page: four columns, and what can be done with them; the Guide page, and moving between pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from app_for_tests import TEXTS, all_text, bodies, chunks, column, go, paths, run, write_corpus
from streamlit.testing.v1 import AppTest

from workbench import guide
from workbench.ui import app as house
from workbench.ui.state import MODES, PICTURES

Open = Callable[..., AppTest]


QUERY = "retry request"


ODD_QUERIES = [
    "<b>x</b> & \"'", "$x^2$ **b** :red[x]", "\u202eabc\x1b[0m\x00", "x" * 3000, '"unclosed', "-only", "*", "OR",
]  # fmt: skip


def test_a_query_fills_four_columns(open_app: Open, small_corpus: Path) -> None:
    """Grep, keyword, vector and hybrid stand side by side, each with its results and what it says of them."""
    at = open_app(small_corpus, q=QUERY)
    for mode in MODES:
        assert len(chunks(at, mode)) == 10
        assert "10 results" in column(at, mode)
    assert "Exact match" in column(at, "keyword")
    assert "Semantic match" in column(at, "vector")
    assert "Hybrid" in column(at, "hybrid")


def test_an_empty_page_offers_titles_of_the_corpus(open_app: Open, small_corpus: Path) -> None:
    """Nobody starts from nothing: a title is one click away from its results."""
    at = open_app(small_corpus)
    assert f"{len(TEXTS)} documents" in all_text(at)
    at.button(key="wb.w.example-0").click()
    run(at)
    assert at.query_params["q"] == at.text_input(key="wb.w.query").value
    assert chunks(at, "hybrid")


@pytest.mark.slow
def test_what_cannot_be_asked_is_a_sentence_with_the_remedy(open_app: Open, small_corpus: Path) -> None:
    """What is wrong with every column is said once over them, what is wrong with one stands in it; the page stays."""
    at = open_app(small_corpus, q=QUERY, filters="colour = 'red'")
    (said,) = (b for b in bodies(at) if 'role="alert"' in b)
    assert "unknown field colour" in said
    assert not any("results</h3>" in b or 'class="wb-column"' in b for b in bodies(at))
    at = open_app(small_corpus, q=QUERY, filters="colour = 'red'", columns="grep")
    assert 'role="alert"' in column(at, "grep")
    at = open_app(small_corpus, q=QUERY, keywords="(", plan="default grep.regex=yes")
    assert 'role="alert"' in column(at, "grep")
    assert len(chunks(at, "keyword")) == 10


def test_every_picture_is_drawn(open_app: Open, small_corpus: Path) -> None:
    """And is in the address, so that a link shows it."""
    at = open_app(small_corpus, q=QUERY)
    for picture in PICTURES:
        at.button_group(key="wb.w.picture").set_value(picture)
        run(at)
        assert len(at.get("plotly_chart")) == (picture != "none")
        assert at.query_params.get("picture", "none") == picture


def test_the_address_restores_the_same_page(open_app: Open, small_corpus: Path) -> None:
    """Every byte of every column, and every control, in another session."""
    at = open_app(small_corpus, q=QUERY)
    at.slider(key="wb.w.fusion.alpha").set_value(0.7)
    run(run(at))
    at.slider(key="wb.w.limit").set_value(4)
    run(at)
    at.text_input(key="wb.w.keywords").set_value("pause")
    run(at)
    at.selectbox(key="wb.w.fusion.method").set_value("weighted")
    run(at)
    again = open_app(small_corpus, **at.query_params)
    assert [column(again, m) for m in MODES] == [column(at, m) for m in MODES]
    assert again.slider(key="wb.w.limit").value == 4
    assert again.selectbox(key="wb.w.fusion.method").value == "weighted"
    assert again.query_params == at.query_params


def test_two_people_do_not_see_each_other(open_app: Open, small_corpus: Path) -> None:
    """The corpus is shared, queries, settings and results are not."""
    one = open_app(small_corpus, q="kettle water")
    other = open_app(small_corpus, q="rate limits")
    one.slider(key="wb.w.limit").set_value(3)
    run(one)
    run(other)
    assert "kettle.md" in paths(one, "keyword")[0]
    assert "limits.md" in paths(other, "keyword")[0]
    assert other.slider(key="wb.w.limit").value == 10
    assert len(chunks(other, "vector")) == 10


@pytest.mark.slow
def test_a_new_generation_is_followed(open_app: Open, tmp_path: Path) -> None:
    """What is indexed while the app is open is found by the next search, without a restart."""
    import workbench as wb

    corpus = write_corpus(tmp_path)
    at = open_app(corpus, q="zebra crossing")
    assert not chunks(at, "keyword")
    (tmp_path / "source" / "zebra.md").write_text(
        "# A zebra crossing\n\nThe zebra crossing is closed.\n", encoding="utf-8"
    )
    wb.index([tmp_path / "source"], corpus=corpus, workers=0)
    run(at)
    assert paths(at, "keyword") == ["zebra.md:1-3"]


@pytest.mark.slow
def test_any_query_leaves_the_page_whole(open_app: Open, small_corpus: Path) -> None:
    """Whatever is typed, the page has its columns, and a sentence where it cannot be searched."""
    at = open_app(small_corpus)
    for query in ODD_QUERIES:
        at.text_input(key="wb.w.query").set_value(query)
        run(at)
        for mode in MODES:
            assert column(at, mode).endswith("</section>")


def test_one_endless_line_does_not_swell_the_page(open_app: Open, small_corpus: Path) -> None:
    """A card shows the words around the match; the rest is counted."""
    at = open_app(small_corpus, q="needlework", columns="grep,keyword")
    for mode in ("grep", "keyword"):
        assert "<mark>needlework</mark>" in column(at, mode)
        assert len(column(at, mode)) < 20_000


def test_the_context_changes_what_the_vector_side_finds(open_app: Open, small_corpus: Path) -> None:
    """Names in it are embedded with the query; the words are searched as before; the address has it."""
    at = open_app(small_corpus, q=QUERY)
    keyword, vector = chunks(at, "keyword"), column(at, "vector")
    at.session_state["wb.w.section.context"] = True
    run(at)
    at.text_area(key="wb.w.context").set_value("def kettle(water): return tea(water)")
    run(at)
    assert at.query_params["context"] == "def kettle(water): return tea(water)"
    assert chunks(at, "keyword") == keyword
    assert column(at, "vector") != vector


@pytest.mark.slow
def test_code_examples_stand_in_the_place_of_the_columns(open_app: Open, tmp_path: Path) -> None:
    """The switch is in the address; each example has its citation and its code."""
    import workbench as wb

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.md").write_text("# Bells\n\n## Examples\n\nA bell:\n\n```js\nsound('bell')\n```\n")
    wb.index([tmp_path / "in"], corpus=tmp_path / "corpus", encoder="hashing", workers=0)
    at = open_app(tmp_path / "corpus", q="bell")
    at.toggle(key="wb.w.examples").set_value(True)
    run(at)
    assert at.query_params["examples"] == ["yes"] or at.query_params["examples"] == "yes"
    assert [code.value for code in at.code if "bell" in code.value] == ["sound('bell')"]
    assert "a.md:8-8" in "".join(bodies(at)) or "a.md:7-9" in "".join(bodies(at))


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
