"""Indexing: how near it comes to the speed of the encoder alone, how long a small change takes, how much memory it takes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import Figure, Peer, Row
from bench.ground import Ground
from bench.rows_opening import children_see
from workbench import corpus as corpora
from workbench import settings
from workbench.errors import WorkbenchError

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
        command = [sys.executable, "-m", "bench.indexing_run", str(files), str(work), name, str(_ROUNDS)]
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
    """The first documents of the corpus as text files, of so many characters at most; returns how many."""
    written = number = 0
    for number, text in enumerate(ground.documents()):
        if written >= characters:
            return number
        part = text[: characters - written]
        (folder / f"{number:05d}.txt").write_text(part, encoding="utf-8", errors="replace")
        written += len(part)
    return number + 1
