"""The indexing run: walk, read, cut, embed, write, swap.

1. The writer's lock is taken and what a killed run left is removed.
2. The files are walked; each is compared with what the corpus knows of it: the bytes' sha256, and a *recipe*, a digest of all
   else that shapes its documents (version of the readers, rules, budget, tokenizer, chunking, salt of its root). Equal: it is
   carried over and neither read nor embedded.
3. The others are read and cut, and stream into a staging file.
4. Texts without a vector are embedded into a journal. Vectors are found again by the hash of their text, so a moved file or an
   edit elsewhere in a document embeds nothing that was embedded before.
5. The next generation is built beside the old one and published by one rename. If nothing changed there is none.

What a generation holds is what the last run over each folder could read: a file that has vanished, is excluded now or can no
longer be read leaves the corpus, and the report says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from workbench import settings
from workbench.desk.jobs import Recorder, recording
from workbench.errors import CorpusError, CorpusNotFound, EncoderError, EncoderMismatch, UsageError
from workbench.indexing.compare import compare, cutting_for, find_files
from workbench.indexing.embedding import Abort, check, embed_missing
from workbench.indexing.previous import Previous, load_previous
from workbench.indexing.progress import Tell
from workbench.indexing.roots import inside, targets
from workbench.indexing.stage import stage_files
from workbench.indexing.state import Options, Run
from workbench.ingest.rules import FileRules, load_rules
from workbench.records import EncoderIdentity, FileReport, FileStatus, IndexReport, Progress
from workbench.store import generations, locks
from workbench.store.generations import Layout
from workbench.store.journal import Journal, forget
from workbench.store.staging import Staging
from workbench.store.writer import build_generation, vector_key


def ignore_progress(progress: Progress) -> None:
    """Tell nobody."""


def never() -> bool:
    """Go on."""
    return False


def index(
    paths: Sequence[str | Path],
    corpus: str | Path,
    *,
    collections: Sequence[str] = ("docs",),
    progress: Tell | None = None,
    abort: Abort | None = None,
    encoder: str | Sequence[str] | None = None,
    tenant: str | None = None,
    roles: Sequence[str] = (),
    sensitivity: str | None = None,
    type: str | None = None,
    one_chunk_per_document: bool = False,
    hidden: bool = False,
    gitignore: bool = True,
    workers: int | None = None,
    wait: bool = False,
) -> IndexReport:
    """Index files and folders into a corpus.

    Args:
        paths: Folders (each a root; what vanished in it is removed) and files.
        corpus: The corpus folder; made where it does not exist.
        collections: Named parts of the corpus that the documents go to; rules in `corpus.yaml` may say otherwise.
        progress: Called with a Progress now and then: steps `walk`, `compare`, `read`, `embed`, `tables`, `vectors`, `words`,
            `text`, `publish`.
        abort: Asked often; True stops the run. Any other exception, KeyboardInterrupt too, does the same.
        encoder: The encoder's name, or several: each record then has a vector of each, the first is the corpus's own and
            its tokenizer cuts. None: those that the corpus has, or for a new corpus the setting `encoder`. Other ones than
            the corpus has make it read and embed all its folders again.
        tenant, roles, sensitivity: Who may see the documents; roles empty: everyone of the tenant.
        type: Their type; None leaves it to the readers.
        one_chunk_per_document: New collections get one chunk a document, without context.
        hidden: Take hidden files.
        gitignore: Honour `.gitignore`.
        workers: Helper processes that read; None decides by the number of files, 0 reads in this process.
        wait: Wait while another process is indexing.

    Returns:
        The report; its files are those below `paths`.

    Raises:
        UsageError: A path does not exist, or a setting cannot be.
        CorpusLocked: Another process is writing, and `wait` is False.
        IndexingStopped: `abort` said so.
        EncoderError: The encoder cannot be loaded or run.
        CorpusDamaged: The old generation cannot be read.
    """
    options = Options.of(
        collections, encoder, tenant, roles, sensitivity, type,
        one_chunk_per_document=one_chunk_per_document, hidden=hidden, gitignore=gitignore, workers=workers,
    )  # fmt: skip
    asked = targets(paths)
    folder = _corpus_folder(Path(corpus))
    return _locked(
        recording(folder, "index", asked, collections),
        folder,
        progress or ignore_progress,
        abort or never,
        wait,
        lambda p, t, a: _index(folder, asked, options, p, t, a),
    )


_OURS = ("current", "writer.lock", "generations", "corpus.yaml", "desk.sqlite")


def _corpus_folder(folder: Path) -> Path:
    """The corpus's folder, made where it does not exist. Raises UsageError for a place that is something else."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = os.listdir(folder)
    except OSError as exc:
        reason = (exc.strerror or type(exc).__name__).lower()
        raise UsageError(f"The corpus {folder} cannot be made or read: {reason}", "Choose another --corpus") from exc
    if names and not any(name in names for name in _OURS):
        raise UsageError(f"{folder} holds other files and is no corpus", "Choose an empty or new folder for --corpus")
    return folder


def remove(
    paths: Sequence[str | Path],
    corpus: str | Path,
    *,
    progress: Tell | None = None,
    abort: Abort | None = None,
    wait: bool = False,
) -> IndexReport:
    """Take files and folders out of a corpus; the files themselves stay, and need not exist.

    A path is absolute, relative to the working directory, or as citations show it. Indexing its folder again brings it back.

    Raises:
        CorpusNotFound: There is no corpus there.
        UsageError: Nothing in the corpus has one of these paths.
        CorpusLocked, IndexingStopped, CorpusDamaged: As for `index`.
    """
    folder = Path(corpus)
    if not generations.exists(folder):
        raise CorpusNotFound(f"There is no corpus at {folder}", "Make one with: workbench index PATH")
    return _locked(
        recording(folder, "remove", [os.fspath(path) for path in paths], ()),
        folder,
        progress or ignore_progress,
        abort or never,
        wait,
        lambda p, t, a: _remove(folder, paths, p, t, a),
    )


@contextmanager
def _told() -> Iterator[None]:
    """A full or read-only disk, or too little memory, in one sentence, wherever in the run it is met."""
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError, MemoryError) as exc:
        reason = str(exc).partition("\n")[0] or type(exc).__name__
        raise CorpusError(
            f"The new generation could not be built: {reason}",
            "Free disk space or memory, and run the same command again; the corpus is as it was",
        ) from exc


def _locked(
    recorded: AbstractContextManager[Recorder],
    folder: Path,
    tell: Tell,
    abort: Abort,
    wait: bool,
    work: Callable[[Previous, Tell, Abort], IndexReport],
) -> IndexReport:
    """Do the work under the writer's lock, between two cleanings, and keep its job."""
    with _told(), recorded as job, locks.writer(Layout(folder).writer_lock, folder, wait=wait, abort=abort):
        job.running()
        generations.clean(folder)
        previous = load_previous(folder)

        def tell_or_stop(progress: Progress) -> None:
            # The builders know nothing of stopping: they are stopped through the progress that they report. Publishing is
            # not stopped half-way: by its last report the new generation answers.
            if progress.step != "publish":
                check(abort)
            tell(progress)

        try:
            report = work(previous, tell_or_stop, abort)
        finally:
            previous.close()
            # Whatever happened, what was being built goes; vectors that were made stay in the journal.
            generations.clean(folder)
        job.done(report)
        if job.trouble:
            report = replace(
                report, warnings=(*report.warnings, f"The run was not written down as a job: {job.trouble}")
            )
        return report


# --- index -----------------------------------------------------------------------------------------------------------


def _index(
    corpus: Path, asked: tuple[str, ...], options: Options, previous: Previous, tell: Tell, abort: Abort
) -> IndexReport:
    started = time.monotonic()
    encoders = choose_encoders(options.encoders, previous)
    run = Run(corpus, options, tell, abort, previous, load_rules(corpus), encoders, started)
    run.anew = previous.pin is not None and _keys(encoders) != _keys(_held(previous))
    also: dict[str, str] = {}
    if run.anew:
        also = _all_targets(asked, previous)
        names = ", ".join(name for name, _ in encoders)
        run.warnings.append(f"The corpus now has the encoder {names}: texts without a vector of it were embedded")
    found = find_files(run, asked, also)
    tasks = compare(run, found, (*asked, *also))
    staged = Layout(corpus).building
    staged.mkdir()
    staging = Staging(staged / "staging.duckdb")
    try:
        stage_files(run, staging, tasks)
        if not (run.read or run.anew or previous.pin is None or _lost_documents(run)):
            held = previous.pin.manifest
            counts = held.counts["documents"], held.counts["records"]
            return _report(run, held.generation, 0, counts[1] * len(encoders), counts, changed=False)
        return _write(run, staging)
    finally:
        staging.close()


def _held(previous: Previous) -> tuple[tuple[str, EncoderIdentity], ...]:
    """The corpus's encoders, its own first."""
    if previous.pin is None:
        return ()
    held, main = previous.encoders, previous.pin.manifest.encoder
    return tuple((held[key].name, held[key]) for key in (main, *sorted(k for k in held if k != main)))


def choose_encoders(asked: Sequence[str], previous: Previous) -> tuple[tuple[str, EncoderIdentity], ...]:
    """Name and identity of the run's encoders, none of them loaded. Naming only the corpus's own keeps the others."""
    held = [name for name, _ in _held(previous)]
    names = list(dict.fromkeys(asked)) or held or [str(settings.get("encoder"))]
    if held and names == held[:1]:
        names = held
    return tuple((name, _identity(name)) for name in names)


def _identity(name: str) -> EncoderIdentity:
    """Who an encoder is; it is loaded only where its files do not say (the first time on a machine)."""
    from workbench.encode.load import identity_of, load_encoder

    try:
        identity = identity_of(name)
    except EncoderError:
        return load_encoder(name).identity  # fetches a model that is not on this machine yet
    return identity if identity.runtime and identity.dim and identity.max_tokens else load_encoder(name).identity


def _keys(encoders: Sequence[tuple[str, EncoderIdentity]]) -> list[str]:
    return [vector_key(identity) for _, identity in encoders]


def _all_targets(asked: Sequence[str], previous: Previous) -> dict[str, str]:
    """Every folder and file of the corpus outside `asked`, with how it was walked: perhaps there is another tokenizer, and
    records of folders that nobody asked for would lack a vector. Raises EncoderMismatch where one is not there."""
    paths = {root.root: root.options for root in previous.roots.values() if root.whole}
    for folder, name in sorted(previous.files):
        root = previous.roots[folder]
        if not root.whole:
            paths[os.path.join(folder, name)] = root.options
    also = {path: how for path, how in sorted(paths.items()) if not any(inside(path, target) for target in asked)}
    missing = [path for path in also if not os.path.exists(path)]
    if missing:
        raise EncoderMismatch(
            f"All texts must be embedded again for another encoder, and {missing[0]} is not there",
            f"Bring it back, or take it out first: workbench remove {missing[0]}",
        )
    return also


def _lost_documents(run: Run) -> bool:
    """Whether documents of the old generation are to go."""
    return any(run.previous.files[key].documents for key in run.dropped)


# --- remove ----------------------------------------------------------------------------------------------------------


def _remove(folder: Path, paths: Sequence[str | Path], previous: Previous, tell: Tell, abort: Abort) -> IndexReport:
    run = Run(
        folder, Options(FileRules()), tell, abort, previous, load_rules(folder), _held(previous), time.monotonic()
    )
    for path in paths:
        places = {os.path.abspath(path), os.path.realpath(path)}
        said = os.fspath(path).rstrip("/")
        gone = {
            key
            for key in previous.files
            if any(inside(os.path.join(*key), place) for place in places) or inside(key[1], said)
        }
        if not gone:
            raise UsageError(
                f"Nothing in the corpus has the path {said!r}",
                "Write it as citations show it, or as the absolute path of its file or folder",
            )
        run.dropped |= gone
    left = {root for root, path in previous.files if (root, path) not in run.dropped}
    run.roots = {path: root for path, root in previous.roots.items() if path in left}
    for key in sorted(run.dropped):
        if previous.files[key].status is FileStatus.INDEXED:
            run.reports.append(FileReport(key[1], FileStatus.REMOVED, "It was taken out"))
    run.cutting = cutting_for(run, previous.granularities)
    building = Layout(folder).building
    building.mkdir()
    staging = Staging(building / "staging.duckdb")
    try:
        return _write(run, staging)
    finally:
        staging.close()


# --- write -----------------------------------------------------------------------------------------------------------


def _write(run: Run, staging: Staging) -> IndexReport:
    """Embed what lacks a vector, then build and publish."""
    from workbench.encode.load import load_encoder

    previous, corpus = run.previous, run.corpus
    staging.add("files", *run.rows)
    staging.add("dropped", *sorted(run.dropped))
    staging.add("roots", *((r.root, r.whole, r.salt, r.options) for _, r in sorted(run.roots.items())))
    cutting = run.cutting
    staging.add(
        "collections",
        *(
            (n, g.value, "whole" if n in cutting.whole else "structure")
            for n, g in sorted(cutting.granularities.items())
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
            old = previous.database if key in previous.encoders else None
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
        built = build_generation(corpus, staging.path, previous.pin, journals, run.tell)
        run.warnings += built.warnings
        for _, made_by in journals.values():
            forget(made_by, built.text_hashes, built.manifest.counts["records"])
    counts = built.manifest.counts["documents"], built.manifest.counts["records"]
    return _report(run, built.manifest.generation, embedded, there + built.carried * len(run.encoders), counts)


def _report(
    run: Run, generation: str, embedded: int, reused: int, counts: tuple[int, int], *, changed: bool = True
) -> IndexReport:  # fmt: skip
    return IndexReport(
        generation=generation,
        files=tuple(sorted(run.reports, key=lambda f: (f.path, f.status is FileStatus.REMOVED))),
        documents=counts[0],
        chunks=counts[1],
        embedded=embedded,
        reused=reused,
        seconds=time.monotonic() - run.started,
        changed=changed,
        warnings=tuple(run.warnings),
        embedding_seconds=run.embedding_seconds,
    )
