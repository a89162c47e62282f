"""Every error that the workbench raises on purpose.

The tree::

    WorkbenchError                  one base class; catch this to catch them all
    ├── UsageError (ValueError)     the caller asked for something that cannot be: exit code 2
    │   ├── PlanError               an unknown plan field, or a value outside its bounds
    │   ├── QueryError              a query or pattern that cannot be read
    │   ├── FilterError             a filter that cannot be read, or an unknown field
    │   ├── SettingError            an unknown setting, or a value outside its bounds
    │   └── JudgmentError           judgments that cannot be read; names the line
    ├── CorpusError                 the corpus on disk
    │   ├── CorpusNotFound          there is no corpus there yet
    │   ├── CorpusLocked            another process is writing
    │   ├── CorpusDamaged           a file of the generation is missing or not what its digest says
    │   └── EncoderMismatch         the corpus holds vectors of another encoder
    ├── SnapshotError               a snapshot that cannot be read, or that is not what its digests say
    │   └── SnapshotNewer           a snapshot of a newer schema than this version reads
    ├── PrincipalRequired           the corpus has tenants or roles and nobody said who asks
    ├── NeedsSearch                 a plan asks for candidates that were not retrieved
    ├── IndexingStopped             an indexing run was stopped on request; the corpus is as it was before
    ├── SourceUnavailable           a source that was asked for alone could not run
    ├── EncoderError                the model could not be loaded or run
    └── AssistError                 a reranker or rewriter failed or took too long; the search goes on without it

Each message is one sentence that says what is wrong, and `remedy` says what to do about it; `str(error)` is both. Errors
of other libraries are translated once, where they enter, with ``raise ... from exc``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_LONGEST = 1_000


class WorkbenchError(Exception):
    """The base of every error raised on purpose.

    Both texts may quote what somebody typed or a file holds: they become one line, with hidden characters shown by name, and
    lose their middle where they are too long to read.

    Args:
        message: What is wrong, one sentence, without a trailing full stop.
        remedy: What to do about it, one sentence, without a trailing full stop; may be empty.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        self.message, self.remedy = sentence(message), sentence(remedy)
        super().__init__(self.message, self.remedy)

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}." if self.remedy else f"{self.message}."


# C0 and C1 controls but newline and tab, line and paragraph separators, direction marks, soft hyphen, zero-width space
# and byte-order mark, the invisible operators, interlinear annotation, tag characters, and lone surrogates.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def character_name(found: re.Match[str]) -> str:
    """What stands for a character that acts without being seen."""
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else f"U+{code:04X}"


def one_line(text: str) -> str:
    """A text on one line: hidden characters by name, spaces joined."""
    return " ".join(HIDDEN.sub(character_name, text).split())


def sentence(text: str) -> str:
    """A text of a message on one line, without its middle where it is too long to read."""
    line = one_line(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST // 2].strip()} … {line[-_LONGEST // 3 :].strip()}"


def system_words(error: OSError) -> str:
    """What the system says of a fault, as the end of a sentence: `permission denied`."""
    return (error.strerror or type(error).__name__).lower()


def counted(number: int, word: str) -> str:
    """`1 file`, `1,234 files`; `copy|copies` says the plural where it is more than an s."""
    one, _, many = word.partition("|")
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def some_of(names: Sequence[str], most: int) -> str:
    """The first names, and how many there are besides: `a, b and 3 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def quoted(value: Any) -> str:
    """A value of a file or an argument, for a message: as JSON writes it, or a text in quotes."""
    if isinstance(value, str):
        return repr(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # keys that JSON has not, a value inside itself
        return "a value of another kind"


class UsageError(WorkbenchError, ValueError):
    """The caller asked for something that cannot be."""


class PlanError(UsageError):
    """An unknown plan field, or a value outside its bounds."""


class QueryError(UsageError):
    """A query or a pattern that cannot be read."""


class FilterError(UsageError):
    """A filter that cannot be read, or that names an unknown field."""


class SettingError(UsageError):
    """An unknown setting, or a value outside its bounds."""


class JudgmentError(UsageError):
    """Judgments that cannot be read; the message names the file and line."""


class CorpusError(WorkbenchError):
    """Something about the corpus on disk."""


class CorpusNotFound(CorpusError):
    """There is no corpus at that place yet."""


class CorpusLocked(CorpusError):
    """Another process is writing this corpus."""


class CorpusDamaged(CorpusError):
    """A file of the generation is missing or not what its digest says."""


class EncoderMismatch(CorpusError):
    """The corpus holds vectors of another encoder than the one asked for."""


class SnapshotError(WorkbenchError):
    """A snapshot that cannot be read, or that is not what its digests say."""


class SnapshotNewer(SnapshotError):
    """A snapshot of a newer schema than this version of the workbench reads."""


class PrincipalRequired(WorkbenchError):
    """The corpus or the plan needs to know who asks, and nobody said it."""


SAY_WHO = (
    "Name the tenant and the roles: start the command with --tenant and --role (`workbench app` takes them too), or set "
    "WORKBENCH_TENANT and WORKBENCH_ROLES, or open the corpus for a principal"
)


class NeedsSearch(WorkbenchError):
    """A plan asks for candidates that this result did not retrieve."""


class IndexingStopped(WorkbenchError):
    """An indexing run was stopped on request; the corpus is as it was before."""


class SourceUnavailable(WorkbenchError):
    """A source that was asked for alone could not run."""


class EncoderError(WorkbenchError):
    """The model could not be loaded or run."""


class AssistError(WorkbenchError):
    """A reranker or a query rewriter could not be loaded, failed, or took too long; a search goes on without it."""
