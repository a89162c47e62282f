"""The answer to a search: hits, and everything that says why.

A `SearchResult` keeps what the sources answered (`Retrieved`), so `with_plan` fuses again without searching: that is what a
slider calls. Its pictures, table and JSON all read the same fused numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.plan.fields import base_of, encoder_of
from workbench.plan.plan import Plan
from workbench.ranking.candidates import Candidates, Ints
from workbench.ranking.distance import to_distance
from workbench.ranking.fuse import Fused
from workbench.records import Hit, Label, Ranking, Span, Step, Unavailable
from workbench.retrieve.engine import Engine
from workbench.retrieve.fusing import Outcome, fuse_plan
from workbench.retrieve.hits import make_hits
from workbench.retrieve.messages import guidance, messages_for, warnings_for, words_said
from workbench.retrieve.retrieved import Retrieved, ranked
from workbench.retrieve.sources import scope_of
from workbench.store.lexical.synonyms import spoken

if TYPE_CHECKING:
    import polars

    from workbench import Snapshot


class SearchResult:
    """What a search found, in order, and why. Made by `Corpus.search`.

    Attributes:
        query, keywords, mode, filters: As asked (Unicode NFC, trimmed).
        plan: The plan that fused it.
        generation: Id of the generation that answered.
        unavailable: Sources that could not run.
        engine: The open generation that answered.
        retrieved: What the sources answered.
        outcome: The fused list, and how it came to be.
    """

    def __init__(self, engine: Engine, retrieved: Retrieved, plan: Plan, *, spent_ms: float = 0.0) -> None:
        self.engine, self.retrieved = engine, retrieved
        self._origin = retrieved  # of the search: what `with_plan` takes its answers from
        request = retrieved.request
        self.query, self.keywords = request.query, request.keywords
        self.mode, self.filters = request.mode, request.filters
        self.plan = plan
        self.generation = engine.generation
        self.unavailable: tuple[Unavailable, ...] = retrieved.unavailable
        self.outcome: Outcome = fuse_plan(retrieved, plan, engine)
        self._spent_ms = spent_ms
        self._kept_ms: float | None = None

    def as_kept(self, milliseconds: float) -> SearchResult:
        """The same result, as a cache gives it: nothing was run for it but the look-up, which took so long."""
        again = copy.copy(self)
        again._kept_ms = milliseconds
        return again

    @property
    def cached(self) -> bool:
        """Whether it came from the cache of an open corpus."""
        return self._kept_ms is not None

    # --- results ---------------------------------------------------------------------------------------------------

    @cached_property
    def hits(self) -> tuple[Hit, ...]:
        """The results, best first; their rows are fetched when this is first read."""
        return make_hits(self.engine, self.retrieved, self.outcome, self.plan)

    @property
    def fused(self) -> Fused:
        """Every fused candidate before dedupe and limit, as rows of `candidates`."""
        return self.outcome.fused

    @property
    def order(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Positions in `fused` of what is left after dedupe, in the final order (reranked where a model ran), int64."""
        return self.outcome.kept

    @property
    def score_kind(self) -> str:
        """`fused`, or the lone source whose own scores these are."""
        return self.outcome.score_kind

    @property
    def rerank_scores(self) -> Mapping[int, float]:
        """Position in `fused` -> the reranking model's score; empty where none ran."""
        return self.outcome.rerank

    @cached_property
    def candidates(self) -> Candidates:
        """Every source's raw and computed scores before the threshold, as `workbench.fuse` takes them.

        Rankings are cut to the plan's depth, and rows at or beyond its threshold are marked `cut`, so that fusing these
        gives this result again.
        """
        return self.retrieved.candidates_for(self.plan, computed=True)

    @cached_property
    def rankings(self) -> Mapping[str, Ranking]:
        """Each source's ranking after threshold and depth, ranks from 1."""
        candidates, metric, made = self.outcome.candidates, self.plan["vector.metric"], {}
        for column in candidates.columns:
            kept = np.flatnonzero(column.retrieved)
            kept = kept[np.argsort(column.rank[kept], kind="stable")].tolist()
            entries = tuple(ranked(candidates, column, row, rank, metric) for rank, row in enumerate(kept, 1))
            approximate = self.retrieved.answers[column.source].scored.approximate
            made[column.source] = Ranking(column.source, column.kind, entries, approximate)
        return made

    def documents(self, most: int) -> list[tuple[str, str]]:
        """Document id and path of each fused candidate after dedupe, best first, at most `most`; without the limit."""
        return [(document, path) for document, path, _ in self.passages(most)]

    def passages(self, most: int) -> list[tuple[str, str, Span]]:
        """Like `documents`, with the characters of each candidate."""
        return self._passages(self.outcome.kept[:most])

    def alike(self) -> list[list[tuple[str, str, Span]]]:
        """Like `passages`, of every candidate after dedupe: each with those of the same text that dedupe removed for it."""
        return [self._passages(np.array(group)) for group in self.outcome.groups()]

    def _passages(self, positions: Ints) -> list[tuple[str, str, Span]]:
        c, rows = self.retrieved.columns, self.fused.rows[positions].tolist()
        return [(c.document_ids[r], c.paths[r], Span(int(c.start_chars[r]), int(c.end_chars[r]))) for r in rows]

    @property
    def cut_by_depth(self) -> bool:
        """Whether a greater depth would bring more candidates in: some source found more, and its threshold cut none."""
        for column in self.outcome.candidates.columns:
            answer, ranked = self.retrieved.answers[column.source], column.rank > 0
            more = not answer.exhausted or len(answer.scored.numbers) > int(ranked.sum())
            if more and not bool(column.cut[ranked].any()):
                return True
        return False

    def with_plan(self, plan: Plan | str) -> SearchResult:
        """Fuse again under another plan, without searching: what a search with it would give, timings apart.

        Raises:
            NeedsSearch: The plan asks for candidates that were not retrieved.
            PrincipalRequired: The plan must know who asks.
            PlanError: The plan cannot be read.
        """
        value = Plan.of(plan)
        again = SearchResult(self.engine, self._origin.under(value), value, spent_ms=0.0)
        again._origin = self._origin
        return again

    # --- why -------------------------------------------------------------------------------------------------------

    def frame(self) -> polars.DataFrame:
        """One row a fused candidate: rank, path, start_line, end_line, label, score, and for each source
        `{source}_rank`, `{source}_score` and `{source}_contribution` (rank and score null where it did not retrieve the row).
        Where documents are ranked, also `{source}_chunk_id`: the chunk whose rank and score counted.
        """
        import polars as pl

        columns, fused, rows = self.retrieved.columns, self.fused, self.fused.rows

        def texts(values: Sequence[str], at: Ints = rows) -> pl.Series:
            return pl.Series([values[n] if n >= 0 else None for n in at.tolist()], dtype=pl.String)

        labels = [
            str(Label.STRONGEST if n == self.outcome.strongest else label) for n, label in enumerate(fused.labels)
        ]
        data: dict[str, Any] = {
            "rank": np.arange(1, len(rows) + 1),
            "path": texts(columns.paths),
            "start_line": columns.start_lines[rows],
            "end_line": columns.end_lines[rows],
            "label": pl.Series(labels, dtype=pl.String),
            "score": fused.scores,
            "chunk_id": texts(columns.chunk_ids),
            "document_id": texts(columns.document_ids),
        }
        nothing = np.zeros(len(rows))
        for column in self.outcome.candidates.columns:
            name = column.source
            ranks = fused.ranks.get(name, nothing).astype(np.int64)
            records = fused.records.get(name, ranks - 1)
            scores = np.where(ranks > 0, column.score[records], np.nan)
            data[f"{name}_rank"] = pl.Series([rank or None for rank in ranks.tolist()], dtype=pl.Int64)
            data[f"{name}_score"] = pl.Series(scores).fill_nan(None)
            data[f"{name}_contribution"] = fused.contributions.get(name, nothing)
            if fused.unit == "document":
                data[f"{name}_chunk_id"] = texts(columns.chunk_ids, records)
        return pl.DataFrame(data)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The funnel as records, in the order of the pipeline."""
        return self.outcome.steps

    def funnel(self) -> polars.DataFrame:
        """How many candidates entered and left each step, and why: step, source, entered, left, dropped, reason."""
        import polars as pl

        dropped = (pl.col("entered") - pl.col("left")).alias("dropped")
        return pl.DataFrame(list(map(asdict, self.steps))).select(
            "step", "source", "entered", "left", dropped, "reason"
        )

    def distances(self, source: str = "vector") -> np.ndarray[Any, np.dtype[np.float64]]:
        """Distance of every record that the source may return, in the plan's metric, float64, for the histogram; empty where
        there are none.
        """
        answer = self.retrieved.answers.get(source)
        vector = self.retrieved.vectors.get(encoder_of(source))
        if answer is None or vector is None:
            return np.zeros(0)
        index = self.engine.vectors(encoder_of(source))
        cosines = index.cosines(vector, scope_of(self.engine, self.retrieved.request, source, self.retrieved.scope))
        return np.asarray(to_distance(cosines.astype(np.float64), self.plan["vector.metric"]))

    @property
    def timings_ms(self) -> Mapping[str, float]:
        """Milliseconds by step: filter, embed, grep, keyword, vector, fusion, total; only steps that ran.

        Of a result from the cache the same steps, each 0, and the look-up as the total.
        """
        if self._kept_ms is not None:
            return {**dict.fromkeys(self._ran_ms, 0.0), "total_ms": self._kept_ms}
        return self._ran_ms

    @property
    def stats(self) -> Mapping[str, float]:
        """Milliseconds of the two sides and of reranking: vectorMs, keywordMs, rerankMs; 0 for what did not run."""
        timings = self.timings_ms
        return {f"{name}Ms": timings.get(f"{name}_ms", 0.0) for name in ("vector", "keyword", "rerank")}

    @property
    def _ran_ms(self) -> Mapping[str, float]:
        outcome = self.outcome
        timings = {**self.retrieved.timings, "fusion_ms": outcome.milliseconds}
        if outcome.rerank_ms is not None:
            timings["rerank_ms"] = outcome.rerank_ms
        return {**timings, "total_ms": self._spent_ms + outcome.milliseconds + (outcome.rerank_ms or 0.0)}

    @cached_property
    def messages(self) -> tuple[str, ...]:
        """What was found, in words: characters returned, files or chunks; guidance when nothing was."""
        if self.hits:
            said = messages_for(self.retrieved, self.outcome, self.hits, self.plan)
        else:
            said = guidance(self.engine, self.retrieved, self.outcome, self.plan)
        return (*said, *words_said(self.engine, self.retrieved, self.outcome, self.plan), *self._words_said())

    def _words_said(self) -> tuple[str, ...]:
        """What the corpus's own synonyms added to the words, and what its stop words took away."""
        if not any(base_of(source) == "keyword" for source in self.retrieved.answers):
            return ()
        words = spoken(self.query, self.engine.vocabulary)
        said = (("Searched also: ", words.also), ("Not counted, being stop words of this corpus: ", words.dropped))
        return tuple(lead + ", ".join(names) for lead, names in said if names)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What the reader must know before trusting it: sources that could not run, approximate answers."""
        return warnings_for(self.engine, self.retrieved, self.outcome, self.plan)

    def snapshot(self, note: str = "") -> Snapshot:
        """This result as a value that is saved as one file, opened anywhere, verified and compared.

        Args:
            note: What to say of it; its first line is the title.
        """
        # By its public name: what a snapshot is, is decided above what a result is.
        from workbench import Snapshot

        return Snapshot.of(self, note=note)

    def to_dict(self, timings: bool = False) -> dict[str, Any]:
        """The result as JSON values; without timings two equal searches give equal bytes."""
        data: dict[str, Any] = {
            "query": self.query,
            "keywords": self.keywords,
            "mode": self.mode,
            "filters": self.filters,
            "plan": str(self.plan),
            "generation": self.generation,
            "hits": [hit.to_dict() for hit in self.hits],
            "funnel": list(map(asdict, self.steps)),
            "messages": list(self.messages),
            "warnings": list(self.warnings),
            "unavailable": list(map(asdict, self.unavailable)),
        }
        if timings:
            data["timings_ms"] = {k: round(v, 3) for k, v in self.timings_ms.items()}
            data["stats"] = {k: round(v, 3) for k, v in self.stats.items()}
            data["cached"] = self.cached
        return data

    def __repr__(self) -> str:
        return f"<SearchResult {self.query!r} {self.mode}: {len(self.hits)} hits by {self.plan}>"

    def _repr_html_(self) -> str:
        """The table, for a notebook."""
        return str(self.frame().head(int(self.plan["limit"]))._repr_html_())
