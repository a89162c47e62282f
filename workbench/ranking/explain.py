"""Where one candidate stands in each source, and why a source gave it nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from workbench.ranking.candidates import Candidates
from workbench.ranking.fuse import Fused
from workbench.records import Kind


class State(StrEnum):
    """What became of a row in one source."""

    RETRIEVED = "retrieved"
    BEYOND_DEPTH = "beyond the depth"
    CUT = "at or beyond the threshold"
    NOT_RETRIEVED = "not retrieved"


@dataclass(frozen=True, slots=True)
class Standing:
    """One source's word on one row.

    Attributes:
        source, kind: Which source.
        state: What became of the row there.
        rank: Rank from 1 before depth and threshold; 0 where it was not retrieved.
        score: Raw score, None where it was not retrieved.
        computed: Raw score whether retrieved or not, None where the source cannot compute.
        cut: Whether the row's distance is at or beyond the threshold; true of rows that were not retrieved too.
        position: Rank of the row's item in the fused list, from 1; 0 where it is not there.
        counted_rank: The rank that fusion counted for the item, 0 where it counted none.
        counted_row: The row that counted (under unit `document` perhaps another one of the document), -1 where none did.
        normalised: The item's normalised score, missing ones filled; None where the source gave none, or the method
            reads ranks.
        contribution: What the source added to the item's score; 0 where the item is not in the fused list.
    """

    source: str
    kind: Kind
    state: State
    rank: int
    score: float | None
    computed: float | None
    cut: bool
    position: int
    counted_rank: int
    counted_row: int
    normalised: float | None
    contribution: float


def standings(before: Candidates, fused: Fused, row: int) -> tuple[Standing, ...]:
    """Where a row stands, one record a source, sources sorted by name.

    Args:
        before: The candidates before depth and threshold, over the same rows as `fused.candidates`.
        fused: The fused list of the candidates after both.
        row: Row number in both.
    """
    position = fused.position(row)
    return tuple(
        _standing(before, fused, row, position, column.source)
        for column in sorted(fused.candidates.columns, key=lambda c: c.source)
    )


def _standing(before: Candidates, fused: Fused, row: int, position: int, source: str) -> Standing:
    first, last = before.column(source), fused.candidates.column(source)
    rank, cut, at = int(first.rank[row]), bool(last.cut[row]), position - 1
    if rank == 0:
        state = State.NOT_RETRIEVED
    elif last.rank[row] == 0:
        state = State.BEYOND_DEPTH
    else:
        state = State.CUT if cut else State.RETRIEVED
    known = position > 0 and source in fused.contributions
    return Standing(
        source=source,
        kind=first.kind,
        state=state,
        rank=rank,
        score=_number(first.score[row]),
        computed=_number(first.computed[row]),
        cut=cut,
        position=position,
        counted_rank=int(fused.ranks[source][at]) if known else 0,
        counted_row=int(fused.records[source][at]) if known else -1,
        normalised=_number(fused.normalised[source][at]) if known else None,
        contribution=float(fused.contributions[source][at]) if known else 0.0,
    )


def _number(value: float) -> float | None:
    return None if value != value else float(value)
