"""Run the sources of one request, side by side, and gather what they answer.

The query is embedded once per encoder and shared by that encoder's collections. A source that cannot run becomes an
`Unavailable` in the result; only when it was the one asked for, or when all fail, does the search itself fail.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial

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
from workbench.store.types import Scope, Scored, Vectors

# Sources meet here: two cores, and the heavy parts (numpy, RE2, DuckDB, the encoder) release the interpreter's lock.
# Nothing that runs in it may wait for something else that does.
POOL = ThreadPoolExecutor(max_workers=8, thread_name_prefix="workbench-source")
_NONE = np.zeros(0, np.int64)
_OLDER = (
    "The words of this corpus were split by older rules, so keywords may miss some: run `workbench index` on it again"
)
_NOT_ALL_LINES = "grep has not read all that may match, so better lines may be missing: add a rarer keyword or a filter"


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
        scope, nothing = self._scope_of(source), Scored(_NONE, np.zeros(0), 0)
        depth = max(self._plan.depth(source), self._depths.get(source, 0))
        empty = Answer(source, scope, nothing, depth, True, self._engine.records.count(scope)[1], None)
        if base_of(source) == "keyword":
            return self._keyword(empty)
        if base_of(source) == "grep":
            return self._grep(empty) if self.patterns else empty
        index = self._engine.vectors(encoder_of(source))  # missing ones are said also where there is nothing to compare
        return self._vector(empty, index) if self.text else empty

    def _scope_of(self, source: str) -> Scope:
        """The request's scope, or the collection that the source names where the plan asks for it."""
        request, collection, chosen = self._request, collection_of(source), self._plan["collections"]
        if not collection:
            return self._scope
        names = (collection,) if not chosen or collection in chosen else ("",)
        return self._engine.records.scope(request.principal, request.filters or None, names)

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

    def _keyword(self, empty: Answer) -> Answer:
        plan, query, lexical, scope = self._plan, self._request.query, self._engine.lexical, empty.scope
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

    def _vector(self, empty: Answer, index: Vectors) -> Answer:
        encoder, exact, scope = encoder_of(empty.source), self._plan["vector.exact"], empty.scope
        vector = self._embedded(encoder)
        started = time.perf_counter()
        scored, exhausted = self._deep_enough(
            empty.depth, lambda depth: index.search(vector, scope, depth, exact=exact)
        )
        if exact == "no" and index.without_graph:
            with self._lock:
                exactly = f"{empty.source} searched exactly, whatever vector.exact says. {index.without_graph}"
                self.notes = (*self.notes, exactly)
        return replace(
            empty,
            scored=scored,
            exhausted=exhausted,
            compute=lambda numbers: index.score(vector, numbers),
            adaptation=cache(partial(self._engine.adaptation, encoder, scope)),
            vectors=index.vectors,
            steady=not scored.approximate and not index.approximates(scope, 1, exact),
            milliseconds=since(started),
        )

    def _grep(self, empty: Answer) -> Answer:
        plan, started = self._plan, time.perf_counter()
        found = self._engine.grep.search(
            self.patterns,
            empty.scope,
            empty.depth + 1,  # one more tells whether there are more
            counts="documents" if counts_documents(plan) else "chunks",
            **{name: plan[f"grep.{name}"] for name in ("regex", "case", "word", "context")},
        )
        if not found.complete:
            with self._lock:
                self.notes = (*self.notes, _NOT_ALL_LINES)
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
