"""A check for a team's CI: is a plan still as good as it was?

A baseline is a small JSON file: the judgments' digest, the plan, and every query's figure. A later run on the same judgments is
compared query by query, so a drop is told from noise by the paired test, and the queries that fell are named. Minimum figures
are the other way: a mean below one fails, whatever it was before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.errors import UsageError, WorkbenchError
from workbench.evaluate.evaluation import Evaluation
from workbench.evaluate.measures import parse_measures
from workbench.evaluate.statistics import SIGNIFICANT, Difference, paired_difference
from workbench.presets import EDITION, recorded_text

_FORMAT = 1
_FELL = 1e-9


@dataclass(frozen=True, slots=True)
class Fallen:
    """A query that fell: before minus after is the loss."""

    query_id: str
    query: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Guard:
    """What a check found.

    Attributes:
        differences: One a measure, second is now, first the baseline; empty without a baseline.
        minimums: Measure -> (least that is allowed, mean now).
        failures: What went wrong, in sentences; empty when all is well.
        fallen: Queries that fell by the first measure, the worst first.
        notes: What a reader must know of the comparison, such as that it cannot fail.
    """

    differences: tuple[Difference, ...]
    minimums: Mapping[str, tuple[float, float]]
    failures: tuple[str, ...]
    fallen: tuple[Fallen, ...]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.failures


def save_baseline(evaluation: Evaluation, path: Path) -> None:
    """Write an evaluation as the baseline of later checks."""
    data = {
        "format": _FORMAT,
        "plan": evaluation.name,
        "edition": EDITION,
        "judgments": evaluation.judgments.given_digest,
        "measures": list(evaluation.measures),
        "queries": dict(zip(evaluation.query_ids, evaluation.values.tolist(), strict=True)),
    }
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def check(
    evaluation: Evaluation,
    baseline: Path | None,
    minimums: Mapping[str, float],
    *,
    tolerance: float = 0.0,
    seed: int = 0,
) -> Guard:
    """Compare an evaluation of now with a baseline and with minimum figures.

    Args:
        evaluation: With the baseline's measures computed.
        baseline: File of `save_baseline`; None has no comparison.
        minimums: Measure -> least mean.
        tolerance: A significant drop of at most this much in the mean passes.
        seed: Seed of the intervals and tests.

    Raises:
        UsageError: The baseline cannot be read, or is of other judgments; a minimum is no number; nothing is to be checked.
    """
    wrong = next((measure for measure, least in minimums.items() if not math.isfinite(least)), None)
    if wrong is not None:
        raise UsageError(f"The minimum of {wrong} is no number", "Give one such as 0.4")
    if baseline is None and not minimums:
        raise UsageError("There is nothing to check against", "Give --baseline FILE or --min nDCG@10=0.4")
    failures: list[str] = []
    differences: list[Difference] = []
    fallen: list[Fallen] = []
    unshown: list[str] = []
    if baseline is not None:
        name, measures, before = read_baseline(baseline, evaluation.judgments.given_digest)
        if set(before) != set(evaluation.query_ids):
            raise UsageError(
                f"The baseline {baseline} is of other queries", "Make one with: workbench check JUDGMENTS --save FILE"
            )
        for n, measure in enumerate(measures):
            first = np.array([before[i][n] for i in evaluation.query_ids])
            names = (f"baseline {name}", evaluation.name)
            made = paired_difference(measure, names, first, evaluation.column(measure), seed=seed)
            differences.append(made)
            if made.significant and made.difference < -tolerance:
                failures.append(f"{measure} fell from {made.first_mean:.4f} to {made.second_mean:.4f}: {made.brief}")
            if made.losses and not _could_show(made):
                unshown.append(measure)
            if n == 0:
                fallen = _fallen(evaluation, first, evaluation.column(measure))
    found: dict[str, tuple[float, float]] = {}
    for measure, least in minimums.items():
        mean = evaluation.mean(measure)
        found[parse_measures([measure])[0]] = (least, mean)
        if not mean >= least:
            failures.append(f"{measure} is {mean:.4f}, below the minimum of {least:g}")
    notes = tuple(
        f"{measure} fell on too few queries for any test to tell it from chance, so such a drop never fails the check by itself: "
        "name a minimum (--min), or judge more queries"
        for measure in unshown
    )
    return Guard(tuple(differences), found, tuple(failures), tuple(fallen), notes)


def _could_show(made: Difference) -> bool:
    """Whether the paired test could call a drop on as many queries significant, had each of them fallen."""
    return 2.0 ** (1 - made.wins - made.losses) < SIGNIFICANT


def read_baseline(path: Path, digest: str) -> tuple[str, tuple[str, ...], Mapping[str, list[float]]]:
    """Plan, measures and figures by query of a baseline of these judgments. Raises UsageError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != _FORMAT:
            raise ValueError(f"format {data['format']}")
        plan = recorded_text(str(data["plan"]), int(data.get("edition", 1)))
        measures = parse_measures([str(m) for m in data["measures"]])
        queries = {str(i): [float(v) for v in row] for i, row in dict(data["queries"]).items()}
        judged = data["judgments"]
        if not queries or any(
            len(row) != len(measures) or not all(map(math.isfinite, row)) for row in queries.values()
        ):
            raise ValueError("it lacks a figure of a query")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        said = f"it lacks {exc}" if isinstance(exc, KeyError) else getattr(exc, "strerror", None) or str(exc)
        said = exc.message if isinstance(exc, WorkbenchError) else said
        raise UsageError(
            f"The baseline {path} cannot be read: {said}",
            "Make one with: workbench check JUDGMENTS --save FILE",
        ) from exc
    if judged != digest:
        raise UsageError(
            f"The baseline {path} is of other judgments",
            "Make one of these with: workbench check JUDGMENTS --save FILE",
        )
    return plan, measures, queries


def _fallen(evaluation: Evaluation, before: np.ndarray, after: np.ndarray) -> list[Fallen]:
    topics = evaluation.judgments.topics
    order = np.argsort(after - before, kind="stable")
    return [
        Fallen(i, topics[i].text if i in topics else "", float(before[n]), float(after[n]))
        for n in order.tolist()
        if before[n] - after[n] > _FELL
        for i in (evaluation.query_ids[n],)
    ]
