"""A helper process of an indexing run: reads and cuts the files that it is given over the connection that it inherits.

Protocol: a `Cutting`, answered by None or by the error that ends the run (the tokenizer cannot be loaded); then `Task`s, each
answered by batches and an `Outcome`. The end of the connection ends the process.
"""

from __future__ import annotations

import resource
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from workbench import settings
from workbench.errors import WorkbenchError
from workbench.indexing.reading import Batch, Cutting, Outcome, make_counter, read_task
from workbench.indexing.state import Task


def limit_memory(megabytes: int) -> None:
    """Let this process take no more than that beyond what it has, in units of 2**20 bytes.

    What counts is private writable memory (`RLIMIT_DATA`): mapped files and reserved addresses cost nothing. Python then
    raises MemoryError; a C library may end the process. Either costs the one file.
    """
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii", errors="replace").splitlines() if status.exists() else []
    held = next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:")), 0)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = held + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def main() -> None:
    connection: Connection[Batch | Outcome | WorkbenchError | None, Cutting | Task] = Connection(int(sys.argv[1]))
    try:
        cutting = connection.recv()
        assert isinstance(cutting, Cutting)
        try:
            counter = make_counter(cutting.encoder)
        except WorkbenchError as exc:
            connection.send(exc)
            return
        limit_memory(int(settings.get("max_read_memory_mb")))
        connection.send(None)
        while True:
            task = connection.recv()
            assert isinstance(task, Task)
            for item in read_task(task, cutting, counter, lambda: connection.send(())):
                connection.send(item)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


if __name__ == "__main__":
    main()
