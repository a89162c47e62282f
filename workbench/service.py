"""The composition root: an open corpus that searches, explains, reads and measures.

Everything else takes what it needs as arguments; here the parts are put together. The app, the command line, notebooks
and tools all use `Corpus`, so they give the same answers; `workbench.maintain` is what changes a corpus.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import settings
from workbench.corpus_engine import CorpusEngine
from workbench.errors import QueryError, UsageError
from workbench.opened import OpenCorpus
from workbench.plan import Plan
from workbench.records import Hit, Passage, Principal, Progress
from workbench.retrieve.cache import cache_key
from workbench.retrieve.compare import Comparison
from workbench.retrieve.copies import with_copies
from workbench.retrieve.examples import Examples, search_examples
from workbench.retrieve.explain import Explanation
from workbench.retrieve.explain import explain as explain_target
from workbench.retrieve.readfile import read_file
from workbench.retrieve.request import Request, check_principal, clean, make_request, whole
from workbench.retrieve.result import SearchResult
from workbench.retrieve.sources import retrieve
from workbench.store.visibility import Policy

if TYPE_CHECKING:
    from workbench.evaluate.distribution import Distribution
    from workbench.evaluate.evaluation import Evaluation
    from workbench.evaluate.grid import Space, Values
    from workbench.evaluate.judgments import Judgments, Topic
    from workbench.evaluate.live import LiveMeasure
    from workbench.evaluate.run import Run
    from workbench.evaluate.swept import Sweep


class Corpus(OpenCorpus):
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
            keywords=keywords,
            context=context,
            mode=mode,
            plan=plan,
            filters=filters,
            limit=limit,
            principal=self.principal,
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
            kept = self._cache.get(key, seconds)
            if isinstance(kept, SearchResult):
                return kept.as_kept((time.perf_counter() - started) * 1000.0)
        retrieved = retrieve(engine, request, depths)
        result = SearchResult(engine, retrieved, request.plan, spent_ms=(time.perf_counter() - started) * 1000.0)
        if seconds and not bypass_cache and not result.unavailable:
            self._cache.put(key, result)
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
        results = tuple(
            self.search(query, keywords=keywords, context=context, plan=p, filters=filters, limit=limit) for p in values
        )
        return Comparison(query, tuple(map(str, values)), results)

    def explain(self, result: SearchResult, target: str | Hit) -> Explanation:
        """Where a document stands in each source, the step that dropped it, and the setting that would bring it in.

        Args:
            result: A result of this corpus.
            target: A hit, a chunk id, a document id or path, or `path:line`.
        """
        asked = result._retrieved.request
        engine = self.engine
        before = result._engine
        if isinstance(before, CorpusEngine) and before.access != engine.access:
            result = self._search(asked, None, True, time.perf_counter())  # made before the access of now

        def again(
            plan: Plan, query: str = asked.query, mode: str = asked.mode, filters: str = asked.filters
        ) -> SearchResult:
            request = replace(asked, plan=plan, query=query, mode=mode, filters=filters)
            return SearchResult(result._engine, retrieve(result._engine, request), plan)

        return explain_target(result._engine, result, target, again)

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
            word: Whole words only.
            filters: A condition on documents.
            limit: Most passages, 1 to 100,000.

        Raises:
            QueryError: A pattern that cannot be read, or a context or limit outside its bounds.
        """
        context, limit = whole(context, "context", 0, 1000), whole(limit, "limit", 1, 100_000)
        patterns = (pattern,) if isinstance(pattern, str) else tuple(pattern)
        patterns = tuple(p for p in patterns if clean(p, "pattern"))
        if not patterns:
            raise QueryError("There is nothing to look for", "Pass a pattern that is not blank")
        engine = self.engine
        scope = engine.records.scope(self.principal, filters, ())
        answer = engine.grep.search(patterns, scope, limit, regex=regex, case=case, word=word, context=context)
        return with_copies(engine.records, scope, answer.passages, answer.numbers)

    def read_file(self, path: str, at: str = "") -> str:
        """The text of a document, or a text that starts with `[ERROR: NOT_FOUND]` or `[ERROR: ACCESS_DENIED]`.

        Args:
            path: A path as citations show it, an absolute one, or a whole citation, of whose place the text is given.
            at: A place in it instead: `12-18` (lines), `page=3`, `sheet=Sales&row=12`, `Sales!A12`, `slide 3`.
        """
        engine = self.engine
        return read_file(engine, self.principal, path, at)

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
        return search_examples(self.engine, self.principal, query, context, limit, plan)

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
            mode: As in `search`.
            filters: As in `search`.
            drop_identical_ids: Leave the document whose id is the query's out of the query's results before they are
                measured; None does so where the queries are documents of the corpus, and warns of it.
            progress: Called with a Progress after each query.

        Raises:
            JudgmentError, PlanError, UsageError.
        """
        from workbench.evaluate.plans import evaluate_plan
        from workbench.evaluate.run import as_indexed

        value = Plan.of(plan)
        records = self.engine.records
        scope = records.scope(self.principal, filters, ())
        judgments = as_indexed(judgments.dropping(drop_identical_ids), records, scope)

        def run(topic: Topic) -> SearchResult:
            keywords = topic.keywords or None
            return self.search(topic.text, keywords, mode=mode, plan=value, filters=filters, bypass_cache=True)

        name = str(value) if mode == "hybrid" else f"{mode}: {value}"
        return evaluate_plan(run, judgments, measures, name=name, progress=progress)

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
            measures: ir_measures names.
            drop_identical_ids: As in `evaluate`.

        Raises:
            UsageError: A measure that is unknown.
        """
        from workbench.desk.naming import other_names
        from workbench.evaluate.evaluation import score_run
        from workbench.evaluate.imported import as_judged
        from workbench.evaluate.run import as_indexed

        records = self.engine.records
        scope = records.scope(self.principal, None, ())
        indexed = records.indexed_as(scope)
        known = as_indexed(judgments.by_document().dropping(drop_identical_ids), records, scope)
        also = other_names(self.judging, sorted(known.document_keys))
        copies = {copy: also.get(shown, shown) for copy, shown in indexed.items()}
        return score_run(as_judged(run, known, copies | dict(also)), known, measures)

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
            **options: plan, baseline, measures, search, trials, test, mode, filters, drop_identical_ids, resume, progress,
                stop, seed, as `workbench.evaluate.sweep.sweep` has them.

        Raises:
            JudgmentError, PlanError, UsageError.
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
            judgments: Queries and graded documents.
            measure: nDCG, RR, R, P, AP or Success, at any cutoff.
            plan: The plan to retrieve for, and the one that differences are against.
            mode, filters: As in `search`.
            drop_identical_ids: As in `evaluate`.
            progress: Called with a Progress after each query.

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

        Args:
            judgments: Queries and graded documents.
            plan: Whose depth and metric count; its threshold does not.
            source: One of the plan's sources.
            progress: Called with a Progress after each query.

        Raises:
            UsageError: The plan does not ask that source.
            JudgmentError, PlanError.
        """
        from workbench.evaluate.distribution import distribution
        from workbench.evaluate.pool import Pool

        pool = Pool(self.engine, judgments, principal=self.principal)
        return distribution(pool, Plan.of(plan), source, progress=progress)

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        """In how many of the chunks that the principal may see each word occurs, as the keyword source reads it (stemmed).

        Args:
            words: Words; a text of several is a phrase, one without a word in it counts 0.
        """
        engine = self.engine
        scope = engine.records.scope(self.principal, None, ())
        counts = engine.lexical.frequencies(tuple(words), scope)
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

    Raises:
        CorpusNotFound, CorpusDamaged, EncoderMismatch, PrincipalRequired.
    """
    folder = settings.path_of(settings.get("corpus") if path is None else path)
    return Corpus(folder, principal, follow=follow, encoder=encoder, policy=policy, served=served)
