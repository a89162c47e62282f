"""The cheapest way to cut a sequence of pieces into runs that fit a budget.

Cutting greedily fills the first chunks and leaves a crumb at the end, and cuts wherever the budget happens to run out.
Here each possible cut has a price (low between paragraphs, high inside a code block) and each run a price for being
short, and dynamic programming finds the cut with the lowest sum: the method by which Knuth and Plass break paragraphs into
lines (Software: Practice and Experience 11, 1981). Equal sums are settled in favour of the longer last run, so the result
is one and the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_EACH = 3.0
_SHORT = 6.0


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of characters that is not cut any further.

    Attributes:
        start, end: Character offsets; pieces follow each other without gaps.
        tokens: Length in tokens, at least 0.
        cost: Price of a cut before this piece.
    """

    start: int
    end: int
    tokens: int
    cost: float


def cheapest_cut(pieces: Sequence[Piece], limit: int) -> list[tuple[int, int]]:
    """Cut pieces into runs of at most `limit` tokens; a piece longer than that is a run of its own.

    Args:
        pieces: In order.
        limit: Most tokens of a run, at least 1.

    Returns:
        (first, end) indexes of the runs, in order, `end` excluded; together they are all pieces.
    """
    count = len(pieces)
    costs = [piece.cost for piece in pieces]
    sums = [0]
    for piece in pieces:
        sums.append(sums[-1] + piece.tokens)
    best = [0.0] * (count + 1)
    came = [0] * (count + 1)
    for end in range(1, count + 1):
        total = sums[end]
        lowest, chosen = float("inf"), end - 1
        for first in range(end - 1, -1, -1):
            length = total - sums[first]
            if length > limit and first < end - 1:
                break
            missing = 1.0 - length / limit if length < limit else 0.0
            price = best[first] + (costs[first] if first else 0.0) + _EACH + _SHORT * missing * missing
            if price <= lowest:
                lowest, chosen = price, first
        best[end], came[end] = lowest, chosen
    runs: list[tuple[int, int]] = []
    end = count
    while end:
        runs.append((came[end], end))
        end = came[end]
    runs.reverse()
    return runs


def coarsen(pieces: Sequence[Piece], smallest: int, cheap: float) -> list[Piece]:
    """Join neighbours up to `smallest` tokens unless the cut between them is `cheap` or cheaper: fewer pieces to weigh."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and piece.cost > cheap and last.tokens + piece.tokens <= smallest:
            joined[-1] = Piece(last.start, piece.end, last.tokens + piece.tokens, last.cost)
        else:
            joined.append(piece)
    return joined
