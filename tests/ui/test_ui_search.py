"""The Search page: four columns, and what can be done with them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import streamlit as st
from app_for_tests import TEXTS, all_text, bodies, chunks, column, paths, run, write_corpus
from streamlit.testing.v1 import AppTest

from workbench.errors import EncoderError
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


def test_typing_a_query_searches(open_app: Open, small_corpus: Path) -> None:
    """The box, Enter, and the columns are there; the address has the query."""
    at = open_app(small_corpus)
    at.text_input(key="wb.w.query").set_value(QUERY)
    run(at)
    assert "<mark>" in column(at, "keyword")
    assert at.query_params == {"q": QUERY}


def test_an_empty_page_offers_titles_of_the_corpus(open_app: Open, small_corpus: Path) -> None:
    """Nobody starts from nothing: a title is one click away from its results."""
    at = open_app(small_corpus)
    assert f"{len(TEXTS)} documents" in all_text(at)
    at.button(key="wb.w.example-0").click()
    run(at)
    assert at.query_params["q"] == at.text_input(key="wb.w.query").value
    assert chunks(at, "hybrid")


def test_nothing_found_says_what_to_try(open_app: Open, small_corpus: Path) -> None:
    """Each column's guidance fits its mode."""
    at = open_app(small_corpus, q="zzzyx", plan="default vector.threshold=0")
    assert "check the spelling" in column(at, "keyword")
    assert "vector.threshold" in column(at, "vector")


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


def test_every_card_names_its_rank_in_every_source(open_app: Open, small_corpus: Path) -> None:
    """Also in the sources that its own column did not ask."""
    at = open_app(small_corpus, q=QUERY)
    first = chunks(at, "keyword")[0]
    card = column(at, "keyword").split("<article")[1]
    assert f'data-chunk="{first}"' in card
    assert 'data-source="keyword" title="keyword: rank 1' in card
    vector = chunks(at, "vector")
    if first in vector:
        assert f'title="vector: rank {vector.index(first) + 1}' in card


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


@pytest.fixture
def no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model cannot be loaded on this machine."""

    def refuse(name: str | None = None, runtime: str | None = None) -> None:
        raise EncoderError("The model is not on this machine", "Install it")

    monkeypatch.setattr("workbench.retrieve.engine.load_encoder", refuse)


@pytest.mark.slow
def test_without_the_vector_side_the_rest_goes_on(
    open_app: Open, small_corpus: Path, request: pytest.FixtureRequest
) -> None:
    """Vector alone is an error with a remedy; hybrid warns and is keyword; keyword and grep do not change."""
    whole = open_app(small_corpus, q=QUERY)
    st.cache_resource.clear()
    request.getfixturevalue("no_encoder")
    at = open_app(small_corpus, q=QUERY)
    assert chunks(at, "grep") == chunks(whole, "grep")
    assert chunks(at, "keyword") == chunks(whole, "keyword")
    assert not chunks(at, "vector")
    assert "The model is not on this machine.</b> Install it." in column(at, "vector")
    assert "vector is unavailable" in column(at, "hybrid")
    assert column(at, "hybrid").count("The model is not on this machine") == 1
    assert chunks(at, "hybrid") == chunks(whole, "keyword")
    assert "No vector source ran" in all_text(at)


@pytest.mark.usefixtures("no_encoder")
def test_pictures_without_the_vector_side(open_app: Open, small_corpus: Path) -> None:
    """A picture that cannot be drawn says so."""
    at = open_app(small_corpus, q=QUERY)
    for picture in PICTURES:
        at.button_group(key="wb.w.picture").set_value(picture)
        run(at)
        assert len(at.get("plotly_chart")) == (picture not in ("none", "scores", "distances"))
        if picture in ("scores", "distances"):
            assert "Two sources are needed" in all_text(at) or all_text(at).count("No vector source ran") == 2


def test_a_search_does_not_wait_for_the_warm_up(
    open_app: Open, small_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The encoder is loaded beside the first run; a page opened with a query answers meanwhile."""
    from workbench.retrieve.engine import Engine

    original, answered = Engine.embed, threading.Event()

    def embed(self: Engine, text: str, encoder: str) -> object:
        if text == "warm":
            answered.wait(30)
        return original(self, text, encoder)

    monkeypatch.setattr(Engine, "embed", embed)
    at = open_app(small_corpus, q=QUERY)
    answered.set()
    assert chunks(at, "vector")


def test_hostile_text_stays_text(open_app: Open, small_corpus: Path) -> None:
    """A document full of markup adds no element to the page; its title is a query like any other."""
    at = open_app(small_corpus, q="hostile pelican", keywords="pelican")
    for mode in MODES:
        body = column(at, mode)
        assert "hostile.md" in body
        assert "&lt;img src=x onerror=alert(3)&gt;" in body
        assert not re.search(r"<script|<img|onerror=alert\(3\)>", body)
        assert "\u202e" not in body
        assert "\x1b" not in body
    assert "␛" in column(at, "keyword")
    assert "U+202E" in column(at, "keyword")


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


@pytest.mark.slow
def test_an_empty_corpus_is_a_page_that_says_so(open_app: Open, tmp_path: Path) -> None:
    """No document: every box opens, a query is answered by what to do next, nothing breaks."""
    import workbench as wb

    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "one.md").write_text("# One\n\nOnly this.\n", encoding="utf-8")
    wb.index([tmp_path / "source"], corpus=tmp_path / "corpus", encoder="hashing", workers=0)
    (tmp_path / "source" / "one.md").unlink()
    wb.index([tmp_path / "source"], corpus=tmp_path / "corpus", encoder="hashing", workers=0)
    at = open_app(tmp_path / "corpus")
    assert "0 documents" in all_text(at)
    for name in ("columns", "context", "saved", "words", "away"):
        at.session_state[f"wb.w.section.{name}"] = True
    run(at)
    at.text_input(key="wb.w.query").set_value("anything")
    run(at)
    for mode in MODES:
        assert "index a folder with `workbench index PATH`" in column(at, mode)
    assert "there are no distances" in all_text(at)


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
@pytest.mark.usefixtures("no_encoder")
def test_every_box_opens_without_the_vector_side(open_app: Open, small_corpus: Path) -> None:
    """And asking for exact against approximate is answered by why it cannot be."""
    at = open_app(small_corpus, q=QUERY, columns="keyword,plan", column2="tmm")
    for name in ("columns", "context", "saved", "words", "away"):
        at.session_state[f"wb.w.section.{name}"] = True
    run(at)
    at.button(key="wb.w.exactness").click()
    run(at)
    assert "The model is not on this machine" in all_text(at)
    assert chunks(at, "keyword")


@pytest.mark.slow
def test_kept_answers_say_so_in_place_of_their_times(open_app: Open, small_corpus: Path) -> None:
    """Who asks what was asked a moment ago gets the kept answers: bars of nothing would explain nothing."""
    first = open_app(small_corpus, q=QUERY, picture="timings")
    assert first.get("plotly_chart")
    at = open_app(small_corpus, q=QUERY, picture="timings")
    assert "its answer was kept" in all_text(at)
    assert not at.get("plotly_chart")


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
