"""Longer stories of the indexing run: several folders, collections, encoders, processes, interruptions."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from corpus_files import paths, run, write_texts

from workbench.errors import CorpusNotFound, EncoderMismatch, IndexingStopped, UsageError
from workbench.indexing import remove
from workbench.records import EncoderIdentity, Progress
from workbench.store import generations
from workbench.store.generations import Layout
from workbench.store.reader import open_generation

pytestmark = pytest.mark.slow


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of three small files."""
    return write_texts(tmp_path / "docs")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Where the corpus goes."""
    return tmp_path / "my.corpus"


def test_another_folder_later_keeps_the_first_one(docs: Path, corpus: Path, tmp_path: Path):
    """Also where both hold the same relative path: both documents stay, with ids of their own."""
    run(docs, corpus)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Other\n\nAnother a.\n")
    report = run(tmp_path / "notes", corpus)
    assert "both hold a.md" in report.warnings[0]
    assert (report.found, report.documents) == (1, 4)
    assert paths(corpus) == ["a.md", "a.md", "b.md", "sub/c.md"]
    assert run(tmp_path / "notes", corpus).changed is False
    assert run(docs, corpus).changed is False


def test_a_second_collection_of_the_same_files_is_added(docs: Path, corpus: Path):
    """One document, records in both; an edit then changes both."""
    run(docs, corpus, collection=("artifact_chunks",))
    report = run(docs, corpus, collection=("artifacts",))
    assert report.documents == 3
    with open_generation(corpus) as opened:
        info = opened.records.info(opened.records.scope(None, None, ()))
        assert info["collections"] == {"artifact_chunks": 3, "artifacts": 3}
        assert info["granularities"] == {"artifact_chunks": "chunk", "artifacts": "document"}
    (docs / "b.md").write_text("# Backoff\n\nWait less.\n")
    assert run(docs, corpus, collection=("artifacts",)).embedded == 1
    with open_generation(corpus) as opened:
        (number,) = [n for n in range(3) if opened.records.documents([n])[0].path == "b.md"]
        rows = opened.records.rows(opened.records.records_of(number).tolist())
        assert {r.chunk.collection for r in rows} == {"artifact_chunks", "artifacts"}
        assert all("less" in r.chunk.text for r in rows)


def test_one_chunk_a_document_is_a_property_of_a_collection(docs: Path, corpus: Path):
    """It stays so in later runs, and an existing collection is not cut in two ways."""
    (docs / "long.md").write_text("word " * 2000)
    report = run(docs, corpus, one_chunk_per_document=True)
    assert report.chunks == report.documents == 4
    (docs / "b.md").write_text("other")
    assert run(docs, corpus).chunks == 4
    assert run(docs, corpus, collection=("more",)).chunks > 8
    with pytest.raises(UsageError, match="several chunks"):
        run(docs, corpus, collection=("more",), one_chunk_per_document=True)


def test_removed_paths_are_gone_until_their_folder_is_indexed_again(docs: Path, corpus: Path):
    """By absolute path or as citations show it; an unknown path is refused."""
    run(docs, corpus)
    report = remove([docs / "sub"], corpus)
    assert [(f.path, f.status.value) for f in report.files] == [("sub/c.md", "removed")]
    assert report.embedded == 0
    remove(["a.md"], corpus)
    assert paths(corpus) == ["b.md"]
    with pytest.raises(UsageError, match="Nothing in the corpus"):
        remove(["nothing.md"], corpus)
    assert run(docs, corpus).embedded == 2
    with pytest.raises(CorpusNotFound):
        remove(["a.md"], corpus / "none")


def test_a_stopped_run_leaves_the_corpus_and_keeps_what_was_embedded(docs: Path, corpus: Path):
    """By abort, or by any exception, KeyboardInterrupt too; the next run embeds the rest only."""
    run(docs, corpus)
    before = generations.current(corpus)
    (docs / "d.md").write_text("# D\n\nNew text.\n")
    embedded = threading.Event()

    def tell(progress: Progress) -> None:
        if progress.step == "embed" and progress.done == progress.total:
            embedded.set()

    with pytest.raises(IndexingStopped, match="kept"):
        run(docs, corpus, progress=tell, abort=embedded.is_set)

    def interrupt(progress: Progress) -> None:
        if progress.step == "tables":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(docs, corpus, progress=interrupt)
    assert generations.current(corpus) == before
    assert not Layout(corpus).building.exists()
    report = run(docs, corpus)
    assert (report.embedded, report.documents) == (0, 4)
    assert not Layout(corpus).embeddings.exists()


def test_another_encoder_embeds_everything_anew_and_several_may_be_held(docs: Path, corpus: Path, monkeypatch):
    """The corpus's own is the first; naming only it keeps the others; all folders are read for a new one."""
    import workbench.encode.load as load
    from workbench.encode.hashing import IDENTITY, HashingEncoder

    other = EncoderIdentity("other", "ff" * 32, "hashing 1", IDENTITY.dim, IDENTITY.max_tokens)

    class Other(HashingEncoder):
        identity = other

        def encode(self, texts, progress=None):  # type: ignore[no-untyped-def]
            return -super().encode(texts, progress)

    known, real = load.identity_of, load.load_encoder
    monkeypatch.setattr(load, "identity_of", lambda name=None: other if name == "other" else known(name))
    monkeypatch.setattr(
        load, "load_encoder", lambda name=None, runtime=None: Other() if name == "other" else real(name)
    )
    run(docs, corpus)
    report = run(docs / "sub", corpus, encoder=["hashing", "other"])
    assert (report.embedded, report.documents) == (3, 3)
    with open_generation(corpus) as opened:
        assert opened.vectors().identity == IDENTITY
        assert np.array_equal(opened.vectors("other").vectors(np.arange(3)), -opened.vectors().vectors(np.arange(3)))
        with pytest.raises(EncoderMismatch, match="has no vectors of third"):
            opened.vectors("third")
    (docs / "b.md").write_text("# Backoff\n\nWait less.\n")
    assert run(docs, corpus).embedded == 2
