"""What an indexing run says of itself: one report a file, and the sums over all of them.

Apart from the other records because only those who index, keep the files, or show what became of them need it; the same
conventions hold (see `records`).
"""

from __future__ import annotations

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
