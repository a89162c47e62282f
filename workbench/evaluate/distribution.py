"""Where relevant and other results lie in one source's scores, to choose a threshold with open eyes.

A threshold on the distance drops every candidate at or beyond it, one on a score every candidate below it. What it costs is
seen only against judgments: the share of the relevant that it would drop, and of the others. What was judged counts once a
query, at its best candidate (a document is not lost while one of its chunks stays), and so does each document that nobody
judged.

A check for a team's CI: is a plan still as good as it was?

A baseline is a small JSON file: the plan, and of every query its figures and a digest of its judgments. A later run is compared
query by query, so a drop is told from noise by the paired test, and the queries that fell are named. A query whose judgments
are others now, such as those of a document that was removed or edited, is named and not compared. Minimum figures are the
other way: a mean below one fails, whatever it was before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.errors import UsageError, WorkbenchError
from workbench.evaluate.evaluation import Evaluation, wins
from workbench.evaluate.measures import parse_measures
from workbench.evaluate.pool import Pool, Pooled
from workbench.evaluate.statistics import SIGNIFICANT, Difference, paired_difference
from workbench.plan.fields import FUSED, OFF, base_of
from workbench.plan.plan import Plan, recorded_text
from workbench.plan.presets import EDITION
from workbench.ranking.cutting import below, to_distance
from workbench.records import Progress
from workbench.retrieve.fusing import fuse_plan

if TYPE_CHECKING:
    import polars as pl


Floats = NDArray[np.float64]
_AXES = {"keyword": "BM25 score", FUSED: "fused score"}


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Distances (vector sources) or scores (others) of candidates, apart by judgment.

    Attributes:
        relevant: float64, of relevant candidates, rising.
        judged: float64, of those judged not relevant.
        others: float64, of those that nobody judged.
    """

    source: str
    axis: str
    relevant: Floats
    judged: Floats
    others: Floats
    missed: int = 0

    @property
    def distances(self) -> bool:
        """Whether lower is better."""
        return self.axis.endswith("distance")

    def threshold(self, lose: float = 0.05) -> float:
        """The strictest threshold that drops at most this share of the relevant candidates, NaN where there are none.

        On distances a candidate below the threshold is kept (so it lies just above the last one that must stay); on scores one
        at or above it.
        """
        if not 0.0 <= lose < 1.0:
            raise UsageError(f"The share to lose is {lose!r}", "It must be at least 0 and below 1")
        if not len(self.relevant):
            return math.nan
        may_go = math.floor(lose * len(self.relevant) + 1e-9)
        if self.distances:
            return float(np.nextafter(self.relevant[len(self.relevant) - 1 - may_go], np.inf))
        return float(self.relevant[may_go])

    def advised(self, lose: float = 0.05) -> float:
        """`threshold` as a person writes it: three digits (four figures for scores), rounded to the side that keeps more."""
        exact = self.threshold(lose)
        if math.isnan(exact) or exact == 0.0:
            return exact
        if self.distances:
            return math.ceil(exact * 1_000) / 1_000
        return below(exact)

    def dropped(self, threshold: float) -> tuple[float, float]:
        """Share of the relevant candidates, and of all others, that a threshold drops; NaN where there are none."""
        rest = np.concatenate((self.judged, self.others))
        shares = []
        for values in (self.relevant, rest):
            gone = values >= threshold if self.distances else values < threshold
            shares.append(float(gone.mean()) if len(values) else math.nan)
        return shares[0], shares[1]

    def frame(self, bins: int = 40) -> pl.DataFrame:
        """Counts by bin: low, high, relevant, not_relevant, unjudged."""
        import polars as pl

        every = np.concatenate((self.relevant, self.judged, self.others))
        low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
        edges = np.linspace(low, high if high > low else low + 1e-6, bins + 1)
        counts = [np.histogram(v, edges)[0] for v in (self.relevant, self.judged, self.others)]
        names = ("relevant", "not_relevant", "unjudged")
        return pl.DataFrame({"low": edges[:-1], "high": edges[1:], **dict(zip(names, counts, strict=True))})


def distributions(
    pool: Pool,
    plan: Plan,
    *,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> dict[str, Distribution]:
    """Candidates of every source of a plan at its depth, without a threshold, and of the plan's fusion without a threshold of
    its own, for every judged query.

    The fused score is left out for queries that one source alone answers: such a list keeps its source's own score. Returns
    source -> distribution, `fused` last.
    """
    open_plan = plan.with_threshold(OFF).replace(
        {f"threshold.{s}": OFF for s in plan.cuttable if base_of(s) == "keyword"}
    )
    whole_plan = plan.replace({plan.threshold_to_set(FUSED): OFF})
    needs, (key,) = pool.needs([open_plan])
    names = (*plan.sources, FUSED)
    parts: dict[str, tuple[list[float], ...]] = {name: ([], [], []) for name in names}
    missed = dict.fromkeys(names, 0)
    for n, topic in enumerate(pool.topics, 1):
        if stop is not None and stop():
            break
        grades = pool.judgments.qrels[topic.query_id]
        relevant = {k for k, grade in grades.items() if grade > 0}
        pooled = pool.ask(topic, needs[key], {})
        lists = {} if pooled is None else dict(_lists(pooled, open_plan, whole_plan))
        for name in names:
            best: dict[str, float] = {}  # each key at its best candidate
            for score, keys in lists.get(name, ()):
                for known in keys:
                    best.setdefault(known, score)
            for known, score in best.items():
                grade = grades.get(known)
                parts[name][2 if grade is None else 0 if grade > 0 else 1].append(score)
            if name in lists or name != FUSED:
                missed[name] += len(relevant - best.keys())
        if progress is not None:
            progress(Progress("distribution", n, len(pool), detail=topic.text))
    made = {}
    for name in names:
        vector = base_of(name) == "vector"
        metric = str(plan["vector.metric"])
        arrays = (np.array(part, np.float64) for part in parts[name])
        values = [np.sort(to_distance(v, metric)) if vector else np.sort(v) for v in arrays]
        axis = f"{metric} distance" if vector else _AXES.get(base_of(name), "score")
        made[name] = Distribution(name, axis, values[0], values[1], values[2], missed[name])
    return made


def distribution(
    pool: Pool, plan: Plan, source: str = "vector", *, progress: Callable[[Progress], None] | None = None
) -> Distribution:
    """One of `distributions`: of a source, or of the fused score (`fused`)."""
    if source != FUSED and source not in plan.sources:
        raise UsageError(f"The plan does not ask {source}", "Its sources are " + ", ".join((*plan.sources, FUSED)))
    return distributions(pool, plan, progress=progress)[source]


def _lists(pooled: Pooled, plan: Plan, fusing: Plan) -> Iterator[tuple[str, list[tuple[float, tuple[str, ...]]]]]:
    """Each source's list under one plan, and the fused one under another: score and keys of each candidate, best first."""
    candidates = pooled.retrieved.candidates_for(plan, computed=False)
    for column in candidates.columns:
        rows = np.flatnonzero(column.rank > 0)
        rows = rows[np.argsort(column.rank[rows], kind="stable")]
        yield column.source, _keyed(column.score[rows], rows, pooled)
    outcome = fuse_plan(pooled.retrieved, fusing)
    if outcome.score_kind == FUSED:
        yield FUSED, _keyed(outcome.fused.scores, outcome.fused.rows, pooled)


def _keyed(scores: Floats, rows: NDArray[np.int64], pooled: Pooled) -> list[tuple[float, tuple[str, ...]]]:
    return [(score, pooled.keys[row]) for score, row in zip(scores.tolist(), rows.tolist(), strict=True)]


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
        shown = ", ".join(some[:_NAMED]) + (f" and {len(some) - _NAMED} more" if len(some) > _NAMED else "")
        notes = (
            f"{len(left_out)} of the baseline's {len(baseline.queries)} queries were not compared, because their judgments "
            f"changed or their judged documents are gone: {shown}",
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
        said = f"it lacks {exc}" if isinstance(exc, KeyError) else getattr(exc, "strerror", None) or str(exc)
        said = exc.message if isinstance(exc, WorkbenchError) else said
        raise UsageError(
            f"The baseline {path} cannot be read: {said}", "Make one with: workbench check JUDGMENTS --save FILE"
        ) from exc
    return Baseline(path, plan, measures, queries, str(data["judgments"]), judged)
