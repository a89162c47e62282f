"""Spans made one where they lie over each other."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from workbench.store.overlaps import joined

SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)).map(lambda s: (s[0], s[0] + s[1])), max_size=12)


@given(SPANS, st.booleans())
def test_joined_spans_cover_the_same_places_and_lie_apart(spans: list[tuple[int, int]], touching: bool) -> None:
    """Every place that was marked stays marked, no other is, and no two of the spans could be joined further."""
    made = joined(spans, touching=touching)
    assert {p for a, b in made for p in range(a, b)} == {p for a, b in spans for p in range(a, b)}
    for (_, end), (start, _) in pairwise(made):
        assert end < start if touching else end <= start
    assert made == joined(reversed(spans), touching=touching) == joined(made, touching=touching)


def test_spans_that_only_touch_are_one_where_asked() -> None:
    """Two words side by side are two marks; what is shown as one mark is one."""
    assert joined([(3, 5), (0, 3)]) == [(0, 3), (3, 5)]
    assert joined([(3, 5), (0, 3)], touching=True) == [(0, 5)]
