"""What an indexing run says of itself: one report a file, and the sums over all of them.

Apart from the other records because only those who index, keep the files, or show what became of them need it; the same
conventions hold (see `records`).
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum


class FileStatus(StrEnum):
    """What an indexing run did with one file."""

    INDEXED = "indexed"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    FAILED = "failed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of one file: `reason` and `remedy` are filled for skipped and failed ones.

    Attributes:
        documents, chunks: What is indexed under its path. Over all files they are those of the generation.
        same_as: Path of the first file with the same bytes, or "".
    """

    path: str
    status: FileStatus
    reason: str = ""
    remedy: str = ""
    documents: int = 0
    chunks: int = 0
    seconds: float = 0.0
    same_as: str = ""

    def counted(self, documents: int, chunks: int, same_as: str) -> FileReport:
        """This report with what the generation holds of the file; that it has the bytes of another is part of its reason."""
        note = f"The same bytes as {same_as}" if same_as else ""
        reason = "; ".join(part for part in (self.reason, note) if part)
        return replace(self, reason=reason, documents=documents, chunks=chunks, same_as=same_as)


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What an indexing run did. `found == indexed + unchanged + skipped + failed`; removed files are counted apart.

    Attributes:
        generation: Id of the generation that now answers.
        files: One report a file, in path order.
        documents, chunks: In the generation now.
        embedded: Texts that went through the encoder in this run.
        reused: Vectors taken over from the generation before or from an interrupted run.
        seconds: Wall time.
        changed: False when nothing changed and the old generation stays.
        embedding_seconds: Of these, what embedding took, loading the encoder included.
        encoders: Names of the encoders whose vectors the corpus holds, its own first.
    """

    generation: str
    files: tuple[FileReport, ...]
    documents: int
    chunks: int
    embedded: int
    reused: int
    seconds: float
    changed: bool = True
    warnings: tuple[str, ...] = ()
    embedding_seconds: float = 0.0
    encoders: tuple[str, ...] = ()

    def count(self, status: FileStatus) -> int:
        """Number of files with that status, given as itself or as its text."""
        return sum(1 for f in self.files if f.status == status)

    @property
    def copies(self) -> int:
        """Number of files with the same bytes as another one."""
        return sum(bool(file.same_as) for file in self.files)

    @property
    def found(self) -> int:
        """Files found: everything but the removed ones."""
        return len(self.files) - self.count(FileStatus.REMOVED)


NO_SUFFIX = "(none)"


@dataclass(frozen=True, slots=True)
class KindReport:
    """What a run did with the files of one suffix (in lower case with its dot, or `(none)`).
    `files == read + unchanged + skipped + failed`.

    Attributes:
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
