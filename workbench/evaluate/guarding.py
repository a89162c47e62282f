"""A check for a team's CI: is a plan still as good as it was?

A baseline is a small JSON file: the plan, and of every query its figures and a digest of its judgments. A later run is compared
query by query, so the paired test separates a drop from noise, and the queries that fell are named. A query whose judgments
are others now, such as those of a document that was removed or edited, is named and not compared. Minimum figures are the
other way: a mean below one fails, whatever it was before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from workbench.errors import UsageError, WorkbenchError, some_of
from workbench.evaluate.evaluation import Evaluation, wins
from workbench.evaluate.measures import parse_measures
from workbench.evaluate.statistics import SIGNIFICANT, Difference, paired_difference
from workbench.plan.plan import recorded_text
from workbench.plan.presets import EDITION

_FORMAT = 1
_FELL = 1e-9
_NAMED = 10


@dataclass(frozen=True, slots=True)
class Fallen:
    """A query that fell: before minus after is the loss."""

    query_id: str
    query: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Baseline:
    """Figures of before."""

    path: Path
    plan: str
    measures: tuple[str, ...]
    queries: Mapping[str, Sequence[float]]
    judgments: str
    judged: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Guard:
    """What a check found."""

    differences: tuple[Difference, ...] = ()
    failures: tuple[str, ...] = ()
    fallen: tuple[Fallen, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

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
        "judged": evaluation.judgments.given_digests,
        "measures": list(evaluation.measures),
        "queries": dict(zip(evaluation.query_ids, evaluation.values.tolist(), strict=True)),
    }
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def check(
    evaluation: Evaluation, baseline: Baseline | None, minimums: Mapping[str, float], *, tolerance: float = 0.0
) -> Guard:
    """Compare an evaluation of now with a baseline and with minimum figures.

    Args:
        baseline: As `read_baseline` gives it; None has no comparison.
        tolerance: A significant drop of at most this much in the mean passes.
    """
    failures: list[str] = []
    differences: list[Difference] = []
    fallen: list[Fallen] = []
    unshown: list[str] = []
    left_out: dict[str, str] = {}
    if baseline is not None:
        places, left_out = _comparable(baseline, evaluation)
        ids = [evaluation.query_ids[place] for place in places]
        for n, measure in enumerate(baseline.measures):
            first = np.array([baseline.queries[i][n] for i in ids])
            second = evaluation.column(measure)[places]
            names = (f"baseline {baseline.plan}", evaluation.name)
            made = paired_difference(measure, names, first, second)
            differences.append(made)
            if made.significant and made.difference < -tolerance:
                failures.append(f"{measure} fell from {made.first_mean:.4f} to {made.second_mean:.4f}: {made.brief}")
            # Could the test call a drop on as many queries significant, had each of them fallen?
            if made.losses and 2.0 ** (1 - made.wins - made.losses) >= SIGNIFICANT:
                unshown.append(measure)
            if n == 0:
                rows = wins(evaluation.judgments, ids, second, first).rows()
                fallen = [Fallen(i, text or "", was, now) for i, text, now, was, lost in rows if lost > _FELL]
    for measure, least in minimums.items():
        if not (mean := evaluation.mean(measure)) >= least:
            failures.append(f"{measure} is {mean:.4f}, below the minimum of {least:g}")
    notes = tuple(
        f"{measure} fell on too few queries for any test to tell it from chance, so such a drop never fails the check by itself: "
        "name a minimum (--min), or judge more queries"
        for measure in unshown
    )
    if baseline is not None and left_out:
        some = [f"{i} ({text})" if text else i for i, text in left_out.items()]
        notes = (
            f"{len(left_out)} of the baseline's {len(baseline.queries)} queries were not compared, because their judgments "
            f"changed or their judged documents are gone: {some_of(some, _NAMED)}",
            *notes,
        )
    return Guard(tuple(differences), tuple(failures), tuple(fallen), notes, left_out)


def _comparable(baseline: Baseline, evaluation: Evaluation) -> tuple[list[int], dict[str, str]]:
    """Places of the queries that are judged as they were, and the baseline's other queries. Raises UsageError for none."""
    now, ids = evaluation.judgments.given_digests, evaluation.query_ids
    if evaluation.judgments.given_digest == baseline.judgments:
        if set(baseline.queries) != set(ids):
            raise UsageError(
                f"The baseline {baseline.path} cannot be read: it lacks a figure of a query",
                "Make one with: workbench check JUDGMENTS --save FILE",
            )
        same = set(ids)
    else:
        same = {i for i, digest in baseline.judged.items() if i in baseline.queries and now.get(i) == digest}
    places = [place for place, query_id in enumerate(ids) if query_id in same]
    if not places:
        raise UsageError(
            f"The baseline {baseline.path} is of other judgments",
            "Make one of these with: workbench check JUDGMENTS --save FILE",
        )
    topics = evaluation.judgments.topics
    left = [i for i in baseline.queries if i not in same or i not in ids]
    return places, {i: topics[i].text if i in topics else "" for i in left}


def read_baseline(path: Path) -> Baseline:
    """A baseline as `save_baseline` wrote it. Raises UsageError where it cannot be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != _FORMAT:
            raise ValueError(f"format {data['format']}")
        plan = recorded_text(str(data["plan"]), int(data.get("edition", 1)))
        measures = parse_measures([str(m) for m in data["measures"]])
        queries = {str(i): [float(v) for v in row] for i, row in dict(data["queries"]).items()}
        judged = {str(i): str(digest) for i, digest in dict(data.get("judged", {})).items()}
        if (
            not queries
            or not data["judgments"]
            or (judged and judged.keys() != queries.keys())
            or any(len(row) != len(measures) or not all(map(math.isfinite, row)) for row in queries.values())
        ):
            raise ValueError("it lacks a figure of a query")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        text = f"it lacks {exc}" if isinstance(exc, KeyError) else getattr(exc, "strerror", None) or str(exc)
        text = exc.message if isinstance(exc, WorkbenchError) else text
        raise UsageError(
            f"The baseline {path} cannot be read: {text}", "Make one with: workbench check JUDGMENTS --save FILE"
        ) from exc
    return Baseline(path, plan, measures, queries, str(data["judgments"]), judged)
