"""Taking times: contestants in turn on each input, so that what slows the machine down slows all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from bench.figures import Figure

T = TypeVar("T")


def in_turn(
    contestants: Mapping[str, Callable[[T], object]], inputs: Sequence[T], rounds: int = 3, warm: int | None = None
) -> dict[str, Figure]:
    """Milliseconds of each contestant over all inputs.

    Args:
        contestants: Name to function; for each input they run in this order, A B A B.
        inputs: What each is called with.
        rounds: How often all inputs are gone through.
        warm: How many inputs each runs before the clock starts; None is all of them.
    """
    for value in inputs[: len(inputs) if warm is None else warm]:
        for run in contestants.values():
            run(value)
    samples = {name: np.zeros((rounds, len(inputs))) for name in contestants}
    for turn in range(rounds):
        for position, value in enumerate(inputs):
            for name, run in contestants.items():
                samples[name][turn, position] = milliseconds(run, value)
    return {name: Figure.of(taken) for name, taken in samples.items()}  # type: ignore[arg-type]


def milliseconds(run: Callable[[T], object], value: T) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    run(value)
    return (time.perf_counter() - started) * 1000.0
