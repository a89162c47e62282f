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
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from workbench.errors import CorpusError, CorpusNotFound, SettingError, UsageError
from workbench.indexing.compare import compare, cutting_for, find_files
from workbench.indexing.encoders import choose_encoders, other_targets, settle_encoders
from workbench.indexing.roots import inside, must_be_storable, targets
from workbench.indexing.state import Abort, IndexOptions, Previous, Run, check, load_previous
from workbench.indexing.write import report_of, stage_files, write
from workbench.ingest.rules import FileRules, load_rules
from workbench.ingest.walk import relative_path
from workbench.records import Progress, ProgressCallback
from workbench.reports import FileReport, FileStatus, IndexReport
from workbench.saved.jobs import Recorder, recording
from workbench.store import generations, locks
from workbench.store.database import fetch, open_reading
from workbench.store.generations import DATABASE, Layout, private
from workbench.store.staging import Staging


def ignore_progress(progress: Progress) -> None:
    """Report to nobody."""


def never() -> bool:
    """Go on."""
    return False


def index(
    paths: Sequence[str | Path],
    corpus: str | Path,
    options: IndexOptions | None = None,
    *,
    progress: ProgressCallback | None = None,
    abort: Abort | None = None,
    wait: bool = False,
) -> IndexReport:
    """Index files and folders into a corpus.

    Args:
        paths: Folders (each a root; what vanished in it is removed) and files.
        corpus: The corpus folder; made where it does not exist.
        options: How.
        progress: Called with a Progress now and then: steps `walk`, `compare`, `read`, `embed`, `tables`, `text`, `vectors`,
            `graph`, `words`, `publish`. From `vectors` to `words` the work is done at the same time, and reported in this order.
        abort: Asked often; True stops the run. Any other exception, KeyboardInterrupt too, does the same.
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
    chosen = options or IndexOptions()
    asked = targets(paths)
    folder = _corpus_folder(Path(corpus))
    return locked(
        recording(folder, "index", asked, chosen.collections, _access_before(folder, asked, chosen.flags)),
        folder,
        progress or ignore_progress,
        abort or never,
        wait,
        lambda p, t, a: _index(folder, asked, chosen, p, t, a),
        asked,
    )


def _access_before(corpus: Path, asked: Sequence[str], flags: FileRules) -> dict[str, set[str]]:
    """Who may know of a run before it has begun: whoever all rules that may be meant allow, wherever the root will be."""
    with suppress(SettingError):  # which the run itself will raise
        rules = load_rules(corpus)
        parts = {
            path: [*path.strip(os.sep).split(os.sep), "file"][: -1 if os.path.isfile(path) else None] for path in asked
        }
        return {
            path: {rules.for_file("/".join(names[n:]), flags).access for n in range(len(names))}
            for path, names in parts.items()
        }
    return {}


_OURS = ("current", "writer.lock", "generations", "corpus.yaml", "desk.sqlite", "damaged", "snapshots")


def _corpus_folder(folder: Path) -> Path:
    """The corpus's folder, made where it does not exist. Raises UsageError for a place that is something else."""
    must_be_storable(os.path.realpath(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = os.listdir(folder)
    except OSError as exc:
        reason = (exc.strerror or type(exc).__name__).lower()
        raise UsageError(f"The corpus {folder} cannot be made or read: {reason}", "Choose another --corpus") from exc
    if names and not any(name in names for name in _OURS):
        raise UsageError(
            f"{folder} holds other files and is not a corpus", "Choose an empty or new folder for --corpus"
        )
    private(folder)
    return folder


def _index(
    corpus: Path,
    asked: tuple[str, ...],
    options: IndexOptions,
    previous: Previous,
    tell: ProgressCallback,
    abort: Abort,
) -> IndexReport:
    started = time.monotonic()
    encoders = choose_encoders(options, previous)
    run = Run(corpus, options, tell, abort, previous, load_rules(corpus), encoders, started)
    also = settle_encoders(run, asked)
    if previous.outdated:
        also |= other_targets(asked, previous, there=True)
        run.warnings.append(
            "An earlier version wrote this corpus: its files were read again, and no text that has a vector was embedded again"
        )
    found = find_files(run, asked, also)
    tasks = compare(run, found, (*asked, *also))
    staged = Layout(corpus).building
    staged.mkdir()
    staging = Staging(staged / "staging.duckdb")
    try:
        stage_files(run, staging, tasks)
        if previous.pin is not None and not previous.outdated and previous.sound and not previous.words_alike:
            run.warnings.append("The words of every text were split again, because the rules for words have changed")
        elif previous.sound and not (
            run.read or run.anew or run.fewer or previous.pin is None or previous.outdated or _lost_documents(run)
        ):
            held = previous.pin.manifest
            counts = held.counts["documents"], held.counts["records"]
            return report_of(run, held.generation, 0, counts[1] * len(encoders), counts)
        return write(run, staging)
    finally:
        staging.close()


def _lost_documents(run: Run) -> bool:
    """Whether documents of the old generation are to go."""
    files = run.previous.files
    return any(files[key].documents for key in run.dropped)


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

    Raises:
        CorpusNotFound: There is no corpus there.
        UsageError: Nothing in the corpus has one of these paths.
        CorpusLocked, IndexingStopped, CorpusDamaged: As for `index`.
    """
    folder = Path(corpus)
    if not generations.exists(folder):
        raise CorpusNotFound(f"There is no corpus at {folder}", "Make one with: workbench index PATH")
    named = [os.fspath(path) for path in paths]
    return locked(
        recording(folder, "remove", named, (), {}),
        folder,
        progress or ignore_progress,
        abort or never,
        wait,
        lambda p, t, a: _remove(folder, paths, p, t, a),
        named,
    )


def _remove(
    folder: Path, paths: Sequence[str | Path], previous: Previous, tell: ProgressCallback, abort: Abort
) -> IndexReport:
    if previous.outdated:
        raise CorpusError(
            f"An earlier version wrote the corpus {folder}",
            "Index its folders again with this one, then remove the path",
        )
    run = Run(
        folder, IndexOptions(), tell, abort, previous, load_rules(folder), previous.own_encoders, time.monotonic()
    )
    for path in paths:
        places = {relative_path(os.path.abspath(path)), relative_path(os.path.realpath(path))}
        said = relative_path(os.fspath(path)).rstrip("/")
        gone = {
            key
            for key in previous.files
            if any(inside(relative_path(os.path.join(*key)), place) for place in places) or inside(key[1], said)
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
            run.reports.append((key, FileReport(key[1], FileStatus.REMOVED, "It was taken out")))
    return carry_over(run)


def carry_over(run: Run) -> IndexReport:
    """Publish what the generation before holds and the run has not dropped, without reading a file."""
    run.cutting = cutting_for(run, run.previous.granularities)
    building = Layout(run.corpus).building
    building.mkdir()
    staging = Staging(building / "staging.duckdb")
    try:
        return write(run, staging)
    finally:
        staging.close()


# --- around every run that writes ---


_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)


@contextmanager
def disk_errors() -> Iterator[None]:
    """A full or read-only disk, or too little memory, in one sentence, wherever in the run it is met."""
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError, MemoryError) as exc:
        if isinstance(exc, OSError) and exc.errno in _FORBIDDEN:
            where = f" at {exc.filename}" if exc.filename else ""
            raise CorpusError(
                f"The corpus cannot be written: {str(exc.strerror).lower()}{where}",
                "Give yourself the right to write there, or choose another --corpus",
            ) from exc
        reason = str(exc).partition("\n")[0] or type(exc).__name__
        # Faults of the SQL itself; all others come from outside, also a commit whose log cannot be written.
        if isinstance(exc, (duckdb.ProgrammingError, duckdb.InternalError, duckdb.IntegrityError, duckdb.DataError)):
            raise CorpusError(
                f"The new generation could not be built: {reason}", "The corpus is as it was; report this"
            ) from exc
        raise CorpusError(
            f"The new generation could not be built: {reason}",
            "Free disk space or memory, and run the same command again; the corpus is as it was",
        ) from exc


def access_below(database: Path | None, paths: Sequence[str]) -> dict[str, set[str]]:
    """For each path (absolute, or as citations show it) the kinds of access of the documents and files below it.

    Args:
        database: A generation's; None has none.
        paths: Files and folders.
    """
    if database is None:
        return {path: set() for path in paths}
    connection = open_reading(database)
    try:
        sql = (
            "SELECT DISTINCT d.tenant, d.roles, d.sensitivity, f.access FROM files f LEFT JOIN documents d"
            " ON d.file_number = f.number WHERE f.path = $1 OR starts_with(f.path, $1 || '/')"
            " OR f.root || '/' || f.path = $1 OR starts_with(f.root || '/' || f.path, $1 || '/')"
        )
        found: dict[str, set[str]] = {}
        for path in paths:
            names = {path, os.path.abspath(path), os.path.realpath(path)}
            rows = [row for name in sorted(names) for row in fetch(connection, sql, [relative_path(name).rstrip("/")])]
            kinds = {given if level is None else json.dumps([t, roles, level]) for t, roles, level, given in rows}
            found[path] = kinds - {""}
        return found
    finally:
        connection.close()


def locked(
    recorded: AbstractContextManager[Recorder],
    folder: Path,
    tell: ProgressCallback,
    abort: Abort,
    wait: bool,
    work: Callable[[Previous, ProgressCallback, Abort], IndexReport],
    paths: Sequence[str] = (),
) -> IndexReport:
    """Do the work under the writer's lock, between two cleanings, and keep its job, which is about `paths`."""
    with disk_errors(), recorded as job, locks.writer(Layout(folder).writer_lock, folder, wait=wait, abort=abort):
        job.running()
        generations.clean(folder)
        previous = load_previous(folder)
        held = access_below(previous.database, paths)
        if any(held.values()):
            job.touches(held)

        def tell_or_stop(progress: Progress) -> None:
            # The builders know nothing of stopping: they are stopped through the progress that they report. Publishing is
            # not stopped half-way: by its last report the new generation answers.
            if progress.step != "publish":
                check(abort)
            tell(progress)

        try:
            report = work(previous, tell_or_stop, abort)
            now = access_below(Layout(folder).folder(report.generation) / DATABASE, paths)
            now = {path: kinds | held[path] for path, kinds in now.items()}
            if any(now.values()):
                job.touches(now)
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
