"""What a query's words have to do with records that the keyword source did not return: which are missing, excluded or apart.

`explain` says it of one record, an empty answer of all of them. Pure but for the postings that come in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.store.types import Occurring, QueryWords

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NoMatch:
    """Why the keyword source does not return one record.

    Attributes:
        reason: A clause of a sentence.
        missing: How many things it would still need.
        excluded: Exclusions of the query that it holds.
        any_helps: It holds something of the query, and `keyword.operator=any` would match it.
        unquoting_helps: It holds every word of a phrase that it lacks.
    """

    reason: str
    missing: int
    excluded: tuple[str, ...] = ()
    any_helps: bool = False
    unquoting_helps: bool = False


def why_not(words: QueryWords, number: int, operator: str, subject: str = "it") -> NoMatch:
    """Why a record, called `subject` in the reason, is no match; a match that nothing excludes has the reason ""."""
    items = _distinct(words.alternatives)
    if not items:
        return NoMatch("the query has no word to look for", 1)
    some = [item for item in items if _has(item.counting, number)]
    lacked = items if not some else []
    if operator == "all":
        lacked = min(([i for i in a if i.needed and not _has(i.records, number)] for a in words.alternatives), key=len)
    apart = [item for item in lacked if item.words and all(_has(records, number) for records in item.words)]
    parts = [item for item in lacked if item not in apart and not item.words and _has(item.counting, number)]
    absent = [item for item in lacked if item not in apart and item not in parts]
    out = tuple(item.text for item in words.excluded if _has(item.records, number))
    said = []
    if out:
        said.append(
            f"{subject} has {listed(out)}, which the query leaves out with {listed('-' + text for text in out)}"
        )
    if apart:
        said.append(f"{subject} has the words of {_shown(apart)}, but not next to each other in that order")
    if parts:
        said.append(f"{subject} has parts of {_shown(parts)}, but not the whole")
    if absent:
        lacks = f"lacks {_shown(absent)}" if some or len(absent) == 1 else f"has none of {_shown(absent)}"
        said.append(f"{'it' if operator == 'any' and not out else subject} {lacks}")
    if lacked and operator == "all":
        said.append("keyword.operator=all needs every word")
    return NoMatch(", and ".join(said), len(lacked), out, bool(lacked and some), bool(apart))


def nothing_found(words: QueryWords, everywhere: QueryWords, operator: str) -> str:
    """Why no record matches, and what to do, as one sentence for an empty answer.

    Args:
        words: Among the records that the filter and the plan's collections leave.
        everywhere: Among all that the principal may see.
        operator: any or all.
    """
    items = _distinct(words.alternatives)
    if not items:
        return "The query has no word to look for: add one, or use the mode vector"
    some = matching(words, "any")
    matched = some if operator == "any" else matching(words, "all")
    left = np.setdiff1d(some, np.concatenate([np.zeros(0, np.int64), *(item.records for item in words.excluded)]))
    out = [item for item in words.excluded if len(np.intersect1d(item.records, some))]
    if out and (len(matched) or not len(left)):
        held = f"{_chunks(len(matched))} these words" if len(matched) else f"{_chunks(len(some))} some of these words"
        return (
            f"{held}, but the query leaves out what has {listed(i.text for i in out)}: "
            f"take {listed('-' + i.text for i in out)} out of it"
        )
    apart = [i for i in items if i.words and not len(i.records) and len(_every(i.words))]
    if apart and (operator == "all" or len(apart) == len(items)):
        return (
            f"Nothing has the words of {_shown(apart)} next to each other in that order, though "
            f"{_chunks(len(_every(apart[0].words)))} them all: take the quotes away"
        )
    if len(some):
        return f"Nothing has {_all_of(items)}, but {_chunks(len(left))} some of them: use keyword.operator=any"
    outside = len(matching(everywhere, "any"))
    if outside:
        return f"{_chunks(outside)} some of these words, but none that the filter and the collections let through"
    return f"No document has {_shown(items, 'or')}: check the spelling, use a prefix*, or the mode vector"


def matching(words: QueryWords, operator: str) -> Ints:
    """Records that a query would match if it left nothing out, rising."""
    found = [np.zeros(0, np.int64)]
    for items in words.alternatives:
        found += [_every(i.records for i in items if i.needed)] if operator == "all" else [i.counting for i in items]
    return np.unique(np.concatenate(found))


def listed(texts: Iterable[str], joint: str = "and") -> str:
    """Texts as a sentence has them: `a`, `a and b`, `a, b and c`."""
    *first, last = texts
    return f"{', '.join(first)} {joint} {last}" if first else last


def _every(lists: Iterable[Ints]) -> Ints:
    first, *rest = lists
    for records in rest:
        first = np.intersect1d(first, records, assume_unique=True)
    return first


def _all_of(items: Iterable[Occurring]) -> str:
    wanted = [item for item in items if item.needed]
    return ("all of " if len(wanted) > 1 else "") + _shown(wanted)


def _shown(items: Iterable[Occurring], joint: str = "and") -> str:
    return listed(dict.fromkeys(f'"{item.text}"' if item.words else item.text for item in items), joint)


def _has(records: Ints, number: int) -> bool:
    at = int(np.searchsorted(records, number))
    return at < len(records) and int(records[at]) == number


def _distinct(alternatives: Iterable[Iterable[Occurring]]) -> list[Occurring]:
    return list({item.text: item for items in alternatives for item in items}.values())


def _chunks(count: int) -> str:
    return f"{count:,} {'chunk has' if count == 1 else 'chunks have'}"
