"""Building the next generation: tables, columns and texts, then vectors, words and lines, then the manifest and the swap.

The tables come first, then the texts for grep, which are read from them; vectors and words need nothing of
each other and are built at the same time, as many as the setting `threads` allows. Everything is built from two
read-only files: the old generation and what the run staged.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import re
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import workbench
from workbench import settings
from workbench.errors import CorpusDamaged, CorpusError
from workbench.records import EncoderIdentity, Progress, ProgressCallback
from workbench.store import generations, locks, schema
from workbench.store.arrays import write_columns
from workbench.store.database import fetch, open_reading, open_writing, stream
from workbench.store.generations import DATABASE, Layout, Manifest, Pin, step
from workbench.store.journal import Journal
from workbench.store.staging import quoted

if TYPE_CHECKING:
    import duckdb

    from workbench.store.reader import Generation

_VECTOR_BLOCK = 4096
_PAUSE = 0.02  # seconds between looks at what runs
_PACKAGES = ("duckdb", "numpy", "usearch", "google-re2", "PyStemmer", "sentence-transformers", "openvino", "tokenizers")


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
    trial: Callable[[Generation], None] | None = None,
) -> Built:
    """Build and publish the next generation. Only under the writer's lock.

    Args:
        corpus: The corpus folder.
        staged: The closed staging file.
        old: The generation that answers now, pinned, or None.
        journals: Key of a vector folder to its encoder and the journal that holds every vector which `old` lacks; the
            corpus's own encoder first.
        tell: Called with a Progress at each step.
        rules: Digest of the rules of access that every document was indexed under; None: not all under the same.
        lost: Keys of encoders whose vectors `old` has and whose digests do not hold: nothing is carried over from them.
        trial: Called with the new generation, open, before it is published; what it raises keeps the old one.

    Returns:
        What was published.

    Raises:
        CorpusDamaged: The old generation's database has another digest than it should.
    """
    if old is not None:
        old.check(DATABASE, anew=True)
    folder = Layout(corpus).building / "generation"
    folder.mkdir()
    kept = set(old.manifest.encoders).difference(lost) if old is not None else set()
    facts = _build_database(folder, staged, old, journals, kept, tell)
    _write_texts(folder, tell)
    step("texts")
    parts: dict[str, Callable[[ProgressCallback], str]] = {
        f"vectors {key}": partial(
            _build_vectors, folder, key, identity, journal, facts.sources[key], old if key in kept else None
        )
        for key, (identity, journal) in sorted(journals.items())
    }
    parts["words"] = partial(_build_words, folder)
    threads = int(settings.get("threads"))
    built = build_together(parts, tell, threads)
    warnings = [warning for warning in built.values() if warning]
    tell(Progress("publish", 0, 1))
    encoders = {key: identity for key, (identity, _) in journals.items()}
    manifest = _manifest(corpus, folder, facts.counts, encoders, rules)
    generations.complete(folder, manifest)
    step("manifest")
    publish(corpus, folder, manifest, trial)
    tell(Progress("publish", 1, 1))
    return Built(manifest, facts.carried, facts.text_hashes, tuple(warnings))


class _Cancelled(Exception):
    """Ends a part that reports its progress after the build has failed elsewhere."""


def build_together(
    parts: Mapping[str, Callable[[ProgressCallback], str]], tell: ProgressCallback, threads: int
) -> dict[str, str]:
    """Run parts at the same time, `threads` at once: the graph grows in C++, the words in a process of their own.

    `tell` is called in this thread with the progress of the first part that is not finished, so that whoever watches sees a
    sequence. Raises what the first part that failed raised, or what `tell` raised; no part is running then.
    """
    reports: dict[str, deque[Progress]] = {name: deque() for name in parts}
    cancelled = threading.Event()

    def report(name: str, progress: Progress) -> None:
        if cancelled.is_set():
            raise _Cancelled
        reports[name].append(progress)

    results: dict[str, str] = {}
    with ThreadPoolExecutor(max(1, threads), thread_name_prefix="build") as pool:
        running = {name: pool.submit(part, partial(report, name)) for name, part in parts.items()}
        try:
            for name, future in running.items():
                while True:
                    finished = future in wait([future], timeout=_PAUSE).done
                    for other in running.values():
                        if other.done() and other.exception() is not None:
                            other.result()
                    while reports[name]:
                        tell(reports[name].popleft())
                    if finished:
                        break
                results[name] = future.result()
                step(name.partition(" ")[0])
        except BaseException:
            cancelled.set()
            for future in running.values():
                future.cancel()
            raise
    return results


def publish(corpus: Path, folder: Path, manifest: Manifest, trial: Callable[[Generation], None] | None) -> None:
    """Publish a complete folder once it has answered a trial."""
    if trial is not None:
        from workbench.store.reader import open_pinned

        lock = locks.shared(folder / "lock")
        assert lock is not None
        try:
            opened = open_pinned(corpus, Pin(folder, manifest, lock))
        except CorpusDamaged as exc:
            raise CorpusError(
                f"The new generation is not as it was written, so it was not published: {exc.message}",
                "Check the disk, and run the same command again; the corpus is as it was",
            ) from exc
        with opened:
            trial(opened)
        step("tried")
    generations.publish(corpus, folder, manifest)


# --- tables ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Facts:
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
    connection = open_writing(folder / DATABASE)
    try:
        connection.execute(f"ATTACH {quoted(staged)} AS staged (READ_ONLY)")
        if old is not None:
            connection.execute(f"ATTACH {quoted(old.folder / DATABASE)} AS old (READ_ONLY)")
        statements = schema.build_tables(old is not None)
        for done, statement in enumerate(statements):
            tell(Progress("tables", done, len(statements)))
            connection.execute(statement)
            step("tables")
        write_columns(connection, folder / "records")
        sources = {
            key: _vector_sources(connection, journal, key in kept) for key, (_, journal) in sorted(journals.items())
        }
        ((carried,),) = connection.execute("SELECT count(old_number) FROM record_numbers").fetchall()
        (counts,) = fetch(
            connection,
            "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM records), (SELECT count(*) FROM files),"
            " (SELECT coalesce(sum(size), 0)::BIGINT FROM documents)",
        )
        hashes = fetch(connection, "SELECT DISTINCT text_hash FROM records WHERE granularity = 'chunk'")
        connection.execute("DETACH staged")
        if old is not None:
            connection.execute("DETACH old")
        connection.execute("CHECKPOINT")
    finally:
        connection.close()
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


def _build_vectors(
    folder: Path,
    key: str,
    identity: EncoderIdentity,
    journal: Journal,
    sources: Mapping[str, NDArray[np.int64]],
    old: Pin | None,
    tell: ProgressCallback,
) -> str:
    """Write one encoder's vectors and their graph; a warning where there is no graph."""
    from workbench.store.vectors.build import MATRIX, build_vectors

    before = None
    if old is not None:
        before = np.asarray(np.load(old.folder / "vectors" / key / MATRIX, mmap_mode="r"))
    blocks = vector_blocks(sources, (before, journal.vectors()))
    total = len(np.unique(sources["number"]))
    return build_vectors(folder / "vectors" / key, blocks, total, identity, tell).warning


def vector_blocks(
    sources: Mapping[str, NDArray[np.int64]], stores: Sequence[NDArray[np.float32] | None]
) -> Iterator[NDArray[np.float32]]:
    """The vectors of all records in number order, in blocks: float32 (m, dim), L2-normalised.

    Args:
        sources: `number`, `source` and `row`, int64 (p,), number up: a record's one text, or a whole document's parts.
        stores: The arrays that `source` indexes.
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
    sources: Mapping[str, NDArray[np.int64]], stores: Sequence[NDArray[np.float32] | None], first: int, last: int
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

    digest = content_digest(np.load(folder / "records" / "digests.npy"), encoders)
    return Manifest(
        generation=f"{generations.next_number(corpus):06d}-{digest[:8]}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        digest=digest,
        counts=counts,
        parts=generations.measure_parts(folder),
        encoders=encoders,
        encoder=next(iter(encoders), ""),
        packages=_versions(),
        rules=rules,
    )


def _versions() -> dict[str, str]:
    """Versions of the workbench, Python and the packages whose output is in a generation."""
    versions = {"workbench": workbench.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


# --- words and texts -------------------------------------------------------------------------------------------------


def _build_words(folder: Path, tell: ProgressCallback) -> str:
    """Add the word index to the database."""
    from workbench.store.lexical.build import build_words

    connection = open_writing(folder / DATABASE)
    try:
        build_words(connection, folder.parent, tell)
        connection.execute("CHECKPOINT")
    finally:
        connection.close()
    return ""


def _write_texts(folder: Path, tell: ProgressCallback) -> None:
    """Write the text file."""
    from workbench.store.grep.text import build_text

    connection = open_reading(folder / DATABASE)
    try:
        texts = stream(connection, "SELECT text FROM documents ORDER BY number", 200)
        build_text(folder / "text", (row[0] for row in texts), tell)
    finally:
        connection.close()


def vector_key(identity: EncoderIdentity) -> str:
    """Name of an encoder's folder in a generation: readable, and different for other weights."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(identity.name).name).strip(".-")[:40] or "encoder"
    said = f"{identity.name}\n{identity.digest}"
    return f"{name}-{hashlib.sha256(said.encode('utf-8')).hexdigest()[:8]}"
