"""Parts of a build at the same time: told in order, ended together."""

from __future__ import annotations

import threading

import pytest

from workbench.records import Progress, ProgressCallback
from workbench.store.together import build_together


def test_what_is_told_comes_in_the_order_of_the_parts() -> None:
    """The second part is finished first; what it said is told after all of the first, each step's last word included."""
    second_done = threading.Event()
    told: list[tuple[str, int]] = []
    finished: list[str] = []

    def first(tell: ProgressCallback) -> str:
        assert second_done.wait(30)
        tell(Progress("vectors", 1, 1))
        tell(Progress("graph", 1, 2))
        tell(Progress("graph", 2, 2))
        return "one"

    def second(tell: ProgressCallback) -> str:
        tell(Progress("words", 1, 2))
        tell(Progress("words", 2, 2))
        second_done.set()
        return "two"

    def tell(progress: Progress) -> None:
        told.append((progress.step, progress.done))

    results = build_together({"a": first, "b": second}, tell, 2, finished.append)
    assert results == {"a": "one", "b": "two"}
    assert finished == ["a", "b"]
    assert [step for step, _ in dict.fromkeys((step, 0) for step, _ in told)] == ["vectors", "graph", "words"]
    assert dict(told) == {"vectors": 1, "graph": 2, "words": 2}


def test_one_thread_builds_one_part_after_the_other() -> None:
    """No two parts overlap, so that their memory does not either."""
    running: list[str] = []

    def part(name: str) -> str:
        running.append(f"begin {name}")
        running.append(f"end {name}")
        return name

    build_together({n: lambda _, n=n: part(n) for n in "abc"}, lambda _: None, 1, lambda _: None)
    assert running == [f"{edge} {name}" for name in "abc" for edge in ("begin", "end")]


def test_a_part_that_fails_ends_the_others() -> None:
    """Its own error is raised, even by the last part, and when it is raised no part is running."""
    running, ended = threading.Event(), threading.Event()

    def endless(tell: ProgressCallback) -> str:
        try:
            while True:
                running.set()
                tell(Progress("vectors", 0, 1))
        finally:
            ended.set()

    def failing(tell: ProgressCallback) -> str:
        assert running.wait(30)
        raise ValueError("no room")

    with pytest.raises(ValueError, match="no room"):
        build_together({"a": endless, "b": failing}, lambda _: None, 2, lambda _: None)
    assert ended.is_set()


def test_whoever_is_told_may_stop_the_build() -> None:
    """An exception from there ends every part and is what is raised; parts that did not begin never do."""
    begun: list[str] = []

    def endless(tell: ProgressCallback) -> str:
        begun.append("a")
        while True:
            tell(Progress("vectors", 0, 1))

    def other(tell: ProgressCallback) -> str:
        begun.append("b")
        return ""

    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_together({"a": endless, "b": other}, stop, 1, lambda _: None)
    assert begun == ["a"]
