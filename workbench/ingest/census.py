"""A census of words: what other programs find in a file and the readers here do not, and the other way round.

For people who must trust an index. pdftotext, pandoc and LibreOffice (`soffice`) share no code with the readers, so a word that
both have is there, and one that they disagree about is worth a look. Texts whose lines are those of the file are not compared:
they are the file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.ingest.errors import ReadError
from workbench.ingest.read import ReadDocument, read_documents
from workbench.ingest.rules import FileRules
from workbench.ingest.walk import FoundFile, walk

ALLOWED = 0.02
"""Share of its words by which a file may differ."""
_LONGEST = 120
_MOST_NAMED = 8
_WORD = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
"""A word; a letter where words are not set apart."""
_KINDS = {
    **dict.fromkeys((".pdf",), "pdftotext"),
    **dict.fromkeys((".docx", ".odt", ".epub", ".html", ".htm", ".xhtml", ".ipynb", ".rtf"), "pandoc"),
    **dict.fromkeys((".doc", ".xls", ".xlsx", ".ods", ".ppt", ".pptx", ".odp"), "soffice"),
}
_SHEETS = frozenset({".xls", ".xlsx", ".ods"})
_SLIDES = frozenset({".ppt", ".pptx", ".odp"})
_ALL_SHEETS = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false,false,false,-1"


@dataclass(frozen=True, slots=True)
class Compared:
    """A file that both have read.

    Attributes:
        path: Relative to its root.
        program: Who else read it.
        share: Of all its words, by how many the two differ.
        missing: Some words that the program alone has, the most frequent first.
        more: Some words that only the reader here has.
    """

    path: str
    program: str
    share: float
    missing: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that was not compared, and why."""

    path: str
    reason: str


def programs() -> tuple[str, ...]:
    """Which of the programs are installed."""
    return tuple(name for name in dict.fromkeys(_KINDS.values()) if shutil.which(name))


def check_words(
    paths: Iterable[str | Path], *, exclude: Sequence[str | Path] = (), hidden: bool = False
) -> Iterator[Compared | Unread]:
    """Compare every file below these paths that an installed program reads, in the order of their paths; nothing is written.

    Raises UsageError for a path that does not exist.
    """
    there = programs()
    with tempfile.TemporaryDirectory(prefix="workbench-census-") as folder:
        for found in walk(paths, exclude=exclude, hidden=hidden):
            program = _KINDS.get(os.path.splitext(found.path)[1].lower(), "")
            if isinstance(found, FoundFile) and program in there:
                yield _compared(found, program, Path(folder))


def _compared(found: FoundFile, program: str, folder: Path) -> Compared | Unread:
    try:
        documents = [item for item in read_documents(found, FileRules()) if isinstance(item, ReadDocument)]
    except ReadError as exc:
        return Unread(found.path, f"It is not indexed: {exc.message}")
    try:
        theirs = _READING[program](Path(found.absolute), folder)
    except (OSError, subprocess.SubprocessError) as exc:
        late = isinstance(exc, subprocess.TimeoutExpired)
        return Unread(found.path, f"{program} {f'took more than {_LONGEST} s' if late else 'cannot read it'}")
    own = words("\n".join(item.document.text for item in documents if "!/" not in item.document.path))
    other = words(theirs)
    if program == "pdftotext":  # a running head is kept where it comes first
        own, other = Counter(set(own)), Counter(set(other))
    missing, more = other - own, own - other
    share = (missing.total() + more.total()) / max(1, own.total() + other.total())
    return Compared(found.path, program, share, _some(missing), _some(more))


def words(text: str) -> Counter[str]:
    """How often a text has each word; form, case and hyphens that are not shown do not count."""
    plain = unicodedata.normalize("NFKC", text).replace("\u00ad", "").casefold()
    return Counter(_WORD.findall(plain))


def _some(found: Counter[str]) -> tuple[str, ...]:
    return tuple(word for word, _ in found.most_common(_MOST_NAMED))


def _run(*command: str) -> str:
    answer = subprocess.run(command, capture_output=True, timeout=_LONGEST, stdin=subprocess.DEVNULL, check=True)
    return answer.stdout.decode("utf-8", "replace")


def _by_pdftotext(file: Path, _folder: Path) -> str:
    return _run("pdftotext", "-enc", "UTF-8", "-nopgbrk", str(file), "-")


def _by_pandoc(file: Path, _folder: Path) -> str:
    kind = {".htm": "html", ".xhtml": "html"}.get(file.suffix.lower(), file.suffix.lower()[1:])
    how = ("--to=plain", "--sandbox", "--wrap=none", "--columns=10000", "--ipynb-output=all")
    return _run("pandoc", f"--from={kind}", *how, str(file))


def _by_soffice(file: Path, folder: Path) -> str:
    """A sheet as rows, slides by their pages, anything else as text. The program has a profile of its own."""
    suffix = file.suffix.lower()
    kind = _ALL_SHEETS if suffix in _SHEETS else "pdf" if suffix in _SLIDES else "txt:Text (encoded):UTF8"
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    with tempfile.TemporaryDirectory(dir=folder) as out:
        _run("soffice", profile, "--headless", "--norestore", "--convert-to", kind, "--outdir", out, str(file))
        made = sorted(Path(out).iterdir())
        if not made:
            raise OSError("nothing was made")
        if suffix in _SLIDES:
            return _by_pdftotext(made[0], folder)
        return "\n".join(one.read_text("utf-8", "replace") for one in made)


_READING: dict[str, Callable[[Path, Path], str]] = {
    "pdftotext": _by_pdftotext,
    "pandoc": _by_pandoc,
    "soffice": _by_soffice,
}
