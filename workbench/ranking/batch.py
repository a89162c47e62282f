"""Many fusion plans over the candidates of many queries, for sweeps and for the figure beside a slider.

Query by query, what a plan costs is mostly the calls. So the candidates of all queries are laid end to end, in blocks that fit a
processor's cache, and a plan is some forty numpy calls a block. Plans that differ only in k, rank base, weights and alpha
share the evidence (`evidence.tabulate`, as in `fuse`). Measures need the ranks of judged documents only, so what scores less than
all of them, or less than enough others where a measure looks at the first ranks only, is never sorted. Scores, order and ties are
those of `fuse`.

Ranks are counted in documents: a document is ranked by its best row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from workbench.errors import UsageError
from workbench.plan.fields import FusionPlan
from workbench.ranking.candidates import Bools, Candidates, Column, Floats, Ints
from workbench.ranking.cutting import counted, cut_to_depth, cut_to_threshold, document_codes, first_of_each
from workbench.ranking.evidence import RANK_METHODS, Evidence, tabulate
from workbench.ranking.methods import Parameters, check, contributions, exact_sum
from workbench.records import Kind

_BLOCK = 1 << 16  # rows of one block: half a megabyte a column
_MOST_KEPT = 6  # of what plans share, for the next plan: a slider moves one of its fields
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One query's candidates, and the rows whose documents' ranks are wanted.

    Attributes:
        candidates: n rows.
        targets: int64 (t,), row numbers.
        documents: What each row's document is called; "" for one that is left out of the ranking after equal texts were
            dropped. None: the candidates' document ids.
        texts: uint64 (n,), equal where the rows' texts are equal; None where all differ.
    """

    candidates: Candidates
    targets: Ints
    documents: tuple[str, ...] | None = None
    texts: NDArray[np.uint64] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The candidates of q queries, n rows end to end.

    Attributes:
        columns: One a source, sorted; a query that a source did not answer has rank 0 there, which adds nothing.
        query: int64 (n,), rising.
        queries: q.
        documents: int64 (n,), another one in each query.
        texts: int64 (n,), another one in each query; None where no text is there twice.
        left_out: bool (n,), rows that are not ranked.
        targets: int64 (t,), rows, query after query.
        sizes: int64 (q,), how many of the targets are each query's.
    """

    columns: tuple[Column, ...]
    query: Ints
    queries: int
    documents: Ints
    texts: Ints | None
    left_out: Bools
    targets: Ints
    sizes: Ints
    _kept: dict[tuple[object, ...], list[tuple[_Ready, slice]]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, queries: Sequence[Judged]) -> Batch:
        """Lay queries end to end."""
        lengths = [len(q.candidates) for q in queries]
        starts = np.cumsum([0, *lengths])
        names = [q.candidates.document_ids if q.documents is None else q.documents for q in queries]
        texts = None
        if any(q.texts is not None for q in queries):
            same = (None if q.texts is None else np.unique(q.texts, return_inverse=True)[1] for q in queries)
            texts = _joined([np.arange(n) if own is None else own for own, n in zip(same, lengths, strict=True)])
        return cls(
            _columns([q.candidates for q in queries]),
            np.repeat(np.arange(len(queries)), lengths),
            len(queries),
            _joined([document_codes(n) for n in names]),
            texts,
            np.array([not name for own in names for name in own], bool),
            np.concatenate([_NONE, *(q.targets + start for q, start in zip(queries, starts, strict=False))]),
            np.array([len(q.targets) for q in queries], np.int64),
        )

    def cut(
        self,
        depths: Mapping[str, int],
        thresholds: Mapping[str, float | str | None],
        metric: str,
        *,
        documents: bool = False,
    ) -> Batch:
        """The batch under depths and thresholds by source, cut as `cutting` cuts the candidates of one query."""
        made = []
        for column in self.columns:
            if column.source in depths:
                own = self.documents if documents else None
                column = cut_to_depth(column, depths[column.source], own, self.query, self.queries)
            if column.source in thresholds:
                column = cut_to_threshold(column, thresholds[column.source], metric)
            made.append(column)
        return replace(self, columns=tuple(made))

    def ranks(
        self,
        fusions: Sequence[FusionPlan],
        *,
        cutoff: int | None = None,
        threshold: float | None = None,
        dedupe: bool = False,
        passthrough: bool = False,
    ) -> Ints:
        """The rank that the document of each target has under each plan.

        Args:
            fusions: p plans.
            cutoff: Ranks beyond it do not matter (10 for nDCG@10); much quicker for many plans where it is small.
            threshold: Rows with a lower fused score are not ranked; None ranks all.
            dedupe: Rank only the first row of each text.
            passthrough: The list of a query that one source alone answered keeps its order, and no fused threshold cuts it.

        Returns:
            int64 (p, t), from 1; 0 where no source retrieved the document, it is not ranked, or its rank is beyond the cutoff.

        Raises PlanError, UsageError: As `fuse`; or texts are to be compared where documents are ranked.
        """
        sources = [c.source for c in self.columns]
        groups: dict[tuple[object, ...], list[int]] = {}
        for n, fusion in enumerate(fusions):
            check(fusion, sources)
            scores = () if fusion.method in RANK_METHODS else (fusion.missing, *map(fusion.normalisation, sources))
            groups.setdefault((fusion.method, fusion.unit, fusion.renumber, scores), []).append(n)
        result = np.zeros((len(fusions), len(self.targets)), np.int64)
        for shared, members in groups.items():
            key = (shared, cutoff, dedupe, passthrough)
            ready = self._kept.get(key)
            if ready is None:
                ready = [(p._ready(fusions[members[0]], cutoff, dedupe, passthrough), t) for p, t in self._blocks()]
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.pop(next(iter(self._kept)), None)
                self._kept[key] = ready
            for part, targets in ready:
                for n in members:
                    result[n, targets] = part.ranks(fusions[n], threshold)
        return result

    def _blocks(self) -> Iterator[tuple[Batch, slice]]:
        """The batch in parts of whole queries, and which of the targets are each part's."""
        ends = np.searchsorted(self.query, np.arange(self.queries), side="right")
        targets = np.cumsum([0, *self.sizes])
        first = row = 0
        while first < self.queries:
            last = max(first + 1, int(np.searchsorted(ends, row + _BLOCK, side="right")))
            rows, own = slice(row, int(ends[last - 1])), slice(int(targets[first]), int(targets[last]))
            part = Batch(
                tuple([c.take(rows) for c in self.columns]),
                self.query[rows] - first,
                last - first,
                self.documents[rows],
                None if self.texts is None else self.texts[rows],
                self.left_out[rows],
                self.targets[own] - row,
                self.sizes[first:last],
            )
            yield part, own
            first, row = last, rows.stop

    def _ready(self, fusion: FusionPlan, cutoff: int | None, dedupe: bool, passthrough: bool) -> _Ready:
        """The evidence for plans that differ from this one in k, rank base, weights and alpha only; arguments as in `ranks`."""
        if dedupe and self.texts is not None and fusion.unit == "document":
            raise UsageError("Documents are not compared by their text", "Pass dedupe only for plans with unit chunk")
        table = tabulate(self.columns, fusion, self.documents, self.query, self.queries)
        order = np.lexsort((-table.coverage, table.query))  # what settles ties; rows are in the order of the rest
        query, rows = table.query[order], table.rows[order]
        evidence = tuple(
            Evidence(e.source, e.kind, e.rank[order], e.record[order], e.value[order], e.scored[order])
            for e in table.evidence
        )
        lists = np.zeros(self.queries, np.int64)
        for e in evidence if passthrough else ():
            lists += np.bincount(query[e.rank > 0], minlength=self.queries) > 0
        known, item = np.unique(self.documents[rows], return_inverse=True)
        wanted = self.documents[self.targets]
        at = np.searchsorted(known, wanted).clip(max=max(len(known) - 1, 0))
        targets = np.where(known[at] == wanted, at, -1) if len(known) else np.full(len(wanted), -1)
        texts = _Groups.of(self.texts[rows]) if dedupe and self.texts is not None else None
        aimed = np.zeros(len(known), bool)
        aimed[targets[targets >= 0]] = True
        single = ~self.left_out[rows] & (True if texts is None else texts.single)
        return _Ready(
            fusion.method,
            evidence,
            query,
            self.queries,
            _Groups.of(item),
            None if texts is None or texts.single.all() else texts,
            self.left_out[rows],
            lists[query] == 1,
            targets,
            np.flatnonzero(aimed[item]),
            None if cutoff is None else _rivals(evidence, cutoff, query, self.queries, item, single),
            cutoff,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """Items in g groups: of documents, or of equal texts.

    Attributes:
        order: int64 (m,), the items group by group, each group's in their order.
        starts: int64 (g,), where each group begins in it.
        single: bool (m,), items that are alone in their group.
    """

    order: Ints
    starts: Ints
    single: Bools

    @classmethod
    def of(cls, codes: Ints) -> _Groups:
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        sizes = np.diff(np.append(starts, len(codes)))
        single = np.zeros(len(codes), bool)
        single[order[starts[sizes == 1]]] = True
        return cls(order, starts, single)

    def best(self, scores: Floats) -> Ints:
        """The first item of the greatest score in each group, int64 (g,)."""
        if len(self.starts) == len(self.order):
            return self.order
        own = scores[self.order]
        top = np.maximum.reduceat(own, self.starts)
        top = np.repeat(top, np.diff(np.append(self.starts, len(own))))
        return np.minimum.reduceat(np.where(own == top, self.order, len(own)), self.starts)

    def only_best(self, scores: Floats) -> Floats:
        """The scores with -inf for all but the best of each group."""
        best = self.best(scores)
        made = np.full(len(scores), -np.inf)
        made[best] = scores[best]
        return made


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    """A batch made ready for plans that differ in k, rank base, weights and alpha only.

    Items are query by query, in the order that settles ties.

    Attributes:
        method: Of the plans.
        evidence: One a source.
        query: int64 (m,), the query of each item.
        queries: How many.
        documents: The documents of the items.
        texts: The equal texts of the items; None where they are not compared.
        left_out: bool (m,), items that are not ranked.
        alone: bool (m,), items of queries whose only list is passed through.
        targets: int64 (t,), the wanted documents; -1 for one without items.
        aimed: Items of wanted documents.
        rivals: int64 (q, r), items of as many documents that are likely to be among the first, -1 after their end; None without
            a cutoff.
        cutoff: Ranks beyond it do not matter.
    """

    method: str
    evidence: tuple[Evidence, ...]
    query: Ints
    queries: int
    documents: _Groups
    texts: _Groups | None
    left_out: Bools
    alone: Bools
    targets: Ints
    aimed: Ints
    rivals: Ints | None
    cutoff: int | None

    def ranks(self, fusion: FusionPlan, threshold: float | None = None) -> Ints:
        """Ranks of the targets under one plan, int64 (t,), as `Batch.ranks` gives them."""
        ranks = np.zeros(len(self.targets), np.int64)
        if not len(self.aimed):
            return ranks
        weights = tuple(fusion.weight(e.source) for e in self.evidence)
        numbers = Parameters(float(fusion.k), float(fusion.rank_base), float(fusion.alpha), weights)
        scores = fused = exact_sum(contributions(self.evidence, self.method, numbers))
        if self.alone.any():
            scores = np.where(self.alone, -np.sum([e.rank for e in self.evidence], axis=0), scores)
        least = self._least(scores)
        if threshold is not None:
            scores = np.where((fused >= threshold) | self.alone, scores, -np.inf)
        if self.texts is not None:
            scores = self.texts.only_best(scores)
        if self.left_out.any():
            scores = np.where(self.left_out, -np.inf, scores)
        best = self.documents.best(scores)
        if len(best) < len(scores):
            scores = self.documents.only_best(scores)
        wanted = np.flatnonzero(self.targets >= 0)
        items = best[self.targets[wanted]]
        ranked = scores[items] > -np.inf
        there = np.flatnonzero((scores >= least[self.query]) & (scores > -np.inf))
        ranks[wanted[ranked]] = _ranks_in(scores, there, self.query, self.queries, items[ranked])
        if self.cutoff is not None:
            ranks[ranks > self.cutoff] = 0
        return ranks

    def _least(self, scores: Floats) -> Floats:
        """The least score that matters in each query, float64 (q,): that of its wanted items, or of the `cutoff` best rivals."""
        least = np.full(self.queries, np.inf)
        owner = self.query[self.aimed]
        starts = np.flatnonzero(np.diff(owner, prepend=-1))
        least[owner[starts]] = np.minimum.reduceat(scores[self.aimed], starts)
        if self.rivals is not None and self.cutoff is not None and self.rivals.shape[1] >= self.cutoff:
            best = np.where(self.rivals >= 0, scores[self.rivals], -np.inf)
            at = self.rivals.shape[1] - self.cutoff
            least = np.maximum(least, np.partition(best, at, axis=1)[:, at])
        return least


def _ranks_in(scores: Floats, there: Ints, query: Ints, queries: int, wanted: Ints) -> Ints:
    """The rank of each wanted item among those of its query that are there, int64; 1 more than all of them where it is not.

    Args:
        scores: float64 (m,), of all items, which are in the order that settles ties.
        there: The items that are ranked, rising.
        query: int64 (m,), rising.
        queries: How many.
        wanted: Items, query by query.
    """
    owner = query[there]
    begins = np.searchsorted(owner, np.arange(queries + 1))
    counts = np.diff(begins)
    width = int(counts.max(initial=0))
    # One line a query: lines are sorted several times as fast as the whole is sorted by two keys.
    lines = np.full((queries, width), np.inf)
    lines[np.arange(width) < counts[:, None]] = -scores[there]
    own, score = query[wanted], -scores[wanted]
    first, last = np.zeros_like(own), np.zeros_like(own)
    bounds = np.searchsorted(own, np.arange(queries + 1)).tolist()
    for line, low, high in zip(np.sort(lines, axis=1), bounds, bounds[1:], strict=False):
        first[low:high], last[low:high] = (line.searchsorted(score[low:high], side) for side in ("left", "right"))
    # Of equal scores the ones that are earlier count.
    tied = np.flatnonzero(last - first > 1)
    place = np.searchsorted(there, wanted[tied]) - begins[own[tied]]
    earlier = (lines[own[tied]] == score[tied, None]) & (np.arange(width) < place[:, None])
    first[tied] += earlier.sum(axis=1)
    return first + 1


def _rivals(
    evidence: Sequence[Evidence], cutoff: int, query: Ints, queries: int, documents: Ints, single: Bools
) -> Ints:
    """Items of different documents of each query, with a good rank in some source, of which none can be dropped, int64 (q, r)."""
    best = np.min([np.where(e.rank > 0, e.rank, len(query) + 1) for e in evidence], axis=0)
    items = np.flatnonzero(single & (best <= 3 * cutoff))
    items = first_of_each(documents, items[np.lexsort((best[items], query[items]))])
    place = counted(query[items]) - 1
    items, place = items[place < 4 * cutoff], place[place < 4 * cutoff]
    rivals = np.full((queries, int(place.max()) + 1 if len(place) else 0), -1)
    rivals[query[items], place] = items
    return rivals


def _columns(queries: Sequence[Candidates]) -> tuple[Column, ...]:
    """Every source's columns end to end; rows of a query that lacks a source are not retrieved by it."""
    kinds = {c.source: c.kind for candidates in queries for c in candidates.columns}
    made = []
    for source, kind in sorted(kinds.items()):
        parts = []
        for candidates in queries:
            own = [c for c in candidates.columns if c.source == source]
            parts += own or [_empty(source, kind, len(candidates))]
        arrays = ([getattr(c, name) for c in parts] for name in ("rank", "score", "computed", "cut"))
        whole = Column(source, kind, *map(np.concatenate, arrays))
        if any(c.adapted is not None for c in parts):
            whole = replace(
                whole, adapted=np.concatenate([c.computed if c.adapted is None else c.adapted for c in parts])
            )
        made.append(whole)
    return tuple(made)


def _empty(source: str, kind: Kind, rows: int) -> Column:
    nothing = np.full(rows, np.nan)
    return Column(source, kind, np.zeros(rows, np.int64), nothing, nothing, np.zeros(rows, bool))


def _joined(codes: Sequence[Ints]) -> Ints:
    """Codes of each query, numbered on from query to query."""
    made, total = [_NONE], 0
    for own in codes:
        made.append(own + total)
        total += int(own.max()) + 1 if len(own) else 0
    return np.concatenate(made)
