"""Explain, Document and Corpus without a corpus, on an empty one, and with the vector side gone: each says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from app_for_tests import all_text
from app_for_tests import page as page_at
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.errors import EncoderError

Open = Callable[..., AppTest]
PAGES = {
    "explain": {"q": "retry request", "target": "tea.md"},
    "document": {"path": "tea.md", "q": "boil"},
    "corpus": {},
}


def page(open_app: Open, corpus: Path, name: str) -> AppTest:
    return page_at(open_app, corpus, name, **PAGES[name])


@pytest.fixture(scope="module")
def empty_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with a generation and no document in it."""
    folder = tmp_path_factory.mktemp("empty")
    source = folder / "source"
    source.mkdir()
    (source / "a.md").write_text("# One\n\nword\n")
    wb.index([source], corpus=folder / "corpus", encoder="hashing", workers=0)
    (source / "a.md").unlink()
    report = wb.index([source], corpus=folder / "corpus", encoder="hashing", workers=0)
    assert report.documents == 0
    return folder / "corpus"


@pytest.mark.parametrize("name", PAGES)
def test_without_a_corpus_the_page_says_how_to_make_one(open_app: Open, tmp_path: Path, name: str) -> None:
    """A command to type, or the form."""
    assert "There is no corpus yet" in all_text(page(open_app, tmp_path / "none", name))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("explain", "It is not in the corpus"),
        ("document", "There is no document tea.md"),
        ("corpus", "nothing in this corpus that you may see"),
    ],
)
def test_an_empty_corpus_is_told(open_app: Open, empty_corpus: Path, name: str, words: str) -> None:
    """Nothing breaks where there is nothing, and the sentence fits."""
    said = all_text(page(open_app, empty_corpus, name))
    assert words in said or ("outside the allowed folders" in said and name == "document")


@pytest.fixture
def no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model cannot be loaded on this machine."""

    def refuse(name: str | None = None, runtime: str | None = None) -> None:
        raise EncoderError("The model is not on this machine", "Install it")

    monkeypatch.setattr("workbench.retrieve.engine.load_encoder", refuse)


@pytest.mark.usefixtures("no_encoder")
@pytest.mark.parametrize(("name", "words"), [("document", "<mark>Boil</mark>"), ("corpus", "This corpus")])
def test_pages_that_need_no_vector_are_whole_without_it(
    open_app: Open, small_corpus: Path, name: str, words: str
) -> None:
    """What a missing model cannot change is unchanged; the Explain page has tests of its own for it."""
    said = all_text(page(open_app, small_corpus, name))
    assert words in said
    assert "not on this machine" not in said
