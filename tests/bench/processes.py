"""Rows that need processes of their own or folders of files: opening a corpus, starting the program, indexing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.figures import Figure, Memory, Peer, Row, in_turn
from bench.ground import Ground
from workbench import corpus as corpora
from workbench import settings
from workbench.corpus import open_corpus
from workbench.encode.load import load_encoder
from workbench.errors import WorkbenchError
from workbench.store.database import fetch, open_reading
from workbench.store.generations import DATABASE
from workbench.store.reader import open_generation

TIMES, STARTS = 10, 10
CHARACTERS, ROUNDS = 300_000, 2  # some 400 chunks: half a minute with the default model, twice over
AGAIN_CHARACTERS = 8_000_000  # some 10,000 chunks: enough for the words to have a process of their own
MOST_MB = 2500.0

# Each process is ready (imports done, opened once) before any of them is told to go.
CHILD = """
import sys, time
from bench.processes import opened
opened(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    opened(sys.argv[1])
    print((time.perf_counter() - start) * 1000, flush=True)
"""
CHILDREN_SEE = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}


def opened(folder: str) -> None:
    """Open a corpus with every part of it, and close it."""
    with open_corpus(folder) as corpus:
        corpus.engine.opened.open_all()


def opening(ground: Ground, key: str, title: str, processes: int) -> Row:
    """So many processes that open it at the same moment, each several times; none has it open before."""
    command = [sys.executable, "-c", CHILD, str(ground.built.folder), str(TIMES)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": CHILDREN_SEE}
    children = [subprocess.Popen(command, **pipes) for _ in range(processes)]  # type: ignore[call-overload]
    try:
        if any(child.stdout.readline().strip() != "ready" for child in children):
            raise WorkbenchError("A process that opens the corpus ended early", "Run `workbench doctor`")
        for child in children:
            child.stdin.write("go\n")
            child.stdin.flush()
        taken = [float(child.stdout.readline()) for child in children for _ in range(TIMES)]
    finally:
        for child in children:
            child.kill()
            child.communicate()
    return Row(key, title, "ms", Figure.of(taken), at_most=50.0)


def start(ground: Ground) -> tuple[Row, ...]:
    """What a person waits for before anything happens, and what the interpreter alone takes of it."""

    def runner(*arguments: str) -> Callable[[int], object]:
        return lambda _: subprocess.run([sys.executable, *arguments], capture_output=True, check=True)

    runs = {
        "bare": runner("-c", "pass"),
        "import": runner("-c", "import workbench"),
        "help": runner("-m", "workbench.cli.main", "--help"),
    }
    figures = in_turn(runs, range(STARTS), rounds=1, warm=1)
    bare = Peer("python -c pass", figures["bare"])
    return (
        Row("start.import", "python -c 'import workbench'", "ms", figures["import"], (bare,)),
        Row("start.help", "workbench --help", "ms", figures["help"], (bare,)),
    )


def model(ground: Ground) -> tuple[Row, ...]:
    """A few hundred chunks read, cut, embedded and written, against embedding their texts alone."""
    name = ground.model or str(settings.get("encoder"))
    with tempfile.TemporaryDirectory(prefix="workbench-bench-") as folder:
        write(ground, Path(folder) / "files", CHARACTERS)
        command = [sys.executable, "-m", "bench.processes", folder, name]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=CHILDREN_SEE)
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        raise WorkbenchError(f"The indexing run failed: {last}", "Run `workbench doctor` to see what is wrong")
    said = json.loads(done.stdout.strip().rpartition("\n")[2])
    shares = Figure.of([alone / whole for whole, alone in zip(said["indexing"], said["encoding"], strict=True)])
    note = (
        f"{said['chunks']:,} chunks with {name} on {said['runtime']}: {said['chunks'] / min(said['indexing']):,.0f} a"
        " second; so few chunks carry the fixed cost of writing a generation"
    )
    title, memory = "share of the encoder's own throughput while indexing", Figure.of([said["memory_mb"]])
    return (
        Row("index.share", title, "share", shares, at_least=0.85, notes=(note,)),
        Row("index.memory", "largest memory of that run, model included", "MB", memory, at_most=MOST_MB),
    )


def again(ground: Ground) -> tuple[Row, ...]:
    """Files indexed again after one of them changed, and when none did, against indexing them into a new corpus."""
    said = indexed_again(ground, AGAIN_CHARACTERS)
    peer = Peer("a new corpus of the same files", Figure.of([said["new"]]), note="Reads and embeds every file")
    notes = (f"{said['chunks']:,} chunks of {said['files']:,} files, with the hashing encoder",)
    changed, unchanged = Figure.of(said["changed"]), Figure.of(said["unchanged"])
    return (
        Row("index.again", "index again after one file changed", "s", changed, (peer,), notes=notes),
        Row("index.unchanged", "index again when nothing changed", "s", unchanged, (peer,), notes=notes),
    )


def indexed_again(ground: Ground, characters: float) -> dict[str, Any]:
    """Seconds of indexing so much of the corpus as files with the hashing encoder: new, and three times after one file changed
    and after none did; with the chunks and files, and the largest memory in MB."""
    with Memory() as memory, tempfile.TemporaryDirectory(prefix="workbench-bench-") as folder:
        files, corpus = Path(folder) / "files", Path(folder) / "corpus"
        total = write(ground, files, characters)
        changing = sorted(files.iterdir())[total // 2]

        def seconds() -> tuple[float, int]:
            started = time.perf_counter()
            report = corpora.index([files], corpus, encoder="hashing")
            return time.perf_counter() - started, report.chunks

        first, chunks = seconds()
        changed, unchanged = [], []
        for turn in range(3):
            with changing.open("a", encoding="utf-8") as file:
                file.write(f"\n\nA line that came with change {turn}.\n")
            changed.append(seconds()[0])
            unchanged.append(seconds()[0])
    figures = {"new": first, "changed": changed, "unchanged": unchanged, "memory_mb": memory.most_mb}
    return {**figures, "chunks": chunks, "files": total}


def built(ground: Ground) -> tuple[Row, ...]:
    """Writing this corpus: tables, vectors with their graph, word index, lines; without reading and embedding."""
    taken, memory = Figure.of([ground.built.seconds]), Figure.of([ground.built.memory_mb])
    note, chunks = (
        "Measured when this corpus was built, which may have been an earlier run",
        f"{ground.records:,} chunks",
    )
    return (
        Row("build.seconds", f"write a generation of {chunks}", "s", taken, notes=(note,)),
        Row("build.memory", f"largest memory of writing {chunks}", "MB", memory, at_most=MOST_MB),
    )


def write(ground: Ground, folder: Path, characters: float) -> int:
    """Documents of the corpus as files, so many characters in all; how many files."""
    folder.mkdir()
    left = characters
    for number, text in enumerate(ground.documents()):
        text = text[: int(min(left, len(text)))]
        (folder / f"{number:05d}.txt").write_text(text, encoding="utf-8", errors="replace")
        left -= len(text)
        if left <= 0:
            break
    return number + 1


def indexing_run(folder: Path, name: str) -> dict[str, object]:
    """The process of `model`: index the files, then embed the same texts."""
    indexing, encoding, texts = [], [], []
    with Memory() as memory:
        encoder = load_encoder(name)
        encoder.encode_query("warm")
        for turn in range(ROUNDS):
            corpus = folder / f"corpus-{turn}"
            started = time.perf_counter()
            corpora.index([folder / "files"], corpus, encoder=name)
            indexing.append(time.perf_counter() - started)
            texts = indexed_texts(corpus)
            started = time.perf_counter()
            encoder.encode(texts)
            encoding.append(time.perf_counter() - started)
    runtime = encoder.identity.runtime
    figures = {"indexing": indexing, "encoding": encoding, "chunks": len(texts)}
    return {**figures, "memory_mb": memory.most_mb, "runtime": runtime}


def indexed_texts(corpus: Path) -> Sequence[str]:
    sql = "SELECT DISTINCT CASE WHEN context = '' THEN text ELSE context || chr(10) || text END FROM records"
    with open_generation(corpus) as generation, closing(open_reading(generation.folder / DATABASE)) as connection:
        return sorted(str(row[0]) for row in fetch(connection, sql))


if __name__ == "__main__":
    print(json.dumps(indexing_run(Path(sys.argv[1]), sys.argv[2])))
