"""Locks between processes: one writer a corpus, any number of readers a generation.

`flock` rather than a pid file: the kernel drops the lock when its holder dies, however it dies, so a killed run leaves
nothing to clean by hand. A lock belongs to an open file, so two threads of one process exclude each other too. The
lock files are never deleted while their folder lives: deleting a lock file lets two holders each lock "the" file.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from workbench.errors import CorpusLocked

_POLL_SECONDS = 0.1


class FileLock:
    """A held `flock`. Use `shared`, `exclusive` or `writer` to take one; `close` (or `with`) gives it back."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.path = path

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def shared(path: Path) -> FileLock | None:
    """A reader's lock on an existing lock file, without waiting; None where the file is gone or locked exclusively."""
    return _take(path, fcntl.LOCK_SH, os.O_RDONLY)


def exclusive(path: Path) -> FileLock | None:
    """The remover's lock on an existing lock file, without waiting; None where the file is gone or anybody holds it."""
    return _take(path, fcntl.LOCK_EX, os.O_RDONLY)


def writer(path: Path, corpus: Path, *, wait: bool = False, abort: Callable[[], bool] | None = None) -> FileLock:
    """The one writer's lock of a corpus; its file, which is made, names the holder. With `wait` it waits until the other
    writer is done or `abort` says so. Raises CorpusLocked, with the process id of who is writing.
    """
    while True:
        lock = _take(path, fcntl.LOCK_EX, os.O_RDWR | os.O_CREAT)
        if lock is not None:
            # One write, so that a refused writer reads either all of it or what was before.
            text = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}).encode()
            os.pwrite(lock.fileno(), text.ljust(256), 0)
            return lock
        if not wait or (abort is not None and abort()):
            raise CorpusLocked(
                f"The corpus {corpus} is being written by {_holder(path)}",
                "Wait until that run ends, or index with wait=True (--wait on the command line)",
            )
        time.sleep(_POLL_SECONDS)


def _take(path: Path, operation: int, flags: int) -> FileLock | None:
    try:
        lock = FileLock(os.open(path, flags | os.O_CLOEXEC, 0o644), path)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock.fileno(), operation | fcntl.LOCK_NB)
    except BaseException as exc:
        lock.close()
        if isinstance(exc, BlockingIOError):
            return None
        raise
    return lock


def _holder(path: Path) -> str:
    """The holder in words: `process 123`, with its host where that is another one."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        who = json.loads(path.read_text(encoding="utf-8"))
        minutes = max(0.0, time.time() - float(who["since"])) / 60
        place = "" if who["host"] == socket.gethostname() else f" on {who['host']}"
        return f"process {int(who['pid'])}{place}, since {minutes:.0f} min"
    return "another process"
