"""The indexing run: walk, read, cut, embed, write, swap.

1. The writer's lock is taken and what a killed run left is removed.
2. The files are walked; each is compared with what the corpus knows of it: the bytes' sha256, and a *recipe*, a digest of all
   else that shapes its documents (version of the readers, rules, budget, tokenizer, chunking, salt of its root). Equal: it is
   carried over and neither read nor embedded.
3. The others are read and cut, and stream into a staging file.
4. Texts without a vector are embedded into a journal. Vectors are found again by the hash of their text, so a moved file or an
   edit elsewhere in a document embeds nothing that was embedded before.
5. The next generation is built beside the old one and published by one rename. If nothing changed there is none.

What a generation holds is what the last run over each folder found: a file that has vanished, is excluded now or no longer
parses leaves the corpus, and the report says so. A file or folder that the system does not let be read (its rights, a network
drive that is away) has not vanished: what was indexed of it stays, and the report says so.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from workbench.errors import CorpusError, CorpusNotFound, SettingError, UsageError, system_words
from workbench.indexing import uploads
from workbench.indexing.compare import (
    compare,
    cutting_for,
    find_files,
    must_be_storable,
    named_files,
    other_targets,
    settle_encoders,
    targets,
)
from workbench.indexing.state import Abort, FileKey, IndexOptions, Run, check, load_previous
from workbench.indexing.write import report_of, stage_files, staging_file, write
from workbench.ingest.rules import FileRules, load_rules
from workbench.ingest.walk import relative_path
from workbench.records import FileReport, FileStatus, IndexReport, Progress, ProgressCallback
from workbench.saved.jobs import recording
from workbench.store import generations, locks
from workbench.store.database import fetch, open_reading
from workbench.store.generations import DATABASE, Layout, private
from workbench.store.schema import FILES


def index(
    paths: Sequence[str | Path],
    corpus: str | Path,
    options: IndexOptions | None = None,
    *,
    progress: ProgressCallback | None = None,
    abort: Abort | None = None,
    wait: bool = False,
) -> IndexReport:
    """Index files and folders into a corpus; see `workbench.index`. The report's files are those below `paths`.

    Args:
        paths: Folders (each a root; what vanished in it is removed) and files.
        corpus: The corpus folder; made where it does not exist.
        options: How.
        progress: Called with a Progress now and then: steps `walk`, `compare`, `read`, `embed`, `tables`, `text`, `vectors`,
            `graph`, `words`, `publish`.
        abort: Asked often; True stops the run. Any other exception, KeyboardInterrupt too, does the same.
        wait: Wait while another process is indexing.

    Raises UsageError, CorpusLocked, IndexingStopped, EncoderError, and CorpusDamaged where the old generation cannot be read.
    """
    chosen = options or IndexOptions()
    asked = targets(paths)
    folder = _corpus_folder(Path(corpus))
    access = _access_before(folder, asked, chosen.flags)
    return locked(
        folder,
        "index",
        asked,
        lambda run: _index(run, asked),
        progress,
        abort,
        wait=wait,
        options=chosen,
        access=access,
    )


_OURS = ("current", "writer.lock", "generations", "corpus.yaml", "desk.sqlite", "damaged", "snapshots", uploads.FOLDER)


def _corpus_folder(folder: Path) -> Path:
    """The corpus's folder, made where it does not exist. Raises UsageError for a place that is something else."""
    must_be_storable(os.path.realpath(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = os.listdir(folder)
    except OSError as exc:
        reason = f"The corpus {folder} cannot be made or read: {system_words(exc)}"
        raise UsageError(reason, "Choose another --corpus") from exc
    if names and not any(name in names for name in _OURS):
        raise UsageError(
            f"{folder} holds other files and is not a corpus", "Choose an empty or new folder for --corpus"
        )
    private(folder)
    return folder


def _index(run: Run, asked: tuple[str, ...]) -> IndexReport:
    previous = run.previous
    also = settle_encoders(run, asked)
    if previous.outdated:
        also |= other_targets(asked, previous, there=True)
        run.warnings.append(
            "An earlier version wrote this corpus: its files were read again, and no text that has a vector was embedded again"
        )
    tasks = compare(run, find_files(run, asked, also), (*asked, *also))
    with ExitStack() as stack:
        staging = stack.enter_context(staging_file(run.corpus))
        if run.options.ray:
            from workbench.indexing.cluster import Cluster

            run.cluster = stack.enter_context(closing(Cluster(run.options.ray)))
        stage_files(run, staging, tasks)
        if previous.pin is not None and not previous.outdated and previous.sound:
            lost = any(previous.files[key].documents for key in run.dropped)
            if not previous.words_alike:
                run.warnings.append(
                    "The words of every text were split again, because the rules for words have changed"
                )
            elif not (run.read or run.read_again or run.fewer or lost or run.store != previous.store):
                return report_of(run, previous.pin.manifest)
        return write(run, staging)


# --- taking out ---


def remove(
    paths: Sequence[str | Path],
    corpus: str | Path,
    *,
    progress: ProgressCallback | None = None,
    abort: Abort | None = None,
    wait: bool = False,
) -> IndexReport:
    """Take files and folders out of a corpus; the files themselves stay, and need not exist.

    A path is absolute, relative to the working directory, or as citations show it. Indexing its folder again brings it back.
    Raises CorpusNotFound, UsageError where nothing in the corpus has one of these paths, and as `index` does.
    """
    folder = existing(corpus)
    return locked(folder, "remove", paths, lambda run: _remove(run, paths), progress, abort, wait=wait)


def existing(corpus: str | Path) -> Path:
    """The folder of a corpus. Raises CorpusNotFound."""
    if not generations.exists(Path(corpus)):
        raise CorpusNotFound(f"There is no corpus at {corpus}", "Make one with: workbench index PATH")
    return Path(corpus)


def refuse_outdated(run: Run, then: str) -> None:
    """Raise CorpusError where an earlier version wrote the corpus, whose records cannot be written again as they are."""
    if run.previous.outdated:
        raise CorpusError(
            f"An earlier version wrote the corpus {run.corpus}", f"Index its folders again with this one, then {then}"
        )


def _remove(run: Run, paths: Sequence[str | Path]) -> IndexReport:
    previous = run.previous
    refuse_outdated(run, "remove the path")
    run.dropped = named_files(previous, paths)
    keep_roots(run, run.dropped)
    for key in sorted(run.dropped):
        if previous.files[key].status is FileStatus.INDEXED:
            run.reports[key] = FileReport(key[1], FileStatus.REMOVED, "It was taken out")
    return carry_over(run)


def keep_roots(run: Run, gone: set[FileKey]) -> None:
    """Leave the run the roots of the generation before that still hold a file when some have gone."""
    left = {root for root, path in run.previous.files if (root, path) not in gone}
    run.roots = {path: root for path, root in run.previous.roots.items() if path in left}


def carry_over(run: Run) -> IndexReport:
    """Publish what the generation before holds and the run has not dropped, without reading a file."""
    run.cutting = cutting_for(run, run.previous.granularities)
    with staging_file(run.corpus) as staging:
        return write(run, staging)


# --- around every run that writes ---


@contextmanager
def disk_errors() -> Iterator[None]:
    """A full or read-only disk, or too little memory, in one sentence, wherever in the run it is met."""
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError, MemoryError) as exc:
        if isinstance(exc, OSError) and exc.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            where = f" at {exc.filename}" if exc.filename else ""
            raise CorpusError(
                f"The corpus cannot be written: {str(exc.strerror).lower()}{where}",
                "Give yourself the right to write there, or choose another --corpus",
            ) from exc
        # Faults of the SQL itself; all others come from outside, also a commit whose log cannot be written.
        ours = isinstance(exc, (duckdb.ProgrammingError, duckdb.InternalError, duckdb.IntegrityError, duckdb.DataError))
        raise CorpusError(
            f"The new generation could not be built: {str(exc).partition(chr(10))[0] or type(exc).__name__}",
            "The corpus is as it was; report this"
            if ours
            else "Free disk space or memory, and run the same command again; the corpus is as it was",
        ) from exc


def locked(
    folder: Path,
    kind: str,
    paths: Sequence[str | Path],
    work: Callable[[Run], IndexReport],
    progress: ProgressCallback | None = None,
    abort: Abort | None = None,
    *,
    wait: bool = False,
    options: IndexOptions | None = None,
    access: Mapping[str, Collection[str]] | None = None,
) -> IndexReport:
    """Do the work under the writer's lock, between two cleanings, and keep its job of this kind, which is about `paths`. Without
    options the corpus keeps its encoders."""
    stopped, named = abort or (lambda: False), [os.fspath(path) for path in paths]
    recorded = recording(folder, kind, named, () if options is None else options.collections, access or {})

    def tell(event: Progress) -> None:
        # The builders know nothing of stopping: they are stopped through the progress that they report. Publishing is
        # not stopped half-way: by its last report the new generation answers.
        if event.step != "publish":
            check(stopped)
        if progress is not None:
            progress(event)

    with disk_errors(), recorded as job, locks.writer(Layout(folder).writer_lock, folder, wait=wait, abort=stopped):
        job.running()
        generations.clean(folder)
        previous = load_previous(folder)
        held = _access_below(previous.database, named)
        if any(held.values()):
            job.touches(held)
        try:
            report = work(Run.begin(folder, options, previous, tell, stopped))
            now = _access_below(Layout(folder).folder(report.generation) / DATABASE, named)
            if any(now.values()) or any(held.values()):
                job.touches({path: kinds | held[path] for path, kinds in now.items()})
        finally:
            previous.close()
            # Whatever happened, what was being built goes; vectors that were made stay in the journal.
            generations.clean(folder)
        job.done(report)
        if job.trouble:
            trouble = f"The run was not written down as a job: {job.trouble}"
            report = replace(report, warnings=(*report.warnings, trouble))
        return report


def _access_before(corpus: Path, asked: Sequence[str], flags: FileRules) -> dict[str, set[str]]:
    """Who may know of a run before it has begun: whoever all rules that may be meant allow, wherever the root will be."""
    found: dict[str, set[str]] = {}
    with suppress(SettingError):  # which the run itself will raise
        rules = load_rules(corpus)
        for path in asked:
            names = path.strip(os.sep).split(os.sep)
            names += [] if os.path.isfile(path) else ["file"]
            found[path] = {rules.for_file("/".join(names[n:]), flags).access for n in range(len(names))}
    return found


def _access_below(database: Path | None, paths: Sequence[str]) -> dict[str, set[str]]:
    """For each path (absolute, or as citations show it) the kinds of access of the documents and files below it."""
    found: dict[str, set[str]] = {path: set() for path in paths}
    if database is None:
        return found
    sql = (
        f"SELECT DISTINCT d.tenant, d.roles, d.sensitivity, f.access FROM {FILES} f LEFT JOIN documents d"
        " ON d.file_number = f.number WHERE f.path = $1 OR starts_with(f.path, $1 || '/')"
        " OR f.root || '/' || f.path = $1 OR starts_with(f.root || '/' || f.path, $1 || '/')"
    )
    with closing(open_reading(database)) as connection:
        for path, kinds in found.items():
            for name in {path, os.path.abspath(path), os.path.realpath(path)}:
                for tenant, roles, level, given in fetch(connection, sql, [relative_path(name).rstrip("/")]):
                    kinds.add(given if level is None else json.dumps([tenant, roles, level]))
            kinds.discard("")
    return found
