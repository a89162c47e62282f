"""A corpus from chunks whose borders and vectors are given: written by the project's own writer, without embedding.

It is what an indexing run does after reading and embedding: documents go into the staging file, vectors into the journal,
and the writer builds and publishes a generation from both. So a bench of 200,000 chunks needs minutes and not an hour.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.ingest.chunking import chunk_id, document_id
from workbench.ingest.rules import DEFAULT_GRANULARITIES
from workbench.records import Chunk, Document, EncoderIdentity, Granularity, ProgressCallback
from workbench.reports import FileStatus
from workbench.store import generations, locks
from workbench.store.build import Built, build_generation, vector_key
from workbench.store.generations import Layout
from workbench.store.journal import Journal, forget
from workbench.store.staging import Staging, text_hash

COLLECTION = "docs"
_JOINT = "\n"


@dataclass(frozen=True, slots=True, eq=False)
class GivenDocument:
    """A document as its chunks.

    Attributes:
        path: Path that citations show.
        texts: The chunks in order; the document's text is these, one after the other on lines of their own.
        vectors: float32 (m, dim), L2-normalised, one a chunk.
        collections: Where it goes: as chunks, or whole where the collection is one of whole documents.
    """

    path: str
    texts: tuple[str, ...]
    vectors: NDArray[np.float32]
    collections: tuple[str, ...] = (COLLECTION,)


def build_given(
    corpus: Path, root: str, documents: Iterable[GivenDocument], identity: EncoderIdentity, tell: ProgressCallback
) -> Built:
    """Build and publish a generation of a new corpus.

    Args:
        corpus: The corpus folder; made where it does not exist.
        root: What the documents say they were read from.
        documents: The documents; each path once.
        identity: The encoder that made the vectors.
        tell: Called with a Progress at each step.

    Raises:
        CorpusLocked: Another process is building it.
        CorpusError: A vector has not length 1.
    """
    corpus.mkdir(parents=True, exist_ok=True)
    layout = Layout(corpus)
    with locks.writer(layout.writer_lock, corpus):
        generations.clean(corpus)
        try:
            layout.building.mkdir()
            journal = Journal(layout.embeddings, identity)
            staging = Staging(layout.building / "staging.duckdb")
            try:
                names: set[str] = set()
                for given in documents:
                    _stage(staging, journal, root, given)
                    names.update(given.collections)
                staging.add("roots", (root, False, "", ""))
                for name in sorted(names):
                    staging.add("collections", (name, _granularity(name).value, "structure"))
                staging.flush()
            finally:
                staging.close()
            built = build_generation(corpus, staging.path, None, {vector_key(identity): (identity, journal)}, tell)
            forget(journal, built.text_hashes, 0)
        finally:
            generations.clean(corpus)
    return built


def _stage(staging: Staging, journal: Journal, root: str, given: GivenDocument) -> None:
    texts = [text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "") for text in given.texts]
    whole = _JOINT.join(texts)
    data = whole.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(data).hexdigest()
    own = document_id(None, given.path)
    document = Document(
        own, given.path, root, whole, title=given.path.rpartition("/")[2], size=len(data), sha256=digest
    )
    pieces = []
    start, line = 0, 1
    for position, text in enumerate(texts):
        end = start + len(text)
        last = line + text.rstrip("\n").count("\n")
        pieces.append(Chunk("", own, "", position, start, end, line, last, text))
        line += text.count("\n") + len(_JOINT)
        start = end + len(_JOINT)
    journal.append([text_hash(piece.indexed_text) for piece in pieces], given.vectors)
    records: list[tuple[Chunk, Sequence[Chunk]]] = []
    for name in given.collections:
        if _granularity(name) is Granularity.DOCUMENT:
            # A whole document's vector is made of its pieces' ones.
            one = Chunk("", own, "", 0, 0, len(whole), 1, pieces[-1].end_line, whole, granularity=Granularity.DOCUMENT)
            records.append((_in(one, name), pieces))
        else:
            records += [(_in(piece, name), (piece,)) for piece in pieces]
    staging.add_document(document, records, file=(root, given.path), location="")
    status = FileStatus.INDEXED.value
    staging.add(
        "files", (root, given.path, len(data), 0, digest, "", list(given.collections), status, "", "", 1, len(records), "")
    )  # fmt: skip


def _in(chunk: Chunk, collection: str) -> Chunk:
    own = chunk_id(chunk.document_id, collection, chunk.start, chunk.end)
    return replace(chunk, chunk_id=own, collection=collection)


def _granularity(collection: str) -> Granularity:
    return DEFAULT_GRANULARITIES.get(collection, Granularity.CHUNK)
