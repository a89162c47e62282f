"""What the app saves verifies: it retrieves deeper than the plan, so that sliders move, and that changes no figure."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus_files import write_files

import workbench as wb
from workbench.snapshot.snapshot import Snapshot
from workbench.ui.finder import Asked, Finder
from workbench.ui.state import AppState

QUERIES = ("retry pause", '"retry pause" -stop', "unheard again")


def saved(corpus: wb.Corpus, query: str) -> Snapshot:
    """A search a column, as the Snapshots page saves them; a slider was moved meanwhile."""
    state, finder = AppState(query=query), Finder()
    for plan in (state.plan.replace({"fusion.k": 5, "limit": 3}), state.plan):
        found = [finder.find(corpus, Asked(query), c.mode, plan) for c in state.columns]
    return Snapshot.of([f.result for f in found if f.result is not None])


@pytest.mark.slow
def test_what_the_app_saves_verifies_and_an_edited_document_is_named(tmp_path: Path) -> None:
    """More chunks match than any depth takes; documents with several passages in one chunk are among them."""
    gap = "\n" * 30
    texts = {f"d{n:03d}.md": f"retry {n}\n" + ("again" if n % 3 else f"pause{gap}retry pause\n") for n in range(140)}
    files, folder = write_files(tmp_path / "files", texts), tmp_path / "corpus"
    wb.index([files], corpus=folder, encoder="hashing", workers=0)
    with wb.open_corpus(folder) as corpus:
        kept = [Snapshot.load(saved(corpus, query).to_bytes()) for query in QUERIES]
        for one in kept:
            found = one.verify(corpus)
            assert (found.ok, found.ran, [c.said for c in found.searches if c.said]) == (True, True, [])
        (matched,) = (s for s in kept[0].searches[0].funnel if (s.step, s.source) == ("match", "grep"))
        assert (matched.left, matched.reason) == (100, "234 lines in 140 files match: at least 100 chunks")
    (files / "d007.md").write_text("another text\n", encoding="utf-8")
    wb.index([files], corpus=folder, encoder="hashing", workers=0)
    with wb.open_corpus(folder) as corpus:
        for one in kept:
            assert "1 document changed (d007.md)" in one.verify(corpus).verdict
        assert "1 document changed (d007.md)" in " ".join(kept[0].diff(saved(corpus, QUERIES[0])).sentences)
