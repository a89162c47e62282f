"""Waiting between attempts: exponential backoff with jitter."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def waiting_times(first: float = 2.0, factor: float = 2.0, longest: float = 300.0, attempts: int = 12) -> list[float]:
    """Seconds before each attempt, without jitter."""
    return [min(first * factor**n, longest) for n in range(attempts)]


def call_with_retry(call: Callable[[], T], *, attempts: int = 12, jitter: float = 0.25) -> T:
    """Call until it works; the last error is raised when every attempt failed."""
    times = waiting_times(attempts=attempts)
    for number, seconds in enumerate(times, 1):
        try:
            return call()
        except ConnectionError:
            if number == len(times):
                raise
            time.sleep(seconds * (1 + random.uniform(-jitter, jitter)))
    raise AssertionError("unreachable")


class IdempotencyKey:
    """Makes a request safe to send twice: the server keeps the first and answers the second from memory."""

    def __init__(self, gauge: str, minute: int) -> None:
        self.value = f"{gauge}-{minute}"
