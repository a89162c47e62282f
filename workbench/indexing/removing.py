"""Taking files and folders out of a corpus: a run that reads nothing and publishes what is left."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from workbench.errors import CorpusNotFound, UsageError
from workbench.indexing.compare import cutting_for
from workbench.indexing.embedding import Abort
from workbench.indexing.previous import Previous
from workbench.indexing.roots import inside
from workbench.indexing.session import ignore_progress, locked, never
from workbench.indexing.state import Options, Run
from workbench.indexing.writing import held_encoders, write
from workbench.ingest.rules import FileRules, load_rules
from workbench.ingest.walk import relative_path
from workbench.records import ProgressCallback
from workbench.reports import FileReport, FileStatus, IndexReport
from workbench.saved.jobs import recording
from workbench.store import generations
from workbench.store.generations import Layout
from workbench.store.staging import Staging


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
    run = Run(
        folder,
        Options(FileRules()),
        tell,
        abort,
        previous,
        load_rules(folder),
        held_encoders(previous),
        time.monotonic(),
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
