"""Spans that lie over each other, made one: what several words, patterns or sources mark in the same text."""

from __future__ import annotations

from collections.abc import Iterable


def joined(spans: Iterable[tuple[int, int]], *, touching: bool = False) -> list[tuple[int, int]]:
    """The spans in order, overlapping ones as one.

    Args:
        spans: Start (included) and end (excluded) each, in any order.
        touching: Whether spans that only touch are one, too.
    """
    made: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if made and (start < made[-1][1] or (touching and start == made[-1][1])):
            made[-1] = (made[-1][0], max(made[-1][1], end))
        else:
            made.append((start, end))
    return made
