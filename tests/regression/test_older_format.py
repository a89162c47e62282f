"""A corpus that an earlier version wrote: opening says what to do, and one index run makes it anew with the same vectors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import workbench as wb
from workbench.errors import CorpusError
from workbench.store import generations
from workbench.store.database import open_writing
from workbench.store.generations import DATABASE, MANIFEST, MANIFEST_COPY, Layout, Manifest


def test_a_corpus_of_an_earlier_format_is_indexed_again_without_embedding(tmp_path: Path) -> None:
    """Also the documents of a folder that the run does not name; answers are those of before."""
    corpus = tmp_path / "my.corpus"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.md").write_text(f"# Pumps\n\nThe pump of {name} retries twice.\n")
    wb.index([tmp_path / "a", tmp_path / "b"], corpus, encoder="hashing", workers=0)
    with wb.open_corpus(corpus) as opened:
        right = [(h.path, h.score) for h in opened.search("retry pumps").hits]
    folder = Layout(corpus).folder(generations.current(corpus))
    connection = open_writing(folder / DATABASE)  # format 1 kept its words in other tables and in a folder of arrays
    connection.execute("DROP TABLE postings; DROP TABLE lengths; DROP TABLE words_made_with")
    connection.close()
    older = replace(Manifest.read(folder), format=1, parts=generations.measure_parts(folder))
    for name in (MANIFEST, MANIFEST_COPY):
        (folder / name).write_text(older.to_json())
    with pytest.raises(CorpusError, match=r"earlier version.*Run `workbench index`.*vectors are kept"):
        wb.open_corpus(corpus)
    report = wb.index([tmp_path / "a"], corpus, workers=0)
    assert report.embedded == 0
    assert any("earlier version" in warning for warning in report.warnings)
    with wb.open_corpus(corpus) as opened:
        assert [(h.path, h.score) for h in opened.search("retry pumps").hits] == right
    assert not wb.index([tmp_path / "a"], corpus, workers=0).changed
