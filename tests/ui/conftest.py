"""A small corpus, and the app opened on it: shared by the page tests."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from app_for_tests import run, write_corpus
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from workbench.plan.controls import GROUPS

APP = Path(__file__).parents[2] / "workbench" / "ui" / "app.py"


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-eight small documents, one of them hostile."""
    return write_corpus(tmp_path_factory.mktemp("small"))


@pytest.fixture(autouse=True, scope="session")
def _components_once() -> Iterator[None]:
    """Each AppTest looks through all installed packages for components, which takes longer than drawing the page."""
    found = manifest_scanner.scan_component_manifests()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", lambda: found)
        yield


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
        for name in (g.name for g in GROUPS if not g.expanded):
            at.session_state[f"wb.w.section.{name}"] = True
        return run(at)

    return opened


@pytest.fixture
def own_corpus(tmp_path: Path, small_corpus: Path) -> Path:
    """A copy of the small corpus with no saved data, to write to."""
    return Path(shutil.copytree(small_corpus, tmp_path / "corpus", ignore=shutil.ignore_patterns("desk.sqlite*")))


@pytest.fixture(scope="session")
def two_collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with a summary, in two collections."""
    import workbench as wb

    folder = tmp_path_factory.mktemp("two")
    (folder / "source").mkdir()
    filler = "\n\n".join(
        f"The kettle and water, remark {n}, with many more words about it all. " * 12 for n in range(4)
    )
    text = f"# Kettles\n\n## Summary\n\nAll about pots.\n\n## Use\n\nkettle water boils\n\n{filler}\n\n## Care\n\nDescale.\n"
    (folder / "source" / "kettles.md").write_text(text, encoding="utf-8")
    wb.index([folder / "source"], corpus=folder / "corpus", collection=["docs", "memory"], encoder="hashing", workers=0)
    return folder / "corpus"


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """Judgments of the small corpus: eight queries, one of whose texts is hostile."""
    lines = ["query_id,query,document,grade"]
    asked = {
        "how do retries work": "retries.md",
        "timeouts": "timeouts.md",
        "rate limits": "limits.md",
        "kettle": "kettle.md",
    }
    asked |= {
        "good tea": "tea.md",
        "wait longer": "backoff.py",
        "<script>pelican</script>": "hostile.md",
        "note 3": "notes/note-03.md",
    }
    lines += [f"q{n},{text},{path},1" for n, (text, path) in enumerate(asked.items())]
    path = tmp_path / "judged.csv"
    path.write_text("\n".join(lines) + "\n")
    return path
