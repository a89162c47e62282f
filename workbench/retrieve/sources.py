"""Run the sources of one request, side by side, and gather what they answer.

The query is embedded once per encoder and shared by that encoder's collections. A source that cannot run becomes an
`Unavailable` in the result; only when it was the one asked for, or when all fail, does the search itself fail.

`Retrieved` is everything that a slider needs to fuse again without searching. It holds each source's ranking at the depth it
was asked for. `candidates_for` applies a plan's depth and threshold and gives the columns that fusion takes; computed scores
(BM25 and cosine of rows that a source did not retrieve) are worked out the first time a plan or a table needs them, and kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from workbench.assist.models import check_named, load_rewriter
from workbench.errors import (
    AssistError,
    CorpusDamaged,
    NeedsSearch,
    QueryError,
    SourceUnavailable,
    UsageError,
    WorkbenchError,
)
from workbench.plan.fields import OFF, RETRIEVAL, base_of, collection_of, encoder_of
from workbench.plan.plan import Plan
from workbench.ranking.candidates import Bools, Candidates, Column, Floats, Ints
from workbench.ranking.cutting import as_holders, to_depth, to_distance, to_threshold
from workbench.records import Document, Kind, Passage, Ranked, Span, Unavailable
from workbench.retrieve.engine import Engine
from workbench.retrieve.keywords import (
    context_keywords,
    extract_keywords,
    parse_keywords,
    pattern_notes,
    quoted_phrases,
)
from workbench.retrieve.request import Request, check_principal, folded, kind_of, sources_of
from workbench.store.records import StoredRecords
from workbench.store.types import ChunkRow, RecordColumns, Scope, Scored
from workbench.store.vectors import VectorIndex


def counts_documents(plan: Plan) -> bool:
    """Whether the plan's depths count documents: it ranks documents, and numbers them after the collapse."""
    return bool(plan["fusion.unit"] == "document" and plan["fusion.renumber"])


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """One source's answer at the depth it was asked for.

    Attributes:
        source: Its name.
        scored: Records, score down then number up.
        depth: Depth that it was asked for.
        exhausted: True when a greater depth would find nothing more.
        entered: Records that it could have returned (allowed by principal, filter and collection).
        compute: Scores of given records by this source, or None where it cannot.
        passages: grep only: record number -> its best passage.
        milliseconds: Time that it took.
        files, lines: grep only: unique files and matched lines found.
        bound: keyword only: the most that BM25 could give for the query.
        steady: Whether an answer at a smaller depth is the beginning of this one: not where the approximate index may answer.
    """

    source: str
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
        masks: Name of the policy that masks texts; "" where none does.
        ask_masked: Which documents, by number, are shown with something masked.
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
    masks: str = ""
    ask_masked: Callable[[Ints], Bools] | None = None
    reranked: dict[str, dict[int, float]] = field(default_factory=dict)
    shown: dict[int, tuple[ChunkRow, Document]] = field(default_factory=dict)
    marked: dict[tuple[str, int], tuple[Span, ...]] = field(default_factory=dict)
    _masked: dict[int, bool] = field(default_factory=dict)
    _computed: dict[str, Floats] = field(default_factory=dict)
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
        """Raise NeedsSearch if a plan, which asks the sources `wanted`, asks for what was not retrieved."""
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
        """Candidates under a plan: rankings cut to its depths, rows that their source's threshold cuts marked.

        `computed` None works scores out only where the plan's fusion uses them.
        """
        sources = self.sources_for(plan)
        candidates = self.raw(sources, self.uses_computed(plan) if computed is None else computed)
        candidates = to_depth(candidates, {s: plan.depth(s) for s in sources}, documents=counts_documents(plan))
        for source in sources:
            if plan.threshold(source) != OFF:
                candidates = to_threshold(candidates, source, plan.threshold(source), plan["vector.metric"])
        return self._as_passages(candidates) if plan["grep.show"] == "passage" else candidates

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
    score = float(column.score[row])
    distance = float(to_distance(score, metric)) if column.kind is Kind.SEMANTIC else None
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


# Sources meet here: two cores, and the heavy parts (numpy, RE2, DuckDB, the encoder) release the interpreter's lock.
# Nothing that runs in it may wait for something else that does.
POOL = ThreadPoolExecutor(max_workers=8, thread_name_prefix="workbench-source")
_NONE = np.zeros(0, np.int64)
_OLDER = (
    "The words of this corpus were split by older rules, so keywords may miss some: run `workbench index` on it again"
)


def retrieve(
    engine: Engine,
    request: Request,
    depths: Mapping[str, int] | None = None,
    given: Mapping[str, Answer] | None = None,
    scope: Scope | None = None,
) -> Retrieved:
    """Ask every source of the request.

    Args:
        engine: The generation to ask.
        request: What to ask.
        depths: Depth by source where it should be greater than the plan's (a page that will move sliders).
        given: Answers of this generation to the same question by source: they are taken, and the source is not asked.
        scope: What to search, where it is a part of what the request's principal, filter and collections leave.

    Raises:
        PrincipalRequired, FilterError, QueryError: As the stores do.
        SourceUnavailable: The only source asked for, or every source, could not run.
    """
    started = time.perf_counter()
    plan = request.plan
    scope = scope or engine.records.scope(request.principal, request.filters or None, plan["collections"])
    visible, allowed = engine.records.count(scope)
    timings = {"filter_ms": since(started)}
    sources = sources_of(plan, request.mode, request.query, request.keywords)
    search = _Search(engine, request, scope, depths or {}, any(base_of(s) == "grep" for s in sources))
    answers: dict[str, Answer] = {s: given[s] for s in sources if given and s in given}
    asked = [source for source in sources if source not in answers]
    waiting = {source: POOL.submit(search.answer, source) for source in asked}
    failures: dict[str, BaseException] = {}
    for source, future in waiting.items():
        try:
            answers[source] = future.result()
        except CorpusDamaged:
            raise
        except Exception as exc:
            # A query that the keyword side cannot read (only `-x`, or too long) is still one for grep and vectors.
            unread = isinstance(exc, QueryError) and base_of(source) == "keyword" and len(sources) > 1
            if isinstance(exc, UsageError) and not unread:
                raise
            failures[source] = exc
    unavailable = tuple(_unavailable(source, exc) for source, exc in failures.items())
    if unavailable and not answers:
        lost = unavailable[0]
        cause = failures[lost.source]
        raise SourceUnavailable(f"The {lost.source} source could not run: {lost.reason}", lost.remedy) from cause
    for source, answer in answers.items():
        name = f"{base_of(source)}_ms"
        timings[name] = max(timings.get(name, 0.0), answer.milliseconds)
    answers = {s: answers[s] for s in sources if s in answers}
    notes = (*search.notes, *pattern_notes(search.patterns, plan))
    if engine.lexical.older and any(base_of(source) == "keyword" for source in answers):
        notes = (*notes, _OLDER)
    return Retrieved(
        request=request,
        scope=scope,
        answers=answers,
        unavailable=unavailable,
        columns=engine.records.columns(
            np.unique(np.concatenate([_NONE, *(a.scored.numbers for a in answers.values())]))
        ),
        timings=timings | search.timings,
        visible=visible,
        allowed=allowed,
        patterns=search.patterns,
        vectors=search.vectors,
        depths=dict(depths or {}),
        messages=notes,
        masks=engine.records.masks,
        ask_masked=engine.records.masked if engine.records.masks else None,
    )


def _unavailable(source: str, exc: BaseException) -> Unavailable:
    if isinstance(exc, WorkbenchError):
        return Unavailable(source, exc.message, exc.remedy)
    return Unavailable(source, f"{type(exc).__name__}: {exc}", "Run `workbench doctor` to see what is wrong")


def patterns_for(engine: Engine, request: Request, scope: Scope) -> tuple[str, ...]:
    """What grep looks for: the keywords; without them quoted phrases; without those, what the query is about."""
    keywords = "" if folded(request.keywords) == folded(request.query) else request.keywords
    if request.plan["grep.regex"]:
        return tuple(p for p in (keywords or request.query,) if p)
    if keywords:
        return parse_keywords(keywords)
    phrases = quoted_phrases(request.query)
    if phrases and request.mode == "hybrid" and request.plan["grep.when"] == "auto":
        return phrases

    def frequencies(words: Sequence[str]) -> Sequence[int]:
        return list(map(int, engine.lexical.frequencies(tuple(words), scope)))

    return extract_keywords(request.query, frequencies)


def scope_of(engine: Engine, request: Request, source: str, scope: Scope) -> Scope:
    """What one source searches: the request's scope, or the collection that the source names where the plan asks for it."""
    collection = collection_of(source)
    if not collection:
        return scope
    chosen = request.plan["collections"]
    names = (collection,) if not chosen or collection in chosen else ("",)
    return engine.records.scope(request.principal, request.filters or None, names)


class _Search:
    """What the sources of one request share: the patterns, and the query's vector by each encoder, made by whichever source
    needs it first.
    """

    def __init__(self, engine: Engine, request: Request, scope: Scope, depths: Mapping[str, int], greps: bool) -> None:
        self._engine, self._request, self._plan = engine, request, request.plan
        self._scope, self._depths = scope, depths
        self.patterns = patterns_for(engine, request, scope) if greps else ()
        self.vectors: dict[str, NDArray[np.float32]] = {}
        self.timings: dict[str, float] = {}
        self.notes: tuple[str, ...] = ()
        self._text: str | None = None
        self._lock = threading.RLock()

    def answer(self, source: str) -> Answer:
        scope = scope_of(self._engine, self._request, source, self._scope)
        depth = max(self._plan.depth(source), self._depths.get(source, 0))
        empty = Answer(source, Scored(_NONE, np.zeros(0), 0), depth, True, self._engine.records.count(scope)[1], None)
        if base_of(source) == "keyword":
            return self._keyword(empty, scope)
        if base_of(source) == "grep":
            return self._grep(empty, scope) if self.patterns else empty
        index = self._engine.vectors(encoder_of(source))  # missing ones are said also where there is nothing to compare
        return self._vector(empty, scope, index) if self.text else empty

    @property
    def text(self) -> str:
        """What is embedded: the query, rewritten once where the plan says so, and what the context names."""
        with self._lock:
            if self._text is None:
                self._text = " ".join((self._rewritten(), *context_keywords(self._request.context))).strip()
            return self._text

    def _rewritten(self) -> str:
        query, model = self._request.query, str(self._plan["rewrite.model"])
        if model == OFF or not query:
            return query
        started = time.perf_counter()
        try:
            if self._engine.served:
                check_named(model)
            query = load_rewriter(model).rewrite(query, self._request.context)
        except AssistError as exc:
            self.notes = (f"Rewriting was left out: {exc.message}. {exc.remedy}. The query was used as it is",)
        self.timings["rewrite_ms"] = since(started)
        return query

    def _embedded(self, encoder: str) -> NDArray[np.float32]:
        with self._lock:
            if encoder not in self.vectors:
                text, started = self.text, time.perf_counter()
                self.vectors[encoder] = self._engine.embed(text, encoder)
                self.timings["embed_ms"] = self.timings.get("embed_ms", 0.0) + since(started)
                if left_out := self._engine.left_out(text, encoder):
                    self.notes = (*self.notes, left_out)
            return self.vectors[encoder]

    def _keyword(self, empty: Answer, scope: Scope) -> Answer:
        plan, query, lexical = self._plan, self._request.query, self._engine.lexical
        started = time.perf_counter()
        how = {name: plan[f"keyword.{name}"] for name in ("k1", "b", "operator")}
        scored, exhausted = self._deep_enough(empty.depth, lambda depth: lexical.search(query, scope, depth, **how))
        return replace(
            empty,
            scored=scored,
            exhausted=exhausted,
            compute=lambda numbers: lexical.score(query, scope, numbers, **how),
            bound=lambda: lexical.upper_bound(query, scope, k1=how["k1"]),
            milliseconds=since(started),
        )

    def _vector(self, empty: Answer, scope: Scope, index: VectorIndex) -> Answer:
        vector, exact = self._embedded(encoder_of(empty.source)), self._plan["vector.exact"]
        started = time.perf_counter()
        scored, exhausted = self._deep_enough(
            empty.depth, lambda depth: index.search(vector, scope, depth, exact=exact)
        )
        return replace(
            empty,
            scored=scored,
            exhausted=exhausted,
            compute=lambda numbers: index.score(vector, numbers),
            steady=not scored.approximate and not index.approximates(scope, 1, exact),
            milliseconds=since(started),
        )

    def _grep(self, empty: Answer, scope: Scope) -> Answer:
        plan, started = self._plan, time.perf_counter()
        found = self._engine.grep.search(
            self.patterns,
            scope,
            empty.depth + 1,  # one more tells whether there are more
            counts="documents" if counts_documents(plan) else "chunks",
            **{name: plan[f"grep.{name}"] for name in ("regex", "case", "word", "context")},
        )
        # A chunk that several passages point to keeps the first, the best.
        best: dict[int, int] = {}
        for position, number in enumerate(found.numbers.tolist()):
            if number >= 0:
                best.setdefault(number, position)
        passages = {number: found.passages[position] for number, position in best.items()}
        numbers = np.fromiter(best, np.int64, len(best))
        scores = np.array([passage.score for passage in passages.values()], np.float64)
        return replace(
            empty,
            scored=Scored(numbers, scores, len(best)),
            exhausted=found.exhausted,
            passages=passages,
            files=found.files,
            lines=found.lines,
            milliseconds=since(started),
        )

    def _deep_enough(self, depth: int, search: Callable[[int], Scored]) -> tuple[Scored, bool]:
        """The source's answer at a depth, and whether there is nothing more.

        Where depths count documents, the search goes deeper until the answer holds all chunks of so many documents, which
        the first chunk of another one shows.
        """
        deeper = depth
        while True:
            scored = search(deeper)
            exhausted = len(scored.numbers) < deeper
            if exhausted or not counts_documents(self._plan):
                return scored, exhausted
            if len(np.unique(self._engine.records.columns(scored.numbers).document_numbers)) > depth:
                return scored, False
            deeper *= 4


def since(started: float) -> float:
    """Milliseconds since a moment of `time.perf_counter`."""
    return (time.perf_counter() - started) * 1000.0
