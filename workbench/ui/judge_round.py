"""One person's round of judging: what is to be judged, what is next, and what was done. No Streamlit.

A round holds a pool (`judgments.pooling`) and, for each of its queries, which candidates this judge has graded. Grades are
written at once; the round keeps only where it is, so that a page that is loaded again makes the same round and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import JudgmentError
from workbench.judgments.log import GRADES, Judgment
from workbench.judgments.pooling import Candidate, Pool, make_pool
from workbench.judgments.query_sets import Query
from workbench.locators import whole_number
from workbench.records import Chunk, Document, Progress, Span

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
PARAMS = ("set", "pool", "depth", "judge")


@dataclass(frozen=True, slots=True)
class Choice:
    """What a round is about.

    Attributes:
        name: The query set.
        judge: Who judges.
        plans: Texts of the plans to pool.
        depth: How many results of each.
    """

    name: str
    judge: str
    plans: tuple[str, ...] = tuple(PLANS)
    depth: int = DEPTH

    def to_params(self, person: str) -> dict[str, str]:
        """The address form; the judge only where it is not the person that the machine knows."""
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
    """The candidate that is to be judged, with what the page shows of it; nothing says who found it."""

    query: Query
    chunk: Chunk
    document: Document
    matches: tuple[Span, ...]


class Round:
    """A round; make it with `begin`.

    Attributes:
        choice: What it is about.
        state: Of the corpus that was searched (`Engine.key`); another one needs another round.
        pool: The candidates.
        skipped: Candidates put off, as (query id, chunk id), in the order of putting off.
    """

    def __init__(self, choice: Choice, state: str, queries: tuple[Query, ...], pool: Pool) -> None:
        self.choice = choice
        self.state = state
        self.queries = queries
        self.pool = pool
        self.skipped: list[tuple[str, str]] = []
        self._order = {q.query_id: pool.order(q.query_id, choice.judge) for q in queries}
        self._graded: dict[str, Mapping[str, Judgment]] = {}
        self._given: list[tuple[str, str]] = []  # what was graded in this round, as (query id, chunk id)
        self._taken_back: set[tuple[str, str]] = set()

    @classmethod
    def begin(cls, corpus: Corpus, choice: Choice, progress: Callable[[Progress], None] | None = None) -> Round:
        """Pool the set's queries and find out what was graded before.

        Raises:
            JudgmentError: There is no such set, or it has no queries.
            PlanError, UsageError, SourceUnavailable: A plan cannot be run.
        """
        state, judging = corpus.engine.key, corpus.judging
        queries = judging.queries(choice.name)
        if not queries:
            raise JudgmentError(f"The set {choice.name!r} has no queries", "Add some, or choose another set")
        pool = make_pool(
            lambda query, plan, depth: corpus.search(query.text, query.keywords, plan=plan, limit=depth).hits,
            judging, queries, choice.plans, choice.depth, progress,
        )  # fmt: skip
        made = cls(choice, state, queries, pool)
        for query in queries:
            made._look(corpus, query)
        return made

    def _look(self, corpus: Corpus, query: Query) -> None:
        """Read this judge's grades of one query's candidates."""
        candidates = self._order[query.query_id]
        found = corpus.judging.grades(query, candidates, set=self.choice.name, judge=self.choice.judge)
        # What was taken back is asked again, also where it has a grade of its document or of a part of it.
        self._graded[query.query_id] = {
            chunk_id: given for chunk_id, given in found.items() if (query.query_id, chunk_id) not in self._taken_back
        }

    # --- where it is ---------------------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """Candidates of all queries."""
        return self.pool.size

    @property
    def done(self) -> int:
        """Graded candidates."""
        return sum(map(len, self._graded.values()))

    def grades(self) -> dict[int, int]:
        """How many candidates have each grade, 0 to 3 first, then others that were imported."""
        counts = dict.fromkeys(GRADES, 0)
        for found in self._graded.values():
            for judgment in found.values():
                counts[judgment.grade] = counts.get(judgment.grade, 0) + 1
        return counts

    def position(self, query: Query) -> tuple[int, int, int]:
        """Number of a query from 1, and how many of its candidates are graded, of how many."""
        return (
            self.queries.index(query) + 1, len(self._graded[query.query_id]), len(self._order[query.query_id])
        )  # fmt: skip

    def next(self) -> tuple[Query, Candidate] | None:
        """What is to be judged now: the first candidate neither graded nor put off; None at the end."""
        off = set(self.skipped)
        for query in self.queries:
            graded = self._graded[query.query_id]
            for candidate in self._order[query.query_id]:
                if candidate.chunk_id not in graded and (query.query_id, candidate.chunk_id) not in off:
                    return query, candidate
        return None

    def show(self, corpus: Corpus) -> Shown | None:
        """What the page shows now; candidates that left the corpus are passed over. None at the end."""
        while (found := self.next()) is not None:
            query, candidate = found
            judging = corpus.judging
            number = judging.records.find_record(candidate.chunk_id, judging.scope)
            if number is not None:
                row = judging.records.rows([number])[0]
                document = judging.records.headers([row.document_number])[0]
                matches = corpus.engine.lexical.highlight(query.text, row.chunk.text)
                return Shown(query, row.chunk, document, matches)
            self.skipped.append((query.query_id, candidate.chunk_id))
        return None

    # --- what is done --------------------------------------------------------------------------------------------------

    def grade(self, corpus: Corpus, query_id: str, chunk_id: str, grade: int, note: str = "") -> None:
        """Grade a candidate; it is on the disk when this returns. Raises JudgmentError, CorpusError."""
        query = self._query(query_id)
        given = corpus.judging.grade(
            chunk_id, grade, query, set=self.choice.name, judge=self.choice.judge, note=note.strip()
        )
        self._graded[query_id] = {**self._graded[query_id], chunk_id: given}
        self._given.append((query_id, chunk_id))
        self._taken_back.discard((query_id, chunk_id))
        if (query_id, chunk_id) in self.skipped:
            self.skipped.remove((query_id, chunk_id))

    def undo(self, corpus: Corpus) -> str:
        """Take back this judge's last grade in the set, also one of another day. Returns what was done, in a sentence."""
        taken = corpus.judging.undo(self.choice.name, self.choice.judge)
        if taken is None:
            return "There is nothing to take back."
        query = next((q for q in self.queries if q.query_id == taken.query_id), None)
        if query is not None:
            if self._given and self._given[-1][0] == query.query_id:
                self._taken_back.add(self._given.pop())
            self._look(corpus, query)
        return f"Took back grade {taken.grade} of {taken.anchor.path}."

    def skip(self, query_id: str, chunk_id: str) -> None:
        """Put a candidate off to the end."""
        if (query_id, chunk_id) not in self.skipped:
            self.skipped.append((query_id, chunk_id))

    def take_up(self) -> None:
        """Go through what was put off."""
        self.skipped.clear()

    def _query(self, query_id: str) -> Query:
        return next(q for q in self.queries if q.query_id == query_id)
