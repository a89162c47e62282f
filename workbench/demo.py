"""The demo: a corpus that every machine has, with judged questions, to see in a minute which mode wins where.

Its files are the language reference and well-known library modules of the Python that runs. They are copied, so that paths are
the same on every machine: `docs/topics/with.txt` from the help topics that `help()` shows, `lib/asyncio/locks.py` from the
standard library. The list holds only modules that lie at the same place in Python 3.11 to 3.14; their text differs a little
between versions, and so do figures.

The project's own data (sample corpus, judged questions) is in the folder `data` of a checkout, and in the package as `_data`
when installed.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench import settings
from workbench.errors import UsageError, WorkbenchError
from workbench.records import IndexReport, Progress

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.evaluate.evaluation import Evaluation
    from workbench.evaluate.statistics import Difference
    from workbench.judgments.qrels import Judgments

_UNDERLINE = re.compile(r"^[*=~^-]{3,}$", re.MULTILINE)
_SECTION = re.compile(r"(?m)^(?=[^\s*=~-].*\n={3,}$)")

JUDGED = "demo"
"""Name of the query set of its judged questions."""
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
    """.split()
)
"""Paths below the library folder, without `.py`."""
SMALL_MODULES: tuple[str, ...] = tuple(
    """
    abc asyncio/events asyncio/locks asyncio/queues asyncio/taskgroups asyncio/tasks asyncio/threads asyncio/timeouts
    base64 bisect contextlib copy filecmp getpass graphlib heapq hmac importlib/util json/__init__ json/decoder mimetypes
    queue random sched secrets shelve shlex socketserver tempfile textwrap timeit tomllib/_parser tracemalloc
    urllib/robotparser weakref xml/sax/saxutils zoneinfo/_zoneinfo
    """.split()
)
"""The modules of the small part: those relevant to a judged question, of at most 35,000 characters in Python 3.11."""

MODES: tuple[str, ...] = ("grep", "keyword", "vector", "hybrid")
CONTENDERS: tuple[tuple[str, str, str], ...] = (
    ("grep", "grep", "default"),
    ("keyword", "keyword", "default"),
    ("vector", "vector", "default"),
    ("hybrid", "hybrid", "default"),
    ("rrf", "hybrid", "rrf"),
)
"""What `check` compares: name, mode, plan."""
CHECKED = ("nDCG@10", "Success@1", "R@100")


@dataclass(frozen=True, slots=True)
class Question:
    """One question of the demo: the text, the words for grep, and what it shows."""

    text: str
    keywords: str
    shows: str


QUESTIONS: tuple[Question, ...] = (
    Question("SO_REUSEPORT", "SO_REUSEPORT", "A name: exact words find the lines that hold it."),
    Question(
        "how fast is this little piece of code",
        "code fast",
        "A description: the answer says it in other words, and its meaning is found.",
    ),
    Question(
        "when is the else branch of a loop executed",
        "else loop",
        "A bit of both: neither words nor meaning alone put the answer first, their fusion does.",
    ),
)


@dataclass(frozen=True, slots=True)
class DemoCorpus:
    """Where the demo's files and corpus are, and what indexing did."""

    files: Path
    corpus: Path
    report: IndexReport


@dataclass(frozen=True, slots=True)
class Answered:
    """One question in one mode: citations of the first results, best first, and the milliseconds it took."""

    question: Question
    mode: str
    citations: tuple[str, ...]
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Contender:
    """One mode or plan on the judged questions; `against` compares it with the hybrid default (None for itself)."""

    name: str
    evaluation: Evaluation
    against: Difference | None


# --- the project's data ---------------------------------------------------------------------------------------------------


def data_folder() -> Path:
    """The folder with `sample` and `demo`. Raises WorkbenchError where the installation lacks it."""
    package = Path(__file__).resolve().parent
    for folder in (package / "_data", package.parent / "data"):
        if (folder / "demo" / "queries.jsonl").is_file():
            return folder
    raise WorkbenchError("The workbench's own data is missing", "Install the package again")


def sample_folder() -> Path:
    """The sample: `files/` to index, `corpus.yaml` with its rules, queries and judgments. Raises WorkbenchError."""
    return data_folder() / "sample"


def demo_judgments_folder() -> Path:
    """Queries and judgments of the demo, in the BEIR form. Raises WorkbenchError."""
    return data_folder() / "demo"


def demo_judgments(files: str | Path | None = None) -> Judgments:
    """The judged questions of the demo, for `Corpus.evaluate`; with a folder that `demo_files` wrote only those whose relevant
    files are all there. Raises UsageError where it answers none, WorkbenchError where the installation lacks the questions."""
    from workbench.judgments.qrels import load_judgments

    judgments = load_judgments(demo_judgments_folder(), name="demo")
    if files is None:
        return judgments
    folder = Path(files)
    absent = {key for key in judgments.document_keys if not (folder / key).is_file()}
    relevant = {i: {key for key, grade in judgments.qrels[i].items() if grade > 0} for i in judgments.query_ids}
    answered = [i for i, keys in relevant.items() if not keys & absent]
    if not answered:
        raise UsageError(f"{folder} answers no question of the demo", "Give the folder that demo_files returned")
    return judgments.subset(answered)


# --- the files ------------------------------------------------------------------------------------------------------------


def demo_texts(*, small: bool = False) -> Mapping[str, str]:
    """Every file of the demo: relative path -> text, in path order; `small`: only the help topics and `SMALL_MODULES`. Raises
    WorkbenchError: This Python comes without its help topics or without the sources of its library.
    """
    remedy = "Run the demo with a full installation of Python"
    try:
        from pydoc_data.topics import topics
    except ImportError as exc:
        raise WorkbenchError("This Python comes without its help topics (pydoc_data)", remedy) from exc
    texts = {
        f"{TOPICS}/{name}.txt": text.replace("\r\n", "\n").strip("\n") + "\n"
        for name, text in without_repeats(topics).items()
    }
    library = Path(sysconfig.get_paths()["stdlib"])
    for module in SMALL_MODULES if small else MODULES:
        try:
            texts[f"{LIBRARY}/{module}.py"] = (library / f"{module}.py").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise WorkbenchError(f"This Python comes without the source of {module}.py in {library}", remedy) from exc
    return dict(sorted(texts.items()))


def demo_files(target: str | Path, progress: Callable[[Progress], None] | None = None, *, small: bool = False) -> Path:
    """Write the demo's files (or the `small` part of them) below a new or empty folder, or one of an earlier demo.

    A file that is there with the same text is left alone, so that indexing again finds it unchanged; a file that is no
    part of what is written (of an earlier Python's demo, or of the whole one when the small one is asked for) is removed.

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
            file, data = folder / path, text.encode("utf-8")
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
    """The help topics, each section once: in the smallest topic that holds it whole.

    `help()` has large topics that are made of small ones (`compound` of `if`, `for`, `try` and more). In a corpus the
    copies would push each other out of the results.
    """
    order = sorted(sorted(topics, reverse=True), key=lambda name: len(topics[name]))
    words = {name: _words(topics[name]) for name in order}
    kept = {}
    for position, name in enumerate(order):
        smaller = [words[other] for other in order[:position]]
        sections = _SECTION.split(topics[name])
        own = [s for s in sections if not (_words(s).strip() and any(_words(s) in other for other in smaller))]
        if own:
            kept[name] = "".join(own)
    return dict(sorted(kept.items()))


def _words(text: str) -> str:
    """A text without the lines under headings, its blanks made one."""
    return " " + " ".join(_UNDERLINE.sub("", text).split()) + " "


# --- the tour -------------------------------------------------------------------------------------------------------------


def demo_folder() -> Path:
    """Where the demo lives by default: the user's cache, apart for each Python version."""
    return settings.cache_dir() / "demo" / f"python-{sys.version_info.major}.{sys.version_info.minor}"


def build(
    folder: str | Path | None = None,
    *,
    corpus: str | Path | None = None,
    encoder: str | None = None,
    progress: Callable[[Progress], None] | None = None,
    abort: Callable[[], bool] | None = None,
) -> DemoCorpus:
    """Write the demo's files and index them (by default in `demo_folder()`, or into another corpus), with its judged questions as
    the query set `demo`; what is there already is not embedded again.

    Raises:
        WorkbenchError: This Python comes without sources, or the folder cannot be written.
        CorpusLocked: Somebody else is building it.
        IndexingStopped: `abort` said so.
    """
    from workbench import corpus as corpora

    base = Path(folder) if folder is not None else demo_folder()
    files, place = demo_files(base / "files", progress), Path(corpus) if corpus is not None else base / "corpus"
    options = {} if encoder is None else {"encoder": encoder}
    report = corpora.index([files], place, collection="docs", progress=progress, abort=abort, **options)
    with corpora.open_corpus(place) as opened:
        if JUDGED not in opened.judging.sets.names():
            opened.import_judgments(demo_judgments_folder(), JUDGED)
    return DemoCorpus(files, place, report)


def ask(corpus: Corpus, limit: int = 3) -> tuple[Answered, ...]:
    """The three questions in the four modes, question by question; grep gets the keywords, the others the question."""
    answers = []
    for question in QUESTIONS:
        for mode in MODES:
            keywords = question.keywords if mode == "grep" else None
            result = corpus.search(question.text, keywords=keywords, mode=mode, limit=limit)
            cited = tuple(hit.citation for hit in result.hits)
            answers.append(Answered(question, mode, cited, float(result.timings_ms["total_ms"])))
    return tuple(answers)


def check(corpus: Corpus, progress: Callable[[Progress], None] | None = None) -> tuple[Contender, ...]:
    """Evaluate every mode, and the plan `rrf`, on the demo's judged questions, in the order of `CONTENDERS`.

    Grep gets the questions' keywords. The others read the questions as typed: the keywords are words of the question, and
    giving them to hybrid too would only count the same evidence twice.

    Raises:
        SourceUnavailable: The corpus has no vectors.
        WorkbenchError: The installation lacks the judged questions.
    """
    judgments = demo_judgments()
    typed = judgments.without_keywords()
    made = {}
    for name, mode, plan in CONTENDERS:
        asked = judgments if mode == "grep" else typed
        made[name] = corpus.evaluate(asked, plan, CHECKED, mode=mode, progress=progress).named(name)
    base = made["hybrid"]
    return tuple(Contender(name, made[name], None if name == "hybrid" else base.compare(made[name])) for name in made)
