"""From changed files to a published generation: read and stage them, embed what lacks a vector, build, report.

Texts are embedded into a journal, so that an interrupted run goes on where it stopped. They are taken a window at a time and
sorted by length within it, because encoders run texts of one length together. The encoder gets a few hundred at once: after
each such batch the vectors are in the journal and the run may be stopped. Time left follows the tokens, because texts differ in
length.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench import settings
from workbench.encode.protocol import Meter
from workbench.indexing.compare import recipe_of
from workbench.indexing.reading import Batch, Outcome, read_all
from workbench.indexing.state import Abort, FileKey, Run, StoredFile, Task, check, stored_files
from workbench.indexing.trial import try_searches
from workbench.ingest.walk import digest_of
from workbench.records import EncoderIdentity, ProgressCallback
from workbench.reports import FileReport, FileStatus, IndexReport
from workbench.store.build import build_generation, vector_key
from workbench.store.database import fetch, open_reading
from workbench.store.generations import DATABASE, Layout, step
from workbench.store.journal import Journal, forget
from workbench.store.schema import CUT_RECORDS
from workbench.store.staging import Staging, lost_wholes

if TYPE_CHECKING:
    from workbench.encode.protocol import Encoder

_WINDOW = 8192
_BATCH = 256
_FILES_PER_WORKER = 40
_BYTES_PER_WORKER = 4_000_000


def stage_files(run: Run, staging: Staging, tasks: Sequence[Task]) -> None:
    """Read what has changed, into the staging file."""
    meter = Meter(run.tell, "read", len(tasks), float(sum(task.found.size for task in tasks)) or 1.0)
    taken = _TakenIds(run)
    items = read_all(tasks, run.cutting, _workers(run.options.workers, tasks))
    file: _StagedFile | None = None
    try:
        for task, item in items:
            check(run.abort)
            file = file or _StagedFile(run, staging, task, taken)
            if isinstance(item, Outcome):
                run.reports.append(((task.found.root, task.found.path), file.finish(item)))
                file = None
                meter.advance(1, task.found.path, float(task.found.size))
                step("read")
            else:
                file.add(item)
                meter.advance(0, task.found.path)
    finally:
        items.close()
    staging.flush()


_PLAIN = frozenset({".md", ".markdown", ".txt", ".rst", ".py", ".js", ".ts", ".c", ".h", ".java", ".go", ".rs", ".sh"})
"""Files that only this project's own code and the standard library read: these neither crash nor loop."""


def _workers(asked: int | None, tasks: Sequence[Task]) -> int:
    """Helpers for these files: one takes a second to start, and keeps a reader's crash, loop or greed from this process."""
    if asked is not None:
        return asked
    size = sum(task.found.size for task in tasks)
    if len(tasks) <= _FILES_PER_WORKER and size < _BYTES_PER_WORKER:
        return int(any(os.path.splitext(task.found.path)[1].lower() not in _PLAIN for task in tasks))
    return min(int(settings.get("threads")), len(tasks))


class _StagedFile:
    """One file on its way into the staging file."""

    def __init__(self, run: Run, staging: Staging, task: Task, taken: _TakenIds) -> None:
        self._run, self._staging, self._task, self._taken = run, staging, task, taken
        self._documents = self._chunks = self._doubled = 0

    def add(self, batch: Batch) -> None:
        """Stage some of its documents."""
        found = self._task.found
        for document, records in batch:
            if not self._taken.take(document.document_id):
                self._doubled += 1
                continue
            location = found.absolute if document.path == found.path else ""
            self._staging.add_document(document, records, file=(found.root, found.path), location=location)
            self._documents += 1
            self._chunks += len(records)

    def finish(self, outcome: Outcome) -> FileReport:
        """Its row of the table of files, and its report."""
        run, found, rules = self._run, self._task.found, self._task.rules
        reason, remedy = outcome.reason, outcome.remedy
        if self._doubled:
            reason = f"{self._doubled} of its records have the id of another one" + (f"; {reason}" if reason else "")
            remedy = remedy or "Give each record its own id"
        status = FileStatus.INDEXED if self._documents else outcome.status
        if status is FileStatus.INDEXED and not self._documents:
            status = FileStatus.FAILED
        run.read += bool(self._documents)
        digest = recipe = ""
        if outcome.status is not FileStatus.FAILED:  # else the next run tries again
            recipe = recipe_of(run, found, rules)
            with suppress(OSError):  # it has gone since it was read: without a digest the next run finds it changed
                digest = digest_of(found)
        run.rows.append(
            (
                found.root, found.path, found.size, found.modified_ns, digest, recipe, list(rules.collections),
                status.value, reason, remedy, self._documents, self._chunks,
                rules.access,
            )
        )  # fmt: skip
        return FileReport(found.path, status, reason, remedy, self._documents, self._chunks, outcome.seconds)


class _TakenIds:
    """Ids of documents that are carried over or staged: two documents never share one."""

    def __init__(self, run: Run) -> None:
        self._ids: set[str] = set()
        database = run.previous.database
        if database is not None:
            connection = open_reading(database)
            try:
                rows = fetch(
                    connection,
                    "SELECT d.document_id, f.root, f.path FROM documents d JOIN files f ON f.number = d.file_number",
                )
            finally:
                connection.close()
            self._ids.update(row[0] for row in rows if (row[1], row[2]) not in run.dropped)

    def take(self, document_id: str) -> bool:
        """True the first time."""
        if document_id in self._ids:
            return False
        self._ids.add(document_id)
        return True


# --- embedding ---


def embed_missing(
    staging: Staging,
    journal: Journal,
    old_database: Path | None,
    load: Callable[[], Encoder],
    identity: EncoderIdentity,
    tell: ProgressCallback,
    abort: Abort,
) -> tuple[int, int]:
    """Give every staged text a vector in the journal, unless the old generation or the journal has one.

    Args:
        staging: What the run has read.
        journal: The encoder's journal.
        old_database: The old generation's database if it holds this encoder's vectors.
        load: Loads the encoder; called only if a text lacks its vector.
        identity: What the encoder is expected to be.
        tell: Called with progress.
        abort: Asked before each batch.

    Returns:
        Number of texts embedded, and of texts whose vector was there.

    Raises:
        IndexingStopped: `abort` said so; what was embedded is kept.
        EncoderError: The encoder cannot be loaded or run.
    """
    missing, tokens, there = staging.find_missing(old_database, journal.hashes())
    if not missing:
        return 0, there
    encoder = load()
    meter = Meter(tell, "embed", missing, float(tokens))
    for window in staging.missing_texts(_WINDOW):
        window.sort(key=lambda row: (-row[1], row[0]))
        for at in range(0, len(window), _BATCH):
            check(abort)
            batch = window[at : at + _BATCH]
            journal.append([row[0] for row in batch], encoder.encode([row[2] for row in batch]))
            meter.advance(len(batch), identity.name, float(sum(row[1] for row in batch)))
            step("embedded")
    journal.sync()
    return missing, there


# --- building ---


def write(run: Run, staging: Staging) -> IndexReport:
    """Embed what lacks a vector, then build and publish."""
    from workbench.encode.load import load_encoder

    previous, corpus = run.previous, run.corpus
    lost = lost_vectors(run)
    staging.add("dropped", *sorted(run.dropped))
    staging.flush()
    if lost and previous.database is not None:
        staging.stage_carried(previous.database)
    staging.add("files", *run.rows)
    staging.add("roots", *((r.root, r.whole, r.salt, r.options) for _, r in sorted(run.roots.items())))
    cutting = run.cutting
    named = {*cutting.granularities, *(name for (name,) in staging.query("SELECT DISTINCT collection FROM records"))}
    staging.add(
        "collections",
        *(
            (name, cutting.granularity(name).value, "whole" if cutting.is_whole(name) else "structure")
            for name in sorted(named)
        ),
    )
    staging.flush()
    embedded = there = 0
    with ExitStack() as stack:
        journals: dict[str, tuple[EncoderIdentity, Journal]] = {}
        for name, identity in run.encoders:
            key = vector_key(identity)
            journal = journals[key] = (identity, Journal(Layout(corpus).embeddings, identity))
            stack.callback(journal[1].close)
            old = previous.database if key in previous.encoders and key not in lost else None
            began = time.monotonic()
            made, found = embed_missing(
                staging, journal[1], old, partial(load_encoder, name), identity, run.tell, run.abort
            )
            run.embedding_seconds += time.monotonic() - began if made else 0.0
            embedded, there = embedded + made, there + found
            run.warnings += load_encoder(name).notes if made else ()
            held = previous.encoders.get(key)
            if held is not None and held.runtime != identity.runtime:
                run.warnings.append(
                    f"{name} is run by {identity.runtime} now; vectors made by {held.runtime} were kept"
                )
        check(run.abort)
        staging.close()
        built = build_generation(
            corpus,
            staging.path,
            previous.pin,
            journals,
            run.tell,
            _rules_of_all(run),
            lost,
            lambda made: try_searches(made, run.encoders),
        )
        run.warnings += built.warnings
        for _, made_by in journals.values():
            forget(made_by, built.text_hashes, built.manifest.counts["records"])
    held_now = _held_now(run, built.manifest.generation)
    counts = built.manifest.counts["documents"], built.manifest.counts["records"]
    return report_of(
        run,
        built.manifest.generation,
        embedded,
        there + built.carried * (len(run.encoders) - len(lost)),
        counts,
        held_now,
    )


def _rules_of_all(run: Run) -> str | None:
    """Digest of the rules of access that every document of the next generation is under; None where some are older."""
    now, previous = run.rules.access_digest(), run.previous
    before = None if previous.pin is None else previous.pin.manifest.rules
    return now if before == now or all(k in run.kept or k in run.dropped for k in previous.files) else None


def lost_vectors(run: Run) -> frozenset[str]:
    """Keys of the encoders whose vectors in the generation before are not as they were written.

    They are made again from the texts; whole documents of which only the file knows the parts are left out and reported.
    """
    pin, database = run.previous.pin, run.previous.database
    if pin is None or database is None:
        return frozenset()
    keys = {vector_key(identity) for _, identity in run.encoders} & run.previous.encoders.keys()
    lost = frozenset(key for key in keys if not pin.sound(f"vectors/{key}/vectors.npy", anew=True))
    if lost:
        names = ", ".join(sorted(run.previous.encoders[key].name for key in lost))
        run.warnings.append(f"The stored vectors of {names} were damaged, and every text was embedded again")
        pin.check(DATABASE, anew=True)
        gone = set(lost_wholes(database)) - run.dropped
        run.reports = [(key, report) for key, report in run.reports if key not in gone]
        reason = "Its vectors were damaged, and only its file knows their parts"
        run.reports += [(k, FileReport(k[1], FileStatus.FAILED, reason, f"Index {k[0]} again")) for k in sorted(gone)]
        run.dropped |= gone
    return lost


def _held_now(run: Run, generation: str) -> dict[FileKey, StoredFile]:
    """What a new generation holds of each file. Warns of chunks that the encoder cuts."""
    connection = open_reading(Layout(run.corpus).folder(generation) / DATABASE)
    try:
        name, identity = run.encoders[0]
        cut = len(fetch(connection, CUT_RECORDS, [identity.max_tokens]))
        if cut:
            ((chunks,),) = fetch(connection, "SELECT count(*) FROM records WHERE granularity = 'chunk'")
            is_are = "is" if cut == 1 else "are"
            run.warnings.append(
                f"{cut:,} of {chunks:,} chunks {is_are} longer than the encoder reads: {name} embeds the first"
                f" {identity.max_tokens:,} tokens, and vectors know nothing of the rest"
            )
        return stored_files(connection)
    finally:
        connection.close()


def _told(key: FileKey, report: FileReport, held: Mapping[FileKey, StoredFile]) -> FileReport:
    file = held.get(key)
    if file is None or report.status is FileStatus.REMOVED:
        return report
    return report.counted(file.documents, file.chunks, file.same_as)


def report_of(
    run: Run,
    generation: str,
    embedded: int,
    reused: int,
    counts: tuple[int, int],
    held: Mapping[FileKey, StoredFile] | None = None,
) -> IndexReport:
    """The run's report.

    Args:
        run: The run.
        generation: Id of the generation that answers now.
        embedded, reused: Texts.
        counts: Documents and records of that generation.
        held: What it holds of each file; None: nothing changed, and it is the generation from before.
    """
    files = run.previous.files if held is None else held
    told = (_told(key, report, files) for key, report in run.reports)
    return IndexReport(
        generation=generation,
        files=tuple(sorted(told, key=lambda f: (f.path, f.status is FileStatus.REMOVED))),
        documents=counts[0],
        chunks=counts[1],
        embedded=embedded,
        reused=reused,
        seconds=time.monotonic() - run.started,
        changed=held is not None,
        warnings=tuple(run.warnings),
        embedding_seconds=run.embedding_seconds,
        encoders=tuple(identity.name for _, identity in run.encoders),
    )
