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
from collections.abc import Collection, Iterator, Mapping, Sequence
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
    encoders = {key: identity for key, (identity, _) in journals.items()}
    stores = {key: (_old_vectors(old, key, kept), journal.vectors()) for key, (_, journal) in journals.items()}
    manifest = _manifest(corpus, folder, facts.counts, encoders, rules)
    warnings = []
    if store:
        manifest = _build_remote(corpus, folder, manifest, store, facts, stores, tell, writer)
    else:
        warnings = _build_here(folder, facts, encoders, stores, tell)
    tell(Progress("publish", 0, 1))
    manifest = replace(manifest, parts=generations.measure_parts(folder))
    generations.complete(folder, manifest)
    step("manifest")
    publish(corpus, folder, manifest)
    tell(Progress("publish", 1, 1))
    return Built(manifest, facts.carried, facts.text_hashes, tuple(filter(None, warnings)))


_Stores = tuple[Rows | None, Rows]
"""The vectors of the generation before, and those of the journal."""


def _old_vectors(old: Pin | None, key: str, kept: Collection[str]) -> Rows | None:
    if old is None or key not in kept:
        return None
    if old.manifest.remote:
        from workbench.store.milvus.read import StoredRows

        return StoredRows(old.manifest.remote, key, old.manifest.encoders[key])
    return np.asarray(np.load(old.folder / "vectors" / key / MATRIX, mmap_mode="r"))


def _build_here(
    folder: Path,
    facts: _Facts,
    encoders: Mapping[str, EncoderIdentity],
    stores: Mapping[str, _Stores],
    tell: ProgressCallback,
) -> list[str]:
    """Write `text/`, the tables of words and `vectors/`; what did not go as it should."""
    with closing(open_reading(folder / DATABASE)) as connection:
        texts = stream(connection, "SELECT text FROM documents ORDER BY number", 200)
        build_text(folder / "text", (row[0] for row in texts), tell)
    step("texts")
    warnings = []
    with _words_beside(folder, tell):
        for key, identity in encoders.items():
            sources = facts.sources[key]
            blocks, total = vector_blocks(sources, stores[key]), len(np.unique(sources["number"]))
            warnings.append(build_vectors(folder / "vectors" / key, blocks, total, identity, tell))
        step("vectors")
    step("words")
    return warnings


def _build_remote(
    corpus: Path,
    folder: Path,
    manifest: Manifest,
    store: str,
    facts: _Facts,
    stores: Mapping[str, _Stores],
    tell: ProgressCallback,
    writer: Writer | None,
) -> Manifest:
    """Write texts, words and vectors to Milvus; the manifest with where they are."""
    from workbench.store.milvus.remote import Remote
    from workbench.store.milvus.write import build_remote, remote_name

    def vectors_of(key: str, first: int, last: int) -> NDArray[np.float32]:
        edges = np.searchsorted(facts.sources[key]["number"], [first, last])
        return _gather(facts.sources[key], stores[key], int(edges[0]), int(edges[1]))

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
    """What is known once the tables are there: where each encoder's vectors come from, and numbers for the rest."""

    sources: dict[str, dict[str, NDArray[np.int64]]]
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
    """Write `corpus.duckdb` and `records/`."""
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
        sources = {key: _vector_sources(connection, journal, key in kept) for key, (_, journal) in journals.items()}
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
    return _Facts(sources, int(carried), named, frozenset(row[0] for row in hashes))


def _vector_sources(
    connection: duckdb.DuckDBPyConnection, journal: Journal, in_old: bool
) -> dict[str, NDArray[np.int64]]:
    """Rows of `schema.vector_sources` for one encoder. Raises CorpusError if a record would have no vector."""
    import pyarrow as pa

    hashes = journal.hashes()
    rows = pa.table({"hash": pa.array(hashes, pa.string()), "row": pa.array(range(len(hashes)), pa.int64())})
    connection.register("journal", rows)
    known = "SELECT hash, 1 AS source, row FROM journal"
    if in_old:
        # Only a chunk's own vector is that of its text; a whole document's is a mean.
        known += " UNION ALL SELECT text_hash, 0, number FROM old.records WHERE granularity = 'chunk'"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE locations AS SELECT hash, min_by(source, (source, row)) AS source,"
        f" min_by(row, (source, row)) AS row FROM ({known}) GROUP BY hash"
    )
    connection.unregister("journal")
    # On the connection itself: a cursor of it does not see its temporary tables.
    found = connection.execute(schema.vector_sources(in_old)).fetchnumpy()
    sources = {name: np.asarray(values, np.int64) for name, values in found.items()}
    total = fetch(connection, "SELECT count(*) FROM records")[0][0]
    if len(np.unique(sources["number"])) != total:
        raise CorpusError("Some texts of the new generation have no vector", "Run the same command again")
    return sources


# --- vectors ---------------------------------------------------------------------------------------------------------


def vector_blocks(
    sources: Mapping[str, NDArray[np.int64]], stores: Sequence[Rows | None]
) -> Iterator[NDArray[np.float32]]:
    """The vectors of all records in number order, in blocks: float32 (m, dim), L2-normalised.

    `sources` has `number`, `source` and `row`, int64 (p,), number up: a record's one text, or a whole document's parts;
    `source` indexes `stores`.
    """
    numbers = sources["number"]
    starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]]) if len(numbers) else np.zeros(0, np.int64)
    edges = np.r_[starts, len(numbers)]
    at = 0
    while at < len(starts):
        # As many records as have a block of parts between them; a document of more parts comes alone.
        stop = max(at + 1, int(np.searchsorted(edges, edges[at] + _VECTOR_BLOCK, "right")) - 1)
        yield _gather(sources, stores, int(edges[at]), int(edges[stop]))
        at = stop


def _gather(
    sources: Mapping[str, NDArray[np.int64]], stores: Sequence[Rows | None], first: int, last: int
) -> NDArray[np.float32]:
    source, row, number = (sources[name][first:last] for name in ("source", "row", "number"))
    dim = next(s.shape[1] for s in stores if s is not None)
    parts = np.empty((last - first, dim), np.float32)
    for which, store in enumerate(stores):
        chosen = np.flatnonzero(source == which)
        if len(chosen) and store is not None:
            parts[chosen] = store[row[chosen]]
    starts = np.flatnonzero(np.r_[True, number[1:] != number[:-1]])
    if len(starts) == len(parts):
        return parts
    counts = np.diff(np.r_[starts, len(parts)])
    means = np.add.reduceat(parts.astype(np.float64), starts) / counts[:, None]
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    made: NDArray[np.float32] = (means / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    single = counts == 1
    made[single] = parts[starts[single]]
    return made


def _manifest(
    corpus: Path, folder: Path, counts: Mapping[str, int], encoders: Mapping[str, EncoderIdentity], rules: str | None
) -> Manifest:
    """Measure and name what was built."""
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
