"""Fusion: several rankings to one, exactly.

`fuse` is pure: the same candidates and plan give the same bits, whatever the order of the sources. It works in three steps
that others use apart: `evidence.tabulate` (normalised scores, missing ones filled, documents collapsed), `methods`
(contributions), and here the exact sum, the total order and the labels. A row that a source cut by its threshold gets 0
from that source whatever `fusion.missing` says.

`fuse` always fuses; handing a lone source's own list on is `passthrough`, and whether to do that is the pipeline's choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.errors import UsageError
from workbench.plan.fields import FusionPlan
from workbench.ranking.adapt import feedback
from workbench.ranking.candidates import Candidates, Floats, Ints
from workbench.ranking.cutting import document_codes
from workbench.ranking.evidence import Table, tabulate
from workbench.ranking.methods import Parameters, best_first, check, contributions, exact_sum
from workbench.records import FEEDBACK, Kind, Label

_LABELS = (Label.EXACT, Label.SEMANTIC, Label.HYBRID)
_FAR = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Fused:
    """One fused ranking of m items, best first; every array and tuple is aligned with `rows`.

    Attributes:
        candidates: What was fused; rows point into it.
        unit: `chunk` or `document`.
        rows: int64 (m,), the row shown for each item; for a document its best chunk.
        scores: float64 (m,), falling; each equal to `math.fsum` of the item's contributions.
        contributions: Source -> float64 (m,), what it added; sources sorted by name, then `feedback` where the plan has it.
        ranks: Source -> int64 (m,), the rank that counted, from 1; 0 where the source did not retrieve the item or cut it.
        records: Source -> int64 (m,), the row whose rank and score counted (for a document not always the row shown); -1
            where the rank is 0.
        normalised: Source -> float64 (m,), normalised score, missing ones filled; NaN where the source gave none, and
            everywhere for `rrf` and `passthrough`, which read none.
        coverage: int64 (m,), number of sources that retrieved the item.
        labels: Which kinds of source retrieved each item.
        chunk_ids, document_ids: Of `rows`.
    """

    candidates: Candidates
    unit: str
    rows: Ints
    scores: Floats
    contributions: Mapping[str, Floats]
    ranks: Mapping[str, Ints]
    records: Mapping[str, Ints]
    normalised: Mapping[str, Floats]
    coverage: Ints
    labels: tuple[Label, ...]
    chunk_ids: tuple[str, ...]
    document_ids: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def evidence(self, position: int) -> dict[str, tuple[int, int]]:
        """Source -> rank that counted and row whose rank it was, of the item at a position; only sources that retrieved it."""
        return {
            source: (int(ranks[position]), int(self.records[source][position]))
            for source, ranks in self.ranks.items()
            if ranks[position]
        }

    def position(self, row: int) -> int:
        """Rank from 1 of the item that a candidate row belongs to (its document under unit `document`); 0 if none."""
        if self.unit == "document":
            document = self.candidates.document_ids[row]
            return self.document_ids.index(document) + 1 if document in self.document_ids else 0
        found = np.flatnonzero(self.rows == row)
        return int(found[0]) + 1 if len(found) else 0


def fuse(candidates: Candidates | Mapping[str, Sequence[tuple[str, float]]], fusion: FusionPlan | None = None) -> Fused:
    """Fuse candidates by a fusion plan.

    Args:
        candidates: Candidates after depth and threshold; or plain rankings, source -> (id, score) pairs, best first.
        fusion: The plan; None is the fields' defaults: rrf, k 60, ranks from 1, weights 1.

    Returns:
        Every item that at least one source retrieved, in the total order: score down, number of sources down, row up
        (path, start line, chunk id; for a document its first row).

    Raises:
        PlanError: No fusion plan (a `Plan` has one: `plan.fusion`), a value outside its bounds, or `convex` with a source whose
            name is on neither side.
        UsageError: A source ranks a row twice, or without a finite score.
    """
    if not isinstance(candidates, Candidates):
        candidates = Candidates.from_rankings(candidates)
    plan = fusion or FusionPlan()
    check(plan, [c.source for c in candidates.columns])
    table = _tabulated(candidates, plan)
    weights = tuple(plan.weight(e.source) for e in table.evidence)
    numbers = Parameters(float(plan.k), float(plan.rank_base), float(plan.alpha), weights)
    # Adding 0.0 turns -0.0 (weight 0 times a negative score) into 0.0, which prints and compares as people expect.
    parts = [p + 0.0 for p in contributions(table.evidence, plan.method, numbers)]
    scores = exact_sum(parts) if parts else np.zeros(0)
    values = [
        np.where(e.scored, e.value, np.nan) if plan.method != "rrf" else np.full(len(e.rank), np.nan)
        for e in table.evidence
    ]
    rows = _shown(candidates, plan, table, parts)
    if plan.feedback_weight and candidates.vectors is not None and parts:
        parts.append(_fed_back(scores, table, candidates.vectors(rows), plan))
        scores = exact_sum(parts)
    return _fused(candidates, plan, table, rows, parts, values, scores, best_first(scores, table.coverage))


def passthrough(candidates: Candidates, source: str, fusion: FusionPlan | None = None) -> Fused:
    """One source's own list: its order, its own score as score and only contribution, labels by its kind.

    Args:
        candidates: Candidates after depth and threshold.
        source: The source; what others say is left out.
        fusion: Read for `unit`, `renumber` and `prefer`: under unit `document` one row a document stays, at its best rank.

    Raises UsageError: No such source, or a ranked row without a finite score.
    """
    columns = tuple(c for c in candidates.columns if c.source == source)
    if not columns:
        names = ", ".join(c.source for c in candidates.columns) or "none"
        raise UsageError(f"There is no source {source!r} among the candidates", f"The sources are {names}")
    plan = replace(fusion or FusionPlan(), method="rrf")
    check(plan)
    table = _tabulated(replace(candidates, columns=columns), plan)
    (evidence,) = table.evidence
    scores = columns[0].counting[evidence.record] + 0.0
    nothing = np.full(len(scores), np.nan)
    rows, order = _shown(candidates, plan, table, [scores]), np.argsort(evidence.rank, kind="stable")
    return _fused(candidates, plan, table, rows, [scores], [nothing], scores, order)


def _fed_back(scores: Floats, table: Table, vectors: Floats, plan: FusionPlan) -> Floats:
    order = np.argsort(-table.coverage, kind="stable")
    vectors, weight = vectors[order], np.array([plan.feedback_weight])
    added = np.empty(len(scores))
    added[order] = feedback(
        scores[order][None], lambda first: vectors[first].mean(axis=1) @ vectors.T, plan.feedback_top, weight
    )[0]
    return added


def _tabulated(candidates: Candidates, plan: FusionPlan) -> Table:
    documents = document_codes(candidates.document_ids) if plan.unit == "document" else None
    return tabulate(candidates.columns, plan, documents)


def _fused(
    candidates: Candidates, plan: FusionPlan, table: Table, rows: Ints, parts: list[Floats], values: list[Floats],
    scores: Floats, order: Ints,
) -> Fused:  # fmt: skip
    rows = rows[order]
    picked = rows.tolist()
    sources = [e.source for e in table.evidence]
    added = [*sources, FEEDBACK][: len(parts)]
    return Fused(
        candidates=candidates,
        unit=plan.unit,
        rows=rows,
        scores=scores[order],
        contributions=dict(zip(added, (p[order] for p in parts), strict=True)),
        ranks=dict(zip(sources, (e.rank[order] for e in table.evidence), strict=True)),
        records=dict(zip(sources, (e.record[order] for e in table.evidence), strict=True)),
        normalised=dict(zip(sources, (v[order] for v in values), strict=True)),
        coverage=table.coverage[order],
        labels=_labels(table, order),
        chunk_ids=tuple([candidates.chunk_ids[row] for row in picked]),
        document_ids=tuple([candidates.document_ids[row] for row in picked]),
    )


def _labels(table: Table, order: Ints) -> tuple[Label, ...]:
    lexical, semantic = np.zeros(len(order), bool), np.zeros(len(order), bool)
    for e in table.evidence:
        (lexical if e.kind is Kind.LEXICAL else semantic)[e.rank > 0] = True
    codes = np.where(lexical & semantic, 2, np.where(semantic, 1, 0))[order]
    return tuple([_LABELS[code] for code in codes.tolist()])


def _shown(candidates: Candidates, plan: FusionPlan, table: Table, parts: list[Floats]) -> Ints:
    """The row that stands for each item: itself, or for a document one of its rows.

    Of its retrieved rows: with `prefer` `chunk` a chunk before a whole-document record; then a row that counted in some
    source; then the one that added most; then the best rank in any source; then the first.
    """
    if plan.unit != "document":
        return table.rows
    alive = table.alive
    counted, nearest = np.zeros(len(alive), bool), np.full(len(alive), _FAR)
    added = [np.zeros(len(alive)) for _ in parts]
    for evidence, part, own in zip(table.evidence, parts, added, strict=True):
        items = np.flatnonzero(evidence.rank > 0)
        at = np.searchsorted(alive, evidence.record[items])
        counted[at] = True
        own[at] = part[items]
    for evidence in table.evidence:
        places = candidates.column(evidence.source).places[alive]
        nearest = np.minimum(nearest, np.where(places > 0, places, _FAR))
    whole = candidates.whole[alive] if plan.prefer == "chunk" else np.zeros(len(alive), bool)
    total = exact_sum(added) if added else np.zeros(len(alive))
    preference = np.lexsort((nearest, -total, ~counted, whole))
    shown = np.zeros(len(table.rows), np.int64)
    _, first = np.unique(table.codes[preference], return_index=True)
    shown[:] = alive[preference[first]]
    return shown
