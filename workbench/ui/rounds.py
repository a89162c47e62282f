"""A round of judging: what a person chose to judge, where they are in it, and what they have graded. No widgets.

The candidates of all chosen plans are shuffled; grades are on the disk as they are given, and read again when a round begins, so
that a page that is loaded again goes on where it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import JudgmentError
from workbench.judgments.log import GRADES, Judgment
from workbench.judgments.pooling import Candidate, Pool, make_pool
from workbench.judgments.query_sets import Query
from workbench.locators import whole_number
from workbench.plan.plan import Plan
from workbench.records import Chunk, Document, Hit, Progress, Span

if TYPE_CHECKING:
    from workbench.corpus import Corpus

PLANS: Mapping[str, str] = {
    "default": "Hybrid",
    "rrf": "Hybrid, rrf",
    "default sources=keyword": "Keyword",
    "default sources=vector": "Vector",
}
"""Plans to pool that need nothing to be set, with their labels."""
DEPTH = 10
_SPLIT = "|"


@dataclass(frozen=True, slots=True)
class Choice:
    """What a round is about: the query set, who judges, the texts of the plans to pool, and how many results of each."""

    name: str
    judge: str
    plans: tuple[str, ...] = tuple(PLANS)
    depth: int = DEPTH

    def to_params(self, person: str) -> dict[str, str]:
        params = {"set": self.name, "pool": _SPLIT.join(self.plans), "depth": str(self.depth)}
        return params if self.judge == person else {**params, "judge": self.judge}


def from_params(params: Mapping[str, str], person: str) -> Choice | None:
    """The choice of an address; None where it names no set. What cannot be read has its default."""
    name = params.get("set", "").strip()
    if not name:
        return None
    plans = tuple(p for p in params.get("pool", "").split(_SPLIT) if p.strip()) or tuple(PLANS)
    depth = whole_number(params.get("depth", ""), DEPTH, 100) or DEPTH
    return Choice(name, params.get("judge", "").strip() or person, plans, depth)


@dataclass(frozen=True, slots=True)
class Shown:
    """The candidate that is to be judged, with what the page shows of it; nothing says which plan found it."""

    query: Query
    chunk: Chunk
    document: Document
    matches: tuple[Span, ...]


def pooled(corpus: Corpus, queries: Sequence[Query], choice: Choice, progress: Callable[[Progress], None]) -> Pool:
    """The candidates of some queries. Raises PlanError, UsageError, SourceUnavailable for a plan that cannot be run."""

    def hits(query: Query, plan: Plan, depth: int) -> Sequence[Hit]:
        return corpus.search(query.text, query.keywords, plan=plan, limit=depth).hits

    return make_pool(hits, corpus.judging, queries, choice.plans, choice.depth, progress)


class Round:
    """A round of judging: the set's queries are pooled and what was graded before is found. Raises JudgmentError for a set
    without queries.

    Attributes:
        choice: What it is about.
        state: Of the corpus that was searched (`Engine.key`); another one needs another round.
        pool: The candidates.
        skipped: Candidates put off, as (query id, chunk id).
        at: Position of the query that is judged now; what is shown next is looked for from it on.
        again: A candidate to show though it is graded or skipped, where somebody went back to it or chose its query.
        grade_texts: What the grades mean in the set.
    """

    def __init__(self, corpus: Corpus, choice: Choice, progress: Callable[[Progress], None] = lambda _: None) -> None:
        self.choice, self.state = choice, corpus.engine.key
        self.queries = corpus.judging.queries(choice.name)
        if not self.queries:
            raise JudgmentError(f"The set {choice.name!r} has no queries", "Add some, or choose another set")
        self.pool = pooled(corpus, self.queries, choice, progress)
        self.skipped: set[tuple[str, str]] = set()
        self.at = 0
        self.again: tuple[str, str] | None = None
        self.grade_texts = corpus.judging.sets.grade_texts(choice.name)
        self._trail: list[tuple[str, str]] = []
        self._candidates = {q.query_id: self.pool.order(q.query_id, choice.judge) for q in self.queries}
        self._given: dict[int, tuple[str, str]] = {}  # number of a judgment of this round -> query id, chunk id
        self._undone: set[tuple[str, str]] = set()
        self._graded: dict[str, Mapping[str, Judgment]] = {}
        for query in self.queries:
            self._read(corpus, query)

    def _read(self, corpus: Corpus, query: Query) -> None:
        candidates = self._candidates[query.query_id]
        found = corpus.judging.grades(query, candidates, set=self.choice.name, judge=self.choice.judge)
        # An undone one is shown again, also where it has a grade of its document or of a part of it.
        self._graded[query.query_id] = {i: g for i, g in found.items() if (query.query_id, i) not in self._undone}

    @property
    def total(self) -> int:
        return self.pool.size

    @property
    def done(self) -> int:
        return sum(map(len, self._graded.values()))

    def grades(self) -> dict[int, int]:
        return {
            **dict.fromkeys(GRADES, 0),
            **Counter(j.grade for found in self._graded.values() for j in found.values()),
        }

    def position(self, query: Query) -> tuple[int, int, int]:
        graded, candidates = self._graded[query.query_id], self._candidates[query.query_id]
        return self.queries.index(query) + 1, len(graded), len(candidates)

    def open_of(self, query: Query) -> list[Candidate]:
        """The candidates of a query that are not graded."""
        graded = self._graded[query.query_id]
        return [c for c in self._candidates[query.query_id] if c.chunk_id not in graded]

    def next(self) -> tuple[Query, Candidate] | None:
        """What is to be judged now: the first candidate neither graded nor skipped, from the query on at which one is; None at
        the end.
        """
        if self.again is not None:
            query = next(q for q in self.queries if q.query_id == self.again[0])
            found = next((c for c in self._candidates[query.query_id] if c.chunk_id == self.again[1]), None)
            if found is not None:
                return query, found
        for query in (*self.queries[self.at :], *self.queries[: self.at]):
            for candidate in self.open_of(query):
                if (query.query_id, candidate.chunk_id) not in self.skipped:
                    return query, candidate
        return None

    def jump(self, query_id: str) -> None:
        """Go to a query: to what is open of it, also if it was skipped, else to its first passage once more."""
        self.at = next(n for n, q in enumerate(self.queries) if q.query_id == query_id)
        left = self.open_of(self.queries[self.at])
        self.skipped -= {(query_id, c.chunk_id) for c in left}
        first = self._candidates[query_id][:1]
        self.again = (query_id, first[0].chunk_id) if first and not left else None

    def skip(self, query_id: str, chunk_id: str) -> None:
        self.again = None
        self.skipped.add((query_id, chunk_id))

    def back(self) -> None:
        """Show the passage again that was shown before this one."""
        self._trail = self._trail[:-1]
        if self._trail:
            self.again = self._trail.pop()
            self.at = next(n for n, q in enumerate(self.queries) if q.query_id == self.again[0])

    def given(self, query_id: str, chunk_id: str) -> int | None:
        """The grade that a candidate has of this judge; None where it has none."""
        found = self._graded[query_id].get(chunk_id)
        return None if found is None else found.grade

    def show(self, corpus: Corpus) -> Shown | None:
        """What the page shows now; candidates that left the corpus are passed over. None at the end."""
        judging = corpus.judging
        while (found := self.next()) is not None:
            query, candidate = found
            self.at = self.queries.index(query)
            number = judging.records.find_record(candidate.chunk_id, judging.scope)
            if number is not None:
                (row,) = judging.records.rows([number])
                (document,) = judging.records.headers([row.document_number])
                if self._trail[-1:] != [(query.query_id, candidate.chunk_id)]:
                    self._trail.append((query.query_id, candidate.chunk_id))
                return Shown(query, row.chunk, document, corpus.engine.lexical.highlight(query.text, row.chunk.text))
            self.again = None
            self.skipped.add((query.query_id, candidate.chunk_id))
        return None

    def grade(self, corpus: Corpus, query_id: str, chunk_id: str, grade: int, note: str = "") -> Judgment:
        """Grade a candidate; it is on the disk when this returns. Raises JudgmentError, CorpusError."""
        self.again = None
        query, about = next(q for q in self.queries if q.query_id == query_id), (query_id, chunk_id)
        name, judge = self.choice.name, self.choice.judge
        given = corpus.judging.grade(chunk_id, grade, query, set=name, judge=judge, note=note.strip())
        self._graded[query_id] = {**self._graded[query_id], chunk_id: given}
        self._given[given.number] = about
        self._undone.discard(about)
        self.skipped.discard(about)
        return given

    def undo(self, corpus: Corpus, given: Sequence[Judgment] = ()) -> None:
        """Take grades back; where none are named this judge's last one in the set, also one of another day."""
        judging, name, judge = corpus.judging, self.choice.name, self.choice.judge
        undone = [judging.log.undo(name, judge, one.number) for one in given] or [judging.undo(name, judge)]
        self.again = None
        changed = {one.query_id for one in undone if one is not None}
        self._undone |= {self._given.pop(one.number) for one in undone if one is not None and one.number in self._given}
        for number, query in enumerate(self.queries):
            if query.query_id in changed:
                self.at = number
                self._read(corpus, query)
