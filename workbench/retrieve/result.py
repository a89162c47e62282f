"""The answer to a search: hits, and everything that says why.

A `SearchResult` keeps what the sources answered (`Retrieved`), so `with_plan` fuses again without searching: that is what a
slider calls. Its pictures, table and JSON all read the same fused numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import QueryError
from workbench.plan.fields import base_of, collection_of, encoder_of
from workbench.plan.plan import Plan
from workbench.ranking.candidates import Candidates, Ints
from workbench.ranking.cutting import to_distance
from workbench.ranking.fuse import Fused
from workbench.records import (
    FEEDBACK,
    Chunk,
    ChunkKind,
    Granularity,
    Hit,
    Label,
    Passage,
    Ranking,
    Span,
    Step,
    Unavailable,
    joined,
)
from workbench.retrieve.engine import Engine
from workbench.retrieve.fusing import Outcome, fuse_plan
from workbench.retrieve.keywords import pattern_spans
from workbench.retrieve.messages import messages_for, warnings_for
from workbench.retrieve.retrieved import Retrieved, others, ranked
from workbench.retrieve.sources import POOL
from workbench.store.types import ChunkRow

if TYPE_CHECKING:
    import polars

    from workbench import Snapshot


BOUNDARY = "[CHUNK BOUNDARY]"
EXAMPLES_BELOW = 500
"""A page's examples are added only if the whole section has fewer characters than this."""
_OF_CHUNK = "chunk_id document_id chunk_index start_line end_line page locator section text".split()


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

    def __init__(self, engine: Engine, retrieved: Retrieved, *, spent_ms: float = 0.0) -> None:
        self.engine, self.retrieved = engine, retrieved
        self._origin = retrieved  # of the search: what `with_plan` takes its answers from
        request = retrieved.request
        self.query, self.keywords, self.plan = request.query, request.keywords, request.plan
        self.mode, self.filters = request.mode, request.filters
        self.generation = engine.generation
        self.unavailable: tuple[Unavailable, ...] = retrieved.unavailable
        self.outcome: Outcome = fuse_plan(retrieved, self.plan, engine)
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
        return _make_hits(self)

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
            entries = tuple(
                ranked(candidates, column, row, rank, metric) for rank, row in enumerate(column.listed.tolist(), 1)
            )
            approximate = self.retrieved.answers[column.source].scored.approximate
            made[column.source] = Ranking(column.source, column.kind, entries, approximate)
        return made

    def documents(self, most: int) -> list[tuple[str, str]]:
        """Document id and path of each fused candidate after dedupe, best first, at most `most`; without the limit."""
        return [(document, path) for document, path, _ in self.passages(most)]

    def passages(self, most: int) -> list[tuple[str, str, Span]]:
        """Like `documents`, with the characters of each candidate."""
        return self._passages(self.outcome.kept[:most])

    def ranked_chunks(self, document_id: str) -> dict[str, tuple[int, float]]:
        """Chunk id -> final rank (from 1, without the limit) and fused score, of the candidates of one document."""
        columns, rows = self.retrieved.columns, self.fused.rows
        kept = enumerate(zip(self.order.tolist(), rows[self.order].tolist(), strict=True), 1)
        return {
            columns.chunk_ids[row]: (rank, float(self.fused.scores[at]))
            for rank, (at, row) in kept
            if columns.document_ids[row] == document_id
        }

    def alike(self, positions: Ints | None = None) -> list[list[tuple[str, str, Span]]]:
        """Like `passages`, of every candidate after dedupe, or of some (positions in `fused`): each with those of the same text
        that dedupe removed for it.
        """
        return [self._passages(np.array(group)) for group in self.outcome.groups(positions)]

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
        again = SearchResult(self.engine, self._origin.under(Plan.of(plan)))
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
            scores = np.where(ranks > 0, column.counting[records], np.nan)
            data[f"{name}_rank"] = pl.Series([rank or None for rank in ranks.tolist()], dtype=pl.Int64)
            data[f"{name}_score"] = pl.Series(scores).fill_nan(None)
            data[f"{name}_contribution"] = fused.contributions.get(name, nothing)
            if fused.unit == "document":
                data[f"{name}_chunk_id"] = texts(columns.chunk_ids, records)
        if FEEDBACK in fused.contributions:
            data[f"{FEEDBACK}_contribution"] = fused.contributions[FEEDBACK]
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
        cosines = index.cosines(vector, answer.scope)
        return np.asarray(to_distance(cosines.astype(np.float64), self.plan["vector.metric"]))

    @property
    def timings_ms(self) -> Mapping[str, float]:
        """Milliseconds by step: filter, embed, grep, keyword, vector, fusion, total; only steps that ran.

        Of a result from the cache the same steps, each 0, and the look-up as the total.
        """
        if self._kept_ms is not None:
            return {**dict.fromkeys(self.first_timings_ms, 0.0), "total_ms": self._kept_ms}
        return self.first_timings_ms

    @property
    def stats(self) -> Mapping[str, float]:
        """Milliseconds of the two sides and of reranking: vectorMs, keywordMs, rerankMs; 0 for what did not run."""
        timings = self.timings_ms
        return {f"{name}Ms": timings.get(f"{name}_ms", 0.0) for name in ("vector", "keyword", "rerank")}

    @property
    def first_timings_ms(self) -> Mapping[str, float]:
        """The same of the search that ran: where the result came from the cache, as it was then."""
        outcome = self.outcome
        timings = {**self.retrieved.timings, "fusion_ms": outcome.milliseconds}
        if outcome.rerank_ms is not None:
            timings["rerank_ms"] = outcome.rerank_ms
        return {**timings, "total_ms": self._spent_ms + outcome.milliseconds + (outcome.rerank_ms or 0.0)}

    @cached_property
    def messages(self) -> tuple[str, ...]:
        """What was found, in words: characters returned, files or chunks; guidance when nothing was."""
        return messages_for(self)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What the reader must know before trusting it: sources that could not run, approximate answers."""
        return warnings_for(self)

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
        return str(self.frame().head(int(self.plan["limit"]))._repr_html_())


def _make_hits(result: SearchResult) -> tuple[Hit, ...]:
    retrieved, outcome = result.retrieved, result.outcome
    rows = outcome.fused.rows[outcome.shown].tolist()
    numbers = retrieved.columns.numbers[rows].tolist()
    _read(result, numbers)
    copies = _copies(result)
    hits = [
        _hit(result, rank, position, row, number, copies[position])
        for rank, (position, row, number) in enumerate(zip(outcome.shown.tolist(), rows, numbers, strict=True), 1)
    ]
    return _by_page(result, hits, numbers) if result.plan["organise"] == "pages" else tuple(hits)


def _read(result: SearchResult, numbers: Sequence[int]) -> None:
    """Read the records that no earlier fusion of the same answers has shown: a slider reads only what is new."""
    retrieved, records = result.retrieved, result.engine.records
    new = [n for n in numbers if n not in retrieved.shown]
    if not new:
        return
    wanted = np.unique(retrieved.columns.document_numbers[np.searchsorted(retrieved.columns.numbers, new)]).tolist()
    headers = POOL.submit(records.headers, wanted)  # beside the rows: a millisecond or two of ten
    stored = records.rows(new)
    documents = dict(zip(wanted, headers.result(), strict=True))
    retrieved.shown.update({r.number: (r, documents[r.document_number]) for r in stored})


def _copies(result: SearchResult) -> dict[int, tuple[str, ...]]:
    """For each shown position the other paths of its text: documents with it, and those that dedupe left out."""
    retrieved, outcome = result.retrieved, result.outcome
    paths, owners, rows = retrieved.columns.paths, retrieved.columns.document_numbers, outcome.fused.rows
    same: dict[int, list[int]] = {position: [int(rows[position])] for position in outcome.shown.tolist()}
    for position, better in sorted(outcome.duplicate_of.items()):
        if better in same:
            same[better].append(int(rows[position]))
    wanted = sorted({int(owners[row]) for found in same.values() for row in found})
    known = result.engine.records.paths_of(wanted, retrieved.scope)
    return {
        position: others(paths[found[0]], (p for row in found for p in (paths[row], *known.get(int(owners[row]), ()))))
        for position, found in same.items()
    }


def _hit(result: SearchResult, rank: int, position: int, row: int, number: int, copies: tuple[str, ...]) -> Hit:
    retrieved, outcome, plan = result.retrieved, result.outcome, result.plan
    fused, candidates = outcome.fused, outcome.candidates
    record, document = retrieved.shown[number]
    chunk = record.chunk
    entries = {
        source: ranked(candidates, candidates.column(source), at, place, plan["vector.metric"])
        for source, (place, at) in fused.evidence(position).items()
    }
    scores = {source: entry.score for source, entry in entries.items()}
    if position in outcome.rerank:
        scores["rerank"] = outcome.rerank[position]
    # The collections in which it was found: its own, and those of sources that search one collection.
    collections = {chunk.collection, *map(collection_of, entries)} - {""}
    of_document = {name: getattr(document, name) for name in ("type", "sensitivity", "tenant")}
    hit = Hit(
        **_of(chunk),
        rank=rank,
        score=float(fused.scores[position]),
        score_kind=outcome.score_kind,
        label=Label.STRONGEST if position == outcome.strongest else fused.labels[position],
        contributions={s: float(values[position]) for s, values in fused.contributions.items()},
        ranks={source: entry.rank for source, entry in entries.items()},
        scores=scores,
        counted={s: entry for s, entry in entries.items() if entry.chunk_id != chunk.chunk_id},
        collections=tuple(sorted(collections)),
        path=retrieved.columns.paths[row],
        url=document.url,
        title=document.title,
        matches=(),
        distance=next((e.distance for e in entries.values() if e.distance is not None), None),
        metadata={**document.metadata, **of_document, "granularity": str(chunk.granularity)},
        copies=copies,
    )
    if (passage := _passage(result, row)) is not None:
        lines: dict[str, Any] = {"start_line": passage.start_line, "end_line": passage.end_line}
        return replace(hit, text=passage.text, matches=_merge(passage.matches), **lines)
    hit = replace(hit, matches=_matches(result, record))
    return _with_neighbours(result.engine, record, int(plan["neighbours"]), hit) if plan["neighbours"] else hit


def _of(chunk: Chunk) -> dict[str, Any]:
    return {name: getattr(chunk, name) for name in _OF_CHUNK}


def _passage(result: SearchResult, row: int) -> Passage | None:
    """The grep passage that a hit shows instead of its chunk, if the plan shows passages and grep, at its depth, found it."""
    if result.plan["grep.show"] == "passage" or result.mode == "grep":
        for column in result.outcome.candidates.columns:
            if base_of(column.source) == "grep" and column.rank[row] > 0:
                number = int(result.retrieved.columns.numbers[row])
                return result.retrieved.answers[column.source].passages[number]
    return None


def _matches(result: SearchResult, record: ChunkRow) -> tuple[Span, ...]:
    retrieved, text = result.retrieved, record.chunk.text
    made: dict[str, Callable[[], Iterable[Span]]] = {}
    if any(base_of(source) != "grep" for source in retrieved.answers):
        made["words"] = lambda: result.engine.lexical.highlight(result.query, text)
    if retrieved.patterns:
        made["patterns"] = lambda: pattern_spans(retrieved.patterns, text, result.plan)
    spans: list[Span] = []
    for kind, find in made.items():
        key = (kind, record.number)
        if key not in retrieved.marked:
            try:
                retrieved.marked[key] = tuple(find())
            except QueryError:  # the vector source reads any text; words that the query syntax refuses mark nothing
                retrieved.marked[key] = ()
        spans += retrieved.marked[key]
    return _merge(spans)


def _merge(spans: Sequence[Span]) -> tuple[Span, ...]:
    return tuple(Span(start, end) for start, end in joined(((s.start, s.end) for s in spans), touching=True))


def _with_neighbours(engine: Engine, record: ChunkRow, reach: int, hit: Hit) -> Hit:
    own = record.chunk
    siblings = (s.chunk for s in engine.records.rows(engine.records.records_of(record.document_number).tolist()))
    texts: Mapping[int, str] = {
        s.chunk_index: s.text for s in siblings if s.collection == own.collection and s.granularity == own.granularity
    }
    index, joint = own.chunk_index, f"\n{BOUNDARY}\n"
    before = [texts[i] for i in range(index - reach, index) if i in texts]
    after = [texts[i] for i in range(index + 1, index + reach + 1) if i in texts]
    shift = sum(len(t) + len(joint) for t in before)
    moved = tuple(Span(m.start + shift, m.end + shift) for m in hit.matches)
    return replace(hit, text=joint.join([*before, hit.text, *after]), matches=moved)


def _by_page(result: SearchResult, hits: Sequence[Hit], numbers: Sequence[int]) -> tuple[Hit, ...]:
    """The hits by page, the page of the best one first: its summary, its examples where they are short, then the hits in the
    order of the document.
    """
    store, pages = result.engine.records, dict[int, list[tuple[Hit, Chunk]]]()
    for hit, number in zip(hits, numbers, strict=True):
        record = result.retrieved.shown[number][0]
        pages.setdefault(record.document_number, []).append((hit, record.chunk))
    special: dict[int, list[Chunk]] = {number: [] for number in pages}
    if pages:
        is_special = store.of_kind(ChunkKind.SUMMARY) | store.of_kind(ChunkKind.EXAMPLES)
        every = np.concatenate([store.records_of(number) for number in pages])
        for row in store.rows(every[is_special[every]].tolist()):
            if row.chunk.granularity is Granularity.CHUNK:
                special[row.document_number].append(row.chunk)
    return tuple(hit for number, found in pages.items() for hit in _page(found, special[number]))


def _page(found: Sequence[tuple[Hit, Chunk]], special: Sequence[Chunk]) -> list[Hit]:
    collections = {c for hit, _ in found for c in hit.collections}
    own = [c for c in special if c.collection in collections]
    examples = [c for c in own if c.kind is ChunkKind.EXAMPLES]
    if sum(len(c.text) for c in examples) >= EXAMPLES_BELOW:
        examples = []
    present = {hit.chunk_id: hit for hit, _ in found}
    added = [*(c for c in own if c.kind is ChunkKind.SUMMARY), *examples]
    head = [present.get(c.chunk_id) or _added(c, found[0][0]) for c in added]
    rest = [pair for pair in found if pair[0].chunk_id not in {hit.chunk_id for hit in head}]
    rest.sort(key=lambda pair: (pair[1].start, pair[1].chunk_index, pair[1].kind, pair[1].chunk_id))
    return [*head, *(hit for hit, _ in rest)]


def _added(chunk: Chunk, like: Hit) -> Hit:
    nothing: dict[str, Any] = {"contributions": {}, "ranks": {}, "scores": {}, "counted": {}, "matches": ()}
    shown: dict[str, Any] = {"label": Label.ADDED, "collections": (chunk.collection,), "distance": None, "added": True}
    return replace(like, **_of(chunk), **nothing, **shown, rank=0, score=0.0, score_kind="added")
