"""Helper processes: modules of this package run on their own, ending with the process that started them."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path


def start_python(
    module: str, *arguments: str, stdout: int | None = None, stderr: int | None = None
) -> subprocess.Popen[bytes]:
    """Start a module of this package in a process of its own, with a pipe to its standard input.

    The module must end when that pipe closes, which happens when this process ends, however it ends.
    """
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(p for p in (package, os.environ.get("PYTHONPATH", "")) if p)
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,  # Ctrl-C goes to the run, which ends its helpers itself
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a helper if it still runs, and close its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
