"""Many fusion plans over the candidates of many queries, for sweeps and for the figure beside a slider.

Query by query, what a plan costs is mostly the calls. So the candidates of all queries are laid end to end, in blocks that fit a
processor's cache, and plans that differ only in k, rank base, weights and alpha are ranked several at a time on one evidence
(`evidence.tabulate`, as in `fuse`). Measures need the ranks of judged documents only, so nothing is sorted: what scores more than
each of them is counted. Where a measure looks at the first ranks only, rows that can never be there are left out before. Scores,
order and ties are those of `fuse`.

Ranks are counted in documents: a document is ranked by its best row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import UsageError
from workbench.plan.fields import FusionPlan
from workbench.ranking.adapt import feedback
from workbench.ranking.candidates import Bools, Candidates, Column, Floats, Ints
from workbench.ranking.cutting import counted, cut_to_depth, cut_to_threshold, document_codes, first_of_each
from workbench.ranking.evidence import RANK_METHODS, Evidence, tabulate
from workbench.ranking.methods import Parameters, check, contributions, exact_sum
from workbench.records import Kind

_BLOCK = 1 << 16  # scores of one block: half a megabyte
_PLANS = 8  # ranked together, where there are as many: what they share is made once
_RIVALS = 30  # how many more documents than the cutoff are tried as those that leave others behind
_MANY_MARKS = (
    24  # from so many ranks a query on, sorting its scores is quicker than comparing each mark with all of them
)
_MOST_KEPT = 6  # of what plans share, for the next plan: a slider moves one of its fields
_NONE = np.zeros(0, np.int64)
_Fed = tuple[slice, Callable[[Ints], Floats]]


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One query's candidates, and the rows whose documents' ranks are wanted.

    Attributes:
        candidates: n rows.
        targets: int64 (t,), row numbers.
        documents: What each row's document is called; "" for one that is left out of the ranking after equal texts were
            dropped. None: the candidates' document ids.
        texts: uint64 (n,), equal where the rows' texts are equal; None where all differ.
        likeness: float64 (n, n), the products of the rows' vectors, for plans with feedback over chunks.
    """

    candidates: Candidates
    targets: Ints
    documents: tuple[str, ...] | None = None
    texts: NDArray[np.uint64] | None = None
    likeness: Floats | None = None


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
        likeness: One a query, as in `Judged`.
    """

    columns: tuple[Column, ...]
    query: Ints
    queries: int
    documents: Ints
    texts: Ints | None
    left_out: Bools
    targets: Ints
    sizes: Ints
    likeness: tuple[Floats | None, ...]
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
            tuple([q.likeness for q in queries]),
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
            fed = fusion.feedback_top if fusion.feedback_weight else 0
            groups.setdefault((fusion.method, fusion.unit, fusion.renumber, scores, fed), []).append(n)
        result = np.zeros((len(fusions), len(self.targets)), np.int64)
        for shared, members in groups.items():
            size = _BLOCK if cutoff is not None else _BLOCK // min(len(members), _PLANS)
            key = (shared, cutoff, dedupe, passthrough, size)
            ready = self._kept.get(key)
            if ready is None:
                parts = self._blocks(size)
                ready = [(p._ready(fusions[members[0]], cutoff, dedupe, passthrough), t) for p, t in parts]
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.pop(next(iter(self._kept)), None)
                self._kept[key] = ready
            some = [fusions[n] for n in members]
            read = [[f.k, f.rank_base, f.alpha, f.feedback_weight, *map(f.weight, sources)] for f in some]
            numbers = np.array(read, np.float64)
            for part, targets in ready:
                result[members, targets] = part.ranks(numbers, threshold)
        return result

    def _blocks(self, size: int) -> Iterator[tuple[Batch, slice]]:
        """The batch in parts of whole queries with about so many rows, and which of the targets are each part's."""
        ends = np.searchsorted(self.query, np.arange(self.queries), side="right")
        targets = np.cumsum([0, *self.sizes])
        first = row = 0
        while first < self.queries:
            last = max(first + 1, int(np.searchsorted(ends, row + size, side="right")))
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
                self.likeness[first:last],
            )
            yield part, own
            first, row = last, rows.stop

    def _ready(self, fusion: FusionPlan, cutoff: int | None, dedupe: bool, passthrough: bool) -> _Ready:
        """The evidence for plans that differ from this one in k, rank base, weights and alpha only; arguments as in `ranks`."""
        if dedupe and self.texts is not None and fusion.unit == "document":
            raise UsageError("Documents are not compared by their text", "Pass dedupe only for plans with unit chunk")
        table = tabulate(self.columns, fusion, self.documents, self.query, self.queries)
        order = np.lexsort((-table.coverage, table.query))  # what settles ties; rows are in the order of the rest
        query, rows, evidence = table.query[order], table.rows[order], _taken(table.evidence, order)
        alone = np.zeros(len(rows), bool)
        if passthrough:
            answered = (np.bincount(query[e.rank > 0], minlength=self.queries) > 0 for e in evidence)
            alone = sum(answered, np.zeros(self.queries, np.int64))[query] == 1
        codes = self.documents[rows]
        texts = self.texts[rows] if dedupe and self.texts is not None else None
        fed: tuple[_Fed, ...] = ()
        if fusion.feedback_weight:
            fed = tuple(_fed(query, rows, np.searchsorted(self.query, np.arange(self.queries)), self.likeness))
        if cutoff is not None and len(rows) and not fed:
            single = ~self.left_out[rows] & (True if texts is None else _Groups.of(texts).single)
            kept = _contenders(evidence, cutoff, _Lines.of(query, self.queries), codes, single)
            query, rows, codes, alone, evidence = (
                query[kept],
                rows[kept],
                codes[kept],
                alone[kept],
                _taken(evidence, kept),
            )
            texts = None if texts is None else texts[kept]
        known, item = np.unique(codes, return_inverse=True)
        wanted = self.documents[self.targets]
        at = np.searchsorted(known, wanted).clip(max=max(len(known) - 1, 0))
        same = None if texts is None else _Groups.of(texts)
        return _Ready(
            fusion.method,
            evidence,
            _Lines.of(query, self.queries),
            _Groups.of(item),
            None if same is None or same.single.all() else same,
            self.left_out[rows],
            alone,
            np.where(known[at] == wanted, at, -1) if len(known) else np.full(len(wanted), -1),
            np.repeat(np.arange(self.queries), self.sizes),
            cutoff,
            fed,
            fusion.feedback_top,
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
        """The first item of the greatest score in each group, for scores float64 (p, m): int64 (p, g)."""
        if len(self.starts) == len(self.order):
            return np.broadcast_to(self.order, scores.shape)
        own = scores[:, self.order]
        top = np.maximum.reduceat(own, self.starts, axis=1)
        top = np.repeat(top, np.diff(np.append(self.starts, len(self.order))), axis=1)
        return np.minimum.reduceat(np.where(own == top, self.order, len(self.order)), self.starts, axis=1)


def _only(scores: Floats, items: Ints) -> Floats:
    """The scores (p, m) with -inf for all but some items (p, g)."""
    made = np.full(scores.shape, -np.inf)
    np.put_along_axis(made, items, np.take_along_axis(scores, items, 1), 1)
    return made


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """Items as one line a query, as wide as eight divides: int64 (m,), where each is in the lines end to end."""

    queries: int
    width: int
    slots: Ints

    @classmethod
    def of(cls, query: Ints, queries: int) -> _Lines:
        """From the query of each item, int64 (m,), rising."""
        counts = np.bincount(query, minlength=queries)
        width, starts = -(-int(counts.max(initial=0)) // 8) * 8, np.cumsum(counts) - counts
        return cls(queries, width, np.arange(len(query)) - starts[query] + query * width)

    def spread(self, values: NDArray[Any], fill: object) -> NDArray[Any]:
        """Values (..., m) as (..., queries, width)."""
        shape = (*values.shape[:-1], self.queries, self.width)
        if len(self.slots) == self.queries * self.width:
            return values.reshape(shape)
        made = np.full((*values.shape[:-1], self.queries * self.width), fill, values.dtype)
        made[..., self.slots] = values
        return made.reshape(shape)


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    """A batch made ready for plans that differ in k, rank base, weights and alpha only.

    Items are query by query, in the order that settles ties.

    Attributes:
        method: Of the plans.
        evidence: One a source.
        lines: The items' queries.
        documents: The documents of the items.
        texts: The equal texts of the items; None where they are not compared.
        left_out: bool (m,), items that are not ranked.
        alone: bool (m,), items of queries whose only list is passed through.
        targets: int64 (t,), the wanted documents; -1 for one without items.
        owners: int64 (t,), their queries.
        cutoff: Ranks beyond it do not matter.
        fed: What feedback reads, one a query; nothing without it.
        top: How many of the best stand for the query in feedback.
    """

    method: str
    evidence: tuple[Evidence, ...]
    lines: _Lines
    documents: _Groups
    texts: _Groups | None
    left_out: Bools
    alone: Bools
    targets: Ints
    owners: Ints
    cutoff: int | None
    fed: tuple[_Fed, ...]
    top: int

    def ranks(self, numbers: Floats, threshold: float | None) -> Ints:
        """Ranks of the targets, int64 (p, t), as `Batch.ranks` gives them, under plans that are given as their k, rank base,
        alpha, weight of feedback and of each source, float64 (p, 4 + sources)."""
        made = np.zeros((len(numbers), len(self.targets)), np.int64)
        wanted, size = np.flatnonzero(self.targets >= 0), max(1, _BLOCK // max(1, len(self.alone)))
        for first in range(0, len(numbers) if len(wanted) else 0, size):
            k, base, alpha, feeding, *weights = numbers[first : first + size].T[:, :, None]
            parts = contributions(self.evidence, self.method, Parameters(k, base, alpha, tuple(weights)))
            scores = exact_sum(parts)
            if self.fed:
                added = np.zeros_like(scores)
                for items, like in self.fed:
                    added[:, items] = feedback(scores[:, items], like, self.top, feeding[:, 0])
                scores = exact_sum([*parts, added])
            made[first : first + size, wanted] = self._places(scores, wanted, threshold)
        if self.cutoff is not None:
            made[made > self.cutoff] = 0
        return made

    def _places(self, scores: Floats, wanted: Ints, threshold: float | None) -> Ints:
        """Ranks of some targets for scores (p, m); 0 for one that is not ranked."""
        low = None if threshold is None else (scores < threshold) & ~self.alone
        if self.alone.any():
            scores = np.where(self.alone, -np.sum([e.rank for e in self.evidence], axis=0), scores)
        if low is not None:
            scores = np.where(low, -np.inf, scores)
        if self.texts is not None:
            scores = _only(scores, self.texts.best(scores))
        if self.left_out.any():
            scores = np.where(self.left_out, -np.inf, scores)
        best = self.documents.best(scores)
        if best.shape[1] < scores.shape[1]:
            scores = _only(scores, best)
        items = best[:, self.targets[wanted]]
        marks = np.take_along_axis(scores, items, 1)
        lines, owners, width = self.lines.spread(scores, -np.inf), self.owners[wanted], self.lines.width
        above, least = _counts(lines, owners, marks)
        # Of equal scores the ones that are earlier count.
        plans, tied = np.nonzero((least - above > 1) & (marks > -np.inf))
        place = self.lines.slots[items[plans, tied]] % width
        equal = lines[plans, owners[tied]] == marks[plans, tied, None]
        above[plans, tied] += np.count_nonzero(equal & (np.arange(width) < place[:, None]), axis=1)
        return np.where(marks > -np.inf, above + 1, 0)


def _counts(lines: Floats, owners: Ints, marks: Floats) -> tuple[Ints, Ints]:
    """How many scores of each mark's line are greater than it, and how many no less, both int64 (p, t).

    Args:
        lines: float64 (p, queries, width).
        owners: int64 (t,), the line of each mark, rising.
        marks: float64 (p, t).
    """
    queries, width = lines.shape[1:]
    greater, least = np.empty(marks.shape, np.int64), np.empty(marks.shape, np.int64)
    if len(owners) > _MANY_MARKS * queries:
        ends = np.searchsorted(owners, np.arange(1, queries)).tolist()
        for plan, block in enumerate(np.sort(lines, axis=-1)):
            for line, (low, high) in zip(block, pairwise([0, *ends, len(owners)]), strict=True):
                own = marks[plan, low:high]
                greater[plan, low:high] = width - line.searchsorted(own, "right")
                least[plan, low:high] = width - line.searchsorted(own, "left")
        return greater, least
    place = counted(owners) - 1
    for n in range(int(place.max()) + 1):
        at = np.flatnonzero(place == n)
        some = lines if len(at) == queries else np.take(lines, owners[at], axis=1)
        mark = marks[:, at, None]
        greater[:, at], least[:, at] = _true(some > mark), _true(some >= mark)
    return greater, least


def _true(flags: Bools) -> Ints:
    """How many are true, (..., w) to (...), for a w that eight divides: eight are counted at a time, as bytes of one number."""
    words, total = flags.view(np.uint64), np.zeros(flags.shape[:-1], np.int64)
    for start in range(0, words.shape[-1], 255):
        eight = words[..., start : start + 255].sum(axis=-1)
        total += eight.view(np.uint8).reshape(*eight.shape, 8).sum(axis=-1, dtype=np.int64)
    return total


def _contenders(evidence: Sequence[Evidence], cutoff: int, lines: _Lines, documents: Ints, single: Bools) -> Ints:
    """Items that may be among the first `cutoff` documents under some weights, rising.

    An item is out where as many documents settle ties before it and are no worse in every source: every method gives them
    scores that are no lower, roundings included, since each rounding keeps order. They are looked for among a few that have good
    ranks, and are `single`, so that none of them can be dropped; so some items stay that need not.
    """
    items, number = np.arange(len(documents)), lines.slots // max(1, lines.width)
    if lines.width <= cutoff + _RIVALS:
        return items
    ranks = [np.where(e.rank > 0, e.rank, len(items) + 1) for e in evidence]
    good = items[single & np.all([e.value >= 0 for e in evidence], axis=0)]
    good = first_of_each(documents, good[np.lexsort((np.sum(ranks, axis=0)[good], number[good]))])
    place = counted(number[good]) - 1
    good, place = good[place < cutoff + _RIVALS], place[place < cutoff + _RIVALS]
    rivals = np.full((lines.queries, int(place.max(initial=-1)) + 1), -1)
    rivals[number[good], place] = good
    columns = [-rank for rank in ranks] + [e.value for e in evidence] + [e.scored for e in evidence]
    there = [(lines.spread(values, 0), values) for values in columns]
    order, codes = lines.spread(items, -1), lines.spread(documents, -1)
    ahead = np.zeros(order.shape, np.int64)
    for rival in rivals.T:
        one = rival[:, None]
        ahead_of = (one >= 0) & (one < order) & (documents[one] != codes)
        for line, values in there:
            ahead_of &= values[one] >= line
        ahead += ahead_of
    return items[ahead.reshape(-1)[lines.slots] < cutoff]


def _fed(query: Ints, rows: Ints, starts: Ints, likeness: Sequence[Floats | None]) -> Iterator[_Fed]:
    """Each query's items, and how like some of them each is: from the products of its rows' vectors."""
    bounds = np.searchsorted(query, np.arange(len(starts) + 1)).tolist()
    for products, start, low, high in zip(likeness, starts.tolist(), bounds, bounds[1:], strict=False):
        if products is None:
            continue
        own = rows[low:high] - start
        yield slice(low, high), partial(_likeness, products[np.ix_(own, own)])


def _likeness(products: Floats, first: Ints) -> Floats:
    """How like the mean of some items (p, k) each item is, float64 (p, m), by the products of all."""
    made: Floats = products[first].mean(axis=1)
    return made


def _taken(evidence: Sequence[Evidence], order: Ints) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(e.source, e.kind, e.rank[order], e.record[order], e.value[order], e.scored[order]) for e in evidence
    )


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
