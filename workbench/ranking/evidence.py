"""What each source says of each item that fusion ranks, before any weight: the part that many plans share.

An item is a row (unit `chunk`) or a document (unit `document`). Items are the ones that at least one source retrieved
after depth and threshold; rows that no source retrieved play no part, so that cutting deeper candidates gives the same
bits as a shallower search.

Unit `document`: in each source only a document's best-ranked record counts. With `renumber` its list is then the list of
documents: ranks are counted in documents and normalisations are fitted on the documents' best scores; without it a record
keeps its raw position, and normalisations are fitted on the raw list. A document that a source did not retrieve has as
computed score the best one among its rows that some source retrieved and this one did not cut.

A missing score (the source did not retrieve the item, and did not cut it) is filled as `fusion.missing` says: `computed`,
the computed score through the list's normalisation, 0 where the source cannot compute; `zero`, 0; `floor`, the lowest
normalised score of the source's list. A source with an empty list says nothing of any item.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import UsageError
from workbench.plan.fusion import FusionPlan
from workbench.ranking.candidates import Bools, Candidates, Column, Floats, Ints
from workbench.ranking.cutting import document_codes, first_of_each, retrieved_rows
from workbench.ranking.normalise import Map, normalise
from workbench.records import Kind

RANK_METHODS = frozenset({"rrf"})  # methods that read ranks and no scores


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """One source's word on the m items.

    Attributes:
        source, kind: Which source.
        rank: int64 (m,), rank that counts, from 1; 0 where the source did not retrieve the item, or cut it.
        record: int64 (m,), row whose rank and score count; -1 where rank is 0.
        value: float64 (m,), normalised score, missing ones filled; 0 where `scored` is False; all 0 for rank methods.
        scored: bool (m,), whether the source gives the item a score: retrieved, or filled from `computed` or `floor`.
    """

    source: str
    kind: Kind
    rank: Ints
    record: Ints
    value: Floats
    scored: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Every source's evidence on the same m items, sources sorted by name.

    Attributes:
        rows: int64 (m,), rising: the item's row; for a document the first of its rows.
        alive: int64 (a,), rising: every row that some source retrieved.
        codes: int64 (a,), the item of each of these rows.
        evidence: One a source.
        coverage: int64 (m,), number of sources that retrieved the item.
    """

    rows: Ints
    alive: Ints
    codes: Ints
    evidence: tuple[Evidence, ...]
    coverage: Ints


def tabulate(candidates: Candidates, fusion: FusionPlan) -> Table:
    """Evidence for a plan's method, normalisations, missing scores and unit; k, weights and alpha do not matter.

    Raises:
        UsageError: A retrieved row without a finite score.
        PlanError: An unknown normalisation.
    """
    alive = retrieved_rows(candidates)
    if fusion.unit == "document":
        codes = document_codes(tuple(candidates.document_ids[r] for r in alive.tolist()))
        items = int(codes.max()) + 1 if len(codes) else 0
        rows = alive[np.unique(codes, return_index=True)[1]]
    else:
        codes, items, rows = np.arange(len(alive)), len(alive), alive
    evidence = tuple(
        _evidence(column, alive, codes, items, fusion) for column in sorted(candidates.columns, key=lambda c: c.source)
    )
    coverage = np.zeros(items, np.int64)
    for e in evidence:
        coverage += e.rank > 0
    return Table(rows, alive, codes, evidence, coverage)


def _evidence(column: Column, alive: Ints, codes: Ints, items: int, fusion: FusionPlan) -> Evidence:
    raw_rank, cut, hit = column.rank[alive], column.cut[alive], column.retrieved[alive]
    places = np.flatnonzero(hit)  # this source's list, as positions in `alive`
    ranks, scores = raw_rank[places], column.score[alive[places]]
    if not np.isfinite(scores).all():
        raise UsageError(
            f"The source {column.source} ranks a row without a finite score",
            "Give every ranked row a number as its score",
        )
    best = places  # the record of each item that counts
    if fusion.unit == "document":
        best = first_of_each(codes, places[np.argsort(ranks, kind="stable")])
    rank, record = np.zeros(items, np.int64), np.full(items, -1, np.int64)
    collapsed = fusion.unit == "document" and fusion.renumber
    rank[codes[best]] = np.arange(1, len(best) + 1) if collapsed else raw_rank[best]
    record[codes[best]] = alive[best]
    value, scored = np.zeros(items), rank > 0
    if fusion.method not in RANK_METHODS and len(places):
        if collapsed:
            ranks, scores = rank[codes[best]], column.score[alive[best]]
        normalised, mapped = normalise(fusion.normalisation(column.source), scores, ranks, column.kind)
        if fusion.unit == "document" and not collapsed:
            # Every record is in the list; the document takes the value of its best one.
            of_row = np.zeros(len(alive))
            of_row[places] = normalised
            value[codes[best]] = of_row[best]
        else:
            value[codes[best]] = normalised
        if fusion.missing == "floor":
            bar = np.ones(items, bool)
            bar[codes[~cut]] = False  # an item is cut where all of its rows are
            missing = ~scored & ~bar
            value[missing] = normalised.min()
            scored = scored | missing
        elif fusion.missing == "computed":
            found, filled = _computed(column.computed[alive], ~cut, codes, ~scored, mapped)
            value[found] = filled
            scored[found] = True
    return Evidence(column.source, column.kind, rank, record, value, scored)


def _computed(computed: Floats, kept: Bools, codes: Ints, missing: Bools, mapped: Map) -> tuple[Ints, Floats]:
    """Items without a retrieved record that have a computed score, and its normalised value."""
    rows = np.flatnonzero(missing[codes] & kept & ~np.isnan(computed))
    best = np.full(len(missing), -np.inf)
    np.maximum.at(best, codes[rows], computed[rows])
    items = np.flatnonzero(best > -np.inf)
    return items, mapped(best[items])
