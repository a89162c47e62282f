"""The process of an indexing run that the page started: `python -m workbench.ui.index_worker FOLDER CORPUS LOCK`.

It runs what `workbench index` runs, says in FOLDER how far it is (see `index_runs`), and holds the lock that it was born with
until it is gone. It imports no Streamlit.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from workbench.errors import IndexingStopped, UsageError, WorkbenchError
from workbench.records import Progress
from workbench.reports import FileStatus, IndexReport
from workbench.ui import index_runs
from workbench.ui.index_runs import DONE, FAILED, MOST_FILES, RUNNING, STOPPED, Status

_EVERY_SECONDS = 0.25


def run(folder: Path, corpus: Path) -> Status:
    """Do what the folder's status asks for, and say how it ended."""
    said = index_runs.read(folder)
    if said is None:
        raise SystemExit(f"There is no run to do in {folder}")
    said = replace(said, state=RUNNING)
    index_runs.write(folder, said)
    asked = said.asked
    try:
        from workbench.indexing import index

        if not all(index_runs.may_index(path, asked.below) for path in asked.paths):
            raise UsageError("A path is not below a folder that may be indexed", "Ask the owner of the corpus")
        report = index(
            asked.paths,
            corpus,
            collections=(asked.collection,),
            progress=_teller(folder, said),
            abort=lambda: (folder / "stop").exists(),
            encoder=asked.encoder,
            tenant=asked.tenant,
            roles=asked.roles,
            sensitivity=asked.sensitivity,
            hidden=asked.hidden,
        )
        ended = _done(said, report)
    except IndexingStopped:
        ended = replace(said, state=STOPPED)
    except WorkbenchError as exc:
        ended = replace(said, state=FAILED, reason=exc.message, remedy=exc.remedy)
    ended = replace(ended, ended=time.time())
    index_runs.write(folder, ended)
    return ended


def _teller(folder: Path, said: Status) -> Callable[[Progress], None]:
    """Writes progress down, a few times a second and at every new step."""
    last, step = 0.0, ""

    def tell(progress: Progress) -> None:
        nonlocal last, step
        now = time.monotonic()
        if now - last < _EVERY_SECONDS and progress.step == step:
            return
        last, step = now, progress.step
        index_runs.write(
            folder,
            replace(
                said,
                step=progress.step,
                done=progress.done,
                total=progress.total,
                rate=progress.rate,
                seconds_left=progress.seconds_left,
            ),
        )

    return tell


def _done(said: Status, report: IndexReport) -> Status:
    counts = {s.value: report.count(s) for s in FileStatus}
    counts |= {"found": report.found, "documents": report.documents, "chunks": report.chunks}
    counts |= {"embedded": report.embedded, "reused": report.reused}
    refused = [f for f in report.files if f.status in (FileStatus.FAILED, FileStatus.SKIPPED)]
    refused.sort(key=lambda f: (f.status is not FileStatus.FAILED, f.path))
    files = tuple((f.path, f.status.value, f.reason, f.remedy) for f in refused[:MOST_FILES])
    return replace(said, state=DONE, counts=counts, files=files, warnings=report.warnings)


def main(arguments: list[str]) -> None:
    """Run. The third argument is the lock's descriptor: helper processes must not inherit it, or the lock outlives the run."""
    folder, corpus, lock = arguments
    os.set_inheritable(int(lock), False)
    run(Path(folder), Path(corpus))


if __name__ == "__main__":
    main(sys.argv[1:])
