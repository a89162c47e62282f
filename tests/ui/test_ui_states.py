"""The pages without a corpus, on an empty one, and with the vector side gone: each says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import streamlit as st
from app_for_tests import all_text, chunks, column, run
from app_for_tests import page as page_at
from corpus_files import write_files
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.errors import EncoderError
from workbench.ui.state import MODES, PICTURES

Open = Callable[..., AppTest]
QUERY = "retry request"
PAGES = {
    "explain": {"q": QUERY, "target": "tea.md"}, "document": {"path": "tea.md", "q": "boil"}, "corpus": {}, "judge": {},
}  # fmt: skip


def page(open_app: Open, corpus: Path, name: str) -> AppTest:
    return page_at(open_app, corpus, name, **PAGES[name])


def open_boxes(at: AppTest) -> AppTest:
    for name in ("columns", "context", "saved", "words", "away"):
        at.session_state[f"wb.w.section.{name}"] = True
    return run(at)


def test_without_a_corpus_the_pages_say_how_to_make_one(
    open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command to type with the folder that the app looks at, or the form for whoever may index; the query stays."""
    none = tmp_path / "none"
    for name in PAGES:
        assert "There is no corpus yet" in all_text(page(open_app, none, name))
    for allowed in (True, False):
        monkeypatch.setenv("WORKBENCH_APP_INDEXING", "yes" if allowed else "no")
        at = open_app(none, q="retries")
        assert "There is no corpus yet" in all_text(at)
        assert f"workbench index PATH-TO-YOUR-FILES --corpus {none}" in at.code[0].value
        assert [link.proto.page for link in at.get("page_link")] == (["corpus"] if allowed else [])
    at.button(key="wb.w.look-again").click()
    assert run(at).query_params == {"q": "retries"}


@pytest.fixture(scope="module")
def empty_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with a generation and no document in it."""
    folder = tmp_path_factory.mktemp("empty")
    source = write_files(folder / "source", {"a.md": "# One\n\nword\n"})
    wb.index([source], corpus=folder / "corpus", encoder="hashing", workers=0)
    (source / "a.md").unlink()
    assert wb.index([source], corpus=folder / "corpus", encoder="hashing", workers=0).documents == 0
    return folder / "corpus"


def test_an_empty_corpus_is_told(open_app: Open, empty_corpus: Path) -> None:
    """Nothing breaks where there is nothing: every box opens, and the sentence fits."""
    assert "It is not in the corpus" in all_text(page(open_app, empty_corpus, "explain"))
    said = all_text(page(open_app, empty_corpus, "document"))
    assert "There is no document tea.md" in said or "outside the allowed folders" in said
    assert "nothing in this corpus that you may see" in all_text(page(open_app, empty_corpus, "corpus"))
    at = open_boxes(open_app(empty_corpus))
    assert "0 documents" in all_text(at)
    at.text_input(key="wb.w.query").set_value("anything")
    run(at)
    for mode in MODES:
        assert "index a folder with `workbench index PATH`" in column(at, mode)
    assert "there are no distances" in all_text(at)


@pytest.fixture
def no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model cannot be loaded on this machine."""

    def refuse(name: str | None = None, runtime: str | None = None) -> None:
        raise EncoderError("The model is not on this machine", "Install it")

    monkeypatch.setattr("workbench.retrieve.engine.load_encoder", refuse)


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


@pytest.mark.usefixtures("no_encoder")
def test_pages_that_need_no_vector_are_whole_without_it(open_app: Open, small_corpus: Path) -> None:
    """What a missing model cannot change is unchanged; the Explain page has tests of its own for it."""
    for name, words in (("document", "<mark>Boil</mark>"), ("corpus", "This corpus")):
        said = all_text(page(open_app, small_corpus, name))
        assert words in said
        assert "not on this machine" not in said
    at = open_boxes(open_app(small_corpus, q=QUERY, columns="keyword,plan", column2="tmm"))
    at.button(key="wb.w.exactness").click()
    assert "The model is not on this machine" in all_text(run(at))
