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
        copies: Documents of it that are the same as another one, and are indexed as that one.
        same_as: Path of the document that the first of its copies is indexed as, or "".
    """

    path: str
    status: FileStatus
    reason: str = ""
    remedy: str = ""
    documents: int = 0
    chunks: int = 0
    seconds: float = 0.0
    copies: int = 0
    same_as: str = ""

    @property
    def is_copy(self) -> bool:
        """Whether all there is of it is indexed under another path."""
        return self.copies > 0 and not self.documents

    def counted(self, documents: int, chunks: int, copies: int, same_as: str) -> FileReport:
        """This report with what the generation holds of the file; that it is a copy stands in its reason."""
        if copies and documents:
            note = f"{copies:,} of its documents {'is a copy' if copies == 1 else 'are copies'}, the first of {same_as}"
        else:
            note = f"It is a copy of {same_as}" if copies else ""
        reason = "; ".join(part for part in (self.reason, note) if part)
        return replace(self, reason=reason, documents=documents, chunks=chunks, copies=copies, same_as=same_as)


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
        """Number of files that are copies of another one, and were indexed once."""
        return sum(file.is_copy for file in self.files)

    @property
    def found(self) -> int:
        """Files found: everything but the removed ones."""
        return len(self.files) - self.count(FileStatus.REMOVED)
