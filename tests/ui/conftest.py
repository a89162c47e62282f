"""A small corpus, and the app opened on it: shared by the page tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from app_for_tests import run, write_corpus
from streamlit.testing.v1 import AppTest

APP = Path(__file__).parents[2] / "workbench" / "ui" / "app.py"


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-eight small documents, one of them hostile."""
    return write_corpus(tmp_path_factory.mktemp("small"))


@pytest.fixture(autouse=True)
def _no_shared_corpus() -> Iterator[None]:
    """No test sees another one's open corpus."""
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


@pytest.fixture
def open_app(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Open the app on a corpus at an address; it has run once, without an exception."""

    def opened(corpus: Path, **params: str) -> AppTest:
        monkeypatch.setenv("WORKBENCH_CORPUS", str(corpus))
        at = AppTest.from_file(str(APP), default_timeout=30)
        at.query_params.update(params)
        # Closed sections draw no widgets; the tests want all of them.
        for name in ("depth", "keyword", "grep", "documents"):
            at.session_state[f"wb.w.section.{name}"] = True
        return run(at)

    return opened
