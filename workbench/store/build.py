"""Building the next generation: tables, columns and texts, then vectors, words and lines, then the manifest and the swap.

The tables come first, then the texts for grep, which are read from them; vectors and words need nothing of each other and are
built at the same time. Everything is built from two read-only files: the old generation and what the run staged.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import platform
import re
import threading
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

import workbench
from workbench.errors import CorpusError, WorkbenchError
from workbench.records import EncoderIdentity, Progress, ProgressCallback
from workbench.store import generations, schema
from workbench.store.arrays import Columns, write_columns
from workbench.store.database import fetch, open_reading, open_writing, stream
from workbench.store.generations import DATABASE, Layout, Manifest, Pin, damaged, step
from workbench.store.grep.text import build_text
from workbench.store.journal import Journal
from workbench.store.lexical.build import build_words
from workbench.store.vectors import MATRIX, build_vectors

if TYPE_CHECKING:
    import duckdb

    from workbench.store.milvus.write import Writer

_VECTOR_BLOCK = 4096
_PAUSE = 0.02  # seconds between looks at what runs
_PACKAGES = ("duckdb", "numpy", "usearch", "google-re2", "PyStemmer", "sentence-transformers", "openvino", "tokenizers")


class Rows(Protocol):
    """Vectors by row: an array, or a store that answers as one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and dimension."""

    def __getitem__(self, rows: Any, /) -> NDArray[np.float32]:
        """Vectors of some rows."""


@dataclass(frozen=True, slots=True)
class Built:
    """A published generation.

    Attributes:
        manifest: Its manifest.
        carried: Number of records that were carried over from the generation before.
        text_hashes: Hashes of the texts whose vectors it holds.
        warnings: What did not go as it should, and does not keep it from answering.
    """

    manifest: Manifest
    carried: int
    text_hashes: frozenset[str]
    warnings: tuple[str, ...] = ()


def build_generation(
    corpus: Path,
    staged: Path,
    old: Pin | None,
    journals: Mapping[str, tuple[EncoderIdentity, Journal]],
    tell: ProgressCallback,
    rules: str | None = None,
    lost: Collection[str] = (),
    store: str = "",
    writer: Writer | None = None,
) -> Built:
    """Build and publish the next generation. Only under the writer's lock.

    Args:
        corpus, staged: The corpus folder, and the closed staging file.
        old: The generation that answers now, pinned, or None.
        journals: Key of a vector folder to its encoder and the journal that holds every vector which `old` lacks; the
            corpus's own encoder first.
        tell: Called with a Progress at each step.
        rules: Digest of the rules of access that every document was indexed under; None: not all under the same.
        lost: Keys of encoders whose vectors in `old` are damaged: nothing is carried over from them.
        store: Address of the Milvus server that texts, words and vectors go to; "" for here.
        writer: Writes blocks of records there, perhaps in other processes.

    Raises CorpusDamaged where the old generation's database has another digest than it should.
    """
    if old is not None:
        old.check(old.database, again=True)
    folder = Layout(corpus).building / "generation"
    folder.mkdir()
    kept = set(old.manifest.encoders).difference(lost) if old is not None else set()
    facts = _build_database(folder, staged, old, journals, kept, tell)
    manifest = _manifest(corpus, folder, facts.counts, {key: given[0] for key, given in journals.items()}, rules)
    warnings = []
    if store:
        manifest = _build_remote(folder, manifest, store, facts, tell, writer)
    else:
        warnings = _build_here(folder, manifest, facts, tell)
    tell(Progress("publish", 0, 1))
    manifest = replace(manifest, parts=generations.measure_parts(folder))
    generations.complete(folder, manifest)
    step("manifest")
    publish(corpus, folder, manifest)
    tell(Progress("publish", 1, 1))
    return Built(manifest, facts.carried, facts.text_hashes, tuple(filter(None, warnings)))


def _build_here(folder: Path, manifest: Manifest, facts: _Facts, tell: ProgressCallback) -> list[str]:
    """Write `text/`, the tables of words and `vectors/`; what did not go as it should."""
    with closing(open_reading(folder / DATABASE)) as connection:
        texts = stream(connection, "SELECT text FROM documents ORDER BY number", 200)
        build_text(folder / "text", (row[0] for row in texts), tell)
    step("texts")
    warnings = []
    with _words_beside(folder, tell):
        for key, identity in manifest.encoders.items():
            blocks, total = facts.vectors[key].blocks(), manifest.counts["records"]
            warnings.append(build_vectors(folder / "vectors" / key, blocks, total, identity, tell))
        step("vectors")
    step("words")
    return warnings


def _build_remote(
    folder: Path, manifest: Manifest, store: str, facts: _Facts, tell: ProgressCallback, writer: Writer | None
) -> Manifest:
    from workbench.store.milvus.remote import Remote
    from workbench.store.milvus.write import build_remote, remote_name

    def vectors_of(key: str, first: int, last: int) -> NDArray[np.float32]:
        edges = np.searchsorted(facts.vectors[key].number, [first, last])
        return facts.vectors[key].gather(int(edges[0]), int(edges[1]))

    remote = Remote(store, remote_name(manifest.generation))
    build_remote(folder, remote, manifest.encoders, vectors_of, tell, writer)
    step("words")
    return replace(manifest, remote={"uri": store, "name": remote.name})


class _Cancelled(Exception):
    """Ends the word index after the build has failed elsewhere."""


@contextmanager
def _words_beside(folder: Path, tell: ProgressCallback) -> Iterator[None]:
    """Build the word index in another thread while the block builds vectors; its progress is reported after the block's."""
    cancelled = threading.Event()
    reports: SimpleQueue[Progress] = SimpleQueue()

    def report(progress: Progress) -> None:
        if cancelled.is_set():
            raise _Cancelled
        reports.put(progress)

    def build() -> None:
        with closing(open_writing(folder / DATABASE)) as connection:
            build_words(connection, folder.parent, report)
            connection.execute("CHECKPOINT")

    with ThreadPoolExecutor(1, thread_name_prefix="words") as pool:
        words = pool.submit(build)
        try:
            yield
            while not (words.done() and reports.empty()):
                with suppress(Empty):
                    tell(reports.get(timeout=_PAUSE))
            words.result()
        except BaseException:
            cancelled.set()
            raise


def publish(corpus: Path, folder: Path, manifest: Manifest) -> None:
    """Publish a complete folder once every part of it opens and holds what the manifest says."""
    from workbench.store.reader import open_pinned

    try:
        with open_pinned(corpus, generations.hold(folder, manifest)) as opened:
            if manifest.remote:
                from workbench.store.milvus.remote import Remote
                from workbench.store.milvus.write import publish_remote

                publish_remote(corpus, folder, manifest, Remote(**manifest.remote))
            else:
                opened.open_all()
            arrays, vectors = opened.records.arrays, [opened.vectors(e.name) for e in manifest.encoders.values()]
            held = {arrays.records_total, len(opened.lexical.lengths), *map(len, vectors)}
            if held != {manifest.counts["records"]} or arrays.documents_total != manifest.counts["documents"]:
                raise damaged(folder, "does not hold what its manifest says")
    except WorkbenchError as exc:
        raise CorpusError(
            f"The new generation is not as it was written, so it was not published: {exc.message}",
            "Check the disk, and run the same command again; the corpus is as it was",
        ) from exc
    step("tried")
    generations.publish(corpus, folder, manifest)


# --- tables ----------------------------------------------------------------------------------------------------------


class _Facts(NamedTuple):
    """What is known once the tables are there: each encoder's vectors, and numbers for the rest."""

    vectors: dict[str, _Vectors]
    carried: int
    counts: dict[str, int]
    text_hashes: frozenset[str]


def _build_database(
    folder: Path,
    staged: Path,
    old: Pin | None,
    journals: Mapping[str, tuple[EncoderIdentity, Journal]],
    kept: Collection[str],
    tell: ProgressCallback,
) -> _Facts:
    with closing(open_writing(folder / DATABASE)) as connection:
        connection.execute(schema.attach("staged", staged))
        if old is not None:
            connection.execute(schema.attach("old", old.folder / old.database))
        statements = schema.build_tables(old is not None)
        for done, statement in enumerate(statements):
            tell(Progress("tables", done, len(statements)))
            connection.execute(statement)
            step("tables")
        write_columns(connection, folder / "records")
        vectors = {
            key: _vectors(connection, journal, _old_vectors(old, key) if key in kept else None)
            for key, (_, journal) in journals.items()
        }
        ((carried,),) = connection.execute("SELECT count(old_number) FROM record_numbers").fetchall()
        (counts,) = fetch(
            connection,
            "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM records), (SELECT count(*) FROM files),"
            " (SELECT coalesce(sum(size), 0)::BIGINT FROM documents)",
        )
        hashes = fetch(connection, "SELECT DISTINCT text_hash FROM records WHERE granularity = 'chunk'")
        connection.execute("CHECKPOINT")
    step("database")
    named = dict(zip(("documents", "records", "files", "bytes"), map(int, counts), strict=True))
    return _Facts(vectors, int(carried), named, frozenset(row[0] for row in hashes))


def _old_vectors(old: Pin | None, key: str) -> Rows | None:
    if old is None:
        return None
    if old.manifest.remote:
        from workbench.store.milvus.read import StoredRows

        return StoredRows(old.manifest.remote, key, old.manifest.encoders[key])
    return np.asarray(np.load(old.folder / "vectors" / key / MATRIX, mmap_mode="r"))


def _vectors(connection: duckdb.DuckDBPyConnection, journal: Journal, old: Rows | None) -> _Vectors:
    """Rows of `schema.vector_sources` for one encoder. Raises CorpusError if a record would have no vector."""
    import pyarrow as pa

    hashes = journal.hashes()
    rows = pa.table({"hash": pa.array(hashes, pa.string()), "row": pa.array(range(len(hashes)), pa.int64())})
    connection.register("journal", rows)
    known = "SELECT hash, 1 AS source, row FROM journal"
    if old is not None:
        # Only a chunk's own vector is that of its text; a whole document's is a mean.
        known += " UNION ALL SELECT text_hash, 0, number FROM old.records WHERE granularity = 'chunk'"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE locations AS SELECT hash, min_by(source, (source, row)) AS source,"
        f" min_by(row, (source, row)) AS row FROM ({known}) GROUP BY hash"
    )
    connection.unregister("journal")
    # On the connection itself: a cursor of it does not see its temporary tables.
    found = connection.execute(schema.vector_sources(old is not None)).fetchnumpy()
    number, source, row = (np.asarray(found[name], np.int64) for name in ("number", "source", "row"))
    made = _Vectors(number, source, row, (old, journal.vectors()))
    total = fetch(connection, "SELECT count(*) FROM records")[0][0]
    if len(_starts(made.number)) != total:
        raise CorpusError("Some texts of the new generation have no vector", "Run the same command again")
    return made


# --- vectors ---------------------------------------------------------------------------------------------------------


class _Vectors(NamedTuple):
    """Where the vectors of all records come from: row `row` of store `source`. `number`, up, is the record's; a record has one
    part, a whole document several. All int64 (p,). The stores are the generation before and the journal.
    """

    number: NDArray[np.int64]
    source: NDArray[np.int64]
    row: NDArray[np.int64]
    stores: tuple[Rows | None, Rows]

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """The vectors in number order, in blocks: float32 (m, dim), L2-normalised."""
        edges = np.r_[_starts(self.number), len(self.number)]
        at = 0
        while at < len(edges) - 1:
            # As many records as have a block of parts between them; a document of more parts comes alone.
            stop = max(at + 1, int(np.searchsorted(edges, edges[at] + _VECTOR_BLOCK, "right")) - 1)
            yield self.gather(int(edges[at]), int(edges[stop]))
            at = stop

    def gather(self, first: int, last: int) -> NDArray[np.float32]:
        """The vectors of the records whose parts are from `first` to before `last`."""
        source, row, number = self.source[first:last], self.row[first:last], self.number[first:last]
        parts = np.empty((last - first, self.stores[1].shape[1]), np.float32)
        for which, store in enumerate(self.stores):
            chosen = np.flatnonzero(source == which)
            if len(chosen) and store is not None:
                parts[chosen] = store[row[chosen]]
        starts = _starts(number)
        if len(starts) == len(parts):
            return parts
        counts = np.diff(np.r_[starts, len(parts)])
        means = np.add.reduceat(parts.astype(np.float64), starts) / counts[:, None]
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        made: NDArray[np.float32] = (means / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        single = counts == 1
        made[single] = parts[starts[single]]
        return made


def _starts(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each number of a rising list begins."""
    return np.flatnonzero(np.diff(numbers, prepend=-1))


def _manifest(
    corpus: Path, folder: Path, counts: Mapping[str, int], encoders: Mapping[str, EncoderIdentity], rules: str | None
) -> Manifest:
    from workbench.store.records import content_digest

    digest = content_digest(Columns(folder / "records").digests, encoders)
    return Manifest(
        generation=f"{generations.next_number(corpus):06d}-{digest[:8]}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        digest=digest,
        counts=counts,
        parts={},
        encoders=encoders,
        encoder=next(iter(encoders), ""),
        packages=_versions(),
        rules=rules,
    )


@functools.cache
def _versions() -> dict[str, str]:
    installed = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"workbench": workbench.__version__, "python": platform.python_version(), **installed}


def vector_key(identity: EncoderIdentity) -> str:
    """Name of an encoder's folder in a generation: readable, and different for other weights."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(identity.name).name).strip(".-")[:40] or "encoder"
    return f"{name}-{hashlib.sha256(f'{identity.name}{chr(10)}{identity.digest}'.encode()).hexdigest()[:8]}"
