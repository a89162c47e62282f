"""Ranges of a sweep: what can be walked, and whole numbers for fields that take no others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.errors import PlanError, UsageError
from workbench.evaluate.grid import Range, Space, read_space


@pytest.mark.parametrize("word", ["limit=1..20", "depth.vector=10..1000~", "depth.keyword=1.5..7.5"])
def test_fields_of_whole_numbers_get_whole_numbers(word: str) -> None:
    space = read_space("default", [word])
    (name,) = space.fields
    low, high = space.grid[name].low, space.grid[name].high  # type: ignore[union-attr]
    values = space.listed(name)
    assert list(values) == sorted(set(values))
    assert all(isinstance(v, int) and low <= v <= high for v in values)
    drawn = [c[name] for c in space.drawn(30, 0)]
    assert all(isinstance(v, int) and low <= v <= high for v in drawn)
    assert len(set(drawn)) > 3
    assert space.plan({name: drawn[0]})[name] == drawn[0]


def test_fields_of_any_numbers_keep_them() -> None:
    """A field that takes 0.5 is drawn between whole numbers, also where the ends of its range are whole."""
    space = read_space("rrf", ["fusion.k=1..100", "fusion.weights.vector=0..1"])
    assert any(not float(c["fusion.k"]).is_integer() for c in space.drawn(10, 0))
    assert space.listed("fusion.weights.vector") == tuple(round(float(v), 12) for v in np.linspace(0, 1, 11))


@pytest.mark.parametrize(
    "ends", [(0, math.inf), (math.nan, 1), (2, 1), (0, 1, math.nan), (0, 1, 0), (0, 1, None, True)]
)
def test_a_range_that_cannot_be_walked_is_refused(ends: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="cannot be walked"):
        Range(*ends)  # type: ignore[arg-type]


def test_a_range_of_too_many_steps_is_refused_before_it_is_made() -> None:
    with pytest.raises(UsageError, match="more than 100,000 values"):
        read_space("default", ["fusion.alpha=0..1:0.00000001"])


@pytest.mark.parametrize("word", ["fusion.k=1.2.3..5", "fusion.k=1..5..9", "fusion.k=.....", "fusion.k=1..x"])
def test_what_looks_like_a_range_and_is_none_is_a_sentence(word: str) -> None:
    with pytest.raises(PlanError, match=r"fusion\.k is"):
        read_space("rrf", [word])


def test_ends_may_be_written_as_people_write_numbers() -> None:
    assert read_space("default", ["fusion.alpha=.25...75:.25"]).listed("fusion.alpha") == (0.25, 0.5, 0.75)
    assert read_space("rrf", ["fusion.k=1..1e3~"]).grid["fusion.k"] == Range(1, 1000, None, True)
    assert isinstance(Space("rrf", {"fusion.k": Range(1, 60)}).grid["fusion.k"], Range)
