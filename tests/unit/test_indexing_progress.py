"""Progress of an indexing step."""

from __future__ import annotations

from workbench.encode.protocol import Meter
from workbench.records import Progress


def run(steps: list[tuple[float, int, float]], total: int, work: float = 0.0) -> list[Progress]:
    now = [0.0]
    told: list[Progress] = []
    meter = Meter(told.append, "embed", total, work, lambda: now[0])
    for at, items, part in steps:
        now[0] = at
        meter.advance(items, "x", part)
    return told


def test_time_left_follows_the_work_where_items_differ():
    """Half of the items but four fifths of the work are done after 8 seconds: 2 seconds left."""
    (report,) = run([(8.0, 5, 80.0)], 10, 100.0)
    assert report.seconds_left == 2.0


def test_at_most_ten_reports_a_second_and_always_the_last():
    told = run([(i / 1000, 1, 0) for i in range(1, 1001)], 1000)
    assert 8 <= len(told) <= 12
    assert told[-1].done == 1000
    assert told[-1].seconds_left == 0.0
