"""Where a figure comes from: processor, cores, load, versions, commit."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workbench import __version__, settings

_PACKAGES = ("numpy", "duckdb", "usearch", "openvino", "google-re2", "tantivy", "bm25s")
_BUSY = 0.5


def version(package: str) -> str:
    """Version of an installed package, or "" where it is not."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine and the program.

    Attributes:
        processor: Model name.
        cores: Cores that this process may use.
        memory_gb: Memory, or 0 where it cannot be told.
        system: Operating system.
        python: Version of Python.
        load: Mean number of runnable processes over the last minute, when the bench began.
        threads: The setting `threads`.
        versions: Versions of the packages that do the work, and of the workbench.
        commit: Git commit of the checkout, with `+` where files differ from it; "" outside a checkout.
    """

    processor: str
    cores: int
    memory_gb: float
    system: str
    python: str
    load: float
    threads: int
    versions: dict[str, str]
    commit: str

    @property
    def busy(self) -> bool:
        """Whether others were using it when the bench began."""
        return self.load > _BUSY * self.cores

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def describe() -> Machine:
    """This machine, now."""
    return Machine(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_gb=_memory(),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        load=os.getloadavg()[0],
        threads=int(settings.get("threads")),
        versions={"workbench": __version__, **{name: said for name in _PACKAGES if (said := version(name))}},
        commit=_commit(),
    )


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _memory() -> float:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError):
        return 0.0


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
