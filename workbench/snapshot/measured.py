"""Measures of two snapshots: the same judgments, query by query, with an interval and a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.evaluate.statistics import paired_difference
from workbench.snapshot.view import rows_of

if TYPE_CHECKING:
    import polars

    from workbench.snapshot.snapshot import Snapshot


def measure_rows(snapshots: Sequence[Snapshot], names: Sequence[str]) -> polars.DataFrame:
    """See `SnapshotDiff.measures`: the first snapshot against each other one."""
    import polars as pl

    rows: list[tuple[Any, ...]] = []
    for name, other in zip(names[1:], snapshots[1:], strict=True):
        for one, two in _pairs(snapshots[0], other):
            rows += _compared(snapshots[0], one, names[0], other, two, name)
    schema = {
        "snapshot": pl.String, "evaluation": pl.String, "measure": pl.String, "first": pl.Float64, "second": pl.Float64,
        "difference": pl.Float64, "low": pl.Float64, "high": pl.Float64, "p": pl.Float64, "verdict": pl.String,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _pairs(first: Snapshot, second: Snapshot) -> list[tuple[int, int]]:
    """Evaluations with the same judgments: those of one name first, the others in their order."""
    left = list(range(len(second.evaluations)))
    pairs: list[tuple[int, int]] = []
    for by_name in (True, False):
        for one, saved in enumerate(first.evaluations):
            if any(one == a for a, _ in pairs):
                continue
            for two in left:
                other = second.evaluations[two]
                if saved.judgments_digest == other.judgments_digest and (not by_name or saved.name == other.name):
                    pairs.append((one, two))
                    left.remove(two)
                    break
    return sorted(pairs)


def _compared(first: Snapshot, one: int, a: str, second: Snapshot, two: int, b: str) -> list[tuple[Any, ...]]:
    before, after = _values(first, one), _values(second, two)
    saved, other = first.evaluations[one], second.evaluations[two]
    name = saved.name if saved.name == other.name else f"{saved.name} / {other.name}"
    rows: list[tuple[Any, ...]] = []
    for measure in [m.measure for m in saved.means if m.measure in {n.measure for n in other.means}]:
        queries = [q for q, m in before if m == measure and (q, m) in after]
        if not queries:
            continue
        found = paired_difference(
            measure, (a, b), np.array([before[q, measure] for q in queries]), np.array([after[q, measure] for q in queries]),
            seed=saved.seed,
        )  # fmt: skip
        low, high = (None if v != v else v for v in (found.low, found.high))
        means = (found.first_mean, found.second_mean, found.difference)
        rows.append((b, name, measure, *means, low, high, found.p, found.verdict))
    return rows


def _values(snapshot: Snapshot, number: int) -> dict[tuple[str, str], float]:
    rows = rows_of(snapshot.content.table("measures"), number).iter_rows(named=True)
    return {(r["query_id"], r["measure"]): r["value"] for r in rows}
