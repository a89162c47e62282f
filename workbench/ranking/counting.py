"""Ranks without sorting into lists: for some columns of a matrix of scores, how many others stand above.

Columns stand in the order that settles ties, so of equal scores the first column is ahead. A score of minus infinity marks
what is not in the list.
"""

from __future__ import annotations

import numpy as np

from workbench.ranking.candidates import Floats, Ints

MANY_TARGETS = 32
"""From so many targets on, sorting the scores is quicker than comparing each target with all of them."""


def ranks_in(scores: Floats, targets: Ints) -> Ints:
    """Ranks of columns (b, t), where columns stand in the order that settles ties."""
    if len(targets) >= MANY_TARGETS:
        return _ranks_by_sorting(scores, targets)
    return 1 + ahead_of(scores, scores[:, targets], targets)


def ahead_of(scores: Floats, marks: Floats, places: Ints) -> Ints:
    """How many columns are ahead of each mark, int64 (b, t): before its place those at least as good, after it the better.

    Args:
        scores: float64 (b, m), columns in the order that settles ties.
        marks: float64 (b, t).
        places: int64 (t,), before which column each mark stands; a column that is the mark itself is not ahead of it.
    """
    plans, items = scores.shape
    counts = np.empty(marks.shape, np.int64)
    ahead = np.zeros((plans, -(-items // 64) * 64), bool)  # a line is a whole number of 64-bit words
    for n, place in enumerate(places.tolist()):
        mark = marks[:, n, None]
        np.greater_equal(scores[:, :place], mark, out=ahead[:, :place])
        np.greater(scores[:, place:], mark, out=ahead[:, place:items])
        words = np.packbits(ahead).view(np.uint64).reshape(plans, -1)
        counts[:, n] = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return counts


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


def document_ranks_in(scores: Floats, codes: Ints, targets: Ints) -> Ints:
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
        ranks[best[:, target] == -np.inf, n] = 0  # every row of it has the text of a better one
    return ranks
