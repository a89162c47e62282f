"""The demo's files: the language reference and well-known library modules of the Python that runs.

They are copied, so that paths are the same on every machine: `docs/topics/with.txt` from the help topics that `help()`
shows, `lib/asyncio/locks.py` from the standard library. The list is fixed and holds only modules that lie at the same
place in Python 3.11 to 3.14; their text differs a little between versions, and so do figures.

A small part of them, two files in three and a third of the text, is for a first look: it is indexed in a third of the time.
"""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path

from workbench.errors import UsageError, WorkbenchError
from workbench.records import Progress

_UNDERLINE = re.compile(r"^[*=~^-]{3,}$", re.MULTILINE)
_SECTION = re.compile(r"(?m)^(?=[^\s*=~-].*\n={3,}$)")

MARK = ".workbench-demo"
TOPICS = "docs/topics"
LIBRARY = "lib"

MODULES: tuple[str, ...] = tuple(
    """
    abc argparse asyncio/events asyncio/futures asyncio/locks asyncio/queues asyncio/runners asyncio/streams
    asyncio/taskgroups asyncio/tasks asyncio/threads asyncio/timeouts base64 bisect collections/__init__
    concurrent/futures/_base concurrent/futures/process concurrent/futures/thread contextlib copy copyreg csv
    dataclasses difflib email/utils enum filecmp fileinput fnmatch functools getpass graphlib gzip hashlib heapq
    hmac html/parser http/client importlib/abc importlib/util io json/__init__ json/decoder json/encoder linecache
    logging/__init__ logging/handlers mimetypes multiprocessing/pool multiprocessing/process
    multiprocessing/shared_memory numbers operator os pickle posixpath pprint queue random re/__init__ reprlib
    sched secrets shelve shlex shutil signal smtplib socket socketserver ssl statistics subprocess tempfile
    textwrap threading timeit tomllib/_parser traceback tracemalloc types unittest/case unittest/mock
    unittest/runner urllib/parse urllib/request urllib/robotparser uuid warnings weakref xml/etree/ElementTree
    xml/sax/saxutils zoneinfo/_zoneinfo
    """.split()  # noqa: SIM905 - one long list reads better as words
)
"""Paths below the library folder, without `.py`."""

SMALL_MODULES: tuple[str, ...] = tuple(
    """
    abc asyncio/events asyncio/locks asyncio/queues asyncio/taskgroups asyncio/tasks asyncio/threads asyncio/timeouts
    base64 bisect contextlib copy filecmp getpass graphlib heapq hmac importlib/util json/__init__ json/decoder mimetypes
    queue random sched secrets shelve shlex socketserver tempfile textwrap timeit tomllib/_parser tracemalloc
    urllib/robotparser weakref xml/sax/saxutils zoneinfo/_zoneinfo
    """.split()  # noqa: SIM905 - one long list reads better as words
)
"""The modules of the small part: those relevant to a judged question, of at most 35,000 characters in Python 3.11."""


def demo_texts(*, small: bool = False) -> Mapping[str, str]:
    """Every file of the demo: relative path -> text, in path order.

    Args:
        small: Only the help topics and `SMALL_MODULES`.

    Raises:
        WorkbenchError: This Python comes without its help topics or without the sources of its library.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError as exc:
        raise WorkbenchError(
            "This Python comes without its help topics (pydoc_data)", "Run the demo with a full installation of Python"
        ) from exc
    told_once = without_repeats(topics)
    texts = {f"{TOPICS}/{name}.txt": _plain(text) for name, text in told_once.items()}
    library = Path(sysconfig.get_paths()["stdlib"])
    for module in SMALL_MODULES if small else MODULES:
        try:
            text = (library / f"{module}.py").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise WorkbenchError(
                f"This Python comes without the source of {module}.py in {library}",
                "Run the demo with a full installation of Python",
            ) from exc
        texts[f"{LIBRARY}/{module}.py"] = text
    return dict(sorted(texts.items()))


def demo_files(target: str | Path, progress: Callable[[Progress], None] | None = None, *, small: bool = False) -> Path:
    """Write the demo's files below `target` and return it as a path.

    A file that is there with the same text is left alone, so that indexing again finds it unchanged; a file that is no
    part of what is written (of an earlier Python's demo, or of the whole one when the small one is asked for) is removed.

    Args:
        target: A new or empty folder, or one of an earlier demo.
        progress: Called after each file.
        small: Only the part that is indexed in a third of the time; `demo_judgments(target)` are the questions on it.

    Raises:
        UsageError: The folder holds other files than a demo's.
        WorkbenchError: This Python comes without sources, or the folder cannot be written.
    """
    folder = Path(target)
    texts = demo_texts(small=small)
    try:
        if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
            raise UsageError(f"{folder} holds other files", "Give the demo a new or empty folder")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MARK).write_text("Written by the workbench demo; may be deleted.\n", encoding="utf-8")
        for number, (path, text) in enumerate(texts.items(), 1):
            file = folder / path
            data = text.encode("utf-8")
            if not file.is_file() or file.read_bytes() != data:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
            if progress is not None:
                progress(Progress("write files", number, len(texts), detail=path))
        for part in (TOPICS, LIBRARY):
            for file in sorted((folder / part).rglob("*")):
                if file.is_file() and file.relative_to(folder).as_posix() not in texts:
                    file.unlink()
    except OSError as exc:
        raise WorkbenchError(
            f"The demo's files cannot be written to {folder}: {exc.strerror or exc}", "Choose another folder"
        ) from exc
    return folder


def without_repeats(topics: Mapping[str, str]) -> dict[str, str]:
    """The help topics, each section told once: in the smallest topic that holds it whole.

    `help()` has large topics that are made of small ones (`compound` of `if`, `for`, `try` and more). In a corpus the
    copies would push each other out of the results.
    """
    order = sorted(sorted(topics, reverse=True), key=lambda name: len(topics[name]))
    words = {name: _words(topics[name]) for name in order}
    kept = {}
    for position, name in enumerate(order):
        smaller = [words[other] for other in order[:position]]
        sections = _SECTION.split(topics[name])
        told = [s for s in sections if not (_words(s).strip() and any(_words(s) in other for other in smaller))]
        if told:
            kept[name] = "".join(told)
    return dict(sorted(kept.items()))


def _words(text: str) -> str:
    """A text without the lines under headings, its blanks made one."""
    return " " + " ".join(_UNDERLINE.sub("", text).split()) + " "


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip("\n") + "\n"
