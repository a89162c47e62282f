"""Pools: what several plans find for each query of a set, together, to be judged without knowing who found it.

Judging only what one plan finds makes that plan look better than it is. So candidates are the union of the first `depth`
results of every plan (Spärck Jones and van Rijsbergen 1975), passages that are the same one (`judgments.same_passage`) once.
A judge sees them in an order that says nothing of ranks or plans: by a hash of seed, query, judge and passage. It is the
same each time for the same judge, so that a page that is loaded again goes on where it was, and another one for every
judge, so that tiredness falls on different passages.

A model as a judge: its grades are marked as a machine's, never invented, and compared with people's before they are used.

Any OpenAI-compatible endpoint will do (the settings `endpoint_url` and `endpoint_key`). Passages go to it a few at a time, with
the query and without who found them, as `assist.answers` writes them. An answer counts only if it grades exactly the
passages that were given, 0 to 3; of a time-out or of nonsense nothing is taken, and it is counted. The judge's name is
`machine:MODEL`. No figure counts such a judge unless it is named (`judging.to_judgments`), and then it says how far the
machine agrees with people.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from workbench.assist.endpoint import JUDGING, Endpoint, read_grades, scoring_data
from workbench.errors import AssistError, PlanError, QueryError, UsageError
from workbench.judgments.judging import Judging
from workbench.judgments.log import MACHINE, same_passage
from workbench.judgments.query_sets import Query
from workbench.plan.plan import Plan
from workbench.records import Hit, Progress, Span

LARGEST_DEPTH = 200


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage to judge, as it is in the generation that was searched."""

    chunk_id: str
    document_id: str
    span: Span


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates of each query."""

    plans: tuple[str, ...]
    depth: int
    candidates: Mapping[str, tuple[Candidate, ...]]
    failures: Mapping[str, str]

    @property
    def size(self) -> int:
        """Number of candidates of all queries."""
        return sum(map(len, self.candidates.values()))

    def order(self, query_id: str, judge: str, seed: int = 0) -> tuple[Candidate, ...]:
        """A query's candidates in an order that depends on seed, query, judge and passage, and on nothing else."""

        def place(candidate: Candidate) -> bytes:
            key = f"{seed}\0{query_id}\0{judge}\0{candidate.chunk_id}"
            return hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=16).digest()

        return tuple(sorted(self.candidates.get(query_id, ()), key=place))


def make_pool(
    search: Callable[[Query, Plan, int], Sequence[Hit]],
    judging: Judging,
    queries: Sequence[Query],
    plans: Sequence[Plan | str],
    depth: int = 10,
    progress: Callable[[Progress], None] | None = None,
) -> Pool:
    """Ask every query under every plan and put together what is found.

    A query that cannot be read under a plan (QueryError, PlanError) is listed in `failures`, and the others go on. `depth`:
    First results of each plan that are taken, 1 to 200.
    """
    if not plans or not 1 <= depth <= LARGEST_DEPTH:
        raise UsageError(
            f"A pool of {len(plans)} plans to depth {depth} cannot be made",
            f"Give at least one plan, and a depth from 1 to {LARGEST_DEPTH}",
        )
    values = [Plan.of(p) for p in plans]
    candidates: dict[str, tuple[Candidate, ...]] = {}
    failures: dict[str, str] = {}
    begun = time.monotonic()
    for number, query in enumerate(queries, 1):
        best: dict[str, tuple[int, Hit]] = {}
        for plan in values:
            try:
                found = [h for h in search(query, plan, depth) if not h.added][:depth]
            except (QueryError, PlanError) as exc:
                failures.setdefault(query.query_id, f"{plan}: {exc.message}")
                continue
            for rank, hit in enumerate(found):
                if hit.chunk_id not in best or rank < best[hit.chunk_id][0]:
                    best[hit.chunk_id] = rank, hit
        ordered = [
            hit for _, hit in sorted(best.values(), key=lambda x: (x[0], x[1].path, x[1].start_line, x[1].chunk_id))
        ]
        candidates[query.query_id] = _once(judging, ordered)
        if progress is not None:
            progress(Progress.since(begun, "pool", number, len(queries), query.text))
    return Pool(tuple(map(str, values)), depth, candidates, failures)


def _once(judging: Judging, hits: Sequence[Hit]) -> tuple[Candidate, ...]:
    """Candidates of hits, without those that are the passage of an earlier one."""
    kept: list[Candidate] = []
    by_document: dict[str, list[Span]] = {}
    for chunk_id, document_id, span in judging.spans(hits):
        seen = by_document.setdefault(document_id, [])
        if not any(same_passage(span, other) for other in seen):
            seen.append(span)
            kept.append(Candidate(chunk_id, document_id, span))
    return tuple(kept)


BATCH = 5
GIVE_UP = 5
"""After so many failed calls in a row the endpoint is taken to be down."""


@dataclass(frozen=True, slots=True)
class MachineReport:
    """What a machine did: `candidates == graded + failed + before + left`."""

    judge: str
    candidates: int
    graded: int
    failed: int
    before: int
    left: int
    reasons: tuple[tuple[str, int], ...]

    @property
    def words(self) -> str:
        """In one or two sentences."""
        text = f"{self.judge} graded {self.graded} of {self.candidates} passages"
        text += f", {self.before} before" if self.before else ""
        text += f"; {self.failed} without a usable answer were left out" if self.failed else ""
        text += f"; {self.left} were not asked about" if self.left else ""
        return text + "".join(f". {count} x {reason}" for reason, count in self.reasons[:3])


def judge_by_machine(
    judging: Judging,
    model: Endpoint,
    name: str,
    queries: Sequence[Query],
    pool: Pool,
    *,
    progress: Callable[[Progress], None] | None = None,
) -> MachineReport:
    """Let a model grade the candidates of a pool that it has not graded yet; each grade is kept as it comes."""
    judge = MACHINE + model.model
    graded = failed = before = asked_about = in_a_row = 0
    reasons: dict[str, int] = {}
    begun = time.monotonic()
    for query in queries:
        candidates = pool.order(query.query_id, judge)
        known = judging.grades(query, candidates, set=name, judge=judge)
        open_ones = [c for c in candidates if c.chunk_id not in known]
        before += len(candidates) - len(open_ones)
        for start in range(0, len(open_ones), BATCH):
            batch = open_ones[start : start + BATCH]
            if in_a_row >= GIVE_UP:
                break
            asked_about += len(batch)
            try:
                grades = _ask(judging, model, query, batch)
            except AssistError as exc:
                failed, in_a_row = failed + len(batch), in_a_row + 1
                reasons[exc.message] = reasons.get(exc.message, 0) + 1
            else:
                in_a_row = 0
                for candidate, grade in zip(batch, grades, strict=True):
                    judging.grade(candidate, grade, query, set=name, judge=judge)
                graded += len(batch)
            if progress is not None:
                progress(Progress.since(begun, "machine", before + asked_about, pool.size, query.text, before))
    ordered = tuple(sorted(reasons.items(), key=lambda r: (-r[1], r[0])))
    return MachineReport(judge, pool.size, graded, failed, before, pool.size - graded - failed - before, ordered)


def _ask(judging: Judging, model: Endpoint, query: Query, batch: Sequence[Candidate]) -> tuple[int, ...]:
    numbers = [judging.records.find_record(c.chunk_id, judging.scope) for c in batch]
    rows = judging.records.rows([n for n in numbers if n is not None])
    if len(rows) != len(batch):
        raise AssistError("The corpus has changed since the passages were collected", "Collect them again")
    texts = [row.chunk.text for row in rows]
    return read_grades(model.ask(JUDGING, scoring_data(query.text, texts)), len(texts), model.model)
