"""Run the sources of one request, side by side, and gather what they answer.

The query is embedded once per encoder and shared by that encoder's collections. A source that cannot run becomes an
`Unavailable` in the result; only when it was the one asked for, or when all fail, does the search itself fail.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.assist.models import check_named, load_rewriter
from workbench.errors import AssistError, CorpusDamaged, QueryError, SourceUnavailable, UsageError, WorkbenchError
from workbench.plan.fields import OFF, base_of, collection_of, encoder_of
from workbench.records import Unavailable
from workbench.retrieve.engine import Engine
from workbench.retrieve.keywords import (
    context_keywords,
    extract_keywords,
    parse_keywords,
    pattern_notes,
    quoted_phrases,
)
from workbench.retrieve.request import Request, folded, sources_of
from workbench.retrieve.retrieved import Answer, Retrieved, counts_documents
from workbench.store.types import GrepAnswer, Scope, Scored

# Sources meet here: two cores, and the heavy parts (numpy, RE2, DuckDB, the encoder) release the interpreter's lock.
# Nothing that runs in it may wait for something else that does.
POOL = ThreadPoolExecutor(max_workers=8, thread_name_prefix="workbench-source")
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
    timings: dict[str, float] = {"filter_ms": _since(started)}
    sources = sources_of(plan, request.mode, request.query, request.keywords)
    patterns = patterns_for(engine, request, scope) if any(base_of(s) == "grep" for s in sources) else ()
    embedding = _Embedding(engine, request)
    waiting: dict[str, Future[Answer]] = {}
    answers: dict[str, Answer] = {s: given[s] for s in sources if given and s in given}
    asked = [source for source in sources if source not in answers]
    for source in asked:
        depth = max(plan.depth(source), (depths or {}).get(source, 0))
        task = _Task(engine, request, source, depth, scope, patterns, embedding)
        # The last one runs in this thread, which would only wait.
        waiting[source] = _run_here(task.run) if source == asked[-1] else POOL.submit(task.run)
    unavailable: list[Unavailable] = []
    failures: list[BaseException] = []
    for source, future in waiting.items():
        try:
            answers[source] = future.result()
        except CorpusDamaged:
            raise
        except UsageError as exc:
            # A query that the keyword side cannot read (only `-x`, or too long) is still one for grep and vectors.
            if not isinstance(exc, QueryError) or base_of(source) != "keyword" or len(sources) == 1:
                raise
            failures.append(exc)
            unavailable.append(_unavailable(source, exc))
        except Exception as exc:  # noqa: BLE001 - whatever a source fails with, the others go on, and the result says so
            failures.append(exc)
            unavailable.append(_unavailable(source, exc))
    if unavailable and not answers:
        first = unavailable[0]
        raise SourceUnavailable(f"The {first.source} source could not run: {first.reason}", first.remedy) from failures[
            0
        ]
    for source, answer in answers.items():
        name = f"{base_of(source)}_ms"
        timings[name] = max(timings.get(name, 0.0), answer.milliseconds)
    if embedding.milliseconds is not None:
        timings["embed_ms"] = embedding.milliseconds
    if embedding.rewrite_ms is not None:
        timings["rewrite_ms"] = embedding.rewrite_ms
    answers = {s: answers[s] for s in sources if s in answers}
    numbers = [a.scored.numbers for a in answers.values()]
    union = np.unique(np.concatenate(numbers)) if numbers else np.zeros(0, np.int64)
    notes = (*embedding.notes, *pattern_notes(patterns, plan))
    if engine.lexical.older and any(base_of(source) == "keyword" for source in answers):
        notes = (*notes, _OLDER)
    return Retrieved(
        request=request,
        scope=scope,
        answers=answers,
        unavailable=tuple(unavailable),
        columns=engine.records.columns(union),
        timings=timings,
        visible=visible,
        allowed=allowed,
        patterns=patterns,
        depths=depths,
        vectors=embedding.made,
        messages=notes,
        masks=engine.records.masks,
        masked=engine.records.masked if engine.records.masks else None,
    )


def _run_here(run: Callable[[], Answer]) -> Future[Answer]:
    """Like submitting to the pool, but done when this returns; an interrupt from the keyboard goes up at once."""
    done: Future[Answer] = Future()
    try:
        done.set_result(run())
    except Exception as exc:  # noqa: BLE001 - the future carries it to whoever asks for the result
        done.set_exception(exc)
    return done


def patterns_for(engine: Engine, request: Request, scope: Scope) -> tuple[str, ...]:
    """What grep looks for: the keywords; without them quoted phrases; without those, what the query is about."""
    keywords = request.keywords
    if keywords and folded(keywords) == folded(request.query):
        keywords = ""
    if request.plan["grep.regex"]:
        return tuple(p for p in (keywords or request.query,) if p)
    if keywords:
        return parse_keywords(keywords)
    phrases = quoted_phrases(request.query)
    if phrases and request.mode == "hybrid" and request.plan["grep.when"] == "auto":
        return phrases

    def frequencies(words: Sequence[str]) -> list[int]:
        return [int(f) for f in engine.lexical.frequencies(tuple(words), scope)]

    return extract_keywords(request.query, frequencies)


def vector_text(request: Request, query: str) -> str:
    """What is embedded: the query, and what the context names."""
    return " ".join((query, *context_keywords(request.context))).strip()


class _Embedding:
    """The query's vector by each encoder: made once, by whichever source needs it first."""

    def __init__(self, engine: Engine, request: Request) -> None:
        self._engine, self._request = engine, request
        self._futures: dict[str, Future[NDArray[np.float32]]] = {}
        self.made: dict[str, NDArray[np.float32]] = {}
        self.milliseconds: float | None = None
        self.rewrite_ms: float | None = None
        self.notes: tuple[str, ...] = ()
        self._lock = threading.Lock()
        self._text: str | None = None

    @property
    def text(self) -> str:
        """What is embedded: rewritten once where the plan says so; the query as it was where that fails."""
        with self._lock:
            if self._text is None:
                self._text = self._rewritten()
            return self._text

    def _rewritten(self) -> str:
        request = self._request
        model = str(request.plan["rewrite.model"])
        if model == OFF or not request.query:
            return vector_text(request, request.query)
        started = time.perf_counter()
        try:
            if self._engine.served:
                check_named(model)
            query = load_rewriter(model).rewrite(request.query, request.context)
        except AssistError as exc:
            query = request.query
            self.notes = (f"Rewriting was left out: {exc.message}. {exc.remedy}. The query was used as it is",)
        self.rewrite_ms = _since(started)
        return vector_text(request, query)

    def vector(self, encoder: str) -> NDArray[np.float32]:
        text = self.text
        with self._lock:
            future = self._futures.get(encoder)
            mine = future is None
            if future is None:
                future = self._futures[encoder] = Future()
        if mine:
            started = time.perf_counter()
            try:
                vector = self._engine.embed(text, encoder)
            except BaseException as exc:
                future.set_exception(exc)
                raise
            self.milliseconds = (self.milliseconds or 0.0) + _since(started)
            self.made[encoder] = vector
            if left_out := self._engine.left_out(text, encoder):
                with self._lock:
                    self.notes = (*self.notes, left_out)
            future.set_result(vector)
        return future.result()


def scope_of(engine: Engine, request: Request, source: str, scope: Scope) -> Scope:
    """What one source searches: the request's scope, or the collection that the source names where the plan asks for it."""
    collection = collection_of(source)
    if not collection:
        return scope
    chosen = request.plan["collections"]
    names = (collection,) if not chosen or collection in chosen else ("",)
    return engine.records.scope(request.principal, request.filters or None, names)


@dataclass(frozen=True, slots=True)
class _Task:
    """One source's part of a search."""

    engine: Engine
    request: Request
    source: str
    depth: int
    scope: Scope
    patterns: tuple[str, ...]
    embedding: _Embedding

    def run(self) -> Answer:
        runs: dict[str, Callable[[Scope, int], Answer]] = {
            "grep": self._grep,
            "keyword": self._keyword,
            "vector": self._vector,
        }
        scope = scope_of(self.engine, self.request, self.source, self.scope)
        return runs[base_of(self.source)](scope, self.engine.records.count(scope)[1])

    def _keyword(self, scope: Scope, entered: int) -> Answer:
        plan, query = self.request.plan, self.request.query
        started = time.perf_counter()
        k1, b, operator = plan["keyword.k1"], plan["keyword.b"], plan["keyword.operator"]

        def search(depth: int) -> Scored:
            return self.engine.lexical.search(query, scope, depth, k1=k1, b=b, operator=operator)

        def compute(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
            return self.engine.lexical.score(query, scope, numbers, k1=k1, b=b, operator=operator)

        def bound() -> float:
            return self.engine.lexical.upper_bound(query, scope, k1=k1)

        scored, exhausted = self._deep_enough(search)
        taken = _since(started)
        return Answer(self.source, scored, self.depth, exhausted, entered, compute, milliseconds=taken, bound=bound)

    def _vector(self, scope: Scope, entered: int) -> Answer:
        name = encoder_of(self.source)
        index = self.engine.vectors(name)
        if not self.embedding.text:
            return Answer(self.source, _nothing(), self.depth, True, entered, None)
        vector, exact = self.embedding.vector(name), self.request.plan["vector.exact"]
        started = time.perf_counter()

        def search(depth: int) -> Scored:
            return index.search(vector, scope, depth, exact=exact)

        def compute(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
            return index.score(vector, numbers)

        scored, exhausted = self._deep_enough(search)
        steady = not scored.approximate and not index.approximates(scope, 1, exact)
        taken = _since(started)
        return Answer(self.source, scored, self.depth, exhausted, entered, compute, milliseconds=taken, steady=steady)

    def _grep(self, scope: Scope, entered: int) -> Answer:
        plan = self.request.plan
        started = time.perf_counter()
        if not self.patterns:
            return Answer(self.source, _nothing(), self.depth, True, entered, None, milliseconds=_since(started))
        answer = self.engine.grep.search(
            self.patterns,
            scope,
            self.depth + 1,  # one more tells whether there are more
            regex=plan["grep.regex"],
            case=plan["grep.case"],
            word=plan["grep.word"],
            context=plan["grep.context"],
            counts="documents" if counts_documents(plan) else "chunks",
        )
        best = _best_passages(answer)
        scored = _grep_scored(answer, best)
        passages = {number: answer.passages[i] for number, i in best.items()}
        taken, depth, end = _since(started), self.depth, answer.exhausted
        return Answer(self.source, scored, depth, end, entered, None, passages, taken, answer.files, answer.lines)

    def _deep_enough(self, search: Callable[[int], Scored]) -> tuple[Scored, bool]:
        """The source's answer at the plan's depth, and whether there is nothing more.

        Where depths count documents, the search goes deeper until the answer holds all chunks of so many documents, which
        the first chunk of another one shows.
        """
        depth = self.depth
        while True:
            scored = search(depth)
            exhausted = len(scored.numbers) < depth
            if exhausted or not counts_documents(self.request.plan):
                return scored, exhausted
            if len(np.unique(self.engine.records.columns(scored.numbers).document_numbers)) > self.depth:
                return scored, False
            depth *= 4


def _nothing() -> Scored:
    return Scored(np.zeros(0, np.int64), np.zeros(0, np.float64), 0)


def _best_passages(answer: GrepAnswer) -> dict[int, int]:
    """Record number -> position of its best passage: a chunk that several passages point to keeps the first, the best."""
    best: dict[int, int] = {}
    for position, number in enumerate(answer.numbers.tolist()):
        if number >= 0:
            best.setdefault(number, position)
    return best


def _grep_scored(answer: GrepAnswer, best: Mapping[int, int]) -> Scored:
    numbers = np.fromiter(best.keys(), np.int64, len(best))
    scores = np.array([answer.passages[i].score for i in best.values()], np.float64)
    return Scored(numbers, scores, len(best))


def _unavailable(source: str, exc: BaseException) -> Unavailable:
    if isinstance(exc, WorkbenchError):
        return Unavailable(source, exc.message, exc.remedy)
    return Unavailable(source, f"{type(exc).__name__}: {exc}", "Run `workbench doctor` to see what is wrong")


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000.0
