"""Whatever happens to the files of a folder, the corpus is that of the folder as it is: copies come, go, change and take over."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.reports import FileStatus
from workbench.store.reader import open_generation

PATHS = ("a.txt", "b/a.txt", "b/c.md", "d.md", "e/f.txt")
TEXTS = ("The pump lost its pressure.\n", "# Pumps\n\nThe pump lost its pressure.\n", "# Cats\n\nCats sleep all day.\n")

writes = st.tuples(st.just("write"), st.sampled_from(PATHS), st.sampled_from(TEXTS))
unlinks = st.tuples(st.just("unlink"), st.sampled_from(PATHS), st.just(""))
steps = st.lists(st.lists(writes | unlinks, min_size=1, max_size=4), min_size=1, max_size=4)


def state(corpus: Path) -> tuple[object, ...]:
    """Digest, documents with the paths of their copies, and the records as they are indexed."""
    with open_generation(corpus) as opened:
        opened.verify()
        records = opened.records
        numbers = range(records.documents_total)
        paths = records.paths_of(numbers)
        documents = [(d.path, d.title, paths.get(n, ())) for n, d in enumerate(records.headers(numbers))]
        chunks = [row.chunk for row in records.rows(range(records.records_total))]
        vectors = opened.vectors().vectors(range(records.records_total)).tobytes()  # type: ignore[arg-type]
        return opened.manifest.digest, documents, chunks, vectors


def apply(docs: Path, changes: list[tuple[str, str, str]]) -> None:
    """Write and unlink files; one file stays, so that there is always something."""
    for what, name, text in changes:
        path = docs / name
        if what == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        else:
            path.unlink(missing_ok=True)


@pytest.mark.slow
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(history=steps, removed=st.sampled_from((*PATHS, "")))
def test_the_history_of_a_folder_leaves_no_trace(
    tmp_path: Path, history: list[list[tuple[str, str, str]]], removed: str
) -> None:
    """Ids, texts, titles, vectors and copies equal those of a corpus made at once; the counts of each report add up."""
    base = tmp_path / "case"
    shutil.rmtree(base, ignore_errors=True)
    docs = base / "docs"
    docs.mkdir(parents=True)
    (docs / "stays.md").write_text("# Stays\n\nWhatever happens.\n")
    grown = base / "grown.corpus"
    for changes in history:
        apply(docs, changes)
        report = wb.index([docs], grown, encoder="hashing", workers=0)
        assert sum(f.documents for f in report.files) == report.documents
        assert sum(f.chunks for f in report.files) == report.chunks
        indexed = [f for f in report.files if f.status in (FileStatus.INDEXED, FileStatus.UNCHANGED)]
        assert len(indexed) == report.documents + report.copies
    if removed and (docs / removed).exists():
        wb.remove([removed], grown)
        (docs / removed).unlink()
        wb.index([docs], grown, encoder="hashing", workers=0)
    wb.index([docs], base / "fresh.corpus", encoder="hashing", workers=0)
    assert state(grown) == state(base / "fresh.corpus")
