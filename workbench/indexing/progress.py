"""Progress of one step: rate over the last half minute, and the time left at that rate."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from workbench.records import Progress

Tell = Callable[[Progress], None]

_EVERY_SECONDS = 0.1
_WINDOW_SECONDS = 30.0


class Meter:
    """Reports how far a step is, at most ten times a second, and always at its end.

    Args:
        tell: Who is told.
        step: Name of the step.
        total: Number of items.
        clock: Seconds; for tests.
    """

    def __init__(self, tell: Tell, step: str, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._step, self._total, self._clock = tell, step, total, clock
        self._done, self._work, self._all_work = 0, 0.0, 0.0
        self._last = float("-inf")
        self._marks: deque[tuple[float, int, float]] = deque([(clock(), 0, 0.0)])

    def weigh(self, work: float) -> None:
        """Say how much work all items are together, where items differ: time left then follows the work."""
        self._all_work = work

    def advance(self, items: int = 1, detail: str = "", work: float = 0.0) -> None:
        """Some items are done."""
        self._done += items
        self._work += work
        now = self._clock()
        if now - self._last < _EVERY_SECONDS and self._done < self._total:
            return
        self._last = now
        self._marks.append((now, self._done, self._work))
        while len(self._marks) > 2 and now - self._marks[1][0] > _WINDOW_SECONDS:
            self._marks.popleft()
        start, done, work_done = self._marks[0]
        spent = max(now - start, 1e-9)
        rate = (self._done - done) / spent
        speed = (self._work - work_done) / spent if self._all_work else rate
        left = self._all_work - self._work if self._all_work else float(self._total - self._done)
        self._tell(
            Progress(self._step, self._done, self._total, rate, max(0.0, left / speed) if speed else None, detail)
        )
