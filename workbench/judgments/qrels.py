"""Judgments: what people asked, and which documents answer it.

The words are TREC's: a topic is a judged query, qrels say for each topic which documents were looked at and how relevant
they are. A grade of 0 (or less) means judged and not relevant, which is something else than not judged: coverage counts
the difference. The readers of the file formats are in `reading`; what they make is this one record, or an error that names
file and lines: judgments are never half read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from workbench.errors import JudgmentError
from workbench.records import Span
from workbench.settings import path_of


@dataclass(frozen=True, slots=True)
class Topic:
    """One judged query. `keywords`: Words for grep, apart from the text; None where the file gives none. `need`: What counts as
    an answer, for who judges; no part of what is measured.
    """

    query_id: str
    text: str
    keywords: str | None = None
    need: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class JudgedPassage:
    """A judged run of characters of a document, as it is in the generation that is searched. `span`: The characters; None
    where the whole document is judged.
    """

    key: str
    document_id: str
    path: str
    span: Span | None = None


@dataclass(frozen=True)
class Judgments:
    """Topics and qrels.

    Attributes:
        qrels: query id -> {document key -> grade}, in the file's order. A document key is a path, a document id or a
            record's own id, NFC; higher grades are more relevant, 0 and less are judged and not relevant.
        passages: query id -> what its qrels' keys stand for, where passages were judged and not whole documents; empty
            otherwise. Then a run credits each judged passage once, at the rank of the best chunk that has it (`run`).
        drop_identical_ids: Whether the document whose id is the query's is left out of the query's results before they are
            measured; None where that is decided by the corpus (`run.as_indexed`).
    """

    topics: Mapping[str, Topic]
    qrels: Mapping[str, Mapping[str, int]]
    name: str = ""
    notes: tuple[str, ...] = field(default=(), compare=False)
    passages: Mapping[str, tuple[JudgedPassage, ...]] = field(default_factory=dict, compare=False)
    drop_identical_ids: bool | None = None

    def __len__(self) -> int:
        """Number of judged queries."""
        return len(self.qrels)

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """Ids of the judged queries, in the order of the topics, then of the qrels."""
        first = [query_id for query_id in self.topics if query_id in self.qrels]
        return (*first, *(query_id for query_id in self.qrels if query_id not in self.topics))

    @cached_property
    def document_keys(self) -> frozenset[str]:
        """Every document key that the qrels name: for membership tests only, it has no order."""
        return frozenset(key for grades in self.qrels.values() for key in grades)

    @property
    def without_relevant(self) -> tuple[str, ...]:
        """Ids of judged queries for which no document is relevant (grade 1 or more)."""
        return tuple(i for i in self.query_ids if not any(grade > 0 for grade in self.qrels[i].values()))

    @cached_property
    def digest(self) -> str:
        """Sha256 hex of the judged queries and grades, whatever the order of lines and the file format.

        Keywords are left out: they say how a query is asked, not what answers it.
        """
        return _digest([self._content(i) for i in sorted(self.qrels)])

    def _content(self, query_id: str) -> list[object]:
        text = self.topics[query_id].text if query_id in self.topics else None
        return [query_id, text, sorted(self.qrels[query_id].items())]

    @property
    def given_digest(self) -> str:
        """`digest`, and another one where the queries' own documents are left out."""
        return _digest([self.digest, "drop"]) if self.drop_identical_ids else self.digest

    @property
    def given_digests(self) -> Mapping[str, str]:
        """Like `given_digest`, of each judged query by itself: 16 hex digits."""
        measured = ["drop"] if self.drop_identical_ids else []
        return {query_id: _digest([*self._content(query_id), *measured])[:16] for query_id in self.query_ids}

    def topic(self, query_id: str) -> Topic:
        """The topic of a judged query. Raises JudgmentError where the judgments came without its text."""
        found = self.topics.get(query_id)
        if found is None:
            raise JudgmentError(
                f"The judgments name query {query_id!r}, and its text is not known",
                "Give the queries too: queries.jsonl beside the qrels, or topics=",
            )
        return found

    def without_keywords(self) -> Judgments:
        """The same judgments, asked as somebody does who types the query and nothing else."""
        topics = {i: Topic(topic.query_id, topic.text) for i, topic in self.topics.items()}
        return replace(self, topics=topics)

    def dropping(self, identical_ids: bool | None) -> Judgments:
        """The same judgments with `drop_identical_ids` set; None leaves it."""
        return self if identical_ids is None else replace(self, drop_identical_ids=identical_ids)

    def by_document(self) -> Judgments:
        """The same judgments with documents for passages: each has the highest grade of its passages."""
        if not self.passages:
            return self
        paths = {i: {p.key: p.path for p in found} for i, found in self.passages.items()}
        qrels: dict[str, dict[str, int]] = {}
        for query_id, grades in self.qrels.items():
            mine = qrels.setdefault(query_id, {})
            for key, grade in grades.items():
                path = paths.get(query_id, {}).get(key, key)
                mine[path] = max(grade, mine.get(path, grade))
        return replace(self, qrels=qrels, passages={})

    def subset(self, query_ids: Iterable[str]) -> Judgments:
        """The judgments of these queries only, in the order of the whole. Raises JudgmentError for an unknown id."""
        wanted = dict.fromkeys(query_ids)
        for query_id in wanted:
            if query_id not in self.qrels:
                raise JudgmentError(f"There are no judgments for query {query_id!r}", "Ask for judged queries only")
        kept = [i for i in self.query_ids if i in wanted]
        topics = {i: self.topics[i] for i in kept if i in self.topics}
        passages = {i: self.passages[i] for i in kept if i in self.passages}
        qrels = {i: self.qrels[i] for i in kept}
        return replace(self, topics=topics, qrels=qrels, notes=(), passages=passages)


def inherits(chunk: Span, judged: Span) -> bool:
    """Whether a chunk has the judgment of a passage: at least half of the shorter of the two is common to both."""
    common = min(chunk.end, judged.end) - max(chunk.start, judged.start)
    return common > 0 and 2 * common >= min(chunk.end - chunk.start, judged.end - judged.start)


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


def load_judgments(
    path: str | Path, *, split: str | None = None, topics: str | Path | None = None, name: str | None = None
) -> Judgments:
    """Read judgments from a folder or a file.

    What is understood:

    - a folder in the BEIR form: `queries.jsonl` (`_id`, `text`, and if wanted `keywords`) with `qrels.tsv`,
      `qrels/SPLIT.tsv` or `qrels.SPLIT.tsv` (query id, document key, grade; with a header); `queries.SPLIT.jsonl` goes
      before `queries.jsonl`;
    - one such `.tsv` file, with `queries.jsonl` beside it or one folder up;
    - TREC qrels (query, iteration, document, grade) in a file of any other name, with `topics` in the TREC or tab form;
    - `.csv` with a header: query_id, document, grade, and if wanted query and keywords;
    - `.jsonl`: one judgment a line with the same names, or one query a line with `relevant`.

    Args:
        path: Folder or file.
        split: Which split of a folder to read; needed when it has several and no `qrels.tsv` or `test`.
        topics: File with the texts of the queries, for TREC and TSV files.
        name: Name for titles; the folder's or file's by default.

    Raises:
        JudgmentError: Nothing is there, or lines are malformed (the message names file and lines, nothing is read), or
            no query is judged.
    """
    from workbench.judgments import formats

    return formats.load(path_of(path), split=split, topics=None if topics is None else path_of(topics), name=name)
