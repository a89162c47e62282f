"""The demo: index Python's own documentation and library, ask three questions in four modes, check every mode.

The three questions were chosen so that another mode is the best for each: a name that only exact search finds, a
description without any of the answer's words, and one with some of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench import settings
from workbench.demo.data import demo_judgments
from workbench.demo.files import demo_files
from workbench.records import Progress
from workbench.reports import IndexReport

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.evaluate.evaluation import Evaluation
    from workbench.evaluate.statistics import Difference

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
    """One question of the tour: the text, the words for grep, and what it shows."""

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


def demo_folder() -> Path:
    """Where the demo lives unless told otherwise: the user's cache, apart for each Python version."""
    return settings.cache_dir() / "demo" / f"python-{sys.version_info.major}.{sys.version_info.minor}"


def build(
    folder: str | Path | None = None, *, encoder: str | None = None, progress: Callable[[Progress], None] | None = None
) -> DemoCorpus:
    """Write the demo's files and index them; what is there already is not embedded again.

    Args:
        folder: Where `files/` and `corpus/` go; None is `demo_folder()`.
        encoder: Encoder for a new corpus; None is the setting.
        progress: Called with a Progress now and then.

    Raises:
        WorkbenchError: This Python comes without sources, or the folder cannot be written.
        CorpusLocked: Somebody else is building it.
    """
    from workbench import corpus as corpora

    base = Path(folder) if folder is not None else demo_folder()
    files = demo_files(base / "files", progress)
    options = {} if encoder is None else {"encoder": encoder}
    report = corpora.index([files], base / "corpus", collection="docs", progress=progress, **options)
    return DemoCorpus(files, base / "corpus", report)


def ask(corpus: Corpus, limit: int = 3) -> tuple[Answered, ...]:
    """The three questions in the four modes: question by question, modes in the order of `MODES`.

    Grep gets the keywords; the other modes read the question, as typed.
    """
    answers = []
    for question in QUESTIONS:
        for mode in MODES:
            result = corpus.search(
                question.text, keywords=question.keywords if mode == "grep" else None, mode=mode, limit=limit
            )
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
    evaluations = {
        name: corpus.evaluate(
            judgments if mode == "grep" else typed, plan, CHECKED, mode=mode, progress=progress
        ).named(name)
        for name, mode, plan in CONTENDERS
    }
    base = evaluations["hybrid"]
    return tuple(
        Contender(name, evaluations[name], None if name == "hybrid" else base.compare(evaluations[name]))
        for name, _, _ in CONTENDERS
    )
