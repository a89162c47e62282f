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

from workbench.errors import UsageError
from workbench.plan import FusionPlan
from workbench.ranking.candidates import Candidates, Floats, Ints
from workbench.ranking.cutting import document_codes
from workbench.ranking.evidence import RANK_METHODS, Evidence, Table, tabulate
from workbench.ranking.methods import Parameters, check, contributions
from workbench.ranking.order import best_first, tie_order
from workbench.ranking.summation import exact_sum

_BLOCK = 1 << 16  # scores of one block: half a megabyte
_MANY = 32  # from so many targets on, sorting the scores is quicker than comparing each target with all of them

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
) -> Ints:
    """The rank that each of some rows has under each plan.

    Args:
        candidates: Candidates after depth and threshold.
        fusions: p plans; a `Batch` where the same plans meet many queries.
        rows: t row numbers, as a rule the judged ones.
        documents: Count ranks in documents, each standing at its best row, whatever the plan's unit: the list that is
            left when only the first row of each document stays in the fused one.
        cutoff: Ranks beyond it do not matter (10 for nDCG@10); much quicker where it is small.

    Returns:
        int64 (p, t), from 1; 0 where no source retrieved the row (its document, where documents are counted), or it
        stands beyond the cutoff.

    Raises:
        PlanError, UsageError: As `fuse`.
    """
    batch = _batch(candidates, fusions)
    wanted = np.asarray(rows, dtype=np.int64)
    result = np.zeros((batch.size, len(wanted)), np.int64)
    for group, table in batch.met(candidates):
        ties = tie_order(table.coverage)
        collapse = documents and group.plan.unit == "chunk"
        codes = document_codes(tuple(candidates.document_ids[r] for r in table.rows.tolist())) if collapse else None
        if documents or group.plan.unit == "document":
            targets = _of_documents(candidates, table, codes, wanted)
        else:
            targets = _of_rows(table, wanted)
        evidence = _permuted(table.evidence, ties)
        if codes is None:
            kept = _contenders(evidence, group.plan.method, cutoff)
            place = np.full(len(ties), -1, np.int64)
            place[ties[kept]] = np.arange(len(kept))
            targets = np.where(targets >= 0, place[targets], -1)
            if len(kept) < len(ties):
                evidence = _permuted(evidence, kept)
        known = np.flatnonzero(targets >= 0)
        if not len(known):
            continue
        for block, scores in _scores(evidence, group, len(evidence[0].rank)):
            ranks = (
                _ranks(scores, targets[known])
                if codes is None
                else _document_ranks(scores, codes[ties], targets[known])
            )
            result[np.ix_(block, known)] = ranks
    if cutoff is not None:
        result[result > cutoff] = 0
    return result


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
        for block, scores in _scores(table.evidence, group, len(table.rows)):
            for at, line in zip(block.tolist(), scores, strict=True):
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


def _scores(evidence: Sequence[Evidence], group: _Group, items: int) -> Iterator[tuple[Ints, Floats]]:
    """Fused scores in blocks of plans: positions int64 (b,), and scores float64 (b, items)."""
    size = max(1, _BLOCK // items)
    for start in range(0, len(group.members), size):
        part = slice(start, start + size)
        parameters = Parameters(
            group.k[part], group.rank_base[part], group.alpha[part], tuple(w[part] for w in group.weights)
        )  # fmt: skip
        yield group.members[part], exact_sum(contributions(evidence, group.plan.method, parameters))


def _permuted(evidence: Sequence[Evidence], order: Ints) -> list[Evidence]:
    return [
        Evidence(e.source, e.kind, e.rank[order], e.record[order], e.value[order], e.scored[order]) for e in evidence
    ]


def _contenders(evidence: Sequence[Evidence], method: str, cutoff: int | None) -> Ints:
    """Items that may be among the first `cutoff` under some weights; items stand in the order that settles ties.

    An item is out where at least `cutoff` others settle ties before it and are at least as good in every source: adding up
    shares with weights of 0 or more keeps them ahead, roundings included, since each rounding keeps order. The others are
    looked for among a few good all-rounders only, so that some items stay that need not.
    """
    items = len(evidence[0].rank)
    if cutoff is None or method not in _ADDITIVE or items <= 4 * cutoff:
        return np.arange(items)
    ranks = [np.where(e.rank > 0, e.rank, items + 1) for e in evidence]
    good = np.sort(np.argsort(sum(ranks), kind="stable")[: 8 * cutoff])
    ahead = good[:, None] < np.arange(items)
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


def _ranks(scores: Floats, targets: Ints) -> Ints:
    """Ranks of columns (b, t), where columns stand in the order that settles ties."""
    if len(targets) >= _MANY:
        return _ranks_by_sorting(scores, targets)
    plans, items = scores.shape
    ranks = np.empty((plans, len(targets)), np.int64)
    ahead = np.zeros((plans, -(-items // 64) * 64), bool)  # a line is a whole number of 64-bit words
    for n, target in enumerate(targets.tolist()):
        mark = scores[:, target, None]
        np.greater_equal(scores[:, :target], mark, out=ahead[:, :target])
        np.greater(scores[:, target:], mark, out=ahead[:, target:items])
        words = np.packbits(ahead).view(np.uint64).reshape(plans, -1)
        ranks[:, n] = 1 + np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return ranks


def _ranks_by_sorting(scores: Floats, targets: Ints) -> Ints:
    own = scores[:, targets]
    ranks, tied = np.empty(own.shape, np.int64), np.empty(own.shape, bool)
    for line, marks, out, tie in zip(np.sort(scores, axis=1), own, ranks, tied, strict=True):
        upto = np.searchsorted(line, marks, side="right")
        out[:] = 1 + len(line) - upto
        tie[:] = (upto > 1) & (line[upto - 2] == marks)
    for n in np.flatnonzero(tied.any(axis=0)).tolist():
        lines = np.flatnonzero(tied[:, n])
        ranks[lines, n] += np.count_nonzero(scores[lines, : targets[n]] == own[lines, n, None], axis=1)
    return ranks


def _document_ranks(scores: Floats, codes: Ints, targets: Ints) -> Ints:
    """Ranks of documents (b, t) by their best column, where columns stand in the order that settles ties."""
    together = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[together], prepend=-1))
    best = np.maximum.reduceat(scores[:, together], starts, axis=1)  # (b, documents), documents by code
    # A document stands at its first column with its best score; ties between documents go by that column.
    at = np.where(scores == best[:, codes], np.arange(len(codes)), len(codes))
    place = np.minimum.reduceat(at[:, together], starts, axis=1)
    ranks = np.empty((len(scores), len(targets)), np.int64)
    for n, target in enumerate(targets.tolist()):
        mark, own = best[:, target, None], place[:, target, None]
        ranks[:, n] = 1 + np.count_nonzero((best > mark) | ((best == mark) & (place < own)), axis=1)
    return ranks
