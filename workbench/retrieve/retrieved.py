"""What the sources answered, once: everything that a slider needs to fuse again without searching.

`Retrieved` holds each source's ranking at the depth it was asked for. `candidates_for` applies a plan's depth and threshold
and gives the columns that fusion takes; computed scores (BM25 and cosine of rows that a source did not retrieve) are
worked out the first time a plan or a table needs them, and kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NeedsSearch
from workbench.plan import Plan
from workbench.plan_fields import OFF
from workbench.plan_values import base_of
from workbench.ranking.candidates import Candidates, Column
from workbench.ranking.cutting import to_depth, to_threshold
from workbench.records import Document, Passage, Span, Unavailable
from workbench.retrieve.request import Request, kind_of, sources_of
from workbench.store.protocols import ChunkRow, RecordColumns, Scope, Scored

# Plan fields that decide what a source returns: a plan that differs in one of them cannot be served by fusing again.
_SOURCE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "grep": ("grep.context", "grep.regex", "grep.case", "grep.word"),
    "keyword": ("keyword.k1", "keyword.b", "keyword.operator"),
    "vector": ("vector.exact", "rewrite.model"),
}


def counts_documents(plan: Plan) -> bool:
    """Whether the plan's depths count documents: it ranks documents, and numbers them after the collapse."""
    return bool(plan["fusion.unit"] == "document" and plan["fusion.renumber"])


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """One source's answer at the depth it was asked for.

    Attributes:
        source: Its name.
        scored: Records, score down then number up.
        exhausted: True when a greater depth would find nothing more.
        entered: Records that it could have returned (allowed by principal, filter and collection).
        compute: Scores of given records by this source, or None where it cannot.
        passages: grep only: record number -> its best passage.
        milliseconds: Time that it took.
        files, lines: grep only: unique files and matched lines found.
        bound: keyword only: the most that BM25 could give for the query.
    """

    source: str
    scored: Scored
    exhausted: bool
    entered: int
    compute: Callable[[NDArray[np.int64]], NDArray[np.float64]] | None
    passages: Mapping[int, Passage] = field(default_factory=dict)
    milliseconds: float = 0.0
    files: int = 0
    lines: int = 0
    bound: Callable[[], float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What a hit shows of one record: read and marked once for all fusions of the same answers.

    Attributes:
        record: The record.
        document: Its document, without the text.
        matches: Character spans of the record's text that the query's words and patterns match.
    """

    record: ChunkRow
    document: Document
    matches: tuple[Span, ...]


class Retrieved:
    """Every source's answer to one request, and the rows they name.

    Args:
        request: What was asked.
        scope: Whom and what it was asked for.
        answers: By source name, sorted.
        unavailable: Sources that could not run.
        columns: The union of the answers' records, in the total order (number up).
        timings: Milliseconds by step.
        visible, allowed: Number of records that the principal may see, and that the filter left.
        patterns: What grep looked for.
        masks: Name of the policy that masks texts; "" where none does.
        masked: Which documents, by number, are shown with something masked.
    """

    def __init__(
        self,
        *,
        request: Request,
        scope: Scope,
        answers: Mapping[str, Answer],
        unavailable: tuple[Unavailable, ...],
        columns: RecordColumns,
        timings: Mapping[str, float],
        visible: int,
        allowed: int,
        patterns: tuple[str, ...],
        vectors: Mapping[str, NDArray[np.float32]],
        messages: tuple[str, ...] = (),
        masks: str = "",
        masked: Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None = None,
    ) -> None:
        self.request, self.scope, self.answers, self.unavailable = request, scope, answers, unavailable
        self.columns, self.timings, self.visible, self.allowed = columns, timings, visible, allowed
        self.patterns, self.vectors, self.messages = patterns, vectors, messages
        self.masks, self._ask_masked = masks, masked
        self._masked: dict[int, bool] = {}
        self.reranked: dict[str, dict[int, float]] = {}
        self._computed: dict[str, NDArray[np.float64]] = {}
        self._lock = threading.Lock()
        # Record number -> what is shown of it. Without a lock: at worst two threads read the same record.
        self.shown: dict[int, Shown] = {}

    def masked_rows(self, rows: NDArray[np.int64]) -> int:
        """How many rows belong to documents that are shown with something masked. Asked once a document."""
        if self._ask_masked is None:
            return 0
        owners = self.columns.document_numbers[rows].tolist()
        new = sorted(set(owners) - self._masked.keys())
        if new:
            answers = self._ask_masked(np.array(new, np.int64)).tolist()
            self._masked.update(zip(new, answers, strict=True))
        return sum(self._masked[n] for n in owners)

    def check(self, plan: Plan) -> None:
        """Raise NeedsSearch if a plan asks for what was not retrieved."""
        old = self.request.plan
        wanted = sources_of(plan, self.request.mode, self.request.query, self.request.keywords)
        lacking = sorted(set(wanted) - set(self.answers) - {u.source for u in self.unavailable})
        if lacking:
            raise NeedsSearch(f"This result did not retrieve from {', '.join(lacking)}", "Search again with this plan")
        if plan["collections"] != old["collections"]:
            raise NeedsSearch("This result was retrieved from other collections", "Search again with this plan")
        for source in wanted:
            for name in _SOURCE_FIELDS[base_of(source)]:
                if plan[name] != old[name]:
                    raise NeedsSearch(f"{name} changes what {source} retrieves", "Search again with this plan")
            answer = self.answers.get(source)
            if answer is None or answer.exhausted:
                continue
            have, what = len(answer.scored.numbers), "chunks"
            if counts_documents(plan):
                rows = np.searchsorted(self.columns.numbers, answer.scored.numbers)
                have, what = len(np.unique(self.columns.document_numbers[rows])), "documents"
            if have < plan.depth(source):
                raise NeedsSearch(
                    f"{source} gave {have} {what}, and the plan asks for a depth of {plan.depth(source)}",
                    "Search again with this plan",
                )

    def computed(self, source: str) -> NDArray[np.float64]:
        """Raw score of every row by a source, float64 (n,); NaN where it cannot be computed. Kept."""
        with self._lock:
            values = self._computed.get(source)
            if values is None:
                compute = self.answers[source].compute
                numbers = self.columns.numbers
                values = np.full(len(numbers), np.nan) if compute is None else compute(numbers)
                values.flags.writeable = False
                self._computed[source] = values
            return values

    def raw(self, sources: tuple[str, ...], computed: bool = True) -> Candidates:
        """Candidates as retrieved: before any depth or threshold of a plan."""
        columns = self.columns
        n = len(columns.numbers)
        made = []
        for source in sources:
            if source not in self.answers:
                continue
            scored = self.answers[source].scored
            rows = np.searchsorted(columns.numbers, scored.numbers)
            rank = np.zeros(n, np.int64)
            rank[rows] = np.arange(1, len(rows) + 1)
            score = np.full(n, np.nan)
            score[rows] = scored.scores
            every = self.computed(source) if computed else score
            if computed and self.answers[source].compute is not None:
                # What the source itself said of a row is the score; computing must not change a bit of it.
                every = np.where(rank > 0, score, every)
            made.append(Column(source, kind_of(source), rank, score, every, np.zeros(n, bool)))
        return Candidates(
            columns.chunk_ids, columns.document_ids, columns.paths, columns.start_lines, columns.whole, tuple(made)
        )

    def candidates_for(self, plan: Plan, computed: bool | None = None) -> Candidates:
        """Candidates under a plan: rankings cut to its depths, rows at or beyond their source's threshold marked cut.

        `computed` None works scores out only where the plan's fusion uses them.
        """
        sources = self.sources_for(plan)
        if computed is None:
            computed = self.uses_computed(plan)
        candidates = self.raw(sources, computed)
        candidates = to_depth(candidates, {s: plan.depth(s) for s in sources}, documents=counts_documents(plan))
        for source in sources:
            if base_of(source) == "vector" and plan.threshold(source) != OFF:
                candidates = to_threshold(candidates, source, plan.threshold(source), plan["vector.metric"])
        return candidates

    @staticmethod
    def uses_computed(plan: Plan) -> bool:
        """Whether fusion reads scores of rows that a source did not retrieve.

        A floor is put in for any such row, unless its computed distance is beyond the threshold: then it stays cut.
        """
        if plan["fusion.method"] == "rrf" or plan["fusion.missing"] == "zero":
            return False
        # A search by meaning alone asks the corpus's own encoder where the plan asks none.
        cuts = any(plan.threshold(source) != OFF for source in plan.vectors or ("vector",))
        return bool(plan["fusion.missing"] == "computed" or cuts)

    def sources_for(self, plan: Plan) -> tuple[str, ...]:
        """The sources that a plan fuses and that answered, sorted."""
        wanted = sources_of(plan, self.request.mode, self.request.query, self.request.keywords)
        return tuple(s for s in wanted if s in self.answers)
