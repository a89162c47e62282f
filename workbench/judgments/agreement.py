"""How far judges agree, beyond what chance would give: Cohen's kappa for two, Fleiss' for more.

Cohen's kappa (Cohen 1960) compares two judges on the items that both graded; with weights (Cohen 1968) a difference of one
grade counts less than one of three, which suits grades that have an order. Fleiss' kappa (Fleiss 1971) is for more judges;
items need not all have the same number of them: each item's agreement is over its own pairs of judges. Kappa is 1
for full agreement, 0 for what chance gives, and NaN where chance agreement is certain (everybody used one grade only):
nothing can be concluded from that.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from workbench.errors import UsageError, counted
from workbench.judgments.log import KNOWN_ITEM, MACHINE


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement over items that at least two judges graded.

    Attributes:
        items: Number of items with at least two grades.
        observed: Share of pairs of grades that are equal, 0 to 1; NaN without items.
        kappa: Cohen's (two judges) or Fleiss'; NaN where it is not defined.
        weighted: Cohen's with quadratic weights; NaN for more than two judges or where it is not defined.
    """

    judges: tuple[str, ...]
    items: int
    observed: float
    kappa: float
    weighted: float
    method: str

    @property
    def words(self) -> str:
        """In one sentence, with the usual words of Landis and Koch (1977)."""
        who = " and ".join(self.judges) if len(self.judges) == 2 else f"{len(self.judges)} judges"
        if not self.items:
            return f"{who} have graded nothing in common"
        text = f"{who} agree on {self.observed:.0%} of {counted(self.items, 'passage')}"
        if math.isnan(self.kappa):
            return f"{text}; kappa is not defined, since only one grade was used"
        names = ("slight", "fair", "moderate", "substantial", "almost perfect")
        word = "worse than chance" if self.kappa < 0 else names[bisect_left((0.2, 0.4, 0.6, 0.8), self.kappa)]
        return f"{text}: {self.method}'s kappa {self.kappa:.2f} ({word})"


def cohen(first: Sequence[int], second: Sequence[int], *, quadratic: bool = False) -> float:
    """Cohen's kappa of two judges on the same items; `quadratic`: a difference costs its square. Returns at most 1; NaN for no
    items, or where both used one and the same grade only.
    """

    def cost(a: int, b: int) -> int:
        return (a - b) ** 2 if quadratic else int(a != b)

    observed = sum(cost(a, b) for a, b in zip(first, second, strict=True))
    pairs = product(Counter(first).items(), Counter(second).items())
    expected = sum(cost(a, b) * x * y for (a, x), (b, y) in pairs)
    return 1.0 - observed * len(first) / expected if expected else math.nan


def fleiss(items: Sequence[Sequence[int]]) -> float:
    """Fleiss' kappa of any number of judges. Returns at most 1; NaN for no such items, or where one grade only was used."""
    used = [list(grades) for grades in items if len(grades) > 1]
    if not used:
        return math.nan
    total = sum(map(len, used))
    shares = [count / total for count in Counter([g for grades in used for g in grades]).values()]
    expected = math.fsum(share**2 for share in shares)
    return (observed(used) - expected) / (1 - expected) if len(shares) > 1 else math.nan


def observed(items: Sequence[Sequence[int]]) -> float:
    """Mean over items of the share of pairs of grades that are equal; NaN where no item has two."""
    used = [grades for grades in items if len(grades) > 1]
    if not used:
        return math.nan
    return math.fsum(math.fsum(c * (c - 1) for c in Counter(g).values()) / (len(g) * (len(g) - 1)) for g in used) / len(
        used
    )


def agreement(items: Sequence[Mapping[str, int]], judges: Sequence[str] | None = None) -> Agreement:
    """Agreement of judges over items. `judges`: The judges to compare; None is all. Two are compared by Cohen's kappa, more
    by Fleiss'.
    """
    names = tuple(sorted({j for grades in items for j in grades} if judges is None else set(judges)))
    if len(names) < 2:
        raise UsageError("Agreement needs at least two judges", "Let somebody else judge the same set")
    kept = [[grades[j] for j in names if j in grades] for grades in items]
    kept = [grades for grades in kept if len(grades) > 1]
    if len(names) > 2:
        return Agreement(names, len(kept), observed(kept), fleiss(kept), math.nan, "Fleiss")
    first, second = [g[0] for g in kept], [g[1] for g in kept]
    return Agreement(
        names, len(kept), observed(kept), cohen(first, second), cohen(first, second, quadratic=True), "Cohen"
    )


def with_people(items: Sequence[dict[str, int]], judge: str) -> Agreement | None:
    """Agreement of a machine with people (the median of them); None where no passage has grades of both. What known-item
    queries were made of was graded by nobody.
    """
    both = []
    for grades in items:
        people = sorted(g for j, g in grades.items() if not j.startswith(MACHINE) and j != KNOWN_ITEM)
        if people and judge in grades:
            both.append({judge: grades[judge], "people": people[(len(people) - 1) // 2]})
    return agreement(both, [judge, "people"]) if both else None
