"""Indexing: how near it comes to the speed of the encoder alone, and how much memory it takes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from workbench import settings
from workbench.bench.figures import Figure, Row
from workbench.bench.ground import Ground
from workbench.errors import WorkbenchError

_CHARACTERS = 300_000  # some 400 chunks: half a minute with the default model, twice over
_ROUNDS = 2
_MOST_MB = 2500.0


def model(ground: Ground) -> tuple[Row, ...]:
    """A few hundred chunks read, cut, embedded and written, against embedding their texts alone."""
    name = ground.model or str(settings.get("encoder"))
    with tempfile.TemporaryDirectory(prefix="workbench-bench-") as folder:
        files, work = Path(folder) / "files", Path(folder) / "work"
        files.mkdir()
        work.mkdir()
        _write(ground, files)
        command = [sys.executable, "-m", "workbench.bench.indexing_run", str(files), str(work), name, str(_ROUNDS)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
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


def built(ground: Ground) -> tuple[Row, ...]:
    """Writing this corpus: tables, vectors with their graph, word index, lines; without reading and embedding."""
    corpus = ground.built
    note = "Measured when this corpus was built, which may have been an earlier run"
    chunks = f"{ground.records:,} chunks"
    return (
        Row("build.seconds", f"write a generation of {chunks}", "s", Figure.of([corpus.seconds]), notes=(note,)),
        Row(
            "build.memory",
            f"largest memory of writing {chunks}",
            "MB",
            Figure.of([corpus.memory_mb]),
            at_most=_MOST_MB,
        ),
    )


def _write(ground: Ground, folder: Path) -> None:
    """The first documents of the corpus as text files."""
    written = 0
    for number, text in enumerate(ground.documents()):
        if written >= _CHARACTERS:
            return
        part = text[: _CHARACTERS - written]
        (folder / f"{number:05d}.txt").write_text(part, encoding="utf-8", errors="replace")
        written += len(part)
