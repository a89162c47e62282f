"""An indexing run by kinds of files: how many were read, what came of them, how long it took, and which were slow."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass

from workbench.reports import FileReport, FileStatus, IndexReport

NO_SUFFIX = "(none)"


@dataclass(frozen=True, slots=True)
class KindReport:
    """What a run did with the files of one suffix. `files == read + unchanged + skipped + failed`.

    Attributes:
        kind: Suffix in lower case with its dot, or `(none)`.
        files: Files found.
        read, unchanged, skipped, failed: How many of them.
        documents, chunks: What those read and unchanged hold.
        seconds: Time that their readers and the cutting took, of all helpers together.
        reasons: Why files were skipped or failed, and how many for each reason, the most frequent first.
    """

    kind: str
    files: int
    read: int
    unchanged: int
    skipped: int
    failed: int
    documents: int
    chunks: int
    seconds: float
    reasons: tuple[tuple[str, int], ...]

    @property
    def rate(self) -> float:
        """Files a second of those that were opened in this run; 0 where none was."""
        return (self.files - self.unchanged) / self.seconds if self.seconds else 0.0


def kind_of(path: str) -> str:
    """A file's kind by its name: the suffix in lower case, or `(none)`."""
    return os.path.splitext(path.rpartition("/")[2])[1].lower() or NO_SUFFIX


def by_kind(report: IndexReport) -> tuple[KindReport, ...]:
    """One row a kind, in the order of their names; folders that were skipped and removed files are in none."""
    found: dict[str, list[FileReport]] = {}
    for file in report.files:
        if file.status is not FileStatus.REMOVED and not file.path.endswith("/"):
            found.setdefault(kind_of(file.path), []).append(file)
    return tuple(_row(kind, files) for kind, files in sorted(found.items()))


def _row(kind: str, files: list[FileReport]) -> KindReport:
    counts = Counter(file.status for file in files)
    left = Counter(file.reason for file in files if file.status in (FileStatus.SKIPPED, FileStatus.FAILED))
    return KindReport(
        kind, len(files), counts[FileStatus.INDEXED], counts[FileStatus.UNCHANGED], counts[FileStatus.SKIPPED],
        counts[FileStatus.FAILED], sum(f.documents for f in files), sum(f.chunks for f in files),
        sum(f.seconds for f in files), tuple(sorted(left.items(), key=lambda item: (-item[1], item[0]))),
    )  # fmt: skip


def slowest(report: IndexReport, most: int = 10) -> tuple[FileReport, ...]:
    """The files whose reading took longest, longest first; those that took no time are none of them."""
    timed = [file for file in report.files if file.seconds > 0]
    return tuple(sorted(timed, key=lambda file: (-file.seconds, file.path))[:most])
