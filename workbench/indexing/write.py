"""What a run writes: stage what was read, embed what lacks a vector, build, report.

Texts are embedded into a journal, so that an interrupted run goes on where it stopped. They are taken a window at a time and
sorted by length within it, because encoders run texts of one length together. The encoder gets a few hundred at once: after
each such batch the vectors are in the journal and the run may be stopped. Time left follows the tokens, because texts differ in
length.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import astuple, replace
from pathlib import Path

from workbench import settings
from workbench.encode.protocol import Meter
from workbench.indexing.compare import recipe_of
from workbench.indexing.reading import Texts, read_all
from workbench.indexing.state import FileKey, Run, StoredFile, Task, check, stored_files
from workbench.ingest.walk import digest_of
from workbench.records import EncoderIdentity, FileReport, FileStatus, IndexReport
from workbench.store.build import build_generation, vector_key
from workbench.store.database import fetch, open_reading
from workbench.store.generations import DATABASE, Layout, Manifest, step
from workbench.store.journal import Journal, forget
from workbench.store.milvus.remote import Remote
from workbench.store.milvus.write import drop_older, refuse_fetched
from workbench.store.schema import CUT_RECORDS
from workbench.store.staging import Staging, lost_wholes

_WINDOW = 8192
_BATCH = 256
_FILES_PER_WORKER = 40
_BYTES_PER_WORKER = 4_000_000
_PLAIN = frozenset({".md", ".markdown", ".txt", ".rst", ".py", ".js", ".ts", ".c", ".h", ".java", ".go", ".rs", ".sh"})
"""Files that only this project's own code and the standard library read: these neither crash nor loop."""


@contextmanager
def staging_file(corpus: Path) -> Iterator[Staging]:
    building = Layout(corpus).building
    building.mkdir()
    with closing(Staging(building / "staging.duckdb")) as staging:
        yield staging


def stage_files(run: Run, staging: Staging, tasks: Sequence[Task]) -> None:
    """Read what has changed, into the staging file. Of documents with one id the first is taken."""
    meter = Meter(run.tell, "read", len(tasks), float(sum(task.found.size for task in tasks)) or 1.0)
    taken = _carried_ids(run)
    documents = chunks = doubled = 0
    reading = (
        read_all(tasks, run.cutting, _workers(run.options.workers, tasks))
        if run.cluster is None
        else run.cluster.read_all(tasks, run.cutting)
    )
    with closing(reading) as items:
        for task, item in items:
            check(run.abort)
            found = task.found
            if isinstance(item, FileReport):
                if doubled:
                    reason = f"{doubled} of its records have the id of another one"
                    remedy = item.remedy or "Give each record its own id"
                    item = replace(item, reason="; ".join(filter(None, (reason, item.reason))), remedy=remedy)
                _finish(run, task, item, documents, chunks)
                documents = chunks = doubled = 0
                meter.advance(1, found.path, float(found.size))
                step("read")
                continue
            for document, records in item:
                if document.document_id in taken:
                    doubled += 1
                    continue
                taken.add(document.document_id)
                location = found.absolute if document.path == found.path else ""
                staging.add_document(document, records, file=(found.root, found.path), location=location)
                documents += 1
                chunks += len(records)
            meter.advance(0, found.path)
    staging.flush()


def _workers(asked: int | None, tasks: Sequence[Task]) -> int:
    """Helpers for these files: one takes a second to start, and keeps a reader's crash, loop or greed from this process."""
    if asked is not None:
        return min(asked, len(tasks))
    size = sum(task.found.size for task in tasks)
    if len(tasks) <= _FILES_PER_WORKER and size < _BYTES_PER_WORKER:
        return int(any(os.path.splitext(task.found.path)[1].lower() not in _PLAIN for task in tasks))
    return min(int(settings.get("threads")), len(tasks))


def _finish(run: Run, task: Task, outcome: FileReport, documents: int, chunks: int) -> None:
    """The row of the table of files, and the report, of a file that was read."""
    found, rules, status = task.found, task.rules, outcome.status
    if documents:
        status = FileStatus.INDEXED
        run.read += 1
    elif status is FileStatus.INDEXED:
        status = FileStatus.FAILED
    digest = recipe = ""
    if outcome.status is not FileStatus.FAILED:  # else the next run tries again
        recipe = recipe_of(run, found, rules)
        with suppress(OSError):  # it has gone since it was read: without a digest the next run finds it changed
            digest = digest_of(found)
    run.rows.append(
        StoredFile(
            found.root, found.path, found.size, found.modified_ns, digest, recipe, rules.collections,
            status, outcome.reason, outcome.remedy, documents, chunks, rules.access,
        )
    )  # fmt: skip
    run.reports[found.root, found.path] = replace(outcome, status=status, documents=documents, chunks=chunks)


def _carried_ids(run: Run) -> set[str]:
    if run.previous.database is None:
        return set()
    sql = "SELECT d.document_id, f.root, f.path FROM documents d JOIN files f ON f.number = d.file_number"
    with closing(open_reading(run.previous.database)) as connection:
        return {name for name, *key in fetch(connection, sql) if tuple(key) not in run.dropped}


def write(run: Run, staging: Staging) -> IndexReport:
    """Embed what lacks a vector, then build and publish."""
    from workbench.encode.load import load_encoder

    previous, corpus, cutting = run.previous, run.corpus, run.cutting
    if previous.pin is not None:
        refuse_fetched(corpus, previous.pin.manifest, previous.pin.folder)
    lost = _lost_vectors(run)
    staging.add("dropped", *sorted(run.dropped))
    staging.flush()
    if lost and previous.database is not None:
        staging.stage_carried(previous.database)
    staging.add("files", *(astuple(file)[:-1] for file in run.rows))
    staging.add("roots", *(astuple(root) for _, root in sorted(run.roots.items())))
    for name in sorted({*cutting.granularities, *staging.collections()}):
        kind = "whole" if cutting.is_whole(name) else "structure"
        staging.add("collections", (name, cutting.granularity(name).value, kind))
    staging.flush()
    embedded = reused = 0
    with ExitStack() as stack:
        journals: dict[str, tuple[EncoderIdentity, Journal]] = {}
        for name, identity in run.encoders:
            key = vector_key(identity)
            journal = stack.enter_context(closing(Journal(Layout(corpus).embeddings, identity)))
            journals[key] = identity, journal
            held = previous.encoders.get(key)
            began = time.monotonic()
            old = previous.database if held is not None and key not in lost else None
            made, found = _embed_missing(run, staging, journal, old, name)
            embedded, reused = embedded + made, reused + found
            if made:
                run.embedding_seconds += time.monotonic() - began
                run.warnings += load_encoder(name).notes
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
            run.store,
            None if run.cluster is None else run.cluster.write,
        )
        if run.store:
            drop_older(corpus, Remote(**built.manifest.remote))
        for _, journal in journals.values():
            forget(journal, built.text_hashes, built.manifest.counts["records"])
    run.warnings += built.warnings
    reused += built.carried * (len(run.encoders) - len(lost))
    return report_of(run, built.manifest, embedded, reused, _held_now(run, built.manifest.generation))


def _embed_missing(
    run: Run, staging: Staging, journal: Journal, old_database: Path | None, name: str
) -> tuple[int, int]:
    """Give every staged text a vector in the journal, unless the old generation's database (None where its vectors do not count)
    or the journal has one: number of texts embedded, and of texts whose vector was there.
    """
    from workbench.encode.load import load_encoder

    missing, tokens, there = staging.find_missing(old_database, journal.hashes())
    if missing:
        meter = Meter(run.tell, "embed", missing, float(tokens))
        batches = _batches(staging)
        if run.cluster is None:
            encoder = load_encoder(name)
            embedded = ((batch, encoder.encode(batch[2])) for batch in batches)
        else:
            embedded = run.cluster.embed(name, batches)
        with closing(embedded):
            for (hashes, lengths, texts), vectors in embedded:
                journal.append(hashes, vectors)
                meter.advance(len(texts), name, float(sum(lengths)))
                step("embedded")
                check(run.abort)
        journal.sync()
    return missing, there


def _batches(staging: Staging) -> Iterator[Texts]:
    """The texts without a vector, those of one length together: hashes, tokens and texts."""
    for window in staging.missing_texts(_WINDOW):
        window.sort(key=lambda row: (-row[1], row[0]))
        for at in range(0, len(window), _BATCH):
            hashes, lengths, texts = zip(*window[at : at + _BATCH], strict=True)
            yield hashes, lengths, texts


def _rules_of_all(run: Run) -> str | None:
    """Digest of the rules of access that every document of the next generation is under; None where some are older."""
    now, previous = run.rules.access_digest(), run.previous
    before = None if previous.pin is None else previous.pin.manifest.rules
    newly = not run.old_access and all(k in run.kept or k in run.dropped for k in previous.files)
    return now if before == now or newly else None


def _lost_vectors(run: Run) -> frozenset[str]:
    """Keys of the encoders whose vectors in the generation before are not as they were written.

    They are made again from the texts; whole documents of which only the file knows the parts are left out and reported.
    """
    pin, database = run.previous.pin, run.previous.database
    if pin is None or database is None:
        return frozenset()
    keys = {vector_key(identity) for _, identity in run.encoders} & run.previous.encoders.keys()
    lost = frozenset(key for key in keys if not pin.sound(f"vectors/{key}/vectors.npy", again=True))
    if lost:
        names = ", ".join(sorted(run.previous.encoders[key].name for key in lost))
        run.warnings.append(f"The stored vectors of {names} were damaged, and every text was embedded again")
        pin.check(pin.database, again=True)
        reason = "Its vectors were damaged, and only its file knows their parts"
        for key in set(lost_wholes(database)) - run.dropped:
            run.reports[key] = FileReport(key[1], FileStatus.FAILED, reason, f"Index {key[0]} again")
            run.dropped.add(key)
    return lost


def _held_now(run: Run, generation: str) -> dict[FileKey, StoredFile]:
    """What a new generation holds of each file. Warns of chunks that the encoder cuts."""
    with closing(open_reading(Layout(run.corpus).folder(generation) / DATABASE)) as connection:
        name, identity = run.encoders[0]
        cut = len(fetch(connection, CUT_RECORDS, [identity.max_tokens]))
        if cut:
            ((chunks,),) = fetch(connection, "SELECT count(*) FROM records WHERE granularity = 'chunk'")
            run.warnings.append(
                f"{cut:,} of {chunks:,} chunks {'is' if cut == 1 else 'are'} longer than the encoder reads: {name} embeds the"
                f" first {identity.max_tokens:,} tokens, and vectors know nothing of the rest"
            )
        return stored_files(connection)


def report_of(
    run: Run,
    manifest: Manifest,
    embedded: int = 0,
    reused: int | None = None,
    held: Mapping[FileKey, StoredFile] | None = None,
) -> IndexReport:
    """The run's report. Without `reused` every text was; without `held` (what the generation that answers now holds of each file)
    nothing changed, and it is the one from before.
    """
    files = run.previous.files if held is None else held
    counted = [
        report.counted(file.documents, file.chunks, file.same_as)
        if (file := files.get(key)) is not None and report.status is not FileStatus.REMOVED
        else report
        for key, report in run.reports.items()
    ]
    return IndexReport(
        generation=manifest.generation,
        files=tuple(sorted(counted, key=lambda f: (f.path, f.status is FileStatus.REMOVED))),
        documents=manifest.counts["documents"],
        chunks=manifest.counts["records"],
        embedded=embedded,
        reused=manifest.counts["records"] * len(run.encoders) if reused is None else reused,
        seconds=time.monotonic() - run.started,
        changed=held is not None,
        warnings=tuple(run.warnings),
        embedding_seconds=run.embedding_seconds,
        encoders=tuple(identity.name for _, identity in run.encoders),
    )
