"""Runs started from the page that write the corpus: each a process of its own, so it goes on when the page, or the app, is left.

`python -m workbench.ui.runs FOLDER CORPUS LOCK` is that process: it runs what `workbench index`, `move`, `remove` and `demo` run
and imports no Streamlit. What a run reports is one small file, outside the corpus (a corpus folder that is not there yet must
stay empty until the run makes it). The run holds a lock on a file beside it from before it starts until its process is gone,
however it goes: that, and no process number, says whether it lives. The page asks a run to stop by a third file.

::

    CACHE/runs/KEY/   one folder a corpus
      lock            held by the run
      status.json     what it is doing, or how it ended
      stop            there when it shall stop
      log             what its process printed, for a run that died
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import settings
from workbench.errors import CorpusLocked, IndexingStopped, UsageError, WorkbenchError
from workbench.records import FileStatus, IndexReport, Principal, Progress
from workbench.store import locks

if TYPE_CHECKING:
    from workbench.indexing import IndexOptions

STARTING, RUNNING, DONE, STOPPED, FAILED = "starting", "running", "done", "stopped", "failed"
MOST_FILES = 500
_LOG_TAIL = 2_000
_TRIES = 20

# Processes that this one started: kept, so that they are waited for and leave no zombies.
_started: list[subprocess.Popen[bytes]] = []


INDEX, MOVE, REMOVE, DEMO = "index", "move", "remove", "demo"


@dataclass(frozen=True, slots=True)
class Request:
    """What a run has to do: `action` says which command. `source` is the collection that documents are moved from or taken out of
    ("": all); `move`: files that are in another collection already leave it.
    """

    paths: tuple[str, ...]
    collection: str = "docs"
    tenant: str | None = None
    roles: tuple[str, ...] = ()
    sensitivity: str | None = None
    hidden: bool = False
    encoder: str | None = None
    below: tuple[str, ...] | None = None
    action: str = INDEX
    source: str = ""
    move: bool = False

    @property
    def options(self) -> IndexOptions:
        from workbench.indexing import IndexOptions

        access = (self.tenant, self.roles, self.sensitivity)
        return IndexOptions((self.collection,), self.encoder, *access, hidden=self.hidden, move=self.move)


@dataclass(frozen=True, slots=True)
class Status:
    """A run, as it last reported.

    Attributes:
        state: starting, running, done, stopped or failed.
        request: What it has to do.
        started, ended: Seconds since 1970, 0 where not yet.
        step, done, total, rate, seconds_left: Its progress.
        reason, remedy: Why it failed.
        counts: Files by status, documents, chunks, embedded and reused, of a run that is done.
        files: Files that it did not index: (path, status, reason, remedy), the first `MOST_FILES`.
        warnings: What it warned of.
    """

    state: str
    request: Request
    started: float = 0.0
    ended: float = 0.0
    step: str = ""
    done: int = 0
    total: int = 0
    rate: float = 0.0
    seconds_left: float | None = None
    reason: str = ""
    remedy: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    files: tuple[tuple[str, str, str, str], ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def alive(self) -> bool:
        return self.state in (STARTING, RUNNING)


def folder_of(corpus: Path) -> Path:
    key = hashlib.sha256(os.fsencode(os.path.realpath(corpus))).hexdigest()[:16]
    return settings.cache_dir() / "runs" / key


def check_paths(text: str, corpus: Path, below: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The paths that somebody typed, one a line, absolute; `below`: the folders that may be indexed (None: any).

    Raises:
        UsageError: There is none, or one may not be indexed, is not there, cannot be read, or is the corpus itself.
    """
    typed = [line.strip() for line in text.splitlines() if line.strip()]
    if not typed:
        raise UsageError("No path is given", "Type the path of a file or folder, one per line")
    checked: dict[str, None] = {}
    own = os.path.realpath(corpus)
    for line in typed:
        if "\x00" in line:
            raise UsageError("A path holds a character that no path can hold", "Type it again")
        path = os.path.abspath(os.path.expanduser(line))
        if not may_index(path, below):  # checked first: whether it is there is nobody's business
            remedy = "Ask the owner of the corpus (app_indexing_roots)"
            raise UsageError(f"{line} is not below a folder that you may index", remedy)
        if not os.path.exists(path):
            remedy = "Check the spelling; paths are those of this machine"
            raise UsageError(f"There is no file or folder {line}", remedy)
        if not os.access(path, os.R_OK):
            raise UsageError(f"{line} may not be read", "Change its permissions, or start the app as who may read it")
        real = os.path.realpath(path)
        if real == own or real.startswith(own + os.sep):
            raise UsageError(f"{line} is in the corpus itself", "Name the folder with your documents")
        checked[path] = None
    return tuple(checked)


def may_index(path: str, below: tuple[str, ...] | None) -> bool:
    """Whether a path, followed to where it really is, lies below one of some folders (None: any)."""
    real = os.path.realpath(path)
    return below is None or any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in below)


def start(corpus: Path, request: Request) -> None:
    """Start a run. Raises CorpusLocked, UsageError."""
    folder = folder_of(corpus)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lock").touch()
    lock = _take(folder)
    if lock is None:
        raise CorpusLocked("An indexing run of this corpus is going on", "Wait until it is done, or stop it")
    with lock:
        (folder / "stop").unlink(missing_ok=True)
        write(folder, Status(STARTING, request, started=time.time()))
        command = [sys.executable, "-m", "workbench.ui.runs", str(folder), str(corpus.absolute()), str(lock.fileno())]
        root = str(Path(__file__).parents[2])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}
        try:
            with open(folder / "log", "wb") as log:
                # A session of its own: Ctrl+C in the app's terminal ends the app, not the run.
                streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
                process = subprocess.Popen(
                    command, env=environment, pass_fds=(lock.fileno(),), start_new_session=True, **streams
                )
        except OSError as exc:
            write(folder, Status(FAILED, request, ended=time.time(), reason=f"The process could not be started: {exc}"))
            raise UsageError(f"The run could not be started: {exc}", "Run `workbench index` in a terminal") from exc
    _started.append(process)


def _take(folder: Path) -> locks.FileLock | None:
    """The run's lock; tried for a moment, because whoever looks at a run holds it for an instant."""
    for _ in range(_TRIES):
        lock = locks.exclusive(folder / "lock")
        if lock is not None:
            return lock
        time.sleep(0.01)
    return None


def stop(corpus: Path) -> None:
    """Ask the run to stop; it does so at the next file or batch, and keeps the vectors that it made."""
    folder = folder_of(corpus)
    if (folder / "status.json").exists():
        (folder / "stop").touch()


def stopping(corpus: Path) -> bool:
    return (folder_of(corpus) / "stop").exists()


def status(corpus: Path) -> Status | None:
    """The corpus's last run, None where there was none; one whose process died says so."""
    _started[:] = [process for process in _started if process.poll() is None]
    folder = folder_of(corpus)
    # Looked at first: a run that ends between the two looks has written how before it let go of the lock.
    alive = _lives(folder)
    run = read(folder)
    if run is None or not run.alive or alive:
        return run
    reason = "The run's process ended before the run did" + _tail(folder)
    remedy = "Start it again: it goes on where that one stopped"
    return Status(FAILED, run.request, run.started, time.time(), run.step, reason=reason, remedy=remedy)


def _lives(folder: Path) -> bool:
    if not (folder / "lock").exists():
        return False
    lock = locks.shared(folder / "lock")
    if lock is None:
        return True
    lock.close()
    return False


def _tail(folder: Path) -> str:
    try:
        text = (folder / "log").read_bytes()[-_LOG_TAIL:].decode("utf-8", "replace").strip()
    except OSError:
        return ""
    return f": {text.splitlines()[-1]}" if text else ""


# --- the file -----------------------------------------------------------------------------------------------------------


def write(folder: Path, run: Status) -> None:
    fresh = folder / f"status.{os.getpid()}.new"
    fresh.write_text(json.dumps(asdict(run), ensure_ascii=False), encoding="utf-8")
    os.replace(fresh, folder / "status.json")


def read(folder: Path) -> Status | None:
    try:
        data: dict[str, Any] = json.loads((folder / "status.json").read_text(encoding="utf-8"))
        request: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in data["request"].items()}
        files, warnings = tuple(map(tuple, data["files"])), tuple(data["warnings"])
        return Status(**{**data, "request": Request(**request), "files": files, "warnings": warnings})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def request_of(
    paths: Sequence[str],
    collection: str,
    principal: Principal | None,
    roles: Sequence[str] = (),
    sensitivity: str = "",
    hidden: bool = False,
    below: tuple[str, ...] | None = None,
) -> Request:
    """The request, for the documents of who asks: they belong to that tenant, and could not be seen otherwise.

    Raises:
        UsageError: The collection has no name.
    """
    name = collection.strip()
    if not name or not name.replace("_", "").replace("-", "").isalnum():
        raise UsageError(f"{collection!r} is not a name of a collection", "Use letters, digits, - and _")
    tenant = None if principal is None else principal.tenant
    return Request(tuple(paths), name, tenant, tuple(roles), sensitivity or None, hidden, below=below)


_EVERY_SECONDS = 0.25


def execute(folder: Path, corpus: Path) -> Status:
    run = read(folder)
    if run is None:
        raise SystemExit(f"There is no run to do in {folder}")
    run = replace(run, state=RUNNING)
    write(folder, run)
    try:
        report = _report(run.request, corpus, {"progress": _reporter(folder, run), "abort": (folder / "stop").exists})
        ended = _done(run, report)
    except IndexingStopped:
        ended = replace(run, state=STOPPED)
    except WorkbenchError as exc:
        ended = replace(run, state=FAILED, reason=exc.message, remedy=exc.remedy)
    ended = replace(ended, ended=time.time())
    write(folder, ended)
    return ended


def _report(request: Request, corpus: Path, around: dict[str, Any]) -> IndexReport:
    from workbench import demo, indexing

    if request.action == DEMO:
        return demo.build(corpus=corpus, progress=around["progress"], abort=around["abort"]).report
    if not all(may_index(path, request.below) for path in request.paths):
        raise UsageError("A path is not below a folder that may be indexed", "Ask the owner of the corpus")
    if request.action == MOVE:
        return indexing.move(request.paths, corpus, request.collection, source=request.source or None, **around)
    if request.action == REMOVE and request.source:
        return indexing.take_out(request.paths, corpus, request.source, **around)
    if request.action == REMOVE:
        return indexing.remove(request.paths, corpus, **around)
    return indexing.index(request.paths, corpus, request.options, **around)


def _reporter(folder: Path, run: Status) -> Callable[[Progress], None]:
    last, step = 0.0, ""

    def report_progress(progress: Progress) -> None:
        nonlocal last, step
        now = time.monotonic()
        if now - last >= _EVERY_SECONDS or progress.step != step:
            last, step = now, progress.step
            names = ("step", "done", "total", "rate", "seconds_left")
            write(folder, replace(run, **{name: getattr(progress, name) for name in names}))

    return report_progress


def _done(run: Status, report: IndexReport) -> Status:
    counts = {s.value: report.count(s) for s in FileStatus}
    counts |= {"found": report.found, "documents": report.documents, "chunks": report.chunks}
    counts |= {"embedded": report.embedded, "reused": report.reused}
    refused = [f for f in report.files if f.status in (FileStatus.FAILED, FileStatus.SKIPPED)]
    refused.sort(key=lambda f: (f.status is not FileStatus.FAILED, f.path))
    files = tuple((f.path, f.status.value, f.reason, f.remedy) for f in refused[:MOST_FILES])
    return replace(run, state=DONE, counts=counts, files=files, warnings=report.warnings)


def main(arguments: list[str]) -> None:
    """Run. The third argument is the lock's descriptor: helper processes must not inherit it, or the lock outlives the run."""
    folder, corpus, lock = arguments
    os.set_inheritable(int(lock), False)
    execute(Path(folder), Path(corpus))


if __name__ == "__main__":
    main(sys.argv[1:])
