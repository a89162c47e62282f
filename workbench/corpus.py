"""A corpus: index files into it, open it, search, explain, read and measure it.

The parts are put together here; everything else takes what it needs as arguments. The app, the command line, notebooks and the
MCP tools all use `Corpus`, so they give the same answers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from cachetools import TLRUCache

from workbench import settings
from workbench.errors import CorpusError, CorpusNotFound, PrincipalRequired, QueryError, UsageError
from workbench.ingest.rules import SettingsFile, load_rules
from workbench.plan.plan import Plan
from workbench.records import Hit, IndexReport, Passage, Principal, Progress
from workbench.retrieve.compare import Comparison
from workbench.retrieve.engine import Engine
from workbench.retrieve.examples import Examples, search_examples
from workbench.retrieve.explain import Explanation
from workbench.retrieve.explain import explain as explain_target
from workbench.retrieve.readfile import find_cited
from workbench.retrieve.request import Request, cache_key, check_principal, clean, make_request, whole
from workbench.retrieve.result import SearchResult
from workbench.retrieve.retrieved import with_copies
from workbench.retrieve.sources import retrieve
from workbench.settings import path_of
from workbench.store.access.redaction import load_policy
from workbench.store.access.visibility import Policy
from workbench.store.lexical.synonyms import FILES as VOCABULARY_FILES
from workbench.store.lexical.synonyms import Vocabulary, load_vocabulary, save_vocabulary
from workbench.store.reader import Generation, open_generation

if TYPE_CHECKING:
    import polars

    from workbench.evaluate.distribution import Distribution
    from workbench.evaluate.evaluation import Evaluation
    from workbench.evaluate.grid import Space, Values
    from workbench.evaluate.leaderboard import Leaderboard
    from workbench.evaluate.live import LiveMeasure
    from workbench.evaluate.run import Run
    from workbench.evaluate.sweep import Sweep
    from workbench.indexing import IndexOptions
    from workbench.indexing.preview import IndexPreview
    from workbench.judgments.judging import Judging
    from workbench.judgments.qrels import Judgments, Topic

_KEPT_RESULTS = 128


def _until(key: Hashable, result: SearchResult, now: float) -> float:
    return now + float(result.plan["cache_seconds"])


class Corpus:
    """A corpus open for reading. Many may be open at once, in one process and in several; safe from several threads.

    Args:
        path: The corpus folder.
        principal: Who asks; None is the local owner, allowed only where no document has a tenant or roles.
        follow: Move to a new generation by itself before each search; otherwise `refresh` does when called.
        encoder: Open with another encoder than the one recorded; refused unless its weights are the same.
        policy: Decides what the principal sees of what tenant and roles allow, and masks parts of it; None is the policy
            of the corpus's own `corpus.yaml`, which without one shows everything.
        served: Plans come from others (a page's address): they name only models of the setting `allowed_models`.

    Raises:
        CorpusNotFound, CorpusDamaged, EncoderMismatch, PrincipalRequired.
        SettingError: `corpus.yaml` asks for a policy that cannot be.
    """

    def __init__(
        self,
        path: str | Path,
        principal: Principal | None = None,
        *,
        follow: bool = False,
        encoder: str | None = None,
        policy: Policy | None = None,
        served: bool = False,
    ) -> None:
        self.path = Path(path)
        if self.path.is_file():
            raise CorpusNotFound(f"There is no corpus at {path}, which is a file", "Name the folder that it is in")
        self._given = policy
        self._access = SettingsFile(self.path, lambda folder: (load_policy(folder), load_rules(folder)))
        self.principal = principal
        self.follow = follow
        self._encoder, self._served = encoder, served
        self._lock = threading.Lock()
        # Results, each for its plan's `cache_seconds`, by everything that decides them.
        self._cache = TLRUCache(_KEPT_RESULTS, ttu=_until, timer=time.monotonic)
        self._caching = threading.Lock()
        self._words = SettingsFile(self.path, load_vocabulary, *VOCABULARY_FILES)
        self._engine: Engine | None = self._open()
        # Asked here, so that a corpus with tenants or roles is refused at the door and not at the first search.
        _ = self._pinned().visible

    @property
    def policy(self) -> Policy | None:
        """The policy of now: the one given, else that of `corpus.yaml`. Raises SettingError."""
        return self._access.now()[0] if self._given is None else self._given

    def _open(self) -> Engine:
        self._obeyed = self._access.now()
        generation = open_generation(self.path, self.policy, self._obeyed[1])
        if self._encoder is not None:
            from workbench.encode.load import identity_of

            generation.check_encoder(identity_of(self._encoder), "")
        return self._engine_of(generation)

    def _engine_of(self, generation: Generation) -> Engine:
        engine = Engine(generation, self._encoder, self.policy, self.principal, served=self._served)
        return engine.speaking(self._words.now())

    # --- life ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the generation. Results that were made keep what they need."""
        self._forget()
        self._engine = None

    def _forget(self) -> None:
        with self._caching:
            self._cache.clear()

    def refresh(self) -> bool:
        """Move to the newest generation, and to the corpus's synonyms and stop words as they are now.

        Returns:
            Whether there was a newer generation.
        """
        with self._lock:
            engine = self._pinned()
            if engine.opened.is_current():
                self._engine = self._obeying(engine).speaking(self._words.now())
                return False
            self._engine = self._open()
            self._forget()
            return True

    def _obeying(self, engine: Engine) -> Engine:
        """The engine under the policy and rules that `corpus.yaml` has now."""
        now = self._access.now()
        if now is self._obeyed:
            return engine
        generation = engine.opened.under(self.policy, now[1])
        self._obeyed = now
        if generation.records.access_name == engine.opened.records.access_name:
            generation.close()
            return engine
        other = self._engine_of(generation)
        _ = other.visible
        self._forget()
        return other

    @property
    def vocabulary(self) -> Vocabulary:
        """The synonyms and stop words that queries are read with."""
        return self.engine.vocabulary

    def set_vocabulary(self, value: Vocabulary) -> None:
        """Write the synonyms and stop words into the corpus's `corpus.yaml`, for everybody; this corpus uses them at once.

        Raises SettingError where the file there cannot be read, CorpusError where it cannot be written.
        """
        save_vocabulary(self.path, value)
        with self._lock:
            self._engine = self._pinned().speaking(self._words.now())

    @property
    def engine(self) -> Engine:
        """The pinned generation under the access of now, after following the pointer where `follow` is set."""
        if self.follow:
            self.refresh()
        elif self._access.now() is not self._obeyed:
            with self._lock:
                self._engine = self._obeying(self._pinned())
        return self._pinned()

    def _pinned(self) -> Engine:
        engine = self._engine
        if engine is None:
            raise CorpusError("This corpus is closed", "Open it again with workbench.open_corpus")
        return engine

    @property
    def generation(self) -> str:
        """Id of the pinned generation."""
        return self._pinned().generation

    def info(self) -> Mapping[str, Any]:
        """Generation id, counts, encoder, digest and bytes of what the principal may see."""
        engine = self.engine
        return engine.records.info(engine.visible)

    def jobs(self) -> polars.DataFrame:
        """Indexing runs, the newest first: queued, running, done or failed (`saved.jobs`). Raises CorpusError."""
        from workbench.saved.jobs import jobs_frame, visible_jobs

        return jobs_frame(visible_jobs(self.path, self.engine.records, self.principal, self.policy))

    def sources(self) -> polars.DataFrame:
        """What the documents that the principal may see came from: path, kind, documents, chunks, bytes, modified, copies."""
        from workbench.saved.jobs import sources_frame

        engine = self.engine
        return sources_frame(engine.records, engine.visible)

    def documents(
        self, filters: str | None = None, text: str = "", sort: str = "path", *, descending: bool = False
    ) -> polars.DataFrame:
        """The documents that the principal may see: path, title, type, collections, chunks, characters, modified (UTC), place (of
        the file).

        Args:
            filters: A condition on documents.
            text: Letters that the path or title holds, whatever the case.
            sort: path, title, type, collection, chunks, characters or date.
            descending: The greatest first.

        Raises FilterError, UsageError for another order.
        """
        from workbench.store.catalogue import SORTS, Catalogue, rows_frame

        if sort not in SORTS:
            raise UsageError(f"Documents cannot be sorted by {sort!r}", f"Sort by {', '.join(SORTS)}")
        engine = self.engine
        records, catalogue = engine.records, Catalogue(engine.opened)
        scope = records.scope(self.principal, filters, ())
        numbers = catalogue.documents(scope, records, text, sort, down=descending)
        return rows_frame(catalogue.rows(numbers.tolist(), records))

    def remember(
        self,
        text: str,
        id: str | None = None,
        title: str = "",
        created_at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Keep a memory in the collection `memory`, and search it from now on (`include_memory`); one with that id is replaced.

        It is a line of a JSONL file in the corpus's folder; where documents have tenants or roles, for those of the principal.

        Args:
            text: What to remember.
            id: Its id; None makes one.
            title: A title.
            created_at: Since when, ISO 8601 or a datetime; None is now.
            metadata: More fields, to filter by.

        Returns:
            The id. Raises UsageError where there is nothing to keep, or it cannot be kept as JSON.
        """
        from workbench import memory

        made = memory.remember(self.path, text, self._keeper(), id, title, created_at, metadata)
        self.refresh()
        return made

    def forget(self, id: str) -> None:
        """Remove a memory that `remember` kept for this principal. Raises UsageError where there is none with that id."""
        from workbench import memory

        memory.forget(self.path, id, self._keeper())
        self.refresh()

    def memories(self) -> polars.DataFrame:
        """What the collection `memory` holds for the principal, the newest first: id, created_at, text, title, path."""
        from workbench import memory

        return memory.memories(self.engine.records, self.principal)

    def _keeper(self) -> Principal | None:
        """Whose memories are meant: nobody's in particular where the corpus keeps nobody's documents apart."""
        try:
            self.engine.records.scope(None, None, ())
        except PrincipalRequired:
            return self.principal
        return None

    def sql(self, query: str, values: Sequence[Any] | None = None) -> polars.DataFrame:
        """Rows of a statement over the corpus's tables, which the guide's SQL page lists; the database is open for reading only.

        Args:
            query: SQL as DuckDB reads it.
            values: For the `?` in it.

        Raises:
            UsageError: Some documents are hidden from the principal, or parts of them masked: SQL would show them.
            QueryError: DuckDB cannot run it.
        """
        import duckdb
        import polars

        from workbench.store.database import open_reading
        from workbench.store.generations import DATABASE

        engine = self.engine
        if engine.visible.visible is not None or engine.records.masks:
            raise UsageError(
                "SQL would show documents or parts of them that are hidden from you",
                f"The owner of the corpus can open {engine.opened.folder / DATABASE} with DuckDB, read-only",
            )
        connection = open_reading(engine.opened.folder / DATABASE)
        try:
            rows = connection.sql(query, params=values)
            return polars.DataFrame() if rows is None else polars.DataFrame(rows.to_arrow_table())
        except duckdb.Error as exc:
            raise QueryError(
                f"The SQL cannot be run: {str(exc).splitlines()[0]}",
                "Correct it; the guide's SQL page lists the tables",
            ) from exc
        finally:
            connection.close()

    @property
    def judging(self) -> Judging:
        """Query sets and judgments as they are in the generation of now (`judgments.log`): take it again each time."""
        from workbench.judgments.judging import Judging
        from workbench.saved.database import Database

        return Judging(Database(self.path), self.engine.records, self.principal, self.policy)

    def import_judgments(self, path: str | Path, name: str | None = None) -> str:
        """Add the queries and judgments of a file or folder to a query set of the corpus; the set's name.

        Args:
            path: A BEIR folder, TREC qrels, CSV or JSONL. A row with `start`, `end` and `quote` judges that passage: it is
                found again in other generations, and in other corpora of the same documents, however they are cut.
            name: The set; None is the file's or folder's name.

        Raises JudgmentError: Lines cannot be read (the message names them); nothing is imported then.
        """
        from workbench.judgments.exchange import import_judgments

        return import_judgments(self.judging, path_of(path), name).name

    def judgments(self, set: str, judges: Sequence[str] | None = None, *, documents: bool = False) -> Judgments:
        """A query set's judgments, to measure with: `Judging.judgments` says how. Raises JudgmentError."""
        return self.judging.judgments(set, judges, documents=documents)

    # --- search ----------------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        keywords: str | None = None,
        context: str | None = None,
        mode: str = "hybrid",
        plan: Plan | str = "default",
        filters: str | Mapping[str, Any] | None = None,
        limit: int | None = None,
        *,
        include_memory: bool = False,
        expand_neighbors: bool = False,
        sensitivity: str | None = None,
        depths: Mapping[str, int] | None = None,
        bypass_cache: bool = False,
    ) -> SearchResult:
        """Search.

        Args:
            query: In the query syntax: words, "phrases", -not, OR, prefix*.
            keywords: Exact words for grep; quoted ones are phrases. Without them grep takes them from the query.
            context: Text that the person has open; names in it are added to the vector query only.
            mode: hybrid, grep, keyword, vector (semantic is vector): narrows the plan's sources.
            plan: A plan, or its text form.
            filters: A condition on documents, such as `type = 'note' and year >= 2024`; or a mapping of field to value, to a list
                of values, or to comparisons: `{"type": "note", "year": {">=": 2024}}`.
            limit: How many results; None: the plan's.
            include_memory: Search the collection `memory` too, where the plan names collections and leaves it out.
            expand_neighbors: Show each chunk between its neighbours: the plan's `neighbours`, at least 1.
            sensitivity: Only documents of this sensitivity.
            depths: Retrieve deeper than the plan, by source, so that `with_plan` has room to move.
            bypass_cache: Do not use a kept result.

        Raises:
            QueryError, PlanError, FilterError: What was asked cannot be.
            SourceUnavailable: The only source asked for could not run.
        """
        started = time.perf_counter()
        request = make_request(
            query,
            self.principal,
            plan,
            keywords=keywords,
            context=context,
            mode=mode,
            filters=filters,
            limit=limit,
            include_memory=include_memory,
            expand_neighbors=expand_neighbors,
            sensitivity=sensitivity,
        )
        return self._search(request, depths, bypass_cache, started)

    def _search(
        self, request: Request, depths: Mapping[str, int] | None, bypass_cache: bool, started: float
    ) -> SearchResult:
        check_principal(request.plan, request.principal)
        engine = self.engine
        seconds = float(request.plan["cache_seconds"])
        key = (cache_key(request, engine.key), engine.vocabulary, tuple(sorted((depths or {}).items())))
        if seconds and not bypass_cache:
            with self._caching:
                kept = self._cache.get(key)
            if kept is not None:
                return kept.as_kept((time.perf_counter() - started) * 1000.0)
        retrieved = retrieve(engine, request, depths)
        result = SearchResult(engine, retrieved, spent_ms=(time.perf_counter() - started) * 1000.0)
        if seconds and not bypass_cache and not result.unavailable:
            with self._caching:
                self._cache[key] = result
        return result

    def compare(
        self,
        query: str,
        plans: Sequence[Plan | str],
        *,
        keywords: str | None = None,
        context: str | None = None,
        filters: str | None = None,
        limit: int | None = None,
    ) -> Comparison:
        """The same query under several plans, side by side. Raises UsageError when there are no plans."""
        plans = (plans,) if isinstance(plans, (str, Plan)) else plans
        if not plans:
            raise UsageError("There is no plan to compare", "Pass at least one, such as 'default'")
        values = [Plan.of(p) for p in plans]
        found = (self.search(query, keywords, context, plan=p, filters=filters, limit=limit) for p in values)
        return Comparison(query, tuple(map(str, values)), tuple(found))

    def explain(self, result: SearchResult, target: str | Hit, *, every: bool = False) -> Explanation:
        """Where a document is in each source, the step that dropped it, and the setting that would bring it in.

        Args:
            result: A result of this corpus.
            target: A hit, a chunk id, a document id or path, or `path:line`; a part that only one path has will do.
            every: Look for every kind of setting that brings it in (`Explanation.ways`), not for the first alone.
                `LiveMeasure.cost` says what one does to judged queries.
        """
        asked, engine = result.retrieved.request, self.engine
        if isinstance(result.engine, Engine) and result.engine.access != engine.access:
            result = self._search(asked, None, True, time.perf_counter())  # made before the access of now

        def again(plan: Plan, **changes: Any) -> SearchResult:
            request = replace(asked, plan=plan, **changes)
            return SearchResult(result.engine, retrieve(result.engine, request))

        return explain_target(result, target, again, every=every)

    def grep(
        self,
        pattern: str | Sequence[str],
        context: int = 10,
        regex: bool = False,
        *,
        case: str = "smart",
        word: bool = False,
        filters: str | None = None,
        limit: int = 100,
    ) -> tuple[Passage, ...]:
        """Passages with line numbers and match spans, best first.

        Args:
            pattern: Fixed text, or several; regular expressions (RE2) with `regex`.
            context: Lines before and after a matched line, 0 to 1,000.
            case: smart, sensitive or ignore.
            limit: Most passages, 1 to 100,000.

        Raises QueryError: A pattern that cannot be read, or a context or limit outside its bounds.
        """
        context, limit = whole(context, "context", 0, 1000), whole(limit, "limit", 1, 100_000)
        patterns = (pattern,) if isinstance(pattern, str) else tuple(pattern)
        patterns = tuple(p for p in patterns if clean(p, "pattern"))
        if not patterns:
            raise QueryError("There is nothing to look for", "Pass a pattern that is not blank")
        engine = self.engine
        scope = engine.records.scope(self.principal, filters, ())
        # A text that is there several times is one passage, which names the other paths.
        distinct = engine.records.distinct(scope)
        answer = engine.grep.search(patterns, distinct, limit, regex=regex, case=case, word=word, context=context)
        return with_copies(engine.records, scope, answer.passages, answer.numbers)

    def read_file(self, path: str, at: str = "") -> str:
        """The text of a document, or a text that starts with `[ERROR: NOT_FOUND]` or `[ERROR: ACCESS_DENIED]`.

        Args:
            path: A path as citations show it, an absolute one, or a whole citation, of whose place the text is given.
            at: A place in it instead: `12-18` (lines), `page=3`, `sheet=Sales&row=12`, `Sales!A12`, `slide 3`.
        """
        return find_cited(self.engine, path, at).asked

    def search_examples(
        self, query: str, context: str | None = None, limit: int = 5, plan: Plan | str = "pages"
    ) -> Examples:
        """A tuple of the worked examples that fit, best first; `warnings` of it names a side that could not run.

        Args:
            query: In the query syntax.
            context: Text that the person has open; names in it are added to the vector query only.
            limit: How many at most.
            plan: How to search them, a plan or its text form.

        Raises:
            QueryError, UsageError: What was asked cannot be.
            SourceUnavailable: Neither the vector nor the keyword side could run.
        """
        return search_examples(self.engine, query, context, limit, plan)

    # --- measure ---------------------------------------------------------------------------------------------------

    def evaluate(
        self,
        judgments: Judgments,
        plan: Plan | str = "default",
        measures: str | Sequence[str] = ("nDCG@10", "R@100", "RR"),
        *,
        mode: str = "hybrid",
        filters: str | None = None,
        drop_identical_ids: bool | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Evaluation:
        """Run the judged queries under a plan and measure, at the plan's own depth.

        Args:
            judgments: Queries and graded documents; a query's keywords are used where it has some.
            plan: A plan, or its text form.
            measures: ir_measures names.
            drop_identical_ids: Leave the document whose id is the query's out of the query's results before they are
                measured; None does so where the queries are documents of the corpus, and warns of it.
            progress: Called with a Progress after each query.

        Raises JudgmentError, PlanError, UsageError.
        """
        from workbench.evaluate.evaluation import score_run
        from workbench.evaluate.measures import needed_depth, parse_measures
        from workbench.evaluate.run import as_indexed, make_run

        value, names = Plan.of(plan), parse_measures(measures)  # before the work, not after it
        records = self.engine.records
        scope = records.scope(self.principal, filters, ())
        judgments = as_indexed(judgments.dropping(drop_identical_ids), records, scope)

        def run(topic: Topic) -> SearchResult:
            keywords = topic.keywords or None
            return self.search(topic.text, keywords, mode=mode, plan=value, filters=filters, bypass_cache=True)

        name = str(value) if mode == "hybrid" else f"{mode}: {value}"
        made = make_run(run, judgments, name=name, depth=needed_depth(names), progress=progress)
        return score_run(made, judgments, names)

    def leaderboard(
        self,
        judgments: Judgments,
        plans: Sequence[Plan | str],
        measures: str | Sequence[str] = ("nDCG@10", "R@100", "RR"),
        *,
        mode: str = "hybrid",
        filters: str | None = None,
        drop_identical_ids: bool | None = None,
        baseline: int = 0,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Leaderboard:
        """Several plans on the same judged queries: measures and latency with intervals, and verdicts against one of them.

        Figures are those of `evaluate`, in a fraction of its time: a query is retrieved once for all plans. Latencies are of
        whole searches of some of the queries, each embedded again.

        Args:
            judgments: As `evaluate` takes them; `queries_only` of `workbench.evaluate.leaderboard` compares lists alone.
            plans: Plans, or their text forms.
            baseline: Position of the plan that the others are compared with.
            stop: Asked after each query; True ends with the queries that are done.

        Raises JudgmentError, PlanError, UsageError.
        """
        from workbench.evaluate.leaderboard import leaderboard
        from workbench.evaluate.pool import Pool

        engine = self.engine
        asked = judgments.dropping(drop_identical_ids)
        pool = Pool(engine, asked, principal=self.principal, mode=mode, filters=filters)

        def search(topic: Topic, plan: Plan) -> float:
            engine.forget_embedded()
            keywords = topic.keywords or None
            found = self.search(topic.text, keywords, mode=mode, plan=plan, filters=filters, bypass_cache=True)
            return found.timings_ms["total_ms"]

        values = [Plan.of(p) for p in plans]
        return leaderboard(pool, values, measures, search, baseline, progress=progress, stop=stop)

    def keep_evaluations(
        self, evaluations: Sequence[Evaluation], kind: str = "evaluation", filters: str | None = None
    ) -> None:
        """Keep evaluations of this generation as points of measures over time (`measured`). Raises CorpusError."""
        from workbench.saved import measured

        measured.keep(self.path, evaluations, self.generation, self._viewer, kind, filters)

    def measured(self) -> polars.DataFrame:
        """Measures over time: one row a kept evaluation (`keep_evaluations`, `workbench check`) and measure, as
        `saved.measured` has them. Raises CorpusError.
        """
        from workbench.saved import measured

        return measured.measured(self.path, self._viewer)

    @property
    def _viewer(self) -> str:
        from workbench.saved.measured import viewer_of

        return viewer_of(self.principal, self.policy)

    def evaluate_run(
        self,
        run: Run,
        judgments: Judgments,
        measures: str | Sequence[str] = ("nDCG@10", "R@100", "RR"),
        *,
        drop_identical_ids: bool | None = None,
    ) -> Evaluation:
        """Measure what another program found, on the judgments that plans are measured on.

        Args:
            run: As `wb.load_run` reads it: documents by the names of the judgments, their paths, document ids or own ids.
            judgments: Queries and graded documents; of judged passages the documents, because a run names documents.

        Raises UsageError: A measure that is unknown.
        """
        from workbench.evaluate.evaluation import score_run
        from workbench.evaluate.run import as_indexed, as_judged
        from workbench.judgments.judging import other_names

        engine = self.engine
        judged = judgments.by_document().dropping(drop_identical_ids)
        known = as_indexed(judged, engine.records, engine.visible)
        also = other_names(self.judging, sorted(known.document_keys))
        return score_run(as_judged(run, known, dict(also)), known, measures)

    def sweep(
        self,
        judgments: Judgments,
        grid: Mapping[str, Values] | Space,
        measure: str = "nDCG@10",
        folds: int = 5,
        **options: Any,
    ) -> Sweep:
        """Try many plans on judged queries, choose one, and say how much better it is on queries that did not choose it.

        Args:
            judgments: Queries and graded documents to tune on.
            grid: Plan field -> values, such as `{"fusion.k": [1, 10, 60]}`; every field may vary.
            measure: The ir_measures name that chooses.
            folds: Folds of queries for the held-out figure.
            **options: plan, baseline, measures, search, trials, test, mode, filters, drop_identical_ids, progress,
                stop, seed, as `workbench.evaluate.sweep.sweep` has them.

        Raises JudgmentError, PlanError, UsageError.
        """
        from workbench.evaluate.sweep import sweep

        return sweep(self.engine, judgments, grid, measure, folds, principal=self.principal, **options)

    def live(
        self,
        judgments: Judgments,
        measure: str = "nDCG@10",
        plan: Plan | str = "default",
        *,
        mode: str = "hybrid",
        filters: str | None = None,
        drop_identical_ids: bool | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> LiveMeasure:
        """Judged queries retrieved once, so that `figure(plan)` takes milliseconds: the measure beside a slider.

        Args:
            measure: nDCG, RR, R, P, AP or Success, at any cutoff.
            plan: The plan to retrieve for, and the one that differences are against.

        Raises:
            UsageError: A measure that needs whole lists.
            JudgmentError, PlanError.
        """
        from workbench.evaluate.live import LiveMeasure

        asked = judgments.dropping(drop_identical_ids)
        made = LiveMeasure(self.engine, asked, measure, principal=self.principal, mode=mode, filters=filters)
        made.prepare(Plan.of(plan), progress)
        return made

    def distribution(
        self,
        judgments: Judgments,
        plan: Plan | str = "default",
        source: str = "vector",
        *,
        progress: Callable[[Progress], None] | None = None,
    ) -> Distribution:
        """Where relevant and other candidates lie in one source's distances or scores, to choose a threshold.

        The plan's depth and metric count, its own threshold does not.

        Raises:
            UsageError: The plan does not ask that source.
            JudgmentError, PlanError.
        """
        from workbench.evaluate.distribution import distributions
        from workbench.evaluate.pool import Pool

        pool = Pool(self.engine, judgments, principal=self.principal)
        return distributions(pool, Plan.of(plan), [source], progress=progress)[source]

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        """In how many of the chunks that the principal may see each word occurs, as the keyword source reads it (stemmed).

        Args:
            words: Words; a text of several is a phrase, one without a word in it counts 0.
        """
        engine = self.engine
        counts = engine.lexical.frequencies(tuple(words), engine.visible)
        return dict(zip(words, counts.tolist(), strict=True))


def open_corpus(
    path: str | Path | None = None,
    principal: Principal | None = None,
    follow: bool = False,
    *,
    encoder: str | None = None,
    policy: Policy | None = None,
    served: bool = False,
) -> Corpus:
    """Open a corpus for reading; None is the setting `corpus`. Use it with or without `with`.

    Raises CorpusNotFound, CorpusDamaged, EncoderMismatch, PrincipalRequired.
    """
    folder = settings.path_of(settings.get("corpus") if path is None else path)
    return Corpus(folder, principal, follow=follow, encoder=encoder, policy=policy, served=served)


def index(
    paths: str | Path | Sequence[str | Path],
    corpus: str | Path | None = None,
    collection: str | Sequence[str] = "docs",
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> IndexReport:
    """Index files and folders into a corpus; what did not change is not embedded again.

    Args:
        paths: Files and folders, or one; a leading `~` is the home folder.
        corpus: The corpus folder, made if it is not there; None is the setting `corpus`.
        collection: Named part of the corpus, or several.
        progress: Called with a Progress now and then.
        **options: tenant, roles, sensitivity, type, hidden, gitignore, ocr, encoder, one_chunk_per_document, workers,
            move, as `workbench.indexing.IndexOptions` has them; and abort and wait.

    Raises CorpusLocked, UsageError, EncoderError.
    """
    from workbench import indexing

    run = {name: options.pop(name) for name in ("abort", "wait") if name in options}
    return indexing.index(_paths(paths), _target(corpus), _options(collection, options), progress=progress, **run)


def preview(
    paths: str | Path | Sequence[str | Path],
    corpus: str | Path | None = None,
    collection: str | Sequence[str] = "docs",
    **options: Any,
) -> IndexPreview:
    """Say what `index` with the same arguments would do, and do nothing. Raises UsageError, EncoderError."""
    from workbench import indexing

    run = {name: options.pop(name) for name in ("abort", "progress") if name in options}
    return indexing.preview(_paths(paths), _target(corpus), _options(collection, options), **run)


def remove(
    paths: str | Path | Sequence[str | Path],
    corpus: str | Path | None = None,
    collection: str | None = None,
    **options: Any,
) -> IndexReport:
    """Take files and folders out of a corpus, or with `collection` out of that one alone; nothing is embedded.

    Raises CorpusNotFound, CorpusLocked, UsageError where nothing there has one of the paths.
    """
    from workbench import indexing

    if collection is None:
        return indexing.remove(_paths(paths), _target(corpus), **options)
    return indexing.take_out(_paths(paths), _target(corpus), collection, **options)


def move(
    paths: str | Path | Sequence[str | Path],
    corpus: str | Path | None = None,
    *,
    to: str,
    source: str | None = None,
    **options: Any,
) -> IndexReport:
    """Move what is indexed of files and folders to the collection `to`, from `source` or from all that they are in; nothing is
    read or embedded.

    Raises CorpusNotFound, CorpusLocked, UsageError where nothing there has one of the paths, or the two collections cut documents
    in different ways.
    """
    from workbench import indexing

    return indexing.move(_paths(paths), _target(corpus), to, source=source, **options)


def _options(collection: str | Sequence[str], options: Mapping[str, Any]) -> IndexOptions:
    from workbench.indexing import IndexOptions

    return IndexOptions((collection,) if isinstance(collection, str) else tuple(collection), **options)


def _paths(given: str | Path | Sequence[str | Path]) -> list[Path]:
    """One path or several; a text is not read letter by letter."""
    return [settings.path_of(p) for p in ((given,) if isinstance(given, (str, Path)) else given)]


def _target(given: str | Path | None) -> Path:
    return settings.path_of(settings.get("corpus") if given is None else given)
