"""The fusion methods: what each source adds to each item; the exact sum of that, and the order of the sums.

Every method is written as contributions, one array a source, whose exact sum is the fused score; so the picture, the table
and the score can never disagree.

- `rrf`: weight / (k + rank - 1 + rank_base); 0 where the source did not retrieve the item. Cormack, Clarke, Buettcher:
  Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods, SIGIR 2009.
- `weighted`: weight x normalised score, added up (CombSUM with weights). Fox and Shaw: Combination of Multiple Searches,
  TREC-2, 1994.
- `convex`: alpha x vector + (1 - alpha) x keyword. Bruch, Gai, Ingber, ACM TOIS 2023, arXiv 2210.11934. More sources, or
  one alone, by the same rule: a source has its side's share, alpha for any vector source and 1 - alpha for keyword and grep,
  times its weight (1 unless the plan says otherwise). Shares are not rescaled to add up to 1, so a source that joins, or
  finds nothing, changes nothing of what the others give. With MiniLM's cosines and BM25 over `tmm`, alpha 0.8 makes the two
  sides differ about equally from hit to hit, so grep beside them is a third voice as loud as keyword's. Grep counts lines
  and has no score for a row where it found nothing, or beyond its depth: such a row gets 0 from it.
- `max` (CombMAX): the greatest weighted score counts, and is its source's only contribution; ties go to the source first
  by name. A source takes part where it gives the item a score (retrieved, or a missing score filled by `computed` or
  `floor`) and its weight is above 0. Fox and Shaw.
- `combmnz`: the sum of weighted scores times the number of sources that retrieved the item and have a weight above 0;
  each contribution is its weighted score times that number. Fox and Shaw; Lee: Analyses of Multiple Evidence Combination,
  SIGIR 1997.

Parameters may be arrays of shape (p, 1): p plans over m items give contributions of shape (p, m).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.errors import PlanError
from workbench.plan import fields as plan_fields
from workbench.plan.fields import FusionPlan
from workbench.ranking.candidates import Floats, Ints
from workbench.ranking.evidence import Evidence

Number = float | Floats
_SIDES = frozenset({"grep", "keyword", "vector"})


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """What a method reads besides the evidence, each a number or shape (p, 1); one weight a source, in their order."""

    k: Number
    rank_base: Number
    alpha: Number
    weights: tuple[Number, ...]


def rrf(evidence: Sequence[Evidence], parameters: Parameters) -> list[Floats]:
    k, base = parameters.k, parameters.rank_base
    # An endless rank makes the share exactly 0 where the source did not retrieve the item.
    zero_based = (np.where(e.rank > 0, e.rank - 1.0, np.inf) for e in evidence)
    return [weight / (k + (r + base)) for r, weight in zip(zero_based, parameters.weights, strict=True)]


def weighted(evidence: Sequence[Evidence], parameters: Parameters) -> list[Floats]:
    return [weight * e.value for e, weight in zip(evidence, parameters.weights, strict=True)]


def convex(evidence: Sequence[Evidence], parameters: Parameters) -> list[Floats]:
    """Convex combination of a vector side and a keyword side. Raises PlanError for a source that is on neither."""
    lost = [e.source for e in evidence if plan_fields.base_of(e.source) not in _SIDES]
    if lost:
        raise PlanError(
            f"fusion.method convex cannot tell on which side {', '.join(lost)} is",
            "Name sources grep, keyword, vector or vector:NAME, or set fusion.method to weighted",
        )
    alpha = parameters.alpha
    shares = {"vector": alpha, "keyword": 1.0 - alpha, "grep": 1.0 - alpha}
    return [
        shares[plan_fields.base_of(e.source)] * weight * e.value
        for e, weight in zip(evidence, parameters.weights, strict=True)
    ]


def maximum(evidence: Sequence[Evidence], parameters: Parameters) -> list[Floats]:
    scores = [
        np.where(e.scored & (weight > 0), weight * e.value, -np.inf)
        for e, weight in zip(evidence, parameters.weights, strict=True)
    ]
    best, winner = scores[0], np.where(scores[0] > -np.inf, 0, -1)
    for position, score in enumerate(scores[1:], 1):
        better = score > best
        best, winner = np.where(better, score, best), np.where(better, position, winner)
    return [np.where(winner == position, score, 0.0) for position, score in enumerate(scores)]


def combmnz(evidence: Sequence[Evidence], parameters: Parameters) -> list[Floats]:
    count = sum(
        ((e.rank > 0) & (weight > 0)).astype(np.float64) for e, weight in zip(evidence, parameters.weights, strict=True)
    )
    return [count * score for score in weighted(evidence, parameters)]


METHODS: Mapping[str, Callable[[Sequence[Evidence], Parameters], list[Floats]]] = {
    "rrf": rrf,
    "weighted": weighted,
    "convex": convex,
    "max": maximum,
    "combmnz": combmnz,
}


def contributions(evidence: Sequence[Evidence], method: str, parameters: Parameters) -> list[Floats]:
    """What each source adds to each item: float64 (m,) or (p, m), finite, one array a source."""
    return METHODS[method](evidence, parameters) if evidence else []


def best_first(scores: Floats, coverage: Ints) -> Ints:
    """Positions in the one total order that every list has which leaves a function, int64 (n,): score down, number of sources
    (coverage) down, row number up.

    Rows are in the order normalised path, start line, chunk id, so the last step settles every tie without comparing a string,
    the same in every run and process. Scores are float64 (n,), without NaN.
    """
    first = np.argsort(-coverage, kind="stable")
    return first[np.argsort(-scores[first], kind="stable")]


def exact_sum(terms: Sequence[Floats]) -> Floats:
    """Elementwise sum of float64 arrays of one shape, at least one, each element bit-equal to `math.fsum` of its terms.

    A plain `a + b + c` depends on the order of its terms; a fused score must not. Two terms need no care (IEEE addition is
    correctly rounded and commutes). For more, the rounding error of each step is itself a float (Knuth's two-sum; Ogita,
    Rump, Oishi: Accurate Sum and Dot Product, SIAM J. Sci. Comput. 26, 2005); where the errors add up without a rounding of
    their own, sum plus errors is the exact sum, and one last addition rounds it once. The few elements where they do not are
    summed by `math.fsum` itself.
    """
    if len(terms) < 3:
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]
    total, error = terms[0], np.zeros_like(terms[0])
    inexact = np.zeros(total.shape, bool)
    for term in terms[1:]:
        total, lost = _two_sum(total, term)
        error, lost = _two_sum(error, lost)
        inexact |= lost != 0.0
    result: Floats = total + error
    for place in zip(*np.nonzero(inexact), strict=True):
        result[place] = math.fsum(term[place] for term in terms)
    return result


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The rounded sum and what rounding lost: `a + b == sum + lost` exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def check(fusion: FusionPlan, sources: Sequence[str] = ()) -> None:
    """Refuse what is no fusion plan, and one with a value outside its bounds, which `Plan` never makes. Raises PlanError."""
    if not isinstance(fusion, FusionPlan):
        raise PlanError(
            f"To fuse takes a FusionPlan, not {type(fusion).__name__}",
            "Pass the part of a plan that fusion reads: plan.fusion, or wb.preset('default').fusion",
        )
    for name in ("method", "k", "rank_base", "alpha", "missing", "unit", "renumber", "prefer", "single_source"):
        plan_fields.read(f"fusion.{name}", getattr(fusion, name))
    for name in ("top", "weight"):
        plan_fields.read(f"feedback.{name}", getattr(fusion, f"feedback_{name}"))
    for source in sources:
        # Rankings that come from elsewhere have names that are no plan's sources: only the value is checked.
        _value("fusion.weights", source, fusion.weight(source))
        _value("fusion.normalise", source, fusion.normalisation(source))


def _value(name: str, source: str, value: object) -> None:
    field = plan_fields.BY_NAME[name]
    try:
        field.read(value)
    except (TypeError, ValueError) as exc:
        raise PlanError(f"{name}.{source} is {value!r}", f"It must be {field.bounds}") from exc
