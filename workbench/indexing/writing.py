"""The end of every run that writes: embed what lacks a vector, build the next generation, publish it, report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

from workbench.indexing.copies import settle
from workbench.indexing.embedding import check, embed_missing
from workbench.indexing.previous import FileKey, Previous, StoredFile, stored_files
from workbench.indexing.state import Run
from workbench.indexing.trial import try_searches
from workbench.records import EncoderIdentity
from workbench.reports import FileReport, FileStatus, IndexReport
from workbench.store.build import build_generation, vector_key
from workbench.store.database import fetch, open_reading
from workbench.store.generations import DATABASE, Layout
from workbench.store.journal import Journal, forget
from workbench.store.schema import CUT_RECORDS
from workbench.store.staging import Staging, lost_wholes


def held_encoders(previous: Previous) -> tuple[tuple[str, EncoderIdentity], ...]:
    """The corpus's encoders, its own first."""
    if previous.pin is None:
        return ()
    held, main = previous.encoders, previous.pin.manifest.encoder
    return tuple((held[key].name, held[key]) for key in (main, *sorted(k for k in held if k != main)))


def write(run: Run, staging: Staging) -> IndexReport:
    """Embed what lacks a vector, then build and publish."""
    from workbench.encode.load import load_encoder

    previous, corpus = run.previous, run.corpus
    lost = lost_vectors(run)
    settle(run, staging)
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
    """What a new generation holds of each file: a copy may have become a primary, or a primary a copy. Warns of cut chunks."""
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
        return stored_files(connection, copies=True)
    finally:
        connection.close()


def _told(key: FileKey, report: FileReport, held: Mapping[FileKey, StoredFile]) -> FileReport:
    file = held.get(key)
    if file is None or report.status is FileStatus.REMOVED:
        return report
    return report.counted(file.documents, file.chunks, file.copies, file.same_as)


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
