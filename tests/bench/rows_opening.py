"""Opening a corpus, and starting the program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.figures import Figure, Peer, Row
from bench.ground import Ground
from bench.timing import in_turn, milliseconds
from workbench.corpus import open_corpus
from workbench.errors import WorkbenchError

PROCESSES = 8
_TIMES = 10
_STARTS = 10

# Each process is ready (imports done, opened once) before any of them is told to go.
_CHILD = """
import sys, time
from bench.rows_opening import opened
opened(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    opened(sys.argv[1])
    print((time.perf_counter() - start) * 1000, flush=True)
"""


def children_see() -> dict[str, str]:
    """The environment of a child process that imports this package."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}


def opened(folder: str) -> None:
    """Open a corpus with every part of it, and close it."""
    corpus = open_corpus(folder)
    corpus.engine.opened.open_all()
    corpus.close()


def one(ground: Ground) -> Row:
    """One process after another."""
    folder = str(ground.built.folder)
    opened(folder)
    taken = [milliseconds(opened, folder) for _ in range(50)]
    return Row("open.one", "open a corpus with every part", "ms", Figure.of(taken), at_most=50.0)


def eight(ground: Ground) -> Row:
    """Eight processes at the same moment, each several times."""
    command = [sys.executable, "-c", _CHILD, str(ground.built.folder), str(_TIMES)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=children_see())
        for _ in range(PROCESSES)
    ]
    taken: list[float] = []
    try:
        for child in children:
            if _line(child) != "ready":
                raise WorkbenchError("A process that opens the corpus ended early", "Run `workbench doctor`")
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        for child in children:
            taken += [float(_line(child)) for _ in range(_TIMES)]
    finally:
        for child in children:
            child.kill()
            child.communicate()
    title = f"the same by {PROCESSES} processes at once"
    return Row("open.eight", title, "ms", Figure.of(taken), at_most=50.0)


def _line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def start(ground: Ground) -> tuple[Row, ...]:
    """What a person waits for before anything happens, and what the interpreter alone takes of it."""
    commands: dict[str, Sequence[str]] = {
        "bare": ("-c", "pass"),
        "import": ("-c", "import workbench"),
        "help": ("-m", "workbench.cli.main", "--help"),
    }

    def runner(arguments: Sequence[str]) -> Callable[[int], object]:
        return lambda _: subprocess.run([sys.executable, *arguments], capture_output=True, check=True)

    runs = {name: runner(arguments) for name, arguments in commands.items()}
    figures = in_turn(runs, range(_STARTS), rounds=1, warm=1)
    bare = Peer("python -c pass", figures["bare"])
    return (
        Row("start.import", "python -c 'import workbench'", "ms", figures["import"], (bare,)),
        Row("start.help", "workbench --help", "ms", figures["help"], (bare,)),
    )
