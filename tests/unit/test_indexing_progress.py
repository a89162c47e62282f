"""Progress of an indexing step."""

from __future__ import annotations

from workbench.encode.protocol import Meter
from workbench.records import Progress


def run(steps: list[tuple[float, int, float]], total: int, work: float = 0.0) -> list[Progress]:
    """Reports of a meter that sees these (time, items, work)."""
    now = [0.0]
    told: list[Progress] = []
    meter = Meter(told.append, "embed", total, work, lambda: now[0])
    for at, items, part in steps:
        now[0] = at
        meter.advance(items, "x", part)
    return told


def test_rate_and_time_left_follow_the_items():
    """10 in one second, 30 to go: three seconds."""
    (report,) = run([(1.0, 10, 0)], 40)
    assert (report.done, report.total, report.rate, report.seconds_left) == (10, 40, 10.0, 3.0)


def test_time_left_follows_the_work_where_items_differ():
    """Half of the items but four fifths of the work are done after 8 seconds: 2 seconds left."""
    (report,) = run([(8.0, 5, 80.0)], 10, 100.0)
    assert report.seconds_left == 2.0


def test_at_most_ten_reports_a_second_and_always_the_last():
    """A thousand items in one second."""
    told = run([(i / 1000, 1, 0) for i in range(1, 1001)], 1000)
    assert 8 <= len(told) <= 12
    assert told[-1].done == 1000
    assert told[-1].seconds_left == 0.0


def test_the_rate_is_that_of_the_last_half_minute():
    """A slow start is forgotten."""
    told = run([(float(t), 1 if t <= 100 else 10, 0) for t in range(1, 201)], 2000)
    assert told[-1].rate == 10.0
