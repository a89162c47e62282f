"""How wide a walk through the graph is, and when a second one follows."""

from __future__ import annotations

import math

import pytest

from workbench.store.vectors.graph import NARROW, WIDEST, GraphFacts, first_width, second_width

FACTS = GraphFacts(far=0.46, doubling=0.05)


def test_the_first_walk_is_as_wide_as_the_wanted_rows_need() -> None:
    """A fixed width for 100 rows or fewer, and in proportion above."""
    assert first_width(1) == first_width(100) == NARROW
    assert first_width(500) == 5 * NARROW


@pytest.mark.parametrize(
    ("last", "width"),
    [
        (0.9, None),
        (0.46, None),
        (0.44, None),
        (0.41, 2 * NARROW),
        (0.36, 4 * NARROW),
        (0.0, WIDEST),
        (-math.inf, WIDEST),
    ],
)
def test_the_second_walk_doubles_with_the_distance_from_the_data(last: float, width: int | None) -> None:
    """None where the answer is as near as usual; doubled at each step below; never wider than the bound."""
    assert second_width(100, last, FACTS) == width
