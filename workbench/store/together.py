"""Parts of one build at the same time, each in a thread of its own, told as if they came one after the other.

What a generation holds beside its tables (vectors and their graph, words, lines) depends on the tables and not on each other, so
these parts are built side by side: the graph grows in C++ without Python's lock, the words in a process of their own. Whoever
watches is still told a sequence: of the parts that are not finished only the first speaks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from workbench.records import Progress, ProgressCallback

Result = TypeVar("Result")


class _GivenUp(Exception):
    """Ends a part that reports its progress after the build has failed elsewhere."""


class _Said:
    """What one part reports: the latest of each step, until it is told."""

    def __init__(self, news: threading.Condition, given_up: threading.Event) -> None:
        self._news, self._given_up = news, given_up
        self._steps: dict[str, Progress] = {}

    def __call__(self, progress: Progress) -> None:
        if self._given_up.is_set():
            raise _GivenUp
        with self._news:
            self._steps[progress.step] = progress
            self._news.notify_all()

    @property
    def something(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self._steps)

    def take(self) -> list[Progress]:
        """What was not told yet, in the order of the steps."""
        taken, self._steps = list(self._steps.values()), {}
        return taken


def build_together(
    parts: Mapping[str, Callable[[ProgressCallback], Result]],
    tell: ProgressCallback,
    threads: int,
    finished: Callable[[str], None],
) -> dict[str, Result]:
    """Build parts at the same time.

    Args:
        parts: Name -> what builds it; it is given whom to tell, and may be ended by an exception from there.
        tell: Told, in the calling thread, the progress of the first part that is not finished.
        threads: Parts that may be built at once, at least 1; they begin in their order.
        finished: Called with the name of each part, in their order, when that part and all before it are finished.

    Returns:
        Name -> result, in the order of the parts.

    Raises:
        BaseException: What the first part that failed raised, or what `tell` or `finished` raised; no part is running then.
    """
    news, given_up = threading.Condition(), threading.Event()
    failures: list[BaseException] = []
    ended: set[str] = set()
    said = {name: _Said(news, given_up) for name in parts}

    def watched(name: str) -> Result:
        try:
            return parts[name](said[name])
        except BaseException as exc:
            failures.append(exc)  # the first is the cause, the others may have been ended because of it
            raise
        finally:
            with news:
                ended.add(name)
                news.notify_all()

    def wait(name: str) -> Result:
        """The part's result, once everything it said was told. Raises what any part raised."""
        while True:
            with news:
                news.wait_for(lambda: failures or said[name].something or name in ended)
                taken, done = said[name].take(), name in ended
            if failures:
                raise failures[0]
            for progress in taken:
                tell(progress)
            if done:
                return running[name].result()

    results: dict[str, Result] = {}
    with ThreadPoolExecutor(max(1, threads), thread_name_prefix="build") as pool:
        running = {name: pool.submit(watched, name) for name in parts}
        try:
            for name in parts:
                results[name] = wait(name)
                finished(name)
        except BaseException:
            for future in running.values():
                future.cancel()  # before a part ends and makes room for one that would begin in vain
            given_up.set()
            raise
    return results
