"""What the sources answered, once: everything that a slider needs to fuse again without searching.

`Retrieved` holds each source's ranking at the depth it was asked for. `candidates_for` applies a plan's depth and threshold
and gives the columns that fusion takes; computed scores (BM25 and cosine of rows that a source did not retrieve) are
worked out the first time a plan or a table needs them, and kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NeedsSearch
from workbench.plan.fields import OFF, RETRIEVAL, base_of, encoder_of
from workbench.plan.plan import Plan
from workbench.ranking.adapt import SHARE, Adaptation, rounded
from workbench.ranking.candidates import Bools, Candidates, Column, Floats, Ints
from workbench.ranking.cutting import as_holders, to_depth, to_distance, to_threshold
from workbench.records import Document, Kind, Passage, Ranked, Span, Unavailable
from workbench.retrieve.request import Request, check_principal, kind_of, sources_of
from workbench.store.records import StoredRecords
from workbench.store.types import ChunkRow, RecordColumns, Scope, Scored


def counts_documents(plan: Plan) -> bool:
    """Whether the plan's depths count documents: it ranks documents, and numbers them after the collapse."""
    return bool(plan["fusion.unit"] == "document" and plan["fusion.renumber"])


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """One source's answer at the depth it was asked for.

    Attributes:
        source: Its name.
        scope: What it searched: the request's scope, or the collection that it names.
        scored: Records, score down then number up.
        depth: Depth that it was asked for.
        exhausted: True when a greater depth would find nothing more.
        entered: Records that it could have returned (allowed by principal, filter and collection).
        compute: Scores of given records by this source, or None where it cannot.
        passages: grep only: record number -> its best passage.
        milliseconds: Time that it took.
        files, lines: grep only: unique files and matched lines found.
        bound: keyword only: the most that BM25 could give for the query.
        adaptation, vectors: vector only: what the vectors that may be seen have in common, and the vectors of given records.
        steady: Whether an answer at a smaller depth is the beginning of this one: not where the approximate index may answer.
    """

    source: str
    scope: Scope
    scored: Scored
    depth: int
    exhausted: bool
    entered: int
    compute: Callable[[Ints], Floats] | None
    passages: Mapping[int, Passage] = field(default_factory=dict)
    milliseconds: float = 0.0
    files: int = 0
    lines: int = 0
    bound: Callable[[], float] | None = None
    adaptation: Callable[[], Adaptation | None] | None = None
    vectors: Callable[[Ints], NDArray[np.float32]] | None = None
    steady: bool = True


@dataclass(eq=False)
class Retrieved:
    """Every source's answer to one request, and the rows they name.

    Attributes:
        request: What was asked.
        scope: Whom and what it was asked for.
        answers: By source name, sorted.
        unavailable: Sources that could not run.
        columns: The union of the answers' records, in the total order (number up).
        timings: Milliseconds by step.
        visible, allowed: Number of records that the principal may see, and that the filter left.
        patterns: What grep looked for.
        vectors: The query's vector by encoder.
        depths: The depths that were asked for beside the plan's, by source.
        messages: What to warn of.
        ask_masked: Which documents, by number, are shown with something masked; None where no policy masks texts.
        reranked: Model -> record number -> its score.
        shown: Record number -> the record and its document (without the text), read once for all fusions of the same answers.
            Without a lock: at worst two threads read the same record.
        marked: What of a record's text (by its number) the query's words, and grep's patterns, match: found when first shown.
    """

    request: Request
    scope: Scope
    answers: Mapping[str, Answer]
    unavailable: tuple[Unavailable, ...]
    columns: RecordColumns
    timings: Mapping[str, float]
    visible: int
    allowed: int
    patterns: tuple[str, ...]
    vectors: Mapping[str, NDArray[np.float32]]
    depths: Mapping[str, int] = field(default_factory=dict)
    messages: tuple[str, ...] = ()
    ask_masked: Callable[[Ints], Bools] | None = None
    reranked: dict[str, dict[int, float]] = field(default_factory=dict)
    shown: dict[int, tuple[ChunkRow, Document]] = field(default_factory=dict)
    marked: dict[tuple[str, int], tuple[Span, ...]] = field(default_factory=dict)
    _masked: dict[int, bool] = field(default_factory=dict)
    _computed: dict[str, Floats] = field(default_factory=dict)
    _last: dict[str, tuple[Ints, Floats]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def masked_rows(self, rows: Ints) -> int:
        """How many rows belong to documents that are shown with something masked. Asked once a document."""
        if self.ask_masked is None:
            return 0
        owners = self.columns.document_numbers[rows].tolist()
        new = sorted(set(owners) - self._masked.keys())
        if new:
            self._masked.update(zip(new, self.ask_masked(np.array(new, np.int64)).tolist(), strict=True))
        return sum(self._masked[n] for n in owners)

    def under(self, plan: Plan) -> Retrieved:
        """What a search with another plan would have retrieved: the answers of its sources, shared with this.

        Raises:
            PrincipalRequired: The plan must know who asks.
            NeedsSearch: The plan asks for what was not retrieved.
        """
        check_principal(plan, self.request.principal)
        wanted = sources_of(plan, self.request.mode, self.request.query, self.request.keywords)
        self._check(plan, wanted)
        kinds = {base_of(source) for source in wanted}
        return replace(
            self,  # the dictionaries are shared
            request=replace(self.request, plan=plan),
            answers={s: self.answers[s] for s in wanted if s in self.answers},
            unavailable=tuple(u for u in self.unavailable if u.source in wanted),
            patterns=self.patterns if "grep" in kinds else (),
            messages=self.messages if "vector" in kinds else (),
        )

    def _check(self, plan: Plan, wanted: tuple[str, ...]) -> None:
        old, remedy = self.request.plan, "Search again with this plan"
        lacking = sorted(set(wanted) - set(self.answers) - {u.source for u in self.unavailable})
        if lacking or not any(source in self.answers for source in wanted):
            raise NeedsSearch(f"This result did not retrieve from {', '.join(lacking or wanted)}", remedy)
        documents = counts_documents(plan)
        for source in wanted:
            for name in RETRIEVAL[base_of(source)]:
                if plan[name] != old[name]:
                    raise NeedsSearch(f"{name} changes what {source} retrieves", remedy)
            answer = self.answers.get(source)
            if answer is None:
                continue
            depth = plan.depth(source)
            asked = max(depth, self.depths.get(source, 0))
            if not answer.steady and (asked != answer.depth or documents != counts_documents(old)):
                raise NeedsSearch(f"{source} may be answered approximately, which depends on its depth", remedy)
            if answer.exhausted:
                continue
            have, what = len(answer.scored.numbers), "chunks"
            if documents:
                rows = np.searchsorted(self.columns.numbers, answer.scored.numbers)
                # The last one may have more chunks: it is complete only where another one follows.
                have, what = len(np.unique(self.columns.document_numbers[rows])) - 1, "documents"
            if have < depth:
                raise NeedsSearch(f"{source} gave {have} {what}, and the plan asks for a depth of {depth}", remedy)

    def computed(self, source: str) -> Floats:
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
        columns, made = self.columns, []
        n = len(columns.numbers)
        for source in (s for s in sources if s in self.answers):
            answer = self.answers[source]
            rows = np.searchsorted(columns.numbers, answer.scored.numbers)
            rank, score = np.zeros(n, np.int64), np.full(n, np.nan)
            rank[rows] = np.arange(1, len(rows) + 1)
            score[rows] = answer.scored.scores
            every = score
            if computed:
                # What the source itself said of a row is the score; computing must not change a bit of it.
                every = np.where(rank > 0, score, self.computed(source)) if answer.compute else self.computed(source)
            made.append(Column(source, kind_of(source), rank, score, every, np.zeros(n, bool)))
        return Candidates(
            columns.chunk_ids, columns.document_ids, columns.paths, columns.start_lines, columns.whole, tuple(made)
        )

    def candidates_for(self, plan: Plan, computed: bool | None = None) -> Candidates:
        """Candidates under a plan: rankings cut to its depths, rows that their source's threshold cuts marked, similarities
        adapted to the corpus where the plan says so.

        `computed` None works missing scores out only where the plan's fusion uses them.
        """
        sources = self.sources_for(plan)
        every = self.uses_computed(plan) if computed is None else computed
        candidates = self.raw(sources, every or plan["vector.adapt"] != OFF)
        candidates = to_depth(candidates, {s: plan.depth(s) for s in sources}, documents=counts_documents(plan))
        for source in sources:
            if plan.threshold(source) != OFF:
                candidates = to_threshold(candidates, source, plan.threshold(source), plan["vector.metric"])
        if plan["vector.adapt"] != OFF:
            candidates = replace(candidates, columns=tuple([self._adapted(c, plan) for c in candidates.columns]))
            candidates = replace(candidates, vectors=self._vectors(plan))
        return self._as_passages(candidates) if plan["grep.show"] == "passage" else candidates

    def _adapted(self, column: Column, plan: Plan) -> Column:
        """A vector source's column with similarities adapted to the corpus; as it is where the source or the corpus has none."""
        source, answer = column.source, self.answers[column.source]
        adaptation = answer.adaptation() if answer.adaptation is not None else None
        if adaptation is None or answer.vectors is None:
            return column
        numbers, weight = self.columns.numbers, float(plan["vector.hubness"])
        stored = cache(partial(answer.vectors, numbers))  # read once, where something is worked out
        with self._lock:
            if (key := f"alike {source}") not in self._computed:
                query = adaptation.adapted(self.vectors[encoder_of(source)][None])[0]
                self._computed[key] = rounded(adaptation.adapted(stored()) @ query)
            adapted = (1.0 - SHARE) * column.computed + SHARE * self._computed[key]
            if weight and (key := f"hubness {source}") not in self._computed:
                self._computed[key] = adaptation.hubness(stored(), numbers)
            if weight:
                adapted -= weight * self._computed[f"hubness {source}"]
        return replace(column, adapted=adapted)

    def _vectors(self, plan: Plan) -> Callable[[Ints], Floats] | None:
        """What gives rows their adapted vectors, by the plan's first vector source that has some; None without one, and for a
        plan without feedback or adapted similarity, whose vectors feedback compares.
        """
        if plan["vector.adapt"] == OFF or not plan["feedback.weight"]:
            return None
        for source in self.sources_for(plan):
            answer = self.answers[source]
            adaptation = answer.adaptation() if answer.adaptation is not None else None
            if adaptation is not None and answer.vectors is not None:
                return partial(self._adapted_rows, source, adaptation, answer.vectors)
        return None

    def _adapted_rows(
        self, source: str, adaptation: Adaptation, read: Callable[[Ints], NDArray[np.float32]], rows: Ints
    ) -> Floats:
        """The adapted vectors of rows, float64 (m, d). Those of the last rows are kept: most sliders fuse the same ones again."""
        last = self._last.get(source)
        if last is None or not np.array_equal(last[0], rows):
            last = self._last[source] = (rows, adaptation.adapted(read(self.columns.numbers[rows])))
        return last[1]

    def likeness(self, plan: Plan) -> Floats | None:
        """The products of the rows' vectors, float64 (n, n), for many plans with feedback; None without vectors. Kept."""
        key, vectors = f"likeness {plan.sources}", self._vectors(plan)
        if vectors is None:
            return None
        with self._lock:
            if key not in self._computed:
                every = vectors(np.arange(len(self.columns.numbers)))
                self._computed[key] = every @ every.T
                self._last.clear()
            return self._computed[key]

    def _as_passages(self, candidates: Candidates) -> Candidates:
        """Every chunk whose lines a grep passage shows counts as that passage: its best place in a source is the passage's."""
        holders = self.holders(candidates)
        columns = (c if base_of(c.source) == "grep" else as_holders(c, holders) for c in candidates.columns)
        return replace(candidates, columns=tuple(columns))

    def holders(self, candidates: Candidates) -> Ints:
        """For each row the row of the grep passage that shows all of its lines, else its own; int64 (n,)."""
        holders = np.arange(len(candidates))
        for column in candidates.columns:
            if base_of(column.source) == "grep":
                for row in np.flatnonzero(column.rank > 0).tolist():
                    holders[self._shown_by(row, column.source)] = row
        return holders

    def _shown_by(self, row: int, source: str) -> Ints:
        """Rows of chunks that the passage of a row shows from their first line to their last."""
        columns, passage = self.columns, self.answers[source].passages[int(self.columns.numbers[row])]
        # A passage that is too long ends early, with a line of its own that says so.
        last = passage.start_line + passage.text.count("\n") - passage.text.endswith("\n…")
        inside = (
            (columns.document_numbers == columns.document_numbers[row])
            & (columns.start_lines >= passage.start_line)
            & (columns.end_lines <= min(last, passage.end_line))
        )
        return np.flatnonzero(inside)

    @staticmethod
    def uses_computed(plan: Plan) -> bool:
        """Whether fusion reads scores of rows that a source did not retrieve.

        A floor is put in for any such row, unless the threshold cuts it by its computed score: then it stays cut.
        """
        if plan["fusion.method"] == "rrf" or plan["fusion.missing"] == "zero":
            return False
        cuts = any(plan.threshold(source) != OFF for source in plan.cuttable)
        return bool(plan["fusion.missing"] == "computed" or cuts)

    def sources_for(self, plan: Plan) -> tuple[str, ...]:
        """The sources that a plan fuses and that answered, sorted."""
        wanted = sources_of(plan, self.request.mode, self.request.query, self.request.keywords)
        return tuple(s for s in wanted if s in self.answers)


def ranked(candidates: Candidates, column: Column, row: int, rank: int, metric: str) -> Ranked:
    score = float(column.counting[row])
    distance = float(to_distance(column.score[row], metric)) if column.kind is Kind.SEMANTIC else None
    names = candidates.chunk_ids[row], candidates.document_ids[row], candidates.paths[row]
    return Ranked(rank, *names, int(candidates.start_lines[row]), score, distance)


def others(shown: str, paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(path for path in dict.fromkeys(paths) if path != shown)


def with_copies(
    records: StoredRecords, scope: Scope, passages: Sequence[Passage], numbers: Ints
) -> tuple[Passage, ...]:
    """Passages under the paths that a scope shows, each with the other paths of its document.

    Args:
        records: The store.
        scope: Whom and what was asked for.
        passages: What was found.
        numbers: int64 (m,), the record that stands for each; -1 where none does.
    """
    held = np.flatnonzero(numbers >= 0)
    owners = dict(zip(held.tolist(), records.columns(numbers[held]).document_numbers.tolist(), strict=True))
    paths = records.paths_of(sorted(set(owners.values())), scope)
    return tuple(
        replace(passage, copies=others(passage.path, paths.get(owners.get(at, -1), ()))) if paths else passage
        for at, passage in enumerate(passages)
    )
