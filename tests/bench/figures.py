"""What a bench gives: rows of figures with their peers and goals, as values that print themselves."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from workbench import __version__, settings


@dataclass(frozen=True, slots=True)
class Figure:
    """What some samples come to, in the row's unit."""

    p50: float
    p95: float
    best: float
    samples: int

    @classmethod
    def of(cls, samples: Sequence[float] | Sequence[Sequence[float]]) -> Figure:
        """From samples of one thing, (r,), or rounds of several questions, (r, q); at least one sample."""
        rounds = np.asarray(samples, np.float64)
        p50, p95 = np.percentile(rounds, [50, 95])
        return cls(float(p50), float(p95), float(np.median(rounds.min(axis=0))), rounds.size)


@dataclass(frozen=True, slots=True)
class Goal:
    """What a row should reach, in words, and whether it did (None: it could not be told)."""

    text: str
    met: bool | None


@dataclass(frozen=True, slots=True)
class Peer:
    """Another program at the same task in the same run."""

    name: str
    figure: Figure | None
    at_most: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One measured thing."""

    key: str
    title: str
    unit: str
    figure: Figure
    peers: tuple[Peer, ...] = ()
    at_most: float | None = None
    at_least: float | None = None
    notes: tuple[str, ...] = ()
    p95_at_most: float | None = None

    def ratio(self, peer: Peer) -> float | None:
        """Our median over the peer's: below 1 is faster. None where the peer is missing."""
        if peer.figure is None or peer.figure.p50 <= 0:
            return None
        return self.figure.p50 / peer.figure.p50

    @property
    def own_goals(self) -> tuple[Goal, ...]:
        goals = []
        if self.at_most is not None:
            goals.append(Goal(f"at most {self.at_most:g} {self.unit}", self.figure.p50 <= self.at_most))
        if self.p95_at_most is not None:
            goals.append(Goal(f"p95 at most {self.p95_at_most:g} {self.unit}", self.figure.p95 <= self.p95_at_most))
        if self.at_least is not None:
            goals.append(Goal(f"at least {self.at_least:g}", self.figure.p50 >= self.at_least))
        return tuple(goals)

    @property
    def every_note(self) -> tuple[str, ...]:
        return (*(f"{p.name}: {p.note}" for p in self.peers if p.note and p.figure is not None), *self.notes)

    def against(self, peer: Peer) -> Goal | None:
        if peer.at_most is None:
            return None
        ratio = self.ratio(peer)
        return Goal(f"at most {peer.at_most:g}x {peer.name}", None if ratio is None else ratio <= peer.at_most)

    def to_dict(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "title": self.title,
            "unit": self.unit,
            **asdict(self.figure),
            "peers": [
                {"name": p.name, **asdict(p.figure or _MISSING), "ratio": self.ratio(p), "note": p.note}
                for p in self.peers
            ],
            "goals": [
                {"goal": g.text, "met": g.met}
                for g in (*self.own_goals, *map(self.against, self.peers))
                if g is not None
            ],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A row that could not be measured, and why."""

    key: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return {"key": self.key, "unmeasured": self.reason}


_MISSING = Figure(None, None, None, 0)  # type: ignore[arg-type]


# --- timing ----------------------------------------------------------------------------------------------------------


T = TypeVar("T")


def in_turn(
    contestants: Mapping[str, Callable[[T], object]], inputs: Sequence[T], rounds: int = 3, warm: int | None = None
) -> dict[str, Figure]:
    """Milliseconds of each contestant over all inputs."""
    for value in inputs[: len(inputs) if warm is None else warm]:
        for run in contestants.values():
            run(value)
    samples = {name: np.zeros((rounds, len(inputs))) for name in contestants}
    for turn in range(rounds):
        for position, value in enumerate(inputs):
            for name, run in contestants.items():
                samples[name][turn, position] = milliseconds(run, value)
    return {name: Figure.of(taken) for name, taken in samples.items()}  # type: ignore[arg-type]


def notes(results: Path) -> list[str]:
    """Lines that somebody wrote about some results, from the file beside them, `NAME.notes.md`."""
    beside = results.with_suffix(".notes.md")
    return [*beside.read_text(encoding="utf-8").splitlines(), ""] if beside.is_file() else []


def milliseconds(run: Callable[[T], object], value: T) -> float:
    started = time.perf_counter()
    run(value)
    return (time.perf_counter() - started) * 1000.0


class Memory(AbstractContextManager["Memory"]):
    """The largest memory of this process and its children together while the block runs: looked at five times a second, shared
    pages counted once. The system's own maximum of ended children is of no use: it holds what their parent had when they began.
    """

    most_mb = 0.0

    def __enter__(self) -> Memory:
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watch.join()

    def _look(self) -> None:
        while True:
            self.most_mb = max(self.most_mb, memory())
            if self._done.wait(0.2):
                return


def memory() -> float:
    """MB of this process and its children; where there is no Linux, the most that this process alone had."""
    if not Path("/proc/self/smaps_rollup").is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)
    return sum(map(_memory, _family(os.getpid())))


def _family(process: int) -> Iterator[int]:
    yield process
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def _memory(process: int) -> float:
    """MB of a process; 0 of one that has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return int(lines.partition("\nPss:")[2].split()[0]) / 1024.0


# --- machine ---------------------------------------------------------------------------------------------------------


_PACKAGES = ("numpy", "duckdb", "usearch", "openvino", "google-re2", "tantivy", "bm25s")
_BUSY = 0.5


def version(package: str) -> str:
    """Version of an installed package, or "" where it is not."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def describe() -> dict[str, Any]:
    """This machine and the program; `busy` where others were using it when the bench began."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    load = os.getloadavg()[0]
    return {
        "processor": _processor(),
        "cores": cores,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": load,
        "busy": load > _BUSY * cores,
        "threads": int(settings.get("threads")),
        "versions": {"workbench": __version__, **{name: said for name in _PACKAGES if (said := version(name))}},
        "commit": _commit(),
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    folder = Path(__file__).resolve().parents[2]
    if not (folder / ".git").exists():
        return ""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except OSError:
        return ""  # no git program
