"""What can go wrong with one file: one exception, and one record for the parts of a file that had to be left out.

A reader either yields what it read or raises `ReadError`; nothing else leaves `read`. A file that is readable only in
part (one bad line in ten thousand records) yields its good part and a `Problem` for each bad one, so that a bad line is
neither silent nor fatal.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.errors import WorkbenchError
from workbench.records import FileStatus


class ReadError(WorkbenchError):
    """One file gives no documents: it is broken (`FAILED`), or it is none of our business (`SKIPPED`).

    Args:
        message: Why, one sentence without a trailing full stop; it does not repeat the path.
        remedy: What to do about it.
        status: `FileStatus.FAILED` or `FileStatus.SKIPPED`.
    """

    def __init__(self, message: str, remedy: str = "", status: FileStatus = FileStatus.FAILED) -> None:
        super().__init__(message, remedy)
        self.status = status

    def __reduce__(self) -> tuple[type[ReadError], tuple[str, str, FileStatus]]:
        return (type(self), (self.message, self.remedy, self.status))


def skip(message: str, remedy: str = "") -> ReadError:
    return ReadError(message, remedy, FileStatus.SKIPPED)


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a file that was left out, or read with a loss, while the rest of it was indexed.

    Attributes:
        reason: What was wrong, without a trailing full stop.
        remedy: What to do about it.
        line: Line of the file, from 1; None where there is none.
        loses: Whether anything of the file is missing; False for a remark on a file that was read whole.
    """

    reason: str
    remedy: str = ""
    line: int | None = None
    loses: bool = True

    def __str__(self) -> str:
        where = f"Line {self.line}: " if self.line is not None else ""
        return f"{where}{self.reason}. {self.remedy}." if self.remedy else f"{where}{self.reason}."
