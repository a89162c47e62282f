"""Many fusion plans over many queries' candidates, for sweeps.

Plans that differ only in k, rank_base, weights and alpha share the evidence (normalised scores, collapsed documents); their
scores are one matrix, plans by items, worked off in blocks that stay in the processor's cache. Nothing is sorted into
lists: measures need the ranks of judged rows only, and `ranks_of` counts what stands above them. Where a measure looks at
the first ranks only, items that can never be there (enough others are at least as good in every source) are left out
before. Scores, ties and ranks are those of `fuse`, to the bit.

Plans are checked and grouped once (`Batch`), then met with each query's candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.errors import UsageError
from workbench.plan.fusion import FusionPlan
from workbench.ranking.candidates import Candidates, Floats, Ints
from workbench.ranking.counting import MANY_TARGETS, document_ranks_in, ranks_in
from workbench.ranking.cutting import document_codes, first_of_each
from workbench.ranking.evidence import RANK_METHODS, Evidence, Table, tabulate
from workbench.ranking.lone import told_apart, without_weight
from workbench.ranking.methods import Parameters, check, contributions
from workbench.ranking.order import best_first, tie_order
from workbench.ranking.summation import exact_sum
from workbench.ranking.upright import MANY_PLANS, ranks_of_many

_BLOCK = 1 << 16  # scores of one block: half a megabyte

_ADDITIVE = frozenset({"rrf", "weighted", "convex"})  # a score is the sum of shares that rise with each source's word


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Plans of one method on one table: their positions in the batch, and their numbers as columns, shape (p, 1)."""

    plan: FusionPlan
    table: int
    members: Ints
    k: Floats
    rank_base: Floats
    alpha: Floats
    weights: tuple[Floats, ...]

    def numbers(self, places: Ints) -> Parameters:
        """The numbers of some of its plans, shape (b, 1)."""
        weights = tuple(w[places] for w in self.weights)
        return Parameters(self.k[places], self.rank_base[places], self.alpha[places], weights)


class Batch:
    """Fusion plans, checked and grouped once for candidates with given sources.

    Args:
        fusions: p plans.
        sources: The names of the candidates' sources.

    Raises:
        PlanError: A value outside its bounds.
    """

    __slots__ = ("groups", "size", "sources", "tables")

    def __init__(self, fusions: Sequence[FusionPlan], sources: Sequence[str]) -> None:
        self.size = len(fusions)
        self.sources = tuple(sorted(sources))
        numbers: dict[tuple[object, ...], int] = {}
        members: dict[tuple[object, ...], list[int]] = {}
        for position, fusion in enumerate(fusions):
            check(fusion, self.sources)
            members.setdefault((*_reads(fusion, self.sources), fusion.method), []).append(position)
        groups = []
        for key, positions in members.items():
            plans = [fusions[p] for p in positions]
            table = numbers.setdefault(key[:-1], len(numbers))
            groups.append(
                _Group(
                    plans[0],
                    table,
                    np.asarray(positions, np.int64),
                    _columns([f.k for f in plans]),
                    _columns([f.rank_base for f in plans]),
                    _columns([f.alpha for f in plans]),
                    tuple(_columns([f.weight(s) for f in plans]) for s in self.sources),
                )
            )
        self.groups = tuple(groups)
        self.tables = len(numbers)

    def met(self, candidates: Candidates) -> Iterator[tuple[_Group, Table]]:
        """Each group with its table for these candidates. Raises UsageError for other sources."""
        found = tuple(sorted(c.source for c in candidates.columns))
        if found != self.sources:
            raise UsageError(
                f"The plans were grouped for the sources {', '.join(self.sources)}, and the candidates have {', '.join(found)}",
                "Group them for the sources that the candidates have",
            )
        tables: list[Table | None] = [None] * self.tables
        for group in self.groups:
            table = tables[group.table]
            if table is None:
                table = tables[group.table] = tabulate(candidates, group.plan)
            if len(table.rows):
                yield group, table


def ranks_of(
    candidates: Candidates,
    fusions: Batch | Sequence[FusionPlan],
    rows: Sequence[int] | Ints,
    *,
    documents: bool = False,
    cutoff: int | None = None,
    texts: NDArray[np.uint64] | None = None,
) -> Ints:
    """The rank that each of some rows has under each plan.

    Args:
        candidates: Candidates after depth and threshold.
        fusions: p plans; a `Batch` where the same plans meet many queries.
        rows: t row numbers, as a rule the judged ones.
        documents: Count ranks in documents, each standing at its best row, whatever the plan's unit: the list that is
            left when only the first row of each document stays in the fused one.
        cutoff: Ranks beyond it do not matter (10 for nDCG@10); much quicker where it is small.
        texts: As in `prepare`.

    Returns:
        int64 (p, t), from 1; 0 where no source retrieved the row (its document, where documents are counted), its text is
        that of a row before it, or it stands beyond the cutoff.

    Raises:
        PlanError, UsageError: As `fuse` and `prepare`.
    """
    batch = _batch(candidates, fusions)
    wanted = np.asarray(rows, dtype=np.int64)
    result = np.zeros((batch.size, len(wanted)), np.int64)
    for group, table in batch.met(candidates):
        ready = prepare(candidates, group.plan, wanted, documents=documents, cutoff=cutoff, texts=texts, table=table)
        if len(ready.known):
            for block, ranks in _ranks(ready, group):
                result[np.ix_(block, ready.known)] = ranks
    if cutoff is not None:
        result[result > cutoff] = 0
    return result


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """One query's candidates made ready for plans that differ in k, rank_base, weights and alpha only.

    Attributes:
        method: Of the plans.
        evidence: One a source, on the items that can matter, in the order that settles ties.
        wanted: How many rows were asked for.
        known: int64, which of them have an item.
        targets: int64, aligned with `known`: the item, or the document's code where `codes` is given.
        codes: int64 (items,) or None: the document of each item, numbered from 0 without gaps.
        same: Groups of items with one text, rising.
        cutoff: Ranks beyond it are 0.
    """

    method: str
    evidence: tuple[Evidence, ...]
    wanted: int
    known: Ints
    targets: Ints
    codes: Ints | None
    same: tuple[Ints, ...]
    cutoff: int | None

    @property
    def items(self) -> int:
        """How many items are left."""
        return len(self.evidence[0].rank) if self.evidence else 0

    def ranks(self, fusion: FusionPlan) -> Ints:
        """Ranks of the wanted rows under one plan, int64 (t,), as `ranks_of` gives them."""
        result = np.zeros(self.wanted, np.int64)
        if len(self.known):
            weights = tuple(fusion.weight(e.source) for e in self.evidence)
            numbers = Parameters(float(fusion.k), float(fusion.rank_base), float(fusion.alpha), weights)
            result[self.known] = self.places(exact_sum(contributions(self.evidence, self.method, numbers))[None, :])[0]
            if self.cutoff is not None:
                result[result > self.cutoff] = 0
        return result

    def places(self, scores: Floats) -> Ints:
        """Ranks of `targets` for scores float64 (p, items), which are changed; int64 (p, targets)."""
        for group in self.same:
            best = np.argmax(scores[:, group], axis=1)  # the first of equal ones: it settles ties
            kept = scores[np.arange(len(scores)), group[best]]
            scores[:, group] = -np.inf
            scores[np.arange(len(scores)), group[best]] = kept
        if self.codes is not None:
            return document_ranks_in(scores, self.codes, self.targets)
        ranks = ranks_in(scores, self.targets)
        if self.same:
            ranks[scores[:, self.targets] == -np.inf] = 0
        return ranks


def prepare(
    candidates: Candidates,
    fusion: FusionPlan,
    rows: Sequence[int] | Ints,
    *,
    documents: bool = False,
    cutoff: int | None = None,
    texts: NDArray[np.uint64] | None = None,
    table: Table | None = None,
) -> Ready:
    """Make candidates ready for plans like this one.

    Args:
        candidates: Candidates after depth and threshold.
        fusion: One of the plans, checked.
        rows: t row numbers.
        documents, cutoff: As in `ranks_of`.
        texts: uint64 (n,), equal where the rows' texts are equal; only the first row of a text stays in the fused list.
            None keeps all.
        table: `tabulate(candidates, fusion)` where it is there already.

    Raises:
        UsageError: Texts were given for a plan that ranks documents: which row shows a document depends on its weights.
    """
    if texts is not None and fusion.unit == "document":
        raise UsageError("Documents are not compared by their text", "Leave texts out for plans with unit document")
    table = tabulate(candidates, fusion) if table is None else table
    wanted = np.asarray(rows, np.int64)
    ties = tie_order(table.coverage)
    collapse = documents and fusion.unit == "chunk"
    codes = document_codes(tuple([candidates.document_ids[r] for r in table.rows.tolist()])) if collapse else None
    if documents or fusion.unit == "document":
        targets = _of_documents(candidates, table, codes, wanted)
    else:
        targets = _of_rows(table, wanted)
    if codes is not None and (not len(codes) or int(codes.max()) + 1 == len(codes)):
        codes = None  # one row a document: a document's code is its item
    own = None if codes is None else codes[ties]
    keys = None if texts is None else texts[table.rows][ties]
    evidence = _permuted(table.evidence, ties)
    kept = _contenders(evidence, fusion.method, cutoff, own, keys)
    if len(kept) < len(ties):
        evidence = _permuted(evidence, kept)
    place = np.full(len(ties), -1, np.int64)
    if own is None:
        place[ties[kept]] = np.arange(len(kept))
    else:
        left, own = np.unique(own[kept], return_inverse=True)
        place[left] = np.arange(len(left))
    targets = np.where(targets >= 0, place[targets], -1) if len(place) else targets
    known = np.flatnonzero(targets >= 0)
    same = () if keys is None else _alike(keys[kept])
    return Ready(fusion.method, tuple(evidence), len(wanted), known, targets[known], own, same, cutoff)


def _alike(keys: NDArray[np.uint64]) -> tuple[Ints, ...]:
    """Positions of equal keys, for each key that stands there more than once."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order])) + 1
    return tuple(np.sort(part) for part in np.split(order, starts) if len(part) > 1)


def top_of(candidates: Candidates, fusions: Batch | Sequence[FusionPlan], top: int) -> Ints:
    """The first rows under each plan.

    Args:
        candidates: Candidates after depth and threshold.
        fusions: p plans; a `Batch` where the same plans meet many queries.
        top: How many, at least 1.

    Returns:
        int64 (p, top), rows best first, -1 after the list's end. Under unit `document` a document is given by the first of
        its retrieved rows, which need not be the one that `fuse` shows.

    Raises:
        PlanError, UsageError: As `fuse`.
    """
    batch = _batch(candidates, fusions)
    result = np.full((batch.size, top), -1, np.int64)
    for group, table in batch.met(candidates):
        for part, scores in _scores(table.evidence, group, len(table.rows)):
            for at, line in zip(group.members[part].tolist(), scores, strict=True):
                first = table.rows[best_first(line, table.coverage, top)]
                result[at, : len(first)] = first
    return result


def _batch(candidates: Candidates, fusions: Batch | Sequence[FusionPlan]) -> Batch:
    return fusions if isinstance(fusions, Batch) else Batch(fusions, [c.source for c in candidates.columns])


def _reads(fusion: FusionPlan, sources: Sequence[str]) -> tuple[object, ...]:
    """What of a plan decides its table."""
    scores = () if fusion.method in RANK_METHODS else (fusion.missing, *(fusion.normalisation(s) for s in sources))
    return scores, fusion.unit, fusion.renumber


def _columns(values: Sequence[float]) -> Floats:
    return np.asarray(values, np.float64)[:, None]


def _ranks(ready: Ready, group: _Group) -> Iterator[tuple[Ints, Ints]]:
    """Ranks of the targets in blocks of plans: positions int64 (b,), and ranks int64 (b, targets)."""
    plain = ready.codes is None and not ready.same
    lone = told_apart(ready.evidence) if plain and group.plan.method in RANK_METHODS else None
    left = np.arange(len(group.members))
    if lone is not None:
        none = without_weight(group.weights)
        full = [left[none]]
        for part in _blocks(left[~none], max(len(lone.shared), len(ready.targets))):
            ranks, right = lone.ranks(group.numbers(part), ready.targets)
            yield group.members[part[right]], ranks[right]
            full.append(part[~right])
        left = np.concatenate(full)
    if plain and len(left) >= MANY_PLANS and len(ready.targets) < MANY_TARGETS:
        numbers = group.numbers(left)
        yield group.members[left], ranks_of_many(ready.evidence, group.plan.method, numbers, ready.targets)
        return
    for part, scores in _scores(ready.evidence, group, ready.items, left):
        yield group.members[part], ready.places(scores)


def _blocks(places: Ints, items: int) -> Iterator[Ints]:
    """Places of plans, so many at a time that a matrix with so many items stays small."""
    size = max(1, _BLOCK // max(items, 1))
    for start in range(0, len(places), size):
        yield places[start : start + size]


def _scores(
    evidence: Sequence[Evidence], group: _Group, items: int, places: Ints | None = None
) -> Iterator[tuple[Ints, Floats]]:
    """Fused scores in blocks of a group's plans, or of some of them: their places in the group, int64 (b,), and scores
    float64 (b, items).
    """
    for part in _blocks(np.arange(len(group.members)) if places is None else places, items):
        yield part, exact_sum(contributions(evidence, group.plan.method, group.numbers(part)))


def _permuted(evidence: Sequence[Evidence], order: Ints) -> list[Evidence]:
    return [
        Evidence(e.source, e.kind, e.rank[order], e.record[order], e.value[order], e.scored[order]) for e in evidence
    ]


def _contenders(
    evidence: Sequence[Evidence],
    method: str,
    cutoff: int | None,
    codes: Ints | None = None,
    keys: NDArray[np.uint64] | None = None,
) -> Ints:
    """Items that may be among the first `cutoff` under some weights; items stand in the order that settles ties.

    An item is out where at least `cutoff` others settle ties before it and are at least as good in every source: adding up
    shares with weights of 0 or more keeps them ahead, roundings included, since each rounding keeps order. Where documents
    are counted (`codes`), the others must be of as many other documents; where equal texts are dropped (`keys`), none of them
    may be one that could be dropped. The others are looked for among a few good all-rounders only, so that some items stay
    that need not.
    """
    items = len(evidence[0].rank) if evidence else 0
    if cutoff is None or method not in _ADDITIVE or items <= 4 * cutoff:
        return np.arange(items)
    ranks = [np.where(e.rank > 0, e.rank, items + 1) for e in evidence]
    order = np.argsort(sum(ranks), kind="stable")
    if keys is not None:
        _, place, number = np.unique(keys, return_inverse=True, return_counts=True)
        order = order[number[place][order] == 1]
    if codes is not None:
        order = first_of_each(codes, order)
    good = np.sort(order[: 8 * cutoff])
    ahead = good[:, None] < np.arange(items)
    if codes is not None:
        ahead &= codes[good, None] != codes
    for e, rank in zip(evidence, ranks, strict=True):
        strength = -rank if method in RANK_METHODS else e.value
        ahead &= strength[good, None] >= strength
    return np.flatnonzero(np.count_nonzero(ahead, axis=0) < cutoff)


def _of_rows(table: Table, rows: Ints) -> Ints:
    """The item of each row, -1 where it has none."""
    at = np.minimum(np.searchsorted(table.rows, rows), len(table.rows) - 1)
    return np.where(table.rows[at] == rows, at, -1)


def _of_documents(candidates: Candidates, table: Table, codes: Ints | None, rows: Ints) -> Ints:
    """The code of each row's document (by default the item's number), -1 where no row of it was retrieved."""
    numbers = range(len(table.rows)) if codes is None else codes.tolist()
    known = dict(zip((candidates.document_ids[r] for r in table.rows.tolist()), numbers, strict=True))
    return np.array([known.get(candidates.document_ids[r], -1) for r in rows.tolist()], np.int64)
