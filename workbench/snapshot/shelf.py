"""The snapshots that a corpus keeps: files in its folder `snapshots/`, named by their ids.

The folder is the list. A file that is no snapshot, or was changed, is listed with what is wrong; it is never opened as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import SnapshotError
from workbench.snapshot.snapshot import SUFFIX, Snapshot
from workbench.store.generations import private

FOLDER = "snapshots"
_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Listed:
    """One file of the shelf: its snapshot, or the error that it gave."""

    path: Path
    snapshot: Snapshot | None
    error: SnapshotError | None = None


class Shelf:
    """The snapshots of one corpus.

    Args:
        corpus: The corpus folder.
    """

    def __init__(self, corpus: str | Path) -> None:
        self.folder = Path(corpus) / FOLDER

    def keep(self, snapshot: Snapshot) -> Path:
        """Save a snapshot on the shelf, under its id, and return the path. Raises SnapshotError."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            private(self.folder)
        except OSError as exc:
            raise SnapshotError(
                f"The folder {self.folder} cannot be made: {exc.strerror or exc}", "Save to a file of your own instead"
            ) from exc
        path = snapshot.save(self.folder / f"{snapshot.id}{SUFFIX}")
        private(path)
        return path

    def files(self) -> list[Path]:
        """The files of the shelf, newest first."""
        found = [p for p in self.folder.glob(f"*{SUFFIX}") if p.is_file()] if self.folder.is_dir() else []
        return sorted(found, key=lambda p: (-p.stat().st_mtime_ns, p.name))

    @staticmethod
    def read(path: Path) -> Listed:
        """One file of a shelf, or what is wrong with it."""
        try:
            return Listed(path, Snapshot.load(path))
        except SnapshotError as exc:
            return Listed(path, None, exc)

    def all(self) -> Iterator[Listed]:
        """Every file of the shelf, newest first, each opened when it is asked for."""
        return map(self.read, self.files())

    def modified(self, id: str) -> int:
        """When the file of a snapshot was written, nanoseconds since 1970. Raises SnapshotError where there is none."""
        path = self.folder / f"{id}{SUFFIX}"
        if not _ID.fullmatch(id) or not path.is_file():
            raise SnapshotError(
                "There is no snapshot with this id here", "The Snapshots page lists those that there are"
            )
        return path.stat().st_mtime_ns

    def get(self, id: str) -> Snapshot:
        """The snapshot with an id. Raises SnapshotError where there is none, or where it is damaged or another one."""
        self.modified(id)  # refuses an id of another form before it becomes a path
        path = self.folder / f"{id}{SUFFIX}"
        snapshot = Snapshot.load(path)
        if snapshot.id != id:
            raise SnapshotError(f"The file {path.name} holds another snapshot, {snapshot.id}", "Do not trust this file")
        return snapshot

    def remove(self, id: str) -> None:
        """Take a snapshot off the shelf; one that is not there is no error."""
        if _ID.fullmatch(id):
            (self.folder / f"{id}{SUFFIX}").unlink(missing_ok=True)
