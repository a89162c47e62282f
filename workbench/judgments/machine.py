"""A model as a judge: its grades are marked as a machine's, never invented, and compared with people's before they are used.

Any OpenAI-compatible endpoint will do (the settings `endpoint_url` and `endpoint_key`). Passages go to it a few at a time, with
the query and without who found them, as `assist.answers` writes them. An answer counts only if it grades exactly the
passages that were given, 0 to 3; of a time-out or of nonsense nothing is taken, and it is counted. The judge's name is
`machine:MODEL`. No figure counts such a judge unless it is named (`judging.to_judgments`), and then it says how far the
machine agrees with people.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from workbench.assist.answers import JUDGING, judging_data, read_grades
from workbench.errors import AssistError
from workbench.judgments.judging import Judging
from workbench.judgments.log import MACHINE
from workbench.judgments.pooling import Candidate, Pool
from workbench.judgments.query_sets import Query
from workbench.records import Progress

BATCH = 5
GIVE_UP = 5
"""After so many failed calls in a row the endpoint is taken to be down."""


class Asked(Protocol):
    """What a chat model must do; `assist.endpoint.Endpoint` does."""

    model: str

    def ask(self, instructions: str, data: str) -> str:
        """The model's answer as text. Raises AssistError."""


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
        said = f"{self.judge} graded {self.graded} of {self.candidates} passages"
        said += f", {self.before} before" if self.before else ""
        said += f"; {self.failed} without a usable answer were left out" if self.failed else ""
        said += f"; {self.left} were not asked about" if self.left else ""
        return said + "".join(f". {count} x {reason}" for reason, count in self.reasons[:3])


def judge_by_machine(
    judging: Judging,
    model: Asked,
    name: str,
    queries: Sequence[Query],
    pool: Pool,
    *,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> MachineReport:
    """Let a model grade the candidates of a pool that it has not graded yet; each grade is kept as it comes.

    Raises:
        JudgmentError, CorpusError: A grade cannot be kept.
    """
    judge = MACHINE + model.model
    graded = failed = before = asked_about = in_a_row = 0
    reasons: dict[str, int] = {}
    begun = time.perf_counter()
    for query in queries:
        candidates = pool.order(query.query_id, judge)
        known = judging.grades(query, candidates, set=name, judge=judge)
        open_ones = [c for c in candidates if c.chunk_id not in known]
        before += len(candidates) - len(open_ones)
        for start in range(0, len(open_ones), BATCH):
            batch = open_ones[start : start + BATCH]
            if in_a_row >= GIVE_UP or (stop is not None and stop()):
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
                done = before + asked_about
                rate = asked_about / max(time.perf_counter() - begun, 1e-9)
                left = max(pool.size - done, 0)
                progress(Progress("machine", done, pool.size, rate, left / rate, query.text))
    ordered = tuple(sorted(reasons.items(), key=lambda r: (-r[1], r[0])))
    return MachineReport(judge, pool.size, graded, failed, before, pool.size - graded - failed - before, ordered)


def _ask(judging: Judging, model: Asked, query: Query, batch: Sequence[Candidate]) -> tuple[int, ...]:
    numbers = [judging.records.find_record(c.chunk_id, judging.scope) for c in batch]
    rows = judging.records.rows([n for n in numbers if n is not None])
    if len(rows) != len(batch):
        raise AssistError("The corpus has changed since the passages were collected", "Collect them again")
    texts = [row.chunk.text for row in rows]
    return read_grades(model.ask(JUDGING, judging_data(query.text, texts)), len(texts), model.model)
