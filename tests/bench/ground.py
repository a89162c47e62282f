"""What the rows measure on: the open corpus, questions drawn from it, their vectors, the peers' folder."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.corpora import BenchCorpus
from workbench.corpus import Corpus, open_corpus
from workbench.records import Progress
from workbench.store.database import fetch, open_reading, stream
from workbench.store.generations import DATABASE
from workbench.store.lexical.tokens import STOP_WORDS
from workbench.store.records import StoredRecords

QUESTIONS = 60
"""Questions of most rows; no more than an engine keeps the vectors of, so that warm searches embed nothing."""

_SEED = 7
_WORD = re.compile(r"[A-Za-z]{2,20}")
_OPERATORS = {"or", "and", "not", "near"}
_CONTENT = (2, 5)
_LONGEST = 12
_TRIES = 200


@dataclass(frozen=True, slots=True)
class Question:
    """A question: some words of a chunk as they stand there, and the same without the stop words."""

    typed: str
    content: str


class Ground(AbstractContextManager["Ground"]):
    """The corpus open for measuring."""

    def __init__(self, built: BenchCorpus, model: str | None, tell: Callable[[Progress], None]) -> None:
        self.built = built
        self.model = model
        self.tell = tell
        self.corpus: Corpus = open_corpus(built.folder)
        self.engine = self.corpus.engine
        self.records = self.engine.records.records_total
        self.folder: Path = self.engine.opened.folder
        self.vectors_folder = self.folder / "vectors" / self.engine.opened.encoder_key()
        self.closing = ExitStack()
        self.closing.callback(self.corpus.close)

    def __exit__(self, *_: object) -> None:
        self.closing.close()

    def texts(self) -> Iterator[str]:
        return self._streamed("SELECT text FROM records ORDER BY number")

    def documents(self) -> Iterator[str]:
        return self._streamed("SELECT text FROM documents ORDER BY number")

    def _streamed(self, sql: str) -> Iterator[str]:
        with closing(open_reading(self.folder / DATABASE)) as connection:
            yield from (str(row[0]) for row in stream(connection, sql, 2000))

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        return self.draw(QUESTIONS)

    @cached_property
    def vectors(self) -> list[NDArray[np.float32]]:
        """The questions' vectors, by the corpus's encoder."""
        return [self.engine.embed(question.typed, "") for question in self.questions]

    def draw(self, count: int) -> tuple[Question, ...]:
        return draw(self.engine.records, count)

    def words(self, least: int, most: int, count: int) -> list[str]:
        """Words that occur in so many records, at least four letters, drawn from all such: the same ones each time."""
        sql = (
            "SELECT word FROM (SELECT unnest(list_distinct(regexp_extract_all(text, '[A-Za-z]{4,20}'))) AS word FROM records)"
            " GROUP BY word HAVING count(*) BETWEEN ? AND ? ORDER BY hash(word), word LIMIT ?"
        )
        with closing(open_reading(self.folder / DATABASE)) as connection:
            return [str(row[0]) for row in fetch(connection, sql, [least, most, count])]


def draw(records: StoredRecords, count: int) -> tuple[Question, ...]:
    """Questions drawn from a corpus: the same ones each time.

    Each is a run of words of some chunk with two to five words that say something and at least one stop word.
    """
    chosen = random.Random(_SEED)
    made: dict[str, Question] = {}
    tries = 0
    while len(made) < count and tries < _TRIES * count:
        numbers = [chosen.randrange(records.records_total) for _ in range(count)]
        for row in records.rows(sorted(set(numbers))):
            tries += 1
            question = _question(_WORD.findall(row.chunk.text), chosen)
            if question is not None and len(made) < count:
                made.setdefault(question.typed, question)
    return tuple(made.values())


def _question(words: list[str], chosen: random.Random) -> Question | None:
    if len(words) < _CONTENT[0] + 1:
        return None
    start, wanted = chosen.randrange(len(words)), chosen.randint(*_CONTENT)
    run: list[str] = []
    content: list[str] = []
    for word in words[start : start + _LONGEST]:
        if word.lower() in _OPERATORS:
            break
        run.append(word)
        if word.lower() not in STOP_WORDS:
            content.append(word)
        if len(content) == wanted:
            break
    if len(content) < _CONTENT[0] or len(content) == len(run):
        return None
    return Question(" ".join(run), " ".join(content))
