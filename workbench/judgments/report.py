"""What is known of a query set: how far it is judged, by whom, what is stale, and how far its judges agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from workbench.judgments.agreement import Agreement, agreement, with_people
from workbench.judgments.judging import Judging, graded_by
from workbench.judgments.log import KNOWN_ITEM, MACHINE
from workbench.judgments.query_sets import Query


@dataclass(frozen=True, slots=True)
class QueryReport:
    """One query of a set: judgments that count now, those of them with a grade over 0, and stale ones."""

    query: Query
    judged: int
    relevant: int
    stale: int


@dataclass(frozen=True, slots=True)
class SetReport:
    """A set, as the principal sees it.

    Attributes:
        queries: In their order.
        judges: Judge -> how many judgments.
        changed: When something was judged last; None where nothing was.
        agreement: Of the people who judged; None where fewer than two did.
        machines: Machine -> how far it agrees with people; None where nobody judged the same.
    """

    name: str
    queries: tuple[QueryReport, ...]
    judges: Mapping[str, int]
    changed: datetime | None
    agreement: Agreement | None
    machines: Mapping[str, Agreement | None]

    @property
    def judged(self) -> int:
        """Number of queries of which something is judged."""
        return sum(q.judged > 0 for q in self.queries)

    @property
    def judgments(self) -> int:
        return sum(q.judged for q in self.queries)

    @property
    def stale(self) -> int:
        return sum(q.stale for q in self.queries)


def report_of(judging: Judging, name: str) -> SetReport:
    """The report of a set. Raises JudgmentError: there is no such set."""
    located = judging.located(name)
    counts: dict[str, Counter[str]] = {}
    for one in located:
        own = counts.setdefault(one.judgment.query_id, Counter())
        own["stale" if one.stale else "judged"] += 1
        own["relevant"] += not one.stale and one.judgment.grade > 0
    items = graded_by(located)
    judges = Counter(x.judgment.judge for x in located)
    people = sorted(j for j in judges if not j.startswith(MACHINE) and j != KNOWN_ITEM)
    machines = {j: with_people(items, j) for j in sorted(judges) if j.startswith(MACHINE)}
    rows = []
    for query in judging.queries(name):
        own = counts.get(query.query_id, Counter())
        rows.append(QueryReport(query, own["judged"], own["relevant"], own["stale"]))
    return SetReport(
        name,
        tuple(rows),
        dict(sorted(judges.items())),
        max((x.judgment.time for x in located), default=None),
        agreement(items, people) if len(people) > 1 else None,
        machines,
    )
