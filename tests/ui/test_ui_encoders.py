"""Several encoders on the pages: each is a source with its own control, badge and colour."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from app_for_tests import TEXTS, all_text, column, run
from static_model import make_static
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.charts import source_colour

Open = Callable[..., AppTest]
PLAN = "default sources=keyword,vector,vector:table vector.threshold=off"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A corpus whose own encoder is the hashing one; `table`, a static embedding, is the other."""
    folder = tmp_path_factory.mktemp("encoders")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_static(folder / "table", TEXTS.values())
        (folder / "source").mkdir()
        for name, text in TEXTS.items():
            if "/" not in name and name != "long.txt":
                (folder / "source" / name).write_text(text, encoding="utf-8")
        wb.index(["source"], corpus="corpus", encoder=["hashing", "table"], workers=0)
        yield folder / "corpus"


def test_the_search_page_has_a_slider_and_a_badge_for_each_encoder(open_app: Open, both: Path) -> None:
    """Sources offer it; its weight moves the scores of the hybrid column; its colour is a shade of its own."""
    at = open_app(both, q="retry request", plan=PLAN)
    sources = at.button_group(key="wb.w.sources")
    assert sources.options == ["grep", "keyword", "vector", "vector:table"]
    assert sources.value == ["keyword", "vector", "vector:table"]
    hybrid = column(at, "hybrid")
    assert "vector:table" in hybrid
    assert source_colour("vector:table").lower() in hybrid.lower()
    assert source_colour("vector:table") != source_colour("vector")
    at.slider(key="wb.w.fusion.weights.vector:table").set_value(0.0)
    assert column(run(at), "hybrid") != hybrid
    assert "vector:table" in column(at, "vector")


def test_the_corpus_page_names_both(open_app: Open, both: Path) -> None:
    at = open_app(both)
    at.switch_page("views/corpus.py")
    shown = all_text(run(at))
    assert "Encoder of vector:table" in shown
    assert "table, 256 dimensions" in shown


def test_the_explain_page_draws_both(open_app: Open, both: Path) -> None:
    """The document's standing has a row for each source."""
    at = open_app(both)
    at.query_params.update({"q": "retry request", "plan": PLAN, "target": "kettle.md"})
    at.switch_page("views/explain.py")
    assert "vector:table" in all_text(run(at))


def test_an_encoder_that_the_corpus_lacks_is_said_on_the_page(open_app: Open, both: Path) -> None:
    """The other sources answer; the sentence names the encoders that there are."""
    at = open_app(both, q="retry request", plan="default sources=keyword,vector:other")
    shown = all_text(at)
    assert "no vectors of other" in shown
    assert "hashing, table" in shown
    assert "retries.md" in column(at, "hybrid")
