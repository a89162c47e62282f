"""The parts of the bench: figures and goals, taking turns, corpora from given chunks, the choice of rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from bench import corpora, run
from bench.figures import Figure, Goal, Peer, Row
from bench.given import GivenDocument, build_given

from workbench.corpus import open_corpus
from workbench.encode.hashing import HashingEncoder
from workbench.errors import UsageError
from workbench.store.vectors.build import MATRIX


def figure(p50: float) -> Figure:
    return Figure(p50, p50, p50, 1)


def test_goals_are_judged_by_medians() -> None:
    """Equal is met; a peer that is missing leaves its goal open; one without a limit has none."""
    peers = (
        Peer("fast", figure(1.0), 2.0),
        Peer("slow", figure(1.9), 1.0),
        Peer("gone", None, 0.5),
        Peer("free", figure(4.0)),
    )
    row = Row("k", "t", "ms", figure(2.0), peers, at_most=2.0, at_least=3.0)
    assert row.goals == (
        Goal("at most 2 ms", True),
        Goal("at least 3", False),
        Goal("at most 2x fast", True),
        Goal("at most 1x slow", False),
        Goal("at most 0.5x gone", None),
    )
    assert [row.ratio(p) for p in peers] == [2.0, pytest.approx(2.0 / 1.9), None, 0.5]


DOCUMENTS = {
    "b/two.txt": ("One line.", "Next\r\nlines\n\nhere.", "Ünïcode and 日本 words"),
    "a.txt": ("A lonely chunk about herons\n",),
}


def given(encoder: HashingEncoder) -> Iterator[GivenDocument]:
    for path, texts in DOCUMENTS.items():
        yield GivenDocument(path, texts, encoder.encode(texts))


def test_a_corpus_is_made_from_given_chunks_and_vectors(tmp_path: Path) -> None:
    """Chunks are their documents' text between their offsets, on their lines, each with the vector that was given."""
    encoder = HashingEncoder()
    built = build_given(tmp_path / "corpus", "/from", given(encoder), encoder.identity, lambda _: None)
    assert dict(built.manifest.counts) | {"bytes": 0} == {
        "documents": 2, "records": 4, "files": 2, "bytes": 0,
    }  # fmt: skip
    with open_corpus(tmp_path / "corpus") as corpus:
        records, opened = corpus.engine.records, corpus.engine.opened
        rows = records.rows(range(4))
        documents = records.documents([row.document_number for row in rows])
        for row, document in zip(rows, documents, strict=True):
            chunk = row.chunk
            assert document.text[chunk.start : chunk.end] == chunk.text
            lines = document.text.split("\n")[chunk.start_line - 1 : chunk.end_line]
            assert "\n".join(lines) == chunk.text.rstrip("\n")
        texts = [text.replace("\r\n", "\n") for path in sorted(DOCUMENTS) for text in DOCUMENTS[path]]
        assert [row.chunk.text for row in rows] == texts
        stored = np.load(opened.folder / "vectors" / opened.encoder_key() / MATRIX)
        expected = encoder.encode([text for path in sorted(DOCUMENTS) for text in DOCUMENTS[path]])
        assert np.array_equal(stored, expected)
        assert corpus.search("heron").hits[0].citation == "a.txt:1-1"
        assert [p.path for p in corpus.grep("日本")] == ["b/two.txt"]
        opened.verify()
    assert sorted(p.name for p in (tmp_path / "corpus").iterdir()) == ["current", "generations", "writer.lock"]


def test_the_large_corpus_is_read_with_its_vectors(tmp_path: Path) -> None:
    """Chunks of a document in their order wherever they stand in the file; vectors are codes times scale, normalised."""
    import pyarrow as pa
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    order = rng.permutation(120)
    table = pa.table(
        {
            "doc_id": [f"d{n // 3:02d}" for n in order],
            "chunk_idx": pa.array([n % 3 for n in order], pa.int32()),
            "text": [f"chunk {n}" for n in order],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / corpora.PARQUET)
    codes, scale = rng.integers(-127, 128, (120, 384)).astype(np.int8), rng.random(120).astype(np.float32) + 0.1
    np.savez(tmp_path / corpora.VECTORS, codes=codes, scale=scale)
    source = corpora.find_source(tmp_path, None)
    assert source.rows == 120
    assert source.identity.name == corpora.MODEL
    documents = list(source.documents())
    assert [d.path for d in documents] == [f"d{n:02d}" for n in range(40)]
    assert [text for d in documents for text in d.texts] == [f"chunk {n}" for n in range(120)]
    vectors = np.concatenate([d.vectors for d in documents])
    wide = codes.astype(np.float64)[np.argsort(order)]
    assert np.allclose(vectors, wide / np.linalg.norm(wide, axis=1, keepdims=True), atol=1e-6)
    part = corpora.find_source(tmp_path, 100)
    assert sum(len(d.texts) for d in part.documents()) == part.rows == 100
    assert part.digest != source.digest == corpora.find_source(tmp_path, 500).digest


def test_rows_are_chosen_by_key_or_group_in_the_order_of_the_table() -> None:
    """Nothing asked for is everything; each key stands once; an unknown name lists those there are."""
    assert run.choose(()) == run.KEYS
    assert len(set(run.KEYS)) == len(run.KEYS)
    assert run.choose(("vector", "keyword.content", "vector.exact")) == (
        "keyword.content",
        "vector.exact",
        "vector.graph",
    )
    groups = [key.partition(".")[0] for key in run.KEYS]
    assert sum(a != b for a, b in pairwise(groups)) + 1 == len(set(groups))
    with pytest.raises(UsageError, match=r"keyword\.typed"):
        run.choose(("keywords",))
