"""How much two rankings agree.

`overlap` and `jaccard` look at sets, `rbo` weighs the top, `reached` looks at scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.errors import UsageError


def overlap(first: Sequence[str], second: Sequence[str]) -> int:
    """Number of ids in both rankings. Raises UsageError for an id given twice."""
    return len(_ids(first) & _ids(second))


def jaccard(first: Sequence[str], second: Sequence[str]) -> float:
    """Ids in both over ids in either, 0 to 1; 1 for two empty rankings. Raises UsageError for an id given twice."""
    one, two = _ids(first), _ids(second)
    return len(one & two) / len(one | two) if one or two else 1.0


def rbo(first: Sequence[str], second: Sequence[str], p: float = 0.9) -> float:
    """Rank-biased overlap, extrapolated (RBO_EXT), for rankings of any two lengths.

    The agreement at each depth, averaged with weights that fall by `p` a rank, where beyond the ends the agreement is
    taken to go on as it was. Webber, Moffat, Zobel: A Similarity Measure for Indefinite Rankings, ACM TOIS 28(4), 2010,
    equation 32.

    Args:
        first, second: Ids, best first, each once.
        p: Persistence, above 0 and below 1; 0.9 puts 86 % of the weight on the first ten ranks.

    Returns:
        From 0 (nothing in common) to 1 (the same ranking). 1 for two empty rankings, 0 for one empty one.

    Raises UsageError: `p` outside its bounds, or an id given twice.
    """
    if not 0.0 < p < 1.0:
        raise UsageError(f"p is {p!r}", "It must be above 0 and below 1")
    _ids(first), _ids(second)
    short, long = sorted((list(first), list(second)), key=len)
    s, l = len(short), len(long)  # noqa: E741, the paper's names
    if s == 0:
        return 1.0 if l == 0 else 0.0
    seen_short: set[str] = set()
    seen_long: set[str] = set()
    common, common_at_s, terms = 0, 0, []
    for depth in range(1, l + 1):
        fresh = long[depth - 1]
        if depth <= s:
            other = short[depth - 1]
            common += (
                (fresh == other) + (fresh != other and fresh in seen_short) + (fresh != other and other in seen_long)
            )
            seen_short.add(other)
        else:
            common += fresh in seen_short
        seen_long.add(fresh)
        if depth == s:
            common_at_s = common
        terms.append(common / depth * p**depth)
        if depth > s:
            terms.append(common_at_s * (depth - s) / (s * depth) * p**depth)
    end = ((common - common_at_s) / l + common_at_s / s) * p**l
    return min(1.0, (1.0 - p) / p * math.fsum(terms) + end)


def reached(found: Sequence[float], exact: Sequence[float]) -> int:
    """How many of an approximate answer are as good as the exact one: any record as near as the exact answer's last is.

    Args:
        found: Scores of the approximate answer, higher is better; at most as many as `exact`.
        exact: Scores of the exact answer, falling.

    Returns:
        From 0 to `len(exact)`; a tie at the end of the exact answer is no miss.
    """
    return sum(score >= exact[-1] for score in found) if len(exact) else 0


def _ids(ranking: Sequence[str]) -> set[str]:
    unique = set(ranking)
    if len(unique) != len(ranking):
        twice = next(i for n, i in enumerate(ranking) if i in ranking[:n])
        raise UsageError(f"The ranking holds {twice!r} twice", "Give each id once, at its best rank")
    return unique
