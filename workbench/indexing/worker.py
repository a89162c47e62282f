"""A helper process of an indexing run: reads and cuts files that it is told over its standard input.

Protocol: a `Cutting`, answered on standard output by None or by the error that ends the run (the tokenizer cannot be loaded);
then `Task`s, each answered by batches and an `Outcome`. The end of the input ends the process. Standard output is kept for the
protocol: whatever a library prints goes to standard error.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from workbench import settings
from workbench.errors import WorkbenchError
from workbench.indexing.reading import Cutting, make_counter, read_task, receive, send


def limit_memory(megabytes: int) -> None:
    """Let this process take no more than that beyond what it has, in units of 2**20 bytes.

    What counts is private writable memory (`RLIMIT_DATA`): mapped files and reserved addresses cost nothing. Python then
    raises MemoryError; a C library may end the process. Either costs the one file.
    """
    held = next((int(line.split()[1]) << 10 for line in _status() if line.startswith("VmData:")), 0)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = held + (megabytes << 20)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _status() -> list[str]:
    """What Linux says of this process; nothing elsewhere."""
    file = Path("/proc/self/status")
    return file.read_text(encoding="ascii", errors="replace").splitlines() if file.exists() else []


def main() -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    questions = sys.stdin.buffer
    try:
        cutting: Cutting = receive(questions)
        try:
            counter = make_counter(cutting.encoder)
        except WorkbenchError as exc:
            send(answers, exc)
            return
        limit_memory(int(settings.get("max_read_memory_mb")))
        send(answers, None)
        while True:
            task = receive(questions)
            try:
                for item in read_task(task, cutting, counter):
                    send(answers, item)
            except WorkbenchError as exc:
                send(answers, exc)
    except (EOFError, BrokenPipeError):
        return


if __name__ == "__main__":
    main()
