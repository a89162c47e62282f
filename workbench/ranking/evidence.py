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

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.errors import UsageError
from workbench.plan.fields import FusionPlan
from workbench.ranking.candidates import Bools, Column, Floats, Ints
from workbench.ranking.cutting import counted, first_of_each, renumbered
from workbench.ranking.normalise import Lists, normalise
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
        query: int64 (m,), rising, the query of each item.
        evidence: One a source.
        coverage: int64 (m,), number of sources that retrieved the item.
    """

    rows: Ints
    alive: Ints
    codes: Ints
    query: Ints
    evidence: tuple[Evidence, ...]
    coverage: Ints


def tabulate(
    columns: Sequence[Column],
    fusion: FusionPlan,
    documents: Ints | None = None,
    query: Ints | None = None,
    queries: int = 1,
) -> Table:
    """Evidence for a plan's method, normalisations, missing scores and unit; k, weights and alpha do not matter.

    Args:
        columns: One a source, on n rows: of one query, or of several end to end.
        fusion: The plan.
        documents: int64 (n,), each row's document, another one in each query; read for unit `document` only.
        query: int64 (n,), rising, each row's query; None is one query.
        queries: How many queries.

    Raises:
        UsageError: A retrieved row without a finite score.
        PlanError: An unknown normalisation.
    """
    columns = sorted(columns, key=lambda c: c.source)
    alive = np.flatnonzero(np.logical_or.reduce([c.retrieved for c in columns])) if columns else np.zeros(0, np.int64)
    owner = np.zeros(len(alive), np.int64) if query is None else query[alive]
    codes, rows = np.arange(len(alive)), alive
    if fusion.unit == "document":
        if documents is None:
            raise UsageError("Documents are ranked, and the rows' documents are not given", "Pass them")
        codes = renumbered(documents[alive])
        rows = alive[np.unique(codes, return_index=True)[1]]
    of_item = np.zeros(len(rows), np.int64)
    of_item[codes] = owner
    table = Table(rows, alive, codes, of_item, (), np.zeros(len(rows), np.int64))
    evidence = tuple(_evidence(column, table, owner, queries, fusion) for column in columns)
    for e in evidence:
        table.coverage[e.rank > 0] += 1
    return replace(table, evidence=evidence)


def _evidence(column: Column, table: Table, query: Ints, queries: int, fusion: FusionPlan) -> Evidence:
    """What a source says of the items of a table; `query` int64 (a,) is that of each alive row, and there are `queries`."""
    alive, codes, items = table.alive, table.codes, len(table.rows)
    raw_rank, cut, hit = column.rank[alive], column.cut[alive], column.retrieved[alive]
    places = np.flatnonzero(hit)  # this source's lists, as positions in `alive`
    scores = column.counting[alive[places]]
    if column.adapted is not None:
        order = places[np.lexsort((places, -scores, query[places]))]
        raw_rank[order] = counted(query[order])
    ranks = raw_rank[places]
    if not np.isfinite(scores).all():
        raise UsageError(
            f"The source {column.source} ranks a row without a finite score",
            "Give every ranked row a number as its score",
        )
    best = places  # the record of each item that counts
    if fusion.unit == "document":
        best = first_of_each(codes, places[np.lexsort((ranks, query[places]))])
    rank, record = np.zeros(items, np.int64), np.full(items, -1, np.int64)
    collapsed = fusion.unit == "document" and fusion.renumber
    rank[codes[best]] = counted(query[best]) if collapsed else raw_rank[best]
    record[codes[best]] = alive[best]
    value, scored = np.zeros(items), rank > 0
    if fusion.method not in RANK_METHODS and len(places):
        listed = best if collapsed else places
        ranks, scores = (rank[codes[best]] if collapsed else ranks), column.counting[alive[listed]]
        lists = Lists(scores, ranks, query[listed], queries, column.kind)
        normalised, mapped = normalise(fusion.normalisation(column.source), lists)
        # Where every record is in the list, a document takes the value of its best one.
        of_row = np.zeros(len(alive))
        of_row[listed] = normalised
        value[codes[best]] = of_row[best]
        says = ~np.isnan(lists.high)[table.query]  # a source with an empty list says nothing
        if fusion.missing == "floor":
            barred = np.ones(items, bool)
            barred[codes[~cut]] = False  # an item is cut where all of its rows are
            missing = ~scored & ~barred & says
            value[missing] = lists.each(np.minimum, normalised)[table.query[missing]]
            scored = scored | missing
        elif fusion.missing == "computed":
            every = column.computed if column.adapted is None else column.adapted
            found, best_score = _computed(every[alive], ~cut, codes, ~scored & says)
            value[found] = mapped(best_score, table.query[found])
            scored[found] = True
    return Evidence(column.source, column.kind, rank, record, value, scored)


def _computed(computed: Floats, kept: Bools, codes: Ints, missing: Bools) -> tuple[Ints, Floats]:
    """Items without a retrieved record that have a computed score, and the best one among their rows."""
    rows = np.flatnonzero(missing[codes] & kept & ~np.isnan(computed))
    best = np.full(len(missing), -np.inf)
    np.maximum.at(best, codes[rows], computed[rows])
    items = np.flatnonzero(best > -np.inf)
    return items, best[items]
