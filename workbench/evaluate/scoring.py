"""Measure many plans on every judged query: some queries at a time, whose candidates are retrieved once and then let go.

So memory does not grow with the queries, and a run that is stopped has all plans' figures on the queries that were done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from workbench.evaluate.measures import compute
from workbench.evaluate.pool import Pool, Pooled
from workbench.evaluate.quick import quick, values_of
from workbench.evaluate.refusion import Refusion, ranking_of
from workbench.plan.plan import Plan
from workbench.records import Progress
from workbench.retrieve.retrieved import Answer

Floats = NDArray[np.float64]
_ROWS = 1 << 16  # of candidates that are fused together


class Stopped(Exception):
    """A signal inside this package: a sweep was stopped; what was measured is in the values."""


def score(
    pool: Pool,
    plans: Sequence[Plan],
    measures: Sequence[str],
    depth: int,
    values: Floats,
    *,
    tell: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> None:
    """Fill the figures of p plans.

    Args:
        pool: The judged queries.
        plans: p plans.
        measures: m names in their one spelling.
        depth: Documents of a ranking that are looked at.
        values: float64 (p, queries, m), changed in place; a query without a NaN is done already.
        tell: Called after each query.
        stop: Asked before each query.

    Raises:
        Stopped: `stop` said so, or Ctrl-C came.
    """
    needs, keys = pool.needs(plans)
    members = {key: np.array([n for n, own in enumerate(keys) if own == key], np.int64) for key in needs}
    left = [n for n in range(len(pool)) if np.isnan(values[:, n]).any()]
    begun = time.monotonic()
    block: list[tuple[int, dict[tuple[object, ...], Pooled | None]]] = []

    def measure() -> None:
        _measure(pool, block, plans, members, measures, depth, values)
        block.clear()

    try:
        for done, n in enumerate(left, 1):
            if stop is not None and stop():
                raise KeyboardInterrupt
            answers: dict[tuple[object, ...], Answer] = {}
            block.append((n, {key: pool.ask(pool.topics[n], need, answers) for key, need in needs.items()}))
            rows = (len(q.keys) for _, asked in block for q in asked.values() if q is not None)
            if sum(rows) > _ROWS or done == len(left):
                measure()
            if tell is not None:
                rate = done / max(time.monotonic() - begun, 1e-9)
                tell(
                    Progress(
                        "sweep", len(pool) - len(left) + done, len(pool), rate, (len(left) - done) / rate,
                        pool.topics[n].text,
                    )
                )  # fmt: skip
    except KeyboardInterrupt:
        measure()
        raise Stopped from None


def _measure(
    pool: Pool,
    block: Sequence[tuple[int, dict[tuple[object, ...], Pooled | None]]],
    plans: Sequence[Plan],
    members: dict[tuple[object, ...], NDArray[np.int64]],
    measures: Sequence[str],
    depth: int,
    values: Floats,
) -> None:
    """Every plan's figures on some queries."""
    fast = [(m, q) for m, q in enumerate(map(quick, measures)) if q is not None]
    slow = [m for m, name in enumerate(measures) if quick(name) is None]
    columns = np.array([m for m, _ in fast], np.int64)
    made = np.zeros((len(plans), len(block), len(measures)))  # written at once: Ctrl-C leaves no query half done
    for key, places in members.items():
        queries = [asked[key] for _, asked in block]
        group = [plans[n] for n in places.tolist()]
        if fast:
            for at, positions, ranks in Refusion(pool.engine, queries, depth).ranks(group):
                pooled = queries[at]
                if pooled is not None:
                    every = np.array(list(pool.judgments.qrels[pooled.query_id].values()), np.int64)
                    own = values_of([q for _, q in fast], ranks, pooled.grades, every)
                    made[places[positions][:, None], at, columns] = own
        for at, pooled in enumerate(queries):
            if slow and pooled is not None:
                figures = _by_lists(pool, pooled, group, [measures[m] for m in slow], depth)
                made[places[:, None], at, slow] = figures
    values[:, [n for n, _ in block]] = made


def _by_lists(pool: Pool, pooled: Pooled, plans: Sequence[Plan], measures: list[str], depth: int) -> Floats:
    """Measures that need whole lists: every plan's list of the query, as if each plan were a query."""
    names = [str(p) for p in range(len(plans))]
    lists = {name: ranking_of(pool.engine, pooled, p, depth) for name, p in zip(names, plans, strict=True)}
    return compute(lists, dict.fromkeys(names, pool.judgments.qrels[pooled.query_id]), names, measures)
