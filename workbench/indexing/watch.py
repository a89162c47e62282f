"""Indexing again whenever something below the folders changes: `workbench index --watch`.

The system tells of changes (inotify and its like, through watchdog); where it cannot watch so many folders, they are looked
through every few seconds instead. Changes come in bursts (an editor writes, renames and removes), so a run starts when half a
second has been quiet, and at the latest ten seconds after the first of them. A run is an ordinary one: it compares, and
reads what changed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from workbench.indexing.compare import inside, targets
from workbench.indexing.state import Abort
from workbench.ingest.rules import FILE_NAME
from workbench.settings import path_of

_QUIET_SECONDS = 0.5
_LATEST_SECONDS = 10.0
_POLL_SECONDS = 2.0
_READ_ONLY = frozenset({"opened", "closed_no_write"})


class Changes:
    """Which changes matter, and whether one has come. Thread-safe."""

    def __init__(self, asked: Sequence[str], corpus: Path) -> None:
        self._asked = tuple(asked)
        self._corpus = os.path.realpath(corpus)
        self._last = 0.0
        self.came = threading.Event()

    def dispatch(self, event: Any) -> None:
        paths = [os.fsdecode(p) for p in (event.src_path, getattr(event, "dest_path", "")) if p]
        if event.event_type not in _READ_ONLY and any(map(self._matters, paths)):
            self._last = time.monotonic()
            self.came.set()

    def _matters(self, path: str) -> bool:
        # The corpus may lie inside the folder; its own files change with every run, and its settings by hand.
        if path == os.path.join(self._corpus, FILE_NAME):
            return True
        return not inside(path, self._corpus) and any(inside(path, target) for target in self._asked)

    def settle(self, abort: Abort) -> None:
        began = time.monotonic()
        while not abort():
            now = time.monotonic()
            if now - self._last >= _QUIET_SECONDS or now - began >= _LATEST_SECONDS:
                return
            time.sleep(0.05)


def watch(
    paths: Sequence[str | Path],
    corpus: str | Path,
    run: Callable[[], None],
    abort: Abort,
    first: Callable[[], object] | None = None,
) -> None:
    """Call `run` after each burst of changes below `paths`, until `abort`, asked several times a second, says so.

    Of what changes in the corpus only its settings file, `corpus.yaml`, counts. Changes count from the moment before `first` is
    called, so that one made while it indexes is not missed. What `run` raises ends the watching.
    """
    asked, folder = targets([path_of(path) for path in paths]), os.path.realpath(path_of(corpus))
    changes = Changes(asked, Path(folder))
    with ExitStack() as watched:
        watched.enter_context(_observer(asked, changes))
        if first is not None:
            first()
        if os.path.isdir(folder):
            watched.enter_context(_observer((os.path.join(folder, FILE_NAME),), changes))
        while not abort():
            if not changes.came.wait(0.2):
                continue
            changes.settle(abort)
            changes.came.clear()
            if not abort():
                run()


@contextmanager
def _observer(asked: Sequence[str], changes: Changes) -> Iterator[None]:
    from watchdog.observers import Observer
    from watchdog.observers.polling import PollingObserver

    def started(observer: Any) -> Any:
        for target in asked:
            whole = os.path.isdir(target)
            observer.schedule(changes, target if whole else os.path.dirname(target), recursive=whole)
        observer.start()
        return observer

    try:
        observer = started(Observer())
    except OSError:  # more folders than the system lets one user watch
        observer = started(PollingObserver(timeout=_POLL_SECONDS))
    try:
        yield
    finally:
        observer.stop()
        observer.join()
