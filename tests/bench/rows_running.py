"""Opening a corpus, and starting the program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.corpora import peak_memory
from bench.figures import Figure, Peer, Row, in_turn, milliseconds
from bench.ground import Ground
from workbench import corpus as corpora
from workbench import settings
from workbench.corpus import open_corpus
from workbench.encode.load import load_encoder
from workbench.errors import WorkbenchError
from workbench.store.database import fetch, open_reading
from workbench.store.generations import DATABASE
from workbench.store.reader import open_generation

PROCESSES = 8
_TIMES = 10
_STARTS = 10

# Each process is ready (imports done, opened once) before any of them is told to go.
_CHILD = """
import sys, time
from bench.rows_running import opened
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


# --- rows indexing ---------------------------------------------------------------------------------------------------


_CHARACTERS = 300_000  # some 400 chunks: half a minute with the default model, twice over
_ROUNDS = 2
_AGAIN_CHARACTERS = 8_000_000  # some 10,000 chunks: enough for the words to have a process of their own
_AGAIN_ROUNDS = 3
_MOST_MB = 2500.0


def model(ground: Ground) -> tuple[Row, ...]:
    """A few hundred chunks read, cut, embedded and written, against embedding their texts alone."""
    name = ground.model or str(settings.get("encoder"))
    with tempfile.TemporaryDirectory(prefix="workbench-bench-") as folder:
        files, work = Path(folder) / "files", Path(folder) / "work"
        files.mkdir()
        work.mkdir()
        _write(ground, files, _CHARACTERS)
        command = [sys.executable, "-m", "bench.rows_running", str(files), str(work), name, str(_ROUNDS)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=children_see())
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        raise WorkbenchError(f"The indexing run failed: {last}", "Run `workbench doctor` to see what is wrong")
    said = json.loads(done.stdout.strip().rpartition("\n")[2])
    shares = [alone / whole for whole, alone in zip(said["indexing"], said["encoding"], strict=True)]
    rate = said["chunks"] / min(said["indexing"])
    note = f"{said['chunks']:,} chunks with {name} on {said['runtime']}: {rate:,.0f} a second"
    return (
        Row(
            "index.share",
            "share of the encoder's own throughput while indexing",
            "share",
            Figure.of(shares),
            at_least=0.85,
            notes=(f"{note}; so few chunks carry the fixed cost of writing a generation",),
        ),
        Row(
            "index.memory",
            "largest memory of that run, model included",
            "MB",
            Figure.of([said["memory_mb"]]),
            at_most=_MOST_MB,
        ),
    )


def again(ground: Ground) -> tuple[Row, ...]:
    """Files indexed again after one of them changed, and when none did, against indexing them into a new corpus."""
    with tempfile.TemporaryDirectory(prefix="workbench-bench-") as folder:
        files, corpus = Path(folder) / "files", Path(folder) / "corpus"
        files.mkdir()
        total = _write(ground, files, _AGAIN_CHARACTERS)
        changing = sorted(files.iterdir())[total // 2]

        def seconds() -> tuple[float, int]:
            started = time.perf_counter()
            report = corpora.index([files], corpus, encoder="hashing")
            return time.perf_counter() - started, report.chunks

        first, chunks = seconds()
        changed, unchanged = [], []
        for turn in range(_AGAIN_ROUNDS):
            with changing.open("a", encoding="utf-8") as file:
                file.write(f"\n\nA line that came with change {turn}.\n")
            changed.append(seconds()[0])
            unchanged.append(seconds()[0])
    peer = Peer("a new corpus of the same files", Figure.of([first]), note="Reads and embeds every file")
    note = f"{chunks:,} chunks of {total:,} files, with the hashing encoder"
    return (
        Row("index.again", "index again after one file changed", "s", Figure.of(changed), (peer,), notes=(note,)),
        Row("index.unchanged", "index again when nothing changed", "s", Figure.of(unchanged), (peer,), notes=(note,)),
    )


def built(ground: Ground) -> tuple[Row, ...]:
    """Writing this corpus: tables, vectors with their graph, word index, lines; without reading and embedding."""
    corpus = ground.built
    note = "Measured when this corpus was built, which may have been an earlier run"
    chunks = f"{ground.records:,} chunks"
    return (
        Row("build.seconds", f"write a generation of {chunks}", "s", Figure.of([corpus.seconds]), notes=(note,)),
        Row(
            "build.memory", f"largest memory of writing {chunks}", "MB", Figure.of([corpus.memory_mb]), at_most=_MOST_MB
        ),
    )


def _write(ground: Ground, folder: Path, characters: int) -> int:
    written = number = 0
    for number, text in enumerate(ground.documents()):
        if written >= characters:
            return number
        part = text[: characters - written]
        (folder / f"{number:05d}.txt").write_text(part, encoding="utf-8", errors="replace")
        written += len(part)
    return number + 1


# --- indexing run ----------------------------------------------------------------------------------------------------


def main(files: Path, work: Path, name: str, rounds: int) -> dict[str, object]:
    encoder = load_encoder(name)
    encoder.encode_query("warm")
    indexing, encoding = [], []
    chunks = 0
    for turn in range(rounds):
        corpus = work / f"corpus-{turn}"
        started = time.perf_counter()
        corpora.index([files], corpus, encoder=name)
        indexing.append(time.perf_counter() - started)
        texts = _texts(corpus)
        chunks = len(texts)
        started = time.perf_counter()
        encoder.encode(texts)
        encoding.append(time.perf_counter() - started)
        shutil.rmtree(corpus)
    return {
        "indexing": indexing,
        "encoding": encoding,
        "chunks": chunks,
        "memory_mb": peak_memory(),
        "runtime": encoder.identity.runtime,
    }


def _texts(corpus: Path) -> list[str]:
    with open_generation(corpus) as generation:
        connection = open_reading(generation.folder / DATABASE)
        try:
            sql = "SELECT DISTINCT CASE WHEN context = '' THEN text ELSE context || chr(10) || text END FROM records"
            return sorted(str(row[0]) for row in fetch(connection, sql))
        finally:
            connection.close()


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))))
