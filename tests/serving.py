"""The app as `workbench app` starts it, on a free port, with an environment of its own: for journeys, pictures and benches."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SERVE = (
    "import sys; from workbench.ui.launch import run_app; run_app(sys.argv[1], int(sys.argv[2]), open_browser=False)"
)


class Served(str):
    """Address of the app; `pid` is its process."""

    pid: int


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until_it_answers(process: subprocess.Popen[Any], port: int) -> None:
    """Wait until a process listens on its port. Raises RuntimeError where it ends instead, or takes too long."""
    end = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"Nobody listens on port {port}")


@contextmanager
def serving(
    corpus: Path, elsewhere: Path, variables: Mapping[str, str], port: int | None = None, log: list[str] | None = None
) -> Iterator[Served]:
    """Start the app and give its address; it ends with the block. Raises RuntimeError, with what it said, where it ends early.

    Args:
        corpus: The corpus folder, which need not exist.
        elsewhere: The folder that it runs in.
        variables: More of the environment.
        port: The port; by default a free one.
        log: What the server prints is appended to it, line by line.
    """
    chosen = port or free_port()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(Path(__file__).parents[1]), **variables}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(corpus), str(chosen)],
        cwd=elsewhere, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    said = [] if log is None else log
    output, reader = process.stdout, threading.Thread(target=lambda: said.extend(output), daemon=True)
    try:
        for line in output:
            said.append(line)
            if f":{chosen}" in line:
                break
        else:
            raise RuntimeError("The app did not start: " + "".join(said)[-2000:])
        reader.start()
        address = Served(f"http://127.0.0.1:{chosen}")
        address.pid = process.pid
        yield address
    finally:
        process.terminate()
        process.wait(30)
        if reader.ident is not None:
            reader.join(30)
        process.stdout.close()
