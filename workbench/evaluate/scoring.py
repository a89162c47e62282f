"""Measure many plans on every judged query: one query after the other, its candidates retrieved once and then let go.

So memory does not grow with the queries, and a run that is stopped has all plans' figures on the queries that were done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from workbench.evaluate.measures import compute
from workbench.evaluate.pool import Need, Pool, Pooled
from workbench.evaluate.quick import quick, values_of
from workbench.evaluate.refusing import Cut, cuts_of, ranking_of, ranks_under
from workbench.plan.plan import Plan
from workbench.records import Progress
from workbench.retrieve.retrieved import Answer

Floats = NDArray[np.float64]


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
    cuts: dict[tuple[object, ...], list[Cut]] = {}
    for key in needs:
        places = [n for n, own in enumerate(keys) if own == key]
        cuts[key] = cuts_of([plans[n] for n in places], places)
    left = [n for n in range(len(pool)) if np.isnan(values[:, n]).any()]
    begun = time.monotonic()
    try:
        for done, n in enumerate(left, 1):
            if stop is not None and stop():
                raise Stopped
            _score_query(pool, n, needs, cuts, measures, depth, values)
            if tell is not None:
                rate = done / max(time.monotonic() - begun, 1e-9)
                tell(
                    Progress(
                        "sweep", len(pool) - len(left) + done, len(pool), rate, (len(left) - done) / rate,
                        pool.topics[n].text,
                    )
                )  # fmt: skip
    except KeyboardInterrupt:
        raise Stopped from None


def _score_query(
    pool: Pool,
    n: int,
    needs: dict[tuple[object, ...], Need],
    cuts: dict[tuple[object, ...], list[Cut]],
    measures: Sequence[str],
    depth: int,
    values: Floats,
) -> None:
    topic = pool.topics[n]
    made = np.zeros((len(values), len(measures)))  # written at once: Ctrl-C leaves no query half done
    kept: dict[tuple[object, ...], Answer] = {}
    every = np.array(list(pool.judgments.qrels[topic.query_id].values()), np.int64)
    fast = [(m, q) for m, q in enumerate(map(quick, measures)) if q is not None]
    slow = [m for m, name in enumerate(measures) if quick(name) is None]
    fast_columns, slow_columns = np.array([m for m, _ in fast], np.int64), np.array(slow, np.int64)
    for key, need in needs.items():
        pooled = pool.ask(topic, need, kept)
        if pooled is None:
            continue
        for cut in cuts[key]:
            if fast:
                ranks = ranks_under(pool.engine, pooled, cut, depth)
                columns = values_of([q for _, q in fast], ranks, pooled.grades, every)
                made[np.ix_(cut.members, fast_columns)] = columns
            if slow:
                made[np.ix_(cut.members, slow_columns)] = _by_lists(
                    pool, pooled, cut, [measures[m] for m in slow], depth
                )
    values[:, n] = made


def _by_lists(pool: Pool, pooled: Pooled, cut: Cut, measures: list[str], depth: int) -> Floats:
    """Measures that need whole lists: every plan's list of the query, as if each plan were a query."""
    names = [str(p) for p in range(len(cut.plans))]
    lists = {name: ranking_of(pool.engine, pooled, p, depth) for name, p in zip(names, cut.plans, strict=True)}
    return compute(lists, dict.fromkeys(names, pool.judgments.qrels[pooled.query_id]), names, measures)
